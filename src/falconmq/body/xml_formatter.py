"""XML bodies as .NET's XmlMessageFormatter writes them: BodyType VT_EMPTY, UTF-8, one element.

    <?xml version="1.0"?>
    <string>hello</string>

The element is named by the type as XmlSerializer spells it. Simple values come back as Python
values, anything else as an ElementTree element. Documents come from strangers: a DTD is refused
before the parser sees it, so there are no entities to expand and nothing to fetch.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final
from uuid import UUID

from falconmq.body.describe import describe_body
from falconmq.body.text import plain_text
from falconmq.body.variant import BodyType
from falconmq.errors import MessageError, MqStatus

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

XmlValue = None | bool | int | float | Decimal | str | bytes | datetime | UUID

_DECLARATION: Final = '<?xml version="1.0"?>\r\n'
_NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_INTEGER_RANGES: Final = {
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
}
# What may stand before the root element: a mark, white space, comments and instructions.
_PROLOG: Final = re.compile(r"(?:\s+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_NOT_XML: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_DATE_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DECIMAL_DIGITS: Final = 29
_SPECIAL_FLOATS: Final = {"INF": "inf", "-INF": "-inf", "NaN": "nan"}


def encode_xml(value: XmlValue, type_name: str | None = None) -> bytes:
    """The document XmlMessageFormatter would send for a simple value.

    `type_name` chooses the element where Python has fewer types: `"short"`, `"float"`, `"char"`.
    """
    name = _natural_name(value) if type_name is None else type_name
    writer = _WRITERS.get(name)
    if writer is None:
        raise _refused(f"XmlSerializer has no simple type {name!r}", ", ".join(sorted(_WRITERS)))
    try:
        text = writer(value, name)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise _refused(f"a {type(value).__name__} is no {name}: {error}") from error
    return f"{_DECLARATION}<{name}>{text}</{name}>".encode()


def decode_xml(body: bytes) -> XmlValue | Element:
    """The value of a document with one simple element; the root element of any other document."""
    root = parse_xml(body)
    if root.get(_NIL) in {"true", "1"}:
        return None
    reader = _READERS.get(root.tag)
    if reader is None or len(root):
        return root
    try:
        return reader(root.text or "", root.tag)
    except (ValueError, ArithmeticError) as error:
        raise _refused(f"<{root.tag}> does not hold a value of its type: {error}") from error


def parse_xml(body: bytes) -> Element:
    """The root element of a document; MessageError if it is not well-formed or brings a DTD."""
    from xml.etree.ElementTree import ParseError, XMLParser  # noqa: PLC0415 - costs 10 ms to import

    try:
        text = plain_text(body).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise _refused(f"no XML: it is {describe_body(body, BodyType.VT_EMPTY)}") from error
    if text[_prolog_length(text) :][:9].upper() == "<!DOCTYPE":
        raise _refused("the document brings a DTD, which FalconMQ does not read")
    # The text was decoded here, so what the declaration says about the encoding no longer counts.
    parser = XMLParser(encoding="utf-8")  # noqa: S314 - without a DTD there is nothing to expand
    try:
        parser.feed(text.encode())
        root: Element = parser.close()
    except (ParseError, UnicodeEncodeError) as error:
        what = describe_body(body, BodyType.VT_EMPTY)
        raise _refused(f"no well-formed XML: {error}; it is {what}") from error
    return root


def _prolog_length(text: str) -> int:
    found = _PROLOG.match(text)
    return found.end() if found else 0


def _refused(problem: str, choices: str = "") -> MessageError:
    hint = f"choose one of {choices}" if choices else "read the bytes from message.body"
    return MessageError("body", problem, status=MqStatus.BAD_XML_FORMAT, hint=hint)


def _natural_name(value: XmlValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return next(
            (
                name
                for name in ("int", "long", "unsignedLong")
                if _INTEGER_RANGES[name][0] <= value <= _INTEGER_RANGES[name][1]
            ),
            "unsignedLong",
        )
    for kind, name in _NATURAL_NAMES:
        if isinstance(value, kind):
            return name
    raise _refused(f"a {type(value).__name__} is no simple XML value")


_NATURAL_NAMES: Final = (
    (str, "string"),
    (float, "double"),
    (Decimal, "decimal"),
    (bytes, "base64Binary"),
    (datetime, "dateTime"),
    (UUID, "guid"),
)


def _write_string(value: XmlValue, _name: str) -> str:
    if not isinstance(value, str):
        raise TypeError("a string is needed")
    found = _NOT_XML.search(value)
    if found:
        raise ValueError(f"XML cannot hold the character U+{ord(found[0]):04X}")
    text = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#xD;")  # a bare one would reach the reader as a line feed


def _write_char(value: XmlValue, _name: str) -> str:
    """A .NET char travels as the number of its UTF-16 unit."""
    if not isinstance(value, str) or len(value) != 1 or ord(value) > 0xFFFF:
        raise ValueError("one character of 16 bits is needed")
    return str(ord(value))


def _write_integer(value: XmlValue, name: str) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("a whole number is needed")
    return str(_within(value, name))


def _within(number: int, name: str) -> int:
    low, high = _INTEGER_RANGES[name]
    if not low <= number <= high:
        raise ValueError(f"it is not in {low}..{high}")
    return number


def _write_float(value: XmlValue, _name: str) -> str:
    if not isinstance(value, float | int) or isinstance(value, bool):
        raise TypeError("a number is needed")
    text = repr(float(value))
    special = next((name for name, python in _SPECIAL_FLOATS.items() if python == text), None)
    return special or text.removesuffix(".0")


def _write_decimal(value: XmlValue, _name: str) -> str:
    if not isinstance(value, Decimal | int) or isinstance(value, bool):
        raise TypeError("a Decimal is needed")
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("a finite number is needed")
    if number.adjusted() >= _DECIMAL_DIGITS:
        raise ValueError(f"a .NET decimal has at most {_DECIMAL_DIGITS} digits")
    return f"{number:f}"


def _write_boolean(value: XmlValue, _name: str) -> str:
    if not isinstance(value, bool):
        raise TypeError("True or False is needed")
    return "true" if value else "false"


def _write_date_time(value: XmlValue, _name: str) -> str:
    if not isinstance(value, datetime):
        raise TypeError("a datetime is needed")
    day, _, zone = value.isoformat(timespec="microseconds").partition(".")
    fraction, offset = zone[:6].rstrip("0"), zone[6:]
    zone = "Z" if offset == "+00:00" else offset
    return f"{day}.{fraction}{zone}" if fraction else f"{day}{zone}"


def _write_bytes(value: XmlValue, _name: str) -> str:
    if not isinstance(value, bytes):
        raise TypeError("bytes are needed")
    return base64.b64encode(value).decode()


def _write_guid(value: XmlValue, _name: str) -> str:
    if not isinstance(value, UUID):
        raise TypeError("a UUID is needed")
    return str(value)


_WRITERS: Final[dict[str, Callable[[XmlValue, str], str]]] = {
    "string": _write_string,
    "char": _write_char,
    "boolean": _write_boolean,
    "double": _write_float,
    "float": _write_float,
    "decimal": _write_decimal,
    "dateTime": _write_date_time,
    "base64Binary": _write_bytes,
    "guid": _write_guid,
    **dict.fromkeys(_INTEGER_RANGES, _write_integer),
}


def _read_string(text: str, _name: str) -> str:
    return text


def _read_char(text: str, _name: str) -> str:
    return chr(_within(_read_digits(text), "unsignedShort"))


def _read_digits(text: str) -> int:
    return int(_matching(_INTEGER, text))


def _read_integer(text: str, name: str) -> int:
    return _within(_read_digits(text), name)


def _read_boolean(text: str, _name: str) -> bool:
    word = text.strip()
    if word not in {"true", "false", "1", "0"}:
        raise ValueError(f"{word[:20]!r} is neither true nor false")
    return word in {"true", "1"}


def _read_float(text: str, _name: str) -> float:
    word = text.strip()
    return float(_SPECIAL_FLOATS.get(word) or _matching(_NUMBER, word))


def _read_decimal(text: str, _name: str) -> Decimal:
    return Decimal(_matching(_DECIMAL, text))


def _read_date_time(text: str, _name: str) -> datetime:
    word = _matching(_DATE_TIME, text)
    return datetime.fromisoformat(word)  # .NET writes seven decimals, Python keeps six of them


def _read_bytes(text: str, _name: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _read_guid(text: str, _name: str) -> UUID:
    return UUID(text.strip())


def _matching(pattern: re.Pattern[str], text: str) -> str:
    word = text.strip()
    if not pattern.fullmatch(word):
        raise ValueError(f"{word[:20]!r} cannot be read")
    return word


_READERS: Final[dict[str, Callable[[str, str], XmlValue]]] = {
    "string": _read_string,
    "char": _read_char,
    "boolean": _read_boolean,
    "double": _read_float,
    "float": _read_float,
    "decimal": _read_decimal,
    "dateTime": _read_date_time,
    "base64Binary": _read_bytes,
    "guid": _read_guid,
    **dict.fromkeys(_INTEGER_RANGES, _read_integer),
}
