"""What becomes of a message at B reaches A: administration queue, journal, dead letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.queues import delete_queue, purge_queue
from falconmq.manager.removing import message_position_deleted
from falconmq.message import INFINITE, Acknowledge, Delivery, Journal
from falconmq.serialization import from_user_message
from falconmq.wire.message_class import MessageClass
from falconmq.wire.transaction_header import FINAL_ACK_REQUIRED, TransactionHeader
from tests.transport.estate import Estate, Node, bodies, direct, only
from tests.transport.raw_peer import ACKS, RawPeer, read, routed_estate, run

ALL = Acknowledge.FULL_REACH_QUEUE | Acknowledge.FULL_RECEIVE


def given_two(**settings: Any) -> tuple[Estate, Node, Node, Queue]:
    """A, who sends and has an administration queue; and B."""
    estate = routed_estate()
    a, b = estate.node("A", 1, **settings), estate.node("B", 2, **settings)
    return estate, a, b, a.queue("acks")


def classes(queue: Queue) -> list[int]:
    found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.available]
    return [p.message.packet.properties.message_class for p in found if p is not None]


def _consume(node: Node, queue: Queue) -> None:
    read(node, queue)


def _purge(node: Node, queue: Queue) -> None:
    run(node, purge_queue, node.core, queue)


def _delete(node: Node, queue: Queue) -> None:
    run(node, delete_queue, node.core, queue)


def _expire(node: Node, queue: Queue) -> None:
    node.estate.advance(35)


def _reject(node: Node, queue: Queue) -> None:
    (lookup_id,) = queue.positions.available
    position = queue.positions.find(lookup_id)
    rejected = MessageClass.NACK_RECEIVE_REJECTED
    run(node, message_position_deleted, node.core, queue, position, rejected)


ENDS = [
    pytest.param(_consume, MessageClass.ACK_RECEIVE, id="consumed"),
    pytest.param(_purge, MessageClass.NACK_Q_PURGED, id="purged"),
    pytest.param(_delete, MessageClass.NACK_Q_DELETED, id="deleted"),
    pytest.param(_expire, MessageClass.NACK_RECEIVE_TIMEOUT, id="expired"),
    pytest.param(_reject, MessageClass.NACK_RECEIVE_REJECTED, id="rejected"),
]
End = Callable[[Node, Queue], None]


@pytest.mark.requirement(
    "QB-3.1.7.2-01",
    "QB-3.1.7.2.1-02",
    "QB-3.1.7.2.1-03",
    "QB-3.1.5.8.10-01",
    "QB-3.1.5.11-02",
    "QB-3.1.7.15-07",
    "QB-3.1.7.15-18",
    "QB-3.1.7.15-19",
    "QB-3.1.7.15-20",
    "QB-3.1.7.15-21",
    "QB-3.1.1.1.1.4-03",
    "QB-3.1.1.1.1.8-02",
)
@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize(("end", "message_class"), ENDS)
def test_the_sender_hears_of_the_arrival_and_of_the_end(
    end: End, message_class: MessageClass, transactional: bool
) -> None:
    # given a message that has arrived at B, and whose sender wants to know everything
    estate, a, b, acks = given_two()
    queue = b.queue("orders", transactional=transactional)
    a.send(
        direct(b, "orders"),
        b"order 7",
        transactional=transactional,
        recoverable=True,
        acknowledgements=ALL,
        administration_queue=direct(a, "acks"),
        time_to_be_received=30,
    )
    estate.settle()
    assert classes(acks) == [MessageClass.ACK_REACH_QUEUE]
    # when it leaves its queue
    end(b, queue)
    estate.settle()
    # then the administration queue of A has both answers, and they are no transactional messages
    assert classes(acks) == [MessageClass.ACK_REACH_QUEUE, message_class]


@pytest.mark.parametrize(("end", "message_class"), ENDS)
@pytest.mark.parametrize("asked", ["nothing", "the other"])
def test_the_sender_hears_only_what_it_asked_for(
    end: End, message_class: MessageClass, asked: str
) -> None:
    estate, a, b, acks = given_two()
    queue = b.queue("orders")
    is_positive = message_class == MessageClass.ACK_RECEIVE
    other = Acknowledge.NEGATIVE_RECEIVE if is_positive else Acknowledge.POSITIVE_RECEIVE
    a.send(
        direct(b, "orders"),
        recoverable=True,
        acknowledgements=other if asked == "the other" else Acknowledge.NONE,
        administration_queue=direct(a, "acks"),
        time_to_be_received=30,
    )
    estate.settle()
    end(b, queue)
    estate.settle()
    assert classes(acks) == []


@pytest.mark.requirement(
    "QB-3.1.7.15-06",
    "QB-3.1.7.15-28",
    "QB-3.1.7.15-29",
    *(f"QB-3.1.7.15-{n}" for n in range(33, 41)),
)
@pytest.mark.parametrize("recoverable", [True, False])
def test_an_answer_names_the_message_and_gives_back_what_was_not_read(recoverable: bool) -> None:
    """The guide's scenario 39, and the nack of 37."""
    # given a message that arrived and was purged
    estate, a, b, acks = given_two()
    queue = b.queue("orders")
    sent = a.send(
        direct(b, "orders"),
        b"order 7",
        recoverable=recoverable,
        acknowledgements=ALL,
        administration_queue=direct(a, "acks"),
        journal=Journal.JOURNAL | Journal.DEAD_LETTER,
        time_to_reach_queue=300,
        time_to_be_received=300,
    )
    estate.settle()
    reached = from_user_message(only(acks).packet)
    read(a, acks)
    _purge(b, queue)
    purged = from_user_message(only(acks).packet)
    # then both answers name it, and only the bad news has its body
    user = sent.packet.user
    for answer in (reached, purged):
        assert bytes(answer.correlation_id) == a.identifier.bytes_le + user.message_id.to_bytes(
            4, "little"
        )
        assert str(answer.response_queue) == direct(b, "orders")
        expected = Delivery.RECOVERABLE if recoverable else Delivery.EXPRESS
        assert answer.delivery is expected
        assert answer.acknowledgements is Acknowledge.NONE
        assert answer.time_to_reach_queue == answer.time_to_be_received == INFINITE
        assert answer.journal is Journal.NONE
        assert answer.privacy_level == answer.authentication_level == 0
        assert answer.administration_queue is None
    assert reached.body == b""
    assert purged.body == b"order 7"


