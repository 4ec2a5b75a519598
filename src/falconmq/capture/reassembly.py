"""TCP segments to the byte streams of conversations.

Each direction of a connection is one `_Stream`. Positions count from the start of the stream
and never wrap, although sequence numbers do. Segments that come early wait in a heap; what was
delivered once is never delivered again, so retransmissions and overlaps change nothing. A hole is
given up, and its size reported, as soon as it is certain that the capture does not hold the bytes:
the peer acknowledged them, too much waits behind them, or the connection or the capture ended.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from falconmq.capture.frames import ACK, FIN, RST, SYN, Endpoint, TcpSegment

WAITING_BYTES_MAX: Final = 8 * 1024 * 1024  # more than a TCP window that MSMQ ever uses
_RECENTLY_CLOSED_MAX: Final = 1024  # connections whose late segments are still recognised


@dataclass(slots=True, eq=False)
class Conversation:
    """One TCP connection."""

    number: int  # from 1, in the order of their first segments
    client: Endpoint  # who connected; guessed by the port when the capture began later
    server: Endpoint
    started_ns: int | None
    is_whole: bool  # the capture holds its first segment


@dataclass(slots=True)
class StreamData:
    """Bytes of one direction, in order. `missing` bytes before them are not in the capture."""

    conversation: Conversation
    from_client: bool
    frame: int
    time_ns: int | None
    data: bytes
    missing: int = 0


@dataclass(slots=True)
class StreamEnd:
    """No more bytes of this direction."""

    conversation: Conversation
    from_client: bool
    reason: str  # "closed", "reset", "replaced by a new connection", "the capture ends"


StreamEvent = StreamData | StreamEnd
_Piece = tuple[int, int, int, int | None, bytes, int]  # position, order, frame, time, bytes, cut


class _Stream:
    """One direction."""

    __slots__ = ("_acknowledged", "_base", "_order", "_waiting", "_waiting_bytes", "end", "ended",
                 "lost", "position")  # fmt: skip

    def __init__(self, first_sequence: int) -> None:
        self.position = 0  # of the next byte to deliver
        self.lost = 0  # bytes given up since the last delivery
        self.end: int | None = None  # position of the FIN
        self.ended = False
        self._base = first_sequence
        self._acknowledged = 0
        self._waiting: list[_Piece] = []
        self._waiting_bytes = 0
        self._order = 0

    def position_of(self, sequence: int) -> int:
        """Unwrap a sequence number: the position nearest to where the stream stands."""
        distance = (sequence - self._base - self.position) & 0xFFFFFFFF
        return self.position + (distance - (1 << 32) if distance >= 1 << 31 else distance)

    @property
    def is_calm(self) -> bool:
        """Nothing waits behind a hole, and no hole is still to be told."""
        return not self._waiting and not self.lost

    @property
    def next_sequence(self) -> int:
        """Sequence number of the next byte to deliver."""
        return (self._base + self.position) & 0xFFFFFFFF

    def advance(self, size: int) -> None:
        """Somebody else delivered the next bytes, which came in order while the stream was calm."""
        self.position += size

    def add(self, segment: TcpSegment, sequence: int, frame: int, time_ns: int | None) -> None:
        position = self.position_of(sequence)
        size = len(segment.payload)
        if segment.flags & FIN:
            self.end = position + size + segment.missing
        if size + segment.missing and position + size + segment.missing > self.position:
            self._order += 1
            piece = (position, self._order, frame, time_ns, segment.payload, segment.missing)
            heapq.heappush(self._waiting, piece)
            self._waiting_bytes += size

    def acknowledge(self, sequence: int) -> None:
        """The peer has everything before `sequence`: a hole there will not be filled any more."""
        self._acknowledged = max(self._acknowledged, self.position_of(sequence))

    def take(self, *, give_up: bool = False) -> Iterator[tuple[int, int | None, bytes, int]]:
        """Deliver what is in order; with `give_up` all that waits, skipping the holes."""
        waiting = self._waiting
        while waiting:
            start = waiting[0][0]
            if start > self.position:
                crowded = self._waiting_bytes > WAITING_BYTES_MAX
                if not (give_up or crowded or self._acknowledged >= start):
                    return
                self.lost += start - self.position
                self.position = start
            _, _, frame, time_ns, payload, cut = heapq.heappop(waiting)
            self._waiting_bytes -= len(payload)
            fresh = payload[self.position - start :]
            if fresh:
                lost, self.lost = self.lost, 0
                self.position += len(fresh)
                yield frame, time_ns, fresh, lost
            # What the snap length cut off is lost for certain: nothing will be waited for.
            beyond = start + len(payload) + cut - self.position
            if beyond > 0:
                self.lost += beyond
                self.position += beyond


class _Connection:
    __slots__ = ("conversation", "streams")

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.streams: dict[bool, _Stream] = {}  # by from_client


class Reassembler:
    """Feed segments in capture order; get the bytes of each direction in stream order."""

    def __init__(self, server_ports: frozenset[int] = frozenset()) -> None:
        self.conversations = 0
        self.missing = 0  # bytes of payload the capture does not hold
        self._server_ports = server_ports
        self._open: dict[tuple[Endpoint, Endpoint], _Connection] = {}
        self._closed: OrderedDict[tuple[Endpoint, Endpoint], None] = OrderedDict()

    def add(self, segment: TcpSegment, frame: int, time_ns: int | None) -> Iterator[StreamEvent]:
        key = _key(segment)
        connection = self._open.get(key)
        if connection is not None and self._is_new_connection(connection, segment):
            yield from self._close(key, connection, "replaced by a new connection")
            connection = None
        if connection is None:
            connection = self._begin(key, segment, time_ns)
            if connection is None:
                return
        yield from self._deliver(key, connection, segment, frame, time_ns)

    def finish(self) -> Iterator[StreamEvent]:
        """The capture ends: deliver what waits behind holes."""
        for key, connection in list(self._open.items()):
            yield from self._close(key, connection, "the capture ends")

    def _is_new_connection(self, connection: _Connection, segment: TcpSegment) -> bool:
        """A SYN with another sequence number: the ports are used again."""
        if segment.flags & (SYN | ACK) != SYN:
            return False
        stream = connection.streams.get(segment.source == connection.conversation.client)
        return stream is not None and stream.position_of(segment.sequence + 1) != 0

    def _begin(
        self, key: tuple[Endpoint, Endpoint], segment: TcpSegment, time_ns: int | None
    ) -> _Connection | None:
        if segment.flags & SYN:
            self._closed.pop(key, None)
        elif key in self._closed or not segment.payload:
            return None  # a late segment, or nothing to learn from
        client, server = segment.source, segment.destination
        if self._comes_from_server(segment):
            client, server = server, client
        self.conversations += 1
        is_whole = bool(segment.flags & SYN)
        conversation = Conversation(self.conversations, client, server, time_ns, is_whole)
        self._open[key] = _Connection(conversation)
        return self._open[key]

    def _comes_from_server(self, segment: TcpSegment) -> bool:
        if segment.flags & SYN:
            return bool(segment.flags & ACK)
        source, destination = segment.source.port, segment.destination.port
        if (source in self._server_ports) != (destination in self._server_ports):
            return source in self._server_ports
        return source < destination

    def _deliver(
        self,
        key: tuple[Endpoint, Endpoint],
        connection: _Connection,
        segment: TcpSegment,
        frame: int,
        time_ns: int | None,
    ) -> Iterator[StreamEvent]:
        from_client = segment.source == connection.conversation.client
        first = (segment.sequence + bool(segment.flags & SYN)) & 0xFFFFFFFF
        stream = connection.streams.get(from_client)
        if stream is None:
            stream = connection.streams[from_client] = _Stream(first)
        if segment.flags & ACK and (peer := connection.streams.get(not from_client)) is not None:
            peer.acknowledge(segment.acknowledged)
            yield from self._take(connection, not from_client)
        stream.add(segment, first, frame, time_ns)
        yield from self._take(connection, from_client)
        if segment.flags & RST:
            yield from self._close(key, connection, "reset")
        elif all(s.ended for s in connection.streams.values()) and len(connection.streams) == 2:
            yield from self._close(key, connection, "closed")

    def _take(
        self, connection: _Connection, from_client: bool, *, give_up: bool = False
    ) -> Iterator[StreamEvent]:
        stream = connection.streams[from_client]
        if stream.ended:
            return
        for frame, time_ns, data, lost in stream.take(give_up=give_up):
            self.missing += lost
            yield StreamData(connection.conversation, from_client, frame, time_ns, data, lost)
        if stream.end is not None and stream.position >= stream.end:
            stream.ended = True
            yield StreamEnd(connection.conversation, from_client, "closed")

    def _close(
        self, key: tuple[Endpoint, Endpoint], connection: _Connection, reason: str
    ) -> Iterator[StreamEvent]:
        for from_client, stream in connection.streams.items():
            yield from self._take(connection, from_client, give_up=True)
            if not stream.ended:
                stream.ended = True
                self.missing += stream.lost
                yield StreamEnd(connection.conversation, from_client, reason)
        del self._open[key]
        self._closed[key] = None
        if len(self._closed) > _RECENTLY_CLOSED_MAX:
            self._closed.popitem(last=False)


def _key(segment: TcpSegment) -> tuple[Endpoint, Endpoint]:
    """The same for both directions."""
    source, destination = segment.source, segment.destination
    return (source, destination) if source <= destination else (destination, source)
