"""Objects that two sites have at a time: each keeps its own word, and all show the same one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from uuid import UUID

import pytest

from falconmq.directory.replication.deciding import decide_request, decide_write
from falconmq.directory.replication.properties import Properties
from falconmq.directory.replication.roles import MACHINES, say_role
from falconmq.directory.replication.settings import Role
from falconmq.directory.replication.state import PurgeState
from falconmq.directory.replication.status import doubles, fingerprints
from falconmq.directory.replication.topology import site_controller_changed
from falconmq.directory.replication.writes import RequestedChange
from falconmq.errors import DirectoryError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.directory_change import CREATE, DELETE, SYNCHRONIZE, UPDATE, DirectoryChange
from falconmq.wire.replication_messages import COMPLETE_SYNC0_NOW, SyncReplyMessage
from tests.directory.replication.estates import (
    SITES,
    SUCCESS,
    Estate,
    Node,
    begin_enterprise,
    estate_of_six,
    queue_manager,
    server_type,
)
from tests.directory.replication.told import already_purged, asked, propagation, reply

LATE = (1 << 31) - 1  # the last moment that there is
MOVER = queue_manager("mover")
NAMES = ("PEC0", "PSC1", "PSC2", "PSC3")


def listener(name: str = "PSC3", *others: str) -> Node:
    """A PSC that knows four sites; nobody else is there."""
    estate = Estate("PEC0", name, *others)
    estate.known += NAMES
    begin_enterprise(estate["PEC0"].start(), 0, 1, 2, 3)
    node = estate[name].start()
    estate.settle()
    estate.off.add("PEC0")
    node.sent.clear()
    return node


def said(
    command: int,
    number: int,
    site: int,
    *more: tuple[int, object],
    guid: UUID = MOVER,
    name: str | None = None,
) -> DirectoryChange:
    properties: Properties = [(203, "mover"), (201, SITES[site].bytes_le), *more]  # type: ignore[list-item]
    if command == DELETE:
        properties = [(1403, 1), (1404, 2)]
    elif command == CREATE:
        properties.append((202, guid.bytes_le))
    identifier = guid.bytes_le if name is None else name
    return DirectoryChange(
        command, identifier, SITES[site].bytes_le, number - 1, number, number, properties
    )


def tell(node: Node, *changes: DirectoryChange) -> None:
    for change in changes:
        site = SITES.index(UUID(bytes_le=change.partition_id))
        node.tell(propagation(change), NAMES[site])


def shown(node: Node, guid: UUID = MOVER) -> Row | None:
    return node.get("QueueManager", guid)


def site_shown(node: Node) -> int | None:
    row = shown(node)
    if row is None:
        return None
    sites = row["site_identifiers"]
    assert isinstance(sites, list)
    return SITES.index(sites[0])


def lines(node: Node) -> dict[str, str]:
    return {key: line for key, line in fingerprints(node.directory).items() if str(MOVER) in key}


def test_the_deletion_that_comes_late_does_not_take_away_what_was_made_elsewhere() -> None:
    """Though the clock of the new site was behind: by its time the new one is the older one."""
    node = listener()
    tell(node, said(CREATE, 1, 0, (217, 200)))
    tell(node, said(CREATE, 1, 1, (217, 100)))  # it moved, and this is heard first
    assert site_shown(node) == 0
    tell(node, said(DELETE, 2, 0))
    assert site_shown(node) == 1
    row = shown(node)
    assert row is not None
    assert row["create_time"] == 100
    assert [node.partition(SITES[site]).last for site in (0, 1)] == [2, 1]


ALL = (
    said(CREATE, 1, 0, (217, 200), (214, 1)),
    said(UPDATE, 2, 0, (214, 2)),
    said(CREATE, 1, 1, (217, 200), (214, 3)),
    said(UPDATE, 2, 1, (214, 4)),
    said(CREATE, 1, 2, (217, 150), (214, 5)),
)


def interleaved(changes: Iterable[DirectoryChange]) -> list[tuple[DirectoryChange, ...]]:
    """All orders in which each site's own changes stay in their order."""
    known = list(changes)
    found = []
    for order in permutations(range(len(known))):
        numbers: dict[bytes, int] = {}
        for place in order:
            change = known[place]
            if change.seq_number != numbers.get(change.partition_id, 0) + 1:
                break
            numbers[change.partition_id] = change.seq_number
        else:
            found.append(tuple(known[place] for place in order))
    return found


