"""MESSAGE_CLASS_VALUES, MQMQ 2.2.18.1.6."""

from __future__ import annotations

import pytest

from falconmq.wire.message_class import MessageClass, is_custom, is_sendable

# the values as the catalogue has them, in the order of its rows
VALUES = {
    "NORMAL": 0x0000,
    "REPORT": 0x0001,
    "ACK_REACH_QUEUE": 0x0002,
    "ORDER_ACK": 0x00FF,
    "ACK_RECEIVE": 0x4000,
    "NACK_BAD_DST_Q": 0x8000,
    "NACK_DELETED": 0x8001,
    "NACK_REACH_QUEUE_TIMEOUT": 0x8002,
    "NACK_Q_EXCEED_QUOTA": 0x8003,
    "NACK_ACCESS_DENIED": 0x8004,
    "NACK_HOP_COUNT_EXCEEDED": 0x8005,
    "NACK_BAD_SIGNATURE": 0x8006,
    "NACK_BAD_ENCRYPTION": 0x8007,
    "NACK_NOT_TRANSACTIONAL_Q": 0x8009,
    "NACK_NOT_TRANSACTIONAL_MSG": 0x800A,
    "NACK_UNSUPPORTED_CRYPTO_PROVIDER": 0x800B,
    "NACK_Q_DELETED": 0xC000,
    "NACK_Q_PURGED": 0xC001,
    "NACK_RECEIVE_TIMEOUT": 0xC002,
    "NACK_RECEIVE_REJECTED": 0xC004,
}
ELSEWHERE = {
    "NACK_COULD_NOT_ENCRYPT": 0x8008,
    "NACK_SOURCE_COMPUTER_GUID_CHANGED": 0x800C,
    "NACK_RECEIVE_TIMEOUT_AT_SENDER": 0xC003,
}


def _rows() -> list[object]:
    return [
        pytest.param(
            name,
            value,
            marks=pytest.mark.requirement(
                f"MQ-2.2.18.1.6-{number:02}", f"QB-MQMQ2.2.18.1.6-{_group(value):02}"
            ),
            id=name,
        )
        for number, (name, value) in enumerate(VALUES.items(), 1)
    ]


def _group(value: int) -> int:
    """Which row of the MQQB catalogue lists the value: low ones, arrival nacks, receive nacks."""
    return {0xC000: 3, 0x8000: 2}.get(value & 0xC000, 1)


@pytest.mark.parametrize(("name", "value"), _rows())
def test_every_class_has_its_number_and_name(name: str, value: int) -> None:
    assert MessageClass[name] == value
    assert MessageClass(value).symbol == f"MQMSG_CLASS_{name}"


@pytest.mark.requirement("MQ-2.2.18.1.6-24")
@pytest.mark.parametrize(("name", "value"), ELSEWHERE.items())
def test_classes_of_other_documents_are_known(name: str, value: int) -> None:
    assert MessageClass[name] == value


def test_there_is_no_other_class() -> None:
    assert {member.name: int(member) for member in MessageClass} == VALUES | ELSEWHERE


@pytest.mark.requirement("MQ-2.2.18.1.6-23")
def test_two_bits_tell_bad_news_and_news_about_reading() -> None:
    negative = {member.name for member in MessageClass if member.is_negative}
    about_receive = {member.name for member in MessageClass if member.is_about_receive}
    assert negative == {name for name in VALUES | ELSEWHERE if name.startswith("NACK")}
    assert about_receive == {
        "ACK_RECEIVE",
        "NACK_Q_DELETED",
        "NACK_Q_PURGED",
        "NACK_RECEIVE_TIMEOUT",
        "NACK_RECEIVE_TIMEOUT_AT_SENDER",
        "NACK_RECEIVE_REJECTED",
    }


@pytest.mark.requirement("MQ-2.2.18.1.6-22", "QB-MQMQ2.2.18.1.6-03")
def test_a_class_may_use_the_bits_of_the_mask_and_no_others() -> None:
    for bit in range(16):
        assert is_sendable(1 << bit) == (1 << bit not in (0x0200, 0x0400, 0x0800, 0x1000))
    assert is_sendable(0xE1FF)
    assert not is_sendable(0x10000)


def test_a_custom_class_is_one_that_is_not_predefined() -> None:
    assert is_custom(0x0003)
    assert is_custom(0x2000)
    assert not any(is_custom(value) for value in (VALUES | ELSEWHERE).values())
