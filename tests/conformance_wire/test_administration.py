"""Administration acknowledgements, as the administration queue of a stranger gets them.

MQQB 3.1.5.8.10, 3.1.7.2, 3.1.7.15. They come over the session that the stranger has opened.
"""

from __future__ import annotations

import struct
import time
from typing import Any, Final

import pytest

from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    ORDER_ACK,
    Exchange,
    Late,
    Step,
    acknowledgement,
    answer,
    cases,
    control,
    message,
    opened,
    send,
)
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import FAR, Stage

PA, PR, NA, NR = 1, 2, 4, 8  # MessagePropertiesHeader.Flags
REACHED, RECEIVED, PURGED, DELETED, TOO_LATE = 0x0002, 0x4000, 0xC001, 0xC000, 0xC002
FENCE: Final = 0x0FE0CE00  # the MessageID of the message that is answered last


def path(play: Play) -> str:
    return play.stage.path(play.queue("plain"))


def consume(play: Play) -> None:
    assert len(play.stage.client.receive(path(play), timeout=PATIENCE)) == 1


def purge(play: Play) -> None:
    assert play.stage.client.purge_queue(path(play)) == 1


def delete(play: Play) -> None:
    play.stage.client.delete_queue(path(play))


def classes(*expected: int) -> Step:
    """These acknowledgements have come, or come now, and no others.

    A last message, to a queue of its own, asks for an answer too: whatever else was on its way has
    come before that.
    """

    def step(play: Play) -> None:
        fence = play.message("fence", asks=True, acknowledgements=PA, message_id=FENCE)
        play.write(fence.encode())
        deadline = time.monotonic() + PATIENCE
        while not play.messages or _about(play.messages[-1]) != FENCE:
            assert play.read(deadline - time.monotonic()), "the last answer did not come"
            if isinstance(play.last, UserMessage):
                play.write(packets.session_ack(play.header()))  # our window is small
        found = [each.properties.message_class for each in play.messages[:-1]]
        told = [each for each in found if each != ORDER_ACK]
        assert told == list(expected), f"told: {[f'{each:#06x}' for each in told]}"

    return step


def _about(packet: UserMessage) -> int:
    return int.from_bytes(packet.properties.correlation_id[16:], "little")


def _taken(play: Play) -> None:
    while not play.acks:
        assert play.read()


FATES = {
    "consumed": (consume, RECEIVED, PR),
    "purged": (purge, PURGED, NR),
    "deleted with its queue": (delete, DELETED, NR),
}
ASKED = [
    Exchange(
        f"asked for {'+'.join(n for b, n in enumerate(('PA', 'PR', 'NA', 'NR')) if asked >> b & 1)}"
        f" and {name}: {[hex(each) for each in expected]}",
        opened(2),
        send(message(asks=True, acknowledgements=asked)),
        control(_taken),
        control(end),
        classes(*expected),
        rows=rows,
    )
    for asked in range(16)
    for name, (end, message_class, bit) in FATES.items()
    for expected in ([REACHED] * bool(asked & PA) + [message_class] * bool(asked & bit),)
    for rows in (("QB-3.1.5.8.10-01",) if asked & PA else (),)
]


def refused(
    name: str, to: str, message_class: int | None, *, asked: int = NA, **fields: Any
) -> Exchange:
    expected = [] if message_class is None else [message_class]
    return Exchange(
        f"{name}, asked for {asked:#03x}: {[hex(each) for each in expected]}",
        opened(2),
        send(message(to, asks=True, acknowledgements=asked, **fields)),
        control(_taken),
        classes(*expected),
    )


FIRST: dict[str, Any] = {"transaction": (1 << 60, 1, 0)}
SECURE: dict[str, tuple[str, int, dict[str, Any]]] = {
    "not transactional": ("transactional", 0x800A, {}),
    "a full queue": ("full", 0x8003, {"body": bytes(2000)}),
    "expired": ("plain", 0x8002, {"ttrq": 5, "age": 500}),
}
INSECURE = {
    "no such queue": ("missing", 0x8000),
    "not signed": ("signed", 0x8006),
    "not encrypted": ("encrypted", 0x8007),
}
REFUSED = [
    *(
        refused(name, to, message_class if asked & NA else None, asked=asked, **fields)
        for name, (to, message_class, fields) in SECURE.items()
        for asked in (NA, NA | NR, PA | PR | NA | NR, 0, PA | PR | NR)
    ),
    *(
        refused(f"{name} (nobody is told)", to, None, asked=asked)
        for name, (to, _) in INSECURE.items()
        for asked in (NA, PA | PR | NA | NR)
    ),
]
FRANK = [
    refused(name, to, message_class if asked & NA else None, asked=asked)
    for name, (to, message_class) in INSECURE.items()
    for asked in (NA, PA | PR | NA | NR, PA | PR | NR)
]


def correlation(message_id: int) -> Late:
    return Late(lambda play: play.guid + struct.pack("<I", message_id))


def looks(message_id: int, *, recoverable: bool, body: bytes) -> dict[str, Any]:
    """All that an acknowledgement says about itself (QB-3.1.7.15)."""
    flags = packets.MESSAGE_PROPERTIES | packets.DIRECT << 10 | packets.DIRECT << 16
    return {
        "base__flags": 3,
        "base__time_to_reach_queue": packets.INFINITE,
        "user__time_to_be_received": packets.INFINITE,
        "user__source_queue_manager": Late(lambda play: play.stage.guid),
        "user__queue_manager_address": packets.NULL,
        "user__destination_queue": Late(lambda play: rf"TCP:{play.address}\private$\admin"),
        "user__response_queue": Late(
            lambda play: rf"TCP:{play.stage.daemon.address}\private$\{play.queue('plain')}"
        ),
        "user__flags": flags | recoverable << 5,
        "transaction": None,
        "properties__flags": 0,
        "properties__correlation_id": correlation(message_id),
        "properties__message_body": body,
    }


