"""The text of a body, whatever wrote it."""

from __future__ import annotations

from typing import Final

from falconmq.body.describe import describe_body
from falconmq.body.variant import WIDE_TEXT, BodyType, decode_text
from falconmq.errors import MessageError, MqStatus

_TEXT_TYPES: Final = frozenset({*WIDE_TEXT, BodyType.VT_LPSTR})


def body_text(body: bytes, body_type: int) -> str:
    """Text of a string body, or of a plain one in UTF-8, or UTF-16 with a byte order mark."""
    if body_type in _TEXT_TYPES:
        encoding = "bytes of a string"
    elif body_type == BodyType.VT_EMPTY:
        encoding = "UTF-8"
    else:
        raise MessageError(
            "body",
            f"no text: it is {describe_body(body, body_type)}",
            status=MqStatus.ILLEGAL_PROPERTY_VT,
            hint="message.value gives the value, message.body the bytes",
        )
    try:
        return decode_text(body, body_type) if body_type else plain_text(body)
    except UnicodeDecodeError as error:
        raise MessageError(
            "body",
            f"not {encoding}: it is {describe_body(body, body_type)}, wrong at byte {error.start}",
            hint="read the bytes from message.body",
        ) from error


def plain_text(body: bytes) -> str:
    """UTF-8 with or without a mark, or UTF-16 with one; UnicodeDecodeError if it is neither."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16")
    return body.decode("utf-8-sig")
