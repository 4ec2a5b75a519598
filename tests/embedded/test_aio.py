"""The asyncio API: the same behaviour, and an event loop that is never blocked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from falconmq import (
    Message,
    MqStatus,
    QueueError,
    ReadError,
    ResourceError,
    SeekAction,
    TransactionError,
    aio,
)
from tests.embedded.helpers import ORDERS, GatedStore, threaded_engine, waiting_reads

_T = TypeVar("_T")


def run(main: Callable[[], Awaitable[_T]]) -> _T:
    async def bounded() -> _T:
        return await asyncio.wait_for(main(), 30)

    return asyncio.run(bounded())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


async def texts(queue: aio.Queue) -> list[str]:
    return [message.text async for message in queue]


def test_the_whole_api_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path, computer_name="SALES01") as manager:
            orders = await manager.create_queue(ORDERS, label="first")
            await orders.send_many([Message("a"), Message("b"), Message("c")])
            assert (await orders.peek(timeout=0)).text == "a"
            assert await texts(orders) == ["a", "b", "c"]
            first = await orders.receive(timeout=0)
            assert first.text == "a"
            async with await orders.cursor() as cursor:
                await cursor.peek()
                found = await cursor.peek_next()
                assert [message.text async for message in cursor] == ["c"]
            assert found.lookup_id is not None
            assert (await orders.peek_by_lookup_id(found.lookup_id)).text == "c"
            late = await orders.subqueue("late")
            await orders.move(found, late)
            assert (await late.receive_by_lookup_id(0, seek=SeekAction.FIRST)).text == "c"
            await orders.update(journaling=True)
            await orders.receive()
            assert await texts(orders.journal) == ["b"]
            assert await orders.purge() == 0
            assert [queue.name for queue in manager.queues()] == [ORDERS]
            assert await texts(manager.dead_letter) == []
            assert await texts(manager.transactional_dead_letter) == []
            assert await texts(manager.journal) == []
            assert manager.status().queues[0].journal_messages == 1
            await manager.delete_queue(ORDERS)
            with pytest.raises(QueueError):
                await orders.receive()
        with pytest.raises(QueueError, match="was closed"):
            await orders.send(Message("x"))

    run(main)


def test_open_can_be_awaited_too(tmp_path: Path) -> None:
    async def main() -> None:
        manager = await aio.open(tmp_path)
        async with manager:
            assert manager.blocking.queues() == []
        assert manager.is_closed

    run(main)


async def fail_in_a_transaction(manager: aio.QueueManager, queue: aio.Queue) -> None:
    async with manager.transaction() as transaction:
        await queue.receive(transaction)
        raise ZeroDivisionError


def test_transactions_commit_and_abort(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path) as manager:
            orders = await manager.create_queue(ORDERS, transactional=True)
            async with manager.transaction() as transaction:
                await orders.send(Message("a"), transaction)
                assert await texts(orders) == []
            with pytest.raises(ZeroDivisionError):
                await fail_in_a_transaction(manager, orders)
            assert await texts(orders) == ["a"]
            transaction = manager.transaction()
            await orders.receive(transaction)
            await transaction.prepare()
            assert [doubt.id for doubt in manager.in_doubt()] == [transaction.id]
            await transaction.commit()
            with pytest.raises(TransactionError):
                await transaction.abort()
            assert await texts(orders) == []

    run(main)


def test_a_commit_does_not_block_the_loop() -> None:
    # given a store that does not finish
    async def main() -> None:
        store = GatedStore()
        manager = aio.QueueManager(threaded_engine(store))
        orders = await manager.create_queue(ORDERS)
        store.gate.clear()
        # when a task sends
        task = asyncio.create_task(orders.send(Message("x")))
        await until(store.is_waiting.is_set)
        # then others go on, and the task is done when the store is
        for _ in range(100):
            await asyncio.sleep(0)
        assert not task.done()
        store.gate.set()
        assert await task
        await manager.close()

    run(main)


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    async def main() -> None:
        manager = aio.QueueManager(threaded_engine())
        orders = await manager.create_queue(ORDERS)
        for read in (orders.receive, orders.peek):
            task = asyncio.create_task(read())
            await until(lambda: waiting_reads(manager.blocking) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert waiting_reads(manager.blocking) == 0
        await orders.send(Message("x"))
        assert await texts(orders) == ["x"]
        await manager.close()

    run(main)


@pytest.mark.parametrize("was_waiting", [False, True])
def test_a_receive_cancelled_when_it_had_its_message_gives_it_back(was_waiting: bool) -> None:
    async def main() -> None:
        # given a receive that has taken its message, and waits for the commit
        store = GatedStore()
        manager = aio.QueueManager(threaded_engine(store))
        orders = await manager.create_queue(ORDERS)
        await orders.send(Message("first"))
        await orders.send(Message("second"))
        if was_waiting:
            await orders.purge()
            task = asyncio.create_task(orders.receive())
            await until(lambda: waiting_reads(manager.blocking) == 1)
            store.gate.clear()
            sender = asyncio.create_task(orders.send_many([Message("first"), Message("second")]))
            await until(lambda: waiting_reads(manager.blocking) == 0)
        else:
            store.gate.clear()
            task = asyncio.create_task(orders.receive())
            await until(lambda: orders.count == 1)
        # when it is cancelled
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        store.gate.set()
        if was_waiting:
            await sender
        # then the message is back in its place
        assert await texts(orders) == ["first", "second"]
        assert manager.status().message_bytes == orders.size_bytes
        await manager.close()
        store.crash()
        again = aio.QueueManager(threaded_engine(store))
        assert await texts(await again.queue(ORDERS)) == ["first", "second"]
        await again.close()

    run(main)


def test_a_receive_in_a_transaction_that_is_cancelled_is_no_part_of_it() -> None:
    async def main() -> None:
        store = GatedStore()
        manager = aio.QueueManager(threaded_engine(store))
        ledger = await manager.create_queue(ORDERS, transactional=True)

        async def send() -> None:
            async with manager.transaction() as other:
                await ledger.send(Message("x"), other)

        await send()  # the counters are in the store
        await ledger.purge()
        transaction = manager.transaction()
        task = asyncio.create_task(ledger.receive(transaction))
        await until(lambda: waiting_reads(manager.blocking) == 1)
        store.gate.clear()
        sender = asyncio.create_task(send())
        await until(lambda: waiting_reads(manager.blocking) == 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        store.gate.set()
        await sender
        await transaction.commit()
        assert await texts(ledger) == ["x"]
        await manager.close()

    run(main)


def test_a_timeout_is_a_read_error() -> None:
    async def main() -> None:
        manager = aio.QueueManager(threaded_engine())
        orders = await manager.create_queue(ORDERS)
        for timeout in (0, 0.01):
            with pytest.raises(ReadError) as raised:
                await orders.receive(timeout=timeout)
            assert raised.value.status is MqStatus.IO_TIMEOUT
        await manager.close()

    run(main)


def test_closing_ends_the_waits_of_tasks() -> None:
    async def main() -> None:
        manager = aio.QueueManager(threaded_engine())
        orders = await manager.create_queue(ORDERS)
        task = asyncio.create_task(orders.receive())
        await until(lambda: waiting_reads(manager.blocking) == 1)
        await manager.close()
        with pytest.raises(ReadError) as raised:
            await task
        assert raised.value.status is MqStatus.OPERATION_CANCELLED

    run(main)


def test_a_full_disk_is_a_named_error() -> None:
    async def main() -> None:
        store = GatedStore()
        manager = aio.QueueManager(threaded_engine(store))
        orders = await manager.create_queue(ORDERS)
        store.is_full = True
        with pytest.raises(ResourceError):
            await orders.send(Message("x"))
        store.is_full = False
        await orders.send(Message("y"))
        assert await texts(orders) == ["y"]
        await manager.close()

    run(main)


def test_two_loops_and_a_thread_use_one_manager(tmp_path: Path) -> None:
    # given one manager
    async def opened() -> aio.QueueManager:
        manager = await aio.open(tmp_path)
        await manager.create_queue(ORDERS)
        return manager

    manager = run(opened)
    got: list[str] = []

    async def receive() -> None:
        orders = await manager.queue(ORDERS)
        for _ in range(20):
            got.append((await orders.receive(timeout=20)).text)  # noqa: PERF401

    async def send() -> None:
        orders = await manager.queue(ORDERS)
        await asyncio.gather(*(orders.send(Message(f"loop {number}")) for number in range(20)))

    # when two loops and a thread send and receive
    loops = [threading.Thread(target=run, args=(main,)) for main in (receive, receive, send)]
    for loop in loops:
        loop.start()
    orders = manager.blocking.queue(ORDERS)
    for number in range(20):
        orders.send(Message(f"thread {number}"))
    for loop in loops:
        loop.join(30)
    # then every message came once, those of a sender in order
    expected = [f"{sender} {number}" for sender in ("loop", "thread") for number in range(20)]
    assert sorted(got) == sorted(expected)
    run(manager.close)


def test_opening_that_is_cancelled_leaves_the_directory_free(tmp_path: Path) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(aio.open(tmp_path)._open())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with aio.open(tmp_path) as manager:
            assert manager.queues() == []

    run(main)
