"""SessionHeader, MQMQ 2.2.20.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.session_header import SIZE, SessionHeader
from tests.strategies.headers import session_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# every field at another value, so that two swapped fields show
BYTES = bytes.fromhex("0102 0304 05060708 090a 0b0c 0d0e 0f10")
FIELDS = {
    "ack_sequence_number": 0x0201,
    "recoverable_msg_ack_seq_number": 0x0403,
    "recoverable_msg_ack_flags": 0x08070605,
    "user_msg_sequence_number": 0x0A09,
    "recoverable_msg_seq_number": 0x0C0B,
    "window_size": 0x0E0D,
    "reserved": 0x100F,
}


@pytest.mark.requirement(
    "MQ-2.2.20.4-05",
    "MQ-2.2.20.4-07",
    "MQ-2.2.20.4-10",
    "MQ-2.2.20.4-12",
    "MQ-2.2.20.4-15",
    "MQ-2.2.20.4-17",
    "MQ-2.2.20.4-20",
    "QB-MQMQ2.2.20.4-01",
    "QB-MQMQ2.2.20.4-02",
    "QB-MQMQ2.2.20.4-03",
    "QB-MQMQ2.2.20.4-04",
    "QB-MQMQ2.2.20.4-05",
    "QB-MQMQ2.2.20.4-06",
)
def test_every_field_stands_at_its_offset() -> None:
    header = SessionHeader.decode(BYTES)
    assert {name: getattr(header, name) for name in FIELDS} == FIELDS
    assert header.encode() == BYTES


@pytest.mark.requirement("MQ-2.2.20.4-21")
def test_any_reserved_value_is_accepted() -> None:
    assert SessionHeader.decode(bytes(14) + b"\xff\xff").window_size == 0


@pytest.mark.requirement("MQ-2.2.20.4-18")
def test_the_window_is_64_unless_said_otherwise() -> None:
    assert SessionHeader(1, 0, 0, 1, 0).encode()[12:14] == b"\x40\x00"


@given(session_headers)
def test_round_trip(header: SessionHeader) -> None:
    assert len(assert_round_trip(header)) == SIZE


@given(st.binary(max_size=SIZE + 4))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SessionHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(SessionHeader.decode, BYTES)


@pytest.mark.parametrize("field", FIELDS)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str) -> None:
    header = SessionHeader.decode(BYTES)
    setattr(header, field, 1 << 32)
    with pytest.raises(WireError, match="does not fit") as caught:
        header.encode()
    assert caught.value.field.lower() == field.replace("_", "")
