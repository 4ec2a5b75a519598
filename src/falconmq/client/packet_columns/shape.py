"""Where everything stands in many packets at once (MQMQ 2.2.20).

A packet is a chain of headers, and each says how long it is, so nothing behind the first 64 bytes
has a fixed place. Here every packet has a cursor of its own, and all of them step over the same
header together: a number that a decoder of one packet would hold is an array here, one entry a
packet. A header that a packet does not have moves its cursor by nothing.

What is read here must mean exactly what the decoders of `falconmq.wire` say. So whatever is out of
bounds, refused there, or too seldom to be worth it here (SOAP, lists of queues, named cryptographic
providers) is not `understood`: those packets are left to the decoders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from falconmq.client.packet_columns.buffers import Bools, Int64s, Packed, Rows, fixed
from falconmq.wire import base_header, queue_name, session_header, user_header
from falconmq.wire.debug_header import QUEUE_TYPE, QUEUE_TYPE_PUBLIC
from falconmq.wire.message_properties_header import LABEL_LENGTH_MAX
from falconmq.wire.security_header import SENDER_CERT_SIZE_MAX
from falconmq.wire.transaction_header import CONNECTOR_GUID

# Names as in the specification, in snake case; BaseHeader and UserHeader in one.
HEAD: Final = np.dtype(
    [
        ("version", "u1"),
        ("reserved", "u1"),
        ("base_flags", "<u2"),
        ("signature", "<u4"),
        ("packet_size", "<u4"),
        ("time_to_reach_queue", "<u4"),
        ("source_queue_manager", "V16"),
        ("queue_manager_address", "V16"),
        ("time_to_be_received", "<u4"),
        ("sent_time", "<u4"),
        ("message_id", "<u4"),
        ("flags", "<u4"),
    ]
)
TRANSACTION: Final = np.dtype(
    [
        ("flags", "<u4"),
        ("tx_sequence_id", "<u8"),
        ("tx_sequence_number", "<u4"),
        ("previous_tx_sequence_number", "<u4"),
    ]
)
SECURITY: Final = np.dtype(
    [
        ("flags", "<u2"),
        ("sender_id_size", "<u2"),
        ("encryption_key_size", "<u2"),
        ("signature_size", "<u2"),
        ("sender_cert_size", "<u4"),
        ("provider_info_size", "<u4"),
    ]
)
PROPERTIES: Final = np.dtype(
    [
        ("flags", "u1"),
        ("label_length", "u1"),
        ("message_class", "<u2"),
        ("correlation_guid", "V16"),
        ("correlation_ordinal", "<u4"),
        ("body_type", "<u4"),
        ("application_tag", "<u4"),
        ("message_size", "<u4"),
        ("allocation_body_size", "<u4"),
        ("privacy_level", "<u4"),
        ("hash_algorithm", "<u4"),
        ("encryption_algorithm", "<u4"),
        ("extension_size", "<u4"),
    ]
)
DEBUG: Final = np.dtype([("flags", "<u2"), ("reserved", "<u2")])
GUID: Final = np.dtype("V16")
UNIT: Final = np.dtype("<u2")  # of UTF-16, and the count before a direct name

_NAME_SIZES: Final = np.array([0, 0, 4, 4, 4, 16, 20, 2], np.int64)  # by type; of 7 its count
_SELDOM: Final = user_header.SOAP_HEADER | user_header.MULTI_QUEUE_FORMAT_HEADER
_DESTINATION_TYPES: Final = np.isin(np.arange(8), list(user_header.DESTINATION_QUEUE_TYPES))
_ADMIN_TYPES: Final = np.isin(np.arange(8), list(user_header.ADMIN_QUEUE_TYPES))


class Piece(NamedTuple):
    """Bytes of every packet: where they begin, and how many."""

    at: Int64s
    sizes: Int64s


class Names(NamedTuple):
    """A queue name of every packet: its type, its place, and the text of direct ones."""

    types: Int64s
    at: Int64s
    text: Piece


class Optional(NamedTuple):
    """A header that some packets have; the rows of others mean nothing."""

    is_there: Bools
    rows: Rows


class Security(NamedTuple):
    header: Optional
    sender_id: Piece
    symmetric_key: Piece
    signature: Piece
    sender_certificate: Piece


@dataclass(slots=True)
class Shape:
    """What `read_shape` found. A part that no packet has is None."""

    packets: Packed
    head: Rows
    destination: Names
    admin: Names
    response: Names
    connector: Optional | None
    transaction: Optional | None
    security: Security | None
    properties: Rows
    label: Piece
    extension: Piece
    body: Piece
    report_queue: Optional | None
    understood: Bools


def may_be_understood(packets: Packed) -> Bools:
    """Which packets `read_shape` may look at: those that hold at least both first headers."""
    return packets.lengths >= HEAD.itemsize


def read_shape(packets: Packed) -> Shape:
    """Step through all packets; `understood` tells for which ones the result is true."""
    cursor = _Cursor(packets)
    head, flags = cursor.head, cursor.flags
    destination = cursor.names(flags >> user_header.DESTINATION_QUEUE_TYPE_SHIFT & 7)
    admin = cursor.names(flags >> user_header.ADMIN_QUEUE_TYPE_SHIFT & 7)
    response = cursor.names(flags >> user_header.RESPONSE_QUEUE_TYPE_SHIFT & 7)
    connector = cursor.optional(GUID, flags & user_header.CONNECTOR_TYPE != 0)
    transaction = _transaction(cursor)
    security = _security(cursor)
    properties = cursor.fixed(PROPERTIES)
    label = cursor.skip(properties["label_length"].astype(np.int64) * 2)
    cursor.check(properties["label_length"] <= LABEL_LENGTH_MAX)
    cursor.check_nul(label)
    extension = cursor.skip(properties["extension_size"].astype(np.int64))
    body = cursor.skip(properties["message_size"].astype(np.int64))
    cursor.align()
    report_queue = _report_queue(cursor)
    return Shape(
        packets,
        head,
        destination,
        admin,
        response,
        connector,
        transaction,
        security,
        properties,
        Piece(label.at, np.maximum(label.sizes - 2, 0)),
        extension,
        body,
        report_queue,
        cursor.understood,
    )


def _transaction(cursor: _Cursor) -> Optional | None:
    header = cursor.optional(TRANSACTION, cursor.flags & user_header.TRANSACTION_HEADER != 0)
    if header is None:
        return None
    rows = header.rows
    is_right = (rows["tx_sequence_number"] != 0) & (
        rows["previous_tx_sequence_number"] != 0xFFFFFFFF
    )
    cursor.check(is_right | ~header.is_there)
    cursor.optional(GUID, header.is_there & (rows["flags"] & CONNECTOR_GUID != 0))
    return header


def _security(cursor: _Cursor) -> Security | None:
    header = cursor.optional(SECURITY, cursor.flags & user_header.SECURITY_HEADER != 0)
    if header is None:
        return None
    is_there, rows = header
    is_plain = (rows["sender_cert_size"] <= SENDER_CERT_SIZE_MAX) & (
        rows["provider_info_size"] == 0
    )
    cursor.check(is_plain | ~is_there)
    items = []
    for name in ("sender_id_size", "encryption_key_size", "signature_size", "sender_cert_size"):
        items.append(cursor.skip(np.where(is_there, rows[name].astype(np.int64), 0)))
        cursor.align()
    return Security(header, *items)


def _report_queue(cursor: _Cursor) -> Optional | None:
    header = cursor.optional(DEBUG, cursor.head["base_flags"] & base_header.DEBUG_HEADER != 0)
    if header is None:
        return None
    has_queue = header.rows["flags"] & QUEUE_TYPE == QUEUE_TYPE_PUBLIC
    return cursor.optional(GUID, header.is_there & has_queue)


class _Cursor:
    """A place in every packet, behind BaseHeader and UserHeader at first.

    A cursor that has left its packet reads the packet's beginning instead, which is there, and the
    packet is not understood any more.
    """

    def __init__(self, packets: Packed) -> None:
        self._data, self._starts = packets.data, packets.starts
        self.head = head = fixed(self._data, self._starts, HEAD)
        self.flags: Int64s = head["flags"].astype(np.int64)
        size = head["packet_size"].astype(np.int64)
        self._ends = self._starts + size
        self._at = self._starts + HEAD.itemsize
        session = np.where(
            head["base_flags"] & base_header.SESSION_HEADER != 0, session_header.SIZE, 0
        )
        self.understood: Bools = (
            (head["version"] == base_header.VERSION)
            & (head["signature"] == base_header.SIGNATURE)
            & (head["base_flags"] & base_header.INTERNAL == 0)
            & (size >= HEAD.itemsize)
            & (size <= base_header.PACKET_SIZE_MAX)
            & (size + session <= packets.lengths)
            & (self.flags & user_header.MESSAGE_PROPERTIES_HEADER != 0)
            & (self.flags & _SELDOM == 0)
            & _DESTINATION_TYPES[self.flags >> user_header.DESTINATION_QUEUE_TYPE_SHIFT & 7]
            & _ADMIN_TYPES[self.flags >> user_header.ADMIN_QUEUE_TYPE_SHIFT & 7]
        )

    def check(self, is_right: Bools) -> None:
        self.understood &= is_right

    def fixed(self, layout: np.dtype[Any]) -> Rows:
        """Read a header that every packet has, and step over it."""
        at = self._at
        self._step(layout.itemsize)
        return fixed(self._data, self._safe(at), layout)

    def optional(self, layout: np.dtype[Any], is_there: Bools) -> Optional | None:
        """Read a header that some packets have, and step over it; None if none has it."""
        if not is_there.any():
            return None
        at = self._at
        self._step(np.where(is_there, layout.itemsize, 0))
        return Optional(is_there, fixed(self._data, self._safe(at, is_there), layout))

    def skip(self, sizes: Int64s) -> Piece:
        """Step over bytes that are read later, if at all."""
        at = self._at
        self._step(sizes)
        return Piece(at, sizes)

    def align(self) -> None:
        """Step to the next boundary of 4, counted from the beginning of the packet."""
        self._step(-(self._at - self._starts) % 4)

    def check_nul(self, text: Piece) -> None:
        """A text that is there ends with a NUL, and the cursor has just passed it."""
        is_there = text.sizes > 0
        if is_there.any():
            last = fixed(self._data, self._safe(self._at - 2, is_there), UNIT)
            self.check((last == 0) | ~is_there)

    def names(self, types: Int64s) -> Names:
        """Read a queue name, each of its own type."""
        at = self._at
        self._step(_NAME_SIZES[types])
        is_direct = types == queue_name.DIRECT
        if not is_direct.any():
            nothing = np.zeros(len(types), np.int64)
            return Names(types, at, Piece(at, nothing))
        counts = fixed(self._data, self._safe(at, is_direct), UNIT).astype(np.int64)
        counts = np.where(is_direct, counts, 0)
        self.check(~is_direct | ((counts >= 2) & (counts % 2 == 0)))
        text = self.skip(counts)
        self.check_nul(text)
        self.align()
        return Names(types, at, Piece(text.at, np.maximum(counts - 2, 0)))

    def _step(self, sizes: Int64s | int) -> None:
        self._at = self._at + sizes
        self.understood &= self._at <= self._ends

    def _safe(self, at: Int64s, is_there: Bools | None = None) -> Int64s:
        can_read = self.understood if is_there is None else self.understood & is_there
        return np.where(can_read, at, self._starts)
