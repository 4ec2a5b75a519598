"""A copy that was away too long fetches everything (MQDSRP 3.3.7.10, .11; scenarios 48 to 51)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.directory.replication.settings import ReplicationSettings
from falconmq.directory.replication.state import PurgeState
from falconmq.errors import StoreError
from falconmq.store.memory_engine import ProcessCrash
from falconmq.wire.replication_messages import (
    ChangePropagationMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER, MIN_SEQ_NUMBER
from tests.directory.replication.estates import (
    ENTERPRISE,
    SITES,
    Estate,
    begin_enterprise,
    estate_of_six,
    register,
)
from tests.directory.replication.told import (
    already_purged,
    authority,
    deleted,
    made,
    network,
    propagation,
    put_last,
    replica,
    reply,
)

SMALL = replace(
    ReplicationSettings(), purge_step=4, purge_buffer=4, message_changes_max=5, hello_seconds=60.0
)


def left_behind() -> Estate:
    """PSC1 was away while things were deleted, and the PEC has forgotten what."""
    estate = Estate("PEC0", "PSC1", settings=SMALL)
    pec = estate["PEC0"].start()
    begin_enterprise(pec, 0, 1)
    estate["PSC1"].start()
    old = [pec.add("ConnectedNetwork", name=f"old{number}") for number in range(8)]
    estate.run(30.0)
    assert estate.are_equal()
    estate.off.add("PSC1")
    for identifier in old[:5]:
        pec.delete("ConnectedNetwork", identifier)
    pec.write("ConnectedNetwork", old[6], network_protocol=3)
    for number in range(12):
        pec.add("ConnectedNetwork", name=f"new{number}")
    with pec.engine.turn() as server:  # an administrator's word: do not wait for PSC1
        server.state.pscs[0].acked_enterprise = server.enterprise.last
        server.enterprise.previous_purged = 0
    pec.add("ConnectedNetwork", name="last")
    assert pec.partition(ENTERPRISE).purged > estate["PSC1"].partition(ENTERPRISE).last
    estate.run(15.0)  # what was meant for it is lost
    estate.off.discard("PSC1")
    return estate


@pytest.mark.requirement(
    "RP-3.3.7.7-05",
    "RP-3.3.7.5-05",
    "RP-3.3.7.5-06",
    "RP-3.3.7.10-10",
    "RP-3.3.7.11-03",
    "RP-3.3.7.11-06",
    "RP-3.3.7.3-04",
)
def test_everything_is_fetched_and_what_is_gone_is_gone() -> None:
    estate = left_behind()
    psc = estate["PSC1"]
    estate.run(200.0)
    partition = psc.partition(ENTERPRISE)
    assert psc.engine.counters["sync0"] == 1
    assert partition.purge_state is PurgeState.NORMAL
    assert partition.purged == estate["PEC0"].partition(ENTERPRISE).purged
    assert estate.are_equal()
    requests = [each for each in psc.messages(SyncRequestMessage) if each.is_sync0]
    assert len(requests) > 1  # it does not fit one message
    assert (requests[0].from_seq_number, requests[0].to_seq_number) == (0, MAX_SEQ_NUMBER)


@pytest.mark.requirement(
    "RP-3.1.1.2.3-09",
    "RP-3.3.7.10-03",
    "RP-3.3.7.10-04",
    "RP-3.3.7.10-05",
    "RP-3.3.7.10-06",
    "RP-3.3.7.10-08",
    "RP-3.3.7.10-09",
    "RP-3.3.7.3-02",
    "RP-3.3.7.11-05",
)
def test_the_steps_of_a_full_synchronisation() -> None:
    psc = replica(last=7)
    psc.tell(propagation(made(8), deleted(9, which=3), made(20)), "PEC0")
    psc.sent.clear()
    assert psc.tell(already_purged(30), "PEC0") == []  # nothing is asked for in state 1
    partition = psc.partition(ENTERPRISE)
    assert partition.purge_state is PurgeState.STARTSYNC0
    assert (partition.last, partition.window, partition.purged) == (0, MAX_SEQ_NUMBER, 30)
    assert partition.pending == []
    psc.estate.settle()
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.SYNC0
    with psc.engine.turn() as server:
        assert {entry.number for entry in server.numbers.both(ENTERPRISE, 0, 99)} == {0}
    (request,) = psc.messages(SyncRequestMessage)
    assert (request.is_sync0, request.known_purged_seq_number) == (True, 30)
    psc.tell(reply(0, 31, made(31, 0, 30), purged=30, complete=2), "PEC0")
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.COMPLETESYNC0
    psc.estate.settle()
    partition = psc.partition(ENTERPRISE)
    assert partition.purge_state is PurgeState.NORMAL
    assert (partition.last, partition.window) == (31, MIN_SEQ_NUMBER)
    with psc.engine.turn() as server:
        assert [entry.number for entry in server.numbers.both(ENTERPRISE, 0, 99)] == [31]
    assert psc.get("ConnectedNetwork", network(8)) is None
    assert psc.get("ConnectedNetwork", network(31)) is not None


@pytest.mark.requirement("RP-3.3.7.11-07", "RP-3.1.7.2.3-13")
def test_live_changes_wait_until_it_is_complete() -> None:
    psc = replica(last=7)
    register(psc, "BSC11")
    psc.tell(already_purged(30), "PEC0")
    psc.estate.run(2.1)
    psc.sent.clear()
    psc.tell(propagation(made(33)), "PEC0")
    psc.tell(propagation(made(34)), "PEC0")
    assert len(psc.partition(ENTERPRISE).pending) == 2
    psc.tell(reply(0, 32, made(31, 0, 30), made(32, 31, 30), purged=30, complete=2), "PEC0")
    psc.estate.run(2.1)
    partition = psc.partition(ENTERPRISE)
    assert (partition.last, partition.pending) == (34, [])
    told = [
        change.seq_number
        for message in psc.messages(ChangePropagationMessage, "BSC11")
        for change in message.directory_changes
    ]
    assert told in ([], [33, 34])  # nothing of the full synchronisation itself
    assert 31 not in told


@pytest.mark.requirement("RP-3.3.7.5-07", "RP-3.3.7.11-02")
def test_only_an_answer_to_it_completes_it() -> None:
    psc = replica(last=7)
    psc.tell(already_purged(30), "PEC0")
    psc.estate.settle()
    psc.sent.clear()
    psc.tell(reply(0, 31, made(31, 0, 30), purged=30, complete=0), "PEC0")
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.SYNC0
    assert psc.sent == []
    other = replica(last=7)
    other.tell(reply(7, 8, made(8, 7, 0), complete=2), "PEC0")
    other.estate.settle()
    assert other.partition(ENTERPRISE).purge_state is PurgeState.NORMAL
    assert other.get("ConnectedNetwork", network(8)) is not None


@pytest.mark.requirement("RP-3.3.7.7-02", "RP-3.3.7.7-03", "RP-3.3.7.7-04", "RP-3.3.7.10-02")
def test_it_begins_only_if_something_was_missed() -> None:
    psc = replica(last=30)
    psc.tell(already_purged(30), "PEC0")
    put_last(psc, ENTERPRISE, 20, purged=30)
    psc.tell(already_purged(30), "PEC0")
    psc.tell(already_purged(30, of=SITES[3]), "PEC0")
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.NORMAL
    assert psc.engine.counters.get("sync0", 0) == 0


@pytest.mark.parametrize(("number", "durable"), [(n, n % 2 == 0) for n in range(1, 9)])
def test_a_crash_in_any_step_goes_on_after_a_restart(number: int, durable: bool) -> None:
    estate = left_behind()
    psc = estate["PSC1"]
    psc.store.fail_commit(number, ProcessCrash(), durable=durable)
    try:
        estate.run(200.0)
    except ProcessCrash:
        estate.restart("PSC1")
    estate.run(3000.0)
    assert psc.partition(ENTERPRISE).purge_state is PurgeState.NORMAL
    assert estate.are_equal()


@pytest.mark.requirement("RP-3.3.7.10-07", "RP-3.3.7.11-04")
@pytest.mark.parametrize("state", [PurgeState.STARTSYNC0, PurgeState.COMPLETESYNC0])
def test_a_step_that_fails_is_tried_again(state: PurgeState) -> None:
    psc = replica(last=7)
    psc.tell(propagation(made(8)), "PEC0")
    psc.tell(already_purged(30), "PEC0")
    if state is PurgeState.COMPLETESYNC0:
        psc.estate.settle()
        psc.tell(reply(0, 31, made(31, 0, 30), purged=30, complete=2), "PEC0")
    for count in (1, 2):
        psc.store.fail_commit(1, StoreError("the disk is tired"))
        psc.estate.clock.advance(10.0)
        psc.engine.run_due()
        assert psc.engine.counters["dropped.store_failed"] == count
        assert psc.partition(ENTERPRISE).purge_state is state
    psc.estate.run(10.0)
    assert psc.partition(ENTERPRISE).purge_state is PurgeState((state + 1) % 4)
    with psc.engine.turn() as server:
        numbers = [entry.number for entry in server.numbers.objects(ENTERPRISE, 0, 99)]
    is_marked = state is PurgeState.STARTSYNC0
    assert set(numbers) == ({0} if is_marked else {31})


def test_the_bsc_of_a_psc_that_fetched_everything_does_so_too() -> None:
    estate = estate_of_six(SMALL)
    pec = estate["PEC0"]
    old = [pec.add("ConnectedNetwork", name=f"old{number}") for number in range(4)]
    estate.run(30.0)
    estate.off.update({"PSC2", "BSC21"})
    for identifier in old:
        pec.delete("ConnectedNetwork", identifier)
    for number in range(12):
        pec.add("ConnectedNetwork", name=f"new{number}")
    with pec.engine.turn() as server:
        for psc in server.state.pscs:
            psc.acked_enterprise = server.enterprise.last
        server.enterprise.previous_purged = 0
    pec.add("ConnectedNetwork", name="last")
    estate.run(15.0)
    estate.off.clear()
    estate.run(1000.0)
    assert estate["PSC2"].engine.counters["sync0"] == 1
    assert estate["BSC21"].engine.counters["sync0"] >= 1
    for node in estate.nodes.values():
        assert node.lasts() == pec.lasts()
        assert all(node.get("ConnectedNetwork", identifier) is None for identifier in old)


def test_a_full_synchronisation_that_nobody_answers_is_asked_for_again() -> None:
    psc = replica(last=7)
    psc.tell(already_purged(30), "PEC0")
    psc.estate.settle()
    psc.sent.clear()
    psc.estate.run(1201.0)
    requests = [each for each in psc.messages(SyncRequestMessage) if each.is_sync0]
    assert len(requests) == 1
    assert psc.messages(SyncReplyMessage) == []


def test_an_answer_that_comes_twice_is_not_asked_about_twice() -> None:
    """Or each repeated message would begin a conversation of its own."""
    psc = replica(last=7)
    psc.tell(already_purged(30), "PEC0")
    psc.estate.settle()
    psc.sent.clear()
    part = reply(0, 31, made(31, 0, 30), purged=30, complete=1)
    for _ in range(3):
        psc.tell(part, "PEC0")
    (request,) = psc.messages(SyncRequestMessage)
    assert (request.from_seq_number, request.is_sync0) == (31, True)


@pytest.mark.parametrize("state", [PurgeState.SYNC0, PurgeState.COMPLETESYNC0])
def test_who_gets_a_partition_while_it_fetches_it_completes_it(state: PurgeState) -> None:
    pec = authority()
    kept, stale = (pec.add("ConnectedNetwork", name=name) for name in ("kept", "stale"))
    with pec.engine.turn() as server:
        server.numbers.give(5, stale, ENTERPRISE, 0)  # as if no answer had named it
        server.enterprise.purge_state = state
    pec.estate.restart("PEC0")
    pec.estate.settle()
    assert pec.partition(ENTERPRISE).purge_state is PurgeState.NORMAL
    assert pec.get("ConnectedNetwork", kept) is not None
    assert pec.get("ConnectedNetwork", stale) is None
