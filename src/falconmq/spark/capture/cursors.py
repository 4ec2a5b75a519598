"""Message packets of common shapes, many at once: where their headers are.

How to think about it. Which headers a message has stands in the flags of its first two; from there
on the cursor of each packet moves by sizes that the packet itself announces. Here all cursors move
together, as one array. A packet that does anything unusual (rare headers, a size beyond its end, a
text without its NUL) drops out and is left to `facts`, which decodes it through the wire layer and
says what is wrong with it. So nothing here has to judge, only to recognise what is plain.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from falconmq.spark.capture import facts
from falconmq.spark.capture.gather import gather, taken
from falconmq.spark.capture.message_columns import Cursors, columns_of
from falconmq.spark.capture.packed import PackedPackets, Shape
from falconmq.spark.capture.views import Ints, ints
from falconmq.wire import (
    base_header,
    transaction_header,
    user_header,
)
from falconmq.wire.debug_header import QUEUE_TYPE, QUEUE_TYPE_PUBLIC
from falconmq.wire.message_properties_header import FIXED_SIZE as PROPERTIES_SIZE
from falconmq.wire.message_properties_header import LABEL_LENGTH_MAX
from falconmq.wire.queue_name import DIRECT
from falconmq.wire.reader import decode_utf16
from falconmq.wire.security_header import SENDER_CERT_SIZE_MAX

_USER: Final = base_header.SIZE  # where the UserHeader begins
_NAMES: Final = _USER + user_header.FIXED_SIZE
_TRANSACTION_SIZE: Final = 20
_SECURITY_SIZE: Final = 16
_NAME_SIZES: Final = ints([0, 0, 4, 4, 4, 16, 20, 0])  # by type; a direct name says its own
_RARE_USER: Final = user_header.SOAP_HEADER | user_header.MULTI_QUEUE_FORMAT_HEADER
_NEVER_PREVIOUS: Final = 0xFFFFFFFF


def messages(packets: PackedPackets) -> Shape:
    cursors = _begin(packets)
    for shift in (
        user_header.DESTINATION_QUEUE_TYPE_SHIFT,
        user_header.ADMIN_QUEUE_TYPE_SHIFT,
        user_header.RESPONSE_QUEUE_TYPE_SHIFT,
    ):
        _pass_name(packets, cursors, shift)
    cursors.move(np.where(cursors.flags & user_header.CONNECTOR_TYPE, 16, 0))
    _pass_transaction(packets, cursors)
    _pass_security(packets, cursors)
    cursors.keep_inside(PROPERTIES_SIZE)
    cursors.properties = cursors.places
    return _read(packets, cursors)


def _begin(packets: PackedPackets) -> Cursors:
    rows = np.flatnonzero(packets.lengths >= _NAMES + PROPERTIES_SIZE)
    starts = packets.starts[rows]
    base_flags = packets.word(starts + 2)
    flags = packets.double(starts + _USER + 44)
    destination = (flags & user_header.DESTINATION_QUEUE_TYPE) >> (
        user_header.DESTINATION_QUEUE_TYPE_SHIFT
    )
    admin = (flags & user_header.ADMIN_QUEUE_TYPE) >> user_header.ADMIN_QUEUE_TYPE_SHIFT
    plain = (base_flags & base_header.INTERNAL == 0) & (flags & _RARE_USER == 0)
    plain &= flags & user_header.MESSAGE_PROPERTIES_HEADER != 0
    plain &= np.isin(destination, sorted(user_header.DESTINATION_QUEUE_TYPES))
    plain &= np.isin(admin, sorted(user_header.ADMIN_QUEUE_TYPES))
    ends = starts + packets.double(starts + 8)
    cursors = Cursors(rows, starts, ends, flags, *([starts + _NAMES] * 4))
    cursors.keep(plain)
    return cursors


def _pass_name(packets: PackedPackets, cursors: Cursors, shift: int) -> None:
    cursors.keep_inside(4)
    kinds = cursors.flags >> shift & 7
    counts = np.where(kinds == DIRECT, packets.word(cursors.places), 0)
    sizes = np.where(kinds == DIRECT, (2 + counts + 3) & ~3, _NAME_SIZES[kinds])
    if shift == user_header.DESTINATION_QUEUE_TYPE_SHIFT:
        cursors.destinations = cursors.places
    is_text = (counts >= 2) & (counts & 1 == 0)
    plain = (cursors.places + sizes <= cursors.ends) & (is_text | (kinds != DIRECT))
    last = np.where(plain & (kinds == DIRECT), cursors.places + counts, cursors.places)
    plain &= (kinds != DIRECT) | (packets.word(last) == 0)  # the NUL
    cursors.places = cursors.places + sizes
    cursors.keep(plain)


def _pass_transaction(packets: PackedPackets, cursors: Cursors) -> None:
    cursors.transactions = cursors.places
    there = cursors.flags & user_header.TRANSACTION_HEADER != 0
    if not there.any():
        return
    plain = ~there | (cursors.places + _TRANSACTION_SIZE <= cursors.ends)
    cursors.keep(plain)
    there = there[plain]
    places = np.where(there, cursors.places, cursors.starts)  # anywhere that can be read
    has_connector = packets.double(places) & transaction_header.CONNECTOR_GUID != 0
    numbers, previous = packets.double(places + 12), packets.double(places + 16)
    cursors.move(np.where(there, _TRANSACTION_SIZE + np.where(has_connector, 16, 0), 0))
    cursors.keep(~there | ((numbers != 0) & (previous != _NEVER_PREVIOUS)))


def _pass_security(packets: PackedPackets, cursors: Cursors) -> None:
    there = cursors.flags & user_header.SECURITY_HEADER != 0
    if not there.any():
        return
    plain = ~there | (cursors.places + _SECURITY_SIZE <= cursors.ends)
    cursors.keep(plain)
    there = there[plain]
    places = np.where(there, cursors.places, cursors.starts)
    sizes = np.zeros(len(places), np.int64)
    for offset in (2, 4, 6):  # SenderIdSize, EncryptionKeySize, SignatureSize
        sizes += packets.word(places + offset) + 3 & ~3
    certificates, provider = packets.double(places + 8), packets.double(places + 12)
    sizes += certificates + 3 & ~3
    cursors.move(np.where(there, _SECURITY_SIZE + sizes, 0))
    cursors.keep(~there | ((certificates <= SENDER_CERT_SIZE_MAX) & (provider == 0)))


def _read(packets: PackedPackets, cursors: Cursors) -> Shape:
    """Everything is found but the texts, which may still drop a packet."""
    places = cursors.properties
    label_lengths = packets.byte(places + 1)
    body_sizes = packets.double(places + 32)
    labels = places + PROPERTIES_SIZE
    bodies = labels + 2 * label_lengths + packets.double(places + 52)
    behind = bodies + body_sizes
    behind += -(behind - cursors.starts) & 3
    plain = (label_lengths <= LABEL_LENGTH_MAX) & (behind <= cursors.ends)
    plain &= behind + _debug_sizes(packets, cursors, behind) <= cursors.ends
    last = np.where(plain & (label_lengths > 0), labels + 2 * label_lengths - 2, places + 20)
    plain &= (label_lengths == 0) | (packets.word(last) == 0)
    cursors.keep(plain)
    if not len(cursors.rows):
        return Shape(cursors.rows, {})
    label_sizes = np.maximum(2 * label_lengths[plain] - 2, 0)
    texts = taken(gather(packets.data, labels[plain], label_sizes), _utf16)
    return columns_of(packets, cursors, texts, bodies[plain], body_sizes[plain])


def _debug_sizes(packets: PackedPackets, cursors: Cursors, places: Ints) -> Ints:
    """Of the DebugHeaders that begin here: 4 bytes, or 20 with the queue for reports."""
    there = packets.word(cursors.starts + 2) & base_header.DEBUG_HEADER != 0
    if not there.any():
        return np.zeros(len(places), np.int64)
    readable = np.where(there & (places + 4 <= cursors.ends), places, cursors.starts)
    has_queue = packets.word(readable) & QUEUE_TYPE == QUEUE_TYPE_PUBLIC
    return np.where(there, np.where(has_queue, 20, 4), 0)


def _utf16(data: bytes) -> str:
    return facts.clean(decode_utf16(data))
