"""Queues as code: what `[[queues]]` declares is there after every start and every reload.

A queue that is missing is created. One that is there gets the properties that are declared and
keeps the others. Whether a queue is transactional cannot be changed, so another kind is refused,
before anything is done. Nothing is ever deleted: a queue holds messages, and a line that was taken
out of a file is no order to throw them away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from falconmq.manager import queues
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import QueueProperties
from falconmq.service.configuration import DeclaredQueue
from falconmq.service.tables import ConfigurationError


class Outcome(Enum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one declared queue."""

    name: str
    outcome: Outcome
    changes: tuple[str, ...] = ()  # the properties that were set

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "outcome": self.outcome.value, "changes": list(self.changes)}


def check_kinds(core: QueueManagerCore, declared: Iterable[DeclaredQueue]) -> None:
    """ConfigurationError names the first queue that is there and of the other kind."""
    for wanted in declared:
        found = queues.find_queue(core, wanted.name)
        if found is not None and found.properties.transactional != wanted.transactional:
            raise _other_kind(wanted)


def declare(core: QueueManagerCore, declared: Iterable[DeclaredQueue]) -> list[Result]:
    """Make the queues what the configuration says, in one turn."""
    wanted = list(declared)
    check_kinds(core, wanted)
    return [_declare(core, queue) for queue in wanted]


def _declare(core: QueueManagerCore, wanted: DeclaredQueue) -> Result:
    found = queues.find_queue(core, wanted.name)
    if found is None:
        chosen = QueueProperties(transactional=wanted.transactional, **wanted.properties)
        queues.create_queue(core, wanted.name, chosen)
        return Result(str(wanted.name), Outcome.CREATED)
    changes = {
        key: value
        for key, value in wanted.properties.items()
        if getattr(found.properties, key) != value
    }
    if not changes:
        return Result(str(wanted.name), Outcome.UNCHANGED)
    queues.set_queue_properties(core, found, **changes)
    return Result(str(wanted.name), Outcome.CHANGED, tuple(changes))


def _other_kind(wanted: DeclaredQueue) -> ConfigurationError:
    asked, has = "transactional", "not transactional"
    if not wanted.transactional:
        asked, has = has, asked
    return ConfigurationError(
        f"{wanted.name} is declared {asked}, but the queue that is there is {has}",
        hint="a queue keeps its kind: change the file, or move the messages away and delete the "
        f"queue: falconmq queue delete '{wanted.name}'",
    )
