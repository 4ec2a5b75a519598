"""Cursors: their table, and what a reader sees who walks along a queue."""

from __future__ import annotations

import itertools

import pytest

from falconmq.errors import MqStatus, ReadError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.cursors import (
    LOOKS,
    STEPS,
    CursorEvent,
    CursorStatus,
    close_cursor,
    get_message_for_peek,
    get_next_message_for_dequeue,
    get_next_message_for_peek,
    message_available,
    open_cursor,
    wait_time_expired,
)
from falconmq.manager.model import Cursor, OpenQueueDescriptor, Queue
from falconmq.manager.positions import END, START, MessagePosition
from falconmq.manager.reading import dequeue_message, peek_message, peek_next_message
from falconmq.manager.states import AccessType, CursorState
from tests.manager.helpers import commit, given_queue, make_core, pass_time
from tests.manager.readers import body, given_cursor, given_reader, position_of, send, status, waits

UNREAD, READ = CursorState.UNREAD, CursorState.READ
WAIT_PEEK, WAIT_RECEIVE = CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE
SUCCEEDED, WAITING = CursorStatus.SUCCEEDED, CursorStatus.WAITING
Looked = tuple[CursorStatus, MessagePosition | None]


@pytest.fixture
def core() -> QueueManagerCore:
    return make_core()


@pytest.fixture
def queue(core: QueueManagerCore) -> Queue:
    return given_queue(core)


@pytest.fixture
def reader(core: QueueManagerCore, queue: Queue) -> OpenQueueDescriptor:
    return given_reader(core, queue)


@pytest.fixture
def cursor(core: QueueManagerCore, reader: OpenQueueDescriptor) -> Cursor:
    return given_cursor(core, reader)


def take_first(core: QueueManagerCore, queue: Queue) -> str:
    """Another reader receives the first message."""
    return body(dequeue_message(core, given_reader(core, queue), timeout=0))


# The table


def raise_event(cursor: Cursor, event: CursorEvent, arrived: MessagePosition) -> Looked | None:
    """One event of 3.2.7."""
    match event:
        case CursorEvent.PEEK:
            return get_message_for_peek(cursor)
        case CursorEvent.PEEK_NEXT:
            return get_next_message_for_peek(cursor)
        case CursorEvent.DEQUEUE | CursorEvent.DEQUEUE_NO_WAIT:
            no_wait = event is CursorEvent.DEQUEUE_NO_WAIT
            return get_next_message_for_dequeue(cursor, no_wait=no_wait)
        case CursorEvent.MESSAGE_AVAILABLE:
            message_available(cursor, arrived)
        case CursorEvent.WAIT_TIME_EXPIRED:
            wait_time_expired(cursor)
    return None


def given_state(core: QueueManagerCore, queue: Queue, state: CursorState) -> tuple[Cursor, int]:
    """A cursor in a state, at the place of a message that is still there."""
    (lookup_id,) = send(core, queue, "current")
    cursor = given_cursor(core, given_reader(core, queue))
    cursor.position, cursor.state = lookup_id, state
    return cursor, lookup_id


