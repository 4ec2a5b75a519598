"""Waiting, interrupting and closing with threads; and stores that fail."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import falconmq
from falconmq import Message, MqStatus, QueueError, ReadError, ResourceError, StoreError
from falconmq.store import MemoryStore, WriteBatch, open_data_directory
from tests.embedded.helpers import (
    ORDERS,
    Background,
    GatedStore,
    Timed,
    threaded,
    wait_until,
    waiting_reads,
)


def texts(queue: falconmq.Queue) -> list[str]:
    return [message.text for message in queue]


def test_a_waiting_receive_gets_the_message_that_comes() -> None:
    with threaded() as manager:
        orders = manager.create_queue(ORDERS)
        reader = Background(lambda: orders.receive().text)
        wait_until(lambda: waiting_reads(manager) == 1)
        orders.send(Message("here"))
        assert reader.result() == "here"
        assert orders.count == 0


def test_a_wait_ends_when_its_time_is_over() -> None:
    # given a reader who waits 5 seconds
    timed = Timed()
    orders = timed.manager.create_queue(ORDERS)
    reader = Background(lambda: orders.receive(timeout=5))
    wait_until(lambda: waiting_reads(timed.manager) == 1)
    # when they are over
    timed.pass_time(6)
    # then it is told
    with pytest.raises(ReadError, match="within 5 seconds") as raised:
        reader.result()
    assert raised.value.status is MqStatus.IO_TIMEOUT


def test_the_housekeeper_ends_waits_by_itself() -> None:
    with threaded() as manager:
        orders = manager.create_queue(ORDERS)
        with pytest.raises(ReadError, match=r"within 0\.01 seconds"):
            orders.receive(timeout=0.01)
        assert waiting_reads(manager) == 0


def test_closing_ends_the_reads_that_wait() -> None:
    manager = threaded()
    orders = manager.create_queue(ORDERS)
    with orders.cursor() as cursor:
        readers = [Background(orders.receive), Background(orders.peek), Background(cursor.peek)]
        wait_until(lambda: waiting_reads(manager) == 3)
        manager.close()
    for reader in readers:
        with pytest.raises(ReadError) as raised:
            reader.result()
        assert raised.value.status is MqStatus.OPERATION_CANCELLED


def test_closing_a_queue_ends_its_own_waits_only() -> None:
    with threaded() as manager:
        manager.create_queue(ORDERS)
        mine, yours = manager.queue(ORDERS), manager.queue(ORDERS)
        readers = Background(mine.receive), Background(yours.receive)
        wait_until(lambda: waiting_reads(manager) == 2)
        mine.close()
        with pytest.raises(ReadError):
            readers[0].result()
        yours.send(Message("x"))
        assert readers[1].result().text == "x"


def test_deleting_a_queue_ends_the_reads_that_wait() -> None:
    with threaded() as manager:
        orders = manager.create_queue(ORDERS)
        reader = Background(orders.receive)
        wait_until(lambda: waiting_reads(manager) == 1)
        manager.delete_queue(orders)
        with pytest.raises(QueueError, match="was deleted"):
            reader.result()


def test_nothing_returns_before_its_commit() -> None:
    # given a store that does not finish its commits
    store = GatedStore()
    with threaded(store) as manager:
        orders = manager.create_queue(ORDERS)
        store.gate.clear()
        # when one sends, one peeks and one receives
        sender = Background(lambda: orders.send(Message("x")))
        wait_until(lambda: orders.count == 1)
        peeker = Background(lambda: orders.peek(timeout=0).text)
        receiver = Background(lambda: orders.receive(timeout=0).text)
        wait_until(lambda: orders.count == 0)
        # then all of them wait, the peek too: the message is not true yet
        assert not any(task.is_done for task in (sender, peeker, receiver))
        # until it is
        store.gate.set()
        assert sender.result()
        assert (peeker.result(), receiver.result()) == ("x", "x")


def test_a_fed_reader_does_not_return_before_the_commit_of_the_sender() -> None:
    store = GatedStore()
    with threaded(store) as manager:
        orders = manager.create_queue(ORDERS)
        readers = [Background(orders.peek), Background(orders.receive)]
        wait_until(lambda: waiting_reads(manager) == 2)
        store.gate.clear()
        sender = Background(lambda: orders.send(Message("x")))
        wait_until(lambda: waiting_reads(manager) == 0)
        assert not any(task.is_done for task in (sender, *readers))
        store.gate.set()
        assert [reader.result().text for reader in readers] == ["x", "x"]


def test_express_messages_wait_for_no_commit() -> None:
    store = GatedStore()
    with threaded(store) as manager:
        orders = manager.create_queue(ORDERS)
        orders.send(Message("warm up", recoverable=False))  # the counters are in the store
        store.gate.clear()
        orders.send(Message("x", recoverable=False))
        assert orders.receive(timeout=0).text == "warm up"
        assert orders.receive(timeout=0).text == "x"
        store.gate.set()


def test_many_threads_send_and_receive_each_message_once(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        orders = manager.create_queue(ORDERS)
        got: list[str] = []

        def send(name: int) -> None:
            for number in range(40):
                orders.send(Message(f"{name} {number}"))

        def receive() -> None:
            for _ in range(40):
                got.append(orders.receive(timeout=10).text)  # noqa: PERF401

        work = [Background(lambda name=name: send(name)) for name in range(4)]  # type: ignore[misc]
        work += [Background(receive) for _ in range(4)]
        for task in work:
            task.result()
        assert sorted(got) == sorted(
            f"{name} {number}" for name in range(4) for number in range(40)
        )
        assert manager.status().messages == 0


def test_a_full_disk_is_a_named_error_and_the_manager_goes_on_when_there_is_room() -> None:
    # given a store that is full
    store = MemoryStore()
    with threaded(store) as manager:
        orders = manager.create_queue(ORDERS)
        ledger = manager.create_queue(r".\private$\ledger", transactional=True)
        orders.send(Message("before"))
        orders.send(Message("express", recoverable=False))
        store.is_full = True
        # when somebody sends, alone or in a transaction
        with pytest.raises(ResourceError) as raised:
            orders.send(Message("too much"))
        assert raised.value.hint
        with pytest.raises(ResourceError), manager.transaction() as transaction:
            ledger.send(Message("too much"), transaction)
        # then nothing of it happened, and nothing else was lost
        assert texts(orders) == ["before", "express"]
        assert ledger.count == 0
        # and there can be room again
        assert orders.receive(timeout=0).text == "before"
        store.is_full = False
        orders.send(Message("after"))
        assert texts(orders) == ["express", "after"]


def test_a_real_store_that_is_full_recovers(tmp_path: Path) -> None:
    with falconmq.open(tmp_path, map_size=1 << 20) as manager:
        orders = manager.create_queue(ORDERS)

        def fill() -> None:
            for _ in range(1000):
                orders.send(Message(bytes(10_000)))

        with pytest.raises(ResourceError) as raised:
            fill()
        assert raised.value.hint
        sent = orders.count
        assert sent > 10
        for _ in range(sent // 2):
            orders.receive(timeout=0)
        orders.send(Message("there is room"))
        assert orders.count == sent - sent // 2 + 1


def test_a_receive_whose_commit_fails_gives_the_message_back() -> None:
    store = MemoryStore()
    with threaded(store) as manager:
        orders = manager.create_queue(ORDERS)
        orders.send(Message("x"))
        store.fail_commit()
        with pytest.raises(StoreError):
            orders.receive(timeout=0)
        assert texts(orders) == ["x"]
        assert orders.receive(timeout=0).text == "x"


def test_a_transaction_in_flight_when_a_commit_fails_is_over() -> None:
    store = MemoryStore()
    with threaded(store) as manager:
        orders = manager.create_queue(ORDERS)
        ledger = manager.create_queue(r".\private$\ledger", transactional=True)
        transaction = manager.transaction()
        ledger.send(Message("x"), transaction)
        store.fail_commit()
        with pytest.raises(StoreError):
            orders.send(Message("y"))
        assert not transaction.is_active
        with pytest.raises(falconmq.TransactionError, match="the store could not write"):
            transaction.commit()
        assert ledger.count == 0


def test_a_mistake_of_ours_in_the_middle_of_an_event_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given an event that fails when the message is already in memory
    with threaded() as manager:
        orders = manager.create_queue(ORDERS)
        orders.send(Message("a"))
        with monkeypatch.context() as patch:
            name = "falconmq.manager.storing.feed_waiting_reads"
            patch.setattr(name, lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                orders.send(Message("b"))
        # when the next call comes
        # then memory is what the store has
        assert texts(orders) == ["a"]
        orders.send(Message("c"))
        assert texts(orders) == ["a", "c"]


INTERRUPTED = """
import os, signal, sys, threading
import falconmq
from tests.embedded.helpers import GatedStore, ORDERS, threaded, wait_until, waiting_reads

