"""`falconmq demo`: three queue managers, and totals that are right or are said to be wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from falconmq.cli import demo_flow, demo_managers
from falconmq.cli.demo_flow import Stream
from tests.cli.commands import InProcess, run
from tests.processes import FALCONMQ

SECONDS = 120


def test_every_order_arrives_though_the_hub_is_killed(tmp_path: Path) -> None:
    # when the demo runs as a person runs it
    result = run("demo", "--orders", "200", environment={"TMPDIR": str(tmp_path)})
    # then it tells what happened
    assert (result.code, result.err) == (0, "")
    told = result.out
    assert r"the directory knows the queue warehouse\orders" in told
    assert told.index("all three are ready") < told.index("the hub is killed")
    assert told.index("the hub is killed") < told.index("the hub is back")
    assert told.index("the hub is back") < told.index("everything has arrived")
    assert all(len(line) <= 80 for line in told.splitlines())
    # and where to look
    assert re.findall(r"(\w+) +http://127[\d.]+:8018\n", told) == ["shop", "hub", "warehouse"]
    assert "falconmq demo --stay" in told
    # and the totals are right
    rows = [line.split() for line in told.splitlines()]
    for name in ("orders", "invoices", "receipts"):
        [row] = [row for row in rows if row[:1] == [name]]
        assert row[-5:] == ["200", "200", "0", "0", "yes"]
    # and nothing is left behind
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_json_has_the_totals_and_keep_leaves_the_logs(tmp_path: Path) -> None:
    place = tmp_path / "kept"
    result = run("demo", "--orders", "100", "--json", "--keep", str(place))
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["problems"] == []
    assert [(each["name"], each["kind"]) for each in document["streams"]] == [
        ("orders", "transactional"),
        ("invoices", "recoverable"),
        ("receipts", "express"),
    ]
    assert all(each["sent"] == each["received"] == 100 for each in document["streams"])
    assert {session["from"] for session in document["sessions"]} <= {"shop", "hub", "warehouse"}
    assert (place / "hub.log").read_text().count("listening addresses=") == 2
    again = run("demo", "--keep", str(place))
    assert again.code == 2
    assert "not empty" in again.err


@pytest.mark.slow
def test_totals_that_are_wrong_are_said_to_be(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a warehouse that counts the first order twice
    receive = demo_flow._receive

    def miscount(client: object, stream: Stream) -> list[int]:
        numbers = receive(client, stream)  # type: ignore[arg-type]  # handed on
        if stream.name == "orders" and numbers and numbers[0] == 1:
            stream.received.insert(0, 1)
        return numbers

    monkeypatch.setattr(demo_flow, "_receive", miscount)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    # when the demo counts
    result = falconmq("demo", "--orders", "100")
    # then it says what is wrong, and keeps what is needed to find out
    assert result.code == 1
    assert "the totals are wrong: 1 orders doubled" in result.err
    [kept] = tmp_path.iterdir()
    assert str(kept) in result.err
    assert (kept / "shop.log").is_file()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_stops_everything(tmp_path: Path, number: signal.Signals, code: int) -> None:
    # given a demo that runs
    place = tmp_path / "kept"
    process = subprocess.Popen(
        [str(FALCONMQ), "demo", "--orders", "5000", "--keep", str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    addresses = []
    for line in process.stdout:
        addresses += [word for word in line.split() if word.startswith("127.")]
        if "the shop sends" in line:
            break
    # when somebody has seen enough
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    # then it ends quietly, and nobody listens any more
    assert (process.returncode, errors) == (code, "")
    assert len(addresses) == 3
    for address in addresses:
        with socket.socket() as probe, pytest.raises(OSError, match="refused"):
            probe.connect((address, demo_managers.PORT))
    for name in ("shop", "hub", "warehouse"):
        assert (place / f"{name}.log").read_text().rstrip().endswith("stopped")


@pytest.mark.slow
def test_it_stays_up_with_its_consoles_until_ctrl_c(tmp_path: Path) -> None:
    # given a demo that is asked to stay
    process = subprocess.Popen(
        [str(FALCONMQ), "demo", "--orders", "100", "--stay", "--keep", str(tmp_path / "kept")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    consoles = []
    for line in process.stdout:
        consoles += re.findall(r"console: (http://127\S+)", line)
        if "Ctrl-C stops them" in line:
            break
    # then each of the three shows its console to whoever is on this computer
    assert len(consoles) == 3
    for url in consoles:
        with urllib.request.urlopen(url, timeout=SECONDS) as page:
            assert page.status == 200
            assert b"<html" in page.read()
    # and Ctrl-C is the end of it
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert "data and logs are in" in told
    for url in consoles:
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(url, timeout=SECONDS)


def test_a_taken_port_is_said_with_what_to_do(
    falconmq: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_managers, "_is_free", lambda address: False)
    result = falconmq("demo")
    assert result.code == 1
    assert "port 1801 is taken on all addresses of the loopback" in result.err
    assert "ss -ltnp" in result.err


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ([1, 2, 3], []),
        ([1, 3], ["1 orders lost"]),
        ([1, 2, 2, 3], ["1 orders doubled"]),
        ([1, 3, 2], ["orders out of order"]),
        ([1, 2, 3, 4], ["1 orders were never sent"]),
        ([], ["3 orders lost"]),
    ],
)
def test_a_stream_knows_what_is_wrong_with_it(received: list[int], expected: list[str]) -> None:
    stream = Stream("orders", "transactional", "over the hub", 3, [1, 2, 3], received)
    assert stream.problems() == expected
