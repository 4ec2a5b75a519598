"""Many packets inside one buffer, and how pieces of all of them are read at once.

Two ways to read, and neither has a loop in Python. `fixed` reads a piece of the same size out of
every packet, as rows of a numpy array. `variable` reads pieces of any size, as an Arrow array: it
tells Arrow where each begins and how long it is (a view), and Arrow copies them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from falconmq.errors import MqStatus, ResourceError
from falconmq.wire.reader import Buffer

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[Any]
"""Rows of a structured array: the same header of many packets."""

BYTES_MAX: Final = 0x7FFFFFFF  # what 32-bit offsets reach
_INLINE_MAX: Final = 12  # bytes; a shorter piece stands in the view itself


class Packed(NamedTuple):
    """Packets inside one buffer: where each begins, and how long it is."""

    data: Buffer
    starts: Int64s
    lengths: Int64s

    def take(self, rows: Int64s) -> Packed:
        """Some of the packets; the buffer stays the same."""
        return Packed(self.data, self.starts[rows], self.lengths[rows])


def packed(packets: Sequence[Buffer]) -> Packed:
    """The packets one behind the other."""
    lengths = np.fromiter(map(len, packets), np.int64, len(packets))
    starts = np.zeros(len(packets), np.int64)
    np.cumsum(lengths[:-1], out=starts[1:])
    return Packed(b"".join(packets), starts, lengths)


def packed_of(array: pa.BinaryArray) -> Packed:
    """The packets of a column, where they are; it must have no nulls."""
    assert array.null_count == 0, "a null is no packet"
    count = len(array)
    if not count:
        return packed([])
    _, offsets, data = array.buffers()
    numbers = np.frombuffer(offsets, np.int32)[array.offset : array.offset + count + 1]
    places = numbers.astype(np.int64)
    return Packed(memoryview(b"" if data is None else data), places[:-1], np.diff(places))


def check_reach(size: int) -> None:
    """Refuse more bytes than an array of Spark's types can hold."""
    if size > BYTES_MAX:
        raise ResourceError(
            f"{size} bytes in one batch, a column holds {BYTES_MAX}",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="make batches of fewer messages",
        )


def fixed(data: Buffer, at: Int64s, layout: np.dtype[Any]) -> Rows:
    """A row of `layout` from each place; whoever calls knows that all of them are inside."""
    # Plain bytes are copied as one block each; fields would be copied one by one.
    block = np.dtype((np.void, layout.itemsize))
    everywhere = np.ndarray(
        (len(data) - layout.itemsize + 1,), block, buffer=memoryview(data), strides=(1,)
    )
    return everywhere[at].view(layout)


def variable(data: Buffer, at: Int64s, sizes: Int64s) -> pa.BinaryArray:
    """The pieces of these sizes that begin at these places."""
    check_reach(len(data))
    # Length, 4 bytes that serve comparisons (nobody compares), number of the buffer, place in it.
    views = np.zeros((len(at), 4), np.int32)
    views[:, 0] = sizes
    views[:, 3] = at
    short = np.flatnonzero(sizes <= _INLINE_MAX)
    if short.size:
        views[short, 1:] = _inlined(data, at[short], sizes[short])
    whole = pa.Array.from_buffers(
        pa.binary_view(), len(at), [None, pa.py_buffer(views), pa.py_buffer(data)]
    )
    return whole.cast(pa.binary())


def _inlined(data: Buffer, at: Int64s, sizes: Int64s) -> npt.NDArray[np.int32]:
    """The bytes of short pieces as three numbers. What stands behind a piece is never looked at."""
    if not sizes.any():
        return np.zeros((len(at), 3), np.int32)
    places = np.minimum(at[:, None] + np.arange(_INLINE_MAX), len(data) - 1)
    inlined: npt.NDArray[np.int32] = np.frombuffer(data, np.uint8)[places].view(np.int32)
    return inlined
