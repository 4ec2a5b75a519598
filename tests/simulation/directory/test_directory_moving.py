"""Queue managers move from site to site, and everybody hears of it in the end."""

from __future__ import annotations

from random import Random

import pytest

from falconmq.directory import tables
from falconmq.simulation.directory.checking import check_quiet
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.load import Load
from falconmq.simulation.directory.moving import Moves
from falconmq.simulation.world import SimulationError
from tests.simulation.directory.towns import town, wait

NAME = (tables.QUEUE_MANAGER, "M")
QUEUE = (tables.QUEUE, "M\\orders")


def moving(seed: int = 1) -> tuple[Enterprise, Moves]:
    """An enterprise of two sites, with a machine and its queue in the first."""
    enterprise = town(0, 0)
    load, pec = Load(enterprise), enterprise.pec
    enterprise.create(pec, NAME, "machine", site_identifiers=[pec.site])
    enterprise.create(pec, QUEUE, "queue")
    load.moved("M", pec.site)
    wait(enterprise, 60.0)
    end = enterprise.world.now + 300.0
    return enterprise, Moves(enterprise, load, Random(seed), end)


@pytest.mark.parametrize("seed", range(4))
def test_a_queue_manager_moves_and_all_copies_are_the_same(seed: int) -> None:
    enterprise, moves = moving(seed)
    before = enterprise.find(enterprise.pec, NAME)
    assert before is not None
    moves.begin()
    assert enterprise.find(enterprise.pec, NAME) is None  # it has left
    wait(enterprise, 1000.0)
    check_quiet(enterprise)
    other = enterprise.servers["SERVER1"]
    row = enterprise.find(enterprise.pec, NAME)
    assert row is not None
    assert row["site_identifiers"] == [other.site]
    assert enterprise.world.counts["queue manager moved"] == 1


def test_what_cannot_move_in_time_is_given_up() -> None:
    enterprise, moves = moving()
    enterprise.servers["SERVER1"].crash()
    moves.begin()
    wait(enterprise, 400.0)
    enterprise.servers["SERVER1"].start()
    wait(enterprise, 1000.0)
    check_quiet(enterprise)
    assert enterprise.find(enterprise.pec, NAME) is None


def test_one_queue_manager_is_moved_by_one_person_at_a_time() -> None:
    enterprise, moves = moving()
    enterprise.servers["SERVER1"].crash()
    moves.begin()
    changes = len(enterprise.ledger.names[NAME[0], "m"])
    moves.begin()
    wait(enterprise, 20.0)
    assert len(enterprise.ledger.names[NAME[0], "m"]) == changes
    enterprise.servers["SERVER1"].start()
    wait(enterprise, 200.0)
    assert enterprise.world.counts["queue manager moved"] == 1
    moves.begin()  # and back
    wait(enterprise, 60.0)
    assert enterprise.world.counts["queue manager moved"] == 2


def test_a_name_is_open_if_it_moved_and_something_of_it_was_lost() -> None:
    enterprise, moves = moving()
    machine, queue = ((kind, name.lower()) for kind, name in (NAME, QUEUE))
    enterprise.ledger.forgive(queue)
    assert not enterprise.is_open(machine)
    moves.begin()
    assert enterprise.is_open(machine)
    assert enterprise.is_open(queue)
    assert not enterprise.is_open((tables.SITE, "m"))
    enterprise.ledger.forgiven.clear()
    assert not enterprise.is_open(machine)


def test_two_of_a_name_are_noticed_unless_it_is_open() -> None:
    enterprise, moves = moving()
    moves.begin()
    wait(enterprise, 1000.0)
    other = enterprise.servers["SERVER1"]
    for server in (enterprise.pec, other):
        with server.directory.changing() as writer:  # as if a take-over had lost its deletion
            table = tables.table_of(tables.QUEUE_MANAGER)
            (row,) = writer.by_index(table, "computer_name", "M")
            writer.keep(table, {**row, "identifier": writer.new_identifier()})
            writer.workspace.commit()
    with pytest.raises(SimulationError, match="is there twice"):
        check_quiet(enterprise)
    enterprise.ledger.forgive((NAME[0], "m"))
    check_quiet(enterprise)
