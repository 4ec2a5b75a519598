"""How servers begin, and what they know of each other (MQDSRP 3.1.3, 3.3.3; scenarios 8 to 14)."""

from __future__ import annotations

import json
from random import Random
from uuid import UUID

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.replication.properties import Properties
from falconmq.directory.replication.state import TABLE, Neighbour, PurgeState
from falconmq.directory.replication.status import fingerprints
from falconmq.directory.replication.timers import Timer, TimerKind
from falconmq.directory.replication.topology import add_neighbour
from falconmq.errors import StoreError
from falconmq.manager.states import DirectoryServerType
from falconmq.store import MemoryStore
from falconmq.store.interface import WriteBatch
from falconmq.wire.directory_change import CREATE, UPDATE, DirectoryChange
from falconmq.wire.replication_messages import (
    BSCAckMessage,
    ChangePropagationMessage,
    ChangeRequestMessage,
    SyncRequestMessage,
)
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER
from tests.directory.replication.estates import (
    DOMAIN,
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    begin_enterprise,
    estate_of_six,
    queue_manager,
    register,
)
from tests.directory.replication.told import acked, authority, made, propagation, put_last, replica

BSC = DirectoryServerType.BACKUP_SITE_CONTROLLER
PSC = DirectoryServerType.PRIMARY_SITE_CONTROLLER
STANDALONE = DirectoryServerType.STANDALONE


@pytest.mark.requirement(
    "RP-3.1.1.2.3-03",
    "RP-3.1.1.2.3-13",
    "RP-3.1.3.1-01",
    "RP-3.1.3.1-02",
    "RP-3.1.3.1-04",
    "RP-3.1.3.1-05",
    "RP-3.1.3.1-09",
    "RP-3.2.3-01",
    "RP-3.3.3-01",
    "RP-3.3.3-05",
    "RP-3.3.7.3-03",
    "RP-3.3.7.3-06",
    "RP-3.3.7.3-07",
    "RP-3.3.7.3-09",
)
def test_an_empty_psc_asks_the_pec_for_the_enterprise() -> None:
    estate = Estate("PSC1")
    psc = estate["PSC1"].start()
    assert psc.partitions == {ENTERPRISE}
    partition = psc.partition(ENTERPRISE)
    assert partition.authority_name == "PEC0"
    assert (partition.last, partition.purged, partition.allowed_purge) == (0, 0, 0)
    assert (partition.purge_state, partition.window, partition.pending) == (0, MAX_SEQ_NUMBER, [])
    assert [send.machine for send in psc.sent] == ["PEC0"]
    (request,) = psc.messages(SyncRequestMessage)
    assert request.partition_id == ENTERPRISE.bytes_le
    assert (request.from_seq_number, request.to_seq_number) == (MIN_SEQ_NUMBER, MAX_SEQ_NUMBER)
    assert (request.is_sync0, request.scope, request.requester_name) == (False, 1, "PSC1")
    with psc.engine.turn() as server:
        assert server.site is None


@pytest.mark.requirement(
    "RP-3.1.3.1-03", "RP-3.1.3.1-06", "RP-3.3.3-07", "RP-3.1.7.2.5-12", "RP-3.1.1.2.3-04"
)
def test_an_empty_pec_asks_nobody() -> None:
    pec = Estate("PEC0")["PEC0"].start()
    assert pec.partition(ENTERPRISE).authority_name == "PEC0"
    assert pec.sent == []
    pec.add("Enterprise", name=DOMAIN)
    pec.add("Site", identifier=SITES[0], name="site0")
    assert pec.partition(SITES[0]).authority_name == "PEC0"
    assert pec.sent == []
    assert pec.neighbours == {}
    with pec.engine.turn() as server:
        assert server.owns(server.enterprise)
        assert server.site is not None
        assert server.owns(server.site)


