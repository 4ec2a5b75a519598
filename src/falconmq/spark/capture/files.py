"""Capture files to the places of their frames, many frames at a time.

The file is mapped, not read. One short loop steps from frame to frame and notes where each begins;
all the rest (sizes, times, interfaces) is read off with numpy for a whole stretch of the file. A
stretch ends at a frame's end, so each is complete in itself, and what is held in memory stays small
however large the file. A damaged file gives every frame before the damage, then the same error as
`falconmq.capture.pcap`.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from falconmq.capture.pcap import FRAME_SIZE_MAX, CaptureError
from falconmq.spark.capture.views import Ints, ints, numbers_at

STRETCH_BYTES: Final = 64 * 1024 * 1024
NO_TIME: Final = np.iinfo(np.int64).min  # the file does not say when (Simple Packet Block)
PCAPNG_MAGIC: Final = b"\x0a\x0d\x0d\x0a"

_FILE_HEADER: Final = 24
_RECORD_HEADER: Final = 16
_PCAP_MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}


class Frames(NamedTuple):
    """A stretch of a capture."""

    first: int  # number of its first frame; the others follow
    data: memoryview  # the whole file
    starts: Ints  # where the bytes of each frame begin in it
    sizes: Ints  # how many there are; perhaps fewer than went over the wire
    times: Ints  # nanoseconds since 1970, or NO_TIME
    links: Ints  # LINKTYPE_...

    def __len__(self) -> int:
        return len(self.starts)


@contextlib.contextmanager
def mapped(path: Path | str) -> Iterator[memoryview]:
    """The bytes of a file, without reading them."""
    with Path(path).open("rb") as file:
        if not file.seek(0, 2):
            yield memoryview(b"")  # an empty file cannot be mapped
            return
        # Arrays made from it may live a little longer, so it is not closed here but when the last
        # of them is gone.
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def read_frames(data: memoryview, stretch_bytes: int = STRETCH_BYTES) -> Iterator[Frames]:
    """All frames of a capture, stretch by stretch; CaptureError where it is damaged."""
    # pcapng needs this module's words for frames and errors, so it is imported only here.
    from falconmq.spark.capture.pcapng import read_pcapng  # noqa: PLC0415

    magic = bytes(data[:4])
    if magic == PCAPNG_MAGIC:
        return read_pcapng(data, stretch_bytes)
    if magic in _PCAP_MAGICS:
        return _read_pcap(data, stretch_bytes, *_PCAP_MAGICS[magic])
    raise CaptureError(
        f"no capture file: it begins with {magic.hex(' ') or 'nothing'}",
        hint="pcap and pcapng can be read; to convert others: editcap -F pcapng IN OUT",
    )


def _read_pcap(
    data: memoryview, stretch_bytes: int, order: str, fraction_ns: int
) -> Iterator[Frames]:
    if len(data) < _FILE_HEADER:
        raise cut_short("the file header")
    link_type = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF  # above: size of the FCS
    number, position = 1, _FILE_HEADER
    problem: CaptureError | None = None
    while position < len(data) and problem is None:
        heads, position, problem = _walk(data, position, stretch_bytes, order, number)
        places = ints(heads)
        words = numbers_at(data, order + "u4")
        times = words[places].astype(np.int64) * 10**9
        times += words[places + 4].astype(np.int64) * fraction_ns
        sizes = words[places + 8].astype(np.int64)
        links = np.full(len(places), link_type, np.int64)
        yield Frames(number, data, places + _RECORD_HEADER, sizes, times, links)
        number += len(places)
    if problem is not None:
        raise problem


def _walk(
    data: memoryview, position: int, stretch_bytes: int, order: str, number: int
) -> tuple[list[int], int, CaptureError | None]:
    """Where frames begin, up to the end of the stretch or to the damage."""
    size_at = struct.Struct(order + "8xI").unpack_from
    heads: list[int] = []
    note = heads.append
    end, stop = len(data), position + stretch_bytes
    while position < end and position < stop:
        if position + _RECORD_HEADER > end:
            return heads, position, cut_short(f"the header of frame {number + len(heads)}")
        size: int = size_at(data, position)[0]
        following = position + _RECORD_HEADER + size
        if following > end or size > FRAME_SIZE_MAX:
            frame = f"frame {number + len(heads)}"
            if size > FRAME_SIZE_MAX:
                return heads, position, damaged(f"{frame} claims {size} bytes")
            return heads, position, cut_short(frame)
        note(position)
        position = following
    return heads, position, None


def cut_short(what: str) -> CaptureError:
    return CaptureError(
        f"the capture ends in the middle of {what}",
        hint="it was cut off or is still being written; what came before is shown",
    )


def damaged(problem: str) -> CaptureError:
    return CaptureError(
        f"the capture is damaged: {problem}", hint="what came before is shown, the rest is not"
    )
