"""Every promise that the ledger watches over: broken once, and it says so."""

from __future__ import annotations

import pytest

from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.simulation.ledger import Copy, Kind
from falconmq.simulation.workload import queue_of
from falconmq.simulation.world import SimulationError
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


def test_a_message_id_that_is_given_twice_is_noticed(town: Town) -> None:
    town.ledger.accepted([given_copy(town, 1)])
    with pytest.raises(SimulationError, match="MessageID was given before"):
        given_copy(town, 1)
