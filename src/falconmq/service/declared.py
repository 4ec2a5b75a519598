"""Queues as code: what `[[queues]]` declares is there after every start and every reload.

A queue that is missing is created. One that is there gets the properties that are declared and
keeps the others. Whether a queue is transactional cannot be changed, so another kind is refused,
before anything is done. Nothing is ever deleted: a queue holds messages, and a line that was taken
out of a file is no order to throw them away.

A public queue needs the directory to be created or changed. One that is away does not stop the
service: the queue is postponed, and declared again later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager import queues
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import QueueProperties
from falconmq.service.configuration import DeclaredQueue
from falconmq.service.tables import ConfigurationError


class Outcome(Enum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    POSTPONED = "postponed"  # until the directory is back


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
    return [_declare_if_possible(core, queue) for queue in wanted]


def are_postponed(results: Iterable[Result]) -> bool:
    """Whether something is left to be declared when the directory is back."""
    return any(result.outcome is Outcome.POSTPONED for result in results)


def _declare_if_possible(core: QueueManagerCore, wanted: DeclaredQueue) -> Result:
    try:
        return _declare(core, wanted)
    except DirectoryError as error:
        if error.status is not MqStatus.NO_DS:
            raise
        return Result(str(wanted.name), Outcome.POSTPONED)


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
