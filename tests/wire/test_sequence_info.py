"""SEQUENCE_INFO, MQMQ 2.2.5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.sequence_info import SIZE, SequenceInfo
from tests.strategies.keys import sequence_infos
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

BYTES = bytes.fromhex("01020304050607f8 090a0b0c 0d0e0f10")


@pytest.mark.requirement("DM-3.1.1.4-03", "DM-3.1.1.4-04", "DM-3.1.1.4-05")
@pytest.mark.requirement(
    "MQ-2.2.5-01",
    "MQ-2.2.5-02",
    "MQ-2.2.5-03",
    "MQ-2.2.5.1-01",
    "MQ-2.2.5.1-02",
    "MQ-2.2.5.1-03",
)
def test_every_field_stands_at_its_offset() -> None:
    info = SequenceInfo.decode(BYTES)
    assert info == SequenceInfo(
        seq_id=0xF807060504030201 - (1 << 64),  # signed
        seq_no=0x0C0B0A09,
        prev_no=0x100F0E0D,
    )
    assert info.encode() == BYTES
    assert len(BYTES) == SIZE == 16


@given(sequence_infos)
def test_round_trip(info: SequenceInfo) -> None:
    assert len(assert_round_trip(info)) == SIZE


@given(st.binary(max_size=SIZE + 4))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SequenceInfo.decode, data)


def test_a_cut_structure_is_refused() -> None:
    assert_every_cut_is_refused(SequenceInfo.decode, BYTES)


@pytest.mark.parametrize(
    ("info", "field"),
    [
        (SequenceInfo(1 << 63, 0, 0), "SeqID"),
        (SequenceInfo(-(1 << 63) - 1, 0, 0), "SeqID"),
        (SequenceInfo(0, 1 << 32, 0), "SeqNo"),
        (SequenceInfo(0, -1, 0), "SeqNo"),
        (SequenceInfo(0, 0, 1 << 32), "PrevNo"),
    ],
)
def test_impossible_values_are_refused_by_name(info: SequenceInfo, field: str) -> None:
    with pytest.raises(WireError) as caught:
        info.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)
