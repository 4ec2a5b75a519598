"""Copies of messages: target journals, the system journal, dead letters (guide to MQDMPR, 8.9)."""

from __future__ import annotations

import pytest

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.journaling import journal_sent_message
from falconmq.manager.model import Queue
from falconmq.manager.moving import move_message
from falconmq.manager.queues import delete_queue, open_subqueue, purge_queue
from falconmq.manager.reading import dequeue_message, dequeue_message_end, peek_message
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.message import Journal
from tests.manager.helpers import (
    STRANGER,
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    only,
    pass_time,
    positions,
    record_events,
    restart,
    same,
)
from tests.manager.readers import given_reader, position_of, send

DEAD_LETTER, JOURNAL = Journal.DEAD_LETTER, Journal.JOURNAL


def journal_of(queue: Queue) -> Queue:
    assert queue.journal is not None
    return queue.journal


def receive(core: QueueManagerCore, queue: Queue) -> None:
    position_of(dequeue_message(core, given_reader(core, queue), timeout=0))


# Target journaling


def test_a_message_that_was_read_leaves_a_copy_in_the_journal_of_its_queue() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    send(core, queue, "a", priority=6)
    original = only(queue)
    events = record_events(core)
    receive(core, queue)
    copy = only(journal_of(queue))
    assert bytes(copy.message.data) == bytes(original.message.data)
    assert copy.lookup_id != original.lookup_id
    assert copy.lookup_id >> 56 == original.lookup_id >> 56
    assert [q for q, _ in events.available] == []  # nobody hears of a copy
    commit(core)
    assert bodies(journal_of(same(restart(core), queue))) == [b"a"]


def test_without_journaling_there_is_no_copy() -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a")
    receive(core, queue)
    assert bodies(journal_of(queue)) == []


def test_only_reading_makes_a_copy() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    send(core, queue, "expires", ttbr=10)
    send(core, queue, "moves")
    pass_time(core, 10)
    move_message(core, only(queue), core.dead_letter)
    send(core, queue, "peeked and purged")
    peek_message(core, given_reader(core, queue), timeout=0)
    purge_queue(core, queue)
    assert bodies(journal_of(queue)) == []


def test_a_read_in_a_transaction_is_journaled_by_its_commit() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True, transactional=True)
    send(core, queue, "a", transactional=True)
    for end, expected in ((abort_transaction, []), (commit_transaction, [b"a"])):
        transaction = create_transaction(core)
        reader = given_reader(core, queue)
        dequeue_message(core, reader, timeout=0, transaction=transaction)
        assert bodies(journal_of(queue)) == []
        end(core, transaction.identifier)
        assert bodies(journal_of(queue)) == expected
    commit(core)
    core = restart(core)
    assert bodies(same(core, queue)) == []
    assert bodies(journal_of(same(core, queue))) == [b"a"]


def test_a_two_phase_read_is_journaled_by_its_end() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    send(core, queue, "a")
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    assert bodies(journal_of(queue)) == []
    dequeue_message_end(core, reader, held, delete=True)
    assert bodies(journal_of(queue)) == [b"a"]


def test_reading_a_journal_leaves_no_copy() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    send(core, queue, "a")
    receive(core, queue)
    receive(core, journal_of(queue))
    assert bodies(journal_of(queue)) == []


def test_what_is_read_from_a_subqueue_goes_to_the_journal_of_its_queue() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    subqueue = open_subqueue(core, queue, "late")
    send(core, queue, "a")
    move_message(core, only(queue), subqueue)
    receive(core, subqueue)
    assert bodies(journal_of(queue)) == [b"a"]


def test_a_full_journal_lets_the_reader_read() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True, journal_quota_kilobytes=1)
    send(core, queue, "a" * 600, "b" * 600)
    for _ in range(2):
        receive(core, queue)
    assert bodies(journal_of(queue)) == [b"a" * 600]


# The sender's journal


@pytest.mark.requirement("DM-3.1.1.12-52", "DM-3.1.1.12-54")
@pytest.mark.parametrize(("journal", "copies"), [(JOURNAL, [b"a"]), (DEAD_LETTER, []), (0, [])])
def test_a_sender_who_wants_a_copy_of_what_was_delivered_gets_one(
    journal: int, copies: list[bytes]
) -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a", journal=journal)
    assert bodies(core.journal) == copies
    # and only one, however often the message comes back
    reader = given_reader(core, queue)
    held = position_of(dequeue_message(core, reader, timeout=0, two_phase=True))
    dequeue_message_end(core, reader, held, delete=False)
    move_message(core, only(queue), open_subqueue(core, queue, "late"))
    assert bodies(core.journal) == copies


@pytest.mark.requirement("DM-3.1.1.12-52")
def test_the_copy_is_made_when_the_transaction_delivers() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    transaction = create_transaction(core)
    sent = message(b"a", transactional=True, journal=JOURNAL)
    enqueue_message(core, queue, sent, transaction)
    assert bodies(core.journal) == []
    commit_transaction(core, transaction.identifier)
    assert bodies(core.journal) == [b"a"]


@pytest.mark.requirement("DM-3.1.1.12-52")
def test_a_message_from_elsewhere_has_its_journal_elsewhere() -> None:
    core = make_core()
    send(core, given_queue(core), "a", journal=JOURNAL, source=STRANGER)
    assert bodies(core.journal) == []


