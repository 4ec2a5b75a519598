"""Journals and dead letters: what belongs where, and that anything else is noticed."""

from __future__ import annotations

from collections import Counter

import pytest

from falconmq.message import Journal
from falconmq.simulation.copies import RECEIVED, Copy, End, Kind, Place
from falconmq.simulation.keeping import (
    DEAD_LETTER,
    TRANSACTIONAL_DEAD_LETTER,
    Where,
    check_dead_letters,
    check_journal,
)
from falconmq.simulation.world import SimulationError
from falconmq.wire.message_class import MessageClass
from tests.simulation.helpers import Town, given_copy

PURGED = int(MessageClass.NACK_Q_PURGED)
LATE = int(MessageClass.NACK_REACH_QUEUE_TIMEOUT)
UNREAD = int(MessageClass.NACK_RECEIVE_TIMEOUT)
FULL = int(MessageClass.NACK_Q_EXCEED_QUOTA)
REFUSED = int(MessageClass.NACK_BAD_DST_Q)
TRANSACTIONAL, RECOVERABLE = Kind.TRANSACTIONAL, Kind.RECOVERABLE
SENDER: Where = ("NODE0", DEAD_LETTER)
OWN: Where = ("NODE0", "lost")
THERE: Where = ("NODE1", DEAD_LETTER)
SENDER_OF_ORDERS: Where = ("NODE0", TRANSACTIONAL_DEAD_LETTER)


@pytest.fixture
def town() -> Town:
    return Town()


def accepted(
    town: Town,
    kind: Kind,
    journal: Journal,
    ends: list[tuple[int, Place, int]],
    left: list[int],
    own: str = "",
) -> Copy:
    """A message from NODE0 to NODE1 that left its queue for `left`; an end begins with its node."""
    copy = given_copy(
        town,
        1,
        kind,
        journal=journal,
        inserted=list(range(len(left))),
        left=left,
        ends=[End(town.nodes[node], place, reason) for node, place, reason in ends],
        own_dead_letter_queue=own,
    )
    town.ledger.accepted([copy])
    return copy


@pytest.mark.parametrize(
    ("kind", "ends", "left", "right"),
    [
        (TRANSACTIONAL, [], [RECEIVED], {1}),
        (TRANSACTIONAL, [], [PURGED], {0}),
        (TRANSACTIONAL, [(0, Place.WAY, LATE)], [RECEIVED], {0}),  # given up before it was known
        (TRANSACTIONAL, [(1, Place.DOOR, LATE)], [RECEIVED], {0, 1}),  # the first news counts
        (RECOVERABLE, [], [RECEIVED], {1}),
        (RECOVERABLE, [], [PURGED], {1}),
        (RECOVERABLE, [(1, Place.DOOR, REFUSED)], [], {1}),  # the other side had it
        (RECOVERABLE, [(0, Place.WAY, PURGED)], [], {0}),
    ],
)
def test_the_journal_has_what_was_delivered(
    town: Town, kind: Kind, ends: list[tuple[int, Place, int]], left: list[int], right: set[int]
) -> None:
    copy = accepted(town, kind, Journal.JOURNAL, ends, left)
    for found in (0, 1, 2):
        if found in right:
            check_journal(town.ledger, copy, found)
        else:
            with pytest.raises(SimulationError, match=f"{found} copies are in the sender"):
                check_journal(town.ledger, copy, found)


def test_a_copy_in_the_journal_that_nobody_asked_for_is_noticed(town: Town) -> None:
    copy = accepted(town, RECOVERABLE, Journal.DEAD_LETTER, [], [RECEIVED])
    with pytest.raises(SimulationError, match="nobody asked for it"):
        check_journal(town.ledger, copy, 1)


@pytest.mark.parametrize(
    ("kind", "ends", "left", "own", "right"),
    [
        (RECOVERABLE, [], [RECEIVED], "", None),
        (RECOVERABLE, [], [PURGED], "", None),
        (RECOVERABLE, [], [UNREAD], "lost", THERE),  # the name of the other queue stays at home
        (RECOVERABLE, [(0, Place.WAY, LATE)], [], "", SENDER),
        (RECOVERABLE, [(0, Place.WAY, PURGED)], [], "lost", OWN),
        (RECOVERABLE, [(0, Place.WAY, LATE)], [RECEIVED], "", SENDER),  # it was in doubt
        (RECOVERABLE, [(1, Place.WAY, PURGED)], [], "lost", THERE),
        (RECOVERABLE, [(1, Place.DOOR, FULL)], [], "", THERE),
        (RECOVERABLE, [(1, Place.DOOR, REFUSED)], [], "", None),
        (TRANSACTIONAL, [], [RECEIVED], "", None),
        (TRANSACTIONAL, [], [PURGED], "", SENDER_OF_ORDERS),
        (TRANSACTIONAL, [], [UNREAD], "lost", OWN),
        (TRANSACTIONAL, [(0, Place.WAY, LATE)], [RECEIVED], "", SENDER_OF_ORDERS),
        (TRANSACTIONAL, [(1, Place.DOOR, FULL)], [], "", SENDER_OF_ORDERS),
        (TRANSACTIONAL, [(1, Place.WAY, PURGED)], [RECEIVED], "", None),  # it was sent again
    ],
)
def test_a_dead_letter_is_where_it_belongs(
    town: Town,
    kind: Kind,
    ends: list[tuple[int, Place, int]],
    left: list[int],
    own: str,
    right: Where | None,
) -> None:
    copy = accepted(town, kind, Journal.DEAD_LETTER, ends, left, own)
    due = Counter([right]) if right else Counter[Where]()
    check_dead_letters(town.ledger, copy, due)
    # and a missing one is noticed, a second one, and one in another place
    wrong = [due + Counter([where]) for where in (SENDER, OWN, THERE, SENDER_OF_ORDERS)]
    for found in [*wrong, Counter[Where]()]:
        if found != due:
            with pytest.raises(SimulationError, match="dead letters are in"):
                check_dead_letters(town.ledger, copy, found)


def test_a_dead_letter_that_nobody_asked_for_is_noticed(town: Town) -> None:
    copy = accepted(town, RECOVERABLE, Journal.NONE, [(0, Place.WAY, LATE)], [])
    with pytest.raises(SimulationError, match="nobody asked for that"):
        check_dead_letters(town.ledger, copy, Counter([SENDER]))


def test_a_message_with_two_ends_may_be_a_dead_letter_or_not(town: Town) -> None:
    ends = [(1, Place.DOOR, LATE)]
    copy = accepted(town, TRANSACTIONAL, Journal.DEAD_LETTER, ends, [RECEIVED])
    check_dead_letters(town.ledger, copy, Counter())
    check_dead_letters(town.ledger, copy, Counter([SENDER_OF_ORDERS]))
    with pytest.raises(SimulationError, match="2 dead letters"):
        check_dead_letters(town.ledger, copy, Counter([SENDER_OF_ORDERS] * 2))


def test_an_express_dead_letter_may_get_lost_in_a_crash(town: Town) -> None:
    copy = accepted(town, Kind.EXPRESS, Journal.DEAD_LETTER, [(0, Place.WAY, LATE)], [])
    with pytest.raises(SimulationError, match="0 dead letters"):
        check_dead_letters(town.ledger, copy, Counter())
    town.nodes[0].crashes += 1
    check_dead_letters(town.ledger, copy, Counter())
