"""Capture files: pcap and pcapng."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.capture.pcap import CaptureError, Frame, is_capture, read_capture
from tests.strategies.captures import (
    T0,
    block,
    enhanced,
    interface,
    obsolete,
    pcap,
    section,
    simple,
)

TIMES = [T0, T0 + 1_234_567_000, T0 + 9_999_999_000]
FRAMES = [b"first frame!", b"2", b""]
TIMED = list(zip(TIMES, FRAMES, strict=True))


def read(data: bytes) -> list[Frame]:
    return list(read_capture(io.BytesIO(data)))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_in_both_byte_orders_and_resolutions(order: str, nanoseconds: bool) -> None:
    data = pcap(TIMED, order=order, nanoseconds=nanoseconds, link_type=113)
    assert is_capture(data[:4])
    assert read(data) == [
        Frame(number, time_ns, 113, frame, len(frame))
        for number, (time_ns, frame) in enumerate(TIMED, 1)
    ]


def test_nanoseconds_are_kept_to_the_last_digit() -> None:
    assert read(pcap([(T0 + 7, b"x")], nanoseconds=True))[0].time_ns == T0 + 7


def test_a_frame_cut_by_the_snap_length_keeps_its_original_size() -> None:
    (frame,) = read(pcap([(T0, b"0123456789")], snap_length=4))
    assert (frame.data, frame.original_size) == (b"0123", 10)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_with_several_interfaces_and_every_packet_block(order: str) -> None:
    data = b"".join(
        (
            section(order),
            interface(1, order=order),  # microseconds unless said otherwise
            interface(101, order=order, resolution=9),
            interface(276, order=order, resolution=0x80 | 10, offset_seconds=100),  # 1/1024 s
            block(5, bytes(12), order),  # interface statistics
            enhanced(T0 // 1000, b"micro", order=order),
            enhanced(T0 + 3, b"nano", order=order, index=1),
            block(0xBAD, b"somebody's own block", order),
            enhanced(1536, b"binary", order=order, index=2, original=99),
            obsolete(T0 // 1000 + 5, b"old", order=order),
            simple(b"simple", order=order),
        )
    )
    assert read(data) == [
        Frame(1, T0, 1, b"micro", 5),
        Frame(2, T0 + 3, 101, b"nano", 4),
        Frame(3, 101_500_000_000, 276, b"binary", 99),
        Frame(4, T0 + 5000, 1, b"old", 3),
        Frame(5, None, 1, b"simple", 6),
    ]


def test_each_section_has_its_own_byte_order_and_interfaces() -> None:
    first = section("<") + interface(1) + enhanced(1, b"one")
    second = section(">") + interface(113, order=">") + enhanced(2, b"two", order=">")
    assert [(f.link_type, f.data) for f in read(first + second)] == [(1, b"one"), (113, b"two")]


def test_a_simple_packet_is_cut_by_the_snap_length_of_its_interface() -> None:
    data = section() + interface(1, snap_length=4) + simple(b"0123", original=50)
    assert read(data) == [Frame(1, None, 1, b"0123", 50)]


@pytest.mark.parametrize(
    "data",
    [pcap(TIMED), section() + interface() + enhanced(1, b"abc") + enhanced(2, b"defgh")],
    ids=["pcap", "pcapng"],
)
def test_a_file_cut_anywhere_gives_the_frames_before_the_cut_then_says_so(data: bytes) -> None:
    whole = read(data)
    for size in range(4, len(data)):
        frames: list[Frame] = []
        cut = ""
        try:
            for frame in read_capture(io.BytesIO(data[:size])):
                frames.append(frame)  # noqa: PERF402 - what came before the error counts
        except CaptureError as error:
            cut = str(error)
        assert frames == whole[: len(frames)]
        assert cut == "" or "ends in the middle" in cut
        assert len(frames) < len(whole)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "begins with nothing"),
        (b"GIF8", "begins with 47 49 46 38"),
        (pcap([])[:24] + bytes(8) + b"\xff\xff\xff\xff" + bytes(4), "claims 4294967295 bytes"),
        (section() + b"\x06\0\0\0\x0d\0\0\0", "claims 13 bytes"),
        (section() + b"\x06\0\0\0\x08\0\0\0", "claims 8 bytes"),
        (section() + enhanced(1, b"no interface"), "does not hold"),
        (section() + interface() + block(6, b"tiny"), "does not hold"),
        (section()[:8] + bytes(4) + section()[12:], "byte-order magic 00 00 00 00"),
    ],
)
def test_damage_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(CaptureError, match=problem):
        read(data)


def test_a_frame_larger_than_its_block_is_damage() -> None:
    data = bytearray(section() + interface() + enhanced(1, b"abcd"))
    place = data.rindex(b"\x04\0\0\0\x04\0\0\0")
    data[place] = 200
    with pytest.raises(CaptureError, match="frame 1 claims 200 bytes, its block has"):
        read(bytes(data))


@given(data=st.binary(max_size=200), kind=st.sampled_from(["pcap", "pcapng"]))
def test_any_bytes_are_read_or_refused(data: bytes, kind: str) -> None:
    head = pcap([])[:24] if kind == "pcap" else section() + interface()
    with contextlib.suppress(CaptureError):
        read(head + data)
    with contextlib.suppress(CaptureError):
        read(data)
