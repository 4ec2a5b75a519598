"""Messages in: what a queue holds afterwards, and what it must not hold (MQQB 3.1.5.8).

All are acknowledged by the session, whatever became of them: it only counts.
"""

from __future__ import annotations

import base64
import struct
from typing import Any
from uuid import UUID, uuid4

import pytest

from falconmq.wire.session_ack import SessionAck
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    Exchange,
    Part,
    Step,
    cases,
    closed,
    control,
    expect,
    holds,
    message,
    opened,
    send,
    still_open,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import QUEUE_OF_FRAME_7, Stage

QUICKLY = opened(2)
SOURCE = UUID("11111111-2222-3333-4444-555555555555").bytes_le
CORRELATION = UUID("01234567-89ab-cdef-0123-456789abcdef").bytes_le + struct.pack("<I", 4712)


def taken(count: int) -> Step:
    """The daemon has done with this many messages."""

    def step(play: Play) -> None:
        while not play.acks or play.acks[-1].session.ack_sequence_number != count & 0xFFFF:
            expect(SessionAck)(play)

    return step


def shows(to: str = "plain", **fields: Any) -> Step:
    """The one message in a queue has these properties."""

    def step(play: Play) -> None:
        (found,) = play.stage.daemon.look(play.queue(to))
        assert {name: found[name] for name in fields} == fields

    return step


def kept(name: str, shown: dict[str, Any], **fields: Any) -> Exchange:
    title = f"kept as it came: {name}"
    return Exchange(title, QUICKLY, send(message(**fields)), taken(1), shows(**shown), still_open)


