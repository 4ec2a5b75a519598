"""Which messages were here already: size, time, crashes, and what it costs the store."""

from __future__ import annotations

import itertools
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.clock import VirtualClock
from falconmq.errors import StoreError
from falconmq.manager.core import QueueManagerCore
from falconmq.store.interface import WriteBatch
from falconmq.transport.history import CHUNKS, TABLE, MessageIdHistory
from falconmq.transport.settings import TransportSettings
from tests.manager.helpers import (
    START_TIME,
    commit,
    make_core,
    pass_time,
    restart,
    store_of,
)

SOURCE: Final = bytes(range(16))
OTHER: Final = bytes(range(1, 17))
HALF_HOUR: Final = 1_800.0


def given_history(core: QueueManagerCore, **settings: Any) -> MessageIdHistory:
    """The table of a queue manager that has just started."""
    history = MessageIdHistory(core, TransportSettings(**settings))
    history.load()
    return history


def end_turn(core: QueueManagerCore, history: MessageIdHistory) -> None:
    history.flush()
    commit(core)


def records(core: QueueManagerCore) -> dict[bytes, bytes]:
    return dict(core.store.scan(TABLE))


@pytest.mark.requirement("QB-3.1.1.3-17")
def test_a_new_queue_manager_remembers_nothing() -> None:
    history = given_history(make_core())
    assert len(history) == 0
    assert not history.is_duplicate(SOURCE, 1)


@pytest.mark.requirement("QB-3.1.5.8.2-05", "QB-3.1.5.8.2-07", "QB-3.1.1.3-19")
def test_a_message_that_came_is_a_duplicate_when_it_comes_again() -> None:
    history = given_history(make_core())
    history.add(SOURCE, 7, durable=True)
    assert history.is_duplicate(SOURCE, 7)
    assert history.is_duplicate(SOURCE, 7)
    assert not history.is_duplicate(SOURCE, 8)


@pytest.mark.requirement("QB-3.1.5.8.1-02")
def test_two_queue_managers_may_use_the_same_number() -> None:
    history = given_history(make_core())
    history.add(SOURCE, 7, durable=False)
    assert not history.is_duplicate(OTHER, 7)


@pytest.mark.requirement("QB-3.1.1.3-16")
def test_the_table_has_ten_thousand_entries_and_no_more() -> None:
    core = make_core()
    history = given_history(core)
    for number in range(10_003):
        history.add(SOURCE, number, durable=number % 2 == 0)
    assert len(history) == 10_000
    end_turn(core, history)
    assert len(history) == 10_000


@pytest.mark.requirement("QB-3.1.5.8.2-06")
def test_in_a_full_table_the_oldest_entry_makes_room() -> None:
    core = make_core()
    history = given_history(core, history_size=3)
    for number in (1, 2, 3):
        history.add(SOURCE, number, durable=True)
        pass_time(core, 1)
    # given that the oldest has come again, and is not the oldest any more
    assert history.is_duplicate(SOURCE, 1)
    # when one more comes
    history.add(SOURCE, 4, durable=True)
    # then the one with the earliest time is gone
    assert len(history) == 3
    assert not history.is_duplicate(SOURCE, 2)
    assert all(history.is_duplicate(SOURCE, number) for number in (1, 3, 4))


def test_the_order_is_that_of_receipt_even_if_the_clock_was_set_back() -> None:
    core = make_core()
    history = given_history(core, history_size=2)
    history.add(SOURCE, 1, durable=False)
    assert isinstance(core.clock, VirtualClock)
    core.clock.jump(-3600)
    history.add(SOURCE, 2, durable=False)
    history.add(SOURCE, 3, durable=False)
    assert not history.is_duplicate(SOURCE, 1)
    assert history.is_duplicate(SOURCE, 2)


def test_a_table_of_size_zero_remembers_nothing() -> None:
    history = given_history(make_core(), history_size=0)
    history.add(SOURCE, 1, durable=True)
    assert len(history) == 0


