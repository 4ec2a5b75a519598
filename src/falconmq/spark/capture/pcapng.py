"""pcapng files to the places of their frames: sections, interfaces, and three kinds of packet."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from falconmq.capture.pcap import FRAME_SIZE_MAX, CaptureError
from falconmq.spark.capture.files import NO_TIME, PCAPNG_MAGIC, Frames, cut_short, damaged
from falconmq.spark.capture.views import Ints, ints, numbers_at

_BLOCK_SIZE_MAX: Final = FRAME_SIZE_MAX + 0x10000
_SECTION_HEADER: Final = 0x0A0D0D0A
_BYTE_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE_DESCRIPTION: Final = 1
_OBSOLETE_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6
_OPTION_TIME_RESOLUTION: Final = 9
_OPTION_TIME_OFFSET: Final = 14
_FRAMING: Final = 12  # type, length, length again
_TIMED_HEADER: Final = 20
_SIMPLE_HEADER: Final = 4
_TIME_MAX: Final = np.iinfo(np.int64).max
_SECOND: Final = 10**9


@dataclass(slots=True)
class _Interface:
    link_type: int
    snap_length: int
    units_per_second: int = 1_000_000
    offset_seconds: int = 0

    def times(self, units: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Ints:
        """Nanoseconds since 1970; what no 64 bits hold becomes the latest time that they do."""
        factor = _SECOND // self.units_per_second if self.units_per_second <= _SECOND else 0
        latest = int(units.max(initial=0))
        fits = latest * _SECOND // self.units_per_second + abs(self.offset_seconds) * _SECOND
        if factor and factor * self.units_per_second == _SECOND and fits <= _TIME_MAX:
            return units.astype(np.int64) * factor + self.offset_seconds * _SECOND
        exact = (self.offset_seconds * _SECOND + u * _SECOND // self.units_per_second
                 for u in units.tolist())  # fmt: skip
        return ints([min(max(time, NO_TIME + 1), _TIME_MAX) for time in exact])


class _Blocks:
    """Steps from block to block; frames that it passed wait in three lists."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0
        self.order = "<"
        self.problem: CaptureError | None = None
        self.passed = 0  # frames of the stretches before
        self._interfaces: list[_Interface] = []
        self._blocks: list[int] = []  # where the block of each frame begins
        self._kinds: list[int] = []
        self._indexes: list[int] = []  # of its interface

    def walk(self, stop: int) -> Frames:
        """The frames up to `stop`, to the next section, or to the damage."""
        try:
            self._walk(stop)
        except CaptureError as error:
            self.problem = error
        frames = self._frames()
        self.passed += len(frames)
        return frames

    def begin_section(self) -> None:
        position, data = self.position, self.data
        if position + 12 > len(data):
            raise cut_short("a section header")
        magic = bytes(data[position + 8 : position + 12])
        if magic not in _BYTE_ORDERS:
            raise damaged(f"a section begins with byte-order magic {magic.hex(' ')}")
        self.order = _BYTE_ORDERS[magic]
        self._interfaces = []
        total: int = struct.unpack_from(self.order + "I", data, position + 4)[0]
        self.position = self._behind(total, least=16)

    def _walk(self, stop: int) -> None:
        while self.position < min(len(self.data), stop):
            self._walk_packets(stop)
            if self.position >= min(len(self.data), stop) or self._step():
                return

    def _walk_packets(self, stop: int) -> None:
        """Pass Enhanced Packet Blocks, nearly all there is, until something else comes."""
        packet_at = struct.Struct(self.order + "III8xI").unpack_from
        data, position, known = self.data, self.position, len(self._interfaces)
        blocks, indexes = self._blocks, self._indexes
        stop = min(stop, len(data) - 24)
        while position < stop:
            kind, total, index, captured = packet_at(data, position)
            if kind != _ENHANCED_PACKET or index >= known or total & 3:
                break
            if not captured + _FRAMING + _TIMED_HEADER <= total <= _BLOCK_SIZE_MAX:
                break
            if position + total > len(data):
                break
            blocks.append(position)
            indexes.append(index)
            position += total
        self._kinds += [_ENHANCED_PACKET] * (len(blocks) - len(self._kinds))
        self.position = position

    def _step(self) -> bool:
        """Pass one block of any kind; true if a section begins here instead."""
        position, end = self.position, len(self.data)
        if position + 8 > end:
            raise cut_short(self._cut_head(end - position))
        kind, total = struct.unpack_from(self.order + "II", self.data, position)
        if kind == _SECTION_HEADER:
            return True
        following = self._behind(total, least=_FRAMING)
        try:
            self._block(kind, position, total - _FRAMING)
        except (struct.error, IndexError) as error:
            where = f"a block of type {kind} after frame {self._number}"
            raise damaged(f"{where} does not hold what it must") from error
        self.position = following
        return False

    def _cut_head(self, left: int) -> str:
        if left < 4:
            return "the type of a block"
        is_section = bytes(self.data[self.position : self.position + 4]) == PCAPNG_MAGIC
        return "a section header" if is_section else "the length of a block"

    @property
    def _number(self) -> int:
        return self.passed + len(self._blocks)

    def _behind(self, total: int, least: int) -> int:
        """Where the block that begins here ends."""
        if total < least or total > _BLOCK_SIZE_MAX or total % 4:
            raise damaged(f"a block after frame {self._number} claims {total} bytes")
        if self.position + total > len(self.data):
            raise cut_short(f"a block after frame {self._number}")
        return self.position + total

    def _block(self, kind: int, position: int, size: int) -> None:
        if kind in (_ENHANCED_PACKET, _OBSOLETE_PACKET):
            index, captured = self._timed(kind, position, size)
            self._note(kind, position, index, captured, size - _TIMED_HEADER)
        elif kind == _SIMPLE_PACKET:
            captured = self._simple_size(position, size)
            self._note(kind, position, 0, captured, size - _SIMPLE_HEADER)
        elif kind == _INTERFACE_DESCRIPTION:
            body = bytes(self.data[position + 8 : position + 8 + size])
            self._interfaces.append(self._interface(body))

    def _timed(self, kind: int, position: int, size: int) -> tuple[int, int]:
        if size < _TIMED_HEADER:
            raise IndexError
        layout = "I8xI" if kind == _ENHANCED_PACKET else "H10xI"
        index, captured = struct.unpack_from(self.order + layout, self.data, position + 8)
        if index >= len(self._interfaces):
            raise IndexError
        return index, captured

    def _simple_size(self, position: int, size: int) -> int:
        if size < _SIMPLE_HEADER:
            raise IndexError
        original: int = struct.unpack_from(self.order + "I", self.data, position + 8)[0]
        return min(original, self._interfaces[0].snap_length or original)

    def _note(self, kind: int, position: int, index: int, captured: int, there: int) -> None:
        if there < captured:
            claim = f"frame {self._number + 1} claims {captured} bytes, its block has {there}"
            raise damaged(claim)
        self._blocks.append(position)
        self._kinds.append(kind)
        self._indexes.append(index)

    def _interface(self, body: bytes) -> _Interface:
        link_type, _, snap_length = struct.unpack_from(self.order + "HHI", body)
        interface = _Interface(link_type, snap_length)
        for code, value in self._options(body, 8):
            if code == _OPTION_TIME_RESOLUTION and value:
                exponent = value[0] & 0x7F
                interface.units_per_second = (2 if value[0] & 0x80 else 10) ** exponent
            elif code == _OPTION_TIME_OFFSET and len(value) == 8:
                interface.offset_seconds = struct.unpack(self.order + "q", value)[0]
        return interface

    def _options(self, body: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
        while offset + 4 <= len(body):
            code, size = struct.unpack_from(self.order + "HH", body, offset)
            if code == 0:
                return
            yield code, body[offset + 4 : offset + 4 + size]
            offset += 4 + size + -size % 4

    def _frames(self) -> Frames:
        """What was passed, as arrays."""
        blocks, kinds, indexes = ints(self._blocks), ints(self._kinds), ints(self._indexes)
        self._blocks, self._kinds, self._indexes = [], [], []
        is_simple = kinds == _SIMPLE_PACKET
        words = numbers_at(self.data, self.order + "u4")
        sizes = np.zeros(len(blocks), np.int64)
        times = np.full(len(blocks), NO_TIME)
        links = np.zeros(len(blocks), np.int64)
        timed = blocks[~is_simple]
        sizes[~is_simple] = words[timed + 20]
        sizes[is_simple] = words[blocks[is_simple] + 8]
        units = words[timed + 12].astype(np.uint64) << np.uint64(32) | words[timed + 16]
        for index, interface in enumerate(self._interfaces):
            chosen = indexes == index
            links[chosen] = interface.link_type
            times[chosen & ~is_simple] = interface.times(units[chosen[~is_simple]])
            if interface.snap_length and not index:
                cut = np.minimum(sizes[is_simple], interface.snap_length)
                sizes[is_simple] = cut
        starts = blocks + np.where(is_simple, 8 + _SIMPLE_HEADER, 8 + _TIMED_HEADER)
        return Frames(self.passed + 1, self.data, starts, sizes, times, links)


def read_pcapng(data: memoryview, stretch_bytes: int) -> Iterator[Frames]:
    """All frames; CaptureError where the file is damaged. Each section is a stretch of its own."""
    blocks = _Blocks(data)
    while blocks.position < len(data) and blocks.problem is None:
        start = blocks.position
        if bytes(data[start : start + 4]) == PCAPNG_MAGIC:
            blocks.begin_section()
        frames = blocks.walk(start + stretch_bytes)
        if len(frames):
            yield frames
    if blocks.problem is not None:
        raise blocks.problem
