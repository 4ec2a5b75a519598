"""A set of capture files, read from front to back: what is in each stretch of them.

The files of a set follow each other (a capture program began a new one when the last was full), so
connections go on from one to the next, and so does everything this reader knows about them. It
keeps open connections and one stretch, never a file.

Several readers can share the work: each takes its lane of the connections and leaves the others
alone. Every reader steps through all frames for that, but their headers are the cheap part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from falconmq.capture.frames import Undissected
from falconmq.capture.packets import PING_PORT, SESSION_PORT
from falconmq.capture.pcap import CaptureError
from falconmq.spark.capture.files import STRETCH_BYTES, Frames, mapped, read_frames
from falconmq.spark.capture.flows import Flows
from falconmq.spark.capture.headers import Addresses, Dissected, Segments, dissect_frames, lanes_of
from falconmq.spark.capture.streams import Ended, Found, Streams
from falconmq.spark.capture.views import Ints, ints

SESSION_PORTS: Final = frozenset((SESSION_PORT,))
PING_PORTS: Final = frozenset((PING_PORT,))


@dataclass(slots=True)
class Datagrams:
    """Pings, one beside the other."""

    segments: Segments
    payloads: list[bytes]
    frames: Ints
    times: Ints


@dataclass(slots=True)
class FileCounts:
    """What else a file held; told when its end is reached."""

    path: str
    first_frame: int  # of the set; 1 is the first
    frames: int = 0
    bytes: int = 0
    left_out: dict[Undissected, tuple[int, int]] = field(default_factory=dict)  # count, first
    damage: CaptureError | None = None


@dataclass(slots=True)
class Stretch:
    """What a stretch of a file, or the end of a file or of the set, gave."""

    found: list[Found]
    ended: list[Ended]
    pings: Datagrams | None = None
    file: FileCounts | None = None


class SetReader:
    """Reads the files of a set in their order. Frames are numbered through, from 1."""

    def __init__(
        self,
        paths: Sequence[str],
        *,
        session_ports: frozenset[int] = SESSION_PORTS,
        ping_ports: frozenset[int] = PING_PORTS,
        lane: int = 0,
        lanes: int = 1,
        stretch_bytes: int = STRETCH_BYTES,
    ) -> None:
        self.paths = paths
        self.addresses = Addresses()
        self.file_starts: list[int] = []  # number of the first frame of each file begun so far
        self._ping_ports = sorted(ping_ports)
        self._flows = Flows(self.addresses, session_ports)
        self._streams = Streams(self._flows, session_ports)
        self.is_first_lane = lane == 0
        self._lane, self._lanes = lane, lanes
        self._stretch_bytes = stretch_bytes
        self._frames = 0

    def stretches(self) -> Iterator[Stretch]:
        for path in self.paths:
            yield from self._file(path)
        self._streams.take(self._flows.end(), memoryview(b""))
        yield self._taken()

    def place_of(self, frames: Ints) -> tuple[Ints, Ints]:
        """Which file each of these frames is in, and its number there."""
        starts = ints(self.file_starts)
        files = np.searchsorted(starts, frames, side="right") - 1
        return files, frames - starts[files] + 1

    def _file(self, path: str) -> Iterator[Stretch]:
        self.file_starts.append(self._frames + 1)
        counts = FileCounts(path, self._frames + 1)
        try:
            with mapped(path) as data:
                counts.bytes = len(data)
                for frames in read_frames(data, self._stretch_bytes):
                    yield self._stretch(frames, counts)
        except CaptureError as error:
            counts.damage = error
        self._frames += counts.frames
        yield Stretch([], [], file=counts)

    def _stretch(self, frames: Frames, counts: FileCounts) -> Stretch:
        dissected = dissect_frames(frames, self.addresses)
        numbers = counts.first_frame + counts.frames + np.arange(len(frames))
        self._count(dissected, numbers, counts)
        segments = self._of_lane(dissected.segments)
        chosen = segments.frames
        fed = self._flows.feed(segments, numbers[chosen], frames.times[chosen], frames.data)
        for events in fed:
            self._streams.take(events, frames.data)
        taken = self._taken()
        taken.pings = self._pings(self._of_lane(dissected.datagrams), frames, numbers)
        return taken

    def _of_lane(self, segments: Segments) -> Segments:
        if self._lanes == 1 or not len(segments):
            return segments
        return segments.choose(lanes_of(segments, self._lanes) == self._lane)

    def _count(self, dissected: Dissected, numbers: Ints, counts: FileCounts) -> None:
        for why, places in dissected.left_out.items():
            count, first = counts.left_out.get(why, (0, int(numbers[places[0]])))
            counts.left_out[why] = count + len(places), first
        counts.frames += len(numbers)

    def _taken(self) -> Stretch:
        streams = self._streams
        stretch = Stretch(streams.found, streams.ended)
        streams.found, streams.ended = [], []
        return stretch

    def _pings(self, datagrams: Segments, frames: Frames, numbers: Ints) -> Datagrams | None:
        ports = (datagrams.sources & 0xFFFF, datagrams.destinations & 0xFFFF)
        chosen = np.isin(ports[0], self._ping_ports) | np.isin(ports[1], self._ping_ports)
        if not chosen.any():
            return None
        pings = datagrams.choose(chosen)
        places = zip(pings.starts.tolist(), pings.sizes.tolist(), strict=True)
        payloads = [bytes(frames.data[start : start + size]) for start, size in places]
        return Datagrams(pings, payloads, numbers[pings.frames], frames.times[pings.frames])
