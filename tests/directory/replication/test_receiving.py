"""Changes that arrive in order and out of it, and hellos (scenarios 23 to 33)."""

from __future__ import annotations

from uuid import UUID

import pytest

from falconmq.directory.replication.properties import Properties
from falconmq.wire.directory_change import SYNCHRONIZE, UPDATE, DirectoryChange
from falconmq.wire.replication_messages import (
    ChangePropagationMessage,
    PSCAckMessage,
    SyncRequestMessage,
)
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    Node,
    begin_enterprise,
    estate_of_six,
    queue_manager,
    register,
    site_of,
)
from tests.directory.replication.told import (
    authority,
    backup,
    hello,
    made,
    network,
    propagation,
    put_last,
    replica,
    reply,
)


def has(node: Node, number: int) -> bool:
    return node.get("ConnectedNetwork", network(number)) is not None


@pytest.mark.requirement(
    "RP-3.1.7.1.2-03",
    "RP-3.1.7.1.2-06",
    "RP-3.1.7.1.2-11",
    "RP-3.1.7.1.2-12",
    "RP-3.1.7.1.2-13",
    "RP-3.1.7.1.2-14",
    "RP-3.1.7.1.2-15",
    "RP-3.1.7.1.2-16",
    "RP-3.1.7.1.2-17",
    "RP-3.1.7.1.2-19",
    "RP-3.3.2.1-03",
    "RP-3.3.6.1-03",
    "RP-3.3.6.1-04",
    "RP-3.3.7.2-02",
    "RP-3.3.7.2-09",
    "RP-3.3.7.2-11",
)
def test_changes_of_one_period_travel_together() -> None:
    pec = authority()
    pec.estate.run(11.0)
    pec.sent.clear()
    last = pec.partition(ENTERPRISE).last
    one = pec.add("ConnectedNetwork", name="one")
    pec.add("ConnectedNetwork", name="two")
    pec.write("ConnectedNetwork", one, network_protocol=3)
    pec.estate.run(10.0)
    (message,) = pec.messages(ChangePropagationMessage, "PSC1")
    changes = message.directory_changes
    numbers = [last + 1, last + 2, last + 3]
    assert [change.seq_number for change in changes] == numbers
    assert [change.previous_seq_number for change in changes] == [last, last + 1, last + 2]
    assert [change.purged_seq_number for change in changes] == numbers
    assert [change.path_name for change in changes] == ["one", "two", None]
    assert changes[2].guid_identifier == one.bytes_le
    assert changes[2].properties == [(502, "one"), (501, 3), (1501, b"")]  # as a whole
    assert {change.partition_id for change in changes} == {ENTERPRISE.bytes_le}
    assert not message.flush
    assert message.seq_number_header.partition_seq_numbers == []
    assert pec.partition(ENTERPRISE).last == last + 3
    pec.sent.clear()
    pec.add("ConnectedNetwork", name="three")
    pec.estate.run(10.0)  # the timer runs again
    (message,) = pec.messages(ChangePropagationMessage, "PSC1")
    assert len(message.directory_changes) == 1


def test_more_changes_than_a_message_takes_are_several_messages() -> None:
    pec = authority()
    pec.estate.run(11.0)
    pec.sent.clear()
    limit = pec.estate.settings.message_changes_max
    for number in range(limit + 1):
        pec.add("ConnectedNetwork", name=f"n{number}")
    pec.estate.run(10.0)
    first, second = pec.messages(ChangePropagationMessage, "PSC1")[:2]
    assert (len(first.directory_changes), len(second.directory_changes)) == (limit, 1)


@pytest.mark.requirement("RP-3.1.7.1.2-04", "RP-3.1.7.1.2-05", "RP-3.1.7.1.2-18")
def test_a_psc_tells_of_its_own_site_only_what_it_decided() -> None:
    estate = estate_of_six()
    psc2 = estate["PSC2"]
    psc2.sent.clear()
    psc2.add_machine("alpha")
    estate.run(11.0)
    assert {send.machine for send in psc2.sent} == {"PEC0", "PSC1", "BSC21"}
    psc2.sent.clear()
    estate["PEC0"].add_machine("beta")
    estate.run(13.0)
    assert {send.machine for send in psc2.sent} == {"BSC21"}


