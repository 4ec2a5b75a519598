"""UserMessage: the packet that carries one whole message (MQMQ 2.2.20).

    Base, User, [Transaction], [Security], MessageProperties, [Debug], [Soap], [MultiQueueFormat],
    and behind PacketSize: [Session]

Which of the bracketed headers are there is told by bits of the first two. A decoded message keeps
the bits as they came; `encode` sets them by the headers the message has, so nobody has to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.base_header import (
    DEBUG_HEADER,
    INTERNAL,
    PRIORITY,
    SESSION_HEADER,
    TRACE,
    BaseHeader,
)
from falconmq.wire.base_header import SIZE as BASE_SIZE
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import MultiQueueFormatHeader
from falconmq.wire.reader import Buffer, Reader, Structure
from falconmq.wire.security_header import SecurityHeader
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.soap_header import SoapHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    DELIVERY_MODE_SHIFT,
    MULTI_QUEUE_FORMAT_HEADER,
    RECOVERABLE,
    SECURITY_HEADER,
    SOAP_HEADER,
    TRANSACTION_HEADER,
    UserHeader,
)

_BASE_PRESENCE: Final = SESSION_HEADER | DEBUG_HEADER
_USER_PRESENCE: Final = (
    SECURITY_HEADER | TRANSACTION_HEADER | MULTI_QUEUE_FORMAT_HEADER | SOAP_HEADER
)
_BEHIND_PROPERTIES: Final = SOAP_HEADER | MULTI_QUEUE_FORMAT_HEADER
_BASE_FLAGS_OFFSET: Final = 2
_BASE_PACKET_SIZE_OFFSET: Final = 8


@dataclass(slots=True)
class UserMessage(Structure):
    """A message with its headers. OrderAck and FinalAck packets have this shape too."""

    base: BaseHeader  # encode takes PacketSize, SH and DH from the rest of the message
    user: UserHeader
    properties: MessagePropertiesHeader
    transaction: TransactionHeader | None = None
    security: SecurityHeader | None = None
    debug: DebugHeader | None = None
    soap: SoapHeader | None = None
    multi_queue_format: MultiQueueFormatHeader | None = None
    session: SessionHeader | None = None
    extra: Buffer = b""  # between the last known header and PacketSize; newer peers may add headers

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read a whole packet, which begins where the reader began."""
        outer = reader.enter("UserMessage")
        start, end = reader.position, reader.end
        base = BaseHeader.read(reader)
        if base.flags & INTERNAL:
            raise reader.error("Flags", "IN is set: no user message", _BASE_FLAGS_OFFSET)
        reader.end = min(start + base.packet_size, end)  # no header may pass it: MQ-2.2.19.1-34
        user = UserHeader.read(reader)
        flags = user.flags
        transaction = TransactionHeader.read(reader) if flags & TRANSACTION_HEADER else None
        security = SecurityHeader.read(reader) if flags & SECURITY_HEADER else None
        properties = MessagePropertiesHeader.read(reader)
        debug = DebugHeader.read(reader) if base.flags & DEBUG_HEADER else None
        soap = multi_queue_format = None
        if flags & _BEHIND_PROPERTIES:
            soap = SoapHeader.read(reader) if flags & SOAP_HEADER else None
            if flags & MULTI_QUEUE_FORMAT_HEADER:
                multi_queue_format = MultiQueueFormatHeader.read(reader)
        rest = reader.remaining
        extra = reader.take(rest, "Extra") if rest else b""
        if base.packet_size > end - start:  # said last: a cut packet shows its headers to the cut
            problem = f"{base.packet_size} bytes announced, {end - start} are there"
            raise reader.error("PacketSize", problem, _BASE_PACKET_SIZE_OFFSET)
        reader.end = end
        session = SessionHeader.read(reader) if base.flags & SESSION_HEADER else None
        reader.leave(outer)
        return cls(
            base,
            user,
            properties,
            transaction,
            security,
            debug,
            soap,
            multi_queue_format,
            session,
            extra,
        )

    @property
    def is_transactional(self) -> bool:
        return self.transaction is not None

    @property
    def priority(self) -> int:
        """0 to 7. That of a transactional message is 0, whatever its sender wrote."""
        return 0 if self.transaction is not None else self.base.flags & PRIORITY

    def encode(self) -> bytes:
        """The whole packet, SessionHeader and all; the headers themselves stay as they are."""
        base = self.base
        base_flags, user_flags = self._flags()
        self._check(base_flags, user_flags)
        parts: list[Buffer] = [b"", self.user.encode_with(user_flags)]
        if user_flags & _USER_PRESENCE:
            if self.transaction is not None:
                parts.append(self.transaction.encode())
            if self.security is not None:
                parts.append(self.security.encode())
        self.properties.append_to(parts)
        if self.debug is not None:
            parts.append(self.debug.encode())
        if user_flags & _BEHIND_PROPERTIES:
            if self.soap is not None:
                parts.append(self.soap.encode())
            if self.multi_queue_format is not None:
                parts.append(self.multi_queue_format.encode())
        if self.extra:
            parts.append(self.extra)
        size = BASE_SIZE + sum(map(len, parts))  # MQ-2.2.19.1-30
        parts[0] = BaseHeader(base_flags, size, base.time_to_reach_queue, base.reserved).encode()
        if self.session is not None:
            parts.append(self.session.encode())  # not counted: MQ-2.2.19.1-31
        return b"".join(parts)

    def _flags(self) -> tuple[int, int]:
        """The flags of BaseHeader and UserHeader that announce the headers there are."""
        base_flags = self.base.flags & ~_BASE_PRESENCE
        user_flags = self.user.flags & ~_USER_PRESENCE
        if self.session is not None:
            base_flags |= SESSION_HEADER  # MQ-2.2.20-10
        if self.debug is not None:
            base_flags |= DEBUG_HEADER  # MQ-2.2.20-07
        if self.transaction is not None:
            user_flags |= TRANSACTION_HEADER  # MQ-2.2.20-05
        if self.security is not None:
            user_flags |= SECURITY_HEADER  # MQ-2.2.20-06
        if self.soap is not None:
            user_flags |= SOAP_HEADER  # MQ-2.2.20-08
        if self.multi_queue_format is not None:
            user_flags |= MULTI_QUEUE_FORMAT_HEADER  # MQ-2.2.20-09
        return base_flags, user_flags

    def _check(self, base_flags: int, user_flags: int) -> None:
        """Refuse what a sender must not send."""
        if base_flags & INTERNAL:  # MQ-2.2.20-04
            raise WireError("UserMessage", "Flags", "IN is for internal packets")
        if base_flags & TRACE and self.debug is None:  # MQ-2.2.19.1-23
            raise WireError("UserMessage", "Flags", "TR needs a DebugHeader")
        if self.transaction is None:
            return
        if base_flags & PRIORITY:  # MQ-2.2.19.1-10
            raise WireError("UserMessage", "Flags", "a transactional message has priority 0")
        if (user_flags & DELIVERY_MODE) >> DELIVERY_MODE_SHIFT != RECOVERABLE:  # MQ-2.2.19.2-65
            raise WireError("UserMessage", "Flags", "a transactional message is recoverable")
