"""What a queue manager asks of a directory, and the one that is none (MQDMPR 3.1.7.1.18 to .24)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID

from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName, SingleFormatName
from falconmq.wire.sid import Sid

NO_ROW: Final[Row] = MappingProxyType({})
_NOT_CONNECTED: Final = DirectoryResult.DIRECTORY_NOT_CONNECTED


class FilterOperator(Enum):
    """How an attribute is held against a value; the attribute stands on the left (DM-...20-05)."""

    EQUALS = "="
    NOT_EQUALS = "!="
    LESS_THAN = "<"
    GREATER_THAN = ">"
    LESS_THAN_OR_EQUAL = "<="
    GREATER_THAN_OR_EQUAL = ">="


_COMPARE: Final[Mapping[FilterOperator, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        FilterOperator.EQUALS: operator.eq,
        FilterOperator.NOT_EQUALS: operator.ne,
        FilterOperator.LESS_THAN: operator.lt,
        FilterOperator.GREATER_THAN: operator.gt,
        FilterOperator.LESS_THAN_OR_EQUAL: operator.le,
        FilterOperator.GREATER_THAN_OR_EQUAL: operator.ge,
    }
)


@dataclass(frozen=True, slots=True)
class AttributeFilter:
    """One expression of a filter (DM-3.1.7.1.20-04).

    An attribute that holds a list equals a single value when the list contains it: that is how a
    directory finds the queue managers of a site.
    """

    name: str
    operator: FilterOperator
    value: object

    def matches(self, row: Row) -> bool:
        if self.name not in row:
            return False
        value = row[self.name]
        if isinstance(value, list) and not isinstance(self.value, list):
            is_in = self.value in value
            return is_in if self.operator is FilterOperator.EQUALS else not is_in
        return _COMPARE[self.operator](value, self.value)


@dataclass(frozen=True, slots=True)
class SortKey:
    """How one attribute orders the rows of a query: a higher priority first, 0 not at all."""

    priority: int = 0
    ascending: bool = True


Filters = Sequence[AttributeFilter]


def equals(name: str, value: object) -> Filters:
    """The filter of nearly every read: one attribute has one value."""
    return (AttributeFilter(name, FilterOperator.EQUALS, value),)


def matches_all(row: Row, filters: Filters) -> bool:
    """Whether a row satisfies every expression; no expression lets every row pass."""
    return all(expression.matches(row) for expression in filters)


class DirectoryBackend(Protocol):
    """A directory as the queue manager sees it. It raises nothing: results say what happened."""

    is_integrated: bool

    def create(self, type_name: str, row: Row) -> tuple[DirectoryResult, UUID]: ...

    def delete(self, type_name: str, identifier: UUID) -> DirectoryResult: ...

    def read(
        self, type_name: str, filters: Filters, attributes: Collection[str] | None
    ) -> tuple[DirectoryResult, Row]: ...

    def begin(
        self,
        type_name: str,
        filters: Filters,
        attributes: Sequence[str] | None,
        sort_order: Sequence[SortKey] | None,
    ) -> tuple[DirectoryResult, int]: ...

    def next(self, handle: int) -> tuple[DirectoryResult, Row]: ...

    def end(self, handle: int) -> DirectoryResult: ...

    def write(self, type_name: str, row: Row) -> DirectoryResult: ...

    def resolve_distribution_list(
        self, name: DistributionListFormatName
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]: ...

    def computer_sid(self, computer_name: str) -> Sid | None: ...

    def find_servers(self, domain_name: str) -> Sequence[str]: ...


def remembered(directory: DirectoryBackend, type_name: str, filters: Filters) -> Row | None:
    """What a directory answered when it was last asked; None if it does not know."""
    ask = getattr(directory, "remembered", None)
    return None if ask is None else ask(type_name, filters)


def forget(directory: DirectoryBackend, type_name: str, identifier: UUID) -> None:
    """An object has changed: the next question goes to the directory itself."""
    tell = getattr(directory, "forget", None)
    if tell is not None:
        tell(type_name, identifier)


class NoDirectory:
    """A workgroup: there is nobody to ask (DirectoryIntegrated False)."""

    is_integrated = False

    def create(self, *_: object, **__: object) -> tuple[DirectoryResult, UUID]:
        return _NOT_CONNECTED, NULL_UUID

    def delete(self, *_: object, **__: object) -> DirectoryResult:
        return _NOT_CONNECTED

    def read(self, *_: object, **__: object) -> tuple[DirectoryResult, Row]:
        return _NOT_CONNECTED, NO_ROW

    def begin(self, *_: object, **__: object) -> tuple[DirectoryResult, int]:
        return _NOT_CONNECTED, 0

    def next(self, *_: object, **__: object) -> tuple[DirectoryResult, Row]:
        return _NOT_CONNECTED, NO_ROW

    def end(self, *_: object, **__: object) -> DirectoryResult:
        return _NOT_CONNECTED

    def write(self, *_: object, **__: object) -> DirectoryResult:
        return _NOT_CONNECTED

    def resolve_distribution_list(
        self, *_: object, **__: object
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]:
        return _NOT_CONNECTED, ()

    def computer_sid(self, *_: object, **__: object) -> Sid | None:
        return None

    def find_servers(self, *_: object, **__: object) -> Sequence[str]:
        return ()
