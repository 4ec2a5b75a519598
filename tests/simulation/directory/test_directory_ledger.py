"""What the ledger takes for a broken promise, and what not."""

from __future__ import annotations

import pytest

from falconmq.simulation.directory.ledger import Change, Kind, Ledger, Outcome
from falconmq.simulation.world import SimulationError

NAME = ("Queue", "m\\q")
DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN
CREATE, CHANGE, DELETE = Kind.CREATE, Kind.CHANGE, Kind.DELETE

Said = tuple[Kind, object, float, float, Outcome]


def ledger_of(*changes: Said) -> Ledger:
    ledger = Ledger()
    for kind, value, began, ended, outcome in changes:
        ledger.add(NAME, Change(kind, value, began, ended, outcome))
    return ledger


MADE = (CREATE, "a", 1.0, 1.0, DONE)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ((MADE,), {NAME: "a"}),
        ((MADE, (CHANGE, "b", 2.0, 2.0, DONE)), {NAME: "b"}),
        # nobody knows whether it happened
        ((MADE, (CHANGE, "b", 2.0, 27.0, UNKNOWN)), {NAME: "a"}),
        ((MADE, (CHANGE, "b", 2.0, 27.0, UNKNOWN)), {NAME: "b"}),
        ((MADE, (DELETE, None, 2.0, 27.0, UNKNOWN)), {}),
        ((MADE, (DELETE, None, 2.0, 27.0, UNKNOWN)), {NAME: "a"}),
        (((CREATE, "a", 1.0, 26.0, UNKNOWN),), {}),
        # both were acknowledged, and nobody knows which came last
        ((MADE, (CHANGE, "b", 2.0, 27.0, DONE), (CHANGE, "c", 3.0, 3.0, DONE)), {NAME: "b"}),
        # made, deleted, and made again under its name
        ((MADE, (DELETE, None, 2.0, 2.0, DONE), (CREATE, "b", 3.0, 3.0, DONE)), {NAME: "b"}),
        ((MADE, (DELETE, None, 2.0, 2.0, DONE), (CREATE, "b", 3.0, 3.0, REFUSED)), {}),
    ],
)
def test_what_may_be_true_is_no_mistake(
    changes: tuple[Said, ...], found: dict[object, str]
) -> None:
    ledger_of(*changes).check(found, lambda _name: False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "found", "problem"),
    [
        ((MADE,), {}, "was made and acknowledged, and is not there"),
        ((MADE, (CHANGE, "b", 2.0, 2.0, DONE)), {NAME: "a"}, "a later change"),
        ((MADE, (CHANGE, "b", 2.0, 2.0, REFUSED)), {NAME: "b"}, "nobody asked for that"),
        ((MADE, (DELETE, None, 2.0, 2.0, DONE)), {NAME: "a"}, "was deleted and is there"),
        ((MADE, (DELETE, None, 2.0, 2.0, REFUSED)), {}, "is not there"),
        (((CREATE, "a", 1.0, 1.0, REFUSED),), {NAME: "a"}, "is there"),
        ((MADE,), {NAME: "a", ("Queue", "m\\other"): "x"}, "nobody asked for it"),
        (
            (MADE, (DELETE, None, 2.0, 2.0, DONE), (CREATE, "b", 3.0, 3.0, DONE)),
            {NAME: "a"},
            "a later change",
        ),
        (
            (MADE, (DELETE, None, 2.0, 2.0, DONE), (CREATE, "b", 3.0, 3.0, DONE)),
            {},
            "is not there",
        ),
    ],
)
def test_a_broken_promise_is_noticed(
    changes: tuple[Said, ...], found: dict[object, str], problem: str
) -> None:
    with pytest.raises(SimulationError, match=problem):
        ledger_of(*changes).check(found, lambda _name: False)  # type: ignore[arg-type]


def test_nothing_is_said_of_a_name_that_is_open() -> None:
    ledger_of(MADE).check({}, lambda name: name == NAME)