def test_adding_a_message_twice_makes_one_entry() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)
    end_turn(core, history)
    history.add(SOURCE, 1, durable=True)
    end_turn(core, history)
    assert len(history) == 1
    assert len(records(core)) == 1


@pytest.mark.requirement(
    "QB-3.1.2.8-01", "QB-3.1.2.8-02", "QB-3.1.5.8.2-08", "QB-3.1.6.7-01", "QB-3.1.6.7-02"
)
def test_the_cleanup_timer_drops_old_entries_and_runs_while_entries_remain() -> None:
    core = make_core()
    history = given_history(core)
    # given an empty table: no timer
    assert core.next_deadline() is None
    # when an entry comes, the timer starts; a second entry does not start it again
    history.add(SOURCE, 1, durable=True)
    pass_time(core, 100)
    history.add(SOURCE, 2, durable=True)
    assert core.next_deadline() == HALF_HOUR - 100
    # when it expires, nothing is older than the interval yet
    pass_time(core, HALF_HOUR - 100)
    assert len(history) == 2
    assert core.next_deadline() == HALF_HOUR
    # then at the next time both are
    pass_time(core, HALF_HOUR - 1)
    assert len(history) == 2
    pass_time(core, 1)
    assert len(history) == 0
    # and the timer rests until an entry comes into the empty table
    assert core.next_deadline() is None
    history.add(SOURCE, 3, durable=True)
    assert core.next_deadline() == HALF_HOUR


@pytest.mark.requirement("QB-3.1.2.8-01")
def test_the_interval_of_the_clean_up_can_be_set() -> None:
    core = make_core()
    history = given_history(core, history_cleanup_interval=60)
    history.add(SOURCE, 1, durable=False)
    pass_time(core, 60)
    pass_time(core, 60)
    assert len(history) == 0


@pytest.mark.requirement("QB-3.1.5.8.1-02")
def test_a_duplicate_refreshes_the_time_of_its_entry() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)
    history.add(SOURCE, 2, durable=True)
    end_turn(core, history)
    pass_time(core, 1_000)
    assert history.is_duplicate(SOURCE, 1)
    end_turn(core, history)
    pass_time(core, HALF_HOUR - 999)  # the timer is a second late
    assert len(history) == 1
    # also over a crash: the time in the store is the new one
    end_turn(core, history)
    again = given_history(restart(core))
    assert again.is_duplicate(SOURCE, 1)
    assert not again.is_duplicate(SOURCE, 2)


@pytest.mark.requirement("QB-3.1.5.8.1-02", "QB-3.1.5.8.2-05")
def test_time_stamps_are_seconds_since_1970() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)
    end_turn(core, history)
    (first,) = records(core).values()
    assert first[-4:] == START_TIME.to_bytes(4, "little")
    pass_time(core, 9)
    history.is_duplicate(SOURCE, 1)
    end_turn(core, history)
    (second,) = records(core).values()
    assert second[-4:] == (START_TIME + 9).to_bytes(4, "little")


@pytest.mark.requirement("QB-3.1.1.3-18")
def test_recoverable_messages_are_remembered_over_a_crash_express_ones_are_not() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)
    history.add(SOURCE, 2, durable=False)
    history.add(OTHER, 1, durable=True)
    end_turn(core, history)
    again = given_history(restart(core))
    assert len(again) == 2
    assert again.is_duplicate(SOURCE, 1)
    assert again.is_duplicate(OTHER, 1)
    assert not again.is_duplicate(SOURCE, 2)


@pytest.mark.requirement("QB-3.1.1.3-18")
def test_up_to_ten_thousand_entries_survive_in_their_order() -> None:
    core = make_core()
    history = given_history(core)
    for number in range(10_100):
        history.add(SOURCE, number, durable=True)
        if number % 7 == 0:
            end_turn(core, history)
    end_turn(core, history)
    again = given_history(restart(core))
    assert len(again) == 10_000
    assert not again.is_duplicate(SOURCE, 99)
    # and the oldest is still the first to go
    again.add(SOURCE, 10_100, durable=True)
    assert not again.is_duplicate(SOURCE, 100)
    assert again.is_duplicate(SOURCE, 101)


