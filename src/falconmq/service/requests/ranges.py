"""Queues read by ranges of arrival numbers: how far a queue is, and how to cut what it holds.

How to think about it. A caller keeps the next arrival number to read, its offset. It asks how far
the queue is, reads what is in between, and goes on from there. That works only if no number below
what it was told can appear later. Numbers are given in order, under the lock of the engine; but a
write may still fail and take back what memory says. So nothing is told before all writes that came
before the look are done.
"""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, ParamSpec, TypeVar

from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Event
from falconmq.errors import MqStatus, QueueError
from falconmq.manager.access import check_open
from falconmq.manager.arrivals import (
    SEQUENCE,
    arrivals_between,
    first_arrival,
    next_arrival,
    readable,
)
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.path_names import format_name_of
from falconmq.manager.states import AccessType
from falconmq.service.requests.finding import find_local
from falconmq.service.requests.reading import durable
from falconmq.service.requests.records import Page, PageReader, page_of
from falconmq.store import Commit, WriteBatch

PLAN_PAGE: Final = 10_000  # messages that one turn counts
READ_BYTES: Final = 16 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")

Json = dict[str, Any]


async def settled(engine: Engine) -> None:
    """Wait until every write of now is on disk; raises why it is not."""
    await durable(engine, engine.committer.submit(WriteBatch()))


