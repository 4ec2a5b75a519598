"""A site is given up, or lost by mistake: what all servers make of it."""

from __future__ import annotations

from functools import partial

import pytest

from falconmq.directory.replication.site_removal import remove_site
from falconmq.directory.replication.topology import site_deleted
from falconmq.errors import FalconMQError
from tests.directory.replication.estates import SITES, Estate, estate_of_six
from tests.directory.replication.test_taking_over import act, has_machine

LOST = SITES[2]


def estate_with_objects() -> Estate:
    estate = estate_of_six()
    psc = estate["PSC2"]
    gone = psc.add_machine("gone")
    psc.add_machine("client")
    psc.add_queue("client\\orders")
    estate.run(30.0)
    psc.delete("QueueManager", gone)
    estate.run(30.0)
    return estate


def others(estate: Estate) -> list[str]:
    return [name for name in estate.nodes if name not in ("PSC2", "BSC21")]


def test_with_a_site_goes_all_that_is_in_it() -> None:
    estate = estate_with_objects()
    pec = estate["PEC0"]
    estate.off |= {"PSC2", "BSC21"}
    assert has_machine(estate["BSC01"], "client")
    act(pec, lambda server: remove_site(server, LOST))
    estate.run(60.0)
    for name in others(estate):
        node = estate[name]
        assert LOST not in node.partitions
        assert "PSC2" not in node.neighbours
        assert not any(has_machine(node, each) for each in ("client", "PSC2", "BSC21"))
        with node.engine.turn() as server:
            assert not list(server.numbers.both(LOST, 0, 1 << 32))
            assert all(where != LOST for _, _, where, _ in server.numbers.numbered())
    pec.add_machine("later")
    estate.run(60.0)
    assert all(has_machine(estate[name], "later") for name in others(estate))


def test_a_site_that_was_lost_by_mistake_comes_back_with_what_its_server_has() -> None:
    estate = estate_with_objects()
    pec, psc = estate["PEC0"], estate["PSC2"]
    act(pec, lambda server: remove_site(server, LOST))
    last = psc.partition(LOST).last
    estate.run(60.0)
    assert psc.partition(LOST).last == last  # who decides about it keeps it
    assert has_machine(psc, "client")
    pec.add("Site", name="site2", identifier=LOST, primary_site_controller="PSC2")
    psc.add_machine("new")
    estate.run(1300.0)
    for node in estate.nodes.values():
        assert has_machine(node, "client")
        assert has_machine(node, "new")
    assert estate.are_equal()


def test_who_hears_that_its_own_site_is_gone_keeps_what_it_decides() -> None:
    estate = estate_with_objects()
    psc = estate["PSC2"]
    with psc.engine.turn() as server:
        assert not site_deleted(server, LOST)
    assert has_machine(psc, "client")


def test_what_cannot_be_removed_is_refused() -> None:
    estate = estate_with_objects()
    refusals = [
        ("PSC1", LOST, "the PEC removes a site, and that is PEC0"),
        ("PEC0", SITES[0], "this is the site of the PEC"),
        ("PEC0", SITES[3], "there is no site"),
    ]
    for name, site, problem in refusals:
        with pytest.raises(FalconMQError, match=problem):
            act(estate[name], partial(remove_site, site=site))
    assert has_machine(estate["PEC0"], "client")


def test_a_site_that_has_anything_is_not_simply_deleted() -> None:
    estate = estate_with_objects()
    pec = estate["PEC0"]
    site = pec.add("Site", name="empty", primary_site_controller="")
    pec.delete("Site", site)
    result = pec.directory.delete("Site", LOST)
    assert result.name == "GENERIC_ERROR"
    assert LOST in pec.partitions