# State, event, what is found, then: the next state, the answer, where the cursor is. Written from
# the guide, not from the code. "current": its own place, "next": the message behind it.
EXPECTED = [
    pytest.param(UNREAD, CursorEvent.PEEK, "next", READ, SUCCEEDED, "next", id="unread-peek",
                 marks=pytest.mark.requirement("DM-3.2.1.1-02", "DM-3.2.7.2-03")),
    pytest.param(UNREAD, CursorEvent.PEEK, "", WAIT_PEEK, WAITING, "current", id="unread-peek-end",
                 marks=pytest.mark.requirement("DM-3.2.1.1-03", "DM-3.2.7.2-02")),
    pytest.param(UNREAD, CursorEvent.PEEK_NEXT, "next", UNREAD,
                 CursorStatus.ILLEGAL_CURSOR_ACTION, "current", id="unread-peek-next",
                 marks=pytest.mark.requirement("DM-3.2.1.1-04", "DM-3.2.7.3-02")),
    pytest.param(UNREAD, CursorEvent.PEEK_NEXT, "", UNREAD,
                 CursorStatus.ILLEGAL_CURSOR_ACTION, "current", id="unread-peek-next-end"),
    pytest.param(UNREAD, CursorEvent.DEQUEUE, "next", UNREAD, SUCCEEDED, "next",
                 id="unread-dequeue",
                 marks=pytest.mark.requirement("DM-3.2.1.1-05", "DM-3.2.7.4-05")),
    pytest.param(UNREAD, CursorEvent.DEQUEUE, "", WAIT_RECEIVE, WAITING, "current",
                 id="unread-dequeue-end",
                 marks=pytest.mark.requirement("DM-3.2.1.1-06", "DM-3.2.7.4-04")),
    pytest.param(UNREAD, CursorEvent.DEQUEUE_NO_WAIT, "next", UNREAD, SUCCEEDED, "next",
                 id="unread-dequeue-no-wait"),
    pytest.param(UNREAD, CursorEvent.DEQUEUE_NO_WAIT, "", UNREAD, CursorStatus.NOT_FOUND,
                 "current", id="unread-dequeue-no-wait-end",
                 marks=pytest.mark.requirement("DM-3.2.7.4-03")),
    pytest.param(READ, CursorEvent.PEEK, "current", READ, SUCCEEDED, "current", id="read-peek",
                 marks=pytest.mark.requirement("DM-3.2.1.1-07", "DM-3.2.7.2-04")),
    pytest.param(READ, CursorEvent.PEEK, "next", READ, CursorStatus.ALREADY_RECEIVED, "current",
                 id="read-peek-taken", marks=pytest.mark.requirement("DM-3.2.7.2-05")),
    pytest.param(READ, CursorEvent.PEEK_NEXT, "next", READ, SUCCEEDED, "next",
                 id="read-peek-next",
                 marks=pytest.mark.requirement("DM-3.2.1.1-08", "DM-3.2.7.3-04")),
    pytest.param(READ, CursorEvent.PEEK_NEXT, "current", WAIT_PEEK, WAITING, "current",
                 id="read-peek-next-end",
                 marks=pytest.mark.requirement("DM-3.2.1.1-09", "DM-3.2.7.3-03")),
    pytest.param(READ, CursorEvent.DEQUEUE, "current", UNREAD, SUCCEEDED, "current",
                 id="read-dequeue",
                 marks=pytest.mark.requirement("DM-3.2.1.1-10", "DM-3.2.7.4-06")),
    pytest.param(READ, CursorEvent.DEQUEUE, "next", READ, CursorStatus.ALREADY_RECEIVED,
                 "current", id="read-dequeue-taken",
                 marks=pytest.mark.requirement("DM-3.2.1.1-11", "DM-3.2.7.4-07")),
    pytest.param(READ, CursorEvent.DEQUEUE_NO_WAIT, "current", UNREAD, SUCCEEDED, "current",
                 id="read-dequeue-no-wait"),
    pytest.param(READ, CursorEvent.DEQUEUE_NO_WAIT, "next", READ, CursorStatus.ALREADY_RECEIVED,
                 "current", id="read-dequeue-no-wait-taken"),
    pytest.param(WAIT_PEEK, CursorEvent.MESSAGE_AVAILABLE, "next", READ, None, "next",
                 id="wait-peek-available",
                 marks=pytest.mark.requirement(
                     "DM-3.2.1.1-12", "DM-3.2.7.5-01", "DM-3.2.7.5-03")),
    pytest.param(WAIT_PEEK, CursorEvent.WAIT_TIME_EXPIRED, "", UNREAD, None, "current",
                 id="wait-peek-expired",
                 marks=pytest.mark.requirement("DM-3.2.1.1-13", "DM-3.2.7.6-02")),
    pytest.param(WAIT_RECEIVE, CursorEvent.MESSAGE_AVAILABLE, "next", UNREAD, None, "next",
                 id="wait-receive-available",
                 marks=pytest.mark.requirement(
                     "DM-3.2.1.1-14", "DM-3.2.7.5-02", "DM-3.2.7.5-03")),
    pytest.param(WAIT_RECEIVE, CursorEvent.WAIT_TIME_EXPIRED, "", UNREAD, None, "end",
                 id="wait-receive-expired",
                 marks=pytest.mark.requirement(
                     "DM-3.2.1.1-15", "DM-3.2.7.6-01", "DM-3.2.7.6-02")),
]  # fmt: skip


