"""DebugHeader, MQMQ 2.2.20.8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import debug_header
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.reader import Reader
from tests.strategies.user_message import debug_headers, mutated
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

GUID = bytes(range(0x50, 0x60))


@pytest.mark.requirement(
    "MQ-2.2.20.8-01",
    "MQ-2.2.20.8-06",
    "MQ-2.2.20.8-09",
    "MQ-2.2.20.8-10",
    "QB-MQMQ2.2.20.8-01",
)
def test_a_public_queue_makes_20_bytes() -> None:
    data = bytes.fromhex("0102 0304") + GUID
    header = DebugHeader.decode(data)
    assert header == DebugHeader(flags=0x0201, queue_identifier=GUID, reserved=0x0403)
    assert header.encode() == data


@pytest.mark.requirement("MQ-2.2.20.8-10", "QB-MQMQ2.2.20.8-01")
@pytest.mark.parametrize("queue_type", [0, 2, 3])
def test_without_a_public_queue_there_are_4_bytes(queue_type: int) -> None:
    reader = Reader(bytes([queue_type, 0, 0, 0]) + GUID)
    assert DebugHeader.read(reader) == DebugHeader(flags=queue_type)
    assert reader.offset == 4


@pytest.mark.requirement("MQ-2.2.20.8-02", "MQ-2.2.20.8-03")
@pytest.mark.parametrize("flags", [0, 1])
def test_qt_is_sent_by_the_queue_there_is(flags: int) -> None:
    assert DebugHeader(flags).encode() == b"\0\0\0\0"
    assert DebugHeader(flags, GUID).encode() == b"\x01\0\0\0" + GUID
    assert debug_header.QUEUE_TYPE == 0x0003


@pytest.mark.requirement("MQ-2.2.20.8-03")
@pytest.mark.parametrize("queue_type", [2, 3])
def test_other_queue_types_are_not_sent(queue_type: int) -> None:
    for header in (DebugHeader(queue_type), DebugHeader(queue_type, GUID)):
        with pytest.raises(WireError, match=f"QT {queue_type} is not 0 or 1"):
            header.encode()


@pytest.mark.requirement("MQ-2.2.20.8-04", "MQ-2.2.20.8-07")
def test_reserved_bits_and_bytes_are_zero_unless_they_came_from_a_peer() -> None:
    assert DebugHeader().encode() == bytes(4)
    assert debug_header.RESERVED_FLAGS == 0xFFFC


@pytest.mark.requirement("MQ-2.2.20.8-05", "MQ-2.2.20.8-08")
def test_reserved_bits_and_bytes_are_kept_and_change_nothing() -> None:
    data = b"\xfd\xff\xff\xff" + GUID
    header = DebugHeader.decode(data)
    assert header.queue_identifier == GUID
    assert header.encode() == data
    assert DebugHeader.decode(b"\xfc\xff\xff\xff").queue_identifier is None


@given(debug_headers())
def test_round_trip(header: DebugHeader) -> None:
    assert len(assert_round_trip(header)) in (4, 20)


@given(st.binary(max_size=24) | mutated(debug_headers().map(DebugHeader.encode)))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(DebugHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(DebugHeader.decode, b"\x01\0\0\0" + GUID)


@pytest.mark.parametrize(
    ("field", "value"), [("flags", 0x10000), ("reserved", -1), ("queue_identifier", bytes(17))]
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: object) -> None:
    header = DebugHeader()
    setattr(header, field, value)
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field.lower() == field.replace("_", "")
