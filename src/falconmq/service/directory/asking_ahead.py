"""The directory is asked beside the event loop for the queues that a request names.

Whoever sends to a public queue of another computer needs what the directory says of it. The core
asks for that inside its turn, and everybody would wait with it. So a handler that is about to name
such a queue lets a thread ask first; the core then finds the answer ready.
"""

from __future__ import annotations

import asyncio

from falconmq.directory.cached import CachedDirectory
from falconmq.embedded.engine import Engine
from falconmq.errors import NameSyntaxError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.path_names import path_question, short_path
from falconmq.manager.queues import is_local_computer
from falconmq.names import (
    FormatName,
    MultipleElementFormatName,
    PathName,
    PublicFormatName,
    QueueKind,
    parse_queue_name,
)


async def ask_ahead(engine: Engine, name: str) -> None:
    """Let the directory's answers be there before the core asks; a bad name is not our business."""
    directory = engine.core.directory
    if not isinstance(directory, CachedDirectory) or engine.core.is_directory_offline:
        return
    try:
        questions = engine.look(_questions, parse_queue_name(name))
    except NameSyntaxError:
        return
    if questions:
        await asyncio.to_thread(_ask, directory, questions)


def _questions(core: QueueManagerCore, name: PathName | FormatName) -> list[Filters]:
    if isinstance(name, PathName):
        is_ours = is_local_computer(core, name.computer)
        is_asked = name.kind is QueueKind.PUBLIC and name.subqueue is None and not is_ours
        if not is_asked:
            return []
        short = short_path(name)
        return [path_question(name)] + ([] if short is None else [path_question(short)])
    elements = name.elements if isinstance(name, MultipleElementFormatName) else (name,)
    return [
        equals("identifier", element.queue)
        for element in elements
        if isinstance(element, PublicFormatName) and element.queue not in core.public
    ]


def _ask(directory: CachedDirectory, questions: list[Filters]) -> None:
    for question in questions:
        directory.read("Queue", question, None)  # a row is found by its GUID from now on, too
