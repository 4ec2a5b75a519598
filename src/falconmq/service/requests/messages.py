"""Messages to JSON and back: the texts of `schemas` and the values of `falconmq.Message`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum, IntFlag, StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from falconmq.body import BodyType, body_text, describe_body
from falconmq.errors import MessageError
from falconmq.message import (
    INFINITE,
    Acknowledge,
    AuthenticationLevel,
    CryptographicProvider,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    MessageTransaction,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.names import MultipleElementFormatName, SingleFormatName, parse_format_name
from falconmq.names.syntax import did_you_mean
from falconmq.service.requests.senders import sender_json
from falconmq.service.schemas import MessageIn
from falconmq.wire.sid import Sid

_CHOICES: Final[Mapping[str, type[IntEnum]]] = {
    "body_type": BodyType,
    "message_class": MessageClass,
    "privacy_level": PrivacyLevel,
    "encryption_algorithm": EncryptionAlgorithm,
    "hash_algorithm": HashAlgorithm,
    "authentication_level": AuthenticationLevel,
    "sender_id_type": SenderIdType,
}
_FLAGS: Final[Mapping[str, type[IntFlag]]] = {
    "acknowledgements": Acknowledge,
    "journal": Journal,
}
_BYTES: Final = (
    "extension",
    "sender_id",
    "sender_certificate",
    "signature",
    "multiple_destination_signature",
    "symmetric_key",
)
_SECONDS: Final = ("time_to_reach_queue", "time_to_be_received")
_QUEUE_LISTS: Final = ("administration_queues", "response_queues")

_NO_NAMES: Final[Mapping[str, Sid]] = MappingProxyType({})
_PREVIEW: Final = 512  # bytes of a body
_CUT_MAX: Final = 4  # bytes of a character that the cut may go through

_Enum = TypeVar("_Enum", bound=IntEnum)


class Shown(StrEnum):
    """How much of a body is shown."""

    FULL = "full"
    PREVIEW = "preview"  # its first 512 bytes
    NONE = "none"


class _Body(NamedTuple):
    data: bytes | str
    body_type: int | None


def from_json(given: MessageIn) -> Message:
    """The message that a request describes; MessageError names the property that is wrong."""
    values: dict[str, Any] = given.model_dump(exclude_none=True, by_alias=True)
    if "json_" in given.model_fields_set:
        values["json"] = given.json_  # null is JSON too
    _convert(values)
    return _message(values)


def _convert(values: dict[str, Any]) -> None:
    """Texts become what `Message` takes."""
    for field, choices in _CHOICES.items():
        if field in values:
            values[field] = _choice(field, choices, values[field])
    for field, flags in _FLAGS.items():
        if field in values:
            values[field] = _flags(field, flags, values[field])
    for field in _BYTES:
        if field in values:
            values[field] = _bytes(field, values[field])
    for field in _SECONDS:
        if values.get(field) == "infinite":
            values[field] = INFINITE
    for field in _QUEUE_LISTS:
        if field in values:
            values[field] = tuple(_format_name(field, name) for name in values[field])
    if "provider" in values:
        values["provider"] = CryptographicProvider(**values["provider"])


def _message(values: dict[str, Any]) -> Message:
    bodies = [field for field in ("text", "json", "body") if field in values]
    if len(bodies) > 1:
        raise MessageError(bodies[1], f"{bodies[0]} is given too", hint="a message has one body")
    body_type: int | None = values.pop("body_type", None)
    if "json" in values:
        value = values.pop("json")
        message = Message.json(value, **values)
        message.body_type = BodyType.VT_EMPTY if body_type is None else body_type
        return message
    if "text" in values:
        body = _text(values.pop("text"), body_type)
    else:
        body = _Body(_bytes("body", values.pop("body", "")), body_type)
    return Message(body.data, body_type=body.body_type, **values)


def _text(text: str, body_type: int | None) -> _Body:
    """Text without a type is UTF-8 to readers; a surrogate alone is nothing at all."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise MessageError("text", f"no text: {error.reason} at {error.start}") from error
    return _Body(data if body_type == BodyType.VT_EMPTY else text, body_type)


def _choice(field: str, choices: type[IntEnum], value: str | int) -> int:
    if isinstance(value, int):
        return value
    name = value.upper().replace("-", "_")
    if name in choices.__members__:
        return choices[name]
    try:
        return int(value, 0)
    except ValueError as error:
        raise MessageError(
            field, f"{value!r} is not known", hint=did_you_mean(name, choices.__members__)
        ) from error


def _flags(field: str, flags: type[IntFlag], names: list[str]) -> IntFlag:
    result = flags(0)
    for given in names:
        name = given.upper().replace("-", "_")
        if name not in flags.__members__:
            hint = did_you_mean(name, flags.__members__)
            raise MessageError(field, f"{given!r} is not known", hint=hint)
        result |= flags[name]
    return result


