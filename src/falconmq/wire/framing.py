"""Where a packet of a session ends (MQMQ 2.2.19.1, MQQB 2.2.6; contradiction QB-A09)."""

from __future__ import annotations

from falconmq.wire.base_header import INTERNAL, SESSION_HEADER, BaseHeader
from falconmq.wire.session_header import SIZE as SESSION_HEADER_SIZE


def packet_length(header: BaseHeader) -> int:
    """Bytes from the first of this packet to the first of the next.

    PacketSize leaves out the SessionHeader behind a user message, but an internal packet, and the
    SessionAck is one, counts all it has.
    """
    if header.flags & (INTERNAL | SESSION_HEADER) == SESSION_HEADER:
        return header.packet_size + SESSION_HEADER_SIZE
    return header.packet_size
