"""Live events for many readers at once: server-sent events out of the event log.

How to think about it. One follower takes the new events out of the log, some hundred at a time.
Readers who want the same are a group: each event is written down once for a group, the piece is one
object that all of them share, and a reader costs one reference to it. A reader has a line of pieces
that may grow to LINE_BYTES; if he reads too slowly, what does not fit is left out, and an event
`gap` at that place says which numbers are missing. Nobody ever waits for a reader.

The more readers, the longer the pauses between two pieces, so that writing to a thousand sockets
leaves time for messages.

What is told is not durable yet at that moment; if the write fails, an event RESTORED says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind, EventLog, MessageEvent
from falconmq.service.observation.event_texts import encode_event, encode_notice
from falconmq.service.observation.following import Follower

HEARTBEAT_SECONDS: Final = 15.0
STATUS_SECONDS: Final = 2.0
LINE_BYTES: Final = 256 * 1024  # for a reader who does not keep up
SUBSCRIBERS_MAX: Final = 4096
_PAUSE: Final = 0.1  # seconds between two pieces
_PAUSE_A_READER: Final = 0.0005
_PAGE: Final = 500  # events of the past that are read at a time
_HEARTBEAT: Final = b": still here\n\n"

Totals = Callable[[], dict[str, Any]]


class Wanted(NamedTuple):
    """Which events a reader wants to hear of; None: of all."""

    kinds: frozenset[EventKind] | None = None
    queue: int | None = None  # its number
    message: tuple[bytes, int] | None = None

    def has(self, event: MessageEvent) -> bool:
        if event.kind is EventKind.RESTORED:
            return True  # it puts in doubt whatever was told before
        if self.kinds is not None and event.kind not in self.kinds:
            return False
        if self.queue is not None and (event.queue is None or event.queue.number != self.queue):
            return False
        return self.message is None or self.message == (event.source, event.message_id)


class _Gap:
    """Events that a reader did not get."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    def encode(self) -> bytes:
        return encode_notice("gap", {"from": self.first, "to": self.last})


class Reader:
    """One reader's line; `chunks` is what the answer streams."""

    def __init__(self, wanted: Wanted, seen: int, *, with_status: bool) -> None:
        self.wanted = wanted
        self.seen = seen  # the number up to which it was served, or needs nothing
        self.with_status = with_status
        self.is_closed = False
        self._line: deque[bytes | _Gap] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()

    def put(self, chunk: bytes, first: int, last: int) -> None:
        """Events `first` to `last`, as far as they are wanted; a gap if there is no room."""
        self.seen = last
        if chunk and self._has_room(len(chunk)):
            self._append(chunk)
        elif chunk:
            self.miss(first, last)

    def miss(self, first: int, last: int) -> None:
        tail = self._line[-1] if self._line else None
        if isinstance(tail, _Gap):
            tail.last = last
        else:
            self._line.append(_Gap(first, last))
        self._ready.set()

    def notice(self, chunk: bytes) -> None:
        """Something that is out of date soon: who has no room for it does without."""
        if self._has_room(len(chunk)):
            self._append(chunk)

    def close(self) -> None:
        self.is_closed = True
        self._ready.set()

    async def chunks(self, heartbeat: float = HEARTBEAT_SECONDS) -> AsyncIterator[bytes]:
        """What has come, as it comes; ends when the reader is closed."""
        while True:
            while self._line:
                item = self._line.popleft()
                if isinstance(item, _Gap):
                    yield item.encode()
                else:
                    self._bytes -= len(item)
                    yield item
            if self.is_closed:
                return
            self._ready.clear()
            try:
                async with asyncio.timeout(heartbeat):
                    await self._ready.wait()
            except TimeoutError:
                yield _HEARTBEAT

    def _has_room(self, size: int) -> bool:
        return not self._bytes or self._bytes + size <= LINE_BYTES

    def _append(self, chunk: bytes) -> None:
        self._line.append(chunk)
        self._bytes += len(chunk)
        self._ready.set()


