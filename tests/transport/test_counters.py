"""ReceivedMessages and SendWindow: MQQB 3.1.1.4, 3.1.1.6.1, resolutions QB-A23 to QB-A30."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.transport.counters import ReceivedMessages, SendWindow, serial_distance
from falconmq.wire.session_header import SessionHeader


def header(number: int = 0, first_recoverable: int = 0, bits: int = 0) -> SessionHeader:
    return SessionHeader(number, first_recoverable, bits, 0, 0)


def window_with(count: int, *, recoverable: bool = True) -> SendWindow:
    """A window with messages 1 to `count` sent; the entries are the numbers."""
    window = SendWindow(64)
    for number in range(1, count + 1):
        window.add(number, recoverable)
    return window


def received(*recoverable: bool) -> ReceivedMessages:
    """Messages that came and were settled at once."""
    messages = ReceivedMessages()
    for kind in recoverable:
        messages.add(kind)
    assert messages.settle(len(recoverable)) == 0
    return messages


@pytest.mark.requirement("QB-A28-01")
@pytest.mark.parametrize(
    ("number", "count", "distance"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (0, 1, -1),
        (0, 65535, 1),
        (65535, 65536, -1),
        (2, 65530, 8),
        (32767, 0, 32767),
        (32768, 0, -32768),
    ],
)
def test_a_number_less_than_half_the_circle_ahead_is_ahead(
    number: int, count: int, distance: int
) -> None:
    assert serial_distance(number, count) == distance


# What we received


@pytest.mark.requirement("MQ-2.2.20.4-06", "MQ-2.2.20.4-08", "MQ-2.2.20.4-09", "MQ-2.2.20.4-11")
@pytest.mark.requirement("QB-A23-01", "QB-3.1.1.6.1-01")
def test_express_and_recoverable_messages_are_numbered_apart() -> None:
    # given the worked example: E, R, R, E, R
    messages = received(False, True, True, False, True)
    # then five are acknowledged, and the recoverable ones 1 to 3 by their bits
    assert messages.acknowledge() == (5, 1, 0b111)
    # and after one more express message no recoverable one
    messages.add(False)
    messages.settle(1)
    assert messages.acknowledge() == (6, 0, 0)


@pytest.mark.requirement("MQ-2.2.20.4-09")
@pytest.mark.requirement("QB-3.1.1.6.1-04", "QB-A23-01", "QB-MQMQ2.2.20.4-08")
def test_without_recoverable_messages_both_fields_are_zero() -> None:
    assert ReceivedMessages().acknowledge() == (0, 0, 0)
    assert received(False, False).acknowledge() == (2, 0, 0)


@pytest.mark.requirement("MQ-2.2.20.4-08")
@pytest.mark.requirement("QB-A24-01")
def test_each_bit_is_told_once() -> None:
    messages = received(True, True)
    assert messages.acknowledge() == (2, 1, 0b11)
    assert not messages.has_news
    messages.add(True)
    messages.settle(1)
    assert messages.acknowledge() == (3, 3, 0b1)


@pytest.mark.requirement("MQ-2.2.20.4-08", "MQ-2.2.20.4-11")
def test_a_message_is_not_acknowledged_before_it_is_settled() -> None:
    # given two messages of which one is on disk
    messages = ReceivedMessages()
    messages.add(True)
    messages.add(True)
    messages.settle(1)
    # then both were received, and one is acknowledged
    assert (messages.received, messages.unacknowledged, messages.unsettled) == (2, 2, 1)
    assert messages.acknowledge() == (1, 1, 0b1)
    assert (messages.unacknowledged, messages.has_news) == (1, False)


@pytest.mark.requirement("QB-3.1.5.8.7-02", "QB-3.1.5.8.7-10")
def test_settling_stops_when_32_bits_are_in_use() -> None:
    # given 40 recoverable messages
    messages = ReceivedMessages()
    for _ in range(40):
        messages.add(True)
    # when all are settled
    left = messages.settle(40)
    # then it stops in the middle of the 33rd: its number is told now, its bit the next time
    assert left == 7
    assert messages.acknowledge() == (33, 1, 0xFFFFFFFF)
    assert messages.settle(left) == 0
    assert messages.acknowledge() == (40, 33, 0xFF)


@pytest.mark.requirement("MQ-2.2.20.4-22")
@pytest.mark.requirement("QB-A28-01", "QB-A23-01")
def test_what_is_acknowledged_wraps_at_65536() -> None:
    # given 65534 recoverable messages, acknowledged one by one
    messages = ReceivedMessages()
    for _ in range(65534):
        messages.add(True)
        messages.settle(1)
        messages.acknowledge()
    # when four more come
    for _ in range(4):
        messages.add(True)
    messages.settle(4)
    # then numbers 65535, 0, 1 and 2 are on disk
    assert messages.acknowledge() == (2, 65535, 0b1111)


@pytest.mark.requirement("MQ-2.2.20.4-22")
@pytest.mark.requirement("QB-A23-01", "QB-A28-01")
def test_the_first_recoverable_number_may_be_a_wrapped_zero() -> None:
    messages = ReceivedMessages()
    for _ in range(65535):
        messages.add(True)
        messages.settle(1)
        messages.acknowledge()
    messages.add(True)
    messages.settle(1)
    assert messages.acknowledge() == (0, 0, 0b1)


@pytest.mark.requirement("MQ-2.2.20.4-02")
@pytest.mark.requirement("QB-3.1.5.5.5-01", "QB-3.1.5.5.5-02")
@pytest.mark.parametrize(
    ("sent", "recoverable_sent", "problem"),
    [
        (3, 1, ""),
        (2, 1, "UserMsgSequenceNumber 2, but 3 messages came"),
        (4, 1, "UserMsgSequenceNumber 4, but 3 messages came"),
        (3, 0, "RecoverableMsgSeqNumber 0, but 1 recoverable messages came"),
    ],
)
def test_the_peers_counts_are_checked_against_what_came(
    sent: int, recoverable_sent: int, problem: str
) -> None:
    # given three messages, one recoverable, none settled
    messages = ReceivedMessages()
    for recoverable in (False, True, False):
        messages.add(recoverable)
    assert messages.check(SessionHeader(0, 0, 0, sent, recoverable_sent)) == problem


# What we sent


@pytest.mark.requirement("MQ-2.2.20.4-06")
@pytest.mark.requirement("QB-3.1.5.5.1-01", "QB-3.1.5.5.1-02", "QB-A29-01")
def test_an_acknowledgement_covers_all_numbers_up_to_it() -> None:
    window = SendWindow(64)
    assert window.unacked == 0
    for number in range(1, 6):
        window.add(number, recoverable=False)
    assert window.unacked == 5
    assert window.acknowledge(header(3)) == ([1, 2, 3], [])
    assert window.unacked == 2
    assert window.acknowledge(header(3)) == ([], [])
    assert window.acknowledge(header(5)) == ([4, 5], [])


@pytest.mark.requirement("QB-MQMQ2.2.20.4-07")
@pytest.mark.requirement("QB-3.1.5.5.3-02")
def test_a_recoverable_message_is_stored_when_its_bit_says_so() -> None:
    window = window_with(5)
    # when all are received, 1 and 3 are on disk
    assert window.acknowledge(header(5, 1, 0b101)) == ([1, 2, 3, 4, 5], [1, 3])
    # then the others follow, each once, even if a bit is repeated
    assert window.acknowledge(header(5, 1, 0b111)) == ([], [2])
    assert window.acknowledge(header(5, 4, 0b11)) == ([], [4, 5])


@pytest.mark.requirement("QB-3.1.5.5.3-01")
def test_recoverable_messages_below_the_first_number_are_stored() -> None:
    window = window_with(5)
    assert window.acknowledge(header(5, 4, 0b1)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4])


def test_without_any_bit_nothing_is_taken_for_stored() -> None:
    window = window_with(5)
    assert window.acknowledge(header(5, 3, 0)) == ([1, 2, 3, 4, 5], [])
    assert window.acknowledge(header(5, 3, 0b10)) == ([], [1, 2, 4])
    assert window.acknowledge(header(5, 3, 0b111)) == ([], [3, 5])


@pytest.mark.requirement("QB-A26-01")
def test_express_and_unsent_entries_are_never_stored() -> None:
    window = SendWindow(64)
    window.add("express", recoverable=False)
    window.add("recoverable", recoverable=True)
    assert window.acknowledge(header(2, 1, 0b1)) == (["express", "recoverable"], ["recoverable"])
    assert window.acknowledge(header(2)) == ([], [])


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (header(6), "AckSequenceNumber"),
        (header(5, 1, 0b100000), "RecoverableMsgAckFlags"),
        (header(5, 6, 0b1), "RecoverableMsgAckFlags"),
        (header(6, 1, 0b1), "AckSequenceNumber"),
    ],
)
def test_a_message_that_was_never_sent_cannot_be_acknowledged(
    bad: SessionHeader, field: str
) -> None:
    window = window_with(5)
    with pytest.raises(WireError, match="acknowledged, the last one sent is 5") as caught:
        window.acknowledge(bad)
    # and nothing has changed
    assert caught.value.field == field
    assert window.acknowledge(header(5, 1, 0b11111)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


def test_an_acknowledgement_from_before_changes_nothing() -> None:
    window = window_with(5)
    window.acknowledge(header(4, 1, 0b1111))
    assert window.acknowledge(header(2, 1, 0b11)) == ([], [])
    assert window.acknowledge(header(5, 4, 0b11)) == ([5], [5])


@pytest.mark.requirement("QB-A28-01")
def test_acknowledgements_go_on_over_the_wrap() -> None:
    window = SendWindow(64)
    for number in range(1, 140_001):
        window.add(number, recoverable=True)
        if number % 32 == 0:
            expected = list(range(number - 31, number + 1))
            first = (number - 31) & 0xFFFF
            got = window.acknowledge(header(number & 0xFFFF, first, 0xFFFFFFFF))
            assert got == (expected, expected)


# The window


@pytest.mark.requirement("QB-A30-01", "QB-3.1.7.1-03")
@pytest.mark.parametrize(("own", "peer", "window"), [(64, 64, 64), (64, 10, 10), (10, 64, 10)])
def test_the_window_is_the_smaller_of_both(own: int, peer: int, window: int) -> None:
    messages = SendWindow(own)
    messages.open(peer)
    for number in range(window):
        assert messages.is_open
        messages.add(number, recoverable=False)
    assert not messages.is_open
    messages.acknowledge(header(1))
    assert messages.is_open


@pytest.mark.requirement("QB-A30-01", "QB-A52-01")
def test_a_window_of_zero_is_taken_as_one() -> None:
    window = SendWindow(64)
    window.open(0)
    assert (window.window, window.is_open) == (1, True)
    window.resize(0)
    assert (window.window, window.is_open) == (1, True)


@pytest.mark.requirement("QB-A30-01")
def test_a_shrunk_window_doubles_up_to_what_it_was() -> None:
    window = SendWindow(64)
    window.open(40)
    steps = [(window.window, window.is_shrunk)]
    window.resize(1)
    for _ in range(7):
        steps.append((window.window, window.is_shrunk))
        window.grow()
    assert [size for size, _ in steps] == [40, 1, 2, 4, 8, 16, 32, 40]
    assert [shrunk for _, shrunk in steps] == [False] + 6 * [True] + [False]


@pytest.mark.requirement("QB-A30-01")
def test_the_latest_word_of_the_peer_counts() -> None:
    window = SendWindow(64)
    window.open(4)
    assert (window.window, window.is_shrunk) == (4, False)
    window.resize(50)
    assert (window.window, window.is_shrunk) == (50, False)
    window.resize(3)
    assert (window.window, window.is_shrunk) == (3, True)


@pytest.mark.requirement("QB-A28-01")
def test_no_more_numbers_are_open_than_can_be_told_apart() -> None:
    # given a peer that receives everything and stores nothing, and the largest window
    window = SendWindow(65535)
    window.open(65535)
    sent = 0
    while window.is_open:
        sent += 1
        window.add(sent, recoverable=True)
        window.acknowledge(header(sent & 0xFFFF))
    # then it ends while an acknowledgement of the oldest is still ahead
    assert sent == 32767
    assert window.acknowledge(header(sent, 1, 0b1)) == ([], [1])
    assert window.is_open


@given(st.lists(st.tuples(st.integers(-3, 40), st.integers(0, 2**32 - 1)), max_size=20))
def test_every_entry_is_told_stored_once_whatever_the_peer_sends(
    headers: list[tuple[int, int]],
) -> None:
    window = window_with(33)
    window.acknowledge(header(33))
    told: list[int] = []
    for first, bits in headers:
        try:
            _, stored = window.acknowledge(header(33, first & 0xFFFF, bits))
        except WireError:
            continue
        for number in stored:
            offset = number - first
            assert offset < 0 or bits >> offset & 1
        told += stored
    assert len(told) == len(set(told))
    assert set(told) <= set(range(1, 34))
