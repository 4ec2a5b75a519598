"""Services that are part of a directory, for tests."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from falconmq.directory import presence
from falconmq.directory.base import DirectoryBase, DirectoryRefusedError
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.schema import ObjectTable
from falconmq.manager.directory_backend import Filters
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult
from falconmq.service.configuration import Configuration, DirectorySection, HttpSection
from falconmq.service.daemon import Service
from falconmq.service.directory import hub
from tests.service.services import configured, loopback

DOMAIN = "example.com"


def in_enterprise(data: Path, bind: str = "", **directory: Any) -> Configuration:
    """The configuration of a queue manager that keeps the directory of its enterprise."""
    address = bind or loopback()
    given: dict[str, Any] = {
        "kind": "embedded",
        "domain": DOMAIN,
        "site": "Berlin",
        "host_name": address,
        "timeout_seconds": 20.0,  # a busy computer is not to count as one that is away
    }
    return replace(
        configured(address, data),
        directory=DirectorySection(**{**given, **directory}),
        http=HttpSection(enabled=False),
    )


@asynccontextmanager
async def started(configuration: Configuration) -> AsyncIterator[Service]:
    service = await Service.start(configuration)
    try:
        yield service
    finally:
        await service.stop()


class Moody(EmbeddedDirectory):
    """The directory of a store that can be taken away from whoever asks."""

    is_gone = False
    gives_identifiers = False  # as Active Directory does
    hanging: threading.Event | None = None  # whoever asks hangs until it is set

    def _find(
        self, table: ObjectTable, filters: Filters, attributes: Collection[str] | None
    ) -> Iterator[Row]:
        self._meet()
        return super()._find(table, filters, attributes)

    def _create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        self._meet()
        if self.gives_identifiers:
            row["identifier"] = uuid4()
        return super()._create(table, row)

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        self._meet()
        super()._delete(table, identifier)

    def _meet(self) -> None:
        if self.hanging is not None:
            self.hanging.wait()
        if self.is_gone:
            problem = "the server is gone"
            raise DirectoryRefusedError(DirectoryResult.DIRECTORY_NOT_CONNECTED, problem)


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> type[Moody]:
    """From now on the embedded directory is one that goes away on command, and is soon back."""

    class Ours(Moody):
        pass

    def open_moody(_section: object, own: Any, clock: Any, random: Any) -> DirectoryBase:
        return Ours(own._store, clock, random)

    monkeypatch.setattr(hub, "open_back_end", open_moody)
    monkeypatch.setattr(hub, "begin", lambda *_: None)
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.02)
    return Ours
