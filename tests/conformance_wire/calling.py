"""A peer that is called by the daemon: what it answers, what it expects to hear."""

from __future__ import annotations

from typing import Any

from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    Part,
    Step,
    expect,
    hear,
    send,
)
from tests.conformance_wire.play import PATIENCE, Play
from tests.e2e.estate import wait_until

JOURNAL = r".\system$;journal"
DEAD_LETTER = r".\system$;deadxact"


def goal(play: Play, queue: str = "orders") -> str:
    return rf"DIRECT=TCP:{play.address}\private$\{queue}"


def given(
    *bodies: str, queue: str = "orders", transaction: bool = False, **properties: Any
) -> Step:
    """An application of the daemon sends to a queue of ours."""

    def step(play: Play) -> None:
        messages = [{"text": body, **properties} for body in bodies]
        play.stage.client.send(goal(play, queue), messages, transaction=transaction)

    return step


def called(play: Play) -> None:
    """The daemon has connected, and has asked for a session."""
    play.answer()
    expect(EstablishConnection, refused=False)(play)


def response(**changes: Any) -> Part:
    """The right answer to the request that came last, but for some fields."""

    def part(play: Play) -> bytes:
        request = next(e for e in reversed(play.heard) if isinstance(e, EstablishConnection))
        late = int(changes.get("late", 0))
        return packets.establish(
            changes.get("client", request.client_guid),
            changes.get("server", play.guid),
            time_stamp=(request.time_stamp - late) % 2**32,
            operating_system=changes.get("operating_system", 0x0310),
            padding=changes.get("padding", packets.PADDING),
            flags=changes.get("flags", 0),
        )

    return part


def accepted(window: int = 64) -> Step:
    """The session is open, and the daemon may send."""

    def step(play: Play) -> None:
        called(play)
        send(response())(play)
        expect(ConnectionParameters, refused=False)(play)
        play.write(packets.parameters(500, 20_000, window))

    return step


def said(*bodies: str) -> Step:
    """The next messages have these bodies."""

    def step(play: Play) -> None:
        found = [text_of(hear(play)) for _ in bodies]
        assert found == list(bodies), found

    return step


def text_of(packet: object) -> str:
    assert isinstance(packet, UserMessage), packet
    return bytes(packet.properties.message_body).decode("utf-16-le").rstrip("\0")


def confirmed(number: int, first: int = 0, bits: int = 0, window: int = 64) -> Step:
    """A SessionAck of ours; nothing was sent by us."""
    return send(
        lambda play: packets.session_ack(
            packets.session_header(number, first, bits, play.sent, play.recoverable_sent, window)
        )
    )


def nothing_waits(play: Play) -> None:
    """The daemon has nothing more for us."""
    wait_until(lambda: waiting(play) == 0, "the outgoing queues are empty", PATIENCE)


def waiting(play: Play) -> int:
    found = [q for q in play.stage.client.outgoing() if play.address in q["destination"]]
    return sum(queue["messages"] for queue in found)


def assert_in(play: Play, queue: str) -> None:
    """The message whose destination is ours is there."""
    found = [
        each
        for each in play.stage.daemon.look(queue)
        if play.address in (each["destination"] or "")
    ]
    assert len(found) == 1, found


def numbered(count: int) -> list[str]:
    return [str(number) for number in range(count)]
