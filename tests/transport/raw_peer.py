"""A peer played by hand: it writes whatever packets a test makes, and shows what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from falconmq.manager.model import Queue, ReadResult
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType
from falconmq.names import parse_format_name
from falconmq.transport.routing import Destination, NextHopName, StaticRouter
from falconmq.transport.session import Session
from falconmq.wire.base_header import INFINITE, TRACE, BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.ordering_acks import (
    FinalAck,
    FinalAckBody,
    OrderAck,
    OrderAckBody,
    from_user_message,
)
from falconmq.wire.packet import Packet
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage
from tests.transport.estate import Estate, Line, Node

ADDRESS: Final = "10.0.0.99"
ACKS: Final = rf"TCP:{ADDRESS}\private$\acks"  # the administration queue of a peer
Name: TypeAlias = str | int | bytes
"""A queue as a packet names it: a direct name, a private number, the GUID of a public queue."""


class LiveRouter:
    """A router that knows the queue managers of an estate as they come."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate

    def get_destination_info(self, name: Any) -> Destination | None:
        return self._now().get_destination_info(name)

    def get_next_hops(self, queue_manager: UUID) -> Sequence[NextHopName]:
        return self._now().get_next_hops(queue_manager)

    def connector_site(self, queue_manager: UUID) -> UUID | None:
        return self._now().connector_site(queue_manager)

    def is_foreign(self, queue_manager: UUID) -> bool:
        return self._now().is_foreign(queue_manager)

    def is_asked(self, name: Any) -> bool:
        return self._now().is_asked(name)

    def _now(self) -> StaticRouter:
        return StaticRouter(self._estate.hosts, self._estate.routes)


def routed_estate() -> Estate:
    """An estate whose queue managers find each other by their identifiers."""
    estate = Estate()
    estate.router = LiveRouter(estate)  # type: ignore[assignment]  # the same two questions
    return estate