def test_the_order_in_which_sites_are_heard_does_not_matter() -> None:
    orders = interleaved(ALL)
    assert len(orders) == 30
    results = []
    for order in orders:
        node = listener()
        tell(node, *order)
        results.append((lines(node), shown(node)))
    assert all(result == results[0] for result in results)
    found, row = results[0]
    assert row is not None
    assert (row["site_identifiers"], row["quota_kilobytes"]) == ([SITES[1]], 4)
    assert {key.split("/")[0] for key in found} == {str(site) for site in SITES[:3]}


def test_whatever_is_deleted_the_next_one_is_shown() -> None:
    node = listener()
    tell(node, *ALL)
    seen = [site_shown(node)]
    for site, number in ((1, 3), (0, 3), (2, 2)):
        tell(node, said(DELETE, number, site))
        seen.append(site_shown(node))
    assert seen == [1, 0, 2, None]
    assert all("deleted" in key for key in lines(node))


def test_a_claim_that_is_not_shown_is_changed_and_deleted_alone() -> None:
    node = listener()
    tell(node, said(CREATE, 1, 1, (217, 200), (214, 7)), said(CREATE, 1, 0, (217, 100)))
    tell(node, said(UPDATE, 2, 0, (214, 9)))
    row = shown(node)
    assert row is not None
    assert (row["site_identifiers"], row["quota_kilobytes"]) == ([SITES[1]], 7)
    before = lines(node)
    tell(node, said(DELETE, 3, 0))
    assert shown(node) == row
    after = lines(node)
    assert f"{SITES[0]}/QueueManager/{MOVER}" in before
    assert f"{SITES[0]}/QueueManager/{MOVER}" not in after
    assert after[f"{SITES[0]}/deleted/{MOVER}"] == "3 QueueManager"


def test_a_creation_of_what_is_there_changes_what_it_says_and_no_more() -> None:
    node = listener()
    tell(node, said(CREATE, 1, 0, (217, 100), (214, 7)))
    tell(node, said(CREATE, 2, 0, (217, 200)))
    row = shown(node)
    assert row is not None
    assert (row["create_time"], row["quota_kilobytes"]) == (200, 7)


def test_one_that_becomes_younger_is_shown() -> None:
    node = listener()
    tell(node, said(CREATE, 1, 1, (217, 200)), said(CREATE, 1, 0, (217, 100)))
    assert site_shown(node) == 1
    tell(node, said(SYNCHRONIZE, 2, 0, (217, 300)))  # deleted and made again, and heard at once
    assert site_shown(node) == 0
    tell(node, said(SYNCHRONIZE, 2, 1, (217, 400)))
    assert site_shown(node) == 1


def test_what_comes_back_to_a_site_is_deleted_there_no_more() -> None:
    """Though another site has it too, and is the one that is shown."""
    node = listener()
    tell(node, said(CREATE, 1, 0, (217, 100)), said(DELETE, 2, 0))
    tell(node, said(CREATE, 1, 1, (217, 300)), said(CREATE, 3, 0, (217, 200)))
    assert site_shown(node) == 1
    assert {key: line.split()[0] for key, line in lines(node).items()} == {
        f"{SITES[0]}/QueueManager/{MOVER}": "3",
        f"{SITES[1]}/QueueManager/{MOVER}": "1",
    }


