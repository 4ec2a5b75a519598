"""Outgoing transactional streams: numbers, order acks, resend intervals, crashes."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.clock import VirtualClock
from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingTransferInfo
from falconmq.names import DirectFormatName, PrivateFormatName, PublicFormatName, SingleFormatName
from falconmq.store.interface import WriteBatch
from falconmq.transport.outgoing_streams import TABLE, OutgoingStream, OutgoingStreams
from falconmq.transport.settings import TransportSettings
from falconmq.wire.sequence_info import SequenceInfo
from falconmq.wire.tx_sequence_id import tx_sequence_id
from tests.manager.helpers import (
    START_TIME,
    STRANGER,
    commit,
    make_core,
    pass_time,
    restart,
    store_of,
)

BERLIN: Final = DirectFormatName.from_wire(r"OS:berlin\private$\orders")
ROME: Final = PrivateFormatName(STRANGER, 9)
MINUTE: Final = 60.0


def given_streams(core: QueueManagerCore, **settings: Any) -> OutgoingStreams:
    """The streams of a queue manager that has just started."""
    streams = OutgoingStreams(core, TransportSettings(**settings))
    streams.load()
    return streams


def end_turn(core: QueueManagerCore, streams: OutgoingStreams) -> None:
    streams.flush()
    commit(core)


def give(streams: OutgoingStreams, stream: OutgoingStream, count: int) -> list[int]:
    """The numbers of the next messages."""
    return [streams.next(stream)[1] for _ in range(count)]


@pytest.mark.requirement("QB-3.1.1.3.1-13", "QB-3.1.1.3.1-16")
def test_a_stream_begins_with_ordinal_one_the_time_of_now_and_number_one() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    assert streams.next(stream) == (tx_sequence_id(1, START_TIME), 1)
    assert streams.next(stream) == (tx_sequence_id(1, START_TIME), 2)


def test_a_destination_has_one_stream_however_it_is_spelt() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    assert streams.of(DirectFormatName.from_wire(r"os:BERLIN\PRIVATE$\Orders")) is stream
    assert streams.of(ROME) is not stream


@pytest.mark.requirement("QB-3.1.1.3.1-12", "QB-3.1.1.3.1-13")
def test_every_new_stream_has_a_later_time_stamp_than_all_before() -> None:
    # given a clock that is set back an hour after the first stream
    core = make_core()
    streams = given_streams(core)
    first = streams.of(BERLIN).tx_sequence_id
    end_turn(core, streams)
    assert isinstance(core.clock, VirtualClock)
    core.clock.jump(-3600)
    # when others begin, before and after a restart
    second = streams.of(ROME).tx_sequence_id
    end_turn(core, streams)
    third = given_streams(restart(core)).of(PublicFormatName(STRANGER)).tx_sequence_id
    # then each identifier is greater
    assert first < second < third


@pytest.mark.requirement(
    "QB-3.1.3.2-15",
    "QB-3.1.3.2-16",
    "QB-3.1.3.2-17",
    "QB-3.1.3.2-18",
    "QB-3.1.3.2-19",
    "QB-3.1.3.2-20",
)
def test_a_new_stream_has_no_ack_and_the_first_interval() -> None:
    core = make_core()
    pass_time(core, 77)
    streams = given_streams(core)
    stream = streams.of(BERLIN)
    assert stream.acked_number == 0
    assert stream.time_of_last_ack == core.clock.monotonic()
    assert stream.last_ack_count == 0
    assert stream.resend_interval_index == 0
    assert stream.resend_interval == 30
    assert stream.resend_time == 0


def test_an_order_ack_finds_the_stream_by_its_sequence() -> None:
    streams = given_streams(make_core())
    berlin, rome = streams.of(BERLIN), streams.of(ROME)
    assert streams.find(berlin.tx_sequence_id) == [berlin]
    assert streams.find(rome.tx_sequence_id) == [rome]
    assert streams.find(tx_sequence_id(9, 9)) == []
    # an older sequence is nobody's
    old = berlin.tx_sequence_id
    streams.next(berlin)
    streams.renew(berlin)
    assert streams.find(old) == []
    assert streams.find(berlin.tx_sequence_id) == [berlin]


@pytest.mark.requirement("QB-3.1.5.6-02", "QB-3.1.5.6-04")
def test_an_order_ack_is_new_only_if_it_says_more_than_those_before() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    give(streams, stream, 5)
    assert streams.acknowledge(stream, 3, 10.0)
    assert (stream.acked_number, stream.time_of_last_ack) == (3, 10.0)
    assert not streams.acknowledge(stream, 2, 11.0)
    assert not streams.acknowledge(stream, 3, 12.0)
    assert (stream.acked_number, stream.time_of_last_ack) == (3, 12.0)
    assert streams.acknowledge(stream, 5, 13.0)
    assert stream.acked_number == 5


@pytest.mark.requirement("QB-3.1.5.6-07", "QB-3.1.1.3.1.1-02")
def test_the_ack_count_says_how_often_the_last_order_ack_came() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    give(streams, stream, 5)
    counts = []
    for number in (3, 3, 3, 4, 4):
        streams.acknowledge(stream, number, 1.0)
        counts.append(stream.last_ack_count)
    assert counts == [1, 2, 3, 1, 2]


@pytest.mark.parametrize("number", [0, 6, 0xFFFFFFFF])
def test_an_order_ack_for_a_number_that_was_never_given_changes_nothing(number: int) -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    give(streams, stream, 5)
    assert not streams.acknowledge(stream, number, 9.0)
    assert (stream.acked_number, stream.last_ack_count, stream.time_of_last_ack) == (0, 0, 0.0)


@pytest.mark.requirement("QB-3.1.5.6-10", "QB-3.1.1.5-03", "QB-3.1.1.5-04")
def test_when_all_is_acknowledged_the_next_sequence_begins_with_number_one() -> None:
    core = make_core()
    streams = given_streams(core)
    stream = streams.of(BERLIN)
    give(streams, stream, 3)
    streams.acknowledge(stream, 3, 1.0)
    streams.renew(stream)
    assert streams.next(stream) == (tx_sequence_id(2, START_TIME), 1)
    # and an ack of the new one counts, though its number is smaller
    assert streams.acknowledge(stream, 1, 2.0)
    # a sequence without a message is not given up for another
    streams.renew(stream)
    streams.renew(stream)
    assert stream.tx_sequence_id == tx_sequence_id(3, START_TIME)


@pytest.mark.requirement("QB-3.1.1.3.1-12")
def test_behind_the_last_ordinal_the_time_stamp_grows() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    stream.tx_sequence_id = tx_sequence_id(0xFFFFFFFF, START_TIME)
    streams._by_sequence[stream.tx_sequence_id] = [stream]
    streams.next(stream)
    streams.renew(stream)
    assert stream.tx_sequence_id == tx_sequence_id(1, START_TIME + 1)  # Ordinal 0 is no sequence
    # and no later stream begins with that time stamp
    assert streams.of(ROME).tx_sequence_id == tx_sequence_id(1, START_TIME + 2)


def test_streams_that_share_an_identifier_are_all_found() -> None:
    streams = given_streams(make_core())
    berlin, rome = streams.of(BERLIN), streams.of(ROME)
    rome.tx_sequence_id = berlin.tx_sequence_id
    streams._by_sequence[berlin.tx_sequence_id] = [berlin, rome]
    shared = berlin.tx_sequence_id
    assert streams.find(shared) == [berlin, rome]
    streams.next(berlin)
    streams.renew(berlin)
    assert streams.find(shared) == [rome]


def test_a_sequence_that_is_used_up_refuses_until_all_is_acknowledged() -> None:
    core = make_core()
    streams = given_streams(core)
    stream = streams.of(BERLIN)
    stream.next_number = 0xFFFFFFFF
    assert streams.next(stream) == (stream.tx_sequence_id, 0xFFFFFFFF)
    with pytest.raises(ResourceError, match=r"OS:berlin.* no numbers left") as caught:
        streams.next(stream)
    assert caught.value.status is MqStatus.INSUFFICIENT_RESOURCES
    end_turn(core, streams)
    # so it is after a crash
    streams = given_streams(restart(core))
    stream = streams.of(BERLIN)
    with pytest.raises(ResourceError):
        streams.next(stream)
    assert streams.acknowledge(stream, 0xFFFFFFFF, 1.0)
    streams.renew(stream)
    assert streams.next(stream)[1] == 1


@pytest.mark.requirement(
    "QB-3.1.3.1-01",
    "QB-3.1.1.3-15",
    "QB-3.1.2.6-01",
    "QB-3.1.2.6-02",
)
def test_the_waits_for_an_order_ack_grow_from_half_a_minute_to_six_hours() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    now = 100.0
    waits = [streams.started(stream, now)]
    for _ in range(11):
        assert stream.resend_time == now + waits[-1]
        now += waits[-1]
        waits.append(streams.resend(stream, now))
    half, five, thirty = 0.5 * MINUTE, 5 * MINUTE, 30 * MINUTE
    assert waits == [half] * 3 + [five] * 3 + [thirty] * 3 + [360 * MINUTE] * 3
    assert stream.resend_interval_index == 9


@pytest.mark.requirement("QB-3.1.3.1-01", "QB-3.1.1.3-15")
def test_the_waits_can_be_set() -> None:
    streams = given_streams(
        make_core(), resend_short=1, resend_medium=2, resend_long=3, resend_final=4
    )
    stream = streams.of(BERLIN)
    waits = [streams.started(stream, 0.0), *(streams.resend(stream, 0.0) for _ in range(10))]
    assert waits == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4]


@pytest.mark.requirement("QB-3.1.5.6-06")
def test_progress_brings_the_first_wait_back_and_a_repeated_ack_does_not() -> None:
    streams = given_streams(make_core())
    stream = streams.of(BERLIN)
    give(streams, stream, 2)
    streams.acknowledge(stream, 1, 0.0)
    for _ in range(4):
        streams.resend(stream, 0.0)
    streams.acknowledge(stream, 1, 1.0)
    assert streams.started(stream, 1.0) == 5 * MINUTE
    streams.acknowledge(stream, 2, 2.0)
    assert streams.started(stream, 2.0) == 0.5 * MINUTE
    assert stream.resend_interval_index == 0


@pytest.mark.requirement(
    "DM-3.1.1.4-02",
    "DM-3.1.1.4-06",
    "DM-3.1.1.4-07",
    "DM-3.1.1.4-08",
    "DM-3.1.1.4-09",
    "DM-3.1.1.4-10",
    "DM-3.1.1.4-11",
    "DM-3.1.1.4-12",
    "DM-3.1.1.4-14",
    "DM-3.1.1.4-15",
    "QB-3.1.1.3.1.1-01",
    "QB-3.1.1.3.1.1-05",
    "QB-3.1.1.3.1.1-06",
)
@pytest.mark.requirement(
    "QB-3.1.5.6-11",
    "QB-3.1.5.6-12",
    "QB-3.1.5.6-13",
    "QB-3.1.5.6-14",
    "QB-3.1.5.6-15",
    "QB-3.1.5.6-16",
    "QB-3.1.5.6-17",
    "QB-3.1.5.6-18",
    "QB-3.1.5.6-19",
    "QB-3.1.5.6-20",
)
def test_management_sees_how_far_a_stream_is() -> None:
    # given a stream of six: two acknowledged, number 4 expired, and four timers ran out since
    core = make_core()
    streams, info = given_streams(core), OutgoingTransferInfo()
    stream = streams.of(BERLIN)
    give(streams, stream, 6)
    pass_time(core, 10)
    streams.acknowledge(stream, 2, core.clock.monotonic())
    pass_time(core, 5)
    streams.acknowledge(stream, 2, core.clock.monotonic())
    for _ in range(4):
        streams.resend(stream, core.clock.monotonic())
    # when it is described
    pass_time(core, 1)
    streams.describe(stream, info, unacked=[(3, 2), (5, 3), (6, 5)], unread=7)
    # then everything is there, times as dates
    sequence = stream.tx_sequence_id
    assert info.last_ack_time == START_TIME + 15
    assert info.last_ack_count == 2
    assert info.no_ack_count == 3
    assert info.resend_interval_seconds == 300
    assert info.first_non_ack == SequenceInfo(sequence, 3, 2)
    assert info.last_non_ack == SequenceInfo(sequence, 6, 5)
    assert info.last_ack == SequenceInfo(sequence, 2, 1)
    assert info.next_sequence == SequenceInfo(sequence, 7, 6)
    assert info.no_read_count == 7
    assert info.resend_count == 4
    assert info.resend_time == START_TIME + 15 + 300


def test_a_stream_without_messages_is_described_as_such() -> None:
    core = make_core(clock=VirtualClock(3_000_000_000.0))  # in 2065
    streams, info = given_streams(core), OutgoingTransferInfo()
    streams.describe(streams.of(BERLIN), info, unacked=[], unread=0)
    assert (info.first_non_ack, info.last_non_ack, info.no_ack_count) == (None, None, 0)
    assert info.resend_time == 0
    assert info.next_sequence is not None
    assert info.next_sequence.seq_id < 0  # the structure of the specification has a sign
    assert info.next_sequence.encode()[:8] == tx_sequence_id(1, 3_000_000_000).to_bytes(8, "little")


@pytest.mark.requirement("QB-3.1.1.3.1-14", "QB-3.1.1.3.1-16", "QB-A39-01")
def test_a_stream_survives_a_crash_and_no_number_is_given_twice() -> None:
    core = make_core()
    streams = given_streams(core)
    stream = streams.of(BERLIN)
    before = give(streams, stream, 5)
    end_turn(core, streams)
    streams.acknowledge(stream, 4, 1.0)
    end_turn(core, streams)
    before += give(streams, stream, 7)  # these turns write nothing about the stream
    streams.flush()
    assert len(core.batch) == 0
    sequence = stream.tx_sequence_id
    # when the power fails
    streams = given_streams(restart(core))
    # then the stream goes on in its sequence behind all numbers that may have been used
    stream = streams.of(BERLIN)
    assert streams.next(stream)[0] == sequence
    assert stream.acked_number == 4
    assert stream.next_number > max(before) + 1


@pytest.mark.requirement("QB-3.1.1.3.1-14", "QB-3.1.5.6-10")
def test_a_renewed_sequence_survives_a_crash() -> None:
    core = make_core()
    streams = given_streams(core)
    stream = streams.of(BERLIN)
    give(streams, stream, 5)
    end_turn(core, streams)
    streams.renew(stream)
    end_turn(core, streams)
    streams = given_streams(restart(core))
    assert streams.next(streams.of(BERLIN)) == (tx_sequence_id(2, START_TIME), 1)


@pytest.mark.requirement("QB-3.1.1.3.1-16")
def test_no_number_is_given_twice_however_many_were_given() -> None:
    core = make_core()
    streams = given_streams(core)
    for _ in range(3):
        give(streams, streams.of(BERLIN), 1_000)
        end_turn(core, streams)
    streams = given_streams(restart(core))
    assert streams.next(streams.of(BERLIN))[1] > 3_000


def test_after_an_orderly_stop_no_number_is_left_out() -> None:
    core = make_core()
    streams = given_streams(core)
    give(streams, streams.of(BERLIN), 5)
    streams.give_back()
    commit(core)
    core = restart(core)
    streams = given_streams(core)
    assert give(streams, streams.of(BERLIN), 2) == [6, 7]
    end_turn(core, streams)
    streams = given_streams(restart(core))
    assert streams.next(streams.of(BERLIN))[1] > 7


def test_a_batch_that_was_not_committed_leaves_no_trace() -> None:
    core = make_core()
    streams = given_streams(core)
    berlin = streams.of(BERLIN)
    give(streams, berlin, 5)
    end_turn(core, streams)
    sequence = berlin.tx_sequence_id
    # given a turn that renews one stream and begins another, and cannot be stored
    streams.renew(berlin)
    rome = streams.of(ROME).tx_sequence_id
    streams.flush()
    core.take_batch()
    streams.load()
    # then the first is where it was, and the second never began
    assert streams.of(BERLIN).tx_sequence_id == sequence
    assert streams.find(rome) == []
    # and what follows is stored under keys of its own
    streams.of(ROME)
    streams.of(PublicFormatName(STRANGER))
    end_turn(core, streams)
    assert len(list(core.store.scan(TABLE))) == 3


@pytest.mark.parametrize(
    "destination",
    [
        BERLIN,
        ROME,
        PublicFormatName(STRANGER),
        DirectFormatName.from_wire("no name \ud800 at all"),
        DirectFormatName.from_wire("OS:Berlin\\" + "x" * 600),
    ],
)
def test_every_destination_is_found_again(destination: SingleFormatName) -> None:
    core = make_core()
    streams = given_streams(core)
    sequence = streams.of(destination).tx_sequence_id
    end_turn(core, streams)
    (found,) = given_streams(restart(core)).find(sequence)
    assert str(found.destination) == str(destination)


def test_a_turn_writes_one_record_for_a_stream_and_none_without_news() -> None:
    core = make_core()
    streams = given_streams(core)
    stream = streams.of(BERLIN)
    give(streams, stream, 3_000)
    streams.acknowledge(stream, 10, 1.0)
    streams.flush()
    assert len(core.batch) == 1
    streams.acknowledge(stream, 10, 2.0)
    streams.flush()
    assert len(core.batch) == 1


GOOD: Final = b"\1" + (1).to_bytes(8, "little") + (9).to_bytes(8, "little") + bytes(8)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        GOOD,
        b"\2" + GOOD[1:] + b"PUBLIC=",
        GOOD + b"PUBLIC=nonsense",
        GOOD + b"DIRECT=\xff",
        GOOD + f"{ROME},{ROME}".encode(),
        GOOD[:1] + bytes(8) + GOOD[9:] + str(ROME).encode(),
        GOOD[:17] + (9).to_bytes(8, "little") + str(ROME).encode(),
        GOOD[:9] + (2**32 + 1).to_bytes(8, "little") + bytes(8) + str(ROME).encode(),
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
    batch = WriteBatch()
    batch.put(TABLE, bytes(7) + b"\5", GOOD + str(ROME).encode())
    store_of(core).commit([batch])
    assert given_streams(core).of(ROME).next_number == 9


_STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("next"), st.integers(1, 1_500)),
        st.tuples(st.sampled_from(["turn", "crash", "fail", "renew", "stop"]), st.just(0)),
    ),
    max_size=40,
)


@given(steps=_STEPS)
def test_whatever_happens_the_numbers_of_durable_messages_only_grow(
    steps: list[tuple[str, int]],
) -> None:
    core = make_core()
    streams = given_streams(core)
    durable: list[tuple[int, int]] = []  # what peers may have seen
    pending: list[tuple[int, int]] = []
    for kind, count in steps:
        stream = streams.of(BERLIN)
        if kind == "next":
            pending += [streams.next(stream) for _ in range(count)]
        elif kind == "renew":
            streams.renew(stream)
        elif kind in ("turn", "stop"):
            if kind == "stop":
                streams.give_back()
            end_turn(core, streams)
            durable, pending = durable + pending, []
        elif kind == "crash":
            core = restart(core)
            streams = given_streams(core)
            pending = []
        else:
            streams.flush()
            core.take_batch()
            streams.load()
            pending = []
    assert durable == sorted(set(durable))