store = GatedStore()
manager = threaded(store)
orders = manager.create_queue(ORDERS, transactional=sys.argv[2] == "transaction")

def send(text):
    with manager.transaction() as transaction:
        orders.send(falconmq.Message(text), transaction if orders.is_transactional else None)

def interrupt():
    if sys.argv[1] == "waiting":
        wait_until(lambda: waiting_reads(manager) == 1)
    else:
        store.is_waiting.wait()
    os.kill(os.getpid(), signal.SIGINT)

if sys.argv[1] == "committing":
    send("x")
    store.is_waiting.clear()
    store.gate.clear()
threading.Thread(target=interrupt, daemon=True).start()
transaction = manager.transaction() if orders.is_transactional else None
try:
    orders.receive(transaction)
except KeyboardInterrupt:
    print("interrupted")
store.gate.set()
assert waiting_reads(manager) == 0
if transaction is not None:
    transaction.commit()
if sys.argv[1] == "waiting":
    send("x")
print([message.text for message in orders])
manager.close()
"""


@pytest.mark.parametrize(
    ("moment", "kind"),
    [("waiting", "plain"), ("waiting", "transaction"), ("committing", "plain")],
)
def test_ctrl_c_during_a_receive_leaves_no_wait_and_loses_no_message(
    moment: str, kind: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, moment, kind],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.stdout.splitlines() == ["interrupted", "['x']"], done.stderr


PESTERED = r"""
import random, signal, sys, threading, time
import falconmq