class RawPeer:
    """The far end of one connection to a node."""

    def __init__(
        self,
        node: Node,
        *,
        address: str = ADDRESS,
        guid: bytes | None = None,
        session: Session | None = None,
    ) -> None:
        """Call a node; or, with a session of the node's that connects, answer its call."""
        self.node = node
        self.address = address
        self.guid = guid or UUID(int=0xABCD, version=4).bytes_le
        self.line = Line(node)
        self.next_message_id = 1
        node.estate.names.setdefault(address, [address])
        self.line.session = session
        if session is None:
            self.line.session = node.run(node.transport.accepted, self.line, address)
        else:
            node.run(node.transport.connected, session, self.line)

    @property
    def is_closed(self) -> bool:
        return self.line.is_closed

    @property
    def packets(self) -> list[Packet]:
        """Everything the node has sent to this peer."""
        return self.line.packets

    @property
    def session_acks(self) -> list[SessionHeader]:
        """The acknowledgments that came, alone or behind a message."""
        return [
            packet.session
            for packet in self.packets
            if isinstance(packet, SessionAck | UserMessage) and packet.session is not None
        ]

    @property
    def messages(self) -> list[UserMessage]:
        return [packet for packet in self.packets if isinstance(packet, UserMessage)]

    @property
    def classes(self) -> list[int]:
        """What the administration acknowledgments that came say, in order."""
        ordinary = [message for message in self.messages if from_user_message(message) is None]
        return [message.properties.message_class for message in ordinary]

    @property
    def order_acks(self) -> list[OrderAck]:
        acks = [from_user_message(message) for message in self.messages]
        return [ack for ack in acks if isinstance(ack, OrderAck)]

    @property
    def final_acks(self) -> list[FinalAck]:
        acks = [from_user_message(message) for message in self.messages]
        return [ack for ack in acks if isinstance(ack, FinalAck)]

    def write(self, *data: bytes) -> None:
        """Send these bytes as one segment."""
        session = self.line.session
        assert session is not None
        run(self.node, self.node.transport.data_received, session, b"".join(data))

    def open(self, *, direct: bool = True, window_size: int = 64) -> RawPeer:
        """Open the session as a well-behaved peer would."""
        server = NULL_GUID if direct else self.node.transport.guid
        self.write(EstablishConnection.request(self.guid, server, uptime_ms=4711).encode())
        self.write(ConnectionParameters(500, 20_000, window_size).encode())
        assert not self.is_closed
        return self

    def hang_up(self) -> None:
        session = self.line.session
        assert session is not None
        self.node.run(self.node.transport.connection_lost, session, "")
        self.line.is_closed = True

    def message(
        self,
        destination: Queue | Name,
        body: bytes = b"hello",
        *,
        message_id: int | None = None,
        source: bytes | None = None,
        address: bytes | None = None,
        recoverable: bool = False,
        transaction: tuple[int, int, int] | None = None,
        flags: int = 0,
        acknowledgements: int = 0,
        admin: Name | None = None,
        time_to_reach_queue: int = INFINITE,
        time_to_be_received: int = INFINITE,
        age: int = 0,
        report_queue: bytes | None = None,
        label: str = "",
        message_class: int = 0,
        session: SessionHeader | None = None,
    ) -> UserMessage:
        """A message of this peer's. `transaction` is TxSequenceID, number and previous number."""
        name = self.name_of(destination)
        if message_id is None:
            message_id, self.next_message_id = self.next_message_id, self.next_message_id + 1
        if address is None:
            address = NULL_GUID if isinstance(name, str) else self.node.transport.guid
        flags |= _type_of(name, private=3) << 10 | 1 << 21
        flags |= (recoverable or transaction is not None) << 5
        if admin is not None:
            flags |= _type_of(admin, private=2) << 13
        user = UserHeader(
            source or self.guid,
            address,
            time_to_be_received,
            int(self.node.core.clock.time()) - age,
            message_id,
            flags,
            name,
            admin,
        )
        properties = MessagePropertiesHeader(
            flags=acknowledgements, label=label, message_class=message_class, message_body=body
        )
        is_traced = report_queue is not None
        priority = 0 if transaction is not None else 3
        return UserMessage(
            BaseHeader(priority | is_traced * TRACE, 20, time_to_reach_queue),
            user,
            properties,
            None if transaction is None else TransactionHeader(0, *transaction),
            debug=DebugHeader(queue_identifier=report_queue) if is_traced else None,
            session=session,
        )

    def order_ack(self, sequence: int, number: int) -> UserMessage:
        """That the messages of a sequence of the node's have come, up to a number."""
        ack = OrderAck(OrderAckBody.up_to(sequence, number))
        return ack.to_user_message(**self._envelope())

    def final_ack(self, about: UserMessage, message_class: int) -> UserMessage:
        """How a message of the node's has ended."""
        return FinalAck(FinalAckBody.about(about), message_class).to_user_message(
            **self._envelope()
        )

    def _envelope(self) -> Any:
        message_id, self.next_message_id = self.next_message_id, self.next_message_id + 1
        return {
            "source_queue_manager": self.guid,
            "destination": self.node.transport.guid,
            "sent_time": int(self.node.core.clock.time()),
            "message_id": message_id,
        }

    def send(self, destination: Queue | Name, body: bytes = b"hello", **properties: Any) -> bytes:
        """Make a message and write it; the packet that went."""
        data = self.message(destination, body, **properties).encode()
        self.write(data)
        return data

    def name_of(self, destination: Queue | Name) -> Name:
        if not isinstance(destination, Queue):
            return destination
        return rf"TCP:{self.node.address}\private$\{destination.path_name.name}"


def _type_of(name: Name, *, private: int) -> int:
    if isinstance(name, str):
        return 7
    return private if isinstance(name, int) else 5


def read(node: Node, queue: Queue) -> StoredMessage:
    """An application takes the first message of a queue."""

    def take() -> StoredMessage:
        name = parse_format_name(node.private_name(queue))
        descriptor = open_queue(node.core, name, AccessType.RECEIVE)
        result = dequeue_message(node.core, descriptor, timeout=0)
        assert isinstance(result, ReadResult)
        assert result.position is not None, result.status
        message = result.position.message
        close_queue(node.core, descriptor)
        return message

    message: StoredMessage = run(node, take)
    return message


def run(node: Node, event: Callable[..., Any], *args: Any) -> Any:
    """One event of a user, and what comes of it on the lines."""
    result = node.run(event, *args)
    node.estate.settle()
    return result
