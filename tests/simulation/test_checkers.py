"""What must be true when a world is quiet: broken once, and it is noticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from falconmq.message import Acknowledge, Journal
from falconmq.simulation.checkers import (
    check_acknowledgements,
    check_dead_letter,
    check_journal,
    check_quiet,
)
from falconmq.simulation.ledger import Copy, Kind
from falconmq.simulation.node import Life
from falconmq.simulation.world import SimulationError
from falconmq.wire.message_class import MessageClass
from tests.simulation.helpers import Town, Wire, given_copy

RECEIVED = int(MessageClass.ACK_RECEIVE)
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
        (
            {
                "acknowledgements": Acknowledge.NACK_REACH_QUEUE,
                "rejection": int(MessageClass.NACK_NOT_TRANSACTIONAL_Q),
                "inserted": [],
                "left": [],
            },
            "its sender was not told",
        ),
    ],
)
def test_a_wrong_acknowledgement_is_noticed(
    town: Town, changes: dict[str, object], problem: str
) -> None:
    copy = accepted(town, **changes)  # type: ignore[arg-type] # every change is a field of Copy
    with pytest.raises(SimulationError, match=problem):
        check_acknowledgements(town.ledger, copy)


@pytest.mark.parametrize(
    ("check", "journal", "left", "found", "problem"),
    [
        (check_journal, Journal.NONE, RECEIVED, 1, "nobody asked for it"),
        (check_journal, Journal.JOURNAL, RECEIVED, 0, "0 copies are in the sender's journal"),
        (check_journal, Journal.JOURNAL, RECEIVED, 2, "2 copies are in the sender's journal"),
        (check_journal, Journal.JOURNAL, PURGED, 1, "nobody received it"),
        (check_dead_letter, Journal.NONE, PURGED, 1, "nobody asked for that"),
        (check_dead_letter, Journal.DEAD_LETTER, RECEIVED, 1, "it was received"),
        (check_dead_letter, Journal.DEAD_LETTER, PURGED, 0, "there are 0 dead letters"),
        (check_dead_letter, Journal.DEAD_LETTER, PURGED, 2, "there are 2 dead letters"),
    ],
)
def test_a_wrong_copy_at_the_sender_is_noticed(
    town: Town,
    check: Callable[..., None],
    journal: Journal,
    left: int,
    found: int,
    problem: str,
) -> None:
    copy = accepted(town, journal=journal, left=[left])
    with pytest.raises(SimulationError, match=problem):
        check(town.ledger, copy, found)


def test_a_message_that_expired_in_doubt_may_be_received_and_dead_lettered(town: Town) -> None:
    copy = accepted(town, journal=Journal.DEAD_LETTER, may_expire=True)
    check_dead_letter(town.ledger, copy, 1)
