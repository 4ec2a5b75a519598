"""SDDL: a security descriptor as one line of text (MS-DTYP 2.5.1).

    O:BAG:SYD:P(A;;0x2002b;;;WD)(A;;GA;;;BA)

Owner, group, then the two lists, each ACE as (type;flags;rights;object GUID;inherited GUID;SID).
Letters count in either case, as the grammar's ABNF has it; what is printed is in capitals.

The text has no place for some bits: who set a part by default, server security, revisions and
reserved fields. They are left out when printing, as Windows does. What it cannot say about access
(conditions, resource attributes, unknown ACEs or flags) is refused, in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.errors import NameSyntaxError, WireError
from falconmq.wire import access_masks, ace, security_descriptor
from falconmq.wire.ace import Ace, BasicAce, ObjectAce, OpaqueAce
from falconmq.wire.acl import SIZE_MAX, Acl
from falconmq.wire.guid import guid_bytes, guid_text
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import (
    DOMAIN_ALIASES,
    ROOT_DOMAIN_ALIASES,
    SDDL_ALIASES,
    Sid,
    scan_sid,
    sid_syntax_error,
)

NO_ACCESS_CONTROL: Final = "NO_ACCESS_CONTROL"  # a null list; Windows' own, not in MS-DTYP

ACE_TYPES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "A": ace.ACCESS_ALLOWED_ACE_TYPE,
        "D": ace.ACCESS_DENIED_ACE_TYPE,
        "AU": ace.SYSTEM_AUDIT_ACE_TYPE,
        "AL": ace.SYSTEM_ALARM_ACE_TYPE,  # Windows' own, like OL
        "OA": ace.ACCESS_ALLOWED_OBJECT_ACE_TYPE,
        "OD": ace.ACCESS_DENIED_OBJECT_ACE_TYPE,
        "OU": ace.SYSTEM_AUDIT_OBJECT_ACE_TYPE,
        "OL": ace.SYSTEM_ALARM_OBJECT_ACE_TYPE,
        "ML": ace.SYSTEM_MANDATORY_LABEL_ACE_TYPE,
        "SP": ace.SYSTEM_SCOPED_POLICY_ID_ACE_TYPE,
    }
)
ACE_FLAGS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "CI": ace.CONTAINER_INHERIT_ACE,
        "OI": ace.OBJECT_INHERIT_ACE,
        "NP": ace.NO_PROPAGATE_INHERIT_ACE,
        "IO": ace.INHERIT_ONLY_ACE,
        "ID": ace.INHERITED_ACE,
        "SA": ace.SUCCESSFUL_ACCESS_ACE_FLAG,
        "FA": ace.FAILED_ACCESS_ACE_FLAG,
    }
)
_COMMON_RIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "GA": access_masks.GENERIC_ALL,
        "GR": access_masks.GENERIC_READ,
        "GW": access_masks.GENERIC_WRITE,
        "GX": access_masks.GENERIC_EXECUTE,
        "RC": access_masks.READ_CONTROL,
        "SD": access_masks.DELETE,
        "WD": access_masks.WRITE_DACL,
        "WO": access_masks.WRITE_OWNER,
    }
)
RIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        **_COMMON_RIGHTS,
        "FA": 0x001F01FF,  # files
        "FX": 0x001200A0,
        "FW": 0x00120116,
        "FR": 0x00120089,
        "KA": 0x000F003F,  # registry keys
        "KR": 0x00020019,
        "KX": 0x00020019,
        "KW": 0x00020006,
        "CR": 0x00000100,  # directory objects
        "LO": 0x00000080,
        "DT": 0x00000040,
        "WP": 0x00000020,
        "RP": 0x00000010,
        "SW": 0x00000008,
        "LC": 0x00000004,
        "DC": 0x00000002,
        "CC": 0x00000001,
    }
)
# The policy bits of a mandatory label; Windows' names, MS-DTYP 2.4.4.13 has only the bits.
LABEL_RIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "NW": ace.SYSTEM_MANDATORY_LABEL_NO_WRITE_UP,
        "NR": ace.SYSTEM_MANDATORY_LABEL_NO_READ_UP,
        "NX": ace.SYSTEM_MANDATORY_LABEL_NO_EXECUTE_UP,
    }
)

_DACL_FLAGS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "P": security_descriptor.SE_DACL_PROTECTED,
        "AR": security_descriptor.SE_DACL_AUTO_INHERIT_REQ,
        "AI": security_descriptor.SE_DACL_AUTO_INHERITED,
    }
)
_SACL_FLAGS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "P": security_descriptor.SE_SACL_PROTECTED,
        "AR": security_descriptor.SE_SACL_AUTO_INHERIT_REQ,
        "AI": security_descriptor.SE_SACL_AUTO_INHERITED,
    }
)

_CONDITIONAL_TYPES: Final = frozenset({"XA", "XD", "XU", "ZA"})
_RESOURCE_ATTRIBUTE: Final = "RA"
_ACL_HEADER_SIZE: Final = 8

_SECTION: Final = re.compile(r"[OGDS]:", re.IGNORECASE | re.ASCII)
_ACL_FLAG: Final = re.compile(rf"{NO_ACCESS_CONTROL}|P|AR|AI", re.IGNORECASE | re.ASCII)
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_NUMBER: Final = re.compile(r"0x([0-9a-f]{1,8})|0([0-7]{1,21})|(0|[1-9][0-9]{0,19})", re.IGNORECASE)
_GUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

_SDDL_NAMES: Final[Mapping[Sid, str]] = MappingProxyType(
    {sid: name for name, sid in SDDL_ALIASES.items()}
)
_ACE_TYPE_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {ace_type: name for name, ace_type in ACE_TYPES.items()}
)


def parse_sddl(
    text: str, *, domain: Sid | None = None, root_domain: Sid | None = None
) -> SecurityDescriptor:
    """The descriptor that `text` spells; NameSyntaxError points at what breaks the grammar.

    DA, DU, LA and their like mean accounts of `domain`; EA, SA and RO those of `root_domain`, the
    first of the forest, which is `domain` when there is only one.
    """
    return _Parser(text, domain, root_domain or domain).descriptor()


def parse_sid(text: str, *, domain: Sid | None = None, root_domain: Sid | None = None) -> Sid:
    """A SID given as S-1-... or as one of SDDL's two-letter names."""
    parser = _Parser(text, domain, root_domain or domain)
    sid = parser.sid()
    if parser.position != len(text):
        raise parser.error("a SID ends here, but more follows")
    return sid


