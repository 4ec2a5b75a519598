"""Directory servers with real engines over the real transport (scenarios 15 to 19, 22, 47, 52)."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.directory.replication.effects import Profile
from falconmq.directory.replication.profiles import PROFILES
from falconmq.directory.replication.replication_queue import replication_queue_of
from falconmq.directory.replication.settings import ReplicationSettings, Role
from falconmq.directory.replication.writes import PendingWrite
from falconmq.errors import MqStatus
from falconmq.message import Acknowledge, Message
from falconmq.names import PrivateFormatName
from falconmq.serialization import from_user_message
from falconmq.wire.replication_messages import (
    BSCAckMessage,
    ChangePropagationMessage,
    ChangeReplyMessage,
    ChangeRequestMessage,
    SyncRequestMessage,
    decode_replication_message,
)
from tests.directory.enterprises import guid
from tests.directory.replication.carried_enterprise import (
    SITES,
    CarriedEnterprise,
    DirectoryServer,
    add_backup,
    three_sites,
)
from tests.transport.protected import PUBLIC

QUEUE = r"C14\testq"


def with_machine(enterprise: CarriedEnterprise) -> None:
    """A computer of site 1, C14, whose queues PSC1 decides about."""
    enterprise["PSC1"].create(
        "QueueManager", identifier=guid("C14"), computer_name="C14", site_identifiers=[SITES[1]]
    )
    enterprise.settle()


def ask_for_queue(server: DirectoryServer, path_name: str = QUEUE) -> PendingWrite:
    return server.ask_create("Queue", path_name=path_name)


def is_waiting(write: PendingWrite) -> bool:
    return write.status is None


def outgoing(server: DirectoryServer, machine: str) -> list[Message]:
    """What waits to be sent to a machine that is away."""
    queue = server.node.core.outgoing[replication_queue_of(machine)]
    found = [queue.positions.find(lookup_id) for lookup_id in queue.positions.lookup_ids()]
    return [from_user_message(each.message.packet) for each in found if each is not None]


def assert_profile(server: DirectoryServer, sent: Message, seconds: int, priority: int) -> None:
    own = PrivateFormatName(server.node.identifier, 1)
    assert (sent.time_to_reach_queue, sent.time_to_be_received) == (seconds, seconds)
    assert sent.priority == priority
    assert sent.acknowledgements == Acknowledge.NACK_REACH_QUEUE
    assert sent.administration_queue == sent.response_queue == own


def test_servers_begin_with_nothing_and_end_with_the_same() -> None:
    enterprise = three_sites()
    assert enterprise.are_equal()
    for server in enterprise.servers.values():
        assert all(server.has("Site", site) for site in SITES)


def test_a_write_at_a_backup_is_made_by_its_authority_and_comes_to_everybody() -> None:
    # scenario 15
    enterprise = three_sites()
    with_machine(enterprise)
    write = ask_for_queue(enterprise["BSC21"])
    assert is_waiting(write)
    enterprise.settle(1)
    assert write.status == MqStatus.OK
    identifier = enterprise["PSC1"].queue(QUEUE)
    assert identifier is not None
    enterprise.settle(13)
    assert {server.queue(QUEUE) for server in enterprise.servers.values()} == {identifier}
    assert enterprise.are_equal()


def test_a_write_whose_authority_is_off_ends_and_the_loops_go_on_meanwhile() -> None:
    # scenario 16
    enterprise = three_sites()
    with_machine(enterprise)
    enterprise.cut_off("PSC1")
    write = ask_for_queue(enterprise["BSC21"])
    site = enterprise["PEC0"].create("Site", name="site 4")
    enterprise.settle(9)
    assert is_waiting(write)
    enterprise.settle(13)
    assert write.status in (MqStatus.MQDS_NO_RSP_FROM_OWNER, MqStatus.MQDS_OWNER_NOT_REACHED)
    assert enterprise["BSC21"].has("Site", site)
    assert enterprise["BSC21"].queue(QUEUE) is None


@pytest.mark.requirement("RP-3.3.7.1-11")
def test_a_write_that_is_sent_back_fails_at_once() -> None:
    # scenario 17: PSC1 is there again, but serves no directory any more
    enterprise = three_sites()
    with_machine(enterprise)
    enterprise["PSC1"].node.restart()
    write = ask_for_queue(enterprise["PSC2"])
    enterprise.settle(1)
    assert write.status == MqStatus.MQDS_OWNER_NOT_REACHED


@pytest.mark.requirement("RP-3.3.7.6-02")
def test_a_reply_that_nobody_waits_for_is_ignored() -> None:
    # scenario 18
    enterprise = three_sites()
    late = ChangeReplyMessage(SITES[2].bytes_le, 77, 0, "BSC21")
    psc2, bsc = enterprise["PSC2"], enterprise["BSC21"]
    before = bsc.engine.status()
    psc2.node.run(psc2.carrier._sender.send, "BSC21", late.encode(), PROFILES[Profile.URGENT])
    enterprise.settle(1)
    assert bsc.carrier.counters["ChangeReplyMessage"] == 1
    assert bsc.engine.status() == before


def test_two_backups_may_give_their_requests_the_same_number() -> None:
    # scenario 19
    enterprise = three_sites()
    with_machine(enterprise)
    one, two = enterprise["BSC21"], add_backup(enterprise, "BSC22")
    one.engine._server.next_request = two.engine._server.next_request = 1
    first, second = ask_for_queue(one), ask_for_queue(two, r"C14\other")
    again = ask_for_queue(two)  # which is there by then
    enterprise.settle(1)
    assert (first.status, second.status) == (MqStatus.OK, MqStatus.OK)
    assert again.status not in (None, MqStatus.OK)
    enterprise.settle()
    assert two.queue(QUEUE) is not None
    assert one.queue(r"C14\other") is not None


def test_a_backup_that_its_controller_does_not_know_yet_gets_its_reply() -> None:
    # scenario 22
    enterprise = three_sites()
    with_machine(enterprise)
    stranger = enterprise.add("BSC29", Role.BSC, 2, "PSC2")
    enterprise.start("BSC29")
    enterprise.settle()
    assert "BSC29" not in [each.machine for each in enterprise["PSC2"].engine.status().neighbours]
    write = ask_for_queue(stranger)
    enterprise.settle(1)
    assert write.status == MqStatus.OK


@pytest.mark.requirement("RP-3.3.6.2-01", "RP-3.3.6.2-02")
def test_a_backup_says_that_it_lives_after_five_seconds_and_then_again_and_again() -> None:
    # scenario 47, with two minutes for the twelve hours
    enterprise = three_sites(ReplicationSettings(bsc_ack_seconds=120.0))
    psc2, bsc = enterprise["PSC2"], enterprise["BSC21"]
    assert psc2.carrier.counters["BSCAckMessage"] == 1
    (known,) = [each for each in psc2.engine.status().neighbours if each.kind == "BSC"]
    assert known.last_acked_time > 0
    enterprise.settle(60)
    assert psc2.carrier.counters["BSCAckMessage"] == 1
    enterprise.cut_off("PSC2")
    enterprise.settle(60)
    sent = {type(message): each for each, message in decoded(outgoing(bsc, "PSC2"))}
    assert_profile(bsc, sent[BSCAckMessage], 1200, 3)
    ack = decode_replication_message(sent[BSCAckMessage].body)
    assert isinstance(ack, BSCAckMessage)
    assert (UUID(bytes_le=ack.bsc_machine_id), ack.bsc_name) == (bsc.node.identifier, "BSC21")


def decoded(messages: list[Message]) -> list[tuple[Message, object]]:
    return [(each, decode_replication_message(each.body)) for each in messages]


@pytest.mark.requirement("RP-3.3.7.1-05", "RP-3.3.7.3-10")
def test_requests_travel_as_the_protocol_says() -> None:
    enterprise = three_sites()
    with_machine(enterprise)
    enterprise.cut_off("PSC1")
    psc2 = enterprise["PSC2"]
    ask_for_queue(psc2)
    (request,) = outgoing(psc2, "PSC1")
    assert isinstance(decode_replication_message(request.body), ChangeRequestMessage)
    assert_profile(psc2, request, 10, 7)
    # a server that begins again asks the others how far they are
    psc2.node.run(psc2.carrier.stop)
    psc2.node.run(psc2.carrier.start)
    (asking,) = outgoing(psc2, "PSC1")[1:]
    assert isinstance(decode_replication_message(asking.body), SyncRequestMessage)
    assert_profile(psc2, asking, 1200, 3)


@pytest.mark.requirement("RP-3.3.7.2-10")
def test_changes_travel_without_a_wish_to_hear_of_them_and_only_if_there_are_any() -> None:
    enterprise = three_sites()
    enterprise.cut_off("PSC1")
    psc2 = enterprise["PSC2"]
    enterprise.settle(60)
    assert outgoing(psc2, "PSC1") == []
    psc2.create("QueueManager", computer_name="C21", site_identifiers=[SITES[2]])
    enterprise.settle(11)
    (sent,) = outgoing(psc2, "PSC1")
    assert isinstance(decode_replication_message(sent.body), ChangePropagationMessage)
    assert (sent.time_to_reach_queue, sent.time_to_be_received, sent.priority) == (1200, 1200, 3)
    assert sent.acknowledgements == Acknowledge.NONE
    assert sent.administration_queue is None
    assert sent.response_queue is None


def test_what_an_unknown_server_signs_is_not_believed_and_made_good_later() -> None:
    # scenario 52
    enterprise = three_sites()
    psc1, pec = enterprise["PSC1"], enterprise["PEC0"]
    del psc1.registry.keys[pec.node.identifier]
    site = pec.create("Site", name="site 4")
    enterprise.settle()
    assert enterprise["PSC2"].has("Site", site)
    assert not psc1.has("Site", site)
    # when its keys are known, the next change shows that one is missing
    psc1.registry.keys[pec.node.identifier] = PUBLIC
    pec.create("Site", name="site 5")
    enterprise.settle(30)
    assert psc1.has("Site", site)
    assert enterprise.are_equal()
