"""Packets by hand, with anything in any field (MQQB 2.2; MQMQ 2.2.19, 2.2.20).

Nothing here comes from `falconmq.wire`, so a mistake there is not repeated here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

NULL: Final = bytes(16)
INFINITE: Final = 0xFFFFFFFF
SESSION_ACK, ESTABLISH, PARAMETERS = 1, 2, 3  # PT
INTERNAL, WITH_SESSION_HEADER = 0x08, 0x10  # BaseHeader.Flags
PADDING: Final = b"\x5a" * 512
TRANSACTION_HEADER, MESSAGE_PROPERTIES = 1 << 20, 1 << 21  # UserHeader.Flags
JOURNAL_NEGATIVE, JOURNAL_POSITIVE = 1 << 8, 1 << 9
DIRECT, PRIVATE, PUBLIC = 7, 3, 5  # DQ


def base(
    size: int,
    flags: int = 0x000B,
    *,
    version: int = 0x10,
    reserved: int = 0,
    signature: bytes = b"LIOR",
    ttrq: int = INFINITE,
) -> bytes:
    """BaseHeader, 16 bytes."""
    return struct.pack("<BBH4sII", version, reserved, flags, signature, size, ttrq)


def internal(packet_type: int, flags: int = 0, *, reserved: int = 0) -> bytes:
    """InternalHeader, 4 bytes; `flags` are those beside PT."""
    return struct.pack("<HH", reserved, packet_type | flags)


def establish(
    client: bytes,
    server: bytes = NULL,
    *,
    time_stamp: int = 4711,
    operating_system: int = 0x0310,
    reserved: int = 0,
    padding: bytes = PADDING,
    flags: int = 0,
    internal_reserved: int = 0,
    base_reserved: int = 0,
    base_flags: int = 0x000B,
) -> bytes:
    """EstablishConnection, 572 bytes."""
    return (
        base(572, base_flags, reserved=base_reserved)
        + internal(ESTABLISH, flags, reserved=internal_reserved)
        + client
        + server
        + struct.pack("<IHH", time_stamp, operating_system, reserved)
        + padding
    )


def parameters(
    recoverable: int = 500,
    ack: int = 20_000,
    window: int = 64,
    *,
    reserved: int = 0,
    flags: int = 0,
    base_reserved: int = 0,
) -> bytes:
    """ConnectionParameters, 32 bytes."""
    values = struct.pack("<IIHH", recoverable, ack, reserved, window)
    return base(32, reserved=base_reserved) + internal(PARAMETERS, flags) + values


def session_header(
    ack: int = 0,
    first: int = 0,
    bits: int = 0,
    sent: int = 0,
    recoverable_sent: int = 0,
    window: int = 64,
    *,
    reserved: int = 0,
) -> bytes:
    """SessionHeader, 16 bytes."""
    return struct.pack("<HHIHHHH", ack, first, bits, sent, recoverable_sent, window, reserved)


def session_ack(header: bytes, *, flags: int = 0) -> bytes:
    """SessionAck, 36 bytes with its SessionHeader."""
    return base(36, 0x0B | WITH_SESSION_HEADER) + internal(SESSION_ACK, flags) + header


def direct_name(text: str) -> bytes:
    """A direct name: without DIRECT=, its NUL counted, padded to 4."""
    data = text.encode("utf-16-le") + b"\0\0"
    return _padded(struct.pack("<H", len(data)) + data)


@dataclass(frozen=True)
class Security:
    """SecurityHeader, part by part."""

    flags: int = 0
    security_id: bytes = b""
    encryption_key: bytes = b""
    signature: bytes = b""
    certificate: bytes = b""

    def encode(self) -> bytes:
        parts = (self.security_id, self.encryption_key, self.signature, self.certificate)
        if not any(parts):
            return b""
        sizes = struct.pack("<HHHHII", self.flags, *map(len, parts), 0)
        return sizes + b"".join(map(_padded, parts))


@dataclass
class Headers:
    """A UserMessage, header by header; `encode` only adds the sizes."""

    source: bytes
    destination: bytes  # the bytes of DestinationQueue
    message_id: int
    sent_time: int
    address: bytes = NULL
    flags: int = MESSAGE_PROPERTIES | DIRECT << 10
    priority: int = 3
    ttrq: int = INFINITE
    ttbr: int = INFINITE
    admin: bytes = b""
    response: bytes = b""
    transaction: tuple[int, int, int] | None = None
    transaction_flags: int = 0
    acknowledgements: int = 0
    label: str = ""
    message_class: int = 0
    correlation: bytes = bytes(20)
    body_type: int = 0
    tag: int = 0
    extension: bytes = b""
    body: bytes = b"hello"
    label_length: int | None = None
    message_size: int | None = None
    extension_size: int | None = None
    extra: bytes = b""
    base_flags: int = 0
    packet_size: int | None = None
    session: bytes = b""
    security: bytes = field(default=b"")
    parts: Security = field(default_factory=Security)
    privacy: int = 0
    hash_algorithm: int = 0x800E
    cipher: int = 0x6801

    def encode(self) -> bytes:
        flags, body = self.flags, b""
        if self.transaction is not None:
            flags |= TRANSACTION_HEADER
            body += struct.pack("<IQII", self.transaction_flags, *self.transaction)
        security = self.security or self.parts.encode()
        if security:
            flags |= 1 << 19
            body += security
        head = self.source + self.address
        head += struct.pack("<IIII", self.ttbr, self.sent_time, self.message_id, flags)
        rest = head + self.destination + self.admin + self.response + body
        rest += self._properties() + self.extra
        size = 16 + len(rest) if self.packet_size is None else self.packet_size
        base_flags = self.base_flags | (0 if self.transaction is not None else self.priority)
        if self.session:
            base_flags |= WITH_SESSION_HEADER
        return base(size, base_flags, ttrq=self.ttrq) + rest + self.session

    def _properties(self) -> bytes:
        label = (self.label + "\0").encode("utf-16-le") if self.label else b""
        sizes = (
            len(label) // 2 if self.label_length is None else self.label_length,
            len(self.body) if self.message_size is None else self.message_size,
            len(self.extension) if self.extension_size is None else self.extension_size,
        )
        fixed = struct.pack(
            "<BBH20sIIIIIIII",
            self.acknowledgements,
            sizes[0],
            self.message_class,
            self.correlation,
            self.body_type,
            self.tag,
            sizes[1],
            sizes[1],
            self.privacy,
            self.hash_algorithm,
            self.cipher,
            sizes[2],
        )
        return fixed + _padded(label + self.extension + self.body)


def ping(flags: int, cookie: int, guid: bytes, *, signature: int = 0x5548) -> bytes:
    """Ping, 24 bytes in a datagram."""
    return struct.pack("<HHI", flags, signature, cookie) + guid


def order_ack_body(sequence: int, number: int, previous: int, reserved: bytes = bytes(20)) -> bytes:
    return struct.pack("<QII", sequence, number, previous) + reserved


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
