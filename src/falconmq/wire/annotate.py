"""What the fields of a packet mean, in words: flags spelled out, enumerations named, times in UTC.

`annotate` takes a field as the decoders name it (structure, field, value) and gives back how to
write its value and what it means. The trees of `falconmq decode`, the console and Spark all ask
here, so that a field reads the same everywhere.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from falconmq.wire.base_header import INFINITE
from falconmq.wire.field_words import FIELD_WORDS
from falconmq.wire.flag_words import Siblings
from falconmq.wire.guid import NULL_GUID, guid_text
from falconmq.wire.property_ids import Property
from falconmq.wire.property_words import blob_words, number_words, property_of
from falconmq.wire.reader import decode_utf16
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from falconmq.wire.variant import VT_CLSID, VT_VECTOR
from falconmq.wire.words import count_of, hex_start, quoted


class Annotation(NamedTuple):
    """How a value is written, and what it means ("" where the value says it all)."""

    value: str
    meaning: str = ""


_NO_SIBLINGS: Final[Siblings] = MappingProxyType({})


def annotate(
    structure: str, field: str, value: Any, size: int, siblings: Siblings = _NO_SIBLINGS
) -> Annotation:
    """Write the value of a field and say what it means. `size` is its size in bytes."""
    prop = property_of(field)
    if prop is not None:
        return _annotate_property(prop, field, value, size)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _annotate_bytes(structure, field, bytes(value), siblings)
    words = FIELD_WORDS.get((structure, field)) or FIELD_WORDS.get(("", field))
    meaning = words(value, siblings) if words is not None else ""
    if isinstance(value, str):
        return Annotation(quoted(value), meaning)
    return Annotation(_written_number(field, value, size), meaning)


# Bytes

_GUIDS: Final = frozenset(
    [
        "SourceQueueManager",
        "QueueManagerAddress",
        "ConnectorType",
        "ClientGuid",
        "ServerGuid",
        "QMGuid",
        "SourceGUID",
        "ConnectorQMGuid",
        "QueueIdentifier",
        "PublicQueueIdentifier",
        "DistributionListIdentifier",
        "SiteID",
        "PartitionID",
        "PSCSiteID",
        "AckedPartitionID",
        "BSCMachineID",
        "GuidIdentifier",
        "GuidMasterId",
        "ObjectType",
        "InheritedObjectType",
        "Identifier",
        "DestinationQueue",
        "AdminQueue",
        "ResponseQueue",
    ]
)
_TEXTS: Final = frozenset(
    ["Label", "DirectFormatName", "Header", "Body", "Event", "ObjectGuid", "DomainController"]
)
_CONTENTS: Final = frozenset(["MessageBody", "ExtensionData"])


def _annotate_bytes(structure: str, field: str, value: bytes, siblings: Siblings) -> Annotation:
    words = FIELD_WORDS.get((structure, field)) or FIELD_WORDS.get(("", field))
    if field in _GUIDS and len(value) == 16:
        meaning = "null" if value == NULL_GUID else ""
        if words is not None:
            meaning = words(value, siblings)
        return Annotation(guid_text(value), meaning)
    if field.endswith("SeqNumber") and len(value) == 8:
        number = int.from_bytes(value, "big")
        return Annotation(str(number), "the greatest there is" if number == MAX_SEQ_NUMBER else "")
    if field in _TEXTS and len(value) % 2 == 0:
        text = decode_utf16(value)
        meaning = words(text.removesuffix("\0"), siblings) if words is not None else ""
        return Annotation(quoted(text.removesuffix("\0")), meaning)
    meaning = words(value, siblings) if words is not None else ""
    if field in _CONTENTS:
        return Annotation(count_of(len(value), "byte"), meaning)
    if len(value) > 1 and len(set(value)) == 1:
        return Annotation(f"{len(value)} x {value[0]:02x}", meaning)
    return Annotation(hex_start(value, 20), meaning)


# Numbers

_HEXADECIMAL: Final = re.compile(
    r".*Flags|Signature|VersionNumber|Reserved\d?|MessageClass|.*Algorithm|Control|Mask|.*SectionID"
    r"|OperatingSystem|HeaderID|ID|BodyType|vt|AceType|Result|aiKeyAlg|TxSequenceID"
    r"|PrivateQueueIdentifier|DestinationQueue|AdminQueue|ResponseQueue|magic|bType|bVersion"
)
_UNITS: Final = {
    "TimeToReachQueue": "s",
    "TimeToBeReceived": "s",
    "RecoverableAckTimeout": "ms",
    "AckTimeout": "ms",
}
_SHORT_HEX: Final = frozenset(
    ["PrivateQueueIdentifier", "DestinationQueue", "AdminQueue", "ResponseQueue"]
)


def _written_number(field: str, value: Any, size: int) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    if field in _UNITS and value != INFINITE:
        return f"{value} {_UNITS[field]}"
    if field in _SHORT_HEX:
        return f"{value:#x}"
    if (_HEXADECIMAL.fullmatch(field) or field in _UNITS) and value >= 0:
        return f"0x{value:0{2 * size}X}"
    return str(value)


def _annotate_property(prop: Property, field: str, value: Any, size: int) -> Annotation:
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        if prop.vt & ~VT_VECTOR == VT_CLSID and len(data) == 16:
            return Annotation(guid_text(data))
        if prop.name.endswith("SEQNUM") and len(data) == 8:
            return Annotation(str(int.from_bytes(data, "big")))
        return Annotation(hex_start(data, 20), blob_words(prop.name, data))
    if isinstance(value, str):
        return Annotation(quoted(value))
    return Annotation(_written_number(field, value, size), number_words(prop.name, value))
