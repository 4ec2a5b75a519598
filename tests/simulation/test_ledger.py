"""Every promise that the ledger watches over: broken once, and it says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import open_queue
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType
from falconmq.names import parse_format_name
from falconmq.simulation.copies import Copy, Kind, Place
from falconmq.simulation.workload import queue_of
from falconmq.simulation.world import SimulationError
from falconmq.wire.message_class import MessageClass
from tests.manager.helpers import message
from tests.simulation.helpers import Town, given_copy


@pytest.fixture
def town() -> Town:
    return Town()


def place(town: Town, copy: Copy, lookup_id: int, body: bytes = b"") -> MessagePosition:
    """The message of a copy at a place in its queue at NODE1."""
    stored: StoredMessage = message(
        body, source=town.nodes[0].identifier, recoverable=copy.kind is not Kind.EXPRESS
    )
    stored.packet.user.message_id = copy.key[1]
    return MessagePosition(queue(town, copy), lookup_id, stored)


def queue(town: Town, copy: Copy) -> Queue:
    return queue_of(town.life(1), copy.queue)


def arrive(town: Town, copy: Copy, lookup_id: int) -> None:
    position = place(town, copy, lookup_id)
    town.ledger.seen(town.nodes[1], position.queue, position)
    town.ledger.available(town.nodes[1], position.queue, position)


def test_messages_that_arrive_once_and_in_order_are_fine(town: Town) -> None:
    copies = [given_copy(town, number) for number in (1, 2, 3)]
    town.ledger.accepted(copies)
    for copy in copies:
        arrive(town, copy, copy.number)
    assert [copy.inserted for copy in copies] == [[1], [2], [3]]


def test_a_message_that_comes_before_its_senders_commit_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1)
    with pytest.raises(SimulationError, match="its sender's commit is not durable"):
        arrive(town, copy, 1)


def test_a_message_of_a_transaction_that_was_aborted_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1)
    town.ledger.gone([copy])
    with pytest.raises(SimulationError, match="its sender's commit is not durable"):
        arrive(town, copy, 1)


def test_a_message_that_nobody_sent_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1)
    town.ledger.copies.clear()
    with pytest.raises(SimulationError, match="that nobody sent"):
        arrive(town, copy, 1)


def test_a_message_in_another_queue_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1, Kind.RECOVERABLE)
    town.ledger.accepted([copy])
    position = place(town, copy, 1)
    copy.queue = "small"
    with pytest.raises(SimulationError, match="it came to"):
        town.ledger.seen(town.nodes[1], position.queue, position)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_message_that_is_put_into_its_queue_twice_is_noticed(town: Town, kind: Kind) -> None:
    copy = given_copy(town, 1, kind)
    town.ledger.accepted([copy])
    arrive(town, copy, 1)
    with pytest.raises(SimulationError, match="a second time"):
        arrive(town, copy, 2)


def test_an_express_message_may_be_doubled_when_somebody_lost_its_memory(town: Town) -> None:
    copy = given_copy(town, 1, Kind.EXPRESS)
    town.ledger.accepted([copy])
    town.nodes[1].crashes += 1
    arrive(town, copy, 1)
    arrive(town, copy, 2)
    assert copy.inserted == [1, 2]


def test_a_recoverable_message_may_be_doubled_when_a_clock_aged_the_history(town: Town) -> None:
    copy = given_copy(town, 1, Kind.RECOVERABLE)
    town.ledger.accepted([copy])
    town.nodes[1].clock.jump(3600.0)
    arrive(town, copy, 1)
    arrive(town, copy, 2)
    assert copy.inserted == [1, 2]


def test_a_message_that_a_reader_gives_back_is_not_doubled(town: Town) -> None:
    copy = given_copy(town, 1)
    town.ledger.accepted([copy])
    arrive(town, copy, 1)
    arrive(town, copy, 1)
    assert copy.inserted == [1]


def test_transactional_messages_out_of_order_are_noticed(town: Town) -> None:
    first, second = given_copy(town, 1), given_copy(town, 2)
    town.ledger.accepted([first, second])
    arrive(town, second, 1)
    with pytest.raises(SimulationError, match="out of order"):
        arrive(town, first, 2)


def test_a_message_that_is_received_twice_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1)
    town.ledger.accepted([copy])
    arrive(town, copy, 1)
    packet = place(town, copy, 1).message.packet
    town.ledger.consumed(town.nodes[1], packet)
    with pytest.raises(SimulationError, match="received 2 times"):
        town.ledger.consumed(town.nodes[1], packet)


def test_a_body_that_changed_on_its_way_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1, body=b"gold")
    town.ledger.accepted([copy])
    arrive(town, copy, 1)
    with pytest.raises(SimulationError, match="body is not the one"):
        town.ledger.consumed(town.nodes[1], place(town, copy, 1, b"lead").message.packet)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_message_id_that_is_given_twice_is_noticed(
    town: Town, kind: Kind, is_accepted: bool
) -> None:
    copy = given_copy(town, 1, kind)
    town.ledger.accepted([copy]) if is_accepted else town.ledger.gone([copy])
    with pytest.raises(SimulationError, match="MessageID was given before"):
        given_copy(town, 1)


def test_a_message_that_does_not_say_who_else_got_it_is_noticed(town: Town) -> None:
    names = (town.workload.name(town.nodes[0], "plain"), town.workload.name(town.nodes[1], "plain"))
    copy = given_copy(town, 1, destinations=names)
    town.ledger.accepted([copy])
    arrive(town, copy, 1)
    with pytest.raises(SimulationError, match="it was sent to one queue"):
        town.ledger.consumed(town.nodes[1], place(town, copy, 1).message.packet)


def end(town: Town, copy: Copy, reason: int) -> None:
    """NODE1 refuses a message."""
    town.ledger.refused(town.nodes[1], place(town, copy, 1).message.packet, reason)


def test_an_end_that_there_is_a_reason_for_is_kept(town: Town) -> None:
    copy = given_copy(town, 1, may_expire=True)
    end(town, copy, MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    assert [each.place for each in copy.ends] == [Place.DOOR]


@pytest.mark.parametrize(
    "reason",
    [
        MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.NACK_BAD_DST_Q,
        MessageClass.NACK_Q_EXCEED_QUOTA,
        MessageClass.NACK_HOP_COUNT_EXCEEDED,
    ],
)
def test_a_message_that_is_refused_for_no_reason_is_noticed(town: Town, reason: int) -> None:
    copy = given_copy(town, 1)
    with pytest.raises(SimulationError, match="it ended at the door of NODE1"):
        end(town, copy, reason)


def test_a_queue_that_was_deleted_is_a_reason(town: Town) -> None:
    town.nodes[1].deleted_queues.add("orders")
    end(town, given_copy(town, 1), MessageClass.NACK_BAD_DST_Q)


def test_a_message_that_is_refused_twice_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1, rejection=MessageClass.NACK_NOT_TRANSACTIONAL_Q)
    end(town, copy, MessageClass.NACK_NOT_TRANSACTIONAL_Q)
    with pytest.raises(SimulationError, match="refused it a second time"):
        end(town, copy, MessageClass.NACK_NOT_TRANSACTIONAL_Q)


def test_an_outgoing_queue_that_is_purged_without_anybody_is_noticed(town: Town) -> None:
    # given a message in an outgoing queue
    copy = given_copy(town, 1)
    life = town.life()
    descriptor = open_queue(life.core, parse_format_name(copy.name), AccessType.SEND)
    assert descriptor.queue is not None
    position = replace(place(town, copy, 1), queue=descriptor.queue)
    # when it leaves it
    with pytest.raises(SimulationError, match="it ended in an outgoing queue of NODE0"):
        town.ledger.deleted(town.nodes[0], descriptor.queue, position, MessageClass.NACK_Q_PURGED)


def test_an_acknowledgement_that_is_refused_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1)
    packet = place(town, copy, 1).message.packet
    packet.properties.message_class = MessageClass.ACK_RECEIVE
    with pytest.raises(SimulationError, match="refused an acknowledgement"):
        town.ledger.refused(town.nodes[1], packet, MessageClass.NACK_BAD_DST_Q)


def test_a_transactional_message_may_not_come_again_after_its_queue_was_deleted(
    town: Town,
) -> None:
    copy = given_copy(town, 1)
    town.ledger.accepted([copy])
    arrive(town, copy, 1)
    town.nodes[1].deleted_queues.add("orders")
    town.nodes[1].crash(silently=True)
    town.nodes[1].start()
    town.nodes[1].disk.flush()
    with pytest.raises(SimulationError, match="a second time"):
        arrive(town, copy, 2)
