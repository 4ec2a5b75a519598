"""A server is gone for good: another one decides, all copies become like its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

import pytest

from falconmq.directory.replication.eras import era_of, fetch_whole, number_in_era
from falconmq.directory.replication.properties import OBJECT_TABLES, Properties
from falconmq.directory.replication.requesting import ask_instead
from falconmq.directory.replication.roles import MACHINES, machine_named
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.settings import ReplicationSettings, Role
from falconmq.directory.replication.site_removal import remove_site
from falconmq.directory.replication.state import ENTERPRISE_PARTITION, Partition, PurgeState
from falconmq.directory.replication.taking_over import (
    ask_around,
    backups,
    other_primaries,
    take_over_both,
    take_over_enterprise,
    take_over_site,
)
from falconmq.errors import DirectoryError, FalconMQError
from falconmq.manager.directory_backend import equals
from falconmq.manager.states import QueueScope
from falconmq.wire.directory_change import DELETE, DirectoryChange
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.replication_messages import ChangePropagationMessage, SyncReplyMessage
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    estate_of_six,
    queue_manager,
    register,
    server_type,
)
from tests.directory.replication.test_roles import name_pec, owners
from tests.directory.replication.told import reply

ERA = 1 << 32
SITE_TABLE = OBJECT_TABLES[ObjectType.MQDS_SITE]


def act(node: Node, action: Callable[[Server], None]) -> None:
    node.engine.command(action)
    node.carry(node.engine.take_effects())


def has_machine(node: Node, name: str) -> bool:
    found = node.directory.read("QueueManager", equals("computer_name", name), None)
    return found[0].name == "SUCCESS"


def gather(estate: Estate, node: Node, partition: UUID, dead: str) -> None:
    """Ask the backups first, then the PSCs."""

    def ask(server: Server, names_of: Callable[[Server, str], Iterable[str]]) -> None:
        where = server.state.partitions[partition]
        ask_around(server, where, list(names_of(server, dead)))

    for names_of in (backups, other_primaries):
        act(node, partial(ask, names_of=names_of))
        estate.settle()


def name_psc(estate: Estate, heir: Node) -> None:
    """The PEC names it, and it hears that from the PEC."""
    estate["PEC0"].write("Site", SITES[2], primary_site_controller=heir.name)
    act(heir, lambda server: ask_instead(server, server.enterprise, "PEC0"))
    estate.settle()


def estate_with_two_backups(settings: ReplicationSettings | None = None) -> Estate:
    estate = estate_of_six(settings)
    estate.known.append("BSC22")
    estate.nodes["BSC22"] = Node("BSC22", estate)
    register(estate["PSC2"], "BSC22")
    estate.run(15.0)
    estate["BSC22"].start()
    estate.run(30.0)
    return estate


def test_a_backup_takes_over_and_what_the_dead_one_told_nobody_is_lost() -> None:
    estate = estate_with_two_backups()
    psc, heir, other = estate["PSC2"], estate["BSC21"], estate["BSC22"]
    estate.lose = lambda sender, send: sender == "PSC2" and send.machine != "BSC22"
    psc.add_machine("told")  # to one backup alone
    estate.run(15.0)
    estate.lose = lambda sender, _send: sender == "PSC2"
    psc.add_machine("lost")
    estate.run(15.0)
    estate.off.add("PSC2")
    assert [has_machine(node, "told") for node in (heir, other)] == [False, True]
    gather(estate, heir, SITES[2], "PSC2")
    assert has_machine(heir, "told")
    name_psc(estate, heir)
    assert not owners(estate).get("BSC21")  # named, but the old one has not handed over
    before = heir.partition(SITES[2]).last
    act(heir, take_over_site)
    assert owners(estate)["BSC21"] == {"2"}
    partition = heir.partition(SITES[2])
    assert era_of(partition.last) > era_of(before)
    assert number_in_era(partition.last) == number_in_era(partition.purged) + 3  # its decisions
    heir.add_machine("new")
    estate.run(1300.0)
    for node in estate.nodes.values():
        if node is not psc:
            assert (has_machine(node, "told"), has_machine(node, "lost")) == (True, False)
            assert has_machine(node, "new")
    # the dead one comes back, and decides until it hears of it; then it becomes like the others
    estate.off.clear()
    estate.lose = lambda _sender, _send: False
    estate.restart("PSC2")
    estate.run(60.0)
    assert psc.engine.role is Role.BSC
    assert psc.engine.status().psc_name == "BSC21"
    estate.run(2600.0)
    assert estate.are_equal()
    assert not has_machine(psc, "lost")


def test_another_backup_tells_all_that_it_has_also_in_parts() -> None:
    """Queues that a site keeps to itself too; and deletions are over with the old era."""
    estate = estate_with_two_backups(ReplicationSettings(message_changes_max=1))
    psc, heir = estate["PSC2"], estate["BSC21"]
    psc.add_machine("machine")
    estate.run(15.0)
    estate.lose = lambda sender, send: sender == "PSC2" and send.machine == "BSC21"
    near = psc.add_queue(r"machine\near", scope=QueueScope.SITE)
    for number in range(4):
        psc.add_machine(f"told{number}")
    psc.delete("Queue", psc.add_queue(r"machine\gone"))
    estate.run(15.0)
    estate.off.add("PSC2")
    replies = iter([False, True, True])  # the second and third part of the answer are lost
    estate.lose = lambda _sender, send: (
        isinstance(send.message, SyncReplyMessage) and next(replies, False)
    )
    for answered in (set(), {"bsc22"}):
        act(heir, lambda server: ask_around(server, _site(server), ["BSC22"]))
        estate.settle()
        with heir.engine.turn() as server:
            assert server.asked_around[SITES[2]].answered == answered
    with heir.engine.turn() as server:
        asked = server.asked_around[SITES[2]]
        assert (asked.waiting, asked.answered) == (set(), {"bsc22"})
        assert list(server.numbers.deletions(SITES[2], 0, MAX_SEQ_NUMBER))
    assert heir.partition(SITES[2]).last == estate["BSC22"].partition(SITES[2]).last
    assert has_machine(heir, "told3")
    assert heir.get("Queue", near) is not None
    name_psc(estate, heir)
    act(heir, take_over_site)
    with heir.engine.turn() as server:
        assert not list(server.numbers.deletions(SITES[2], 0, MAX_SEQ_NUMBER))
        assert not server.asked_around


def test_a_command_that_is_refused_in_its_middle_leaves_nothing_behind() -> None:
    estate = estate_of_six()
    psc = estate["PSC1"]

    def give_up(server: Server) -> None:
        row = machine_named(server, "PSC1")
        assert row is not None
        server.objects.drop(MACHINES, row)
        raise DirectoryError("no")

    with pytest.raises(DirectoryError):
        act(psc, give_up)
    assert has_machine(psc, "PSC1")


def test_the_dead_server_learns_it_from_its_successor_alone() -> None:
    estate = estate_of_six()
    psc, heir = estate["PSC2"], estate["BSC21"]
    estate.off.add("PSC2")
    name_psc(estate, heir)
    act(heir, take_over_site)
    estate.run(1300.0)
    estate.off.clear()
    estate.lose = lambda _sender, send: send.machine == "PSC2" and _sender != "BSC21"
    estate.restart("PSC2")
    estate.run(30.0)  # it says hello to what it takes for its backup
    assert psc.engine.role is Role.BSC
    assert psc.engine.counters["superseded"] == 1


def test_a_psc_takes_over_the_enterprise_and_all_follow() -> None:
    estate = estate_of_six()
    pec, heir = estate["PEC0"], estate["PSC1"]
    estate.lose = lambda sender, _send: sender == "PEC0"
    pec.add("ConnectedNetwork", name="lost")
    estate.off.add("PEC0")
    gather(estate, heir, ENTERPRISE, "PEC0")
    act(heir, take_over_enterprise)
    heir.add("ConnectedNetwork", name="net")
    estate.lose = lambda _sender, _send: False
    estate.run(60.0)
    assert estate["PSC2"].engine.status().partitions[0].authority == "PSC1"
    estate.off.clear()
    estate.restart("PEC0")
    estate.run(60.0)
    assert owners(estate) == {"PEC0": {"0"}, "PSC1": {"enterprise", "1"}, "PSC2": {"2"}}
    assert pec.engine.role is Role.PSC
    estate.run(2600.0)
    assert estate.are_equal()
    assert "lost" not in str(pec.directory.read("ConnectedNetwork", equals("name", "lost"), None))


def test_what_only_a_backup_of_the_dead_pec_has_heard_is_not_lost() -> None:
    estate = estate_of_six()
    pec, heir = estate["PEC0"], estate["PSC1"]
    estate.lose = lambda sender, send: sender == "PEC0" and send.machine != "BSC02"
    site = pec.add("Site", name="news", primary_site_controller="")
    estate.run(15.0)
    estate.off.add("PEC0")
    estate.lose = lambda _sender, _send: False
    with heir.engine.turn() as server:
        assert list(backups(server, "pec0")) == ["BSC01", "BSC02"]
        assert list(backups(server, "nobody")) == []
    with estate["PSC2"].engine.turn() as server:  # those of its own site too, not the dead one
        assert list(backups(server, "PEC0")) == ["BSC01", "BSC02", "BSC21"]
        assert list(backups(server, "bsc21")) == []
    with estate["BSC21"].engine.turn() as server:  # and not itself
        assert list(backups(server, "PEC0")) == ["BSC01", "BSC02"]
    gather(estate, heir, ENTERPRISE, "PEC0")
    act(heir, take_over_enterprise)
    assert heir.get("Site", site) is not None


def test_a_backup_of_the_pec_takes_over_both() -> None:
    estate = estate_of_six()
    estate.off.add("PEC0")
    act(estate["BSC01"], take_over_both)
    estate.run(60.0)
    assert owners(estate)["BSC01"] == {"enterprise", "0"}
    estate.off.clear()
    estate.restart("PEC0")
    estate.run(2600.0)
    assert owners(estate) == {"BSC01": {"enterprise", "0"}, "PSC1": {"1"}, "PSC2": {"2"}}
    assert estate["PEC0"].engine.role is Role.BSC
    assert estate["BSC02"].engine.status().psc_name == "BSC01"
    assert estate.are_equal()


def test_what_cannot_be_taken_over_is_refused_and_changes_nothing() -> None:
    estate = estate_of_six()
    bsc, psc = estate["BSC21"], estate["PSC1"]
    refusals = [
        (bsc, take_over_enterprise, "a PSC takes over the enterprise, and this is a BSC"),
        (estate["PEC0"], take_over_enterprise, "and this is a PEC"),
        (psc, take_over_site, "a BSC takes over its site, and this is a PSC"),
        (psc, take_over_both, "a BSC takes over its site, and this is a PSC"),
        (bsc, take_over_site, "the PEC has not named this server"),
    ]
    before = owners(estate), bsc.partition(SITES[2]).last
    for node, take, problem in refusals:
        with pytest.raises(FalconMQError, match=problem):
            act(node, take)
    with psc.engine.turn() as server:
        server.enterprise.purge_state = PurgeState.SYNC0
    with pytest.raises(FalconMQError, match="does not have all of it"):
        act(psc, take_over_enterprise)
    assert (owners(estate), bsc.partition(SITES[2]).last) == before


def test_a_backup_that_was_away_for_too_long_does_not_take_over() -> None:
    estate = estate_of_six()
    heir, other = estate["BSC21"], estate["PSC1"]
    with other.engine.turn() as server:  # it has forgotten deletions that the heir never heard of
        partition = server.state.partitions[SITES[2]]
        partition.last = partition.purged = 5000
    estate.off.add("PSC2")
    act(heir, lambda server: ask_around(server, _site(server), ["PSC1"]))
    estate.settle()
    name_psc(estate, heir)
    with pytest.raises(FalconMQError, match="psc1 has gone far beyond it"):
        act(heir, take_over_site)
    assert heir.partition(SITES[2]).purge_state is PurgeState.NORMAL
    act(heir, lambda server: take_over_site(server, is_forced=True))
    assert owners(estate)["BSC21"] == {"2"}


@pytest.mark.parametrize("half", [PurgeState.STARTSYNC0, PurgeState.SYNC0])
def test_what_a_dying_server_told_by_half_is_fetched_from_another_copy(half: PurgeState) -> None:
    """From the beginning: the copy may be older than the half that is here."""
    estate = estate_with_two_backups()
    psc, heir, other = estate["PSC2"], estate["BSC21"], estate["BSC22"]
    gone = psc.add_machine("gone")
    psc.add_machine("stays")
    psc.add_queue("stays\\near", scope=QueueScope.SITE)
    estate.run(30.0)
    estate.lose = lambda sender, send: "BSC21" in (sender, send.machine)
    psc.delete("QueueManager", gone)
    estate.run(30.0)
    estate.off.add("PSC2")
    last = other.partition(SITES[2]).last
    with heir.engine.turn() as server:
        partition = _site(server)
        partition.purge_state = half
        partition.last, partition.window, partition.purged = last - 1, MAX_SEQ_NUMBER, last - 1
        server.numbers.reset(SITES[2], MAX_SEQ_NUMBER)
    estate.lose = lambda _sender, _send: False
    name_psc(estate, heir)
    with pytest.raises(FalconMQError, match="does not have all of it"):
        act(heir, lambda server: take_over_site(server, is_forced=True))
    act(heir, lambda server: fetch_whole(server, _site(server), "BSC22"))
    estate.run(5.0)
    # a late word of the dead one does not turn it back
    heir.tell(hello("PSC2", SITES[2], last, 0), "PSC2")
    with heir.engine.turn() as server:
        assert server.source_of(_site(server)) == "BSC22"
    estate.run(60.0)
    assert heir.partition(SITES[2]).purge_state is PurgeState.NORMAL
    act(heir, take_over_site)
    estate.run(1300.0)
    for node in (heir, other):
        assert (has_machine(node, "stays"), has_machine(node, "gone")) == (True, False)
        assert node.directory.read("Queue", equals("path_name", "stays\\near"), None)[1]


def test_a_copy_of_an_older_era_is_not_fetched() -> None:
    estate = estate_of_six()
    heir = estate["BSC21"]
    with heir.engine.turn() as server:
        _site(server).purged = _site(server).last = 2 * ERA + 5
        fetch_whole(server, _site(server), "PSC1")
        assert _site(server).purged == 2 * ERA
    heir.carry(heir.engine.take_effects())
    estate.run(60.0)
    assert heir.partition(SITES[2]).purge_state is PurgeState.SYNC0


def test_one_that_was_presumed_dead_is_asked_again_when_it_speaks() -> None:
    estate = estate_of_six()
    psc, pec = estate["PSC2"], estate["PEC0"]
    last = psc.partition(SITES[0]).last
    estate.lose = lambda _sender, send: send.machine == "PSC2"
    pec.add_machine("news")
    estate.run(15.0)
    with psc.engine.turn() as server:
        partition = server.state.partitions[SITES[0]]
        partition.unanswered, partition.window = 2, MAX_SEQ_NUMBER
    psc.tell(hello("PSC1", SITES[0], last + 5, 0), "PSC1")
    with psc.engine.turn() as server:
        assert server.source_of(server.state.partitions[SITES[0]]) == "PSC1"
        assert server.state.partitions[SITES[0]].unanswered == 0  # it may take its time too
    estate.lose = lambda _sender, _send: False
    estate.run(2600.0)  # the PEC says hello
    assert has_machine(psc, "news")
    with psc.engine.turn() as server:
        assert server.source_of(server.state.partitions[SITES[0]]) == "PEC0"


def _site(server: Server) -> Partition:
    return server.state.partitions[SITES[2]]


def hello(name: str, partition: UUID, last: int, purged: int) -> ChangePropagationMessage:
    numbers = PartitionSeqNumbers(partition.bytes_le, last, purged)
    return ChangePropagationMessage(SITES[1].bytes_le, [], SeqNumberHeader(name, [numbers]))


def test_only_a_directory_server_is_believed_to_have_taken_over() -> None:
    estate = estate_of_six()
    psc = estate["PSC2"]
    estate.known.append("BSC23")
    estate.restart("BSC21")
    estate["PSC1"].add_machine("STRANGER", identifier=queue_manager("STRANGER"))
    estate.run(30.0)
    psc.tell(hello("STRANGER", ENTERPRISE_PARTITION, 9 * ERA + 1, 9 * ERA), "STRANGER")
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    # who is of another site only says what it has heard
    psc.tell(hello("PSC1", SITES[0], 9 * ERA + 1, 9 * ERA), "PSC1")
    assert psc.partition(SITES[0]).authority_name == "PEC0"
    bsc = estate["BSC21"]  # setup knows BSC23, the directory does not yet
    bsc.tell(hello("BSC23", SITES[0], 9 * ERA + 1, 9 * ERA), "BSC23")
    assert bsc.partition(SITES[0]).authority_name == "PEC0"
    bsc.tell(hello("BSC23", SITES[2], 9 * ERA + 1, 9 * ERA), "BSC23")
    assert bsc.engine.status().psc_name == "BSC23"
    psc.tell(hello("BSC01", SITES[0], 9 * ERA + 1, 9 * ERA), "BSC01")
    assert psc.partition(SITES[0]).authority_name == "BSC01"
    psc.tell(hello("PSC1", ENTERPRISE_PARTITION, 5, 4), "PSC1")  # of the same era
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    psc.tell(hello("PSC1", ENTERPRISE_PARTITION, 9 * ERA + 1, 9 * ERA), "PSC1")
    assert psc.partition(ENTERPRISE).authority_name == "PSC1"
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.STARTSYNC0


def test_an_era_is_later_than_all_that_was_heard_of() -> None:
    estate = estate_of_six()
    heir = estate["PSC1"]
    future = int(estate.clock.time()) + 1000
    with heir.engine.turn() as server:
        server.enterprise.told_last = (future << 32) + 7
    act(heir, take_over_enterprise)
    assert era_of(heir.partition(ENTERPRISE).last) == future + 1


def test_whoever_speaks_of_an_old_era_is_answered_once_and_not_in_circles() -> None:
    estate = estate_of_six()
    heir = estate["PSC1"]
    estate.off.add("PEC0")
    act(heir, take_over_enterprise)
    old = hello("PEC0", ENTERPRISE_PARTITION, 5, 0)
    assert [send.machine for send in heir.tell(old, "PEC0")] == ["PEC0"]
    assert heir.tell(old, "PEC0") == []
    # and who hears of a later era of a site that it cannot judge does not answer with an older one
    later = hello("PSC2", SITES[0], 9 * ERA + 1, 9 * ERA)
    assert heir.tell(later, "PSC2") == []


def test_a_pec_that_dies_before_all_have_heard_of_its_successor_is_not_waited_for() -> None:
    estate = estate_of_six()
    estate.lose = lambda sender, send: sender == "PEC0" and send.machine == "PSC2"
    pec, psc, successor = estate["PEC0"], estate["PSC2"], estate["PSC1"]
    name_pec(pec, "PSC1")
    pec.carry(pec.engine.take_effects())
    estate.run(60.0)
    assert owners(estate)["PSC1"] == {"enterprise", "1"}
    estate.off.add("PEC0")
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    # when nobody has answered for a while, whoever says that he has more is asked
    estate.run(5 * 1300.0)
    assert psc.partition(ENTERPRISE).authority_name == "PSC1"
    assert psc.partition(ENTERPRISE).last == successor.partition(ENTERPRISE).last
    # and not for ever: after the next move it is the next one
    name_pec(successor, "PSC2")
    successor.carry(successor.engine.take_effects())
    estate.run(60.0)
    assert owners(estate)["PSC2"] == {"enterprise", "2"}
    with psc.engine.turn() as server:
        assert server.source_of(server.enterprise) == "PSC2"


def test_a_full_synchronisation_goes_on_with_the_one_who_decides_by_now() -> None:
    """The former PEC came back, told of the new era, and was gone again."""
    estate = estate_of_six()
    psc, heir = estate["PSC2"], estate["PSC1"]
    estate.off.add("PEC0")
    estate.lose = lambda _sender, send: send.machine == "PSC2"
    act(heir, take_over_enterprise)
    with psc.engine.turn() as server:
        partition = server.enterprise
        partition.purge_state, partition.last = PurgeState.SYNC0, 0
        partition.window, partition.purged = MAX_SEQ_NUMBER, heir.partition(ENTERPRISE).purged
        server.numbers.reset(ENTERPRISE, MAX_SEQ_NUMBER)
    last = heir.partition(ENTERPRISE).last
    said = hello("PSC1", ENTERPRISE, last, heir.partition(ENTERPRISE).purged)
    psc.tell(said, "PSC1")
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.SYNC0  # who was asked may answer
    estate.lose = lambda _sender, _send: False
    with psc.engine.turn() as server:
        server.enterprise.unanswered = 2
    psc.tell(said, "PSC1")
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.STARTSYNC0
    psc.carry(psc.engine.run_due())
    estate.run(60.0)
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.NORMAL
    assert psc.partition(ENTERPRISE).authority_name == "PSC1"
    assert psc.partition(ENTERPRISE).last == heir.partition(ENTERPRISE).last


def test_who_only_tells_what_it_knows_is_not_taken_for_the_one_who_decides() -> None:
    estate = estate_of_six()
    heir, psc = estate["BSC21"], estate["PSC2"]
    act(heir, lambda server: ask_instead(server, server.enterprise, "PEC0"))
    last = heir.partition(ENTERPRISE).last
    heir.tell(hello("PEC0", ENTERPRISE, last + 7, 0), "PEC0")
    assert heir.partition(ENTERPRISE).told_last == last + 7
    assert heir.engine.status().psc_name == "PSC2"
    with psc.engine.turn() as server:
        site = server.state.partitions[SITES[0]]
        site.window = 0
        ask_around(server, site, ["PSC1"])
    psc.tell(hello("PSC1", SITES[0], psc.partition(SITES[0]).last + 7, 0), "PSC1")
    assert psc.partition(SITES[0]).authority_name == "PEC0"
    psc.tell(hello("PEC0", SITES[0], psc.partition(SITES[0]).last + 9, 0), "PEC0")
    assert psc.partition(SITES[0]).authority_name == "PEC0"


def test_a_psc_that_has_missed_the_new_pec_hears_of_it_though_another_one_is_named() -> None:
    """It speaks to the dead PEC alone, and that has a new name."""
    estate = estate_of_six()
    heir, psc = estate["BSC01"], estate["PSC2"]
    estate.off |= {"PEC0", "PSC1"}
    estate.lose = lambda _sender, send: send.machine == "PSC2"
    act(heir, take_over_both)
    estate.run(15.0)
    heir.write("Site", SITES[2], primary_site_controller="BSC21")
    estate.run(30.0)
    assert "BSC21" in heir.neighbours
    assert psc.partition(ENTERPRISE).authority_name == "PEC0"
    estate.lose = lambda _sender, _send: False
    estate.run(3000.0)
    assert owners(estate)["BSC21"] == {"2"}
    # and not for ever
    heir.sent.clear()
    estate.run(3000.0)
    assert "PSC2" not in {send.machine for send in heir.sent}


def test_who_has_more_is_not_asked_while_the_authority_may_still_answer() -> None:
    estate = estate_of_six()
    psc = estate["PSC2"]
    psc.sent.clear()
    last = psc.partition(ENTERPRISE).last
    for _ in range(3):
        psc.carry(psc.tell(hello("PSC1", ENTERPRISE, last + 3, 0), "PSC1"))
    assert {send.machine for send in psc.sent} == {"PEC0"}
    # nor when it has answered since
    with psc.engine.turn() as server:
        server.enterprise.unanswered = 9
    psc.tell(reply(last, last), "PEC0")
    assert psc.partition(ENTERPRISE).unanswered == 0


@pytest.mark.parametrize("era", [0, 1])
def test_whoever_the_directory_names_is_believed_when_it_speaks(era: int) -> None:
    """The era was heard of from its beginner, when the role had moved on already."""
    estate = estate_of_six()
    pec = estate["PEC0"]
    with pec.engine.turn() as server:
        site = server.state.partitions[SITES[2]]
        site.authority_name, site.purged, site.last = "BSC21", ERA, ERA + 5
        (neighbour,) = [each for each in server.state.pscs if each.partition_id == SITES[2]]
        neighbour.machine_name = "BSC21"
    pec.tell(hello("PSC2", SITES[2], era * ERA + 5, era * ERA), "PSC2")
    expected = "PSC2" if era else "BSC21"  # one that is back from the dead is not
    assert pec.partition(SITES[2]).authority_name == expected
    assert expected in pec.neighbours


def test_who_handed_over_to_the_dead_server_is_a_backup_though_that_was_lost() -> None:
    """PSC2 handed over to BSC21, which died before BSC22 had heard of it."""
    estate = estate_with_two_backups()
    psc, dead, heir = estate["PSC2"], estate["BSC21"], estate["BSC22"]
    estate["PEC0"].write("Site", SITES[2], primary_site_controller="BSC21")
    estate.lose = lambda _sender, send: send.machine == "BSC22"
    estate.run(60.0)
    assert owners(estate)["BSC21"] == {"2"}
    estate.off |= {"BSC21", "PSC2"}
    estate.lose = lambda _sender, _send: False
    name_psc(estate, heir)
    row = heir.get("QueueManager", queue_manager("PSC2"))
    assert row is not None
    assert row["server_type"] == server_type("PSC2")  # as far as the heir knows
    act(heir, take_over_site)
    assert heir.neighbours == {"PEC0": "PSC", "PSC1": "PSC", "PSC2": "BSC", "BSC21": "BSC"}
    estate.off.clear()
    for node in (psc, dead):
        estate.restart(node.name)
    estate.run(4000.0)
    assert owners(estate)["BSC22"] == {"2"}
    assert estate.are_equal()


@pytest.mark.parametrize("is_named_otherwise", [False, True])
def test_a_new_pec_tells_of_its_own_site_that_nobody_else_had_heard_of(
    *, is_named_otherwise: bool
) -> None:
    """The old PEC made the site, and died while it told that server everything."""
    estate = estate_of_six()
    pec, heir = estate["PEC0"], estate["PSC1"]
    estate.off.add("PEC0")
    with estate["PSC2"].engine.turn() as server:  # a copy without the site
        site = server.objects.get(SITE_TABLE, SITES[1])
        assert site is not None
        server.objects.drop(SITE_TABLE, site)
        server.numbers.take_away(SITE_TABLE.code, SITES[1])
    act(heir, lambda server: fetch_whole(server, server.enterprise, "PSC2"))
    estate.run(30.0)
    assert heir.partition(ENTERPRISE).purge_state is PurgeState.NORMAL
    row = heir.get("Site", SITES[1])
    assert row is not None  # it decides about it
    with heir.engine.turn() as server:
        assert server.numbers.of(SITE_TABLE.code, SITES[1]) is None
        if is_named_otherwise:
            changes: dict[str, object] = {"primary_site_controller": "PSC9"}
            server.objects.write(SITE_TABLE, SITES[1], changes)
    assert owners(estate)["PSC1"] == {"1"}
    act(heir, lambda server: take_over_enterprise(server, is_forced=True))
    estate.off.clear()
    estate.restart("PEC0")
    estate.run(4000.0)
    assert pec.engine.role is Role.PSC
    assert estate.are_equal()
    for node in estate.nodes.values():
        row = node.get("Site", SITES[1])
        assert row is not None
        assert (row["name"], row["primary_site_controller"]) == ("site1", "PSC1")


def test_who_decides_about_a_site_keeps_it_when_it_hears_that_it_is_deleted() -> None:
    estate = estate_of_six()
    pec, psc = estate["PEC0"], estate["PSC1"]
    act(pec, lambda server: remove_site(server, SITES[1]))
    estate.run(30.0)
    last = pec.partition(ENTERPRISE).last
    psc.tell(reply(0, last, *_deletion_of(SITES[1], last)), "PEC0")
    assert psc.get("Site", SITES[1]) is not None
    assert estate["PSC2"].get("Site", SITES[1]) is None
    assert owners(estate)["PSC1"] == {"1"}


def _deletion_of(site: UUID, number: int) -> list[DirectoryChange]:
    properties: Properties = [(1403, 1), (1404, 3)]
    known = DirectoryChange(
        DELETE, site.bytes_le, ENTERPRISE.bytes_le, 0, number, number, properties
    )
    return [known]
