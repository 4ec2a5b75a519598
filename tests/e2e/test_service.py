"""The life of a daemon as its peers and its administrator see it."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from falconmq.client import ServiceError
from falconmq.errors import MqStatus
from tests.cli.commands import run
from tests.e2e.estate import Daemon, Estate, path, wait_until

ROOM = "16m"
BODY = base64.b64encode(os.urandom(100_000)).decode()


def test_a_daemon_that_stops_acknowledges_what_it_has(estate: Estate) -> None:
    # given an express message that came, whose acknowledgement would be due in ten seconds
    a, b = estate.manager("A"), estate.manager("B")
    estate.start()
    b.create_queue("orders")
    a.client.send(b.direct("orders"), [{"text": "hello", "recoverable": False}])
    b.take("orders", 1)
    assert a.waiting() == 1
    # when the receiver is told to stop
    assert b.stop() == 0
    # then the sender knows that it need not send the message again
    wait_until(lambda: a.waiting() == 0, "the acknowledgement came", seconds=5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_stops_cleanly_in_the_middle_of_its_work(
    estate: Estate, number: signal.Signals
) -> None:
    # given messages that flow
    a, b = estate.manager("A"), estate.manager("B")
    estate.start()
    b.create_queue("orders", transactional=True)
    sent = [{"text": str(n)} for n in range(1000)]
    a.client.send(b.direct("orders"), sent, transaction=True)
    # when both ends are stopped, the receiver first
    codes = b.stop(number), a.stop(number)
    # then both end well, and say so
    assert codes == (0, 0)
    for daemon in (a, b):
        assert daemon.said().rstrip().endswith("stopped")
        assert "Traceback" not in daemon.said()
    # and nothing is lost or doubled when they are back
    estate.start()
    assert [m["text"] for m in b.take("orders", 1000)] == [m["text"] for m in sent]
    wait_until(lambda: a.waiting() == 0, "everything is acknowledged")
    assert b.count("orders") == 0


def test_an_address_that_is_taken_is_refused_with_a_hint(estate: Estate, tmp_path: Path) -> None:
    # given a daemon
    a = estate.manager("A").start()
    # when another is started on its address
    done = run("serve", "--data", str(tmp_path / "other"), "--bind", a.address)
    # then it says what is taken and what to do, and the first goes on
    assert done.code == 1
    assert f"{a.address}:1801" in done.err
    assert "hint" in done.err
    assert "Traceback" not in done.err
    assert a.client.status()["computer_name"] == "A"


@pytest.mark.requirement("QB-3.1.3.2-33", "QB-3.1.1.3-20", "QB-3.1.1.3-22")
def test_a_daemon_keeps_its_identity_and_never_repeats_a_message_id(estate: Estate) -> None:
    # given a daemon that has sent messages
    a = estate.manager("A").start()
    a.create_queue("orders")
    number = a.client.queue(path("orders"))["format_name"]
    ids = a.client.send(path("orders"), [{"text": "hello"}] * 10)
    # when it is killed and started again
    a.restart()
    # then it is the same queue manager with the same queue, and its messages have new ids
    assert a.client.status()["id"] == str(a.id)
    assert a.client.queue(path("orders"))["format_name"] == number
    ids += a.client.send(path("orders"), [{"text": "hello"}] * 10)
    assert all(id.lower().startswith(f"{{{a.id}}}") for id in ids)
    ordinals = [int(id.split("\\")[1]) for id in ids]
    first, second = ordinals[0], ordinals[10]
    assert ordinals == [*range(first, first + 10), *range(second, second + 10)]
    assert first == 1  # 0 would mean that it has none
    assert second > ordinals[9]


def test_the_status_shows_sessions_and_what_waits(estate: Estate) -> None:
    # given one peer that is there and one that is not
    a, b, gone = estate.manager("A"), estate.manager("B"), estate.manager("C")
    a.start()
    b.start().create_queue("orders")
    a.client.send(b.direct("orders"), [{"text": "hello"}])
    a.client.send(gone.direct("orders"), [{"text": "hello"}] * 3)
    b.take("orders", 1)
    # when somebody looks
    [session] = [s for s in a.client.status()["sessions"] if s["state"] == "OPEN"]
    outgoing = {queue["destination"]: queue for queue in a.client.outgoing()}
    # then the session is with the first, and the messages for the other wait
    assert (session["address"], session["queue_manager"]) == (b.address, str(b.id))
    waiting = outgoing[gone.direct("orders")]
    assert waiting["messages"] == 3
    assert waiting["connection_history"][-1]["addresses"] == [gone.address]
    assert run("status", "--data", str(a.data)).code == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that is soon full."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk: {error}")
    if done.returncode:
        pytest.skip(f"no small disk without root: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(daemon: Daemon) -> NoReturn:
    while True:
        daemon.client.send(path("ours"), [{"body": BODY}] * 10)


def test_a_full_disk_refuses_and_recovers(small_disk: Path, tmp_path: Path) -> None:
    with Estate(tmp_path) as near, Estate(small_disk) as far:
        # given a peer whose disk is small
        a, b = near.manager("A"), far.manager("B")
        a.start(), b.start()
        b.create_queue("orders")
        b.create_queue("ours")
        # when more comes than it can hold
        sent = [{"label": str(n), "body": BODY} for n in range(300)]
        for start in range(0, len(sent), 20):
            a.client.send(b.direct("orders"), sent[start : start + 20])
        # then it refuses, and says why
        with pytest.raises(ServiceError) as caught:
            fill(b)
        assert caught.value.status is MqStatus.MESSAGE_STORAGE_FAILED
        assert "No space left on device" in str(caught.value)
        assert "free some space" in caught.value.hint
        assert a.waiting() > 0
        # and when there is room again, everything arrives, once and in order
        subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
        came = b.take("orders", len(sent))
        assert [message["label"] for message in came] == [message["label"] for message in sent]
        wait_until(lambda: a.waiting() == 0, "everything is acknowledged")
        assert b.count("orders") == 0
        assert b.process is not None
        assert b.process.poll() is None