@pytest.mark.requirement("QB-3.1.7.15-23", "QB-3.1.7.15-22")
def test_an_administration_queue_by_its_private_name_is_found() -> None:
    estate, a, b, acks = given_two()
    queue = b.queue("orders")
    a.send(b.private_name(queue), acknowledgements=ALL, administration_queue=a.private_name(acks))
    estate.settle()
    assert classes(acks) == [MessageClass.ACK_REACH_QUEUE]
    assert len(bodies(queue)) == 1


@pytest.mark.requirement("QB-3.1.7.15-34")
def test_an_answer_is_never_answered() -> None:
    # given an administration queue that does not exist
    estate, a, b, _ = given_two(send_insecure_nacks=True)
    b.queue("orders")
    a.send(direct(b, "orders"), acknowledgements=ALL, administration_queue=direct(a, "nowhere"))
    # when the answer is refused there
    estate.advance(60)
    # then that is all
    assert a.transport.refusals == {MessageClass.NACK_BAD_DST_Q: 1}
    assert b.transport.refusals.total() == 0


def test_an_answer_that_asks_for_answers_gets_none() -> None:
    """Else two queue managers could keep each other busy for ever."""
    estate = routed_estate()
    node = estate.node("B", 2, send_insecure_nacks=True)
    queue = node.queue("orders")
    peer = RawPeer(node).open()
    for message_class in (MessageClass.ACK_REACH_QUEUE, MessageClass.NACK_BAD_DST_Q, 1):
        peer.send(queue, message_class=message_class, acknowledgements=15, admin=ACKS)
        peer.send(4711, message_class=message_class, acknowledgements=15, admin=ACKS)
    assert len(bodies(queue)) == 3
    assert peer.messages == []


# The end of a transactional message, at its sender


@pytest.mark.requirement(
    "QB-3.1.7.17-04",
    "QB-3.1.7.17-16",
    "QB-3.1.7.17-17",
    "QB-3.1.7.17-18",
    "QB-3.1.7.17-19",
    *(f"QB-3.1.7.17-{number}" for number in (20, 21, 23, 24, 25, 26, 27)),
)
@pytest.mark.parametrize(("end", "message_class"), ENDS)
def test_a_final_ack_says_how_it_ended_and_nothing_else(
    end: End, message_class: MessageClass
) -> None:
    # given a transactional message with everything a sender may ask for
    estate = routed_estate()
    node = estate.node("B", 2)
    queue = node.queue("orders", transactional=True)
    peer = RawPeer(node).open()
    peer.send(
        queue,
        transaction=(1 << 32 | 1, 1, 0),
        flags=0x300,
        report_queue=bytes(range(16)),
        time_to_be_received=30,
    )
    # when it leaves its queue
    end(node, queue)
    # then the FinalAck has the class of its end, and all else is as plain as can be
    (ack,) = (p for p in peer.messages if p.properties.message_class != MessageClass.ORDER_ACK)
    assert ack.properties.message_class == message_class
    assert ack.base.flags == 0
    answer = from_user_message(ack)
    assert answer.priority == 0
    assert not answer.trace
    assert answer.journal is Journal.NONE
    assert answer.administration_queue is None
    assert answer.response_queue is None
    assert answer.privacy_level == answer.authentication_level == 0
    assert answer.label == "QM Ordering Ack"
    assert answer.body_type == 0


