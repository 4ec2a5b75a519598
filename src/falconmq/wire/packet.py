"""Any packet of a session, told apart by what it says of itself (MQQB 3.1.5.1.1).

OrderAck and FinalAck packets come as the UserMessages they are; `ordering_acks.from_user_message`
knows them (QB-A10).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from falconmq.wire.base_header import INTERNAL, BaseHeader
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.internal_header import (
    CONNECTION_PARAMETERS,
    ESTABLISH_CONNECTION,
    PACKET_TYPE,
    SESSION_ACK,
    InternalHeader,
)
from falconmq.wire.internal_header import SIZE as INTERNAL_HEADER_SIZE
from falconmq.wire.reader import Buffer, Reader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_message import UserMessage

InternalPacket = EstablishConnection | ConnectionParameters | SessionAck
Packet = InternalPacket | UserMessage

_FLAGS_OFFSET: Final = 2  # of the byte of BaseHeader.Flags that holds IN
_PACKET_TYPE_OFFSET: Final = 18  # of the byte of InternalHeader.Flags that holds PT
_INTERNAL_PACKETS: Final[Mapping[int, type[InternalPacket]]] = {
    SESSION_ACK: SessionAck,  # QB-3.1.5.1.1-03
    ESTABLISH_CONNECTION: EstablishConnection,  # QB-3.1.5.1.1-01
    CONNECTION_PARAMETERS: ConnectionParameters,  # QB-3.1.5.1.1-02
}


def decode_packet(buffer: Buffer, offset: int = 0) -> Packet:
    """The packet that begins at `offset`; WireError if the bytes break its layout."""
    return read_packet(Reader(buffer, offset))


def read_packet(reader: Reader) -> Packet:
    """Read the packet that begins where the reader began, and leave the cursor behind it.

    The kind is looked up before anything is read, so that the tree of a TracingReader has one root
    named after the packet. Checking the bytes is the business of the packet's own `read`.
    """
    position = reader.position
    if (
        reader.remaining < BASE_HEADER_SIZE
        or not reader.buffer[position + _FLAGS_OFFSET] & INTERNAL
    ):
        return UserMessage.read(reader)
    if reader.remaining < BASE_HEADER_SIZE + INTERNAL_HEADER_SIZE:
        return _read_unknown(reader)
    packet_type = reader.buffer[position + _PACKET_TYPE_OFFSET] & PACKET_TYPE
    kind = _INTERNAL_PACKETS.get(packet_type)
    return _read_unknown(reader) if kind is None else kind.read(reader)


def _read_unknown(reader: Reader) -> Packet:
    """Refuse an internal packet that is too short to tell its type or has an unknown one."""
    reader.enter("InternalPacket")
    BaseHeader.read(reader)
    InternalHeader.read(reader)
    raise reader.error("Flags", "unknown packet type")
