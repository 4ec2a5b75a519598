"""Public queues that were kept through `leave --force` are published by the next join."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any
from uuid import UUID

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.cached import CachedDirectory
from falconmq.directory.memory import DirectoryMemory
from falconmq.directory.queries import find_all
from falconmq.directory.schema import ObjectTable
from falconmq.embedded.manager import start_engine
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager import lifecycle
from falconmq.manager.core import Settings
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.model import QueueProperties
from falconmq.manager.queue_rows import queue_row
from falconmq.manager.queues import create_queue, delete_queue, set_queue_properties
from falconmq.manager.registry import qualified_computer_name
from falconmq.manager.states import DirectoryResult
from falconmq.names import PathName
from falconmq.service.directory.meeting import meet
from falconmq.service.directory.registering import Candidate, Knowledge, unregister
from falconmq.service.directory.republishing import Republished, kept_queues, take_over
from falconmq.store import MemoryStore
from tests.directory.test_cached import PATIENCE, MoodyDirectory

NULL = UUID(int=0)


class Enterprise(MoodyDirectory):
    """A directory in memory with one site; gone, or against some queues, when the test says so."""

    def __init__(self, name: str) -> None:
        super().__init__(VirtualClock())
        self._random = Random(name)  # each gives its own identifiers
        self.domain = name
        self.refused = ""  # the path name of a queue that it does not want
        self.is_unwritable = False
        self.create("Enterprise", {"name": name})
        self.create("Site", {"name": "Berlin"})

    def create_many(self, type_name: str, rows: Any) -> list[tuple[DirectoryResult, UUID]]:
        away = DirectoryResult.DIRECTORY_NOT_CONNECTED
        if type_name == "Queue" and self.is_unwritable:
            self._refused(DirectoryRefusedError(away, "the server is gone"))
            return [(away, NULL) for _ in rows]
        return super().create_many(type_name, rows)

    def _create_one(self, type_name: str, row: Row) -> tuple[DirectoryResult, UUID]:
        if self.refused and self.refused == row.get("path_name"):
            error = DirectoryError("no more queues", status=MqStatus.DS_ERROR)
            return self._refused(error), NULL
        return super()._create_one(type_name, row)

    def _delete(self, table: ObjectTable, identifier: UUID) -> None:
        if self.is_gone:
            result = DirectoryResult.DIRECTORY_NOT_CONNECTED
            raise DirectoryRefusedError(result, "the server is gone")
        super()._delete(table, identifier)

    def queues(self) -> dict[str, Row]:
        return {str(row["path_name"]).partition("\\")[2]: row for row in find_all(self, "Queue")}


class Scene:
    """A queue manager with two public queues, one of them transactional, and two enterprises."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.engine = start_engine(self.store, Settings(computer_name="SALES01"), is_threaded=False)
        self.core = self.engine.core
        self.memory = DirectoryMemory(self.engine.store)
        self.here, self.other = Enterprise("here.test"), Enterprise("other.test")
        self.directory = CachedDirectory(self.here, self.core.clock, timeout_seconds=PATIENCE)
        self.join(self.here)
        self.engine.run(create_queue, PathName.parse(r".\orders"), QueueProperties(label="ours"))
        properties = QueueProperties(transactional=True)
        self.engine.run(create_queue, PathName.parse(r".\bills"), properties)

    def join(self, enterprise: Enterprise) -> Knowledge:
        """As the hub does: meet the directory in a thread, and become a part of it in a turn."""
        self.directory = CachedDirectory(enterprise, self.core.clock, timeout_seconds=PATIENCE)
        core = self.core
        core.settings.domain_name = enterprise.domain
        name = core.settings.computer_name
        candidate = Candidate(core.identifier, name, {}, queues=self.engine.look(kept_queues))
        try:
            known = meet(self.directory, candidate, self.memory, may_remember=False)
        except DirectoryError:
            self.directory.close()
            raise
        self.engine.run(lifecycle.join_directory, self.directory)
        self.engine.run(take_over, known.published)
        return known

    def leave(self) -> None:
        with suppress(DirectoryError):
            unregister(self.directory, self.core.identifier, list(self.core.public))
        self.engine.run(lifecycle.leave_directory)
        self.directory.close()
        self.memory.clear()

    def identifiers(self) -> dict[str, UUID]:
        public = self.core.public
        assert all(queue.identifier == key for key, queue in public.items())
        return {queue.path_name.name: queue.identifier for queue in public.values()}

    def check(self, enterprise: Enterprise) -> None:
        """Both say the same of all queues, and so does the store."""
        found = enterprise.queues()
        again = start_engine(self.store, Settings(computer_name="SALES01"), is_threaded=False)
        assert set(again.core.public) == set(self.core.public)
        assert {name: row["identifier"] for name, row in found.items()} == self.identifiers()
        for queue in self.core.public.values():
            row = found[queue.path_name.name]
            assert row["full_path"] == queue.full_path
            assert row["label"] == queue.properties.label
            host = queue.qualified_path_name.partition("\\")[0]
            assert host == qualified_computer_name(self.core.settings)
            assert row["transactional"] == queue.properties.transactional


