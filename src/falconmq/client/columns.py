"""The columns of messages as a table: Arrow streams over HTTP, Parquet files, Spark.

One list for reading, sending and docs/reference/arrow-schema.md. Types are those that Arrow,
Parquet and Spark share: no unsigned numbers, so what has 32 bits in a packet has 64 here, and what
has 64 is a text of digits. Nothing here needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from falconmq.message import (
    Acknowledge,
    AuthenticationLevel,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    PrivacyLevel,
    SenderIdType,
)

STRING: Final = "string"
BINARY: Final = "binary"
BOOL: Final = "bool"
INT32: Final = "int32"
INT64: Final = "int64"
TIME: Final = "timestamp[us, tz=UTC]"
STRINGS: Final = "list<string>"

Values = Callable[[Sequence[Message]], list[Any]]
"""A column of messages: the values of all of them, in their order."""


class Column(NamedTuple):
    """One column: how it is read off messages, and whether senders may set it."""

    name: str
    type: str
    description: str
    values: Values | None  # None: a message does not know it, its queue does
    is_sent: bool = False  # else it is ignored in what is sent


def _each(get: Callable[[Message], Any]) -> Values:
    return lambda messages: list(map(get, messages))


def _named(choices: type[IntEnum], field: str) -> Values:
    """A choice by its name; a number that has none as text."""
    names = {int(member): member.name for member in choices}
    read = attrgetter(field)

    def values(messages: Sequence[Message]) -> list[str]:
        return [names.get(value) or str(int(value)) for value in map(read, messages)]

    return values


def _flags(flags: type[IntFlag], field: str) -> Values:
    """The names of single bits; there are few different lists, so each is made once."""
    single = [flag for flag in flags if flag.name is not None]
    read = attrgetter(field)

    @lru_cache(maxsize=64)
    def names(value: int) -> list[str]:
        return [str(flag.name) for flag in single if flag & value]

    return lambda messages: [names(int(value)) for value in map(read, messages)]


def _text(field: str) -> Values:
    """Names and GUIDs as text; null if there is none.

    Messages to the same queue share the object that names it, so its text is made once.
    """
    read = attrgetter(field)

    def values(messages: Sequence[Message]) -> list[str | None]:
        texts: dict[int, str | None] = {id(None): None}
        found: list[str | None] = []
        for value in map(read, messages):  # the messages hold the objects: no id comes again
            key = id(value)
            if key not in texts:
                texts[key] = str(value)
            found.append(texts[key])
        return found

    return values


def _texts(field: str) -> Values:
    read = attrgetter(field)
    return lambda messages: [[str(name) for name in names] for names in map(read, messages)]


def _microseconds(field: str) -> Values:
    read = attrgetter(field)

    def values(messages: Sequence[Message]) -> list[int | None]:
        return [None if seconds is None else seconds * 1_000_000 for seconds in map(read, messages)]

    return values


def _place(field: str, convert: Callable[[Any], Any] | None = None) -> Values:
    """Of the message's place in its transaction; null if there is none."""
    read = attrgetter(field)

    def value(message: Message) -> Any:
        place = message.transaction
        if place is None:
            return None
        return read(place) if convert is None else convert(read(place))

    return _each(value)


@lru_cache(maxsize=1024)
def _source_text(source: bytes) -> str:
    return str(UUID(bytes_le=source))


def _ids(messages: Sequence[Message]) -> list[str | None]:
    r"""`{GUID}\number`; few queue managers send many messages."""
    return [
        None if id is None else f"{{{_source_text(id[:16]).upper()}}}\\{id.ordinal}"
        for id in map(attrgetter("id"), messages)
    ]


def _sources(messages: Sequence[Message]) -> list[str | None]:
    return [None if id is None else _source_text(id[:16]) for id in map(attrgetter("id"), messages)]


def _sent(name: str, type_: str, description: str, values: Values | None = None) -> Column:
    return Column(name, type_, description, values or _each(attrgetter(name)), is_sent=True)


def _filled(name: str, type_: str, description: str, values: Values | None = None) -> Column:
    return Column(name, type_, description, values or _each(attrgetter(name)))


