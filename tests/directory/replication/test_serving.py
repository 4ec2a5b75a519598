"""Answers to sync requests (MQDSRP 3.2.7.3, 3.2.7.8; scenarios 34 to 41)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import pytest

from falconmq.directory.replication.effects import Profile, Send
from falconmq.directory.replication.properties import Properties
from falconmq.directory.replication.settings import ReplicationSettings
from falconmq.manager.states import QueueScope
from falconmq.wire.directory_change import DELETE, SYNCHRONIZE, DirectoryChange
from falconmq.wire.replication_messages import AlreadyPurgedMessage, SyncReplyMessage
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    begin_enterprise,
    estate_of_six,
    register,
)
from tests.directory.replication.told import asked, authority, put_last, replica, reply

STANDARD = replace(ReplicationSettings(), has_later_properties=False)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split()]


# RP-3.2.7.8-04 to -16, by type of object
LISTS = {
    "Site": [303, 305, 306, 301, 304, 1302, 1301],
    "ConnectedNetwork": [502, 501, 1501],
    "Enterprise": [601, 602, 603, 604, 616, 617, 1601, 605, 606, 610, 611, 612, 613, 614, 615],
    "User": [701, 705, 702],
    "RoutingLink": [803, 801, 802],
    "QueueManager": _numbers("219 214 215 207 216 220 206 217 1203 209 218 208 203 210")
    + _numbers("1202 201 1201 212"),
    "Queue": _numbers("114 115 102 106 104 105 107 109 110 103 108 111 112 113 1101 118 119"),
}
SID = bytes.fromhex("010500000000000515000000010000000200000003000000e9030000")


def answer(sends: list[Send]) -> SyncReplyMessage:
    (send,) = sends
    assert isinstance(send.message, SyncReplyMessage)
    return send.message


def full_pec() -> tuple[Node, dict[str, UUID]]:
    """A PEC with an object of each type, that says what MSMQ 1.0 says."""
    node = Estate("PEC0", settings=STANDARD)["PEC0"].start()
    begin_enterprise(node, 0, 1)
    enterprise = node.directory.read("Enterprise", (), None)[1]["identifier"]
    assert isinstance(enterprise, UUID)
    machine = node.add_machine("alpha", queue_manager_version="4.0", network_addresses=b"\1")
    made = {
        "Enterprise": enterprise,
        "Site": SITES[1],
        "ConnectedNetwork": node.add("ConnectedNetwork", name="net"),
        "User": node.add(
            "User", security_identifier=SID, certificates=b"c", certificate_digests=[b"d" * 16]
        ),
        "RoutingLink": node.add(
            "RoutingLink",
            site1_identifier=SITES[0],
            site2_identifier=SITES[1],
            actual_cost=5,
        ),
        "QueueManager": machine,
        "Queue": node.add_queue(r"alpha\orders", label="Orders"),
    }
    node.sent.clear()
    return node, made


@pytest.mark.requirement(
    "RP-3.2.7.3-06",
    "RP-3.2.7.3-07",
    "RP-3.2.7.3-08",
    "RP-3.2.7.3-09",
    "RP-3.2.7.3-12",
    "RP-3.2.7.3-13",
    "RP-3.2.7.3-14",
    "RP-3.2.7.3-15",
    "RP-3.2.7.3-18",
    "RP-3.2.7.8-18",
    "RP-3.2.7.8-24",
    "RP-3.2.7.8-25",
    "RP-3.2.7.8-26",
    "RP-3.2.7.8-27",
)
def test_an_answer_has_all_objects_in_the_order_of_their_numbers() -> None:
    pec, made = full_pec()
    for partition, types in (
        (ENTERPRISE, {"Enterprise", "Site", "ConnectedNetwork", "User", "RoutingLink"}),
        (SITES[0], {"QueueManager", "Queue"}),
    ):
        sends = pec.tell(asked(0, of=partition), "PSC1")
        assert [(send.machine, send.profile) for send in sends] == [("PSC1", Profile.QUIET)]
        message = answer(sends)
        last = pec.partition(partition).last
        assert (message.from_seq_number, message.to_seq_number) == (0, last)
        assert (message.purged_seq_number, message.complete_sync0) == (0, 0)
        changes = message.directory_changes
        numbers = [change.seq_number for change in changes]
        assert numbers == list(range(1, last + 1))
        assert [change.previous_seq_number for change in changes] == [0, *numbers[:-1]]
        assert {change.command for change in changes} == {SYNCHRONIZE}
        by_guid = {change.guid_identifier: change for change in changes}
        for name in types:
            properties = by_guid[made[name].bytes_le].properties
            assert [number for number, _ in properties] == LISTS[name]
    machine = dict(by_guid[made["QueueManager"].bytes_le].properties)
    assert (machine[203], machine[216], machine[206]) == ("alpha", "4.0", b"\1")
    assert (machine[201], machine[210], machine[212]) == (SITES[0].bytes_le, 0, 0)
    queue = dict(by_guid[made["Queue"].bytes_le].properties)
    assert (queue[108], queue[115]) == ("Orders", made["QueueManager"].bytes_le)


@pytest.mark.requirement("RP-3.2.7.8-19", "RP-3.2.7.3-19")
def test_the_range_includes_both_ends() -> None:
    pec, _ = full_pec()
    message = answer(pec.tell(asked(2, 4), "PSC1"))
    assert [change.seq_number for change in message.directory_changes] == [2, 3, 4]
    assert message.directory_changes[0].previous_seq_number == 2
    empty = answer(pec.tell(asked(99, 120), "PSC1"))
    assert (empty.directory_changes, empty.from_seq_number, empty.to_seq_number) == ([], 99, 120)


@pytest.mark.requirement("RP-3.2.7.8-28")
def test_values_that_nobody_has_do_not_overwrite_those_of_the_receiver() -> None:
    pec, made = full_pec()
    estate = pec.estate
    estate.nodes["PSC1"] = Node("PSC1", estate)
    psc = estate["PSC1"].start()
    estate.settle()
    row = psc.get("Queue", made["Queue"])
    assert row is not None
    assert row["label"] == "Orders"
    for type_name, identifier in made.items():
        mine, theirs = psc.get(type_name, identifier), pec.get(type_name, identifier)
        assert mine is not None
        assert theirs is not None
        assert {name: mine[name] for name in theirs if name != "qualified_path_name"} == {
            name: value for name, value in theirs.items() if name != "qualified_path_name"
        }
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    last, before = psc.partition(ENTERPRISE).last, psc.get("Enterprise", made["Enterprise"])
    undefined: Properties = [(605, 9), (606, 9), (610, b"x"), *((n, 9) for n in range(611, 616))]
    change = DirectoryChange(
        SYNCHRONIZE,
        made["Enterprise"].bytes_le,
        ENTERPRISE.bytes_le,
        last,
        last + 1,
        last + 1,
        undefined,
    )
    psc.tell(reply(last, last + 1, change), "PEC0")
    assert psc.partition(ENTERPRISE).last == last + 1
    assert psc.get("Enterprise", made["Enterprise"]) == before


def test_a_psc_serves_its_bsc_a_partition_of_another_site() -> None:
    psc = replica(last=7)
    estate = estate_of_six()
    estate["PSC1"].add_machine("alpha")
    queue = estate["PSC1"].add_queue(r"alpha\orders")
    estate.run(15.0)
    psc = estate["PSC2"]
    message = answer(psc.tell(asked(0, of=SITES[1], scope=0, name="BSC21"), "BSC21"))
    identifiers = [change.guid_identifier for change in message.directory_changes]
    assert queue.bytes_le in identifiers
    assert len(identifiers) == 3


@pytest.mark.requirement("RP-3.2.7.8-02", "RP-3.2.7.8-20")
def test_queues_of_the_site_stay_in_the_site() -> None:
    pec, made = full_pec()
    pec.write("Queue", made["Queue"], scope=QueueScope.SITE)
    elsewhere = answer(pec.tell(asked(0, of=SITES[0], scope=1), "PSC1"))
    at_home = answer(pec.tell(asked(0, of=SITES[0], scope=0), "PSC1"))
    queue = made["Queue"].bytes_le
    assert queue not in {change.guid_identifier for change in elsewhere.directory_changes}
    assert queue in {change.guid_identifier for change in at_home.directory_changes}
    assert made["QueueManager"].bytes_le in {
        change.guid_identifier for change in elsewhere.directory_changes
    }


@pytest.mark.requirement(
    "RP-3.2.7.3-10",
    "RP-3.2.7.3-11",
    "RP-3.1.1.2.2-07",
    "RP-3.1.1.2.2-08",
    "RP-3.1.7.1.2-08",
)
def test_deletions_of_the_partition_and_range_are_told() -> None:
    pec, made = full_pec()
    pec.delete("Queue", made["Queue"])
    pec.delete("ConnectedNetwork", made["ConnectedNetwork"])
    last = pec.partition(SITES[0]).last
    message = answer(pec.tell(asked(last - 1, of=SITES[0]), "PSC1"))
    deletion = message.directory_changes[-1]
    assert (deletion.command, deletion.seq_number) == (DELETE, last)
    assert deletion.guid_identifier == made["Queue"].bytes_le
    assert deletion.properties == [(1403, 1), (1404, 1)]
    assert made["ConnectedNetwork"].bytes_le not in {
        change.guid_identifier for change in message.directory_changes
    }
    pec.add_machine("beta")
    later = answer(pec.tell(asked(last + 1, of=SITES[0]), "PSC1"))
    assert [change.command for change in later.directory_changes] == [SYNCHRONIZE]


@pytest.mark.requirement("RP-3.2.7.3-02", "RP-3.2.7.3-03", "RP-3.1.1.5.3-03")
def test_what_cannot_be_served_gets_no_answer() -> None:
    pec, _ = full_pec()
    assert pec.tell(asked(0, of=SITES[3]), "PSC1") == []
    for state in (1, 2, 3):
        psc = replica(last=7)
        put_last(psc, ENTERPRISE, 7, purge_state=state)
        assert psc.tell(asked(0, name="PEC0"), "PEC0") == []


@pytest.mark.requirement("RP-3.2.7.3-04", "RP-3.2.7.3-05", "RP-3.2.7.7-02", "RP-3.2.7.7-03")
def test_whoever_comes_too_late_is_told_so() -> None:
    pec = authority()
    put_last(pec, ENTERPRISE, 30, purged=20)
    (send,) = pec.tell(asked(8), "PSC1")
    assert isinstance(send.message, AlreadyPurgedMessage)
    assert (send.machine, send.profile) == ("PSC1", Profile.QUIET)
    assert send.message.partition_id == ENTERPRISE.bytes_le
    assert send.message.purged_seq_number == 20
    assert isinstance(pec.tell(asked(20), "PSC1")[0].message, SyncReplyMessage)
    again = pec.tell(asked(0, purged=20, is_sync0=True), "PSC1")
    assert isinstance(again[0].message, SyncReplyMessage)


@pytest.mark.requirement("RP-3.2.7.3-16", "RP-3.2.7.3-17")
def test_a_full_synchronisation_hears_whether_that_was_all() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    now = answer(pec.tell(asked(0, is_sync0=True), "PSC1"))
    assert (now.complete_sync0, now.to_seq_number) == (2, last)
    soon = answer(pec.tell(asked(0, last - 1, is_sync0=True), "PSC1"))
    assert soon.complete_sync0 == 1


def small_messages(changes: int = 4, size: int = 2_000_000) -> Estate:
    settings = replace(ReplicationSettings(), message_changes_max=changes, message_bytes_max=size)
    estate = Estate("PEC0", "PSC1", settings=settings)
    pec = estate["PEC0"].start()
    begin_enterprise(pec, 0, 1)
    pec.add_machine("alpha")
    for number in range(20):
        pec.add_queue(rf"alpha\q{number}", label="x" * 100)
    return estate


@pytest.mark.parametrize(("changes", "size"), [(4, 2_000_000), (1000, 1500), (1, 1)])
def test_a_long_answer_comes_in_parts(changes: int, size: int) -> None:
    estate = small_messages(changes, size)
    estate["PSC1"].start()
    estate.run(1.0)
    assert estate.are_equal()
    replies = estate["PEC0"].messages(SyncReplyMessage)
    parts = [each for each in replies if each.partition_id == SITES[0].bytes_le]
    assert len(parts) > 3
    for before, after in pairwise(parts):
        assert after.from_seq_number == before.to_seq_number
        assert after.directory_changes[0].previous_seq_number == before.to_seq_number
    assert len(estate["PSC1"].messages(type(asked(0)))) == 2  # it asked once for each partition


def test_a_part_that_gets_lost_is_asked_for_again() -> None:
    estate = small_messages()
    lost: list[Send] = []

    def lose(_machine: str, send: Send) -> bool:
        is_middle = isinstance(send.message, SyncReplyMessage) and send.message.from_seq_number == 8
        if is_middle and not lost:
            lost.append(send)
            return True
        return False

    estate.lose = lose
    estate["PSC1"].start()
    estate.run(1.0)
    assert lost
    assert estate.are_equal()


def test_what_changes_between_two_parts_is_not_lost() -> None:
    estate = small_messages()
    pec, psc = estate["PEC0"], estate["PSC1"].start()
    for _ in range(3):
        estate._deliver()  # the parts go out one by one
        pec.carry(pec.engine.run_due())
        queue = pec.directory.read("Queue", (), None)[1]["identifier"]
        assert isinstance(queue, UUID)
        pec.delete("Queue", queue)
    estate.run(30.0)
    assert estate.are_equal()
    assert psc.partition(SITES[0]).last == pec.partition(SITES[0]).last


@pytest.mark.requirement("RP-3.3.7.5-02", "RP-3.3.7.5-03", "RP-3.3.7.5-08")
def test_answers_that_mean_nothing_are_ignored() -> None:
    psc = replica(last=18)
    put_last(psc, ENTERPRISE, 18, purged=9)
    estate_before = psc.partition(ENTERPRISE)
    assert psc.tell(reply(18, 30, of=SITES[3]), "PEC0") == []
    put_last(psc, ENTERPRISE, 18, window=30)
    psc.tell(reply(18, 30, purged=8), "PEC0")
    assert psc.partition(ENTERPRISE).last == 18
    put_last(psc, ENTERPRISE, 18, purge_state=2)
    psc.tell(reply(18, 30, purged=8, complete=2), "PEC0")
    assert psc.partition(ENTERPRISE).purge_state == 2
    assert estate_before.partition_id == ENTERPRISE


def test_a_bsc_is_served_by_name_only() -> None:
    pec, _ = full_pec()
    register(pec, "BSC01")
    assert pec.tell(asked(0, name="BSC01"), "PSC1") == []
    assert pec.engine.counters["dropped.sync_request_in_another_name"] == 1