@pytest.fixture
def scene() -> Iterator[Scene]:
    found = Scene()
    yield found
    found.directory.close()
    found.engine.close()


def test_the_same_enterprise_and_another_publish_them_again(scene: Scene) -> None:
    given = set(scene.identifiers().values())
    scene.leave()
    assert scene.here.queues() == {}
    for enterprise in (scene.here, scene.other):
        scene.join(enterprise)
        scene.check(enterprise)
        assert given.isdisjoint(scene.identifiers().values())  # each has given its own
        given |= set(scene.identifiers().values())
        scene.leave()


def test_who_is_known_already_publishes_nothing(scene: Scene) -> None:
    # given a queue whose entry an administrator has deleted
    scene.here.delete("Queue", scene.identifiers()["orders"])
    scene.directory.close()
    # then the next start does not bring it back
    assert scene.join(scene.here).published == ()
    assert set(scene.here.queues()) == {"bills"}


def test_a_directory_that_has_never_heard_of_us_gets_them_whatever_was_remembered(
    scene: Scene,
) -> None:
    # given a configuration that names another directory now; nobody has left the old one
    scene.directory.close()
    scene.join(scene.other)
    scene.check(scene.other)


def test_what_stayed_behind_is_taken_over(scene: Scene) -> None:
    # given a directory that was away when it was left, and a change that it has not seen
    before = scene.identifiers()
    scene.here.is_gone = True
    scene.leave()
    orders = scene.core.public[before["orders"]]
    scene.engine.run(lambda core: set_queue_properties(core, orders, label="changed alone"))
    scene.here.is_gone = False
    assert len(scene.here.queues()) == 2
    scene.join(scene.here)
    assert scene.identifiers() == before
    scene.check(scene.here)
    assert scene.here.queues()["orders"]["label"] == "changed alone"


def test_an_entry_of_the_same_name_gives_its_identifier_or_makes_room(scene: Scene) -> None:
    # given entries that somebody made for a queue manager of this name and identifier
    scene.leave()
    core = scene.core
    _, site = scene.other.read("Site", equals("name", "Berlin"), None)
    machine = {
        "identifier": core.identifier,
        "computer_name": core.settings.computer_name,
        "site_identifiers": [site["identifier"]],
    }
    scene.other.create("QueueManager", machine)
    _, same = scene.other.create("Queue", {"path_name": r"SALES01\orders"})
    _, wrong = scene.other.create("Queue", {"path_name": r"SALES01\bills"})
    before = scene.identifiers()
    scene.join(scene.other)
    scene.check(scene.other)
    after = scene.identifiers()
    assert after["orders"] == same != before["orders"]
    assert after["bills"] not in (wrong, NULL)


def test_a_directory_that_goes_away_over_it_is_joined_by_the_next_try(scene: Scene) -> None:
    scene.leave()
    scene.other.is_unwritable = True
    with pytest.raises(DirectoryError, match="the server is gone") as refused:
        scene.join(scene.other)
    assert refused.value.status is MqStatus.NO_DS
    assert find_all(scene.other, "QueueManager")  # it was registered before
    scene.other.is_unwritable = False
    assert not scene.join(scene.other).is_new
    scene.check(scene.other)


def test_a_queue_that_the_directory_does_not_want_stops_no_other(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.leave()
    scene.other.refused = r"SALES01\orders"
    with caplog.at_level(logging.WARNING, "falconmq.directory"):
        scene.join(scene.other)
    assert set(scene.other.queues()) == {"bills"}
    assert r"name=SALES01\orders problem=no more queues" in caplog.text
    assert set(scene.identifiers()) == {"orders", "bills"}  # it is here all the same


def test_a_queue_that_was_deleted_meanwhile_stays_so(scene: Scene) -> None:
    orders = scene.core.public[scene.identifiers()["orders"]]
    published = [Republished(orders.identifier, queue_row(orders))]
    scene.engine.run(delete_queue, orders)
    scene.engine.run(take_over, published)
    assert set(scene.identifiers()) == {"bills"}
