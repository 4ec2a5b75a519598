"""DebugHeader: where the trace reports about a message go (MQMQ 2.2.20.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure

# Flags. Bits 2 to 15 are reserved: sent as 0, ignored, kept when a packet is passed on.
QUEUE_TYPE: Final = 0x0003  # QT
QUEUE_TYPE_NONE: Final = 0
QUEUE_TYPE_PUBLIC: Final = 1
RESERVED_FLAGS: Final = 0xFFFC  # X2 to X15

_LAYOUT: Final = Layout("DebugHeader", "HH", "Flags", "Reserved")


@dataclass(slots=True)
class DebugHeader(Structure):
    """4 bytes, or 20 with the public queue for reports. `encode` sets QT by `queue_identifier`."""

    flags: int = 0
    queue_identifier: bytes | None = None
    reserved: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("DebugHeader")
        flags, reserved = reader.fixed(_LAYOUT)
        has_queue = flags & QUEUE_TYPE == QUEUE_TYPE_PUBLIC  # MQ-2.2.20.8-10
        queue = reader.guid("QueueIdentifier") if has_queue else None
        reader.leave(outer)
        return cls(flags, queue, reserved)

    def encode(self) -> bytes:
        queue = self.queue_identifier
        if self.flags & QUEUE_TYPE > QUEUE_TYPE_PUBLIC:  # MQ-2.2.20.8-03
            raise WireError("DebugHeader", "Flags", f"QT {self.flags & QUEUE_TYPE} is not 0 or 1")
        flags = self.flags & ~QUEUE_TYPE
        if queue is None:
            return _LAYOUT.pack(flags, self.reserved)
        encode_guid(queue, "DebugHeader", "QueueIdentifier")
        return _LAYOUT.pack(flags | QUEUE_TYPE_PUBLIC, self.reserved) + queue
