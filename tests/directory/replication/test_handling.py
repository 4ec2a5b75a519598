"""What each kind of change does, and which of them BSCs hear of at once (MQDSRP 3.1.7.2)."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.directory.replication.effects import Profile
from falconmq.directory.replication.properties import Properties
from falconmq.directory.replication.writes import RequestedChange
from falconmq.errors import MqStatus
from falconmq.wire.directory_change import (
    CREATE,
    DELETE,
    SYNCHRONIZE,
    UPDATE,
    DirectoryChange,
    Identifier,
)
from falconmq.wire.property_ids import object_type_of
from falconmq.wire.replication_messages import (
    BSCAckMessage,
    ChangePropagationMessage,
    ChangeReplyMessage,
    ChangeRequestMessage,
    SyncReplyMessage,
)
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Node,
    queue_manager,
    register,
)
from tests.directory.replication.told import (
    acked,
    asked,
    authority,
    network,
    propagation,
    replica,
)

NEW_SITE: Properties = [(302, SITES[3].bytes_le), (301, "site3"), (304, "PSC3")]
NETWORK: Properties = [(503, network(8).bytes_le), (502, "net8"), (501, 1)]


def told(number: int, command: int, name: Identifier, properties: Properties) -> DirectoryChange:
    return DirectoryChange(
        command, name, ENTERPRISE.bytes_le, number - 1, number, number, properties
    )


def request(
    node: Node,
    command: int,
    name: Identifier,
    properties: Properties,
    partition: UUID = ENTERPRISE,
) -> int:
    """What PSC1 asks of a PEC, and the answer."""
    change = DirectoryChange(command, name, partition.bytes_le, properties=properties)
    message = ChangeRequestMessage(SITES[1].bytes_le, partition.bytes_le, 1, "PSC1", None, change)
    sends = node.tell(message, "PSC1")
    (send,) = [each for each in sends if isinstance(each.message, ChangeReplyMessage)]
    assert send.profile is Profile.URGENT
    assert isinstance(send.message, ChangeReplyMessage)
    return send.message.result


def psc_with_bsc() -> Node:
    psc = replica(last=7)
    register(psc, "BSC11")
    psc.estate.run(2.1)
    psc.sent.clear()
    return psc


@pytest.mark.requirement(
    "RP-3.1.7.2.5-13",
    "RP-3.1.7.2.7-07",
    "RP-3.1.7.2.10-03",
    "RP-3.1.7.2.11-12",
    "RP-3.1.7.2.3-12",
)
@pytest.mark.parametrize("kind", ["create", "sync", "controller", "pec", "delete"])
def test_changes_of_the_topology_are_flushed(kind: str) -> None:
    psc = psc_with_bsc()
    enterprise = psc.directory.read("Enterprise", (), None)[1]["identifier"]
    assert isinstance(enterprise, UUID)
    change = {
        "create": told(8, CREATE, "site3", NEW_SITE),
        "sync": told(8, SYNCHRONIZE, SITES[3].bytes_le, NEW_SITE[1:]),
        "controller": told(8, UPDATE, SITES[0].bytes_le, [(304, "PEC0")]),
        "pec": told(8, UPDATE, enterprise.bytes_le, [(604, "PSC3")]),
        "delete": told(8, DELETE, SITES[0].bytes_le, [(1403, 1), (1404, 3)]),
    }[kind]
    psc.tell(propagation(change), "PEC0")
    (message,) = psc.messages(ChangePropagationMessage, "BSC11")
    assert message.directory_changes == [change]


@pytest.mark.requirement(
    "RP-3.1.7.2.3-02",
    "RP-3.1.7.2.5-02",
    "RP-3.1.7.2.6-02",
    "RP-3.1.7.2.7-02",
    "RP-3.1.7.2.8-02",
    "RP-3.1.7.2.10-02",
    "RP-3.1.7.2.11-02",
)
def test_all_other_changes_wait_for_their_time() -> None:
    psc = psc_with_bsc()
    enterprise = psc.directory.read("Enterprise", (), None)[1]["identifier"]
    assert isinstance(enterprise, UUID)
    psc.tell(
        propagation(
            told(8, CREATE, "net8", NETWORK),
            told(9, UPDATE, network(8).bytes_le, [(501, 3)]),
            told(10, SYNCHRONIZE, network(8).bytes_le, [(501, 5)]),
            told(11, DELETE, network(8).bytes_le, [(1403, 1), (1404, 5)]),
            told(12, UPDATE, enterprise.bytes_le, [(616, 5)]),
            told(13, UPDATE, SITES[0].bytes_le, [(305, 5)]),
            told(14, UPDATE, enterprise.bytes_le, [(604, "PEC0")]),
        ),
        "PEC0",
    )
    assert psc.partition(ENTERPRISE).last == 14
    assert psc.messages(ChangePropagationMessage) == []
    psc.estate.run(2.1)
    (message,) = psc.messages(ChangePropagationMessage, "BSC11")
    assert len(message.directory_changes) == 7


@pytest.mark.requirement(
    "RP-3.1.7.2.3-03",
    "RP-3.1.7.2.3-08",
    "RP-3.1.7.2.3-16",
    "RP-3.1.7.2.8-05",
    "RP-3.1.7.2.8-06",
)
def test_a_synchronised_object_is_created_or_changed() -> None:
    psc = replica(last=7)
    psc.tell(propagation(told(8, SYNCHRONIZE, network(8).bytes_le, NETWORK[1:])), "PEC0")
    row = psc.get("ConnectedNetwork", network(8))
    assert row is not None
    assert (row["name"], row["network_protocol"]) == ("net8", 1)
    psc.tell(propagation(told(9, SYNCHRONIZE, network(8).bytes_le, [(501, 5)])), "PEC0")
    row = psc.get("ConnectedNetwork", network(8))
    assert row is not None
    assert (row["name"], row["network_protocol"]) == ("net8", 5)
    assert psc.partition(ENTERPRISE).last == 9
    with psc.engine.turn() as server:
        assert server.numbers.of(5, network(8)) == (ENTERPRISE, 9)


@pytest.mark.requirement("RP-3.1.7.2.8-07", "RP-3.1.7.2.6-04", "RP-3.1.7.2.5-05")
def test_what_fails_in_a_copy_changes_no_state() -> None:
    psc = replica(last=7)
    nobody: Properties = [(301, "site3"), (304, "PSC3")]
    queue: Properties = [(103, "no path name at all"), (108, "x")]
    for change in (
        told(8, CREATE, "site3", nobody),  # it has no GUID
        told(8, UPDATE, SITES[3].bytes_le, nobody),
        told(8, SYNCHRONIZE, b"q" * 16, queue),
    ):
        psc.tell(propagation(change), "PEC0")
    assert psc.partition(ENTERPRISE).last == 7
    assert psc.partitions == {ENTERPRISE, SITES[0], SITES[1]}
    assert psc.neighbours == {"PEC0": "PSC"}
    assert psc.engine.counters["dropped.cannot_apply"] == 3


@pytest.mark.requirement("RP-3.1.7.1.2-10", "RP-3.1.7.2.5-05")
def test_what_fails_at_the_authority_is_told_to_nobody() -> None:
    pec = authority()
    with pec.engine.turn() as server:
        waiting = len(server.state.pscs[0].available)
    last = pec.partition(ENTERPRISE).last
    exists: Properties = [(302, SITES[3].bytes_le), (301, "site1"), (304, "PSC3")]
    assert request(pec, CREATE, "site1", exists) == MqStatus.QUEUE_EXISTS
    assert pec.partition(ENTERPRISE).last == last
    assert pec.neighbours == {"PSC1": "PSC"}
    with pec.engine.turn() as server:
        assert len(server.state.pscs[0].available) == waiting


@pytest.mark.requirement(
    "RP-3.1.7.1.2-07",
    "RP-3.1.7.1.2-09",
    "RP-3.1.7.2.5-18",
    "RP-3.1.7.2.7-09",
    "RP-3.1.7.2.8-10",
    "RP-3.1.7.2.10-05",
    "RP-3.1.7.2.11-14",
    "RP-3.2.7.6-05",
)
def test_what_succeeds_at_the_authority_says_so() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    assert request(pec, CREATE, "site3", NEW_SITE) == 0
    assert request(pec, UPDATE, "site3", [(304, "PSC2")]) == 0
    assert pec.partition(SITES[3]).authority_name == "PSC2"
    assert request(pec, DELETE, "site3", [(1403, 1), (1404, 3)]) == 0
    assert request(pec, UPDATE, "example.com", [(616, 77)]) == 0
    assert pec.partition(ENTERPRISE).last == last + 4
    machine: Properties = [
        (202, queue_manager("BSC01").bytes_le),
        (203, "BSC01"),
        (201, SITES[0].bytes_le),
        (210, 2),
    ]
    assert request(pec, SYNCHRONIZE, "BSC01", machine, SITES[0]) == 0
    assert pec.neighbours == {"PSC1": "PSC", "BSC01": "BSC"}
    with pec.engine.turn() as server:
        commands = [change.command for change in server.state.pscs[0].available]
    assert commands[-5:] == [CREATE, UPDATE, DELETE, UPDATE, CREATE]


@pytest.mark.requirement("RP-3.2.5-01")
def test_a_server_serves_all_five_kinds_of_messages() -> None:
    pec = authority()
    register(pec, "BSC01")
    assert request(pec, CREATE, "net8", NETWORK) == 0
    (send,) = pec.tell(asked(0), "PSC1")
    assert isinstance(send.message, SyncReplyMessage)
    pec.tell(acked(3), "PSC1")
    pec.estate.clock.advance(5.0)
    pec.tell(BSCAckMessage(SITES[0].bytes_le, queue_manager("BSC01").bytes_le, "BSC01"), "BSC01")
    machine: Properties = [
        (202, queue_manager("beta").bytes_le),
        (203, "beta"),
        (201, SITES[1].bytes_le),
    ]
    change = DirectoryChange(CREATE, "beta", SITES[1].bytes_le, 0, 1, 1, machine)
    pec.tell(propagation(change), "PSC1")
    with pec.engine.turn() as server:
        assert server.state.pscs[0].acked_enterprise == 3
        assert server.state.bscs[0].last_acked_time == pec.estate.clock.time()
    assert pec.partition(SITES[1]).last == 1


@pytest.mark.requirement("RP-3.1.1.4-01")
@pytest.mark.parametrize(
    ("number", "expected"),
    [(101, 1), (199, 1), (806, 8), (1000, 10), (1101, 1), (1203, 2), (1405, 4), (1601, 6)],
)
def test_the_number_of_a_property_says_the_type(number: int, expected: int) -> None:
    assert object_type_of(number) == expected


def test_a_psc_that_is_none_any_more_decides_nothing() -> None:
    psc = replica(last=7)
    psc.add_machine("alpha")
    psc.tell(propagation(told(8, UPDATE, SITES[1].bytes_le, [(304, "PSC9")])), "PEC0")
    own = [each for each in psc.engine.status().partitions if each.is_own]
    assert own == []
    assert psc.engine.status().role == "bsc"
    assert psc.neighbours == {}
    write = psc.engine.request(
        RequestedChange(CREATE, r"alpha\orders", SITES[1], [(103, r"alpha\orders")])
    )
    assert write.status is None
    assert [send.machine for send in psc.engine.take_effects()] == ["PSC9"]
