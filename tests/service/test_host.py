"""The host tells the transport of a turn when it is durable: never before, always in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from falconmq.errors import QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.service import host as host_module
from falconmq.service.engine import start_hosted_engine
from falconmq.service.host import Host
from falconmq.store import MemoryStore, WriteBatch
from falconmq.transport.transport import Transport
from falconmq.transport.turns import Turn
from tests.embedded.helpers import GatedStore
from tests.service.services import configured, run, until


class Scripted:
    """Stands where the transport stands: what it hears, and the turns it ends with."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.names: dict[Turn, str] = {}
        self.next: Turn | None = None
        self.core: QueueManagerCore | None = None

    def end_turn(self) -> Turn | None:
        turn, self.next = self.next, None
        return turn

    def turn_done(self, turn: Turn) -> None:
        self.heard.append(self.names[turn])

    def restored(self) -> None:
        self.heard.append("restored")

    # events

    def change(self, name: str, size: int = 1) -> None:
        """A turn that the store has to know of."""
        assert self.core is not None
        self.core.batch.put("meta", name.encode(), bytes(size))
        self.see(name)

    def see(self, name: str) -> None:
        """A turn that changes nothing that is stored."""
        self.next = Turn()
        self.names[self.next] = name

    def stumble(self) -> None:
        raise ZeroDivisionError

    def refuse(self) -> None:
        raise QueueError("no")


@asynccontextmanager
async def hosted(store: MemoryStore | None = None) -> AsyncIterator[tuple[Host, Scripted]]:
    chosen = MemoryStore() if store is None else store
    engine = start_hosted_engine(chosen, configured("127.0.0.1"))
    transport = Scripted()
    transport.core = engine.core
    host = Host(engine, cast("Transport", transport))
    try:
        yield host, transport
    finally:
        if isinstance(store, GatedStore):
            store.gate.set()
        host.stop()
        engine.close()


def test_a_turn_is_done_when_its_commit_is_durable_and_not_before() -> None:
    async def main() -> None:
        store = GatedStore()
        async with hosted(store) as (host, transport):
            # given a disk that takes its time
            store.gate.clear()
            host.run(transport.change, "message")
            await asyncio.sleep(0.05)
            assert transport.heard == []
            # when the sync is over
            store.gate.set()
            await host.settled()
            # then the transport may acknowledge
            assert transport.heard == ["message"]

    run(main())


def test_a_turn_without_a_commit_is_done_soon() -> None:
    async def main() -> None:
        async with hosted() as (host, transport):
            host.run(transport.see, "express")
            assert transport.heard == []  # but not inside the turn that it belongs to
            await host.settled()
            assert transport.heard == ["express"]

    run(main())


def test_a_turn_without_a_commit_does_not_overtake_one_that_waits() -> None:
    async def main() -> None:
        store = GatedStore()
        async with hosted(store) as (host, transport):
            store.gate.clear()
            host.run(transport.change, "recoverable")
            host.run(transport.see, "express")
            await asyncio.sleep(0.05)
            assert transport.heard == []
            store.gate.set()
            await host.settled()
            assert transport.heard == ["recoverable", "express"]

    run(main())


def test_many_turns_are_done_in_their_order() -> None:
    async def main() -> None:
        async with hosted() as (host, transport):
            names = [str(number) for number in range(200)]
            for name in names:
                host.run(transport.change, name)
                if name.endswith("7"):
                    await asyncio.sleep(0)
            await host.settled()
            assert transport.heard == names

    run(main())


def test_after_a_failed_commit_nobody_is_told_but_that_all_was_restored() -> None:
    async def main() -> None:
        store = GatedStore()
        async with hosted(store) as (host, transport):
            # given three turns, and a disk that fails at the first of them
            store.gate.clear()
            store.fail_commit()
            for name in ("one", "two", "three"):
                host.run(transport.change, name)
            # when the commit fails
            store.gate.set()
            await until(lambda: bool(transport.heard))
            # then all three are forgotten, and life goes on
            host.run(transport.change, "four")
            await host.settled()
            assert transport.heard == ["restored", "four"]

    run(main())