@pytest.mark.requirement(
    "RP-3.1.1.2.3-02",
    "RP-3.1.7.2.11-07",
    "RP-3.1.7.2.11-08",
    "RP-3.1.7.2.11-09",
    "RP-3.1.7.2.11-10",
    "RP-3.1.7.2.11-11",
    "RP-3.1.7.2.8-09",
    "RP-3.3.2.1-02",
)
def test_a_psc_learns_the_sites_and_asks_for_those_of_others() -> None:
    estate = Estate("PEC0", "PSC1")
    begin_enterprise(estate["PEC0"].start(), 0, 1)
    psc = estate["PSC1"].start()
    estate.settle()
    assert psc.partitions == {ENTERPRISE, SITES[0], SITES[1]}
    assert psc.neighbours == {"PEC0": "PSC"}
    requests = psc.messages(SyncRequestMessage, "PEC0")
    assert [request.partition_id for request in requests] == [
        ENTERPRISE.bytes_le,
        SITES[0].bytes_le,
    ]
    with psc.engine.turn() as server:
        assert server.site is not None
        assert server.owns(server.site)
        (neighbour,) = server.state.pscs
        assert (neighbour.partition_id, neighbour.acked) == (SITES[0], 0)
    psc.sent.clear()
    estate.run(9.9)
    assert psc.messages(ChangePropagationMessage) == []
    estate.run(0.2)
    assert len(psc.messages(ChangePropagationMessage, "PEC0")) == 1


@pytest.mark.requirement(
    "RP-3.1.3.1-07",
    "RP-3.1.3.1-10",
    "RP-3.3.3-02",
    "RP-3.3.3-06",
    "RP-3.3.7.3-05",
    "RP-3.3.7.3-08",
    "RP-3.3.6.2-01",
    "RP-3.3.6.2-02",
    "RP-3.3.2.2-02",
)
def test_a_bsc_asks_its_psc_for_everything_and_nobody_else() -> None:
    estate = Estate("PEC0", "PSC1", "PSC2", "BSC01")
    begin_enterprise(estate["PEC0"].start(), 0, 1, 2)
    for name in ("PSC1", "PSC2"):
        estate[name].start()
    estate.settle()
    bsc = estate["BSC01"].start()
    estate.run(6.0)
    assert bsc.partitions == {ENTERPRISE, *SITES[:3]}
    assert {send.machine for send in bsc.sent} == {"PEC0"}
    assert {request.scope for request in bsc.messages(SyncRequestMessage)} == {0}
    assert bsc.neighbours == {}
    (ack,) = bsc.messages(BSCAckMessage)
    assert (ack.bsc_name, ack.bsc_machine_id) == ("BSC01", queue_manager("BSC01").bytes_le)
    estate.off.update({"PEC0", "PSC1", "PSC2"})
    estate.run(12 * 3600.0)
    assert len(bsc.messages(BSCAckMessage)) == 2


@pytest.mark.requirement(
    "RP-3.1.3.1-08", "RP-3.1.1.1-02", "RP-3.1.1.3-01", "RP-3.1.1.2.3-11", "RP-3.1.1.2.3-15"
)
def test_a_restart_keeps_what_is_kept_and_begins_the_rest_anew() -> None:
    estate = Estate("PEC0", "BSC01")
    begin_enterprise(estate["PEC0"].start(), 0, 1)
    bsc = estate["BSC01"].start()
    estate.settle()
    put_last(bsc, ENTERPRISE, 40, purged=3, allowed_purge=9, previous_purged=33)
    bsc.tell(propagation(made(50)), "PEC0")
    assert len(bsc.partition(ENTERPRISE).pending) == 1
    estate.restart("BSC01")
    partition = bsc.partition(ENTERPRISE)
    assert (partition.last, partition.purged, partition.allowed_purge) == (40, 3, 9)
    assert (partition.previous_purged, partition.pending) == (0, [])
    assert partition.window == MAX_SEQ_NUMBER
    assert bsc.engine.status().psc_name == "PEC0"  # from the directory, not from the settings


@pytest.mark.requirement("RP-3.1.1.3-02", "RP-3.1.1.3-03", "RP-3.1.3.2-01", "RP-3.1.3.2-02")
def test_neighbours_survive_a_restart_and_what_waited_for_them_does_not() -> None:
    pec = authority()
    register(pec, "BSC01")
    pec.tell(acked(3), "PSC1")
    with pec.engine.turn() as server:
        assert all(neighbour.available for neighbour in server.state.neighbours.values())
    pec.estate.restart("PEC0")
    assert pec.neighbours == {"PSC1": "PSC", "BSC01": "BSC"}
    with pec.engine.turn() as server:
        assert server.state.pscs[0].acked_enterprise == 3
        assert all(not neighbour.available for neighbour in server.state.neighbours.values())