def test_a_neighbour_that_was_away_is_in_step_again() -> None:
    estate = estate_of_six()
    estate.off.add("PSC1")
    estate["PEC0"].add("ConnectedNetwork", name="missed")
    estate.run(60.0)
    estate.off.discard("PSC1")
    assert not estate.are_equal()
    estate["PEC0"].add("ConnectedNetwork", name="seen")
    estate.run(13.0)
    assert estate.are_equal()
    estate.off.add("PSC1")
    estate["PEC0"].add("ConnectedNetwork", name="missed too")
    estate.run(60.0)
    estate.off.discard("PSC1")
    estate.run(1300.0)  # nothing happens but a hello
    assert estate.are_equal()


@pytest.mark.requirement(
    "RP-3.1.7.2.2-06",
    "RP-3.1.7.2.2-07",
    "RP-3.1.7.2.2-08",
    "RP-3.1.7.2.4-05",
    "RP-3.1.7.2.4-06",
    "RP-3.3.7.5-04",
)
def test_a_gap_is_asked_for_and_what_came_early_waits() -> None:
    psc = replica(last=7)
    psc.tell(propagation(made(10)), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window) == (7, 10)
    assert [change.seq_number for change in partition.pending] == [10]
    (request,) = psc.messages(SyncRequestMessage)
    assert (request.from_seq_number, request.to_seq_number) == (7, 10)
    psc.tell(propagation(made(11)), "PEC0")
    assert len(psc.messages(SyncRequestMessage)) == 1  # one is enough
    psc.tell(reply(7, 10, made(8, 7, 0), made(9, 8, 0)), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.pending) == (11, [])
    assert all(has(psc, number) for number in (8, 9, 10, 11))


@pytest.mark.requirement("RP-3.1.7.2.2-10", "RP-3.1.7.2.2-11")
def test_a_hundred_changes_wait_and_no_more() -> None:
    psc = replica(last=7)
    for number in range(120, 9, -1):
        psc.tell(propagation(made(number)), "PEC0")
        psc.tell(propagation(made(number)), "PEC0")
    pending = psc.partition(ENTERPRISE).pending
    assert [change.seq_number for change in pending] == list(range(21, 121))


@pytest.mark.requirement("RP-3.1.7.2.2-02", "RP-3.1.7.2.2-03", "RP-3.1.7.2.2-04")
def test_old_and_stale_changes_are_ignored() -> None:
    psc = replica(last=7)
    put_last(psc, ENTERPRISE, 7, purged=5)
    psc.tell(propagation(made(7)), "PEC0")
    psc.tell(propagation(made(8, purged=4)), "PEC0")
    assert psc.partition(ENTERPRISE).last == 7
    assert not has(psc, 7)
    assert not has(psc, 8)
    psc.tell(propagation(made(9, previous=6)), "PEC0")  # numbers between may be missing for good
    assert psc.partition(ENTERPRISE).last == 9


@pytest.mark.requirement("RP-3.1.5.2-01", "RP-3.1.5.2-02", "RP-3.1.5.2-03", "RP-3.2.7.1-02")
def test_a_change_of_an_unknown_partition_does_not_stop_the_others() -> None:
    psc = replica(last=7)
    strange = made(8)
    strange.partition_id = SITES[3].bytes_le
    message = propagation(strange, made(8), made(9))
    message.seq_number_header = hello(9).seq_number_header
    psc.tell(message, "PEC0")
    assert psc.partition(ENTERPRISE).last == 9
    assert psc.messages(SyncRequestMessage) == []  # the changes came before the hello


@pytest.mark.requirement("RP-3.1.7.2.2-05", "RP-3.1.7.2.3-09")
def test_what_cannot_be_applied_is_not_counted() -> None:
    psc = replica(last=7)
    unknown = DirectoryChange(
        UPDATE, network(99).bytes_le, ENTERPRISE.bytes_le, 7, 8, 8, [(501, 3)]
    )
    psc.tell(propagation(unknown), "PEC0")
    assert psc.partition(ENTERPRISE).last == 7
    assert psc.engine.counters["dropped.cannot_apply"] == 1
    psc.tell(propagation(made(9)), "PEC0")  # and it is asked for when the next one comes
    (request,) = psc.messages(SyncRequestMessage)
    assert (request.from_seq_number, request.to_seq_number) == (7, 9)


