"""PacketSplitter: cuts the bytes of a session into whole packets (MQQB 2.1.1, 3.1.5.1).

TCP hands out segments that know nothing of packets. A packet that lies inside one segment is a view
of that segment and costs no copy. The beginning of a packet that is not whole yet moves to a buffer
of its own, which grows with the bytes that really came, never by the size a peer announces; when it
is whole it is handed out as it is. So each byte is copied once at most, however small the segments.

A stream that is no MSMQ stream ends for good: nobody can tell where its next packet would begin.
`feed` never raises, so the packets in front of the fault still come out; then every `take` raises
the WireError that says what was wrong, and further bytes are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from falconmq.errors import WireError
from falconmq.wire.base_header import PACKET_SIZE_MIN, BaseHeader
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.framing import packet_length
from falconmq.wire.reader import Buffer

_SIGNATURE_OFFSET: Final = 4
_MAGIC_SIZE: Final = 8  # up to the end of Signature
_ANY_HEADER: Final = BaseHeader(0, PACKET_SIZE_MIN).encode()


class PacketSplitter:
    """Bytes in by `feed`, packets out by `take` or iteration."""

    __slots__ = ("_error", "_length", "_packets", "_partial", "pending")

    def __init__(self) -> None:
        self._packets: deque[memoryview] = deque()
        self._partial = bytearray()  # the beginning of a packet that is not whole yet
        self._length = 0  # of that packet, as soon as its BaseHeader is there
        self._error: WireError | None = None
        self.pending = 0  # bytes that came and that `take` has not handed out

    def feed(self, data: bytes) -> None:
        """Take bytes from the peer. Views of them are handed out, so they must not change."""
        if self._error is not None:
            return
        self.pending += len(data)
        segment = memoryview(data)
        try:
            position = self._complete_partial(segment) if self._partial else 0
            self._split(segment, position)
        except WireError as error:
            self._fail(error)

    def take(self) -> memoryview | None:
        """The next whole packet, or None; WireError once the stream is broken."""
        if self._packets:
            packet = self._packets.popleft()
            self.pending -= len(packet)
            return packet
        if self._error is not None:
            # without its old traceback, which would grow with every raise
            raise self._error.with_traceback(None)
        return None

    def __iter__(self) -> Iterator[memoryview]:
        while (packet := self.take()) is not None:
            yield packet

    def _split(self, segment: memoryview, position: int) -> None:
        """Cut whole packets out of the segment and keep what is left over."""
        end = len(segment)
        while end - position >= BASE_HEADER_SIZE:
            length = packet_length(BaseHeader.decode(segment, position))
            if length > end - position:
                self._length = length
                break
            self._packets.append(segment[position : position + length])
            position += length
        if position < end:
            self._keep(segment[position:])

    def _complete_partial(self, segment: memoryview) -> int:
        """Fill up the packet that was cut; returns how many bytes of the segment that took."""
        position = 0
        if not self._length:
            position = min(BASE_HEADER_SIZE - len(self._partial), len(segment))
            self._keep(segment[:position])
            if len(self._partial) < BASE_HEADER_SIZE:
                return position
            self._length = packet_length(BaseHeader.decode(self._partial))
        stop = min(position + self._length - len(self._partial), len(segment))
        self._partial += segment[position:stop]
        if len(self._partial) == self._length:
            self._packets.append(memoryview(self._partial).toreadonly())
            self._partial, self._length = bytearray(), 0
        return stop

    def _keep(self, data: Buffer) -> None:
        """Keep a beginning; a wrong VersionNumber or Signature shows before the header is whole."""
        self._partial += data
        if not self._length:
            whole_signature = len(self._partial) >= _MAGIC_SIZE
            magic = bytes(self._partial[: _MAGIC_SIZE if whole_signature else _SIGNATURE_OFFSET])
            BaseHeader.decode(magic + _ANY_HEADER[len(magic) :])

    def _fail(self, error: WireError) -> None:
        self._error = error
        self._partial, self._length = bytearray(), 0
        self.pending = sum(map(len, self._packets))
