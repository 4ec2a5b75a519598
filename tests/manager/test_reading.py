"""Receiving and peeking, two-phase reads, reads by lookup identifier: what comes and which status.

Scenarios 26, 27 and 33 to 36 of the guide; waits are in test_waiting, cursors in test_cursors.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, ReadError, TransactionError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.manager.model import OpenQueueDescriptor, Queue, ReadResult, Transaction, WaitingRead
from falconmq.manager.positions import END, START
from falconmq.manager.reading import (
    SeekDirection,
    dequeue_message,
    dequeue_message_begin,
    dequeue_message_end,
    peek_message,
    peek_next_message,
    read_message_by_lookup_identifier,
    seek,
    seek_with_id,
    status_of_current,
)
from falconmq.manager.states import (
    AccessType,
    OperationType,
    PositionState,
    SeekAction,
    ShareMode,
)
from falconmq.manager.storing import enqueue_message
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import (
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    record_events,
    restart,
)
from tests.manager.readers import (
    body,
    given_cursor,
    given_reader,
    given_transaction,
    position_of,
    send,
    status,
    waits,
)
from tests.strategies.queues import seek_actions

FIRST, LAST, CURRENT = SeekAction.FIRST, SeekAction.LAST, SeekAction.CURRENT
NEXT, PREVIOUS = SeekAction.NEXT, SeekAction.PREVIOUS
READERS = (
    AccessType.RECEIVE,
    AccessType.PEEK,
    AccessType.RECEIVE_ADMIN,
    AccessType.PEEK_ADMIN,
)
RECEIVERS = (AccessType.RECEIVE, AccessType.RECEIVE_ADMIN)
Read = Callable[[], ReadResult | WaitingRead]


@pytest.fixture
def core() -> QueueManagerCore:
    return make_core()


@pytest.fixture
def queue(core: QueueManagerCore) -> Queue:
    return given_queue(core)


@pytest.fixture
def reader(core: QueueManagerCore, queue: Queue) -> OpenQueueDescriptor:
    return given_reader(core, queue)


def by_id(
    core: QueueManagerCore,
    reader: OpenQueueDescriptor,
    lookup_id: int,
    action: SeekAction,
    *,
    peek: bool = True,
) -> ReadResult:
    return read_message_by_lookup_identifier(core, reader, lookup_id, action, peek=peek)


# Receive


@pytest.mark.requirement(
    "DM-3.1.7.1.10-14", "DM-3.1.7.1.10-15", "DM-3.1.7.1.10-20", "DM-3.1.7.1.10-21",
    "DM-3.1.7.3.2-03",
)  # fmt: skip
def test_scenario_26_receive_takes_the_only_message(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given one message
    send(core, queue, "a")
    events = record_events(core)
    # when it is received
    read = dequeue_message(core, reader, timeout=0)
    # then it is handed out, deleted, and its sender may hear that it was received
    assert body(read) == "a"
    assert position_of(read).state is PositionState.DELETED
    assert events.reasons == [MessageClass.ACK_RECEIVE]
    assert bodies(queue) == []
    assert len(queue.positions) == 0


@pytest.mark.requirement("DM-3.1.1.11-02")
def test_receive_follows_the_order_of_the_queue(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given messages of several priorities, some of them in the store already
    for text, priority in (("c", 3), ("a", 7), ("d", 3), ("e", 0)):
        send(core, queue, text, priority=priority)
    commit(core)
    send(core, queue, "b", priority=4)
    # then they come by priority, and by age within one
    taken = [body(dequeue_message(core, reader, timeout=0)) for _ in range(5)]
    assert taken == ["a", "b", "c", "d", "e"]


def test_what_was_received_does_not_come_back_after_a_crash(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two stored messages, one of them received
    send(core, queue, "a", "b")
    commit(core)
    dequeue_message(core, reader, timeout=0)
    commit(core)
    # then after a crash the other one is there
    assert bodies(restart(core).queues[queue.number]) == [b"b"]


@pytest.mark.requirement("DM-3.1.7.1.10-03", "DM-3.1.7.1.10-04", "DM-3.1.7.1.15-02")
def test_scenario_27_an_empty_queue_without_time(
    core: QueueManagerCore, reader: OpenQueueDescriptor
) -> None:
    # given an empty queue and no time
    cursor = given_cursor(core, reader)
    ends = [
        status(dequeue_message(core, reader, timeout=0)),
        status(dequeue_message(core, reader, timeout=0, cursor=cursor)),
        status(peek_message(core, reader, timeout=0)),
        status(peek_message(core, reader, timeout=0, cursor=cursor)),
    ]
    # then receive through a cursor alone says "not found"; in no case is there a message
    assert ends == [0xC00E001B, 0xC00E0088, 0xC00E001B, 0xC00E001B]


@pytest.mark.requirement(
    "DM-3.1.7.1.10-05", "DM-3.1.7.1.11-02", "DM-3.1.7.1.12-03", "DM-3.1.7.1.13-04",
    "DM-3.1.7.1.14-03", "DM-3.1.7.1.15-03",
)  # fmt: skip
def test_every_read_on_a_deleted_queue_says_so(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a handle with a cursor and a locked message, whose queue was deleted
    send(core, queue, "a", "b")
    cursor = given_cursor(core, reader)
    locked = position_of(dequeue_message_begin(core, reader, timeout=0))
    reader.queue = None
    # when somebody reads
    ends = [
        status(dequeue_message(core, reader)),
        status(dequeue_message(core, reader, cursor=cursor)),
        status(dequeue_message_begin(core, reader)),
        dequeue_message_end(core, reader, locked, delete=True),
        status(by_id(core, reader, locked.lookup_id, CURRENT)),
        status(by_id(core, reader, locked.lookup_id, FIRST, peek=False)),
        status(peek_next_message(core, reader, cursor)),
        status(peek_message(core, reader)),
        status(peek_message(core, reader, cursor=cursor)),
    ]
    # then each read, whatever its kind, ends with the same status and nobody waits
    assert [int(end) for end in ends] == [0xC00E004B] * 9
    assert not queue.waiting


@pytest.mark.requirement("DM-3.1.7.1.10-01", "DM-3.1.7.1.11-01")
@pytest.mark.parametrize("read", [dequeue_message, dequeue_message_begin])
def test_a_receive_takes_a_time_a_cursor_a_transaction_and_a_tag(
    core: QueueManagerCore,
    queue: Queue,
    reader: OpenQueueDescriptor,
    read: Callable[..., ReadResult | WaitingRead],
) -> None:
    # given a read with everything a caller may say
    cursor, transaction = given_cursor(core, reader), given_transaction(core)
    wait = waits(read(core, reader, timeout=9, cursor=cursor, transaction=transaction, tag="mine"))
    # then it waits as it was told
    assert (wait.deadline, wait.cursor, wait.tag) == (9, cursor, "mine")
    # and takes what comes for the transaction
    send(core, queue, "a")
    assert body(wait) == "a"
    assert position_of(wait).transaction is transaction


# Receive in a transaction


@pytest.mark.requirement("DM-3.1.7.1.10-18", "DM-3.1.1.11-03")
def test_a_receive_in_a_transaction_locks_the_message(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two messages and a transaction
    send(core, queue, "a", "b")
    transaction = given_transaction(core)
    events = record_events(core)
    # when the first is received in it
    position = position_of(dequeue_message(core, reader, timeout=0, transaction=transaction))
    # then it is locked, the transaction knows what to do, and nobody was told
    assert position.state is PositionState.LOCKED
    assert position.transaction is transaction
    (operation,) = transaction.operations
    assert operation.kind is OperationType.DEQUEUE
    assert operation.position is position
    assert operation.reason == MessageClass.ACK_RECEIVE
    assert events.reasons == []
    # and other readers get the next one
    assert body(dequeue_message(core, reader, timeout=0)) == "b"
    assert len(queue.positions) == 1


@pytest.mark.requirement("DM-3.1.7.1.10-22")
def test_a_transaction_without_an_identifier_is_none(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a transaction with the null identifier
    (a, *_) = send(core, queue, "a", "b")
    nothing = Transaction(NULL_UUID)
    # when messages are received in it
    first = dequeue_message(core, reader, timeout=0, transaction=nothing)
    second = read_message_by_lookup_identifier(
        core, reader, a, FIRST, peek=False, transaction=nothing
    )
    # then they are gone as without a transaction
    assert (body(first), body(second)) == ("a", "b")
    assert not nothing.operations
    assert len(queue.positions) == 0


@pytest.mark.requirement("DM-3.1.7.1.11-04", "DM-3.1.7.1.10-02")
def test_a_transaction_wins_over_a_two_phase_read(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a two-phase read in a transaction
    send(core, queue, "a")
    transaction = given_transaction(core)
    begun = dequeue_message_begin(core, reader, timeout=0, transaction=transaction)
    # then the transaction has it
    position = position_of(begun)
    assert position.transaction is transaction
    assert [operation.position for operation in transaction.operations] == [position]
    # and an end that does not know of the transaction cannot take it away
    ended = dequeue_message_end(core, reader, position, delete=True)
    assert ended is MqStatus.TRANSACTION_SEQUENCE
    assert position.state is PositionState.LOCKED


@pytest.mark.parametrize("ends", ["over", "prepared", "replaced"])
def test_no_read_in_a_transaction_that_is_over(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, ends: str
) -> None:
    # given a message, and a transaction that is over or has promised to commit
    (a,) = send(core, queue, "a")
    transaction = given_transaction(core)
    if ends == "over":
        del core.transactions[transaction.identifier]
    if ends == "replaced":
        given_transaction(core)
    transaction.is_prepared = ends == "prepared"
    # when somebody reads in it
    for read in (dequeue_message, dequeue_message_begin):
        with pytest.raises(TransactionError) as caught:
            read(core, reader, transaction=transaction)
        assert caught.value.status is MqStatus.TRANSACTION_SEQUENCE
    with pytest.raises(TransactionError) as caught:
        read_message_by_lookup_identifier(
            core, reader, a, CURRENT, peek=False, transaction=transaction
        )
    # then it is refused and the message stays
    assert caught.value.status is MqStatus.TRANSACTION_SEQUENCE
    assert bodies(queue) == [b"a"]


# Two-phase reads


@pytest.mark.requirement("DM-3.1.7.1.10-19", "DM-3.1.7.1.11-05", "DM-3.1.7.1.12-06",
                         "DM-3.1.7.1.12-09", "DM-3.1.1.11-03")  # fmt: skip
def test_scenario_33_begin_locks_and_end_deletes(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two messages, the first locked by a two-phase read
    send(core, queue, "a", "b")
    events = record_events(core)
    begun = dequeue_message_begin(core, reader, timeout=0)
    position = position_of(begun)
    assert body(begun) == "a"
    assert queue.positions.held == {position.lookup_id: position}
    # then it is still in the queue but other readers do not see it
    assert len(queue.positions) == 2
    assert body(peek_message(core, reader, timeout=0)) == "b"
    assert events.reasons == []
    # when its reader has it
    assert dequeue_message_end(core, reader, position, delete=True) is MqStatus.OK
    # then it is gone as a received message
    assert events.reasons == [MessageClass.ACK_RECEIVE]
    assert position.state is PositionState.DELETED
    assert len(queue.positions) == 1


@pytest.mark.requirement("DM-3.1.7.1.12-08", "DM-3.1.7.1.12-04", "DM-3.1.7.1.12-02",
                         "DM-3.1.7.2.2-07")  # fmt: skip
def test_scenario_33_end_gives_back_and_cannot_be_repeated(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given the first of two messages locked
    send(core, queue, "a", "b")
    size = queue.total_bytes
    events = record_events(core)
    position = position_of(dequeue_message_begin(core, reader, timeout=0))
    # when its reader gives it back
    assert dequeue_message_end(core, reader, position, delete=False) is MqStatus.OK
    # then it is where it was, and nothing was deleted or counted twice
    assert bodies(queue) == [b"a", b"b"]
    assert [p for _, p in events.available] == [position]
    assert events.reasons == []
    assert queue.total_bytes == size
    # and a second end is out of sequence, whatever it wants
    for delete in (True, False):
        again = dequeue_message_end(core, reader, position, delete=delete)
        assert again == 0xC00E0051
    assert bodies(queue) == [b"a", b"b"]


def test_an_end_after_the_end_that_deleted_is_out_of_sequence(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    send(core, queue, "a")
    position = position_of(dequeue_message_begin(core, reader, timeout=0))
    dequeue_message_end(core, reader, position, delete=True)
    for delete, transactional in ((True, False), (False, False), (True, True)):
        again = dequeue_message_end(
            core, reader, position, delete=delete, transactional=transactional
        )
        assert again is MqStatus.TRANSACTION_SEQUENCE
    assert len(queue.positions) == 0


def test_an_end_through_the_handle_of_another_queue_is_out_of_sequence(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    send(core, queue, "a")
    position = position_of(dequeue_message_begin(core, reader, timeout=0))
    other = given_reader(core, given_queue(core, "other"))
    ended = dequeue_message_end(core, other, position, delete=True)
    assert ended is MqStatus.TRANSACTION_SEQUENCE
    assert position.state is PositionState.LOCKED


@pytest.mark.requirement("DM-3.1.7.1.12-07", "DM-3.1.1.11-04")
@pytest.mark.parametrize("delete", [True, False])
def test_scenario_33_a_purge_in_between_decides(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, delete: bool
) -> None:
    # given a locked message of a queue that is purged
    send(core, queue, "a")
    events = record_events(core)
    position = position_of(dequeue_message_begin(core, reader, timeout=0))
    position.state = PositionState.PURGE_PENDING
    # when the read ends, one way or the other
    assert dequeue_message_end(core, reader, position, delete=delete) is MqStatus.OK
    # then the message is gone as a purged one
    assert events.reasons == [MessageClass.NACK_Q_PURGED]
    assert len(queue.positions) == 0


@pytest.mark.requirement("DM-3.1.7.1.12-05", "DM-3.1.7.1.12-01")
@pytest.mark.parametrize("delete", [True, False])
def test_scenario_34_the_end_in_a_transaction_changes_nothing(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, delete: bool
) -> None:
    # given a two-phase read in a transaction
    send(core, queue, "a")
    transaction = given_transaction(core)
    begun = dequeue_message_begin(core, reader, timeout=0, transaction=transaction)
    position = position_of(begun)
    # when it ends, the caller knowing of the transaction
    ended = dequeue_message_end(core, reader, position, delete=delete, transactional=True)
    # then all is well, and the transaction has yet to decide
    assert ended is MqStatus.OK
    assert position.state is PositionState.LOCKED
    assert position.transaction is transaction


@pytest.mark.requirement("DM-3.1.1.11-12")
def test_a_two_phase_read_does_not_outlive_the_queue_manager(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a stored message that a reader elsewhere has locked
    send(core, queue, "a")
    commit(core)
    dequeue_message_begin(core, reader, timeout=0)
    commit(core)
    # when the queue manager crashes and comes back
    again = restart(core).queues[queue.number]
    # then the message can be read
    assert bodies(again) == [b"a"]


# Peek


@pytest.mark.requirement("DM-3.1.7.1.15-09", "DM-3.1.7.1.15-12")
def test_a_peek_shows_the_first_message_and_changes_nothing(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two messages
    send(core, queue, "a", "b")
    events = record_events(core)
    # when somebody peeks, twice
    shown = [peek_message(core, reader, timeout=0) for _ in range(2)]
    # then it is the first both times, and it stays available
    assert [body(read) for read in shown] == ["a", "a"]
    assert {position_of(read).state for read in shown} == {PositionState.AVAILABLE}
    assert events.reasons == []
    assert bodies(queue) == [b"a", b"b"]


@pytest.mark.requirement("DM-3.1.7.1.15-09")
def test_a_peek_shows_a_locked_message_that_allows_it(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a locked message that may be peeked at, before an available one
    send(core, queue, "a", allow_peek_when_locked=True)
    send(core, queue, "b")
    position = position_of(dequeue_message_begin(core, reader, timeout=0))
    # then a peek shows it, still locked; a receive passes it by
    assert body(peek_message(core, reader, timeout=0)) == "a"
    assert position.state is PositionState.LOCKED
    assert body(dequeue_message(core, reader, timeout=0)) == "b"


@pytest.mark.requirement("DM-3.1.7.1.15-10")
def test_a_peek_into_an_empty_queue_waits(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    read = waits(peek_message(core, reader, timeout=3))
    assert (read.is_destructive, read.tag, read.cursor) == (False, None, None)
    send(core, queue, "a")
    assert body(read) == "a"
    assert position_of(read).state is PositionState.AVAILABLE
    assert bodies(queue) == [b"a"]


# Access


@pytest.mark.requirement("DM-3.1.1.17-15", "DM-3.1.1.17-16", "DM-3.1.1.17-17", "DM-3.1.1.17-18",
                         "DM-3.1.1.17-19", "DM-3.1.1.17-20", "DM-3.1.1.17-21")  # fmt: skip
@pytest.mark.parametrize("access", AccessType)
def test_a_handle_allows_what_it_was_opened_for(
    core: QueueManagerCore, queue: Queue, access: AccessType
) -> None:
    # given a handle opened with one of the six kinds of access
    (a, *_) = send(core, queue, *"abcdef")
    reader = given_reader(core, queue, access)
    locker = given_reader(core, queue)
    locked = position_of(dequeue_message_begin(core, locker, timeout=0))
    peeks: list[Read] = [
        lambda: peek_message(core, reader, timeout=0),
        lambda: by_id(core, reader, a, NEXT),
        lambda: peek_message(core, reader, timeout=0, cursor=given_cursor(core, reader)),
    ]
    receives: list[Read] = [
        lambda: dequeue_message(core, reader, timeout=0),
        lambda: dequeue_message_begin(core, reader, timeout=0),
        lambda: by_id(core, reader, a, NEXT, peek=False),
        lambda: ReadResult(dequeue_message_end(core, reader, locked, delete=True), locked),
    ]
    # then it shows messages if it may peek, and takes them if it may receive; else it is refused
    for reads, allowed in ((peeks, READERS), (receives, RECEIVERS)):
        for read in reads:
            if access in allowed:
                position_of(read())
                continue
            with pytest.raises(ReadError, match=access.name) as caught:
                read()
            assert caught.value.status is MqStatus.ACCESS_DENIED
            assert caught.value.hint
    assert len(queue.positions) == 6 if access not in RECEIVERS else 3


@pytest.mark.requirement("DM-3.1.1.17-22")
def test_access_and_share_modes_have_the_numbers_of_the_api() -> None:
    access = {kind.name: int(kind) for kind in AccessType}
    assert access == {
        "RECEIVE": 0x01,
        "SEND": 0x02,
        "MOVE": 0x04,
        "PEEK": 0x20,
        "RECEIVE_ADMIN": 0x81,
        "PEEK_ADMIN": 0xA0,
    }
    assert {mode.name: int(mode) for mode in ShareMode} == {"DENY_NONE": 0, "DENY_RECEIVE": 1}


def test_a_next_peek_needs_the_access_too(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a cursor whose handle may not read any more
    send(core, queue, "a", "b")
    cursor = given_cursor(core, reader)
    peek_message(core, reader, timeout=0, cursor=cursor)
    reader.access = AccessType.SEND
    with pytest.raises(ReadError):
        peek_next_message(core, reader, cursor, timeout=0)


def test_journals_and_dead_letter_queues_are_read_like_queues(core: QueueManagerCore) -> None:
    # given a queue whose messages are journaled, and a dead letter
    queue = given_queue(core, journaling=True)
    assert queue.journal is not None
    send(core, queue, "a")
    dequeue_message(core, given_reader(core, queue), timeout=0)
    send(core, core.dead_letter, "dead")
    # then both are received, and leave no further copies
    for source, text in ((queue.journal, "a"), (core.dead_letter, "dead")):
        reader = given_reader(core, source)
        assert body(peek_message(core, reader, timeout=0)) == text
        assert body(dequeue_message(core, reader, timeout=0)) == text
        assert len(source.positions) == 0


# Target journaling


@pytest.mark.requirement("DM-3.1.7.1.10-24")
def test_a_received_message_leaves_a_copy_in_the_journal(core: QueueManagerCore) -> None:
    # given a queue that keeps a journal, and one that does not
    keeping = given_queue(core, "keeping", journaling=True)
    forgetting = given_queue(core, "forgetting")
    assert keeping.journal is not None
    assert forgetting.journal is not None
    for queue in (keeping, forgetting):
        send(core, queue, "at once", "locked", "two-phase", "shown", "by id")
        reader = given_reader(core, queue)
        # when messages are received, in one step, in two, by their number; locked; and shown
        dequeue_message(core, reader, timeout=0)
        dequeue_message(core, reader, timeout=0, transaction=given_transaction(core))
        position = position_of(dequeue_message_begin(core, reader, timeout=0))
        dequeue_message_end(core, reader, position, delete=True)
        peek_message(core, reader, timeout=0)
        by_id(core, reader, 0, LAST, peek=False)
    # then those that left through a receive are in the journal, the locked one is not yet
    assert bodies(keeping.journal) == [b"at once", b"two-phase", b"by id"]
    assert bodies(forgetting.journal) == []


# Seek


@pytest.fixture
def five(core: QueueManagerCore, queue: Queue) -> list[int]:
    """Five messages a to e, with c locked and d removed."""
    ids = send(core, queue, *"abcde")
    locked, removed = queue.positions.find(ids[2]), queue.positions.find(ids[3])
    assert locked is not None
    assert removed is not None
    queue.positions.hold(locked)
    queue.positions.unlink(removed)
    return ids


@pytest.mark.requirement(
    "DM-3.1.7.3.2-01", "DM-3.1.7.3.2-02", "DM-3.1.7.3.2-03", "DM-3.1.7.3.2-04",
    "DM-3.1.7.3.2-05", "DM-3.1.7.3.2-10",
)  # fmt: skip
def test_a_seek_forward_finds_the_next_available_place(queue: Queue, five: list[int]) -> None:
    a, b, c, d, e = five
    # from the start the first; from a place the next; past the locked and the removed one
    walk = [(START, a), (a, b), (b, e), (c, e), (d, e), (e, None), (END, None)]
    for initial, expected in walk:
        for peek in (True, False):
            found = seek(queue, initial, peek=peek)
            assert (found.lookup_id if found else None) == expected


@pytest.mark.requirement(
    "DM-3.1.7.3.2-06", "DM-3.1.7.3.2-07", "DM-3.1.7.3.2-08", "DM-3.1.7.3.2-01",
)  # fmt: skip
def test_a_seek_backward_finds_the_previous_available_place(queue: Queue, five: list[int]) -> None:
    a, b, c, d, e = five
    walk = [(END, e), (e, b), (d, b), (c, b), (b, a), (a, None), (START, None)]
    for initial, expected in walk:
        found = seek(queue, initial, peek=False, direction=SeekDirection.BACKWARD)
        assert (found.lookup_id if found else None) == expected


@pytest.mark.requirement("DM-3.1.7.3.2-09", "DM-3.1.7.3.2-10", "DM-3.1.1.12-03")
def test_a_seek_stops_at_a_locked_message_only_to_peek_and_only_if_it_allows_it(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two locked messages, the second of which may be peeked at
    send(core, queue, "closed")
    (opened,) = send(core, queue, "open", allow_peek_when_locked=True)
    for _ in range(2):
        dequeue_message_begin(core, reader, timeout=0)
    # then from both ends a peek finds the second, a receive nothing
    for initial, direction in (
        (START, SeekDirection.FORWARD),
        (END, SeekDirection.BACKWARD),
    ):
        found = seek(queue, initial, peek=True, direction=direction)
        assert found is not None
        assert found.lookup_id == opened
        assert seek(queue, initial, peek=False, direction=direction) is None


# Reads by lookup identifier


@pytest.mark.requirement(
    "DM-3.1.7.1.13-05", "DM-3.1.7.1.13-07", "DM-3.1.7.3.3-04", "DM-3.1.7.3.3-05",
    "DM-3.1.7.3.3-06", "DM-3.1.7.3.3-07", "DM-3.1.7.3.3-09", "DM-3.1.1.17-09", "DM-3.1.1.17-10",
    "DM-3.1.1.17-11", "DM-3.1.1.17-12", "DM-3.1.1.17-13", "DM-3.1.1.17-14",
)  # fmt: skip
def test_scenario_35_five_actions_over_five_messages_with_gaps(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, five: list[int]
) -> None:
    a, b, c, _, e = five
    # given a, b, e available, c locked, d gone
    expected = {
        (0, FIRST): "a", (0, LAST): "e", (b, FIRST): "a", (b, LAST): "e",
        (a, CURRENT): "a", (b, CURRENT): "b", (e, CURRENT): "e",
        (a, NEXT): "b", (b, NEXT): "e", (c, NEXT): "e",
        (b, PREVIOUS): "a", (c, PREVIOUS): "b", (e, PREVIOUS): "b",
    }  # fmt: skip
    # then each action finds its message, and leaves it where it is
    for (lookup_id, action), text in expected.items():
        assert body(by_id(core, reader, lookup_id, action)) == text
    assert bodies(queue) == [b"a", b"b", b"e"]


@pytest.mark.requirement("DM-3.1.7.3.3-03", "DM-3.1.7.3.3-08", "DM-3.1.7.3.3-14",
                         "DM-3.1.7.1.13-06", "DM-3.1.7.3.3-02")  # fmt: skip
@pytest.mark.parametrize("peek", [True, False])
def test_scenario_35_what_is_not_there_is_not_found(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor, five: list[int], peek: bool
) -> None:
    a, _, _, d, e = five
    # given messages, and numbers that are none, or are of no message any more
    missing = [(i, action) for i in (0, d, e + 1) for action in (CURRENT, NEXT, PREVIOUS)]
    # then neither they nor what is behind the ends is found
    for lookup_id, action in [*missing, (e, NEXT), (a, PREVIOUS)]:
        assert status(by_id(core, reader, lookup_id, action, peek=peek)) == 0xC00E0088
    # and an empty queue has no first and no last message
    empty = given_reader(core, given_queue(core, "empty"))
    for action in (FIRST, LAST):
        assert status(by_id(core, empty, 0, action, peek=peek)) == 0xC00E0088
    assert bodies(queue) == [b"a", b"b", b"e"]


@pytest.mark.requirement("DM-3.1.7.3.3-10", "DM-3.1.7.3.3-11", "DM-3.1.7.3.3-13",
                         "DM-3.1.7.1.13-03")  # fmt: skip
def test_scenario_36_a_locked_message_by_its_number(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two locked messages, one of which may be peeked at
    (closed,) = send(core, queue, "closed")
    (opened,) = send(core, queue, "open", allow_peek_when_locked=True)
    for _ in range(2):
        dequeue_message_begin(core, reader, timeout=0)
    # then a peek is told that the first is in use, and shown the second
    assert status(by_id(core, reader, closed, CURRENT)) == 0xC00E0050
    assert body(by_id(core, reader, opened, CURRENT)) == "open"
    # and a receive finds neither
    for lookup_id in (closed, opened):
        assert status(by_id(core, reader, lookup_id, CURRENT, peek=False)) == 0xC00E0088


def test_a_message_before_its_senders_commit_cannot_be_read_by_number(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a message sent in a transaction that is still open
    stored = message(b"new", allow_peek_when_locked=True)
    enqueue_message(core, queue, stored, given_transaction(core))
    (lookup_id,) = queue.positions.lookup_ids()
    # then its number gives it to nobody, neither to peek nor to receive
    assert status(by_id(core, reader, lookup_id, CURRENT)) is MqStatus.TRANSACTION_USAGE
    taken = by_id(core, reader, lookup_id, CURRENT, peek=False)
    assert status(taken) is MqStatus.MESSAGE_NOT_FOUND
    assert status(by_id(core, reader, 0, FIRST)) is MqStatus.MESSAGE_NOT_FOUND


@pytest.mark.requirement("DM-3.1.7.3.3-15")
def test_a_purged_message_by_its_number_was_received(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a locked message of a queue that was purged
    (a,) = send(core, queue, "a", allow_peek_when_locked=True)
    position_of(dequeue_message_begin(core, reader, timeout=0)).state = PositionState.PURGE_PENDING
    # then a peek is told that it was received, a receive that it is not there
    assert status(by_id(core, reader, a, CURRENT)) == 0xC00E001D
    assert status(by_id(core, reader, a, CURRENT, peek=False)) == 0xC00E0088


@pytest.mark.requirement("DM-3.1.7.3.3-12")
def test_a_deleted_message_at_hand_was_received(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given a message that was received, whose place somebody still has in his hands
    send(core, queue, "a")
    position = position_of(dequeue_message(core, reader, timeout=0))
    # then the rule for a message by its number says so
    assert status_of_current(queue, position, peek=True) == 0xC00E001D
    assert status_of_current(queue, position, peek=False) == 0xC00E0088


@pytest.mark.requirement("DM-3.1.7.1.13-10", "DM-3.1.7.1.13-11")
def test_a_receive_by_number_deletes_the_message(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given three messages
    _, b, _ = send(core, queue, *"abc")
    events = record_events(core)
    # when the middle one is received by its number
    read = by_id(core, reader, b, CURRENT, peek=False)
    # then it is handed out and gone as received
    assert body(read) == "b"
    assert events.reasons == [MessageClass.ACK_RECEIVE]
    assert bodies(queue) == [b"a", b"c"]


@pytest.mark.requirement("DM-3.1.7.1.13-08", "DM-3.1.7.1.13-09", "DM-3.1.7.1.13-01")
def test_a_receive_by_number_locks_in_a_transaction_and_in_two_phases(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    # given two messages and a transaction
    a, b = send(core, queue, "a", "b")
    transaction = given_transaction(core)
    events = record_events(core)
    # when one is received in the transaction, the other in two phases
    inside = read_message_by_lookup_identifier(
        core, reader, a, CURRENT, peek=False, transaction=transaction
    )
    begun = read_message_by_lookup_identifier(core, reader, b, CURRENT, peek=False, two_phase=True)
    # then both are locked, and the transaction knows of the first
    assert (body(inside), body(begun)) == ("a", "b")
    assert position_of(inside).state is position_of(begun).state is PositionState.LOCKED
    (operation,) = transaction.operations
    assert (operation.kind, operation.reason) == (OperationType.DEQUEUE, MessageClass.ACK_RECEIVE)
    assert operation.position is position_of(inside)
    assert position_of(begun).transaction is None
    assert events.reasons == []


@pytest.mark.requirement("DM-3.1.7.1.13-02")
def test_a_peek_by_number_is_no_part_of_a_transaction(
    core: QueueManagerCore, queue: Queue, reader: OpenQueueDescriptor
) -> None:
    (a,) = send(core, queue, "a")
    with pytest.raises(TransactionError) as caught:
        read_message_by_lookup_identifier(
            core, reader, a, CURRENT, peek=True, transaction=given_transaction(core)
        )
    assert caught.value.status is MqStatus.TRANSACTION_USAGE


@pytest.mark.requirement("DM-3.1.7.3.3-01")
@given(
    st.lists(st.sampled_from(["available", "locked", "open", "purged", "gone"]), max_size=8),
    st.integers(0, 9),
    seek_actions,
    st.booleans(),
)
def test_a_seek_with_id_agrees_with_a_plain_list(
    states: list[str], index: int, action: SeekAction, peek: bool
) -> None:
    # given a queue with messages in all states
    core = make_core()
    queue = given_queue(core)
    ids = [send(core, queue, state, allow_peek_when_locked=state == "open")[0] for state in states]
    for lookup_id, state in zip(ids, states, strict=True):
        position = queue.positions.find(lookup_id)
        assert position is not None
        if state == "gone":
            queue.positions.unlink(position)
        elif state != "available":
            queue.positions.hold(position)
        if state == "purged":
            position.state = PositionState.PURGE_PENDING
    shown = [i for i, s in enumerate(states) if s == "available" or (peek and s == "open")]
    is_known = index < len(states) and states[index] != "gone"
    # when one is asked for
    wanted = ids[index] if index < len(ids) else 1
    answer, found = seek_with_id(queue, wanted, action, peek=peek)
    # then it is the one that a look at the list gives
    candidates = {
        FIRST: shown[:1],
        LAST: shown[-1:],
        NEXT: [i for i in shown if i > index][:1] if is_known else [],
        PREVIOUS: [i for i in shown if i < index][-1:] if is_known else [],
        CURRENT: [i for i in shown if i == index],
    }[action]
    if candidates:
        assert answer is MqStatus.OK
        assert found is not None
        assert found.lookup_id == ids[candidates[0]]
        return
    assert found is None
    if action is CURRENT and peek and is_known:
        in_use = states[index] == "locked"
        assert answer == (0xC00E0050 if in_use else 0xC00E001D)
    else:
        assert answer == 0xC00E0088