COLUMNS: Final = (
    # What a queue manager fills in
    _filled("message_id", STRING, "`{GUID}\\number`: names the message for ever.", _ids),
    _filled("lookup_id", INT64, "Its place in the queue; small ones are read first."),
    Column("arrival_number", INT64, "Counts messages as they become readable in a queue.", None),
    Column("locked", BOOL, "A reader holds it; null if that was not asked.", None),
    Column("queue", STRING, "The queue it was read from.", None),
    # What it says
    _sent("label", STRING, "Up to 249 characters for people and filters."),
    _sent("body", BINARY, "The body. The only column that sending needs; there a text will do."),
    _sent("body_type", INT64, "VARIANT type of the body: 0 bytes, 8 text in UTF-16, 30 in ANSI."),
    _sent("application_tag", INT64, "A number of the application."),
    _sent("extension", BINARY, "Bytes beside the body."),
    _sent(
        "correlation_id",
        STRING,
        "The id of the message that this one answers; null if none.",
        _each(lambda message: str(message.correlation_id) if message.correlation_id else None),
    ),
    _sent(
        "message_class",
        STRING,
        "NORMAL, or what an acknowledgement or dead letter says.",
        _named(MessageClass, "message_class"),
    ),
    # How it travels
    _sent("priority", INT32, "0 to 7; 0 in a transaction."),
    _sent("delivery", STRING, "EXPRESS or RECOVERABLE.", _named(Delivery, "delivery")),
    _sent(
        "time_to_reach_queue",
        INT64,
        "Seconds; 4294967295 is no limit, null the default of the queue manager.",
    ),
    _sent("time_to_be_received", INT64, "Seconds from sending; 4294967295 is no limit."),
    _sent(
        "acknowledgements",
        STRINGS,
        "POSITIVE_ARRIVAL, NEGATIVE_ARRIVAL, POSITIVE_RECEIVE, NEGATIVE_RECEIVE.",
        _flags(Acknowledge, "acknowledgements"),
    ),
    _sent(
        "journal",
        STRINGS,
        "Copies that the sending computer keeps: JOURNAL, DEAD_LETTER.",
        _flags(Journal, "journal"),
    ),
    _filled(
        "destination", STRING, "Format name of the queue it was sent to.", _text("destination")
    ),
    _filled("destinations", STRINGS, "All queues, if it went to several.", _texts("destinations")),
    _sent(
        "administration_queue",
        STRING,
        "Format name; acknowledgements go there.",
        _text("administration_queue"),
    ),
    _sent(
        "administration_queues",
        STRINGS,
        "The same, if they are several.",
        _texts("administration_queues"),
    ),
    _sent(
        "response_queue",
        STRING,
        "Format name; answers are expected there.",
        _text("response_queue"),
    ),
    _sent("response_queues", STRINGS, "The same, if they are several.", _texts("response_queues")),
    _sent("dead_letter_queue", STRING, "Path of a dead-letter queue of the application's own."),
    _sent("allow_peek_when_locked", BOOL, "Others may look at it while a reader holds it."),
    _sent("trace", BOOL, "Each hop is reported."),
    _sent("report_queue", STRING, "GUID of the public queue for these.", _text("report_queue")),
    _sent("connector_type", STRING, "GUID of a connector.", _text("connector_type")),
    # Who sent it, how it is protected
    _sent(
        "privacy_level",
        STRING,
        "NONE, BASE, ENHANCED or ADVANCED.",
        _named(PrivacyLevel, "privacy_level"),
    ),
    _sent(
        "encryption_algorithm",
        STRING,
        "RC2, RC4, AES128, AES192 or AES256.",
        _named(EncryptionAlgorithm, "encryption_algorithm"),
    ),
    _sent(
        "hash_algorithm",
        STRING,
        "Of the signature: SHA_512, SHA_256, SHA1, ...",
        _named(HashAlgorithm, "hash_algorithm"),
    ),
    _sent("sender_id", BINARY, "SID of the sender, as bytes."),
    _sent(
        "sender_id_type",
        STRING,
        "NONE, SID or QUEUE_MANAGER.",
        _named(SenderIdType, "sender_id_type"),
    ),
    _sent("sender_certificate", BINARY, "X.509 certificate of the sender."),
    _sent("signature", BINARY, "Made by the sender."),
    _sent("multiple_destination_signature", BINARY, "The same, for several destinations."),
    _sent("symmetric_key", BINARY, "Of the encrypted body, itself encrypted."),
    _sent(
        "provider_name",
        STRING,
        "Cryptographic provider, if it is not the default one.",
        _each(lambda message: None if message.provider is None else message.provider.name),
    ),
    _sent(
        "provider_type",
        INT64,
        "Its type.",
        _each(lambda message: None if message.provider is None else message.provider.type),
    ),
    _filled(
        "authentication_level",
        STRING,
        "Which signature the receiver verified: NONE, SIG10, SIG20, SIG30, XML_SIG.",
        _named(AuthenticationLevel, "authentication_level"),
    ),
    _filled("authenticated", BOOL, "It verified one.", _each(attrgetter("is_authenticated"))),
    _filled(
        "encrypted",
        BOOL,
        "The body was encrypted on its way.",
        _each(lambda message: message.privacy_level != PrivacyLevel.NONE),
    ),
    _sent("soap_header", STRING, "Of a message that came over HTTP."),
    _sent("soap_body", STRING, "The same."),
    # Its life
    _filled("sent_at", TIME, "When it was sent.", _microseconds("sent_time")),
    _filled("arrived_at", TIME, "When it came into this queue.", _microseconds("arrived_time")),
    _filled(
        "source_queue_manager",
        STRING,
        "GUID of the queue manager that took it from the application.",
        _sources,
    ),
    _filled(
        "destination_queue_manager",
        STRING,
        "GUID of the queue manager it goes to, if the packet says so.",
        _text("destination_queue_manager"),
    ),
    _filled("hop_count", INT32, "Queue managers that it passed."),
    _filled("abort_count", INT32, "How often a transaction that had received it was aborted."),
    _filled("move_count", INT32, "How often it was moved between queues."),
    _filled(
        "transactional",
        BOOL,
        "It was sent in a transaction.",
        _each(attrgetter("is_transactional")),
    ),
    _filled("transaction_id", INT64, "20 bits; the same in all of a transaction.", _place("id")),
    _filled(
        "transaction_sequence_id",
        STRING,
        "The stream it belongs to, 64 bits in digits.",
        _place("sequence_id", str),
    ),
    _filled(
        "transaction_sequence_number",
        INT64,
        "Its place in the stream, from 1.",
        _place("sequence_number"),
    ),
    _filled(
        "transaction_previous_number",
        INT64,
        "The place of the one before it; 0 if there is none.",
        _place("previous_sequence_number"),
    ),
    _filled(
        "is_first_in_transaction", BOOL, "It is the first of its transaction.", _place("is_first")
    ),
    _filled("is_last_in_transaction", BOOL, "It is the last.", _place("is_last")),
    Column("size", INT64, "Bytes of headers and body together.", None),
)
BODY: Final = "body"
BY_NAME: Final = {column.name: column for column in COLUMNS}
