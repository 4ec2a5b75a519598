"""Quantities and texts in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.wire.words import body_text, body_type_name, byte_size, duration, printable, utc_time


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (1.496, "1.496 seconds"),
        (60, "1 minute"),
        (5400, "1 hour 30 minutes"),
        (345600, "4 days"),
        (90061, "1 day 1 hour 1 minute 1 second"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (2224, "2224 bytes"), (20480, "20 KB"), (1 << 22, "4 MB")],
)
def test_sizes(size: int, text: str) -> None:
    assert byte_size(size) == text


def test_times_far_away_are_still_times() -> None:
    assert utc_time(0xFFFFFFFF) == "2106-02-07T06:28:15Z"
    assert utc_time(-1) == "1969-12-31T23:59:59Z"


@given(st.text(st.characters(), max_size=30))
def test_what_is_printed_can_neither_move_the_cursor_nor_fail_to_encode(text: str) -> None:
    safe = printable(text)
    assert safe.isprintable()
    safe.encode("utf-8")


@pytest.mark.parametrize(
    ("body", "body_type", "kind", "text"),
    [
        (b"", 0, "binary", ""),
        (b"hello", 0, "UTF-8 text", "hello"),
        ("żółw".encode(), 0, "UTF-8 text", "żółw"),
        ("<?xml?>".encode("utf-16"), 0, "UTF-16 text", "<?xml?>"),
        ("wide".encode("utf-16-le"), 0, "UTF-16 text", "wide"),
        ("wide\0".encode("utf-16-le"), 8, "UTF-16 text", "wide"),
        ("żółw漢".encode("utf-16-le"), 0, "binary", ""),  # could be anything
        (b"narrow", 30, "UTF-8 text", "narrow"),
        (b"odd", 8, "UTF-8 text", "odd"),
        (bytes(range(256)), 0, "binary", ""),
        (b"line\r\nline\ttab", 0, "UTF-8 text", "line\r\nline\ttab"),
        (b"bell\x07", 0, "binary", ""),
    ],
)
def test_bodies_are_recognised(body: bytes, body_type: int, kind: str, text: str) -> None:
    assert body_text(body, body_type) == (kind, text)


def test_a_limit_may_cut_a_character() -> None:
    kind, text = body_text(("ż" * 100).encode(), 0, limit=9)
    assert (kind, text) == ("UTF-8 text", "żżżż")


@given(body=st.binary(max_size=60), body_type=st.sampled_from([0, 8, 17, 30, 31]))
def test_any_body_has_a_kind(body: bytes, body_type: int) -> None:
    kind, text = body_text(body, body_type)
    assert (kind == "binary") == (text == "")


def test_names_of_body_types() -> None:
    assert [body_type_name(n) for n in (0, 8, 30, 0x2011, 0x1013)] == [
        "VT_EMPTY",
        "VT_BSTR",
        "VT_LPSTR",
        "VT_ARRAY|VT_UI1",
        "VT_UI4|VT_VECTOR",
    ]