RETURNED: tuple[tuple[str, int, dict[str, Any], tuple[Step, ...]], ...] = (
    ("purged", PURGED, {}, (purge,)),
    ("deleted", DELETED, {}, (delete,)),
    ("expired on the way", 0x8002, {"ttrq": 5, "age": 500}, ()),
)
LOOKS = [
    *(
        Exchange(
            f"the acknowledgement of {'a recoverable' if recoverable else 'an express'} message",
            opened(2),
            send(
                message(
                    asks=True, acknowledgements=PA | PR, recoverable=recoverable, message_id=321
                )
            ),
            answer(REACHED, **looks(321, recoverable=recoverable, body=b"")),
            send(acknowledgement()),
            control(consume),
            answer(RECEIVED, **looks(321, recoverable=recoverable, body=b"")),
            rows=("QB-3.1.7.15-28", "QB-3.1.7.15-33", "QB-3.1.7.15-34", "QB-3.1.7.15-35"),
        )
        for recoverable in (False, True)
    ),
    *(
        Exchange(
            f"a nack ({name}) brings the body back",
            opened(2),
            send(message(asks=True, acknowledgements=NA | NR, body=b"b" * 99, **fields)),
            control(_taken),
            *steps,
            answer(message_class, **looks(1, recoverable=False, body=b"b" * 99)),
        )
        for name, message_class, fields, steps in RETURNED
    ),
    Exchange(
        "a message that nobody reads in time is told of",
        opened(2),
        send(message(asks=True, acknowledgements=NR, ttbr=1)),
        answer(TOO_LATE, **looks(1, recoverable=False, body=b"hello")),
    ),
    Exchange(
        "without an administration queue nobody is told",
        opened(2),
        send(message(acknowledgements=PA | PR | NA | NR)),
        control(_taken),
        control(consume),
        classes(),
        rows=("QB-3.1.7.15-02",),
    ),
    *(
        Exchange(
            f"an answer of class {message_class:#06x} is never answered",
            opened(2),
            send(message(asks=True, acknowledgements=15, message_class=message_class)),
            control(_taken),
            control(consume),
            classes(),
        )
        for message_class in (0x0001, REACHED, RECEIVED, 0x8000, 0x8009, PURGED)
    ),
    Exchange(
        "a transactional message to a queue without transactions: nack and FinalAck",
        opened(2),
        send(message("plain", asks=True, acknowledgements=NA, **FIRST)),
        control(_taken),
        classes(0x8009, 0x8009),
        rows=("QB-3.1.5.8.2-16", "QB-3.1.5.8.2-17"),
    ),
    Exchange(
        "a transactional message to no queue: its queue manager is told, its application is not",
        opened(2),
        send(message("missing", asks=True, acknowledgements=NA, **FIRST)),
        control(_taken),
        classes(0x8000),
        control(lambda play: _assert_label(play, "QM Ordering Ack")),
        rows=("QB-3.1.7.15-04",),
    ),
]


def _assert_label(play: Play, label: str) -> None:
    labels = {each.properties.label for each in play.messages[:-1]}
    assert labels == {label}, labels


# Messages that only pass through: to a queue manager behind the one that the daemon knows.


def passing(hops: int, **fields: Any) -> Any:
    def part(play: Play) -> bytes:
        headers = play.message(asks=True, acknowledgements=NA, **fields)
        headers.flags = headers.flags & ~(7 << 10) | packets.PRIVATE << 10 | hops
        headers.destination = struct.pack("<I", 9)
        headers.address = FAR.bytes_le
        return headers.encode()

    return part


HOPS = [
    Exchange(
        f"a message that has gone {hops} hops goes no further",
        opened(2),
        send(passing(hops)),
        control(_taken),
        classes(0x8005),
        rows=("QB-3.1.5.8.2-22", "QB-3.1.5.8.2-23", "QB-A16-01"),
    )
    for hops in (0x1D, 0x1E, 0x1F)
] + [
    Exchange(
        "a transactional message that has gone 29 hops: nack and FinalAck",
        opened(2),
        send(passing(0x1D, **FIRST)),
        control(_taken),
        # the FinalAck goes to the source by its GUID, which the daemon does not know
        classes(0x8005),
        rows=("QB-3.1.5.8.2-22",),
    ),
    Exchange(
        "a message that has expired on its way through",
        opened(2),
        send(passing(0, ttrq=5, age=500)),
        control(_taken),
        classes(0x8002),
    ),
]


@pytest.mark.parametrize("exchange", cases(ASKED))
def test_what_was_asked_for_is_told(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(REFUSED))
def test_refusals(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(FRANK))
@pytest.mark.requirement("QB-3.1.1.3-26")
def test_refusals_that_tell_strangers_something(frank_stage: Stage, exchange: Exchange) -> None:
    exchange.play(frank_stage)


@pytest.mark.parametrize("exchange", cases(LOOKS))
def test_every_header_of_the_acknowledgements(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(HOPS))
def test_messages_that_pass_through(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)
