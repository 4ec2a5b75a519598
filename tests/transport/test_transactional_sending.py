"""Transactional streams at their sender (MQQB 3.1.1.5, 3.1.5.6, 3.1.5.7, 3.1.6.5, 3.1.7.1.3)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from falconmq.manager.opening import open_queue
from falconmq.manager.queues import purge_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.states import AccessType
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import (
    abort_transaction,
    commit_transaction,
    create_transaction,
)
from falconmq.message import Acknowledge, Journal
from falconmq.names import parse_format_name
from falconmq.wire.message_class import MessageClass
from falconmq.wire.sequence_info import SequenceInfo
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.transport.estate import Estate, bodies, direct, only
from tests.transport.played_peer import (
    PlayedPeer,
    fail_power,
    given_routes,
    sent_bodies,
    transaction_of,
    user_messages,
)

BOTH = Journal.JOURNAL | Journal.DEAD_LETTER


class Sender:
    """A queue manager that sends in transactions to a queue whose far end the test plays."""

    def __init__(self) -> None:
        self.estate = Estate()
        self.here = self.estate.node("SALES01", 1)
        self.there = self.estate.node("SALES02", 2)
        self.name = direct(self.there, "orders")
        self.peer = PlayedPeer.given(self.estate, self.here, self.name)

    def send(self, *bodies: bytes, **properties: Any) -> None:
        self.here.send_transaction(self.name, *bodies, **properties)

    @property
    def positions(self) -> list[bytes]:
        """What is in the outgoing queue."""
        return bodies(self.here.outgoing(self.name))

    @property
    def headers(self) -> list[TransactionHeader]:
        return [transaction_of(message) for message in self.peer.messages]

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """Number and previous number of everything that was sent."""
        return [(h.tx_sequence_number, h.previous_tx_sequence_number) for h in self.headers]

    @property
    def sequence(self) -> int:
        """The sequence of what was sent last."""
        return self.headers[-1].tx_sequence_id

    def take(self, count: int) -> None:
        """The peer acknowledges the first `count` messages, on disk."""
        self.peer.acknowledge(count, 1, (1 << count) - 1)

    def reconnect(self) -> None:
        """The connection breaks; on the next one the test plays the peer again."""
        self.estate.cut(self.peer.line)
        self.estate.advance(5.0)
        line = next(line for line in self.here.lines if not line.is_closed)
        self.peer = PlayedPeer(line)

    def restart(self) -> None:
        fail_power(self.here)
        self.estate.settle()
        self.peer = PlayedPeer(self.here.lines[0])


# Numbers


@pytest.mark.requirement("MQ-2.2.20.5-20", "MQ-2.2.20.5-22")
@pytest.mark.requirement("QB-3.1.1.5-01", "QB-3.1.1.5-05", "QB-3.1.7.1.3-02", "QB-3.1.7.1.3-03")
@pytest.mark.requirement("QB-3.1.7.1.3-04", "QB-3.1.7.1.3-06", "QB-3.1.1.3.1.2-04")
@pytest.mark.requirement("DM-3.1.1.12-114", "DM-3.1.1.12-116", "DM-3.1.1.12-117")
def test_messages_of_a_stream_are_numbered_from_one_in_one_sequence() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sender.send(b"3")
    assert sender.peer.bodies == [b"1", b"2", b"3"]
    assert sender.numbers == [(1, 0), (2, 1), (3, 2)]
    assert len({header.tx_sequence_id for header in sender.headers}) == 1
    assert sender.sequence & 0xFFFFFFFF == 1  # Ordinal
    assert sender.sequence >> 32 == int(sender.estate.clock.time())  # TimeStamp


@pytest.mark.requirement("QB-A39-01")
def test_each_destination_queue_has_its_stream_even_on_one_session() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    queues = [there.queue(name, transactional=True) for name in ("orders", "bills")]
    for number in range(10):
        for name in ("orders", "bills"):
            here.send(direct(there, name), b"%d" % number, transactional=True)
        estate.settle()
    assert len(here.lines) == 1
    assert [bodies(queue) for queue in queues] == [[b"%d" % number for number in range(10)]] * 2
    by_sequence: dict[int, list[int]] = {}
    for header in map(transaction_of, user_messages(here.lines[0])):
        by_sequence.setdefault(header.tx_sequence_id, []).append(header.tx_sequence_number)
    assert list(by_sequence.values()) == [list(range(1, 11))] * 2
    estate.advance(60.0)
    assert not any(len(queue.positions) for queue in here.core.outgoing.values())


def test_order_of_the_stream_is_that_of_the_commits() -> None:
    # given two transactions; the one that begins first commits last
    sender = Sender()
    here, core = sender.here, sender.here.core
    descriptor = open_queue(core, parse_format_name(sender.name), AccessType.SEND)
    assert descriptor.queue is not None
    slow, quick, lost = (create_transaction(core) for _ in range(3))
    for transaction, body in ((slow, b"slow"), (lost, b"lost"), (quick, b"quick")):
        message = here.build(sender.name, body, transactional=True)
        enqueue_message(core, descriptor.queue, message, transaction)
    here.end_turn()
    assert sender.peer.bodies == []
    for end, transaction in (
        (commit_transaction, quick),
        (abort_transaction, lost),
        (commit_transaction, slow),
    ):
        here.run(end, core, transaction.identifier)
    assert sender.peer.bodies == [b"quick", b"slow"]
    assert sender.numbers == [(1, 0), (2, 1)]
    # and it is the order of the queue too: after a restart they go out as before
    sender.restart()
    assert sender.peer.bodies == [b"quick", b"slow"]


# OrderAcks


@pytest.mark.requirement("QB-3.1.1.6.2-09", "QB-3.1.1.6.2-10", "QB-3.1.5.5.3-01")
@pytest.mark.requirement("QB-3.1.5.5.3-02", "QB-3.1.1.6.2-08", "QB-3.1.5.6-08")
@pytest.mark.requirement("QB-3.1.1.1.1.7-01", "QB-3.1.5.5.5-04")
def test_transactional_message_waits_for_its_order_ack_whatever_the_session_says() -> None:
    sender = Sender()
    sender.send(b"1", b"2", b"3")
    sender.take(3)
    assert sender.positions == [b"1", b"2", b"3"]
    sender.peer.order_ack(sender.sequence, 2)
    assert sender.positions == [b"3"]
    sender.peer.order_ack(sender.sequence, 3)
    assert sender.positions == []


@pytest.mark.requirement("QB-A37-01", "QB-3.1.5.6-08", "QB-3.1.5.5.3-03", "QB-3.1.1.3.1.2-07")
def test_order_ack_that_comes_before_the_session_ack_is_remembered() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sender.peer.order_ack(sender.sequence, 1)
    assert sender.positions == [b"1", b"2"]
    sender.take(2)
    assert sender.positions == [b"2"]


def test_order_ack_counts_even_if_the_session_breaks_before_its_acknowledgment() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sender.peer.order_ack(sender.sequence, 1)
    sender.reconnect()
    assert sender.peer.bodies == [b"2"]
    assert sender.positions == [b"2"]


def test_order_ack_is_remembered_over_a_restart() -> None:
    # given an order ack without the session ack that lets the message go
    sender = Sender()
    sender.send(b"1", b"2")
    sender.peer.order_ack(sender.sequence, 1)
    sender.restart()
    assert sender.peer.bodies == [b"2"]
    assert sender.positions == [b"2"]


@pytest.mark.requirement("MQ-2.2.18.1.2-04")
@pytest.mark.requirement("QB-3.1.5.6-10", "QB-3.1.1.5-03", "QB-3.1.1.5-04")
def test_when_all_is_acknowledged_the_next_message_begins_another_sequence() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    first = sender.sequence
    sender.take(2)
    sender.peer.order_ack(first, 1)
    sender.send(b"3")  # not all: the sequence goes on
    assert sender.headers[-1].tx_sequence_id == first
    sender.peer.acknowledge(3, 3, 0b1)
    sender.peer.order_ack(first, 3)
    sender.send(b"4", b"5")
    assert sender.sequence == first + 1
    assert sender.numbers[-2:] == [(1, 0), (2, 1)]
    assert sender.positions == [b"4", b"5"]


def test_receiver_takes_the_new_sequence() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    orders = there.queue("orders", transactional=True)
    for number in range(4):
        here.send_transaction(direct(there, "orders"), b"%da" % number, b"%db" % number)
        estate.advance(20.0)  # until it is acknowledged
        assert not len(here.outgoing(direct(there, "orders")).positions)
    assert bodies(orders) == [b"0a", b"0b", b"1a", b"1b", b"2a", b"2b", b"3a", b"3b"]
    sequences = [transaction_of(m).tx_sequence_id for m in user_messages(here.lines[0])]
    assert sequences == sorted(sequences)
    assert len(set(sequences)) == 4


@pytest.mark.requirement("QB-3.1.5.6-02", "QB-3.1.5.6-04", "QB-3.1.5.6-05", "QB-3.1.5.6-07")
@pytest.mark.requirement("QB-3.1.5.6-11", "QB-3.1.5.6-12", "QB-3.1.5.6-13", "QB-3.1.5.6-14")
@pytest.mark.requirement("QB-3.1.5.6-15", "QB-3.1.5.6-16", "QB-3.1.5.6-17", "QB-3.1.5.6-18")
@pytest.mark.requirement("QB-3.1.5.6-19", "QB-3.1.5.6-20", "QB-3.1.1.5-02", "QB-3.1.7.1.3-05")
def test_order_ack_tells_the_operator_how_far_the_stream_is() -> None:
    sender = Sender()
    sender.send(b"1", b"2", b"3", b"4", b"5", journal=BOTH)
    sender.take(5)
    sender.estate.advance(3.0)
    sequence = sender.sequence
    sender.peer.order_ack(sequence, 2)
    info, now = sender.here.outgoing(sender.name).transfer_info, sender.estate.clock.time()
    assert info.last_ack_time == now
    assert info.last_ack_count == 1
    assert info.last_ack == SequenceInfo(sequence, 2, 1)
    assert info.no_ack_count == 3
    assert info.first_non_ack == SequenceInfo(sequence, 3, 2)
    assert info.last_non_ack == SequenceInfo(sequence, 5, 4)
    assert info.no_read_count == 2
    assert info.resend_count == 0
    assert info.resend_interval_seconds == 30.0
    assert info.resend_time == now + 30.0
    # when the same comes again, only the count and the time change
    sender.estate.advance(1.0)
    sender.peer.order_ack(sequence, 2)
    assert info.last_ack_count == 2
    assert info.last_ack_time == now + 1.0
    assert info.no_ack_count == 3
    # and an older one takes nothing back
    sender.peer.order_ack(sequence, 1)
    assert info.last_ack == SequenceInfo(sequence, 2, 1)


def test_order_ack_of_a_stranger_frees_nothing() -> None:
    sender = Sender()
    stranger = sender.estate.node("STRANGER", 9)
    sender.send(b"1")
    sender.take(1)
    sender.peer.order_ack(sender.sequence, 1, sender=stranger)
    assert sender.positions == [b"1"]
    sender.peer.order_ack(sender.sequence + 1, 1)  # a sequence that never was
    assert sender.positions == [b"1"]
    sender.peer.order_ack(sender.sequence, 1)
    assert sender.positions == []


# Sending again


@pytest.mark.requirement("QB-A38-01", "QB-3.1.7.1.3-01", "QB-3.1.1.1.1.7-02")
def test_message_keeps_its_number_on_the_next_session_and_after_a_restart() -> None:
    sender = Sender()
    sender.send(b"1", b"2", b"3")
    sequence = sender.sequence
    sender.take(1)
    sender.reconnect()
    assert sender.peer.bodies == [b"1", b"2", b"3"]
    assert sender.sequence == sequence
    assert [number for number, _ in sender.numbers] == [1, 2, 3]
    sender.restart()
    assert sender.peer.bodies == [b"1", b"2", b"3"]
    assert sender.sequence == sequence
    assert sender.numbers == [(1, 0), (2, 1), (3, 2)]


@pytest.mark.requirement("QB-3.1.1.3.1.2-09", "QB-A39-01", "QB-3.1.1.3.1-31")
def test_numbers_go_on_after_a_restart_and_none_is_given_twice() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sequence = sender.sequence
    sender.restart()
    sender.send(b"3", b"4")
    assert sender.peer.bodies == [b"1", b"2", b"3", b"4"]
    assert {header.tx_sequence_id for header in sender.headers} == {sequence}
    numbers = [number for number, _ in sender.numbers]
    assert numbers[:2] == [1, 2]
    assert numbers[2] > 2
    assert numbers[3] == numbers[2] + 1
    assert [previous for _, previous in sender.numbers] == [0, *numbers[:-1]]


@pytest.mark.requirement("QB-3.1.7.1.3-08", "QB-A38-01", "QB-3.1.1.5-05")
def test_hole_that_an_expired_message_leaves_is_bridged_when_the_rest_is_sent_again() -> None:
    sender = Sender()
    sender.send(b"1")
    sender.send(b"2", time_to_reach_queue=2)
    sender.send(b"3")
    sender.estate.advance(4.0)  # the second expires
    assert sender.positions == [b"1", b"3"]
    sender.reconnect()
    assert sender.peer.bodies == [b"1", b"3"]
    assert sender.numbers == [(1, 0), (3, 1)]


@pytest.mark.requirement("QB-3.1.7.1.3-08", "QB-3.1.7.1.6-02")
def test_first_message_that_is_sent_again_has_no_previous_one() -> None:
    # given that 1 was acknowledged and is gone, and 2 is sent again
    sender = Sender()
    sender.send(b"1", b"2", b"3")
    sender.take(3)
    sender.peer.order_ack(sender.sequence, 1)
    sender.reconnect()
    assert sender.numbers == [(2, 0), (3, 2)]


def test_receiver_takes_what_comes_behind_a_hole() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    orders = there.queue("orders", transactional=True)
    name = direct(there, "orders")
    there.holds_commits = True
    here.send(name, b"1", transactional=True)
    here.send(name, b"2", transactional=True, time_to_reach_queue=2)
    here.send(name, b"3", transactional=True)
    estate.settle()
    there.restart()  # none of them is kept
    orders = there.core.private_numbers[orders.private_queue_number]
    estate.advance(60.0)
    assert bodies(orders) == [b"1", b"3"]
    assert not len(here.outgoing(name).positions)


@pytest.mark.requirement("QB-3.1.1.3.1.1-03", "QB-3.1.1.3.1.1-04")
@pytest.mark.requirement("QB-3.1.1.3-27", "QB-3.1.1.3-28", "QB-3.1.1.3-29", "QB-3.1.1.3-30")
@pytest.mark.requirement("QB-3.1.6.5-01", "QB-3.1.6.5-02", "QB-3.1.7.1.3-07", "QB-A36-01")
def test_without_an_order_ack_everything_is_sent_again_in_growing_intervals() -> None:
    # given a receiver that takes the messages and never says so
    estate, never = Estate(), 1e9
    here = estate.node("SALES01", 1, cleanup_interval=never)
    there = estate.node("SALES02", 2, cleanup_interval=never, order_ack_timeout=never)
    orders = there.queue("orders", transactional=True)
    here.send_transaction(direct(there, "orders"), b"1", b"2")
    estate.settle()
    (line,) = here.lines
    gaps: list[float] = []
    for _ in range(12):
        line.written.clear()
        start = estate.clock.monotonic()
        while not line.written:
            deadline = here.core.next_deadline()
            assert deadline is not None
            estate.advance(deadline + 1e-6)
        assert sent_bodies(line) == [b"1", b"2"]
        gaps.append(round(estate.clock.monotonic() - start))
    assert gaps == [30] * 3 + [300] * 3 + [1800] * 3 + [21_600] * 3
    assert bodies(orders) == [b"1", b"2"]


@pytest.mark.requirement("QB-A36-01", "QB-3.1.5.6-06")
def test_progress_brings_the_first_interval_back() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sender.take(2)
    for resent in range(1, 5):
        sender.estate.advance(30.0 if resent <= 3 else 300.0)
        sender.peer.acknowledge(2 + 2 * resent, 1 + 2 * resent, 0b11)
    info = sender.here.outgoing(sender.name).transfer_info
    assert info.resend_interval_seconds == 300.0
    assert info.resend_count == 4
    # when one of them arrives, and nothing else
    sender.peer.order_ack(sender.sequence, 1)
    assert info.resend_interval_seconds == 30.0
    assert info.resend_count == 0
    before = len(sender.peer.messages)
    sender.estate.advance(29.9)
    assert len(sender.peer.messages) == before
    sender.estate.advance(0.2)
    assert sender.peer.bodies[before:] == [b"2"]


@pytest.mark.requirement("QB-3.1.6.5-01")
def test_nothing_is_sent_again_after_the_order_ack() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sender.take(2)
    sender.peer.order_ack(sender.sequence, 2)
    sender.estate.advance(200.0)
    assert sender.peer.bodies == [b"1", b"2"]


def test_late_session_ack_of_the_first_sending_does_not_count_for_the_second() -> None:
    sender = Sender()
    sender.send(b"1", b"2")
    sender.estate.advance(30.0)
    assert sender.peer.bodies == [b"1", b"2", b"1", b"2"]
    sender.peer.order_ack(sender.sequence, 2)
    sender.peer.acknowledge(4, 1, 0b1111)
    assert sender.positions == []
    assert len(sender.here.transport.sessions) == 1


# FinalAcks


def ended(sender: Sender, message_class: int, journal: Journal, **properties: Any) -> UserMessage:
    """Send one message that arrives, and tell its end."""
    sender.send(b"1", journal=journal, **properties)
    (message,) = sender.peer.messages
    sender.take(1)
    sender.peer.order_ack(sender.sequence, 1)
    assert sender.positions == [b"1"]  # it waits for the end of its story
    sender.peer.final_ack(message, message_class)
    return message


@pytest.mark.requirement("QB-3.1.5.6-09", "QB-3.1.1.6.2-11", "QB-3.1.5.7-03", "QB-3.1.5.7-02")
@pytest.mark.requirement("QB-A37-01")
def test_message_that_was_read_goes_to_the_journal_of_its_sender() -> None:
    sender = Sender()
    ended(sender, MessageClass.ACK_RECEIVE, Journal.JOURNAL)
    assert bodies(sender.here.core.journal) == [b"1"]
    assert sender.positions == []
    assert bodies(sender.here.core.transactional_dead_letter) == []


@pytest.mark.requirement("QB-A37-01", "QB-3.1.5.5.4-01")
def test_transactional_message_is_not_journaled_by_its_session_or_order_ack() -> None:
    sender = Sender()
    sender.send(b"1", journal=Journal.JOURNAL)
    sender.take(1)
    sender.peer.order_ack(sender.sequence, 1)
    assert bodies(sender.here.core.journal) == []


@pytest.mark.requirement("QB-3.1.5.7-04", "QB-3.1.5.7-05", "QB-3.1.5.7-02")
@pytest.mark.parametrize("has_own_queue", [False, True])
@pytest.mark.parametrize(
    "message_class", [MessageClass.NACK_Q_PURGED, MessageClass.NACK_NOT_TRANSACTIONAL_Q]
)
def test_message_that_was_refused_or_not_read_goes_to_a_dead_letter_queue(
    message_class: int, has_own_queue: bool
) -> None:
    sender = Sender()
    core = sender.here.core
    own = sender.here.queue("mine", transactional=True)
    path = r".\private$\mine" if has_own_queue else ""
    ended(sender, message_class, Journal.DEAD_LETTER, dead_letter_queue=path)
    assert bodies(own) == ([b"1"] if has_own_queue else [])
    assert bodies(core.transactional_dead_letter) == ([] if has_own_queue else [b"1"])
    assert bodies(core.dead_letter) == []
    assert sender.positions == []


@pytest.mark.requirement("QB-3.1.5.7-06", "QB-A40-01")
@pytest.mark.parametrize(
    ("message_class", "journal"),
    [
        (MessageClass.ACK_RECEIVE, Journal.DEAD_LETTER),
        (MessageClass.NACK_Q_DELETED, Journal.JOURNAL),
    ],
)
def test_message_whose_end_nobody_wants_to_keep_leaves_without_a_copy(
    message_class: int, journal: Journal
) -> None:
    sender = Sender()
    ended(sender, message_class, journal)
    core = sender.here.core
    assert sender.positions == []
    assert bodies(core.journal) == []
    assert bodies(core.transactional_dead_letter) == []


@pytest.mark.requirement("QB-3.1.5.7-03", "QB-A40-01")
def test_final_ack_may_come_before_any_other_acknowledgment() -> None:
    sender = Sender()
    sender.send(b"1", b"2", journal=Journal.JOURNAL)
    first, _ = sender.peer.messages
    sender.peer.final_ack(first)
    assert bodies(sender.here.core.journal) == [b"1"]
    assert sender.positions == [b"2"]
    # and the others, late, do no harm
    sender.take(2)
    sender.peer.order_ack(sender.sequence, 2)
    assert sender.positions == [b"2"]
    sender.estate.advance(100.0)
    assert sender.peer.bodies == [b"1", b"2"]


@pytest.mark.requirement("QB-A40-01")
def test_final_ack_of_an_unknown_message_is_ignored() -> None:
    sender = Sender()
    message = ended(sender, MessageClass.ACK_RECEIVE, Journal.JOURNAL)
    sender.peer.final_ack(message)  # a second time
    sender.send(b"2", journal=Journal.JOURNAL)
    second = sender.peer.messages[-1]
    sender.peer.final_ack(second, source=sender.there.identifier.bytes_le)  # another's message
    assert bodies(sender.here.core.journal) == [b"1"]
    assert sender.positions == [b"2"]
    assert len(sender.here.transport.sessions) == 1


@pytest.mark.requirement("QB-3.1.1.3.1-32", "QB-3.1.5.6-09")
def test_message_that_waits_for_its_final_ack_survives_a_restart_and_is_not_sent_again() -> None:
    sender = Sender()
    sender.send(b"1", b"2", b"3", journal=BOTH)
    first, second, _ = sender.peer.messages
    sender.take(3)
    sender.peer.order_ack(sender.sequence, 2)
    sender.restart()
    assert sender.peer.bodies == [b"3"]
    assert sender.positions == [b"1", b"2", b"3"]
    # when their ends are told to the queue manager that started anew
    sender.peer.final_ack(second)
    sender.peer.final_ack(first, MessageClass.NACK_Q_PURGED)
    core = sender.here.core
    assert bodies(core.journal) == [b"2"]
    assert bodies(core.transactional_dead_letter) == [b"1"]
    assert sender.positions == [b"3"]


def test_final_ack_after_a_restart_ends_a_message_that_was_not_sent_again_yet() -> None:
    # given a message that was sent, and a restart before any acknowledgment
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    given_routes(estate)
    orders = there.queue("orders", transactional=True)
    name = there.private_name(orders)
    here.send(name, b"1", transactional=True, journal=Journal.JOURNAL)
    estate.settle()
    estate.names["sales02"] = []  # nor does it find the way any more
    here.restart()
    estate.settle()
    # when the message is read, and the reader's queue manager connects
    reader = open_queue(there.core, parse_format_name(direct(there, "orders")), AccessType.RECEIVE)
    there.run(partial(dequeue_message, there.core, reader, timeout=0))
    estate.advance(30.0)
    # then it is journaled, gone, and never sent again
    assert bodies(here.core.journal) == [b"1"]
    assert not len(here.outgoing(name).positions)
    assert all(b"1" not in sent_bodies(line) for line in here.lines)


# Whole ways


@pytest.mark.requirement("QB-3.1.5.7-03", "DM-3.1.1.12-119")
@pytest.mark.parametrize("kind", ["direct", "private"])
def test_end_of_a_message_is_told_to_its_sender(kind: str) -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    given_routes(estate)
    orders = there.queue("orders", transactional=True)
    name = direct(there, "orders") if kind == "direct" else there.private_name(orders)
    here.send_transaction(name, b"1", b"2", journal=BOTH)
    estate.advance(20.0)
    assert len(here.outgoing(name).positions) == 2
    reader = open_queue(there.core, parse_format_name(direct(there, "orders")), AccessType.RECEIVE)
    there.run(partial(dequeue_message, there.core, reader, timeout=0))
    there.run(purge_queue, there.core, orders)
    estate.advance(20.0)
    assert bodies(here.core.journal) == [b"1"]
    assert bodies(here.core.transactional_dead_letter) == [b"2"]
    assert not len(here.outgoing(name).positions)


def test_transactional_message_to_a_queue_of_another_kind_comes_back() -> None:
    estate = Estate()
    here, there = estate.node("SALES01", 1), estate.node("SALES02", 2)
    orders = there.queue("orders")
    name = direct(there, "orders")
    admin = here.queue("admin")
    asked = {
        "acknowledgements": Acknowledge.NEGATIVE_ARRIVAL,
        "administration_queue": direct(here, "admin"),
    }
    here.send_transaction(name, b"1", journal=Journal.DEAD_LETTER, **asked)
    estate.advance(20.0)
    assert bodies(orders) == []
    assert bodies(here.core.transactional_dead_letter) == [b"1"]
    nack = only(admin).packet.properties.message_class
    assert nack == MessageClass.NACK_NOT_TRANSACTIONAL_Q
    assert not len(here.outgoing(name).positions)


# Purging


def test_purge_of_a_transactional_outgoing_queue_in_every_state() -> None:
    sender = Sender()
    core, queue = sender.here.core, sender.here.outgoing(sender.name)
    # given one that arrived, one that was sent, and one that waits for the window
    sender.peer.acknowledge(0, window=1)
    sender.send(b"arrived", journal=BOTH)
    sequence = sender.sequence
    sender.peer.acknowledge(1, 1, 0b1, window=1)
    sender.peer.order_ack(sequence, 1)
    sender.send(b"sent", b"waits", journal=BOTH)
    assert sender.peer.bodies == [b"arrived", b"sent"]
    sender.here.run(purge_queue, core, queue)
    assert sender.positions == []
    assert core.used_bytes == sum(q.total_bytes for q in core.queues.values())
    assert sender.here.transport.awaiting == {}
    letters = bodies(core.transactional_dead_letter)
    assert letters[-2:] == [b"sent", b"waits"]
    # then late acknowledgments do no harm, and the stream goes on in a sequence of its own
    sender.peer.acknowledge(2, 2, 0b1)
    sender.peer.order_ack(sender.sequence, 2)
    sender.estate.advance(100.0)
    assert sender.peer.bodies == [b"arrived", b"sent"]
    before = sender.sequence
    sender.send(b"later")
    assert sender.sequence > before
    assert sender.numbers[-1] == (1, 0)
