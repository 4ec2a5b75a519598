"""Scenario 46: readers with and without cursors against a plain list, all four states.

The model is a list of messages in the order of the queue, each with a number that never changes,
and for every cursor a number and the name of its state, as the guide's table has it. It knows
nothing of lookup identifiers, batches or chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from falconmq.errors import MqStatus, ReadError
from falconmq.manager.cursors import close_cursor
from falconmq.manager.model import Cursor, ReadResult, WaitingRead
from falconmq.manager.positions import END
from falconmq.manager.reading import (
    dequeue_message,
    dequeue_message_begin,
    dequeue_message_end,
    peek_message,
    peek_next_message,
)
from falconmq.manager.states import PositionState
from falconmq.manager.storing import enqueue_message
from tests.manager.helpers import commit, given_queue, make_core, message, pass_time
from tests.manager.readers import body, given_cursor, given_reader, position_of, status
from tests.strategies.queues import priorities, timeouts

LAST = 1000.0  # a place behind everything


@dataclass(eq=False)
class Item:
    """A message of the model; `place` sorts by priority, then by age."""

    place: float
    text: str
    open: bool  # may be peeked at while locked
    locked: bool = False


@dataclass(eq=False)
class Walker:
    """A cursor of the model."""

    cursor: Cursor
    place: float = -1.0
    state: str = "unread"


@dataclass(eq=False)
class Waiter:
    """A read of the model that waits."""

    read: WaitingRead
    receive: bool
    two_phase: bool
    deadline: float | None
    walker: Walker | None
    ended: str | MqStatus | None = None


@dataclass
class Model:
    items: list[Item] = field(default_factory=list)
    walkers: list[Walker] = field(default_factory=list)
    line: list[Waiter] = field(default_factory=list)
    now: float = 0.0


def kind(result: ReadResult | WaitingRead) -> str | MqStatus | None:
    """A body, a status, or None for a read that waits."""
    if isinstance(result, WaitingRead):
        if result.result is None:
            return None
        result = result.result
    return body(result) if result.status is MqStatus.OK else status(result)


class CursorModel(RuleBasedStateMachine):
    cursors = Bundle("cursors")

    @initialize()
    def open_queue(self) -> None:
        self.core = make_core()
        self.queue = given_queue(self.core)
        self.reader = given_reader(self.core, self.queue)
        self.model = Model()
        self.sent = 0
        self.ended: list[Waiter] = []

    # What senders and time do

    @rule(priority=priorities, is_open=st.booleans(), recoverable=st.booleans())
    def send(self, priority: int, is_open: bool, recoverable: bool) -> None:
        self.sent += 1
        stored = message(
            f"{self.sent}".encode(),
            priority=priority,
            recoverable=recoverable,
            allow_peek_when_locked=is_open,
        )
        enqueue_message(self.core, self.queue, stored)
        item = Item((7 - priority) * 100 + self.sent / 10, f"{self.sent}", is_open)
        self.model.items.append(item)
        self.model.items.sort(key=lambda item: item.place)
        self._feed(item)

    @rule(seconds=st.sampled_from((0.5, 1.0, 5.0)))
    def wait(self, seconds: float) -> None:
        pass_time(self.core, seconds)
        self.model.now += seconds
        late = [w for w in self.model.line if w.deadline is not None]
        for waiter in late:
            assert waiter.deadline is not None
            if waiter.deadline <= self.model.now:
                self._fail(waiter, MqStatus.IO_TIMEOUT)

    @rule()
    def commit(self) -> None:
        woken = commit(self.core)
        assert {id(read) for read in woken} == {id(waiter.read) for waiter in self.ended}
        assert len(woken) == len(self.ended)
        self.ended = []

    # What readers do

    @rule(target=cursors)
    def open_cursor(self) -> Walker:
        walker = Walker(given_cursor(self.core, self.reader))
        self.model.walkers.append(walker)
        return walker

    @rule(target=cursors, walker=consumes(cursors))
    def close_cursor(self, walker: Walker) -> object:
        close_cursor(self.core, walker.cursor)
        for waiter in [w for w in self.model.line if w.walker is walker]:
            self._fail(waiter, MqStatus.OPERATION_CANCELLED)
        self.model.walkers.remove(walker)
        return multiple()

    @rule(timeout=timeouts, two_phase=st.booleans())
    def receive(self, timeout: float | None, two_phase: bool) -> None:
        begin = dequeue_message_begin if two_phase else dequeue_message
        result = begin(self.core, self.reader, timeout=timeout)
        item = next((item for item in self.model.items if not item.locked), None)
        self._check(result, item, timeout, None, receive=True, two_phase=two_phase)

    @rule(timeout=timeouts)
    def peek(self, timeout: float | None) -> None:
        result = peek_message(self.core, self.reader, timeout=timeout)
        self._check(result, self._shown_behind(-1.0), timeout, None)

    @rule(walker=cursors, timeout=timeouts)
    def peek_current(self, walker: Walker, timeout: float | None) -> None:
        if walker.state.startswith("wait"):
            with pytest.raises(ReadError):
                peek_message(self.core, self.reader, timeout=timeout, cursor=walker.cursor)
            return
        result = peek_message(self.core, self.reader, timeout=timeout, cursor=walker.cursor)
        if walker.state == "read":
            item = self._free_at(walker.place)
            assert kind(result) == (item.text if item else MqStatus.MESSAGE_ALREADY_RECEIVED)
            return
        self._check(result, self._shown_behind(walker.place), timeout, walker)

    @rule(walker=cursors, timeout=timeouts)
    def peek_next(self, walker: Walker, timeout: float | None) -> None:
        if walker.state.startswith("wait"):
            with pytest.raises(ReadError):
                peek_next_message(self.core, self.reader, walker.cursor, timeout=timeout)
            return
        result = peek_next_message(self.core, self.reader, walker.cursor, timeout=timeout)
        if walker.state == "unread":
            assert kind(result) is MqStatus.ILLEGAL_CURSOR_ACTION
            return
        self._check(result, self._shown_behind(walker.place), timeout, walker)

    @rule(walker=cursors, timeout=timeouts, two_phase=st.booleans())
    def receive_at(self, walker: Walker, timeout: float | None, two_phase: bool) -> None:
        begin = dequeue_message_begin if two_phase else dequeue_message
        if walker.state.startswith("wait"):
            with pytest.raises(ReadError):
                begin(self.core, self.reader, timeout=timeout, cursor=walker.cursor)
            return
        result = begin(self.core, self.reader, timeout=timeout, cursor=walker.cursor)
        behind = [i for i in self.model.items if i.place > walker.place and not i.locked]
        if walker.state == "read":
            item = self._free_at(walker.place)
            if item is None:
                assert kind(result) is MqStatus.MESSAGE_ALREADY_RECEIVED
                return
        else:
            item = behind[0] if behind else None
        if item is None and timeout == 0:
            assert kind(result) is MqStatus.MESSAGE_NOT_FOUND
            return
        self._check(result, item, timeout, walker, receive=True, two_phase=two_phase)

    @rule(data=st.data(), delete=st.booleans())
    def end(self, data: st.DataObject, delete: bool) -> None:
        held = list(self.queue.positions.held.values())
        if not held:
            return
        position = data.draw(st.sampled_from(held))
        text = bytes(position.message.packet.properties.message_body).decode()
        (item,) = [item for item in self.model.items if item.text == text]
        ended = dequeue_message_end(self.core, self.reader, position, delete=delete)
        assert ended is MqStatus.OK
        if delete:
            self.model.items.remove(item)
        else:
            item.locked = False
            self._feed(item)

    # What must be true

    @invariant()
    def agrees(self) -> None:
        found = []
        for lookup_id in self.queue.positions.lookup_ids():
            position = self.queue.positions.find(lookup_id)
            assert position is not None
            text = bytes(position.message.packet.properties.message_body).decode()
            found.append((text, position.state is PositionState.LOCKED))
        assert found == [(item.text, item.locked) for item in self.model.items]
        assert [waiter.read for waiter in self.model.line] == list(self.queue.waiting)
        for waiter in self.ended:
            assert kind(waiter.read) == waiter.ended
        for walker in self.model.walkers:
            assert walker.cursor.state.name.lower() == walker.state
            assert (walker.cursor.position == END) == (walker.place == LAST)

    # The rules of the model

    def _check(
        self,
        result: ReadResult | WaitingRead,
        item: Item | None,
        timeout: float | None,
        walker: Walker | None,
        *,
        receive: bool = False,
        two_phase: bool = False,
    ) -> None:
        """A read that found `item` ended with it; one that found nothing waits, or may not."""
        if item is not None:
            assert kind(result) == item.text
            position_of(result)
            self._take(item, walker, receive=receive, two_phase=two_phase)
        elif timeout is not None and timeout <= 0:
            assert kind(result) is MqStatus.IO_TIMEOUT
            if walker is not None:
                walker.state = "unread"
        else:
            assert isinstance(result, WaitingRead)
            assert result.result is None
            deadline = None if timeout is None else self.model.now + timeout
            self.model.line.append(Waiter(result, receive, two_phase, deadline, walker))
            if walker is not None:
                walker.state = "wait_receive" if receive else "wait_peek"

    def _take(self, item: Item, walker: Walker | None, *, receive: bool, two_phase: bool) -> None:
        if walker is not None:
            walker.place = item.place
            walker.state = "unread" if receive else "read"
        if receive and two_phase:
            item.locked = True
        elif receive:
            self.model.items.remove(item)

    def _feed(self, item: Item) -> None:
        """Peekers up to the first receiver, and that receiver, have the new message."""
        while self.model.line:
            waiter = self.model.line.pop(0)
            self._take(item, waiter.walker, receive=waiter.receive, two_phase=waiter.two_phase)
            waiter.ended = item.text
            self.ended.append(waiter)
            if waiter.receive:
                return

    def _fail(self, waiter: Waiter, ended: MqStatus) -> None:
        self.model.line.remove(waiter)
        waiter.ended = ended
        self.ended.append(waiter)
        if waiter.walker is not None:
            waiter.walker.state = "unread"
            if waiter.receive:
                waiter.walker.place = LAST

    def _shown_behind(self, place: float) -> Item | None:
        shown = [item for item in self.model.items if item.open or not item.locked]
        return next((item for item in shown if item.place > place), None)

    def _free_at(self, place: float) -> Item | None:
        free = [item for item in self.model.items if not item.locked]
        return next((item for item in free if item.place == place), None)


TestCursorModel = CursorModel.TestCase
TestCursorModel.settings = settings(max_examples=100, stateful_step_count=50)
