"""What the objects of a directory consist of (directory guide 2): one table for all back ends.

Each attribute has the name it has in a row, its kind, who may say it and when, and the number
under which MSMQ knows it. A back end asks `complete` for a new object and `changes` for a written
one, and gets back only what may be kept; anything wrong is a DirectoryError that says what and why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.directory.distinguished_names import folded
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import AttributeFilter, Filters
from falconmq.manager.directory_objects import NULL_UUID, Row, check_rights
from falconmq.wire.access_masks import ObjectKind
from falconmq.wire.security_descriptor import SecurityDescriptor


class Kind(Enum):
    """What sort of value an attribute has."""

    TEXT = "text"
    OPTIONAL_TEXT = "text or nothing"
    NUMBER = "a number"
    TIME = "seconds since 1970"
    BOOLEAN = "yes or no"
    GUID = "a GUID"
    GUIDS = "a list of GUIDs"
    NAMES = "a list of distinguished names"
    BYTES = "bytes"
    DIGESTS = "a list of 16-byte digests"
    SECURITY = "a security descriptor or nothing"


class Giver(Enum):
    """Who says the value of an attribute."""

    DIRECTORY = "the directory"  # what anybody else says is not looked at
    CREATOR = "the creator"  # once and for all
    ADMINISTRATOR = "an administrator"  # the creator, and whoever may change it


ORDERED: Final = frozenset({Kind.TEXT, Kind.NUMBER, Kind.TIME})
_DIGEST_SIZE: Final = 16
_HALVES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute; `property_id` is None where MSMQ has no number for it."""

    name: str
    kind: Kind
    giver: Giver
    property_id: int | None
    default: object = None
    limits: tuple[int, int] = (0, 0xFFFFFFFF)  # of a number, or of a length
    choices: type[IntEnum] | None = None
    is_filter: bool = True  # whether a query may ask for it
    is_name: bool = False  # small and capital letters are the same

    def check(self, value: object) -> None:
        """Refuse a value that this attribute cannot have."""
        problem = self._problem(value)
        if problem:
            raise refusal(f"{self.name}: {problem}", MqStatus.ILLEGAL_PROPERTY_VALUE)

    def restored(self, value: object) -> object:
        """The member of an enumeration for its number; anything else stays as it is."""
        if self.choices is None or not isinstance(value, int):
            return value
        return self.choices(value)

    def _problem(self, value: object) -> str:
        low, high = self.limits
        if not _FITS[self.kind](value):
            return f"{value!r} is not {self.kind.value}"
        if self.choices is not None and value not in list(self.choices):
            return f"{value!r} is none of {', '.join(str(int(item)) for item in self.choices)}"
        if isinstance(value, int) and not low <= value <= high:
            return f"{value} is not in {low}..{high}"
        if isinstance(value, str | bytes | list) and not low <= len(value) <= high:
            return f"a length of {len(value)} is not in {low}..{high}"
        return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    """Text that can be written down; half of a surrogate pair cannot."""
    return isinstance(value, str) and (value.isascii() or not _HALVES.search(value))


def _is_list_of(value: object, is_one: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and all(map(is_one, value))


def _are_digests(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(isinstance(item, bytes) and len(item) == _DIGEST_SIZE for item in value)


_FITS: Final[Mapping[Kind, Callable[[object], bool]]] = MappingProxyType(
    {
        Kind.TEXT: _is_text,
        Kind.OPTIONAL_TEXT: lambda value: value is None or _is_text(value),
        Kind.NUMBER: _is_number,
        Kind.TIME: _is_number,
        Kind.BOOLEAN: lambda value: isinstance(value, bool),
        Kind.GUID: lambda value: isinstance(value, UUID),
        Kind.GUIDS: lambda value: _is_list_of(value, lambda item: isinstance(item, UUID)),
        Kind.NAMES: lambda value: _is_list_of(value, _is_text),
        Kind.BYTES: lambda value: isinstance(value, bytes),
        Kind.DIGESTS: _are_digests,
        Kind.SECURITY: lambda value: value is None or isinstance(value, SecurityDescriptor),
    }
)


@dataclass(frozen=True)
class ObjectTable:
    """All attributes of one type of object, and what its creator has to say."""

    type_name: str
    code: int  # MQDS_..., or a number of ours from 64 on
    attributes: tuple[Attribute, ...]
    required: frozenset[str]
    kind: ObjectKind | None = None  # whose rights its security descriptor may grant

    def find(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise refusal(
            f"a {self.type_name} has no attribute {name}", MqStatus.ILLEGAL_PROPID, self._known()
        )

    def complete(self, row: Row) -> dict[str, object]:
        """All attributes of a new object: what its creator says, and defaults for the rest."""
        said = self._said(row, (Giver.CREATOR, Giver.ADMINISTRATOR))
        for name in sorted(self.required):
            if said.get(name) in (None, "", NULL_UUID):
                raise refusal(
                    f"a new {self.type_name} needs {name}", MqStatus.INSUFFICIENT_PROPERTIES
                )
        return {a.name: _fresh(a.default) for a in self.attributes} | said

    def changes(self, row: Row) -> dict[str, object]:
        """What a write may change; attributes that others say are left alone."""
        return self._said(row, (Giver.ADMINISTRATOR,))

    def check_query(self, filters: Filters, names: Iterable[str]) -> None:
        """Refuse filters that mean nothing here, rather than let them match everything (E4)."""
        for name in names:
            self.find(name)
        for expression in filters:
            attribute = self.find(expression.name)
            operation = expression.operator.value
            is_equality = operation in ("=", "!=")
            if not attribute.is_filter or (attribute.kind not in ORDERED and not is_equality):
                problem = f"{self.type_name}.{attribute.name} cannot be asked for with {operation}"
                raise refusal(problem, MqStatus.ILLEGAL_RESTRICTION_PROPID)
            _check_operand(attribute, expression.value)

    def matches(self, row: Row, filters: Filters) -> bool:
        """Whether an object passes all filters; in names the case of letters does not count."""
        return all(self._matches(row, expression) for expression in filters)

    def _matches(self, row: Row, expression: AttributeFilter) -> bool:
        if expression.name not in row:
            return False
        if self.find(expression.name).is_name:
            value = folded_value(expression.name, row[expression.name])
            asked = folded_value(expression.name, expression.value)
            expression = AttributeFilter(expression.name, expression.operator, asked)
            return expression.matches({expression.name: value})
        return expression.matches(row)

    def _said(self, row: Row, givers: tuple[Giver, ...]) -> dict[str, object]:
        said = {}
        for name, value in row.items():
            attribute = self.find(name)
            if attribute.giver in givers:
                attribute.check(value)
                if isinstance(value, SecurityDescriptor) and self.kind is not None:
                    check_rights(value, self.kind)
                said[name] = attribute.restored(value)
        return said

    def _known(self) -> str:
        return "it has " + ", ".join(attribute.name for attribute in self.attributes)


def folded_value(name: str, value: object) -> object:
    """One spelling of a name, however its letters are written."""
    if not isinstance(value, str):
        return value
    return folded(value) if name == "full_path" else value.lower()


def refusal(problem: str, status: MqStatus, hint: str = "") -> DirectoryError:
    return DirectoryError(problem, status=status, hint=hint)


def _check_operand(attribute: Attribute, value: object) -> None:
    """A list is asked for as a whole, or by one of its elements."""
    if attribute.kind in (Kind.GUIDS, Kind.NAMES, Kind.DIGESTS) and not isinstance(value, list):
        value = [value]
    attribute.check(value)


def _fresh(default: object) -> object:
    return list(default) if isinstance(default, list) else default
