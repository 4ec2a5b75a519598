"""One session with another queue manager, without its socket (MQQB 3.1.1.3.1, 3.1.5.1 to 3.1.5.10).

How to think about it. Bytes and the time go in; events, bytes to send and a deadline come out. The
two kinds of session differ only in how they open (initiator.py, acceptor.py); an open one is the
same on both sides: user messages and acknowledgements, each way.

    receive_data, handle_timer, send, settle   then   events(), data_to_send(), deadline

A peer that breaks a rule is no error of ours: the session closes and says why. Packets in front of
the fault have been received and count. A closed session stays closed; for the next try there is a
new one, with all its counts at their start (QB-3.1.3.2-01 to -09).

A message goes through a session in two steps on each side. The receiver hands it out at once
(`MessageReceived`) and acknowledges it only when its caller says that it is on disk (`settle`). The
sender hears of both in `MessagesAcknowledged`: received, and, for recoverable ones, stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import inf
from typing import Any, ClassVar, Final

from falconmq.errors import WireError
from falconmq.transport.counters import ACK_BITS, NUMBERS_MAX, ReceivedMessages, SendWindow
from falconmq.transport.session_timers import SessionTimers
from falconmq.transport.settings import TransportSettings
from falconmq.wire.base_header import INTERNAL, SESSION_HEADER
from falconmq.wire.connection_parameters import ACK_TIMEOUT_MAX, ACK_TIMEOUT_MIN
from falconmq.wire.packet import Packet, decode_packet
from falconmq.wire.reader import Buffer, Reader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SIZE as SESSION_HEADER_SIZE
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.user_header import (
    DELIVERY_MODE,
    DELIVERY_MODE_SHIFT,
    DESTINATION_QUEUE_TYPE,
    DESTINATION_QUEUE_TYPE_SHIFT,
    RECOVERABLE,
)
from falconmq.wire.user_message import UserMessage

PAUSED_WINDOW_SIZE: Final = 1  # QB-3.1.7.13-07
_FLAGS_OFFSET: Final = 2  # of the byte of BaseHeader.Flags that holds IN and SH
_RECOVERABLE: Final = RECOVERABLE << DELIVERY_MODE_SHIFT
_DIRECT: Final = 7 << DESTINATION_QUEUE_TYPE_SHIFT
_LARGE: Final = 65_536  # bytes; a packet of this size is not copied only to free its buffer


class SessionState(Enum):
    """SessionState, QB-3.1.1.3.1-23. WAITING_RECONNECT is a state of those who try again."""

    OPEN = auto()
    CLOSED = auto()
    WAITING_CP_MSG = auto()
    WAITING_CPR_MSG = auto()
    WAITING_EC_MSG = auto()
    WAITING_ECR_MSG = auto()
    WAITING_RECONNECT = auto()


Transitions = Mapping[tuple[SessionState, type[Packet]], SessionState]

# Every legal step of an open session. A packet that is not listed for its state closes the session:
# QB-3.1.5.3-01, QB-3.1.5.4-01, QB-3.1.5.5-01, QB-3.1.5.8-01.
OPEN_TRANSITIONS: Final[Transitions] = {
    (SessionState.OPEN, UserMessage): SessionState.OPEN,
    (SessionState.OPEN, SessionAck): SessionState.OPEN,
}


@dataclass(slots=True, eq=False)
class SessionOpened:
    """User messages may flow now, both ways (QB-2.1.1-03)."""


@dataclass(slots=True, eq=False)
class MessageReceived:
    """A user message came; `settle` it when it is on disk or otherwise done with.

    `data` is the packet as the store keeps it: without SessionHeader, SH cleared. `packet` is the
    same decoded.
    """

    packet: UserMessage
    data: Buffer


@dataclass(slots=True, eq=False)
class MessagesAcknowledged:
    """Entries given to `send` that the peer has received, and recoverable ones it has on disk.

    An entry is in each list once at most. An express one is never in `stored`.
    """

    received: list[Any]
    stored: list[Any]


@dataclass(slots=True, eq=False)
class SessionClosed:
    """The last event of a session; close the connection (QB-3.1.5.9-03)."""

    reason: str


Event = SessionOpened | MessageReceived | MessagesAcknowledged | SessionClosed


class Session:
    """What both sides share. Time is in seconds of one monotonic clock."""

    TRANSITIONS: ClassVar[Transitions] = OPEN_TRANSITIONS
    is_initiator: ClassVar[bool]

    def __init__(
        self, settings: TransportSettings, queue_manager: bytes, remote_address: str
    ) -> None:
        self.state = SessionState.WAITING_EC_MSG  # QB-3.1.3.2-35
        self.is_direct = False
        self.remote_guid: bytes | None = None  # RemoteQMGuid
        self.remote_address = remote_address  # RemoteQMAddress
        self.direct_format_session = False  # QB-3.1.3.2-28
        self.opened_at: float | None = None
        self.acknowledged_at: float | None = None  # when the peer said what it has, the last time
        self.bytes_sent = 0
        self.bytes_received = 0
        self._settings = settings
        self._queue_manager = queue_manager
        self._splitter = PacketSplitter()
        self._events: list[Event] = []
        self._to_send: list[Buffer] = []
        self._received = ReceivedMessages()
        self._window = SendWindow(settings.window_size)
        self._session_active = False  # QB-3.1.3.2-24
        self._received_ack = False  # QB-3.1.3.2-25
        timeout_ms = round(1000 * (settings.ack_wait_timeout + settings.round_trip_delay))
        self._ack_wait_timeout_ms = min(max(timeout_ms, ACK_TIMEOUT_MIN), ACK_TIMEOUT_MAX)
        self._recoverable_ack_send_timeout_ms = 0xFFFFFFFF  # QB-3.1.3.2-31
        self._timers = SessionTimers()

    # What a caller may know

    @property
    def deadline(self) -> float | None:
        """When to call `handle_timer`."""
        return self._timers.deadline

    @property
    def is_closed(self) -> bool:
        return self.state is SessionState.CLOSED

    @property
    def can_send(self) -> bool:
        return self.state is SessionState.OPEN and self._window.is_open  # QB-3.1.7.1-03

    @property
    def unacked(self) -> int:
        """UnAckedMessageCount: sent and not acknowledged as received."""
        return self._window.unacked

    @property
    def window(self) -> int:
        """How many messages may be unacknowledged now."""
        return self._window.window

    @property
    def pending(self) -> int:
        """Bytes of a packet that is not whole yet."""
        return self._splitter.pending

    @property
    def unsettled(self) -> int:
        """Received and not settled; a host that reads on regardless fills its memory."""
        return self._received.unsettled

    @property
    def messages_sent(self) -> int:
        return self._window.sent

    @property
    def messages_received(self) -> int:
        return self._received.received

    def events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def data_to_send(self) -> list[Buffer]:
        """The bytes to write, also those that a session had to say before it closed (QB-A07)."""
        data, self._to_send = self._to_send, []
        self.bytes_sent += sum(map(len, data))
        return data

    # What may happen to it

    def receive_data(self, data: bytes, now: float) -> None:
        """Take bytes from the peer. They must not change afterwards."""
        if self.is_closed:
            return
        self.bytes_received += len(data)
        splitter = self._splitter
        splitter.feed(data)
        try:
            while (packet := splitter.take()) is not None:
                self._received_ack = True  # QB-3.1.5.1-01
                if self.state is SessionState.OPEN and not packet[_FLAGS_OFFSET] & INTERNAL:
                    self._receive_user_message(packet, now)
                else:
                    self._step(decode_packet(packet), now)
                if self.state is SessionState.CLOSED:
                    return
        except WireError as error:  # QB-3.1.5.1.2-02, QB-3.1.5.1.3-01
            self.close(f"malformed packet: {error}")

    def handle_timer(self, now: float) -> None:
        """Raise the events of the timers that have ended (MQQB 3.1.6)."""
        if self.is_closed:
            return
        if now >= self._timers.initialization:  # QB-3.1.6.6-01
            self.close(f"not open after {self._settings.initialization_timeout:g} seconds")
            return
        if now >= self._timers.ack_send:
            self._end_ack_send_timer(now)
        if now >= self._timers.window_growth:
            self._window.grow()
            self._start_window_timer(now)
        if now >= self._timers.ack_wait:
            self._end_ack_wait_timer(now)
        if now >= self._timers.cleanup:
            self._end_cleanup_timer(now)

    def send(self, data: Sequence[Buffer], *, entry: Any, recoverable: bool, now: float) -> None:
        """Send one user message, given in pieces without a SessionHeader, while `can_send`."""
        if self.is_closed:
            return
        assert self.can_send, "the window is closed"
        self._window.add(entry, recoverable)
        if now > self._timers.piggy_back_after and self._received.has_news:
            self._piggy_back(data, now)
        else:
            self._to_send += data
        if self._timers.ack_wait == inf:  # QB-3.1.7.1.3-20
            self._start_ack_wait_timer(now)
        self._session_active = True  # QB-3.1.7.1.3-21

    def settle(self, count: int, now: float) -> None:
        """The oldest `count` messages that came are on disk, or otherwise done with."""
        if self.is_closed:
            return
        received = self._received
        had_bits = received.bits > 0
        left = received.settle(count)
        while received.bits > ACK_BITS:  # QB-3.1.5.8.7-02
            self._send_session_ack(now)
            had_bits = False
            left = received.settle(left)
        if received.settled_unacknowledged >= max(self._window.window // 2, 1):  # QB-A31
            self._send_session_ack(now)
        elif received.bits and not had_bits:  # QB-3.1.5.8.7-13
            # Never later than any other message: on a slow line eight round trips are longer than
            # the peer waits before it gives the session up.
            timeout_ms = min(self._recoverable_ack_send_timeout_ms, self._ack_wait_timeout_ms / 2)
            self._timers.start_ack_send(timeout_ms, now)

    def acknowledge_now(self, now: float) -> None:
        """Acknowledge what is settled, if it is not acknowledged yet."""
        if self.state is SessionState.OPEN and self._received.has_news:
            self._send_session_ack(now)

    def pause(self, now: float) -> None:
        """The session part of Pause Queue: ask the peer to slow down (MQQB 3.1.7.13)."""
        if self.state is SessionState.OPEN:
            self._send_session_ack(now, PAUSED_WINDOW_SIZE)
            self._session_active = False  # QB-3.1.7.13-10

    def close(self, reason: str) -> None:
        """Close the session (MQQB 3.1.5.9). No packet tells the peer (QB-3.1.5.9-01)."""
        if self.is_closed:
            return
        self.state = SessionState.CLOSED  # QB-3.1.5.9-05
        self._timers.stop()  # QB-3.1.5.9-04
        self._splitter = PacketSplitter()  # nobody will read what it holds
        self._events.append(SessionClosed(reason))

    # Opening

    def _negotiate(self, packet: Packet, now: float) -> str:
        """Answer a packet of the opening that came in its state; or say why to close."""
        raise NotImplementedError

    def _step(self, packet: Packet, now: float) -> None:
        next_state = self.TRANSITIONS.get((self.state, type(packet)))
        if next_state is None:
            self.close(f"{type(packet).__name__} is not allowed in {self.state.name}")
        elif isinstance(packet, SessionAck):
            self._receive_session_header(packet.session, now)
        elif problem := self._negotiate(packet, now):
            self.close(problem)
        else:
            self.state = next_state
            if next_state is SessionState.OPEN:
                self._timers.initialization = inf  # QB-3.1.5.4.1-12, QB-3.1.5.4.2-04
                self.opened_at = now
                self._events.append(SessionOpened())

    def _start_timers(self, now: float) -> None:
        """The timers that run from the start of a session."""
        self._start_initialization_timer(now)
        self._timers.cleanup = now + self._settings.cleanup_interval  # QB-3.1.3.2-12

    def _start_initialization_timer(self, now: float) -> None:
        self._timers.initialization = now + self._settings.initialization_timeout

    # Receiving

    def _receive_user_message(self, view: memoryview, now: float) -> None:
        """Count a user message and hand it out (MQQB 3.1.5.8.2), then read its SessionHeader."""
        header = None
        data: Buffer
        if view[_FLAGS_OFFSET] & SESSION_HEADER:
            size = len(view) - SESSION_HEADER_SIZE
            header = SessionHeader.read(Reader(view, size))
            data = _without_session_header(view[:size])
        elif len(view) >= _LARGE and len(view) == len(view.obj):  # type: ignore[arg-type]
            data = view  # the only view of its buffer
        else:
            data = bytes(view)
        packet = UserMessage.read(Reader(data))
        flags = packet.user.flags
        received = self._received
        received.add(flags & DELIVERY_MODE == _RECOVERABLE)
        if flags & DESTINATION_QUEUE_TYPE == _DIRECT:  # QB-3.1.5.8.2-04
            self.direct_format_session = True
        if self._timers.ack_send == inf:  # QB-3.1.5.8.2-09
            self._timers.start_ack_send(self._ack_wait_timeout_ms / 2, now)
        self._session_active = True  # QB-3.1.5.8.2-10
        self._events.append(MessageReceived(packet, data))
        if header is not None:  # QB-3.1.5.8.4-02
            self._receive_session_header(header, now)
        elif received.unacknowledged > NUMBERS_MAX:
            self.close(f"{received.unacknowledged} messages came without waiting for an answer")

    def _receive_session_header(self, header: SessionHeader, now: float) -> None:
        """What the peer has of ours, and whether the counts agree (MQQB 3.1.5.5)."""
        self.acknowledged_at = now
        received, stored = self._window.acknowledge(header)
        if received or stored:
            self._events.append(MessagesAcknowledged(received, stored))
        if problem := self._received.check(header):
            self.close(problem)
            return
        self._window.resize(header.window_size)
        self._start_window_timer(now)
        if self._window.unacked:  # QB-3.1.5.5.5-03
            self._start_ack_wait_timer(now)

    # Acknowledging

    def _session_header(self, window_size: int) -> SessionHeader:
        """What we have of the peer's messages; it is told once (QB-A24, QB-A25)."""
        number, first_recoverable, bits = self._received.acknowledge()
        return SessionHeader(
            number,
            first_recoverable,
            bits,
            self._window.sent & 0xFFFF,
            self._window.recoverable_sent & 0xFFFF,
            window_size,
        )

    def _send_session_ack(self, now: float, window_size: int = 0) -> None:
        header = self._session_header(window_size or self._window.own_window)
        self._to_send.append(SessionAck(header).encode())
        if self._received.unacknowledged:  # QB-A32
            self._timers.start_ack_send(self._ack_wait_timeout_ms / 2, now)
        else:
            self._timers.stop_ack_send()

    def _piggy_back(self, data: Sequence[Buffer], now: float) -> None:
        """Send a user message with a SessionHeader behind it, which PacketSize leaves out."""
        first = memoryview(data[0])
        flags = first[_FLAGS_OFFSET] | SESSION_HEADER  # QB-3.1.7.11-09
        self._to_send.append(bytes((*first[:_FLAGS_OFFSET], flags)))
        self._to_send.append(first[_FLAGS_OFFSET + 1 :])
        self._to_send += data[1:]
        self._to_send.append(self._session_header(self._window.own_window).encode())
        self._timers.start_ack_send(self._ack_wait_timeout_ms / 2, now)  # QB-3.1.7.11-11

    # Timers

    def _end_ack_send_timer(self, now: float) -> None:
        """Session Ack Send Timer Event, MQQB 3.1.6.4.

        Messages that wait for the disk count as received: the peer hears that we live, and keeps
        the session.
        """
        if self._received.unacknowledged or self._received.has_news:  # QB-3.1.6.4-01
            self._send_session_ack(now)
        else:
            self._timers.stop_ack_send()  # QB-A32

    def _start_ack_wait_timer(self, now: float) -> None:
        factor = self._settings.direct_ack_wait_factor if self.is_direct else 1  # QB-3.1.2.4-01
        self._timers.ack_wait = now + factor * self._ack_wait_timeout_ms / 1000

    def _end_ack_wait_timer(self, now: float) -> None:
        """Session Ack Wait Timer Event, MQQB 3.1.6.3."""
        if not self._window.unacked:  # QB-3.1.6.3-01
            self._timers.ack_wait = inf
        elif self._received_ack:  # QB-3.1.6.3-03
            self._start_ack_wait_timer(now)
        else:  # QB-3.1.6.3-02
            self.close(f"{self._window.unacked} messages are not acknowledged, the peer is silent")
        self._received_ack = False

    def _start_window_timer(self, now: float) -> None:
        """A window that the peer made small grows again by and by (QB-A30)."""
        wait = self._settings.window_growth_interval
        self._timers.window_growth = now + wait if self._window.is_shrunk else inf

    def _end_cleanup_timer(self, now: float) -> None:
        """Session Cleanup Timer Event, MQQB 3.1.6.2."""
        if self._session_active:  # QB-3.1.6.2-02
            self._session_active = False
            self._timers.cleanup = now + self._settings.cleanup_interval
        else:  # QB-3.1.6.2-01
            self.close(f"no message in {self._settings.cleanup_interval:g} seconds")


def _without_session_header(packet: memoryview) -> bytes:
    """The packet as if it had come alone; the SessionHeader is already cut off."""
    flags = packet[_FLAGS_OFFSET] & ~SESSION_HEADER
    return b"".join((packet[:_FLAGS_OFFSET], bytes((flags,)), packet[_FLAGS_OFFSET + 1 :]))
