"""TxSequenceID and MessageIdentifier, MQMQ 2.2.18.1.2 and 2.2.18.1.3."""

from __future__ import annotations

import pytest
from hypothesis import given

from falconmq.errors import WireError
from falconmq.wire.tx_sequence_id import (
    message_identifier,
    split_message_identifier,
    tx_sequence_id,
    tx_sequence_ordinal,
    tx_sequence_time_stamp,
)
from tests.strategies.wire import guids, u32

GUID = bytes(range(0x10, 0x20))


@pytest.mark.requirement("DM-3.1.1.12-115")
@pytest.mark.requirement("MQ-2.2.18.1.2-01", "MQ-2.2.18.1.2-02", "QB-MQMQ2.2.18.1.2-01")
def test_the_ordinal_comes_first_and_then_the_time_stamp() -> None:
    sequence = tx_sequence_id(ordinal=0x04030201, time_stamp=0x08070605)
    assert sequence.to_bytes(8, "little") == bytes(range(1, 9))


@pytest.mark.requirement("DM-3.1.1.12-115")
@pytest.mark.requirement("MQ-2.2.18.1.2-03", "QB-MQMQ2.2.18.1.2-01")
def test_a_later_time_stamp_is_greater_whatever_the_ordinal() -> None:
    assert tx_sequence_id(ordinal=1, time_stamp=2) > tx_sequence_id(ordinal=5, time_stamp=1)
    assert tx_sequence_id(ordinal=6, time_stamp=1) > tx_sequence_id(ordinal=5, time_stamp=1)
    assert tx_sequence_id(0, 0xFFFFFFFF) > tx_sequence_id(0xFFFFFFFF, 0x7FFFFFFF)


@given(u32, u32)
def test_both_halves_come_back(ordinal: int, time_stamp: int) -> None:
    sequence = tx_sequence_id(ordinal, time_stamp)
    assert tx_sequence_ordinal(sequence) == ordinal
    assert tx_sequence_time_stamp(sequence) == time_stamp


@pytest.mark.requirement("MQ-2.2.18.1.2-01", "MQ-2.2.18.1.2-02", "MQ-2.2.18.1.3-03")
def test_both_numbers_use_all_32_bits() -> None:
    assert tx_sequence_id(0xFFFFFFFF, 0xFFFFFFFF) == 0xFFFFFFFFFFFFFFFF
    assert tx_sequence_id(0, 0) == 0
    assert split_message_identifier(GUID + b"\xff" * 4) == (GUID, 0xFFFFFFFF)
    assert message_identifier(GUID, 0xFFFFFFFF) == GUID + b"\xff" * 4


@pytest.mark.parametrize(("ordinal", "time_stamp"), [(1 << 32, 0), (0, 1 << 32), (-1, 0), (0, -1)])
def test_halves_of_more_than_32_bits_are_refused(ordinal: int, time_stamp: int) -> None:
    with pytest.raises(WireError, match="TxSequenceID"):
        tx_sequence_id(ordinal, time_stamp)


@pytest.mark.requirement("MQ-2.2.18.1.3-01", "MQ-2.2.18.1.3-03", "QB-MQMQ2.2.18.1.3-01")
def test_a_message_is_named_by_its_queue_manager_and_a_number() -> None:
    assert message_identifier(GUID, 0x04030201) == GUID + b"\x01\x02\x03\x04"
    assert split_message_identifier(GUID + b"\x01\x02\x03\x04") == (GUID, 0x04030201)


@given(guids, u32)
def test_an_identifier_comes_back(guid: bytes, ordinal: int) -> None:
    assert split_message_identifier(message_identifier(guid, ordinal)) == (guid, ordinal)


def test_identifiers_of_the_wrong_size_are_refused() -> None:
    with pytest.raises(WireError, match="QueueManagerGuid"):
        message_identifier(GUID[:15], 1)
    with pytest.raises(WireError, match="Ordinal"):
        message_identifier(GUID, 1 << 32)
    for size in (0, 19, 21):
        with pytest.raises(WireError, match="MessageIdentifier"):
            split_message_identifier(bytes(size))
