"""How a message is kept: its packet as it travels, and beside it what never travels.

A record is a fixed part, the path of the application's dead-letter queue, and the packet. The
packet is the very bytes a peer sent or will get; nothing is encoded again when a message moves.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from falconmq.wire.base_header import INTERNAL, PRIORITY, SIGNATURE, BaseHeader
from falconmq.wire.base_header import VERSION as PACKET_VERSION
from falconmq.wire.packet import decode_packet
from falconmq.wire.reader import Buffer, Layout, Reader
from falconmq.wire.transaction_header import (
    FIRST_MESSAGE,
    LAST_MESSAGE,
    TRANSACTION_ID,
    TRANSACTION_ID_SHIFT,
    TransactionHeader,
)
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    TRANSACTION_HEADER,
    UserHeader,
)
from falconmq.wire.user_message import UserMessage

VERSION: Final = 1
_BEGIN: Final = struct.Struct("<BxHI")  # version, flags and signature of a BaseHeader
_HEAD: Final = struct.Struct("<2xH8xI16s16sIIII")  # of BaseHeader and UserHeader, see Head
_IDENTITY: Final = struct.Struct("<16x16s24xI")  # of the same, what names the message
ALLOW_PEEK_WHEN_LOCKED: Final = 0x01
DEAD_LETTER: Final = 0x02
NEEDS_NUMBER: Final = 0x04
_NEGATIVE: Final = 0x8000  # of a message class
_AT_READING: Final = 0x4000  # of a negative one: it had arrived
_LAYOUT: Final = Layout(
    "MessageRecord",
    "BBBBHHQQH",
    "Version",
    "Flags",
    "AuthenticationLevel",
    "DeadLetterReason",
    "AbortCount",
    "MoveCount",
    "ArrivalTimeMs",
    "ArrivalNumber",
    "DeadLetterQueueSize",
)


class Head(NamedTuple):
    """What stands at fixed places of a packet, read without decoding it."""

    base_flags: int
    time_to_reach_queue: int
    source_queue_manager: bytes
    queue_manager_address: bytes
    time_to_be_received: int
    sent_time: int
    message_id: int
    flags: int


@dataclass(slots=True, eq=False)
class StoredMessage:
    """One message inside the queue manager (MQDMPR 3.1.1.12).

    `data` are the bytes of the packet, `packet` the same decoded, when somebody asks: what is only
    passed on is never decoded again. `arrival_time` is in seconds.
    """

    data: Buffer
    decoded: UserMessage | None = None
    arrival_time: float = 0.0
    arrival_number: int = 0
    allow_peek_when_locked: bool = False
    authentication_level: int = 0  # what our own check of the signature found, QB-3.1.5.8.3
    dead_letter_queue: str = ""
    abort_count: int = 0
    move_count: int = 0
    is_dead_letter: bool = False  # a copy of what was not delivered: it waits for ever
    dead_letter_reason: int = 0  # the message class that says why; 0: it was not kept
    needs_number: bool = False  # nobody was there to give it its place in a stream
    extra: dict[str, object] = field(default_factory=dict)  # volatile, for subscribers

    @classmethod
    def of(cls, packet: UserMessage) -> Self:
        """A message from a packet that has just been built."""
        return cls(packet.encode(), packet)

    @property
    def packet(self) -> UserMessage:
        return self.decoded or self.decode_packet()

    def decode_packet(self) -> UserMessage:
        """Decode the bytes; WireError if they are no user message."""
        packet = decode_packet(self.data)
        assert isinstance(packet, UserMessage)
        self.decoded = packet
        return packet

    @property
    def head(self) -> Head:
        return Head._make(_HEAD.unpack_from(self.data))

    @property
    def identity(self) -> tuple[bytes, int]:
        """SourceQueueManager and MessageID: the identifier of the message."""
        source, message_id = _IDENTITY.unpack_from(self.data)
        return source, message_id

    @property
    def priority(self) -> int:
        """0 to 7. That of a transactional message is 0, whatever its sender wrote."""
        if self.decoded is not None:
            return self.decoded.priority
        head = self.head
        return 0 if head.flags & TRANSACTION_HEADER else head.base_flags & PRIORITY

    @property
    def size(self) -> int:
        """Bytes that count against quotas: headers and body."""
        return len(self.data)

    @property
    def is_recoverable(self) -> bool:
        decoded = self.decoded
        flags = self.head.flags if decoded is None else decoded.user.flags
        return bool(flags & DELIVERY_MODE)  # 2 and 3 ask for safety: QB-3.1.7.15-33

    @property
    def transaction(self) -> TransactionHeader | None:
        if self.decoded is not None:
            return self.decoded.transaction
        if not self.head.flags & TRANSACTION_HEADER:
            return None
        return TransactionHeader.decode(self.data, transaction_header_offset(self.data))

    @property
    def wire_transaction_id(self) -> int:
        """The 20 bits that name the transaction of its sender; 0 if there was none."""
        header = self.packet.transaction
        return 0 if header is None else (header.flags & TRANSACTION_ID) >> TRANSACTION_ID_SHIFT

    def mark_in_transaction(self, *, first: bool = False, last: bool = False) -> None:
        """Set FirstInTransaction and LastInTransaction, in the packet and in its bytes alike.

        Nothing is encoded again, and the packet and header that copies share stay as they are.
        """
        header = self.packet.transaction
        flags = (FIRST_MESSAGE if first else 0) | (LAST_MESSAGE if last else 0)
        if header is None or header.flags & flags == flags:
            return
        self._replace_transaction(replace(header, flags=header.flags | flags))

    def number_in_sequence(self, sequence_id: int, number: int) -> None:
        """Give a message the place in its stream that it keeps for good (QB-A38)."""
        header = self.packet.transaction
        assert header is not None
        self.needs_number = False
        self._replace_transaction(
            replace(
                header,
                tx_sequence_id=sequence_id,
                tx_sequence_number=number,
                previous_tx_sequence_number=number - 1,
            )
        )

    def _replace_transaction(self, header: TransactionHeader) -> None:
        """Put in a TransactionHeader of the same size, in the packet and in its bytes alike."""
        self.decoded = replace(self.packet, transaction=header)
        at, written = transaction_header_offset(self.data), header.encode()
        self.data = b"".join((self.data[:at], written, self.data[at + len(written) :]))

    def encode(self) -> bytes:
        """The record that the store keeps."""
        path = self.dead_letter_queue.encode()
        flags = ALLOW_PEEK_WHEN_LOCKED if self.allow_peek_when_locked else 0
        if self.is_dead_letter:
            flags |= DEAD_LETTER
        if self.needs_number:
            flags |= NEEDS_NUMBER
        head = _LAYOUT.pack(
            VERSION,
            flags,
            self.authentication_level,
            _short_reason(self.dead_letter_reason),
            min(self.abort_count, 0xFFFF),
            min(self.move_count, 0xFFFF),
            int(self.arrival_time * 1000),
            self.arrival_number,
            len(path),
        )
        return b"".join((head, path, self.data))

    @classmethod
    def decode(cls, record: Buffer) -> Self:
        """Read a record back; WireError if the store gave us something else."""
        reader = Reader(record)
        reader.enter("MessageRecord")
        version, flags, level, reason, aborts, moves, arrival_ms, number, size = reader.fixed(
            _LAYOUT
        )
        if version != VERSION:
            raise reader.refuse(_LAYOUT, "Version", f"{version}, this FalconMQ writes {VERSION}")
        path = bytes(reader.take(size, "DeadLetterQueue")).decode("utf-8", "replace")
        data = reader.take(reader.remaining, "Packet")
        if len(data) < _HEAD.size or not is_user_message(data):
            raise reader.error("Packet", "no user message")
        return cls(
            data,
            None,
            arrival_ms / 1000,
            number,
            bool(flags & ALLOW_PEEK_WHEN_LOCKED),
            level,
            path,
            aborts,
            moves,
            bool(flags & DEAD_LETTER),
            _long_reason(reason),
            bool(flags & NEEDS_NUMBER),
        )


def _short_reason(message_class: int) -> int:
    """A negative acknowledgement in one byte: its severity and kind, and six bits of its number."""
    if not message_class & _NEGATIVE:
        return 0
    return 0x80 | (message_class & _AT_READING) >> 8 | message_class & 0x3F


def _long_reason(short: int) -> int:
    if not short & 0x80:
        return 0
    return _NEGATIVE | (short & 0x40) << 8 | short & 0x3F


def is_user_message(data: Buffer) -> bool:
    """Whether bytes begin like a user message. The store answers for the rest: it has checksums."""
    version, flags, signature = _BEGIN.unpack_from(data)
    return version == PACKET_VERSION and signature == SIGNATURE and not flags & INTERNAL


def transaction_header_offset(data: Buffer) -> int:
    """Where the TransactionHeader of a packet begins: behind the UserHeader, of any length."""
    reader = Reader(data)
    BaseHeader.read(reader)
    UserHeader.read(reader)
    return reader.position
