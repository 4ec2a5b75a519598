"""A little disk space kept aside, so that a full disk does not keep messages from leaving.

LMDB writes copies, so even a deletion needs some free pages. On a disk that is full to the last
block the first message of a queue could not be received, and nothing would ever get better. The
reserve is a file of zeros: when a commit that makes room finds none, the file goes, the commit is
tried once more, and the file takes what is left, before somebody else does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

RESERVE_FILE: Final = "reserve"
RESERVE_BYTES: Final = 4 << 20  # the list of a million freed pages needs two thirds of it
_SMALLEST_STEP: Final = 64 << 10


class Reserve:
    """The reserve of one directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESERVE_FILE
        self.size = 0

    @property
    def is_whole(self) -> bool:
        return self.size == RESERVE_BYTES

    def fill(self) -> None:
        """Take the space, or as much of it as there is."""
        step = RESERVE_BYTES - self.size
        while step >= _SMALLEST_STEP and not self.is_whole:
            step = min(step, RESERVE_BYTES - self.size)
            try:
                allocate(self._path, self.size, step)
                self.size += step
            except OSError:
                step //= 2

    def spend(self) -> None:
        """Give the space back to the file system."""
        self.size = 0
        self._path.unlink(missing_ok=True)


def allocate(path: Path, start: int, size: int) -> None:
    """Let a file have `size` bytes of the disk from `start`, not only of its length."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, start, size)
    finally:
        os.close(descriptor)
