"""What stands before the packets in records of the store, read of many records at once.

A record is a head, the path of the application's dead-letter queue, and the packet. Heads and paths
become the columns that a packet does not know; what they mean is said in `manager.record` and in
`embedded.messages.from_position`, and must be the same here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from falconmq.client.packet_columns import Packed, packed, packets_to_batch
from falconmq.client.packet_columns.buffers import Bools, Int64s, fixed, variable
from falconmq.client.packet_columns.buffers import Rows as Heads
from falconmq.client.packet_columns.texts import constant, each_once
from falconmq.errors import WireError
from falconmq.manager.record import ALLOW_PEEK_WHEN_LOCKED, VERSION, StoredMessage
from falconmq.message import AuthenticationLevel, MessageClass
from falconmq.service.requests.records import Rows
from falconmq.wire.base_header import INTERNAL, SIGNATURE
from falconmq.wire.base_header import VERSION as PACKET_VERSION

_HEAD: Final = np.dtype(
    [
        ("version", "u1"),
        ("flags", "u1"),
        ("authentication_level", "u1"),
        ("dead_letter_reason", "u1"),
        ("abort_count", "<u2"),
        ("move_count", "<u2"),
        ("arrival_time_ms", "<u8"),
        ("arrival_number", "<u8"),
        ("dead_letter_queue_size", "<u2"),
    ]
)
_PACKET_MIN: Final = 64  # BaseHeader and UserHeader: less is no user message
_PACKET_BEGIN: Final = np.dtype(
    [("version", "u1"), ("reserved", "u1"), ("flags", "<u2"), ("signature", "<u4")]
)
_CLASSES: Final = {int(member): member.name for member in MessageClass}
_LEVELS: Final = {int(member): member.name for member in AuthenticationLevel}


def records_to_batch(
    rows: Rows,
    queue: str,
    locked: Sequence[bool] | None,
    columns: Sequence[str] | None,
) -> pa.RecordBatch:
    """See `record_columns.records_to_batch`."""
    if not rows:
        return packets_to_batch(packed([]), {}, columns)
    whole = Packed(rows.data, np.array(rows.starts, np.int64), np.array(rows.sizes, np.int64))
    heads = _heads(rows, whole)
    path_sizes = heads["dead_letter_queue_size"].astype(np.int64)
    begin = _HEAD.itemsize + path_sizes
    packets = Packed(whole.data, whole.starts + begin, whole.lengths - begin)
    _check_packets(rows, packets)
    beside = {
        "lookup_id": np.array(rows.lookup_ids, np.int64),
        "arrival_number": heads["arrival_number"].astype(np.int64),
        "queue": constant(queue, pa.string(), len(rows)),
        "arrived_at": heads["arrival_time_ms"].astype(np.int64) * 1000,
        "dead_letter_queue": _paths(whole, path_sizes),
        "allow_peek_when_locked": heads["flags"] & ALLOW_PEEK_WHEN_LOCKED != 0,
        "authentication_level": each_once(pa.array(heads["authentication_level"]), _level),
        "authenticated": heads["authentication_level"] != AuthenticationLevel.NONE,
        "abort_count": heads["abort_count"].astype(np.int32),
        "move_count": heads["move_count"].astype(np.int32),
    }
    if locked is not None:
        beside["locked"] = locked
    if heads["dead_letter_reason"].any():
        beside["message_class"] = _reasons(rows, heads["dead_letter_reason"])
    return packets_to_batch(packets, beside, columns)


def _heads(rows: Rows, whole: Packed) -> Heads:
    """The heads of all records; those of other versions, and cut ones, are refused."""
    _check(rows, whole.lengths >= _HEAD.itemsize)
    heads = fixed(whole.data, whole.starts, _HEAD)
    _check(rows, heads["version"] == VERSION)
    return heads


def _check_packets(rows: Rows, packets: Packed) -> None:
    _check(rows, packets.lengths >= _PACKET_MIN)
    begins = fixed(packets.data, packets.starts, _PACKET_BEGIN)
    _check(
        rows,
        (begins["version"] == PACKET_VERSION)
        & (begins["signature"] == SIGNATURE)
        & (begins["flags"] & INTERNAL == 0),
    )


def _check(rows: Rows, is_right: Bools) -> None:
    """Raise what decoding the first wrong record raises."""
    if is_right.all():
        return
    for row in range(len(rows)):
        try:
            StoredMessage.decode(rows.record(row))
        except WireError as error:
            error.args = (f"row {row}: {error}",)
            raise


def _paths(whole: Packed, sizes: Int64s) -> pa.StringArray:
    if not sizes.any():
        return constant("", pa.string(), len(sizes))
    return each_once(variable(whole.data, whole.starts + _HEAD.itemsize, sizes), _path)


def _path(path: bytes) -> str:
    return path.decode("utf-8", "replace")


def _level(level: int) -> str:
    return _LEVELS.get(level) or str(level)


def _reasons(rows: Rows, short: Heads) -> pa.StringArray:
    """The class that says why a message died; null where the packet's own class stands.

    A record has the reason in one byte. One record of each kind is decoded: it knows what it means.
    """
    names: dict[int, str | None] = {}
    for number, row in zip(*np.unique(short, return_index=True), strict=True):
        reason = StoredMessage.decode(rows.record(row)).dead_letter_reason
        names[int(number)] = (_CLASSES.get(reason) or str(reason)) if reason else None
    return each_once(pa.array(short), names.__getitem__)
