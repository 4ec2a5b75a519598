"""ACE: one entry of an access control list (MS-DTYP 2.4.4).

Twenty types, three shapes: a mask and a SID (`BasicAce`), the same with up to two GUIDs in between
(`ObjectAce`), and everything MS-DTYP gives no layout for, carried as it came (`OpaqueAce`).
`read_ace` reads whichever stands at the cursor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.reader import Layout, Reader, Structure
from falconmq.wire.sid import Sid

ACCESS_ALLOWED_ACE_TYPE: Final = 0x00
ACCESS_DENIED_ACE_TYPE: Final = 0x01
SYSTEM_AUDIT_ACE_TYPE: Final = 0x02
SYSTEM_ALARM_ACE_TYPE: Final = 0x03
ACCESS_ALLOWED_COMPOUND_ACE_TYPE: Final = 0x04  # no layout published: opaque
ACCESS_ALLOWED_OBJECT_ACE_TYPE: Final = 0x05
ACCESS_DENIED_OBJECT_ACE_TYPE: Final = 0x06
SYSTEM_AUDIT_OBJECT_ACE_TYPE: Final = 0x07
SYSTEM_ALARM_OBJECT_ACE_TYPE: Final = 0x08
ACCESS_ALLOWED_CALLBACK_ACE_TYPE: Final = 0x09
ACCESS_DENIED_CALLBACK_ACE_TYPE: Final = 0x0A
ACCESS_ALLOWED_CALLBACK_OBJECT_ACE_TYPE: Final = 0x0B
ACCESS_DENIED_CALLBACK_OBJECT_ACE_TYPE: Final = 0x0C
SYSTEM_AUDIT_CALLBACK_ACE_TYPE: Final = 0x0D
SYSTEM_ALARM_CALLBACK_ACE_TYPE: Final = 0x0E
SYSTEM_AUDIT_CALLBACK_OBJECT_ACE_TYPE: Final = 0x0F
SYSTEM_ALARM_CALLBACK_OBJECT_ACE_TYPE: Final = 0x10
SYSTEM_MANDATORY_LABEL_ACE_TYPE: Final = 0x11
SYSTEM_RESOURCE_ATTRIBUTE_ACE_TYPE: Final = 0x12
SYSTEM_SCOPED_POLICY_ID_ACE_TYPE: Final = 0x13

OBJECT_INHERIT_ACE: Final = 0x01
CONTAINER_INHERIT_ACE: Final = 0x02
NO_PROPAGATE_INHERIT_ACE: Final = 0x04
INHERIT_ONLY_ACE: Final = 0x08
INHERITED_ACE: Final = 0x10
SUCCESSFUL_ACCESS_ACE_FLAG: Final = 0x40
FAILED_ACCESS_ACE_FLAG: Final = 0x80

ACE_OBJECT_TYPE_PRESENT: Final = 0x1
ACE_INHERITED_OBJECT_TYPE_PRESENT: Final = 0x2

SYSTEM_MANDATORY_LABEL_NO_WRITE_UP: Final = 0x1
SYSTEM_MANDATORY_LABEL_NO_READ_UP: Final = 0x2
SYSTEM_MANDATORY_LABEL_NO_EXECUTE_UP: Final = 0x4

BASIC_ACE_TYPES: Final = frozenset(
    {0x00, 0x01, 0x02, 0x03, 0x09, 0x0A, 0x0D, 0x0E, 0x11, 0x12, 0x13}
)
OBJECT_ACE_TYPES: Final = frozenset({0x05, 0x06, 0x07, 0x08, 0x0B, 0x0C, 0x0F, 0x10})
# Callback ACEs and the resource attribute go on behind the SID; behind others nothing is read.
DATA_ACE_TYPES: Final = frozenset({0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x12})

_HEADER: Final = Layout("ACE", "BBH", "AceType", "AceFlags", "AceSize")
_MASK: Final = Layout("ACE", "I", "Mask")
_MASK_AND_FLAGS: Final = Layout("ACE", "II", "Mask", "Flags")
_PRESENCE: Final = ACE_OBJECT_TYPE_PRESENT | ACE_INHERITED_OBJECT_TYPE_PRESENT


@dataclass(frozen=True, slots=True)
class BasicAce(Structure):
    """Rights of one SID: allowed, denied, audited, a label (MS-DTYP 2.4.4.2, .4, .6, .10 ...)."""

    ace_type: int
    mask: int
    sid: Sid
    ace_flags: int = 0
    application_data: bytes = b""  # whole 32-bit words; only types of DATA_ACE_TYPES have any

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ACE")
        ace_type, ace_flags, body = _read_header(reader, BASIC_ACE_TYPES)
        (mask,) = body.fixed(_MASK)
        sid = Sid.read(body)
        data = _read_application_data(body, ace_type)
        reader.leave(outer)
        return cls(ace_type, mask, sid, ace_flags, data)

    def encode(self) -> bytes:
        _check_type(self.ace_type, BASIC_ACE_TYPES)
        data = _check_application_data(self.ace_type, self.application_data)
        body = _MASK.pack(self.mask) + self.sid.encode() + data
        return _with_header(self.ace_type, self.ace_flags, body)


@dataclass(frozen=True, slots=True)
class ObjectAce(Structure):
    """Rights of one SID to one kind of object or property (MS-DTYP 2.4.4.3, .5, .8, .9, .11, .14).

    A GUID that is None is absent from the bytes; `Flags` says which are there.
    """

    ace_type: int
    mask: int
    sid: Sid
    object_type: bytes | None = None
    inherited_object_type: bytes | None = None
    ace_flags: int = 0
    application_data: bytes = b""  # whole 32-bit words; only types of DATA_ACE_TYPES have any
    reserved_flags: int = 0  # the bits of Flags that MS-DTYP does not define, as they came

    @property
    def flags(self) -> int:
        flags = self.reserved_flags
        if self.object_type is not None:
            flags |= ACE_OBJECT_TYPE_PRESENT
        if self.inherited_object_type is not None:
            flags |= ACE_INHERITED_OBJECT_TYPE_PRESENT
        return flags

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ACE")
        ace_type, ace_flags, body = _read_header(reader, OBJECT_ACE_TYPES)
        mask, flags = body.fixed(_MASK_AND_FLAGS)
        has_object_type = flags & ACE_OBJECT_TYPE_PRESENT
        has_inherited_object_type = flags & ACE_INHERITED_OBJECT_TYPE_PRESENT
        object_type = body.guid("ObjectType") if has_object_type else None
        inherited = body.guid("InheritedObjectType") if has_inherited_object_type else None
        sid = Sid.read(body)
        data = _read_application_data(body, ace_type)
        reader.leave(outer)
        return cls(ace_type, mask, sid, object_type, inherited, ace_flags, data, flags & ~_PRESENCE)

    def encode(self) -> bytes:
        _check_type(self.ace_type, OBJECT_ACE_TYPES)
        data = _check_application_data(self.ace_type, self.application_data)
        if self.reserved_flags & _PRESENCE:
            problem = "the presence bits follow from the GUIDs, they are not reserved"
            raise WireError("ACE", "Flags", problem)
        body = _MASK_AND_FLAGS.pack(self.mask, self.flags)
        body += _guid_or_nothing(self.object_type, "ObjectType")
        body += _guid_or_nothing(self.inherited_object_type, "InheritedObjectType")
        body += self.sid.encode() + data
        return _with_header(self.ace_type, self.ace_flags, body)


@dataclass(frozen=True, slots=True)
class OpaqueAce(Structure):
    """An ACE of a type without a published layout; never grants or denies, only travels on."""

    ace_type: int
    data: bytes  # everything behind the header, whole 32-bit words
    ace_flags: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ACE")
        ace_type, ace_flags, body = _read_header(reader, None)
        data = bytes(body.take(body.remaining, "Data"))
        reader.leave(outer)
        return cls(ace_type, data, ace_flags)

    def encode(self) -> bytes:
        _check_type(self.ace_type, None)
        _check_words(self.data, "Data")
        return _with_header(self.ace_type, self.ace_flags, self.data)


Ace = BasicAce | ObjectAce | OpaqueAce


def access_allowed(mask: int, sid: Sid, ace_flags: int = 0) -> BasicAce:
    """The ACE that gives `sid` the rights of `mask`."""
    return BasicAce(ACCESS_ALLOWED_ACE_TYPE, mask, sid, ace_flags)


def access_denied(mask: int, sid: Sid, ace_flags: int = 0) -> BasicAce:
    """The ACE that refuses `sid` the rights of `mask`."""
    return BasicAce(ACCESS_DENIED_ACE_TYPE, mask, sid, ace_flags)


def read_ace(reader: Reader) -> Ace:
    """Read the ACE at the cursor, of whatever type."""
    # One byte ahead; with none left any class reports the missing header.
    ace_type = reader.buffer[reader.position] if reader.remaining > 0 else 0
    if ace_type in BASIC_ACE_TYPES:
        return BasicAce.read(reader)
    if ace_type in OBJECT_ACE_TYPES:
        return ObjectAce.read(reader)
    return OpaqueAce.read(reader)


def _read_header(reader: Reader, types: frozenset[int] | None) -> tuple[int, int, Reader]:
    """AceType, AceFlags and a reader that cannot leave this ACE; None takes the other types."""
    ace_type, ace_flags, size = reader.fixed(_HEADER)
    if not _is_of(ace_type, types):
        raise reader.refuse(_HEADER, "AceType", f"{ace_type:#04x} has another layout")
    if size < _HEADER.size or size % 4:
        problem = f"{size} is not a multiple of 4 from {_HEADER.size} on"
        raise reader.refuse(_HEADER, "AceSize", problem)
    if size - _HEADER.size > reader.remaining:
        available = reader.remaining + _HEADER.size
        raise reader.refuse(_HEADER, "AceSize", f"{size} is more than the {available} bytes left")
    return ace_type, ace_flags, reader.part(size - _HEADER.size, "AceSize")


def _read_application_data(body: Reader, ace_type: int) -> bytes:
    data = body.take(body.remaining, "ApplicationData") if body.remaining else b""
    return bytes(data) if ace_type in DATA_ACE_TYPES else b""  # MS-DTYP 2.4.4.1: others ignore it


def _is_of(ace_type: int, types: frozenset[int] | None) -> bool:
    if types is None:
        return ace_type not in BASIC_ACE_TYPES and ace_type not in OBJECT_ACE_TYPES
    return ace_type in types


def _check_type(ace_type: int, types: frozenset[int] | None) -> None:
    if not _is_of(ace_type, types):
        raise WireError("ACE", "AceType", f"{ace_type:#04x} has another layout")


def _check_words(data: bytes, field: str) -> None:
    if len(data) % 4:
        raise WireError("ACE", field, f"{len(data)} bytes are no multiple of 4")


def _check_application_data(ace_type: int, data: bytes) -> bytes:
    if data and ace_type not in DATA_ACE_TYPES:
        raise WireError("ACE", "ApplicationData", f"an ACE of type {ace_type:#04x} carries none")
    _check_words(data, "ApplicationData")
    return data


def _guid_or_nothing(guid: bytes | None, field: str) -> bytes:
    if guid is None:
        return b""
    if len(guid) != 16:
        raise WireError("ACE", field, f"{len(guid)} bytes are no GUID")
    return guid


def _with_header(ace_type: int, ace_flags: int, body: bytes) -> bytes:
    return _HEADER.pack(ace_type, ace_flags, _HEADER.size + len(body)) + body
