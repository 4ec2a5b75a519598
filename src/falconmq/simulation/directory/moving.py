"""Queue managers that move to another site: deleted in one, and made in the other.

As people do it: the queues first, then the queue manager, and when the server of the new site has
heard of that, it is made there, mostly under the GUID that it had. Other servers may hear of the
two in any order. If something is in the way it is tried again for a while, and then given up.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.ledger import Name, Outcome
from falconmq.simulation.directory.load import Load
from falconmq.simulation.directory.server import DirectoryServer

_TRIES: Final = 40
_AGAIN_SECONDS: Final = (0.5, 8.0)
_SAME_GUID: Final = 0.8
_TAKEN_ALONG: Final = 0.5  # of the queues
_QUEUES: Final = tables.table_of(tables.QUEUE)


class Moves:
    """What moves in one run, and where to."""

    def __init__(self, enterprise: Enterprise, load: Load, random: Random, end: float) -> None:
        self._enterprise = enterprise
        self._load = load
        self._world = enterprise.world
        self._random = random
        self._end = end
        self._under_way: set[str] = set()  # one that is moved by two people at once may be doubled

    def begin(self) -> None:
        """Let one queue manager move."""
        sites = list(self._enterprise.controllers)
        machines = [each for each in self._load.machines_now() if each[0] not in self._under_way]
        if machines and len(sites) > 1:
            machine, old = self._random.choice(machines)
            new = self._random.choice([site for site in sites if site != old])
            self._under_way.add(machine)
            self._leave(machine, old, new, _TRIES)

    def _goes_on(self, machine: str, site: UUID, tries: int) -> bool:
        """Whether it is tried once more; a site may be gone meanwhile."""
        is_left = tries > 0 and self._world.now < self._end
        if is_left and site in self._enterprise.controllers:
            return True
        self._under_way.discard(machine)
        return False

    def _leave(self, machine: str, old: UUID, new: UUID, tries: int) -> None:
        """Delete it, with its queues, where it is decided."""
        enterprise, name = self._enterprise, (tables.QUEUE_MANAGER, machine)
        if not self._goes_on(machine, old, tries):
            return
        at = enterprise.psc(old)
        row = enterprise.find(at, name) if at.owns(old) else None
        if row is not None and row["site_identifiers"] == [old]:
            queues = self._delete_queues(at, machine)
            change = enterprise.delete(at, name) if at.is_up else None
            if change is not None and change.outcome is Outcome.DONE:
                identifier = row["identifier"]
                assert isinstance(identifier, UUID)
                self._world.note("mover", "%s leaves", machine)
                enterprise.moved.add(machine.lower())
                self._enter(machine, new, identifier, queues, _TRIES)
                return
        self._later(lambda: self._leave(machine, old, new, tries - 1))

    def _delete_queues(self, at: DirectoryServer, machine: str) -> list[Name]:
        with at.directory.reading() as (objects, _):
            rows = list(objects.by_index(_QUEUES, "computer_name", machine.lower()))
        names = [(tables.QUEUE, str(row["path_name"])) for row in rows]
        for name in names:
            if at.is_up:
                self._enterprise.delete(at, name)
        return names

    def _enter(
        self, machine: str, new: UUID, identifier: UUID, queues: list[Name], tries: int
    ) -> None:
        """Make it in its new site, as soon as the server of that knows that it has left."""
        enterprise, name = self._enterprise, (tables.QUEUE_MANAGER, machine)
        if not self._goes_on(machine, new, tries):
            return
        at = enterprise.psc(new)
        if at.owns(new) and enterprise.find(at, name) is None:
            guid = {"identifier": identifier} if self._random.random() < _SAME_GUID else {}
            value = self._load.value("moved")
            change = enterprise.create(at, name, value, site_identifiers=[new], **guid)
            if change.outcome is Outcome.DONE:
                self._world.counts["queue manager moved"] += 1
                self._load.moved(machine, new)
                self._under_way.discard(machine)
                self._take_along(at, queues)
                return
        self._later(lambda: self._enter(machine, new, identifier, queues, tries - 1))

    def _take_along(self, at: DirectoryServer, queues: list[Name]) -> None:
        """Some of its queues, under their names."""
        for name in queues:
            if at.is_up and self._random.random() < _TAKEN_ALONG:
                self._load.create_queue(at, name)

    def _later(self, action: Callable[[], None]) -> None:
        self._world.after(self._random.uniform(*_AGAIN_SECONDS), action)