def test_claims_survive_a_restart() -> None:
    node = listener()
    tell(node, *ALL)
    before = lines(node)
    node = node.estate.restart("PSC3")
    assert lines(node) == before
    tell(node, said(DELETE, 3, 1))
    assert site_shown(node) == 0


def test_a_change_of_what_a_site_does_not_have_is_not_made_of_another_sites_object() -> None:
    node = listener()
    tell(node, said(CREATE, 1, 1, (217, 200), (214, 7)))
    tell(node, said(UPDATE, 1, 0, (214, 9)))
    assert node.partition(SITES[0]).last == 0  # it cannot be applied; the object is asked for
    assert set(lines(node)) == {f"{SITES[1]}/QueueManager/{MOVER}"}


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_copy_tells_its_backups_what_each_site_says(*, is_shown: bool) -> None:
    node = listener()
    made = (200, 100) if is_shown else (100, 200)
    tell(node, said(CREATE, 1, 0, (217, made[0]), (214, 7)), said(CREATE, 1, 1, (217, made[1])))
    assert site_shown(node) == (0 if is_shown else 1)
    node.sent.clear()
    node.tell(asked(0, of=SITES[0], name="PSC1"), "PSC1")
    (answer,) = node.messages(SyncReplyMessage)
    (change,) = answer.directory_changes
    told = dict(change.properties)
    assert (change.guid_identifier, change.seq_number) == (MOVER.bytes_le, 1)
    assert (told[201], told[214], told[217]) == (SITES[0].bytes_le, 7, made[0])


