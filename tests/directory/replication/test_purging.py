"""Deletions, acks, and when deletions are forgotten (scenarios 42 to 47)."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.directory.replication.numbers import Entry
from falconmq.directory.replication.purging import purge_deleted_objects, purge_limit
from falconmq.directory.replication.status import fingerprints
from falconmq.wire.replication_messages import BSCAckMessage, PSCAckMessage
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    begin_enterprise,
    estate_of_six,
    queue_manager,
    register,
)
from tests.directory.replication.told import (
    acked,
    asked,
    authority,
    backup,
    deleted,
    hello,
    made,
    network,
    propagation,
    put_last,
    replica,
    reply,
)


def bury(node: Node, *numbers: int, partition: UUID = ENTERPRISE) -> None:
    """Deletions with these numbers are remembered."""
    with node.engine.turn() as server:
        for number in numbers:
            entry = Entry(number, 5, network(number), is_deleted=True, scope=1)
            server.numbers.bury(partition, entry)


def remembered(node: Node, partition: UUID = ENTERPRISE) -> list[int]:
    with node.engine.turn() as server:
        return [entry.number for entry in server.numbers.deletions(partition, 0, 1 << 60)]


def purge(node: Node, partition: UUID = ENTERPRISE) -> int:
    with node.engine.turn() as server:
        purge_deleted_objects(server, server.state.partitions[partition])
    return node.partition(partition).purged


def enterprise_of_two() -> Node:
    node = Estate("PEC0")["PEC0"].start()
    begin_enterprise(node, 0, 1, 2)
    return node


@pytest.mark.requirement("RP-3.1.1.3-04", "RP-3.1.7.2.3-07")
def test_a_deletion_is_remembered_everywhere() -> None:
    estate = estate_of_six()
    machine = estate["PSC1"].add_machine("alpha")
    estate.run(15.0)
    estate["PSC1"].delete("QueueManager", machine)
    estate.run(15.0)
    for name in estate.nodes:
        estate.restart(name)
        lines = fingerprints(estate[name].directory)
        assert lines[f"{SITES[1]}/deleted/{machine}"].endswith("QueueManager")
        assert estate[name].get("QueueManager", machine) is None


def test_deleting_what_is_not_there_is_no_error_in_a_copy() -> None:
    psc = replica(last=7)
    psc.tell(propagation(deleted(8, which=5)), "PEC0")
    assert psc.partition(ENTERPRISE).last == 8
    assert remembered(psc) == [8]
    psc.tell(propagation(made(9)), "PEC0")
    psc.tell(propagation(deleted(10, which=9)), "PEC0")
    assert psc.get("ConnectedNetwork", network(9)) is None
    assert remembered(psc) == [8, 10]


def test_what_is_made_again_is_deleted_no_more() -> None:
    psc = replica(last=7)
    again = made(9)
    psc.tell(propagation(deleted(8, which=9), again), "PEC0")
    assert remembered(psc) == []
    assert psc.get("ConnectedNetwork", network(9)) is not None


@pytest.mark.requirement(
    "RP-3.1.7.2.9-02",
    "RP-3.1.7.2.9-05",
    "RP-3.1.7.2.9-07",
    "RP-3.1.7.2.9-08",
    "RP-3.1.7.2.9-11",
    "RP-3.2.7.4-04",
)
def test_an_authority_purges_what_everybody_has() -> None:
    pec = enterprise_of_two()
    put_last(pec, ENTERPRISE, 3000)
    bury(pec, 100, 1500, 1501, 2950)
    assert purge(pec) == 0  # nobody acked
    pec.tell(acked(2000), "PSC1")
    assert pec.partition(ENTERPRISE).purged == 0  # one of two
    pec.tell(acked(1500, by="PSC2"), "PSC2")
    assert pec.partition(ENTERPRISE).purged == 1500
    assert remembered(pec) == [1501, 2950]
    pec.tell(acked(2900), "PSC1")
    pec.tell(acked(2950, by="PSC2"), "PSC2")
    assert pec.partition(ENTERPRISE).purged == 1976  # the newest 1024 are kept
    assert remembered(pec) == [2950]


@pytest.mark.requirement("RP-3.1.7.2.9-06", "RP-3.2.7.4-05", "RP-3.2.7.4-06", "RP-3.2.7.4-03")
def test_acks_count_for_the_partition_that_they_name() -> None:
    pec = enterprise_of_two()
    put_last(pec, SITES[0], 3000)
    pec.tell(acked(2000), "PSC1")
    pec.tell(acked(2000, by="PSC2"), "PSC2")
    assert purge(pec, SITES[0]) == 0
    pec.tell(acked(1700, of=SITES[0]), "PSC1")
    pec.tell(acked(1800, by="PSC2", of=SITES[0]), "PSC2")
    assert pec.partition(SITES[0]).purged == 1700
    with pec.engine.turn() as server:
        before = [(each.acked, each.acked_enterprise) for each in server.state.pscs]
    pec.tell(acked(99, of=SITES[1]), "PSC1")
    pec.tell(acked(99, by="PSC3", of=SITES[0]), "PSC1")
    with pec.engine.turn() as server:
        assert [(each.acked, each.acked_enterprise) for each in server.state.pscs] == before


@pytest.mark.requirement("RP-3.1.7.2.9-03", "RP-3.1.7.2.9-04")
def test_there_is_nothing_to_purge_at_the_beginning_or_twice() -> None:
    pec = Estate("PEC0")["PEC0"].start()
    put_last(pec, ENTERPRISE, 500)
    assert purge(pec) == 0
    put_last(pec, ENTERPRISE, 3000)
    assert purge(pec) == 1976  # nobody else is there
    with pec.engine.turn() as server:
        assert purge_limit(server, server.enterprise) is None
    put_last(pec, ENTERPRISE, 5000, purge_state=2)
    assert purge(pec) == 1976


@pytest.mark.requirement("RP-3.1.7.2.9-09", "RP-3.1.7.2.9-10")
def test_a_copy_purges_what_its_authority_allows() -> None:
    psc = replica(last=7)
    put_last(psc, ENTERPRISE, 5000, allowed_purge=900)
    bury(psc, 900, 901)
    assert purge(psc) == 900
    assert remembered(psc) == [901]
    put_last(psc, ENTERPRISE, 5000, allowed_purge=4500)
    assert purge(psc) == 3976
    put_last(psc, ENTERPRISE, 9000, allowed_purge=3000)
    assert purge(psc) == 3976


@pytest.mark.requirement("RP-3.1.7.2.3-14")
def test_a_purge_is_tried_every_256_changes() -> None:
    psc = replica(last=7)
    put_last(psc, ENTERPRISE, 2000, allowed_purge=900, previous_purged=1745)
    psc.tell(propagation(made(2001)), "PEC0")
    assert psc.partition(ENTERPRISE).purged == 0
    psc.tell(propagation(made(2002)), "PEC0")
    assert psc.partition(ENTERPRISE).purged == 900
    assert psc.partition(ENTERPRISE).previous_purged == 2002


def test_a_copy_that_is_behind_does_not_purge_before_it_has_caught_up() -> None:
    psc = replica(last=7)
    put_last(psc, ENTERPRISE, 2001, allowed_purge=900, previous_purged=1745)
    psc.tell(propagation(made(2005, 2004)), "PEC0")  # what lies between is asked for
    # a long answer: each part says what its sender has purged, which is less than we may
    psc.tell(reply(2001, 2003, made(2002), made(2003)), "PEC0")
    assert psc.partition(ENTERPRISE).purged == 0
    psc.tell(reply(2003, 2005, made(2004), made(2005)), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.purged) == (2005, 900)


@pytest.mark.requirement("RP-3.1.7.1.2-19")
def test_an_authority_tries_too() -> None:
    pec = Estate("PEC0")["PEC0"].start()
    begin_enterprise(pec, 0)
    put_last(pec, ENTERPRISE, 2000, previous_purged=1744)
    pec.add("ConnectedNetwork", name="one")
    assert pec.partition(ENTERPRISE).purged == 2001 - 1024


def test_the_word_that_deletions_may_go_travels_the_whole_way() -> None:
    estate = estate_of_six()
    pec = estate["PEC0"]
    for node in estate.nodes.values():
        put_last(node, ENTERPRISE, 3071, window=0)
    with pec.engine.turn() as server:
        for psc in server.state.pscs:
            psc.acked_enterprise = 100
    pec.add("ConnectedNetwork", name="one")  # 3072: everybody acks
    estate.run(15.0)
    assert pec.partition(ENTERPRISE).purged == 2048
    estate.run(3700.0)
    for node in estate.nodes.values():
        if node is not pec:
            assert node.partition(ENTERPRISE).allowed_purge == 2048
    assert estate.are_equal()


@pytest.mark.requirement("RP-3.2.7.5-03", "RP-3.2.7.5-04", "RP-3.2.7.4-02", "RP-3.2.7.5-02")
def test_a_bsc_that_acks_is_known_to_live() -> None:
    pec = authority()
    register(pec, "BSC01")
    pec.estate.clock.advance(100.0)
    ack = BSCAckMessage(SITES[0].bytes_le, queue_manager("BSC01").bytes_le, "bsc01")
    pec.tell(ack, "BSC01")
    with pec.engine.turn() as server:
        (bsc,) = server.state.bscs
        assert bsc.last_acked_time == pec.estate.clock.time()
    pec.estate.restart("PEC0")
    stranger = BSCAckMessage(SITES[0].bytes_le, queue_manager("BSC02").bytes_le, "BSC02")
    pec.tell(stranger, "BSC02")
    assert [each.machine for each in pec.engine.status().neighbours if each.kind == "BSC"] == [
        "BSC01"
    ]
    nobody = backup()
    assert nobody.tell(ack, "BSC01") == []
    assert nobody.tell(acked(5), "PSC1") == []
    assert nobody.neighbours == {}


def test_a_server_that_remembers_more_than_its_client_forgets_as_much() -> None:
    """A BSC that purged before its PSC would take all its answers for stale."""
    psc = replica(last=7)
    register(psc, "BSC11")
    put_last(psc, ENTERPRISE, 5000, purged=3, allowed_purge=3000)
    bury(psc, 4, 9, 20)
    (send,) = psc.tell(asked(4000, purged=9, name="BSC11"), "BSC11")
    assert psc.partition(ENTERPRISE).purged == 9
    assert remembered(psc) == [20]
    assert getattr(send.message, "purged_seq_number", None) == 9
    psc.tell(asked(4000, purged=6000, name="BSC11"), "BSC11")
    assert psc.partition(ENTERPRISE).purged == 5000  # not what has not happened yet


def test_a_new_authority_goes_on_from_what_the_old_one_forgot() -> None:
    pec = authority()
    put_last(pec, ENTERPRISE, 30)
    bury(pec, 18, 20)
    (send,) = pec.tell(asked(25, purged=19), "PSC1")
    assert getattr(send.message, "purged_seq_number", None) == 19
    assert pec.partition(ENTERPRISE).purged == 19
    assert remembered(pec) == [20]


def test_an_ack_that_gets_lost_only_delays() -> None:
    estate = estate_of_six()
    for node in estate.nodes.values():
        put_last(node, ENTERPRISE, 3071, window=0)
    estate.lose = lambda _machine, send: isinstance(send.message, PSCAckMessage)
    estate["PEC0"].add("ConnectedNetwork", name="one")
    estate.run(15.0)
    assert estate["PEC0"].partition(ENTERPRISE).purged == 0
    assert hello(1).flush is False
