"""A message leaves its destination queue, MQQB 3.1.7.2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.journaling import dead_letter
from falconmq.manager.model import Queue
from falconmq.manager.moving import move_message
from falconmq.manager.queues import delete_queue, open_queue, open_subqueue, purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import AccessType, EnqueueStatus
from falconmq.manager.storing import enqueue_message
from falconmq.message import Acknowledge, Journal
from falconmq.names import parse_format_name
from falconmq.transport.leaving import message_left
from falconmq.transport.settings import TransportSettings
from falconmq.wire.message_class import MessageClass
from falconmq.wire.ordering_acks import FinalAck, FinalAckBody, from_user_message
from falconmq.wire.transaction_header import FINAL_ACK_REQUIRED, TransactionHeader
from tests.manager.helpers import (
    COMPUTER,
    IDENTIFIER,
    STRANGER,
    commit,
    given_queue,
    make_core,
    only,
    pass_time,
    restart,
    same,
    store_of,
)
from tests.manager.readers import given_reader
from tests.transport.answers import (
    FAR_QUEUE,
    SETTINGS,
    arrived,
    given_public_queue,
    only_message,
    only_packet,
    packets_in,
)

ORDER_QUEUE = r"DIRECT=TCP:10.0.0.9\PRIVATE$\order_queue$"
SEQUENCE = 0x0000_0002_0000_0007
POSITIVE, NEGATIVE = Acknowledge.POSITIVE_RECEIVE, Acknowledge.NEGATIVE_RECEIVE
NACK, FULL = Acknowledge.NACK_RECEIVE, Acknowledge.FULL_RECEIVE
ARRIVAL = Acknowledge.FULL_REACH_QUEUE


def attach(
    core: QueueManagerCore, settings: TransportSettings = SETTINGS, reply_address: str = "10.0.0.9"
) -> QueueManagerCore:
    """Let a queue manager acknowledge what leaves its queues."""
    core.deleted_subscribers.append(
        lambda queue, position, reason: message_left(
            core, settings, queue, position, reason, reply_address=reply_address
        )
    )
    return core


def put(core: QueueManagerCore, queue: Queue, stored: StoredMessage) -> None:
    assert enqueue_message(core, queue, stored) is EnqueueStatus.OK
    commit(core)


def transactional(**properties: Any) -> StoredMessage:
    """The 9th message of a sequence of STRANGER's; the 8th was given up."""
    flags = properties.pop("flags", 0)
    packet = arrived(transactional=True, **properties).packet
    return StoredMessage.of(
        replace(packet, transaction=TransactionHeader(flags, SEQUENCE, 9, 7)),
    )


def answers(core: QueueManagerCore) -> list[int]:
    """The classes of all messages that wait to be sent."""
    queues = core.outgoing.values()
    return [packet.properties.message_class for queue in queues for packet in packets_in(queue)]


# The ways a message leaves


def read(core: QueueManagerCore, queue: Queue) -> None:
    dequeue_message(core, given_reader(core, queue), timeout=0)


def delete(core: QueueManagerCore, queue: Queue) -> None:
    delete_queue(core, queue)


def purge(core: QueueManagerCore, queue: Queue) -> None:
    purge_queue(core, queue)


def wait(core: QueueManagerCore, queue: Queue) -> None:
    assert len(queue.positions) == 1
    pass_time(core, 61.0)


def reject(core: QueueManagerCore, queue: Queue) -> None:
    message_position_deleted(core, queue, only(queue), MessageClass.NACK_RECEIVE_REJECTED)


Way = Callable[[QueueManagerCore, Queue], None]
WAYS = pytest.mark.parametrize(
    ("leave", "number"),
    [
        pytest.param(read, 0x4000, marks=pytest.mark.requirement("QB-3.1.7.2.1-04")),
        pytest.param(delete, 0xC000, marks=pytest.mark.requirement("QB-3.1.7.2.1-05")),
        pytest.param(purge, 0xC001, marks=pytest.mark.requirement("QB-3.1.7.2.1-06")),
        pytest.param(wait, 0xC002, marks=pytest.mark.requirement("QB-3.1.7.2.1-07")),
        pytest.param(reject, 0xC004, marks=pytest.mark.requirement("QB-3.1.7.2.1-08")),
    ],
)


# Administration acknowledgements