@pytest.mark.requirement("QB-3.1.7.2-01", "QB-3.1.7.2.2-01", "QB-3.1.1.1.1.8-02")
@pytest.mark.parametrize("journal", [Journal.JOURNAL, Journal.DEAD_LETTER])
@pytest.mark.parametrize(("end", "message_class"), ENDS)
def test_the_final_ack_brings_the_message_where_it_belongs(
    end: End, message_class: MessageClass, journal: Journal
) -> None:
    """The guide's scenario 32."""
    # given a transactional message that has arrived, and waits at A for the news of its end
    estate, a, b, _ = given_two()
    queue = b.queue("orders", transactional=True)
    name = direct(b, "orders")
    a.send(name, b"order 7", transactional=True, journal=journal, time_to_be_received=30)
    estate.advance(1)
    assert len(a.outgoing(name).positions) == 1
    # when it leaves its queue
    end(b, queue)
    estate.advance(1)
    # then it is in the journal if it was read, among the dead letters if not, as its sender asked
    assert len(a.outgoing(name).positions) == 0
    was_read = message_class == MessageClass.ACK_RECEIVE
    in_journal = was_read and journal is Journal.JOURNAL
    is_dead = not was_read and journal is Journal.DEAD_LETTER
    assert bodies(a.core.journal) == [b"order 7"] * in_journal
    assert bodies(a.core.transactional_dead_letter) == [b"order 7"] * is_dead
    assert len(b.core.transactional_dead_letter.positions) == 0


def test_an_application_may_have_dead_letters_of_its_own() -> None:
    estate, a, b, _ = given_two()
    queue = b.queue("orders", transactional=True)
    letters = a.queue("letters", transactional=True)
    a.send(
        direct(b, "orders"),
        b"order 7",
        transactional=True,
        journal=Journal.DEAD_LETTER,
        dead_letter_queue=r".\private$\letters",
    )
    estate.advance(1)
    _purge(b, queue)
    estate.advance(1)
    assert bodies(letters) == [b"order 7"]
    assert bodies(a.core.transactional_dead_letter) == []


@pytest.mark.requirement("QB-3.1.7.2.2-01")
@pytest.mark.parametrize("flags", [0, FINAL_ACK_REQUIRED])
def test_a_final_ack_may_be_asked_for_by_name(flags: int) -> None:
    # given a transactional message without journaling, perhaps with FA
    estate = routed_estate()
    node = estate.node("B", 2)
    queue = node.queue("orders", transactional=True)
    peer = RawPeer(node).open()
    message = peer.message(queue, transaction=(1 << 32 | 1, 1, 0))
    header = TransactionHeader(flags, 1 << 32 | 1, 1, 0)
    peer.write(replace(message, transaction=header).encode())
    # when it is read
    read(node, queue)
    # then there is a FinalAck if it was asked for
    expected = [MessageClass.ACK_RECEIVE] if flags else []
    assert [ack.message_class for ack in peer.final_acks] == expected


@pytest.mark.parametrize("transactional", [True, False])
def test_the_answers_survive_a_cut_line(transactional: bool) -> None:
    # given a message that was read while the line was down
    estate, a, b, acks = given_two()
    queue = b.queue("orders", transactional=transactional)
    name = direct(b, "orders")
    a.send(
        name,
        b"order 7",
        transactional=transactional,
        recoverable=True,
        journal=Journal.JOURNAL,
        acknowledgements=ALL,
        administration_queue=direct(a, "acks"),
    )
    estate.settle()
    estate.cut(a.lines[0])
    estate.refusing.update({a.address, b.address})
    read(b, queue)
    estate.advance(30)
    # when both find each other again, B after a power failure
    b.restart()
    estate.refusing.clear()
    estate.advance(60)
    # then the news arrives, once
    assert classes(acks) == [MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE]
    assert len(a.outgoing(name).positions) == 0
    assert bodies(a.core.journal) == [b"order 7"]


def test_a_reading_that_is_not_on_disk_is_told_to_nobody() -> None:
    estate, a, b, acks = given_two()
    queue = b.queue("orders")
    a.send(
        direct(b, "orders"),
        recoverable=True,
        acknowledgements=Acknowledge.FULL_RECEIVE,
        administration_queue=direct(a, "acks"),
    )
    estate.settle()
    b.holds_commits = True
    read(b, queue)
    estate.advance(3)
    assert classes(acks) == []
    run(b, b.release_commits)
    assert classes(acks) == [MessageClass.ACK_RECEIVE]
