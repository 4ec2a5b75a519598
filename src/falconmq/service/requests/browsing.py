"""Looking through a queue page by page, and taking single messages away or elsewhere.

Nothing is opened and nothing locked: a page is cut out of the list of places by lookup ids, so the
last page of a million messages costs what the first one does. What a reader or the transaction of a
sender holds is not shown, as a peek does not show it; its number is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from falconmq.embedded import actions
from falconmq.embedded.engine import Engine, Wait
from falconmq.embedded.refusals import check_same_kind, read_error
from falconmq.errors import MqStatus, QueueError
from falconmq.manager import transactions
from falconmq.manager.access import check_move, check_open
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue, ReadResult, Transaction
from falconmq.manager.moving import move_message
from falconmq.manager.positions import END, START, MessagePosition
from falconmq.manager.reading import seek_with_id
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import AccessType, PositionState, SeekAction
from falconmq.service.requests.finding import find_local, open_local
from falconmq.service.requests.peeking import ANSWER_BYTES
from falconmq.service.requests.reading import durable, never_told, unwritten
from falconmq.wire.message_class import MessageClass


@dataclass(slots=True)
class Page:
    """Messages of a queue, in its order."""

    positions: list[MessagePosition] = field(default_factory=list)
    next: int | None = None  # there is more behind this lookup id
    previous: int | None = None  # there is more in front of this one
    held: int = 0


async def page_of(
    engine: Engine, name: str, count: int, *, after: int | None = None, before: int | None = None
) -> Page:
    """The messages behind a lookup id, or the last ones before one; the first ones without."""
    page = Page()
    wait = Wait(never_told)
    _, commit = engine.begin_read(wait, _cut, page, name, count, after, before)
    engine.end_read(wait)
    if commit is not None:  # some of them are still being written
        await durable(engine, commit)
    return page


async def message_at(engine: Engine, name: str, lookup_id: int) -> MessagePosition:
    """One message; ReadError if it is not there, or if somebody holds it."""
    wait = Wait(never_told)
    result, commit = engine.begin_read(wait, _look_at, name, lookup_id)
    engine.end_read(wait)
    assert isinstance(result, ReadResult)
    assert result.position is not None
    if commit is not None:
        await durable(engine, commit)
    return result.position


def delete(core: QueueManagerCore, name: str, lookup_id: int) -> None:
    """An administrator takes one message away: as a purge does it, its sender is told so."""
    queue = _readable(core, name, AccessType.RECEIVE)
    position = _free(core, queue, lookup_id)
    message_position_deleted(core, queue, position, MessageClass.NACK_Q_PURGED)


def move(
    core: QueueManagerCore,
    name: str,
    lookup_ids: list[int],
    target: str,
    owner: Transaction | None,
) -> int:
    """Move messages to another queue of ours, all or none; how many."""
    source = _readable(core, name)
    opened, other = actions.opened_queue(core, source), open_local(core, target)
    destination = actions.local(other)
    if destination.is_internal:
        raise _internal(destination)
    check_move(core, source, destination)
    if owner is not None:
        transactions.check_usage(source, owner, receiving=True)
    if (source.parent or source) is not (destination.parent or destination):
        check_same_kind(source, destination, opened, other)
    found = [_free(core, source, lookup_id) for lookup_id in dict.fromkeys(lookup_ids)]
    if source is destination:
        return 0
    for position in found:
        move_message(core, position, destination, owner)
    return len(found)


def _cut(
    core: QueueManagerCore,
    page: Page,
    name: str,
    count: int,
    after: int | None,
    before: int | None,
) -> ReadResult:
    queue = _readable(core, name)
    positions, found = queue.positions, page.positions
    is_back = before is not None
    step = positions.before if is_back else positions.after
    place = before if before is not None else START if after is None else after
    size = 0
    while len(found) < count and size < ANSWER_BYTES:
        lookup_id = step(place, peek=True)
        position = None if lookup_id is None else positions.find(lookup_id, decode=False)
        if position is None:
            break
        found.append(position)
        place = position.lookup_id
        size += position.size
    if is_back:
        found.reverse()
    page.held = len(positions.held)
    _find_neighbours(queue, page, after, before)
    return ReadResult(MqStatus.OK, unwritten(found))


def _find_neighbours(queue: Queue, page: Page, after: int | None, before: int | None) -> None:
    """Where the pages around this one begin, if there are any."""
    positions, found = queue.positions, page.positions
    first = found[0].lookup_id if found else (END if after is None else after)
    last = found[-1].lookup_id if found else (START if before is None else before)
    if found or after is not None:
        page.previous = first if positions.before(first, peek=True) is not None else None
    if found or before is not None:
        page.next = last if positions.after(last, peek=True) is not None else None


def _look_at(core: QueueManagerCore, name: str, lookup_id: int) -> ReadResult:
    queue = _readable(core, name)
    status, position = seek_with_id(queue, lookup_id, SeekAction.CURRENT, peek=True)
    if position is None:
        raise read_error(actions.path_of(queue), status, None)
    return ReadResult(status, position)


def _free(core: QueueManagerCore, queue: Queue, lookup_id: int) -> MessagePosition:  # noqa: ARG001
    """A message that nobody holds."""
    position = queue.positions.find(lookup_id)
    if position is None:
        raise read_error(actions.path_of(queue), MqStatus.MESSAGE_NOT_FOUND, None)
    if position.state is not PositionState.AVAILABLE:
        raise read_error(actions.path_of(queue), MqStatus.TRANSACTION_USAGE, None)
    return position


def _readable(core: QueueManagerCore, name: str, access: AccessType = AccessType.PEEK) -> Queue:
    queue = find_local(core, name)
    if queue.is_internal:
        raise _internal(queue)
    check_open(core, queue, access)
    return queue


def _internal(queue: Queue) -> QueueError:
    return QueueError(
        f"{queue.path_name} is for the queue manager alone",
        status=MqStatus.ACCESS_DENIED,
        hint="use a queue of your own",
    )
