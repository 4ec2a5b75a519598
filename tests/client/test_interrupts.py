"""Ctrl-C and cancellation at every moment of a read: no message is lost by them."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import falconmq
from falconmq import Message, TransactionError, aio
from falconmq.client import QueueManager, channel
from falconmq.client import aio as client_aio
from falconmq.client.aio_channel import AsyncChannel
from falconmq.client.calls import Answer, Call, Step
from falconmq.client.channel import Channel
from tests.client.kinds import awaited
from tests.embedded.helpers import ORDERS, Background, wait_until, waiting_reads
from tests.service.control import ControlledManager

LEDGER = r".\private$\ledger"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as service:
        yield service


def url_of(service: ControlledManager) -> str:
    return f"unix:{service.directory}"


def texts(service: ControlledManager, name: str = ORDERS) -> list[str]:
    return [message.text for message in service.blocking.queue(name)]


class Interrupted(Channel):
    """A channel whose user presses Ctrl-C at one step: before the request, or before its answer."""

    number = -1
    is_answered = False

    def _do(self, step: Step) -> Answer:
        self.number -= 1
        if self.number != -1 or not isinstance(step, Call):
            return super()._do(step)
        if self.is_answered:
            super()._do(step)
        raise KeyboardInterrupt


def interrupted_at(manager: QueueManager, number: int, *, is_answered: bool) -> None:
    """Let the next operation be interrupted at its step of this number, from 0."""
    found = manager._channel
    found.__class__ = Interrupted
    assert isinstance(found, Interrupted)
    found.number, found.is_answered = number, is_answered


@pytest.mark.parametrize("is_answered", [False, True])
def test_ctrl_c_at_any_step_leaves_the_message_in_its_queue_or_in_hand(
    service: ControlledManager, is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[str] = []
    monkeypatch.setattr(channel, "_interrupt_later", lambda: later.append("interrupted"))
    with falconmq.connect(url_of(service)) as manager:
        orders = manager.create_queue(ORDERS)
        for number in count():
            orders.send(Message("a"))
            interrupted_at(manager, number, is_answered=is_answered)
            try:
                message = orders.receive(timeout=0)
            except KeyboardInterrupt:
                assert texts(service) == ["a"]  # at once: no lease has to run out
                orders.purge()
            else:
                assert (message.text, texts(service)) == ("a", [])
                if not later:
                    break  # there were no more steps to be interrupted
                later.clear()
        assert number == 2  # a request to lock, one to confirm


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_transaction_whose_read_was_interrupted_is_aborted(
    service: ControlledManager, is_answered: bool
) -> None:
    with falconmq.connect(url_of(service)) as manager:
        ledger = manager.create_queue(LEDGER, transactional=True)
        with manager.transaction() as transaction:
            ledger.send(Message("a"), transaction)
        transaction = manager.transaction()
        interrupted_at(manager, 0, is_answered=is_answered)
        with pytest.raises(KeyboardInterrupt):
            ledger.receive(transaction, timeout=0)
        assert texts(service, LEDGER) == ["a"]
        with pytest.raises(TransactionError, match="interrupted"):
            transaction.commit()


@pytest.mark.parametrize("name", ["receive", "peek"])
def test_ctrl_c_while_a_read_waits_ends_the_wait_there_too(
    service: ControlledManager, name: str
) -> None:
    with falconmq.connect(url_of(service)) as manager:
        orders = manager.create_queue(ORDERS)

        main = threading.get_ident()

        def press() -> None:
            wait_until(lambda: waiting_reads(service.blocking) == 1)
            signal.pthread_kill(main, signal.SIGINT)

        pressing = Background(press)
        with pytest.raises(KeyboardInterrupt):
            getattr(orders, name)()
        pressing.result()
        wait_until(lambda: waiting_reads(service.blocking) == 0)
        orders.send(Message("a"))
        assert texts(service) == ["a"]
        assert orders.receive(timeout=0).text == "a"


def test_a_ctrl_c_that_came_too_late_is_raised_after_the_message_was_given(
    service: ControlledManager,
) -> None:
    with falconmq.connect(url_of(service)) as manager:
        orders = manager.create_queue(ORDERS)
        orders.send(Message("a"))
        interrupted_at(manager, 1, is_answered=True)
        assert orders.receive(timeout=0).text == "a"
        with pytest.raises(KeyboardInterrupt):
            orders.receive(timeout=10)


# Cancelled tasks


class Cancelled(AsyncChannel):
    """A channel whose task is cancelled at one step: before the request, or before its answer."""

    number = -1
    is_answered = False

    async def _do(self, step: Step) -> Answer:
        self.number -= 1
        if self.number != -1 or not isinstance(step, Call):
            return await super()._do(step)
        if self.is_answered:
            await super()._do(step)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        raise AssertionError(task)


def cancelled_at(manager: client_aio.QueueManager, number: int, *, is_answered: bool) -> None:
    found = manager._channel
    found.__class__ = Cancelled
    assert isinstance(found, Cancelled)
    found.number, found.is_answered = number, is_answered


def with_queue(
    service: ControlledManager,
    test: Callable[[client_aio.QueueManager, client_aio.Queue], Coroutine[Any, Any, None]],
) -> None:
    async def main() -> None:
        async with aio.connect(url_of(service)) as manager:
            await test(manager, await manager.create_queue(ORDERS))

    awaited(main)


@pytest.mark.parametrize("is_answered", [False, True])
def test_cancellation_at_any_step_leaves_the_message_in_its_queue_or_in_hand(
    service: ControlledManager, is_answered: bool
) -> None:
    received: list[str] = []

    async def work(orders: client_aio.Queue) -> None:
        received.append((await orders.receive(timeout=0)).text)
        await asyncio.sleep(10)

    async def test(manager: client_aio.QueueManager, orders: client_aio.Queue) -> None:
        for number in range(2):
            await orders.send(Message("a"))
            cancelled_at(manager, number, is_answered=is_answered)
            task = asyncio.ensure_future(work(orders))
            await asyncio.wait({task})
            assert task.cancelled()  # in the end, even if it was given its message
            assert texts(service) + received == ["a"]
            received.clear()
            await orders.purge()

    with_queue(service, test)


def test_a_cancelled_wait_ends_at_the_service_too(service: ControlledManager) -> None:
    async def test(_: client_aio.QueueManager, orders: client_aio.Queue) -> None:
        task = asyncio.ensure_future(orders.receive())
        while waiting_reads(service.blocking) != 1:
            await asyncio.sleep(0.002)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        while waiting_reads(service.blocking) != 0:
            await asyncio.sleep(0.002)
        await orders.send(Message("a"))
        assert (await orders.receive(timeout=0)).text == "a"

    with_queue(service, test)


class Slow(AsyncChannel):
    """A time-out comes when the message is received, and nobody has heard of it."""

    timeout: asyncio.Timeout

    async def _do(self, step: Step) -> Answer:
        answer = await super()._do(step)
        if isinstance(step, Call) and step.path.endswith("/commit"):
            self.timeout.reschedule(0)
            await asyncio.sleep(10)
        return answer


def slowed(manager: client_aio.QueueManager, timeout: asyncio.Timeout) -> None:
    found = manager._channel
    found.__class__ = Slow
    assert isinstance(found, Slow)
    found.timeout = timeout


def test_a_time_out_that_came_too_late_does_not_reach_beyond_its_block(
    service: ControlledManager,
) -> None:
    async def test(manager: client_aio.QueueManager, orders: client_aio.Queue) -> None:
        await orders.send(Message("a"))
        async with asyncio.timeout(20) as timeout:
            slowed(manager, timeout)
            message = await orders.receive(timeout=0)
        assert message.text == "a"
        await asyncio.sleep(0)  # nothing is cancelled here
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    with_queue(service, test)


def test_a_time_out_that_came_too_late_ends_the_rest_of_its_block(
    service: ControlledManager,
) -> None:
    received: list[str] = []

    async def work(manager: client_aio.QueueManager, orders: client_aio.Queue) -> None:
        async with asyncio.timeout(20) as timeout:
            slowed(manager, timeout)
            received.append((await orders.receive(timeout=0)).text)
            await asyncio.sleep(10)

    async def test(manager: client_aio.QueueManager, orders: client_aio.Queue) -> None:
        await orders.send(Message("a"))
        with pytest.raises(TimeoutError):
            await work(manager, orders)
        assert received == ["a"]

    with_queue(service, test)


def test_a_hundred_tasks_wait_at_once(service: ControlledManager) -> None:
    async def test(_: client_aio.QueueManager, orders: client_aio.Queue) -> None:
        tasks = [asyncio.ensure_future(orders.receive()) for _ in range(100)]
        while waiting_reads(service.blocking) != 100:
            await asyncio.sleep(0.002)
        await orders.send_many([Message(str(number)) for number in range(100)])
        received = await asyncio.gather(*tasks)
        assert sorted(int(message.text) for message in received) == list(range(100))
        assert texts(service) == []

    with_queue(service, test)


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_commit_that_was_interrupted_is_told_to_be_unknown(
    service: ControlledManager, is_answered: bool
) -> None:
    with falconmq.connect(url_of(service)) as manager:
        ledger = manager.create_queue(LEDGER, transactional=True)
        transaction = manager.transaction()
        ledger.send(Message("a"), transaction)
        interrupted_at(manager, 0, is_answered=is_answered)
        with pytest.raises(KeyboardInterrupt):
            transaction.commit()
        with pytest.raises(TransactionError, match="its outcome is not known"):
            transaction.abort()
        assert texts(service, LEDGER) == (["a"] if is_answered else [])
