"""What must be true when a world is quiet: broken once, and it is noticed."""

from __future__ import annotations

import pytest

from falconmq.manager.transactions import create_transaction
from falconmq.message import Acknowledge
from falconmq.simulation.checkers import check_acknowledgements, check_quiet
from falconmq.simulation.copies import RECEIVED, Copy, End, Kind, Place
from falconmq.simulation.life import Life
from falconmq.simulation.world import SimulationError
from falconmq.wire.message_class import MessageClass
from tests.simulation.helpers import Town, Wire, given_copy

PURGED = int(MessageClass.NACK_Q_PURGED)
REACHED = int(MessageClass.ACK_REACH_QUEUE)


@pytest.fixture
def town() -> Town:
    return Town()


def accepted(town: Town, kind: Kind = Kind.TRANSACTIONAL, **changes: object) -> Copy:
    """A message that was sent, came to its queue and was received, unless `changes` say else."""
    happened: dict[str, object] = {"inserted": [1], "left": [RECEIVED], **changes}
    copy = given_copy(town, 1, kind, **happened)
    town.ledger.accepted([copy])
    return copy


def test_a_world_in_which_everything_arrived_is_quiet(town: Town) -> None:
    accepted(town)
    check_quiet(town.ledger, town.network)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_lost_message_is_noticed(town: Town, kind: Kind) -> None:
    accepted(town, kind, inserted=[], left=[])
    with pytest.raises(SimulationError, match="it was lost"):
        check_quiet(town.ledger, town.network)


def test_an_express_message_may_get_lost_in_a_crash(town: Town) -> None:
    accepted(town, Kind.EXPRESS, inserted=[], left=[])
    town.nodes[0].crashes += 1
    check_quiet(town.ledger, town.network)


def test_a_message_that_should_have_been_refused_is_noticed(town: Town) -> None:
    accepted(town, rejection=int(MessageClass.NACK_BAD_DST_Q))
    with pytest.raises(SimulationError, match="should have refused it"):
        check_quiet(town.ledger, town.network)


def test_a_message_that_disappears_from_its_queue_is_noticed(town: Town) -> None:
    accepted(town, left=[])
    with pytest.raises(SimulationError, match="left 0 times"):
        check_quiet(town.ledger, town.network)


def test_a_connection_that_nobody_closes_is_noticed(town: Town) -> None:
    Wire(town)
    with pytest.raises(SimulationError, match="2 connections are still open, at NODE0, NODE1"):
        check_quiet(town.ledger, town.network)


def test_a_message_that_still_waits_is_noticed(town: Town) -> None:
    # given a message to a node that is down
    town.nodes[1].crash(silently=False)
    for _ in range(30):
        town.workload.send(town.nodes[0])
    town.world.run_until(5.0)
    town.nodes[1].start()
    # when somebody looks before it can arrive
    with pytest.raises(SimulationError, match="still wait at NODE0"):
        check_quiet(town.ledger, town.network)


def test_bytes_that_are_counted_wrongly_are_noticed(town: Town) -> None:
    life: Life = town.life()
    life.core.used_bytes += 1
    with pytest.raises(SimulationError, match="NODE0 counts 1 bytes"):
        check_quiet(town.ledger, town.network)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"acknowledgements": Acknowledge.NONE, "acks": [REACHED]}, "came unasked"),
        (
            {"acknowledgements": Acknowledge.FULL_REACH_QUEUE, "acks": [REACHED, REACHED]},
            "came 2 times",
        ),
        ({"acknowledgements": Acknowledge.FULL_REACH_QUEUE}, "0x0002 is missing"),
        ({"acknowledgements": Acknowledge.FULL_RECEIVE}, "0x4000 is missing"),
        (
            {"acknowledgements": Acknowledge.NACK_RECEIVE, "left": [PURGED]},
            "0xc001 is missing",
        ),
    ],
)
def test_a_wrong_acknowledgement_is_noticed(
    town: Town, changes: dict[str, object], problem: str
) -> None:
    copy = accepted(town, **changes)  # type: ignore[arg-type] # every change is a field of Copy
    with pytest.raises(SimulationError, match=problem):
        check_acknowledgements(town.ledger, copy)


def ended(town: Town, place: Place, reason: int, **changes: object) -> Copy:
    """A message that came to an end at NODE1, outside its queue, and whose sender wants to know."""
    end = End(town.nodes[1], place, reason)
    asked = Acknowledge.NACK_REACH_QUEUE
    facts = {"ends": [end], "inserted": [], "left": [], "acknowledgements": asked, **changes}
    return accepted(town, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "reason", "message_class"),
    [
        (Place.DOOR, MessageClass.NACK_NOT_TRANSACTIONAL_Q, MessageClass.NACK_NOT_TRANSACTIONAL_Q),
        (Place.WAY, MessageClass.NACK_Q_PURGED, MessageClass.NACK_DELETED),
    ],
)
def test_each_end_has_its_acknowledgement(
    town: Town, place: Place, reason: int, message_class: int
) -> None:
    copy = ended(town, place, reason)
    with pytest.raises(SimulationError, match="is missing"):
        check_acknowledgements(town.ledger, copy)
    copy.acks = [message_class]
    check_acknowledgements(town.ledger, copy)
    copy.acks = [message_class] * 2
    with pytest.raises(SimulationError, match="came 2 times"):
        check_acknowledgements(town.ledger, copy)


def test_who_has_no_room_may_discard_its_acknowledgements(town: Town) -> None:
    copy = ended(town, Place.DOOR, MessageClass.NACK_NOT_TRANSACTIONAL_Q)
    town.nodes[0].was_full = True
    with pytest.raises(SimulationError, match="is missing"):
        check_acknowledgements(town.ledger, copy)
    town.nodes[1].was_full = True
    check_acknowledgements(town.ledger, copy)


def test_nobody_need_tell_what_helps_a_stranger(town: Town) -> None:
    copy = ended(town, Place.DOOR, MessageClass.NACK_BAD_DST_Q)
    check_acknowledgements(town.ledger, copy)
    copy.acks = [MessageClass.NACK_BAD_DST_Q]
    with pytest.raises(SimulationError, match="came unasked"):
        check_acknowledgements(town.ledger, copy)


def test_a_transactional_message_that_ends_at_a_router_is_still_lost(town: Town) -> None:
    """Its sender sends it again."""
    ended(town, Place.WAY, MessageClass.NACK_Q_PURGED, acknowledgements=Acknowledge.NONE)
    with pytest.raises(SimulationError, match="it was lost"):
        check_quiet(town.ledger, town.network)


def test_an_acknowledgement_of_what_was_never_sent_is_noticed(town: Town) -> None:
    copy = given_copy(town, 1, acks=[REACHED])
    town.ledger.gone([copy])
    with pytest.raises(SimulationError, match="yet it was acknowledged"):
        check_quiet(town.ledger, town.network)


def test_a_transaction_that_nobody_ends_is_noticed(town: Town) -> None:
    create_transaction(town.life().core)
    with pytest.raises(SimulationError, match="NODE0 has 1 transactions, 0 of them in doubt"):
        check_quiet(town.ledger, town.network)
