"""Capture files: classic pcap and pcapng, read block by block from a file object.

A file is never held whole: each frame is yielded as soon as its bytes are read. A damaged file
yields every frame before the damage, then raises `CaptureError`, which says where it broke.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from falconmq.errors import FalconMQError

FRAME_SIZE_MAX: Final = 0x4000000  # 64 MiB; a larger length is damage, not a frame
_BLOCK_SIZE_MAX: Final = FRAME_SIZE_MAX + 0x10000

# The first four bytes of a pcap file: byte order and nanoseconds per unit of the fraction.
_PCAP_MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
_PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"  # type of a Section Header Block in both byte orders
_BYTE_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}

_INTERFACE_DESCRIPTION: Final = 1
_OBSOLETE_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6
_OPTION_TIME_RESOLUTION: Final = 9
_OPTION_TIME_OFFSET: Final = 14


class ByteStream(Protocol):
    """Any file, pipe or buffer that can be read from front to back."""

    def read(self, size: int, /) -> bytes: ...


class CaptureError(FalconMQError):
    """A capture file that is damaged, cut short, or of a kind that cannot be read."""


@dataclass(slots=True)
class Frame:
    """One captured frame of the link layer."""

    number: int  # from 1, as Wireshark counts
    time_ns: int | None  # since 1970 UTC; None where the file keeps no time (Simple Packet Block)
    link_type: int  # LINKTYPE_... of the tcpdump group
    data: bytes
    original_size: int  # on the wire; more than len(data) where the capture cut the frame


def is_capture(head: bytes) -> bool:
    """Whether a file that begins with these bytes (4 are enough) is a capture."""
    return head[:4] in _PCAP_MAGICS or head[:4] == _PCAPNG_MAGIC


def read_capture(file: ByteStream) -> Iterator[Frame]:
    """Every frame of a capture file, in file order; CaptureError where the file is damaged."""
    magic = file.read(4)
    if magic == _PCAPNG_MAGIC:
        return _PcapNg(file).frames()
    if magic in _PCAP_MAGICS:
        return _read_pcap(file, *_PCAP_MAGICS[magic])
    raise CaptureError(
        f"no capture file: it begins with {magic.hex(' ') or 'nothing'}",
        hint="pcap and pcapng can be read; to convert others: editcap -F pcapng IN OUT",
    )


def _read_pcap(file: ByteStream, order: str, fraction_ns: int) -> Iterator[Frame]:
    header = _exactly(file, 20, "the file header")
    link_type = struct.unpack_from(order + "I", header, 16)[0] & 0xFFFF  # above: size of the FCS
    record = struct.Struct(order + "IIII")
    number = 0
    while head := file.read(record.size):
        number += 1
        if len(head) < record.size:
            raise _cut_short(f"the header of frame {number}")
        seconds, fraction, size, original_size = record.unpack(head)
        if size > FRAME_SIZE_MAX:
            raise _damaged(f"frame {number} claims {size} bytes")
        data = _exactly(file, size, f"frame {number}")
        time_ns = seconds * 10**9 + fraction * fraction_ns
        yield Frame(number, time_ns, link_type, data, max(original_size, size))


@dataclass(slots=True)
class _Interface:
    link_type: int
    snap_length: int
    units_per_second: int = 1_000_000
    offset_seconds: int = 0

    def time_ns(self, units: int) -> int:
        return self.offset_seconds * 10**9 + units * 10**9 // self.units_per_second


class _PcapNg:
    """Reader of a pcapng file whose first four bytes have been read already."""

    def __init__(self, file: ByteStream) -> None:
        self._file = file
        self._order = "<"  # each section has its own, and its own interfaces
        self._interfaces: list[_Interface] = []
        self._number = 0

    def frames(self) -> Iterator[Frame]:
        block_type = _PCAPNG_MAGIC
        while block_type:
            if len(block_type) < 4:
                raise _cut_short("the type of a block")
            if block_type == _PCAPNG_MAGIC:
                self._begin_section()
            else:
                frame = self._read_block(block_type)
                if frame is not None:
                    yield frame
            block_type = self._file.read(4)

    def _begin_section(self) -> None:
        head = _exactly(self._file, 8, "a section header")
        order = _BYTE_ORDERS.get(head[4:])
        if order is None:
            raise _damaged(f"a section begins with byte-order magic {head[4:].hex(' ')}")
        self._order = order
        self._interfaces = []
        self._body(head[:4], already_read=4)

    def _read_block(self, block_type: bytes) -> Frame | None:
        kind: int = struct.unpack(self._order + "I", block_type)[0]
        body = self._body(_exactly(self._file, 4, "the length of a block"))
        try:
            if kind == _INTERFACE_DESCRIPTION:
                self._interfaces.append(self._interface(body))
            elif kind in (_ENHANCED_PACKET, _OBSOLETE_PACKET):
                return self._timed_packet(body, kind)
            elif kind == _SIMPLE_PACKET:
                return self._simple_packet(body)
        except (struct.error, IndexError) as error:
            where = f"a block of type {kind} after frame {self._number}"
            raise _damaged(f"{where} does not hold what it must") from error
        return None  # statistics, names, secrets, comments: nothing we need

    def _body(self, length: bytes, already_read: int = 0) -> bytes:
        """The rest of a block: total length, body, total length again (not compared)."""
        total: int = struct.unpack(self._order + "I", length)[0]
        if total < 12 + already_read or total > _BLOCK_SIZE_MAX or total % 4:
            raise _damaged(f"a block after frame {self._number} claims {total} bytes")
        what = f"a block after frame {self._number}"
        return _exactly(self._file, total - 8 - already_read, what)[:-4]

    def _interface(self, body: bytes) -> _Interface:
        link_type, _, snap_length = struct.unpack_from(self._order + "HHI", body)
        interface = _Interface(link_type, snap_length)
        for code, value in self._options(body, 8):
            if code == _OPTION_TIME_RESOLUTION and value:
                exponent = value[0] & 0x7F
                interface.units_per_second = (2 if value[0] & 0x80 else 10) ** exponent
            elif code == _OPTION_TIME_OFFSET and len(value) == 8:
                interface.offset_seconds = struct.unpack(self._order + "q", value)[0]
        return interface

    def _options(self, body: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
        while offset + 4 <= len(body):
            code, size = struct.unpack_from(self._order + "HH", body, offset)
            if code == 0:
                return
            yield code, body[offset + 4 : offset + 4 + size]
            offset += 4 + size + -size % 4

    def _timed_packet(self, body: bytes, kind: int) -> Frame:
        if kind == _ENHANCED_PACKET:
            index, *rest = struct.unpack_from(self._order + "IIIII", body)
        else:
            index, _, *rest = struct.unpack_from(self._order + "HHIIII", body)
        high, low, size, original_size = rest
        interface = self._interfaces[index]
        time_ns = interface.time_ns(high << 32 | low)
        return self._frame(interface, time_ns, body[20 : 20 + size], size, original_size)

    def _simple_packet(self, body: bytes) -> Frame:
        original_size: int = struct.unpack_from(self._order + "I", body)[0]
        interface = self._interfaces[0]
        size = min(original_size, interface.snap_length or original_size)
        return self._frame(interface, None, body[4 : 4 + size], size, original_size)

    def _frame(
        self, interface: _Interface, time_ns: int | None, data: bytes, size: int, original_size: int
    ) -> Frame:
        self._number += 1
        if len(data) < size:
            raise _damaged(f"frame {self._number} claims {size} bytes, its block has {len(data)}")
        return Frame(self._number, time_ns, interface.link_type, data, max(original_size, size))


def _exactly(file: ByteStream, size: int, what: str) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise _cut_short(what)
    return data


def _cut_short(what: str) -> CaptureError:
    return CaptureError(
        f"the capture ends in the middle of {what}",
        hint="it was cut off or is still being written; what came before is shown",
    )


def _damaged(problem: str) -> CaptureError:
    return CaptureError(
        f"the capture is damaged: {problem}", hint="what came before is shown, the rest is not"
    )
