"""What stays in an outgoing queue and what leaves it, as the acknowledgements of a peer say.

MQQB 3.1.5.5, 3.1.5.8.4, 3.1.7.1.
"""

from __future__ import annotations

import pytest

from tests.conformance_wire import packets
from tests.conformance_wire.calling import (
    JOURNAL,
    accepted,
    assert_in,
    confirmed,
    given,
    nothing_waits,
    numbered,
    said,
    text_of,
    waiting,
)
from tests.conformance_wire.exchange import (
    Exchange,
    cases,
    control,
    hear,
    send,
)
from tests.conformance_wire.play import PATIENCE, Play
from tests.conformance_wire.stage import Stage
from tests.e2e.estate import wait_until


def _assert_same_ids(play: Play, count: int) -> None:
    ids = [each.user.message_id for each in play.messages]
    assert ids[:count] == ids[count:], ids
    assert len(set(ids)) == count, ids


def _assert_order(play: Play, count: int) -> None:
    """One by one; the first may have been chosen before the others came."""
    texts = []
    for number in range(1, count + 1):
        texts.append(text_of(hear(play)))
        confirmed(number, number, 1, window=1)(play)
    rest = [text for text in ("high", "middle", "low") if text != texts[0]]
    assert texts[1:] == rest, texts


def _assert_both(play: Play) -> None:
    assert {text_of(hear(play)), text_of(hear(play))} == {"a", "b"}


def _with_header(play: Play, number: int) -> bytes:
    headers = play.message()
    headers.session = packets.session_header(number, 0, 0, play.sent, play.recoverable_sent)
    return headers.encode()


RESENT = [
    Exchange(
        "nothing was acknowledged: all comes again, in order, counted from 1",
        given(*numbered(5)),
        accepted(),
        said(*numbered(5)),
        control(Play.hang_up),
        accepted(),
        said(*numbered(5)),
        confirmed(5, 1, 0x1F),
        nothing_waits,
        control(lambda play: _assert_same_ids(play, 5)),
        rows=("QB-A26-01",),
    ),
    Exchange(
        "recoverable messages that are received and not yet on disk come again",
        given(*numbered(3), recoverable=True),
        accepted(),
        said(*numbered(3)),
        confirmed(3, 1, 0b001),
        control(Play.hang_up),
        accepted(),
        said("1", "2"),
        confirmed(2, 1, 0b11),
        nothing_waits,
    ),
    Exchange(
        "a bit alone frees its message",
        given(*numbered(3), recoverable=True),
        accepted(),
        said(*numbered(3)),
        confirmed(3, 3, 0b1),
        nothing_waits,
        rows=("QB-3.1.5.5.3-01",),
    ),
    Exchange(
        "bits free their messages and no others",
        given(*numbered(4), recoverable=True),
        accepted(),
        said(*numbered(4)),
        confirmed(4, 1, 0b1010),
        control(Play.hang_up),
        accepted(),
        said("0", "2"),
        rows=("QB-3.1.5.5.3-02",),
    ),
    Exchange(
        "express messages go with their number, without a bit",
        given(*numbered(3), recoverable=False),
        accepted(),
        said(*numbered(3)),
        confirmed(2),
        control(Play.hang_up),
        accepted(),
        said("2"),
        confirmed(1),
        nothing_waits,
        rows=("QB-3.1.5.5.2-01",),
    ),
    Exchange(
        "an acknowledgement behind a message of ours counts",
        given("hello", recoverable=False),
        accepted(),
        said("hello"),
        send(lambda play: _with_header(play, 1)),
        nothing_waits,
        rows=("QB-3.1.5.8.4-02",),
    ),
    Exchange(
        "higher priorities go first",
        given("low", priority=0),
        given("high", priority=7),
        given("middle", priority=3),
        accepted(1),
        control(lambda play: _assert_order(play, 3)),
    ),
    Exchange(
        "two queues of one host share a session",
        given("a", queue="first"),
        given("b", queue="second"),
        accepted(),
        _assert_both,
        rows=("QB-A56-01",),
    ),
    Exchange(
        "a message that has expired is not sent",
        given("short", time_to_reach_queue=1),
        given("long"),
        control(lambda play: wait_until(lambda: waiting(play) == 1, "it expires", PATIENCE)),
        accepted(),
        said("long"),
    ),
    Exchange(
        "a journaled message is in the journal when it has arrived",
        given("for the journal", journal=["JOURNAL"], label="j", recoverable=True),
        accepted(),
        said("for the journal"),
        confirmed(1, 1, 1),
        nothing_waits,
        control(lambda play: assert_in(play, JOURNAL)),
        rows=("QB-3.1.5.5.4-01",),
    ),
]


@pytest.mark.parametrize("exchange", cases(RESENT))
def test_what_stays_and_what_goes(stage: Stage, exchange: Exchange) -> None:
    exchange.play_called(stage)