@pytest.mark.requirement("RP-3.1.1.4-03")
def test_a_change_of_no_type_is_not_applied() -> None:
    psc = replica(last=7)
    cases: list[Properties] = [[], [(1401, b"")]]
    for properties in cases:
        change = DirectoryChange(UPDATE, b"1" * 16, ENTERPRISE.bytes_le, 7, 8, 8, properties)
        psc.tell(propagation(change), "PEC0")
        assert psc.partition(ENTERPRISE).last == 7


@pytest.mark.requirement("RP-3.1.7.2.4-02", "RP-3.1.7.2.4-03", "RP-3.1.7.2.4-04")
def test_pending_changes_behind_another_gap_are_asked_for() -> None:
    psc = replica(last=7)
    for change in (made(10), made(11, purged=0), made(15)):
        psc.tell(propagation(change), "PEC0")
    put_last(psc, ENTERPRISE, 7, purged=1)
    psc.tell(reply(7, 10, made(8, 7, 1), made(9, 8, 1), purged=1), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window) == (10, 15)
    assert [change.seq_number for change in partition.pending] == [15]  # 11 was stale
    request = psc.messages(SyncRequestMessage)[-1]
    assert (request.from_seq_number, request.to_seq_number) == (10, 15)


@pytest.mark.requirement("RP-3.1.7.2.3-10", "RP-3.1.7.2.3-11", "RP-3.1.5.2-05", "RP-2.2.6.9-06")
def test_a_psc_passes_on_what_it_applied_as_it_was() -> None:
    psc = replica(last=7)
    register(psc, "BSC11")
    psc.estate.run(2.1)
    psc.sent.clear()
    change = made(8)
    psc.tell(propagation(change, flush=True), "PEC0")
    site = DirectoryChange(UPDATE, SITES[0].bytes_le, ENTERPRISE.bytes_le, 8, 9, 9, [(304, "PEC0")])
    psc.tell(propagation(site, flush=True), "PEC0")
    assert psc.messages(ChangePropagationMessage) == []  # Flush 1: not at once
    psc.estate.run(2.1)
    (message,) = psc.messages(ChangePropagationMessage, "BSC11")
    assert [each.encode() for each in message.directory_changes] == [
        change.encode(),
        site.encode(),
    ]


@pytest.mark.requirement("RP-3.1.5.2-04", "RP-3.1.5.2-06", "RP-2.2.6.9-05")
def test_a_new_controller_of_a_site_is_passed_on_at_once() -> None:
    for tell in (propagation, lambda change: reply(7, 8, change)):
        psc = replica(last=7)
        register(psc, "BSC11")
        psc.estate.run(2.1)
        psc.sent.clear()
        site = DirectoryChange(
            SYNCHRONIZE, SITES[0].bytes_le, ENTERPRISE.bytes_le, 7, 8, 8, [(304, "PEC0")]
        )
        psc.tell(tell(site), "PEC0")
        assert len(psc.messages(ChangePropagationMessage, "BSC11")) == 1


@pytest.mark.requirement("RP-3.3.7.2-03", "RP-3.3.7.2-04", "RP-3.3.7.2-05", "RP-3.3.7.2-10")
def test_in_an_idle_hour_there_are_three_hellos_and_nothing_else() -> None:
    estate = Estate("PEC0", "PSC1", "BSC01")
    pec, psc = estate["PEC0"].start(), estate["PSC1"]
    begin_enterprise(pec, 0, 1)
    for name in ("PEC0", "BSC01"):
        register(pec, name)
    for name in ("PSC1", "BSC01"):
        estate[name].start()
    estate.run(1300.0)  # whatever the beginning left
    for node in estate.nodes.values():
        node.sent.clear()
    estate.run(3600.0)
    for node in (pec, psc):
        for neighbour in node.neighbours:
            hellos = node.messages(ChangePropagationMessage, neighbour)
            assert len(hellos) == 3
            assert all(message.directory_changes == [] for message in hellos)
        assert len(node.sent) == 3 * len(node.neighbours)
    (element,) = psc.messages(ChangePropagationMessage)[0].seq_number_header.partition_seq_numbers
    assert (element.partition_id, element.last_seq_number) == (SITES[1].bytes_le, 0)
    header = pec.messages(ChangePropagationMessage, "PSC1")[0].seq_number_header
    assert header.machine_name == "PEC0"
    assert [each.partition_id for each in header.partition_seq_numbers] == [
        ENTERPRISE.bytes_le,
        SITES[0].bytes_le,
    ]


