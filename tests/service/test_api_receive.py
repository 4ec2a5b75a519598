"""Receiving over HTTP: waiting, peeking, and callers that go away."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from falconmq import FalconMQError, Message, MqStatus, ResourceError, aio
from falconmq.client import ControlClient, ServiceError
from falconmq.service.api import messages as api
from falconmq.service.requests import messages, peeking, reading
from falconmq.store import MemoryStore, WriteBatch
from tests.embedded.helpers import (
    ORDERS,
    PATIENCE,
    Background,
    GatedStore,
    threaded,
    threaded_engine,
    wait_until,
    waiting_reads,
)
from tests.service.control import ControlledManager


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as controlled:
        controlled.blocking.create_queue(ORDERS)
        yield controlled


@pytest.fixture
def client(controlled: ControlledManager) -> Iterator[ControlClient]:
    with controlled.client() as client:
        yield client


def send(controlled: ControlledManager, *texts: str) -> None:
    controlled.blocking.queue(ORDERS).send_many(Message(text) for text in texts)


def texts(controlled: ControlledManager) -> list[str]:
    return [message.text for message in controlled.blocking.queue(ORDERS)]


def _are_waiting(controlled: ControlledManager, number: int) -> bool:
    return waiting_reads(controlled.blocking) == number


def shown(messages: list[dict[str, object]]) -> list[object]:
    return [message["text"] for message in messages]


class BrokenStore(MemoryStore):
    """A store whose disk fails while `is_broken`."""

    is_broken = False

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        if self.is_broken:
            raise ResourceError("the disk is broken", status=MqStatus.MESSAGE_STORAGE_FAILED)
        super().commit(batches)


class Caller:
    """Somebody who asks to receive, and hangs up without a word."""

    def __init__(self, controlled: ControlledManager, **wanted: object) -> None:
        body = json.dumps(wanted).encode()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(controlled.path))
        self._socket.sendall(
            f"POST /api/v1/queues/{quote(ORDERS, safe='')}/receive HTTP/1.1\r\n"
            f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            "".encode()
            + body
        )

    def hang_up(self) -> None:
        self._socket.close()


def test_no_message_is_an_empty_list(client: ControlClient) -> None:
    assert client.receive(ORDERS) == []
    assert client.receive(ORDERS, timeout=0.01) == []
    assert client.receive(ORDERS, peek=True) == []


def test_a_receive_takes_what_is_there_up_to_its_count(
    controlled: ControlledManager, client: ControlClient
) -> None:
    send(controlled, "a", "b", "c")
    assert shown(client.receive(ORDERS, count=2)) == ["a", "b"]
    assert shown(client.receive(ORDERS, count=2, timeout=30)) == ["c"]
    assert texts(controlled) == []


@pytest.mark.parametrize("peek", [False, True])
def test_a_read_waits_for_a_message(
    controlled: ControlledManager, client: ControlClient, peek: bool
) -> None:
    waiting = Background(lambda: client.receive(ORDERS, timeout=30, peek=peek))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    send(controlled, "a")
    assert shown(waiting.result()) == ["a"]
    assert texts(controlled) == (["a"] if peek else [])


def test_waiting_callers_are_served_in_the_order_they_came(controlled: ControlledManager) -> None:
    clients = [controlled.client() for _ in range(3)]
    waiting = []
    for number, client in enumerate(clients):
        waiting.append(Background(partial(client.receive, ORDERS, timeout=30)))
        wait_until(partial(_are_waiting, controlled, number + 1))
    send(controlled, "a", "b", "c")
    assert [shown(each.result()) for each in waiting] == [["a"], ["b"], ["c"]]
    for client in clients:
        client.close()


def test_a_receive_leaves_a_copy_in_the_journal(
    controlled: ControlledManager, client: ControlClient
) -> None:
    controlled.blocking.queue(ORDERS).update(journaling=True)
    send(controlled, "a")
    client.receive(ORDERS)
    assert shown(client.receive(ORDERS + ";journal", peek=True)) == ["a"]
    assert client.queue(ORDERS)["journal_messages"] == 1


def test_a_message_is_received_or_peeked_by_its_lookup_id(
    controlled: ControlledManager, client: ControlClient
) -> None:
    send(controlled, "a", "b", "c")
    second = client.receive(ORDERS, count=3, peek=True)[1]["lookup_id"]
    assert shown(client.receive(ORDERS, lookup_id=second, peek=True)) == ["b"]
    assert shown(client.receive(ORDERS, lookup_id=second)) == ["b"]
    assert texts(controlled) == ["a", "c"]
    for peek in (True, False):
        with pytest.raises(ServiceError) as raised:
            client.receive(ORDERS, lookup_id=second, peek=peek)
        assert raised.value.status is MqStatus.MESSAGE_NOT_FOUND
        assert raised.value.http_status == 404


def test_a_queue_is_peeked_page_by_page(
    controlled: ControlledManager, client: ControlClient
) -> None:
    send(controlled, *"abcdefg")
    first = client.receive(ORDERS, peek=True, count=3)
    second = client.receive(ORDERS, peek=True, count=3, after=first[-1]["lookup_id"])
    third = client.receive(ORDERS, peek=True, count=3, after=second[-1]["lookup_id"])
    last = client.receive(ORDERS, peek=True, count=3, after=third[-1]["lookup_id"])
    assert [shown(page) for page in (first, second, third, last)] == [
        ["a", "b", "c"],
        ["d", "e", "f"],
        ["g"],
        [],
    ]


def test_a_page_goes_on_where_a_message_was_that_is_gone(
    controlled: ControlledManager, client: ControlClient
) -> None:
    send(controlled, *"abcd")
    second = client.receive(ORDERS, peek=True, count=2)[-1]["lookup_id"]
    client.receive(ORDERS, lookup_id=second)
    assert shown(client.receive(ORDERS, peek=True, count=9, after=second)) == ["c", "d"]


def test_an_answer_is_bounded_in_bytes(
    controlled: ControlledManager, client: ControlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (peeking, reading):
        monkeypatch.setattr(module, "ANSWER_BYTES", 1000)
    send(controlled, *["x" * 400] * 5)
    assert len(client.receive(ORDERS, count=5, peek=True)) == 2
    after = client.receive(ORDERS, peek=True)[0]["lookup_id"]
    assert len(client.receive(ORDERS, count=5, peek=True, after=after)) == 2
    assert len(client.receive(ORDERS, count=5)) == 2
    assert len(texts(controlled)) == 3


def test_a_remote_queue_cannot_be_read(client: ControlClient) -> None:
    for peek in (False, True):
        with pytest.raises(ServiceError) as raised:
            client.receive(r"DIRECT=OS:sales02\private$\orders", peek=peek)
        assert raised.value.status is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION


# Callers that go away


@pytest.mark.parametrize("peek", [False, True])
def test_a_caller_that_hangs_up_while_it_waits_takes_nothing(
    controlled: ControlledManager, peek: bool
) -> None:
    caller = Caller(controlled, timeout=600, peek=peek)
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    caller.hang_up()
    wait_until(lambda: waiting_reads(controlled.blocking) == 0)
    send(controlled, "a")
    assert texts(controlled) == ["a"]


def test_a_caller_that_hangs_up_before_its_answer_is_ready_takes_nothing(tmp_path: Path) -> None:
    # given a caller who waits, and messages for it that are still being written
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        queue = controlled.blocking.create_queue(ORDERS)
        caller = Caller(controlled, timeout=600, count=5)
        wait_until(lambda: waiting_reads(controlled.blocking) == 1)
        store.gate.clear()
        sender = Background(lambda: send(controlled, "a", "b"))
        wait_until(lambda: len(queue.opened.queue.positions.held) == 1)  # type: ignore[union-attr]  # it is local
        # when it hangs up
        caller.hang_up()
        wait_until(lambda: not queue.opened.queue.positions.held)  # type: ignore[union-attr]  # it is local
        store.gate.set()
        sender.result()
        # then they are all there, for others
        assert texts(controlled) == ["a", "b"]
        with controlled.client() as client:
            assert shown(client.receive(ORDERS, count=5)) == ["a", "b"]


def test_a_caller_that_hangs_up_while_its_answer_is_made_takes_nothing(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given an answer that takes its time
    is_made, may_go_on = threading.Event(), threading.Event()

    def slowly(message: Message, **options: Any) -> dict[str, object]:
        is_made.set()
        assert may_go_on.wait(PATIENCE)
        return messages.to_json(message, **options)

    monkeypatch.setattr(api, "to_json", slowly)
    send(controlled, "a", "b")
    caller = Caller(controlled, count=1)
    assert is_made.wait(PATIENCE)
    # when the caller hangs up
    caller.hang_up()
    may_go_on.set()
    # then its message is available again, in its old place
    wait_until(lambda: len(texts(controlled)) == 2)
    with controlled.client() as client:
        assert shown(client.receive(ORDERS, count=5)) == ["a", "b"]


def test_a_read_cancelled_in_the_moment_its_message_came_gives_it_back() -> None:
    async def main() -> None:
        engine = threaded_engine()
        manager = aio.QueueManager(engine)
        queue = await manager.create_queue(ORDERS)
        hold = reading.Hold(engine, queue.opened)
        taking = asyncio.ensure_future(hold.take(1, PATIENCE))
        while not waiting_reads(manager.blocking):
            await asyncio.sleep(0)
        manager.blocking.queue(ORDERS).send(Message("a"))  # the loop stands still meanwhile
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert [message.text async for message in queue] == ["a"]
        await manager.close()

    asyncio.run(main())


def test_a_failed_write_of_others_does_not_let_go_of_held_messages() -> None:
    async def main() -> None:
        store = BrokenStore()
        engine = threaded_engine(store)
        manager = aio.QueueManager(engine)
        queue = await manager.create_queue(ORDERS)
        await queue.send_many([Message("a"), Message("b")])
        hold = reading.Hold(engine, queue.opened)
        await hold.take(1, 0)
        store.is_broken = True
        with pytest.raises(ResourceError):
            await queue.send(Message("c"))
        store.is_broken = False
        await hold.keep()
        assert [message.text async for message in queue] == ["b"]
        await manager.close()

    asyncio.run(main())


def test_a_message_whose_own_write_failed_is_not_held_any_more() -> None:
    async def main() -> None:
        # given a read that waits, and a message for it that cannot be written
        store = BrokenStore()
        engine = threaded_engine(store)
        manager = aio.QueueManager(engine)
        queue = await manager.create_queue(ORDERS)
        await queue.send(Message("first"))  # the counters are in the store
        await queue.purge()
        hold = reading.Hold(engine, queue.opened)
        taking = asyncio.ensure_future(hold.take(1, PATIENCE))
        while not waiting_reads(manager.blocking):
            await asyncio.sleep(0)
        store.is_broken = True
        with pytest.raises(ResourceError):
            await queue.send(Message("lost"))
        store.is_broken = False
        # when it is told
        with pytest.raises(FalconMQError):
            await taking
        # then there is nothing to give back, and everything goes on
        hold.release()
        await queue.send(Message("a"))
        assert [message.text async for message in queue] == ["a"]
        await manager.close()

    asyncio.run(main())


def test_a_message_is_deleted_for_good_before_the_answer_goes_out(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        queue = controlled.blocking.create_queue(ORDERS)
        send(controlled, "a")
        store.gate.clear()
        with controlled.client() as client:
            answer = Background(lambda: client.receive(ORDERS))
            wait_until(lambda: queue.count == 0)
            assert not answer.is_done
            store.gate.set()
            assert shown(answer.result()) == ["a"]
    store.crash()
    with threaded(store) as again:
        assert again.queue(ORDERS).count == 0


def test_a_deletion_that_cannot_be_written_is_refused_and_the_message_stays(
    tmp_path: Path,
) -> None:
    store = BrokenStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        send(controlled, "a")
        store.is_broken = True
        with controlled.client() as client:
            with pytest.raises(ServiceError) as raised:
                client.receive(ORDERS)
            assert raised.value.http_status == 507
            store.is_broken = False
            assert shown(client.receive(ORDERS)) == ["a"]


def test_a_queue_that_is_deleted_ends_the_wait(
    controlled: ControlledManager, client: ControlClient
) -> None:
    waiting = Background(lambda: client.receive(ORDERS, timeout=600))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    controlled.blocking.delete_queue(ORDERS)
    with pytest.raises(ServiceError) as raised:
        waiting.result()
    assert raised.value.http_status == 410


def test_stopping_the_service_answers_those_who_wait(
    controlled: ControlledManager, client: ControlClient
) -> None:
    waiting = Background(lambda: client.receive(ORDERS, timeout=600))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    controlled.stop_server()
    with pytest.raises(ServiceError, match="stops") as raised:
        waiting.result()
    assert raised.value.http_status == 503
    assert waiting_reads(controlled.blocking) == 0
