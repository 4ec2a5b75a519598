"""Captured bytes to MSMQ packets: framing, finding the start of a packet, choosing conversations.

`PacketStream` cuts the bytes of one direction into packets. Where it cannot tell a packet's start
(the capture began in the middle of a session, bytes are missing, a header is broken) it searches
for the next plausible BaseHeader, `10 ?? ?? ?? 4C 49 4F 52`, and says how much it skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from falconmq.capture.frames import Endpoint, TcpSegment, UdpDatagram, Undissected, dissect
from falconmq.capture.pcap import ByteStream, CaptureError, Frame, read_capture
from falconmq.capture.reassembly import Conversation, Reassembler, StreamData, StreamEnd
from falconmq.errors import WireError
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.framing import packet_length

SESSION_PORT: Final = 1801
PING_PORT: Final = 3527
_SIGNATURE: Final = b"LIOR"
NO_PACKET: Final = "no packet begins here"
NO_BEGINNING: Final = "its beginning is not in the capture"
_HEAD_SIZE: Final = 8  # version to signature


@dataclass(slots=True)
class Cut:
    """One packet, or bytes that are none.

    `problem` is empty for a whole packet. Otherwise `data` holds what there is of it: the bytes
    skipped (at most the first 64) or the beginning of a packet whose end is missing.
    """

    data: bytes
    size: int  # of the packet or of the bytes skipped; more than len(data) when not all is here
    problem: str = ""
    lost: int = 0  # bytes before it that are not in the capture


class PacketStream:
    """Cuts the bytes of one direction into packets."""

    def __init__(self, *, at_start: bool = True) -> None:
        self._buffer = bytearray()
        self._in_step = at_start  # the next byte begins a packet
        self._skipped = 0
        self._skipped_head = b""
        self._why = NO_BEGINNING  # what to say of bytes that are skipped
        self._lost = 0

    def feed(self, data: bytes, missing: int = 0) -> Iterator[Cut]:
        """Take bytes; `missing` says how many before them got lost."""
        if missing:
            yield from self._drop_partial(f"{missing} bytes are missing in the capture")
            self._in_step = False
            self._why = NO_BEGINNING
            self._lost += missing
        self._buffer += data
        yield from self._cut()

    def finish(self, reason: str) -> Iterator[Cut]:
        """No more bytes: report what is left over."""
        if self._in_step:
            yield from self._drop_partial(reason)
        else:
            self._skip(len(self._buffer))
            yield from self._report_skipped()

    def _cut(self) -> Iterator[Cut]:
        while True:
            if not self._in_step:
                if not self._search():
                    return
                yield from self._report_skipped()
            if len(self._buffer) < BASE_HEADER_SIZE:
                return
            size = _length_at(self._buffer, 0)
            if size is None:
                self._skip(1)
                self._in_step = False
                self._why = NO_PACKET
                continue
            if len(self._buffer) < size:
                return
            packet = bytes(memoryview(self._buffer)[:size])
            del self._buffer[:size]
            lost, self._lost = self._lost, 0
            yield Cut(packet, size, lost=lost)

    def _search(self) -> bool:
        """Step to the next plausible BaseHeader; False if more bytes are needed to tell."""
        start = 0
        while (found := self._buffer.find(_SIGNATURE, start)) >= 0:
            begin = found - 4
            if begin >= 0 and len(self._buffer) < begin + BASE_HEADER_SIZE:
                self._skip(begin)
                return False
            if begin >= 0 and _length_at(self._buffer, begin) is not None:
                self._skip(begin)
                self._in_step = True
                return True
            start = found + 1
        self._skip(max(0, len(self._buffer) - (_HEAD_SIZE - 1)))
        return False

    def _skip(self, size: int) -> None:
        if size:
            if len(self._skipped_head) < 64:
                self._skipped_head += bytes(self._buffer[: 64 - len(self._skipped_head)][:size])
            self._skipped += size
            del self._buffer[:size]

    def _report_skipped(self) -> Iterator[Cut]:
        if self._skipped:
            yield Cut(self._skipped_head, self._skipped, self._why)
            self._skipped, self._skipped_head = 0, b""

    def _drop_partial(self, reason: str) -> Iterator[Cut]:
        if not self._in_step:
            self._skip(len(self._buffer))
            yield from self._report_skipped()
        elif self._buffer:
            size = _length_at(self._buffer, 0) or len(self._buffer)
            yield Cut(bytes(self._buffer), size, reason)
            self._buffer.clear()


def looks_like_packet(head: bytes) -> bool:
    """Whether bytes begin as every packet of a session does."""
    return len(head) >= _HEAD_SIZE and head[0] == 0x10 and head[4:8] == _SIGNATURE


def _length_at(buffer: bytearray, offset: int) -> int | None:
    """Length of the packet whose BaseHeader stands there; None if none does."""
    try:
        return packet_length(BaseHeader.decode(bytes(buffer[offset : offset + BASE_HEADER_SIZE])))
    except WireError:
        return None


@dataclass(slots=True)
class CapturedPacket:
    """A packet of a session (`conversation` is set) or a ping, with where it came from."""

    source: Endpoint
    destination: Endpoint
    frame: int  # that completed it
    time_ns: int | None
    data: bytes
    size: int
    problem: str = ""  # why `data` is not a whole packet
    lost: int = 0  # bytes before it that the capture does not hold
    conversation: Conversation | None = None
    from_client: bool = True


@dataclass(slots=True)
class Totals:
    """What a capture held; filled while it is read."""

    frames: int = 0
    conversations: int = 0  # that spoke MSMQ
    packets: int = 0
    pings: int = 0
    incomplete: int = 0
    missing: int = 0  # bytes of MSMQ conversations that the capture does not hold
    left_out: dict[Undissected, int] = field(default_factory=dict)
    first_ns: int | None = None
    last_ns: int | None = None


@dataclass(slots=True)
class _Direction:
    packets: PacketStream
    head: bytes = b""  # bytes kept until it is clear whether this is MSMQ
    frame: int = 0
    time_ns: int | None = None


class CaptureReader:
    """The MSMQ packets of a capture, one after another as the file is read."""

    def __init__(
        self,
        file: ByteStream,
        *,
        session_ports: frozenset[int] = frozenset((SESSION_PORT,)),
        ping_ports: frozenset[int] = frozenset((PING_PORT,)),
    ) -> None:
        self.totals = Totals()
        self._file = file
        self._session_ports = session_ports
        self._ping_ports = ping_ports
        self._reassembler = Reassembler(session_ports)
        self._directions: dict[tuple[int, bool], _Direction] = {}
        self._is_msmq: set[int] = set()  # numbers of conversations

    def packets(self) -> Iterator[CapturedPacket]:
        """Every packet. A damaged file raises CaptureError after all that came before."""
        damage: CaptureError | None = None
        try:
            for frame in read_capture(self._file):
                yield from self._frame(frame)
        except CaptureError as error:
            damage = error
        for event in self._reassembler.finish():
            yield from self._stream_event(event)
        if damage is not None:
            raise damage

    def _frame(self, frame: Frame) -> Iterator[CapturedPacket]:
        self._count_frame(frame.time_ns)
        dissected = dissect(frame)
        if isinstance(dissected, TcpSegment):
            for event in self._reassembler.add(dissected, frame.number, frame.time_ns):
                yield from self._stream_event(event)
        elif isinstance(dissected, UdpDatagram):
            yield from self._datagram(dissected, frame.number, frame.time_ns)
        else:
            left_out = self.totals.left_out
            left_out[dissected] = left_out.get(dissected, 0) + 1

    def _count_frame(self, time_ns: int | None) -> None:
        self.totals.frames += 1
        if self.totals.first_ns is None:
            self.totals.first_ns = time_ns
        self.totals.last_ns = time_ns if time_ns is not None else self.totals.last_ns

    def _datagram(
        self, datagram: UdpDatagram, frame: int, time_ns: int | None
    ) -> Iterator[CapturedPacket]:
        ports = (datagram.source.port, datagram.destination.port)
        if not self._ping_ports.intersection(ports):
            return
        self.totals.pings += 1
        size = len(datagram.payload) + datagram.missing
        problem = "the capture cut it short" if datagram.missing else ""
        yield CapturedPacket(
            datagram.source, datagram.destination, frame, time_ns, datagram.payload, size, problem
        )

    def _stream_event(self, event: StreamData | StreamEnd) -> Iterator[CapturedPacket]:
        conversation = event.conversation
        key = (conversation.number, event.from_client)
        if isinstance(event, StreamEnd):
            direction = self._directions.pop(key, None)
            if direction is not None and conversation.number in self._is_msmq:
                for cut in direction.packets.finish(END_REASONS[event.reason]):
                    yield self._packet(event, direction, cut)
            return
        direction = self._directions.get(key)
        if direction is None:
            at_start = conversation.is_whole or looks_like_packet(event.data)
            direction = self._directions[key] = _Direction(PacketStream(at_start=at_start))
        direction.frame, direction.time_ns = event.frame, event.time_ns
        data = direction.head + event.data
        if not self._speaks_msmq(conversation, data):
            # Keep what a header cut in two needs, while the stream is at its start.
            direction.head = data if len(data) < _HEAD_SIZE and not event.missing else b""
            return
        direction.head = b""
        self.totals.missing += event.missing
        for cut in direction.packets.feed(data, event.missing):
            yield self._packet(event, direction, cut)

    def _speaks_msmq(self, conversation: Conversation, data: bytes) -> bool:
        if conversation.number in self._is_msmq:
            return True
        ports = (conversation.client.port, conversation.server.port)
        if not self._session_ports.intersection(ports) and not looks_like_packet(data):
            return False
        self._is_msmq.add(conversation.number)
        self.totals.conversations += 1
        return True

    def _packet(
        self, event: StreamData | StreamEnd, direction: _Direction, cut: Cut
    ) -> CapturedPacket:
        conversation = event.conversation
        ends = (conversation.client, conversation.server)
        source, destination = ends if event.from_client else ends[::-1]
        if cut.problem:
            self.totals.incomplete += 1
        else:
            self.totals.packets += 1
        return CapturedPacket(
            source,
            destination,
            direction.frame,
            direction.time_ns,
            cut.data,
            cut.size,
            cut.problem,
            cut.lost,
            conversation,
            event.from_client,
        )


END_REASONS: Final = {
    "closed": "the connection was closed before its end",
    "reset": "the connection was reset before its end",
    "replaced by a new connection": "a new connection began before its end",
    "the capture ends": "the capture ends before its end",
}
