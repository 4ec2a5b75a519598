"""A directory in memory: for tests, the simulator, and to try what a real one would do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import Any
from uuid import UUID

from falconmq.manager.directory_backend import NO_ROW, Filters, SortKey, matches_all
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName, SingleFormatName
from falconmq.wire.sid import Sid

_NOT_CONNECTED = DirectoryResult.DIRECTORY_NOT_CONNECTED


class MemoryDirectory:
    """Rows by type and identifier. `is_connected = False` plays a directory out of reach."""

    is_integrated = True

    def __init__(self, seed: int = 0) -> None:
        self.is_connected = True
        self.rows: dict[str, dict[UUID, dict[str, object]]] = {}
        self.distribution_lists: dict[DistributionListFormatName, list[SingleFormatName]] = {}
        self.computer_sids: dict[str, Sid] = {}
        self.servers: list[str] = []
        self.calls: list[str] = []
        self._random = Random(seed)  # noqa: S311 - identifiers of a test double
        self._queries: dict[int, Iterator[Row]] = {}
        self._handles = 0

    def create(self, type_name: str, row: Row) -> tuple[DirectoryResult, UUID]:
        self.calls.append(f"create {type_name}")
        if not self.is_connected:
            return _NOT_CONNECTED, NULL_UUID
        table = self.rows.setdefault(type_name, {})
        path = row.get("path_name")
        if path is not None and any(known.get("path_name") == path for known in table.values()):
            return DirectoryResult.OBJECT_ALREADY_EXISTS, NULL_UUID
        given = row.get("identifier")
        known = isinstance(given, UUID) and given != NULL_UUID
        identifier = given if known else UUID(int=self._random.getrandbits(128), version=4)
        assert isinstance(identifier, UUID)
        table[identifier] = {**row, "identifier": identifier, "full_path": f"CN={identifier}"}
        table[identifier]["directory_path"] = f"LDAP://CN={identifier}"
        return DirectoryResult.SUCCESS, identifier

    def delete(self, type_name: str, identifier: UUID) -> DirectoryResult:
        self.calls.append(f"delete {type_name}")
        if not self.is_connected:
            return _NOT_CONNECTED
        gone = self.rows.get(type_name, {}).pop(identifier, None)
        return DirectoryResult.OBJECT_NOT_FOUND if gone is None else DirectoryResult.SUCCESS

    def read(
        self, type_name: str, filters: Filters, attributes: Collection[str] | None
    ) -> tuple[DirectoryResult, Row]:
        self.calls.append(f"read {type_name}")
        if not self.is_connected:
            return _NOT_CONNECTED, NO_ROW
        for row in self.rows.get(type_name, {}).values():
            if matches_all(row, filters):
                missing = [name for name in attributes or () if name not in row]
                if missing:
                    return DirectoryResult.ATTRIBUTE_NOT_FOUND, NO_ROW
                return DirectoryResult.SUCCESS, _only(row, attributes)
        return DirectoryResult.OBJECT_NOT_FOUND, NO_ROW

    def begin(
        self,
        type_name: str,
        filters: Filters,
        attributes: Sequence[str] | None,
        sort_order: Sequence[SortKey] | None,
    ) -> tuple[DirectoryResult, int]:
        if not self.is_connected:
            return _NOT_CONNECTED, 0
        found = [row for row in self.rows.get(type_name, {}).values() if matches_all(row, filters)]
        keys = list(zip(attributes or (), sort_order or (), strict=False))
        for name, key in sorted(keys, key=lambda pair: pair[1].priority):
            if key.priority:  # the most important last: sorting is stable
                found.sort(key=_value_of(name), reverse=not key.ascending)
        self._handles += 1
        self._queries[self._handles] = iter([_only(row, attributes) for row in found])
        return DirectoryResult.SUCCESS, self._handles

    def next(self, handle: int) -> tuple[DirectoryResult, Row]:
        if not self.is_connected:
            return _NOT_CONNECTED, NO_ROW
        row = next(self._queries[handle], None)
        return (DirectoryResult.END_OF_DATA, NO_ROW) if row is None else (_SUCCESS, row)

    def end(self, handle: int) -> DirectoryResult:
        self._queries.pop(handle, None)
        return DirectoryResult.SUCCESS

    def write(self, type_name: str, row: Row) -> DirectoryResult:
        self.calls.append(f"write {type_name}")
        if not self.is_connected:
            return _NOT_CONNECTED
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        stored = self.rows.get(type_name, {}).get(identifier)
        if stored is None:
            return DirectoryResult.OBJECT_NOT_FOUND
        stored.update(row)
        return DirectoryResult.SUCCESS

    def resolve_distribution_list(
        self, name: DistributionListFormatName
    ) -> tuple[DirectoryResult, Sequence[SingleFormatName]]:
        if not self.is_connected:
            return _NOT_CONNECTED, ()
        members = self.distribution_lists.get(name)
        if members is None:
            return DirectoryResult.OBJECT_NOT_FOUND, ()
        return DirectoryResult.SUCCESS, members

    def computer_sid(self, computer_name: str) -> Sid | None:
        return self.computer_sids.get(computer_name)

    def find_servers(self, domain_name: str) -> Sequence[str]:
        self.calls.append(f"find servers of {domain_name}")
        return self.servers


_SUCCESS = DirectoryResult.SUCCESS


def _only(row: dict[str, object], attributes: Collection[str] | None) -> Row:
    if attributes is None:
        return dict(row)
    return {name: row[name] for name in ("identifier", *attributes) if name in row}


def _value_of(name: str) -> Any:
    return lambda row: row[name]
