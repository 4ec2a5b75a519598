"""InternalHeader: what kind of internal packet this is (MQQB 2.2.1).

The three internal packets (EstablishConnection, ConnectionParameters, SessionAck) begin alike: a
BaseHeader with IN set, then this header. Each has one size only. `read_internal_headers` and
`encode_internal_headers` hold what they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.base_header import DEFAULT_PRIORITY, INTERNAL, BaseHeader
from falconmq.wire.reader import Layout, Reader, Structure

# PT, the packet type
SESSION_ACK: Final = 0x1
ESTABLISH_CONNECTION: Final = 0x2
CONNECTION_PARAMETERS: Final = 0x3
PACKET_TYPES: Final = (SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS)

# Flags
PACKET_TYPE: Final = 0x000F  # PT
CONNECTION_REFUSED: Final = 0x0010  # CS
RESERVED_FLAGS: Final = 0xFFE0  # X5 to X15: sent as 0, ignored, kept

SIZE: Final = 4
_LAYOUT: Final = Layout("InternalHeader", "HH", "Reserved", "Flags")


@dataclass(slots=True)
class InternalHeader(Structure):
    """Four bytes behind the BaseHeader of an internal packet."""

    flags: int
    reserved: int = 0  # QB-2.2.1-02; whatever a peer sends is kept, QB-2.2.1-03

    @property
    def packet_type(self) -> int:
        return self.flags & PACKET_TYPE

    @property
    def refused(self) -> bool:
        """CS: the peer refuses the session (QB-2.2.1-07)."""
        return bool(self.flags & CONNECTION_REFUSED)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("InternalHeader")
        reserved, flags = reader.fixed(_LAYOUT)
        problem = _flags_problem(flags)
        if problem:
            raise reader.refuse(_LAYOUT, "Flags", problem)
        reader.leave(outer)
        return cls(flags, reserved)

    def encode(self) -> bytes:
        problem = _flags_problem(self.flags)
        if problem:
            raise WireError("InternalHeader", "Flags", problem)
        return _LAYOUT.pack(self.reserved, self.flags)


def _flags_problem(flags: int) -> str:
    packet_type = flags & PACKET_TYPE
    if packet_type not in PACKET_TYPES:  # QB-2.2.1-05, QB-2.2.1-06
        return f"PT {packet_type} is none of 1 (SessionAck), 2 and 3"
    if packet_type == SESSION_ACK and flags & CONNECTION_REFUSED:  # QB-2.2.1-08
        return "CS is set in a SessionAck"
    return ""


def internal_base_header(size: int, flags: int = INTERNAL) -> BaseHeader:
    """The BaseHeader of an internal packet to send; PR 3 as in the published frames."""
    return BaseHeader(flags | DEFAULT_PRIORITY, size)


def read_internal_headers(
    reader: Reader, packet_type: int, size: int, flags: int = INTERNAL
) -> tuple[BaseHeader, InternalHeader]:
    """Read both headers of a packet that must be of this type and size and have these flags.

    The size is fixed for each type, so any other PacketSize is a malformed packet: taking the
    stream's word for it would hide that the two sides no longer agree where packets begin.
    """
    start = reader.offset
    base = BaseHeader.read(reader)
    if base.flags & flags != flags:
        raise reader.error("Flags", _flags_missing(base.flags, flags), start + 2)
    if base.packet_size != size:
        raise reader.error("PacketSize", f"{base.packet_size} instead of {size}", start + 8)
    internal = InternalHeader.read(reader)
    if internal.packet_type != packet_type:
        raise reader.error("Flags", _type_differs(internal, packet_type), start + 18)
    return base, internal


def encode_internal_headers(
    structure: str,
    base: BaseHeader,
    internal: InternalHeader,
    packet_type: int,
    size: int,
    flags: int = INTERNAL,
) -> bytes:
    """The first 20 bytes of an internal packet; WireError where `read` would refuse them."""
    if base.flags & flags != flags:
        raise WireError(structure, "Flags", _flags_missing(base.flags, flags))
    if base.packet_size != size:
        raise WireError(structure, "PacketSize", f"{base.packet_size} instead of {size}")
    if internal.packet_type != packet_type:
        raise WireError(structure, "Flags", _type_differs(internal, packet_type))
    return base.encode() + internal.encode()


def _flags_missing(found: int, needed: int) -> str:
    return f"{found:#06x} lacks {needed & ~found:#06x}"


def _type_differs(internal: InternalHeader, packet_type: int) -> str:
    return f"PT {internal.packet_type} instead of {packet_type}"