def _bytes(field: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MessageError(field, f"no base64: {error}", hint="bytes travel as base64") from error


def _format_name(field: str, name: str) -> SingleFormatName:
    parsed = parse_format_name(name)
    if isinstance(parsed, MultipleElementFormatName):
        raise MessageError(field, f"{name} is several queues", hint="make them entries of the list")
    return parsed


def to_json(
    message: Message, shown: Shown = Shown.FULL, names: Mapping[str, Sid] = _NO_NAMES
) -> dict[str, Any]:
    """A message as `schemas.MessageOut` describes it; `names` are those of principals."""
    return {
        "id": None if message.id is None else str(message.id),
        "lookup_id": None if message.lookup_id is None else str(message.lookup_id),
        "label": message.label,
        "text": _body_text(message, shown),
        "body": _base64(_visible(message, shown)),
        "body_size": len(message.body),
        "body_type": _named(BodyType, message.body_type),
        "summary": describe_body(message.body, message.body_type),
        "priority": message.priority,
        "delivery": _named(Delivery, message.delivery),
        "time_to_reach_queue": _seconds(message.time_to_reach_queue),
        "time_to_be_received": _seconds(message.time_to_be_received),
        "acknowledgements": _flag_names(Acknowledge, message.acknowledgements),
        "journal": _flag_names(Journal, message.journal),
        "destination": _optional(message.destination),
        "destinations": [str(name) for name in message.destinations],
        "administration_queue": _optional(message.administration_queue),
        "administration_queues": [str(name) for name in message.administration_queues],
        "response_queue": _optional(message.response_queue),
        "response_queues": [str(name) for name in message.response_queues],
        "correlation_id": str(message.correlation_id) if message.correlation_id else None,
        "application_tag": message.application_tag,
        "extension": _base64(message.extension),
        "message_class": _named(MessageClass, message.message_class),
        "dead_letter_queue": message.dead_letter_queue,
        "allow_peek_when_locked": message.allow_peek_when_locked,
        "trace": message.trace,
        "report_queue": _optional(message.report_queue),
        "connector_type": _optional(message.connector_type),
        **_security(message),
        "sender": sender_json(message, names),
        "soap_header": message.soap_header,
        "soap_body": message.soap_body,
        "soap_envelope": message.soap_envelope,
        "soap_compound_message": message.soap_compound_message,
        "sent_at": iso_time(message.sent_at),
        "arrived_at": iso_time(message.arrived_at),
        "source_queue_manager": _optional(message.source_queue_manager),
        "destination_queue_manager": _optional(message.destination_queue_manager),
        "hop_count": message.hop_count,
        "abort_count": message.abort_count,
        "move_count": message.move_count,
        "transaction": _transaction(message.transaction),
        "transaction_status_queue": _optional(message.transaction_status_queue),
    }


def _security(message: Message) -> dict[str, Any]:
    provider = message.provider
    return {
        "privacy_level": _named(PrivacyLevel, message.privacy_level),
        "encryption_algorithm": _named(EncryptionAlgorithm, message.encryption_algorithm),
        "hash_algorithm": _named(HashAlgorithm, message.hash_algorithm),
        "sender_id": _base64(message.sender_id),
        "sender_id_type": _named(SenderIdType, message.sender_id_type),
        "sender_certificate": _base64(message.sender_certificate),
        "signature": _base64(message.signature),
        "multiple_destination_signature": _base64(message.multiple_destination_signature),
        "symmetric_key": _base64(message.symmetric_key),
        "provider": None if provider is None else {"name": provider.name, "type": provider.type},
        "authentication_level": _named(AuthenticationLevel, message.authentication_level),
    }


def _transaction(place: MessageTransaction | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "sequence_id": str(place.sequence_id),
        "sequence_number": place.sequence_number,
        "previous_sequence_number": place.previous_sequence_number,
        "id": place.id,
        "is_first": place.is_first,
        "is_last": place.is_last,
        "final_ack_required": place.final_ack_required,
        "connector_queue_manager": _optional(place.connector_queue_manager),
    }


def iso_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _visible(message: Message, shown: Shown) -> bytes:
    if shown is Shown.FULL:
        return message.body
    return message.body[:_PREVIEW] if shown is Shown.PREVIEW else b""


def _body_text(message: Message, shown: Shown) -> str | None:
    if shown is Shown.NONE:
        return None
    if shown is Shown.FULL or len(message.body) <= _PREVIEW:
        return _text_of(message.body, message.body_type)
    for cut in range(_CUT_MAX):  # it may have gone through a character
        text = _text_of(message.body[: _PREVIEW - cut], message.body_type)
        if text is not None:
            return text
    return None


def _text_of(body: bytes, body_type: int) -> str | None:
    try:
        return body_text(body, body_type)
    except MessageError:
        return None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _named(choices: type[_Enum], value: int) -> str | int:
    try:
        return choices(value).name
    except ValueError:
        return int(value)


def _flag_names(flags: type[IntFlag], value: int) -> list[str]:
    """The names of the single bits; what combines them has names of its own."""
    return [flag.name for flag in flags if flag & value and flag.name is not None]


def _seconds(value: int | None) -> int | str | None:
    return "infinite" if value == INFINITE else value


def _optional(value: SingleFormatName | UUID | None) -> str | None:
    return None if value is None else str(value)
