"""Distinguished names: where an object stands in the tree (directory guide 4.1, 5.4).

The tree is that of Active Directory, also in a store, so that nobody above has to care which back
end runs. A queue's name becomes one component of at most 64 characters; a longer name keeps its
first 55, a check sum tells it from its likes, and the rest goes into an attribute of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Final
from uuid import UUID

RDN_LENGTH_MAX: Final = 64
PLAIN_LENGTH_MAX: Final = 63
KEPT_LENGTH: Final = 55
_POLYNOMIAL: Final = 0x9B619023
_SPECIAL: Final = frozenset(',+"\\<>;=')
_HEX_PAIR: Final = 2


def domain_components(domain: str) -> str:
    """`DC=example,DC=com` for example.com."""
    return ",".join(f"DC={escape(part)}" for part in domain.split(".") if part)


def domain_of(root: str) -> str:
    """`example.com` for DC=example,DC=com; components of other kinds count by their value."""
    return ".".join(value for _, value in split_name(root))


def child(component: str, parent: str) -> str:
    """The name of `CN=component` below a parent."""
    return f"CN={escape(component)},{parent}"


def escape(value: str) -> str:
    """A value as part of a distinguished name (RFC 4514, 2.4)."""
    escaped = "".join(_escape_character(character) for character in value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    if escaped.endswith(" ") and len(value) > 1:
        escaped = f"{escaped[:-1]}\\ "
    return escaped


def _escape_character(character: str) -> str:
    if character in _SPECIAL:
        return f"\\{character}"
    return f"\\{ord(character):02X}" if ord(character) < ord(" ") else character


def split_name(name: str) -> list[tuple[str, str]]:
    """Attribute type in lower case and plain value of each component, the nearest first."""
    return [_split_component(part) for part in _split_unescaped(name) if part.strip()]


def parent_of(name: str) -> str:
    """The name without its first component."""
    first = next(iter(_split_unescaped(name)))
    return name[len(first) + 1 :]


def folded(name: str) -> str:
    """One spelling of a distinguished name, to compare it: case and escapes do not count."""
    return ",".join(f"{kind}={escape(value.lower())}" for kind, value in split_name(name))


def _split_unescaped(name: str) -> list[str]:
    parts, start, is_escaped = [], 0, False
    for place, character in enumerate(name):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == ",":
            parts.append(name[start:place])
            start = place + 1
    return [*parts, name[start:]]


def _split_component(component: str) -> tuple[str, str]:
    kind, _, value = component.partition("=")
    return kind.strip().lower(), _unescape(value.strip() if "\\" not in value else value)


def _unescape(value: str) -> str:
    """The plain value; pairs of hexadecimal digits are bytes of UTF-8."""
    plain, place = bytearray(), 0
    while place < len(value):
        if value[place] != "\\":
            plain += value[place].encode()
            place += 1
            continue
        pair = value[place + 1 : place + 1 + _HEX_PAIR]
        if len(pair) == _HEX_PAIR and all(digit in "0123456789abcdefABCDEF" for digit in pair):
            plain.append(int(pair, 16))
            place += 1 + _HEX_PAIR
        else:
            plain += pair[:1].encode()
            place += 1 + len(pair[:1])
    return plain.decode("utf-8", "replace")


def queue_component(name: str) -> tuple[str, str]:
    """The component of a queue and what did not fit into it (5.4 with E11: no escapes in it)."""
    if len(name) <= PLAIN_LENGTH_MAX:
        return name, ""
    return f"{name[:KEPT_LENGTH]}-{name_hash(name):08x}", name[KEPT_LENGTH:]


def queue_name(component: str, extension: str) -> str:
    """The name of a queue from its component, in lower case; escapes of Windows go (5.4, E11)."""
    if len(component) == RDN_LENGTH_MAX:
        component = component[:KEPT_LENGTH] + extension
    return component.replace("\\", "").lower()


def name_hash(name: str) -> int:
    """The check sum in the component of a long name: a CRC-32 over lower-case UTF-16 (5.4)."""
    table, value = _crc_table(), 0
    for byte in name.lower().encode("utf-16-be"):
        value = (value >> 8) ^ table[(byte ^ value) & 0xFF]
    return value


def link_component(site1: UUID, site2: UUID) -> str:
    """The component of a routing link: the digits of both sites (4.1)."""
    return site1.hex + site2.hex


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)
