"""Queues as code: what is declared is there after a start, and nothing is ever deleted."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

import falconmq
from falconmq import Message
from falconmq.manager.states import QueuePrivacy
from falconmq.names import PathName
from falconmq.service.configuration import Configuration, DeclaredQueue, load
from falconmq.service.daemon import Service
from falconmq.service.process import serve
from tests.embedded.helpers import GatedStore
from tests.service.services import ORDERS, loopback, run, serving, until

LATE = r".\private$\late"


def configuration(tmp_path: Path, queues: str, bind: str = "") -> Configuration:
    file = tmp_path / "falconmq.toml"
    manager = f'[manager]\ndata = "data"\nbind = "{bind or loopback()}"\n'
    file.write_text(f"{manager}[http]\nenabled = false\n{queues}")
    return load(file, environment={})


def started(chosen: Configuration) -> list[tuple[str, str, list[str]]]:
    """Start and stop a service; what `status` said of the declared queues."""

    async def main() -> list[tuple[str, str, list[str]]]:
        service = await Service.start(chosen)
        status = service.status()
        await service.stop()
        found = status["declared_queues"]
        assert isinstance(found, list)
        return [(queue["name"], queue["outcome"], queue["changes"]) for queue in found]

    return run(main())


def test_a_declared_queue_that_is_missing_is_created(tmp_path: Path) -> None:
    declared = rf"""
        [[queues]]
        name = '{ORDERS}'
        transactional = true
        label = "orders"
        quota_kilobytes = 77
        privacy_level = "body"
    """
    assert started(configuration(tmp_path, declared)) == [(ORDERS, "created", [])]
    with falconmq.open(tmp_path / "data") as manager:  # durable
        queue = manager.queue(ORDERS)
        assert queue.is_transactional
        assert (queue.label, queue.quota_kilobytes) == ("orders", 77)
        assert queue.privacy_level is QueuePrivacy.BODY


def test_a_queue_that_is_there_gets_what_is_declared_and_keeps_the_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with falconmq.open(tmp_path / "data") as manager:
        queue = manager.create_queue(ORDERS, label="old", journaling=True, quota_kilobytes=5)
        queue.send(Message("hello"))
        manager.create_queue(LATE, label="mine")
    declared = rf"""
        [[queues]]
        name = '{ORDERS}'
        label = "new"
        quota_kilobytes = 5
    """
    with caplog.at_level(logging.INFO):
        assert started(configuration(tmp_path, declared)) == [(ORDERS, "changed", ["label"])]
    assert rf"queue changed name={ORDERS} set=label" in caplog.text
    with falconmq.open(tmp_path / "data") as manager:
        queue = manager.queue(ORDERS)
        assert (queue.label, queue.journaling, queue.quota_kilobytes) == ("new", True, 5)
        assert queue.count == 1
        assert manager.queue(LATE).label == "mine"  # not declared: not touched
    assert started(configuration(tmp_path, declared)) == [(ORDERS, "unchanged", [])]


def test_a_queue_of_the_other_kind_refuses_the_start_and_nothing_is_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with falconmq.open(tmp_path / "data") as manager:
        manager.create_queue(ORDERS, transactional=True)
    declared = rf"""
        [[queues]]
        name = '{LATE}'
        [[queues]]
        name = '{ORDERS}'
    """
    assert run(serve(configuration(tmp_path, declared))) == 1
    problem = rf"cannot start: {ORDERS} is declared not transactional, but the queue that is there"
    assert problem in caplog.text
    assert rf"falconmq queue delete '{ORDERS}'" in caplog.text
    with falconmq.open(tmp_path / "data") as manager:
        assert [queue.name for queue in manager.queues()] == [ORDERS]


def test_a_queue_that_cannot_be_made_refuses_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    declared = "[[queues]]\nname = '.\\public'\n"  # needs a directory
    assert run(serve(configuration(tmp_path, declared))) == 1
    assert "cannot start: " in caplog.text
    with falconmq.open(tmp_path / "data"):  # it was given back
        pass


def test_a_declared_queue_is_durable_before_anybody_gets_in() -> None:
    async def main() -> None:
        store = GatedStore()
        async with serving(store) as service:
            store.gate.clear()
            wanted = [DeclaredQueue(PathName.parse(ORDERS))]
            task = asyncio.create_task(service.declare(wanted))
            await until(store.is_waiting.is_set)
            done, _ = await asyncio.wait({task}, timeout=0.05)
            assert not done
            store.gate.set()
            assert [result.name for result in await task] == [ORDERS]

    run(main())