@pytest.mark.requirement("RP-3.3.7.2-06", "RP-3.3.7.2-07", "RP-3.3.7.2-08")
def test_a_bsc_hears_of_all_partitions() -> None:
    psc = replica(last=7)
    put_last(psc, ENTERPRISE, 7, purged=1, allowed_purge=5)
    put_last(psc, SITES[1], 9, purged=3, allowed_purge=0)
    register(psc, "BSC11")
    psc.estate.run(2.1)
    (message,) = psc.messages(ChangePropagationMessage, "BSC11")
    told = {
        each.partition_id: (each.last_seq_number, each.purged_seq_number)
        for each in message.seq_number_header.partition_seq_numbers
    }
    assert told == {
        ENTERPRISE.bytes_le: (7, 5),
        SITES[0].bytes_le: (0, 0),
        SITES[1].bytes_le: (10, 3),
    }


@pytest.mark.requirement(
    "RP-3.2.7.1-06",
    "RP-3.2.7.1-07",
    "RP-3.2.7.1-08",
    "RP-3.2.7.1-11",
    "RP-3.2.7.1-12",
    "RP-3.3.7.5-10",
    "RP-3.3.7.5-12",
)
def test_a_hello_shows_what_is_missing_even_if_it_is_nothing() -> None:
    psc = replica(last=18)
    psc.tell(hello(18), "PEC0")
    assert psc.messages(SyncRequestMessage) == []
    psc.tell(hello(20, 4), "PEC0")
    (request,) = psc.messages(SyncRequestMessage)
    assert (request.from_seq_number, request.to_seq_number) == (18, 21)
    psc.tell(hello(20), "PEC0")
    assert len(psc.messages(SyncRequestMessage)) == 1  # it is out already
    psc.tell(reply(18, 21, made(18, 18, 0)), "PEC0")  # the lookup includes where it begins
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window, partition.allowed_purge) == (20, MIN_SEQ_NUMBER, 4)
    psc.tell(propagation(made(21)), "PEC0")
    assert has(psc, 21)


@pytest.mark.requirement("RP-3.2.7.1-03", "RP-3.2.7.1-04", "RP-3.2.7.1-05")
def test_hellos_that_say_nothing_new_change_nothing() -> None:
    psc = replica(last=18)
    put_last(psc, ENTERPRISE, 18, purged=9, allowed_purge=9)
    psc.tell(propagation(), "PEC0")
    psc.tell(hello(25, of=SITES[3]), "PEC0")
    psc.tell(hello(25, 8), "PEC0")  # it remembers more than we: older than what we know
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window, partition.allowed_purge) == (18, 0, 9)
    assert psc.sent == []


@pytest.mark.requirement("RP-3.3.7.5-11")
def test_an_answer_with_news_leaves_the_window_until_nothing_is_left_to_say() -> None:
    psc = replica(last=18)
    psc.tell(hello(20), "PEC0")
    psc.tell(reply(18, 21, made(19, 18, 0)), "PEC0")  # 20 was a change that is not for us
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window) == (19, 21)
    requests = psc.messages(SyncRequestMessage)
    assert [request.from_seq_number for request in requests] == [18, 19]
    psc.tell(reply(19, 21, made(19, 19, 0)), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window) == (20, MIN_SEQ_NUMBER)


