"""One function for each column that packets know: what `Message` would say, for all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, IntFlag
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.client.arrow import schema
from falconmq.client.packet_columns import names
from falconmq.client.packet_columns.buffers import Bools, Rows, variable
from falconmq.client.packet_columns.shape import Optional, Piece, Shape
from falconmq.client.packet_columns.texts import (
    STRING,
    blocks,
    constant,
    each_once,
    guid_text,
    message_ids,
    utf16_texts,
)
from falconmq.message import (
    Acknowledge,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    MessageClass,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.wire.base_header import PRIORITY, TRACE
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.security_header import SENDER_ID_TYPE
from falconmq.wire.transaction_header import (
    FIRST_MESSAGE,
    LAST_MESSAGE,
    TRANSACTION_ID,
    TRANSACTION_ID_SHIFT,
)
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    HOP_COUNT,
    JOURNAL_NEGATIVE,
    JOURNAL_POSITIVE,
    TRANSACTION_HEADER,
)

Make = Callable[[Shape], Any]
"""Makes a column: an Arrow array of its type."""

_STRINGS: Final = pa.list_(pa.string())
_JOURNAL: Final = JOURNAL_NEGATIVE | JOURNAL_POSITIVE
_JOURNAL_SHIFT: Final = 8  # DEAD_LETTER is JN, JOURNAL is JP
_ACKNOWLEDGEMENTS: Final = 0x0F


# Numbers and choices


def _number(header: str, field: str) -> Make:
    return lambda shape: pa.array(getattr(shape, header)[field].astype(np.int64))


def _choice(choices: type[IntEnum], header: str, field: str) -> Make:
    """A choice by its name; a number that has none as text."""
    return lambda shape: _named(choices, getattr(shape, header)[field])


def _named(choices: type[IntEnum], numbers: Rows) -> Any:
    words = {int(member): member.name for member in choices}
    return each_once(pa.array(numbers), lambda number: words.get(number) or str(number))


def _flag_names(flags: type[IntFlag], numbers: Rows) -> Any:
    """Lists of the names of single bits."""
    single = [flag for flag in flags if flag.name is not None]
    return each_once(
        pa.array(numbers),
        lambda number: [str(flag.name) for flag in single if flag & number],
        _STRINGS,
    )


def _priority(shape: Shape) -> Any:
    said = shape.head["base_flags"] & PRIORITY
    in_transaction = shape.head["flags"] & TRANSACTION_HEADER != 0
    return pa.array(np.where(in_transaction, 0, said).astype(np.int32))  # DM-3.1.7.1.32-04


def _delivery(shape: Shape) -> Any:
    is_safe = shape.head["flags"] & DELIVERY_MODE != 0  # any bit asks for it: QB-3.1.7.15-33
    return _named(Delivery, np.where(is_safe, Delivery.RECOVERABLE, Delivery.EXPRESS))


def _sender_id_type(shape: Shape) -> Any:
    if shape.security is None:
        return constant(SenderIdType.NONE.name, STRING, len(shape.head))
    is_there, rows = shape.security.header
    return _named(SenderIdType, np.where(is_there, rows["flags"] & SENDER_ID_TYPE, 0))


# Texts and bytes


def _label(shape: Shape) -> Any:
    return utf16_texts(shape.packets.data, shape.label)


def _bytes(shape: Shape, piece: Piece) -> Any:
    if not piece.sizes.any():
        return constant(b"", pa.binary(), len(piece.sizes))
    return variable(shape.packets.data, *piece)


def _security_item(item: str) -> Make:
    def make(shape: Shape) -> Any:
        if shape.security is None:
            return constant(b"", pa.binary(), len(shape.head))
        return _bytes(shape, getattr(shape.security, item))

    return make


def _correlation_id(shape: Shape) -> Any:
    guids, ordinals = (
        np.ascontiguousarray(shape.properties[field])
        for field in ("correlation_guid", "correlation_ordinal")
    )
    halves = guids.view("<u8")
    if not halves.any() and not ordinals.any():
        return constant(None, STRING, len(guids))
    is_there = (halves[::2] != 0) | (halves[1::2] != 0) | (ordinals != 0)
    return _only(is_there, message_ids(guids, ordinals))


def _guid(header: str) -> Make:
    """The GUID of an optional part; null where it is not there."""

    def make(shape: Shape) -> Any:
        part: Optional | None = getattr(shape, header)
        if part is None:
            return constant(None, STRING, len(shape.head))
        return _only(part.is_there, each_once(blocks(part.rows), guid_text))

    return make


def _address(guid: bytes) -> str | None:
    return None if guid == NULL_GUID else guid_text(guid)


# The place in a transaction


def _place(field: str, convert: Callable[[Rows], Rows], type_: Any) -> Make:
    def make(shape: Shape) -> Any:
        if shape.transaction is None:
            return constant(None, type_, len(shape.head))
        is_there, rows = shape.transaction
        return pa.array(convert(rows[field]), mask=~is_there).cast(type_)

    return make


def _to_int64(numbers: Rows) -> Rows:
    return numbers.astype(np.int64)


def _transaction_id(flags: Rows) -> Rows:
    return _to_int64((flags & TRANSACTION_ID) >> TRANSACTION_ID_SHIFT)


# Helpers, and the list


def _flag(header: str, field: str, bit: int) -> Make:
    return lambda shape: pa.array(getattr(shape, header)[field] & bit != 0)


def _only(mask: Bools, values: Any) -> Any:
    return values if mask.all() else pc.if_else(pa.array(mask), values, None)


_MAKERS: Final[Mapping[str, Make]] = {
    "message_id": lambda shape: message_ids(
        shape.head["source_queue_manager"], shape.head["message_id"]
    ),
    "label": _label,
    "body": lambda shape: _bytes(shape, shape.body),
    "body_type": _number("properties", "body_type"),
    "application_tag": _number("properties", "application_tag"),
    "extension": lambda shape: _bytes(shape, shape.extension),
    "correlation_id": _correlation_id,
    "message_class": _choice(MessageClass, "properties", "message_class"),
    "priority": _priority,
    "delivery": _delivery,
    "time_to_reach_queue": _number("head", "time_to_reach_queue"),
    "time_to_be_received": _number("head", "time_to_be_received"),
    "acknowledgements": lambda shape: _flag_names(
        Acknowledge, shape.properties["flags"] & _ACKNOWLEDGEMENTS
    ),
    "journal": lambda shape: _flag_names(
        Journal, (shape.head["flags"] & _JOURNAL) >> _JOURNAL_SHIFT
    ),
    "destination": names.destination_names,
    "administration_queue": names.admin_names,
    "response_queue": names.response_names,
    "trace": _flag("head", "base_flags", TRACE),
    "report_queue": _guid("report_queue"),
    "connector_type": _guid("connector"),
    "privacy_level": _choice(PrivacyLevel, "properties", "privacy_level"),
    "encryption_algorithm": _choice(EncryptionAlgorithm, "properties", "encryption_algorithm"),
    "hash_algorithm": _choice(HashAlgorithm, "properties", "hash_algorithm"),
    "sender_id": _security_item("sender_id"),
    "sender_id_type": _sender_id_type,
    "sender_certificate": _security_item("sender_certificate"),
    "signature": _security_item("signature"),
    "symmetric_key": _security_item("symmetric_key"),
    "encrypted": lambda shape: pa.array(shape.properties["privacy_level"] != PrivacyLevel.NONE),
    "sent_at": lambda shape: pa.array(
        shape.head["sent_time"].astype(np.int64) * 1_000_000, pa.timestamp("us", "UTC")
    ),
    "source_queue_manager": lambda shape: each_once(
        blocks(shape.head["source_queue_manager"]), guid_text
    ),
    "destination_queue_manager": lambda shape: each_once(
        blocks(shape.head["queue_manager_address"]), _address
    ),
    "hop_count": lambda shape: pa.array((shape.head["flags"] & HOP_COUNT).astype(np.int32)),
    "transactional": _flag("head", "flags", TRANSACTION_HEADER),
    "transaction_id": _place("flags", _transaction_id, pa.int64()),
    "transaction_sequence_id": _place("tx_sequence_id", lambda numbers: numbers, STRING),
    "transaction_sequence_number": _place("tx_sequence_number", _to_int64, pa.int64()),
    "transaction_previous_number": _place("previous_tx_sequence_number", _to_int64, pa.int64()),
    "is_first_in_transaction": _place("flags", lambda f: f & FIRST_MESSAGE != 0, pa.bool_()),
    "is_last_in_transaction": _place("flags", lambda f: f & LAST_MESSAGE != 0, pa.bool_()),
    "size": lambda shape: pa.array(shape.packets.lengths),
}
# What a message says of whatever its packet does not; the rest is null.
_DEFAULTS: Final[Mapping[str, Any]] = {
    "destinations": [],
    "administration_queues": [],
    "response_queues": [],
    "dead_letter_queue": "",
    "allow_peek_when_locked": False,
    "multiple_destination_signature": b"",
    "authentication_level": "NONE",
    "authenticated": False,
    "abort_count": 0,
    "move_count": 0,
}


def make_column(name: str, shape: Shape) -> Any:
    """The column of this name, of all packets of a shape."""
    make = _MAKERS.get(name)
    if make is not None:
        return make(shape)
    return constant(_DEFAULTS.get(name), schema().field(name).type, len(shape.head))
