"""ConnectionParameters: the second packet of a session, each way (MQQB 2.2.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.wire.base_header import BaseHeader
from falconmq.wire.internal_header import (
    CONNECTION_PARAMETERS,
    InternalHeader,
    encode_internal_headers,
    internal_base_header,
    read_internal_headers,
)
from falconmq.wire.reader import Layout, Reader, Structure
from falconmq.wire.session_header import DEFAULT_WINDOW_SIZE

SIZE: Final = 32
RECOVERABLE_ACK_TIMEOUT_MIN: Final = 500  # milliseconds, QB-2.2.2.1-01
RECOVERABLE_ACK_TIMEOUT_MAX: Final = 120_000
ACK_TIMEOUT_MIN: Final = 20_000  # milliseconds, QB-2.2.2.1-02
ACK_TIMEOUT_MAX: Final = 120_000
WINDOW_SIZE_MIN: Final = 1  # a window of 0 would never open: taken as 1, QB-A52

_LAYOUT: Final = Layout(
    "ConnectionParametersHeader",
    "IIHH",
    "RecoverableAckTimeout",
    "AckTimeout",
    "Reserved",
    "WindowSize",
)


def _base_header() -> BaseHeader:
    return internal_base_header(SIZE)


def _internal_header() -> InternalHeader:
    return InternalHeader(CONNECTION_PARAMETERS)


@dataclass(slots=True)
class ConnectionParameters(Structure):
    """How long to wait for acknowledgements, in milliseconds, and how many messages may be open.

    A timeout out of its range decodes, so that the session can clamp it (`clamped`) or, where it
    is strict, close (`is_in_range`): QB-A52.
    """

    recoverable_ack_timeout: int
    ack_timeout: int
    window_size: int = DEFAULT_WINDOW_SIZE
    reserved: int = 0
    base: BaseHeader = field(default_factory=_base_header)
    internal: InternalHeader = field(default_factory=_internal_header)

    @property
    def refused(self) -> bool:
        return self.internal.refused

    @property
    def is_in_range(self) -> bool:
        recoverable, ack = self.recoverable_ack_timeout, self.ack_timeout
        return (
            RECOVERABLE_ACK_TIMEOUT_MIN <= recoverable <= RECOVERABLE_ACK_TIMEOUT_MAX
            and ACK_TIMEOUT_MIN <= ack <= ACK_TIMEOUT_MAX
        )

    def clamped(self) -> ConnectionParameters:
        """The same parameters, each brought to the nearest limit of its range (QB-A52)."""
        return ConnectionParameters(
            clamp_recoverable_ack_timeout(self.recoverable_ack_timeout),
            min(max(self.ack_timeout, ACK_TIMEOUT_MIN), ACK_TIMEOUT_MAX),
            max(self.window_size, WINDOW_SIZE_MIN),
        )

    def response(self, window_size: int = DEFAULT_WINDOW_SIZE) -> ConnectionParameters:
        """What the acceptor answers: the timeouts of this request and its own window."""
        return ConnectionParameters(self.recoverable_ack_timeout, self.ack_timeout, window_size)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ConnectionParameters")
        base, internal = read_internal_headers(reader, CONNECTION_PARAMETERS, SIZE)
        packet = reader.enter("ConnectionParametersHeader")
        recoverable_ack_timeout, ack_timeout, reserved, window_size = reader.fixed(_LAYOUT)
        reader.leave(packet)
        reader.leave(outer)
        return cls(recoverable_ack_timeout, ack_timeout, window_size, reserved, base, internal)

    def encode(self) -> bytes:
        headers = encode_internal_headers(
            "ConnectionParameters", self.base, self.internal, CONNECTION_PARAMETERS, SIZE
        )
        return headers + _LAYOUT.pack(
            self.recoverable_ack_timeout, self.ack_timeout, self.reserved, self.window_size
        )


def clamp_recoverable_ack_timeout(timeout_ms: int) -> int:
    return min(max(timeout_ms, RECOVERABLE_ACK_TIMEOUT_MIN), RECOVERABLE_ACK_TIMEOUT_MAX)
