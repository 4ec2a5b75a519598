"""Transactional messages out: their numbers, their resending, their end.

MQQB 3.1.5.6, 3.1.5.7, 3.1.6.5, 3.1.7.1.3.
"""

from __future__ import annotations

import struct
from typing import Final

import pytest

from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.conformance_wire import packets
from tests.conformance_wire.calling import (
    DEAD_LETTER,
    JOURNAL,
    accepted,
    assert_in,
    confirmed,
    given,
    nothing_waits,
    numbered,
    text_of,
    waiting,
)
from tests.conformance_wire.exchange import (
    Exchange,
    Step,
    cases,
    control,
    hear,
    silence,
)
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import FAR, Stage
from tests.e2e.estate import wait_until

ACK_RECEIVE: Final = 0x4000


def place(play: Play) -> TransactionHeader:
    header = play.messages[-1].transaction
    assert header is not None
    return header


def placed(number: int, previous: int, body: str = "") -> Step:
    """The next message has this place in the sequence of the first."""

    def step(play: Play) -> None:
        packet = hear(play)
        assert isinstance(packet, UserMessage), packet
        assert not body or text_of(packet) == body
        header, first = packet.transaction, play.messages[0].transaction
        assert header is not None
        assert first is not None
        assert header.tx_sequence_id == first.tx_sequence_id
        found = header.tx_sequence_number, header.previous_tx_sequence_number
        assert found == (number, previous), found

    return step


def own(play: Play, message_class: int, body: bytes, *, recoverable: bool) -> bytes:
    """An acknowledgement of ours, as MQQB 2.2.4 and 2.2.5 want it."""
    name = rf"TCP:{play.stage.daemon.address}\PRIVATE$\order_queue$"
    headers = play.message(
        recoverable=recoverable,
        destination=packets.direct_name(name),
        label="QM Ordering Ack",
        message_class=message_class,
        body=body,
        priority=0,
    )
    return headers.encode()


def order_ack(
    number: int, *, sequence: int = 0, source: bytes = b"", reserved: bytes = bytes(20)
) -> Step:
    def step(play: Play) -> None:
        first = play.messages[-1].transaction
        assert first is not None
        body = packets.order_ack_body(first.tx_sequence_id + sequence, number, number - 1, reserved)
        data = own(play, 0x00FF, body, recoverable=False)
        if source:
            data = data[:16] + source + data[32:]
        play.write(data)

    return step


def final_ack(message_class: int, *, guess: int = 0) -> Step:
    """How the last message ended; a guess knows its MessageID and not its place."""

    def step(play: Play) -> None:
        packet = play.messages[-1]
        header = packet.transaction
        assert header is not None
        body = struct.pack(
            "<QII",
            header.tx_sequence_id + guess,
            header.tx_sequence_number,
            header.previous_tx_sequence_number,
        )
        body += packet.user.source_queue_manager + struct.pack("<I", packet.user.message_id)
        play.write(own(play, message_class, body, recoverable=True))

    return step


def comes_again(count: int, *numbers: int) -> Step:
    """The messages with these numbers are sent once more by the timer."""

    def step(play: Play) -> None:
        before = len(play.messages)
        while len(play.messages) < before + len(numbers):
            assert play.read(), "nothing came again"
        again = [each.transaction for each in play.messages[before:]]
        assert [header and header.tx_sequence_number for header in again] == list(numbers)
        assert play.messages[before].user.message_id == play.messages[count].user.message_id

    return step


def _assert_continues(play: Play) -> None:
    """Message 2 follows on 1, or, as 1 is gone, on nothing; message 3 follows on 2."""
    before = len(play.messages)
    packets_again = [hear(play), hear(play)]
    headers = [each.transaction for each in packets_again if isinstance(each, UserMessage)]
    assert len(play.messages) == before + 2
    places = [(h.tx_sequence_number, h.previous_tx_sequence_number) for h in headers if h]
    assert places in ([(2, 1), (3, 2)], [(2, 0), (3, 2)]), places


def _assert_new_sequence(play: Play) -> None:
    first = place(play)
    packet = hear(play)
    assert isinstance(packet, UserMessage)
    header = packet.transaction
    assert header is not None
    assert header.tx_sequence_id == first.tx_sequence_id + 1
    assert (header.tx_sequence_number, header.previous_tx_sequence_number) == (1, 0)


def _assert_waiting(play: Play, count: int) -> None:
    assert waiting(play) == count, waiting(play)


def _assert_nowhere(play: Play) -> None:
    for queue in (JOURNAL, DEAD_LETTER):
        texts = [each["destination"] or "" for each in play.stage.daemon.look(queue)]
        assert not any(play.address in text for text in texts), texts


