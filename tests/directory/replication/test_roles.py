"""Roles follow the directory: nobody decides before the other one has ended."""

from __future__ import annotations

from uuid import UUID

from falconmq.directory.replication.effects import Send
from falconmq.directory.replication.properties import E_PECNAME, OBJECT_TABLES, Properties
from falconmq.directory.replication.requesting import begin_full_sync
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.directory.replication.topology import site_controller_changed
from falconmq.directory.replication.writes import RequestedChange
from falconmq.errors import MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.directory_change import UPDATE, DirectoryChange
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.replication_messages import (
    ChangePropagationMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from tests.directory.replication.estates import (
    DOMAIN,
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    estate_of_six,
    queue_manager,
)
from tests.directory.replication.told import hello, made, propagation

PSC = DirectoryServerType.PRIMARY_SITE_CONTROLLER
BSC = DirectoryServerType.BACKUP_SITE_CONTROLLER
PEC = DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER


def owners(estate: Estate) -> dict[str, set[str]]:
    """Who decides, as each server sees itself: the enterprise, and sites by their numbers."""
    names = {ENTERPRISE: "enterprise", **{site: str(n) for n, site in enumerate(SITES)}}
    found = {}
    for name, node in estate.nodes.items():
        own = {names[p.partition_id] for p in node.engine.status().partitions if p.is_own}
        if own:
            found[name] = own
    return found


def type_of(node: Node, name: str) -> object:
    row = node.get("QueueManager", queue_manager(name))
    assert row is not None
    return row["server_type"]


def name_pec(at: Node, name: str) -> None:
    change = RequestedChange(UPDATE, DOMAIN, ENTERPRISE_PARTITION, [(E_PECNAME, name)])
    assert at.engine.request(change).status == MqStatus.OK
    at.carry(at.engine.take_effects())


def changes_of(send: Send) -> list[DirectoryChange]:
    message = send.message
    if isinstance(message, ChangePropagationMessage | SyncReplyMessage):
        return message.directory_changes
    return []


def test_a_backup_that_is_named_takes_over_from_its_psc() -> None:
    estate = estate_of_six()
    psc, bsc = estate["PSC2"], estate["BSC21"]
    psc.add_machine("late")  # nobody has heard of it yet
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(40.0)
    assert owners(estate) == {"PEC0": {"enterprise", "0"}, "PSC1": {"1"}, "BSC21": {"2"}}
    assert (psc.engine.role, bsc.engine.role) == (Role.BSC, Role.PSC)
    for node in estate.nodes.values():
        assert (type_of(node, "PSC2"), type_of(node, "BSC21")) == (BSC, PSC)
    bsc.add_machine("later")
    estate.run(1300.0)
    assert estate.are_equal()
    found = psc.directory.read("QueueManager", equals("computer_name", "late"), None)
    assert found[0].name == "SUCCESS"


def test_a_backup_that_is_named_waits_for_the_last_change_of_the_old_one() -> None:
    estate = estate_of_six()
    psc, bsc = estate["PSC2"], estate["BSC21"]

    def lose(sender: str, send: Send) -> bool:
        """Nothing of the site comes to the backup."""
        return (sender, send.machine) == ("PSC2", "BSC21") and any(
            change.partition_id == SITES[2].bytes_le for change in changes_of(send)
        )

    estate.lose = lose
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(1300.0)
    assert psc.engine.role is Role.BSC
    status = bsc.engine.status()
    assert status.awaits_role  # it knows that it is named
    assert (status.role, status.psc_name) == ("bsc", "PSC2")
    assert "BSC21" not in owners(estate)
    estate.restart("BSC21")
    assert bsc.engine.status().psc_name == "PSC2"
    estate.lose = lambda _sender, _send: False
    estate.run(1300.0)
    assert owners(estate)["BSC21"] == {"2"}
    assert not bsc.engine.status().awaits_role


def test_the_old_psc_hears_of_its_end_although_nobody_tells_it_any_more() -> None:
    estate = estate_of_six()
    # all that the PEC says is lost for a while, and its neighbour is another one by then
    estate.lose = lambda sender, send: sender == "PEC0" and send.machine == "PSC2"
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(60.0)
    assert owners(estate)["PSC2"] == {"2"}
    estate.lose = lambda _sender, _send: False
    estate.run(1300.0)
    assert owners(estate)["BSC21"] == {"2"}
    assert estate["PSC2"].engine.role is Role.BSC


def test_a_psc_becomes_the_pec_when_it_has_the_last_change_of_the_old_one() -> None:
    estate = estate_of_six()
    estate.lose = lambda sender, send: sender == "PEC0" and send.machine == "PSC1"
    estate["PEC0"].add("ConnectedNetwork", name="net")
    name_pec(estate["PEC0"], "PSC1")
    estate.run(60.0)
    assert "enterprise" not in {role for own in owners(estate).values() for role in own}
    assert estate["PEC0"].engine.role is Role.PEC  # it says how far it is until the new one begins
    estate.lose = lambda _sender, _send: False
    estate.run(1300.0)
    assert owners(estate) == {"PEC0": {"0"}, "PSC1": {"enterprise", "1"}, "PSC2": {"2"}}
    assert [estate[name].engine.role for name in ("PEC0", "PSC1")] == [Role.PSC, Role.PEC]
    estate["PSC1"].add("ConnectedNetwork", name="other")
    estate.run(2600.0)
    assert estate.are_equal()
    assert (type_of(estate["PSC2"], "PEC0"), type_of(estate["PSC2"], "PSC1")) == (PSC, PEC)


def test_a_role_outlives_a_restart_whatever_the_configuration_says() -> None:
    estate = estate_of_six()
    psc, bsc = estate["PSC2"], estate["BSC21"]
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(60.0)
    for name in ("PSC2", "BSC21"):  # with the configurations that they always had
        estate.restart(name)
    assert (psc.engine.role, bsc.engine.role) == (Role.BSC, Role.PSC)
    psc.plays, bsc.controller = Role.PEC, "PSC9"
    for name in ("PSC2", "BSC21"):
        estate.restart(name)
    assert (psc.engine.role, bsc.engine.role) == (Role.BSC, Role.PSC)
    assert psc.engine.status().psc_name == "BSC21"
    estate.run(60.0)
    assert owners(estate)["BSC21"] == {"2"}


def test_a_psc_gets_its_role_back_only_with_the_last_change_of_the_new_one() -> None:
    estate = estate_of_six()
    pec, psc, bsc = estate["PEC0"], estate["PSC2"], estate["BSC21"]
    pec.write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(60.0)
    bsc.add_machine("between")
    estate.lose = lambda sender, send: (
        sender == "BSC21" and any(c.partition_id == SITES[2].bytes_le for c in changes_of(send))
    )
    pec.write("Site", SITES[2], primary_site_controller="PSC2")
    estate.run(1300.0)
    assert psc.engine.status().awaits_role  # it was a PSC before: that is no reason
    assert "PSC2" not in owners(estate)
    estate.lose = lambda _sender, _send: False
    estate.run(1300.0)
    assert owners(estate)["PSC2"] == {"2"}
    estate.run(1300.0)
    assert estate.are_equal()


def test_what_the_directory_said_before_it_resigned_is_no_reason_to_decide() -> None:
    estate = estate_of_six()
    bsc = estate["BSC21"]
    with bsc.engine.turn() as server:
        server.state.standing.resigned_at = 1000
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(60.0)
    assert type_of(bsc, "BSC21") == PSC
    assert bsc.engine.status().awaits_role
    assert "BSC21" not in owners(estate)


def test_whoever_names_another_one_is_believed_to_the_end_of_its_message() -> None:
    estate = estate_of_six()
    psc = estate["PSC2"]
    last = psc.partition(ENTERPRISE).last
    enterprise = psc.directory.read("Enterprise", (), None)[1]
    assert enterprise is not None
    guid = enterprise["identifier"]
    assert isinstance(guid, UUID)

    def named(number: int, pec: str) -> DirectoryChange:
        partition = ENTERPRISE.bytes_le
        values: Properties = [(E_PECNAME, pec)]
        return DirectoryChange(UPDATE, guid.bytes_le, partition, number - 1, number, number, values)

    changes = [named(last + 1, "PSC1"), made(last + 2)]
    psc.tell(propagation(*changes), "PEC0")
    assert psc.partition(ENTERPRISE).authority_name == "PSC1"
    assert psc.partition(ENTERPRISE).last == last + 2
    psc.tell(propagation(named(last + 3, "PEC0")), "PEC0")
    assert psc.partition(ENTERPRISE).last == last + 2  # but not any more


def test_a_copy_answers_for_no_more_than_it_has() -> None:
    estate = estate_of_six()
    psc = estate["PSC1"]
    last = psc.partition(SITES[2]).last
    request = SyncRequestMessage(
        SITES[2].bytes_le, SITES[2].bytes_le, last, last + 50, 0, False, 0, "BSC21"
    )
    sends = psc.tell(request, "BSC21")
    replies = [send.message for send in sends if isinstance(send.message, SyncReplyMessage)]
    assert [reply.to_seq_number for reply in replies] == [last + 1]


def test_a_backup_does_not_ask_a_new_psc_for_what_the_old_one_had() -> None:
    estate = estate_of_six()
    bsc = estate["BSC21"]
    with bsc.engine.turn() as server:
        server.state.partitions[SITES[1]].window = 50
        site_controller_changed(server, SITES[2], "PSC9")
        assert server.state.partitions[SITES[1]].window == MAX_SEQ_NUMBER
        assert server.enterprise.window != MAX_SEQ_NUMBER  # nothing is missing there
    assert bsc.engine.status().psc_name == "PSC9"


def test_a_psc_that_fetches_the_enterprise_anew_hands_over_when_it_has_it() -> None:
    estate = estate_of_six()
    psc = estate["PSC2"]
    with psc.engine.turn() as server:
        begin_full_sync(server, server.enterprise, 0)
    estate.lose = lambda sender, send: (
        send.machine == "PSC2"
        and isinstance(send.message, SyncReplyMessage)
        and send.message.complete_sync0 == 2
    )
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    with psc.engine.turn() as server:  # so far it has come
        changes: dict[str, object] = {"primary_site_controller": "BSC21"}
        server.objects.write(OBJECT_TABLES[ObjectType.MQDS_SITE], SITES[2], changes)
        site_controller_changed(server, SITES[2], "BSC21")
    assert owners(estate)["PSC2"] == {"2"}
    estate.lose = lambda _sender, _send: False
    estate.run(2600.0)
    assert owners(estate)["BSC21"] == {"2"}
    assert estate.are_equal()


def test_a_former_pec_asks_for_what_it_missed_before_it_heard_its_successor_say_hello() -> None:
    """Named again meanwhile: it has to have everything before it decides."""
    estate = estate_of_six()
    estate.restart("PEC0")
    estate.run(15.0)
    pec, successor = estate["PEC0"], estate["PSC1"]
    name_pec(pec, "PSC1")
    pec.carry(pec.engine.take_effects())
    estate.lose = lambda sender, send: sender == "PSC1" and send.machine == "PEC0"
    estate.run(15.0)
    assert owners(estate)["PSC1"] == {"enterprise", "1"}
    successor.add("ConnectedNetwork", name="missed")
    estate.run(15.0)
    with successor.engine.turn() as server:  # the hello was said, and lost with the change
        (neighbour,) = [each for each in server.state.pscs if each.machine_name == "PEC0"]
        assert neighbour.last_hello is not None
    estate.lose = lambda _sender, _send: False
    name_pec(successor, "PEC0")
    successor.carry(successor.engine.take_effects())
    estate.run(60.0)
    assert owners(estate)["PEC0"] == {"enterprise", "0"}
    estate.run(1300.0)
    assert estate.are_equal()


def test_who_speaks_as_the_pec_and_has_not_heard_that_it_is_named_has_not_begun() -> None:
    """It was the PEC before, and speaks as such until its successor has said hello."""
    estate = estate_of_six()
    pec, successor = estate["PEC0"], estate["PSC1"]
    name_pec(pec, "PSC1")
    pec.carry(pec.engine.take_effects())
    estate.lose = lambda sender, send: sender == "PSC1" and send.machine == "PEC0"
    estate.run(15.0)
    assert owners(estate)["PSC1"] == {"enterprise", "1"}
    before = pec.partition(ENTERPRISE).last
    name_pec(successor, "PEC0")
    successor.carry(successor.engine.take_effects())
    estate.run(15.0)
    assert pec.partition(ENTERPRISE).last == before  # it does not know that it is the PEC again
    successor.tell(hello(before), "PEC0")
    assert successor.engine.status().role == "pec"  # it speaks of what the other one misses
    estate.lose = lambda _sender, _send: False
    estate.run(2600.0)
    assert owners(estate)["PEC0"] == {"enterprise", "0"}
    assert successor.engine.status().role == "psc"
    assert estate.are_equal()
