"""Bodies as texts, of every type, mixed and alone."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.body import BodyType, encode_variant
from falconmq.spark.bodies import texts

GUID = UUID("0e8f2a52-9a5b-4c0f-8b7e-6f1f0a3d9c11")
WIDE = int(BodyType.VT_BSTR)


def column(bodies: list[bytes | None], types: list[int], format: str) -> list[str | None]:
    made = texts(pa.array(bodies, pa.binary()), pa.array(types, pa.int64()), format)
    assert made.type == pa.string()
    made.validate(full=True)
    found: list[str | None] = made.to_pylist()
    return found


@pytest.mark.parametrize(
    ("body", "body_type", "string", "auto"),
    [
        (b"plain", 0, "plain", "plain"),
        ("grün".encode(), 0, "grün", "grün"),
        (b"\xef\xbb\xbfmarked", 0, "marked", "marked"),
        ("\ufeffwide".encode("utf-16-le"), 0, "wide", "wide"),
        ("BSTR ü".encode("utf-16-le"), 8, "BSTR ü", "BSTR ü"),
        ("odd".encode("utf-16-le") + b"\0", 8, None, None),
        (b"\0\xd8", 8, None, None),
        (b"ansi \xfc", 30, "ansi ü", "ansi ü"),
        (b"\xff\xfe\xff", 0, None, None),
        (b"", 0, "", ""),
        (b"", 8, "", ""),
        (*encode_variant(-7), None, "-7"),
        (*encode_variant(True), None, "true"),
        (*encode_variant(Decimal("12.5")), None, "12.5000"),
        (*encode_variant(datetime(2026, 11, 16, 8, 30)), None, "2026-11-16T08:30:00"),  # noqa: DTZ001
        (*encode_variant(GUID), None, str(GUID)),
        (*encode_variant(b"bytes"), None, None),
        (b"abc", 768, None, None),
        (b"abc", 3, None, None),  # no number has three bytes
    ],
)
def test_a_body_is_the_text_that_was_meant(
    body: bytes, body_type: int, string: str | None, auto: str | None
) -> None:
    for beside in ([], [(b"\xff", 0)]):  # alone it may go the quick way
        bodies, types = [body, *(b for b, _ in beside)], [int(body_type), *(t for _, t in beside)]
        assert column([*bodies], types, "string")[0] == string
        assert column([*bodies], types, "auto")[0] == auto


def test_documents_are_kept_and_other_texts_are_null() -> None:
    bodies: list[bytes | None] = [b'{"a": 1}', b"7", b"<a/>", b" \n<?xml?><a/>", b"neither", b""]
    types = [0] * len(bodies)
    assert column(bodies, types, "json") == ['{"a": 1}', "7", None, None, None, None]
    assert column(bodies, types, "xml") == [None, None, "<a/>", " \n<?xml?><a/>", None, None]
    assert column([b"<\0a\0/\0>\0", b"[\0]\0"], [WIDE, WIDE], "xml") == ["<a/>", None]
    assert column(['"ü"'.encode("utf-16-le"), None], [WIDE, 0], "json") == ['"ü"', None]


@given(st.lists(st.text(max_size=6)), st.integers(0, 3), st.integers(0, 3))
def test_the_quick_ways_read_what_the_slow_one_reads(
    words: list[str], before: int, behind: int
) -> None:
    for encoding, body_type in (("utf-8", 0), ("utf-16-le", WIDE)):
        bodies = pa.array([word.encode(encoding) for word in words], pa.binary())
        types = pa.array([body_type] * len(words), pa.int64())
        stop = max(before, len(words) - behind)
        cut = slice(before, stop)  # a slice of a batch has an offset into its buffers
        quick = texts(bodies[cut], types[cut], "string").to_pylist()
        slow = [
            column([bodies[i].as_py(), b"\xff"], [body_type, 0], "string")[0]
            for i in range(min(before, len(words)), min(stop, len(words)))
        ]
        assert quick == slow
