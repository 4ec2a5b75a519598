"""Bodies as texts: what a string column of bodies holds.

| format | the column has                                                     | null if     |
|--------|--------------------------------------------------------------------|-------------|
| string | the text of string bodies, and of plain ones in UTF-8 or UTF-16     | no text     |
| json   | the same, if it is a JSON document                                 | no document |
| xml    | the same, if it is an XML document                                 | no document |
| auto   | the text; numbers, dates, booleans and GUIDs are written out        | neither     |

The bytes themselves are never lost: read the column as `binary`, and `body_type` beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from falconmq.body import BodyType, body_text, decode_variant
from falconmq.body.variant import WIDE_TEXT
from falconmq.client import arrow
from falconmq.errors import FalconMQError

if TYPE_CHECKING:
    import pyarrow as pa

_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")  # of UTF-16 and UTF-8
_ASCII_MAX: Final = 0x7F
_TEXT_TYPES: Final = frozenset({BodyType.VT_EMPTY, BodyType.VT_LPSTR, *WIDE_TEXT})


def texts(bodies: pa.Array, types: pa.Array, format: str) -> pa.Array:
    """The bodies of a batch as a column of texts."""
    plain = _plain_texts(bodies, types)
    plain = _wide_texts(bodies, types) if plain is None else plain
    if plain is not None and format in ("string", "auto"):
        return plain
    read = _READERS[format]
    if plain is not None:
        found: Iterable[str | None] = map(_KEEPERS[format], plain.to_pylist())
    else:
        found = map(read, bodies.to_pylist(), types.to_pylist())
    return arrow.array_of(list(found), arrow.load().string())


def _plain_texts(bodies: pa.Array, types: pa.Array) -> pa.Array | None:
    """All at once, if every body is UTF-8 without a type and without a mark; else None."""
    import pyarrow.compute as pc  # noqa: PLC0415 - optional

    pyarrow = arrow.load()
    if pc.any(pc.not_equal(types, int(BodyType.VT_EMPTY))).as_py():
        return None
    if any(pc.any(pc.starts_with(bodies, pattern=mark)).as_py() for mark in _MARKS):
        return None
    try:
        return bodies.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:  # not UTF-8
        return None


def _wide_texts(bodies: pa.Array, types: pa.Array) -> pa.Array | None:
    """All at once, if every body is UTF-16 and pure ASCII; else None.

    Every second byte is then zero, and the others are the text.
    """
    import numpy as np  # noqa: PLC0415 - optional
    import pyarrow.compute as pc  # noqa: PLC0415

    pyarrow = arrow.load()
    is_wide = pc.is_in(types, value_set=pyarrow.array([*map(int, WIDE_TEXT)], types.type))
    if bodies.null_count or not pc.all(is_wide).as_py():
        return None
    _, offsets, data = bodies.buffers()
    edges = np.frombuffer(offsets, np.int32)[bodies.offset : bodies.offset + len(bodies) + 1]
    lengths = np.diff(edges)
    content = np.frombuffer(data or b"", np.uint8)[edges[0] : edges[-1]]
    if (lengths % 2).any() or content[1::2].any():
        return None
    low = content[::2]
    if ((low == 0) | (low > _ASCII_MAX)).any():
        return None
    halves = ((edges - edges[0]) // 2).astype(np.int32)
    return pyarrow.Array.from_buffers(
        pyarrow.string(),
        len(bodies),
        [None, pyarrow.py_buffer(halves), pyarrow.py_buffer(np.ascontiguousarray(low))],
    )


def _string(body: bytes | None, body_type: int | None) -> str | None:
    if body is None or (body_type or 0) not in _TEXT_TYPES:
        return None
    try:
        return body_text(body, body_type or 0)
    except FalconMQError:
        return None


def _auto(body: bytes | None, body_type: int | None) -> str | None:
    text = _string(body, body_type)
    if text is not None or body is None:
        return text
    try:
        value = decode_variant(body, body_type or 0)
    except FalconMQError:
        return None
    if value is None or isinstance(value, bytes):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _if_json(text: str | None) -> str | None:
    try:
        json.loads(text or "")
    except ValueError:
        return None
    return text


def _if_xml(text: str | None) -> str | None:
    return text if text and text.lstrip().startswith("<") else None


_KEEPERS: Final[Mapping[str, Callable[[str | None], str | None]]] = {
    "json": _if_json,
    "xml": _if_xml,
}
_READERS: Final[Mapping[str, Callable[[Any, Any], str | None]]] = {
    "string": _string,
    "json": lambda body, body_type: _if_json(_string(body, body_type)),
    "xml": lambda body, body_type: _if_xml(_string(body, body_type)),
    "auto": _auto,
}
