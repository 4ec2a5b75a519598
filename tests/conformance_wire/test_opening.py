"""How a session opens, and who may open one (MQQB 2.2.1 to 2.2.3, 3.1.5.3, 3.1.5.4)."""

from __future__ import annotations

import pytest

from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.session_ack import SessionAck
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    Exchange,
    Part,
    cases,
    closed,
    establish,
    expect,
    expect_bytes,
    message,
    opened,
    parameters,
    send,
    still_open,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import Stage

TIME_STAMPS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
RECOVERABLE_TIMEOUTS = (0, 1, 499, 500, 501, 1496, 119_999, 120_000, 120_001, 0xFFFFFFFF)
ACK_TIMEOUTS = (0, 1, 19_999, 20_000, 20_001, 120_000, 120_001, 0xFFFFFFFF)
WINDOWS = (0, 1, 2, 3, 63, 64, 65, 200, 0x7FFF, 0x8000, 0xFFFF)
NOT_PINGED, SERVER_CLASS, QUALITY = 0x0100, 0x0200, 0x0400


def response(*, time_stamp: int = 4711, not_pinged: bool = True, refused: bool = False) -> Part:
    """What the daemon has to answer, to the byte, but for BaseHeader.Reserved."""

    def part(play: Play) -> bytes:
        return packets.establish(
            play.guid,
            play.stage.guid,
            time_stamp=time_stamp,
            operating_system=0x10 | SERVER_CLASS | (NOT_PINGED if not_pinged else 0),
            flags=0x10 if refused else 0,
        )

    return part


def foreign(byte: int) -> Part:
    """A request for somebody whose GUID differs from the daemon's in one byte."""

    def part(play: Play) -> bytes:
        guid = bytearray(play.stage.guid)
        guid[byte] ^= 0x40
        return packets.establish(play.guid, bytes(guid))

    return part


REQUESTS = [
    Exchange(
        "a request for nobody by name is answered with our own GUID",
        send(establish()),
        expect_bytes(response()),
        rows=("QB-A01-01", "QB-A02-01"),
    ),
    Exchange(
        "a request for this queue manager is accepted",
        send(establish("daemon")),
        expect_bytes(response()),
    ),
    *(
        Exchange(
            f"a request for another GUID, byte {byte}, is refused and the connection ends",
            send(foreign(byte)),
            expect_bytes(response(refused=True)),
            closed(),
            rows=("QB-A07-01",),
        )
        for byte in range(16)
    ),
    Exchange(
        "a request for the GUID of the peer itself is refused",
        send(establish("us")),
        expect_bytes(response(refused=True)),
        closed(),
    ),
    *(
        Exchange(
            f"the time stamp {time_stamp:#x} is echoed",
            send(establish(time_stamp=time_stamp)),
            expect_bytes(response(time_stamp=time_stamp)),
        )
        for time_stamp in TIME_STAMPS
    ),
    *(
        Exchange(
            f"of OperatingSystem {bits | 0x10:#06x} only SE is echoed",
            send(establish(operating_system=bits | 0x10)),
            expect_bytes(response(not_pinged=bool(bits & NOT_PINGED))),
        )
        for bits in (*range(0, 0x0800, 0x0100), *(1 << bit for bit in range(11, 16)), 0xFF00)
    ),
    *(
        Exchange(
            f"the release {release:#04x} of a peer does not matter",
            send(establish(operating_system=NOT_PINGED | release)),
            expect_bytes(response()),
        )
        for release in (0x00, 0x01, 0x0F, 0x11, 0xFF)
    ),
    *(
        Exchange(
            f"padding of {name} is ignored",
            send(establish(padding=padding)),
            expect_bytes(response()),
        )
        for name, padding in {
            "zeros": bytes(512),
            "ones": b"\xff" * 512,
            "LIOR": b"LIOR" * 128,
            "all bytes": bytes(range(256)) * 2,
        }.items()
    ),
    *(
        Exchange(
            f"bit {bit} of InternalHeader.Flags is ignored",
            send(establish(flags=1 << bit)),
            expect_bytes(response()),
        )
        for bit in range(5, 16)
    ),
    *(
        Exchange(
            f"reserved fields of {value:#x} are ignored",
            send(establish(reserved=value, internal_reserved=value, base_reserved=value & 0xFF)),
            expect_bytes(response()),
        )
        for value in (1, 0xFF, 0x5A5A, 0xFFFF)
    ),
    *(
        Exchange(
            f"reserved bit {bit} of BaseHeader.Flags is ignored",
            send(establish(base_flags=0x000B | 1 << bit)),
            expect_bytes(response()),
        )
        for bit in (6, 7, 9, 10, 11, 12, 13, 14, 15)
    ),
    *(
        Exchange(
            f"priority {priority} of an internal packet does not matter",
            send(establish(base_flags=0x0008 | priority)),
            expect_bytes(response()),
        )
        for priority in range(8)
    ),
    Exchange(
        "a peer without a GUID may open a session",
        send(establish(client=packets.NULL)),
        expect(EstablishConnection, refused=False, client_guid=packets.NULL),
        send(parameters(window=2)),
        expect(ConnectionParameters),
        still_open,
    ),
    Exchange(
        "a request that says that it is refused opens nothing by that",
        send(establish(flags=0x10)),
        expect(EstablishConnection, refused=False),
    ),
]

PARAMETERS = [
    *(
        Exchange(
            f"RecoverableAckTimeout {recoverable} and AckTimeout {ack} come back as they are",
            send(establish()),
            expect(EstablishConnection),
            send(parameters(recoverable=recoverable, ack=ack, window=2)),
            expect_bytes(parameters(recoverable=recoverable, ack=ack, window=64)),
            still_open,
            rows=("QB-3.1.5.4.1-06",),
        )
        for recoverable in RECOVERABLE_TIMEOUTS
        for ack in ACK_TIMEOUTS
    ),
    *(
        Exchange(
            f"a window of {window} is answered with our own",
            send(establish()),
            expect(EstablishConnection),
            send(parameters(window=window)),
            expect_bytes(parameters(window=64)),
        )
        for window in WINDOWS
    ),
    Exchange(
        "reserved fields of ConnectionParameters are ignored",
        send(establish()),
        expect(EstablishConnection),
        send(parameters(reserved=0xFFFF, base_reserved=0xC0, window=2)),
        expect_bytes(parameters(window=64)),
        still_open,
    ),
    Exchange(
        "ConnectionParameters that refuse end the session",
        send(establish()),
        expect(EstablishConnection),
        send(parameters(flags=0x10)),
        closed(),
    ),
    Exchange(
        "a recoverable ack timeout of 0 is taken as half a second: the ack comes by itself",
        opened(recoverable=0),
        send(message(recoverable=True)),
        expect(SessionAck, session__ack_sequence_number=1, session__recoverable_msg_ack_flags=1),
        rows=("QB-A52-01",),
    ),
    *(
        Exchange(
            f"with a window of {window} every message is acknowledged at once",
            opened(window=window),
            still_open,
            still_open,
            rows=("QB-A31-01",),
        )
        for window in (0, 1, 2, 3)
    ),
    Exchange(
        "request, parameters and a message in one segment",
        send(establish(), parameters(window=2), message()),
        expect(EstablishConnection, refused=False),
        expect(ConnectionParameters),
        expect(SessionAck, session__ack_sequence_number=1),
        still_open,
    ),
]


@pytest.mark.parametrize("exchange", cases(REQUESTS))
def test_requests(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(PARAMETERS))
def test_connection_parameters(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)
