"""Which outgoing message is sent next (MQDMPR 3.1.1.18, 3.1.7.1.28, .29, .34, 3.1.7.3.9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.dispatch import (
    add_message_to_dispatch_collection,
    dispatch_collection,
    dispatch_send_message,
    remove_message_from_dispatch_collection,
    remove_messages_by_queue,
    set_senders,
)
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.queues import open_queue, pause_queue, purge_queue, resume_queue
from falconmq.manager.removing import remove_position
from falconmq.manager.states import AccessType, OutgoingState
from falconmq.manager.storing import enqueue_message
from falconmq.names import parse_format_name
from tests.manager.helpers import make_core, message, only, positions


class Line:
    """A transport that sends one message at a time and says when it is done."""

    def __init__(self) -> None:
        self.core = make_core()
        self.begun: list[MessagePosition] = []
        self.by: list[tuple[str, object]] = []
        set_senders(self.core, binary=self.send_binary, srmp=self.send_srmp)

    def send_binary(self, data: object, position: MessagePosition) -> None:
        self.by.append(("binary", data))
        self.begun.append(position)

    def send_srmp(self, data: object, position: MessagePosition) -> None:
        self.by.append(("srmp", data))
        self.begun.append(position)

    def finish(self) -> None:
        """The message that was begun last is on the other side."""
        remove_message_from_dispatch_collection(self.core, self.begun[-1])

    def add(self, outgoing: OutgoingQueue, body: str, priority: int = 3) -> MessagePosition:
        before = set(outgoing.positions.lookup_ids())
        enqueue_message(self.core, outgoing, message(body.encode(), priority=priority))
        (added,) = set(outgoing.positions.lookup_ids()) - before
        position = outgoing.positions.find(added)
        assert position is not None
        add_message_to_dispatch_collection(self.core, "session", position)
        return position

    @property
    def sent(self) -> list[str]:
        return [bytes(p.message.packet.properties.message_body).decode() for p in self.begun]


def given_outgoing(core: QueueManagerCore, host: str = "sales02") -> OutgoingQueue:
    name = parse_format_name(rf"DIRECT=OS:{host}\private$\orders")
    outgoing = open_queue(core, name, AccessType.SEND).queue
    assert isinstance(outgoing, OutgoingQueue)
    return outgoing


@pytest.mark.requirement(
    "DM-3.1.7.1.28-01",
    "DM-3.1.7.1.28-02",
    "DM-3.1.7.1.28-04",
    "DM-3.1.7.1.28-05",
    "DM-3.1.7.3.9-05",
    "DM-3.1.1.18-01",
    "DM-3.1.1.18-04",
)
def test_the_first_message_is_sent_at_once_and_the_next_waits() -> None:
    line = Line()
    outgoing = given_outgoing(line.core)
    first = line.add(outgoing, "a")
    second = line.add(outgoing, "b")
    assert line.begun == [first]
    collection = dispatch_collection(line.core)
    assert len(collection) == 2
    assert collection.sending is not None
    assert collection.sending.position is first
    assert collection.sending.is_sending
    waiting = collection.entry(second)
    assert waiting is not None
    assert not waiting.is_sending


@pytest.mark.requirement("DM-3.1.7.3.9-02", "DM-3.1.7.1.29-01", "DM-3.1.7.1.29-02")
def test_one_message_at_a_time_and_the_end_of_one_begins_the_next() -> None:
    line = Line()
    outgoing = given_outgoing(line.core)
    for body in "abc":
        line.add(outgoing, body)
    dispatch_send_message(line.core)
    assert line.sent == ["a"]
    line.finish()
    assert line.sent == ["a", "b"]
    assert len(dispatch_collection(line.core)) == 2


@pytest.mark.requirement("DM-3.1.7.1.29-01")
def test_taking_out_a_message_that_waits_leaves_the_one_on_its_way() -> None:
    line = Line()
    outgoing = given_outgoing(line.core)
    line.add(outgoing, "a")
    second = line.add(outgoing, "b")
    line.add(outgoing, "c")
    remove_message_from_dispatch_collection(line.core, second)
    assert line.sent == ["a"]
    line.finish()
    assert line.sent == ["a", "c"]


@pytest.mark.requirement("DM-3.1.7.1.29-02")
def test_taking_out_a_message_that_is_not_there_looks_for_work_too() -> None:
    # given a message of a queue that is not active
    line = Line()
    outgoing = given_outgoing(line.core)
    outgoing.descriptors.clear()
    enqueue_message(line.core, outgoing, message(b"a"))
    position = only(outgoing)
    remove_position(line.core, position)
    position.state = type(position.state).AVAILABLE
    add_message_to_dispatch_collection(line.core, "session", position)
    assert line.sent == []
    # when it becomes active and somebody removes a message nobody has added
    other = given_outgoing(line.core, "sales03")
    enqueue_message(line.core, other, message(b"x"))
    outgoing.positions.link(position)
    remove_message_from_dispatch_collection(line.core, only(other))
    assert line.sent == ["a"]


@pytest.mark.requirement("DM-3.1.7.3.9-03", "DM-3.1.7.3.9-08", "DM-3.1.1.18-03")
def test_the_most_urgent_goes_first_and_equals_as_they_came() -> None:
    line = Line()
    outgoing = given_outgoing(line.core)
    line.add(outgoing, "busy", 7)
    for body, priority in (("3a", 3), ("7", 7), ("3b", 3)):
        line.add(outgoing, body, priority)
    for _ in range(4):
        line.finish()
    assert line.sent == ["busy", "7", "3a", "3b"]


@pytest.mark.requirement("DM-3.1.7.1.28-03", "DM-3.1.1.2-22")
def test_the_base_priority_of_the_queue_counts() -> None:
    line = Line()
    plain, urgent = given_outgoing(line.core), given_outgoing(line.core, "sales03")
    urgent.properties.base_priority = 5
    line.add(plain, "busy")
    line.add(plain, "plain 7", 7)
    line.add(urgent, "urgent 3", 3)
    line.add(urgent, "urgent 1", 1)
    for _ in range(4):
        line.finish()
    assert line.sent == ["busy", "urgent 3", "plain 7", "urgent 1"]


@given(priorities=st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 7)), max_size=20))
@pytest.mark.requirement("DM-3.1.7.3.9-03", "DM-3.1.7.3.9-08")
def test_any_messages_go_in_the_order_of_a_stable_sort(priorities: list[tuple[int, int]]) -> None:
    line = Line()
    line.add(given_outgoing(line.core), "busy")
    expected = []
    for number, (base, priority) in enumerate(priorities):
        outgoing = given_outgoing(line.core, f"host{base + 3}")
        outgoing.properties.base_priority = base
        line.add(outgoing, str(number), priority)
        expected.append((-(base + priority), str(number)))
    for _ in range(len(priorities) + 1):
        line.finish()
    ordered = [body for _, body in sorted(expected, key=lambda entry: entry[0])]
    assert line.sent == ["busy", *ordered]


@pytest.mark.requirement("DM-3.1.7.3.9-03")
def test_a_message_that_was_deleted_meanwhile_is_not_sent() -> None:
    line = Line()
    busy, outgoing = given_outgoing(line.core), given_outgoing(line.core, "sales03")
    line.add(busy, "busy")
    line.add(outgoing, "purged", 7)
    purge_queue(line.core, outgoing)
    line.add(outgoing, "b")
    line.finish()
    assert line.sent == ["busy", "b"]


@pytest.mark.requirement("DM-3.1.7.3.9-04")
def test_with_nothing_to_send_nothing_is_done() -> None:
    line = Line()
    dispatch_send_message(line.core)
    outgoing = given_outgoing(line.core)
    line.add(outgoing, "a")
    line.finish()
    assert line.sent == ["a"]
    assert dispatch_collection(line.core).sending is None


@pytest.mark.requirement("DM-3.1.7.3.9-06", "DM-3.1.7.3.9-07", "DM-3.1.1.18-02")
def test_the_data_of_the_protocol_choose_the_sender() -> None:
    line = Line()
    outgoing = given_outgoing(line.core)
    for _ in range(2):
        enqueue_message(line.core, outgoing, message())
    binary, srmp = positions(outgoing)
    add_message_to_dispatch_collection(line.core, "session 7", binary)
    line.finish()
    add_message_to_dispatch_collection(line.core, None, srmp)
    assert line.by == [("binary", "session 7"), ("srmp", None)]
    assert line.begun == [binary, srmp]


@pytest.mark.requirement("DM-3.1.7.3.9-01")
def test_ten_thousand_messages_do_not_exhaust_the_stack() -> None:
    # given a sender that is done before it returns
    core = make_core()
    outgoing = given_outgoing(core)
    sent: list[int] = []
    depth, deepest = 0, 0

    def send(_data: object, position: MessagePosition) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        sent.append(position.lookup_id)
        remove_message_from_dispatch_collection(core, position)
        depth -= 1

    set_senders(core, binary=lambda _data, _position: None)
    stored = message(recoverable=False)
    for _ in range(10_000):
        enqueue_message(core, outgoing, stored)
    for lookup_id in outgoing.positions.lookup_ids():
        position = outgoing.positions.find(lookup_id)
        assert position is not None
        add_message_to_dispatch_collection(core, "session", position)
    # when the one that was stuck is through
    set_senders(core, binary=send)
    stuck = dispatch_collection(core).sending
    assert stuck is not None
    remove_message_from_dispatch_collection(core, stuck.position)
    # then all others follow in order, one call after the other
    assert sent == outgoing.positions.lookup_ids()[1:]
    assert deepest == 1
    assert len(dispatch_collection(core)) == 0


@pytest.mark.requirement("DM-3.1.7.1.34-01", "DM-3.1.7.3.9-09")
def test_pause_takes_the_messages_of_a_queue_out_and_resume_sends_them_again() -> None:
    # given messages for two destinations, one of them on its way
    line = Line()
    paused, other = given_outgoing(line.core), given_outgoing(line.core, "sales03")
    for body in ("a", "b"):
        line.add(paused, body, 7)
    line.add(other, "c")
    assert line.sent == ["a"]
    # when the transport reacts to a pause
    pause_queue(line.core, paused)
    remove_messages_by_queue(line.core, paused)
    # then the other destination goes on, and only its message is left
    assert paused.state is OutgoingState.ON_HOLD
    assert line.sent == ["a", "c"]
    assert len(dispatch_collection(line.core)) == 1
    # when it reacts to a resume, then the messages go after all
    line.finish()
    resume_queue(line.core, paused)
    for position in positions(paused):
        add_message_to_dispatch_collection(line.core, "session", position)
    line.finish()
    assert line.sent == ["a", "c", "a", "b"]


@pytest.mark.requirement("DM-3.1.7.1.34-01")
def test_a_queue_without_messages_to_send_can_be_taken_out() -> None:
    line = Line()
    line.add(given_outgoing(line.core), "a")
    remove_messages_by_queue(line.core, given_outgoing(line.core, "sales03"))
    assert line.sent == ["a"]
    assert len(dispatch_collection(line.core)) == 1


def test_a_message_that_is_added_again_is_there_once() -> None:
    line = Line()
    outgoing = given_outgoing(line.core)
    line.add(outgoing, "busy")
    again = line.add(outgoing, "a")
    outgoing.properties.base_priority = 2
    add_message_to_dispatch_collection(line.core, "new session", again)
    line.finish()
    line.finish()
    assert line.sent == ["busy", "a"]
    assert line.by[-1] == ("binary", "new session")
    assert dispatch_collection(line.core).next() is None


def test_a_sender_that_fails_leaves_its_message_to_be_tried_again() -> None:
    core = make_core()
    outgoing = given_outgoing(core)

    def fail(_data: object, _position: MessagePosition) -> None:
        raise OSError("no route")

    set_senders(core, binary=fail)
    enqueue_message(core, outgoing, message())
    with pytest.raises(OSError, match="no route"):
        add_message_to_dispatch_collection(core, "session", only(outgoing))
    sent: list[MessagePosition] = []
    set_senders(core, binary=lambda _data, position: sent.append(position))
    dispatch_send_message(core)
    assert [position.lookup_id for position in sent] == outgoing.positions.lookup_ids()


def test_two_queue_managers_in_one_process_do_not_share() -> None:
    one, two = Line(), Line()
    one.add(given_outgoing(one.core), "a")
    assert two.sent == []
    assert len(dispatch_collection(two.core)) == 0
