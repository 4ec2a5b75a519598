"""A conversation as data: steps, one after the other, and what they prove."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pytest

from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.packet import Packet, decode_packet
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.play import PATIENCE, QUICK, Play
from tests.conformance_wire.stage import Stage

Step: TypeAlias = Callable[[Play], None]
Part: TypeAlias = bytes | Callable[[Play], bytes]
"""Bytes to send; or how to make them, when they depend on who is playing."""

ORDER_ACK: Final = 0x00FF  # a message class
MOMENT: Final = 0.15  # seconds in which a daemon would have answered


class Exchange:
    """One conversation with the daemon. The peer has connected when the first step begins."""

    def __init__(self, name: str, *steps: Step, rows: Iterable[str] = ()) -> None:
        self.name = name
        self.steps = steps
        self.rows = tuple(rows)

    def play(self, stage: Stage) -> None:
        with Play.calling(stage) as play:
            self.perform(play)

    def play_called(self, stage: Stage, **peer: Any) -> None:
        """The peer listens, and the daemon has to call."""
        with Play(stage, **peer) as play:
            play.listen()
            self.perform(play)

    def perform(self, play: Play) -> None:
        for number, step in enumerate(self.steps, 1):
            try:
                step(play)
            except AssertionError as error:
                error.add_note(f"step {number} of {len(self.steps)} of: {self.name}")
                error.add_note(play.stage.daemon.story())
                raise


def cases(exchanges: Iterable[Exchange]) -> list[Any]:
    """The exchanges as parameters of a test, each with the rows it proves."""
    return [
        pytest.param(each, id=each.name, marks=[pytest.mark.requirement(*each.rows)])
        if each.rows
        else pytest.param(each, id=each.name)
        for each in exchanges
    ]


# What we say


def made(part: Part, play: Play) -> bytes:
    return part if isinstance(part, bytes) else part(play)


def send(*parts: Part) -> Step:
    """All of it at once."""

    def step(play: Play) -> None:
        play.write(b"".join(made(part, play) for part in parts))

    return step


def send_cut(*parts: Part, at: Iterable[int]) -> Step:
    """In segments, cut at these places; one of its own for each byte if the places say so."""

    def step(play: Play) -> None:
        data, start = b"".join(made(part, play) for part in parts), 0
        for end in [*at, len(data)]:
            play.write(data[start:end])
            start = end

    return step


def establish(server: str = "nobody", *, client: bytes = b"", **fields: Any) -> Part:
    """A request for a session; `server` says whom it is for."""

    def part(play: Play) -> bytes:
        guid = {"nobody": packets.NULL, "daemon": play.stage.guid, "us": play.guid}[server]
        return packets.establish(client or play.guid, guid, **fields)

    return part


def parameters(**fields: Any) -> Part:
    return packets.parameters(**fields)


def message(to: str = "plain", **fields: Any) -> Part:
    """A message; its SessionHeader, if `header` says so, is the right one."""

    def part(play: Play) -> bytes:
        given = dict(fields)
        with_header = given.pop("header", False)
        headers = play.message(to, **given)
        if with_header:
            headers.session = play.header()
        return headers.encode()

    return part


def acknowledgement(window: int = QUICK) -> Part:
    """A SessionAck for all that came."""
    return lambda play: packets.session_ack(play.header(window))


def opened(
    window: int = 64, server: str = "nobody", recoverable: int = 500, ack: int = 20_000
) -> Step:
    """The session is opened as it should be. With a window of 2 each message is acknowledged."""

    def step(play: Play) -> None:
        play.write(made(establish(server), play))
        expect(EstablishConnection, refused=False)(play)
        play.write(packets.parameters(recoverable, ack, window))
        expect(ConnectionParameters, refused=False)(play)

    return step


def control(action: Callable[[Play], object]) -> Step:
    """Something else than bytes: the application, the administrator."""

    def step(play: Play) -> None:
        action(play)

    return step


# What we hear


@dataclass(frozen=True)
class Late:
    """A value that is known when the exchange is played."""

    value: Callable[[Play], Any]


def expect(
    kind: type[Packet],
    *,
    past: tuple[type[Packet], ...] = (),
    past_order_acks: bool = False,
    within: float = PATIENCE,
    **fields: Any,
) -> Step:
    """The next packet is of this kind, with these fields; packets `past` which we look may come.

    OrderAcks about an earlier exchange may still come to a peer who had many.
    `session__window_size=1` looks at `packet.session.window_size`.
    """

    def step(play: Play) -> None:
        deadline = time.monotonic() + within
        while True:
            packet = hear(play, deadline - time.monotonic())
            if past_order_acks and _is_order_ack(packet):
                continue
            if not (isinstance(packet, past) and not isinstance(packet, kind)):
                break
        assert isinstance(packet, kind), f"{kind.__name__} expected, this came: {packet}"
        for name, value in fields.items():
            check(play, packet, name, value)

    return step


def _is_order_ack(packet: Packet) -> bool:
    return isinstance(packet, UserMessage) and packet.properties.message_class == ORDER_ACK


def expect_bytes(part: Part, *, ignoring: Iterable[int] = ()) -> Step:
    """The next packet is this to the byte, but for those that the specification leaves open."""

    def step(play: Play) -> None:
        data = play.read()
        assert data, f"nothing came: {data!r}"
        expected, found = bytearray(made(part, play)), bytearray(data)
        for place in ignoring:
            expected[place] = found[place]
        differ = [
            n for n, both in enumerate(zip(found, expected, strict=False)) if len({*both}) > 1
        ]
        assert found == expected, f"{found.hex()} differs at {differ} from {expected.hex()}"

    return step


def hear(play: Play, seconds: float = PATIENCE) -> Packet:
    data = play.read(seconds)
    assert data is not None, "nothing came"
    assert data, "the daemon closed the connection"
    return decode_packet(data)


def check(play: Play, packet: Any, name: str, value: Any) -> None:
    found = packet
    for attribute in name.split("__"):
        found = getattr(found, attribute)
    expected = value.value(play) if isinstance(value, Late) else value
    found = bytes(found) if isinstance(found, memoryview) else found
    assert found == expected, f"{name} is {found!r}, not {expected!r}, in {packet}"


def closed(*, past: tuple[type[Packet], ...] = (), within: float = PATIENCE) -> Step:
    """The daemon closes the connection and says nothing more."""

    def step(play: Play) -> None:
        deadline = time.monotonic() + within
        while data := play.read(deadline - time.monotonic()):
            packet = decode_packet(data)
            assert isinstance(packet, past), f"this came before the end: {packet}"
        assert data == b"", f"the connection is still open after {within} seconds"

    return step


def silence(seconds: float = MOMENT) -> Step:
    """Nothing comes, and the connection stays."""

    def step(play: Play) -> None:
        data = play.read(seconds)
        assert data is None, f"not silent: {data!r}"

    return step


def still_open(play: Play) -> None:
    """The session lives and its counts are right: one more message is acknowledged."""
    play.write(play.message("plain").encode())
    number = play.sent & 0xFFFF
    expect(SessionAck, past_order_acks=True, session__ack_sequence_number=number)(play)


def holds(to: str, *bodies: bytes) -> Step:
    """A queue holds these messages, in this order; what was acknowledged is there."""

    def step(play: Play) -> None:
        found = [base64.b64decode(body) for body in play.stage.bodies(play.queue(to))]
        assert found == list(bodies), f"the queue holds {found}"

    return step


def answer(message_class: int, **fields: Any) -> Step:
    """A message of this class comes from the daemon, whatever session acks come before it."""
    return expect(
        UserMessage,
        past=(SessionAck,),
        past_order_acks=message_class != ORDER_ACK,
        properties__message_class=message_class,
        **fields,
    )