@pytest.mark.requirement("RP-3.1.7.2.2-09", "RP-3.3.7.5-09")
def test_what_nobody_answers_is_asked_for_again() -> None:
    psc = replica(last=18)
    psc.estate.restart("PSC1")
    psc.sent.clear()
    psc.tell(hello(20), "PEC0")
    psc.tell(propagation(made(25)), "PEC0")
    assert psc.messages(SyncRequestMessage) == []  # the first request is still out
    assert psc.partition(ENTERPRISE).window == MAX_SEQ_NUMBER
    psc.estate.run(1201.0)
    requests = [
        request
        for request in psc.messages(SyncRequestMessage)
        if request.partition_id == ENTERPRISE.bytes_le
    ]
    assert [request.from_seq_number for request in requests] == [18]
    changes = [made(number, number - 1, 0) for number in range(19, 25)]
    psc.tell(reply(18, 24, *changes), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window) == (25, MIN_SEQ_NUMBER)
    psc.sent.clear()
    psc.estate.run(1300.0)
    asked_for = {request.partition_id for request in psc.messages(SyncRequestMessage)}
    assert ENTERPRISE.bytes_le not in asked_for  # answered


def test_nobody_tells_a_server_of_its_own_partition() -> None:
    psc = replica(last=18)
    psc.tell(hello(99, of=SITES[1]), "PEC0")
    psc.tell(hello(99, of=SITES[1], name="PSC1"), "PSC1")
    partition = psc.partition(SITES[1])
    assert (partition.authority_name, partition.last) == ("PSC1", 0)
    assert psc.sent == []


@pytest.mark.requirement("RP-3.2.7.1-10")
def test_a_bsc_follows_the_psc_that_says_hello() -> None:
    bsc = backup(last=7)
    bsc.tell(hello(9, name="pec0"), "PEC0")
    assert bsc.engine.status().psc_name == "pec0"
    assert [send.machine for send in bsc.sent] == ["pec0"]


@pytest.mark.requirement("RP-3.1.7.2.3-15", "RP-3.3.7.4-02", "RP-3.3.7.4-03", "RP-3.3.7.4-04")
def test_a_psc_acks_every_256_numbers() -> None:
    psc = replica(last=254)
    psc.tell(propagation(made(255)), "PEC0")
    assert psc.messages(PSCAckMessage) == []
    psc.tell(propagation(made(256), made(257)), "PEC0")
    (ack,) = psc.messages(PSCAckMessage, "PEC0")
    assert (ack.acked_seq_number, ack.acked_partition_id) == (256, ENTERPRISE.bytes_le)
    assert (ack.psc_site_id, ack.psc_name) == (SITES[1].bytes_le, "PSC1")
    psc.tell(propagation(made(600, previous=257)), "PEC0")  # over 512
    assert [ack.acked_seq_number for ack in psc.messages(PSCAckMessage)] == [256, 600]


def test_a_bsc_acks_no_numbers() -> None:
    bsc = backup(last=255)
    bsc.tell(propagation(made(256)), "PEC0")
    assert has(bsc, 256)
    assert bsc.messages(PSCAckMessage) == []


@pytest.mark.requirement("RP-3.1.7.2.3-04", "RP-3.1.7.2.3-05", "RP-3.1.7.2.3-06", "RP-3.1.7.2.5-04")
def test_changes_name_their_object_by_path_or_guid() -> None:
    psc = replica(last=7)
    psc.tell(propagation(made(8)), "PEC0")
    by_path = DirectoryChange(UPDATE, "NET8", ENTERPRISE.bytes_le, 8, 9, 9, [(501, 3)])
    psc.tell(propagation(by_path), "PEC0")
    row = psc.get("ConnectedNetwork", network(8))
    assert row is not None
    assert row["network_protocol"] == 3
    by_guid = DirectoryChange(
        UPDATE, network(8).bytes_le, ENTERPRISE.bytes_le, 9, 10, 10, [(501, 5)]
    )
    psc.tell(propagation(by_guid), "PEC0")
    row = psc.get("ConnectedNetwork", network(8))
    assert row is not None
    assert row["network_protocol"] == 5


def test_an_object_that_moved_obeys_its_new_partition() -> None:
    estate = estate_of_six()
    pec, psc1, psc2 = estate["PEC0"], estate["PSC1"], estate["PSC2"]
    guid = queue_manager("mover")
    pec.add_machine("mover", identifier=guid)
    estate.run(15.0)
    pec.delete("QueueManager", guid)
    estate.lose = lambda _machine, send: send.machine == "PSC2"
    estate.run(15.0)  # PSC2 does not hear of the deletion
    psc1.add_machine("mover", identifier=guid)
    estate.lose = lambda _machine, _send: False
    with psc2.engine.turn() as server:
        server.state.partitions[site_of("PSC1")].window = MIN_SEQ_NUMBER
    estate.run(1300.0)
    assert estate.are_equal()
    row = psc2.get("QueueManager", guid)
    assert row is not None
    assert row["site_identifiers"] == [SITES[1]]