@pytest.mark.requirement("QB-3.1.7.2-01", "QB-3.1.7.2.1-02", "QB-3.1.7.2.1-03", "QB-A42-01")
@WAYS
@pytest.mark.parametrize("asked", [POSITIVE, NEGATIVE, NACK, FULL, ARRIVAL])
def test_the_sender_hears_of_the_end_it_asked_for(
    leave: Way, number: int, asked: Acknowledge
) -> None:
    # given a message in its destination queue whose sender wants to hear of some ends
    core = attach(make_core())
    queue = given_queue(core)
    put(core, queue, arrived(acknowledgements=asked, ttbr=60))
    # when it leaves the queue
    leave(core, queue)
    # then its administration queue is told, if this end was one of them
    wanted = {0x4000: asked in (POSITIVE, FULL)}.get(number, asked in (NEGATIVE, NACK, FULL))
    assert answers(core) == ([number] if wanted else [])


@pytest.mark.requirement("QB-3.1.7.2.1-01", "QB-3.1.7.15-33")
@pytest.mark.parametrize("recoverable", [True, False])
def test_the_answer_is_recoverable_if_the_message_was(recoverable: bool) -> None:
    core = attach(make_core())
    queue = given_queue(core)
    put(core, queue, arrived(recoverable=recoverable))
    read(core, queue)
    assert (only_message(core, FAR_QUEUE).delivery == 1) is recoverable


@pytest.mark.requirement("QB-3.1.7.2-01")
def test_an_acknowledgement_is_in_the_same_batch_as_the_read_it_tells_of() -> None:
    # given a message that was read, and its acknowledgement
    core = attach(make_core())
    queue = given_queue(core)
    put(core, queue, arrived())
    read(core, queue)
    # when the power fails before the commit
    again = restart(core)
    # then neither happened
    assert len(same(again, queue).positions) == 1
    assert answers(again) == []
    # and when it fails after the commit, both did
    attach(again)
    read(again, same(again, queue))
    commit(again)
    third = restart(again)
    assert len(same(third, queue).positions) == 0
    assert answers(third) == [0x4000]


@pytest.mark.requirement("QB-3.1.7.2-01")
@pytest.mark.parametrize("kind", ["private", "public", "subqueue"])
def test_every_destination_queue_answers(kind: str) -> None:
    core = attach(make_core())
    queue = given_public_queue(core) if kind == "public" else given_queue(core)
    put(core, queue, arrived())
    if kind == "subqueue":
        subqueue = open_subqueue(core, queue, "poison")
        move_message(core, only(queue), subqueue)
        assert answers(core) == [], "a move is no end"
        queue = subqueue
    read(core, queue)
    assert answers(core) == [0x4000]


@pytest.mark.requirement("QB-3.1.7.2-01")
def test_what_leaves_an_outgoing_queue_was_not_read() -> None:
    # given a message on its way through this queue manager
    core = attach(make_core())
    name = parse_format_name(r"DIRECT=TCP:10.0.0.7\private$\orders")
    queue = open_queue(core, name, AccessType.SEND).queue
    assert queue is not None
    put(core, queue, transactional(journal=Journal.JOURNAL))
    # when it leaves the outgoing queue
    message_position_deleted(core, queue, only(queue), MessageClass.ACK_RECEIVE)
    # then nobody is told
    assert answers(core) == []


@pytest.mark.requirement("QB-3.1.7.2-01")
def test_what_leaves_a_journal_was_acknowledged_before() -> None:
    # given a message that was read, and its copy in the journal of the queue
    core = attach(make_core())
    queue = given_queue(core, journaling=True)
    put(core, queue, arrived())
    read(core, queue)
    journal = queue.journal
    assert journal is not None
    # when the copy is read, and another one purged
    read(core, journal)
    put(core, journal, arrived())
    purge(core, journal)
    # then the sender has heard of the first reading alone
    assert answers(core) == [0x4000]


@pytest.mark.requirement("QB-3.1.5.8.10-02")
def test_what_leaves_the_order_queue_is_not_acknowledged() -> None:
    core = attach(make_core())
    queue = core.private_numbers[4]
    put(core, queue, arrived())
    message_position_deleted(core, queue, only(queue), MessageClass.ACK_RECEIVE)
    assert answers(core) == []


def test_reading_a_dead_letter_is_not_acknowledged() -> None:
    # given an application's own dead-letter queue with a message in it
    core = attach(make_core())
    queue, letters = given_queue(core), given_queue(core, "letters")
    stored = arrived(source=IDENTIFIER, dead_letter_queue=r".\private$\letters")
    dead_letter(core, queue, stored, MessageClass.NACK_RECEIVE_TIMEOUT)
    assert len(letters.positions) == 1
    # when somebody reads it, then nobody hears that the message was received
    read(core, letters)
    assert answers(core) == []


