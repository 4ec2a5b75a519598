"""Texts of many packets: each different one is made once, and then repeated where it belongs.

Messages of one queue say mostly the same: one destination, a few senders, a few classes. So Arrow
first finds the different values (`dictionary_encode`), Python makes the text of each, and Arrow
puts the texts in their places (`take`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.client.arrow import array_of
from falconmq.client.packet_columns.buffers import Bools, Rows, check_reach, variable
from falconmq.client.packet_columns.shape import Piece
from falconmq.wire.reader import Buffer, decode_utf16

STRING: Final = pa.string()
_SURROGATES: Final = 0xD800
_SURROGATES_END: Final = 0xE000


def constant(value: Any, type_: Any, count: int) -> pa.Array:
    """The same value in every row."""
    return _repeated(array_of([value], type_), count)


def each_once(keys: pa.Array, text: Callable[[Any], Any], type_: Any = STRING) -> pa.Array:
    """What `text` makes of every key, called once for each different one."""
    encoded = keys.dictionary_encode()
    texts = array_of([text(key) for key in encoded.dictionary.to_pylist()], type_)
    if len(texts) == 1:
        return _repeated(texts, len(keys))
    return texts.take(encoded.indices)


def blocks(rows: Rows) -> pa.FixedSizeBinaryArray:
    """Rows of plain bytes as an Arrow array: the keys of `each_once`."""
    kept = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(
        pa.binary(kept.dtype.itemsize), len(kept), [None, pa.py_buffer(kept)]
    )


def guid_text(guid: bytes) -> str:
    return str(UUID(bytes_le=guid))


def message_ids(sources: Rows, ordinals: npt.NDArray[np.uint32]) -> pa.StringArray:
    r"""`{GUID}\number` of each."""
    prefixes = each_once(blocks(sources), lambda guid: f"{{{guid_text(guid).upper()}}}\\")
    return pc.binary_join_element_wise(prefixes, pa.array(ordinals).cast(STRING), "")


def utf16_texts(data: Buffer, piece: Piece) -> pa.StringArray:
    """UTF-16 as UTF-8. Half a character, which UTF-8 cannot hold, is replaced."""
    if not piece.sizes.any():
        return constant("", STRING, len(piece.sizes))
    found = variable(data, *piece)
    _, ends, text = found.buffers()
    offsets = np.frombuffer(ends, np.int32)[: len(found) + 1] // 2
    units = np.frombuffer(text, "<u2")[: offsets[-1]]
    if (units < 0x80).all():
        return _strings(offsets, units.astype(np.uint8))
    if ((units >= _SURROGATES) & (units < _SURROGATES_END)).any():
        return each_once(found, decode_utf16)
    # How many bytes each unit has in UTF-8 tells where each text begins there.
    sizes = 1 + (units >= 0x80).astype(np.int32) + (units >= 0x800)
    places = np.zeros(len(units) + 1, np.int64)
    np.cumsum(sizes, out=places[1:])
    check_reach(int(places[-1]))
    return _strings(places[offsets].astype(np.int32), decode_utf16(units.tobytes()).encode())


def to_utf16(texts: pa.StringArray) -> pa.BinaryArray:
    """Texts without nulls in UTF-16, with no NUL behind them."""
    _, ends, text = texts.buffers()
    offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    octets = np.frombuffer(b"" if text is None else text, np.uint8)[first:last]
    if (octets < 0x80).all():
        units = octets.astype("<u2").tobytes()
        found = (offsets - first).astype(np.int64) * 2
    else:
        # A character is one unit, and two if it has four bytes; only its first byte counts.
        sizes = 2 * ((octets & 0xC0) != 0x80).astype(np.int64) + 2 * (octets >= 0xF0)
        places = np.zeros(len(octets) + 1, np.int64)
        np.cumsum(sizes, out=places[1:])
        units = octets.tobytes().decode().encode("utf-16-le")
        found = places[offsets - first]
    check_reach(len(units))
    return pa.Array.from_buffers(
        pa.binary(), len(texts), [None, pa.py_buffer(found.astype(np.int32)), pa.py_buffer(units)]
    )


def placed(parts: list[tuple[Bools, pa.Array]], count: int) -> pa.Array:
    """One array of several: each has the rows of its mask, and every row is in one mask."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.empty(count, np.int64)
    behind = 0
    for mask, values in parts:
        order[mask] = np.arange(behind, behind + len(values))
        behind += len(values)
    return pa.concat_arrays([values for _, values in parts]).take(pa.array(order))


def _repeated(value: pa.Array, count: int) -> pa.Array:
    """An array of one value, many times."""
    if pa.types.is_list(value.type):  # `repeat` would append the lists one by one
        return value.take(pa.array(np.zeros(count, np.int32)))
    return pa.repeat(value[0], count)


def _strings(offsets: npt.NDArray[np.int32], text: Buffer | npt.NDArray[np.uint8]) -> pa.Array:
    return pa.Array.from_buffers(
        STRING, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