@pytest.mark.requirement("DM-3.2.7.2-01", "DM-3.2.7.3-01", "DM-3.2.7.4-01")
@pytest.mark.parametrize(("state", "event", "there", "after", "answer", "place"), EXPECTED)
def test_every_event_in_every_state_ends_as_the_table_says(
    core: QueueManagerCore,
    queue: Queue,
    state: CursorState,
    event: CursorEvent,
    there: str,
    after: CursorState,
    answer: CursorStatus | None,
    place: str,
) -> None:
    # given a cursor, and the message at its place, the one behind it, or none
    cursor, current = given_state(core, queue, state)
    (behind,) = send(core, queue, "next")
    places = {"current": current, "next": behind, "end": END}
    arrived = queue.positions.find(behind)
    assert arrived is not None
    for lookup_id in {current, behind} - {places.get(there)}:
        position = queue.positions.find(lookup_id)
        assert position is not None
        queue.positions.unlink(position)
    # when the event comes
    looked = raise_event(cursor, event, arrived)
    # then state, answer and place are those of the table
    assert (cursor.state, cursor.position) == (after, places[place])
    if answer is None:
        assert looked is None
        return
    assert looked is not None
    assert looked[0] is answer
    found = None if looked[1] is None else looked[1].lookup_id
    assert found == (places[place] if answer is SUCCEEDED else None)


@pytest.mark.requirement("DM-3.2.1.1-01", "DM-3.2.1.2-04")
def test_the_table_covers_every_state_and_event() -> None:
    # given all events that look for a message
    looking = [e for e in CursorEvent if e not in (
        CursorEvent.MESSAGE_AVAILABLE, CursorEvent.WAIT_TIME_EXPIRED)]  # fmt: skip
    # then each has its place in both states in which nobody waits, and in no other
    assert set(LOOKS) == set(itertools.product((UNREAD, READ), looking))
    assert {s for s, _, _ in STEPS} == {s for s, _ in STEPS.values()} == set(CursorState)
    assert {state.name for state in CursorState} == {"UNREAD", "READ", "WAIT_PEEK", "WAIT_RECEIVE"}


