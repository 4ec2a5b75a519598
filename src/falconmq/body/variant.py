"""Bodies as the MSMQ COM component and .NET's ActiveXMessageFormatter write them.

BodyType holds a VARIANT type and the body the bare value: numbers little-endian, strings without a
length and without a NUL. BodyType is the application's business: a queue manager carries any
number through (MQ-2.2.19.3-20), so everything here happens only when somebody asks for the value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Final
from uuid import UUID

from falconmq.errors import MessageError, MqStatus

BodyValue = None | bool | int | float | Decimal | str | bytes | datetime | UUID
"""What `decode_variant` gives back."""


class BodyType(IntEnum):
    """The types of MQMQ 2.2.12 and the OLE ones that applications use beside them."""

    VT_EMPTY = 0  # not set: an array of bytes to readers
    VT_NULL = 1
    VT_I2 = 2
    VT_I4 = 3
    VT_R4 = 4
    VT_R8 = 5
    VT_CY = 6  # currency: ten-thousandths in 64 bits
    VT_DATE = 7  # days since 30 December 1899 as a double
    VT_BSTR = 8  # UTF-16LE, what COM sends for a string
    VT_BOOL = 11
    VT_I1 = 16
    VT_UI1 = 17
    VT_UI2 = 18
    VT_UI4 = 19
    VT_I8 = 20
    VT_UI8 = 21
    VT_LPSTR = 30
    VT_LPWSTR = 31
    VT_BLOB = 65
    VT_STREAMED_OBJECT = 68
    VT_STORED_OBJECT = 69
    VT_CLSID = 72
    BINARY_FORMATTER = 768  # not a VARIANT type: .NET's BinaryMessageFormatter
    VT_VECTOR_UI1 = 0x1011  # bytes, as .NET sends them
    VT_ARRAY_UI1 = 0x2011  # bytes, as COM sends them


_NAMES: Final = {
    BodyType.BINARY_FORMATTER: "768 (.NET BinaryMessageFormatter)",
    BodyType.VT_VECTOR_UI1: "VT_VECTOR | VT_UI1",
    BodyType.VT_ARRAY_UI1: "VT_ARRAY | VT_UI1",
}
_INTEGERS: Final = {
    BodyType.VT_I1: struct.Struct("<b"),
    BodyType.VT_UI1: struct.Struct("<B"),
    BodyType.VT_I2: struct.Struct("<h"),
    BodyType.VT_UI2: struct.Struct("<H"),
    BodyType.VT_I4: struct.Struct("<i"),
    BodyType.VT_UI4: struct.Struct("<I"),
    BodyType.VT_I8: struct.Struct("<q"),
    BodyType.VT_UI8: struct.Struct("<Q"),
}
_FLOATS: Final = {BodyType.VT_R4: struct.Struct("<f"), BodyType.VT_R8: struct.Struct("<d")}
_CURRENCY: Final = struct.Struct("<q")
_CURRENCY_SCALE: Final = 10_000
_OLE_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - an OLE date has no time zone
_MICROSECONDS_PER_DAY: Final = 86_400_000_000
WIDE_TEXT: Final = frozenset({BodyType.VT_BSTR, BodyType.VT_LPWSTR})
_BYTES: Final = frozenset(
    {BodyType.VT_EMPTY, BodyType.VT_BLOB, BodyType.VT_VECTOR_UI1, BodyType.VT_ARRAY_UI1}
)


def body_type_name(body_type: int) -> str:
    """The name people search for: `VT_BSTR`; the number if nobody named it."""
    try:
        known = BodyType(body_type)
    except ValueError:
        return f"body type {body_type:#x}"
    return _NAMES.get(known, known.name)


def decode_variant(body: bytes, body_type: int) -> BodyValue:
    """The value a body holds; MessageError if the bytes cannot be one of that type."""
    decode = _DECODERS.get(body_type)
    if decode is None:
        raise MessageError(
            "body",
            f"no Python value for {body_type_name(body_type)}",
            status=MqStatus.ILLEGAL_PROPERTY_VT,
            hint="read the bytes from message.body",
        )
    try:
        return decode(body)
    except (ValueError, ArithmeticError, struct.error) as error:
        raise MessageError(
            "body", f"{len(body)} bytes are no {body_type_name(body_type)}: {error}"
        ) from error


def encode_variant(value: BodyValue, body_type: int | None = None) -> tuple[bytes, BodyType]:
    """Body and body type for a value; without `body_type` the type ActiveX would choose.

    MessageError if the value does not fit the type.
    """
    known = _natural_type(value) if body_type is None else _known_type(body_type)
    try:
        return _encode(value, known), known
    except (TypeError, ValueError, ArithmeticError, struct.error) as error:
        raise MessageError(
            "body", f"{_shown(value)} does not fit {body_type_name(known)}: {error}"
        ) from error


def decode_text(body: bytes, body_type: int) -> str:
    """Text of VT_BSTR, VT_LPWSTR or VT_LPSTR; a NUL that a C program sent along is left out."""
    if body_type == BodyType.VT_LPSTR:
        # Windows-1252 is the ANSI code page of most senders; plain ASCII reads the same in all.
        return body.decode("cp1252").rstrip("\0")
    return body.decode("utf-16-le").rstrip("\0")


def _shown(value: object) -> str:
    """A value in an error text: its type, and itself when it is short."""
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 40 else f"this {type(value).__name__}"


def _known_type(body_type: int) -> BodyType:
    try:
        return BodyType(body_type)
    except ValueError as error:
        raise MessageError(
            "body_type",
            f"{body_type:#x} is no type that FalconMQ can write a value for",
            status=MqStatus.ILLEGAL_PROPERTY_VT,
            hint="pass the bytes yourself: Message(data, body_type=...)",
        ) from error


def _natural_type(value: BodyValue) -> BodyType:
    """The type .NET's ActiveXMessageFormatter gives a value of this kind."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _integer_type(value)
    for kind, body_type in _NATURAL_TYPES:
        if isinstance(value, kind):
            return body_type
    raise MessageError(
        "body",
        f"a {type(value).__name__} is no VARIANT value",
        status=MqStatus.ILLEGAL_PROPERTY_VT,
        hint="for objects use Message.json(...) or Message.xml(...)",
    )


