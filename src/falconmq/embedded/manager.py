"""QueueManager: queues in a directory of this program."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import Unpack
from uuid import UUID

from falconmq.clock import Clock, SystemClock
from falconmq.closing import Closing
from falconmq.embedded import actions, blocking
from falconmq.embedded.engine import Engine
from falconmq.embedded.queue import Queue, QueueChanges
from falconmq.embedded.transaction import Transaction
from falconmq.manager import lifecycle
from falconmq.manager.access import Principal
from falconmq.manager.core import QueueManagerCore, Settings
from falconmq.manager.model import OutgoingQueue, QueueProperties
from falconmq.manager.persistence import stored_identifier
from falconmq.manager.states import QueueType, ShareMode
from falconmq.manager.transactions import create_transaction
from falconmq.names import FormatName, PathName
from falconmq.security.signing_keys import SigningKeys
from falconmq.store import (
    Committer,
    Durability,
    GroupCommitter,
    Store,
    SynchronousCommitter,
    open_data_directory,
)
from falconmq.store.lmdb_engine import DEFAULT_MAP_SIZE

DEFAULT_QUOTA_KILOBYTES = Settings("").quota_kilobytes


@dataclass(frozen=True)
class QueueStatus:
    """One line of `ManagerStatus`."""

    name: str
    messages: int
    size_bytes: int
    is_transactional: bool
    journal_messages: int


@dataclass(frozen=True)
class ManagerStatus:
    """What `QueueManager.status` shows."""

    id: UUID
    computer_name: str
    path: str
    engine: str
    durability: Durability  # what a call that returned survives
    used_bytes: int  # of the file: messages and their index
    reusable_bytes: int  # of the file: freed, used again before it grows
    file_bytes: int
    limit_bytes: int  # the file does not grow beyond this
    commits: int
    messages: int
    message_bytes: int  # against the quota
    quota_kilobytes: int
    transactions: int  # not ended yet
    queues: tuple[QueueStatus, ...]


class ManagerView:
    """What the blocking and the asyncio queue manager have in common."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def id(self) -> UUID:
        """Names this queue manager for ever; made with its data directory."""
        return self._engine.core.identifier

    @property
    def computer_name(self) -> str:
        return self._engine.core.settings.computer_name

    @property
    def is_closed(self) -> bool:
        return self._engine.is_closed

    def status(self) -> ManagerStatus:
        """Durability, space and messages, at this moment."""
        return self._engine.look(_status, self._engine.store)


class QueueManager(ManagerView, Closing):
    """Queues in a directory of this program; made by `falconmq.open`.

    Any number of threads may use it at once. `close`, or the end of its `with` block, ends the
    reads that wait and closes the data directory.
    """

    def create_queue(
        self,
        name: str | PathName,
        *,
        transactional: bool = False,
        **properties: Unpack[QueueChanges],
    ) -> Queue:
        r"""Create a queue, `.\private$\orders`. QueueError QUEUE_EXISTS if it is there already.

        A public queue, `.\orders`, takes a service that is in a directory; DirectoryError.
        """
        chosen = QueueProperties(transactional=transactional, **properties)
        opened = blocking.call(self._engine, actions.create, name, chosen)
        return Queue(self._engine, opened)

    def queue(self, name: str | PathName | FormatName, *, exclusive: bool = False) -> Queue:
        """An existing queue, by its path name or format name.

        A queue of another computer, named by a format name, or by a path name that the directory
        knows, can be sent to; its messages wait in an outgoing queue. `exclusive` keeps others from
        receiving until the queue is closed.
        """
        share = ShareMode.DENY_RECEIVE if exclusive else ShareMode.DENY_NONE
        return Queue(self._engine, blocking.call(self._engine, actions.find, name, share))

    def queues(self) -> list[Queue]:
        """All queues that were created here, in the order of their names."""
        found = self._engine.look(actions.created_queues)
        return [Queue(self._engine, opened) for opened in found]

    def delete_queue(self, queue: Queue | str | PathName) -> None:
        """Delete a queue with all its messages."""
        if not isinstance(queue, Queue):
            queue = self.queue(queue)
        blocking.call(self._engine, actions.delete, queue.opened)

    def transaction(self, id: UUID | None = None) -> Transaction:
        """A new transaction, for a `with` block; `id` if a coordinator has named it."""
        return Transaction(self._engine, self._engine.run(create_transaction, id)[0])

    def in_doubt(self) -> list[Transaction]:
        """Prepared transactions that wait for `commit` or `abort`, of earlier runs too."""
        found = self._engine.look(actions.in_doubt)
        return [Transaction(self._engine, transaction) for transaction in found]

    @property
    def dead_letter(self) -> Queue:
        """Messages that could not be delivered, and whose senders asked to keep them."""
        return Queue(self._engine, self._engine.look(actions.system_queue, "dead_letter"))

    @property
    def transactional_dead_letter(self) -> Queue:
        """The same for transactional messages."""
        name = "transactional_dead_letter"
        return Queue(self._engine, self._engine.look(actions.system_queue, name))

    @property
    def journal(self) -> Queue:
        """Copies of sent messages that asked for `Journal.JOURNAL`."""
        return Queue(self._engine, self._engine.look(actions.system_queue, "journal"))

    def close(self) -> None:
        """End the reads that wait, let commits finish, close the data directory."""
        self._engine.close()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return f"<QueueManager {self.computer_name} {{{self.id}}}: {state}>"


