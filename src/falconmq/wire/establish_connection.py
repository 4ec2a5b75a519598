"""EstablishConnection: the first packet of a session, each way (MQQB 2.2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.wire.base_header import BaseHeader
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.internal_header import (
    CONNECTION_REFUSED,
    ESTABLISH_CONNECTION,
    InternalHeader,
    encode_internal_headers,
    internal_base_header,
    read_internal_headers,
)
from falconmq.wire.reader import Layout, Reader, Structure

SIZE: Final = 572
PADDING: Final = b"\x5a" * 512  # QB-2.2.3.1-19, QB-2.2.3.1-20

# OperatingSystem. Bits 11 to 15 are reserved: sent as 0, ignored, kept.
RELEASE: Final = 0x00FF  # RE
SESSION_NOT_PINGED: Final = 0x0100  # SE
SERVER_CLASS: Final = 0x0200  # OS
QUALITY_OF_SERVICE: Final = 0x0400  # QS
RESERVED_OPERATING_SYSTEM: Final = 0xF800  # X11 to X15
RELEASE_VALUE: Final = 0x10  # QB-2.2.3.1-09

MAX_IN_SESSIONS: Final = 0xFFFFFFFF  # the default of Windows: no limit in practice

_TIME_STAMP_WRAP: Final = 1 << 32
_LAYOUT: Final = Layout(
    "EstablishConnectionHeader",
    "16s16sIHH512s",
    "ClientGuid",
    "ServerGuid",
    "TimeStamp",
    "OperatingSystem",
    "Reserved",
    "Padding",
)


def _base_header() -> BaseHeader:
    return internal_base_header(SIZE)


def _internal_header() -> InternalHeader:
    return InternalHeader(ESTABLISH_CONNECTION)


@dataclass(slots=True)
class EstablishConnection(Structure):
    """Who calls whom. `request` begins a session, `response` answers one (QB-2.2.3-04).

    The headers are kept as they came, garbage included, so that decode and encode give the same
    572 bytes.
    """

    client_guid: bytes
    server_guid: bytes
    time_stamp: int
    operating_system: int = RELEASE_VALUE | SESSION_NOT_PINGED | SERVER_CLASS
    reserved: int = 0
    padding: bytes = PADDING
    base: BaseHeader = field(default_factory=_base_header)
    internal: InternalHeader = field(default_factory=_internal_header)

    @classmethod
    def request(
        cls,
        client_guid: bytes,
        server_guid: bytes = NULL_GUID,
        *,
        uptime_ms: int,
        pinged: bool = False,
        server_class: bool = True,
    ) -> Self:
        """What an initiator sends; no `server_guid` for a direct format name (QB-2.2.3.1-04).

        `uptime_ms` is the time since the operating system started; it wraps on the wire.
        """
        session = 0 if pinged else SESSION_NOT_PINGED  # QB-2.2.3.1-10
        return cls(
            client_guid,
            server_guid,
            uptime_ms % _TIME_STAMP_WRAP,  # QB-2.2.3.1-06
            _operating_system(session, server_class=server_class),
        )

    def response(
        self,
        queue_manager: bytes,
        *,
        sessions: int = 0,
        max_in_sessions: int = MAX_IN_SESSIONS,
        refused: bool = False,
        server_class: bool = True,
    ) -> EstablishConnection:
        """What the acceptor `queue_manager` answers to this request.

        It refuses a request meant for another queue manager (QB-A01), and any while it has
        `max_in_sessions` `sessions` already; `refused` says that local policy refuses this one.
        """
        foreign = self.server_guid not in (NULL_GUID, queue_manager)  # QB-2.2.1-09
        full = sessions >= max_in_sessions  # QB-2.2.1-10
        status = CONNECTION_REFUSED if foreign or full or refused else 0
        session = self.operating_system & SESSION_NOT_PINGED  # QB-2.2.3.1-11
        return EstablishConnection(
            self.client_guid,  # QB-2.2.3.1-03
            queue_manager,  # always our own, also when refused: QB-A02
            self.time_stamp,  # QB-2.2.3.1-07
            _operating_system(session, server_class=server_class),
            internal=InternalHeader(ESTABLISH_CONNECTION | status),
        )

    @property
    def refused(self) -> bool:
        return self.internal.refused

    def round_trip_ms(self, uptime_ms: int) -> int:
        """Time since the request that this response answers; `time_stamp` wraps (QB-A53)."""
        return (uptime_ms - self.time_stamp) % _TIME_STAMP_WRAP

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("EstablishConnection")
        base, internal = read_internal_headers(reader, ESTABLISH_CONNECTION, SIZE)
        packet = reader.enter("EstablishConnectionHeader")
        client, server, time_stamp, operating_system, reserved, padding = reader.fixed(_LAYOUT)
        reader.leave(packet)
        reader.leave(outer)
        return cls(client, server, time_stamp, operating_system, reserved, padding, base, internal)

    def encode(self) -> bytes:
        headers = encode_internal_headers(
            "EstablishConnection", self.base, self.internal, ESTABLISH_CONNECTION, SIZE
        )
        return headers + _LAYOUT.pack(
            self.client_guid,
            self.server_guid,
            self.time_stamp,
            self.operating_system,
            self.reserved,
            self.padding,
        )


def _operating_system(session: int, *, server_class: bool) -> int:
    """RE, SE and OS; QS stays 0, our transport gives no guarantees (QB-2.2.3.1-14)."""
    return RELEASE_VALUE | session | (SERVER_CLASS if server_class else 0)
