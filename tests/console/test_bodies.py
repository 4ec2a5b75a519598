"""Bodies as people read them; they come from anybody."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.body import BodyType
from falconmq.service.console.bodies import (
    HEX_BYTES,
    PRETTY_BYTES,
    SHOWN_CHARACTERS,
    pretty_json,
    pretty_xml,
    view_of,
    views_of,
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=st.lists(_JSON) | st.dictionaries(st.text(), _JSON))
def test_indented_json_is_the_same_json(value: object) -> None:
    shown = pretty_json(json.dumps(value))
    assert shown is not None
    assert json.loads(shown) == value


def test_json_keeps_what_a_parser_would_lose() -> None:
    # given a key that is there twice, and a number that no float can hold
    shown = pretty_json('{"a":1,"a":2,"n":1.000000000000000000001}')
    assert shown == '{\n  "a": 1,\n  "a": 2,\n  "n": 1.000000000000000000001\n}'


def test_xml_is_cut_at_its_tags_and_entities_stay_as_written() -> None:
    text = (
        '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        '<a title="1 > 0"><b>&x;</b><c/>tail</a>'
    )
    assert pretty_xml(text) == (
        '<?xml version="1.0"?>\n'
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n'
        '<a title="1 > 0">\n  <b>&x;</b>\n  <c/>\n  tail\n</a>'
    )


@pytest.mark.parametrize("text", ["<a><b></a>", "<a", "<3 you", "</a>", "<a b='", "plain"])
def test_what_is_no_xml_is_shown_as_text(text: str) -> None:
    assert pretty_xml(text) is None
    assert view_of(text.encode(), 0, "xml").name == "text"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "<a>" * 40_000,
        "<a " * 40_000,
        '<a b="' * 20_000,
        "<!--" * 30_000,
        "[" * 900 + "1," * 50_000 + "1" + "]" * 900,
    ],
)
def test_hostile_nesting_takes_bounded_time_and_room(text: str) -> None:
    for name in views_of(text.encode(), 0):
        assert len(view_of(text.encode(), 0, name).text) <= SHOWN_CHARACTERS


def test_a_body_that_is_too_long_to_indent_is_shown_as_it_is_and_cut() -> None:
    body = b"[" + b"1," * PRETTY_BYTES + b"1]"
    assert views_of(body, 0) == ["text", "hex"]
    shown = view_of(body, 0, "json")
    assert (shown.name, shown.is_cut) == ("text", True)


def test_bytes_are_shown_page_by_page() -> None:
    body = bytes(range(256)) * (2 * HEX_BYTES // 256) + b"end"
    first = view_of(body, 0, "hex")
    assert first.text.startswith("00000000  00 01 02 03 04 05 06 07  08 09")
    assert (first.previous_offset, first.next_offset) == (None, HEX_BYTES)
    last = view_of(body, 0, "hex", 2 * HEX_BYTES)
    assert last.text.endswith("  end")
    assert (last.previous_offset, last.next_offset) == (HEX_BYTES, None)
    assert view_of(body, 0, "hex", 10**15).text == last.text


def test_what_hides_or_turns_a_text_is_written_as_an_escape() -> None:
    start = "x" * 300  # what looks like text so far is taken for text
    shown = view_of(f"{start} \u202e001 \x1b[31m\r\nnext".encode(), 0, "text").text
    assert shown == f"{start} \\u202e001 \\x1b[31m\nnext"


def test_a_text_of_windows_is_found_by_its_type() -> None:
    shown = view_of("grüße".encode("utf-16-le"), BodyType.VT_BSTR, "text")
    assert (shown.text, shown.encoding) == ("grüße", "UTF-16 text")


@given(body=st.binary(max_size=300), body_type=st.sampled_from([0, 8, 30, 31, 0x1011]))
def test_any_body_can_be_seen_in_all_its_ways(body: bytes, body_type: int) -> None:
    for name in [*views_of(body, body_type), "json", "xml"]:
        view_of(body, body_type, name)
