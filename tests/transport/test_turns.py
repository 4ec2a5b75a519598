"""What waits for the disk, and the order in which it is let go."""

from __future__ import annotations

from falconmq.transport.acceptor import AcceptorSession
from falconmq.transport.settings import TransportSettings
from falconmq.transport.turns import Turn, Turns

SESSION = AcceptorSession(TransportSettings(), bytes(16), "10.0.0.7", 0.0)


def ended(turns: Turns) -> Turn:
    """One more turn in which a message came."""
    turns.count_received(SESSION)
    turn = turns.end()
    assert turn is not None
    return turn


def test_turns_are_let_go_in_the_order_they_were_taken() -> None:
    turns = Turns()
    first, second, third = ended(turns), ended(turns), ended(turns)
    assert list(turns.done(second)) == []
    assert list(turns.done(first)) == [first, second]
    assert list(turns.done(third)) == [third]


def test_a_turn_with_nothing_to_tell_waits_for_nobody() -> None:
    turns = Turns()
    assert turns.end() is None
    assert ended(turns).received == {SESSION: 1}


def test_what_was_counted_goes_with_its_turn() -> None:
    turns = Turns()
    turns.count_received(SESSION)
    assert ended(turns).received == {SESSION: 2}
    assert turns.current.is_empty


def test_what_did_not_happen_is_never_told() -> None:
    # given a turn that waits for the disk, and one that runs
    turns = Turns()
    lost = ended(turns)
    turns.count_received(SESSION)
    # when the disk has failed
    turns.forget()
    # then neither is let go, whatever comes after
    assert turns.end() is None
    assert list(turns.done(lost)) == []
    later = ended(turns)
    assert list(turns.done(later)) == [later]
