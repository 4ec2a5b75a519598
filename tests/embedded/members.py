"""A queue manager that is a member of a directory, for tests."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from random import Random
from typing import Any, Final
from uuid import UUID

from falconmq import QueueManager
from falconmq.clock import SystemClock
from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.cached import CachedDirectory
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.schema import ObjectTable
from falconmq.embedded.engine import Engine
from falconmq.embedded.manager import start_engine
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult
from falconmq.store import MemoryStore
from tests.embedded.helpers import COMPUTER, PATIENCE

ENTERPRISE: Final = "example.com"
FAR: Final = "SALES02"  # another queue manager of the enterprise
FAR_MANAGER: Final = UUID("22222222-0000-4000-8000-000000000002")


class Enterprise(EmbeddedDirectory):
    """A directory with an enterprise in it. `is_connected = False`: nobody reaches it.

    While its `gate` is closed, whoever creates something waits.
    """

    def __init__(self) -> None:
        super().__init__(MemoryStore(), SystemClock(), Random(3))
        self.gate = threading.Event()
        self.gate.set()
        self.is_connected = True
        self.add("Enterprise", name=ENTERPRISE)
        self.site = self.add("Site", name="Berlin")
        self.add_manager(FAR, FAR_MANAGER)

    def add(self, type_name: str, **attributes: Any) -> UUID:
        result, identifier = self.create(type_name, attributes)
        assert result is DirectoryResult.SUCCESS, self.last_problem
        return identifier

    def add_manager(self, computer: str, identifier: UUID) -> None:
        sites = [self.site]
        row = {"computer_name": computer, "identifier": identifier, "site_identifiers": sites}
        if self.find("QueueManager", "computer_name", computer) is None:
            self.add("QueueManager", **row)

    def add_queue(self, path_name: str, **attributes: Any) -> UUID:
        return self.add("Queue", path_name=path_name, **attributes)

    def find(self, type_name: str, name: str, value: object) -> Row | None:
        result, row = self.read(type_name, equals(name, value), None)
        return row if result is DirectoryResult.SUCCESS else None

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        self._check_connected()
        assert self.gate.wait(PATIENCE)
        return super()._create(table, row)

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        self._check_connected()
        super()._delete(table, identifier)

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        self._check_connected()
        super()._write(table, identifier, changes)

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        self._check_connected()
        return super()._find(table, filters, attributes)

    def _check_connected(self) -> None:
        if not self.is_connected:
            problem = "the directory cannot be reached"
            raise DirectoryRefusedError(DirectoryResult.DIRECTORY_NOT_CONNECTED, problem)


def member_engine(
    enterprise: Enterprise,
    store: MemoryStore | None = None,
    *,
    is_cached: bool = False,
    computer: str = COMPUTER,
) -> Engine:
    """A queue manager that is registered in the enterprise, with threads and a real clock."""

    def join(core: QueueManagerCore) -> None:
        enterprise.add_manager(computer, core.identifier)
        core.directory = CachedDirectory(enterprise, core.clock) if is_cached else enterprise

    return start_engine(store or MemoryStore(), Settings(computer_name=computer), prepare=join)


def member(
    enterprise: Enterprise, store: MemoryStore | None = None, *, is_cached: bool = False
) -> QueueManager:
    return QueueManager(member_engine(enterprise, store, is_cached=is_cached))
