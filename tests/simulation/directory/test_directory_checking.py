"""The checks of a quiet enterprise notice what is not as it should be."""

from __future__ import annotations

import pytest

from falconmq.directory.replication.state import PurgeState
from falconmq.simulation.directory.checking import check_quiet
from falconmq.simulation.directory.enterprise import DOMAIN, Enterprise
from falconmq.simulation.directory.ledger import Outcome
from falconmq.simulation.directory.server import DirectoryServer
from falconmq.simulation.world import SimulationError
from tests.simulation.directory.towns import town


@pytest.fixture
def enterprise() -> Enterprise:
    """A PEC with a BSC, and a PSC, in step."""
    return town(1, 0)


def bsc_of(enterprise: Enterprise) -> DirectoryServer:
    return enterprise.bscs(enterprise.pec.site)[0]


def write_here_only(server: DirectoryServer, type_name: str, **row: object) -> None:
    """Change one copy behind the back of replication."""
    server.directory.replica = None
    assert server.directory.create(type_name, row)[0].name == "SUCCESS"


def test_an_enterprise_in_step_has_kept_its_promises(enterprise: Enterprise) -> None:
    check_quiet(enterprise)
    assert enterprise.ledger.acknowledged == 6  # itself, two sites, three servers


def test_a_change_at_a_server_that_does_not_decide_comes_to_all(enterprise: Enterprise) -> None:
    name, at = ("ConnectedNetwork", "net"), bsc_of(enterprise)
    before = enterprise.ledger.acknowledged
    change = enterprise.create(at, name, 7)
    assert change.outcome is Outcome.UNKNOWN  # nobody has answered yet
    assert change.ended - change.began > 20.0  # and it may become true until all messages are dead
    enterprise.world.run_until(enterprise.world.now + 60.0)
    assert enterprise.ledger.acknowledged == before + 1
    for server in enterprise.servers.values():
        row = enterprise.find(server, name)
        assert row is not None
        assert row["network_protocol"] == 7
    check_quiet(enterprise)


def test_a_server_that_is_down_is_noticed(enterprise: Enterprise) -> None:
    bsc_of(enterprise).crash()
    with pytest.raises(SimulationError, match="is down"):
        check_quiet(enterprise)


def test_an_object_that_one_copy_has_is_noticed(enterprise: Enterprise) -> None:
    write_here_only(enterprise.pec, "ConnectedNetwork", name="alone", network_protocol=1)
    with pytest.raises(SimulationError, match="nobody asked for it"):
        check_quiet(enterprise)


def test_a_copy_that_differs_is_noticed(enterprise: Enterprise) -> None:
    bsc = bsc_of(enterprise)
    row = enterprise.find(bsc, ("Enterprise", DOMAIN))
    assert row is not None
    bsc.directory.replica = None
    bsc.directory.write("Enterprise", {"identifier": row["identifier"], "default_time_to_live": 1})
    with pytest.raises(SimulationError, match=f"at {bsc.name}"):
        check_quiet(enterprise)


def test_a_partition_that_lags_is_noticed(enterprise: Enterprise) -> None:
    engine = bsc_of(enterprise).engine
    assert engine is not None
    with engine.turn() as server:
        server.enterprise.last -= 1
    with pytest.raises(SimulationError, match="is at"):
        check_quiet(enterprise)


def test_a_full_synchronisation_that_never_ends_is_noticed(enterprise: Enterprise) -> None:
    engine = bsc_of(enterprise).engine
    assert engine is not None
    with engine.turn() as server:
        server.enterprise.purge_state = PurgeState.SYNC0
    with pytest.raises(SimulationError, match="never ends: SYNC0"):
        check_quiet(enterprise)


def test_changes_that_wait_for_others_are_noticed(enterprise: Enterprise) -> None:
    engine = bsc_of(enterprise).engine
    assert engine is not None
    with engine.turn() as server:
        server.enterprise.window = server.enterprise.last + 5
    with pytest.raises(SimulationError, match="waits for ever"):
        check_quiet(enterprise)


def test_a_neighbour_that_nobody_tells_is_noticed(enterprise: Enterprise) -> None:
    engine = enterprise.pec.engine
    assert engine is not None
    with engine.turn() as server:
        server.state.neighbours.popitem()
    with pytest.raises(SimulationError, match="and should tell"):
        check_quiet(enterprise)


def test_a_wrong_authority_is_noticed(enterprise: Enterprise) -> None:
    engine = bsc_of(enterprise).engine
    assert engine is not None
    with engine.turn() as server:
        server.enterprise.authority_name = "NOBODY"
    with pytest.raises(SimulationError, match="believes in the authorities"):
        check_quiet(enterprise)