LABELS = ("a", "Bestellung für Zoë", "日本語", "😀 order", "x" * 249)
KEPT = [
    *(kept(f"label {label[:20]!r}", {"label": label}, label=label) for label in LABELS),
    *(
        kept(
            f"a body of {size} bytes",
            {"body": base64.b64encode(bytes(size)).decode()},
            body=bytes(size),
        )
        for size in (0, 1, 2, 3, 4, 5, 255, 4096, 65_535, 65_536, 200_000)
    ),
    *(
        kept(
            f"an extension of {size} bytes beside a label and a body",
            {"extension": base64.b64encode(b"e" * size).decode(), "label": "l"},
            extension=b"e" * size,
            label="l",
        )
        for size in (0, 1, 2, 3, 4, 5, 1000)
    ),
    *(kept(f"priority {number}", {"priority": number}, priority=number) for number in range(8)),
    *(
        kept(f"application tag {tag:#x}", {"application_tag": tag}, tag=tag)
        for tag in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    ),
    kept(
        "the correlation identifier",
        {"correlation_id": "{01234567-89AB-CDEF-0123-456789ABCDEF}\\4712"},
        correlation=CORRELATION,
    ),
    *(
        kept(
            f"MessageID {ordinal:#x}",
            {"id": f"{{11111111-2222-3333-4444-555555555555}}\\{ordinal}"},
            source=SOURCE,
            message_id=ordinal,
        )
        for ordinal in (1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    ),
    *(
        kept(f"hop count {hops}", {"hop_count": hops}, flags=hops)
        for hops in (0, 1, 0x1C, 0x1D, 0x1E, 0x1F)
    ),
    *(
        kept(f"reserved bit {bit} of UserHeader.Flags", {"priority": 3}, flags=1 << bit)
        for bit in (7, 24, 26, 27, 29, 30, 31)
    ),
    *(
        kept(
            f"reserved bit {bit} of the acks asked for", {"priority": 3}, acknowledgements=1 << bit
        )
        for bit in (4, 5, 6, 7)
    ),
    *(
        kept(f"{size} bytes of a header that nobody knows", {"label": ""}, extra=bytes(size))
        for size in (4, 16, 100)
    ),
    kept("a time to be received", {"time_to_be_received": 1000}, ttbr=1000),
    kept("no time to be received", {"time_to_be_received": "infinite"}, ttbr=packets.INFINITE),
    kept("a recoverable one", {"delivery": "RECOVERABLE"}, recoverable=True),
    kept("an express one", {"delivery": "EXPRESS"}),
]


def named(name: Part | str, kind: int, *, address: str = "nobody") -> Part:
    """A message under another name of the queue `plain`."""

    def part(play: Play) -> bytes:
        headers = play.message("plain")
        headers.flags = headers.flags & ~(7 << 10) | kind << 10
        if isinstance(name, str):
            headers.destination = packets.direct_name(name.replace("QUEUE", play.queue("plain")))
        else:
            headers.destination = name if isinstance(name, bytes) else name(play)
        headers.address = play.stage.guid if address == "daemon" else packets.NULL
        return headers.encode()

    return part


def number(play: Play) -> bytes:
    return struct.pack("<I", play.private_number("plain"))


NAMES = {
    "a direct name with another host": r"OS:elsewhere\private$\QUEUE",
    "a direct name in capitals": r"TCP:10.1.2.3\PRIVATE$\QUEUE",
    "a direct name in small letters": r"tcp:10.1.2.3\private$\QUEUE",
    "a direct name with an IPv6 address": r"TCP:::1\private$\QUEUE",
}
NO_NAMES = {
    "a direct name of another queue": r"OS:here\private$\nothing",
    "a name that is none": "hello",
    "a name with DIRECT=": r"DIRECT=OS:here\private$\QUEUE",
    "a journal": r"OS:here\private$\QUEUE;journal",
    "a dead-letter queue": r"OS:here\system$;deadletter",
    "an empty name": "",
    "a name of 2000 letters": rf"OS:{'x' * 2000}\private$\QUEUE",
}


def _assert_one(play: Play) -> None:
    found = play.stage.client.receive(f"PUBLIC={QUEUE_OF_FRAME_7}", count=10)
    assert [message["body"] for message in found] == ["aGVsbG8="]


DESTINATIONS = [
    *(
        Exchange(
            f"{name} leads to the queue",
            QUICKLY,
            send(named(text, packets.DIRECT)),
            taken(1),
            holds("plain", b"hello"),
        )
        for name, text in NAMES.items()
    ),
    *(
        Exchange(
            f"{name} leads nowhere and ends nothing",
            QUICKLY,
            send(named(text, packets.DIRECT)),
            taken(1),
            holds("plain"),
            still_open,
            rows=("QB-3.1.5.8.2-14",),
        )
        for name, text in NO_NAMES.items()
    ),
    Exchange(
        "a private number under our GUID leads to the queue",
        opened(2, "daemon"),
        send(named(number, packets.PRIVATE, address="daemon")),
        taken(1),
        holds("plain", b"hello"),
        rows=("QB-3.1.5.8.5-02",),
    ),
    Exchange(
        "a private number under no GUID is ours",
        QUICKLY,
        send(named(number, packets.PRIVATE)),
        taken(1),
        holds("plain", b"hello"),
        rows=("QB-A13-01",),
    ),
    Exchange(
        "a private number that no queue has leads nowhere",
        QUICKLY,
        send(named(struct.pack("<I", 0x7FFFFFF0), packets.PRIVATE, address="daemon")),
        taken(1),
        holds("plain"),
        still_open,
    ),
    Exchange(
        "a public queue that is not ours leads nowhere",
        QUICKLY,
        send(named(uuid4().bytes_le, packets.PUBLIC, address="daemon")),
        taken(1),
        holds("plain"),
        still_open,
    ),
    Exchange(
        "a public queue of ours is found by its GUID",
        QUICKLY,
        send(named(QUEUE_OF_FRAME_7.bytes_le, packets.PUBLIC, address="daemon")),
        taken(1),
        _assert_one,
    ),
    Exchange(
        "a message without a destination leads nowhere",
        QUICKLY,
        send(named(b"", 0)),
        taken(1),
        holds("plain"),
        still_open,
    ),
]


def ages(ttrq: int, age: int, *bodies: bytes) -> Exchange:
    fate = "arrives" if bodies else "has expired"
    return Exchange(
        f"sent {age} seconds ago with {ttrq:#x} to reach the queue, a message {fate}",
        QUICKLY,
        send(message(ttrq=ttrq, age=age)),
        taken(1),
        holds("plain", *bodies),
        still_open,
        rows=("QB-MQMQ2.2.19.1-07", "QB-A14-01") if not bodies else ("QB-A44-01",),
    )


AGES = [
    ages(packets.INFINITE, 0, b"hello"),
    ages(packets.INFINITE, 1_000_000_000, b"hello"),
    ages(3600, 0, b"hello"),
    ages(3600, 3000, b"hello"),
    ages(3600, -100_000, b"hello"),
    ages(10, 100),
    ages(1, 1_000_000_000),
    ages(345_600, 345_700),
]


def again(**fields: Any) -> Part:
    """A message with a number of its own choice."""
    return message(**({"message_id": 4242} | fields))


def connected_again(play: Play) -> None:
    play.connect()
    play.heard.clear()
    QUICKLY(play)


def sized(size: int) -> Part:
    """A message whose packet has this size."""

    def part(play: Play) -> bytes:
        headers = play.message(body=b"")
        headers.body = bytes(size - len(headers.encode()))
        return headers.encode()

    return part


DUPLICATES = [
    Exchange(
        f"a second {kind} message with one MessageID is acknowledged and not delivered",
        QUICKLY,
        send(again(body=b"one", recoverable=recoverable)),
        send(again(body=b"two", recoverable=recoverable)),
        taken(2),
        holds("plain", b"one"),
        still_open,
        rows=("QB-3.1.5.8.1-03", "QB-A12-01"),
    )
    for kind, recoverable in (("express", False), ("recoverable", True))
] + [
    Exchange(
        f"a second {kind} message is known again on a new session",
        QUICKLY,
        send(again(body=b"one", recoverable=recoverable)),
        taken(1),
        connected_again,
        send(again(body=b"two", recoverable=recoverable)),
        taken(1),
        holds("plain", b"one"),
        rows=("QB-3.1.5.8.1-03",),
    )
    for kind, recoverable in (("express", False), ("recoverable", True))
]
DUPLICATES += [
    Exchange(
        "the same MessageID of another queue manager is another message",
        QUICKLY,
        send(again(body=b"one"), again(body=b"two", source=uuid4().bytes_le)),
        taken(2),
        holds("plain", b"one", b"two"),
        rows=("QB-A12-01",),
    ),
    Exchange(
        "a copy in another segment, between other messages",
        QUICKLY,
        send(again(body=b"one"), message(body=b"x"), again(body=b"two"), message(body=b"y")),
        taken(4),
        holds("plain", b"one", b"x", b"y"),
    ),
    Exchange(
        "MessageID 0 is a number like others",
        QUICKLY,
        send(again(body=b"one", message_id=0)),
        taken(1),
        holds("plain", b"one"),
    ),
]


def _assert_size(play: Play) -> None:
    (found,) = play.stage.client.receive(play.stage.path(play.queue("plain")))
    assert len(base64.b64decode(found["body"])) > 0x3FFF00


def _until_settled(play: Play, count: int) -> None:
    """As `taken`, past the OrderAcks."""
    while not play.acks or play.acks[-1].session.ack_sequence_number < count:
        assert play.read()


ORDER = [
    Exchange(
        "higher priorities stand in front, equal ones as they came",
        opened(2),
        send(*(message(priority=n % 8, body=bytes([n])) for n in range(16))),
        taken(16),
        holds("plain", *(bytes([n + 8 * turn]) for n in range(7, -1, -1) for turn in (0, 1))),
    ),
    Exchange(
        "a priority in a transactional message means nothing",
        opened(2),
        send(message("transactional", transaction=(1, 1, 0), body=b"1", base_flags=0)),
        send(message("transactional", transaction=(1, 2, 1), body=b"2", base_flags=7)),
        control(lambda play: _until_settled(play, 2)),
        holds("transactional", b"1", b"2"),
    ),
    *(
        Exchange(
            f"a packet of {size:#x} bytes is taken",
            opened(2),
            send(sized(size)),
            taken(1),
            _assert_size,
        )
        for size in (0x3FFFFC, 0x400000)
    ),
    Exchange(
        "a packet of one byte more ends the session before it has come",
        opened(2),
        send(lambda play: play.message().encode()[:8] + struct.pack("<II", 0x400001, 0xFFFFFFFF)),
        closed(),
        rows=("QB-3.1.5.1.3-01",),
    ),
]


@pytest.mark.parametrize("exchange", cases(KEPT))
def test_properties(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(DESTINATIONS))
def test_destinations(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(AGES))
def test_time_to_reach_queue(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(DUPLICATES))
def test_duplicates(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(ORDER))
def test_order_and_size(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)