@pytest.mark.requirement("RP-3.3.3-03", "RP-3.3.3-04", "RP-3.3.6.1-02")
def test_after_a_restart_every_neighbour_has_its_timer() -> None:
    pec = authority()
    register(pec, "BSC01")
    pec.estate.restart("PEC0")
    pec.sent.clear()
    pec.estate.run(2.1)
    assert [
        send.machine for send in pec.sent if isinstance(send.message, ChangePropagationMessage)
    ] == ["BSC01"]
    pec.estate.run(8.0)
    assert len(pec.messages(ChangePropagationMessage, "PSC1")) == 1


@pytest.mark.requirement(
    "RP-3.1.7.2.5-14",
    "RP-3.1.7.2.5-15",
    "RP-3.1.7.2.5-16",
    "RP-3.1.7.2.5-17",
    "RP-3.1.7.2.12-04",
    "RP-3.1.7.2.12-05",
    "RP-3.1.7.2.12-06",
    "RP-3.1.7.2.12-07",
    "RP-3.1.7.2.12-02",
    "RP-3.1.7.2.6-07",
    "RP-3.1.7.2.7-08",
)
def test_a_machine_becomes_a_bsc_and_ceases_to_be_one() -> None:
    pec = authority()
    machine = pec.add_machine("BSC01")
    assert pec.neighbours == {"PSC1": "PSC"}
    pec.write("QueueManager", machine, server_type=BSC)
    pec.write("QueueManager", machine, server_type=BSC, routing_server=True)
    pec.write("QueueManager", machine, quota_kilobytes=7)
    assert pec.neighbours == {"PSC1": "PSC", "BSC01": "BSC"}
    pec.estate.run(2.1)
    assert len(pec.messages(ChangePropagationMessage, "BSC01")) == 1
    pec.write("QueueManager", machine, server_type=STANDALONE)
    assert pec.neighbours == {"PSC1": "PSC"}
    with pec.engine.turn() as server:
        assert not server.timers.is_armed(Timer(TimerKind.PROPAGATION, b"Bbsc01"))
    made_so = pec.add_machine("BSC02", server_type=BSC)
    assert pec.neighbours == {"PSC1": "PSC", "BSC02": "BSC"}
    pec.delete("QueueManager", made_so)
    assert pec.neighbours == {"PSC1": "PSC"}
    pec.sent.clear()
    pec.estate.run(5.0)
    assert pec.sent == []


@pytest.mark.requirement("RP-3.1.7.2.12-03")
def test_a_bsc_of_another_site_is_no_neighbour() -> None:
    psc = replica()
    (request,) = [
        request
        for request in psc.engine.start()
        if isinstance(request.message, SyncRequestMessage)
        and request.message.partition_id == SITES[0].bytes_le
    ]
    assert request.machine == "PEC0"
    machine = DirectoryChange(
        CREATE,
        "BSC01",
        SITES[0].bytes_le,
        0,
        1,
        1,
        [
            (202, queue_manager("BSC01").bytes_le),
            (203, "BSC01"),
            (210, 2),
            (201, SITES[0].bytes_le),
        ],
    )
    psc.tell(propagation(machine), "PEC0")
    assert psc.get("QueueManager", queue_manager("BSC01")) is not None
    assert psc.neighbours == {"PEC0": "PSC"}