class LiveEvents:
    """All readers of one event log. On the event loop only."""

    def __init__(
        self,
        engine: Engine,
        events: Callable[[], EventLog],
        totals: Totals,
        stopping: asyncio.Event,
    ) -> None:
        self._engine = engine
        self._events = events
        self._totals = totals
        self._stopping = stopping
        self._readers: set[Reader] = set()
        self._follower: Follower | None = None
        self._task: asyncio.Task[None] | None = None  # as long as there are readers

    @property
    def readers(self) -> int:
        return len(self._readers)

    def open(self, wanted: Wanted, *, with_status: bool = False) -> Reader:
        """A reader of what happens from now on; `close` has to follow."""
        if self._follower is None:
            self._follower = Follower(self._events(), self._deliver)
        self._follower.start()
        reader = Reader(wanted, self._engine.look(self._newest), with_status=with_status)
        self._readers.add(reader)
        if with_status:
            reader.notice(encode_notice("status", self._totals()))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return reader

    def close(self, reader: Reader) -> None:
        reader.close()
        self._readers.discard(reader)
        if self._readers:
            return
        if self._follower is not None:
            self._follower.stop()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def close_all(self) -> None:
        """The service stops."""
        for reader in list(self._readers):
            self.close(reader)

    async def past(self, reader: Reader, after: int) -> AsyncIterator[bytes]:
        """What happened behind `after` until the reader was opened, as far as it is remembered."""
        until = reader.seen
        while after < until and not reader.is_closed:
            first, page = self._engine.look(self._page, after, min(_PAGE, until - after))
            if first > after + 1:
                yield _Gap(after + 1, min(first - 1, until)).encode()
            page = [event for event in page if event.number <= until]
            after = page[-1].number if page else until
            chunk = b"".join([encode_event(event) for event in page if reader.wanted.has(event)])
            if chunk:
                yield chunk
            await asyncio.sleep(0)  # nobody else should wait for a long past

    def _newest(self, core: QueueManagerCore) -> int:  # noqa: ARG002 - a look at the core
        return self._events().number

    def _page(
        self,
        core: QueueManagerCore,  # noqa: ARG002 - a look at the core
        after: int,
        count: int,
    ) -> tuple[int, list[MessageEvent]]:
        events = self._events()
        return events.first_number, events.after(after, count)

    def _deliver(self, events: list[MessageEvent]) -> float:
        groups: dict[Wanted, list[Reader]] = {}
        for reader in self._readers:
            groups.setdefault(reader.wanted, []).append(reader)
        written: dict[int, bytes] = {}
        for wanted, readers in groups.items():
            chosen = [event for event in events if wanted.has(event)]
            for event in chosen:
                if event.number not in written:
                    written[event.number] = encode_event(event)
            _share(readers, events, chosen, written)
        return max(_PAUSE, _PAUSE_A_READER * len(self._readers))

    async def _run(self) -> None:
        """Tell how things stand, every now and then; end all readers when the service stops."""
        while True:
            try:
                async with asyncio.timeout(STATUS_SECONDS):
                    await self._stopping.wait()
            except TimeoutError:
                self._tell_status()
            else:
                self.close_all()
                return

    def _tell_status(self) -> None:
        readers = [reader for reader in self._readers if reader.with_status]
        if readers:
            chunk = encode_notice("status", self._totals())
            for reader in readers:
                reader.notice(chunk)


def _share(
    readers: list[Reader],
    events: list[MessageEvent],
    chosen: list[MessageEvent],
    written: dict[int, bytes],
) -> None:
    """Give a piece to all readers of a group; one who came in its middle gets the rest of it."""
    first, last = events[0].number, events[-1].number
    whole = b"".join([written[event.number] for event in chosen])
    for reader in readers:
        if reader.seen >= last:
            continue
        if reader.seen < first - 1:  # the line of the follower was too short
            reader.miss(reader.seen + 1, first - 1)
            reader.put(whole, first, last)
        elif reader.seen == first - 1:
            reader.put(whole, first, last)
        else:
            rest = [written[event.number] for event in chosen if event.number > reader.seen]
            reader.put(b"".join(rest), reader.seen + 1, last)