def test_of_two_partitions_that_have_one_object_the_younger_object_counts() -> None:
    estate = Estate("PEC0", "PSC2")
    begin_enterprise(estate["PEC0"].start(), 0, 1, 2)
    psc = estate["PSC2"].start()
    estate.settle()
    guid = queue_manager("mover")

    def told(command: int, number: int, site: int, *more: tuple[int, int]) -> None:
        properties: Properties = [(203, "mover"), (201, SITES[site].bytes_le), *more]
        change = DirectoryChange(
            command, guid.bytes_le, SITES[site].bytes_le, number - 1, number, number, properties
        )
        psc.tell(propagation(change), "PSC1" if site else "PEC0")

    told(SYNCHRONIZE, 1, 1, (217, 200))
    told(SYNCHRONIZE, 1, 0, (217, 100))  # what it was before it moved, late
    told(UPDATE, 2, 0, (214, 7))
    row = psc.get("QueueManager", guid)
    assert row is not None
    assert (row["site_identifiers"], row["create_time"]) == ([SITES[1]], 200)
    assert psc.partition(SITES[0]).last == 2
    told(SYNCHRONIZE, 3, 0, (217, 300))  # it moved back
    row = psc.get("QueueManager", guid)
    assert row is not None
    assert row["site_identifiers"] == [SITES[0]]


def test_an_empty_answer_that_comes_twice_says_nothing() -> None:
    psc = replica(last=0)
    put_last(psc, ENTERPRISE, 0, window=MAX_SEQ_NUMBER)
    for _ in range(2):
        psc.tell(reply(0, 0), "PEC0")
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.window) == (0, MIN_SEQ_NUMBER)


def test_who_speaks_like_an_authority_makes_us_ask_the_one_that_we_know() -> None:
    psc = replica(last=7)
    psc.tell(hello(9, name="PSC2"), "PSC2")
    partition = psc.partition(ENTERPRISE)
    assert (partition.authority_name, partition.last) == ("PEC0", 7)
    (send,) = psc.sent
    assert send.machine == "PEC0"
    psc.tell(hello(9, name="PSC2"), "PSC2")
    assert len(psc.sent) == 1  # once is enough
    enterprise = psc.directory.read("Enterprise", (), None)[1]["identifier"]
    assert isinstance(enterprise, UUID)
    moved = DirectoryChange(
        SYNCHRONIZE, enterprise.bytes_le, ENTERPRISE.bytes_le, 7, 8, 0, [(604, "PSC2")]
    )
    psc.tell(reply(7, 8, moved), "PEC0")
    psc.tell(hello(9, name="PSC2"), "PSC2")
    assert [send.machine for send in psc.sent] == ["PEC0", "PSC2"]


def test_a_change_is_told_as_the_whole_object_since_earlier_ones_may_be_left_out() -> None:
    estate = estate_of_six()
    pec, psc = estate["PEC0"], estate["PSC1"]
    one = pec.add("ConnectedNetwork", name="one")
    link = pec.add(
        "RoutingLink", site1_identifier=SITES[0], site2_identifier=SITES[1], actual_cost=1
    )
    estate.run(15.0)
    # given a PSC that missed two changes
    estate.lose = lambda _machine, send: send.machine == "PSC1"
    pec.write("RoutingLink", link, actual_cost=2)
    pec.write("ConnectedNetwork", one, network_protocol=3)
    estate.run(15.0)
    estate.lose = lambda _machine, _send: False
    # when it hears of a third one, and asks for the others
    pec.write("RoutingLink", link, description="changed again")
    estate.run(60.0)
    # then nothing of the object is missing that was changed twice
    row = psc.get("RoutingLink", link)
    assert row is not None
    assert (row["actual_cost"], row["description"]) == (2, "changed again")
    assert estate.are_equal()