def test_a_queue_that_is_deleted_gets_no_answers_any_more() -> None:
    # given a message whose administration queue is the queue that it is in
    core = attach(make_core())
    queue = given_queue(core)
    before = core.used_bytes
    put(core, queue, arrived(administration_queue=rf"DIRECT=OS:{COMPUTER}\private$\orders"))
    # when the queue is deleted
    delete_queue(core, queue)
    commit(core)
    # then nothing of it is left, in memory or in the store
    assert len(queue.positions) == 0
    assert core.used_bytes == before
    assert list(store_of(core).scan("messages")) == []


def test_an_answer_into_a_queue_that_is_purged_stays() -> None:
    core = attach(make_core())
    queue = given_queue(core)
    put(core, queue, arrived(administration_queue=rf"DIRECT=OS:{COMPUTER}\private$\orders"))
    assert purge_queue(core, queue) == 1
    assert only_message(core, queue).message_class == 0xC001
    # and an answer that is purged or read is the end of it
    assert purge_queue(core, queue) == 1
    assert len(queue.positions) == 0


# Final acknowledgements


@pytest.mark.requirement("QB-3.1.7.2.2-01", "QB-A42-01", "QB-2.2.5-02")
@WAYS
@pytest.mark.parametrize(
    ("journal", "flags", "due"),
    [
        pytest.param(Journal.JOURNAL, 0, True, id="JP"),
        pytest.param(Journal.DEAD_LETTER, 0, True, id="JN"),
        pytest.param(Journal.NONE, FINAL_ACK_REQUIRED, True, id="FA"),
        pytest.param(Journal.NONE, 0, False, id="nobody waits"),
    ],
)
def test_the_sender_of_a_transactional_message_learns_how_it_ended(
    leave: Way, number: int, journal: Journal, flags: int, due: bool
) -> None:
    # given a transactional message in its destination queue
    core = attach(make_core())
    queue = given_queue(core, transactional=True)
    stored = transactional(journal=journal, flags=flags, ttbr=60, administration_queue=None)
    put(core, queue, stored)
    # when it leaves the queue
    leave(core, queue)
    # then its sender's queue manager is told, if it keeps the message for that
    assert answers(core) == ([number] if due else [])
    if due:
        body = FinalAckBody(SEQUENCE, 9, 7, STRANGER.bytes_le, stored.packet.user.message_id)
        assert from_user_message(only_packet(core, ORDER_QUEUE)) == FinalAck(body, number)


@pytest.mark.requirement("QB-3.1.7.17-31", "QB-3.1.7.17-32")
def test_a_message_that_was_stored_is_named_as_it_came() -> None:
    # given a transactional message that has outlived a restart
    core = make_core()
    queue = given_queue(core, transactional=True)
    stored = transactional(journal=Journal.JOURNAL, administration_queue=None)
    put(core, queue, stored)
    again = attach(restart(core), reply_address="")
    # when it is read
    read(again, same(again, queue))
    # then the FinalAck names it by its sequence, its numbers, its sender and its identifier
    body = FinalAckBody(SEQUENCE, 9, 7, STRANGER.bytes_le, stored.packet.user.message_id)
    packet = only_packet(again, rf"PRIVATE={STRANGER}\00000004")
    assert from_user_message(packet) == FinalAck(body, 0x4000)


@pytest.mark.requirement("QB-A40-01")
def test_a_message_without_transaction_gets_no_final_ack() -> None:
    core = attach(make_core())
    queue = given_queue(core)
    put(core, queue, arrived(journal=Journal.JOURNAL, administration_queue=None))
    read(core, queue)
    assert answers(core) == []


def test_we_need_not_tell_ourselves_how_a_message_ended() -> None:
    core = attach(make_core())
    queue = given_queue(core, transactional=True)
    stored = transactional(journal=Journal.DEAD_LETTER, source=IDENTIFIER)
    put(core, queue, stored)
    read(core, queue)
    assert answers(core) == [0x4000], "the administration queue alone is told"
    assert only_message(core, FAR_QUEUE).message_class == 0x4000
    assert packets_in(core.private_numbers[4]) == []


def test_both_answers_go_out_where_both_were_asked_for() -> None:
    core = attach(make_core())
    queue = given_queue(core, transactional=True)
    put(core, queue, transactional(journal=Journal.JOURNAL))
    read(core, queue)
    assert only_message(core, FAR_QUEUE).message_class == 0x4000
    assert only_packet(core, ORDER_QUEUE).properties.message_class == 0x4000
