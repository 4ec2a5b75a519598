"""Bytes that are no packet, packets that come at the wrong time, segments that end anywhere.

MQQB 3.1.5.1 to 3.1.5.5, 3.1.5.8; MQMQ 2.2.19.1.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable

import pytest

from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.session_ack import SessionAck
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    Exchange,
    Part,
    Step,
    acknowledgement,
    cases,
    closed,
    control,
    establish,
    expect,
    holds,
    made,
    message,
    opened,
    parameters,
    send,
    send_cut,
    still_open,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import Stage

BAD_FORMAT = "QB-3.1.5.1.3-01"
BAD_SIGNATURE = "QB-3.1.5.1.2-02"


def nothing(play: Play) -> None:
    """The connection is there, and that is all."""


def asked(play: Play) -> None:
    """The request was answered: the daemon waits for the ConnectionParameters."""
    send(establish())(play)
    expect(EstablishConnection)(play)


STATES: dict[str, Step] = {"WAITING_EC_MSG": nothing, "WAITING_CP_MSG": asked, "OPEN": opened(2)}
WRONG: dict[str, dict[str, tuple[Part, str]]] = {
    "WAITING_EC_MSG": {
        "ConnectionParameters": (parameters(), "QB-3.1.5.4-01"),
        "SessionAck": (packets.session_ack(packets.session_header()), "QB-3.1.5.5-01"),
        "UserMessage": (message(), "QB-3.1.5.8-01"),
    },
    "WAITING_CP_MSG": {
        "EstablishConnection": (establish(), "QB-3.1.5.3-01"),
        "SessionAck": (packets.session_ack(packets.session_header()), "QB-3.1.5.5-01"),
        "UserMessage": (message(), "QB-3.1.5.8-01"),
    },
    "OPEN": {
        "EstablishConnection": (establish(), "QB-3.1.5.3-01"),
        "ConnectionParameters": (parameters(), "QB-3.1.5.4-01"),
    },
}
WRONG_PACKETS = [
    Exchange(
        f"{packet} in {state} ends the session", STATES[state], send(part), closed(), rows=[row]
    )
    for state, wrong in WRONG.items()
    for packet, (part, row) in wrong.items()
]


def of_type(packet_type: int) -> bytes:
    """An internal packet of any type, with the size and the flags that would fit it."""
    size = {1: 36, 2: 572, 3: 32}.get(packet_type, 36)
    flags = 0x1B if packet_type == 1 else 0x0B
    return packets.base(size, flags) + packets.internal(packet_type) + bytes(size - 20)


WRONG_TYPES = [
    Exchange(
        f"packet type {packet_type} in {state} ends the session",
        step,
        send(of_type(packet_type)),
        closed(),
        rows=("QB-2.2.1-06",),
    )
    for state, step in STATES.items()
    for packet_type in (0, *range(4, 16))
]


def resized(right: Part, size: int) -> Part:
    """Another PacketSize; the bytes are there, or more of them."""

    def part(play: Play) -> bytes:
        packet = made(right, play)
        rest = packet[12:] + bytes(max(0, size - len(packet)))
        return packet[:8] + struct.pack("<I", size) + rest

    return part


RIGHT: dict[str, Part] = {
    "WAITING_EC_MSG": establish(),
    "WAITING_CP_MSG": parameters(window=2),
    "OPEN": message(),
}


def changed(state: str, place: int, value: bytes) -> Part:
    """The packet that is right in this state, but for these bytes."""

    def part(play: Play) -> bytes:
        data = made(RIGHT[state], play)
        return data[:place] + value + data[place + len(value) :]

    return part


HEADERS = [
    *(
        Exchange(
            f"version {version:#04x} in {state} ends the session",
            step,
            send(changed(state, 0, bytes([version]))),
            closed(),
            rows=(BAD_SIGNATURE,),
        )
        for state, step in STATES.items()
        for version in (0x00, 0x01, 0x0F, 0x11, 0x20, 0x90, 0xFF)
    ),
    *(
        Exchange(
            f"bit {bit} of the signature turned in {state} ends the session",
            step,
            send(changed(state, 4, struct.pack("<I", 0x524F494C ^ 1 << bit))),
            closed(),
            rows=(BAD_SIGNATURE,),
        )
        for bit, (state, step) in zip(range(32), itertools.cycle(STATES.items()), strict=False)
    ),
    Exchange(
        "a signature in the order of the text and not of the bytes ends the session",
        send(changed("WAITING_EC_MSG", 4, b"ROIL")),
        closed(),
        rows=("QB-A48-01",),
    ),
    *(
        Exchange(
            f"a packet of {size:#x} bytes in {state} ends the session",
            step,
            send(packets.base(size) + bytes(16)),
            closed(),
            rows=(BAD_FORMAT,),
        )
        for state, step in STATES.items()
        for size in (0, 1, 15, 16, 19, 0x00400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    ),
    *(
        Exchange(
            f"{name} announced with {size} bytes ends the session",
            step,
            send(resized(part, size)),
            closed(),
            rows=(BAD_FORMAT,),
        )
        for name, step, part, right in (
            ("EstablishConnection", nothing, establish(), 572),
            ("ConnectionParameters", asked, parameters(), 32),
            ("SessionAck", opened(2), packets.session_ack(packets.session_header()), 36),
        )
        for size in (20, right - 4, right - 1, right + 1, right + 4)
    ),
    Exchange(
        "a SessionAck without SH ends the session",
        opened(2),
        send(packets.base(36, 0x0B) + packets.internal(1) + packets.session_header()),
        closed(),
        rows=("QB-3.1.5.1.1-03",),
    ),
    Exchange(
        "a SessionAck that refuses ends the session",
        opened(2),
        send(packets.session_ack(packets.session_header(), flags=0x10)),
        closed(),
    ),
    Exchange(
        "a right SessionAck with bits that nobody knows is taken",
        opened(2),
        send(packets.session_ack(packets.session_header(window=2, reserved=0xFFFF), flags=0xFFE0)),
        still_open,
    ),
]


def broken(change: Callable[[packets.Headers], None]) -> Part:
    """A message with something wrong in it."""

    def part(play: Play) -> bytes:
        headers = play.message()
        change(headers)
        return headers.encode()

    return part


def given(**fields: object) -> Callable[[packets.Headers], None]:
    def change(headers: packets.Headers) -> None:
        for name, value in fields.items():
            setattr(headers, name, value)

    return change


def queue_type(number: int, shift: int) -> Callable[[packets.Headers], None]:
    def change(headers: packets.Headers) -> None:
        headers.flags = headers.flags & ~(7 << shift) | number << shift

    return change


def without_properties(headers: packets.Headers) -> None:
    headers.flags &= ~packets.MESSAGE_PROPERTIES


def announcing(bit: int) -> Callable[[packets.Headers], None]:
    """Announce a header that is not there."""

    def change(headers: packets.Headers) -> None:
        headers.flags |= 1 << bit
        headers.body = b""

    return change


BROKEN: dict[str, Callable[[packets.Headers], None]] = {
    **{f"DQ {number}": queue_type(number, 10) for number in (1, 2, 4, 6)},
    **{f"AQ {number}": queue_type(number, 13) for number in (1, 4)},
    "no properties": without_properties,
    "a label of 251 characters": given(label_length=251, body=bytes(600)),
    "a label longer than the packet": given(label_length=250),
    "a label without its NUL": given(label_length=3, body=b"abcdefgh", message_size=2),
    "a body larger than the packet": given(message_size=4096),
    "a body of 4 GB": given(message_size=0xFFFFFFFF),
    "an extension larger than the packet": given(extension_size=4096),
    "an extension of 4 GB": given(extension_size=0xFFFFFFFF),
    "a name of 0 bytes": given(destination=struct.pack("<H", 0) + bytes(2)),
    "a name of 1 byte": given(destination=struct.pack("<H", 1) + bytes(2)),
    "a name of an odd size": given(destination=struct.pack("<H", 7) + bytes(10)),
    "a name longer than the packet": given(destination=struct.pack("<H", 0xFFFE) + bytes(2)),
    "a name without its NUL": given(destination=struct.pack("<H", 6) + "abc".encode("utf-16-le")),
    "a packet that ends in the UserHeader": given(packet_size=40),
    "a packet that ends in the properties": given(packet_size=120),
    "a transaction without its header": announcing(20),
    "a number of 0 in its sequence": given(transaction=(1, 0, 0)),
    "a previous number of 0xFFFFFFFF": given(transaction=(1, 1, 0xFFFFFFFF)),
    "a security header that is not there": announcing(19),
    "a SOAP header that is not there": announcing(28),
    "several names that are not there": announcing(23),
    "a connector type that is not there": announcing(22),
}
BROKEN_MESSAGES = [
    Exchange(
        f"a message with {name} ends the session and is not delivered",
        opened(),
        send(message(body=b"in front"), broken(change)),
        closed(past=(SessionAck,)),
        holds("plain", b"in front"),
        rows=(BAD_FORMAT,),
    )
    for name, change in BROKEN.items()
]

CONVERSATION: list[Part] = [
    establish(),
    parameters(window=2),
    message(recoverable=True, body=b"one", label="first"),
    message(body=b"two", header=True),
]
HEARD = (
    expect(EstablishConnection, refused=False),
    expect(ConnectionParameters),
)
ALL_ACKNOWLEDGED = control(lambda play: _until_acknowledged(play, 2))
WHOLE = 572 + 32  # of the two packets of the opening; the messages begin there
CUTS = (
    *(1, 2, 3, 4, 7, 8, 15, 16, 17, 19, 20, 36, 60, 571, 572, 573),
    *(WHOLE - 1, WHOLE, WHOLE + 1, WHOLE + 16, WHOLE + 64, WHOLE + 80, WHOLE + 100, WHOLE + 200),
)


def _until_acknowledged(play: Play, count: int) -> None:
    while not play.acks or play.acks[-1].session.ack_sequence_number < count:
        expect(SessionAck)(play)


SEGMENTS = [
    *(
        Exchange(
            f"cut after byte {cut}",
            send_cut(*CONVERSATION, at=[cut]),
            *HEARD,
            ALL_ACKNOWLEDGED,
            holds("plain", b"one", b"two"),
        )
        for cut in CUTS
    ),
    Exchange(
        "byte by byte",
        send_cut(*CONVERSATION, at=range(1, 1100)),
        *HEARD,
        ALL_ACKNOWLEDGED,
        holds("plain", b"one", b"two"),
    ),
    *(
        Exchange(
            f"in segments of {size} bytes",
            send_cut(*CONVERSATION, at=range(size, 1200, size)),
            *HEARD,
            ALL_ACKNOWLEDGED,
            holds("plain", b"one", b"two"),
        )
        for size in (16, 17, 100, 571)
    ),
    Exchange(
        "a peer that ends its side in the middle of a packet loses the session",
        opened(2),
        send(packets.base(36, 0x1B)),
        control(Play.half_close),
        closed(),
    ),
    Exchange(
        "what came before a fault is kept, what comes behind it is not",
        opened(),
        send(message(body=b"before"), b"garbage, " * 10, message(body=b"behind")),
        closed(past=(SessionAck,)),
        holds("plain", b"before"),
        rows=(BAD_SIGNATURE,),
    ),
    Exchange(
        "half a surrogate in a name is no fault of the packet: the queue is just not there",
        opened(2),
        send(broken(given(destination=struct.pack("<H", 6) + b"\x00\xd8a\x00\x00\x00"))),
        expect(SessionAck, session__ack_sequence_number=1),
        still_open,
    ),
    Exchange(
        "a SessionAck between two messages",
        opened(2),
        send(message(), acknowledgement(), message()),
        ALL_ACKNOWLEDGED,
        still_open,
    ),
    Exchange(
        "sixteen hundred messages in one write",
        opened(64),
        control(lambda play: play.write(b"".join(play.message().encode() for _ in range(1600)))),
        control(lambda play: _until_acknowledged(play, 1600)),
        rows=("QB-A31-01",),
    ),
]


@pytest.mark.parametrize("exchange", cases(WRONG_PACKETS))
def test_packets_at_the_wrong_time(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(WRONG_TYPES))
def test_unknown_packet_types(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(HEADERS))
def test_wrong_headers(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(BROKEN_MESSAGES))
def test_malformed_messages(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(SEGMENTS))
def test_segments(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)
