"""The segments of a stretch, sorted by connection, and where the plain runs among them end."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from falconmq.capture.frames import ACK, FIN, RST, SYN, Endpoint, TcpSegment
from falconmq.capture.reassembly import Conversation
from falconmq.spark.capture.headers import Segments
from falconmq.spark.capture.views import Flags, Ints, numbers_at

HEAD: Final = 8  # bytes that tell whether a packet begins here
_MASK: Final = 0xFFFFFFFF
_ODD_FLAGS: Final = SYN | FIN | RST
_SIGNATURE: Final = int.from_bytes(b"LIOR", "little")
_MIX_ONE: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_TWO: Final = np.uint64(0xC2B2AE3D27D4EB4F)


class Run(NamedTuple):
    """Bytes of one direction, in order, as they lie in the file; nothing before them is missing."""

    conversation: Conversation
    from_client: bool
    starts: Ints
    sizes: Ints
    frames: Ints
    times: Ints


class _Lanes:
    """Some of the segments, sorted by pair of endpoints and side, in file order within these."""

    def __init__(self, groups: Ints, sides: Ints, chosen: Flags) -> None:
        lanes = groups * 2 + sides
        where = np.flatnonzero(chosen)
        self.where = where[np.argsort(lanes[where], kind="stable")]
        self.lanes = lanes[self.where]
        self._begins = np.searchsorted(self.lanes, np.arange(int(groups[-1]) * 2 + 2))
        self._groups = groups
        self._before = []  # how many of each side come before each segment, in its group
        for side in (0, 1):
            count = np.zeros(len(chosen) + 1, np.int64)
            np.cumsum(chosen & (sides == side), out=count[1:])
            self._before.append(count)
        first = np.searchsorted(groups, np.arange(int(groups[-1]) + 1))
        self._before_group = [count[first] for count in self._before]

    def range(self, side: int, place: int, stop: int) -> tuple[int, int]:
        """Those of a side, from `place` up to `stop`, which lie in one group."""
        group, before = int(self._groups[place]), self._before[side]
        at_place = int(before[place])
        low = int(self._begins[group * 2 + side]) + at_place - int(self._before_group[side][group])
        return low, low + int(before[stop]) - at_place


class SortedSegments:
    """The segments of a stretch, sorted by pair of endpoints and in file order within a pair.

    A segment has a side: 0 if the smaller endpoint sent it. Those with payload stand in a second
    table, sorted by pair and side, so that a run of one direction is a slice of it.
    """

    def __init__(
        self,
        segments: Segments,
        frames: Ints,
        times: Ints,
        data: memoryview,
        ports: frozenset[int],
    ) -> None:
        low = np.minimum(segments.sources, segments.destinations)
        high = np.maximum(segments.sources, segments.destinations)
        # Two pairs that mix to the same number only make more, smaller groups.
        mixed = low.astype(np.uint64) * _MIX_ONE ^ high.astype(np.uint64) * _MIX_TWO
        order = np.argsort(mixed, kind="stable")
        self._segments = sorted_segments = segments.choose(order)
        self._frames, self._times, self._file = frames[order], times[order], data
        self._low, self._high = low[order], high[order]
        self._sides = (sorted_segments.sources > sorted_segments.destinations).astype(np.int64)
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (self._low[1:] != self._low[:-1]) | (self._high[1:] != self._high[:-1])
        self._begins = np.append(np.flatnonzero(begins), len(order))
        self.is_odd: Flags = (sorted_segments.flags & _ODD_FLAGS != 0) | (
            sorted_segments.missing > 0
        )
        self._group_of = np.cumsum(begins) - 1
        self._sort_data()
        self._sort_acknowledgements()
        self._find_breaks(data, ports)

    def _sort_data(self) -> None:
        """Make the table of those with payload, and count them up to each segment."""
        has_data = self._segments.sizes > 0
        self._data = _Lanes(self._group_of, self._sides, has_data)
        where = self._data.where
        self._data_starts = self._segments.starts[where]
        self._data_sizes = self._segments.sizes[where]
        self._data_frames, self._data_times = self._frames[where], self._times[where]

    def _sort_acknowledgements(self) -> None:
        """The same for those that acknowledge. One that takes back what the last one said is odd,
        so that within a run the last is the highest."""
        self._acks = _Lanes(self._group_of, self._sides, self._segments.flags & ACK != 0)
        where, lanes = self._acks.where, self._acks.lanes
        self._ack_numbers = numbers = self._segments.acknowledged[where]
        goes_back = (lanes[1:] == lanes[:-1]) & ((numbers[1:] - numbers[:-1]) & _MASK >= 1 << 31)
        self.is_odd[where[1:][goes_back]] = True

    def _find_breaks(self, data: memoryview, ports: frozenset[int]) -> None:
        """Where a run cannot go on: odd segments, and payload that does not follow the last."""
        where, lanes = self._data.where, self._data.lanes
        sequences = self._segments.sequences[where]
        follows = np.zeros(len(where), np.bool_)
        follows[1:] = (lanes[1:] == lanes[:-1]) & (
            sequences[1:] == ((sequences[:-1] + self._data_sizes[:-1]) & _MASK)
        )
        breaks = self.is_odd.copy()
        breaks[where[~follows]] = True
        self._is_notable = self._notable(data, ports)
        self.is_odd |= self._is_notable
        breaks |= self._is_notable
        self._breaks: list[int] = np.flatnonzero(breaks).tolist()

    def _notable(self, data: memoryview, ports: frozenset[int]) -> Flags:
        """Payload that may show that a connection on some other port speaks MSMQ after all.

        It begins as a packet does, or it is too short to tell.
        """
        notable = np.zeros(len(self._sides), np.bool_)
        known = np.isin(self._low & 0xFFFF, list(ports)) | np.isin(self._high & 0xFFFF, list(ports))
        where = self._data.where
        foreign = ~known[where]
        if not foreign.any():
            return notable
        sizes, starts = self._data_sizes, self._data_starts
        is_short = sizes < HEAD
        looks = foreign & ~is_short
        places = starts[looks]
        signatures = numbers_at(data, "<u4")[places + 4] == _SIGNATURE
        looks[looks] = signatures & (np.frombuffer(data, np.uint8)[places] == 0x10)
        notable[where[foreign & (is_short | looks)]] = True
        return notable

    def groups(self) -> Iterator[tuple[int, int]]:
        return itertools.pairwise(self._begins.tolist())

    def endpoints(self, place: int) -> tuple[int, int]:
        """Of side 0 and side 1."""
        return int(self._low[place]), int(self._high[place])

    def stop_behind(self, place: int, end: int) -> int:
        """Where the run that begins here must stop, by what segments alone tell."""
        found = bisect_right(self._breaks, place)
        return min(self._breaks[found], end) if found < len(self._breaks) else end

    def first_of(self, side: int, place: int, stop: int) -> int:
        """The first segment of this side; `stop` if there is none."""
        found = np.flatnonzero(self._sides[place:stop] == side)
        return place + int(found[0]) if len(found) else stop

    def data_range(self, side: int, place: int, stop: int) -> tuple[int, int]:
        """Where the payloads of a side, from `place` up to `stop`, stand in the table of those."""
        return self._data.range(side, place, stop)

    def first_data(self, side: int, place: int, stop: int) -> int:
        low, high = self._data.range(side, place, stop)
        return int(self._data.where[low]) if low < high else stop

    def sequence(self, place: int) -> int:
        return int(self._segments.sequences[place])

    def time(self, place: int) -> int:
        return int(self._times[place])

    def acknowledged(self, side: int, place: int, stop: int) -> tuple[int, int] | None:
        """The first and the last number that segments of a side acknowledge."""
        low, high = self._acks.range(side, place, stop)
        if low == high:
            return None
        return int(self._ack_numbers[low]), int(self._ack_numbers[high - 1])

    def run(self, conversation: Conversation, from_client: bool, low: int, high: int) -> Run:
        return Run(
            conversation,
            from_client,
            self._data_starts[low:high],
            self._data_sizes[low:high],
            self._data_frames[low:high],
            self._data_times[low:high],
        )

    def segment(self, place: int, ends: tuple[Endpoint, Endpoint]) -> tuple[TcpSegment, int, int]:
        """A segment for the Reassembler, its frame and its time."""
        segments, side = self._segments, int(self._sides[place])
        start, size = int(segments.starts[place]), int(segments.sizes[place])
        segment = TcpSegment(
            ends[side],
            ends[1 - side],
            int(segments.sequences[place]),
            int(segments.acknowledged[place]),
            int(segments.flags[place]),
            bytes(self._file[start : start + size]),
            int(segments.missing[place]),
        )
        return segment, int(self._frames[place]), int(self._times[place])