TRANSACTIONS = [
    Exchange(
        "numbers begin with 1, each names the one before",
        given(*numbered(3), transaction=True),
        accepted(),
        placed(1, 0, "0"),
        placed(2, 1, "1"),
        placed(3, 2, "2"),
        order_ack(3),
        confirmed(3, 1, 7),
        nothing_waits,
        rows=("QB-3.1.5.6-08",),
    ),
    Exchange(
        "a session acknowledgement alone frees nothing",
        given("0", transaction=True),
        accepted(),
        placed(1, 0),
        confirmed(1, 1, 1),
        control(Play.hang_up),
        accepted(),
        placed(1, 0),
        confirmed(1, 1, 1),
        order_ack(1),
        nothing_waits,
        rows=("QB-3.1.5.5.5-04", "QB-A38-01"),
    ),
    Exchange(
        "after a new session the numbers are the old ones",
        given(*numbered(3), transaction=True),
        accepted(),
        *(placed(number, number - 1) for number in (1, 2, 3)),
        control(Play.hang_up),
        accepted(),
        *(placed(number, number - 1) for number in (1, 2, 3)),
        rows=("QB-A38-01",),
    ),
    Exchange(
        "what was acknowledged is not sent again; the next begins with nothing before it",
        given(*numbered(3), transaction=True),
        accepted(),
        *(placed(number, number - 1) for number in (1, 2, 3)),
        order_ack(1),
        confirmed(3, 1, 7),
        control(lambda play: wait_until(lambda: waiting(play) == 2, "one is gone", PATIENCE)),
        control(Play.hang_up),
        accepted(),
        _assert_continues,
        rows=("QB-A38-01",),
    ),
    Exchange(
        "without an OrderAck they come again on the same session",
        given("0", "1", transaction=True),
        accepted(),
        placed(1, 0),
        placed(2, 1),
        confirmed(2, 1, 3),
        comes_again(0, 1, 2),
        order_ack(2),
        control(lambda play: confirmed(play.received, 3, 3)(play)),
        nothing_waits,
        rows=("QB-3.1.6.5-01", "QB-A36-01"),
    ),
    Exchange(
        "all is acknowledged: the next sequence has the next ordinal",
        given("0", transaction=True),
        accepted(),
        placed(1, 0),
        order_ack(1),
        confirmed(1, 1, 1),
        nothing_waits,
        given("1", transaction=True),
        _assert_new_sequence,
        rows=("QB-3.1.5.6-10",),
    ),
    *(
        Exchange(
            f"an OrderAck {name} frees nothing",
            given("0", transaction=True),
            accepted(),
            placed(1, 0),
            step,
            confirmed(1, 1, 1),
            comes_again(0, 1),
            rows=rows,
        )
        for name, step, rows in (
            ("of another sequence", order_ack(1, sequence=1), ("QB-A34-01",)),
            ("of an older sequence", order_ack(1, sequence=-1), ("QB-A34-01",)),
            ("of another queue manager", order_ack(1, source=FAR.bytes_le), ()),
            ("for a number that nobody has", order_ack(99), ()),
        )
    ),
    Exchange(
        "garbage in the reserved bytes of an OrderAck does not matter",
        given("0", transaction=True),
        accepted(),
        placed(1, 0),
        order_ack(1, reserved=b"\xcd" * 20),
        confirmed(1, 1, 1),
        nothing_waits,
        rows=("QB-2.2.4.1-06",),
    ),
    Exchange(
        "an OrderAck that comes before the session's own waits for it",
        given("0", transaction=True),
        accepted(),
        placed(1, 0),
        order_ack(1),
        silence(0.1),
        control(lambda play: _assert_waiting(play, 1)),
        confirmed(1, 1, 1),
        nothing_waits,
        rows=("QB-A37-01",),
    ),
    *(
        Exchange(
            f"a message with {journal[0].lower()} that ended with {message_class:#06x} is {fate}",
            given("0", transaction=True, journal=journal, label="t"),
            accepted(),
            placed(1, 0),
            order_ack(1),
            confirmed(1, 1, 1),
            silence(0.05),
            control(lambda play: _assert_waiting(play, 1)),
            final_ack(message_class),
            nothing_waits,
            control(check),
            rows=rows,
        )
        for journal, message_class, fate, check, rows in (
            (
                ["JOURNAL"],
                ACK_RECEIVE,
                "in the journal",
                lambda play: assert_in(play, JOURNAL),
                ("QB-3.1.5.7-03",),
            ),
            (
                ["DEAD_LETTER"],
                0xC001,
                "a dead letter",
                lambda play: assert_in(play, DEAD_LETTER),
                ("QB-3.1.5.7-04", "QB-3.1.5.7-05"),
            ),
            (
                ["DEAD_LETTER"],
                0x8009,
                "a dead letter",
                lambda play: assert_in(play, DEAD_LETTER),
                ("QB-3.1.5.7-04", "QB-A35-01"),
            ),
            (
                ["JOURNAL"],
                0xC001,
                "forgotten",
                _assert_nowhere,
                ("QB-3.1.5.7-06",),
            ),
            (
                ["DEAD_LETTER"],
                ACK_RECEIVE,
                "forgotten",
                _assert_nowhere,
                ("QB-3.1.5.7-06",),
            ),
        )
    ),
    Exchange(
        "a FinalAck of somebody who guesses ends nothing",
        given("0", transaction=True, journal=["JOURNAL"]),
        accepted(),
        placed(1, 0),
        order_ack(1),
        confirmed(1, 1, 1),
        final_ack(ACK_RECEIVE, guess=1),
        silence(0.1),
        control(lambda play: _assert_waiting(play, 1)),
        final_ack(ACK_RECEIVE),
        nothing_waits,
    ),
]


@pytest.mark.parametrize("exchange", cases(TRANSACTIONS))
def test_transactions(stage: Stage, exchange: Exchange) -> None:
    exchange.play_called(stage)
