"""What an event says of its message beside its identifier: read off the packet, decoding nothing.

Where it was sent, when, its place in a stream, whether it is traced. What cannot be read is left
out: an event is written down in the turn of its change, and must not make that fail.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from falconmq.errors import FalconMQError
from falconmq.manager.event_store import ORDERED, TRACED
from falconmq.manager.record import StoredMessage
from falconmq.names import DirectFormatName, PrivateFormatName, PublicFormatName
from falconmq.wire.base_header import TRACE
from falconmq.wire.queue_name import DIRECT, read_queue_name
from falconmq.wire.reader import Buffer, Reader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import (
    ADMIN_QUEUE_TYPE_SHIFT,
    CONNECTOR_TYPE,
    DESTINATION_QUEUE_TYPE_SHIFT,
    RESPONSE_QUEUE_TYPE_SHIFT,
    TRANSACTION_HEADER,
    UserHeader,
)
from falconmq.wire.user_message import UserMessage

About = StoredMessage | UserMessage | TransactionHeader
"""What an event is about, as far as whoever records it has it: all of it, or its place alone."""

_TYPE: Final = 0x7  # of a queue name, three bits
# Flags of the BaseHeader; QueueManagerAddress, SentTime and Flags of the UserHeader.
_PACKET: Final = struct.Struct("<2xH12x16x16s4xI4xI")
_PLACE: Final = struct.Struct("<4xQII")  # of a TransactionHeader
_COUNT: Final = struct.Struct("<H")
_NAME_SIZES: Final = (0, 0, 4, 4, 4, 16, 20)  # by the type of a queue name; DIRECT counts itself
_GUID_SIZE: Final = 16
_CACHED_NAME_MAX: Final = 1024  # bytes; longer names are nobody's configuration


class Facts(NamedTuple):
    """What is known of a message; 0 and "" where nothing is."""

    flags: int = 0
    sent_time: int = 0
    arrival_number: int = 0
    destination: str = ""
    sequence_id: int = 0
    sequence_number: int = 0
    previous_number: int = 0


NOTHING: Final = Facts()


def facts_of(about: About | None) -> Facts:
    """The facts; whatever is wrong with a packet, the event is told all the same."""
    try:
        if isinstance(about, StoredMessage):
            return _of_stored(about)
        if isinstance(about, UserMessage):
            return _of_packet(about)
    except (FalconMQError, struct.error, ValueError):
        return NOTHING
    if about is None:
        return NOTHING
    return Facts(
        ORDERED,
        sequence_id=about.tx_sequence_id,
        sequence_number=about.tx_sequence_number,
        previous_number=about.previous_tx_sequence_number,
    )


def _of_stored(message: StoredMessage) -> Facts:
    data = message.data
    base_flags, address, sent_time, flags = _PACKET.unpack_from(data)
    at = _PACKET.size
    queue_type = flags >> DESTINATION_QUEUE_TYPE_SHIFT & _TYPE
    end = _name_end(data, at, queue_type)
    name = bytes(data[at:end])
    read = _destination if len(name) <= _CACHED_NAME_MAX else _destination.__wrapped__
    traced = TRACED if base_flags & TRACE else 0
    destination = read(queue_type, address, name)
    if not flags & TRANSACTION_HEADER or message.needs_number:
        return Facts(traced, sent_time, message.arrival_number, destination)
    place = _PLACE.unpack_from(data, _end_of_user_header(data, end, flags))
    return Facts(traced | ORDERED, sent_time, message.arrival_number, destination, *place)


def _of_packet(packet: UserMessage) -> Facts:
    user, header = packet.user, packet.transaction
    traced = TRACED if packet.base.flags & TRACE else 0
    destination = _destination_of(user)
    if header is None:
        return Facts(traced, user.sent_time, 0, destination)
    place = header.tx_sequence_id, header.tx_sequence_number, header.previous_tx_sequence_number
    return Facts(traced | ORDERED, user.sent_time, 0, destination, *place)


def _name_end(data: Buffer, at: int, queue_type: int) -> int:
    """Where a queue name of a UserHeader ends; one that counts itself is padded to 4."""
    if queue_type == DIRECT:
        size = _COUNT.size + int(_COUNT.unpack_from(data, at)[0])
        return at + (size + 3 & ~3)
    return at + _NAME_SIZES[queue_type]


def _end_of_user_header(data: Buffer, at: int, flags: int) -> int:
    at = _name_end(data, at, flags >> ADMIN_QUEUE_TYPE_SHIFT & _TYPE)
    at = _name_end(data, at, flags >> RESPONSE_QUEUE_TYPE_SHIFT & _TYPE)
    return at + _GUID_SIZE if flags & CONNECTOR_TYPE else at


@lru_cache(maxsize=1024)
def _destination(queue_type: int, address: bytes, name: bytes) -> str:
    """The format name that the bytes of a destination stand for; "" if they name none."""
    queue = read_queue_name(Reader(name), queue_type, "DestinationQueue")
    return _format_name(address, queue)


def _destination_of(user: UserHeader) -> str:
    return _format_name(user.queue_manager_address, user.destination_queue)


def _format_name(address: bytes, queue: object) -> str:
    if isinstance(queue, str):
        return str(DirectFormatName.from_wire(queue))
    if isinstance(queue, bytes):
        return str(PublicFormatName(UUID(bytes_le=queue)))
    if isinstance(queue, int):  # on the computer that the packet goes to
        return str(PrivateFormatName(UUID(bytes_le=address), queue))
    return ""
