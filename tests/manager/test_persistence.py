"""What survives a restart, and what does not (scenarios 25 and 81 of the guide)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.clock import VirtualClock
from falconmq.errors import MqStatus, StoreError
from falconmq.manager.core import RESERVED_NUMBERS, QueueManagerCore, message_key, next_number
from falconmq.manager.lifecycle import initialize, stop
from falconmq.manager.model import OutgoingQueue, Queue, QueueProperties
from falconmq.manager.persistence import FIRST_QUEUE_NUMBER, stored_identifier
from falconmq.manager.queues import (
    create_connector_queue,
    create_queue,
    delete_queue,
    find_queue,
    open_queue,
    open_subqueue,
    purge_queue,
    set_queue_properties,
)
from falconmq.manager.reading import dequeue_message, dequeue_message_begin
from falconmq.manager.states import AccessType, OutgoingState, QueuePrivacy, QueueType
from falconmq.manager.storing import enqueue_message
from falconmq.manager.transactions import create_transaction
from falconmq.names import ConnectorFormatName, PathName, PrivateFormatName, parse_format_name
from falconmq.store import WriteBatch
from falconmq.wire.access_masks import MQSEC_RECEIVE_MESSAGE
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.message_class import MessageClass
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import EVERYONE
from tests.manager.helpers import (
    IDENTIFIER,
    STRANGER,
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
SECURITY = SecurityDescriptor(dacl=Acl.of([access_allowed(MQSEC_RECEIVE_MESSAGE, EVERYONE)]))
PERSISTENT = (
    "number",
    "path_name",
    "queue_type",
    "identifier",
    "private_queue_number",
    "create_time",
    "modify_time",
    "qualified_path_name",
    "scope",
    "full_path",
    "directory_path",
)


def kept(queue: Queue) -> dict[str, object]:
    return {name: getattr(queue, name) for name in PERSISTENT}


def open_for(core: QueueManagerCore, queue: Queue) -> Any:
    name = PrivateFormatName(IDENTIFIER, queue.private_queue_number)
    return open_queue(core, name, AccessType.RECEIVE)


properties = st.builds(
    QueueProperties,
    label=st.text(max_size=124),
    type=st.uuids(),
    journaling=st.booleans(),
    quota_kilobytes=st.integers(0, 0xFFFFFFFF),
    journal_quota_kilobytes=st.integers(0, 0xFFFFFFFF),
    authentication=st.booleans(),
    privacy_level=st.sampled_from(QueuePrivacy),
    transactional=st.booleans(),
    multicast_address=st.none() | st.just("234.1.1.1:8001"),
    security=st.none() | st.just(SECURITY),
    base_priority=st.integers(-0x8000, 0x7FFF),
)


@pytest.mark.requirement("DM-3.1.1-01", "DM-3.1.1-02", "DM-3.1.1.2-01")
@given(chosen=properties)
def test_every_persistent_attribute_of_a_queue_survives_a_restart(chosen: QueueProperties) -> None:
    # given queues of every kind, with any properties
    core = make_core()
    queue = create_queue(core, PathName.parse(r".\private$\Orders"), chosen)
    published = create_queue(core, PathName.parse(r".\Orders"), chosen, skip_directory=True)
    published.full_path, published.directory_path = "CN=x", "LDAP://x"
    pass_time(core, 5)
    set_queue_properties(core, published, label="later")
    subqueue = open_subqueue(core, queue, "Retry")
    connector = create_connector_queue(core, ConnectorFormatName(UUID(int=7)))
    commit(core)
    # when the power fails
    again = restart(core)
    # then all of them are back as they were
    for one in (queue, published, subqueue, connector, queue.journal):
        assert one is not None
        assert kept(same(again, one)) == kept(one)
        before, after = (
            dataclasses.asdict(one.properties),
            dataclasses.asdict(same(again, one).properties),
        )
        assert after == before
    # and hang together
    assert same(again, queue).journal is same(again, queue.journal or queue)
    assert same(again, queue).subqueues == {"retry": same(again, subqueue)}
    assert same(again, subqueue).properties is same(again, queue).properties
    assert find_queue(again, ConnectorFormatName(UUID(int=7))) is same(again, connector)
    assert find_queue(again, PathName.parse(r".\private$\orders")) is same(again, queue)
    assert again.public == {published.identifier: same(again, published)}


@pytest.mark.requirement("DM-3.1.1-03", "DM-3.1.1.2-28")
def test_what_is_volatile_does_not_survive_a_restart() -> None:
    # given a queue that is open and throttled, offline, with a transaction and a waiting read
    core = make_core()
    queue = given_queue(core, transactional=True)
    reader = open_for(core, queue)
    dequeue_message(core, reader, timeout=None)
    create_transaction(core)
    core.is_throttled = True
    core.is_connection_active = False
    name = parse_format_name(REMOTE)
    outgoing = open_queue(core, name, AccessType.SEND).queue
    assert isinstance(outgoing, OutgoingQueue)
    enqueue_message(core, queue, message(recoverable=False))
    commit(core)
    # when it starts again
    again = restart(core)
    # then nothing of that is left
    assert same(again, queue).descriptors == []
    assert not same(again, queue).is_active
    assert list(same(again, queue).waiting) == []
    assert (again.transactions, again.descriptors, again.cursors) == ({}, {}, {})
    assert not again.is_throttled
    assert again.is_connection_active
    assert again.outgoing == {}
    assert len(same(again, queue).positions) == 0


def test_messages_are_back_in_their_order_with_their_numbers() -> None:
    # given messages of several priorities, some express, one taken, one in a journal
    core = make_core()
    queue = given_queue(core, journaling=True)
    for body, priority, recoverable in (
        (b"taken", 7, True),
        (b"low", 0, True),
        (b"express", 5, False),
        (b"high", 7, True),
        (b"middle", 3, True),
    ):
        enqueue_message(core, queue, message(body, priority=priority, recoverable=recoverable))
    dequeue_message(core, open_for(core, queue), timeout=0)
    commit(core)
    numbers = [n for n in queue.positions.available if n >> 56 != 2]
    bytes_of_express = message(b"express", recoverable=False).size
    # when the power fails
    again = restart(core)
    # then the recoverable ones are there: order, numbers, bytes
    back = same(again, queue)
    assert bodies(back) == [b"high", b"middle", b"low"]
    assert list(back.positions.available) == numbers
    assert back.total_bytes == queue.total_bytes - bytes_of_express
    assert again.used_bytes == core.used_bytes - bytes_of_express
    assert back.journal is not None
    assert bodies(back.journal) == [b"taken"]
    # and a new one gets a number and an arrival number that was never given
    before = queue.arrival_number
    enqueue_message(again, back, message(b"new", priority=7))
    assert bodies(back) == [b"high", b"new", b"middle", b"low"]
    assert back.arrival_number > before


def test_what_was_not_committed_was_never_there() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"kept"))
    commit(core)
    enqueue_message(core, queue, message(b"lost"))
    given = find_queue(core, PathName.parse(r".\private$\orders"))
    assert given is not None
    purge_queue(core, given)
    assert bodies(same(restart(core), queue)) == [b"kept"]


def test_a_message_that_a_two_phase_read_held_is_free_after_a_restart() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"held"))
    commit(core)
    dequeue_message_begin(core, open_for(core, queue), timeout=0)
    commit(core)
    assert bodies(queue) == []
    assert bodies(same(restart(core), queue)) == [b"held"]


@pytest.mark.requirement("DM-3.1.2.4-01", "DM-3.1.2.4-02", "DM-3.1.2.4-03")
def test_after_a_restart_messages_expire_when_they_would_have() -> None:
    # given messages with 10, 20, 0 and endless seconds, sent 4 seconds before the restart
    core = make_core()
    queue = given_queue(core)
    for body, ttbr in ((b"20", 20), (b"10", 10), (b"10 too", 10), (b"never", 0xFFFFFFFF)):
        enqueue_message(core, queue, message(body, ttbr=ttbr, dead_letter_queue=r".\private$\d"))
    commit(core)
    pass_time(core, 4)
    again = restart(core)
    back, events = same(again, queue), record_events(again)
    # then they go when their time is over, and not before
    pass_time(again, 5)
    assert bodies(back) == [b"20", b"10", b"10 too", b"never"]
    pass_time(again, 1)
    assert bodies(back) == [b"20", b"never"]
    pass_time(again, 10)
    assert bodies(back) == [b"never"]
    assert events.reasons == [MessageClass.NACK_RECEIVE_TIMEOUT] * 3
    assert again.next_deadline() is None


def test_a_message_whose_time_ran_out_while_we_were_down_goes_at_once() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"old", ttbr=10))
    enqueue_message(core, queue, message(b"young", ttbr=100))
    commit(core)
    clock = core.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(50)
    again = restart(core)
    again.run_timers()
    assert bodies(same(again, queue)) == [b"young"]
    # and a queue that is deleted needs no timer any more
    delete_queue(again, same(again, queue))
    pass_time(again, 100)
    assert again.next_deadline() is None


def test_a_journal_keeps_what_has_expired() -> None:
    core = make_core()
    queue = given_queue(core, journaling=True)
    enqueue_message(core, queue, message(b"read", ttbr=10))
    dequeue_message(core, open_for(core, queue), timeout=0)
    commit(core)
    again = restart(core)
    pass_time(again, 1000)
    journal = same(again, queue).journal
    assert journal is not None
    assert bodies(journal) == [b"read"]


@pytest.mark.requirement("DM-3.1.1.1-59")
def test_no_number_is_given_twice_whatever_crashes() -> None:
    # given numbers of all three counters, over several crashes and one stop
    core, seen = make_core(), set()
    for life in range(6):
        for counter in (core.sequential_id, core.message_id, core.queue_number):
            for _ in range(life * 3000 + 1):
                number = next_number(core, counter)
                assert (counter.name, number) not in seen
                seen.add((counter.name, number))
        commit(core)
        if life == 3:
            stop(core)
            commit(core)
        core = restart(core)


def test_a_stop_in_order_skips_no_number() -> None:
    core = make_core()
    given_queue(core)
    before = core.queue_number.value
    stop(core)
    commit(core)
    again = restart(core)
    assert next_number(again, again.queue_number) == before + 1
    # and after a crash the reserved ones are skipped
    commit(again)
    again = restart(again)
    assert next_number(again, again.queue_number) > before + RESERVED_NUMBERS


def test_numbers_below_sixteen_belong_to_the_system() -> None:
    core = make_core()
    assert set(core.queues) == {3, 4, 5, 6, 7}
    assert given_queue(core).number == FIRST_QUEUE_NUMBER


@pytest.mark.requirement("DM-3.1.1.3-02", "DM-3.1.1.3-04")
@pytest.mark.parametrize(
    "name",
    [
        REMOTE,
        "MULTICAST=234.1.1.1:8001",
        rf"PRIVATE={STRANGER}\17",
        r"DIRECT=TCP:10.0.0.1\private$\q",
        "DIRECT=HTTP://h/msmq/private$/q",
    ],
)
def test_an_outgoing_queue_survives_with_its_messages(name: str) -> None:
    # given a message on its way, and subscribers who would send it
    core = make_core()
    outgoing = open_queue(core, parse_format_name(name), AccessType.SEND).queue
    assert isinstance(outgoing, OutgoingQueue)
    outgoing.properties.base_priority = 3
    enqueue_message(core, outgoing, message(b"on its way"))
    commit(core)
    # when the power fails
    store_of(core).crash()
    again = QueueManagerCore(IDENTIFIER, core.store, core.clock, core.random, core.settings)
    events = record_events(again)
    initialize(again)
    commit(again)
    # then it is still on its way, and the subscribers hear of it
    back = same(again, outgoing)
    assert isinstance(back, OutgoingQueue)
    assert back.destination == parse_format_name(name)
    assert again.outgoing == {back.destination: back}
    assert back.is_multicast == outgoing.is_multicast
    assert back.identifier == outgoing.identifier
    assert bodies(back) == [b"on its way"]
    assert back.is_active
    assert [queue for queue, _ in events.available] == [back]
    # and the queue is the one that the next sender gets
    assert open_queue(again, parse_format_name(name), AccessType.SEND).queue is back


@pytest.mark.requirement("DM-3.1.1.3-03")
def test_how_far_a_connection_got_does_not_survive() -> None:
    core = make_core()
    outgoing = open_queue(core, parse_format_name(REMOTE), AccessType.SEND).queue
    assert isinstance(outgoing, OutgoingQueue)
    outgoing.state = OutgoingState.CONNECTED
    outgoing.next_hops = ["10.0.0.1"]
    enqueue_message(core, outgoing, message())
    commit(core)
    back = same(restart(core), outgoing)
    assert isinstance(back, OutgoingQueue)
    assert back.state is OutgoingState.INACTIVE
    assert back.next_hops is None


def test_a_queue_that_was_deleted_stays_deleted() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message())
    commit(core)
    delete_queue(core, queue)
    commit(core)
    again = restart(core)
    assert queue.number not in again.queues
    assert find_queue(again, PathName.parse(r".\private$\orders")) is None
    assert again.used_bytes == 0


def test_data_of_another_queue_manager_are_refused() -> None:
    core = make_core()
    assert stored_identifier(core.store) == IDENTIFIER
    stranger = QueueManagerCore(STRANGER, core.store, core.clock, core.random, core.settings)
    with pytest.raises(StoreError) as refused:
        initialize(stranger)
    assert refused.value.status is MqStatus.GUID_NOT_MATCHING
    assert str(IDENTIFIER) in str(refused.value)


def damage(core: QueueManagerCore, table: str, key: bytes, value: bytes) -> StoreError:
    """Put bytes into the store and start again; the error that follows."""
    batch = WriteBatch()
    batch.put(table, key, value)
    store_of(core).commit([batch])
    with pytest.raises(StoreError) as refused:
        restart(core)
    return refused.value


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda record: record[:20], "20 bytes are too few"),
        (lambda record: record[:70], "70 bytes are too few"),
        (lambda record: b"\x09" + record[1:], "version 9"),
        (lambda record: record[:26] + b"\xff" + record[27:], "no MSMQ packet"),
        (lambda record: record[:30] + b"\xff" + record[31:], "no MSMQ packet"),
        (lambda record: record[:-4], "no MSMQ packet"),
    ],
)
def test_a_message_that_cannot_be_read_is_named_and_nothing_is_skipped(
    make: Any, problem: str
) -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"fine"))
    commit(core)
    key, record = next(iter(core.store.scan("messages")))
    error = damage(core, "messages", key, make(bytes(record)))
    assert problem in str(error)
    assert str(queue.path_name) in str(error)
    assert f"{int.from_bytes(key[8:], 'big'):#018x}" in str(error)


def test_a_message_without_a_queue_is_named() -> None:
    core = make_core()
    record = message(b"lost").encode()
    error = damage(core, "messages", message_key(999, 5), record)
    assert "message 0x0000000000000005" in str(error)
    assert "no queue 999" in str(error)


def test_a_message_whose_inside_is_damaged_is_named_when_it_is_read() -> None:
    core = make_core()
    queue = given_queue(core)
    enqueue_message(core, queue, message(b"fine"))
    commit(core)
    key, record = next(iter(core.store.scan("messages")))
    batch = WriteBatch()
    flags = bytes(record[: 26 + 16 + 44]) + b"\xff\xff\xff\xff" + bytes(record[26 + 16 + 48 :])
    batch.put("messages", key, flags)
    store_of(core).commit([batch])
    with pytest.raises(StoreError) as refused:
        bodies(queue)
    assert str(queue.path_name) in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields | {"version": 2},
        lambda fields: {k: v for k, v in fields.items() if k != "identifier"},
        lambda fields: fields | {"name": "bad;name"},
        lambda fields: fields | {"type": "purple"},
        lambda fields: fields | {"parent": 4711},
        lambda fields: fields | {"properties": fields["properties"] | {"security": "00"}},
        lambda fields: fields | {"properties": fields["properties"] | {"colour": 1}},
        lambda fields: [fields],
    ],
)
def test_a_queue_that_cannot_be_read_is_named(change: Any) -> None:
    core = make_core()
    queue = given_queue(core)
    key = queue.number.to_bytes(8, "big")
    record = core.store.get("queues", key)
    assert record is not None
    error = damage(core, "queues", key, json.dumps(change(json.loads(record))).encode())
    assert f"queue {queue.number}" in str(error)


def test_bytes_that_are_no_record_of_a_queue_are_named() -> None:
    assert "queue 99" in str(damage(make_core(), "queues", (99).to_bytes(8, "big"), b"\xff{"))


def test_a_computer_that_got_another_name_still_has_its_queues() -> None:
    core = make_core()
    queue = given_queue(core)
    core.settings.computer_name = "NEWNAME"
    again = restart(core)
    assert str(same(again, queue).path_name) == r"NEWNAME\private$\orders"
    assert same(again, queue).queue_type is QueueType.PRIVATE
