"""What all back ends have in common: what is asked is checked, what goes wrong becomes a result.

A back end says how objects are kept; this says what is a right question. Nothing raises out of the
interface: the result says what happened, and `last_problem` says it in words, with a hint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from typing import Any, Final, NamedTuple
from uuid import UUID

from falconmq.directory.recipients import alias_of, members_of
from falconmq.directory.schema import Kind, ObjectTable, refusal
from falconmq.directory.tables import DISTRIBUTION_LIST, table_of
from falconmq.errors import DirectoryError, FalconMQError, MqStatus
from falconmq.manager.directory_backend import NO_ROW, Filters, SortKey, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName, SingleFormatName
from falconmq.wire.sid import Sid

_SUCCESS: Final = DirectoryResult.SUCCESS
_STATUS: Final = {
    DirectoryResult.DIRECTORY_NOT_CONNECTED: MqStatus.NO_DS,
    DirectoryResult.OBJECT_NOT_FOUND: MqStatus.MQDS_OBJECT_NOT_FOUND,
    DirectoryResult.OBJECT_ALREADY_EXISTS: MqStatus.QUEUE_EXISTS,
    DirectoryResult.ATTRIBUTE_NOT_FOUND: MqStatus.PROPERTY,
}


class DirectoryRefusedError(DirectoryError):
    """An operation that ended with another result than success."""

    def __init__(self, result: DirectoryResult, problem: str, *, hint: str = "") -> None:
        super().__init__(problem, status=_STATUS.get(result, MqStatus.DS_ERROR), hint=hint)
        self.result = result


class Page(NamedTuple):
    """Some of the objects that were asked for, in the order of their GUIDs."""

    rows: list[Row]
    next: UUID | None = None  # the next page begins behind this one; None: there is no more


class DirectoryBase(ABC):
    """A directory over `_create`, `_delete`, `_find` and `_write`, which raise what they refuse."""

    is_integrated = True

    def __init__(self) -> None:
        self.last_problem: DirectoryError | None = None  # of whichever thread asked last
        self._queries: dict[int, Iterator[Row]] = {}
        self._handles = count(1)

    def create(self, type_name: str, row: Row) -> tuple[DirectoryResult, UUID]:
        return self.create_many(type_name, [row])[0]

    def create_many(
        self, type_name: str, rows: Iterable[Row]
    ) -> list[tuple[DirectoryResult, UUID]]:
        """Create objects one after the other; what is wrong with one does not stop the others."""
        return [self._create_one(type_name, row) for row in rows]

    def _create_one(self, type_name: str, row: Row) -> tuple[DirectoryResult, UUID]:
        try:
            table = table_of(type_name)
            return _SUCCESS, self._create(table, table.complete(row))
        except FalconMQError as error:
            return self._refused(error), NULL_UUID

    def delete(self, type_name: str, identifier: UUID) -> DirectoryResult:
        try:
            self._delete(table_of(type_name), identifier)
        except FalconMQError as error:
            return self._refused(error)
        return _SUCCESS

    def write(self, type_name: str, row: Row) -> DirectoryResult:
        """Change the attributes that a row has, of the object that it identifies."""
        try:
            table = table_of(type_name)
            identifier = row.get("identifier")
            if not isinstance(identifier, UUID):
                problem = "a row to write has the identifier of its object"
                raise refusal(problem, MqStatus.INSUFFICIENT_PROPERTIES)
            self._write(table, identifier, table.changes(row))
        except FalconMQError as error:
            return self._refused(error)
        return _SUCCESS

    def read(
        self, type_name: str, filters: Filters, attributes: Collection[str] | None
    ) -> tuple[DirectoryResult, Row]:
        try:
            table = table_of(type_name)
            table.check_query(filters, attributes or ())
            for row in self._find(table, filters, attributes):
                return _SUCCESS, present(table, row, attributes)
            raise not_found(type_name, filters)
        except FalconMQError as error:
            return self._refused(error), NO_ROW

    def begin(
        self,
        type_name: str,
        filters: Filters,
        attributes: Sequence[str] | None,
        sort_order: Sequence[SortKey] | None,
    ) -> tuple[DirectoryResult, int]:
        try:
            table = table_of(type_name)
            table.check_query(filters, attributes or ())
            rows = self._find(table, filters, attributes)
            if any(key.priority for key in sort_order or ()):
                rows = iter(_sorted(table, rows, attributes or (), sort_order or ()))
            first = next(rows, None)  # now, so that a directory out of reach shows itself here
        except FalconMQError as error:
            return self._refused(error), 0
        handle = next(self._handles)
        self._queries[handle] = iter(()) if first is None else _picked(first, rows, attributes)
        return _SUCCESS, handle

    def next(self, handle: int) -> tuple[DirectoryResult, Row]:
        query = self._queries.get(handle)
        if query is None:
            return self._refused(_unknown_handle(handle)), NO_ROW
        try:
            row = next(query, None)
        except FalconMQError as error:
            return self._refused(error), NO_ROW
        return (DirectoryResult.END_OF_DATA, NO_ROW) if row is None else (_SUCCESS, row)

    def end(self, handle: int) -> DirectoryResult:
        query: Any = self._queries.pop(handle, None)
        if query is None:
            return self._refused(_unknown_handle(handle))
        if hasattr(query, "close"):
            query.close()
        return _SUCCESS

    def page(
        self,
        type_name: str,
        filters: Filters,
        attributes: Sequence[str] | None,
        after: UUID | None,
        limit: int,
    ) -> tuple[DirectoryResult, Page]:
        """At most so many objects, those with a GUID behind another: nothing is held open.

        A page may be short, or empty, and yet not the last: `next` says whether there is more.
        """
        try:
            table = table_of(type_name)
            table.check_query(filters, attributes or ())
            rows = list(islice(self._find_after(table, filters, attributes, after), limit + 1))
        except FalconMQError as error:
            return self._refused(error), Page([])
        is_more = len(rows) > limit
        del rows[limit:]
        last = _identifier(rows[-1]) if is_more else None
        return _SUCCESS, Page([only(row, attributes) for row in rows], last)

    def resolve_distribution_list(
        self, name: DistributionListFormatName
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]:
        try:
            lists = table_of(DISTRIBUTION_LIST)
            for row in self._find(lists, equals("identifier", name.guid), None):
                return _SUCCESS, members_of(row, self.at)
            raise not_found("distribution list", equals("identifier", name.guid))
        except FalconMQError as error:
            return self._refused(error), ()

    def resolve_queue_alias(
        self, distinguished_name: str
    ) -> tuple[DirectoryResult, SingleFormatName | None]:
        """The format name that an alias stands for."""
        try:
            return _SUCCESS, alias_of(*self.at(distinguished_name))
        except FalconMQError as error:
            return self._refused(error), None

    def computer_sid(self, computer_name: str) -> Sid | None:  # noqa: ARG002 - most have no accounts
        """The SID of a computer's account; None where nobody knows one."""
        return None

    @abstractmethod
    def find_servers(self, domain_name: str) -> Sequence[str]: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID: ...

    @abstractmethod
    def _delete(self, table: ObjectTable, identifier: UUID) -> None: ...

    @abstractmethod
    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None: ...

    @abstractmethod
    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        """Whole rows that pass the filters; `attributes` says which of them matter."""

    def _find_after(
        self,
        table: ObjectTable,
        filters: Filters,
        attributes: Collection[str] | None,
        after: UUID | None,
    ) -> Iterator[Row]:
        """`_find` in the order of GUIDs, from behind one on; who keeps them so does it better."""
        rows = sorted(self._find(table, filters, attributes), key=_identifier)
        return (row for row in rows if after is None or _identifier(row) > after)

    @abstractmethod
    def at(self, place: str) -> tuple[ObjectTable, Row]:
        """The object at a place in the tree, of whatever type."""

    def _refused(self, error: FalconMQError) -> DirectoryResult:
        """The result for an error; people find its words in `last_problem`."""
        if not isinstance(error, DirectoryError):
            error = DirectoryError(str(error), status=error.status, hint=error.hint)
        self.last_problem = error
        if isinstance(error, DirectoryRefusedError):
            return error.result
        return DirectoryResult.GENERIC_ERROR


