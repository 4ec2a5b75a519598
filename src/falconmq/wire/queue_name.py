"""Queue names inside a UserHeader: which form follows from a three-bit type (MQMQ 2.2.18.1.5, .7).

| type | value in Python          | bytes                                        |
|------|--------------------------|----------------------------------------------|
| 0, 1 | None                     | none                                         |
| 2-4  | int                      | PrivateQueueFormatNameId, 4                  |
| 5    | bytes, a GUID            | PublicQueueFormatName, 16                    |
| 6    | PrivateQueueFormatName   | 20                                           |
| 7    | str, without "DIRECT="   | DirectQueueFormatName, 2 + Count + padding   |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.counted_text import encode_counted_text, read_counted_text
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure, padding

NONE: Final = 0
ADMIN_QUEUE: Final = 1  # the response queue is the administration queue
PRIVATE_ON_SOURCE: Final = 2
PRIVATE_ON_DESTINATION: Final = 3
PRIVATE_ON_ADMIN: Final = 4  # on the host of the administration queue
PUBLIC: Final = 5
PRIVATE: Final = 6  # on a host that is none of the above
DIRECT: Final = 7

_LAYOUT: Final = Layout(
    "PrivateQueueFormatName", "16sI", "SourceQueueManager", "PrivateQueueIdentifier"
)
_IDENTIFIER: Final = Layout("PrivateQueueFormatNameId", "I", "PrivateQueueIdentifier")
_COUNT: Final = Layout("DirectQueueFormatName", "H", "Count")


@dataclass(slots=True)
class PrivateQueueFormatName(Structure):
    """A private queue and the queue manager that hosts it (MQMQ 2.2.18.1.7.2)."""

    source_queue_manager: bytes
    private_queue_identifier: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("PrivateQueueFormatName")
        source_queue_manager, identifier = reader.fixed(_LAYOUT)
        reader.leave(outer)
        return cls(source_queue_manager, identifier)

    def encode(self) -> bytes:
        return _LAYOUT.pack(self.source_queue_manager, self.private_queue_identifier)


QueueName = int | bytes | PrivateQueueFormatName | str | None


def read_queue_name(reader: Reader, queue_type: int, field: str) -> QueueName:
    """Read the name that `queue_type` (0 to 7) announces; types 0 and 1 take no bytes."""
    if queue_type == DIRECT:
        return _read_direct(reader, field)
    if queue_type <= ADMIN_QUEUE:
        return None
    if queue_type == PUBLIC:
        return reader.guid(field)
    if queue_type == PRIVATE:
        outer = reader.enter(field)
        name = PrivateQueueFormatName.read(reader)
        reader.leave(outer)
        return name
    return reader.u32(field)


def encode_queue_name(queue_type: int, name: QueueName, field: str) -> bytes:
    """The bytes of a name, padded to 4; WireError if the value is not of the announced type."""
    if queue_type == DIRECT and isinstance(name, str):
        text = encode_counted_text(name, "DirectQueueFormatName", field)
        size = len(text)
        return _COUNT.pack(size) + text + padding(size + 2)  # MQ-2.2.18.1.5.2-03
    if queue_type <= ADMIN_QUEUE and name is None:
        return b""
    if queue_type == PUBLIC and isinstance(name, bytes):
        return encode_guid(name, "PublicQueueFormatName", field)
    if queue_type == PRIVATE and isinstance(name, PrivateQueueFormatName):
        return name.encode()
    if PRIVATE_ON_SOURCE <= queue_type <= PRIVATE_ON_ADMIN and isinstance(name, int):
        return _IDENTIFIER.pack(name)
    raise WireError("UserHeader", field, f"{name!r} is no queue name of type {queue_type}")


def _read_direct(reader: Reader, field: str) -> str:
    outer = reader.enter(field)
    count = reader.u16("Count")
    if count < 2 or count & 1:  # MQ-2.2.18.1.5.2-06
        raise reader.error(
            "Count", f"{count} bytes hold no UTF-16 text with NUL", reader.offset - 2
        )
    name = read_counted_text(reader, count, "DirectFormatName")
    # As every header begins on a boundary of 4, the packet's boundaries are the header's.
    reader.align(4)  # MQ-2.2.18.1.5.2-04
    reader.leave(outer)
    return name
