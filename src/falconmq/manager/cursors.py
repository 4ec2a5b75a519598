"""Cursors: places in a queue that readers walk along (MQDMPR 3.1.7.1.1, .2 and 3.2).

How to think about it. A cursor is a lookup identifier and a state. UNREAD: the message at that
place was not handed out through the cursor, or was received through it, so the next look goes
behind it. READ: it was peeked at, so the next peek shows it once more. The two waiting states mean
that a read is in the queue's line (`waiting`) and will move the cursor when it ends.

`LOOKS` says where an event looks, `STEPS` what follows from what it finds: the two are the whole
machine. A deleted message leaves the cursor where it was; its number still has a place in the
order (DM-A26). A cursor at END looks at nothing until a message is delivered to it (DM-A25).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from falconmq.errors import MqStatus, ReadError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Cursor, OpenQueueDescriptor
from falconmq.manager.positions import END, MessagePosition
from falconmq.manager.states import AccessType, CursorState, PositionState
from falconmq.manager.waiting import end_waits_of_cursor


class CursorEvent(Enum):
    PEEK = "get message for peek"
    PEEK_NEXT = "get next message for peek"
    DEQUEUE = "get next message for dequeue"
    DEQUEUE_NO_WAIT = "get next message for dequeue, without waiting"
    MESSAGE_AVAILABLE = "message available"
    WAIT_TIME_EXPIRED = "wait time expired"


class CursorStatus(Enum):
    """How an event of a cursor ended (MQDMPR 3.2.7)."""

    SUCCEEDED = "succeeded"
    ALREADY_RECEIVED = "already received"
    NOT_FOUND = "not found"
    ILLEGAL_CURSOR_ACTION = "illegal cursor action"
    WAITING = "waiting"


class Look(Enum):
    """Where an event looks for a message."""

    NOWHERE = "nowhere"
    CURRENT = "at the cursor's own place"
    NEXT_TO_PEEK = "behind it, for a message to show"
    NEXT_TO_RECEIVE = "behind it, for a message to take"


Looked = tuple[CursorStatus, MessagePosition | None]

_UNREAD, _READ = CursorState.UNREAD, CursorState.READ
_WAIT_PEEK, _WAIT_RECEIVE = CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE
_PEEK, _PEEK_NEXT = CursorEvent.PEEK, CursorEvent.PEEK_NEXT
_DEQUEUE, _DEQUEUE_NO_WAIT = CursorEvent.DEQUEUE, CursorEvent.DEQUEUE_NO_WAIT
_AVAILABLE, _EXPIRED = CursorEvent.MESSAGE_AVAILABLE, CursorEvent.WAIT_TIME_EXPIRED
_SUCCEEDED, _ALREADY_RECEIVED = CursorStatus.SUCCEEDED, CursorStatus.ALREADY_RECEIVED
_NOT_FOUND, _WAITING = CursorStatus.NOT_FOUND, CursorStatus.WAITING
_ILLEGAL = CursorStatus.ILLEGAL_CURSOR_ACTION

# A state and event that is not listed: the cursor waits, and its one reader with it.
LOOKS: Final[Mapping[tuple[CursorState, CursorEvent], Look]] = {
    (_UNREAD, _PEEK): Look.NEXT_TO_PEEK,  # DM-3.2.7.2-02
    (_UNREAD, _PEEK_NEXT): Look.NOWHERE,  # DM-3.2.7.3-02
    (_UNREAD, _DEQUEUE): Look.NEXT_TO_RECEIVE,  # DM-3.2.7.4-02
    (_UNREAD, _DEQUEUE_NO_WAIT): Look.NEXT_TO_RECEIVE,
    (_READ, _PEEK): Look.CURRENT,  # DM-3.2.7.2-04
    (_READ, _PEEK_NEXT): Look.NEXT_TO_PEEK,  # DM-3.2.7.3-03
    (_READ, _DEQUEUE): Look.CURRENT,  # DM-3.2.7.4-06
    (_READ, _DEQUEUE_NO_WAIT): Look.CURRENT,
}

# State, event, and whether there was a message: the next state and the answer.
STEPS: Final[Mapping[tuple[CursorState, CursorEvent, bool], tuple[CursorState, CursorStatus]]] = {
    (_UNREAD, _PEEK, True): (_READ, _SUCCEEDED),  # DM-3.2.1.1-02
    (_UNREAD, _PEEK, False): (_WAIT_PEEK, _WAITING),  # DM-3.2.1.1-03
    (_UNREAD, _PEEK_NEXT, False): (_UNREAD, _ILLEGAL),  # DM-3.2.1.1-04
    (_UNREAD, _DEQUEUE, True): (_UNREAD, _SUCCEEDED),  # DM-3.2.1.1-05
    (_UNREAD, _DEQUEUE, False): (_WAIT_RECEIVE, _WAITING),  # DM-3.2.1.1-06
    (_UNREAD, _DEQUEUE_NO_WAIT, True): (_UNREAD, _SUCCEEDED),
    (_UNREAD, _DEQUEUE_NO_WAIT, False): (_UNREAD, _NOT_FOUND),  # DM-3.2.7.4-03
    (_READ, _PEEK, True): (_READ, _SUCCEEDED),  # DM-3.2.1.1-07
    (_READ, _PEEK, False): (_READ, _ALREADY_RECEIVED),  # DM-3.2.7.2-05
    (_READ, _PEEK_NEXT, True): (_READ, _SUCCEEDED),  # DM-3.2.1.1-08
    (_READ, _PEEK_NEXT, False): (_WAIT_PEEK, _WAITING),  # DM-3.2.1.1-09
    (_READ, _DEQUEUE, True): (_UNREAD, _SUCCEEDED),  # DM-3.2.1.1-10
    (_READ, _DEQUEUE, False): (_READ, _ALREADY_RECEIVED),  # DM-3.2.1.1-11
    (_READ, _DEQUEUE_NO_WAIT, True): (_UNREAD, _SUCCEEDED),
    (_READ, _DEQUEUE_NO_WAIT, False): (_READ, _ALREADY_RECEIVED),
    (_WAIT_PEEK, _AVAILABLE, True): (_READ, _SUCCEEDED),  # DM-3.2.1.1-12
    (_WAIT_PEEK, _EXPIRED, False): (_UNREAD, _NOT_FOUND),  # DM-3.2.1.1-13
    (_WAIT_RECEIVE, _AVAILABLE, True): (_UNREAD, _SUCCEEDED),  # DM-3.2.1.1-14
    (_WAIT_RECEIVE, _EXPIRED, False): (_UNREAD, _NOT_FOUND),  # DM-3.2.1.1-15
}

MAY_PEEK: Final = frozenset(
    {
        AccessType.RECEIVE,  # DM-3.1.1.17-16
        AccessType.PEEK,
        AccessType.RECEIVE_ADMIN,
        AccessType.PEEK_ADMIN,
    }
)


def open_cursor(core: QueueManagerCore, descriptor: OpenQueueDescriptor) -> Cursor | None:
    """A new cursor before the first message; None if the queue was deleted.

    Open Cursor, MQDMPR 3.1.7.1.1, and its Initialize, 3.2.7.1. A descriptor that may not even peek
    has no use for a cursor and is refused one (ours).
    """
    if descriptor.queue is None:
        return None  # DM-3.1.7.1.1-02
    require_peek_access(descriptor)
    cursor = Cursor(core.next_handle(), descriptor)  # START and UNREAD: DM-3.2.7.1-04, -05
    core.cursors[cursor.handle] = cursor
    descriptor.cursors.append(cursor)  # DM-3.1.7.1.1-03
    return cursor


def close_cursor(core: QueueManagerCore, cursor: Cursor) -> None:
    """Forget a cursor; a read that waits on it ends. Closing it again does nothing.

    Close Cursor, MQDMPR 3.1.7.1.2.
    """
    if core.cursors.pop(cursor.handle, None) is None:
        return
    end_waits_of_cursor(core, cursor)  # DM-3.1.7.1.2-02
    cursor.descriptor.cursors.remove(cursor)  # DM-3.1.7.1.2-03


def get_message_for_peek(cursor: Cursor) -> Looked:
    """The message at the cursor, or the next one if it has none (MQDMPR 3.2.7.2)."""
    return _look(cursor, CursorEvent.PEEK)


def get_next_message_for_peek(cursor: Cursor) -> Looked:
    """The message behind the one that was peeked at (MQDMPR 3.2.7.3)."""
    return _look(cursor, CursorEvent.PEEK_NEXT)


def get_next_message_for_dequeue(cursor: Cursor, *, no_wait: bool) -> Looked:
    """The message to take: the one that was peeked at, or else the next (MQDMPR 3.2.7.4)."""
    return _look(cursor, CursorEvent.DEQUEUE_NO_WAIT if no_wait else CursorEvent.DEQUEUE)


def message_available(cursor: Cursor, position: MessagePosition) -> None:
    """A wait ended with a message; wherever it is, the cursor goes there (MQDMPR 3.2.7.5)."""
    cursor.state, _ = STEPS[cursor.state, CursorEvent.MESSAGE_AVAILABLE, True]
    cursor.position = position.lookup_id  # DM-3.2.7.5-03


def wait_time_expired(cursor: Cursor) -> None:
    """A wait ended without a message (MQDMPR 3.2.7.6)."""
    if cursor.state is CursorState.WAIT_RECEIVE:
        cursor.position = END  # DM-3.2.7.6-01
    cursor.state, _ = STEPS[cursor.state, CursorEvent.WAIT_TIME_EXPIRED, False]


def require_peek_access(descriptor: OpenQueueDescriptor) -> None:
    """Refuse to look into a queue that was opened to send or to move."""
    if descriptor.access not in MAY_PEEK:
        raise ReadError(
            f"the queue was opened with {descriptor.access.name} access, not to read from it",
            status=MqStatus.ACCESS_DENIED,
            hint="open the queue with PEEK or RECEIVE access",
        )


def require_open_cursor(
    core: QueueManagerCore, descriptor: OpenQueueDescriptor, cursor: Cursor
) -> None:
    """Refuse a cursor that was closed, or that walks along another queue."""
    if cursor.descriptor is not descriptor or core.cursors.get(cursor.handle) is not cursor:
        raise ReadError(
            f"cursor {cursor.handle} is closed or belongs to another handle",
            status=MqStatus.INVALID_HANDLE,
            hint="open a cursor on the handle that you read with",
        )


def _look(cursor: Cursor, event: CursorEvent) -> Looked:
    look = LOOKS.get((cursor.state, event))
    if look is None:
        raise ReadError(
            f"cursor {cursor.handle} {cursor.state.value}: one read at a time",
            status=MqStatus.ILLEGAL_CURSOR_ACTION,
            hint="wait for that read or cancel it; for reads side by side open a second cursor",
        )
    position = _find(cursor, look)
    cursor.state, status = STEPS[cursor.state, event, position is not None]
    if position is not None:
        cursor.position = position.lookup_id
    return status, position


def _find(cursor: Cursor, look: Look) -> MessagePosition | None:
    queue = cursor.descriptor.queue
    assert queue is not None, "reads ask first whether the queue is still there"
    if look is Look.NOWHERE:
        return None
    if look is Look.CURRENT:
        current = queue.positions.find(cursor.position)
        is_there = current is not None and current.state is PositionState.AVAILABLE
        return current if is_there else None
    found = queue.positions.after(cursor.position, peek=look is Look.NEXT_TO_PEEK)
    return None if found is None else queue.positions.find(found)
