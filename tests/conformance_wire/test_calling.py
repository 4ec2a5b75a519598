"""The daemon calls: what it says first, what it makes of the answers, how much it sends.

MQQB 3.1.5.2, 3.1.5.3.2, 3.1.5.4.2, 3.1.5.9.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import pytest

from falconmq.wire.connection_parameters import ConnectionParameters
from tests.conformance_wire import packets
from tests.conformance_wire.calling import (
    accepted,
    called,
    confirmed,
    given,
    nothing_waits,
    numbered,
    response,
    said,
)
from tests.conformance_wire.exchange import (
    Exchange,
    Part,
    cases,
    closed,
    control,
    expect,
    hear,
    send,
    silence,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import FAR, Stage

RTT: Final = 187  # milliseconds, as in FRAME 5


def _check_request(play: Play, server: bytes) -> None:
    data = play.read()
    assert data
    time_stamp = struct.unpack_from("<I", data, 52)[0]
    expected = packets.establish(play.stage.guid, server, time_stamp=time_stamp)
    assert data == expected, data.hex()


def _check_parameters(play: Play, recoverable: int) -> None:
    data = play.read()
    assert data == packets.parameters(recoverable, 20_000, 64), data


def _assert_between(packet: object, least: int, most: int) -> None:
    assert isinstance(packet, ConnectionParameters), packet
    assert least <= packet.recoverable_ack_timeout <= most, packet


UNUSUAL: dict[str, dict[str, Any]] = {
    "SE cleared": {"operating_system": 0x0210},
    "another release": {"operating_system": 0x0399},
    "other padding": {"padding": bytes(512)},
    "unknown flags": {"flags": 0xFFE0},
    "a GUID that nobody knows": {"server": FAR.bytes_le},
}
REQUESTS = [
    Exchange(
        "the request is as published, to the byte",
        given("hello"),
        control(Play.answer),
        control(lambda play: _check_request(play, packets.NULL)),
        rows=("QB-2.2.3.1-04", "QB-2.2.3.1-09", "QB-2.2.3.1-10", "QB-3.1.5.2.3-07"),
    ),
    Exchange(
        "the ConnectionParameters are as published, to the byte",
        given("hello"),
        called,
        send(response(late=20_000)),
        control(lambda play: _check_parameters(play, 120_000)),
        rows=(
            *("QB-3.1.5.3.2-05", "QB-3.1.5.3.2-06", "QB-3.1.5.3.2-07", "QB-3.1.5.3.2-08"),
            *("QB-3.1.5.3.2-10", "QB-3.1.5.3.2-11"),
        ),
    ),
    Exchange(
        "an answer that comes at once asks for half a second",
        given("hello"),
        called,
        send(response()),
        expect(ConnectionParameters, recoverable_ack_timeout=500, ack_timeout=20_000),
        rows=("QB-3.1.5.3.2-05",),
    ),
    Exchange(
        "the time to acknowledge is eight round trips",
        given("hello"),
        called,
        send(response(late=RTT)),
        control(lambda play: _assert_between(hear(play), 8 * RTT, 8 * (RTT + 2000))),
        rows=("QB-3.1.5.3.2-04", "QB-3.1.5.3.2-09"),
    ),
    Exchange(
        "a time stamp of the future is one round trip around the clock",
        given("hello"),
        called,
        send(response(late=-10_000)),
        expect(ConnectionParameters, recoverable_ack_timeout=120_000),
        rows=("QB-A53-01",),
    ),
    *(
        Exchange(
            f"an answer with {name} opens the session as well",
            given("hello"),
            called,
            send(response(**fields)),
            expect(ConnectionParameters),
            send(packets.parameters()),
            said("hello"),
        )
        for name, fields in UNUSUAL.items()
    ),
]

WRONG_ANSWERS: dict[str, Part] = {
    "a refusal": response(flags=0x10),
    "an answer for somebody else": response(client=FAR.bytes_le),
    "ConnectionParameters": packets.parameters(),
    "a SessionAck": packets.session_ack(packets.session_header()),
    "a message": lambda play: play.message().encode(),
    "packet type 7": packets.base(36) + packets.internal(7) + bytes(16),
    "another version": packets.base(572, version=0x11) + bytes(556),
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}
WRONG_PARAMETERS: dict[str, Part] = {
    "a refusal": packets.parameters(flags=0x10),
    "a second answer": response(),
    "a SessionAck": packets.session_ack(packets.session_header()),
    "a message": lambda play: play.message().encode(),
    "garbage": b"garbage, garbage, garbage",
}
AGAIN = (closed(), called, send(response()), expect(ConnectionParameters))
WRONG = [
    *(
        Exchange(
            f"{name} in place of the answer: it hangs up and calls again",
            given("hello"),
            called,
            send(part),
            *AGAIN,
            rows=("QB-3.1.5.3.2-03",) if "answer for" in name or "refusal" in name else (),
        )
        for name, part in WRONG_ANSWERS.items()
    ),
    *(
        Exchange(
            f"{name} in place of the ConnectionParameters: it hangs up and calls again",
            given("hello"),
            called,
            send(response()),
            expect(ConnectionParameters),
            send(part),
            *AGAIN,
        )
        for name, part in WRONG_PARAMETERS.items()
    ),
    Exchange(
        "we hang up at once, three times: it calls again, three times",
        given("hello"),
        *(control(Play.answer) for _ in range(3)),
        accepted(),
        said("hello"),
        rows=("QB-3.1.5.9-07",),
    ),
    Exchange(
        "an open session that we end is opened again while messages wait",
        given("hello", recoverable=True),
        accepted(),
        said("hello"),
        control(Play.hang_up),
        accepted(),
        said("hello"),
        confirmed(1, 1, 1),
        nothing_waits,
        rows=("QB-3.1.5.9-07",),
    ),
]
WINDOWS = [
    *(
        Exchange(
            f"a window of {window} lets {sent} messages out, and one more for each that came",
            given(*numbered(70)),
            accepted(window),
            said(*numbered(sent)),
            silence(0.05),
            confirmed(1, 1, 1, window=window),
            said(str(sent)),
            silence(0.05),
            rows=("QB-A30-01", "QB-A29-01"),
        )
        for window, sent in ((0, 1), (1, 1), (2, 2), (5, 5), (63, 63), (64, 64), (200, 64))
    ),
    Exchange(
        "a window of 1 in a SessionAck is honoured",
        given(*numbered(10)),
        accepted(4),
        said(*numbered(4)),
        confirmed(4, 1, 0xF, window=1),
        said("4"),
        silence(0.05),
        confirmed(5, 5, 1, window=4),
        said("5", "6", "7", "8"),
        rows=("QB-A30-01",),
    ),
    Exchange(
        "an acknowledgement sends nothing twice",
        given(*numbered(6)),
        accepted(4),
        said(*numbered(4)),
        confirmed(2, 1, 3),
        said("4", "5"),
        silence(0.1),
        rows=("QB-A27-01",),
    ),
]


@pytest.mark.parametrize("exchange", cases(REQUESTS))
def test_what_is_said_first(stage: Stage, exchange: Exchange) -> None:
    exchange.play_called(stage)


@pytest.mark.parametrize("exchange", cases(WRONG))
def test_wrong_answers(stage: Stage, exchange: Exchange) -> None:
    exchange.play_called(stage)


@pytest.mark.parametrize("exchange", cases(WINDOWS))
def test_windows(stage: Stage, exchange: Exchange) -> None:
    exchange.play_called(stage)
