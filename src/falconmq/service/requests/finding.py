"""From the name in a request to a queue of this queue manager.

Whoever only sends may name any queue. Who reads or manages must name one of ours, and is told so at
once: to open another would make an outgoing queue for it.
"""

from __future__ import annotations

from typing import NoReturn

from falconmq import aio
from falconmq.embedded import actions
from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.public_queues import public_host
from falconmq.manager.queues import find_queue, is_local_computer, open_subqueue, queue_not_found
from falconmq.manager.states import ShareMode
from falconmq.names import (
    DirectFormatName,
    FormatName,
    MachineFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    parse_queue_name,
)
from falconmq.service.requests.reading import durable


def find_local(core: QueueManagerCore, name: str) -> Queue:
    """The queue with this path name or format name."""
    parsed = parse_queue_name(name)
    queue = find_queue(core, parsed)
    if queue is None or isinstance(queue, OutgoingQueue):
        _refuse(core, parsed)
    return queue


def look_up(core: QueueManagerCore, name: str) -> actions.Opened:
    """The same for those who hold it open."""
    return actions.opened_queue(core, find_local(core, name))


def open_local(
    core: QueueManagerCore, name: str, share: ShareMode = ShareMode.DENY_NONE
) -> actions.Opened:
    """A queue to read from; a subqueue comes to be when it is opened."""
    parsed = parse_queue_name(name)
    queue = find_queue(core, parsed)
    if queue is None:
        queue = _new_subqueue(core, parsed)
    if queue is None or isinstance(queue, OutgoingQueue):
        _refuse(core, parsed)
    return actions.opened_queue(core, queue, share)


async def open_queue(engine: Engine, name: str, *, exclusive: bool = False) -> aio.Queue:
    """`open_local` for a handler; to be closed."""
    share = ShareMode.DENY_RECEIVE if exclusive else ShareMode.DENY_NONE
    opened, commit = engine.run(open_local, name, share)
    if commit is not None:
        await durable(engine, commit)
    return aio.Queue(engine, opened)


def _new_subqueue(core: QueueManagerCore, name: PathName | FormatName) -> Queue | None:
    subqueue = name.subqueue if isinstance(name, PathName | DirectFormatName) else None
    if subqueue is None:
        return None
    if isinstance(name, PathName):
        parent = find_queue(core, PathName(name.computer, name.kind, name.name))
    else:
        assert isinstance(name, DirectFormatName)
        parent = find_queue(
            core,
            DirectFormatName(name.protocol, name.address, name.kind, name.queue, port=name.port),
        )
    return None if parent is None else open_subqueue(core, parent, subqueue)


def _refuse(core: QueueManagerCore, name: PathName | FormatName) -> NoReturn:
    """There is none here, or it is not here."""
    if isinstance(name, PathName):
        actions.local(actions.Opened(actions.resolved(core, name), str(name)))
    elif not _is_ours(core, name):
        actions.local(actions.Opened(name, ""))  # says that it is elsewhere
    raise queue_not_found(core, name)


def _is_ours(core: QueueManagerCore, name: FormatName) -> bool:
    match name:
        case DirectFormatName():
            return is_local_computer(core, name.address)
        case PrivateFormatName() | MachineFormatName():
            return name.computer == core.identifier
        case PublicFormatName():  # the directory says whose it is
            return not core.directory.is_integrated or public_host(core, name) == core.identifier
        case _:
            return False
