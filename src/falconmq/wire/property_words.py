"""What the values of properties mean, those of objects in the directory (MQMQ 2.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from falconmq.errors import WireError
from falconmq.wire.base_header import INFINITE
from falconmq.wire.property_ids import PROPERTIES, ObjectType, Property
from falconmq.wire.sid import Sid
from falconmq.wire.ta_address import TaAddress
from falconmq.wire.words import byte_size, utc_time

_PROPERTY_FIELD: Final = re.compile(r"PropertyValue\[(PROPID_\w+)\](\.Size)?")
_PROPERTIES_BY_NAME: Final = {prop.name: prop for prop in PROPERTIES.values()}
_PROPERTY_VALUES: Final[Mapping[str, Mapping[int, str]]] = {
    "PROPID_Q_JOURNAL": {0: "no journal", 1: "journal"},
    "PROPID_Q_AUTHENTICATE": {0: "any message", 1: "authenticated messages only"},
    "PROPID_Q_PRIV_LEVEL": {0: "not encrypted", 1: "encrypted or not", 2: "encrypted only"},
    "PROPID_Q_TRANSACTION": {0: "not transactional", 1: "transactional"},
    "PROPID_Q_SCOPE": {0: "site", 1: "enterprise"},
    "PROPID_D_SCOPE": {0: "site", 1: "enterprise"},
    "PROPID_D_OBJTYPE": {int(kind): kind.name for kind in ObjectType},
    "PROPID_QM_FOREIGN": {0: "MSMQ computer", 1: "foreign computer"},
    "PROPID_QM_OS": {
        0: "unknown",
        0x100: "foreign",
        0x200: "Windows 95",
        0x300: "Windows client",
        0x400: "Windows server",
        0x500: "Windows enterprise server",
    },
    "PROPID_CN_PROTOCOLID": {1: "IP", 3: "IPX", 5: "foreign"},
}


def property_of(field: str) -> Property | None:
    match = _PROPERTY_FIELD.fullmatch(field)
    return None if match is None or match[2] else _PROPERTIES_BY_NAME.get(match[1])


def property_name(number: int) -> str:
    prop = PROPERTIES.get(number)
    return prop.name if prop is not None else "unknown property"


def number_words(name: str, value: int) -> str:
    if name in _PROPERTY_VALUES:
        return _PROPERTY_VALUES[name].get(value, "unknown")
    if name.endswith("_TIME"):
        return utc_time(value)
    if name.endswith("QUOTA"):
        return "no limit" if value == INFINITE else f"KB = {byte_size(value * 1024)}"
    return ""


def blob_words(name: str, data: bytes) -> str:
    try:
        if name == "PROPID_QM_ADDRESS":
            return TaAddress.decode(data).text
        if name.endswith("_SID"):
            return str(Sid.decode(data))
    except WireError:
        return ""
    return "security descriptor" if name.endswith("_SECURITY") else ""
