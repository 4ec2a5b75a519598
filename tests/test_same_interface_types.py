"""Programs are typed once for embedded and remote managers; mypy checks these functions."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import falconmq
from falconmq import Message, aio, client, interface
from falconmq.client import aio as client_aio
from tests.client.kinds import awaited
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager


def work(manager: interface.QueueManager) -> list[str]:
    """A program that does not know where its queues are."""
    with manager.create_queue(ORDERS, transactional=True) as orders:
        with manager.transaction() as transaction:
            orders.send_many([Message("a"), Message("b")], transaction)
        with orders.cursor() as cursor:
            seen = [message.text for message in cursor]
        with manager.transaction() as transaction:
            late: interface.Queue = orders.subqueue("late")
            orders.move(orders.peek(timeout=0), late, transaction)
        return [*seen, late.receive(timeout=0).text, orders.receive(timeout=0).text]


async def work_awaited(manager: interface.AsyncQueueManager) -> list[str]:
    async with await manager.create_queue(ORDERS, transactional=True) as orders:
        async with manager.transaction() as transaction:
            await orders.send_many([Message("a"), Message("b")], transaction)
        async with await orders.cursor() as cursor:
            seen = [message.text async for message in cursor]
        return [*seen, (await orders.receive(timeout=0)).text]


def test_one_program_runs_on_both(tmp_path: Path) -> None:
    with falconmq.open(tmp_path / "data") as manager:
        embedded = work(manager)
    with ControlledManager(tmp_path), falconmq.connect(f"unix:{tmp_path}") as remote:
        assert work(remote) == embedded == ["a", "b", "a", "b"]


def test_one_program_for_asyncio_runs_on_both(tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.open(tmp_path / "data") as manager:
            embedded = await work_awaited(manager)
        async with aio.connect(f"unix:{tmp_path}") as remote:
            assert await work_awaited(remote) == embedded == ["a", "b", "a"]

    with ControlledManager(tmp_path):
        awaited(main)


PAIRS = [
    (falconmq.QueueManager, client.QueueManager, interface.QueueManager),
    (falconmq.Queue, client.Queue, interface.Queue),
    (falconmq.Transaction, client.Transaction, interface.Transaction),
    (falconmq.Cursor, client.Cursor, interface.Cursor),
    (aio.QueueManager, client_aio.QueueManager, interface.AsyncQueueManager),
    (aio.Queue, client_aio.Queue, interface.AsyncQueue),
    (aio.Transaction, client_aio.Transaction, interface.AsyncTransaction),
    (aio.Cursor, client_aio.Cursor, interface.AsyncCursor),
]
AWAITED = {"queues", "in_doubt", "status"}  # of a remote manager for asyncio
ALONE = {"opened", "blocking", "use"}  # what only an embedded one has


@pytest.mark.parametrize(
    ("embedded", "remote", "both"), PAIRS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_both_have_the_same_methods_with_the_same_parameters(
    embedded: type, remote: type, both: type
) -> None:
    names = {name for name in dir(embedded) if not name.startswith("_")} - ALONE
    missing = names - set(dir(both)) - (AWAITED if both.__name__.startswith("Async") else set())
    assert not missing
    for name in names:
        ours, theirs = getattr(embedded, name), getattr(remote, name)
        assert isinstance(ours, property) == isinstance(theirs, property), name
        if not isinstance(ours, property):
            assert _parameters(ours) == _parameters(theirs), name


def _parameters(method: object) -> list[tuple[str, object, object]]:
    assert callable(method)
    found = inspect.signature(method).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]
