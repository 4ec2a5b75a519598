r"""The feeds of one queue manager: its queues, or its event log, read by numbers.

A queue and the event log differ in one thing: the numbers of the log have no holes (but see
`log_runs`), those of a queue do. So what a range of a queue holds is asked for, and of the log it
is known.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from falconmq.client.control import ControlClient
from falconmq.client.ranges import Piece, Plan, Ranges
from falconmq.spark.log_runs import Run, dense_runs, run_of
from falconmq.spark.offsets import LOG, Feed, Position
from falconmq.spark.option_table import DEADLETTER, EVENTS, JOURNAL, refuse
from falconmq.spark.options import Place, SourceOptions
from falconmq.spark.problems import changed_manager

if TYPE_CHECKING:
    import pyarrow as pa

_JOURNAL: Final = r".\system$;journal"
_DEAD_LETTERS: Final = (r".\system$;deadletter", r".\system$;deadxact")


@dataclass(frozen=True)
class Bounds:
    """What a feed holds: numbers from `first` up to `next`."""

    first: int
    next: int
    highest: int  # no position can be above it, unless the queue manager forgot what it knew


def open_ranges(place: Place, timeout: float) -> Ranges:
    """A line to a queue manager; it is connected when something is asked."""
    client = ControlClient.connect(place.url, place.token, ca_file=place.ca_file)
    return Ranges(client, patience=timeout)


class ManagerFeeds:
    """What is read of one queue manager."""

    def __init__(self, options: SourceOptions, place: int) -> None:
        self.url = options.places[place].url
        self.place = place  # its number among those of the options
        self.ranges = open_ranges(options.places[place], options.timeout)
        self._options = options
        self._id = ""
        self._average: dict[Feed, int] = {}  # bytes of one message
        self._runs: list[Run] = []  # of the event log
        self._names: dict[str, str] = {}  # as the queue manager writes them, by the user's

    @property
    def id(self) -> str:
        """GUID of the queue manager."""
        if not self._id:
            if self._options.source == EVENTS:
                self._check_id(self.ranges.log_state().manager)
            else:
                self._check_id(self.ranges.manager_id())
        return self._id

    def feeds(self) -> list[Feed]:
        """What is to be read; with a pattern that can change."""
        return [Feed(self.id, name) for name in self._feed_names()]

    def bounds(self, feed: Feed, *, after: int | None = None, wait: float = 0) -> Bounds:
        """What a feed holds; with `after` it waits for something at or behind that number."""
        if feed.name == LOG:
            log = self.ranges.log_state(after=after, wait=wait)
            self._check_id(log.manager)
            if not log.is_kept:
                raise refuse(f"{self.ranges.shown} keeps no event log", "set [events] keep = true")
            self._average[feed] = _average(log.bytes, log.next - log.first)
            self._runs = dense_runs(log.first, log.next, self.ranges.log_number, self._runs)
            return Bounds(log.first, log.next, log.next)
        found = self.ranges.arrivals(feed.name, after=after, wait=wait)
        self._check_id(found.manager)
        self._average[feed] = _average(found.bytes, found.count)
        # After a restart an empty queue does not know its numbers; the next one is above the
        # counter then.
        behind = found.next or found.counter + 1
        return Bounds(found.first or behind, behind, max(behind, found.counter + 1))

    def size(self, feed: Feed, count: int) -> int:
        """How many bytes so many messages have, about."""
        if feed not in self._average:
            self.bounds(feed)
        return count * self._average[feed]

    def begin(self, feed: Feed, position: Position, bounds: Bounds) -> int:
        """Where reading goes on. The log may have forgotten events, and it may have jumped."""
        if feed.name != LOG:
            return position.next
        begin = max(position.next, bounds.first)
        return max(begin, run_of(begin, self._runs)[0])

    def plan(
        self,
        feed: Feed,
        start: int,
        stop: int,
        *,
        messages: int | None = None,
        size: int | None = None,
        parts: int = 1,
    ) -> Plan:
        """What a range holds, limited and cut."""
        if feed.name != LOG:
            limits = {"messages": messages, "bytes": size}
            return self.ranges.plan(feed.name, start, stop, **limits, parts=parts)
        if size is not None:
            by_size = max(1, size // self.size(feed, 1))
            messages = by_size if messages is None else min(messages, by_size)
        if self._runs:
            stop = min(stop, max(start, run_of(start, self._runs)[1]))
        return plan_log(start, stop, messages=messages, parts=parts)

    def read(
        self, feed: Feed, start: int, stop: int, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        if feed.name == LOG:
            return self.ranges.read_log(start, stop, columns, packets="packet" in columns)
        return self.ranges.read(feed.name, start, stop, columns)

    def number_at(self, feed: Feed, time: datetime) -> int:
        """The first number that came at a time or later, found by halves."""
        bounds = self.bounds(feed)
        column = "at" if feed.name == LOG else "arrived_at"
        low, high = bounds.first, bounds.next
        while low < high:
            middle = (low + high) // 2
            plan = self.plan(feed, middle, high, messages=1)
            times = [
                at
                for batch in self.read(feed, middle, plan.stop, [column])
                for at in batch.column(column).to_pylist()
            ]
            if not times or times[0] >= time:
                high = middle
            else:
                low = plan.stop
        return low

    def close(self) -> None:
        self.ranges.close()

    def _feed_names(self) -> list[str]:
        source = self._options.source
        if source == EVENTS:
            return [LOG]
        if source == DEADLETTER:
            return list(_DEAD_LETTERS)
        names: Sequence[str] = self._options.queues
        if pattern := self._options.pattern.lower():
            known = self.ranges.queue_names()
            names = sorted(name for name in known if fnmatch.fnmatchcase(name.lower(), pattern))
        elif source == JOURNAL and not names:
            return [_JOURNAL]
        suffix = ";JOURNAL" if source == JOURNAL else ""
        return list(dict.fromkeys(self._name(name + suffix) for name in names))

    def _name(self, given: str) -> str:
        if given not in self._names:
            self._names[given] = self.ranges.arrivals(given).queue
        return self._names[given]

    def _check_id(self, found: str) -> None:
        if self._id and self._id != found:
            raise changed_manager(self.url, self._id, found)
        self._id = found


def _average(size: int, count: int) -> int:
    return max(1, size // count) if count else 1


def plan_log(start: int, stop: int, *, messages: int | None = None, parts: int = 1) -> Plan:
    """Of numbers without holes; nobody counts their bytes."""
    count = stop - start if messages is None else min(messages, stop - start)
    parts = max(1, min(parts, count))
    edges = [start + count * index // parts for index in range(parts + 1)]
    pieces = tuple(Piece(a, b, b - a, None) for a, b in itertools.pairwise(edges) if b > a)
    return Plan(start, start + count, count, None, pieces)