@pytest.mark.requirement("DM-3.1.1.12-53")
def test_a_full_system_journal_drops_the_copy() -> None:
    core = make_core(journal_quota_kilobytes=1)
    assert not journal_sent_message(core, message())
    sent = message(bytes(600), journal=JOURNAL)
    assert journal_sent_message(core, sent)
    assert not journal_sent_message(core, sent)
    assert len(positions(core.journal)) == 1
    # and a message that is moved there
    queue = given_queue(core)
    send(core, queue, "a" * 600)
    move_message(core, only(queue), core.journal)
    assert len(positions(core.journal)) == 1
    assert len(positions(queue)) == 0


# Dead letters


@pytest.mark.requirement("DM-3.1.1.12-56", "DM-3.1.1.12-58")
@pytest.mark.parametrize(("journal", "copies"), [(DEAD_LETTER, [b"a"]), (JOURNAL, []), (0, [])])
def test_an_expired_message_becomes_a_dead_letter_if_its_sender_asked(
    journal: int, copies: list[bytes]
) -> None:
    core = make_core()
    queue = given_queue(core)
    send(core, queue, "a", ttbr=10, journal=journal)
    pass_time(core, 10)
    commit(core)
    core = restart(core)
    assert bodies(same(core, queue)) == []
    assert bodies(core.dead_letter) == copies
    assert bodies(core.transactional_dead_letter) == []


@pytest.mark.requirement("DM-3.1.1.12-56")
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_transactional_dead_letter_is_kept_by_its_source(is_ours: bool) -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    source = {} if is_ours else {"source": STRANGER}
    send(core, queue, "a", ttbr=10, journal=DEAD_LETTER, transactional=True, **source)
    pass_time(core, 10)
    assert bodies(core.transactional_dead_letter) == ([b"a"] if is_ours else [])
    assert bodies(core.dead_letter) == []


@pytest.mark.requirement("DM-3.1.1.12-57")
def test_a_full_dead_letter_queue_drops_the_copy() -> None:
    core = make_core()
    core.dead_letter.properties.quota_kilobytes = 1
    queue = given_queue(core)
    for body in ("a", "b"):
        send(core, queue, body * 600, ttbr=10, journal=DEAD_LETTER)
    pass_time(core, 10)
    assert bodies(core.dead_letter) == [b"a" * 600]
    assert bodies(queue) == []


@pytest.mark.requirement("DM-3.1.1.12-05")
@pytest.mark.parametrize(
    ("path", "is_used"),
    [
        (r".\private$\my_dead", True),
        (r"sales01\PRIVATE$\My_Dead", True),
        (r".\private$\missing", False),
        (r"elsewhere\private$\my_dead", False),
        ("no path at all", False),
    ],
)
def test_an_application_may_have_a_dead_letter_queue_of_its_own(path: str, is_used: bool) -> None:
    core = make_core()
    queue, own = given_queue(core), given_queue(core, "my_dead")
    sent = message(b"a", ttbr=10, journal=DEAD_LETTER)
    sent.dead_letter_queue = path
    enqueue_message(core, queue, sent)
    commit(core)
    core = restart(core)
    pass_time(core, 10)
    assert bodies(same(core, own)) == ([b"a"] if is_used else [])
    assert bodies(core.dead_letter) == ([] if is_used else [b"a"])
    # and there it stays, whatever its time was
    commit(core)
    core = restart(core)
    events = record_events(core)
    pass_time(core, 1000)
    assert bodies(same(core, own)) == ([b"a"] if is_used else [])
    assert not events.deleted


@pytest.mark.requirement("DM-3.1.1.12-05")
def test_a_dead_letter_queue_of_the_wrong_kind_is_not_used() -> None:
    core = make_core()
    queue, own = given_queue(core, transactional=True), given_queue(core, "my_dead")
    sent = message(b"a", ttbr=10, journal=DEAD_LETTER, transactional=True)
    sent.dead_letter_queue = r".\private$\my_dead"
    enqueue_message(core, queue, sent)
    pass_time(core, 10)
    assert bodies(own) == []
    assert bodies(core.transactional_dead_letter) == [b"a"]


@pytest.mark.requirement("DM-3.1.1.12-05", "DM-3.1.1.12-58")
def test_naming_a_dead_letter_queue_is_not_asking_for_a_dead_letter() -> None:
    core = make_core()
    queue, own = given_queue(core), given_queue(core, "my_dead")
    sent = message(b"a", ttbr=10)
    sent.dead_letter_queue = r".\private$\my_dead"
    enqueue_message(core, queue, sent)
    pass_time(core, 10)
    assert bodies(own) == bodies(core.dead_letter) == []


def test_a_dead_letter_is_there_when_subscribers_hear_of_the_loss() -> None:
    core = make_core()
    queue = given_queue(core)
    seen: list[list[bytes]] = []
    core.deleted_subscribers.append(lambda _q, _p, _r: seen.append(bodies(core.dead_letter)))
    send(core, queue, "a", ttbr=10, journal=DEAD_LETTER)
    pass_time(core, 10)
    assert seen == [[b"a"]]


def test_a_deleted_application_queue_gets_no_dead_letters() -> None:
    core = make_core()
    queue, own = given_queue(core), given_queue(core, "my_dead")
    sent = message(b"a", ttbr=10, journal=DEAD_LETTER)
    sent.dead_letter_queue = r".\private$\my_dead"
    enqueue_message(core, queue, sent)
    delete_queue(core, own)
    pass_time(core, 10)
    assert bodies(core.dead_letter) == [b"a"]


def test_who_waits_at_the_dead_letter_queue_is_fed() -> None:
    core = make_core()
    queue = given_queue(core)
    waiting = dequeue_message(core, given_reader(core, core.dead_letter), timeout=None)
    send(core, queue, "a", ttbr=10, journal=DEAD_LETTER)
    pass_time(core, 10)
    assert position_of(waiting).queue is core.dead_letter
