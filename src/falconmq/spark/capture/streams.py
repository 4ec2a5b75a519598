"""Byte streams to packets: whole stretches of a stream cut at once, trouble piece by piece.

`Cutter` is the `PacketStream` of `falconmq.capture.packets` with a shortcut: as long as the stream
is in step (the next byte begins a packet), all that came can be joined and cut by walking from
header to header. Out of step, the pieces go through it one by one, as they would there.

`Streams` takes the events of `flows` and decides which connections speak MSMQ, by the same rules as
`CaptureReader`. What it found waits in `found` and `closed` until somebody takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from falconmq.capture.packets import END_REASONS, Cut, PacketStream, looks_like_packet
from falconmq.capture.reassembly import Conversation, StreamData, StreamEnd
from falconmq.spark.capture.files import NO_TIME
from falconmq.spark.capture.flows import Closed, Event, Flows, Tally
from falconmq.spark.capture.sorting import Run
from falconmq.spark.capture.views import Ints, ints
from falconmq.wire.base_header import (
    INTERNAL,
    PACKET_SIZE_MAX,
    PACKET_SIZE_MIN,
    SESSION_HEADER,
    SIGNATURE,
    VERSION,
)
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.session_header import SIZE as SESSION_HEADER_SIZE

_HEAD: Final = struct.Struct("<BxHII")  # VersionNumber, Flags, Signature, PacketSize
_HEAD_SIZE: Final = 8  # of what tells MSMQ from anything else


class Cutter(PacketStream):
    """Cuts the bytes of one direction into packets."""

    @property
    def is_plain(self) -> bool:
        """In step, and nothing is to be told about what was lost before."""
        return self._in_step and not self._lost

    @property
    def begun(self) -> bytes:
        """What there is of the packet that is not whole yet."""
        return bytes(self._buffer)

    def hold(self, data: bytes) -> None:
        """This is what there is of it now."""
        self._buffer[:] = data

    def cut_on(self) -> Iterable[Cut]:
        """Go on with what is held."""
        return self._cut()


def walk_packets(data: bytes) -> tuple[list[int], list[int], int, bool]:
    """Where packets begin and how long they are; where the walk ended, and whether badly."""
    head_at, end = _HEAD.unpack_from, len(data)
    starts: list[int] = []
    lengths: list[int] = []
    position = 0
    while position + BASE_HEADER_SIZE <= end:
        version, flags, signature, length = head_at(data, position)
        if version != VERSION or signature != SIGNATURE:
            return starts, lengths, position, True
        if not PACKET_SIZE_MIN <= length <= PACKET_SIZE_MAX:
            return starts, lengths, position, True
        if flags & (INTERNAL | SESSION_HEADER) == SESSION_HEADER:
            length += SESSION_HEADER_SIZE
        if position + length > end:
            break
        starts.append(position)
        lengths.append(length)
        position += length
    return starts, lengths, position, False


@dataclass(slots=True, eq=False)
class Flow:
    """A connection that has sent something."""

    conversation: Conversation
    tally: Tally
    name: str  # its ends and its first frame: no other connection of the set has these
    is_msmq: bool = False
    directions: dict[bool, Direction] = field(default_factory=dict)  # by from_client
    managers: tuple[str | None, str | None] = (None, None)  # of client and server
    is_refused: bool = False


@dataclass(slots=True, eq=False)
class Direction:
    """One direction of it."""

    flow: Flow
    from_client: bool
    cutter: Cutter
    head: bytes = b""  # bytes kept until it is clear whether this is MSMQ
    frame: int = 0  # of the last bytes
    time_ns: int = NO_TIME
    packets: int = 0
    size: int = 0  # bytes so far
    missing: int = 0
    messages: int = 0  # user messages so far
    offset: int | None = None  # of the session's own count of them, as last heard
    is_offset_known: bool = False  # it still holds
    is_behind_trouble: bool = False  # bytes before the next packet are lost or broken
    acknowledged: int | None = None  # by this direction, of the other one's messages
    pieces: list[memoryview | bytes] = field(default_factory=list)
    frames: list[Ints] = field(default_factory=list)  # of the pieces
    times: list[Ints] = field(default_factory=list)


class Whole(NamedTuple):
    """Packets of one direction that lie in one buffer."""

    direction: Direction
    first: int  # the place of the first among the packets of this direction
    data: bytes
    starts: list[int]
    lengths: list[int]
    frames: Ints
    times: Ints


class Single(NamedTuple):
    """A packet that was cut out alone, or bytes that are none."""

    direction: Direction
    first: int
    cut: Cut
    frame: int
    time_ns: int


class Gap(NamedTuple):
    """Bytes that the capture does not hold."""

    direction: Direction
    size: int
    frame: int  # that came behind them
    time_ns: int


Found = Whole | Single | Gap


class Ended(NamedTuple):
    flow: Flow
    reason: str
    time_ns: int


class Streams:
    """What the events of connections amount to."""

    def __init__(self, flows: Flows, session_ports: frozenset[int]) -> None:
        self.found: list[Found] = []
        self.ended: list[Ended] = []
        self._flows = flows
        self._session_ports = session_ports
        self._known: dict[int, Flow] = {}  # by number of the conversation

    def take(self, events: list[Event], data: memoryview) -> None:
        """Events of one connection, and the file that runs refer to."""
        touched: dict[Direction, None] = {}
        for event in events:
            if isinstance(event, Closed):
                self._close(event)
            elif isinstance(event, StreamEnd):
                self._end(event)
            else:
                direction = self._direction(event, data)
                if isinstance(event, Run):
                    self._run(event, direction, data)
                else:
                    self._piece(event, direction)
                touched[direction] = None
        for direction in touched:
            self._flush(direction)

    # Connections

    def _flow(self, conversation: Conversation) -> Flow:
        flow = self._known.get(conversation.number)
        if flow is None:
            tally = self._flows.tallies[conversation.number]
            name = f"{conversation.client}-{conversation.server}#{tally.first_frame}"
            flow = self._known[conversation.number] = Flow(conversation, tally, name)
            ports = {conversation.client.port, conversation.server.port}
            flow.is_msmq = bool(self._session_ports & ports)
        return flow

    def _direction(self, event: Run | StreamData, data: memoryview) -> Direction:
        flow = self._flow(event.conversation)
        direction = flow.directions.get(event.from_client)
        if direction is None:
            if isinstance(event, Run):
                start = int(event.starts[0])
                head = bytes(data[start : start + min(_HEAD_SIZE, int(event.sizes[0]))])
            else:
                head = event.data[:_HEAD_SIZE]
            at_start = event.conversation.is_whole or looks_like_packet(head)
            direction = Direction(flow, event.from_client, Cutter(at_start=at_start))
            flow.directions[event.from_client] = direction
        return direction

    def _close(self, event: Closed) -> None:
        flow = self._flow(event.conversation)  # also one that never sent a byte: nobody was there
        del self._known[event.conversation.number]
        del self._flows.tallies[event.conversation.number]
        if flow.is_msmq:
            self.ended.append(Ended(flow, event.reason, event.time_ns))

    # Bytes

    def _run(self, run: Run, direction: Direction, data: memoryview) -> None:
        if direction.flow.is_msmq:
            places = zip(run.starts.tolist(), run.sizes.tolist(), strict=True)
            direction.pieces += [data[start : start + size] for start, size in places]
            direction.frames.append(run.frames)
            direction.times.append(run.times)
        direction.size += int(run.sizes.sum())
        direction.head = b""
        direction.frame, direction.time_ns = int(run.frames[-1]), int(run.times[-1])

    def _piece(self, event: StreamData, direction: Direction) -> None:
        time_ns = NO_TIME if event.time_ns is None else event.time_ns
        data = direction.head + event.data
        flow = direction.flow
        direction.size += len(event.data)
        if not flow.is_msmq and not looks_like_packet(data):
            is_short = len(data) < _HEAD_SIZE and not event.missing
            direction.head = data if is_short else b""
            direction.frame, direction.time_ns = event.frame, time_ns
            return
        flow.is_msmq = True
        direction.head = b""
        direction.missing += event.missing
        if event.missing:
            self._flush(direction)
            direction.frame, direction.time_ns = event.frame, time_ns
            self.found.append(Gap(direction, event.missing, event.frame, time_ns))
            self._cuts(direction, direction.cutter.feed(data, event.missing))
            return
        direction.pieces.append(data)
        direction.frames.append(ints([event.frame]))
        direction.times.append(ints([time_ns]))
        direction.frame, direction.time_ns = event.frame, time_ns

    def _end(self, event: StreamEnd) -> None:
        flow = self._known.get(event.conversation.number)
        direction = flow.directions.get(event.from_client) if flow is not None else None
        if flow is None or direction is None:
            return
        self._flush(direction)
        if flow.is_msmq:
            self._cuts(direction, direction.cutter.finish(END_REASONS[event.reason]))

    def _cuts(self, direction: Direction, cuts: Iterable[Cut]) -> None:
        for cut in cuts:
            single = Single(direction, direction.packets, cut, direction.frame, direction.time_ns)
            direction.packets += not cut.problem
            self.found.append(single)

    def _flush(self, direction: Direction) -> None:
        """Cut what waits."""
        pieces = direction.pieces
        if not pieces:
            return
        frames, times = np.concatenate(direction.frames), np.concatenate(direction.times)
        direction.pieces, direction.frames, direction.times = [], [], []
        last = direction.frame, direction.time_ns
        place = 0
        while place < len(pieces):
            if direction.cutter.is_plain:
                place += self._cut_plain(direction, pieces[place:], frames[place:], times[place:])
            else:
                direction.frame, direction.time_ns = int(frames[place]), int(times[place])
                self._cuts(direction, direction.cutter.feed(bytes(pieces[place])))
                place += 1
        direction.frame, direction.time_ns = last

    def _cut_plain(
        self, direction: Direction, pieces: list[memoryview | bytes], frames: Ints, times: Ints
    ) -> int:
        """Cut pieces in step; returns how many were used up: all, unless a header is broken."""
        begun = direction.cutter.begun
        data = b"".join((begun, *pieces))
        starts, lengths, position, is_bad = walk_packets(data)
        ends = len(begun) + np.cumsum(ints([len(piece) for piece in pieces]))
        if starts:
            completed = np.searchsorted(ends, ints(starts) + ints(lengths))
            self.found.append(
                Whole(
                    direction,
                    direction.packets,
                    data,
                    starts,
                    lengths,
                    frames[completed],
                    times[completed],
                )
            )
            direction.packets += len(starts)
        if not is_bad:
            direction.cutter.hold(data[position:])
            return len(pieces)
        piece = int(np.searchsorted(ends, position + BASE_HEADER_SIZE))
        direction.frame, direction.time_ns = int(frames[piece]), int(times[piece])
        direction.cutter.hold(data[position : int(ends[piece])])
        self._cuts(direction, direction.cutter.cut_on())
        return piece + 1
