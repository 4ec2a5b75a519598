"""A directory with an enterprise in it, and the short words in which tests speak of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from falconmq.clock import VirtualClock
from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_all
from falconmq.manager.directory_backend import AttributeFilter, FilterOperator, Filters, equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult

SUCCESS = DirectoryResult.SUCCESS


@dataclass
class World:
    directory: DirectoryBase
    clock: VirtualClock
    domain: str

    def begin(self) -> World:
        result, _ = self.directory.create("Enterprise", {"name": self.domain})
        assert result is SUCCESS, self.directory.last_problem
        return self

    def add(self, type_name: str, **attributes: Any) -> UUID:
        result, identifier = self.directory.create(type_name, attributes)
        assert result is SUCCESS, self.directory.last_problem
        return identifier

    def add_site(self, name: str = "Berlin", **attributes: Any) -> UUID:
        return self.add("Site", name=name, **attributes)

    def add_machine(self, name: str = "alpha", site: UUID | None = None, **attributes: Any) -> UUID:
        sites = [self.add_site(f"of {name}") if site is None else site]
        return self.add("QueueManager", computer_name=name, site_identifiers=sites, **attributes)

    def get(self, type_name: str, name: str, value: object) -> Row:
        result, row = self.directory.read(type_name, equals(name, value), None)
        assert result is SUCCESS, self.directory.last_problem
        return row

    def result(self, type_name: str, name: str, value: object) -> DirectoryResult:
        return self.directory.read(type_name, equals(name, value), None)[0]

    def write(self, type_name: str, identifier: UUID, **attributes: Any) -> None:
        result = self.directory.write(type_name, {"identifier": identifier, **attributes})
        assert result is SUCCESS, self.directory.last_problem

    def names(self, type_name: str, name: str, *filters: AttributeFilter) -> list[object]:
        """One attribute of all objects that pass, in the order of its values."""
        rows = find_all(self.directory, type_name, filters)
        return sorted((row[name] for row in rows), key=str)


def where(name: str, operator: str, value: object) -> AttributeFilter:
    return AttributeFilter(name, FilterOperator(operator), value)


def both(*filters: AttributeFilter) -> Filters:
    return filters
