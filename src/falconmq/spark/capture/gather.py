"""Bytes from many places of a buffer as one Arrow array, and texts made once for each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from falconmq.spark.capture.views import Ints, Numbers

_TEXT: Final = pa.string()
_INLINE: Final = 12  # bytes that a view holds itself


def gather(data: bytes, starts: Ints, sizes: Ints) -> pa.Array:
    """The bytes at these places, as an array of binary.

    Arrow gathers quickly when it is given views: of each, its size, its first four bytes and where
    it is; short ones lie in the view itself.
    """
    source = np.frombuffer(data, np.uint8)
    end = len(source) - 1
    views = np.zeros((len(starts), 4), np.int32)
    views[:, 0], views[:, 3] = sizes, starts
    heads = source[np.minimum(starts[:, None] + np.arange(4), end)]
    views[:, 1] = np.ascontiguousarray(heads).view(np.int32).ravel()
    short = np.flatnonzero(sizes <= _INLINE)
    if len(short):
        inline = source[np.minimum(starts[short][:, None] + np.arange(_INLINE), end)]
        inline[np.arange(_INLINE)[None] >= sizes[short][:, None]] = 0
        views[short, 1:] = np.ascontiguousarray(inline).view(np.int32)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary_view(), len(starts), buffers).cast(pa.binary())


def fixed(source: Numbers, starts: Ints, size: int) -> pa.Array:
    """The same where all have one size."""
    rows = source[starts[:, None] + np.arange(size)]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(pa.binary(size), len(starts), buffers)


def taken(
    values: pa.Array, make: Callable[[bytes], str | bool | None], kind: pa.DataType = _TEXT
) -> pa.Array:
    """What `make` makes of each value, made once for each different one."""
    encoded = values.dictionary_encode()
    made = [make(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(made, kind).take(encoded.indices)
