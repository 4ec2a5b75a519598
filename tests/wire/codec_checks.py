"""The checks that every structure of the wire has to pass (style: the four codec tests)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from falconmq.errors import WireError
from falconmq.wire.reader import Reader, Structure
from falconmq.wire.tracing import TracingReader

Decode = Callable[[bytes], object]


def assert_round_trip(value: Structure) -> bytes:
    """Encode, decode, compare, encode again; the traced decode must agree. Returns the bytes."""
    data = value.encode()
    reader = Reader(data)
    assert type(value).read(reader) == value
    assert reader.remaining == 0, "encode wrote bytes that decode did not read"
    assert type(value).decode(data).encode() == data
    assert type(value).read(TracingReader(data)) == value
    return data


def assert_decodes_or_refuses(decode: Decode, data: bytes) -> None:
    """Any bytes decode or raise WireError with structure and field; nothing else may escape."""
    try:
        value = decode(data)
    except WireError as error:
        assert error.structure
        assert error.field
        assert error.offset is not None
        return
    if isinstance(value, Structure):
        with contextlib.suppress(WireError):  # a value we accept may be one we refuse to send
            assert type(value).decode(value.encode()) == value


def assert_every_cut_is_refused(decode: Decode, data: bytes) -> None:
    """A whole structure cut short at any byte is refused."""
    for size in range(len(data)):
        with pytest.raises(WireError):
            decode(data[:size])