manager = falconmq.open(sys.argv[1], durability=falconmq.Durability.RELAXED)
orders = manager.create_queue(r".\private$\orders")
sent, received, interrupts, is_armed, is_over = set(), set(), 0, False, False

def on_signal(*_):  # Ctrl-C anywhere in a call, once, and nowhere else in this script
    global is_armed
    if is_armed:
        is_armed = False
        raise KeyboardInterrupt

def pester(chance, main):
    while not is_over:
        time.sleep(chance.uniform(0.0003, 0.004))
        signal.pthread_kill(main, signal.SIGINT)

signal.signal(signal.SIGINT, on_signal)
pest = threading.Thread(target=pester, args=(random.Random(1), threading.main_thread().ident))
pest.start()
number, end = 0, time.monotonic() + 3
while time.monotonic() < end:
    number += 1
    text = str(number)
    try:
        is_armed = True
        orders.send(falconmq.Message(text))
        sent.add(text)
        if number % 3 == 0:
            received.add(orders.receive(timeout=0).text)
    except KeyboardInterrupt:
        interrupts += 1
is_armed, is_over = False, True
pest.join()
present = [message.text for message in orders]
manager.close()
with falconmq.open(sys.argv[1]) as manager:
    assert [message.text for message in manager.queue(r".\private$\orders")] == present
assert len(set(present)) == len(present)
assert not received & set(present), "received and back"
lost = sent - received - set(present)
assert len(lost) <= 2, lost  # Ctrl-C may come when receive has returned, and its result is dropped
assert interrupts > 20 and sent, (interrupts, len(sent))
"""


@pytest.mark.slow
def test_hundreds_of_ctrl_c_at_any_moment_leave_memory_and_store_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PESTERED, tmp_path / "data"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_killed_owner_does_not_keep_the_directory(tmp_path: Path) -> None:
    code = (
        "import falconmq, sys\n"
        "m = falconmq.open(sys.argv[1])\n"
        r"m.create_queue(r'.\private$\orders').send(falconmq.Message('kept'))"
        "\nprint('ready', flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        owner.send_signal(signal.SIGKILL)
    with falconmq.open(tmp_path) as manager:
        assert texts(manager.queue(ORDERS)) == ["kept"]


def test_a_store_with_data_of_a_damaged_queue_is_refused_and_closed(tmp_path: Path) -> None:
    with falconmq.open(tmp_path) as manager:
        manager.create_queue(ORDERS).send(Message("x"))
    store = open_data_directory(tmp_path)
    key, _ = next(iter(store.scan("messages")))
    batch = WriteBatch()
    batch.put("messages", key, b"rubbish")
    store.commit([batch])
    store.close()
    for _ in range(2):  # the second time it is not in use, but still damaged
        with pytest.raises(StoreError, match="cannot be read"):
            falconmq.open(tmp_path)