def _integer_type(value: int) -> BodyType:
    if -(1 << 31) <= value < 1 << 31:
        return BodyType.VT_I4
    return BodyType.VT_I8 if value < 1 << 63 else BodyType.VT_UI8


_NATURAL_TYPES: Final = (
    (type(None), BodyType.VT_NULL),
    (bool, BodyType.VT_BOOL),
    (str, BodyType.VT_BSTR),
    (bytes, BodyType.VT_VECTOR_UI1),
    (float, BodyType.VT_R8),
    (Decimal, BodyType.VT_CY),
    (datetime, BodyType.VT_DATE),
    (UUID, BodyType.VT_CLSID),
)


def _encode(value: BodyValue, body_type: BodyType) -> bytes:
    if isinstance(value, bytes) and body_type in _BYTES:
        return value
    if isinstance(value, str):
        return _encode_text(value, body_type)
    if body_type in _INTEGERS and isinstance(value, int):
        return _INTEGERS[body_type].pack(value)
    if body_type in _FLOATS and isinstance(value, float | int):
        return _FLOATS[body_type].pack(value)
    if body_type == BodyType.VT_BOOL and isinstance(value, bool):
        return b"\xff\xff" if value else b"\0\0"
    if body_type == BodyType.VT_NULL and value is None:
        return b""
    return _encode_rare(value, body_type)


def _encode_rare(value: BodyValue, body_type: BodyType) -> bytes:
    if body_type == BodyType.VT_CY and isinstance(value, Decimal | int):
        return _encode_currency(Decimal(value))
    if body_type == BodyType.VT_DATE and isinstance(value, datetime):
        return _encode_date(value)
    if body_type == BodyType.VT_CLSID and isinstance(value, UUID):
        return value.bytes_le
    raise TypeError("another type is needed")


def _encode_text(value: str, body_type: BodyType) -> bytes:
    if body_type in WIDE_TEXT:
        return value.encode("utf-16-le")
    if body_type == BodyType.VT_LPSTR:
        return value.encode("ascii")  # what other characters mean is up to the reader's code page
    raise TypeError("another type is needed")


def _encode_currency(value: Decimal) -> bytes:
    scaled = value * _CURRENCY_SCALE
    if scaled != scaled.to_integral_value():
        raise ValueError("currency has four decimals")
    return _CURRENCY.pack(int(scaled))


def _decode_currency(body: bytes) -> Decimal:
    (scaled,) = _CURRENCY.unpack(body)
    return Decimal(scaled).scaleb(-4)


def _encode_date(value: datetime) -> bytes:
    """OLE date: the whole part counts days, the fraction is the time of day and always positive."""
    if value.tzinfo is not None:
        raise ValueError("an OLE date has no time zone; pass a datetime without tzinfo")
    since = value - _OLE_EPOCH
    fraction = (since.seconds * 1_000_000 + since.microseconds) / _MICROSECONDS_PER_DAY
    # Before 1899 the sign belongs to the days alone: -1.25 is 06:00 of the day before the epoch.
    days = since.days - fraction if since.days < 0 else since.days + fraction
    return _FLOATS[BodyType.VT_R8].pack(days)


def _decode_date(body: bytes) -> datetime:
    (number,) = _FLOATS[BodyType.VT_R8].unpack(body)
    days = int(number)
    # A double is exact to about half a microsecond near today; OLE itself promises milliseconds.
    microseconds = round(abs(number - days) * _MICROSECONDS_PER_DAY)
    return _OLE_EPOCH + timedelta(days=days, microseconds=microseconds)


def _decode_bool(body: bytes) -> bool:
    if len(body) not in {1, 2}:
        raise ValueError("VARIANT_BOOL has 2 bytes")
    return any(body)


def _decode_null(body: bytes) -> None:
    if body:
        raise ValueError("VT_NULL has no bytes")


def _number(layout: struct.Struct) -> Callable[[bytes], BodyValue]:
    def decode(body: bytes) -> int | float:
        number: int | float = layout.unpack(body)[0]
        return number

    return decode


def _text(body_type: BodyType) -> Callable[[bytes], BodyValue]:
    return lambda body: decode_text(body, body_type)


_DECODERS: Final[dict[int, Callable[[bytes], BodyValue]]] = {
    **{body_type: _number(layout) for body_type, layout in (_INTEGERS | _FLOATS).items()},
    **{body_type: _text(body_type) for body_type in (*WIDE_TEXT, BodyType.VT_LPSTR)},
    **dict.fromkeys(_BYTES, bytes),
    BodyType.VT_NULL: _decode_null,
    BodyType.VT_BOOL: _decode_bool,
    BodyType.VT_CY: _decode_currency,
    BodyType.VT_DATE: _decode_date,
    BodyType.VT_CLSID: lambda body: UUID(bytes_le=body),
}
