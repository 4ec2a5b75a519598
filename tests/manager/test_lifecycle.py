"""Start, stop, and a commit that fails (scenarios 12, 76 to 79, 82 of the guide)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from falconmq.errors import DirectoryError, FalconMQError, MqStatus, StoreError
from falconmq.manager import coordinator
from falconmq.manager.core import QueueManagerCore, next_number
from falconmq.manager.directory_objects import QueueManager
from falconmq.manager.lifecycle import (
    bring_online,
    initialize,
    restore,
    settle,
    stop,
    take_offline,
)
from falconmq.manager.model import OutgoingQueue, Queue, ReadResult, WaitingRead
from falconmq.manager.queues import (
    create_queue,
    delete_queue,
    find_queue,
    open_queue,
    open_subqueue,
    purge_queue,
    set_queue_properties,
)
from falconmq.manager.reading import (
    dequeue_message,
    dequeue_message_begin,
    dequeue_message_end,
    peek_message,
)
from falconmq.manager.states import (
    AccessType,
    ManagerState,
    OutgoingState,
    PositionState,
    QueueType,
)
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import commit_transaction, create_transaction
from falconmq.names import PathName, PrivateFormatName, parse_format_name
from falconmq.wire.message_class import MessageClass
from tests.manager.directories import SITE, build_core, make_directory, make_integrated_core
from tests.manager.helpers import (
    COMPUTER,
    IDENTIFIER,
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    pass_time,
    record_events,
    restart,
    same,
    store_of,
)

REMOTE = r"DIRECT=OS:other\private$\orders"


def reader_of(core: QueueManagerCore, queue: Queue) -> Any:
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    return open_queue(core, name, AccessType.RECEIVE)


def outgoing(core: QueueManagerCore, name: str) -> OutgoingQueue:
    queue = open_queue(core, parse_format_name(name), AccessType.SEND).queue
    assert isinstance(queue, OutgoingQueue)
    return queue


def taken(result: ReadResult | WaitingRead) -> ReadResult:
    """The end of a read that has ended."""
    ended = result.result if isinstance(result, WaitingRead) else result
    assert ended is not None
    return ended


# Start


@pytest.mark.requirement(
    "DM-3.1.1.1-43", "DM-3.1.1.1-44", "DM-3.1.1.1-45", "DM-3.1.1.1-46", "DM-3.1.1.1-47"
)
def test_a_queue_manager_goes_from_stopped_to_ready_and_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a core that has never run
    directory = make_directory()
    core = build_core(directory)
    states = [core.state]
    plain_read = directory.read

    def observed_read(*args: Any) -> Any:
        states.append(core.state)
        return plain_read(*args)

    monkeypatch.setattr(directory, "read", observed_read)
    # when it starts and stops
    initialize(core)
    states.append(core.state)
    reader = reader_of(core, given_queue(core))
    read = dequeue_message(core, reader, timeout=None)
    assert isinstance(read, WaitingRead)
    read.failed = lambda: states.append(core.state)
    stop(core)
    states.append(core.state)
    # then it went through its four states
    assert list(dict.fromkeys(states[:-1])) == list(ManagerState)
    assert states[-1] is ManagerState.STOPPED


@pytest.mark.requirement("DM-3.1.3-42", "DM-3.1.3-43", "DM-3.1.3-52", "DM-3.1.1.2-34")
def test_a_new_queue_manager_has_five_queues_of_the_system() -> None:
    core = make_core()
    names = {str(queue.path_name): number for number, queue in core.queues.items()}
    assert names == {
        rf"{COMPUTER}\private$\notify_queue$": 3,
        rf"{COMPUTER}\private$\order_queue$": 4,
        rf"{COMPUTER}\system$;deadletter": 5,
        rf"{COMPUTER}\system$;deadxact": 6,
        rf"{COMPUTER}\system$;journal": 7,
    }
    assert {queue.queue_type for queue in core.queues.values()} == {QueueType.SYSTEM}
    assert core.dead_letter is core.queues[5]
    assert core.transactional_dead_letter is core.queues[6]
    assert core.journal is core.queues[7]
    for number in (3, 4):
        name = PrivateFormatName(IDENTIFIER, number)
        assert find_queue(core, name) is core.queues[number]
    assert core.directory.is_integrated is False


def test_the_queues_of_the_system_are_the_same_after_a_restart() -> None:
    core = make_core()
    set_queue_properties(core, core.dead_letter, quota_kilobytes=9)
    identifiers = {number: queue.identifier for number, queue in core.queues.items()}
    commit(core)
    again = restart(core)
    assert {number: queue.identifier for number, queue in again.queues.items()} == identifiers
    assert again.dead_letter.properties.quota_kilobytes == 9
    assert {n for n, queue in again.queues.items() if queue.is_internal} == {3, 4}


@pytest.mark.requirement("DM-3.1.3-05", "DM-3.1.3-08", "DM-3.1.3-09", "DM-3.1.3-53")
def test_who_the_computer_is_comes_from_the_configuration() -> None:
    domain = UUID(int=12)
    core = make_core(domain_name="example.com", domain_identifier=domain)
    assert core.local.computer_name == COMPUTER
    assert core.local.qualified_computer_name == f"{COMPUTER}.example.com"
    assert core.machine_domain_id == domain
    assert make_core(qualified_computer_name="a.b").local.qualified_computer_name == "a.b"
    assert make_core().local.qualified_computer_name == COMPUTER


@pytest.mark.requirement("DM-3.1.1.1-33")
def test_the_domain_of_the_last_start_is_remembered() -> None:
    core = make_core(domain_identifier=UUID(int=12))
    core.settings.domain_identifier = UUID(int=13)
    lives = [core, restart(core)]
    assert [life.last_domain for life in lives] == [UUID(int=12), UUID(int=13)]


@pytest.mark.requirement("DM-3.1.3-45", "DM-3.1.3-46", "DM-3.1.3-47")
def test_hardened_mode_locks_and_unlocks_outgoing_queues_at_a_restart() -> None:
    # given messages on their way, over HTTP and otherwise
    core = make_core()
    http, direct = outgoing(core, "DIRECT=HTTP://h/msmq/q"), outgoing(core, REMOTE)
    for queue in (http, direct):
        enqueue_message(core, queue, message())
    commit(core)

    def states_after_restart(core: QueueManagerCore) -> list[OutgoingState]:
        queues = [same(core, http), same(core, direct)]
        return [queue.state for queue in queues if isinstance(queue, OutgoingQueue)]

    # then a change of the mode counts from a restart on
    core.settings.hardened_security = True
    core = restart(core)
    assert states_after_restart(core) == [OutgoingState.INACTIVE, OutgoingState.LOCKED]
    core = restart(core)
    assert states_after_restart(core) == [OutgoingState.INACTIVE, OutgoingState.LOCKED]
    core.settings.hardened_security = False
    core = restart(core)
    assert states_after_restart(core) == [OutgoingState.INACTIVE, OutgoingState.WAITING]


@pytest.mark.requirement("DM-3.1.3-48", "DM-3.1.3-49", "DM-3.1.3-50")
def test_internal_transactions_end_with_a_crash_and_prepared_ones_stay_in_doubt() -> None:
    # given one message received in an internal transaction, one in a prepared external one
    core = make_core()
    queue = given_queue(core, transactional=True)
    for body in (b"internal", b"external"):
        enqueue_message(core, queue, message(body, transactional=True))
    commit(core)
    reader = reader_of(core, queue)
    internal = create_transaction(core)
    dequeue_message(core, reader, timeout=0, transaction=internal)
    external = coordinator.enlist(core, create_transaction(core))
    dequeue_message(core, reader, timeout=0, transaction=external)
    coordinator.prepare(core, external.identifier)
    commit(core)
    # when the power fails
    again = restart(core)
    # then the first message is back, and the second waits for its coordinator
    assert bodies(same(again, queue)) == [b"internal"]
    assert list(again.transactions) == [external.identifier]
    assert len(same(again, queue).positions.held) == 1


@pytest.mark.requirement("DM-3.1.3-11")
def test_a_workgroup_asks_no_directory() -> None:
    core = make_core()
    initialize(core, provisioning=True)
    assert core.enterprise is None
    assert core.sites == []
    assert core.next_deadline() is None


@pytest.mark.requirement("DM-3.1.3-32", "DM-3.1.3-33", "DM-3.1.3-34", "DM-3.1.3-35")
def test_a_start_reads_the_queue_manager_and_its_sites() -> None:
    # given a directory that knows our quota, and one of our two sites
    unknown = UUID(int=99)
    directory = make_directory(quota_kilobytes=123, site_identifiers=[unknown, SITE])
    core, _, _ = make_integrated_core(directory)
    # then the quota counts and the known site is there
    assert core.settings.quota_kilobytes == 123
    assert core.local.site_identifiers == [unknown, SITE]
    assert [(site.identifier, site.name) for site in core.sites] == [(SITE, "Berlin")]


@pytest.mark.requirement("DM-3.1.1.1-52")
def test_every_site_is_one_of_the_identifiers() -> None:
    core, directory, _ = make_integrated_core()
    assert {site.identifier for site in core.sites} <= set(core.local.site_identifiers)
    assert directory.rows["Site"].keys() == {SITE}


@pytest.mark.requirement(
    "DM-3.1.3-01",
    "DM-3.1.3-06",
    "DM-3.1.3-12",
    "DM-3.1.3-13",
    "DM-3.1.3-14",
    "DM-3.1.3-36",
    "DM-3.1.1.1-58",
)
def test_provisioning_decides_what_is_decided_once() -> None:
    # given a directory that does not know us, and servers in our domain
    directory = make_directory()
    directory.rows["QueueManager"].clear()
    directory.servers = ["DC1", "DC2"]
    settings: dict[str, Any] = {"domain_name": "example.com", "site_identifier": SITE}
    core = build_core(directory, **settings)
    core.initialization_retry_seconds = 7
    # when we are set up there
    initialize(core, provisioning=True)
    commit(core)
    # then site, servers and the time between tries are ours
    assert core.state is ManagerState.READY
    assert core.initialization_retry_seconds == 120
    assert core.local.site_identifiers == [SITE]
    assert core.directory_servers == ["DC1", "DC2"]
    assert "find servers of example.com" in directory.calls
    assert core.local.qualified_computer_name == f"{COMPUTER}.example.com"
    # and survive a restart, where nobody looks for them again
    core.initialization_retry_seconds = 240
    directory.create("QueueManager", QueueManager(IDENTIFIER, site_identifiers=[SITE]).row())
    stopped, core = core, build_core(directory, store_of(core), **settings)
    directory.calls.clear()
    initialize(core)
    assert core.directory_servers == stopped.directory_servers
    assert core.initialization_retry_seconds == 120
    assert "find servers of example.com" not in directory.calls


@pytest.mark.requirement("DM-3.1.3-37", "DM-3.1.3-51")
@pytest.mark.parametrize(
    ("provisioning", "connected", "status"),
    [
        (False, True, MqStatus.DS_ERROR),
        (False, False, MqStatus.NO_DS),
        (True, False, MqStatus.NO_DS),
    ],
)
def test_a_directory_that_does_not_answer_stops_the_start(
    provisioning: bool, connected: bool, status: MqStatus
) -> None:
    directory = make_directory()
    directory.rows["QueueManager"].clear()
    directory.is_connected = connected
    core = build_core(directory)
    with pytest.raises(DirectoryError) as refused:
        initialize(core, provisioning=provisioning)
    assert refused.value.status is status
    assert core.state is ManagerState.STOPPED


@pytest.mark.requirement("DM-3.1.3-51")
def test_after_a_failed_start_the_next_one_may_succeed() -> None:
    directory = make_directory()
    directory.is_connected = False
    core = build_core(directory)
    with pytest.raises(DirectoryError):
        initialize(core)
    directory.is_connected = True
    initialize(core)
    assert core.state is ManagerState.READY
    assert len(core.queues) == 5


@pytest.mark.requirement("DM-3.1.3-38", "DM-3.1.3-39")
@pytest.mark.parametrize("flag", [True, False])
def test_the_enterprise_says_whether_old_queue_managers_are_notified(flag: bool) -> None:
    directory = make_directory()
    name = "non_ldap_capable_queue_manager_notification"
    directory.rows["Enterprise"][UUID(int=9)][name] = flag
    core, _, _ = make_integrated_core(directory)
    assert core.enterprise is not None
    assert core.enterprise.non_ldap_capable_queue_manager_notification is flag
    assert core.enterprise.name == ""  # only that attribute was asked for


@pytest.mark.requirement("DM-3.1.3-40")
def test_an_enterprise_that_does_not_say_notifies_them() -> None:
    directory = make_directory()
    name = "non_ldap_capable_queue_manager_notification"
    del directory.rows["Enterprise"][UUID(int=9)][name]
    core, _, _ = make_integrated_core(directory)
    assert core.enterprise is not None
    assert core.enterprise.non_ldap_capable_queue_manager_notification is True


@pytest.mark.requirement("DM-3.1.3-51")
def test_no_enterprise_at_all_is_an_error_of_the_start() -> None:
    directory = make_directory()
    directory.rows["Enterprise"].clear()
    with pytest.raises(DirectoryError):
        initialize(build_core(directory))


@pytest.mark.requirement("DM-3.1.3-41")
def test_a_start_in_a_directory_starts_both_timers() -> None:
    core, _, _ = make_integrated_core()
    assert sorted(deadline for deadline, _, _ in core.timers.monotonic) == [3_600, 43_200]


# Stop, offline, online


def test_a_stop_ends_waits_and_transactions_and_loses_nothing() -> None:
    # given a message in a transaction, a waiting read and a timer
    core = make_core()
    queue, other = given_queue(core, transactional=True), given_queue(core, "other")
    enqueue_message(core, queue, message(b"held", transactional=True))
    commit(core)
    transaction = create_transaction(core)
    dequeue_message(core, reader_of(core, queue), timeout=0, transaction=transaction)
    waiting = dequeue_message(core, reader_of(core, queue), timeout=None)
    timed = peek_message(core, reader_of(core, other), timeout=5)
    # when it stops
    stop(core)
    # then those who wait hear of it first, and get nothing that others gave back
    assert commit(core) == [waiting, timed]
    assert {taken(read).status for read in (waiting, timed)} == {MqStatus.OPERATION_CANCELLED}
    assert core.transactions == {}
    assert core.next_deadline() is None
    # and the message is there when it starts again, in this core or another
    assert bodies(same(restart(core), queue)) == [b"held"]
    initialize(core)
    assert bodies(same(core, queue)) == [b"held"]
    assert same(core, queue) is not queue


def test_a_stop_leaves_prepared_transactions_to_their_coordinator() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    external = coordinator.enlist(core, create_transaction(core))
    enqueue_message(core, queue, message(b"new", transactional=True), external)
    coordinator.prepare(core, external.identifier)
    commit(core)
    stop(core)
    commit(core)
    again = restart(core)
    commit_transaction(again, external.identifier)
    assert bodies(same(again, queue)) == [b"new"]


@pytest.mark.requirement("DM-3.1.1.1-40")
def test_a_queue_manager_can_be_taken_offline_and_brought_back() -> None:
    core = make_core()
    seen = [core.is_connection_active]
    for step in (take_offline, bring_online):
        step(core)
        seen.append(core.is_connection_active)
    assert seen == [True, False, True]


# A commit that fails


def fail(core: QueueManagerCore) -> None:
    """The batch cannot be committed: the host gives it up and restores."""
    core.take_batch()
    restore(core)
    commit(core)


def test_after_a_failed_commit_memory_is_what_the_store_has() -> None:
    # given one message in the store
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"stored"))
    commit(core)
    stored = list(queue.positions.available)
    size = core.used_bytes
    # when it is received and others come, and nothing of it is committed
    dequeue_message(core, reader_of(core, queue), timeout=0)
    enqueue_message(core, queue, message(b"lost", priority=7))
    enqueue_message(core, queue, message(b"express", priority=0, recoverable=False))
    express = message(b"express", recoverable=False).size
    fail(core)
    # then the first is back, the second gone, and the express one stays
    assert bodies(queue) == [b"stored", b"express"]
    assert list(queue.positions.available)[:1] == stored
    assert core.used_bytes == queue.total_bytes == size + express
    # and all of it is true after a crash
    assert bodies(same(restart(core), queue)) == [b"stored"]


def test_queues_that_were_not_created_go_and_those_not_deleted_come_back() -> None:
    # given a queue with a subqueue and a message, and a reader of it
    core = make_core()
    queue = given_queue(core, label="old")
    subqueue = open_subqueue(core, queue, "sub")
    enqueue_message(core, queue, message(b"kept"))
    commit(core)
    # when it is deleted, another with its name created, and neither is committed
    delete_queue(core, queue)
    again = create_queue(core, PathName.parse(r".\private$\orders"))
    reader = reader_of(core, again)
    waiting = dequeue_message(core, reader, timeout=None)
    open_subqueue(core, again, "new")
    fail(core)
    # then the old one is back with all it had
    back = find_queue(core, PathName.parse(r".\private$\orders"))
    assert back is core.queues[queue.number]
    assert back is not None
    assert back.properties.label == "old"
    assert bodies(back) == [b"kept"]
    assert list(back.subqueues) == ["sub"]
    assert core.queues[subqueue.number].parent is back
    assert back.journal is not None
    assert find_queue(core, PrivateFormatName(IDENTIFIER, queue.private_queue_number)) is back
    # and who has the new one open has no queue
    assert reader.queue is None
    assert taken(waiting).status is MqStatus.QUEUE_NOT_AVAILABLE
    assert again.number not in core.queues


def test_properties_that_were_not_committed_are_forgotten() -> None:
    core = make_core()
    queue = given_queue(core, label="old")
    subqueue = open_subqueue(core, queue, "sub")
    commit(core)
    set_queue_properties(core, queue, label="new")
    fail(core)
    assert queue.properties.label == "old"
    assert subqueue.properties is queue.properties


def test_a_subqueue_that_was_not_committed_is_gone() -> None:
    core = make_core()
    queue = given_queue(core)
    open_subqueue(core, queue, "sub")
    fail(core)
    assert queue.subqueues == {}
    assert open_subqueue(core, queue, "sub").parent is queue


def test_outgoing_queues_stay_for_their_express_messages() -> None:
    core = make_core()
    queue = outgoing(core, REMOTE)
    enqueue_message(core, queue, message(b"express", recoverable=False))
    fail(core)
    assert outgoing(core, REMOTE) is queue
    assert bodies(queue) == [b"express"]
    enqueue_message(core, queue, message(b"stored"))
    commit(core)
    assert bodies(same(restart(core), queue)) == [b"stored"]


def test_live_transactions_are_over_after_a_failed_commit() -> None:
    # given a transaction that has received two messages and sent one
    core = make_core()
    queue = given_queue(core, transactional=True)
    for body, recoverable in ((b"stored", True), (b"express", False)):
        enqueue_message(core, queue, message(body, recoverable=recoverable, transactional=True))
    commit(core)
    transaction = create_transaction(core)
    reader = reader_of(core, queue)
    for _ in range(2):
        dequeue_message(core, reader, timeout=0, transaction=transaction)
    enqueue_message(core, queue, message(b"sent", transactional=True), transaction)
    # when a commit fails
    fail(core)
    # then what it received is free again, what it sent is gone, and it is over
    assert bodies(queue) == [b"stored", b"express"]
    assert len(queue.positions.held) == 0
    assert core.transactions == {}
    with pytest.raises(FalconMQError) as refused:
        commit_transaction(core, transaction.identifier)
    assert refused.value.status is MqStatus.TRANSACTION_SEQUENCE


def test_a_commit_of_a_transaction_that_failed_leaves_nothing_half_done() -> None:
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"old", transactional=True))
    commit(core)
    transaction = create_transaction(core)
    dequeue_message(core, reader_of(core, queue), timeout=0, transaction=transaction)
    enqueue_message(core, queue, message(b"new", transactional=True), transaction)
    commit_transaction(core, transaction.identifier)
    fail(core)
    assert bodies(queue) == [b"old"]


def test_a_prepared_transaction_stays_in_doubt_after_a_failed_commit() -> None:
    # given a prepared transaction in the store that has received a message and sent another
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"old", transactional=True))
    commit(core)
    external = coordinator.enlist(core, create_transaction(core))
    dequeue_message(core, reader_of(core, queue), timeout=0, transaction=external)
    enqueue_message(core, queue, message(b"new", transactional=True), external)
    coordinator.prepare(core, external.identifier)
    commit(core)
    # when something else fails
    enqueue_message(core, queue, message(b"other", transactional=True))
    fail(core)
    # then both are still held, and the commit does what it promised
    assert bodies(queue) == []
    coordinator.commit_prepared(core, external.identifier)
    commit(core)
    assert bodies(queue) == [b"new"]
    assert bodies(same(restart(core), queue)) == [b"new"]


def test_reads_that_wait_go_on_waiting_after_a_failed_commit() -> None:
    # given a read that waits
    core = make_core()
    queue = given_queue(core)
    waiting = dequeue_message(core, reader_of(core, queue), timeout=None)
    set_queue_properties(core, queue, label="lost")
    fail(core)
    assert list(queue.waiting) == [waiting]
    # when a message comes
    enqueue_message(core, queue, message(b"new"))
    # then it gets it
    assert commit(core) == [waiting]
    assert taken(waiting).status is MqStatus.OK


def test_a_message_that_comes_back_feeds_those_who_wait() -> None:
    # given a message, received in a batch that fails, and a second reader who waits
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"back"))
    commit(core)
    dequeue_message(core, reader_of(core, queue), timeout=0)
    waiting = dequeue_message(core, reader_of(core, queue), timeout=None)
    events = record_events(core)
    core.take_batch()
    restore(core)
    # then the second reader gets it, and subscribers heard that it is there
    assert commit(core) == [waiting]
    assert taken(waiting).status is MqStatus.OK
    assert [queue for queue, _ in events.available] == [queue]
    assert bodies(same(restart(core), queue)) == []


def test_a_read_that_ended_in_the_lost_batch_did_not_end_with_a_message() -> None:
    # given two reads that wait, one of which gets an express message
    core = make_core()
    queue, other = given_queue(core), given_queue(core, "other")
    lost = dequeue_message(core, reader_of(core, queue), timeout=None)
    express = dequeue_message(core, reader_of(core, other), timeout=None)
    for body in (b"recoverable", b"not taken"):
        enqueue_message(core, queue, message(body))
    enqueue_message(core, other, message(b"express", recoverable=False))
    # when memory is restored before anybody took the batch
    restore(core)
    # then the first hears of the failure, the second has its message
    assert commit(core) == [lost, express]
    assert taken(lost).status is MqStatus.MESSAGE_STORAGE_FAILED
    assert taken(express).status is MqStatus.OK
    # and nothing of the batch is ever written
    assert bodies(same(restart(core), queue)) == []


def test_a_two_phase_read_keeps_its_hold_after_a_failed_commit() -> None:
    core = make_core()
    queue = given_queue(core)
    for body in (b"stored", b"purged"):
        enqueue_message(core, queue, message(body))
    commit(core)
    reader = reader_of(core, queue)
    kept, purged = (taken(dequeue_message_begin(core, reader, timeout=0)) for _ in range(2))
    assert kept.position is not None
    assert purged.position is not None
    purge_queue(core, queue)
    kept.position.state = PositionState.LOCKED
    set_queue_properties(core, queue, label="lost")
    fail(core)
    assert bodies(queue) == []
    assert kept.position.state is PositionState.LOCKED
    events = record_events(core)
    dequeue_message_end(core, reader, kept.position, delete=False)
    dequeue_message_end(core, reader, purged.position, delete=False)
    commit(core)
    assert bodies(queue) == [b"stored"]
    assert events.reasons == [MessageClass.NACK_Q_PURGED]
    assert bodies(same(restart(core), queue)) == [b"stored"]


def test_a_purge_is_kept_for_messages_that_a_lost_transaction_gives_back() -> None:
    # given a message that a transaction holds and that was purged
    core = make_core()
    queue = given_queue(core, transactional=True)
    enqueue_message(core, queue, message(b"purged", transactional=True))
    commit(core)
    transaction = create_transaction(core)
    dequeue_message(core, reader_of(core, queue), timeout=0, transaction=transaction)
    purge_queue(core, queue)
    events = record_events(core)
    # when the transaction is lost
    fail(core)
    # then the message goes as it would have with an abort
    assert events.reasons == [MessageClass.NACK_Q_PURGED]
    assert len(queue.positions) == 0
    assert bodies(same(restart(core), queue)) == []


def test_messages_that_come_back_still_expire() -> None:
    # given a message that expires in a batch that fails, and two whose time ran out while held
    core = make_core()
    queue, held = given_queue(core), given_queue(core, "held", transactional=True)
    enqueue_message(core, queue, message(b"late", ttbr=10))
    for recoverable in (True, False):
        late = message(b"held", ttbr=10, transactional=True, recoverable=recoverable)
        enqueue_message(core, held, late)
    commit(core)
    transaction, reader = create_transaction(core), reader_of(core, held)
    for _ in range(2):
        dequeue_message(core, reader, timeout=0, transaction=transaction)
    pass_time(core, 10)
    assert bodies(queue) == []
    core.take_batch()
    restore(core)
    # then the first is back and goes again at once, the others go with their transaction
    assert (bodies(queue), bodies(held)) == ([b"late"], [])
    core.run_timers()
    commit(core)
    assert (bodies(queue), bodies(held)) == ([], [])
    again = restart(core)
    assert (bodies(same(again, queue)), bodies(same(again, held))) == ([], [])


def test_a_reserved_number_whose_batch_failed_is_reserved_again() -> None:
    core = make_core()
    core.sequential_id.value = core.sequential_id.ceiling
    given = next_number(core, core.sequential_id)
    fail(core)
    next_number(core, core.sequential_id)
    commit(core)
    again = restart(core)
    assert next_number(again, again.sequential_id) > given + 1


def test_settled_messages_leave_memory_and_held_or_deleted_ones_do_not_mind() -> None:
    core = make_core()
    queue = given_queue(core)
    for body in (b"1", b"2", b"3"):
        enqueue_message(core, queue, message(body))
    reader = reader_of(core, queue)
    dequeue_message(core, reader, timeout=0)
    dequeue_message_begin(core, reader, timeout=0)
    batch, positions, _ = core.take_batch()
    store_of(core).commit([batch])
    assert len(list(queue.positions.resident())) == 2
    settle(core, positions)
    assert [p.state for p in queue.positions.resident()] == [PositionState.LOCKED]
    assert bodies(queue) == [b"3"]


def test_a_record_that_cannot_be_read_stops_the_start() -> None:
    core = make_core()
    core.batch.put("queues", (77).to_bytes(8, "big"), b"{}")
    commit(core)
    again = QueueManagerCore(IDENTIFIER, core.store, core.clock, core.random, core.settings)
    with pytest.raises(StoreError):
        initialize(again)
    assert again.state is ManagerState.STOPPED
