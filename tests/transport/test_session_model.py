"""Two sessions and the wire between them, cut at any byte: nothing is told that is not true."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.transport.session import (
    MessageReceived,
    MessagesAcknowledged,
    Session,
    SessionClosed,
)
from falconmq.transport.settings import TransportSettings
from tests.transport.session_helpers import (
    assert_open,
    joined,
    run_timers,
    sent_data,
    user_message,
)


@dataclass
class Side:
    """One end of the connection: what it has done, and what it knows of the other."""

    session: Session
    recoverable: dict[int, bool] = field(default_factory=dict)  # what was sent, in order
    arrived: list[int] = field(default_factory=list)
    settled: int = 0
    told_received: list[int] = field(default_factory=list)
    told_stored: list[int] = field(default_factory=list)
    incoming: bytearray = field(default_factory=bytearray)  # on the wire to this side

    def send(self, recoverable: bool, now: float) -> None:
        if not self.session.can_send:
            return
        entry = len(self.recoverable)
        self.recoverable[entry] = recoverable
        data = user_message(str(entry).encode(), recoverable=recoverable).encode()
        self.session.send([data[:20], data[20:]], entry=entry, recoverable=recoverable, now=now)

    def settle(self, count: int, now: float) -> None:
        count = min(count, len(self.arrived) - self.settled)
        self.settled += count
        self.session.settle(count, now)

    def take_events(self) -> None:
        for event in self.session.events():
            if isinstance(event, MessageReceived):
                self.arrived.append(int(bytes(event.packet.properties.message_body)))
            elif isinstance(event, MessagesAcknowledged):
                self.told_received += event.received
                self.told_stored += event.stored
            else:
                assert isinstance(event, SessionClosed)
                raise AssertionError(event.reason)

    def check_against(self, other: Side, window: int) -> None:
        """What the other side says of our messages is true."""
        done = other.arrived[: other.settled]
        assert other.arrived == list(range(len(other.arrived)))  # in order, none twice
        assert self.told_received == done[: len(self.told_received)]
        assert set(self.told_stored) <= {entry for entry in done if self.recoverable[entry]}
        assert self.told_stored == sorted(set(self.told_stored))
        assert self.session.unacked == len(self.recoverable) - len(self.told_received) <= window


@dataclass
class Connection:
    """Two sides; bytes wait on the wire until they are moved."""

    sides: tuple[Side, Side]
    window: int
    now: float = 0.0

    def flush(self) -> None:
        for side, other in (self.sides, self.sides[::-1]):
            side.take_events()
            other.incoming += sent_data(side.session)
            side.check_against(other, self.window)

    def move(self, to: int, count: int) -> None:
        side = self.sides[to]
        data = bytes(side.incoming[:count])
        del side.incoming[:count]
        side.session.receive_data(data, self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for side in self.sides:
            side.session.handle_timer(self.now)


def connect(window: int, peer_window: int) -> Connection:
    one, two = joined(
        TransportSettings(window_size=window), TransportSettings(window_size=peer_window)
    )
    return Connection((Side(one), Side(two)), min(window, peer_window))


sides = st.integers(0, 1)
steps = st.one_of(
    st.tuples(st.just("send"), sides, st.integers(1, 70), st.booleans()),
    st.tuples(st.just("move"), sides, st.integers(1, 8000), st.just(False)),
    st.tuples(st.just("settle"), sides, st.integers(1, 70), st.just(False)),
    st.tuples(st.just("acknowledge"), sides, st.just(1), st.just(False)),
    st.tuples(st.just("wait"), sides, st.integers(1, 9), st.just(False)),
)


@pytest.mark.requirement("QB-3.1.1.4-01", "QB-3.1.1.4-03", "QB-A25-01", "QB-A30-01", "QB-A28-01")
@given(
    windows=st.tuples(st.sampled_from([1, 2, 7, 64, 200]), st.sampled_from([1, 3, 64, 200])),
    plan=st.lists(steps, max_size=60),
)
def test_nothing_is_told_stored_that_the_other_side_has_not_settled(
    windows: tuple[int, int], plan: list[tuple[str, int, int, bool]]
) -> None:
    # given two sessions, and any order of sending, moving bytes, settling and waiting
    connection = connect(*windows)
    for action, index, count, recoverable in plan:
        side = connection.sides[index]
        match action:
            case "send":
                for _ in range(count):
                    side.send(recoverable, connection.now)
            case "move":
                connection.move(index, count)
            case "settle":
                side.settle(count, connection.now)
            case "acknowledge":
                side.session.acknowledge_now(connection.now)
            case _:
                connection.wait(count / 10)
        connection.flush()  # checks both sides: a cut here tells no lie
    # when the wire is emptied and everything is settled
    for _ in range(3):
        for index, side in enumerate(connection.sides):
            connection.move(index, len(side.incoming))
            connection.flush()
            side.settle(len(side.arrived), connection.now)
            side.session.acknowledge_now(connection.now)
            connection.flush()
    # then both sides know all of it
    for side in connection.sides:
        assert side.told_received == list(side.recoverable)
        assert side.told_stored == [entry for entry, kind in side.recoverable.items() if kind]
        assert side.session.unacked == 0


@given(cut=st.integers(0, 12_000), settled=st.integers(0, 40))
def test_what_was_not_acknowledged_before_a_cut_goes_through_the_next_session(
    cut: int, settled: int
) -> None:
    # given 40 recoverable messages, and a connection that ends at some byte
    first = connect(64, 64)
    sender, receiver = first.sides
    for _ in range(40):
        sender.send(True, 0.0)
    first.flush()
    first.move(1, cut)
    first.flush()
    receiver.settle(settled, 0.0)
    receiver.session.acknowledge_now(0.0)
    first.flush()
    first.move(0, len(sender.incoming))
    first.flush()
    for side in first.sides:
        side.session.close("the connection was lost")
    # when what is not known to be on the other disk is sent again, numbered from 1
    left = [entry for entry in sender.recoverable if entry not in sender.told_stored]
    again = connect(64, 64)
    for _ in left:
        again.sides[0].send(True, 0.0)
    again.flush()
    again.move(1, len(again.sides[1].incoming))
    again.flush()
    # then every message has come at least once
    came = set(receiver.arrived) | {left[index] for index in again.sides[1].arrived}
    assert came == set(range(40))


@pytest.mark.requirement("QB-A28-01", "QB-3.1.1.3.1-05", "QB-3.1.1.4-01")
@pytest.mark.parametrize("every", [1, 3])
def test_the_counters_wrap_and_nobody_notices(every: int) -> None:
    # given 70 000 messages each way on one session, all recoverable or every third
    count = 70_000
    packets = [user_message(recoverable=kind).encode() for kind in (False, True)]
    both = joined()
    received: dict[Session, list[int]] = {session: [] for session in both}
    stored: dict[Session, list[int]] = {session: [] for session in both}
    while any(len(numbers) < count for numbers in received.values()):
        for session, other in (both, both[::-1]):
            while session.can_send and session.messages_sent < count:
                entry = session.messages_sent
                kind = entry % every == 0
                session.send([packets[kind]], entry=entry, recoverable=kind, now=0.0)
            if session.messages_sent == count:
                session.acknowledge_now(0.0)
            # when the bytes move, and what comes is settled at once
            other.receive_data(sent_data(session), 0.0)
            for event in other.events():
                if isinstance(event, MessagesAcknowledged):
                    received[other] += event.received
                    stored[other] += event.stored
                else:
                    assert isinstance(event, MessageReceived), event
            other.settle(other.unsettled, 0.0)
    # then all were received, stored and told, in order, and both sides go on
    for session in both:
        assert received[session] == list(range(count))
        assert stored[session] == list(range(0, count, every))
        assert (session.messages_received, session.unacked) == (count, 0)
        assert_open(session)


def test_a_conversation_goes_on_for_an_hour_by_its_timers_alone() -> None:
    # given one message a minute in each direction
    connection = connect(64, 64)
    for minute in range(60):
        connection.now = minute * 60.0
        for side in connection.sides:
            side.send(minute % 2 == 0, connection.now)
        # when bytes move at once and timers run as they fall due
        for second in range(60):
            now = connection.now + second
            run_timers([side.session for side in connection.sides], now)
            for index, side in enumerate(connection.sides):
                connection.flush()
                side.session.receive_data(bytes(side.incoming), now)
                side.incoming.clear()
                connection.flush()
                connection.sides[index].settle(5, now)
    # then every message but perhaps the last is acknowledged, with no traffic but a few acks
    for side in connection.sides:
        assert len(side.told_received) == 60
        assert len(side.told_stored) == 30
        assert_open(side.session)
