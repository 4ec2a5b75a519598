r"""The driver's side of reading: where to begin, what is new, how a batch is cut.

How to think about it. A `Follower` talks to all queue managers of a query and deals in offsets:
`begin` says where a new query starts, `latest` how far a batch may go, `slices` what its tasks
read. It keeps nothing that a restart would need: that is in the offsets, which Spark keeps. It
knows nothing of Spark; `stream` and `reader` translate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from falconmq.client.ranges import Plan
from falconmq.spark.feeds import Bounds, ManagerFeeds
from falconmq.spark.leases import Lease
from falconmq.spark.offsets import LOG, Feed, Offsets, Position, part_counts, share
from falconmq.spark.option_table import EARLIEST, LATEST
from falconmq.spark.options import SourceOptions
from falconmq.spark.problems import (
    changed_manager,
    consumer_ahead,
    data_loss,
    gone_queue,
    restored_manager,
    unnamed_manager,
)
from falconmq.spark.starting import edge

_PART_BYTES: Final = 64 << 20  # of a partition, about, unless the user wants more of them
_WAIT_SECONDS: Final = (0.05, 0.25)  # that one of several feeds is waited for at a time


@dataclass(frozen=True)
class Slice:
    """A part of a feed that one task reads."""

    place: int  # the number of the queue manager in the options
    feed: Feed
    start: int
    stop: int
    count: int  # the messages that are there


class Follower:
    """Reads feeds of several queue managers side by side."""

    def __init__(
        self, options: SourceOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options = options
        self._clock = clock
        self._managers = [ManagerFeeds(options, place) for place in range(len(options.places))]
        self._leases = [
            Lease(manager.ranges, options.consumer, options.lease_seconds)
            for manager in (self._managers if options.is_consuming else ())
        ]
        self._target: Mapping[Feed, int] | None = None  # nothing behind it is read
        self._empty: dict[Feed, int] = {}  # up to there nothing was found
        self._lost: dict[Feed, int] = {}  # what `slices` missed
        self._pending: list[Offsets] = []  # committed by Spark, not yet acknowledged

    def begin(self) -> Offsets:
        """Where a new query starts."""
        options = self._options
        return self._edges(options.starting, options.starting_time, EARLIEST)

    def snapshot(self) -> list[Slice]:
        """All that a batch query reads, from where it begins to where it ends."""
        options, start = self._options, self.begin()
        end = self._edges(options.ending, options.ending_time, LATEST)
        managers = self._by_feed(start)
        bounds = {feed: manager.bounds(feed) for feed, manager in managers.items()}
        at = {feed: self._begin(feed, start, managers[feed], bounds[feed]) for feed in managers}
        stops = {feed: min(end.of(feed).next, bounds[feed].next) for feed in managers}
        slices: list[Slice] = []
        while True:
            at = {feed: place for feed, place in at.items() if place.next < stops[feed]}
            if not at:
                return slices
            done = {}
            for feed, place in at.items():
                plan = managers[feed].plan(feed, place.next, stops[feed])
                stop = plan.stop if feed.name == LOG else stops[feed]
                done[feed] = place.advanced(stop, plan.count)
            slices += self.slices(Offsets(at), Offsets(done))
            # A log that jumped has more behind the jump.
            at = {
                feed: replace(place, next=managers[feed].begin(feed, place, bounds[feed]))
                for feed, place in done.items()
            }

    def newest(self) -> Offsets:
        """How far one could read now."""
        return self._edges(LATEST, None, LATEST)

    def stop_at_newest(self) -> None:
        """From now on, do as if nothing more came."""
        self._target = {feed: at.next for feed, at in self.newest().positions.items()}

    def latest(
        self, start: Offsets, *, messages: int | None = None, size: int | None = None
    ) -> Offsets:
        """How far the next batch goes; `start` itself if there is nothing."""
        managers = self._by_feed(start)
        self._hold(start, managers)
        bounds = {feed: manager.bounds(feed) for feed, manager in managers.items()}
        starts = {feed: self._begin(feed, start, managers[feed], bounds[feed]) for feed in managers}
        stops = self._stops(managers, starts, bounds)
        plans = self._plans(managers, starts, stops, messages, size)
        moved = {}
        for feed, plan in plans.items():
            if not plan.count:
                self._empty[feed] = stops[feed]  # all of it was taken by others
                continue
            position = replace(starts[feed], lost=starts[feed].lost + self._lost.pop(feed, 0))
            moved[feed] = position.advanced(plan.stop, plan.count)
        if not moved:
            return start
        urls = {manager.id: manager.url for manager in self._managers}
        return replace(start.moved(moved), urls={**start.urls, **urls})

    def slices(self, start: Offsets, end: Offsets) -> list[Slice]:
        """The parts of a batch. If messages of it are gone, that is told or counted."""
        managers = self._by_feed(end)
        self._hold(start, managers)
        feeds = [feed for feed in managers if end.of(feed).next > start.of(feed).next]
        planned = [end.of(feed).seen - start.of(feed).seen for feed in feeds]
        parts = part_counts(
            planned,
            wanted=self._options.min_partitions,
            at_most=self._options.messages_per_partition,
        )
        slices: list[Slice] = []
        for feed, count, number in zip(feeds, planned, parts, strict=True):
            begin = start.of(feed).next
            stop = end.of(feed).next
            if feed.name == LOG:
                begin = stop - count  # what was forgotten before the plan is not part of it
            if count:
                slices += self._cut(managers[feed], feed, begin, stop, count, number)
        return slices

    def acknowledge(self, done: Offsets) -> None:
        """Spark has committed everything before: it may be removed, or soon."""
        if not self._leases:
            return
        if not self._pending or self._pending[-1] != done:
            self._pending.append(done)
        keep = self._options.acknowledge_lag
        if len(self._pending) <= keep:
            return
        oldest = self._pending[-1 - keep]
        self._pending = self._pending[len(self._pending) - 1 - keep :]
        self._hold(oldest, self._by_feed(oldest))
        for manager, lease in zip(self._managers, self._leases, strict=True):
            lease.acknowledge(
                {
                    feed.name: position.next
                    for feed, position in oldest.positions.items()
                    if feed.manager == manager.id
                }
            )

    def close(self) -> None:
        for lease in self._leases:
            lease.close()
        for manager in self._managers:
            manager.close()

    # What there is

    def _edges(self, wanted: str | dict[str, Any], at: datetime | None, otherwise: str) -> Offsets:
        positions, urls = {}, {}
        for manager in self._managers:
            urls[manager.id] = manager.url
            for feed in manager.feeds():
                positions[feed] = Position(edge(manager, feed, wanted, at, otherwise))
        return Offsets(positions, urls)

    def _by_feed(self, start: Offsets) -> dict[Feed, ManagerFeeds]:
        """The queue manager of each feed that is read; feeds that are gone are told."""
        found: dict[Feed, ManagerFeeds] = {}
        for manager in self._managers:
            found.update(dict.fromkeys(manager.feeds(), manager))
        ids = {manager.id: manager.url for manager in self._managers}
        for known, url in start.urls.items():
            if known in ids:
                continue
            now = next((id for id, other in ids.items() if other == url), None)
            raise changed_manager(url, known, now) if now else unnamed_manager(known, url)
        if self._options.fail_on_data_loss:
            for feed in start.positions:
                if feed not in found:
                    raise gone_queue(feed.name)
        return found

    def _begin(self, feed: Feed, start: Offsets, manager: ManagerFeeds, bounds: Bounds) -> Position:
        """Where a feed goes on; what was forgotten before it could be read is told or counted."""
        position = start.of(feed)
        if position.next > bounds.highest:
            raise restored_manager(manager.url, feed.name, position.next, bounds.highest)
        begin = manager.begin(feed, position, bounds)
        gone = bounds.first - position.next if feed.name == LOG else 0
        if gone <= 0 or feed not in start.positions:
            return replace(position, next=begin)
        if self._options.fail_on_data_loss:
            what = f"the event log of {manager.url}"
            raise data_loss(what, position.next, bounds.first, gone)
        return replace(position, next=begin, lost=position.lost + gone)

    def _stops(
        self,
        managers: Mapping[Feed, ManagerFeeds],
        starts: Mapping[Feed, Position],
        bounds: Mapping[Feed, Bounds],
    ) -> dict[Feed, int]:
        """How far each feed that has news could be read; waits a while if none has any."""
        known = {feed: max(starts[feed].next, self._empty.get(feed, 0)) for feed in managers}
        there = {feed: found.next for feed, found in bounds.items()}
        if self._target is not None:
            there = {feed: self._target.get(feed, 0) for feed in managers}
        stops = {feed: stop for feed, stop in there.items() if stop > known[feed]}
        deadline = self._clock() + self._options.poll_seconds
        while not stops and self._target is None and known:
            left = deadline - self._clock()
            if left <= 0:
                break
            # Of several feeds each is waited for in turn, so that none is waited for too long.
            wait = left
            if len(known) > 1:
                least, most = _WAIT_SECONDS
                wait = max(least, min(most, left / len(known)))
            for feed, manager in managers.items():
                found = manager.bounds(feed, after=known[feed], wait=0 if stops else wait)
                if found.next > known[feed]:
                    stops[feed] = found.next
        return stops

    # What a batch takes of it

    def _plans(
        self,
        managers: Mapping[Feed, ManagerFeeds],
        starts: Mapping[Feed, Position],
        stops: Mapping[Feed, int],
        messages: int | None,
        size: int | None,
    ) -> dict[Feed, Plan]:
        def plan(feed: Feed, messages: int | None, size: int | None) -> Plan:
            start, stop = starts[feed].next, stops[feed]
            return managers[feed].plan(feed, start, stop, messages=messages, size=size)

        if (messages is None and size is None) or len(stops) == 1:
            return {feed: plan(feed, messages, size) for feed in stops}
        whole = {feed: plan(feed, None, None) for feed in stops}
        counts = {feed: found.count for feed, found in whole.items()}
        shares: Mapping[Feed, int] = counts if messages is None else share(messages, counts)
        sizes: dict[Feed, int] = {}
        if size is not None:
            sizes = share(size, {feed: managers[feed].size(feed, n) for feed, n in counts.items()})
        chosen = {feed: found for feed, found in whole.items() if not found.count}
        for feed in stops:
            if shares[feed] and sizes.get(feed, 1):
                chosen[feed] = plan(feed, shares[feed], sizes.get(feed))
        return chosen

    def _cut(
        self, manager: ManagerFeeds, feed: Feed, start: int, stop: int, planned: int, parts: int
    ) -> Sequence[Slice]:
        plan = manager.plan(feed, start, stop, parts=parts)
        by_size = min(plan.count, -(-manager.size(feed, plan.count) // _PART_BYTES))
        if by_size > parts:
            plan = manager.plan(feed, start, stop, parts=by_size)
        gone = planned - plan.count
        if gone > 0:
            if self._options.fail_on_data_loss:
                raise data_loss(f"{feed.name} at {manager.url}", start, stop, gone)
            self._lost[feed] = self._lost.get(feed, 0) + gone
        return [
            Slice(manager.place, feed, part.start, part.stop, part.count) for part in plan.parts
        ]

    def _hold(self, start: Offsets, managers: Mapping[Feed, ManagerFeeds]) -> None:
        """Have a lease on all queues; one that is further than Spark is somebody else's."""
        for manager, lease in zip(self._managers, self._leases, strict=False):
            names = [feed.name for feed in managers if feed.manager == manager.id]
            for name, position in lease.hold(names).items():
                feed = Feed(manager.id, name)
                known = start.positions.get(feed)
                if known is None or position <= known.next or not self._options.fail_on_data_loss:
                    continue
                raise consumer_ahead(self._options.consumer, name, position, known.next)
