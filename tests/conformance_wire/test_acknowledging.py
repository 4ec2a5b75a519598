"""The session acknowledgements of the daemon, and what it thinks of ours.

MQQB 3.1.5.5, 3.1.5.8.4, 3.1.5.8.7.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from falconmq.wire.session_ack import SessionAck
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.exchange import (
    Exchange,
    Part,
    Step,
    acknowledgement,
    cases,
    closed,
    control,
    expect,
    holds,
    message,
    opened,
    send,
    silence,
    still_open,
)
from tests.conformance_wire.play import Play
from tests.conformance_wire.stage import Stage

COUNTS = ("QB-3.1.5.5.5-01", "QB-3.1.5.5.5-02")


def acknowledged(number: int, first: int, bits: int, **fields: Any) -> Step:
    given = {
        "session__ack_sequence_number": number,
        "session__recoverable_msg_ack_seq_number": first,
        "session__recoverable_msg_ack_flags": bits,
        "session__window_size": 64,
    }
    return expect(SessionAck, **(given | fields))


def several(kinds: str) -> Step:
    """E and R: express and recoverable messages, in one segment."""
    return send(*(message(recoverable=kind == "R") for kind in kinds))


def ones(count: int) -> int:
    return (1 << count) - 1


PATTERNS = [
    Exchange(
        f"{kinds} and then four express ones",
        opened(8, recoverable=120_000),
        several(kinds),
        acknowledged(4, 1 if "R" in kinds else 0, ones(kinds.count("R"))),
        several("EEEE"),
        acknowledged(8, 0, 0),
        several("EERE"),
        acknowledged(12, kinds.count("R") + 1, 1),
        rows=("QB-A23-01", "QB-A24-01", "QB-MQMQ2.2.20.4-08"),
    )
    for kinds in map("".join, itertools.product("ER", repeat=4))
]
HALF_WINDOWS = [
    Exchange(
        f"with a window of {window} the answer comes after {half} messages",
        opened(window),
        several("E" * (half - 1)),
        silence(0.05),
        several("E"),
        acknowledged(half, 0, 0),
        several("E" * half),
        acknowledged(2 * half, 0, 0),
        rows=("QB-A31-01",),
    )
    for window, half in ((4, 2), (5, 2), (8, 4), (33, 16), (63, 31), (64, 32), (200, 32))
]
# The daemon's own window is 200 here: only the rule about 32 bits can speak.
WIDE = Exchange(
    "the 33rd recoverable message brings the answer to the first 32",
    opened(200, recoverable=1500),
    several("R" * 33),
    acknowledged(33, 1, 0xFFFFFFFF, session__window_size=200),
    acknowledged(33, 33, 1, session__window_size=200),
    rows=("QB-3.1.5.8.7-02",),
)
ANSWERS = [
    Exchange(
        "numbers go on from one answer to the next",
        opened(8, recoverable=120_000),
        *(
            step
            for turn in range(5)
            for step in (several("RRRR"), acknowledged(4 * turn + 4, 4 * turn + 1, 0xF))
        ),
        rows=("QB-A24-01",),
    ),
    Exchange(
        "a recoverable message is acknowledged after the time that the peer asked for",
        opened(recoverable=500),
        several("R"),
        silence(0.35),
        acknowledged(1, 1, 1),
        rows=("QB-3.1.5.8.7-13", "QB-3.1.5.4.1-05"),
    ),
    Exchange(
        "the answer of the timer covers the express messages too",
        opened(recoverable=500),
        several("EERE"),
        acknowledged(4, 1, 1),
        silence(0.6),
        rows=("QB-A32-01",),
    ),
    Exchange(
        "what the daemon has sent stands in its answers",
        opened(2),
        control(lambda play: play.stage.client.send(_admin(play), [{"text": "hello"}])),
        expect(UserMessage),
        several("E"),
        acknowledged(
            1, 0, 0, session__user_msg_sequence_number=1, session__recoverable_msg_seq_number=1
        ),
    ),
    Exchange(
        "a message that leaves late carries the answer with it",
        opened(recoverable=2000),
        several("R"),
        silence(1.6),  # more than three quarters of the time are over
        control(lambda play: play.stage.client.send(_admin(play), [{"text": "hello"}])),
        expect(
            UserMessage,
            session__ack_sequence_number=1,
            session__recoverable_msg_ack_seq_number=1,
            session__recoverable_msg_ack_flags=1,
            session__user_msg_sequence_number=1,
        ),
        silence(0.6),  # and the timer has nothing more to tell
        rows=("QB-3.1.7.11-02", "QB-A25-01"),
    ),
    Exchange(
        "a message that leaves early carries no answer",
        opened(recoverable=2000),
        several("R"),
        control(lambda play: play.stage.client.send(_admin(play), [{"text": "hello"}])),
        expect(UserMessage, session=None),
        acknowledged(1, 1, 1),
        rows=("QB-3.1.7.11-02",),
    ),
]


def _admin(play: Play) -> str:
    return rf"DIRECT=TCP:{play.address}\private$\admin"


def with_header(ack: int, sent: int, recoverable_sent: int, *, bits: int = 0) -> bytes:
    return packets.session_header(ack, 1 if bits else 0, bits, sent, recoverable_sent, 2)


def carrying(sent: int, recoverable_sent: int) -> Part:
    """A message with a header that says how many were sent."""

    def part(play: Play) -> bytes:
        headers = play.message(body=b"carrying")
        headers.session = with_header(0, sent, recoverable_sent)
        return headers.encode()

    return part


WRONG_COUNTS = [
    *(
        Exchange(
            f"a SessionAck that counts {sent} messages, {recoverable} recoverable, not 2 and 1",
            opened(2),
            several("ER"),
            control(lambda play: _settled(play, 2)),
            send(packets.session_ack(with_header(0, sent, recoverable))),
            closed(),
            holds("plain", b"hello", b"hello"),
            rows=(COUNTS[sent == 2],),
        )
        for sent, recoverable in (
            *((0, 1), (1, 1), (3, 1), (0xFFFF, 1), (0x8002, 1)),
            *((2, 0), (2, 2), (2, 0xFFFF), (0, 0), (3, 2)),
        )
    ),
    *(
        Exchange(
            f"a message whose header counts {sent} and {recoverable}, not 1 and 0, arrives",
            opened(2),
            send(carrying(sent, recoverable)),
            closed(past=(SessionAck,)),
            holds("plain", b"carrying"),
            rows=(COUNTS[recoverable != 0],),
        )
        for sent, recoverable in ((0, 0), (2, 0), (1, 1), (0xFFFF, 0))
    ),
    *(
        Exchange(
            f"what was never sent cannot be acknowledged: {name}",
            opened(2),
            send(packets.session_ack(header)),
            closed(),
        )
        for name, header in {
            "message 1": packets.session_header(1),
            "message 64": packets.session_header(64),
            "message 0x7FFF": packets.session_header(0x7FFF),
            "recoverable message 1": packets.session_header(0, 1, 1),
            "recoverable message 32": packets.session_header(0, 1, 0x80000000),
        }.items()
    ),
    Exchange(
        "the header of a message counts that message",
        opened(2),
        send(message(header=True), message(header=True, recoverable=True)),
        control(lambda play: _settled(play, 2)),
        still_open,
    ),
    Exchange(
        "an old number is told again: nothing happens",
        opened(2),
        control(lambda play: play.stage.client.send(_admin(play), [{"text": "hello"}])),
        expect(UserMessage),
        send(acknowledgement()),
        send(packets.session_ack(packets.session_header(0, 0, 0, 0, 0, 2))),
        send(packets.session_ack(packets.session_header(1, 1, 1, 0, 0, 2))),
        still_open,
    ),
]


def _settled(play: Play, count: int) -> None:
    while not play.acks or play.acks[-1].session.ack_sequence_number < count:
        assert play.read()


@pytest.mark.parametrize("exchange", cases(PATTERNS))
def test_numbers_and_bits(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(HALF_WINDOWS))
def test_half_a_window_is_acknowledged_at_once(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases(ANSWERS))
def test_answers(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)


@pytest.mark.parametrize("exchange", cases([WIDE]))
def test_thirty_three_recoverable_messages(wide_stage: Stage, exchange: Exchange) -> None:
    exchange.play(wide_stage)


@pytest.mark.parametrize("exchange", cases(WRONG_COUNTS))
def test_wrong_counts(stage: Stage, exchange: Exchange) -> None:
    exchange.play(stage)
