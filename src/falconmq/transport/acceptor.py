"""AcceptorSession: the side that was called (MQQB 3.1.1.1.1.2, 3.1.5.3.1, 3.1.5.4.1, 3.1.5.10)."""

from __future__ import annotations

from typing import ClassVar

from falconmq.transport.session import OPEN_TRANSITIONS, Session, SessionState, Transitions
from falconmq.transport.settings import TransportSettings
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import NULL_GUID, guid_text
from falconmq.wire.packet import Packet


class AcceptorSession(Session):
    """A session that a peer opens. With `refused` it says no to whatever the peer asks for."""

    is_initiator = False
    TRANSITIONS: ClassVar[Transitions] = {
        (SessionState.WAITING_EC_MSG, EstablishConnection): SessionState.WAITING_CP_MSG,
        (SessionState.WAITING_CP_MSG, ConnectionParameters): SessionState.OPEN,
        **OPEN_TRANSITIONS,
    }

    def __init__(
        self,
        settings: TransportSettings,
        queue_manager: bytes,
        remote_address: str,  # that of the socket, without its port: QB-A58
        now: float,
        *,
        refused: bool = False,
    ) -> None:
        super().__init__(settings, queue_manager, remote_address)  # QB-3.1.5.10-02
        self._refused = refused
        self._start_timers(now)  # QB-3.1.5.10-04

    def _negotiate(self, packet: Packet, now: float) -> str:
        if isinstance(packet, EstablishConnection):
            return self._receive_connection_request(packet, now)
        assert isinstance(packet, ConnectionParameters)
        return self._receive_connection_parameters(packet)

    def _receive_connection_request(self, packet: EstablishConnection, now: float) -> str:
        """Answer a request, also if the answer is no (QB-3.1.5.3.1-04)."""
        self.remote_guid = packet.client_guid  # QB-3.1.5.3.1-02
        self.is_direct = packet.server_guid == NULL_GUID
        response = packet.response(self._queue_manager, refused=self._refused)
        self._to_send.append(response.encode())
        if response.refused:  # QB-A07
            asked = guid_text(packet.server_guid)
            return "refused by policy" if self._refused else f"refused: meant for {asked}"
        self._start_initialization_timer(now)  # QB-A08
        return ""

    def _receive_connection_parameters(self, packet: ConnectionParameters) -> str:
        """Take over how the peer acknowledges (MQQB 3.1.5.4.1)."""
        if packet.refused:
            return "the peer refused the session in its ConnectionParameters"
        taken = packet.clamped()  # QB-A52
        self._window.open(taken.window_size)  # QB-3.1.5.4.1-02
        self._ack_wait_timeout_ms = taken.ack_timeout  # QB-3.1.5.4.1-03, QB-3.1.5.4.1-04
        self._recoverable_ack_send_timeout_ms = taken.recoverable_ack_timeout  # QB-3.1.5.4.1-05
        self._to_send.append(packet.response(self._window.own_window).encode())  # QB-3.1.5.4.1-06
        return ""
