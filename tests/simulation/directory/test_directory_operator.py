"""Servers come and go, and roles move; the enterprise is as it should be afterwards."""

from __future__ import annotations

from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.simulation.directory.checking import check_quiet
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.operator import Operator
from tests.simulation.directory.towns import town, wait


def finish(enterprise: Enterprise, operator: Operator) -> None:
    for _ in range(100):
        if not operator.task:
            break
        wait(enterprise, 10.0)
    assert not operator.task
    wait(enterprise, 500.0)
    check_quiet(enterprise)


def test_a_bsc_becomes_the_psc_of_its_site() -> None:
    enterprise = town(0, 2)
    operator, old = Operator(enterprise), list(enterprise.controllers.values())[1]
    operator.move_psc()
    finish(enterprise, operator)
    new = list(enterprise.controllers.values())[1]
    assert new != old
    assert enterprise.servers[new].owns(enterprise.servers[new].site)
    assert enterprise.servers[old].role is Role.BSC


def test_the_old_psc_is_not_stopped_before_the_new_one_knows_all() -> None:
    enterprise = town(0, 1)
    operator, psc = Operator(enterprise), enterprise.servers["SERVER1"]
    enterprise.create(psc, ("QueueManager", "M"), "machine", site_identifiers=[psc.site])
    operator.move_psc()  # the BSC has not heard of it
    assert psc.is_up
    finish(enterprise, operator)
    assert enterprise.servers["SERVER1"].role is Role.BSC


def test_another_psc_becomes_the_pec() -> None:
    enterprise = town(1, 1)
    operator = Operator(enterprise)
    operator.move_pec()
    finish(enterprise, operator)
    assert enterprise.pec_name == "SERVER1"
    assert enterprise.pec.owns(ENTERPRISE_PARTITION)
    assert enterprise.servers["SERVER0"].role is Role.PSC


def test_a_bsc_and_a_site_come_and_a_bsc_goes() -> None:
    enterprise = town(0, 0)
    operator = Operator(enterprise)
    operator.add_bsc()
    finish(enterprise, operator)
    operator.add_site()
    finish(enterprise, operator)
    assert len(enterprise.servers) == 4
    operator.remove_bsc()
    finish(enterprise, operator)
    assert len(enterprise.servers) == 3
    assert enterprise.world.counts["new site"] == 1
