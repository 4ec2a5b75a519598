"""Writes on their way to whoever decides (MQDSRP 3.2.7.2, 3.3.7.1; scenarios 15 to 22)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from falconmq.directory.replication.deciding import read_next_sequence_number
from falconmq.directory.replication.effects import Profile, Send
from falconmq.directory.replication.properties import Properties
from falconmq.directory.replication.settings import ReplicationSettings
from falconmq.directory.replication.status import fingerprints
from falconmq.directory.replication.writes import PendingWrite, RequestedChange
from falconmq.errors import MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryResult
from falconmq.store.memory_engine import ProcessCrash
from falconmq.wire.directory_change import (
    CREATE,
    DELETE,
    SYNCHRONIZE,
    UPDATE,
    DirectoryChange,
)
from falconmq.wire.replication_messages import (
    ChangeReplyMessage,
    ChangeRequestMessage,
    SyncRequestMessage,
)
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    estate_of_six,
    queue_manager,
)
from tests.directory.replication.told import asked, authority, hello, network, replica

SUCCESS = DirectoryResult.SUCCESS
NETWORK = UUID(int=0xABCDEF)


@pytest.fixture
def estate() -> Estate:
    estate = estate_of_six()
    estate["PSC1"].add_machine("C14")
    estate.run(15.0)
    for node in estate.nodes.values():
        node.sent.clear()
    return estate


def create_queue(site: UUID = SITES[1], path: str = r"C14\testq") -> RequestedChange:
    return RequestedChange(CREATE, path, site, [(103, path), (108, "Test")])


def requested(
    command: int, name: str | bytes, *properties: tuple[int, Any], number: int = 1
) -> ChangeRequestMessage:
    """What PSC1 asks the PEC for."""
    change = DirectoryChange(command, name, ENTERPRISE.bytes_le, properties=list(properties))
    return ChangeRequestMessage(
        SITES[1].bytes_le, ENTERPRISE.bytes_le, number, "PSC1", None, change
    )


def is_done(write: PendingWrite) -> bool:
    return write.status is not None


def result_of(sends: list[Send]) -> int:
    (send,) = [each for each in sends if isinstance(each.message, ChangeReplyMessage)]
    assert isinstance(send.message, ChangeReplyMessage)
    return send.message.result


@pytest.mark.requirement(
    "RP-3.1.7.1.1-03",
    "RP-3.1.7.1.1-05",
    "RP-3.1.7.1.1-06",
    "RP-3.1.7.1.1-07",
    "RP-3.1.7.1.1-08",
    "RP-3.1.7.1.1-09",
    "RP-3.1.7.1.1-10",
    "RP-3.1.7.1.1-11",
    "RP-3.2.7.2-03",
    "RP-3.2.7.2-04",
    "RP-3.2.7.2-06",
    "RP-3.2.7.2-14",
    "RP-3.2.7.2-15",
    "RP-3.2.7.6-02",
    "RP-3.2.7.6-03",
    "RP-3.2.7.6-04",
    "RP-3.3.7.1-02",
    "RP-3.3.7.1-03",
    "RP-3.3.7.1-10",
    "RP-3.3.7.6-02",
    "RP-3.3.7.6-03",
)
def test_a_write_at_a_bsc_goes_to_the_authority_and_its_result_comes_back(estate: Estate) -> None:
    bsc, psc2, psc1 = estate["BSC21"], estate["PSC2"], estate["PSC1"]
    last = psc1.partition(SITES[1]).last
    write = bsc.engine.request(create_queue())
    bsc.carry(bsc.engine.take_effects())
    assert not is_done(write)
    estate.settle()
    assert write.status == 0
    (send,) = bsc.sent
    assert (send.machine, send.profile) == ("PSC2", Profile.URGENT)
    (request,) = bsc.messages(ChangeRequestMessage)
    assert (request.requester_name, request.psc_name) == ("BSC21", "PSC2")
    change = request.directory_change
    assert (change.command, change.identifier) == (CREATE, r"C14\testq")
    assert change.properties == [(103, r"C14\testq"), (108, "Test")]
    assert (change.previous_seq_number, change.seq_number, change.purged_seq_number) == (0, 0, 0)
    assert psc2.messages(ChangeRequestMessage, "PSC1") == [request]  # unchanged
    (answer,) = psc1.messages(ChangeReplyMessage, "PSC2")  # BSC21 is no neighbour of PSC1
    assert (answer.requester_name, answer.request_identifier) == (
        "BSC21",
        request.request_identifier,
    )
    assert len(psc2.messages(ChangeReplyMessage, "BSC21")) == 1
    assert psc1.partition(SITES[1]).last == last + 1
    estate.run(12.5)
    for node in estate.nodes.values():
        row = node.directory.read("Queue", equals("path_name", r"c14\testq"), None)[1]
        assert row["label"] == "Test"


@pytest.mark.requirement("RP-3.3.7.1-06", "RP-3.3.7.1-07", "RP-3.3.7.1-08", "RP-3.3.7.1-09")
def test_nobody_waits_longer_than_he_said(estate: Estate) -> None:
    estate.off.add("PSC1")
    bsc, psc2 = estate["BSC21"], estate["PSC2"]
    write = bsc.engine.request(create_queue())
    bsc.carry(bsc.engine.take_effects())
    estate.run(9.9)
    assert psc2.messages(ChangeReplyMessage) == []
    # and meanwhile others are served
    psc2.carry(psc2.engine.receive(asked(0, of=SITES[2], name="BSC21"), None))
    estate.run(0.2)
    (answer,) = psc2.messages(ChangeReplyMessage, "BSC21")
    assert answer.result == MqStatus.MQDS_NO_RSP_FROM_OWNER
    assert write.status == MqStatus.MQDS_NO_RSP_FROM_OWNER


@pytest.mark.requirement("RP-3.3.7.1-07", "RP-3.3.7.1-09", "RP-3.3.7.6-02")
def test_a_reply_that_comes_too_late_finds_nobody(estate: Estate) -> None:
    bsc = estate["BSC21"]
    write = bsc.engine.request(create_queue())
    (send,) = bsc.engine.take_effects()
    request = send.message
    assert isinstance(request, ChangeRequestMessage)
    estate.run(19.9)
    assert not is_done(write)
    estate.run(0.2)
    assert write.status == MqStatus.MQDS_NO_RSP_FROM_OWNER
    late = ChangeReplyMessage(SITES[2].bytes_le, request.request_identifier, 0, "BSC21")
    assert bsc.tell(late, "PSC2") == []
    assert write.status == MqStatus.MQDS_NO_RSP_FROM_OWNER
    assert bsc.engine.counters["dropped.late_reply"] == 1


@pytest.mark.requirement("RP-3.3.7.1-11", "RP-3.3.7.8-02", "RP-3.3.7.8-03")
def test_a_nack_ends_the_wait_at_once(estate: Estate) -> None:
    bsc = estate["BSC21"]
    write = bsc.engine.request(create_queue())
    (send,) = bsc.engine.take_effects()
    assert isinstance(send.message, ChangeRequestMessage)
    bsc.engine.change_request_nacked(send.message)
    assert write.status == MqStatus.MQDS_OWNER_NOT_REACHED
    assert bsc.engine.change_request_nacked(send.message) == []  # nobody waits any more


@pytest.mark.requirement("RP-3.1.7.1.1-04")
def test_two_bscs_may_use_one_number(estate: Estate) -> None:
    pec = estate["PEC0"]
    for name in ("BSC01", "BSC02"):
        with estate[name].engine.turn() as server:
            server.next_request = 0
    results = []
    for name, path in (("BSC01", r"C14\first"), ("BSC02", r"C99\nobody")):
        node = estate[name]
        results.append(node.engine.request(create_queue(path=path)))
        node.carry(node.engine.take_effects())
    assert len(estate._letters) == 2
    estate.settle()
    assert pec.engine.counters["forwarded"] == 2
    assert [result.status for result in results] == [0, MqStatus.MQDS_UNKNOWN_SOURCE]
    bsc = estate["BSC01"]
    again = [bsc.engine.request(create_queue(path=rf"C14\q{n}")) for n in range(2)]
    numbers = {
        send.message.request_identifier
        for send in bsc.engine.take_effects()
        if isinstance(send.message, ChangeRequestMessage)
    }
    assert len(numbers) == len(again)


@pytest.mark.requirement("RP-3.3.7.1-04")
def test_a_partition_that_nobody_knows_is_an_error_at_once(estate: Estate) -> None:
    psc2 = estate["PSC2"]
    write = psc2.engine.request(create_queue(UUID(int=99)))
    assert write.status == MqStatus.MQDS_UNKNOWN_SOURCE
    assert psc2.engine.take_effects() == []
    bsc = estate["BSC21"]
    asked_for = bsc.engine.request(create_queue(UUID(int=99)))
    bsc.carry(bsc.engine.take_effects())
    estate.settle()
    assert asked_for.status == MqStatus.MQDS_UNKNOWN_SOURCE
    assert psc2.messages(ChangeRequestMessage) == []


@pytest.mark.requirement("RP-3.2.7.2-12", "RP-3.2.7.2-13", "RP-3.2.7.2-02")
def test_what_fails_at_the_authority_changes_nothing_there() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    before = dict(fingerprints(pec.directory))
    unknown = requested(CREATE, "x", (502, "x"))
    unknown.directory_change.command = 9
    with_unknown = pec.engine.receive(unknown, None)
    assert with_unknown == []  # no verified sender
    sends = pec.engine.receive(unknown, queue_manager("PSC1"))
    assert result_of(sends) == MqStatus.ERROR
    exists = requested(CREATE, "site1", (301, "site1"), (302, UUID(int=7).bytes_le))
    assert result_of(pec.tell(exists, "PSC1")) == MqStatus.QUEUE_EXISTS
    missing = requested(UPDATE, network(1).bytes_le, (501, 3))
    assert result_of(pec.tell(missing, "PSC1")) == MqStatus.MQDS_OBJECT_NOT_FOUND
    no_type = requested(UPDATE, network(1).bytes_le)
    assert result_of(pec.tell(no_type, "PSC1")) == MqStatus.MQDS_WRONG_OBJ_TYPE
    assert pec.partition(ENTERPRISE).last == last
    assert fingerprints(pec.directory) == before


@pytest.mark.requirement(
    "RP-3.2.7.2-05",
    "RP-3.2.7.2-08",
    "RP-3.2.7.2-09",
    "RP-3.2.7.2-10",
    "RP-3.2.7.2-11",
    "RP-3.1.7.2.6-03",
)
def test_every_command_does_what_it_says() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    guid = NETWORK.bytes_le
    assert result_of(pec.tell(requested(CREATE, "net", (503, guid), (502, "net")), "PSC1")) == 0
    assert result_of(pec.tell(requested(UPDATE, "net", (501, 3)), "PSC1")) == 0
    assert result_of(pec.tell(requested(SYNCHRONIZE, guid, (501, 5)), "PSC1")) == 0
    row = pec.get("ConnectedNetwork", NETWORK)
    assert row is not None
    assert row["network_protocol"] == 5
    deletion = requested(DELETE, "net", (1403, 1), (1404, 5))
    assert result_of(pec.tell(deletion, "PSC1")) == 0
    assert pec.get("ConnectedNetwork", NETWORK) is None
    assert pec.partition(ENTERPRISE).last == last + 4
    with pec.engine.turn() as server:
        (entry,) = server.numbers.deletions(ENTERPRISE, 0, 99)
        assert (entry.number, entry.object_type, entry.scope) == (last + 4, 5, 1)
        assert entry.identifier == NETWORK
        changes = server.state.pscs[0].available[-4:]
    assert [change.command for change in changes] == [CREATE, UPDATE, UPDATE, DELETE]
    assert [change.use_guid for change in changes] == [False, True, True, True]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_request_that_comes_again_is_answered_and_not_obeyed(is_killed: bool) -> None:
    """A session that breaks sends it again, and who was killed has forgotten the message."""
    pec = authority()
    create = requested(CREATE, "net", (503, NETWORK.bytes_le), (502, "net"))
    assert result_of(pec.tell(create, "PSC1")) == 0
    refused = requested(CREATE, "net", (503, UUID(int=9).bytes_le), (502, "net"), number=2)
    assert result_of(pec.tell(refused, "PSC1")) == MqStatus.QUEUE_EXISTS
    deletion = requested(DELETE, "net", (1403, 1), (1404, 5), number=3)
    assert result_of(pec.tell(deletion, "PSC1")) == 0
    last = pec.partition(ENTERPRISE).last
    if is_killed:
        pec.estate.restart("PEC0")
    assert result_of(pec.tell(create, "PSC1")) == 0
    assert result_of(pec.tell(refused, "PSC1")) == MqStatus.QUEUE_EXISTS
    assert result_of(pec.tell(deletion, "PSC1")) == 0
    assert pec.get("ConnectedNetwork", NETWORK) is None
    assert pec.partition(ENTERPRISE).last == last
    assert pec.engine.counters["dropped.repeated_change_request"] == 3
    # Another change is another request, whatever its number; so is one of somebody else.
    other = requested(CREATE, "other", (503, UUID(int=9).bytes_le), (502, "other"))
    assert result_of(pec.tell(other, "PSC1")) == 0
    create.requester_name = "PSC2"
    assert result_of(pec.tell(create, "PSC2")) == 0
    assert pec.get("ConnectedNetwork", NETWORK) is not None


@pytest.mark.requirement("RP-3.2.7.6-04")
def test_a_bsc_that_its_psc_does_not_know_gets_its_reply() -> None:
    pec = authority()
    request = requested(CREATE, "net", (503, NETWORK.bytes_le), (502, "net"))
    request.requester_name, request.psc_name = "BSC02", "PEC0"
    (send,) = pec.tell(request, "BSC02")
    assert send.machine == "BSC02"


@pytest.mark.requirement("RP-3.1.7.1.3-02", "RP-3.1.7.1.3-03", "RP-3.1.7.1.3-04", "RP-3.1.7.1.3-05")
def test_the_next_number_is_that_of_the_authority() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    with pec.engine.turn() as server:
        assert read_next_sequence_number(server, server.enterprise) == last + 1
        assert read_next_sequence_number(server, server.enterprise) == last + 1
        assert read_next_sequence_number(server, server.state.partitions[SITES[1]]) == 0
    psc = replica()
    with psc.engine.turn() as server:
        assert read_next_sequence_number(server, server.enterprise) == 0
        assert read_next_sequence_number(server, server.site) == 1


def test_plain_writes_of_the_directory_find_their_way(estate: Estate) -> None:
    """What an API does: create, change and delete at a server that decides nothing."""
    bsc = estate["BSC21"]
    queue = bsc.add_queue(r"C14\orders", label="Orders")
    estate.run(15.0)
    bsc.write("Queue", queue, label="More orders")
    estate.run(15.0)
    row = estate["BSC01"].get("Queue", queue)
    assert row is not None
    assert row["label"] == "More orders"
    bsc.delete("Queue", queue)
    estate.run(15.0)
    assert estate.are_equal()
    assert bsc.get("Queue", queue) is None


def test_refusals_of_another_server_come_back_as_results(estate: Estate) -> None:
    psc2 = estate["PSC2"]
    psc2.add_queue(r"C14\orders")
    again = psc2.directory.create("Queue", {"path_name": r"C14\orders"})[0]
    assert again is DirectoryResult.OBJECT_ALREADY_EXISTS
    estate.off.add("PSC1")
    result = psc2.directory.create("Queue", {"path_name": r"C14\more"})[0]
    assert result is DirectoryResult.DIRECTORY_NOT_CONNECTED
    problem = psc2.directory.last_problem
    assert problem is not None
    assert "may have been made" in problem.hint
    psc2.engine.gate.wait = None
    assert psc2.directory.create("Queue", {"path_name": r"C14\more"})[0] is not SUCCESS


def test_what_is_refused_here_leaves_nothing_behind() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    put = pec.directory.create("ConnectedNetwork", {"name": "net"})
    assert put[0] is SUCCESS
    refused = pec.directory.create("ConnectedNetwork", {"name": "net"})
    assert refused[0] is DirectoryResult.OBJECT_ALREADY_EXISTS
    unspeakable = pec.directory.create("ConnectedNetwork", {"name": "a\0b"})
    assert unspeakable[0] is not SUCCESS
    assert pec.partition(ENTERPRISE).last == last + 1
    names = [row for row in fingerprints(pec.directory) if "ConnectedNetwork" in row]
    assert len(names) == 1
    with pec.engine.turn() as server:
        assert server.enterprise.window  # and nothing was begun anew
        assert len(server.state.pscs[0].available) > 0


def test_a_request_that_cannot_be_told_to_others_leaves_nothing_behind() -> None:
    pec = authority()
    before = fingerprints(pec.directory)
    properties: Properties = [(503, NETWORK.bytes_le), (502, "a\0b")]
    write = pec.engine.request(RequestedChange(CREATE, "a\0b", ENTERPRISE, properties))
    assert write.status not in (None, 0)
    assert pec.get("ConnectedNetwork", NETWORK) is None
    assert fingerprints(pec.directory) == before


def test_objects_without_copies_stay_at_home() -> None:
    pec = authority()
    last = pec.partition(ENTERPRISE).last
    alias = pec.add("QueueAlias", name="all", format_name="DIRECT=OS:a\\private$\\b")
    pec.write("QueueAlias", alias, format_name="DIRECT=OS:a\\private$\\c")
    pec.delete("QueueAlias", alias)
    assert pec.partition(ENTERPRISE).last == last


def test_a_machine_keeps_its_first_site() -> None:
    pec = authority()
    machine = pec.add_machine("alpha")
    moved = {"identifier": machine, "site_identifiers": [SITES[1]]}
    assert pec.directory.write("QueueManager", moved) is not SUCCESS
    assert pec.directory.last_problem is not None
    assert "delete it and create it" in pec.directory.last_problem.hint
    pec.write("QueueManager", machine, site_identifiers=[SITES[0], SITES[1]])


@pytest.mark.parametrize("durable", [False, True])
def test_object_number_and_deletion_are_one_commit(durable: bool) -> None:
    pec = authority()
    machine = pec.add_machine("alpha")
    queue = pec.add_queue(r"alpha\orders")
    last, before = pec.partition(SITES[0]).last, fingerprints(pec.directory)
    pec.store.fail_commit(1, ProcessCrash(), durable=durable)
    with pytest.raises(ProcessCrash):
        pec.directory.delete("Queue", queue)
    pec.estate.restart("PEC0")
    if not durable:
        assert pec.partition(SITES[0]).last == last
        assert fingerprints(pec.directory) == before
        return
    assert pec.partition(SITES[0]).last == last + 1
    assert pec.get("Queue", queue) is None
    assert f"{SITES[0]}/deleted/{queue}" in fingerprints(pec.directory)
    assert pec.get("QueueManager", machine) is not None


def test_a_store_that_fails_once_is_no_end(estate: Estate) -> None:
    psc2 = estate["PSC2"]
    psc2.store.fail_commit(1)
    estate["PEC0"].add("ConnectedNetwork", name="one")
    estate.run(15.0)
    assert psc2.engine.counters["dropped.store_failed"] == 1
    estate["PEC0"].add("ConnectedNetwork", name="two")
    estate.run(1300.0)
    assert estate.are_equal()


def test_who_cannot_write_asks_now_and_then_and_not_in_circles() -> None:
    estate = estate_of_six(ReplicationSettings(message_changes_max=1))
    pec, psc = estate["PEC0"], estate["PSC2"]
    estate.off.add("PSC2")
    for number in range(5):
        pec.add("ConnectedNetwork", name=f"net{number}")
    estate.run(15.0)
    estate.off.clear()
    psc.store.is_full = True
    psc.sent.clear()
    estate.lose = lambda _sender, _send: len(psc.sent) > 500  # a circle ends there
    psc.carry(psc.engine.receive(hello(pec.partition(ENTERPRISE).last), queue_manager("PEC0")))
    estate.run(60.0)
    failed = psc.engine.counters["dropped.store_failed"]
    assert 3 <= failed <= 60 / 5 * 2
    assert psc.engine.counters["dropped.after_store_failed"] > failed
    asked_for = [each for each in psc.sent if isinstance(each.message, SyncRequestMessage)]
    assert len(asked_for) <= 60 / 5 * 2 * 4  # every partition, each time
    psc.store.is_full = False
    estate.run(30.0)
    assert estate.are_equal()


def test_two_servers_that_point_at_each_other_do_not_play_ball() -> None:
    psc = replica()
    request = requested(CREATE, "net", (502, "net"))
    request.requester_name = "PSC2"
    assert [send.machine for send in psc.tell(request, "PSC2")] == ["PEC0"]
    assert psc.tell(request, "PEC0") == []
    assert psc.engine.counters["dropped.repeated_change_request"] == 1


def test_status_says_how_far_everybody_is(estate: Estate) -> None:
    psc2: Node = estate["PSC2"]
    psc2.tell(hello(9), "PEC0")
    status = psc2.engine.status()
    enterprise = next(each for each in status.partitions if each.partition_id == ENTERPRISE)
    assert (enterprise.authority, enterprise.is_own) == ("PEC0", False)
    assert (enterprise.told_last - enterprise.last, enterprise.is_waiting) == (5, True)
    own = next(each for each in status.partitions if each.partition_id == SITES[2])
    assert (own.is_own, own.is_waiting, own.state) == (True, False, "NORMAL")
    assert {each.kind for each in status.neighbours} == {"PSC", "BSC"}
    bsc = next(each for each in status.neighbours if each.kind == "BSC")
    assert not bsc.is_silent
    estate.clock.advance(15 * 12 * 3600.0)
    bsc = next(each for each in psc2.engine.status().neighbours if each.kind == "BSC")
    assert bsc.is_silent


def test_a_queue_manager_is_made_in_another_site_when_that_has_heard_that_it_is_gone(
    estate: Estate,
) -> None:
    psc, other = estate["PSC1"], estate["PSC2"]
    known = other.directory.read("QueueManager", equals("computer_name", "C14"), None)[1]
    row = {
        "computer_name": "C14",
        "identifier": known["identifier"],
        "site_identifiers": [SITES[2]],
    }
    estate.lose = lambda _sender, send: send.machine == "PSC2"
    psc.delete("QueueManager", UUID(str(known["identifier"])))
    estate.run(15.0)
    assert other.directory.create("QueueManager", dict(row))[0] is not SUCCESS
    assert "is in another site, as far as is known here" in str(other.directory.last_problem)
    # somebody who registers again where it is hears that it is there, as always
    again = row | {"site_identifiers": [SITES[1]]}
    psc.add_machine("C15")
    assert psc.directory.create("QueueManager", again | {"computer_name": "C15"})[0] is SUCCESS
    estate.lose = lambda _sender, _send: False
    estate.run(1300.0)
    other.add("QueueManager", **row)
    estate.run(60.0)
    assert estate.are_equal()
    found = psc.directory.read("QueueManager", equals("computer_name", "C14"), None)[1]
    assert found["site_identifiers"] == [SITES[2]]