def not_found(type_name: str, filters: Filters) -> DirectoryRefusedError:
    asked = " and ".join(f"{f.name} {f.operator.value} {f.value}" for f in filters)
    problem = f"the directory has no {type_name}" + (f" with {asked}" if asked else "")
    return DirectoryRefusedError(DirectoryResult.OBJECT_NOT_FOUND, problem)


def already_exists(type_name: str, name: object) -> DirectoryRefusedError:
    problem = f"the directory has the {type_name} {name} already"
    return DirectoryRefusedError(DirectoryResult.OBJECT_ALREADY_EXISTS, problem)


def _unknown_handle(handle: int) -> DirectoryError:
    return refusal(f"there is no query {handle}", MqStatus.INVALID_HANDLE)


def present(table: ObjectTable, row: Row, attributes: Collection[str] | None) -> Row:
    """What was asked for; an attribute that the object does not have is an error of its own."""
    if attributes is None:
        return row
    for name in attributes:
        if row.get(name) is None and table.find(name).kind is not Kind.OPTIONAL_TEXT:
            problem = f"the {table.type_name} has no value for {name}"
            raise DirectoryRefusedError(DirectoryResult.ATTRIBUTE_NOT_FOUND, problem)
    return only(row, attributes)


def _identifier(row: Row) -> UUID:
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    return identifier


def only(row: Row, attributes: Collection[str] | None) -> Row:
    """A row with the attributes that were asked for, and its identifier; None: all of it."""
    if attributes is None:
        return row
    return {name: row[name] for name in ("identifier", *attributes) if name in row}


def _picked(first: Row, rows: Iterator[Row], attributes: Collection[str] | None) -> Iterator[Row]:
    try:
        for row in chain((first,), rows):
            yield only(row, attributes)
    finally:
        if hasattr(rows, "close"):
            rows.close()


def _sorted(
    table: ObjectTable, rows: Iterable[Row], names: Sequence[str], order: Sequence[SortKey]
) -> list[Row]:
    if len(names) != len(order):
        problem = f"{len(order)} sort keys for {len(names)} attributes"
        raise refusal(problem, MqStatus.ILLEGAL_SORT)
    found = list(rows)
    keys = [(name, key) for name, key in zip(names, order, strict=True) if key.priority]
    for name, key in sorted(keys, key=lambda pair: pair[1].priority):  # the most important last
        if table.find(name).kind is Kind.SECURITY:
            raise refusal(f"{name} has no order", MqStatus.ILLEGAL_SORT_PROPID)
        found.sort(key=lambda row, name=name: _sort_value(row.get(name)), reverse=not key.ascending)  # type: ignore[misc]
    return found


def _sort_value(value: object) -> tuple[bool, object]:
    return value is not None, value