def test_an_event_that_breaks_off_is_logged_and_memory_restored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_module, "_SECONDS_AFTER_FAILURE", 0.01)

    async def main() -> None:
        async with hosted() as (host, transport):
            assert host.handle(transport.stumble) is None
            await until(lambda: bool(transport.heard))
            assert transport.heard == ["restored"]
            assert host.failures == 1

    run(main())
    assert "event failed event=stumble" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_an_event_that_is_refused_leaves_memory_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host_module, "_SECONDS_AFTER_FAILURE", 0.01)

    async def main() -> None:
        async with hosted() as (host, transport):
            assert host.handle(transport.refuse) is None
            await asyncio.sleep(0.05)
            assert transport.heard == []

    run(main())
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


class StubbornStore(MemoryStore):
    """A disk that fails a number of times."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("still broken")
        super().commit(batches)


def test_a_disk_that_fails_again_and_again_is_tried_until_it_works() -> None:
    async def main() -> None:
        store = StubbornStore()
        async with hosted(store) as (host, transport):
            store.failures = 3
            while "durable" not in transport.heard:
                host.handle(transport.change, "durable")
                await host.settled()
            assert transport.heard == ["restored"] * 3 + ["durable"]

    run(main())


def test_timers_of_the_core_fire_without_a_housekeeper() -> None:
    async def main() -> None:
        async with hosted() as (host, _):
            core = host.engine.core
            fired: list[str] = []

            def start(name: str, seconds: float) -> None:
                core.timers.after(core.clock.monotonic(), seconds, lambda: fired.append(name))

            host.run(start, "never", 3600)
            host.run(start, "late", 0.05)  # armed again: it is before the other
            host.run(start, "early", 0.01)
            await until(lambda: len(fired) == 2)
            assert fired == ["early", "late"]

    run(main())


def test_a_timer_that_a_timer_starts_fires_too() -> None:
    async def main() -> None:
        async with hosted() as (host, _):
            core = host.engine.core
            fired: list[int] = []

            def again(left: int) -> None:
                fired.append(left)
                if left:
                    core.timers.after(core.clock.monotonic(), 0.005, lambda: again(left - 1))

            host.run(again, 3)
            await until(lambda: fired == [3, 2, 1, 0])

    run(main())


def test_peers_wait_while_the_disk_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "CONGESTED_BYTES", 3000)
    monkeypatch.setattr(host_module, "RELIEVED_BYTES", 1000)

    async def main() -> None:
        store = GatedStore()
        async with hosted(store) as (host, transport):
            reliefs: list[bool] = []
            host.relieved = lambda: reliefs.append(host.is_congested)
            store.gate.clear()
            host.run(transport.change, "one", 2000)
            reliefs.append(host.is_congested)
            host.run(transport.change, "two", 2000)
            reliefs.append(host.is_congested)
            store.gate.set()
            await host.settled()
            assert reliefs == [False, True, False]  # the last one is the relief

    run(main())


def test_a_failed_commit_ends_the_congestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "CONGESTED_BYTES", 100)
    monkeypatch.setattr(host_module, "RELIEVED_BYTES", 100)

    async def main() -> None:
        store = GatedStore()
        async with hosted(store) as (host, transport):
            store.gate.clear()
            store.fail_commit()
            host.run(transport.change, "one", 2000)
            assert host.is_congested
            store.gate.set()
            await until(lambda: not host.is_congested)
            assert transport.heard == ["restored"]

    run(main())


def test_a_stopped_host_does_nothing_more() -> None:
    async def main() -> None:
        store = GatedStore()
        async with hosted(store) as (host, transport):
            store.gate.clear()
            host.run(transport.change, "message")
            host.stop()
            store.gate.set()
            assert host.handle(transport.see, "late") is None
            await asyncio.sleep(0.02)
            await host.settled()
            assert transport.heard == []

    run(main())
