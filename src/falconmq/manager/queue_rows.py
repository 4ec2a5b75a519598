"""A queue as a row of the directory (MQDMPR 3.1.1.2, the attributes Label to Scope)."""

from __future__ import annotations

import dataclasses
from typing import Final

from falconmq.manager.directory_objects import Row
from falconmq.manager.model import Queue, QueueProperties

_PROPERTIES: Final = tuple(f.name for f in dataclasses.fields(QueueProperties))


def queue_row(queue: Queue) -> dict[str, object]:
    """What the directory keeps of a queue; `computer_name` is that of its queue manager."""
    properties = {name: getattr(queue.properties, name) for name in _PROPERTIES}
    return {
        "identifier": queue.identifier,
        "path_name": str(queue.path_name),
        "qualified_path_name": queue.qualified_path_name,
        "computer_name": queue.path_name.computer,
        "create_time": queue.create_time,
        "modify_time": queue.modify_time,
        "scope": queue.scope,
        "full_path": queue.full_path,
        "directory_path": queue.directory_path,
        **properties,
    }


def update_queue(queue: Queue, row: Row) -> None:
    """Take over what the directory says; a queue never changes its name, number or nature."""
    for name in _PROPERTIES:
        if name in row and name != "transactional":
            setattr(queue.properties, name, row[name])
    for name in ("modify_time", "full_path", "directory_path"):
        if name in row:
            setattr(queue, name, row[name])
