"""Quantities, names and texts in words: what people read where the wire has numbers and bytes."""

from __future__ import annotations

import codecs
from datetime import UTC, datetime, timedelta
from typing import Final

from falconmq.errors import MqStatus
from falconmq.wire.guid import guid_text
from falconmq.wire.message_class import MessageClass
from falconmq.wire.reader import Buffer
from falconmq.wire.variant import VT_LPWSTR, type_name

_VT_BSTR: Final = 8
_VT_LPSTR: Final = 30
_BODY_TYPES: Final = {  # beyond the list of MQMQ 2.2.12; numbers as OLE has them
    4: "VT_R4",
    5: "VT_R8",
    6: "VT_CY",
    7: "VT_DATE",
    _VT_BSTR: "VT_BSTR",
    _VT_LPSTR: "VT_LPSTR",
    68: "VT_STREAMED_OBJECT",
    69: "VT_STORED_OBJECT",
    0x2011: "VT_ARRAY|VT_UI1",
}


def duration(seconds: float) -> str:
    """4 days, 1 hour 30 minutes, 1.496 seconds."""
    if seconds < 60:
        return count_of(round(seconds, 3), "second")
    parts = []
    rest = int(seconds)
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        number, rest = divmod(rest, unit)
        if number:
            parts.append(count_of(number, name))
    return " ".join(parts)


def byte_size(size: int) -> str:
    """2000 bytes, 1.5 MB."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit * 10 or (size >= unit and unit > 1 << 10):
            return f"{size / unit:.4g} {name}"
    return count_of(size, "byte")


def utc_time(seconds: int) -> str:
    """ISO 8601 of a Unix time."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def quoted(text: str) -> str:
    """A text between quotation marks, safe to print: nothing in it can move a cursor."""
    return f'"{printable(text)}"'


def printable(text: str) -> str:
    """The text with control characters, lone surrogates and the like as escapes."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def message_id_text(queue_manager: Buffer, number: int) -> str:
    """A message identifier as MSMQ users write it: {GUID}\\2286."""
    return f"{{{guid_text(bytes(queue_manager))}}}\\{number}"


def count_of(number: float, noun: str) -> str:
    """1 byte, 2 bytes."""
    return f"{number:g} {noun}" if number == 1 else f"{number:.15g} {noun}s"


def hex_start(value: Buffer, limit: int) -> str:
    """The first bytes in hexadecimal and how many there are."""
    data = bytes(value[:limit])
    if len(value) <= limit:
        return data.hex(" ") or "(no bytes)"
    return f"{data[: limit // 2].hex(' ')} ... ({len(value)} bytes)"


def body_type_name(body_type: int) -> str:
    """VT_BSTR and the like; hexadecimal where the number has no name."""
    return _BODY_TYPES.get(body_type) or type_name(body_type)


def message_class_name(message_class: int) -> str:
    """NORMAL, ACK_RECEIVE ...; a custom class by its number."""
    try:
        return MessageClass(message_class).name
    except ValueError:
        return f"custom {message_class:#06x}"


def status_words(code: int) -> str:
    """MQ_ERROR_QUEUE_NOT_FOUND: no such queue ...; "" for a code that is none of ours."""
    try:
        status = MqStatus(code)
    except ValueError:
        return "unknown status"
    return f"{status.symbol}: {status.meaning}"


def body_text(body: Buffer, body_type: int, limit: int | None = None) -> tuple[str, str]:
    """What a body looks like ("UTF-16 text", "UTF-8 text", "binary") and its text if it is one.

    With `limit` only that many bytes are looked at.
    """
    data = bytes(body[:limit])
    is_whole = len(data) == len(body)
    order: tuple[str, ...]
    if body_type in (_VT_BSTR, VT_LPWSTR) or data[:2] == b"\xff\xfe":
        order = ("utf-16-le", "utf-8")
    elif body_type == _VT_LPSTR:
        order = ("utf-8", "utf-16-le")
    elif data[1:2] == b"\0":
        order = ("utf-16-le", "utf-8")
    else:
        order = ("utf-8", "utf-16-le") if data[:1].isascii() else ("utf-8",)
    for encoding in order:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data, final=is_whole)
        except UnicodeDecodeError:
            continue
        text = text.removeprefix("\ufeff").rstrip("\0")
        if text and _is_text(text, wide=encoding == "utf-16-le"):
            return ("UTF-16 text" if encoding == "utf-16-le" else "UTF-8 text"), text
    return "binary", ""


def _is_text(text: str, *, wide: bool) -> bool:
    sample = text[:256]
    if not all(c.isprintable() or c in "\r\n\t" for c in sample):
        return False
    return not wide or sum(c.isascii() for c in sample) * 2 >= len(sample)