@pytest.mark.requirement(
    "RP-3.1.7.2.5-07",
    "RP-3.1.7.2.5-08",
    "RP-3.1.7.2.5-09",
    "RP-3.1.7.2.5-10",
    "RP-3.1.7.2.5-11",
    "RP-3.1.1.2.4-07",
    "RP-3.2.7.2-07",
)
def test_a_site_by_change_request_is_made_once() -> None:
    pec = authority()
    properties: Properties = [(302, SITES[2].bytes_le), (301, "site2"), (304, "PSC2")]
    change = DirectoryChange(CREATE, "site2", ENTERPRISE.bytes_le, properties=properties)
    request = ChangeRequestMessage(SITES[1].bytes_le, ENTERPRISE.bytes_le, 1, "PSC1", None, change)
    pec.estate.run(11.0)  # what the beginning left for PSC1 is gone
    pec.tell(request, "PSC1")
    assert pec.partitions == {ENTERPRISE, *SITES[:3]}
    assert pec.neighbours == {"PSC1": "PSC", "PSC2": "PSC"}
    with pec.engine.turn() as server:
        assert [len(each.available) for each in server.state.pscs] == [1, 1]
        assert server.state.partitions[SITES[2]].authority_name == "PSC2"
    (asked,) = pec.messages(SyncRequestMessage, "PSC2")
    assert asked.partition_id == SITES[2].bytes_le
    pec.sent.clear()
    pec.estate.run(10.1)
    assert len(pec.messages(ChangePropagationMessage, "PSC2")) == 1


@pytest.mark.requirement(
    "RP-3.1.7.2.11-03",
    "RP-3.1.7.2.11-04",
    "RP-3.1.7.2.11-05",
    "RP-3.1.7.2.11-06",
    "RP-3.1.7.2.6-05",
    "RP-3.1.7.2.3-12",
)
def test_a_new_psc_of_a_site_is_known_everywhere_and_to_bscs_at_once() -> None:
    estate = estate_of_six()
    psc2, bsc = estate["PSC2"], estate["BSC21"]
    estate["PEC0"].write("Site", SITES[1], intra_site_replication_interval=3)
    estate["PEC0"].write("Site", SITES[1], primary_site_controller="PSC9")
    estate.run(0.0)
    assert estate["PEC0"].neighbours["PSC9"] == "PSC"
    estate.clock.advance(60.0)
    estate["PEC0"].carry(estate["PEC0"].engine.run_due())
    psc2.sent.clear()
    estate._deliver()
    assert psc2.messages(ChangePropagationMessage, "BSC21") != []  # before its timer
    estate.run(15.0)
    for name in ("PSC2", "BSC01", "BSC21"):
        assert estate[name].partition(SITES[1]).authority_name == "PSC9"
    assert set(psc2.neighbours) == {"PEC0", "PSC9", "BSC21"}
    assert bsc.neighbours == {}


@pytest.mark.requirement("RP-3.1.7.2.11-13")
def test_a_changed_site_that_nobody_knows_makes_no_partition() -> None:
    pec = authority()
    change = DirectoryChange(
        UPDATE, SITES[3].bytes_le, ENTERPRISE.bytes_le, properties=[(304, "PSC3")]
    )
    pec.tell(
        ChangeRequestMessage(SITES[1].bytes_le, ENTERPRISE.bytes_le, 1, "PSC1", None, change),
        "PSC1",
    )
    assert pec.partitions == {ENTERPRISE, SITES[0], SITES[1]}
    psc = replica()
    change.previous_seq_number, change.seq_number, change.purged_seq_number = 7, 8, 8
    psc.tell(propagation(change), "PEC0")
    assert SITES[3] not in psc.partitions


@pytest.mark.requirement("RP-3.1.7.2.7-05", "RP-3.1.7.2.7-06", "RP-3.1.7.2.7-04", "RP-3.1.7.2.7-03")
def test_a_deleted_site_is_forgotten_by_everybody() -> None:
    estate = Estate("PEC0", "PSC1", "PSC2")
    pec = estate["PEC0"].start()
    begin_enterprise(pec, 0, 1, 2)
    for name in ("PSC1", "PSC2"):
        estate[name].start()
    estate.run(30.0)
    pec.delete("Site", SITES[2])
    estate.off.add("PSC2")
    estate.run(11.0)
    for name in ("PEC0", "PSC1"):
        assert SITES[2] not in estate[name].partitions
        assert "PSC2" not in estate[name].neighbours
        estate[name].sent.clear()
    estate.run(3600.0)
    assert {send.machine for send in pec.sent + estate["PSC1"].sent} == {"PEC0", "PSC1"}


