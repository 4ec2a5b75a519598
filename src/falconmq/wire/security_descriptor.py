"""SECURITY_DESCRIPTOR in self-relative form, and SECURITY_INFORMATION (MS-DTYP 2.4.6, MQMQ 2.2.3).

The header says by offsets where owner, group and the two lists stand. Windows writes the lists
first, the document draws the owner first; any order is read, the document's is written.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from falconmq.errors import WireError
from falconmq.wire.acl import Acl
from falconmq.wire.reader import Layout, Reader, Structure
from falconmq.wire.sid import Sid

REVISION: Final = 1

# Control. MS-DTYP numbers its drawing from the most significant bit: SR is 0x8000.
SE_OWNER_DEFAULTED: Final = 0x0001  # OD
SE_GROUP_DEFAULTED: Final = 0x0002  # GD
SE_DACL_PRESENT: Final = 0x0004  # DP
SE_DACL_DEFAULTED: Final = 0x0008  # DD
SE_SACL_PRESENT: Final = 0x0010  # SP
SE_SACL_DEFAULTED: Final = 0x0020  # SD
SE_DACL_TRUSTED: Final = 0x0040  # DT
SE_SERVER_SECURITY: Final = 0x0080  # SS
SE_DACL_AUTO_INHERIT_REQ: Final = 0x0100  # DC
SE_SACL_AUTO_INHERIT_REQ: Final = 0x0200  # SC
SE_DACL_AUTO_INHERITED: Final = 0x0400  # DI
SE_SACL_AUTO_INHERITED: Final = 0x0800  # SI
SE_DACL_PROTECTED: Final = 0x1000  # PD
SE_SACL_PROTECTED: Final = 0x2000  # PS
SE_RM_CONTROL_VALID: Final = 0x4000  # RM
SE_SELF_RELATIVE: Final = 0x8000  # SR

# SECURITY_INFORMATION: which parts of a descriptor are meant.
OWNER_SECURITY_INFORMATION: Final = 0x00000001  # MQ-2.2.3-02
GROUP_SECURITY_INFORMATION: Final = 0x00000002  # MQ-2.2.3-03
DACL_SECURITY_INFORMATION: Final = 0x00000004  # MQ-2.2.3-04
SACL_SECURITY_INFORMATION: Final = 0x00000008  # MQ-2.2.3-05

_DACL_CONTROL: Final = (
    SE_DACL_PRESENT
    | SE_DACL_DEFAULTED
    | SE_DACL_TRUSTED
    | SE_DACL_AUTO_INHERIT_REQ
    | SE_DACL_AUTO_INHERITED
    | SE_DACL_PROTECTED
)
_SACL_CONTROL: Final = (
    SE_SACL_PRESENT
    | SE_SACL_DEFAULTED
    | SE_SACL_AUTO_INHERIT_REQ
    | SE_SACL_AUTO_INHERITED
    | SE_SACL_PROTECTED
)

_LAYOUT: Final = Layout(
    "SECURITY_DESCRIPTOR",
    "BBHIIII",
    "Revision",
    "Sbz1",
    "Control",
    "OffsetOwner",
    "OffsetGroup",
    "OffsetSacl",
    "OffsetDacl",
)

_Part = TypeVar("_Part", Sid, Acl)


@dataclass(frozen=True, slots=True)
class SecurityDescriptor(Structure):
    """Who owns an object, and who may do what with it.

    `control` always has SE_SELF_RELATIVE, and the present bit of each list that is there. A present
    bit without a list is the null list: a null DACL lets everybody do everything, and is another
    value than a descriptor that says nothing about access.
    """

    owner: Sid | None = None
    group: Sid | None = None
    dacl: Acl | None = None
    sacl: Acl | None = None
    control: int = SE_SELF_RELATIVE
    sbz1: int = 0  # resource manager bits if SE_RM_CONTROL_VALID, else without meaning

    def __post_init__(self) -> None:
        control = self.control | SE_SELF_RELATIVE
        if self.dacl is not None:
            control |= SE_DACL_PRESENT
        if self.sacl is not None:
            control |= SE_SACL_PRESENT
        object.__setattr__(self, "control", control)

    @property
    def has_null_dacl(self) -> bool:
        """Whether there is a DACL and it is null: everybody may do everything."""
        return self.dacl is None and bool(self.control & SE_DACL_PRESENT)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SECURITY_DESCRIPTOR")
        start = reader.position
        revision, sbz1, control, owner_at, group_at, sacl_at, dacl_at = reader.fixed(_LAYOUT)
        if revision != REVISION:
            raise reader.refuse(_LAYOUT, "Revision", f"{revision} is not {REVISION}")
        if not control & SE_SELF_RELATIVE:  # the absolute form holds pointers, not offsets
            raise reader.refuse(_LAYOUT, "Control", f"{control:#06x} lacks SR: not self-relative")
        if sacl_at and not control & SE_SACL_PRESENT:
            raise reader.refuse(_LAYOUT, "OffsetSacl", "must be 0 while SP is clear")
        if dacl_at and not control & SE_DACL_PRESENT:
            # To look past this list would turn "these may" into "everybody may".
            raise reader.refuse(_LAYOUT, "OffsetDacl", "must be 0 while DP is clear")
        parts = _Parts(reader, start)
        owner = parts.read(Sid, owner_at, "OwnerSid", "OffsetOwner")
        group = parts.read(Sid, group_at, "GroupSid", "OffsetGroup")
        sacl = parts.read(Acl, sacl_at, "Sacl", "OffsetSacl")
        dacl = parts.read(Acl, dacl_at, "Dacl", "OffsetDacl")
        parts.finish()
        reader.leave(outer)
        return cls(owner, group, dacl, sacl, control, sbz1)

    def encode(self) -> bytes:
        offsets = []
        parts = b""
        for part in (self.owner, self.group, self.sacl, self.dacl):
            offsets.append(0 if part is None else _LAYOUT.size + len(parts))
            parts += b"" if part is None else part.encode()
        return _LAYOUT.pack(REVISION, self.sbz1, self.control, *offsets) + parts

    def select(self, security_information: int) -> SecurityDescriptor:
        """Keep only the parts that SECURITY_INFORMATION names, with their control bits."""
        owner = self.owner if security_information & OWNER_SECURITY_INFORMATION else None
        group = self.group if security_information & GROUP_SECURITY_INFORMATION else None
        dacl = self.dacl if security_information & DACL_SECURITY_INFORMATION else None
        sacl = self.sacl if security_information & SACL_SECURITY_INFORMATION else None
        control = self.control
        for bit, belongs_to_part in (
            (OWNER_SECURITY_INFORMATION, SE_OWNER_DEFAULTED),
            (GROUP_SECURITY_INFORMATION, SE_GROUP_DEFAULTED),
            (DACL_SECURITY_INFORMATION, _DACL_CONTROL),
            (SACL_SECURITY_INFORMATION, _SACL_CONTROL),
        ):
            if not security_information & bit:
                control &= ~belongs_to_part
        return SecurityDescriptor(owner, group, dacl, sacl, control, self.sbz1)


class _Parts:
    """Reads what the offsets point at and remembers which bytes were taken."""

    __slots__ = ("_reader", "_start", "_taken")

    def __init__(self, reader: Reader, start: int) -> None:
        self._reader = reader
        self._start = start
        self._taken = [(start, start + _LAYOUT.size, "Revision")]

    def read(self, kind: type[_Part], offset: int, name: str, field: str) -> _Part | None:
        """The part at `offset` from the start of the descriptor; None for offset 0."""
        if offset == 0:
            return None
        reader = self._reader
        if offset > reader.end - self._start:
            problem = f"{offset} points behind the {reader.end - self._start} bytes there are"
            raise self._refuse(field, problem)
        begin = reader.position = self._start + offset
        outer = reader.enter(name)
        part = kind.read(reader)
        reader.leave(outer)
        self._taken.append((begin, reader.position, field))
        return part

    def finish(self) -> None:
        """Put the cursor behind the last part; refuse parts that run into each other.

        Owner and group may be one SID in one place; nothing honest overlaps only in part.
        """
        places = sorted(set(self._taken))
        for (begin, end, _), (next_begin, next_end, field) in itertools.pairwise(places):
            if next_begin < end and (begin, end) != (next_begin, next_end):
                problem = f"{next_begin - self._start} points into another part"
                raise self._refuse(field, problem)
        self._reader.position = max(end for _, end, _ in places)

    def _refuse(self, field: str, problem: str) -> WireError:
        at = self._start - self._reader.origin + _LAYOUT.offset_of(field)
        return self._reader.error(field, problem, at)
