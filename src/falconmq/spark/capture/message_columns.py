"""The columns of messages whose headers have been found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.spark.capture import facts
from falconmq.spark.capture.gather import fixed, gather, taken
from falconmq.spark.capture.packed import PackedPackets, Shape, session_columns
from falconmq.spark.capture.tables import array
from falconmq.spark.capture.views import Flags, Ints, Numbers
from falconmq.wire import (
    base_header,
    user_header,
)
from falconmq.wire.inspection import destination_text
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import (
    BODY_SIZE,
    FINAL_ACK_CLASS_MIN,
    LABEL,
    ORDER_QUEUE,
    ORDER_QUEUE_IDENTIFIER,
)
from falconmq.wire.queue_name import DIRECT, PUBLIC, QueueName
from falconmq.wire.reader import decode_utf16
from falconmq.wire.user_header import UserHeader

_GUID_SIZE: Final = 16
_USER: Final = base_header.SIZE  # where the UserHeader begins
_NEVER_PREVIOUS: Final = 0xFFFFFFFF


@dataclass(slots=True)
class Cursors:
    """User messages on the way: where each stands, and what was found so far."""

    rows: Ints
    starts: Ints
    ends: Ints  # where PacketSize ends
    flags: Ints  # of the UserHeader
    places: Ints
    destinations: Ints
    transactions: Ints
    properties: Ints

    def keep(self, plain: Flags) -> None:
        """Drop the others."""
        if not plain.all():
            for name in self.__slots__:
                setattr(self, name, getattr(self, name)[plain])

    def move(self, sizes: Ints | int) -> None:
        self.places = self.places + sizes

    def keep_inside(self, ahead: int = 0) -> None:
        """Drop those that have no `ahead` bytes before their end."""
        self.keep(self.places + ahead <= self.ends)


def columns_of(
    packets: PackedPackets, cursors: Cursors, labels: pa.Array, bodies: Ints, body_sizes: Ints
) -> Shape:
    starts, places, flags = cursors.starts, cursors.properties, cursors.flags
    base_flags = packets.word(starts + 2)
    classes = packets.word(places + 2)
    queues, is_order_queue = _destinations(packets, cursors)
    is_transactional = flags & user_header.TRANSACTION_HEADER != 0
    priorities = np.where(is_transactional, 0, base_flags & base_header.PRIORITY)
    modes = (flags & user_header.DELIVERY_MODE) >> user_header.DELIVERY_MODE_SHIFT
    is_ordering = np.asarray(pc.equal(labels, LABEL)) & (body_sizes == BODY_SIZE) & is_order_queue
    is_ordering &= (classes == MessageClass.ORDER_ACK) | (classes >= FINAL_ACK_CLASS_MIN)
    columns = {
        "message_id": _ids(packets, starts + _USER, starts + _USER + 40),
        "message_class": _named(classes, facts.class_name),
        "priority": array("priority", priorities),
        "delivery": _named(modes, facts.delivery_name),
        "label": labels,
        "queue": queues,
        "body_size": array("body_size", body_sizes),
        "body_type": array("body_type", packets.double(places + 24)),
        "correlation_id": _correlations(packets, places + 4),
        "sent_at": array("sent_at", packets.double(starts + _USER + 36) * 1_000_000),
        "time_to_reach_queue": array("time_to_reach_queue", packets.double(starts + 12)),
        "time_to_be_received": array("time_to_be_received", packets.double(starts + _USER + 32)),
        "hop_count": array("hop_count", flags & user_header.HOP_COUNT),
        "is_traced": array("is_traced", base_flags & base_header.TRACE != 0),
        **_sequence_columns(packets, cursors, is_transactional),
        **_optional_session(packets, cursors, base_flags),
    }
    about, is_sound = _about(packets, is_ordering, classes, bodies)
    if is_sound.all():
        return Shape(cursors.rows, columns | about)
    chosen = pa.array(is_sound)
    return Shape(
        cursors.rows[is_sound],
        {name: column.filter(chosen) for name, column in (columns | about).items()},
    )


def _ids(packets: PackedPackets, managers: Ints, numbers: Ints) -> pa.Array:
    prefixes = taken(fixed(packets.u1, managers, 16), facts.id_prefix)
    texts = pa.array(packets.double(numbers)).cast(pa.string())
    return pc.binary_join_element_wise(prefixes, texts, "")


def _correlations(packets: PackedPackets, places: Ints) -> pa.Array:
    """Answers name many different messages, others none: only the former cost anything."""
    halves = packets.quad(places), packets.quad(places + 8)
    there = (halves[0] != 0) | (halves[1] != 0) | (packets.double(places + 16) != 0)
    if not there.any():
        return pa.nulls(len(places), pa.string())
    texts = _ids(packets, places, places + 16)
    return pc.if_else(pa.array(there), texts, pa.scalar(None, pa.string()))


def _named(numbers: Ints, name: Callable[[int], str]) -> pa.Array:
    distinct, inverse = np.unique(numbers, return_inverse=True)
    texts = pa.array([name(number) for number in distinct.tolist()], pa.string())
    return texts.take(pa.array(inverse))


def _masked(column: str, values: Numbers, there: Flags) -> pa.Array:
    return pa.array(values, array(column, []).type, mask=~there)


def _sequence_columns(
    packets: PackedPackets, cursors: Cursors, there: Flags
) -> dict[str, pa.Array]:
    places = np.where(there, cursors.transactions, cursors.starts)
    sequence = pa.array(packets.quad(places + 4), mask=~there).cast(pa.string())
    return {
        "sequence_id": sequence,
        "sequence_number": _masked("sequence_number", packets.double(places + 12), there),
        "previous_number": _masked("previous_number", packets.double(places + 16), there),
    }


def _optional_session(
    packets: PackedPackets, cursors: Cursors, base_flags: Ints
) -> dict[str, pa.Array]:
    there = base_flags & base_header.SESSION_HEADER != 0
    places = np.where(there, cursors.ends, cursors.starts)
    columns = session_columns(packets, places)
    if there.all():
        return columns
    absent = pa.array(there)
    return {
        name: pc.if_else(absent, column, pa.scalar(None, column.type))
        for name, column in columns.items()
    }


def _destinations(packets: PackedPackets, cursors: Cursors) -> tuple[pa.Array, Flags]:
    """Format names, and which of them are order queues; few are different."""
    kinds = cursors.flags >> user_header.DESTINATION_QUEUE_TYPE_SHIFT & 7
    is_direct = kinds == DIRECT
    counts = np.where(is_direct, packets.word(cursors.destinations), 2)
    direct = gather(packets.data, cursors.destinations + 2, counts - 2)
    names = taken(direct, lambda name: _destination(DIRECT, decode_utf16(name), b""))
    is_order = taken(direct, _is_order_name, pa.bool_())
    if is_direct.all():
        return names, np.asarray(is_order)
    others = np.flatnonzero(~is_direct)
    keys = _other_keys(packets, cursors, kinds, others)
    texts, orders = taken(keys, _other_text), taken(keys, _is_order_identifier, pa.bool_())
    mask = pa.array(~is_direct)
    queues = pc.replace_with_mask(names, mask, texts)
    return queues, np.asarray(pc.replace_with_mask(is_order, mask, orders))


def _other_keys(packets: PackedPackets, cursors: Cursors, kinds: Ints, rows: Ints) -> pa.Array:
    """What tells names that are not direct apart: type, QueueManagerAddress, name."""
    size = 4 + 16 + 16
    keys = np.zeros((len(rows), size), np.uint8)
    keys[:, 0] = kinds[rows]
    keys[:, 4:20] = packets.u1[(cursors.starts[rows] + _USER + 16)[:, None] + np.arange(16)]
    names = packets.u1[cursors.destinations[rows][:, None] + np.arange(16)]
    used = np.where(kinds[rows] == PUBLIC, _GUID_SIZE, np.where(kinds[rows], 4, 0))
    keys[:, 20:] = np.where(np.arange(16)[None] < used[:, None], names, 0)
    return pa.Array.from_buffers(pa.binary(size), len(rows), [None, pa.py_buffer(keys.tobytes())])


def _other_text(key: bytes) -> str:
    return _destination(key[0], _other_name(key), key[4:20])


def _other_name(key: bytes) -> QueueName:
    if not key[0]:
        return None
    return key[20:36] if key[0] == PUBLIC else int.from_bytes(key[20:24], "little")


def _is_order_identifier(key: bytes) -> bool:
    return _other_name(key) == ORDER_QUEUE_IDENTIFIER


def _destination(kind: int, name: QueueName, manager: bytes) -> str:
    flags = kind << user_header.DESTINATION_QUEUE_TYPE_SHIFT
    return facts.clean(destination_text(UserHeader(b"", manager, 0, 0, 0, flags, name)))


def _is_order_name(name: bytes) -> bool:
    return decode_utf16(name).lower().endswith(ORDER_QUEUE.lower())


def _about(
    packets: PackedPackets, is_ordering: Flags, classes: Ints, bodies: Ints
) -> tuple[dict[str, pa.Array], Flags]:
    """What ordering acknowledgements say, and which rows are sound (all others are)."""
    count = len(bodies)
    if not is_ordering.any():
        return {"kind": pa.repeat("UserMessage", count)}, np.ones(count, np.bool_)
    is_final = is_ordering & (classes != MessageClass.ORDER_ACK)
    places = np.where(is_ordering, bodies, 0)
    numbers = packets.double(places + 8)
    previous = packets.double(places + 12)
    is_sound = ~is_ordering | ((numbers != 0) & (previous != _NEVER_PREVIOUS))
    kinds = pa.array(["UserMessage", "OrderAck", "FinalAck"])
    ids = _ids(packets, places + 16, places + 32)
    return {
        "kind": kinds.take(pa.array(is_ordering.astype(np.int64) + is_final)),
        "about_sequence_id": pa.array(packets.quad(places), mask=~is_ordering).cast(pa.string()),
        "about_sequence_number": _masked("about_sequence_number", numbers, is_ordering),
        "about_message_id": pc.if_else(pa.array(is_final), ids, pa.scalar(None, pa.string())),
    }, is_sound
