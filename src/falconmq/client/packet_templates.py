"""Templates of packets: one for each combination of the columns that decide how a packet is built.

See `packet_building` for what they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.client.arrow import table_to_messages
from falconmq.client.columns import BODY
from falconmq.client.packet_columns.buffers import Int64s, Rows, check_reach
from falconmq.client.packet_columns.texts import each_once
from falconmq.message import Message, MessageId
from falconmq.wire.packet import decode_packet
from falconmq.wire.user_message import UserMessage

_SHARE_MIN: Final = 4  # rows a template; with fewer it is no gain
_GUID_END: Final = len("{00000000-0000-0000-0000-000000000000}\\")
_ORDINAL_MAX: Final = 0xFFFFFFFF
_ORDINAL_DIGITS: Final = 10
_CORRELATION_ID: Final = np.dtype([("guid", "V16"), ("ordinal", "<u4")])


class Unusual(Exception):  # noqa: N818  # nothing is wrong
    """A batch that is not for this way."""


class Templates(NamedTuple):
    """What stands before the label of each row, and what behind its body."""

    heads: pa.BinaryArray
    tails: pa.BinaryArray


def make_templates(
    columns: Mapping[str, pa.Array], count: int, build: Callable[[Message], bytes]
) -> Templates:
    """The template of every row; `columns` are those that all rows of a template share."""
    _, firsts, codes = np.unique(
        _combinations(columns, count), return_index=True, return_inverse=True
    )
    if len(firsts) > 1 and len(firsts) * _SHARE_MIN > count:
        raise Unusual
    rows = pa.array(firsts)
    one_each = {name: column.take(rows) for name, column in columns.items()}
    one_each[BODY] = pa.array([b""] * len(firsts), pa.binary())
    packets = [build(message) for message in table_to_messages(pa.record_batch(one_each))]
    tails = [packet[len(packet) - _tail_size(packet) :] for packet in packets]
    heads = [packet[: len(packet) - len(tail)] for packet, tail in zip(packets, tails, strict=True)]
    return Templates(_taken(heads, codes), _taken(tails, codes))


def _taken(pieces: list[bytes], codes: Int64s) -> pa.BinaryArray:
    check_reach(int(np.array([len(piece) for piece in pieces])[codes].sum()))
    return pa.array(pieces, pa.binary()).take(pa.array(codes))


def _tail_size(packet: bytes) -> int:
    """Bytes behind the properties of a packet that has no label, extension or body."""
    decoded = decode_packet(packet)
    assert isinstance(decoded, UserMessage)
    behind = decoded.debug, decoded.soap, decoded.multi_queue_format
    return sum(len(header.encode()) for header in behind if header is not None)


def _combinations(columns: Mapping[str, pa.Array], count: int) -> Int64s:
    """A number for each row; rows in which all columns are the same have the same."""
    numbers = np.zeros(count, np.int64)
    for column in columns.values():
        for key in _keys(column):
            encoded = key.dictionary_encode(null_encoding="encode")
            if len(encoded.dictionary) > 1:
                numbers = numbers * len(encoded.dictionary) + encoded.indices.to_numpy()
                _, numbers = np.unique(numbers, return_inverse=True)  # so that they stay small
    return numbers


def _keys(column: pa.Array) -> Iterator[pa.Array]:
    """Columns that differ where this one does. A list: its length, and its texts in one.

    Different lists of the same length give the same text only if one holds a NUL, and such a list
    is refused when it is the template, so its row is found in any case.
    """
    if pa.types.is_list(column.type):
        yield pc.list_value_length(column)
        yield pc.binary_join(column, "\0")
    else:
        yield column


def correlations(texts: pa.StringArray) -> Rows:
    r"""Texts like `{GUID}\number` as 20 bytes each, of which a null has none but zeros."""
    is_there = texts.is_valid().to_numpy(zero_copy_only=False)
    given = texts.drop_null()
    if not pc.all(pc.string_is_ascii(given)).as_py():
        raise Unusual
    octets = given.cast(pa.binary())
    # One more than there may be: an end must be said, and a number that is too long is seen.
    digits = pc.binary_slice(octets, _GUID_END, _GUID_END + _ORDINAL_DIGITS + 1).cast(pa.string())
    is_number = pc.and_(
        pc.ascii_is_decimal(digits), pc.less_equal(pc.binary_length(digits), _ORDINAL_DIGITS)
    )
    if not pc.all(is_number).as_py():
        raise Unusual
    ordinals = digits.cast(pa.int64()).to_numpy()
    if ordinals.max() > _ORDINAL_MAX:
        raise Unusual
    found = np.zeros(len(texts), _CORRELATION_ID)
    guids = each_once(pc.binary_slice(octets, 0, _GUID_END), _guid, pa.binary(16))
    found["guid"][is_there] = np.frombuffer(guids.buffers()[1], "V16")[: len(guids)]
    found["ordinal"][is_there] = ordinals
    return found.view("V20")


def _guid(beginning: bytes) -> bytes:
    return MessageId.parse(f"{beginning.decode()}0")[:16]
