"""An answer that comes in pieces, as a file that others can read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

_BUFFER_BYTES: Final = 1 << 20


def as_file(pieces: Iterator[bytes]) -> io.BufferedReader:
    """Never more than a piece and a buffer is held."""
    return io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES)


class _Pieces(io.RawIOBase):
    """Gives as much of a piece as is wanted, then the next one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
