"""Servers come and go, and roles move; the enterprise is as it should be afterwards."""

from __future__ import annotations

import pytest

from falconmq.directory import tables
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.simulation.directory.checking import check_quiet
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.ledger import Outcome
from falconmq.simulation.directory.losses import Losses
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


def test_what_the_old_psc_has_told_nobody_comes_to_the_new_one() -> None:
    enterprise = town(0, 1)
    operator, psc = Operator(enterprise), enterprise.servers["SERVER1"]
    enterprise.create(psc, ("QueueManager", "M"), "machine", site_identifiers=[psc.site])
    operator.move_psc()  # the BSC has not heard of it
    finish(enterprise, operator)
    status = psc.status()
    assert status is not None
    assert status.role == Role.BSC.value


def test_another_psc_becomes_the_pec() -> None:
    enterprise = town(1, 1)
    operator = Operator(enterprise)
    operator.move_pec()
    finish(enterprise, operator)
    assert enterprise.pec_name == "SERVER1"
    assert enterprise.pec.owns(ENTERPRISE_PARTITION)
    assert enterprise.servers["SERVER0"].role is Role.PSC


def losses_of(enterprise: Enterprise) -> tuple[Operator, Losses]:
    operator = Operator(enterprise)
    return operator, Losses(enterprise, operator)


def test_a_backup_takes_over_from_a_psc_that_is_gone() -> None:
    enterprise = town(0, 2)
    operator, losses = losses_of(enterprise)
    dead, site = enterprise.servers["SERVER1"], enterprise.servers["SERVER1"].site
    name = ("QueueManager", "M")
    assert enterprise.create(dead, name, "m", site_identifiers=[site]).outcome is Outcome.DONE
    losses.lose_psc()  # it has told nobody
    assert not dead.is_up
    finish(enterprise, operator)
    assert enterprise.controllers[site] in {"SERVER2", "SERVER3"}
    assert enterprise.psc(site).owns(site)
    assert enterprise.world.counts["taken over"] == 1
    known = [change.is_forgiven for change in enterprise.ledger.names["QueueManager", "m"]]
    assert known == [True]  # only that: what others had heard must be there
    assert not any(
        change.is_forgiven
        for change in enterprise.ledger.names["QueueManager", enterprise.controllers[site].lower()]
    )


def test_another_psc_or_a_backup_takes_over_from_a_pec_that_is_gone() -> None:
    for counts, heir in (([0, 0], "SERVER1"), ([1], "SERVER1")):
        enterprise = town(*counts)
        operator, losses = losses_of(enterprise)
        losses.lose_pec()
        finish(enterprise, operator)
        assert enterprise.pec_name == heir
        assert enterprise.pec.owns(ENTERPRISE_PARTITION)


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


@pytest.mark.parametrize("other", ["SERVER2", "GONE"])
def test_who_was_named_before_a_pec_was_lost_is_named_again(other: str) -> None:
    """As if the naming was lost: the role goes back to a backup, or to one that is no more."""
    enterprise = town(0, 1)
    operator, losses = losses_of(enterprise)
    psc = enterprise.servers["SERVER1"]
    name = (tables.SITE, enterprise.site_names[psc.site])
    enterprise.change(enterprise.pec, name, other)
    wait(enterprise, 300.0)
    assert not psc.owns(psc.site)
    operator.begin("roles mended", "roles are mended", losses._mend_roles())
    finish(enterprise, operator)
    assert psc.owns(psc.site)
    assert enterprise.world.counts["named once more"] == 1
    assert enterprise.world.counts["taken over once more"] == (other == "GONE")
