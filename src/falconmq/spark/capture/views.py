"""Numbers at any place of a buffer, as arrays: `view[places]` reads all of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]


def numbers_at(data: memoryview, kind: str) -> Numbers:
    """An array whose element `i` is the number of this kind (`<u4`, `>u2`) that begins at byte `i`.

    Nothing is copied. Whoever asks has made sure that all bytes of the number are there.
    """
    size = np.dtype(kind).itemsize
    return np.ndarray(max(0, len(data) - size + 1), dtype=kind, buffer=data, strides=(1,))


def rows_at(data: memoryview, size: int) -> Numbers:
    """An array whose row `i` holds the `size` bytes that begin at byte `i`, as one value."""
    return np.ndarray(max(0, len(data) - size + 1), dtype=f"V{size}", buffer=data, strides=(1,))


def ints(values: object) -> Ints:
    return np.asarray(values, dtype=np.int64)
