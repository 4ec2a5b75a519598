"""InitiatorSession: the side that connects (MQQB 3.1.1.1.1.1, 3.1.5.2.3, 3.1.5.3.2, 3.1.5.4.2)."""

from __future__ import annotations

from typing import ClassVar, Final

from falconmq.transport.session import OPEN_TRANSITIONS, Session, SessionState, Transitions
from falconmq.transport.settings import TransportSettings
from falconmq.wire.connection_parameters import (
    ConnectionParameters,
    clamp_recoverable_ack_timeout,
)
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID, guid_text
from falconmq.wire.packet import Packet

_ROUND_TRIPS: Final = 8  # QB-3.1.5.3.2-04


class InitiatorSession(Session):
    """A session that we open. `connected` begins it; whoever makes it brings TCP about."""

    is_initiator = True
    TRANSITIONS: ClassVar[Transitions] = {
        (SessionState.WAITING_ECR_MSG, EstablishConnection): SessionState.WAITING_CPR_MSG,
        (SessionState.WAITING_CPR_MSG, ConnectionParameters): SessionState.OPEN,
        **OPEN_TRANSITIONS,
    }

    def __init__(
        self,
        settings: TransportSettings,
        queue_manager: bytes,
        *,
        remote_guid: bytes | None,
        remote_address: str,
        is_direct: bool,
        pinged: bool = False,
    ) -> None:
        super().__init__(settings, queue_manager, remote_address)
        self.remote_guid = remote_guid
        self.is_direct = is_direct
        self._pinged = pinged
        # Whom we ask for. With a direct format name nobody knows before the answer comes.
        asked_for = None if is_direct else remote_guid
        self._server_guid = NULL_GUID if asked_for is None else asked_for  # QB-3.1.5.2.3-07

    def connected(self, now: float) -> None:
        """The connection is there: ask for a session (MQQB 3.1.5.2.3)."""
        if self.is_closed:
            return
        request = EstablishConnection.request(
            self._queue_manager,  # QB-3.1.5.2.3-06
            self._server_guid,
            uptime_ms=_milliseconds(now),  # QB-3.1.5.2.3-08
            pinged=self._pinged,  # QB-3.1.5.2.3-09
        )
        self._to_send.append(request.encode())
        self.state = SessionState.WAITING_ECR_MSG  # QB-3.1.5.2.3-11
        self._start_timers(now)  # QB-3.1.5.2.3-01, QB-3.1.5.2.3-13

    def _negotiate(self, packet: Packet, now: float) -> str:
        if isinstance(packet, EstablishConnection):
            return self._receive_connection_response(packet, now)
        assert isinstance(packet, ConnectionParameters)
        if packet.refused:
            return "the peer refused the session in its ConnectionParameters"
        self._window.open(packet.window_size)  # QB-3.1.5.4.2-02
        return ""

    def _receive_connection_response(self, packet: EstablishConnection, now: float) -> str:
        """The answer to our request; if it is valid, say how we will acknowledge."""
        if problem := self._response_problem(packet):  # QB-3.1.5.3.2-03
            return problem
        self.remote_guid = packet.server_guid  # QB-A03
        round_trip_ms = packet.round_trip_ms(_milliseconds(now))  # QB-A53
        timeout_ms = clamp_recoverable_ack_timeout(_ROUND_TRIPS * round_trip_ms)  # QB-3.1.5.3.2-05
        self._recoverable_ack_send_timeout_ms = timeout_ms
        parameters = ConnectionParameters(  # QB-3.1.5.3.2-06
            timeout_ms,  # QB-3.1.5.3.2-09
            self._ack_wait_timeout_ms,  # QB-3.1.5.3.2-10
            self._window.own_window,  # QB-3.1.5.3.2-11
        )
        self._to_send.append(parameters.encode())
        return ""

    def _response_problem(self, packet: EstablishConnection) -> str:
        """Why this response opens no session (QB-3.1.5.3.2-02); "" if it is valid."""
        if packet.refused:
            return "the peer refused the session"
        if packet.client_guid != self._queue_manager:
            return f"the response is for queue manager {guid_text(packet.client_guid)}, not for us"
        if self._server_guid not in (NULL_GUID, packet.server_guid):
            answered, asked = guid_text(packet.server_guid), guid_text(self._server_guid)
            return f"queue manager {answered} answered, not {asked}"
        return ""


def _milliseconds(now: float) -> int:
    """What stands for the time since the start of the operating system; the packet cuts it."""
    return int(now * 1000)