@pytest.mark.requirement("DM-3.2.7.4-02")
def test_a_dequeue_passes_by_what_a_peek_would_show(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a locked message that may be peeked at
    send(core, queue, "a", allow_peek_when_locked=True)
    dequeue_message(core, reader, timeout=0, two_phase=True)
    # then a cursor peeks at it, but does not take it
    peeking, taking = given_cursor(core, reader), given_cursor(core, reader)
    assert get_message_for_peek(peeking)[0] is SUCCEEDED
    assert get_next_message_for_dequeue(taking, no_wait=True) == (CursorStatus.NOT_FOUND, None)


@pytest.mark.parametrize("waiting", [peek_message, dequeue_message])
def test_a_cursor_serves_one_read_at_a_time(
    core: QueueManagerCore, reader: OpenQueueDescriptor, cursor: Cursor, waiting: object
) -> None:
    # given a cursor whose read waits
    assert callable(waiting)
    waits(waiting(core, reader, timeout=None, cursor=cursor))
    state = cursor.state
    # when it is used for another read
    for read in (peek_message, dequeue_message):
        with pytest.raises(ReadError) as caught:
            read(core, reader, timeout=0, cursor=cursor)
        # then that is refused and changes nothing
        assert caught.value.status is MqStatus.ILLEGAL_CURSOR_ACTION
        assert "second cursor" in caught.value.hint
    with pytest.raises(ReadError):
        peek_next_message(core, reader, cursor, timeout=0)
    assert cursor.state is state


# Open and close


@pytest.mark.requirement(
    "DM-3.1.7.1.1-01", "DM-3.1.7.1.1-03", "DM-3.2.7.1-03", "DM-3.2.7.1-04", "DM-3.2.7.1-05",
    "DM-3.2.1.2-02", "DM-3.2.1.2-03", "DM-3.1.1.16-16",
)  # fmt: skip
def test_a_new_cursor_stands_before_the_first_message(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a queue with a message
    send(core, queue, "a")
    # when a cursor is opened
    cursor = given_cursor(core, reader)
    # then it belongs to the descriptor, is unread and before everything
    assert reader.cursors == [cursor]
    assert cursor.descriptor is reader
    assert (cursor.state, cursor.position) == (UNREAD, START)


@pytest.mark.requirement("DM-3.2-01", "DM-3.2.1.2-01", "DM-3.2.7.1-02")
def test_cursors_of_all_handles_have_different_handles_in_one_collection(
    core: QueueManagerCore, queue: Queue
) -> None:
    # given two handles of one queue and one of another
    readers = [given_reader(core, queue), given_reader(core, queue)]
    readers.append(given_reader(core, given_queue(core, "other")))
    # when each opens two cursors
    cursors = [given_cursor(core, reader) for reader in readers for _ in range(2)]
    # then the queue manager knows all six by their own handle
    assert core.cursors == {cursor.handle: cursor for cursor in cursors}
    assert len(core.cursors) == 6


@pytest.mark.requirement("DM-3.1.7.1.1-02", "DM-3.2.7.1-01")
def test_no_cursor_on_a_deleted_queue(core: QueueManagerCore, reader: OpenQueueDescriptor) -> None:
    # given a descriptor whose queue was deleted
    reader.queue = None
    # then it gets no cursor and nothing is created
    assert open_cursor(core, reader) is None
    assert not core.cursors
    assert not reader.cursors


@pytest.mark.parametrize("access", [AccessType.SEND, AccessType.MOVE])
def test_no_cursor_for_whoever_may_not_read(
    core: QueueManagerCore, queue: Queue, access: AccessType
) -> None:
    with pytest.raises(ReadError, match=f"opened with {access.name} access") as caught:
        open_cursor(core, given_reader(core, queue, access))
    assert caught.value.status is MqStatus.ACCESS_DENIED
    assert not core.cursors


@pytest.mark.requirement("DM-3.1.7.1.2-01", "DM-3.1.7.1.2-02", "DM-3.1.7.1.2-03",
                         "DM-3.1.7.1.2-04")  # fmt: skip
def test_closing_a_cursor_ends_its_wait_and_no_other(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given waits on two cursors, and one without
    closing, staying = given_cursor(core, reader), given_cursor(core, reader)
    read = waits(dequeue_message(core, reader, cursor=closing))
    others = [
        waits(dequeue_message(core, reader, cursor=staying)),
        waits(dequeue_message(core, reader)),
    ]
    # when the first cursor is closed
    close_cursor(core, closing)
    # then its read ends, is told about, and the cursor is gone
    assert status(read) is MqStatus.OPERATION_CANCELLED
    assert commit(core) == [read]
    assert list(queue.waiting) == others
    assert reader.cursors == [staying]
    assert closing.handle not in core.cursors
    # and closing it once more changes nothing
    close_cursor(core, closing)
    assert reader.cursors == [staying]


def test_a_cursor_of_a_deleted_queue_can_be_closed(
    core: QueueManagerCore, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    reader.queue = None
    close_cursor(core, cursor)
    assert not core.cursors
    assert not reader.cursors


def test_a_closed_cursor_and_a_strange_one_are_refused(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor that is closed, and one of another handle
    strange = given_cursor(core, given_reader(core, queue))
    close_cursor(core, cursor)
    # when somebody reads with them
    for wrong in (cursor, strange):
        with pytest.raises(ReadError) as peeked:
            peek_message(core, reader, timeout=0, cursor=wrong)
        with pytest.raises(ReadError) as received:
            dequeue_message(core, reader, timeout=0, cursor=wrong)
        with pytest.raises(ReadError) as peeked_next:
            peek_next_message(core, reader, wrong, timeout=0)
        # then the handle is named as bad
        for caught in (peeked, received, peeked_next):
            assert caught.value.status is MqStatus.INVALID_HANDLE


# Walks: scenarios 37 to 44


@pytest.mark.requirement("DM-3.1.7.1.14-04", "DM-3.1.7.1.14-08", "DM-3.1.7.1.15-04")
def test_scenario_37_a_walk_to_the_end_and_on(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given three messages
    send(core, queue, "a", "b", "c")
    # when a cursor walks along them
    walk = [peek_message(core, reader, timeout=0, cursor=cursor)]
    walk += [peek_next_message(core, reader, cursor, timeout=0) for _ in range(2)]
    assert [body(step) for step in walk] == ["a", "b", "c"]
    # and waits at the end for nothing
    read = waits(peek_next_message(core, reader, cursor, timeout=2))
    pass_time(core, 2)
    assert status(read) is MqStatus.IO_TIMEOUT
    # then it is unread: the next of nothing is illegal, but a new message shows
    again = peek_next_message(core, reader, cursor, timeout=0)
    assert status(again) is MqStatus.ILLEGAL_CURSOR_ACTION
    send(core, queue, "d")
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "d"


@pytest.mark.requirement("DM-3.1.7.1.14-05", "DM-3.1.7.1.14-02")
def test_scenario_38_peek_next_on_a_fresh_cursor_is_illegal(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    send(core, queue, "a", "b")
    read = peek_next_message(core, reader, cursor, timeout=5)
    assert status(read) is MqStatus.ILLEGAL_CURSOR_ACTION


@pytest.mark.requirement("DM-3.1.7.1.10-09", "DM-3.1.7.1.15-05")
def test_scenario_39_another_reader_takes_what_the_cursor_showed(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor at a, and another reader who takes a
    send(core, queue, "a", "b")
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "a"
    assert take_first(core, queue) == "a"
    # then neither peek nor receive pretends that it was still there, with time or without
    for timeout in (0, 5):
        shown = peek_message(core, reader, timeout=timeout, cursor=cursor)
        assert status(shown) is MqStatus.MESSAGE_ALREADY_RECEIVED
        taken = dequeue_message(core, reader, timeout=timeout, cursor=cursor)
        assert status(taken) is MqStatus.MESSAGE_ALREADY_RECEIVED
    # and the walk goes on
    assert body(peek_next_message(core, reader, cursor, timeout=0)) == "b"


def test_a_message_that_another_reader_locked_is_taken_and_may_come_back(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor at a, which another reader has locked
    send(core, queue, "a", "b")
    peek_message(core, reader, timeout=0, cursor=cursor)
    locked = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    taken = peek_message(core, reader, timeout=0, cursor=cursor)
    assert status(taken) is MqStatus.MESSAGE_ALREADY_RECEIVED
    # when he gives it back
    queue.positions.release(locked)
    # then the cursor shows it again
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "a"


@pytest.mark.requirement("DM-3.1.7.1.10-08", "DM-3.2.1.2-05")
def test_scenario_40_receive_what_was_peeked_then_peek_the_next(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    send(core, queue, "a", "b")
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "a"
    assert body(dequeue_message(core, reader, timeout=0, cursor=cursor)) == "a"
    # after a receive the cursor is unread: next is illegal, the current one is b
    illegal = peek_next_message(core, reader, cursor, timeout=0)
    assert status(illegal) is MqStatus.ILLEGAL_CURSOR_ACTION
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "b"


def test_scenario_41_a_fresh_cursor_receives_one_after_the_other(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    send(core, queue, "a", "b", "c")
    taken = [dequeue_message(core, reader, timeout=0, cursor=cursor) for _ in range(3)]
    assert [body(read) for read in taken] == ["a", "b", "c"]
    assert len(queue.positions) == 0


@pytest.mark.requirement("DM-3.1.7.1.10-11", "DM-3.1.7.1.10-12", "DM-3.2.1.2-06")
def test_scenario_42_a_waiting_receive_moves_the_cursor_to_what_came(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor that waits to receive
    read = waits(dequeue_message(core, reader, cursor=cursor))
    assert (cursor.state, read.cursor, read.is_destructive) == (WAIT_RECEIVE, cursor, True)
    # when d comes, and e behind it
    send(core, queue, "d", "e")
    # then d is received, the cursor unread at its place, and the next peek shows e
    assert body(read) == "d"
    assert (cursor.state, cursor.position) == (UNREAD, position_of(read).lookup_id)
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "e"


@pytest.mark.requirement("DM-3.1.7.1.10-10", "DM-3.1.7.1.10-13", "DM-3.2.7.6-03")
def test_scenario_43_a_timed_out_receive_leaves_the_cursor_at_the_end(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor that waited in vain to receive
    read = waits(dequeue_message(core, reader, timeout=3, cursor=cursor))
    pass_time(core, 3)
    assert status(read) is MqStatus.IO_TIMEOUT
    assert (cursor.state, cursor.position) == (UNREAD, END)
    # when e comes and nobody waits
    send(core, queue, "e")
    # then this cursor does not see it, a new one does
    missed = dequeue_message(core, reader, timeout=0, cursor=cursor)
    assert status(missed) is MqStatus.MESSAGE_NOT_FOUND
    fresh = given_cursor(core, reader)
    assert body(peek_message(core, reader, timeout=0, cursor=fresh)) == "e"
    # and only a message that comes while it waits brings it back
    waiting = waits(peek_message(core, reader, cursor=cursor))
    (place,) = send(core, queue, "f")
    assert body(waiting) == "f"
    assert (cursor.state, cursor.position) == (READ, place)


def test_scenario_44_what_arrives_behind_the_cursor_is_not_seen(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor at a message of priority 3
    send(core, queue, "a", priority=3)
    assert body(peek_message(core, reader, timeout=0, cursor=cursor)) == "a"
    # when an urgent message arrives before it and a lazy one after it
    send(core, queue, "urgent", priority=7)
    send(core, queue, "lazy", priority=0)
    # then the walk goes on to the lazy one
    assert body(peek_next_message(core, reader, cursor, timeout=0)) == "lazy"


# Waits of cursors that peek


@pytest.mark.requirement("DM-3.1.7.1.15-06", "DM-3.1.7.1.15-07")
def test_a_peek_that_waits_shows_what_came_and_leaves_it(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor that waits to peek, and a receiver behind it
    read = waits(peek_message(core, reader, timeout=9, cursor=cursor))
    assert (cursor.state, read.is_destructive, read.tag) == (WAIT_PEEK, False, None)
    assert (read.cursor, read.deadline) == (cursor, 9)
    receiver = waits(dequeue_message(core, reader))
    # when a message comes
    send(core, queue, "a")
    # then both have it: the peek let the next reader go on
    assert body(read) == body(receiver) == "a"
    assert (cursor.state, cursor.position) == (READ, position_of(read).lookup_id)


@pytest.mark.requirement("DM-3.1.7.1.15-08")
def test_a_peek_that_waits_in_vain_leaves_the_cursor_in_its_place(
    core: QueueManagerCore, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    read = waits(peek_message(core, reader, timeout=1, cursor=cursor))
    pass_time(core, 1)
    assert status(read) is MqStatus.IO_TIMEOUT
    assert (cursor.state, cursor.position) == (UNREAD, START)


@pytest.mark.requirement("DM-3.1.7.1.14-06", "DM-3.1.7.1.14-07")
def test_a_peek_next_that_waits_goes_on_to_what_came(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given two cursors at the last message, waiting for the next
    send(core, queue, "a")
    peek_message(core, reader, timeout=0, cursor=cursor)
    read = waits(peek_next_message(core, reader, cursor, timeout=4))
    assert (read.is_destructive, read.tag, read.cursor) == (False, None, cursor)
    assert read.deadline == 4
    other = given_cursor(core, reader)
    peek_message(core, reader, timeout=0, cursor=other)
    second = waits(peek_next_message(core, reader, other, timeout=4))
    # when b comes
    (place,) = send(core, queue, "b")
    # then both waiting cursors are at it
    assert body(read) == body(second) == "b"
    assert (cursor.state, cursor.position) == (READ, place)


def test_a_waiting_cursor_is_moved_to_an_urgent_message_before_its_place(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # given a cursor that has shown a and waits for the next
    send(core, queue, "a")
    peek_message(core, reader, timeout=0, cursor=cursor)
    read = waits(peek_next_message(core, reader, cursor))
    # when an urgent message arrives, it is delivered wherever its place is
    send(core, queue, "urgent", priority=7)
    assert body(read) == "urgent"
    # then the walk goes on from there, so a shows once more
    assert body(peek_next_message(core, reader, cursor, timeout=0)) == "a"


@pytest.mark.requirement("DM-3.1.7.1.10-07")
def test_timeout_zero_at_the_end_differs_for_peek_and_receive(
    core: QueueManagerCore, reader: OpenQueueDescriptor, cursor: Cursor
) -> None:
    # a peek without time is a wait that fails at once
    assert status(peek_message(core, reader, timeout=0, cursor=cursor)) is MqStatus.IO_TIMEOUT
    assert (cursor.state, cursor.position) == (UNREAD, START)
    # a receive without time finds nothing and leaves the cursor alone
    taken = dequeue_message(core, reader, timeout=0, cursor=cursor)
    assert status(taken) is MqStatus.MESSAGE_NOT_FOUND
    assert (cursor.state, cursor.position) == (UNREAD, START)
