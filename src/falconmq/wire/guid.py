"""GUIDs: 16 bytes on the wire, text for people (MS-DTYP 2.3.4.2).

Inside `wire` a GUID stays the 16 bytes that came: making a `UUID` of it costs more than decoding a
whole header. Whoever shows it calls `guid_text` or `guid_value`.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import WireError

NULL_GUID: Final = bytes(16)


def guid_value(data: bytes) -> UUID:
    """The UUID that 16 wire bytes stand for: Data1 to Data3 little-endian, Data4 as is."""
    return UUID(bytes_le=data)


def guid_bytes(value: UUID) -> bytes:
    """The 16 wire bytes of a UUID."""
    return value.bytes_le


def guid_text(data: bytes) -> str:
    """8-4-4-4-12 in capitals and without braces, as MSMQ format names spell it."""
    return str(UUID(bytes_le=data)).upper()


def encode_guid(guid: bytes, structure: str, field: str) -> bytes:
    """The GUID itself, if it has its 16 bytes; WireError otherwise."""
    if len(guid) != 16:
        raise WireError(structure, field, f"a GUID has 16 bytes, not {len(guid)}")
    return guid