@pytest.mark.requirement(
    "RP-3.1.7.2.10-03", "RP-3.1.7.2.10-04", "RP-3.1.7.2.6-06", "RP-3.1.7.2.8-08"
)
def test_another_pec_is_known_when_the_enterprise_says_so() -> None:
    psc = replica()
    enterprise = psc.directory.read("Enterprise", (), None)[1]["identifier"]
    assert isinstance(enterprise, UUID)

    def told(number: int, *properties: tuple[int, str | int]) -> None:
        change = DirectoryChange(
            UPDATE,
            enterprise.bytes_le,
            ENTERPRISE.bytes_le,
            number - 1,
            number,
            number,
            list(properties),
        )
        psc.tell(propagation(change), "PEC0")

    told(8, (616, 99))
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    told(9, (604, "PSC2"))
    assert psc.partition(ENTERPRISE).authority_name == "PSC2"
    row = psc.get("Enterprise", enterprise)
    assert row is not None
    assert row["default_time_to_live"] == 99


def test_a_directory_without_copies_is_adopted_when_it_gets_some() -> None:
    estate = Estate("PEC0", "PSC1")
    node = estate["PEC0"]
    alone = EmbeddedDirectory(node.store, VirtualClock(), Random(1))
    alone.create("Enterprise", {"name": DOMAIN})
    alone.create("Site", {"identifier": SITES[0], "name": "site0"})
    alone.create(
        "Site", {"identifier": SITES[1], "name": "site1", "primary_site_controller": "PSC1"}
    )
    alone.create("QueueManager", {"computer_name": "alpha", "site_identifiers": [SITES[0]]})
    alone.create("Queue", {"path_name": r"alpha\orders", "label": "Orders"})
    pec, psc = node.start(), estate["PSC1"].start()
    with pec.engine.turn() as server:  # they ask for it: it is not sent to all of them
        assert [each.available for each in server.state.pscs] == [[]]
    estate.run(30.0)
    assert fingerprints(psc.directory) == fingerprints(pec.directory)
    assert len(fingerprints(psc.directory)) == 5
    # and what is changed while replication is off is told afterwards
    pec.engine.stop()
    queue = pec.directory.read("Queue", (), None)[1]["identifier"]
    assert isinstance(queue, UUID)
    pec.directory.delete("Queue", queue)
    pec.directory.create("Queue", {"path_name": r"alpha\more"})
    estate.restart("PEC0")
    estate.run(30.0)
    assert fingerprints(psc.directory) == fingerprints(pec.directory)
    assert psc.get("Queue", queue) is None


def test_a_directory_without_copies_has_no_numbers() -> None:
    store = MemoryStore()
    alone = EmbeddedDirectory(store, VirtualClock(), Random(1))
    alone.create("Enterprise", {"name": DOMAIN})
    tables = set(store.statistics().records)
    assert {name for name in tables if name.startswith("directory_")} <= {
        "directory_index",
        "directory_places",
    }


def test_a_damaged_record_of_a_partition_is_named() -> None:
    pec = authority()
    key, record = next(iter(pec.store.scan(TABLE, b"P")))
    fields = json.loads(record)
    assert fields["purge_state"] == PurgeState.NORMAL
    batch = WriteBatch()
    batch.put(TABLE, key, b"{}")
    pec.store.commit([batch])
    with pytest.raises(StoreError, match=key.hex()):
        pec.open()


def test_a_bsc_and_its_psc_change_places() -> None:
    estate = estate_of_six()
    psc, bsc, pec = estate["PSC2"], estate["BSC21"], estate["PEC0"]
    estate.known.append("BSC22")
    estate.nodes["BSC22"] = Node("BSC22", estate, controller="BSC21")
    register(psc, "BSC22")
    estate.run(15.0)
    pec.write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(30.0)
    assert bsc.neighbours == {"PEC0": "PSC", "PSC1": "PSC", "PSC2": "BSC", "BSC22": "BSC"}
    assert psc.neighbours == {}
    assert psc.engine.status().psc_name == "BSC21"
    estate["BSC22"].start()
    estate.run(1300.0)
    assert estate.are_equal()
    with bsc.engine.turn() as server:  # one that is none any more, by what the directory says
        add_neighbour(server, Neighbour(SITES[2], "BSC29", is_bsc=True))
    estate.restart("BSC21")
    assert "BSC29" not in bsc.neighbours