@pytest.mark.requirement("QB-3.1.3.1-02", "QB-3.1.3.1-03")
def test_at_start_the_cleanup_timer_runs_if_the_table_is_not_empty() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)
    end_turn(core, history)
    core = restart(core)
    pass_time(core, 1_000)
    again = given_history(core)
    assert core.next_deadline() == HALF_HOUR  # from the start, whatever ran before
    pass_time(core, HALF_HOUR)
    assert len(again) == 0


@pytest.mark.requirement("QB-3.1.3.1-02")
def test_loading_again_stops_the_timer_that_ran() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=False)
    pass_time(core, 1_000)
    history.load()
    # when the first timer's moment comes
    history.add(SOURCE, 2, durable=False)
    pass_time(core, 800)
    # then it starts no second timer beside the one that load has started
    assert len(core.timers.monotonic) == 1
    assert core.next_deadline() == 1_000


@pytest.mark.requirement("QB-3.1.3.1-02", "QB-3.1.5.8.2-08")
def test_an_entry_starts_the_timer_after_loading_an_empty_table() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)  # and is never stored
    history.load()
    assert len(history) == 0
    pass_time(core, 1_000)
    history.add(SOURCE, 2, durable=True)
    pass_time(core, 800)
    assert core.next_deadline() == 1_000


def test_a_batch_that_was_not_committed_leaves_no_trace() -> None:
    core = make_core()
    history = given_history(core)
    history.add(SOURCE, 1, durable=True)
    end_turn(core, history)
    history.add(SOURCE, 2, durable=True)
    history.add(SOURCE, 3, durable=False)
    history.flush()
    core.take_batch()  # and its commit fails
    # when memory goes back to what the store has
    history.load()
    # then the peer may send that message again; the express one is still in its queue
    assert history.is_duplicate(SOURCE, 1)
    assert not history.is_duplicate(SOURCE, 2)
    assert history.is_duplicate(SOURCE, 3)
    history.add(SOURCE, 2, durable=True)
    end_turn(core, history)
    assert given_history(restart(core)).is_duplicate(SOURCE, 2)


def test_a_turn_writes_one_record_and_a_turn_without_news_none() -> None:
    core = make_core()
    history = given_history(core)
    for number in range(100):
        history.add(SOURCE, number, durable=True)
        history.add(OTHER, number, durable=False)
    history.flush()
    assert len(core.batch) == 1
    commit(core)
    history.add(OTHER, 1_000, durable=False)
    assert not history.is_duplicate(OTHER, 1_001)
    history.flush()
    assert len(core.batch) == 0


def test_a_chunk_goes_when_all_its_entries_are_gone() -> None:
    core = make_core()
    history = given_history(core, history_size=4)
    for number in range(8):
        history.add(SOURCE, number, durable=True)
        if number % 2:
            end_turn(core, history)
    assert len(records(core)) == 2
    pass_time(core, HALF_HOUR)
    pass_time(core, HALF_HOUR)
    end_turn(core, history)
    assert records(core) == {}


def test_many_small_turns_leave_few_chunks() -> None:
    core = make_core()
    history = given_history(core)
    for number in range(12_000):
        history.add(SOURCE, number, durable=True)
        end_turn(core, history)
        assert len(records(core)) <= 2 * CHUNKS if number % 100 == 0 else True
    assert len(records(core)) <= 2 * CHUNKS
    assert sum(map(len, records(core).values())) < 2 * 10_000 * 24
    again = given_history(restart(core))
    assert len(again) == 10_000
    assert all(again.is_duplicate(SOURCE, number) for number in range(2_000, 12_000))


