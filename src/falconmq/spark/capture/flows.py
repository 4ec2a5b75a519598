"""Segments to the byte streams of connections: runs of plain ones at once, the rest one by one.

How to think about it. `Reassembler` knows all rules of TCP that matter here. It is also slow, for
it looks at every segment alone. But most segments simply go on where the one before them ended, and
for a run of those its whole answer is known: deliver all of it. So the segments of a stretch are
sorted by connection, the places where something else happens are found with numpy (a flag, a
repetition, a hole, bytes that the capture cut off), and only from there on, until nothing waits any
more, segments go through the Reassembler. Between those places whole runs are handed out.

A run is handed out only if the Reassembler's own streams stand exactly where it begins; so whatever
came before, by whichever way, the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from falconmq.capture.frames import Endpoint, TcpSegment
from falconmq.capture.reassembly import Conversation, Reassembler, StreamData, StreamEnd
from falconmq.spark.capture.files import NO_TIME
from falconmq.spark.capture.headers import Addresses, Segments
from falconmq.spark.capture.sorting import HEAD, Run, SortedSegments
from falconmq.spark.capture.views import Ints

_MASK: Final = 0xFFFFFFFF
_FAR: Final = 1 << 30  # acknowledgements further away than this are looked at one by one


class Closed(NamedTuple):
    """A connection is over; the ends of its streams came before."""

    conversation: Conversation
    reason: str
    time_ns: int


Event = Run | StreamData | StreamEnd | Closed


@dataclass(slots=True)
class Tally:
    """What went over a connection, besides its bytes."""

    first_frame: int
    last_ns: int = NO_TIME
    segments: int = 0  # with payload
    repeated: int = 0  # of these, all of whose bytes were there already
    short: set[bool] = field(default_factory=set)  # directions (from client) whose last bytes were
    # too few to tell whether they begin a packet; only of connections on some other port


class Flows(Reassembler):
    """All connections of a capture. Feed it stretch by stretch, take events connection by
    connection: those of one direction come in order, those of different connections do not."""

    def __init__(self, addresses: Addresses, server_ports: frozenset[int]) -> None:
        super().__init__(server_ports)
        self.tallies: dict[int, Tally] = {}  # by number of the conversation
        self._ports = server_ports
        self._addresses = addresses
        self._pending: list[Event] = []
        self._frame = 0
        self._time_ns = NO_TIME

    def feed(
        self, segments: Segments, frames: Ints, times: Ints, data: memoryview
    ) -> Iterator[list[Event]]:
        """The events of a stretch; `frames` and `times` are those of each segment."""
        if not len(segments):
            return
        stretch = SortedSegments(segments, frames, times, data, self._ports)
        for begin, end in stretch.groups():
            self._group(stretch, begin, end)
            events, self._pending = self._pending, []
            yield events

    def end(self) -> list[Event]:
        """No more files: what is open ends here."""
        self._time_ns = NO_TIME
        for event in self.finish():
            self._pending.append(event)
        events, self._pending = self._pending, []
        return events

    def _group(self, stretch: SortedSegments, begin: int, end: int) -> None:
        """Segments of one pair of endpoints."""
        ends = stretch.endpoints(begin)
        one, other = self._addresses.endpoint(ends[0]), self._addresses.endpoint(ends[1])
        key = (one, other) if one <= other else (other, one)
        place = begin
        while place < end:
            following = self._run(stretch, key, place, end, (one, other))
            if following == place:
                self._step(stretch, key, place, (one, other))
                following += 1
            place = following

    def _run(
        self,
        stretch: SortedSegments,
        key: tuple[Endpoint, Endpoint],
        place: int,
        end: int,
        ends: tuple[Endpoint, Endpoint],
    ) -> int:
        """Hand out the run that begins here; returns where it ends, `place` if there is none."""
        connection = self._open.get(key)
        if connection is None or stretch.is_odd[place]:
            return place
        stop = stretch.stop_behind(place, end)
        conversation = connection.conversation
        tally = self.tallies[conversation.number]
        streams: list[Any] = [connection.streams.get(e == conversation.client) for e in ends]
        for side, stream in enumerate(streams):
            if stream is None:
                stop = stretch.first_of(side, place, stop)
            elif not stream.is_calm:
                return place
            else:
                first = stretch.first_data(side, place, stop)
                if first < stop and (
                    stream.end is not None
                    or stream.ended
                    or stretch.sequence(first) != stream.next_sequence
                    or (tally.short and (ends[side] == conversation.client) in tally.short)
                ):
                    stop = first
        if stop == place or not self._acknowledge(stretch, streams, place, stop):
            return place
        tally.last_ns = stretch.time(stop - 1)
        for side, stream in enumerate(streams):
            low, high = stretch.data_range(side, place, stop)
            if low < high:
                run = stretch.run(conversation, ends[side] == conversation.client, low, high)
                stream.advance(int(run.sizes.sum()))
                tally.segments += high - low
                self._pending.append(run)
        return stop

    def _acknowledge(
        self, stretch: SortedSegments, streams: list[Any], place: int, stop: int
    ) -> bool:
        """Tell each stream how far the other side acknowledges it; false: one by one, please."""
        told: list[tuple[Any, int]] = []
        for side, stream in enumerate(streams):
            ends = stretch.acknowledged(1 - side, place, stop)
            if stream is None or ends is None:
                continue
            for number in ends:
                distance = (number - stream.next_sequence + (1 << 31) & _MASK) - (1 << 31)
                if abs(distance) > _FAR:
                    return False
            told.append((stream, ends[1]))
        for stream, number in told:
            stream.acknowledge(number)
        return True

    def _step(
        self,
        stretch: SortedSegments,
        key: tuple[Endpoint, Endpoint],
        place: int,
        ends: tuple[Endpoint, Endpoint],
    ) -> None:
        """One segment, by the rules."""
        segment, self._frame, self._time_ns = stretch.segment(place, ends)
        connection = self._open.get(key)
        is_repeated = False
        if connection is not None:
            tally = self.tallies[connection.conversation.number]
            tally.last_ns = self._time_ns
            stream = connection.streams.get(segment.source == connection.conversation.client)
            if segment.payload and stream is not None:
                behind = stream.position_of(segment.sequence) + len(segment.payload)
                is_repeated = behind <= stream.position
        for event in self.add(segment, self._frame, _time(self._time_ns)):
            self._pending.append(event)
            if isinstance(event, StreamData):
                self._note_short(event)
        if segment.payload and (connection := self._open.get(key) or connection) is not None:
            tally = self.tallies[connection.conversation.number]
            tally.segments += 1
            tally.repeated += is_repeated

    def _note_short(self, event: StreamData) -> None:
        conversation = event.conversation
        tally = self.tallies[conversation.number]
        if len(event.data) >= HEAD:
            tally.short.discard(event.from_client)
        elif not self._ports & {conversation.client.port, conversation.server.port}:
            tally.short.add(event.from_client)

    def _begin(
        self, key: tuple[Endpoint, Endpoint], segment: TcpSegment, time_ns: int | None
    ) -> Any:
        connection = super()._begin(key, segment, time_ns)
        if connection is not None:
            tally = Tally(self._frame, self._time_ns)
            self.tallies[connection.conversation.number] = tally
        return connection

    def _close(
        self, key: tuple[Endpoint, Endpoint], connection: Any, reason: str
    ) -> Iterator[StreamData | StreamEnd]:
        yield from super()._close(key, connection, reason)
        self._pending.append(Closed(connection.conversation, reason, self._time_ns))


def _time(time_ns: int) -> int | None:
    return None if time_ns == NO_TIME else time_ns
