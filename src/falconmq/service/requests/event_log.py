"""Reading the stored event log, page by page, and waiting for more of it.

A page is read from one snapshot of the store in a thread, and nothing is held between two pages: a
caller may be as slow as it likes. What is read is durable. If the log was cut between two pages and
the next one is gone, the stream breaks off: a reader never misses an event without knowing it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from falconmq.client.event_columns import event_schema
from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.event_keeping import EventKeeper
from falconmq.manager.event_store import Block, Bounds, blocks_from, bounds_of, events_of
from falconmq.service.requests.arrow import END_OF_STREAM
from falconmq.service.requests.event_entries import entry_json
from falconmq.service.requests.streaming import ahead, in_one_thread
from falconmq.service.web.problems import EventsLostError
from falconmq.store import Store
from falconmq.store.interface import StoreReader

PAGE_EVENTS: Final = 10_000
PAGE_BYTES: Final = 8 << 20
ENTRIES_DEFAULT: Final = 1_000
ENTRIES_MAX: Final = 10_000


class Range(NamedTuple):
    """Events from one number to another, the last one not included."""

    start: int
    stop: int


def keeper_of(engine: Engine) -> EventKeeper | None:
    """Who writes the log; None if it is not kept."""
    events = engine.core.events
    return None if events is None else events.keeper


def state_of(engine: Engine) -> dict[str, Any]:
    """Where the log begins and ends, as far as it is durable."""
    bounds = bounds_of(engine.store)
    return {
        **_who(engine),
        "first": bounds.first,
        "next": bounds.next,
        "bytes": bounds.bytes,
        "is_kept": keeper_of(engine) is not None,
    }


async def wait_for_more(
    engine: Engine, after: int, seconds: float, stopping: asyncio.Event
) -> None:
    """Return when event `after` is durable, the time is over or the service stops."""
    loop, more = asyncio.get_running_loop(), asyncio.Event()
    keeper = keeper_of(engine)

    def told() -> None:
        loop.call_soon_threadsafe(more.set)

    if keeper is not None:
        keeper.listeners = [*keeper.listeners, told]  # a new list: another thread walks the old one
    stop = asyncio.ensure_future(stopping.wait())
    try:
        async with asyncio.timeout(seconds):
            while bounds_of(engine.store).next <= after and not stopping.is_set():
                wake = asyncio.ensure_future(more.wait())
                try:
                    await asyncio.wait({wake, stop}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    wake.cancel()
                more.clear()
    except TimeoutError:
        pass
    finally:
        stop.cancel()
        if keeper is not None:
            keeper.listeners = [each for each in keeper.listeners if each is not told]


def wanted(engine: Engine, start: int | None, stop: int | None) -> Range:
    """The range that a caller means, as far as it is there; EventsLostError if its begin is gone.

    What is not there yet is left out.
    """
    bounds = bounds_of(engine.store)
    begin = bounds.first if start is None else start
    check(bounds, begin)
    if begin > bounds.next:
        raise FalconMQError(
            f"there is no event {begin} yet: the next one gets number {bounds.next}",
            status=MqStatus.INVALID_PARAMETER,
            hint="a reader that was further has read a log that was lost: begin anew",
        )
    end = bounds.next if stop is None else min(stop, bounds.next)
    return Range(begin, max(begin, end))


def check(bounds: Bounds, start: int) -> None:
    if start < bounds.first:
        raise EventsLostError(start, bounds.first)


async def stream(engine: Engine, asked: Range, *, packets: bool) -> AsyncIterator[bytes]:
    """An IPC stream of the events of a range; the schema comes always."""
    schema = await asyncio.to_thread(event_schema)
    yield schema.serialize().to_pybytes()
    async for content in ahead(_batches(engine, asked, packets)):
        yield content
    yield END_OF_STREAM


async def _batches(engine: Engine, asked: Range, packets: bool) -> AsyncGenerator[bytes]:
    start = asked.start
    while start < asked.stop:
        content, start = await in_one_thread(_batch, engine, Range(start, asked.stop), packets)
        if content:
            yield content


def _batch(engine: Engine, asked: Range, packets: bool) -> tuple[bytes, int]:
    """A record batch of the first events of a range, and the number that comes next."""
    from falconmq.service.requests.event_batches import to_batch  # noqa: PLC0415 - needs numpy

    blocks = _page(engine.store, asked.start)
    if not blocks:
        return b"", asked.stop
    batch = to_batch(blocks, packets=packets, **_who(engine))
    numbers = batch.column(0).to_numpy()
    low, high = numbers.searchsorted([asked.start, asked.stop])
    chosen = batch.slice(low, high - low)
    return (bytes(chosen.serialize()) if chosen.num_rows else b""), blocks[-1].head.end


def entries(engine: Engine, asked: Range, limit: int, *, packets: bool) -> dict[str, Any]:
    """The first events of a range as JSON, at most `limit`; `to` is where to go on."""
    found: list[dict[str, Any]] = []
    start = asked.start
    while start < asked.stop and len(found) < limit:
        blocks = _page(engine.store, start)
        some = (event for block in blocks for event in events_of(block))
        chosen = (event for event in some if start <= event.number < asked.stop)
        found += [
            entry_json(event, packets=packets, **_who(engine))
            for event in islice(chosen, limit - len(found))
        ]
        start = blocks[-1].head.end if blocks else asked.stop
    is_cut = len(found) == limit and limit > 0
    end = found[-1]["number"] + 1 if is_cut else asked.stop
    return {"from": asked.start, "to": end, "entries": found}


def _page(store: Store, start: int) -> list[Block]:
    """Some blocks, from the one on that holds an event or is the next; at least one if any is."""
    with store.snapshot() as view:
        check(bounds_of(view), start)
        return list(_some(view, start))


def _some(view: StoreReader, start: int) -> Iterator[Block]:
    count = size = 0
    for block in blocks_from(view, start):
        count += block.head.events
        size += block.size
        if count > PAGE_EVENTS and count > block.head.events:
            return
        yield block
        if size >= PAGE_BYTES:
            return


def _who(engine: Engine) -> dict[str, str]:
    core = engine.core
    return {"manager": str(core.identifier), "computer": core.settings.computer_name}
