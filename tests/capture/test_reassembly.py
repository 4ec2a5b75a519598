"""TCP streams put together from segments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.capture import reassembly
from falconmq.capture.frames import ACK, FIN, RST, SYN, Endpoint, TcpSegment
from falconmq.capture.reassembly import Reassembler, StreamData, StreamEnd, StreamEvent
from tests.strategies.captures import mangled_segments

CLIENT = Endpoint(b"\x0a\0\0\x07", 49759)
SERVER = Endpoint(b"\x0a\0\0\x08", 1801)
STREAM = bytes(range(256)) * 4


def segment(
    position: int,
    payload: bytes = b"",
    flags: int = 0,
    *,
    from_client: bool = True,
    base: int = 1000,
    acknowledged: int = 0,
    missing: int = 0,
) -> TcpSegment:
    ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    sequence = (base + position) & 0xFFFFFFFF
    return TcpSegment(*ends, sequence, acknowledged, flags, payload, missing)


def run(*segments: TcpSegment, finish: bool = True) -> list[StreamEvent]:
    reassembler = Reassembler(frozenset((1801,)))
    events: list[StreamEvent] = []
    for number, each in enumerate(segments, 1):
        events += reassembler.add(each, number, number * 10)
    if finish:
        events += reassembler.finish()
    return events


def bytes_of(events: list[StreamEvent], *, from_client: bool = True) -> bytes:
    return b"".join(
        e.data for e in events if isinstance(e, StreamData) and e.from_client is from_client
    )


def missing_of(events: list[StreamEvent]) -> list[int]:
    return [e.missing for e in events if isinstance(e, StreamData) and e.missing]


def ends_of(events: list[StreamEvent]) -> list[tuple[bool, str]]:
    return [(e.from_client, e.reason) for e in events if isinstance(e, StreamEnd)]


@given(
    mangled=mangled_segments(STREAM),
    base=st.sampled_from([1000, 0, 0xFFFFFFFF, 0xFFFFFF00, 0x7FFFFFF0]),
)
def test_any_segmentation_duplication_and_order_gives_the_same_stream(
    mangled: list[tuple[int, bytes]], base: int
) -> None:
    segments = [segment(position, data, base=base) for position, data in mangled]
    events = run(segment(-1, flags=SYN, base=base), *segments)
    assert bytes_of(events) == STREAM
    assert missing_of(events) == []


def test_the_first_copy_of_a_byte_wins() -> None:
    events = run(segment(-1, flags=SYN), segment(0, b"abc"), segment(1, b"XYZw"))
    assert bytes_of(events) == b"abcZw"


def test_bytes_keep_the_frame_and_time_of_their_segment() -> None:
    events = run(segment(-1, flags=SYN), segment(3, b"def"), segment(0, b"abc"))
    pieces = [(e.data, e.frame, e.time_ns) for e in events if isinstance(e, StreamData)]
    assert pieces == [(b"abc", 3, 30), (b"def", 2, 20)]


def test_a_hole_is_reported_when_the_capture_ends() -> None:
    events = run(segment(-1, flags=SYN), segment(0, b"ab"), segment(7, b"cd"), segment(9, b"ef"))
    assert bytes_of(events) == b"abcdef"
    assert missing_of(events) == [5]


def test_a_hole_is_given_up_when_the_peer_has_acknowledged_it() -> None:
    start = (segment(-1, flags=SYN), segment(-1, flags=SYN | ACK, from_client=False))
    late = (segment(0, b"ab"), segment(7, b"cd"))
    waiting = run(*start, *late, finish=False)
    assert bytes_of(waiting) == b"ab"
    partly = segment(0, flags=ACK, from_client=False, acknowledged=1006)
    assert bytes_of(run(*start, *late, partly, finish=False)) == b"ab"
    acknowledged = segment(0, flags=ACK, from_client=False, acknowledged=1009)
    events = run(*start, *late, acknowledged, finish=False)
    assert bytes_of(events) == b"abcd"
    assert missing_of(events) == [5]


def test_a_hole_is_given_up_when_too_much_waits_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reassembly, "WAITING_BYTES_MAX", 10)
    start = segment(-1, flags=SYN)
    assert bytes_of(run(start, segment(5, bytes(10)), finish=False)) == b""
    events = run(start, segment(5, bytes(10)), segment(15, b"x"), finish=False)
    assert bytes_of(events) == bytes(10) + b"x"
    assert missing_of(events) == [5]


def test_what_the_snap_length_cut_off_is_missing_at_once() -> None:
    cut = segment(0, b"abc", missing=4)
    events = run(segment(-1, flags=SYN), cut, segment(7, b"hij"), finish=False)
    assert bytes_of(events) == b"abchij"
    assert missing_of(events) == [4]


def test_a_capture_that_begins_in_the_middle_of_a_connection() -> None:
    reassembler = Reassembler(frozenset((1801,)))
    (event,) = reassembler.add(segment(500, b"middle", ACK, from_client=False), 1, 10)
    assert isinstance(event, StreamData)
    assert event.data == b"middle"
    assert event.from_client is False  # the port says who the server is
    assert event.conversation.client == CLIENT
    assert not event.conversation.is_whole


def test_who_connects_is_the_client_whatever_the_ports() -> None:
    first = TcpSegment(SERVER, CLIENT, 1, 0, SYN, b"")
    data = TcpSegment(SERVER, CLIENT, 2, 0, ACK, b"x")
    (event,) = [e for e in run(first, data) if isinstance(e, StreamData)]
    assert event.conversation.client == SERVER
    assert event.conversation.is_whole
    answer_first = TcpSegment(CLIENT, SERVER, 1, 2, SYN | ACK, b"")
    (event,) = [e for e in run(answer_first, data) if isinstance(e, StreamData)]
    assert event.conversation.client == SERVER


def test_fin_on_both_sides_ends_both_streams() -> None:
    events = run(
        segment(-1, flags=SYN),
        segment(-1, flags=SYN | ACK, from_client=False),
        segment(0, b"ab", FIN),
        segment(0, b"cd", FIN, from_client=False),
        segment(0, b"ab", FIN),  # late copy
        segment(2, b"", ACK),
    )
    assert bytes_of(events) == b"ab"
    assert bytes_of(events, from_client=False) == b"cd"
    assert ends_of(events) == [(True, "closed"), (False, "closed")]


def test_fin_waits_for_the_bytes_before_it() -> None:
    start = segment(-1, flags=SYN)
    assert ends_of(run(start, segment(3, b"", FIN), finish=False)) == []
    events = run(start, segment(3, b"", FIN), segment(0, b"abc"), finish=False)
    assert bytes_of(events) == b"abc"
    assert ends_of(events) == [(True, "closed")]


def test_a_reset_gives_up_holes_and_ends_the_connection() -> None:
    events = run(
        segment(-1, flags=SYN), segment(4, b"cd"), segment(6, flags=RST), segment(6, b"late")
    )
    assert bytes_of(events) == b"cd"
    assert missing_of(events) == [4]
    assert ends_of(events) == [(True, "reset")]


def test_a_syn_with_another_number_begins_a_new_conversation() -> None:
    events = run(
        segment(-1, flags=SYN),
        segment(-1, flags=SYN),  # sent again: still the same
        segment(0, b"one"),
        segment(-1, flags=SYN, base=900_000),
        segment(0, b"two", base=900_000),
    )
    pieces = [(e.conversation.number, e.data) for e in events if isinstance(e, StreamData)]
    assert pieces == [(1, b"one"), (2, b"two")]
    assert ends_of(events)[0] == (True, "replaced by a new connection")


def test_ports_used_again_after_a_close_begin_a_new_conversation() -> None:
    closed = (
        segment(-1, flags=SYN),
        segment(-1, flags=SYN | ACK, from_client=False),
        segment(0, b"one", FIN),
        segment(0, b"", FIN, from_client=False),
    )
    events = run(*closed, segment(-1, flags=SYN), segment(0, b"two"))
    pieces = [(e.conversation.number, e.data) for e in events if isinstance(e, StreamData)]
    assert pieces == [(1, b"one"), (2, b"two")]


def test_empty_segments_alone_make_no_conversation() -> None:
    reassembler = Reassembler()
    assert list(reassembler.add(segment(0, b"", ACK), 1, 1)) == []
    assert reassembler.conversations == 0


def test_keep_alive_probes_change_nothing() -> None:
    events = run(segment(-1, flags=SYN), segment(0, b"ab"), segment(1, b"\0"), segment(2, b"c"))
    assert bytes_of(events) == b"abc"


def test_two_connections_do_not_mix() -> None:
    other = Endpoint(b"\x0a\0\0\x09", 49759)
    second = TcpSegment(other, SERVER, 1000, 0, ACK, b"two")
    events = run(segment(0, b"one"), second, segment(3, b"more"))
    pieces = [(e.conversation.number, e.data) for e in events if isinstance(e, StreamData)]
    assert pieces == [(1, b"one"), (2, b"two"), (1, b"more")]