@pytest.mark.parametrize("is_shown", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_full_synchronisation_is_about_the_claims_of_its_site(
    *, is_shown: bool, is_there: bool
) -> None:
    node = listener()
    made = (200, 100) if is_shown else (100, 200)
    tell(node, said(CREATE, 1, 0, (217, made[0])), said(CREATE, 1, 1, (217, made[1])))
    node.tell(already_purged(20, SITES[0]), "PEC0")
    node.estate.settle()
    assert node.partition(SITES[0]).purge_state is PurgeState.SYNC0
    changes = [said(SYNCHRONIZE, 21, 0, (217, made[0]), (214, 8))] if is_there else []
    for change in changes:
        change.previous_seq_number = 0
    answer = reply(0, 21, *changes, purged=20, complete=COMPLETE_SYNC0_NOW, of=SITES[0])
    node.tell(answer, "PEC0")
    node.estate.settle()
    assert node.partition(SITES[0]).purge_state is PurgeState.NORMAL
    assert site_shown(node) == (0 if is_shown and is_there else 1)
    expected = {f"{SITES[site]}/QueueManager/{MOVER}" for site in ((0, 1) if is_there else (1,))}
    assert set(lines(node)) == expected


def test_with_a_site_go_its_claims() -> None:
    node = listener()
    tell(node, *ALL)
    gone = DirectoryChange(
        DELETE, SITES[1].bytes_le, UUID(int=0).bytes_le, 0, 99, 99, [(1403, 1), (1404, 3)]
    )
    node.tell(propagation(gone), "PEC0")
    assert site_shown(node) == 0
    assert {key.split("/")[0] for key in lines(node)} == {str(SITES[0]), str(SITES[2])}


def test_an_authority_shows_the_other_claim_when_its_own_is_deleted() -> None:
    node = listener()
    node.add_machine("mover", identifier=MOVER)
    tell(node, said(CREATE, 1, 0, (217, 1)))
    assert site_shown(node) == 3
    node.delete("QueueManager", MOVER)
    assert site_shown(node) == 0


def test_what_is_shown_from_another_site_is_not_changed_here() -> None:
    node = listener()
    node.add_machine("mover", identifier=MOVER)
    tell(node, said(CREATE, 1, 0, (217, LATE)))  # a take-over lost its deletion, say
    assert site_shown(node) == 0
    last = node.partition(SITES[3]).last
    change = said(UPDATE, 1, 3, (214, 5))
    with node.engine.turn() as server:
        site = server.state.partitions[SITES[3]]
        assert decide_request(server, site, change) == MqStatus.MQDS_UNKNOWN_SOURCE
        with pytest.raises(DirectoryError, match="of another partition"):
            decide_write(server, site, MACHINES, MOVER, {"quota_kilobytes": 5})
    assert node.partition(SITES[3]).last == last


@pytest.mark.parametrize("by_name", [True, False])
def test_a_site_that_is_asked_deletes_its_own_word_and_no_other(*, by_name: bool) -> None:
    node = listener()
    node.add_machine("mover", identifier=MOVER)
    tell(node, said(CREATE, 1, 0, (217, LATE)))
    last = node.partition(SITES[3]).last
    name = "mover" if by_name else MOVER.bytes_le
    wanted = RequestedChange(DELETE, name, SITES[3], [(1403, 1), (1404, 2)])
    assert node.engine.request(wanted).status == MqStatus.OK
    assert site_shown(node) == 0
    assert node.partition(SITES[3]).last == last + 1
    assert lines(node)[f"{SITES[3]}/deleted/{MOVER}"] == f"{last + 1} QueueManager"
    # and what it does not have it cannot delete
    assert node.engine.request(wanted).status == MqStatus.MQDS_UNKNOWN_SOURCE
    assert node.partition(SITES[3]).last == last + 1


def test_what_is_in_two_sites_is_listed() -> None:
    node = listener()
    assert doubles(node.directory) == []
    tell(node, *ALL, said(CREATE, 3, 1, (217, 1), guid=queue_manager("other")))
    (found,) = doubles(node.directory)
    assert (found.row["identifier"], found.shown) == (MOVER, SITES[1])
    assert set(found.others) == {SITES[0], SITES[2]}
    tell(node, said(CREATE, 3, 0, (217, 2), guid=queue_manager("other")))
    assert len(doubles(node.directory)) == 2
    (found,) = doubles(node.directory, 1)
    assert len(found.others) in (1, 2)


def test_a_deletion_in_another_site_does_not_cost_a_backup_its_news() -> None:
    """A BSC of this name was of that site before; here it is one, and stays it."""
    node = listener()
    old = queue_manager("old")
    tell(node, said(CREATE, 1, 0, (217, 100), guid=old))
    with node.engine.turn() as server:  # the name was free where this was decided
        kind = DirectoryServerType.BACKUP_SITE_CONTROLLER
        row = server.objects.get(MACHINES, old)
        assert row is not None
        server.objects.drop(MACHINES, row)
    node.add_machine("mover", identifier=MOVER, server_type=kind)
    with node.engine.turn() as server:
        server.objects.keep(MACHINES, row)
    assert node.neighbours["mover"] == "BSC"
    tell(node, said(DELETE, 2, 0, guid=old))
    assert shown(node, old) is None
    assert node.neighbours["mover"] == "BSC"
    node.delete("QueueManager", MOVER)
    assert "mover" not in node.neighbours


def test_two_of_one_name_are_told_apart_by_their_sites() -> None:
    node = listener()
    old = queue_manager("old")
    tell(node, said(CREATE, 1, 0, (214, 1), guid=old), said(CREATE, 1, 1, (214, 2)))
    tell(node, said(UPDATE, 2, 0, (214, 3), name="mover"))
    tell(node, said(UPDATE, 2, 1, (214, 4), name="mover"))
    quotas = [row["quota_kilobytes"] for row in (shown(node, old), shown(node)) if row is not None]
    assert quotas == [3, 4]
    tell(node, said(DELETE, 3, 1, name="mover"))
    assert shown(node) is None
    assert shown(node, old) is not None


def test_a_place_in_the_tree_goes_to_the_other_one_of_that_name() -> None:
    node = listener()
    old = queue_manager("old")
    tell(node, said(CREATE, 1, 0, guid=old), said(CREATE, 1, 1))
    tell(node, said(UPDATE, 2, 0, (214, 3), guid=old))  # the last who spoke stands there
    row = shown(node)
    assert row is not None
    tell(node, said(DELETE, 3, 0, guid=old))
    by_place = equals("full_path", row["full_path"])
    result, found = node.directory.read("QueueManager", by_place, None)
    assert result is SUCCESS
    assert found["identifier"] == MOVER
    tell(node, said(DELETE, 2, 1))
    assert node.directory.read("QueueManager", by_place, None)[0] is not SUCCESS


def test_deletions_are_compared_also_where_nothing_else_is_left() -> None:
    node = listener()
    tell(node, said(CREATE, 1, 0), said(DELETE, 2, 0))
    assert lines(node) == {f"{SITES[0]}/deleted/{MOVER}": "2 QueueManager"}


def test_a_queue_manager_moves_with_its_queues_whatever_clocks_say() -> None:
    estate = estate_of_six()
    pec, psc1, psc2 = estate["PEC0"], estate["PSC1"], estate["PSC2"]
    orders = r"mover\orders"
    estate.clock.advance(7200.0)
    estate.run(1300.0)
    pec.add_machine("mover", identifier=MOVER)
    queue = pec.add_queue(orders, label="old")
    estate.run(15.0)
    estate.lose = lambda sender, send: sender == "PEC0" and send.machine == "PSC2"
    pec.delete("Queue", queue)
    pec.delete("QueueManager", MOVER)
    estate.run(15.0)
    estate.clock.jump(-7000.0)
    psc1.add_machine("mover", identifier=MOVER)
    psc1.add_queue(orders, label="new")
    estate.run(15.0)
    assert psc2.get("Queue", queue) is not None
    assert site_shown(psc2) == 0  # the deletion is not here, and the old one looks younger
    estate.lose = lambda _sender, _send: False
    estate.run(2600.0)
    assert estate.are_equal()
    assert psc2.get("Queue", queue) is None
    found = psc2.directory.read("Queue", equals("path_name", orders), None)[1]
    assert found["label"] == "new"
    assert site_shown(psc2) == 1


def test_the_own_queue_manager_in_another_site_is_no_reason_to_stop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    estate = estate_of_six()
    psc = estate["PSC1"]
    guid = queue_manager("PSC1")
    tell_psc1 = DirectoryChange(
        SYNCHRONIZE,
        guid.bytes_le,
        SITES[2].bytes_le,
        0,
        99,
        99,
        [(203, "PSC1"), (201, SITES[2].bytes_le), (210, 0), (217, LATE)],
    )
    psc.tell(propagation(tell_psc1), "PSC2")
    row = psc.get("QueueManager", guid)
    assert row is not None
    assert row["site_identifiers"] == [SITES[2]]
    with psc.engine.turn() as server:
        say_role(server)
    assert "the directory has this server in another site" in caplog.text


def test_a_backup_waits_for_the_word_of_its_own_site() -> None:
    """What another site says of it has numbers of its own."""
    estate = estate_of_six()
    bsc, guid = estate["BSC21"], queue_manager("BSC21")
    elsewhere = DirectoryChange(
        SYNCHRONIZE,
        guid.bytes_le,
        SITES[1].bytes_le,
        0,
        99,
        99,
        [(203, "BSC21"), (201, SITES[1].bytes_le), (210, 4), (217, LATE)],
    )
    with bsc.engine.turn() as server:  # it is named, and its predecessor has not handed over
        site_controller_changed(server, SITES[2], "BSC21")
        server.state.standing.resigned_at = 50
    bsc.tell(propagation(elsewhere), "PSC2")
    row = bsc.get("QueueManager", guid)
    assert row is not None
    assert (row["site_identifiers"], row["server_type"]) == ([SITES[1]], server_type("PSC2"))
    assert bsc.engine.status().awaits_role
    assert bsc.engine.role is Role.BSC
