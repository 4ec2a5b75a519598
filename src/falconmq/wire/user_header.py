"""UserHeader: from whom to which queue, how it is delivered, what follows (MQMQ 2.2.19.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.guid import NULL_GUID, encode_guid
from falconmq.wire.queue_name import (
    ADMIN_QUEUE,
    DIRECT,
    QueueName,
    encode_queue_name,
    read_queue_name,
)
from falconmq.wire.reader import Layout, Reader, Structure

# Flags
HOP_COUNT: Final = 0x0000001F  # RC
DELIVERY_MODE: Final = 0x00000060  # DM
DELIVERY_MODE_SHIFT: Final = 5
JOURNAL_NEGATIVE: Final = 0x00000100  # JN, dead-letter queue
JOURNAL_POSITIVE: Final = 0x00000200  # JP, journal queue
DESTINATION_QUEUE_TYPE: Final = 0x00001C00  # DQ
DESTINATION_QUEUE_TYPE_SHIFT: Final = 10
ADMIN_QUEUE_TYPE: Final = 0x0000E000  # AQ
ADMIN_QUEUE_TYPE_SHIFT: Final = 13
RESPONSE_QUEUE_TYPE: Final = 0x00070000  # RQ
RESPONSE_QUEUE_TYPE_SHIFT: Final = 16
SECURITY_HEADER: Final = 0x00080000  # SH, not the SH of the BaseHeader
TRANSACTION_HEADER: Final = 0x00100000  # TH
MESSAGE_PROPERTIES_HEADER: Final = 0x00200000  # MP, always 1
CONNECTOR_TYPE: Final = 0x00400000  # CQ
MULTI_QUEUE_FORMAT_HEADER: Final = 0x00800000  # MQ
HTTP: Final = 0x02000000  # AH, only in images of a remote read
SOAP_HEADER: Final = 0x10000000  # HH
# X1, X2, X3, X4: sent as 0, ignored, kept when a packet is passed on
RESERVED_FLAGS: Final = 0xED000080

EXPRESS: Final = 0
RECOVERABLE: Final = 1
HOP_COUNT_MAX: Final = 0x1D
DESTINATION_QUEUE_TYPES: Final = frozenset({0, 3, 5, 7})
ADMIN_QUEUE_TYPES: Final = frozenset({0, 2, 3, 5, 6, 7})

FIXED_SIZE: Final = 48
_DELIVERY_MODE_UNKNOWN: Final = 0x00000040  # the high bit of DM: 2 and 3 mean nothing
_LAYOUT: Final = Layout(
    "UserHeader",
    "16s16sIIII",
    "SourceQueueManager",
    "QueueManagerAddress",
    "TimeToBeReceived",
    "SentTime",
    "MessageID",
    "Flags",
)


@dataclass(slots=True)
class UserHeader(Structure):
    """48 bytes, then up to three queue names and a GUID.

    The types of the three names stand in `flags` and must fit the values. CQ and MP are set by
    `encode`, the bits of the other headers by `UserMessage.encode`.
    """

    source_queue_manager: bytes
    queue_manager_address: bytes  # the null GUID for a direct destination
    time_to_be_received: int
    sent_time: int
    message_id: int
    flags: int
    destination_queue: QueueName = None
    admin_queue: QueueName = None
    response_queue: QueueName = None  # None too if it is the administration queue
    connector_type: bytes | None = None  # an application's, never interpreted

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("UserHeader")
        source, address, time_to_be_received, sent_time, message_id, flags = reader.fixed(_LAYOUT)
        destination_type = (flags & DESTINATION_QUEUE_TYPE) >> DESTINATION_QUEUE_TYPE_SHIFT
        admin_type = (flags & ADMIN_QUEUE_TYPE) >> ADMIN_QUEUE_TYPE_SHIFT
        response_type = (flags & RESPONSE_QUEUE_TYPE) >> RESPONSE_QUEUE_TYPE_SHIFT
        problem = _problem(flags, destination_type, admin_type)
        if problem:
            raise reader.refuse(_LAYOUT, "Flags", problem)
        destination = read_queue_name(reader, destination_type, "DestinationQueue")
        admin = read_queue_name(reader, admin_type, "AdminQueue") if admin_type else None
        response = (
            read_queue_name(reader, response_type, "ResponseQueue") if response_type else None
        )
        connector = reader.guid("ConnectorType") if flags & CONNECTOR_TYPE else None
        reader.leave(outer)
        return cls(
            source,
            address,
            time_to_be_received,
            sent_time,
            message_id,
            flags,
            destination,
            admin,
            response,
            connector,
        )

    @property
    def destination_queue_type(self) -> int:
        return (self.flags & DESTINATION_QUEUE_TYPE) >> DESTINATION_QUEUE_TYPE_SHIFT

    @property
    def admin_queue_type(self) -> int:
        return (self.flags & ADMIN_QUEUE_TYPE) >> ADMIN_QUEUE_TYPE_SHIFT

    @property
    def response_queue_type(self) -> int:
        return (self.flags & RESPONSE_QUEUE_TYPE) >> RESPONSE_QUEUE_TYPE_SHIFT

    @property
    def delivery_mode(self) -> int:
        return (self.flags & DELIVERY_MODE) >> DELIVERY_MODE_SHIFT

    def resolved_response_queue(self) -> tuple[int, QueueName]:
        """Type and name of the response queue; those of the administration queue if it is that."""
        if self.response_queue_type == ADMIN_QUEUE:  # MQ-2.2.19.2-52
            return self.admin_queue_type, self.admin_queue
        return self.response_queue_type, self.response_queue

    def encode(self) -> bytes:
        return self.encode_with(self.flags)

    def encode_with(self, flags: int) -> bytes:
        """The bytes with these flags in place of the header's own; MP and CQ are set as they are.

        So a packet can announce its headers without changing the value somebody else holds.
        """
        destination_type = (flags & DESTINATION_QUEUE_TYPE) >> DESTINATION_QUEUE_TYPE_SHIFT
        admin_type = (flags & ADMIN_QUEUE_TYPE) >> ADMIN_QUEUE_TYPE_SHIFT
        response_type = (flags & RESPONSE_QUEUE_TYPE) >> RESPONSE_QUEUE_TYPE_SHIFT
        connector = self.connector_type
        flags |= MESSAGE_PROPERTIES_HEADER  # MQ-2.2.19.2-67
        if connector is None:  # MQ-2.2.19.2-69
            flags &= ~CONNECTOR_TYPE
        else:
            flags |= CONNECTOR_TYPE
        self._check(flags, destination_type, admin_type)
        data = _LAYOUT.pack(
            self.source_queue_manager,
            self.queue_manager_address,
            self.time_to_be_received,
            self.sent_time,
            self.message_id,
            flags,
        )
        data += encode_queue_name(destination_type, self.destination_queue, "DestinationQueue")
        if admin_type or self.admin_queue is not None:
            data += encode_queue_name(admin_type, self.admin_queue, "AdminQueue")
        if response_type or self.response_queue is not None:
            data += encode_queue_name(response_type, self.response_queue, "ResponseQueue")
        if connector is not None:
            data += encode_guid(connector, "UserHeader", "ConnectorType")
        return data

    def _check(self, flags: int, destination_type: int, admin_type: int) -> None:
        """Refuse what a sender must not send."""
        problem = _problem(flags, destination_type, admin_type)
        if problem:
            raise WireError("UserHeader", "Flags", problem)
        if flags & HOP_COUNT > HOP_COUNT_MAX:
            # MQ-2.2.19.2-16. A receiver takes it, and a router answers with a nack: closing the
            # session would only bring the same message again.
            problem = f"RC {flags & HOP_COUNT} is over {HOP_COUNT_MAX}"
            raise WireError("UserHeader", "Flags", problem)
        if flags & HTTP:  # MQ-2.2.19.2-75
            raise WireError("UserHeader", "Flags", "AH is never sent")
        if flags & _DELIVERY_MODE_UNKNOWN:  # MQ-2.2.19.2-18
            raise WireError("UserHeader", "Flags", "DM is not 0 or 1")
        if destination_type == DIRECT and self.queue_manager_address != NULL_GUID:
            # MQ-2.2.19.2-06
            problem = "a direct destination goes with the null GUID"
            raise WireError("UserHeader", "QueueManagerAddress", problem)


def _problem(flags: int, destination_type: int, admin_type: int) -> str:
    """What makes these flags malformed for sender and receiver alike; "" if nothing does."""
    if destination_type not in DESTINATION_QUEUE_TYPES:  # MQ-2.2.19.2-36
        return f"DQ {destination_type} is not 0, 3, 5 or 7"
    if admin_type not in ADMIN_QUEUE_TYPES:  # MQ-2.2.19.2-45
        return f"AQ {admin_type} is not 0, 2, 3, 5, 6 or 7"
    if not flags & MESSAGE_PROPERTIES_HEADER:  # MQ-2.2.19.2-67
        return "MP is 0, but a user message always has its properties"
    return ""
