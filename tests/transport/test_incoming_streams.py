"""Incoming transactional streams: what is next, what is durable, what a crash leaves of it."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import StoreError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.queues import delete_queue
from falconmq.manager.storing import enqueue_message
from falconmq.names import PrivateFormatName
from falconmq.store.interface import WriteBatch
from falconmq.transport import incoming_streams
from falconmq.transport.incoming_streams import TABLE, VOLATILE_MAX, IncomingStream, IncomingStreams
from falconmq.transport.settings import TransportSettings
from falconmq.wire.guid import guid_bytes
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.manager.helpers import (
    START_TIME,
    STRANGER,
    bodies,
    commit,
    given_queue,
    make_core,
    message,
    pass_time,
    restart,
    same,
    store_of,
)

S1: Final = (START_TIME << 32) + 1
S2: Final = S1 + 1
DAY: Final = 24 * 3600.0
NAME: Final = r"DIRECT=OS:SALES01\private$\orders"
ADDRESS: Final = "192.0.2.7"


def given_streams(core: QueueManagerCore) -> IncomingStreams:
    """The streams of a queue manager that has just started."""
    streams = IncomingStreams(core, TransportSettings())
    streams.load()
    return streams


def packet(
    sequence: int = S1,
    number: int = 1,
    previous: int = 0,
    *,
    source: UUID = STRANGER,
    destination: str = NAME,
) -> UserMessage:
    found = message(transactional=True, source=source, destination=destination).packet
    found.transaction = header(sequence, number, previous)
    return found


def header(sequence: int, number: int, previous: int) -> TransactionHeader:
    return TransactionHeader(0, sequence, number, previous)


def end_turn(core: QueueManagerCore, streams: IncomingStreams) -> None:
    """Store what the turn has changed; then it may be acknowledged."""
    streams.flush()
    taken = streams.taken()
    commit(core)
    for stream, sequence, number in taken:
        streams.settle(stream, sequence, number)


def receive(streams: IncomingStreams, came: UserMessage, queue: Queue | None) -> bool:
    """What the transport does with a transactional message; whether it is taken."""
    assert came.transaction is not None
    stream = streams.of(came, queue)
    if not streams.is_next(stream, came.transaction):
        streams.reject(stream)
        return False
    streams.accept(stream, came.transaction, reply_address=ADDRESS)
    return True


def records(core: QueueManagerCore) -> list[bytes]:
    return [record for _, record in core.store.scan(TABLE)]


@pytest.mark.requirement("QB-3.1.1.3.1-15", "QB-3.1.1.3.1-17", "QB-3.1.1.3.1-18")
def test_a_new_stream_is_at_sequence_zero_and_number_zero() -> None:
    core = make_core()
    stream = given_streams(core).of(packet(), given_queue(core, transactional=True))
    assert (stream.tx_sequence_id, stream.tx_sequence_number, stream.reject_count) == (0, 0, 0)
    assert (stream.settled_id, stream.settled_number) == (0, 0)


@pytest.mark.requirement("QB-3.1.5.8.6-04", "QB-3.1.5.8.6-05", "QB-3.1.5.8.6-06")
@pytest.mark.parametrize(
    ("before", "came", "is_accepted"),
    [
        ((0, 0), (S1, 1, 0), True),
        ((S1, 1), (S1, 1, 0), False),  # a duplicate
        ((S1, 1), (S1, 3, 2), False),  # 2 is missing
        ((S1, 1), (S1, 3, 1), True),  # 2 expired at the sender
        ((S1, 1), (S1, 3, 0), True),  # and 1 has left its table
        ((S1, 3), (S1, 2, 1), False),  # old
        ((S1, 3), (S2, 1, 0), True),  # a new sequence
        ((S1, 3), (S2, 2, 1), False),  # whose first message is missing
        ((S1, 3), (S2, 1_025, 0), True),  # or was never there
        ((S2, 1), (S1, 4, 3), False),  # the old sequence is over
        ((S2, 1), (S1, 4, 0), False),
        ((0, 0), (S1, 2, 1), False),
        ((S1 + 5, 1), (((START_TIME + 1) << 32) + 1, 1, 0), True),  # the TimeStamp counts most
    ],
)
def test_only_what_follows_the_last_accepted_message_is_accepted(
    before: tuple[int, int], came: tuple[int, int, int], *, is_accepted: bool
) -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    stream = streams.of(packet(), queue)
    stream.tx_sequence_id, stream.tx_sequence_number = before
    assert streams.is_next(stream, header(*came)) is is_accepted


@pytest.mark.requirement("QB-3.1.5.8.6-10", "QB-A33-01")
def test_only_an_accepted_message_moves_the_stream() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    stream = streams.of(packet(), queue)
    assert receive(streams, packet(S1, 1, 0), queue)
    assert (stream.tx_sequence_id, stream.tx_sequence_number) == (S1, 1)
    assert not receive(streams, packet(S1, 7, 6), queue)
    assert not receive(streams, packet(S2, 7, 6), queue)
    assert (stream.tx_sequence_id, stream.tx_sequence_number) == (S1, 1)
    assert receive(streams, packet(S2, 1, 0), queue)
    assert (stream.tx_sequence_id, stream.tx_sequence_number) == (S2, 1)


@pytest.mark.requirement("DM-3.1.1.5-06", "DM-3.1.1.5-07")
@pytest.mark.requirement("QB-3.1.5.8.6-07", "QB-3.1.5.8.6-08", "QB-3.1.5.8.6-09")
def test_rejects_are_counted_until_a_message_is_accepted() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(S1, 1, 0), queue)
    (info,) = queue.incoming_transfers
    stream = streams.of(packet(), queue)
    for count in (1, 2, 3):
        pass_time(core, 10)
        receive(streams, packet(S1, 1, 0), queue)
        assert (stream.reject_count, info.reject_count) == (count, count)
        assert stream.last_access_time == info.last_access_time == START_TIME + 10 * count
    pass_time(core, 1)
    receive(streams, packet(S1, 2, 1), queue)
    assert (stream.reject_count, info.reject_count) == (0, 0)
    assert stream.last_access_time == info.last_access_time == START_TIME + 31


def test_the_reject_count_stops_at_its_32_bits() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    stream = streams.of(packet(), queue)
    stream.reject_count = 0xFFFFFFFF
    streams.reject(stream)
    end_turn(core, streams)
    assert stream.reject_count == 0xFFFFFFFF


@pytest.mark.requirement(
    "DM-3.1.1.2-38",
    "DM-3.1.1.5-02",
    "DM-3.1.1.5-03",
    "DM-3.1.1.5-04",
    "DM-3.1.1.5-05",
)
@pytest.mark.requirement(
    "QB-3.1.5.8.8-09",
    "QB-3.1.5.8.8-10",
    "QB-3.1.5.8.8-11",
    "QB-3.1.5.8.8-12",
    "QB-3.1.5.8.8-13",
    "QB-3.1.5.8.8-14",
    "QB-3.1.5.8.8-16",
    "QB-A50-01",
)
def test_management_sees_each_stream_into_a_queue() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    other = given_queue(core, "other", transactional=True)
    receive(streams, packet(S1, 1, 0), queue)
    (info,) = queue.incoming_transfers
    assert other.incoming_transfers == []
    assert (info.format_name, info.sender) == (NAME, STRANGER)
    assert (info.sequence_id, info.sequence_number) == (S1, 1)
    assert (info.last_access_time, info.reject_count) == (START_TIME, 0)
    # the next message of the stream is found in the same place, one of another sender is not
    receive(streams, packet(S1, 4, 1), queue)
    assert queue.incoming_transfers == [info]
    assert (info.sequence_id, info.sequence_number) == (S1, 4)  # not PreviousTxSequenceNumber
    receive(streams, packet(S2, 9, 0, source=UUID(int=5)), queue)
    assert [(info.sender, info.sequence_id) for info in queue.incoming_transfers] == [
        (STRANGER, S1),
        (UUID(int=5), S2),
    ]


@pytest.mark.requirement("QB-A39-01")
def test_a_stream_is_that_of_a_sender_and_a_name() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    other = given_queue(core, "other", transactional=True)
    stream = streams.of(packet(), queue)
    # the same name without case
    assert streams.of(packet(destination=NAME.replace("SALES01", "sales01")), queue) is stream
    assert streams.of(packet(destination=NAME.replace("orders", "ORDERS")), queue) is stream
    # another sender, queue, or name of the queue
    number = PrivateFormatName(core.identifier, queue.private_queue_number)
    others = [
        streams.of(packet(source=UUID(int=5)), queue),
        streams.of(packet(destination=NAME.replace("orders", "other")), other),
        streams.of(packet(destination=NAME.replace("SALES01", "SALES01.example")), queue),
        streams.of(packet(destination=str(number)), queue),
    ]
    assert len({stream, *others}) == 5
    assert [found.name for found in others[2:]] == [
        r"DIRECT=OS:SALES01.example\private$\orders",
        str(number),
    ]


def test_streams_by_number_and_by_identifier_are_found_again() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    public = packet()
    public.user.destination_queue = guid_bytes(UUID(int=77))
    private = packet()
    private.user.destination_queue = 42
    for came, name in (
        (public, f"PUBLIC={UUID(int=77)}".upper()),
        (private, f"PRIVATE={str(core.identifier).upper()}\\0000002a"),
    ):
        assert streams.find(came) is None
        stream = streams.of(came, queue)
        assert stream.name == name
        assert streams.find(came) is stream
        assert streams.find(came) is stream
        assert came.transaction is not None
        streams.accept(stream, came.transaction, reply_address="")
    end_turn(core, streams)
    again = given_streams(restart(core))
    found = again.find(public), again.find(private)
    assert [stream and stream.tx_sequence_id for stream in found] == [S1, S1]


@pytest.mark.requirement("QB-A33-01")
def test_what_is_accepted_is_settled_only_when_its_turn_is_durable() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    stream = streams.of(packet(), queue)
    # given two turns on their way to the store
    receive(streams, packet(S1, 1, 0), queue)
    receive(streams, packet(S1, 2, 1), queue)
    streams.flush()
    first, (batch, _, _) = streams.taken(), core.take_batch()
    receive(streams, packet(S1, 3, 2), queue)
    streams.flush()
    second = streams.taken()
    assert (stream.settled_id, stream.settled_number) == (0, 0)
    # when the first is durable
    store_of(core).commit([batch])
    assert first == [(stream, S1, 2)]
    streams.settle(*first[0])
    # then what came with it may be acknowledged, and no more
    assert (stream.settled_id, stream.settled_number) == (S1, 2)
    assert stream.tx_sequence_number == 3
    assert second == [(stream, S1, 3)]
    assert streams.taken() == []


@pytest.mark.requirement("QB-3.1.1.3.1-15", "QB-3.1.1.3.1-17", "QB-3.1.1.3.1-18", "QB-A39-01")
def test_a_stream_survives_a_crash() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(S1, 1, 0), queue)
    receive(streams, packet(S1, 2, 1), queue)
    pass_time(core, 5)
    receive(streams, packet(S1, 2, 1), queue)
    end_turn(core, streams)
    # when the power fails
    core = restart(core)
    streams, queue = given_streams(core), same(core, queue)
    # then it is where it was
    stream = streams.find(packet())
    assert stream is not None
    assert (stream.tx_sequence_id, stream.tx_sequence_number) == (S1, 2)
    assert (stream.settled_id, stream.settled_number) == (S1, 2)
    assert (stream.reject_count, stream.reply_address) == (1, ADDRESS)
    assert stream.last_access_time == START_TIME + 5
    (info,) = queue.incoming_transfers
    assert (info.sender, info.format_name, info.sequence_number) == (STRANGER, NAME, 2)
    assert (info.reject_count, info.last_access_time) == (1, START_TIME + 5)
    # and takes what follows, once
    assert not receive(streams, packet(S1, 2, 1), queue)
    assert receive(streams, packet(S1, 3, 2), queue)
    assert queue.incoming_transfers == [info]
    assert info.sequence_number == 3


@pytest.mark.requirement("QB-A33-01")
def test_message_and_stream_are_stored_together_or_not_at_all() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(S1, 1, 0), queue)
    enqueue_message(core, queue, message(b"one"))
    end_turn(core, streams)
    # given a turn whose commit never happens
    receive(streams, packet(S1, 2, 1), queue)
    enqueue_message(core, queue, message(b"two"))
    receive(streams, packet(S1, 1, 0, source=UUID(int=5)), queue)
    streams.flush()
    # when the power fails
    core = restart(core)
    streams, queue = given_streams(core), same(core, queue)
    # then neither message nor state is there, and the message is welcome again
    assert bodies(queue) == [b"one"]
    assert receive(streams, packet(S1, 2, 1), queue)
    assert streams.find(packet(source=UUID(int=5))) is None


def test_after_a_failed_commit_loading_brings_back_what_the_store_has() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(S1, 1, 0), queue)
    end_turn(core, streams)
    receive(streams, packet(S1, 2, 1), queue)
    streams.flush()
    core.take_batch()
    streams.load()
    assert streams.taken() == []
    assert len(queue.incoming_transfers) == 1
    assert queue.incoming_transfers[0].sequence_number == 1
    assert receive(streams, packet(S1, 2, 1), queue)


def test_a_stream_to_a_queue_that_does_not_exist_is_kept_in_memory_only() -> None:
    core = make_core()
    streams = given_streams(core)
    came = packet(destination=r"DIRECT=OS:SALES01\private$\nowhere")
    # given messages that are refused in their order (QB-A55)
    assert receive(streams, came, None)
    assert not receive(streams, came, None)
    # then the turn has something to acknowledge, and nothing to store
    streams.flush()
    assert len(core.batch) == 0
    stream = streams.find(came)
    assert streams.taken() == [(stream, S1, 1)]


def test_a_volatile_stream_becomes_durable_when_its_queue_is_there() -> None:
    core = make_core()
    streams = given_streams(core)
    receive(streams, packet(S1, 1, 0), None)
    end_turn(core, streams)
    queue = given_queue(core, transactional=True)
    streams.of(packet(S1, 2, 1), queue)  # which has no room for it
    end_turn(core, streams)
    assert [info.sequence_number for info in queue.incoming_transfers] == [1]
    stream = given_streams(restart(core)).find(packet())
    assert stream is not None
    assert stream.tx_sequence_number == 1


def test_of_the_volatile_streams_the_one_unused_for_longest_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incoming_streams, "VOLATILE_MAX", 3)
    core = make_core()
    streams = given_streams(core)
    names = [rf"DIRECT=OS:SALES01\private$\nowhere{number}" for number in range(4)]
    for name in (*names[:3], names[0], names[3]):
        receive(streams, packet(destination=name), None)
    known = [streams.find(packet(destination=name)) is not None for name in names]
    assert known == [True, False, True, True]
    assert len(streams._streams) == 3


def test_at_most_a_thousand_streams_lead_nowhere() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(), queue)
    came = packet()
    for number in range(1_500):
        came.user.destination_queue = f"OS:SALES01\\{number}"
        streams.of(came, None)
    assert len(streams._streams) == 1_001
    assert streams.find(packet()) is not None


def test_what_a_deleted_queue_took_does_not_come_into_a_new_one_of_its_name() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    other = given_queue(core, "other", transactional=True)
    elsewhere = packet(destination=NAME.replace("orders", "other"))
    receive(streams, packet(S1, 1, 0), queue)
    receive(streams, elsewhere, other)
    end_turn(core, streams)
    # when the queue is deleted
    delete_queue(core, queue)
    streams.forget_queue(queue)
    end_turn(core, streams)
    # then what the sender repeats does not come into a new queue of that name, not even after a
    # restart
    core = restart(core)
    streams = given_streams(core)
    again = given_queue(core, transactional=True)
    assert not receive(streams, packet(S1, 1, 0), again)
    assert receive(streams, packet(S1, 2, 1), again)
    end_turn(core, streams)
    assert len(records(core)) == 2
    assert len(again.incoming_transfers) == 1
    assert queue.incoming_transfers == []


def test_a_stream_whose_queue_is_gone_is_remembered_over_the_next_start() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(), queue)
    end_turn(core, streams)
    delete_queue(core, queue)
    commit(core)
    core = restart(core)
    streams = given_streams(core)
    end_turn(core, streams)
    found = streams.find(packet())
    assert found is not None
    assert (found.tx_sequence_id, found.queue_number) == (S1, 0)


def test_streams_of_deleted_queues_are_bounded_too() -> None:
    core = make_core()
    streams = given_streams(core)
    for number in range(VOLATILE_MAX + 5):
        queue = given_queue(core, f"q{number}", transactional=True)
        receive(streams, packet(destination=NAME.replace("orders", f"q{number}")), queue)
        delete_queue(core, queue)
        streams.forget_queue(queue)
        end_turn(core, streams)
    assert len(records(core)) == VOLATILE_MAX


def test_a_stream_goes_to_the_new_queue_even_if_nobody_said_that_the_old_one_is_gone() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(S1, 1, 0), queue)
    end_turn(core, streams)
    delete_queue(core, queue)
    again = given_queue(core, transactional=True)
    assert receive(streams, packet(S1, 2, 1), again)
    end_turn(core, streams)
    assert len(records(core)) == 1
    core = restart(core)
    given_streams(core)
    assert [info.sequence_number for info in same(core, again).incoming_transfers] == [2]


def test_a_stream_that_nobody_used_for_ninety_days_is_dropped() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    receive(streams, packet(), queue)
    receive(streams, packet(), queue)
    pass_time(core, 30 * DAY)
    receive(streams, packet(source=UUID(int=5)), queue)
    receive(streams, packet(destination=r"DIRECT=OS:SALES01\private$\nowhere"), None)
    end_turn(core, streams)
    pass_time(core, 60 * DAY)
    streams.clean_up(core.clock.monotonic())
    assert len(streams._streams) == 3
    pass_time(core, 1)
    streams.clean_up(core.clock.monotonic())
    end_turn(core, streams)
    assert streams.find(packet()) is None
    assert [info.sender for info in queue.incoming_transfers] == [UUID(int=5)]
    assert len(records(core)) == 1
    pass_time(core, 30 * DAY)
    streams.clean_up(core.clock.monotonic())
    assert (streams._streams, streams._volatile) == ({}, {})


def test_the_index_of_spellings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming_streams, "SPELLINGS_MAX", 2)
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    stream = streams.of(packet(), queue)
    for name in ("orders", "Orders", "oRders", "orDers", "ordErs"):
        assert streams.find(packet(destination=NAME.replace("orders", name))) is stream
        assert len(streams._spellings) <= 2


def test_a_turn_writes_one_record_for_a_stream_and_none_without_news() -> None:
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    for number in range(1, 100):
        receive(streams, packet(S1, number, number - 1), queue)
    streams.flush()
    assert len(core.batch) == 1
    streams.find(packet())
    streams.flush()
    assert len(core.batch) == 1


@pytest.mark.requirement(
    "QB-3.1.1.6.2-04",
    "QB-3.1.1.6.2-05",
    "QB-3.1.5.8.6-02",
    "QB-3.1.5.8.6-03",
    "QB-3.1.3.2-30",
    "QB-3.1.1.3.1-36",
)
def test_a_steady_flow_puts_the_order_ack_off_for_ten_seconds_at_most() -> None:
    core = make_core()
    pass_time(core, 50)
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    stream, start = streams.of(packet(), queue), core.clock.monotonic()
    # when five messages come within 300 ms
    wanted = [streams.want_order_ack(stream, start + 0.075 * count) for count in range(5)]
    # then one timer is started, and the ack is due 500 ms after the last
    assert wanted == [True, False, False, False, False]
    assert stream.order_ack_due == start + 0.3 + 0.5
    # when it is sent and messages come every 100 ms for a long time
    streams.order_ack_sent(stream, start + 1)
    wanted, dues = [], []
    for count in range(300):
        wanted.append(streams.want_order_ack(stream, start + 1 + 0.1 * count))
        dues.append(stream.order_ack_due - start - 1)
    # then one timer is started again, and the ack is due half a second behind the tenth at most
    assert wanted == [True] + 299 * [False]
    assert dues == sorted(dues)
    assert 10.3 < dues[-1] <= 10.5


GOOD: Final = (
    b"\1"
    + guid_bytes(STRANGER)
    + (40).to_bytes(8, "little")
    + S1.to_bytes(8, "little")
    + (3).to_bytes(4, "little")
    + bytes(12)
    + (4).to_bytes(4, "little")
    + b"nameaddress"
)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        GOOD[:52],
        b"\2" + GOOD[1:],
        GOOD[:49] + b"\4\1" + GOOD[51:],
        GOOD[:53] + b"\xff" + GOOD[54:],
        GOOD + b"\xff",
    ],
)
def test_a_damaged_record_is_an_error_that_names_it(record: bytes) -> None:
    core = make_core()
    batch = WriteBatch()
    batch.put(TABLE, bytes(7) + b"\5", record)
    store_of(core).commit([batch])
    with pytest.raises(StoreError, match=f"record 0000000000000005 of table {TABLE}"):
        given_streams(core)


def test_the_record_that_the_damaged_ones_are_made_of_is_good() -> None:
    core = make_core()
    streams = IncomingStreams(core, TransportSettings())
    stream = streams._read(bytes(8), GOOD)
    assert (stream.queue_number, stream.tx_sequence_number) == (40, 3)
    assert (stream.name, stream.reply_address) == ("name", "address")


_STEPS: Final = st.lists(
    st.sampled_from(["send", "send", "send", "resend", "turn", "turn", "crash", "renew"]),
    max_size=60,
)


@pytest.mark.requirement("QB-A33-01", "QB-3.1.1.6.2-03")
@given(steps=_STEPS)
def test_whatever_happens_each_message_is_in_the_queue_once_and_in_order(steps: list[str]) -> None:
    """A sender that repeats what is not acknowledged, and a receiver that crashes."""
    core = make_core()
    streams, queue = given_streams(core), given_queue(core, transactional=True)
    sequence, numbers, sent = S1, 0, 0
    unacked: list[tuple[int, int]] = []  # number in the sequence, number of all
    stream: IncomingStream | None
    for step in [*steps, "resend", "turn"]:
        if step == "send":
            numbers, sent = numbers + 1, sent + 1
            unacked.append((numbers, sent))
            _deliver(core, streams, queue, sequence, unacked, len(unacked) - 1)
        elif step == "resend":
            for place in range(len(unacked)):
                _deliver(core, streams, queue, sequence, unacked, place)
        elif step == "renew" and not unacked and numbers:
            sequence, numbers = sequence + 1, 0
        elif step == "turn":
            end_turn(core, streams)
            stream = streams.find(packet())
            if stream is not None and stream.settled_id == sequence:
                unacked = [entry for entry in unacked if entry[0] > stream.settled_number]
        elif step == "crash":
            streams.flush()
            core = restart(core)
            streams, queue = given_streams(core), same(core, queue)
    assert bodies(queue) == [b"%d" % number for number in range(1, sent + 1)]


def _deliver(
    core: QueueManagerCore,
    streams: IncomingStreams,
    queue: Queue,
    sequence: int,
    unacked: list[tuple[int, int]],
    place: int,
) -> None:
    number, body = unacked[place]
    previous = unacked[place - 1][0] if place else 0
    if receive(streams, packet(sequence, number, previous), queue):
        enqueue_message(core, queue, message(b"%d" % body))
