"""Messages wait, die with their sender, end with their time; the power fails in a commit."""

from __future__ import annotations

from falconmq.simulation.directory.checking import check_quiet
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.faults import FaultPlan
from falconmq.simulation.directory.ledger import Outcome
from falconmq.simulation.directory.load import Load
from falconmq.simulation.directory.operator import Operator
from tests.simulation.directory.towns import bsc_of, town, wait

NETWORK = ("ConnectedNetwork", "net")


def knows(enterprise: Enterprise, name: str) -> bool:
    return enterprise.find(enterprise.servers[name], NETWORK) is not None


def test_what_cannot_pass_waits_until_the_way_is_there_again() -> None:
    enterprise = town(0, 0)
    enterprise.post.cut("SERVER0", "SERVER1", 60.0)
    enterprise.create(enterprise.pec, NETWORK, 1)
    wait(enterprise, 50.0)
    assert not knows(enterprise, "SERVER1")
    wait(enterprise, 50.0)
    assert knows(enterprise, "SERVER1")


def test_what_waits_dies_with_its_sender() -> None:
    enterprise = town(0, 0)
    enterprise.post.cut("SERVER0", "SERVER1", 60.0)
    enterprise.create(enterprise.pec, NETWORK, 1)
    wait(enterprise, 20.0)
    enterprise.pec.crash()
    wait(enterprise, 200.0)
    assert not knows(enterprise, "SERVER1")
    enterprise.pec.start()
    wait(enterprise, 300.0)
    check_quiet(enterprise)  # a hello repaired it


def test_a_change_that_nobody_answers_stays_unknown_and_nothing_waits_for_ever() -> None:
    enterprise = town(1)
    at = bsc_of(enterprise, enterprise.pec)
    enterprise.post.cut("SERVER0", "SERVER1", 200.0)
    change = enterprise.create(at, NETWORK, 1)
    wait(enterprise, 600.0)
    assert change.outcome is not Outcome.DONE
    assert not knows(enterprise, "SERVER0")
    check_quiet(enterprise)


def test_messages_that_come_twice_change_nothing() -> None:
    enterprise = town(1, 0)
    enterprise.post.weather.doubling = 1.0
    enterprise.create(enterprise.servers["SERVER1"], NETWORK, 1)
    wait(enterprise, 300.0)
    requests = enterprise.world.story(about="ChangeRequest of SERVER1", last=0)
    assert len(requests) == 2
    assert knows(enterprise, "SERVER1")
    check_quiet(enterprise)


def test_lost_messages_are_lost_and_repaired() -> None:
    enterprise = town(0, 0)
    enterprise.post.weather.loss = 1.0
    enterprise.create(enterprise.pec, NETWORK, 1)
    wait(enterprise, 300.0)
    assert not knows(enterprise, "SERVER1")
    enterprise.post.repair()
    wait(enterprise, 300.0)
    check_quiet(enterprise)


def test_the_power_fails_in_a_commit_and_the_server_begins_again() -> None:
    found = set()
    for seed in range(20):
        enterprise = town(0)
        enterprise.world.random.seed(seed)
        enterprise.pec.fail_in_commit(1)
        change = enterprise.create(enterprise.pec, NETWORK, 1)
        assert enterprise.pec.engine is None
        assert change.outcome is Outcome.UNKNOWN
        wait(enterprise, 100.0)
        assert enterprise.pec.life == 2
        found.add(knows(enterprise, "SERVER0"))
        check_quiet(enterprise)
    assert found == {True, False}  # before it was durable, or after


def test_after_the_repair_nothing_fails_any_more() -> None:
    enterprise = town(0, 0)
    plan = FaultPlan(enterprise, Operator(enterprise), Load(enterprise), 1.0)
    enterprise.pec.fail_in_commit(1)
    enterprise.pec.store.is_full = True
    enterprise.post.weather.loss = 1.0
    enterprise.servers["SERVER1"].crash()
    plan.repair()
    change = enterprise.create(enterprise.pec, NETWORK, 1)
    assert change.outcome is Outcome.DONE
    wait(enterprise, 300.0)
    check_quiet(enterprise)
