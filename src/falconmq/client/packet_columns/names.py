"""Queue names of many packets as format names (MQQB 3.1.7.15).

A name that is no direct one comes down to a kind, a GUID and a number: these 21 bytes are the key
by which different names are found. A private queue takes its GUID from the queue manager that the
type of its name points to.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from falconmq.client.packet_columns.buffers import Bools, Int64s, Rows, fixed, variable
from falconmq.client.packet_columns.shape import Names, Piece, Shape
from falconmq.client.packet_columns.texts import blocks, constant, each_once, placed
from falconmq.names import PrivateFormatName, PublicFormatName
from falconmq.wire.guid import guid_value
from falconmq.wire.queue_name import (
    ADMIN_QUEUE,
    DIRECT,
    NONE,
    PRIVATE,
    PRIVATE_ON_ADMIN,
    PRIVATE_ON_DESTINATION,
    PRIVATE_ON_SOURCE,
    PUBLIC,
)
from falconmq.wire.reader import decode_utf16

_PLACED: Final = np.dtype([("guid", "V16"), ("number", "<u4")])  # PrivateQueueFormatName
_NUMBER: Final = np.dtype("<u4")  # PrivateQueueFormatNameId
_KEY: Final = np.dtype([("kind", "u1"), ("guid", "V16"), ("number", "<u4")])
_NUMBERED: Final = (PRIVATE_ON_SOURCE, PRIVATE_ON_DESTINATION, PRIVATE_ON_ADMIN)


def destination_names(shape: Shape) -> pa.StringArray:
    return _texts(shape, shape.destination)


def admin_names(shape: Shape) -> pa.StringArray:
    return _texts(shape, shape.admin)


def response_names(shape: Shape) -> pa.StringArray:
    """The response queue; where the packet says so, it is the administration queue."""
    response, admin = shape.response, shape.admin
    is_admin = response.types == ADMIN_QUEUE
    if is_admin.any():
        response = Names(
            np.where(is_admin, admin.types, response.types),
            np.where(is_admin, admin.at, response.at),
            Piece(
                np.where(is_admin, admin.text.at, response.text.at),
                np.where(is_admin, admin.text.sizes, response.text.sizes),
            ),
        )
    return _texts(shape, response)


def _texts(shape: Shape, names: Names) -> pa.StringArray:
    count = len(names.types)
    is_direct = names.types == DIRECT
    if not names.types.any():
        return constant(None, pa.string(), count)
    parts = []
    if is_direct.any():
        at, sizes = names.text
        texts = variable(shape.packets.data, at[is_direct], sizes[is_direct])
        parts.append((is_direct, each_once(texts, _direct_text)))
    if not is_direct.all():
        keys = _keys(shape, names, np.flatnonzero(~is_direct))
        parts.append((~is_direct, each_once(blocks(keys.view(f"V{_KEY.itemsize}")), _key_text)))
    return placed(parts, count)


def _direct_text(text: bytes) -> str:
    return f"DIRECT={decode_utf16(text)}"


def _key_text(key: bytes) -> str | None:
    kind, guid, number = key[0], key[1:17], int.from_bytes(key[17:], "little")
    if kind == NONE:
        return None
    if kind == PUBLIC:
        return str(PublicFormatName(guid_value(guid)))
    return str(PrivateFormatName(guid_value(guid), number))


def _keys(shape: Shape, names: Names, rows: Int64s) -> Rows:
    """The keys of some packets, whose names are not direct."""
    data, types, at = shape.packets.data, names.types[rows], names.at[rows]
    keys = np.zeros(len(rows), _KEY)
    keys["kind"] = np.where((types == NONE) | (types == PUBLIC), types, PRIVATE)
    # Behind any name stand the 56 bytes of properties, so that these 20 are there.
    placed_names = fixed(data, at, _PLACED)
    says_guid = (types == PUBLIC) | (types == PRIVATE)
    keys["guid"][says_guid] = placed_names["guid"][says_guid]
    keys["number"][types == PRIVATE] = placed_names["number"][types == PRIVATE]
    is_numbered = np.isin(types, _NUMBERED)
    keys["number"][is_numbered] = fixed(data, at, _NUMBER)[is_numbered]
    hosts = _hosts(shape, types, rows)
    keys["guid"][is_numbered] = hosts[is_numbered]
    return keys


def _hosts(shape: Shape, types: Int64s, rows: Int64s) -> Rows:
    """The queue managers that types point to; the null GUID where the packet does not say."""
    is_on_admin = types == PRIVATE_ON_ADMIN
    admin_types = shape.admin.types[rows]
    pointed = np.where(is_on_admin, admin_types, types)
    hosts = np.zeros(len(rows), "V16")
    head = shape.head[rows]
    _fill(hosts, pointed == PRIVATE_ON_SOURCE, head["source_queue_manager"])
    _fill(hosts, pointed == PRIVATE_ON_DESTINATION, head["queue_manager_address"])
    is_placed = is_on_admin & (admin_types == PRIVATE)
    if is_placed.any():
        admin = fixed(shape.packets.data, shape.admin.at[rows], _PLACED)
        _fill(hosts, is_placed, admin["guid"])
    return hosts


def _fill(hosts: Rows, mask: Bools, guids: Rows) -> None:
    hosts[mask] = guids[mask]
