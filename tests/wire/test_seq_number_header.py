"""SeqNumberHeader and PARTITION_SEQ_NUMBERS, MQDSRP 2.2.5.4 and 2.2.3."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from tests.strategies.replication import partition_seq_numbers, seq_number_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

PARTITION_BYTES = bytes(range(0x10, 0x20)) + bytes(range(1, 9)) + bytes(range(0x21, 0x29))
PARTITION = PartitionSeqNumbers(bytes(range(0x10, 0x20)), 0x0102030405060708, 0x2122232425262728)
OTHER = PartitionSeqNumbers(bytes(16), 1, 0)
OTHER_BYTES = bytes(16) + bytes(7) + b"\1" + bytes(8)


@pytest.mark.requirement("RP-2.2.3-01", "RP-2.2.3-02", "RP-2.2.3-03", "RP-2.2.3-04")
def test_a_partition_has_every_field_at_its_offset() -> None:
    assert len(PARTITION_BYTES) == 32
    assert PartitionSeqNumbers.decode(PARTITION_BYTES) == PARTITION
    assert PARTITION.encode() == PARTITION_BYTES


@pytest.mark.requirement("RP-2.2.5.4-01", "RP-2.2.5.4-02", "RP-2.2.5.4-04", "RP-2.2.5.4-06")
def test_a_header_is_the_count_the_name_and_the_partitions() -> None:
    header = SeqNumberHeader("PSC", [PARTITION, OTHER])
    data = b"\2\0" + b"P\0S\0C\0\0\0" + PARTITION_BYTES + OTHER_BYTES
    assert header.encode() == data
    assert SeqNumberHeader.decode(data) == header


@pytest.mark.requirement("RP-2.2.5.4-03", "RP-2.2.5.4-05")
def test_a_header_without_partitions_is_two_bytes() -> None:
    assert SeqNumberHeader("PSC").encode() == b"\0\0"
    # nothing behind a count of 0 belongs to the header
    assert SeqNumberHeader.decode(b"\0\0P\0\0\0" + PARTITION_BYTES) == SeqNumberHeader()


@pytest.mark.requirement("RP-2.2.5.4-01", "RP-2.2.5.4-06")
def test_the_count_has_sixteen_bits_and_is_exact() -> None:
    many = SeqNumberHeader("", [OTHER] * 0x0102)
    data = many.encode()
    assert data[:2] == b"\x02\x01"
    assert SeqNumberHeader.decode(data) == many
    with pytest.raises(WireError, match="Count: 65536"):
        SeqNumberHeader("", [OTHER] * 0x10000).encode()
    with pytest.raises(WireError):
        SeqNumberHeader.decode(b"\3\0" + data[2:68])
    with pytest.raises(WireError, match="Count at offset 0: 65535 partitions"):
        SeqNumberHeader.decode(b"\xff\xff" + data[2:])


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("partition_id", bytes(15), "PartitionID"),
        ("last_seq_number", 1 << 64, "LastSeqNumber"),
        ("purged_seq_number", -1, "PurgedSeqNumber"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: Any, name: str) -> None:
    partition = PartitionSeqNumbers.decode(PARTITION_BYTES)
    setattr(partition, field, value)
    with pytest.raises(WireError) as caught:
        partition.encode()
    assert caught.value.field == name


@given(seq_number_headers)
def test_headers_round_trip(header: SeqNumberHeader) -> None:
    assert_round_trip(header)


@given(partition_seq_numbers)
def test_partitions_round_trip(partition: PartitionSeqNumbers) -> None:
    assert_round_trip(partition)


@given(st.binary(max_size=80))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SeqNumberHeader.decode, data)
    assert_decodes_or_refuses(SeqNumberHeader.decode, b"\1\0" + data)
    assert_decodes_or_refuses(PartitionSeqNumbers.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(SeqNumberHeader.decode, SeqNumberHeader("P", [PARTITION]).encode())
    assert_every_cut_is_refused(PartitionSeqNumbers.decode, PARTITION_BYTES)


def test_more_partitions_than_count_can_tell_are_refused() -> None:
    partition = PartitionSeqNumbers(bytes(16), 1, 0)
    with pytest.raises(WireError, match=r"SeqNumberHeader\.Count: 65536 does not fit"):
        SeqNumberHeader("PSC", [partition] * 0x10000).encode()
