"""The directory is asked beside the event loop for the queues that a request names.

Whoever sends to a public queue of another computer needs what the directory says of it. The core
asks for that inside its turn, and everybody would wait with it. So a handler that is about to name
such a queue lets a thread ask first; the core then finds the answer ready.

What is changed in the directory is changed inside a turn, for the queue changes with it. A handler
that is about to do so lets a thread find out first whether the directory answers at all (`reach`):
if it does not, it is away, and the change is refused at once.
"""

from __future__ import annotations

import asyncio

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.tables import ENTERPRISE
from falconmq.embedded.engine import Engine
from falconmq.errors import NameSyntaxError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import QUEUE
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.path_names import path_question, short_path
from falconmq.manager.queues import is_local_computer
from falconmq.names import (
    DirectFormatName,
    FormatName,
    MultipleElementFormatName,
    PathName,
    PublicFormatName,
    QueueKind,
    parse_queue_name,
)


async def ask_ahead(engine: Engine, name: str) -> None:
    """Let the directory's answers be there before the core asks; a bad name is not our business."""
    directory = _elsewhere(engine)
    if directory is None:
        return
    try:
        questions = engine.look(_questions, parse_queue_name(name))
    except NameSyntaxError:
        return
    if _names_a_list(name):
        await _asked(directory, ENTERPRISE, ())
    for question in questions:  # a row is found by its GUID from now on, too
        if directory.known(QUEUE, question) is None:
            await _asked(directory, QUEUE, question)


async def reach(engine: Engine, name: str = "") -> None:
    """Find out whether the directory answers, before something is changed in it.

    With a `name` only if that may be a public queue: others are none of its business.
    """
    directory = _elsewhere(engine)
    if directory is not None and (not name or _may_be_public(name)):
        await _asked(directory, ENTERPRISE, ())


def _elsewhere(engine: Engine) -> CachedDirectory | None:
    """The directory, if it is worth asking, and may be slow."""
    directory = engine.core.directory
    if not isinstance(directory, CachedDirectory) or engine.core.is_directory_offline:
        return None
    return None if directory.is_local else directory


async def _asked(directory: CachedDirectory, type_name: str, filters: Filters) -> None:
    """Wait, as a task, until a thread has an answer; or the directory is away."""
    loop = asyncio.get_running_loop()
    answered = asyncio.Event()

    def tell() -> None:
        loop.call_soon_threadsafe(answered.set)

    directory.ask_beside(type_name, filters, tell)
    await answered.wait()


def _names_a_list(name: str) -> bool:
    """Whether the members of a distribution list are asked for, each time anew."""
    return "DL=" in name.upper()


def _may_be_public(name: str) -> bool:
    try:
        found = parse_queue_name(name)
    except NameSyntaxError:
        return False
    if isinstance(found, PathName | DirectFormatName):
        return found.kind is QueueKind.PUBLIC
    return isinstance(found, PublicFormatName)


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
