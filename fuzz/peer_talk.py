"""What peers say to a daemon: valid packets of every kind, and whole conversations of them.

How to think about it. A `Vocabulary` holds one valid packet of each kind, made once. A conversation
takes packets from it, gives each a number of its own so that it is no duplicate, and opens with the
two packets that open a session. What number a conversation has decides all that is in it: the same
seed and the same daemon give the same bytes.
"""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from falconmq.wire.multi_queue_format_header import (
    DESTINATION_ID,
    DIRECT,
    MQFAddressHeader,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from falconmq.wire.security_header import ENCRYPTED_BODY, ProviderInfo, SecurityHeader
from falconmq.wire.user_message import UserMessage
from fuzz.examples import encoded, examples
from tests.conformance_wire import packets
from tests.conformance_wire.sealing import AES_128, SHA256, encrypted, public_key, signed, user
from tests.strategies import user_message

BASE: Final = 16  # bytes of a BaseHeader
SOURCE_AT: Final = BASE  # SourceQueueManager
MESSAGE_ID_AT: Final = BASE + 40
FLAGS_AT: Final = BASE + 44  # UserHeader.Flags
COUNTS_AT: Final = BASE + 4 + 8  # of a SessionAck: how many messages its sender has sent
NAMES_AT: Final = BASE + 48
ADMIN_DIRECT: Final = packets.DIRECT << 13
TRACED: Final = 0x0020  # BaseHeader.Flags: a debug header, with a queue for reports
CERTIFICATE: Final = bytes(range(256)) * 3  # no certificate, but of its size
PROVIDER: Final = "Microsoft Enhanced RSA and AES Cryptographic Provider"
SIGNER: Final = bytes(range(200, 216))  # a queue manager that signs
_MANAGERS: Final = 64  # queue managers that many conversations share
_LONGEST: Final = 60  # packets behind the opening
_SEQUENCE: Final = 1 << 32


@dataclass(frozen=True)
class Address:
    """Whom the conversations are for: what a peer has to know to be heard."""

    guid: bytes
    plain: str  # names of private queues
    transactional: str
    number: int  # of the first of them
    signed: str  # takes only what is signed
    sealed: str  # takes only what is encrypted
    keys: dict[str, str]  # what it exports: messages are encrypted for it
    answers: str  # the computer that answers are to go to


@dataclass(frozen=True)
class Template:
    """A valid packet; `transaction_at` is where its TransactionHeader has TxSequenceID."""

    data: bytes
    transaction_at: int = 0
    is_message: bool = True
    keeps_source: bool = False  # its signature covers SourceQueueManager

    @property
    def is_recoverable(self) -> bool:
        return self.is_message and self.data[FLAGS_AT] & 0x60 == 0x20


class Vocabulary:
    """One valid packet of every kind that a daemon may hear in an open session."""

    def __init__(self, target: Address) -> None:
        self.target = target
        self._plain = packets.direct_name(rf"OS:fuzzed\private$\{target.plain}")
        self._strict = packets.direct_name(rf"OS:fuzzed\private$\{target.transactional}")
        self._signed = packets.direct_name(rf"OS:fuzzed\private$\{target.signed}")
        self._sealed = packets.direct_name(rf"OS:fuzzed\private$\{target.sealed}")
        self._admin = packets.direct_name(rf"OS:{target.answers}\private$\admin")
        self.templates = [
            *map(_template, self._plain_messages()),
            *map(_template, self._transactions()),
            *map(_template, self._protected()),
            *map(_template, self._well_protected()),
            replace(_template(self._signed_message()), keeps_source=True),
            *map(_template, self._acknowledgements()),
            *(Template(data) for data in self._any_messages()),
            *(Template(data, is_message=False) for data in self._session_acks()),
        ]

    def conversation(self, seed: int, number: int, *, answers: bool = False) -> list[bytes]:
        """The packets of one session; `answers`: the daemon has called, and is answered."""
        random = Random(f"{seed}/{number}/{answers}")
        guid = random.randbytes(16)
        if random.random() < 0.9:
            guid = random.randrange(1, _MANAGERS).to_bytes(16, "big")
        talk = [*self._opening(random, guid, answers)]
        counts = _Counts(guid, number)
        count = random.randint(1, _LONGEST)
        return talk + [counts.numbered(random.choice(self.templates)) for _ in range(count)]

    def pings(self, seed: int, number: int) -> list[bytes]:
        """Datagrams, right ones."""
        random = Random(f"{seed}/{number}/pings")
        count = random.randint(1, _LONGEST)
        return [
            packets.ping(random.choice((0, 1)), random.getrandbits(32), random.randbytes(16))
            for _ in range(count)
        ]

    def _opening(self, random: Random, guid: bytes, answers: bool) -> Iterator[bytes]:
        if answers:
            yield packets.establish(self.target.guid, guid)
        else:
            server = random.choice((packets.NULL, packets.NULL, self.target.guid))
            yield packets.establish(guid, server)
        yield packets.parameters(500, 20_000, random.choice((1, 2, 64, 64, 0xFFFF)))

    def _message(self, destination: bytes = b"", flags: int = 0) -> packets.Headers:
        return packets.Headers(
            source=bytes(16),
            destination=destination or self._plain,
            message_id=1,
            sent_time=int(time.time()),
            flags=packets.MESSAGE_PROPERTIES | packets.DIRECT << 10 | flags,
        )

    def _plain_messages(self) -> Iterator[packets.Headers]:
        express, recoverable = self._message(), self._message(flags=1 << 5)
        yield express
        yield recoverable
        yield replace(express, body=b"x" * 2000, label="label", extension=b"extension", priority=7)
        yield replace(recoverable, ttrq=5, ttbr=5, body_type=31, label="x" * 249)
        asks = recoverable.flags | ADMIN_DIRECT
        yield replace(recoverable, flags=asks, admin=self._admin, acknowledgements=0x0F)
        yield replace(express, flags=asks & ~(1 << 5), admin=self._admin, acknowledgements=0x05)
        missing = packets.direct_name(r"OS:fuzzed\private$\missing")
        yield replace(recoverable, destination=missing, flags=asks, admin=self._admin)
        journal = packets.JOURNAL_NEGATIVE | packets.JOURNAL_POSITIVE
        yield replace(express, flags=express.flags | journal)
        numbered = packets.MESSAGE_PROPERTIES | packets.PRIVATE << 10
        number = self.target.number.to_bytes(4, "little")
        yield replace(express, flags=numbered, destination=number, address=self.target.guid)
        far = bytes(range(16))  # a queue manager that nobody knows: it is passed on
        yield replace(express, flags=numbered | 3, destination=number, address=far)
        public = packets.MESSAGE_PROPERTIES | packets.PUBLIC << 10
        yield replace(express, flags=public, destination=far)
        several = MQFAddressHeader(
            DESTINATION_ID,
            tuple(MQFFormatNameElement(DIRECT, rf"OS:a{n}.invalid\q") for n in range(8)),
        )
        listed = MultiQueueFormatHeader(several).encode()
        yield replace(express, flags=express.flags | 1 << 23, extra=listed)

    def _transactions(self) -> Iterator[packets.Headers]:
        first = replace(self._message(self._strict, 1 << 5), transaction=(_SEQUENCE, 1, 0))
        yield first
        yield replace(first, transaction_flags=6, body=b"y" * 500)
        asks = first.flags | ADMIN_DIRECT | packets.JOURNAL_NEGATIVE
        yield replace(first, flags=asks, admin=self._admin, acknowledgements=0x0F)
        yield replace(first, destination=self._plain)

    def _protected(self) -> Iterator[packets.Headers]:
        """Signed and encrypted as far as the layout goes: the daemon has to find out the rest."""
        sid = bytes.fromhex("010500000000000515000000") + bytes(range(16))
        info = ProviderInfo(24, PROVIDER)
        for flags, key, signature in (
            (1, b"", b"s" * 128),
            (1 | ENCRYPTED_BODY, b"k" * 140, b""),
            (1 | ENCRYPTED_BODY, b"k" * 12, b"s" * 128),
            (2, b"", b""),
        ):
            sender = sid if flags & 1 else bytes(range(16))
            header = SecurityHeader(flags, sender, key, signature, CERTIFICATE, info).encode()
            yield replace(self._message(), security=header)
            yield replace(
                self._message(self._strict, 1 << 5),
                security=header,
                transaction=(_SEQUENCE, 1, 0),
            )

    def _well_protected(self) -> Iterator[packets.Headers]:
        """What the daemon can verify and decrypt, until it is damaged."""
        key, anna = public_key(self.target.keys), user()
        yield encrypted(self._message(self._sealed), key)
        yield encrypted(self._message(flags=1 << 5), key, AES_128)
        yield encrypted(replace(self._message(), body=b"x" * 3000, label="label"), key)
        yield signed(self._message(self._signed), anna, first_list=True)
        yield signed(self._message(self._signed), anna, first_list=True, algorithm=SHA256)
        yield encrypted(signed(self._message(self._sealed), anna, first_list=True), key)
        first = replace(self._message(self._strict, 1 << 5), transaction=(_SEQUENCE, 1, 0))
        yield encrypted(first, key)
        yield signed(first, anna, first_list=True)

    def _signed_message(self) -> packets.Headers:
        """Signed with all that a signature can cover."""
        message = replace(self._message(self._signed), source=SIGNER, label="label", priority=7)
        return signed(message, user())

    def _acknowledgements(self) -> Iterator[packets.Headers]:
        orders = packets.direct_name(r"OS:fuzzed\private$\order_queue$")
        body = packets.order_ack_body(_SEQUENCE, 1, 0)
        answer = replace(self._message(orders), body=body, label="QM Ordering Ack")
        yield replace(answer, message_class=0xFF)
        for final in (0x4000, 0x8000, 0x8004):
            yield replace(answer, message_class=final)
        yield replace(self._message(), message_class=2, correlation=self.target.guid + bytes(4))

    def _session_acks(self) -> Iterator[bytes]:
        for window in (0, 1, 64):
            yield packets.session_ack(packets.session_header(window=window))

    def _any_messages(self) -> Iterator[bytes]:
        """Every header in every combination, to queues that hardly exist."""
        yield from examples(user_message.user_messages(), lambda m: encoded(_uncounted(m)))


def _uncounted(message: UserMessage) -> UserMessage:
    """Without the counts of a session, which would be wrong in any other."""
    flags = message.base.flags & ~packets.WITH_SESSION_HEADER
    return replace(message, base=replace(message.base, flags=flags), session=None)


class _Counts:
    """What makes a packet the next one of its conversation."""

    def __init__(self, guid: bytes, conversation: int) -> None:
        self._guid = guid
        self._sequence = _SEQUENCE + conversation
        self._message_ids = itertools.count(conversation << 7)
        self._transactional = self._sent = self._recoverable = 0

    def numbered(self, template: Template) -> bytes:
        data = bytearray(template.data)
        if not template.is_message:
            struct.pack_into("<HH", data, COUNTS_AT, self._sent, self._recoverable)
            return bytes(data)
        self._sent += 1
        self._recoverable += template.is_recoverable
        if not template.keeps_source:
            data[SOURCE_AT : SOURCE_AT + 16] = self._guid
        struct.pack_into("<I", data, MESSAGE_ID_AT, next(self._message_ids) & 0xFFFFFFFF)
        if at := template.transaction_at:
            last, self._transactional = self._transactional, self._transactional + 1
            struct.pack_into("<QII", data, at, self._sequence, last + 1, last)
        return bytes(data)


def _template(headers: packets.Headers) -> Template:
    at = 0
    if headers.transaction is not None:
        names = headers.destination + headers.admin + headers.response
        at = NAMES_AT + len(names) + 4
    return Template(headers.encode(), at)
