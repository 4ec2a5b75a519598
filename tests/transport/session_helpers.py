"""Sessions to test with: alone in any state, or two joined by a wire in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from falconmq.transport.acceptor import AcceptorSession
from falconmq.transport.initiator import InitiatorSession
from falconmq.transport.session import (
    MessageReceived,
    MessagesAcknowledged,
    Session,
    SessionClosed,
    SessionState,
)
from falconmq.transport.settings import TransportSettings
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.packet import Packet, decode_packet
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage

US = bytes(range(16))
PEER = bytes(range(100, 116))
OTHER = bytes(range(200, 216))
NULL = bytes(16)
ADDRESS = "192.0.2.7"
SETTINGS = TransportSettings()
AnyPacket = TypeVar("AnyPacket", EstablishConnection, ConnectionParameters, SessionAck, UserMessage)


def user_message(
    body: bytes = b"hello",
    *,
    recoverable: bool = False,
    direct: bool = False,
    session: SessionHeader | None = None,
) -> UserMessage:
    destination = "TCP:192.0.2.1\\private$\\orders" if direct else 12
    flags = (7 if direct else 3) << 10 | 1 << 21 | recoverable << 5
    user = UserHeader(PEER, NULL if direct else US, 0xFFFFFFFF, 1, 1, flags, destination)
    properties = MessagePropertiesHeader(message_body=body)
    return UserMessage(BaseHeader(3, 20), user, properties, session=session)


EXPRESS = user_message().encode()
RECOVERABLE = user_message(recoverable=True).encode()


def session_ack(
    number: int = 0,
    first_recoverable: int = 0,
    bits: int = 0,
    sent: int = 0,
    recoverable_sent: int = 0,
    window_size: int = 64,
) -> bytes:
    header = SessionHeader(number, first_recoverable, bits, sent, recoverable_sent, window_size)
    return SessionAck(header).encode()


def new_initiator(
    settings: TransportSettings = SETTINGS,
    *,
    remote_guid: bytes | None = PEER,
    is_direct: bool = False,
    pinged: bool = False,
) -> InitiatorSession:
    return InitiatorSession(
        settings,
        US,
        remote_guid=remote_guid,
        remote_address=ADDRESS,
        is_direct=is_direct,
        pinged=pinged,
    )


def new_acceptor(settings: TransportSettings = SETTINGS, now: float = 0.0) -> AcceptorSession:
    return AcceptorSession(settings, US, ADDRESS, now)


def request(server_guid: bytes = US) -> EstablishConnection:
    return EstablishConnection.request(PEER, server_guid, uptime_ms=4711)


def open_initiator(
    settings: TransportSettings = SETTINGS,
    *,
    is_direct: bool = False,
    window_size: int = 64,
    round_trip: float = 0.1,
) -> InitiatorSession:
    """Open, at time `round_trip`; its events and bytes have been taken."""
    session = new_initiator(settings, is_direct=is_direct)
    session.connected(0.0)
    (asked,) = sent_packets(session, EstablishConnection)
    session.receive_data(asked.response(PEER).encode(), round_trip)
    (parameters,) = sent_packets(session, ConnectionParameters)
    session.receive_data(parameters.response(window_size).encode(), round_trip)
    assert session.state is SessionState.OPEN
    session.events()
    return session


def open_acceptor(
    settings: TransportSettings = SETTINGS,
    *,
    is_direct: bool = False,
    parameters: ConnectionParameters | None = None,
) -> AcceptorSession:
    """Open, at time 0; its events and bytes have been taken."""
    session = new_acceptor(settings)
    session.receive_data(request(NULL if is_direct else US).encode(), 0.0)
    session.receive_data((parameters or ConnectionParameters(500, 20_000)).encode(), 0.0)
    assert session.state is SessionState.OPEN
    session.events()
    session.data_to_send()
    return session


def in_state(initiator: bool, state: SessionState) -> Session:
    """A session of this side that stands in this state, with nothing left to take."""
    if state is SessionState.OPEN:
        return open_initiator() if initiator else open_acceptor()
    session: Session
    if initiator:
        session = calling = new_initiator()
        if state is not SessionState.WAITING_EC_MSG:
            calling.connected(0.0)
        if state is SessionState.WAITING_CPR_MSG:
            (asked,) = sent_packets(session, EstablishConnection)
            session.receive_data(asked.response(PEER).encode(), 0.0)
    else:
        session = new_acceptor()
        if state is SessionState.WAITING_CP_MSG:
            session.receive_data(request().encode(), 0.0)
    if state is SessionState.CLOSED:
        session.close("for a test")
    assert session.state is state
    session.events()
    session.data_to_send()
    return session


def sent_data(session: Session) -> bytes:
    return b"".join(session.data_to_send())


def packets_of(data: bytes) -> list[Packet]:
    splitter = PacketSplitter()
    splitter.feed(data)
    packets = [decode_packet(packet) for packet in splitter]
    assert not splitter.pending, "a packet was sent in part"
    return packets


def sent_packets(session: Session, kind: type[AnyPacket]) -> list[AnyPacket]:
    """What the session has to send, all of one kind."""
    packets: list[AnyPacket] = []
    for packet in packets_of(sent_data(session)):
        assert isinstance(packet, kind), f"{type(packet).__name__} was sent"
        packets.append(packet)
    return packets


def sent_header(session: Session) -> SessionHeader:
    """The SessionHeader of the one SessionAck that the session has to send."""
    (packet,) = sent_packets(session, SessionAck)
    return packet.session


def receive(session: Session, *packets: bytes, now: float = 1.0) -> None:
    session.receive_data(b"".join(packets), now)


def send(
    session: Session, *entries: object, recoverable: bool = False, now: float = 1.0
) -> list[bytes]:
    """Send one message for each entry; returns the packets as they were given."""
    given = []
    for entry in entries:
        data = user_message(str(entry).encode(), recoverable=recoverable).encode()
        session.send([data], entry=entry, recoverable=recoverable, now=now)
        given.append(data)
    return given


def received_bodies(session: Session) -> list[bytes]:
    return [
        bytes(event.packet.properties.message_body)
        for event in session.events()
        if isinstance(event, MessageReceived)
    ]


def acknowledged(session: Session) -> tuple[list[object], list[object]]:
    """All entries that the events since the last call tell received and stored."""
    received: list[object] = []
    stored: list[object] = []
    for event in session.events():
        assert isinstance(event, MessagesAcknowledged), event
        received += event.received
        stored += event.stored
    return received, stored


def close_reason(session: Session) -> str:
    """Why it closed; it must have, as its last event and only once."""
    assert session.state is SessionState.CLOSED
    events = session.events()
    assert [event for event in events if isinstance(event, SessionClosed)] == events[-1:]
    assert isinstance(events[-1], SessionClosed)
    return events[-1].reason


def assert_state(session: Session, state: SessionState) -> None:
    """Say why it closed, if it did."""
    assert session.state is state, [session.state, *map(str, session.events())]


def assert_open(*sessions: Session) -> None:
    for session in sessions:
        assert_state(session, SessionState.OPEN)


def joined(
    settings: TransportSettings = SETTINGS, peer_settings: TransportSettings | None = None
) -> tuple[InitiatorSession, AcceptorSession]:
    """Two open sessions, one for each end of a connection."""
    initiator = InitiatorSession(
        settings, US, remote_guid=PEER, remote_address=ADDRESS, is_direct=False
    )
    acceptor = AcceptorSession(peer_settings or settings, PEER, "192.0.2.1", 0.0)
    initiator.connected(0.0)
    for _ in range(2):
        acceptor.receive_data(sent_data(initiator), 0.0)
        initiator.receive_data(sent_data(acceptor), 0.0)
    assert_open(initiator, acceptor)
    initiator.events()
    acceptor.events()
    return initiator, acceptor


def run_timers(sessions: Sequence[Session], until: float) -> None:
    """Handle every timer of these sessions that ends up to a time, each at its time."""
    while True:
        due = [s for s in sessions if s.deadline is not None and s.deadline <= until]
        if not due:
            return
        session = min(due, key=lambda s: s.deadline or 0.0)
        assert session.deadline is not None
        session.handle_timer(session.deadline)
