"""SID: who somebody is, as bytes and as S-1-... text (MS-DTYP 2.4.2), with the well-known ones.

The identifier authority is the only big-endian number of an otherwise little-endian packet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self

from falconmq.errors import MqStatus, NameSyntaxError, WireError
from falconmq.wire.reader import Layout, Reader, Structure

REVISION: Final = 1
SUB_AUTHORITIES_MAX: Final = 15

_AUTHORITY_MAX: Final = 0xFFFFFFFFFFFF
_U32_MAX: Final = 0xFFFFFFFF
_DIGITS_MAX: Final = 10  # of a decimal number in the text form

_LAYOUT: Final = Layout("SID", "BB6s", "Revision", "SubAuthorityCount", "IdentifierAuthority")
# One layout for each possible count: all sub-authorities are read and written in one step.
_SUB_AUTHORITIES: Final = tuple(
    Layout("SID", "I" * count, *["SubAuthority"] * count)
    for count in range(SUB_AUTHORITIES_MAX + 1)
)

_HEX_AUTHORITY: Final = re.compile(r"0[xX]([0-9A-Fa-f]{12})")
_DECIMAL: Final = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Sid(Structure):
    """A security identifier; `str(sid)` is its S-1-... form. Hashable, so it can be a key."""

    identifier_authority: int
    sub_authorities: tuple[int, ...] = ()
    revision: int = REVISION

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SID")
        revision, count, authority = reader.fixed(_LAYOUT)
        if revision != REVISION:
            raise reader.refuse(_LAYOUT, "Revision", f"{revision} is not {REVISION}")
        if count > SUB_AUTHORITIES_MAX:
            raise reader.refuse(
                _LAYOUT, "SubAuthorityCount", f"{count} is more than {SUB_AUTHORITIES_MAX}"
            )
        sub_authorities = reader.fixed(_SUB_AUTHORITIES[count])
        reader.leave(outer)
        return cls(int.from_bytes(authority, "big"), sub_authorities, revision)

    def encode(self) -> bytes:
        count = len(self.sub_authorities)
        if self.revision != REVISION:
            raise WireError("SID", "Revision", f"{self.revision} is not {REVISION}")
        if not 0 <= self.identifier_authority <= _AUTHORITY_MAX:
            problem = f"{self.identifier_authority} does not fit 6 bytes"
            raise WireError("SID", "IdentifierAuthority", problem)
        if count > SUB_AUTHORITIES_MAX:
            problem = f"{count} is more than {SUB_AUTHORITIES_MAX}"
            raise WireError("SID", "SubAuthorityCount", problem)
        head = _LAYOUT.pack(self.revision, count, self.identifier_authority.to_bytes(6, "big"))
        return head + _SUB_AUTHORITIES[count].pack(*self.sub_authorities)

    @classmethod
    def parse(cls, text: str) -> Sid:
        """Read the S-1-... form; NameSyntaxError points at the place that breaks it."""
        sid, end = scan_sid(text, 0)
        if end != len(text):
            raise sid_syntax_error(text, end, "a SID ends here, but more follows")
        return sid

    def child(self, relative_identifier: int) -> Sid:
        """The account of this domain with that relative identifier (the last number)."""
        return Sid(self.identifier_authority, (*self.sub_authorities, relative_identifier))

    def __str__(self) -> str:
        # Decimal below 2^32, else all 12 hexadecimal digits (MS-DTYP 2.4.2.1).
        authority = self.identifier_authority
        head = str(authority) if authority <= _U32_MAX else f"0x{authority:012X}"
        return "-".join([f"S-{self.revision}", head, *map(str, self.sub_authorities)])


def sid_syntax_error(text: str, position: int, problem: str, hint: str = "") -> NameSyntaxError:
    """Build the error for SID or SDDL text that breaks its grammar at `position`."""
    return NameSyntaxError(
        text, position, problem, status=MqStatus.ILLEGAL_SECURITY_DESCRIPTOR, hint=hint
    )


def scan_sid(text: str, position: int) -> tuple[Sid, int]:
    """Read a SID that begins at `position` of `text`; returns it and where it ends.

    The grammar of MS-DTYP 2.4.2.1 asks for at least one sub-authority, but its own table of
    well-known SIDs has S-1-3 and S-1-5 without any: both forms are read.
    """
    if text[position : position + 2].upper() != "S-":
        raise sid_syntax_error(text, position, "a SID begins with S-1-")
    if text[position + 2 : position + 4] != "1-":
        raise sid_syntax_error(text, position + 2, "the only revision of a SID is 1")
    authority, end = _scan_authority(text, position + 4)
    sub_authorities: list[int] = []
    while text[end : end + 1] == "-":
        if len(sub_authorities) == SUB_AUTHORITIES_MAX:
            raise sid_syntax_error(text, end, f"more than {SUB_AUTHORITIES_MAX} sub-authorities")
        number, end = _scan_decimal(text, end + 1, "sub-authority")
        sub_authorities.append(number)
    return Sid(authority, tuple(sub_authorities)), end


def _scan_authority(text: str, position: int) -> tuple[int, int]:
    if text[position : position + 2] not in ("0x", "0X"):
        return _scan_decimal(text, position, "identifier authority")
    match = _HEX_AUTHORITY.match(text, position)
    if match is None:
        problem = "a hexadecimal identifier authority has exactly 12 digits"
        raise sid_syntax_error(text, position, problem)
    return int(match[1], 16), match.end()


def _scan_decimal(text: str, position: int, what: str) -> tuple[int, int]:
    match = _DECIMAL.match(text, position)
    if match is None:
        raise sid_syntax_error(text, position, f"here stands no decimal number for the {what}")
    digits = match[0]
    if digits[0] == "0" and len(digits) > 1:
        raise sid_syntax_error(text, position, f"the {what} may not begin with 0")
    if len(digits) > _DIGITS_MAX or int(digits) > _U32_MAX:  # few digits before int() sees them
        raise sid_syntax_error(text, position, f"the {what} does not fit 32 bits")
    return int(digits), match.end()


NT_AUTHORITY: Final = 5
_BUILTIN: Final = 32


def _nt(*sub_authorities: int) -> Sid:
    return Sid(NT_AUTHORITY, sub_authorities)


# Well-known SIDs, MS-DTYP 2.4.2.4.
NULL_SID: Final = Sid(0, (0,))
EVERYONE: Final = Sid(1, (0,))
LOCAL: Final = Sid(2, (0,))
CONSOLE_LOGON: Final = Sid(2, (1,))
CREATOR_OWNER: Final = Sid(3, (0,))
CREATOR_GROUP: Final = Sid(3, (1,))
OWNER_RIGHTS: Final = Sid(3, (4,))
DIALUP: Final = _nt(1)
NETWORK: Final = _nt(2)
BATCH: Final = _nt(3)
INTERACTIVE: Final = _nt(4)
SERVICE: Final = _nt(6)
ANONYMOUS: Final = _nt(7)
PROXY: Final = _nt(8)
ENTERPRISE_DOMAIN_CONTROLLERS: Final = _nt(9)
PRINCIPAL_SELF: Final = _nt(10)
AUTHENTICATED_USERS: Final = _nt(11)
RESTRICTED_CODE: Final = _nt(12)
TERMINAL_SERVER_USER: Final = _nt(13)
REMOTE_INTERACTIVE_LOGON: Final = _nt(14)
THIS_ORGANIZATION: Final = _nt(15)
LOCAL_SYSTEM: Final = _nt(18)
LOCAL_SERVICE: Final = _nt(19)
NETWORK_SERVICE: Final = _nt(20)
ADMINISTRATORS: Final = _nt(_BUILTIN, 544)
USERS: Final = _nt(_BUILTIN, 545)
GUESTS: Final = _nt(_BUILTIN, 546)
POWER_USERS: Final = _nt(_BUILTIN, 547)
WRITE_RESTRICTED_CODE: Final = _nt(33)
ALL_APP_PACKAGES: Final = Sid(15, (2, 1))
ML_UNTRUSTED: Final = Sid(16, (0,))
ML_LOW: Final = Sid(16, (0x1000,))
ML_MEDIUM: Final = Sid(16, (0x2000,))
ML_MEDIUM_PLUS: Final = Sid(16, (0x2100,))
ML_HIGH: Final = Sid(16, (0x3000,))
ML_SYSTEM: Final = Sid(16, (0x4000,))
ML_PROTECTED_PROCESS: Final = Sid(16, (0x5000,))

# The two-letter names SDDL has for them, MS-DTYP 2.5.1.1.
SDDL_ALIASES: Final[Mapping[str, Sid]] = MappingProxyType(
    {
        "AA": _nt(_BUILTIN, 579),  # access control assistance operators
        "AC": ALL_APP_PACKAGES,
        "AN": ANONYMOUS,
        "AO": _nt(_BUILTIN, 548),  # account operators
        "AU": AUTHENTICATED_USERS,
        "BA": ADMINISTRATORS,
        "BG": GUESTS,
        "BO": _nt(_BUILTIN, 551),  # backup operators
        "BU": USERS,
        "CD": _nt(_BUILTIN, 574),  # certificate service DCOM access
        "CG": CREATOR_GROUP,
        "CO": CREATOR_OWNER,
        "CY": _nt(_BUILTIN, 569),  # cryptographic operators
        "ED": ENTERPRISE_DOMAIN_CONTROLLERS,
        "ER": _nt(_BUILTIN, 573),  # event log readers
        "ES": _nt(_BUILTIN, 576),  # remote desktop endpoint servers
        "HA": _nt(_BUILTIN, 578),  # Hyper-V administrators
        "HI": ML_HIGH,
        "IS": _nt(_BUILTIN, 568),  # IIS users
        "IU": INTERACTIVE,
        "LS": LOCAL_SERVICE,
        "LU": _nt(_BUILTIN, 559),  # performance log users
        "LW": ML_LOW,
        "ME": ML_MEDIUM,
        "MP": ML_MEDIUM_PLUS,
        "MS": _nt(_BUILTIN, 577),  # remote desktop management servers
        "MU": _nt(_BUILTIN, 558),  # performance monitor users
        "NO": _nt(_BUILTIN, 556),  # network configuration operators
        "NS": NETWORK_SERVICE,
        "NU": NETWORK,
        "OW": OWNER_RIGHTS,
        "PO": _nt(_BUILTIN, 550),  # printer operators
        "PS": PRINCIPAL_SELF,
        "PU": POWER_USERS,
        "RA": _nt(_BUILTIN, 575),  # remote desktop remote access servers
        "RC": RESTRICTED_CODE,
        "RD": _nt(_BUILTIN, 555),  # remote desktop users
        "RE": _nt(_BUILTIN, 552),  # replicator
        "RM": _nt(_BUILTIN, 580),  # remote management users
        "RU": _nt(_BUILTIN, 554),  # pre-Windows 2000 compatible access
        "SI": ML_SYSTEM,
        "SO": _nt(_BUILTIN, 549),  # server operators
        "SU": SERVICE,
        "SY": LOCAL_SYSTEM,
        "UD": _nt(84, 0, 0, 0, 0, 0),  # user-mode drivers
        "WD": EVERYONE,
        "WR": WRITE_RESTRICTED_CODE,
    }
)

# Names that stand for an account of some domain: its relative identifier.
DOMAIN_ALIASES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "CA": 517,  # certificate publishers
        "CN": 522,  # cloneable domain controllers
        "DA": 512,  # domain administrators
        "DC": 515,  # domain computers
        "DD": 516,  # domain controllers
        "DG": 514,  # domain guests
        "DU": 513,  # domain users
        "LA": 500,  # the administrator of a computer
        "LG": 501,  # its guest
        "PA": 520,  # group policy creator owners
        "RS": 553,  # remote access servers
    }
)

# The same in the first domain of the forest.
ROOT_DOMAIN_ALIASES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "EA": 519,  # enterprise administrators
        "RO": 498,  # enterprise read-only domain controllers
        "SA": 518,  # schema administrators
    }
)