def format_sid(sid: Sid) -> str:
    """The two-letter name of a well-known SID, else S-1-..."""
    return _SDDL_NAMES.get(sid) or str(sid)


def format_sddl(descriptor: SecurityDescriptor) -> str:
    """Spell a descriptor; WireError if it says something about access that SDDL cannot say."""
    text = ""
    if descriptor.owner is not None:
        text += "O:" + format_sid(descriptor.owner)
    if descriptor.group is not None:
        text += "G:" + format_sid(descriptor.group)
    control = descriptor.control
    if control & security_descriptor.SE_DACL_PRESENT:
        text += "D:" + _format_acl(descriptor.dacl, control, _DACL_FLAGS)
    if control & security_descriptor.SE_SACL_PRESENT:
        text += "S:" + _format_acl(descriptor.sacl, control, _SACL_FLAGS)
    return text


class _Parser:
    """A cursor over the text; every method reads one part of the grammar."""

    __slots__ = ("_domain", "_root_domain", "_text", "position")

    def __init__(self, text: str, domain: Sid | None, root_domain: Sid | None) -> None:
        self._text = text
        self._domain = domain
        self._root_domain = root_domain
        self.position = 0
        if not text.isascii():  # capitals of other alphabets could pass for letters of the grammar
            self.position = next(i for i, letter in enumerate(text) if not letter.isascii())
            raise self.error("only ASCII letters can stand here")

    def error(self, problem: str, position: int | None = None, hint: str = "") -> NameSyntaxError:
        where = self.position if position is None else position
        return sid_syntax_error(self._text, where, problem, hint)

    def descriptor(self) -> SecurityDescriptor:
        # MS-DTYP prints O, G, D, S; Windows reads them in any order, and so do we.
        owner = group = None
        dacl = sacl = None
        control = 0
        seen: set[str] = set()
        while self.position < len(self._text):
            section = self._section(seen)
            if section == "O":
                owner = self.sid()
            elif section == "G":
                group = self.sid()
            elif section == "D":
                dacl, flags = self._acl(_DACL_FLAGS)
                control |= flags | security_descriptor.SE_DACL_PRESENT
            else:
                sacl, flags = self._acl(_SACL_FLAGS)
                control |= flags | security_descriptor.SE_SACL_PRESENT
        return SecurityDescriptor(owner, group, dacl, sacl, control)

    def sid(self) -> Sid:
        """sid-string: a two-letter name or S-1-..."""
        start = self.position
        name = self._text[start : start + 2].upper()
        if name == "S-":
            sid, self.position = scan_sid(self._text, start)
            return sid
        sid = self._named_sid(name)
        self.position = start + 2
        return sid

    def _named_sid(self, name: str) -> Sid:
        if (known := SDDL_ALIASES.get(name)) is not None:
            return known
        for aliases, domain, what in (
            (DOMAIN_ALIASES, self._domain, "a domain"),
            (ROOT_DOMAIN_ALIASES, self._root_domain, "the forest's first domain"),
        ):
            if (relative_identifier := aliases.get(name)) is None:
                continue
            if domain is None:
                hint = f"say which domain, or write S-1-5-21-...-{relative_identifier}"
                raise self.error(f"{name} is an account of {what}, and none is known", hint=hint)
            return domain.child(relative_identifier)
        raise self.error("here stands neither a SID nor one of SDDL's names for one")

    def _section(self, seen: set[str]) -> str:
        match = _SECTION.match(self._text, self.position)
        if match is None:
            raise self.error("O:, G:, D:, S: or the end is expected here")
        section = match[0][0].upper()
        if section in seen:
            raise self.error(f"{section}: stands here for the second time")
        seen.add(section)
        self.position = match.end()
        return section

    def _acl(self, flag_names: Mapping[str, int]) -> tuple[Acl | None, int]:
        flags = 0
        is_null = False
        while match := _ACL_FLAG.match(self._text, self.position):
            name = match[0].upper()
            if name == NO_ACCESS_CONTROL:
                is_null = True
            else:
                flags |= flag_names[name]
            self.position = match.end()
        if is_null:
            if self._text[self.position : self.position + 1] == "(":
                raise self.error(f"no ACE may follow {NO_ACCESS_CONTROL}")
            return None, flags
        aces: list[Ace] = []
        size = _ACL_HEADER_SIZE
        while self._text[self.position : self.position + 1] == "(":
            start = self.position
            aces.append(self._ace())
            size += len(aces[-1].encode())
            if size > SIZE_MAX:
                raise self.error(f"from here on the list is longer than {SIZE_MAX} bytes", start)
        return Acl.of(aces), flags

    def _ace(self) -> Ace:
        start = self.position + 1
        self.position = start
        ace_type = self._ace_type(self._letters().upper())
        end = self._text.find(")", start)
        if end < 0:
            raise self.error("this ACE has no closing parenthesis", start - 1)
        fields = self._fields(start, end)
        ace_flags = self._flags(*fields[1])
        mask = self._rights(*fields[2], ace_type)
        object_type = self._guid(*fields[3])
        inherited_object_type = self._guid(*fields[4])
        self.position = fields[5][0]
        sid = self.sid()
        if self.position != end:
            raise self.error("the SID ends here, but the ACE goes on")
        self.position = end + 1
        if ace_type in ace.OBJECT_ACE_TYPES:
            return ObjectAce(ace_type, mask, sid, object_type, inherited_object_type, ace_flags)
        for guid, (at, _) in ((object_type, fields[3]), (inherited_object_type, fields[4])):
            if guid is not None:
                raise self.error("only ACEs of type OA, OD, OU and OL have GUIDs", at)
        return BasicAce(ace_type, mask, sid, ace_flags)

    def _letters(self) -> str:
        match = _LETTERS.match(self._text, self.position)
        return match[0] if match else ""

    def _ace_type(self, name: str) -> int:
        if name in _CONDITIONAL_TYPES:
            raise self.error(f"conditional ACEs ({name}) are not supported")
        if name == _RESOURCE_ATTRIBUTE:
            raise self.error("resource attributes (RA) are not supported")
        if name not in ACE_TYPES:
            raise self.error("an ACE begins with one of " + ", ".join(ACE_TYPES))
        return ACE_TYPES[name]

    def _fields(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where the six fields between the parentheses begin and end."""
        fields: list[tuple[int, int]] = []
        while len(fields) < 5:
            stop = self._text.find(";", start, end)
            if stop < 0:
                raise self.error("an ACE has six fields with ; between them", end)
            fields.append((start, stop))
            start = stop + 1
        fields.append((start, end))
        return fields

    def _flags(self, start: int, end: int) -> int:
        flags = 0
        for at in range(start, end, 2):
            name = self._text[at : min(at + 2, end)].upper()
            if name not in ACE_FLAGS:
                raise self.error("ACE flags are " + ", ".join(ACE_FLAGS), at)
            flags |= ACE_FLAGS[name]
        return flags

    def _rights(self, start: int, end: int, ace_type: int) -> int:
        if self._text[start : start + 1].isdigit():
            return self._number(start, end)
        is_label = ace_type == ace.SYSTEM_MANDATORY_LABEL_ACE_TYPE
        names = LABEL_RIGHTS if is_label else RIGHTS
        mask = 0
        for at in range(start, end, 2):
            name = self._text[at : min(at + 2, end)].upper()
            if name not in names:
                raise self.error("rights are a number or two-letter names: " + ", ".join(names), at)
            mask |= names[name]
        return mask

    def _number(self, start: int, end: int) -> int:
        match = _NUMBER.fullmatch(self._text, start, end)
        if match is None:
            raise self.error("this is no hexadecimal, octal or decimal number", start)
        for digits, base in ((match[1], 16), (match[2], 8), (match[3], 10)):
            if digits is not None and (number := int(digits, base)) <= 0xFFFFFFFF:
                return number
        raise self.error("the rights do not fit 32 bits", start)

    def _guid(self, start: int, end: int) -> bytes | None:
        if start == end:
            return None
        match = _GUID.fullmatch(self._text, start, end)
        if match is None:
            raise self.error("a GUID is 8-4-4-4-12 hexadecimal digits", start)
        return guid_bytes(UUID(match[0]))


def _format_acl(acl: Acl | None, control: int, flag_names: Mapping[str, int]) -> str:
    text = "".join([name for name, bit in flag_names.items() if control & bit])
    if acl is None:
        return text + NO_ACCESS_CONTROL
    return text + "".join([_format_ace(entry) for entry in acl.aces])


def _format_ace(entry: Ace) -> str:
    name = _ACE_TYPE_NAMES.get(entry.ace_type)
    if name is None or isinstance(entry, OpaqueAce):
        raise WireError("SDDL", "ace-type", f"an ACE of type {entry.ace_type:#04x} has no text")
    unknown_flags = entry.ace_flags & ~sum(ACE_FLAGS.values())
    if unknown_flags:
        raise WireError("SDDL", "ace-flag-string", f"ACE flags {unknown_flags:#04x} have no text")
    guids = ";"
    if isinstance(entry, ObjectAce):
        if entry.reserved_flags:
            problem = f"flags {entry.reserved_flags:#x} of an object ACE have no text"
            raise WireError("SDDL", "object-guid", problem)
        guids = f"{_format_guid(entry.object_type)};{_format_guid(entry.inherited_object_type)}"
    flags = _names_of(entry.ace_flags, ACE_FLAGS)
    return f"({name};{flags};{_format_rights(entry)};{guids};{format_sid(entry.sid)})"


def _format_rights(entry: BasicAce | ObjectAce) -> str:
    """Names where they say it all, else a number: letters of files or directories would mislead."""
    if entry.ace_type == ace.SYSTEM_SCOPED_POLICY_ID_ACE_TYPE and entry.mask == 0:
        return ""
    is_label = entry.ace_type == ace.SYSTEM_MANDATORY_LABEL_ACE_TYPE
    names = LABEL_RIGHTS if is_label else _COMMON_RIGHTS
    if entry.mask and not entry.mask & ~sum(names.values()):
        return _names_of(entry.mask, names)
    return f"{entry.mask:#x}"


def _format_guid(guid: bytes | None) -> str:
    return "" if guid is None else guid_text(guid)


def _names_of(bits: int, names: Mapping[str, int]) -> str:
    return "".join([name for name, bit in names.items() if bits & bit])
