"""BaseHeader: how every packet of a session begins (MQMQ 2.2.19.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.reader import Layout, Reader, Structure

VERSION: Final = 0x10
SIGNATURE: Final = 0x524F494C  # the bytes 4C 49 4F 52, "LIOR"
INFINITE: Final = 0xFFFFFFFF
PACKET_SIZE_MIN: Final = 20  # a BaseHeader and an InternalHeader, QB-A09
PACKET_SIZE_MAX: Final = 0x00400000
PACKET_SIZES: Final = f"{PACKET_SIZE_MIN}..{PACKET_SIZE_MAX}"
DEFAULT_PRIORITY: Final = 3

# Flags. Bits 6, 7 and 9 to 15 are reserved: sent as 0, ignored, kept when a packet is passed on.
PRIORITY: Final = 0x0007  # PR
INTERNAL: Final = 0x0008  # IN
SESSION_HEADER: Final = 0x0010  # SH
DEBUG_HEADER: Final = 0x0020  # DH
TRACE: Final = 0x0100  # TR
RESERVED_FLAGS: Final = 0xFEC0  # X9, X8, X6 to X0

SIZE: Final = 16
_LAYOUT: Final = Layout(
    "BaseHeader",
    "BBHIII",
    "VersionNumber",
    "Reserved",
    "Flags",
    "Signature",
    "PacketSize",
    "TimeToReachQueue",
)


@dataclass(slots=True)
class BaseHeader(Structure):
    """First 16 bytes of every packet: its size and which headers follow.

    `packet_size` leaves out the SessionHeader of a user message and counts that of a SessionAck
    (QB-A09); `framing.packet_length` knows the whole.
    """

    flags: int
    packet_size: int
    time_to_reach_queue: int = INFINITE
    reserved: int = 0  # Windows leaves garbage here; kept so that encode() gives the same bytes

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("BaseHeader")
        version, reserved, flags, signature, size, ttrq = reader.fixed(_LAYOUT)
        if version != VERSION:  # QB-3.1.5.1.2-01
            raise reader.refuse(_LAYOUT, "VersionNumber", f"{version:#04x} instead of 0x10")
        if signature != SIGNATURE:
            raise reader.refuse(_LAYOUT, "Signature", f"{signature:#010x}, no MSMQ packet")
        if not PACKET_SIZE_MIN <= size <= PACKET_SIZE_MAX:  # MQ-2.2.19.1-33, MQ-2.2.19.1-34
            raise reader.refuse(_LAYOUT, "PacketSize", f"{size} is not in {PACKET_SIZES}")
        reader.leave(outer)
        return cls(flags, size, ttrq, reserved)

    def encode(self) -> bytes:
        size, ttrq = self.packet_size, self.time_to_reach_queue
        if not PACKET_SIZE_MIN <= size <= PACKET_SIZE_MAX:
            raise WireError("BaseHeader", "PacketSize", f"{size} is not in {PACKET_SIZES}")
        return _LAYOUT.pack(VERSION, self.reserved, self.flags, SIGNATURE, size, ttrq)
