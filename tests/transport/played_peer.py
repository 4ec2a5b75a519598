"""A session whose far end is played by the test: it says when, and what, is acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from falconmq.manager.model import OutgoingQueue
from falconmq.manager.states import ConnectionStatus, OutgoingState
from falconmq.transport.routing import StaticRouter
from falconmq.wire.ordering_acks import FinalAck, FinalAckBody, OrderAck, OrderAckBody
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.transport.estate import Estate, Line, Node

ACK_RECEIVE = 0x4000


def given_routes(estate: Estate, routes: dict[UUID, Sequence[UUID]] | None = None) -> None:
    """Let everybody know every queue manager of the estate, and these ways between them."""
    estate.routes = routes or {}
    estate.router = StaticRouter(estate.hosts, estate.routes)
    for node in estate.nodes.values():
        node.transport.router = estate.router


def fail_power(node: Node) -> None:
    """The power fails and comes back: it has no time to see its connections go."""
    node.holds_commits = True
    node.restart()


def user_messages(line: Line) -> list[UserMessage]:
    """The user messages that were sent from this end, in order."""
    return [packet for packet in line.packets if isinstance(packet, UserMessage)]


def sent_bodies(line: Line) -> list[bytes]:
    return [bytes(message.properties.message_body) for message in user_messages(line)]


def transaction_of(message: UserMessage) -> TransactionHeader:
    header = message.transaction
    assert header is not None
    return header


def state_of(queue: OutgoingQueue) -> OutgoingState:
    """Its state now; a look at the attribute would be remembered by the type checker."""
    return queue.state


def history(queue: OutgoingQueue) -> list[ConnectionStatus]:
    return [attempt.status for attempt in queue.connection_history]


class PlayedPeer:
    """What is at the other end of a line, from now on; what was sent to it is not read."""

    def __init__(self, line: Line, *, greetings: int = 0) -> None:
        assert line.other is not None
        assert line.session is not None
        self.line = line
        self.real = line.other.node
        self.greetings = greetings  # messages that this session had sent before
        self.sent = self.recoverable_sent = 0
        old, far = line.other, Line(self.real)
        line.other, far.other = far, line
        nobody = Line(self.real)
        nobody.is_closed = True
        old.other = nobody

    @classmethod
    def given(cls, estate: Estate, node: Node, destination: str) -> PlayedPeer:
        """Let a session open on the way to a destination, and take over its other end.

        The queue of the destination has sent nothing yet; but its session is open.
        """
        node.send(destination, b"hello")
        estate.settle()
        estate.advance(11.0)  # until the greeting is acknowledged
        queue = node.outgoing(destination)
        assert queue.state is OutgoingState.CONNECTED
        assert not len(queue.positions)
        line = next(line for line in reversed(node.lines) if not line.is_closed)
        line.written.clear()
        return cls(line, greetings=1)

    @property
    def messages(self) -> list[UserMessage]:
        """What was sent since the test took over."""
        return user_messages(self.line)

    @property
    def bodies(self) -> list[bytes]:
        return sent_bodies(self.line)

    @property
    def acks(self) -> list[SessionAck]:
        return [packet for packet in self.line.packets if isinstance(packet, SessionAck)]

    def write(self, data: bytes) -> None:
        node, session = self.line.node, self.line.session
        assert session is not None
        node.run(node.transport.data_received, session, data)

    def acknowledge(self, number: int, first: int = 0, bits: int = 0, window: int = 64) -> None:
        """Send a SessionAck; `number` counts from the test's taking over."""
        sent, recoverable = self.sent, self.recoverable_sent
        header = SessionHeader(number + self.greetings, first, bits, sent, recoverable, window)
        self.write(SessionAck(header).encode())

    def order_ack(self, tx_sequence_id: int, number: int, *, sender: Node | None = None) -> None:
        ack = OrderAck(OrderAckBody.up_to(tx_sequence_id, number))
        self.sent += 1
        self._send(ack, sender)

    def final_ack(
        self, message: UserMessage, message_class: int = ACK_RECEIVE, *, source: bytes = b""
    ) -> None:
        body = FinalAckBody.about(message)
        body.source_guid = source or body.source_guid
        self.sent += 1
        self.recoverable_sent += 1
        self._send(FinalAck(body, message_class), None)

    def _send(self, ack: OrderAck | FinalAck, sender: Node | None) -> None:
        node = self.line.node
        packet = ack.to_user_message(
            source_queue_manager=(sender or self.real).identifier.bytes_le,
            destination=node.identifier.bytes_le,
            sent_time=int(node.core.clock.time()),
            message_id=0x7000_0000 + self.sent,
        )
        self.write(packet.encode())
