"""Flags in words: which bits of which field mean what (tables of MQMQ, MQQB and MS-DTYP)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from falconmq.wire.base_header import DEFAULT_PRIORITY

Siblings = Mapping[str, Any]
"""The fields of the same structure that were read before, by name."""

Words = Callable[[Any, Siblings], str]
"""What a value means, in words; the fields read before it may matter."""


class _Bits(NamedTuple):
    """A part of a flags field: words for a single bit, a table or function for a number."""

    mask: int
    name: str
    words: str | Mapping[int, str] | Callable[[int], str] = ""
    always: bool = False  # shown when it is 0, too
    hexadecimal: bool = False


def _flags(*parts: _Bits) -> Words:
    shown = 0
    for part in parts:
        shown |= part.mask

    def words(value: int, _: Siblings) -> str:
        said = [text for part in parts if (text := _bits_in_words(part, value))]
        if rest := value & ~shown:
            said.append(f"reserved bits {rest:#x}")
        return ", ".join(said) or "none set"

    return words


def _bits_in_words(part: _Bits, value: int) -> str:
    number = (value & part.mask) // (part.mask & -part.mask)
    if not number and not part.always:
        return ""
    if isinstance(part.words, str):
        return f"{part.name} {part.words}".strip()
    word = part.words(number) if callable(part.words) else part.words.get(number, "unknown")
    written = f"{number:#x}" if part.hexadecimal else str(number)
    return f"{part.name}={written} {word}".strip()


_QUEUE_TYPES: Final = {
    0: "none",
    1: "the admin queue",
    2: "private at source",
    3: "private at destination",
    4: "private at admin host",
    5: "public",
    6: "private elsewhere",
    7: "direct",
}
_SIGNATURE_VERSIONS: Final = {
    1: "MSMQ 1.0 verified",
    3: "MSMQ 2.0 verified",
    5: "MSMQ 3.0 verified",
}

_PRIORITIES: Final = {0: "lowest", DEFAULT_PRIORITY: "default", 7: "highest"}

BASE_FLAGS: Final = _flags(
    _Bits(0x0007, "PR", lambda n: _PRIORITIES.get(n, ""), always=True),
    _Bits(0x0008, "IN", "internal"),
    _Bits(0x0010, "SH", "session header"),
    _Bits(0x0020, "DH", "debug header"),
    _Bits(0x0100, "TR", "trace"),
)
USER_FLAGS: Final = _flags(
    _Bits(0x0000001F, "RC", lambda n: "hop" if n == 1 else "hops"),
    _Bits(0x00000060, "DM", {0: "express", 1: "recoverable"}, always=True),
    _Bits(0x00000100, "JN", "dead-letter"),
    _Bits(0x00000200, "JP", "journal"),
    _Bits(0x00001C00, "DQ", _QUEUE_TYPES, always=True),
    _Bits(0x0000E000, "AQ", _QUEUE_TYPES),
    _Bits(0x00070000, "RQ", _QUEUE_TYPES),
    _Bits(0x00080000, "SH", "security"),
    _Bits(0x00100000, "TH", "transaction"),
    _Bits(0x00200000, "MP", "properties"),
    _Bits(0x00400000, "CQ", "connector type"),
    _Bits(0x00800000, "MQ", "multiple destinations"),
    _Bits(0x02000000, "AH", "came over HTTP"),
    _Bits(0x10000000, "HH", "SOAP"),
)
INTERNAL_FLAGS: Final = _flags(
    _Bits(
        0x000F,
        "PT",
        {1: "SessionAck", 2: "EstablishConnection", 3: "ConnectionParameters"},
        always=True,
    ),
    _Bits(0x0010, "CS", "connection refused"),
)
OPERATING_SYSTEM: Final = _flags(
    _Bits(
        0x00FF,
        "RE",
        lambda n: "" if n == 0x10 else "instead of 0x10",
        always=True,
        hexadecimal=True,
    ),
    _Bits(0x0100, "SE", "no ping before"),
    _Bits(0x0200, "OS", "server class"),
    _Bits(0x0400, "QS", "quality of service"),
)
PING_FLAGS: Final = _flags(
    _Bits(0x0001, "RC", "initiator is not server class"),
    _Bits(0x0002, "RF", "would refuse"),
    _Bits(0xFFFC, "bits 2-15", lambda _: "garbage", hexadecimal=True),
)
TRANSACTION_FLAGS: Final = _flags(
    _Bits(0x00000001, "CG", "connector GUID"),
    _Bits(0x00000002, "FA", "final ack wanted"),
    _Bits(0x00000004, "FM", "first message"),
    _Bits(0x00000008, "LM", "last message"),
    _Bits(0x00FFFFF0, "ID", lambda _: "transaction", always=True, hexadecimal=True),
)
SECURITY_FLAGS: Final = _flags(
    _Bits(0x000F, "ST", {0: "no sender id", 1: "SID", 2: "queue manager GUID"}, always=True),
    _Bits(0x0010, "AU", "authenticated"),
    _Bits(0x0020, "EB", "body encrypted"),
    _Bits(0x0040, "DE", "default provider"),
    _Bits(0x0080, "AI", "security data"),
    _Bits(0x0F00, "AS", _SIGNATURE_VERSIONS),
)
ACK_FLAGS: Final = _flags(
    _Bits(0x01, "PA", "ack arrival"),
    _Bits(0x02, "PR", "ack receipt"),
    _Bits(0x04, "NA", "nack if not delivered"),
    _Bits(0x08, "NR", "nack if not read"),
)
DEBUG_FLAGS: Final = _flags(_Bits(0x0003, "QT", {0: "no queue", 1: "public queue"}, always=True))
ACE_FLAGS: Final = _flags(
    _Bits(0x01, "object inherit"),
    _Bits(0x02, "container inherit"),
    _Bits(0x04, "no propagate"),
    _Bits(0x08, "inherit only"),
    _Bits(0x10, "inherited"),
    _Bits(0x40, "audit success"),
    _Bits(0x80, "audit failure"),
)
OBJECT_ACE_FLAGS: Final = _flags(
    _Bits(0x1, "ObjectType present"), _Bits(0x2, "InheritedObjectType present")
)
CONTROL: Final = _flags(
    _Bits(0x0001, "OD", "owner defaulted"),
    _Bits(0x0002, "GD", "group defaulted"),
    _Bits(0x0004, "DP", "DACL present"),
    _Bits(0x0008, "DD", "DACL defaulted"),
    _Bits(0x0010, "SP", "SACL present"),
    _Bits(0x0020, "SD", "SACL defaulted"),
    _Bits(0x0040, "DT", "DACL trusted"),
    _Bits(0x0080, "SS", "server security"),
    _Bits(0x0100, "DC", "DACL to be inherited"),
    _Bits(0x0200, "SC", "SACL to be inherited"),
    _Bits(0x0400, "DI", "DACL inherited"),
    _Bits(0x0800, "SI", "SACL inherited"),
    _Bits(0x1000, "PD", "DACL protected"),
    _Bits(0x2000, "PS", "SACL protected"),
    _Bits(0x4000, "RM", "resource manager bits"),
    _Bits(0x8000, "SR", "self-relative"),
)
