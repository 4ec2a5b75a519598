"""Opening sessions from an outgoing queue: names, hops, tries, retries (MQQB 3.1.5.2, 3.1.6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from falconmq.errors import MqStatus
from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.names import DirectFormatName, PrivateFormatName, SingleFormatName
from falconmq.transport import peers
from falconmq.transport.routing import Destination, NextHopName
from falconmq.transport.session import SessionState
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID
from tests.transport.estate import Estate, Node, bodies, direct
from tests.transport.played_peer import given_routes, history, sent_bodies, state_of

IN_PROCESS = ConnectionStatus.IN_PROCESS
ANSWERED = ConnectionStatus.ESTABLISH_PACKET_RECEIVED
ESTABLISHED = ConnectionStatus.ESTABLISHED
REFUSED = ConnectionStatus.CONNECTION_REFUSED
RETRY = 5.0  # seconds; TryConnectInterval


class Ways:
    """A router whose answers the test writes down; it counts the questions."""

    def __init__(self) -> None:
        self.owner: UUID | None = None
        self.hops: list[NextHopName] = []
        self.asked: list[SingleFormatName] = []
        self.asked_hops: list[UUID] = []

    def get_destination_info(self, name: SingleFormatName) -> Destination | None:
        self.asked.append(name)
        if isinstance(name, DirectFormatName):
            return Destination(name.address)
        return None if self.owner is None else Destination("", self.owner)

    def get_next_hops(self, queue_manager: UUID) -> Sequence[NextHopName]:
        self.asked_hops.append(queue_manager)
        return self.hops

    def connector_site(self, queue_manager: UUID) -> UUID | None:
        return None

    def is_foreign(self, queue_manager: UUID) -> bool:
        return False

    def is_asked(self, name: SingleFormatName) -> bool:
        return False


FAR = str(PrivateFormatName(UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), 7))


def given_two() -> tuple[Estate, Node, Node]:
    estate = Estate()
    return estate, estate.node("SALES01", 1), estate.node("SALES02", 2)


def given_ways(node: Node) -> Ways:
    ways = Ways()
    node.transport.router = ways
    return ways


def request_of(node: Node) -> EstablishConnection:
    """The first packet of the newest connection."""
    packet = node.lines[-1].packets[0]
    assert isinstance(packet, EstablishConnection)
    return packet


# The way to an open session


@pytest.mark.requirement(
    "DM-3.1.1.3-07",
    "DM-3.1.1.3-10",
    "DM-3.1.1.3-11",
    "DM-3.1.1.3-15",
    "DM-3.1.1.3-18",
    "DM-3.1.1.3-19",
    "DM-3.1.1.3-20",
)
@pytest.mark.requirement("QB-3.1.7.12-05", "QB-3.1.5.2.3-12", "QB-3.1.5.2.3-14")
@pytest.mark.requirement("QB-3.1.5.3.2-13", "QB-3.1.5.4.2-06", "QB-3.1.5.4.2-07")
def test_history_and_state_of_the_queue_tell_every_step_of_the_opening() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    # when the first message is sent
    estate.clock.advance(7.0)
    here.send(name, b"one")
    queue = here.outgoing(name)
    assert state_of(queue) is OutgoingState.INACTIVE
    steps = []
    while estate._later:
        node, event, args = estate._later.popleft()
        node.run(event, *args)
    steps.append((queue.state, history(queue)))
    line = here.lines[0]
    assert line.other is not None
    estate.deliver(line)
    estate.deliver(line.other)
    steps.append((queue.state, history(queue)))
    estate.deliver(line)
    estate.deliver(line.other)
    steps.append((queue.state, history(queue)))
    # then each step of the opening is a line of the history
    assert steps == [
        (OutgoingState.WAITING, [IN_PROCESS]),
        (OutgoingState.WAITING, [IN_PROCESS, ANSWERED]),
        (OutgoingState.CONNECTED, [IN_PROCESS, ANSWERED, ESTABLISHED]),
    ]
    for attempt in queue.connection_history:
        assert attempt.time == estate.clock.time()
        assert attempt.error is MqStatus.OK
        assert attempt.addresses == (there.address,)


@pytest.mark.requirement("QB-3.1.5.2.1-01", "QB-3.1.5.2.1-02", "QB-3.1.5.2.1-03")
@pytest.mark.requirement("QB-3.1.5.2.1-06", "QB-3.1.5.2.1-13", "QB-A04-01")
def test_direct_name_is_resolved_and_asks_for_no_queue_manager_in_particular() -> None:
    estate, here, there = given_two()
    ways = given_ways(here)
    orders = there.queue("orders")
    name = rf"DIRECT=OS:{there.name}\private$\orders"
    here.send(name, b"one")
    estate.settle()
    assert bodies(orders) == [b"one"]
    assert here.lookups == ["SALES02"]
    assert ways.asked_hops == []
    assert set(ways.asked) == {here.outgoing(name).destination}
    assert request_of(here).server_guid == NULL_GUID


@pytest.mark.requirement("QB-3.1.5.2.1-03", "QB-3.1.5.2.1-06", "QB-3.1.5.2.1-07")
@pytest.mark.requirement("QB-3.1.5.2.1-11", "QB-3.1.5.2.1-15", "QB-A04-01")
def test_queue_manager_is_reached_by_the_names_of_its_next_hops() -> None:
    estate, here, there = given_two()
    ways = given_ways(here)
    ways.owner = there.identifier
    ways.hops = [NextHopName(there.identifier, "SALES02")]
    here.send(FAR, b"one")
    estate.settle()
    # the next hops of the owner, their own names, and the session asks for that queue manager
    assert ways.asked_hops == [there.identifier]
    assert here.lookups == ["SALES02"]
    assert request_of(here).server_guid == there.identifier.bytes_le
    assert here.outgoing(FAR).state is OutgoingState.CONNECTED


@pytest.mark.requirement("QB-3.1.5.2.1-10", "QB-3.1.5.2.1-12", "QB-3.1.5.2.1-14")
@pytest.mark.requirement("QB-3.1.5.4.2-03", "QB-3.1.1.3.1.3-03", "QB-3.1.1.3.1-28")
def test_next_hops_list_all_addresses_until_one_of_them_is_in_use() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    estate.names["sales02"] = ["10.0.0.9", "fd00::9", there.address]
    name = r"DIRECT=OS:SALES02\private$\orders"
    here.send(name, b"one")
    queue = here.outgoing(name)
    queue.next_hops = ["IP=192.0.2.1"]  # of some time before
    estate.settle()
    assert queue.next_hops == ["IP=10.0.0.9", "IPv6=fd00::9", f"IP={there.address}"]
    assert queue.connection_history[0].addresses == ("10.0.0.9",)
    # when the third of them is connected
    estate.advance(2 * RETRY)
    assert state_of(queue) is OutgoingState.CONNECTED
    assert queue.next_hops == [f"IP={there.address}"]


@pytest.mark.requirement("QB-3.1.5.2.1-11", "QB-A43-01")
def test_names_are_resolved_for_each_session_and_not_for_each_message() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = rf"DIRECT=OS:{there.name}\private$\orders"
    for number in range(5):
        here.send(name, b"%d" % number)
        estate.settle()
    assert here.lookups == ["SALES02"]
    # when the session was idle for long enough, both sides close it without a word
    written = len(here.lines[0].written)
    estate.advance(700.0)
    assert here.transport.sessions == []
    assert there.transport.sessions == []
    assert len(here.lines[0].written) == written
    queue = here.outgoing(name)
    assert state_of(queue) is OutgoingState.DISCONNECTED
    # then the next message opens another, and the name is resolved anew: it may have moved
    third = estate.node("SALES03", 3)
    moved = third.queue("orders")
    estate.names["sales02"] = [third.address]
    here.send(name, b"five")
    estate.settle()
    assert here.lookups == ["SALES02", "SALES02"]
    assert bodies(moved) == [b"five"]
    assert len(bodies(orders)) == 5


# Nobody knows the way


@pytest.mark.requirement("DM-3.1.1.3-12", "DM-3.1.1.3-30")
@pytest.mark.requirement("QB-3.1.5.2.1-04", "QB-3.1.5.2.1-05", "QB-3.1.5.2-03", "QB-3.1.5.2-05")
def test_queue_that_nobody_knows_is_asked_for_again_after_a_while() -> None:
    estate, here, there = given_two()
    ways = given_ways(here)
    here.send(FAR, b"one")
    estate.settle()
    queue = here.outgoing(FAR)
    assert state_of(queue) is OutgoingState.NEED_VALIDATION
    assert here.lookups == []
    assert here.lines == []
    (attempt,) = queue.connection_history
    assert attempt.status is ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE
    assert attempt.time == estate.clock.time()
    assert attempt.error is MqStatus.MACHINE_NOT_FOUND
    # when somebody knows at last
    ways.owner = there.identifier
    ways.hops = [NextHopName(there.identifier, "SALES02")]
    estate.advance(RETRY - 0.1)
    assert state_of(queue) is OutgoingState.NEED_VALIDATION
    estate.advance(0.2)
    assert state_of(queue) is OutgoingState.CONNECTED
    # then it is a queue of that queue manager, whatever it was taken for before
    assert request_of(here).server_guid == there.identifier.bytes_le
    assert not here.transport.sessions[0].is_direct


@pytest.mark.requirement("QB-3.1.5.2.1-08", "QB-3.1.5.2.1-09")
def test_queue_manager_without_next_hops_is_tried_again_after_a_while() -> None:
    estate, here, there = given_two()
    ways = given_ways(here)
    ways.owner = there.identifier
    here.send(FAR, b"one")
    estate.settle()
    queue = here.outgoing(FAR)
    assert state_of(queue) is OutgoingState.NEED_VALIDATION
    assert here.lookups == []
    assert history(queue) == [ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE]
    ways.hops = [NextHopName(there.identifier, "SALES02")]
    estate.advance(RETRY)
    assert state_of(queue) is OutgoingState.CONNECTED


@pytest.mark.requirement("DM-3.1.1.3-13")
@pytest.mark.requirement("QB-3.1.5.2.1-04", "QB-3.1.5.2.1-08")
def test_queue_on_hold_stays_on_hold_and_is_not_tried_again() -> None:
    estate, here, _ = given_two()
    ways = given_ways(here)
    here.send(FAR, b"one")
    estate.settle()
    queue = here.outgoing(FAR)
    here.run(here.transport.pause, queue)
    asked = len(ways.asked)
    estate.advance(10 * RETRY)
    assert state_of(queue) is OutgoingState.ON_HOLD
    assert len(ways.asked) == asked


@pytest.mark.requirement("DM-3.1.1.3-26")
@pytest.mark.requirement("QB-3.1.5.2-03", "QB-3.1.5.2-05")
def test_name_without_an_address_is_a_failure_of_its_own_kind() -> None:
    estate, here, _ = given_two()
    name = r"DIRECT=OS:nowhere\private$\orders"
    here.send(name, b"one")
    estate.settle()
    queue = here.outgoing(name)
    (attempt,) = queue.connection_history
    assert attempt.status is ConnectionStatus.DNS_FAILURE
    assert attempt.error is MqStatus.MACHINE_NOT_FOUND
    assert state_of(queue) is OutgoingState.NEED_VALIDATION
    estate.advance(RETRY)
    assert here.lookups == ["nowhere", "nowhere"]


# Nobody answers


@pytest.mark.requirement(
    "DM-3.1.1.3-08",
    "DM-3.1.1.3-29",
    "DM-3.1.1.3-32",
    "DM-3.1.1.3-33",
    "DM-3.1.1.3-34",
)
@pytest.mark.requirement("QB-3.1.2.3-01")
@pytest.mark.requirement("QB-3.1.5.2-03", "QB-3.1.5.2-05", "QB-3.1.6.1-02")
def test_refused_connection_is_written_down_and_tried_again_from_the_start() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    name = rf"DIRECT=OS:{there.name}\private$\orders"
    estate.refusing.add(there.address)
    here.send(name, b"one")
    estate.settle()
    queue = here.outgoing(name)
    (attempt,) = queue.connection_history
    assert attempt.status is REFUSED
    assert attempt.time == estate.clock.time()
    assert attempt.error is MqStatus.SERVICE_NOT_AVAILABLE
    assert attempt.addresses == (there.address,)
    assert state_of(queue) is OutgoingState.DISCONNECTED
    # when the only address was tried, the next try begins with the name
    estate.refusing.clear()
    estate.advance(RETRY - 0.1)
    assert here.lookups == ["SALES02"]
    estate.advance(0.2)
    assert here.lookups == ["SALES02", "SALES02"]
    assert bodies(orders) == [b"one"]


@pytest.mark.requirement("DM-3.1.1.3-21")
@pytest.mark.requirement("QB-3.1.5.2-04", "QB-3.1.5.2-05")
def test_failure_of_an_unknown_kind_is_an_unknown_failure_with_a_status() -> None:
    # given a host that cannot name what went wrong
    estate, here, there = given_two()
    name = direct(there, "orders")
    here.send(name, b"one")
    while not here.transport.sessions:
        node, event, args = estate._later.popleft()
        node.run(event, *args)
    (session,) = here.transport.sessions
    status = ConnectionStatus.UNKNOWN_FAILURE
    here.run(here.transport.connect_failed, session, status, "the cable hums")
    (attempt,) = here.outgoing(name).connection_history
    assert attempt.status is status
    assert attempt.error is MqStatus.ERROR
    assert attempt.addresses == (there.address,)


@pytest.mark.requirement("QB-3.1.6.1-03", "QB-3.1.6.1-04", "QB-3.1.6.1-02", "QB-3.1.5.2.1-14")
def test_next_address_is_tried_without_a_new_look_at_the_name() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    estate.names["sales02"] = ["10.0.0.8", "10.0.0.9"]
    name = r"DIRECT=OS:SALES02\private$\orders"
    here.send(name, b"one")
    estate.settle()
    queue = here.outgoing(name)
    # the first refuses: the second gets its turn after one interval, and nobody asks for names
    estate.advance(RETRY)
    tried = [attempt.addresses for attempt in queue.connection_history]
    assert tried == [("10.0.0.8",), ("10.0.0.9",)]
    assert here.lookups == ["SALES02"]
    # the last refuses too: now the name is resolved again, and the first address is first again
    estate.names["sales02"] = [there.address]
    estate.advance(RETRY)
    assert here.lookups == ["SALES02", "SALES02"]
    assert state_of(queue) is OutgoingState.CONNECTED


@pytest.mark.requirement("QB-3.1.6.1-03", "QB-3.1.5.2.1-13", "QB-3.1.5.2.1-15")
def test_each_next_hop_is_asked_for_by_its_own_identifier() -> None:
    estate, here, there = given_two()
    router = estate.node("SALES03", 3)
    ways = given_ways(here)
    ways.owner = there.identifier
    ways.hops = [
        NextHopName(router.identifier, "SALES03"),
        NextHopName(there.identifier, "SALES02"),
    ]
    estate.refusing.add(router.address)
    here.send(FAR, b"one")
    estate.settle()
    assert here.lookups == ["SALES03", "SALES02"]
    estate.advance(RETRY)
    assert request_of(here).server_guid == there.identifier.bytes_le
    assert here.outgoing(FAR).next_hops == [f"IP={there.address}"]


def test_host_that_answers_as_another_queue_manager_gets_no_message() -> None:
    # given a name that leads to the wrong computer
    estate, here, there = given_two()
    other = estate.node("SALES03", 3)
    orders = there.queue("orders")
    given_routes(estate)
    estate.names["sales02"] = [other.address]
    here.send(there.private_name(orders), b"one")
    estate.advance(3 * RETRY)
    # then it refuses, nothing is sent, and it is tried again and again
    assert all(sent_bodies(line) == [] for line in here.lines)
    assert len(here.lines) >= 3
    queue = here.outgoing(there.private_name(orders))
    assert queue.connection_history[-1].status is ConnectionStatus.CONNECTION_NOT_READY
    estate.names["sales02"] = [there.address]
    estate.advance(RETRY)
    assert bodies(orders) == [b"one"]


@pytest.mark.requirement("QB-3.1.5.9-02", "QB-3.1.5.9-06", "QB-3.1.5.9-07")
def test_peer_that_never_answers_is_given_up_after_a_minute_and_tried_at_its_next_address() -> None:
    estate, here, there = given_two()
    mute = estate.node("MUTE", 9)
    there.queue("orders")
    estate.names["sales02"] = [mute.address, there.address]
    name = r"DIRECT=OS:SALES02\private$\orders"
    here.send(name, b"one")
    while not here.lines:
        node, event, args = estate._later.popleft()
        node.run(event, *args)
    here.lines[0].outbox.clear()  # the request never arrives
    queue = here.outgoing(name)
    estate.advance(59.0)
    assert state_of(queue) is OutgoingState.WAITING
    estate.advance(1.5)
    assert state_of(queue) is OutgoingState.DISCONNECTED
    assert here.lines[0].is_closed
    estate.advance(RETRY)
    assert state_of(queue) is OutgoingState.CONNECTED
    assert here.lookups == ["SALES02"]


@pytest.mark.requirement("DM-3.1.1.3-09")
@pytest.mark.requirement("QB-3.1.5.9-02", "QB-3.1.5.9-06")
def test_queue_passes_through_disconnecting(monkeypatch: pytest.MonkeyPatch) -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.settle()
    queue = here.outgoing(name)
    seen: list[OutgoingState] = []
    change = peers._set_state

    def watch(peer: peers.Peer, state: OutgoingState) -> None:
        change(peer, state)
        seen.append(queue.state)

    monkeypatch.setattr(peers, "_set_state", watch)
    estate.cut(here.lines[0])
    assert seen == [OutgoingState.DISCONNECTING, OutgoingState.DISCONNECTED]


@pytest.mark.requirement("QB-3.1.7.3-01", "QB-3.1.5.9-07")
def test_lost_connection_closes_the_session_and_opens_another_for_what_waits() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    there.holds_commits = True  # so that nothing is acknowledged
    name = direct(there, "orders")
    here.send(name, b"one", recoverable=True)
    estate.settle()
    (session,) = here.transport.sessions
    estate.cut(here.lines[0])
    assert session.state is SessionState.CLOSED
    assert here.transport.sessions == []
    estate.advance(RETRY - 0.1)
    assert here.transport.sessions == []
    estate.advance(0.2)
    assert here.outgoing(name).state is OutgoingState.CONNECTED
    there.release_commits()
    estate.advance(20.0)
    assert bodies(orders) == [b"one"]


@pytest.mark.requirement("QB-3.1.6.1-01", "QB-3.1.5.9-07")
def test_nobody_connects_again_when_nothing_waits() -> None:
    estate, here, there = given_two()
    there.queue("orders")
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.advance(15.0)
    assert not len(here.outgoing(name).positions)
    estate.cut(here.lines[0])
    estate.advance(10 * RETRY)
    assert len(here.lines) == 1
    assert here.outgoing(name).state is OutgoingState.DISCONNECTED


@pytest.mark.requirement("QB-3.1.6.1-01")
def test_retry_does_nothing_when_the_messages_are_gone_meanwhile() -> None:
    estate, here, there = given_two()
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    here.send(name, b"one", time_to_reach_queue=2)
    estate.settle()
    queue = here.outgoing(name)
    tries = len(queue.connection_history)
    estate.advance(10 * RETRY)  # the message expires before the first retry
    assert not len(queue.positions)
    assert len(queue.connection_history) == tries
    # but the next message is sent at once
    estate.refusing.clear()
    orders = there.queue("orders")
    here.send(name, b"two")
    estate.settle()
    assert bodies(orders) == [b"two"]


@pytest.mark.requirement("QB-3.1.6.1-05")
def test_messages_are_sent_again_on_the_new_session_in_their_order() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    there.holds_commits = True
    name = direct(there, "orders")
    for number in range(5):
        here.send(name, b"%d" % number, recoverable=True)
    estate.settle()
    assert len(sent_bodies(here.lines[0])) == 5
    there.restart()  # it forgets what it had not written
    orders = there.core.private_numbers[orders.private_queue_number]
    estate.advance(2 * RETRY)
    assert sent_bodies(here.lines[1]) == [b"0", b"1", b"2", b"3", b"4"]
    assert bodies(orders) == [b"0", b"1", b"2", b"3", b"4"]


def test_history_of_a_queue_does_not_grow_without_end() -> None:
    estate, here, there = given_two()
    estate.refusing.add(there.address)
    name = direct(there, "orders")
    here.send(name, b"one")
    estate.advance(1000 * RETRY)
    assert len(here.outgoing(name).connection_history) == peers.HISTORY_MAX


# Start and stop


@pytest.mark.requirement("QB-3.1.4.1-01", "QB-3.1.4.1-02", "QB-3.1.1.3.1-19", "DM-3.1.4.1-02")
def test_started_queue_manager_opens_sessions_where_messages_wait_and_nowhere_else() -> None:
    estate, here, there = given_two()
    third = estate.node("SALES03", 3)
    orders, bills = there.queue("orders"), third.queue("bills")
    here.send(direct(third, "bills"), b"gone", recoverable=True)
    estate.advance(15.0)  # it is sent and acknowledged: nothing waits for the third
    estate.refusing.add(there.address)
    here.send(direct(there, "orders"), b"one", recoverable=True)
    estate.settle()
    # when it restarts, and nobody sends anything
    estate.refusing.clear()
    here.restart()
    estate.settle()
    assert bodies(orders) == [b"one"]
    assert bodies(bills) == [b"gone"]
    assert [line.other.node for line in here.lines if line.other] == [there]


@pytest.mark.requirement("QB-3.1.4.2-01")
def test_stopped_queue_manager_acknowledges_what_is_durable_and_closes_its_sessions() -> None:
    estate, here, there = given_two()
    orders = there.queue("orders")
    here.send(direct(there, "orders"), b"one", recoverable=True)
    estate.settle()
    assert len(here.outgoing(direct(there, "orders")).positions) == 1  # no acknowledgment yet
    there.run(there.transport.stop)
    estate.settle()
    assert there.transport.sessions == []
    assert there.lines[0].is_closed
    assert not len(here.outgoing(direct(there, "orders")).positions)
    assert bodies(orders) == [b"one"]
    # and it opens no other
    estate.advance(100.0)
    assert there.transport.sessions == []


def test_stopped_sender_does_not_connect_again() -> None:
    estate, here, there = given_two()
    there.holds_commits = True
    there.queue("orders")
    here.send(direct(there, "orders"), b"one", recoverable=True)
    estate.settle()
    here.run(here.transport.stop)
    estate.advance(100.0)
    assert here.transport.sessions == []
    assert len(here.lines) == 1
