"""Public queues that a queue manager has kept from another life are published where it is now.

Who leaves a directory by force keeps its public queues, with their messages. When it meets its next
directory, which may be the old one, they are created there again. A directory gives each object an
identifier of its own, so the queues have another one then; others find them by their path names.
What the directory has of them already, because it was away when it was left, or because a former
try broke off, is taken over with its identifier. So meeting may be repeated until it works.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.queries import query_error
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import QUEUE
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.path_names import path_question
from falconmq.manager.persistence import store_queue
from falconmq.manager.queue_rows import queue_row
from falconmq.manager.registry import qualified_computer_name
from falconmq.manager.states import DirectoryResult
from falconmq.names import PathName

_SUCCESS = DirectoryResult.SUCCESS

_log = logging.getLogger("falconmq.directory")


@dataclass(frozen=True, slots=True)
class Republished:
    """A queue that the directory has now."""

    before: UUID  # the identifier that it has here
    row: Row  # what the directory says of it


def kept_queues(core: QueueManagerCore) -> list[Row]:
    """The public queues that are here, as a directory keeps them; in a turn."""
    return [queue_row(queue) for queue in core.public.values()]


def republish(directory: CachedDirectory, rows: Sequence[Row]) -> list[Republished]:
    """Let the directory have these queues; in a thread. DirectoryError if it goes away over it.

    A queue that it refuses for another reason stays here without an entry; the log says so.
    """
    made = directory.inner.create_many(QUEUE, rows) if rows else []
    directory.forget(QUEUE)
    published = []
    for row, (result, identifier) in zip(rows, made, strict=True):
        try:
            found = _taken(directory, row, result, identifier)
        except DirectoryError as error:
            if error.status is MqStatus.NO_DS:
                raise
            _log.warning("public queue not published name=%s problem=%s", row["path_name"], error)
            continue
        before = row["identifier"]
        assert isinstance(before, UUID)
        published.append(Republished(before, found))
    if published:
        _log.info("public queues published again count=%d", len(published))
    return published


def take_over(core: QueueManagerCore, published: Iterable[Republished]) -> None:
    """Let the queues here have the identifiers and places that the directory gave; in a turn."""
    qualified = qualified_computer_name(core.settings)
    for each in published:
        queue = core.public.pop(each.before, None)
        if queue is None:
            continue  # it was deleted meanwhile
        identifier = each.row["identifier"]
        assert isinstance(identifier, UUID)
        queue.begin_anew(identifier)
        queue.full_path = str(each.row["full_path"])
        queue.directory_path = str(each.row["directory_path"])
        queue.qualified_path_name = str(queue.path_name.with_computer(qualified))
        core.public[identifier] = queue
        store_queue(core, queue)


def _taken(directory: CachedDirectory, row: Row, result: DirectoryResult, identifier: UUID) -> Row:
    """The entry of a queue: the new one, or the one that was there."""
    if result is DirectoryResult.OBJECT_ALREADY_EXISTS:
        result, identifier = _adopt(directory, row)
    with directory.noticing():
        if result is not _SUCCESS:
            raise query_error(directory.inner, QUEUE, result)
    found = directory.fetch(QUEUE, equals("identifier", identifier))
    if found is None:
        raise DirectoryError(
            f"{row['path_name']} is gone again from the directory", status=MqStatus.DS_ERROR
        )
    return found


def _adopt(directory: CachedDirectory, row: Row) -> tuple[DirectoryResult, UUID]:
    """Make the entry of our path name ours; whether it is transactional cannot be written."""
    known = directory.fetch(QUEUE, path_question(PathName.parse(str(row["path_name"]))))
    if known is not None and known["transactional"] == row["transactional"]:
        identifier = known["identifier"]
        assert isinstance(identifier, UUID)
        return directory.inner.write(QUEUE, {**row, "identifier": identifier}), identifier
    if known is not None:
        gone = known["identifier"]
        assert isinstance(gone, UUID)
        result = directory.inner.delete(QUEUE, gone)
        if result is not _SUCCESS:
            return result, NULL_UUID
    return directory.inner.create(QUEUE, row)
