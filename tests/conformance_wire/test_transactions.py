"""Transactional messages in: what is taken, and how the sender hears of it.

MQQB 2.2.4, 2.2.5, 3.1.5.8.6, 3.1.7.17.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import pytest

from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    ORDER_ACK,
    Exchange,
    Late,
    Part,
    Step,
    acknowledgement,
    answer,
    cases,
    control,
    expect,
    hear,
    holds,
    message,
    opened,
    send,
)
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import Stage

S1, S2 = 0x5000_0000_0000_0001, 0x5000_0000_0000_0002  # TimeStamp high, Ordinal low
LATER: Final = 0x5000_0001_0000_0000  # a later TimeStamp with a lower Ordinal
ACK_RECEIVE = 0x4000
Place = tuple[int, int, int]  # TxSequenceID, number, previous number

# Rows of the guide's 6.6: what came before, what comes, whether it is taken, what is told.
STREAMS: dict[str, tuple[list[Place], list[int], tuple[int, int]]] = {
    "the first of all": ([(S1, 1, 0)], [0], (S1, 1)),
    "the next": ([(S1, 1, 0), (S1, 2, 1)], [0, 1], (S1, 2)),
    "a copy": ([(S1, 1, 0), (S1, 1, 0)], [0], (S1, 1)),
    "a hole": ([(S1, 1, 0), (S1, 3, 2)], [0], (S1, 1)),
    "a bridge over a message that expired": ([(S1, 1, 0), (S1, 3, 1)], [0, 1], (S1, 3)),
    "a bridge from the beginning": ([(S1, 1, 0), (S1, 3, 0)], [0, 1], (S1, 3)),
    "an old one": ([(S1, 1, 0), (S1, 3, 1), (S1, 2, 1)], [0, 1], (S1, 3)),
    "a new sequence": ([(S1, 1, 0), (S2, 1, 0)], [0, 1], (S2, 1)),
    "the second of a new sequence": ([(S1, 1, 0), (S2, 2, 1)], [0], (S1, 1)),
    "an old sequence": ([(S2, 1, 0), (S1, 2, 1)], [0], (S2, 1)),
    "an old sequence from its start": ([(S2, 1, 0), (S1, 1, 0)], [0], (S2, 1)),
    "a later time with a lower ordinal": ([(S2, 1, 0), (LATER, 1, 0)], [0, 1], (LATER, 1)),
    "an earlier time with a higher ordinal": ([(LATER, 1, 0), (S2, 1, 0)], [0], (LATER, 1)),
    "a start in the middle": ([(S1, 7, 0)], [0], (S1, 7)),
    "five in one segment": ([(S1, n, n - 1) for n in range(1, 6)], [0, 1, 2, 3, 4], (S1, 5)),
    "five, each twice": (
        [(S1, n, n - 1) for n in range(1, 6) for _ in range(2)],
        [0, 2, 4, 6, 8],
        (S1, 5),
    ),
    "all resent after a hole": (
        [(S1, 1, 0), (S1, 3, 2), (S1, 4, 3), (S1, 2, 1), (S1, 3, 2), (S1, 4, 3)],
        [0, 3, 4, 5],
        (S1, 4),
    ),
    "the largest numbers": (
        [(S1, 0xFFFFFFFD, 0), (S1, 0xFFFFFFFF, 0xFFFFFFFD)],
        [0, 1],
        (S1, 0xFFFFFFFF),
    ),
}
SEVERAL_ROWS = ("QB-3.1.5.8.6-04", "QB-3.1.5.8.6-05", "QB-3.1.5.8.6-06", "QB-3.1.5.8.6-10")


def transactional(place: Place, to: str = "transactional", **fields: Any) -> Part:
    return message(to, transaction=place, **fields)


def told(sequence: int, number: int) -> Step:
    """The OrderAck that says so comes; earlier ones may come before it."""

    def step(play: Play) -> None:
        wanted = packets.order_ack_body(sequence, number, number - 1)
        while True:
            packet = hear(play, PATIENCE)
            if isinstance(packet, SessionAck):
                continue
            assert isinstance(packet, UserMessage)
            assert packet.properties.message_class == ORDER_ACK
            if bytes(packet.properties.message_body) == wanted:
                break

    return step


IN_ORDER = [
    Exchange(
        name,
        opened(2),
        send(*(transactional(place, body=b"%d" % index) for index, place in enumerate(places))),
        told(*last),
        send(acknowledgement()),
        holds("transactional", *(b"%d" % index for index in taken)),
        rows=SEVERAL_ROWS,
    )
    for name, (places, taken, last) in STREAMS.items()
]


def _assert_silent(play: Play) -> None:
    data = play.read(0.3)
    assert data is None, f"not silent: {data!r}"


APART = [
    Exchange(
        "the streams of two queues are two",
        opened(2),
        send(
            transactional((S1, 1, 0), body=b"a"),
            message("plain"),
            transactional((S1, 2, 1), body=b"b"),
        ),
        told(S1, 2),
        holds("transactional", b"a", b"b"),
        rows=("QB-A39-01",),
    ),
    Exchange(
        "a stream goes on over a new session, and a copy of its last message is told again",
        opened(2),
        send(transactional((S1, 1, 0), body=b"a"), transactional((S1, 2, 1), body=b"b")),
        told(S1, 2),
        send(acknowledgement()),
        control(Play.connect),
        opened(2),
        send(transactional((S1, 2, 1), body=b"x")),
        told(S1, 2),
        send(transactional((S1, 3, 2), body=b"c")),
        told(S1, 3),
        holds("transactional", b"a", b"b", b"c"),
        rows=("QB-A39-01", "QB-A33-01"),
    ),
    Exchange(
        "nothing was taken yet: nothing is told",
        opened(2),
        send(transactional((S1, 2, 1))),
        expect(SessionAck, session__ack_sequence_number=1),
        _assert_silent,
        holds("transactional"),
    ),
    Exchange(
        "a message with one MessageID twice is no copy if its number is another",
        opened(2),
        send(
            transactional((S1, 1, 0), message_id=9, body=b"a"),
            transactional((S1, 2, 1), message_id=9, body=b"b"),
        ),
        told(S1, 2),
        holds("transactional", b"a", b"b"),
        rows=("QB-3.1.5.8.1-01",),
    ),
]


def order_queue(play: Play) -> str:
    return rf"TCP:{play.address}\PRIVATE$\order_queue$"


def is_an_order_ack(flags: int) -> dict[str, Any]:
    """What OrderAck and FinalAck share, all of their headers (MQQB 2.2.4, 2.2.5)."""
    return {
        "base__flags": 0,
        "base__time_to_reach_queue": packets.INFINITE,
        "user__source_queue_manager": Late(lambda play: play.stage.guid),
        "user__queue_manager_address": packets.NULL,
        "user__flags": flags | packets.MESSAGE_PROPERTIES | packets.DIRECT << 10,
        "user__destination_queue": Late(order_queue),
        "user__admin_queue": None,
        "user__response_queue": None,
        "transaction": None,
        "security": None,
        "debug": None,
        "properties__flags": 0,
        "properties__label": "QM Ordering Ack",
        "properties__body_type": 0,
        "properties__extension_data": b"",
        "properties__correlation_id": bytes(20),
    }


LOOKS = [
    Exchange(
        "an OrderAck looks as it should, in every header",
        opened(2),
        send(transactional((S1, 5, 0))),
        answer(
            ORDER_ACK,
            **is_an_order_ack(0),
            properties__message_body=packets.order_ack_body(S1, 5, 4),
        ),
        rows=(
            *(f"QB-2.2.4-{n:02}" for n in (3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15)),
            *("QB-2.2.4.1-02", "QB-2.2.4.1-03", "QB-2.2.4.1-04"),
        ),
    ),
    Exchange(
        "a FinalAck looks as it should, in every header",
        opened(2),
        send(transactional((S1, 5, 0), "plain", message_id=0x01020304)),
        answer(
            0x8009,
            **is_an_order_ack(1 << 5),
            properties__message_body=Late(lambda play: final_body(play, (S1, 5, 0), 0x01020304)),
        ),
        rows=(
            *(f"QB-2.2.5-{n:02}" for n in (3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 17)),
            *("QB-2.2.5.1-02", "QB-2.2.5.1-03", "QB-2.2.5.1-04"),
        ),
    ),
]


def final_body(play: Play, place: Place, message_id: int) -> bytes:
    return struct.pack("<QII", *place) + play.guid + struct.pack("<I", message_id)


def rejected(name: str, to: str, message_class: int, row: str = "", **fields: Any) -> Exchange:
    """A message that is refused ends with a FinalAck, and its stream goes on."""
    return Exchange(
        f"{name}: the FinalAck says {message_class:#06x}, whatever was asked for",
        opened(2),
        send(transactional((S1, 1, 0), to, message_id=55, **fields)),
        answer(
            message_class,
            properties__message_body=Late(lambda play: final_body(play, (S1, 1, 0), 55)),
        ),
        told(S1, 1),
        rows=[each for each in (row, "QB-A55-01") if each],
    )


REJECTED = [
    rejected("a queue without transactions", "plain", 0x8009, "QB-3.1.5.8.2-17"),
    rejected("no such queue", "missing", 0x8000, "QB-3.1.5.8.2-13"),
    rejected("a full queue", "full transactional", 0x8003, body=bytes(2000)),
    rejected("an expired message", "transactional", 0x8002, ttrq=10, age=1000),
]


def path(play: Play) -> str:
    return play.stage.path(play.queue("transactional"))


ENDS = {
    "consumed": (lambda play: play.stage.client.receive(path(play), timeout=5), ACK_RECEIVE),
    "purged": (lambda play: play.stage.client.purge_queue(path(play)), 0xC001),
    "deleted with its queue": (lambda play: play.stage.client.delete_queue(path(play)), 0xC000),
}
JOURNALED: dict[str, dict[str, Any]] = {
    "JP": {"flags": packets.JOURNAL_POSITIVE},
    "JN": {"flags": packets.JOURNAL_NEGATIVE},
    "JP and JN": {"flags": packets.JOURNAL_POSITIVE | packets.JOURNAL_NEGATIVE},
    "FA": {"transaction_flags": 2},
}
ENDED = [
    *(
        Exchange(
            f"a message with {asked} that is {name} ends with {message_class:#06x}",
            opened(2),
            send(transactional((S1, 1, 0), message_id=66, **fields)),
            told(S1, 1),
            send(acknowledgement()),
            control(end),
            answer(
                message_class,
                properties__message_body=Late(lambda play: final_body(play, (S1, 1, 0), 66)),
            ),
            rows=("QB-3.1.7.2.2-01",) if asked != "FA" else (),
        )
        for asked, fields in JOURNALED.items()
        for name, (end, message_class) in ENDS.items()
    ),
    *(
        Exchange(
            f"a message that nobody waits for is {name} without a FinalAck",
            opened(2),
            send(transactional((S1, 1, 0))),
            told(S1, 1),
            send(acknowledgement()),
            control(end),
            _assert_silent,
        )
        for name, (end, _) in ENDS.items()
    ),
    Exchange(
        "a message that nobody reads in time ends with 0xc002",
        opened(2),
        send(transactional((S1, 1, 0), message_id=67, ttbr=1, flags=packets.JOURNAL_NEGATIVE)),
        told(S1, 1),
        answer(
            0xC002, properties__message_body=Late(lambda play: final_body(play, (S1, 1, 0), 67))
        ),
    ),
    Exchange(
        "the FinalAck of the second message says that the first came before it",
        opened(2),
        send(transactional((S1, 1, 0)), transactional((S1, 3, 1), message_id=68, flags=1 << 9)),
        told(S1, 3),
        send(acknowledgement()),
        control(lambda play: play.stage.client.receive(path(play), count=2)),
        answer(
            ACK_RECEIVE,
            properties__message_body=Late(lambda play: final_body(play, (S1, 3, 1), 68)),
        ),
        rows=("QB-2.2.5.1-04",),
    ),
]


@pytest.mark.parametrize("exchange", cases(IN_ORDER))
def test_what_is_taken_of_a_stream(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(APART))
def test_streams(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(LOOKS))
def test_every_header_of_the_acknowledgements(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(REJECTED))
def test_refused_messages(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(ENDED))
def test_ends_of_messages(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)
