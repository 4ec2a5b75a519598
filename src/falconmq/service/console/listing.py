"""Queues in a table: found by a part of the name, sorted by any column, a page at a time.

Ten thousand queues are looked at in one turn; only those of the page are described in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from falconmq.embedded.actions import path_of
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.queues import find_queue
from falconmq.manager.states import QueueType
from falconmq.names import parse_queue_name

PAGE: Final = 50  # rows

_KEYS: Final[Mapping[str, Callable[[Queue], Any]]] = {
    "name": lambda queue: queue.path_name.name.lower(),
    "label": lambda queue: queue.properties.label.lower(),
    "kind": lambda queue: queue.properties.transactional,
    "messages": lambda queue: len(queue.positions),
    "size": lambda queue: queue.total_bytes,
    "readers": lambda queue: len(queue.waiting),
    "journal": lambda queue: 0 if queue.journal is None else len(queue.journal.positions),
}
COLUMNS: Final = tuple(_KEYS)


@dataclass(frozen=True, slots=True)
class Row:
    """A queue in the table."""

    name: str
    label: str
    is_public: bool
    transactional: bool
    messages: int
    size_bytes: int
    quota_kilobytes: int
    readers: int
    journal_messages: int
    is_journaled: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the table."""

    rows: tuple[Row, ...]
    found: int  # queues that match, on all pages
    page: int  # from 1
    pages: int


def list_queues(
    core: QueueManagerCore,
    contains: str,
    column: str,
    page: int,
    *,
    descending: bool,
    system: bool = False,
) -> Listing:
    """The queues whose name or label holds a text, in the order of a column."""
    wanted = contains.lower()
    queues = [queue for queue in core.queues.values() if _is_listed(core, queue, system=system)]
    if wanted:
        queues = [queue for queue in queues if _matches(queue, wanted)]
    if column != "name":
        queues.sort(key=_KEYS["name"])
    queues.sort(key=_KEYS.get(column, _KEYS["name"]), reverse=descending)
    pages = max(1, -(-len(queues) // PAGE))
    page = min(max(1, page), pages)
    shown = queues[(page - 1) * PAGE : page * PAGE]
    return Listing(tuple(_row(queue) for queue in shown), len(queues), page, pages)


def _is_listed(core: QueueManagerCore, queue: Queue, *, system: bool) -> bool:
    if queue in (core.dead_letter, core.transactional_dead_letter, core.journal):
        return system
    is_created = queue.queue_type is not QueueType.SYSTEM
    return is_created and queue.parent is None and (system or not queue.is_internal)


def _matches(queue: Queue, wanted: str) -> bool:
    """The whole path name takes ten times as long to write as its last part to look at."""
    name = path_of(queue) if "\\" in wanted or "$" in wanted else queue.path_name.name
    return wanted in name.lower() or wanted in queue.properties.label.lower()


def _row(queue: Queue) -> Row:
    return Row(
        path_of(queue),
        queue.properties.label,
        queue.queue_type is QueueType.PUBLIC,
        queue.properties.transactional,
        len(queue.positions),
        queue.total_bytes,
        queue.properties.quota_kilobytes,
        len(queue.waiting),
        0 if queue.journal is None else len(queue.journal.positions),
        queue.properties.journaling,
    )


def targets(core: QueueManagerCore, name: str) -> list[str]:
    """Some queues that messages of another one can be moved to, to choose from."""
    source = find_queue(core, parse_queue_name(name))
    kind = None if source is None else source.properties.transactional
    found = (
        path_of(queue)
        for queue in core.queues.values()
        if queue is not source
        and _is_listed(core, queue, system=False)
        and kind in (None, queue.properties.transactional)
    )
    return sorted(islice(found, PAGE))
