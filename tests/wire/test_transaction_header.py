"""TransactionHeader, MQMQ 2.2.20.5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import transaction_header
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.tx_sequence_id import tx_sequence_id
from tests.strategies.user_message import mutated, transaction_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

GUID = bytes(range(0x50, 0x60))
BYTES = bytes.fromhex("02030400 05060708090a0b0c 0d0e0f10 11121314")


@pytest.mark.requirement(
    "MQ-2.2.20.5-01",
    "MQ-2.2.20.5-02",
    "MQ-2.2.20.5-18",
    "MQ-2.2.20.5-19",
    "MQ-2.2.20.5-21",
    "QB-MQMQ2.2.20.5-01",
    "QB-MQMQ2.2.20.5-02",
    "QB-MQMQ2.2.20.5-03",
)
def test_every_field_stands_at_its_offset() -> None:
    header = TransactionHeader.decode(BYTES)
    assert header == TransactionHeader(
        flags=0x00040302,
        tx_sequence_id=tx_sequence_id(ordinal=0x08070605, time_stamp=0x0C0B0A09),
        tx_sequence_number=0x100F0E0D,
        previous_tx_sequence_number=0x14131211,
    )
    assert header.encode() == BYTES
    assert len(BYTES) == 20


@pytest.mark.requirement(
    "MQ-2.2.20.5-01",
    "MQ-2.2.20.5-06",
    "MQ-2.2.20.5-23",
    "QB-MQMQ2.2.20.5-01",
    "QB-MQMQ2.2.20.5-04",
)
def test_the_connector_guid_is_there_if_and_only_if_cg_is_set() -> None:
    header = TransactionHeader.decode(b"\x03" + BYTES[1:] + GUID)
    assert header.connector_qm_guid == GUID
    assert header.encode() == b"\x03" + BYTES[1:] + GUID
    assert len(header.encode()) == 36
    header.flags = 2
    assert header.encode()[0] == 3, "CG follows the value"
    header.connector_qm_guid, header.flags = None, 3
    assert header.encode()[0] == 2, "CG follows the value"
    assert len(header.encode()) == 20
    assert header.flags == 3, "encode must not change a header"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("CONNECTOR_GUID", 0x1, marks=pytest.mark.requirement("MQ-2.2.20.5-05")),
        pytest.param("FINAL_ACK_REQUIRED", 0x2, marks=pytest.mark.requirement("MQ-2.2.20.5-07")),
        pytest.param("FIRST_MESSAGE", 0x4, marks=pytest.mark.requirement("MQ-2.2.20.5-08")),
        pytest.param("LAST_MESSAGE", 0x8, marks=pytest.mark.requirement("MQ-2.2.20.5-10")),
        pytest.param("TRANSACTION_ID", 0x00FFFFF0, marks=pytest.mark.requirement("MQ-2.2.20.5-13")),
        ("TRANSACTION_ID_SHIFT", 4),
        ("RESERVED_FLAGS", 0xFF000000),
    ],
)
@pytest.mark.requirement("QB-MQMQ2.2.20.5-05")
def test_flags_have_their_bits(name: str, value: int) -> None:
    assert getattr(transaction_header, name) == value


@pytest.mark.requirement("MQ-2.2.20.5-13", "MQ-2.2.20.5-16", "QB-MQMQ2.2.20.5-05")
def test_a_transaction_id_of_20_bits_survives_and_sets_no_reserved_bit() -> None:
    header = TransactionHeader(0xFFFFF << transaction_header.TRANSACTION_ID_SHIFT, 1, 1, 0)
    assert header.encode()[:4] == b"\xf0\xff\xff\x00"
    flags = TransactionHeader.decode(header.encode()).flags
    assert (flags & transaction_header.TRANSACTION_ID) >> 4 == 0xFFFFF


@pytest.mark.requirement("MQ-2.2.20.5-03", "MQ-2.2.20.5-17")
@pytest.mark.parametrize("bit", range(24, 32))
def test_reserved_bits_are_kept_and_change_nothing(bit: int) -> None:
    data = (0x00040302 | 1 << bit).to_bytes(4, "little") + BYTES[4:]
    header = TransactionHeader.decode(data)
    assert header.encode() == data
    header.flags &= ~(1 << bit)
    assert header == TransactionHeader.decode(BYTES)


@pytest.mark.requirement("MQ-2.2.20.5-19", "QB-MQMQ2.2.20.5-02")
def test_numbers_begin_with_1() -> None:
    for number in (1, 0xFFFFFFFF):
        data = BYTES[:12] + number.to_bytes(4, "little") + BYTES[16:]
        assert TransactionHeader.decode(data).encode() == data
    with pytest.raises(WireError, match="TxSequenceNumber at offset 12"):
        TransactionHeader.decode(BYTES[:12] + bytes(4) + BYTES[16:])
    with pytest.raises(WireError, match=r"\.TxSequenceNumber"):
        TransactionHeader(0, 1, 0, 0).encode()


@pytest.mark.requirement("MQ-2.2.20.5-21", "QB-MQMQ2.2.20.5-03")
def test_nothing_comes_after_the_last_number() -> None:
    for number in (0, 0xFFFFFFFE):
        data = BYTES[:16] + number.to_bytes(4, "little")
        assert TransactionHeader.decode(data).encode() == data
    with pytest.raises(WireError, match="PreviousTxSequenceNumber at offset 16"):
        TransactionHeader.decode(BYTES[:16] + b"\xff\xff\xff\xff")
    with pytest.raises(WireError, match="PreviousTxSequenceNumber"):
        TransactionHeader(0, 1, 1, 0xFFFFFFFF).encode()


@pytest.mark.requirement("MQ-2.2.18.1.2-01", "MQ-2.2.18.1.2-02")
def test_every_field_holds_its_greatest_and_its_smallest_value() -> None:
    greatest = b"\xfe" + b"\xff" * 15 + b"\xfe" + b"\xff" * 3
    header = TransactionHeader(0xFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE)
    assert TransactionHeader.decode(greatest) == header
    assert header.encode() == greatest
    smallest = bytes(12) + b"\x01\0\0\0" + bytes(4)
    assert TransactionHeader.decode(smallest) == TransactionHeader(0, 0, 1, 0)
    assert TransactionHeader(0, 0, 1, 0).encode() == smallest


@given(transaction_headers())
def test_round_trip(header: TransactionHeader) -> None:
    assert len(assert_round_trip(header)) in (20, 36)


@given(st.binary(max_size=40) | mutated(transaction_headers().map(TransactionHeader.encode)))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(TransactionHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(TransactionHeader.decode, BYTES)
    assert_every_cut_is_refused(TransactionHeader.decode, b"\x01" + BYTES[1:] + GUID)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("flags", 1 << 32),
        ("tx_sequence_id", 1 << 64),
        ("tx_sequence_number", 1 << 32),
        ("previous_tx_sequence_number", -1),
        ("connector_qm_guid", bytes(15)),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: object) -> None:
    header = TransactionHeader(0, 1, 1, 0)
    setattr(header, field, value)
    with pytest.raises(WireError) as caught:
        header.encode()
    assert caught.value.field.lower() == field.replace("_", "")
