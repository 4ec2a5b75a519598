"""The list of a queue's places against a plain dictionary of them."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from falconmq.manager import positions as positions_module
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue, Transaction
from falconmq.manager.positions import END, START, LookupIds, MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.removing import remove_position
from falconmq.manager.states import PositionState
from falconmq.manager.storing import enqueue_message
from tests.manager.helpers import bodies, commit, given_queue, make_core, message
from tests.strategies.queues import lookup_ids

AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED


@pytest.fixture
def core() -> QueueManagerCore:
    return make_core()


@pytest.fixture
def queue(core: QueueManagerCore) -> Queue:
    return given_queue(core)


def place(queue: Queue, lookup_id: int, **properties: Any) -> MessagePosition:
    """An express message, linked and available."""
    stored = message(recoverable=False, **properties)
    position = MessagePosition(queue, lookup_id, stored)
    queue.positions.link(position)
    queue.positions.release(position)
    return position


# The sorted set


@given(st.lists(lookup_ids), st.lists(st.one_of(lookup_ids, st.sampled_from((START, END)))))
@settings(max_examples=300)
def test_lookup_ids_behave_like_a_sorted_set(numbers: list[int], probes: list[int]) -> None:
    # given chunks so small that a few numbers split them
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions_module, "_CHUNK", 3)
        found, expected = LookupIds(), set[int]()
        for number in numbers:
            # when a number comes, or comes again and leaves
            if number in expected:
                found.remove(number)
            else:
                found.add(number)
            expected ^= {number}
            # then all questions have the answers of a plain set
            assert list(found) == sorted(expected)
            assert len(found) == len(expected)
        for probe in [*probes, *numbers]:
            assert (probe in found) == (probe in expected)
            assert found.after(probe) == min((n for n in expected if n > probe), default=None)
            assert found.before(probe) == max((n for n in expected if n < probe), default=None)


def test_a_number_that_is_not_there_cannot_be_removed() -> None:
    numbers = LookupIds()
    with pytest.raises(ValueError, match="7 is not in the list"):
        numbers.remove(7)
    numbers.add(5)
    numbers.add(9)
    with pytest.raises(ValueError, match="7 is not in the list"):
        numbers.remove(7)
    with pytest.raises(ValueError, match="11 is not in the list"):
        numbers.remove(11)


def test_a_full_queue_of_real_size_keeps_its_order() -> None:
    # given 5000 numbers in two bands, so that the first band grows in the middle
    numbers = LookupIds()
    for number in range(2500):
        numbers.add(7 << 56 | number)
        numbers.add(4 << 56 | number)
    expected = [band << 56 | number for band in (4, 7) for number in range(2500)]
    assert list(numbers) == expected
    # when the readers take the first half
    for number in expected[:2500]:
        assert numbers.after(START) == number
        numbers.remove(number)
    # then the rest is there, in order
    assert list(numbers) == expected[2500:]
    assert numbers.before(END) == expected[-1]


# The places


@pytest.mark.requirement("DM-3.1.1.11-01")
def test_a_place_walks_through_its_four_states(queue: Queue) -> None:
    # given a place
    position = place(queue, 1)
    states = [position.state]
    # when it is locked, released and taken out
    queue.positions.hold(position)
    states.append(position.state)
    queue.positions.release(position)
    states.append(position.state)
    queue.positions.unlink(position)
    # then it says so; the fourth state is the purge's to set
    assert [*states, position.state] == [AVAILABLE, LOCKED, AVAILABLE, PositionState.DELETED]
    assert {state.name for state in PositionState} == {
        "AVAILABLE",
        "LOCKED",
        "DELETED",
        "PURGE_PENDING",
    }


@pytest.mark.requirement("DM-3.1.1.11-05", "DM-3.1.1.11-09")
def test_a_place_knows_its_message_and_its_queue(core: QueueManagerCore, queue: Queue) -> None:
    # given a message in a queue, in memory first and then in the store
    stored = message(b"a")
    enqueue_message(core, queue, stored)
    (lookup_id,) = queue.positions.available
    fresh = queue.positions.find(lookup_id)
    assert fresh is not None
    assert fresh.message is stored
    assert fresh.queue is queue
    commit(core)
    # when it is looked up again
    again = queue.positions.find(lookup_id)
    # then it is another object with the same message of the same queue
    assert again is not None
    assert again is not fresh
    assert again.queue is queue
    assert again.message.encode() == stored.encode()


@pytest.mark.requirement("DM-3.1.1.11-07", "DM-3.1.1.11-08")
def test_places_are_linked_in_both_directions(queue: Queue) -> None:
    # given three places
    for lookup_id in (20, 10, 30):
        place(queue, lookup_id)
    places = queue.positions
    # then each has its neighbours, and behind the ends there is nothing
    assert [places.after(i, peek=False) for i in (START, 10, 20, 30)] == [10, 20, 30, None]
    assert [places.before(i, peek=False) for i in (END, 30, 20, 10)] == [30, 20, 10, None]


@pytest.mark.requirement("DM-3.1.1.11-11")
def test_a_deleted_place_still_has_neighbours(queue: Queue) -> None:
    # given three places, the middle one deleted
    _, middle, _ = [place(queue, lookup_id) for lookup_id in (10, 20, 30)]
    queue.positions.unlink(middle)
    # then whoever stands there finds the next and the previous one
    assert queue.positions.after(20, peek=False) == 30
    assert queue.positions.before(20, peek=False) == 10


@pytest.mark.requirement("DM-3.1.1.11-10")
def test_a_place_that_is_held_stays_in_memory_until_it_is_let_go(
    core: QueueManagerCore, queue: Queue
) -> None:
    # given a stored message that somebody holds
    enqueue_message(core, queue, message(b"a"))
    (lookup_id,) = queue.positions.available
    position = queue.positions.find(lookup_id)
    assert position is not None
    queue.positions.hold(position)
    # when it becomes durable
    commit(core)
    # then everybody still sees the very object that the holder has
    assert queue.positions.find(lookup_id) is position
    assert list(queue.positions.resident()) == [position]
    # and once it is let go, it need not be in memory
    queue.positions.release(position)
    assert list(queue.positions.resident()) == []
    assert bodies(queue) == [b"a"]


def test_an_express_message_is_never_asked_of_the_store(
    core: QueueManagerCore, queue: Queue
) -> None:
    # given an express message, committed as far as it can be
    enqueue_message(core, queue, message(b"a", recoverable=False))
    commit(core)
    # then it is read from memory, after a lock as well
    (lookup_id,) = queue.positions.available
    position = queue.positions.find(lookup_id)
    assert position is not None
    queue.positions.hold(position)
    queue.positions.release(position)
    assert queue.positions.find(lookup_id) is position


def test_a_message_that_waits_for_its_senders_commit_is_not_shown(queue: Queue) -> None:
    # given two messages that may be peeked at while locked: one new, one that a reader holds
    stored = message(recoverable=False, allow_peek_when_locked=True)
    new = MessagePosition(queue, 5, stored)
    queue.positions.link(new)
    read = place(queue, 9, allow_peek_when_locked=True)
    queue.positions.hold(read)
    # then a peek sees the second one only
    assert queue.positions.after(START, peek=True) == 9
    assert not queue.positions.may_peek(new)
    assert queue.positions.may_peek(read)
    # and one that is put back as its reader held it is shown as before
    queue.positions.unlink(read)
    stored = message(recoverable=False, allow_peek_when_locked=True)
    stored.arrival_number = 7
    queue.positions.link(MessagePosition(queue, 8, stored))
    assert queue.positions.after(START, peek=True) == 8


def test_a_purged_message_is_not_shown_to_peekers(queue: Queue) -> None:
    # given held messages that may be peeked at, the outer two purged
    held = [place(queue, i, allow_peek_when_locked=True) for i in (10, 20, 30)]
    for position in held:
        queue.positions.hold(position)
    for position in (held[0], held[2]):
        position.state = PositionState.PURGE_PENDING
    # then only the one between them is seen, from either end
    assert queue.positions.after(START, peek=True) == 20
    assert queue.positions.after(20, peek=True) is None
    assert queue.positions.before(END, peek=True) == 20
    assert queue.positions.before(20, peek=True) is None
    assert not queue.positions.may_peek(held[0])


def test_a_peek_takes_the_nearer_of_a_free_and_a_locked_place(queue: Queue) -> None:
    # given free places and locked ones that may be peeked at, in turn
    places = [place(queue, lookup_id, allow_peek_when_locked=True) for lookup_id in range(1, 7)]
    for position in places[::2]:
        queue.positions.hold(position)
    # then a peek meets every one of them, both ways, and a receive every second
    order = [START, 1, 2, 3, 4, 5, 6]
    forward = [queue.positions.after(lookup_id, peek=True) for lookup_id in order]
    assert forward == [1, 2, 3, 4, 5, 6, None]
    backward = [queue.positions.before(lookup_id, peek=True) for lookup_id in (END, *order[::-1])]
    assert backward == [6, 5, 4, 3, 2, 1, None, None]
    received = [queue.positions.after(lookup_id, peek=False) for lookup_id in order]
    assert received == [2, 2, 4, 4, 6, 6, None]


def test_a_place_that_is_let_go_belongs_to_no_transaction(queue: Queue) -> None:
    # given a place that a transaction holds
    position = place(queue, 1)
    queue.positions.hold(position)
    position.transaction = Transaction(UUID(int=1))
    # when it is let go
    queue.positions.release(position)
    # then nobody thinks that the transaction still has it
    assert position.transaction is None


def test_an_old_place_that_becomes_durable_leaves_its_successor_alone(queue: Queue) -> None:
    # given a message that left while it was being stored, and came back to the same number
    old = place(queue, 1)
    queue.positions.unlink(old)
    new = place(queue, 1)
    # when the batch of the old place is durable
    queue.positions.settle(old)
    # then the new one is still in memory
    assert queue.positions.find(1) is new


def test_a_removed_message_is_gone_for_everybody(core: QueueManagerCore, queue: Queue) -> None:
    # given a stored message
    enqueue_message(core, queue, message(b"a"))
    commit(core)
    (lookup_id,) = queue.positions.available
    position = queue.positions.find(lookup_id)
    assert position is not None
    # when it is removed
    remove_position(core, position)
    # then nothing of it is left, and settling the old batch again changes nothing
    queue.positions.settle(position)
    assert queue.positions.find(lookup_id) is None
    assert lookup_id not in queue.positions
    assert len(queue.positions) == queue.positions.total_bytes == 0


# All of it against a model


class PositionModel(RuleBasedStateMachine):
    """Places come, are held, let go, purged and removed; a dictionary says what must be true."""

    places = Bundle("places")

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(positions_module, "_CHUNK", 3)
        self.store: dict[int, StoredMessage] = {}
        core = make_core()
        self.queue = given_queue(core)
        self.list = positions_module.PositionList(self.queue, lambda _, id, __: self.store[id])
        self.model: dict[int, tuple[PositionState, bool]] = {}  # state, shown though locked
        self.sizes: dict[int, int] = {}
        self.held: dict[int, MessagePosition] = {}
        self.fresh: dict[int, MessagePosition] = {}  # not in the store

    def teardown(self) -> None:
        self.patch.undo()

    @rule(target=places, lookup_id=lookup_ids, peek=st.booleans(), stored=st.booleans())
    def arrive(self, lookup_id: int, peek: bool, stored: bool) -> int:
        if lookup_id in self.model:
            return lookup_id
        record = message(b"x" * (lookup_id & 7), recoverable=stored, allow_peek_when_locked=peek)
        position = MessagePosition(self.queue, lookup_id, record)
        self.list.link(position)
        assert self.list.find(lookup_id) is position
        assert self.list.after(lookup_id - 1, peek=True) != lookup_id
        self.list.release(position)
        self.fresh[lookup_id] = position
        self.model[lookup_id] = AVAILABLE, peek
        self.sizes[lookup_id] = record.size
        return lookup_id

    @rule(target=places, lookup_id=lookup_ids, peek=st.booleans())
    def restore(self, lookup_id: int, peek: bool) -> int:
        if lookup_id not in self.model:
            record = message(b"stored", allow_peek_when_locked=peek)
            self.store[lookup_id] = record
            self.list.restore(lookup_id, record.size)
            self.model[lookup_id] = AVAILABLE, peek
            self.sizes[lookup_id] = record.size
        return lookup_id

    @rule(lookup_id=places)
    def settle(self, lookup_id: int) -> None:
        position = self.fresh.get(lookup_id)
        if position is not None and position.message.is_recoverable:
            del self.fresh[lookup_id]
            self.store[lookup_id] = position.message
            position.is_written = True
            self.list.settle(position)

    @rule(lookup_id=places)
    def hold(self, lookup_id: int) -> None:
        if self._is(lookup_id, AVAILABLE):
            position = self.list.find(lookup_id)
            assert position is not None
            self.list.hold(position)
            self.held[lookup_id] = position
            self.model[lookup_id] = LOCKED, self.model[lookup_id][1]

    @rule(lookup_id=places)
    def purge(self, lookup_id: int) -> None:
        if self._is(lookup_id, LOCKED):
            self.held[lookup_id].state = PositionState.PURGE_PENDING
            self.model[lookup_id] = PositionState.PURGE_PENDING, self.model[lookup_id][1]

    @rule(lookup_id=places)
    def release(self, lookup_id: int) -> None:
        if lookup_id in self.held:
            self.list.release(self.held.pop(lookup_id))
            self.model[lookup_id] = AVAILABLE, self.model[lookup_id][1]

    @rule(lookup_id=consumes(places))
    def unlink(self, lookup_id: int) -> None:
        position = self.list.find(lookup_id)
        if position is not None:
            self.list.unlink(position)
            assert position.state is PositionState.DELETED
        for known in (self.model, self.sizes, self.held, self.fresh, self.store):
            known.pop(lookup_id, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def look(self, data: st.DataObject) -> None:
        near = [i + d for i, d in itertools.product(self.model, (-1, 0, 1))]
        at = data.draw(st.sampled_from([START, END, *near]))
        for peek in (False, True):
            shown = [i for i in self.model if self._is_shown(i, peek=peek)]
            assert self.list.after(at, peek=peek) == min((i for i in shown if i > at), default=None)
            assert self.list.before(at, peek=peek) == max(
                (i for i in shown if i < at), default=None
            )

    @invariant()
    def agrees(self) -> None:
        assert self.list.lookup_ids() == sorted(self.model)
        assert len(self.list) == len(self.model)
        assert self.list.total_bytes == sum(self.sizes.values())
        assert set(self.list.held) == set(self.held)
        resident = {position.lookup_id: position for position in self.list.resident()}
        assert resident == self.fresh | self.held
        for lookup_id, (state, _) in self.model.items():
            found = self.list.find(lookup_id)
            assert found is not None
            assert found.state is state
            assert found.lookup_id == lookup_id
            assert found is resident.get(lookup_id, found)
            assert lookup_id in self.list

    def _is(self, lookup_id: int, state: PositionState) -> bool:
        return lookup_id in self.model and self.model[lookup_id][0] is state

    def _is_shown(self, lookup_id: int, *, peek: bool) -> bool:
        state, may_peek = self.model[lookup_id]
        return state is AVAILABLE or (peek and state is LOCKED and may_peek)


TestPositionModel = PositionModel.TestCase
TestPositionModel.settings = settings(max_examples=60, stateful_step_count=40)