def test_duplicates_that_come_again_and_again_do_not_fill_the_store() -> None:
    # given a table where one entry of each old chunk is never refreshed
    core = make_core()
    history = given_history(core, history_size=1_000)
    for number in range(1_000):
        history.add(SOURCE, number, durable=True)
    end_turn(core, history)
    # when the others come again in many turns
    for turn in range(900):
        for number in range(turn, 1_000, 3):
            assert history.is_duplicate(SOURCE, number)
        end_turn(core, history)
    # then the chunks stay few
    assert len(records(core)) <= 2 * CHUNKS
    assert len(given_history(restart(core))) == 1_000


@pytest.mark.parametrize(
    ("key", "record"),
    [
        (bytes(7) + b"\1", b"\2" + bytes(24)),
        (bytes(7) + b"\1", b"\1" + bytes(23)),
        (bytes(7) + b"\1", b""),
        (bytes(8), b"\1" + bytes(24)),
        (b"\1", b"\1" + bytes(24)),
    ],
)
def test_a_damaged_chunk_is_an_error_that_names_it(key: bytes, record: bytes) -> None:
    core = make_core()
    batch = WriteBatch()
    batch.put(TABLE, key, record)
    store_of(core).commit([batch])
    with pytest.raises(StoreError, match=f"record {key.hex()} of table {TABLE}"):
        given_history(core)


_STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 12), st.booleans()),
        st.tuples(st.sampled_from(["turn", "crash", "fail", "hour"]), st.just(0), st.just(False)),
    ),
    max_size=60,
)


@given(steps=_STEPS)
def test_the_table_is_that_of_a_simple_model(steps: list[tuple[str, int, bool]]) -> None:
    """The model: lists of (number, durable, time), one in memory and one as last committed."""
    core, size = make_core(), 5
    history = given_history(core, history_size=size)
    memory: dict[int, tuple[bool, float]] = {}
    durable: dict[int, tuple[bool, float]] = {}
    for kind, number, is_durable in steps:
        if kind == "add":
            assert history.is_duplicate(SOURCE, number) == (number in memory)
            if number in memory:
                memory[number] = memory.pop(number)[0], core.clock.time()
            else:
                history.add(SOURCE, number, durable=is_durable)
                memory[number] = is_durable, core.clock.time()
                if len(memory) > size:
                    del memory[next(iter(memory))]
        elif kind == "turn":
            end_turn(core, history)
            durable = {number: entry for number, entry in memory.items() if entry[0]}
        elif kind == "hour":
            pass_time(core, 2 * HALF_HOUR)
            pass_time(core, 0.5)
            history.clean_up(core.clock.monotonic())
            limit = core.clock.time() - HALF_HOUR
            memory = {number: entry for number, entry in memory.items() if entry[1] >= limit}
        elif kind == "crash":
            core = restart(core)
            history = given_history(core, history_size=size)
            # What left the table without leaving its chunk may be back: it was seen, after all.
            memory = _entries(history)
            assert set(durable) <= set(memory)
        else:
            history.flush()
            core.take_batch()
            history.load()
            before, memory = memory, _entries(history)
            assert all(number in before or entry[0] for number, entry in memory.items())
        assert len(history) == len(memory)
        assert list(_entries(history)) == list(memory)


def _entries(history: MessageIdHistory) -> dict[int, tuple[bool, float]]:
    return {
        int.from_bytes(key[16:], "little"): (chunk != 0, float(time))
        for key, (time, chunk) in history._entries.items()
    }


def test_chunks_in_memory_and_in_the_store_agree() -> None:
    core = make_core()
    history = given_history(core, history_size=300)
    numbers = itertools.count()
    for turn in range(3_000):
        history.add(SOURCE, next(numbers), durable=turn % 5 != 0)
        if turn % 3 == 0:
            history.is_duplicate(SOURCE, max(0, turn - 50))
        end_turn(core, history)
        assert sorted(history._live) == [int.from_bytes(key, "big") for key in records(core)]
