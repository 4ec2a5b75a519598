"""Messages as the JSON that the service takes: for what no packet carries."""

from __future__ import annotations

import base64
from typing import Any, Final

from falconmq.message import INFINITE, Message

_PLAIN: Final = (
    "label",
    "priority",
    "application_tag",
    "dead_letter_queue",
    "allow_peek_when_locked",
    "trace",
    "soap_header",
    "soap_body",
)
_NUMBERS: Final = (
    "body_type",
    "message_class",
    "privacy_level",
    "encryption_algorithm",
    "hash_algorithm",
    "sender_id_type",
)
_BYTES: Final = (
    "body",
    "extension",
    "sender_id",
    "sender_certificate",
    "signature",
    "multiple_destination_signature",
    "symmetric_key",
)
_TEXTS: Final = ("administration_queue", "response_queue", "report_queue", "connector_type")
_LISTS: Final = ("administration_queues", "response_queues")
_SECONDS: Final = ("time_to_reach_queue", "time_to_be_received")
_FLAGS: Final = ("acknowledgements", "journal")


def to_json(message: Message) -> dict[str, Any]:
    """A message as `MessageIn` of the API describes it."""
    row: dict[str, Any] = {name: getattr(message, name) for name in _PLAIN}
    row.update((name, _number(getattr(message, name))) for name in _NUMBERS)
    row.update((name, _base64(getattr(message, name))) for name in _BYTES)
    row.update((name, _text(getattr(message, name))) for name in _TEXTS)
    row.update((name, [str(each) for each in getattr(message, name)]) for name in _LISTS)
    row.update((name, _seconds(getattr(message, name))) for name in _SECONDS)
    row.update((name, [flag.name for flag in getattr(message, name)]) for name in _FLAGS)
    row["recoverable"] = message.recoverable is not False
    if message.wants_signature:  # else it says what a receiver has verified
        row["authentication_level"] = int(message.authentication_level)
    row["correlation_id"] = str(message.correlation_id) if message.correlation_id else None
    provider = message.provider
    if provider is not None:
        row["provider"] = {"name": provider.name, "type": provider.type}
    return {name: value for name, value in row.items() if value not in (None, [], "")}


def _number(value: int | None) -> int | None:
    return None if value is None else int(value)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _seconds(value: int | None) -> int | str | None:
    return "infinite" if value == INFINITE else value
