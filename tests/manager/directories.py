"""A queue manager in a directory of its own, for the tests that need one."""

from __future__ import annotations

from random import Random
from typing import Any, Final
from uuid import UUID

from falconmq.clock import VirtualClock
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.directory_objects import DirectoryObject, Enterprise, QueueManager, Site
from falconmq.manager.lifecycle import initialize
from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.manager.model import Queue
from falconmq.manager.states import ChangeOperation
from falconmq.store import MemoryStore
from tests.manager.helpers import COMPUTER, IDENTIFIER, commit

SITE: Final = UUID("51735173-0000-4000-8000-000000000001")


class Notices(list[tuple[ChangeOperation, Queue | DirectoryObject]]):
    """The change notifications that were sent, and how many directory calls came before each."""

    def __init__(self, directory: MemoryDirectory) -> None:
        self.calls_before: list[int] = []
        self._directory = directory

    def __call__(self, operation: ChangeOperation, entry: Queue | DirectoryObject) -> None:
        self.append((operation, entry))
        self.calls_before.append(len(self._directory.calls))

    @property
    def operations(self) -> list[ChangeOperation]:
        return [operation for operation, _ in self]


def make_directory(**attributes: Any) -> MemoryDirectory:
    """A directory that knows our queue manager, its site and its enterprise."""
    directory = MemoryDirectory()
    own = QueueManager(IDENTIFIER, computer_name=COMPUTER, site_identifiers=[SITE])
    for name, value in attributes.items():
        setattr(own, name, value)
    directory.create("QueueManager", own.row())
    directory.create("Site", Site(SITE, name="Berlin").row())
    directory.create("Enterprise", Enterprise(UUID(int=9), name="Acme").row())
    directory.calls.clear()
    return directory


def build_core(
    directory: MemoryDirectory, store: MemoryStore | None = None, **settings: Any
) -> QueueManagerCore:
    """A core that is not initialised yet."""
    return QueueManagerCore(
        IDENTIFIER,
        MemoryStore() if store is None else store,
        VirtualClock(),
        Random(7),
        Settings(**{"computer_name": COMPUTER, **settings}),
        directory,
    )


def make_integrated_core(
    directory: MemoryDirectory | None = None, **settings: Any
) -> tuple[QueueManagerCore, MemoryDirectory, Notices]:
    """A queue manager that is ready, in a directory."""
    directory = make_directory() if directory is None else directory
    core = build_core(directory, **settings)
    initialize(core)
    commit(core)
    directory.calls.clear()
    notices = Notices(directory)
    core.change_notifier = notices
    return core, directory, notices
