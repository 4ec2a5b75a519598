"""SessionAck: a session acknowledgement that travels alone (MQQB 2.2.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.wire.base_header import INTERNAL, SESSION_HEADER, BaseHeader
from falconmq.wire.internal_header import (
    SESSION_ACK,
    InternalHeader,
    encode_internal_headers,
    internal_base_header,
    read_internal_headers,
)
from falconmq.wire.reader import Reader, Structure
from falconmq.wire.session_header import SessionHeader

SIZE: Final = 36  # Windows counts the SessionHeader here (FRAME 8), unlike in a UserMessage: QB-A09
_FLAGS: Final = INTERNAL | SESSION_HEADER  # QB-2.2.6-02


def _base_header() -> BaseHeader:
    return internal_base_header(SIZE, _FLAGS)


def _internal_header() -> InternalHeader:
    return InternalHeader(SESSION_ACK)


@dataclass(slots=True)
class SessionAck(Structure):
    """A SessionHeader with no message in front of it. CS is never set here (QB-2.2.1-08)."""

    session: SessionHeader
    base: BaseHeader = field(default_factory=_base_header)
    internal: InternalHeader = field(default_factory=_internal_header)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SessionAck")
        base, internal = read_internal_headers(reader, SESSION_ACK, SIZE, _FLAGS)
        session = SessionHeader.read(reader)
        reader.leave(outer)
        return cls(session, base, internal)

    def encode(self) -> bytes:
        headers = encode_internal_headers(
            "SessionAck", self.base, self.internal, SESSION_ACK, SIZE, _FLAGS
        )
        return headers + self.session.encode()