def open(  # noqa: A001 - `falconmq.open` is what people look for
    path: str | os.PathLike[str],
    *,
    computer_name: str | None = None,
    durability: Durability = Durability.SYNC,
    quota_kilobytes: int = DEFAULT_QUOTA_KILOBYTES,
    map_size: int = DEFAULT_MAP_SIZE,
    principal: Principal | None = None,
) -> QueueManager:
    """Open the queue manager that lives in a directory, or make a new one there.

    A directory has one owner at a time: StoreError if another process has it open.

    `durability` SYNC makes every call that returned survive a power cut; RELAXED only the end of
    the process. `quota_kilobytes` bounds all messages together, `map_size` the file.

    Who opens a directory owns it and may do everything. With a `principal` it works for somebody,
    and the security descriptors of queues decide what that one may do.
    """
    return QueueManager(
        open_engine(
            path,
            computer_name=computer_name,
            durability=durability,
            quota_kilobytes=quota_kilobytes,
            map_size=map_size,
            principal=principal,
        )
    )


def open_engine(
    path: str | os.PathLike[str],
    *,
    computer_name: str | None,
    durability: Durability,
    quota_kilobytes: int,
    map_size: int,
    principal: Principal | None = None,
) -> Engine:
    store = open_data_directory(Path(path), durability=durability, map_size=map_size)
    settings = Settings(
        computer_name=computer_name or actions.default_computer_name(),
        quota_kilobytes=quota_kilobytes,
    )
    engine = start_engine(store, settings)
    engine.core.principal = principal
    engine.core.signing_keys = SigningKeys(Path(path))
    return engine


def start_engine(
    store: Store,
    settings: Settings,
    *,
    clock: Clock | None = None,
    random: Random | None = None,
    is_threaded: bool = True,
    prepare: Callable[[QueueManagerCore], None] | None = None,
) -> Engine:
    """A core over a store, ready; tests and simulators hand in the store, the clock and chance.

    Without threads every commit happens in the call that asks for it, and `Engine.run_timers` has
    to be called when time has passed. `prepare` sees the core before anything happens in it.
    """
    chance = random or SystemRandom()
    try:
        identifier = stored_identifier(store) or UUID(int=chance.getrandbits(128), version=4)
        core = QueueManagerCore(identifier, store, clock or SystemClock(), chance, settings)
        if prepare is not None:
            prepare(core)
        lifecycle.initialize(core)
        committer: Committer
        committer = GroupCommitter(store) if is_threaded else SynchronousCommitter(store)
    except BaseException:
        store.close()
        raise
    engine = Engine(core, store, committer, housekeeping=is_threaded)
    try:
        blocking.call(engine, _nothing)  # what the initialization wrote
    except BaseException:
        engine.close()
        raise
    return engine


def _nothing(core: QueueManagerCore) -> None:
    """A turn that only commits what is there."""


def _status(core: QueueManagerCore, store: Store) -> ManagerStatus:
    statistics = store.statistics()
    local = [q for q in core.queues.values() if not isinstance(q, OutgoingQueue)]
    return ManagerStatus(
        core.identifier,
        core.settings.computer_name,
        statistics.path,
        statistics.engine,
        statistics.durability,
        statistics.used_bytes,
        statistics.reusable_bytes,
        statistics.file_bytes,
        statistics.limit_bytes,
        statistics.commits,
        sum(len(queue.positions) for queue in core.queues.values()),
        core.used_bytes,
        core.settings.quota_kilobytes,
        len(core.transactions),
        tuple(
            QueueStatus(
                actions.path_of(queue),
                len(queue.positions),
                queue.total_bytes,
                queue.properties.transactional,
                0 if queue.journal is None else len(queue.journal.positions),
            )
            for queue in sorted(local, key=actions.path_of)
            if queue.parent is None and queue.queue_type is not QueueType.SYSTEM
        ),
    )
