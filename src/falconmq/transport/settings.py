"""What an administrator may set about the protocol (MQQB appendix, the guide's section 9).

Names and defaults follow the registry values of Windows; times are in seconds here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PORT: Final = 1801
PING_PORT: Final = 3527


@dataclass(slots=True)
class TransportSettings:
    """The defaults are those of a Windows server, and the safe ones where they differ."""

    round_trip_delay: float = 0.0  # RoundTripDelay: added to the time-outs of slow lines
    cleanup_interval: float = 300.0  # CleanupInterval: an idle session is closed
    try_connect_interval: float = 5.0  # TryConnectInterval: between two tries to connect
    ack_wait_timeout: float = 20.0  # before a silent peer is given up, QB-3.1.3.2-26
    direct_ack_wait_factor: int = 2  # QosCleanupIntervalMultiplier, QB-3.1.2.4-01
    window_size: int = 64  # MaxUnackedPacket, QB-3.1.3.2-23
    window_growth_interval: float = 30.0  # a shrunk window doubles so often, QB-A30
    order_ack_timeout: float = 0.5  # QB-3.1.3.2-27
    maximum_order_ack_delay: float = 10.0  # SeqMaxAckDelay, QB-3.1.3.2-29
    resend_short: float = 30.0  # SeqResend13Time
    resend_medium: float = 300.0  # SeqResend46Time
    resend_long: float = 1800.0  # SeqResend79Time
    resend_final: float = 21_600.0  # SeqResend10Time
    history_size: int = 10_000  # RemoveDuplicateSize
    history_cleanup_interval: float = 1_800.0  # RemoveDuplicateCleanup
    ping_enabled: bool = False  # ask before connecting, QB-3.1.5.2.2-01
    ping_answered: bool = False  # EnablePingService
    ping_port: int = PING_PORT  # MsmqIpPingPort
    send_insecure_nacks: bool = False  # PermitInsecureNacks
    send_reports: bool = False  # EnableReportMessages
    sessions_max: int = 10_000  # MaxInSessions; Windows has no limit, memory has
    advertised_address: str = ""  # where peers reach us, if it is not the address we bind

    @property
    def initialization_timeout(self) -> float:
        """Session Initialization Timer: until a session must be open (QB-3.1.2.1-03)."""
        return 60.0 + 2 * self.round_trip_delay

    @property
    def resend_intervals(self) -> tuple[float, ...]:
        """ResendTimerTable, QB-3.1.3.1-01."""
        short, medium, long = self.resend_short, self.resend_medium, self.resend_long
        return (short,) * 3 + (medium,) * 3 + (long,) * 3 + (self.resend_final,)