async def look_durably(
    engine: Engine, event: Event[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Look, and wait until all that was seen is true for good; raises why it is not.

    The wait begins inside the turn. Later, a write could have failed and been put right in between,
    and nobody would notice that the look was at what never happened.
    """

    def look(core: QueueManagerCore) -> tuple[_T, Commit]:
        return event(core, *args, **kwargs), engine.committer.submit(WriteBatch())

    found, commit = engine.look(look)
    await durable(engine, commit)
    return found


def readable_queue(core: QueueManagerCore, name: str) -> Queue:
    """A queue of ours that applications may read."""
    queue = find_local(core, name)
    if queue.is_internal:
        raise QueueError(
            f"{queue.path_name} is for the queue manager alone",
            status=MqStatus.ACCESS_DENIED,
            hint="use a queue of your own",
        )
    check_open(core, queue, AccessType.PEEK)
    return queue


# How far a queue is


async def arrivals(engine: Engine, name: str, after: int | None = None, wait: float = 0) -> Json:
    """How far a queue is; `wait` seconds for something to arrive behind `after`, if it has to."""
    found = await look_durably(engine, _state, name)
    if after is not None and wait > 0 and found["next"] <= after:
        await _until_beyond(engine, name, after, wait)
        found = await look_durably(engine, _state, name)
    return found


def _state(core: QueueManagerCore, name: str) -> Json:
    queue = readable_queue(core, name)
    count, size = readable(queue.positions)
    return {
        "queue": actions.path_of(queue),
        "format_name": str(format_name_of(core, queue)),
        "manager": str(core.identifier),
        "first": first_arrival(queue),
        "next": next_arrival(queue),
        "count": count,
        "bytes": size,
        "counter": core.sequential_id.value,
    }


async def _until_beyond(engine: Engine, name: str, after: int, wait: float) -> None:
    """Sleep until the queue has a number beyond `after`, or the time is over."""
    loop = asyncio.get_running_loop()
    rung = asyncio.Event()

    def ring() -> None:
        """Inside a turn, in any thread."""
        if not rung.is_set():
            with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
                loop.call_soon_threadsafe(rung.set)

    queue = engine.look(_watch, name, ring)
    try:
        async with asyncio.timeout(wait):
            while engine.look(_next, queue) <= after and not queue.is_deleted:
                await rung.wait()
                rung.clear()
    except TimeoutError:
        pass
    finally:
        if not engine.is_closed:
            engine.look(_unwatch, queue, ring)


def _watch(core: QueueManagerCore, name: str, ring: Callable[[], None]) -> Queue:
    queue = readable_queue(core, name)
    queue.arrival_watchers.append(ring)
    return queue


def _unwatch(core: QueueManagerCore, queue: Queue, ring: Callable[[], None]) -> None:  # noqa: ARG001
    queue.arrival_watchers.remove(ring)


def _next(core: QueueManagerCore, queue: Queue) -> int:  # noqa: ARG001 - a look at the core
    return next_arrival(queue)


# What a range holds


async def end_of(engine: Engine, opened: actions.Opened) -> int:
    """Where a queue ends now: the next arrival number, when everything below is durable."""
    return await look_durably(engine, _next, actions.local(opened))


async def pages(
    engine: Engine, opened: actions.Opened, start: int, stop: int, count: int, most: int | None
) -> AsyncIterator[Page]:
    """The messages of a range, each page cut in a turn of its own; at most `most` in all.

    A write that fails meanwhile ends it with an error: it might have taken away what was not seen.
    """
    left, stop = most, min(stop, SEQUENCE + 1)
    while start < stop and left != 0:
        most = count if left is None else min(count, left)
        page = await look_durably(engine, _cut, opened, start, stop, most)
        start = page.span.reached
        if page.span.pieces:
            left = None if left is None else left - len(page.span)
            yield page
        await asyncio.sleep(0)  # nobody else should wait for a long queue


def _cut(
    core: QueueManagerCore,  # noqa: ARG001 - a look at the core
    opened: actions.Opened,
    start: int,
    stop: int,
    count: int,
) -> Page:
    queue = actions.local(opened)
    return page_of(queue, arrivals_between(queue.positions, start, stop, count))


@dataclass(slots=True)
class _Counted:
    """The messages of a range so far."""

    bytes_left: int | None  # None: they are not counted
    numbers: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    is_full: bool = False

    def add(self, number: int, size: int) -> None:
        """One more, if there is room; there always is for the first."""
        assert self.bytes_left is not None
        if size > self.bytes_left and self.numbers:
            self.is_full = True
            return
        self.bytes_left -= size
        self.numbers.append(number)
        self.sizes.append(size)

    def add_page(self, engine: Engine, page: Page) -> None:
        """In a thread: the sizes are in the store."""
        reader = PageReader(engine.store, page, READ_BYTES)
        while not reader.is_done and not self.is_full:
            rows = reader.read()
            for arrival, size in zip(rows.arrivals, rows.message_sizes(), strict=True):
                if not self.is_full:
                    self.add(arrival, size)


async def plan(
    engine: Engine,
    name: str,
    start: int,
    stop: int | None,
    *,
    messages: int | None = None,
    size: int | None = None,
    parts: int = 1,
) -> Json:
    """What a range holds now, as far as limits of messages and bytes allow, cut into parts.

    Bytes are only counted if they are limited: for that the store is read.
    """
    opened = engine.look(look_up, name)
    stop = max(start, await end_of(engine, opened) if stop is None else stop)
    counted = _Counted(size)
    async for page in pages(engine, opened, start, stop, PLAN_PAGE, messages):
        if size is None:
            counted.numbers.extend(page.span.numbers())
        else:
            await asyncio.to_thread(counted.add_page, engine, page)
        if counted.is_full:
            break
    is_cut = counted.is_full or len(counted.numbers) == messages
    stop = counted.numbers[-1] + 1 if is_cut else stop
    return {
        "queue": opened.path_name,
        "from": start,
        "to": stop,
        "count": len(counted.numbers),
        "bytes": None if size is None else sum(counted.sizes),
        "parts": _parts(counted, start, stop, parts),
    }


def _parts(counted: _Counted, start: int, stop: int, parts: int) -> list[Json]:
    """Pieces of about the same number of messages, none of them empty; together the range."""
    numbers, count = counted.numbers, len(counted.numbers)
    parts = min(parts, count)
    cuts = [count * part // parts for part in range(parts + 1)] if parts else []
    return [
        {
            "from": numbers[low] if low else start,
            "to": numbers[high] if high < count else stop,
            "count": high - low,
            "bytes": None if counted.bytes_left is None else sum(counted.sizes[low:high]),
        }
        for low, high in pairwise(cuts)
    ]


def look_up(core: QueueManagerCore, name: str) -> actions.Opened:
    return actions.opened_queue(core, readable_queue(core, name))
