"""The record that the store keeps of a message: everything comes back, nothing else is taken."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.manager.record import StoredMessage
from falconmq.message import Acknowledge
from falconmq.wire.transaction_header import FIRST_MESSAGE, LAST_MESSAGE, TRANSACTION_ID
from falconmq.wire.user_message import UserMessage
from tests.manager.helpers import message

BESIDE = st.fixed_dictionaries(
    {
        "arrival_time": st.integers(0, 2**45).map(lambda ms: ms / 1000),
        "arrival_number": st.integers(0, 2**64 - 1),
        "allow_peek_when_locked": st.booleans(),
        "is_dead_letter": st.booleans(),
        "authentication_level": st.integers(0, 255),
        "dead_letter_queue": st.text(max_size=200),
        "abort_count": st.integers(0, 0xFFFF),
        "move_count": st.integers(0, 0xFFFF),
    }
)
HEADERS: list[dict[str, Any]] = [
    {},
    {"label": "a label", "extension": b"more"},
    {"response_queue": r"DIRECT=OS:web01\private$\replies"},
    {
        "administration_queue": "PUBLIC=8b6b1a5e-2d1f-4d6a-9b45-77b0f0a6c001",
        "acknowledgements": Acknowledge.FULL_RECEIVE,
        "response_queue": r"DIRECT=TCP:10.0.0.1\private$\replies",
        "connector_type": UUID(int=7),
        "sender_id": b"\1\1\0\0\0\0\0\5\x12\0\0\0",
    },
]


@given(body=st.binary(max_size=64), beside=BESIDE)
def test_a_record_gives_back_the_packet_and_what_never_travels(
    body: bytes, beside: dict[str, Any]
) -> None:
    # given a message with anything beside its packet
    stored = message(body)
    for name, value in beside.items():
        setattr(stored, name, value)
    # when it is written and read
    again = StoredMessage.decode(stored.encode())
    # then all of it is there
    assert bytes(again.data) == bytes(stored.data)
    assert again.packet == UserMessage.decode(stored.data)
    assert {name: getattr(again, name) for name in beside} == beside


def test_counts_stay_at_their_limit() -> None:
    stored = message()
    stored.abort_count = stored.move_count = 0x1_0000
    again = StoredMessage.decode(stored.encode())
    assert (again.abort_count, again.move_count) == (0xFFFF, 0xFFFF)


@pytest.mark.parametrize("mode", [2, 3])
def test_a_delivery_mode_nobody_knows_counts_as_recoverable(mode: int) -> None:
    stored = message(recoverable=False)
    assert not stored.is_recoverable
    stored.packet.user.flags |= mode << 5
    assert stored.is_recoverable


def test_a_record_of_another_version_is_refused() -> None:
    record = bytearray(message().encode())
    record[0] = 2
    with pytest.raises(WireError, match="Version"):
        StoredMessage.decode(record)


@given(data=st.binary(max_size=200))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    record = message(b"x").encode()
    for broken in (data, record[: len(data)], bytes([1]) + data):
        with pytest.raises(WireError):
            StoredMessage.decode(broken)


@pytest.mark.parametrize("properties", HEADERS, ids=["plain", "label", "response", "everything"])
@pytest.mark.parametrize(("first", "last"), [(True, False), (False, True), (True, True)])
def test_marks_of_the_transaction_go_into_packet_and_bytes(
    properties: dict[str, Any], first: bool, last: bool
) -> None:
    # given a transactional message and a copy that somebody else holds
    stored = message(b"body", transactional=True, wire_id=0xABCDE, **properties)
    before, packet = bytes(stored.data), stored.packet
    # when it is marked
    stored.mark_in_transaction(first=first, last=last)
    # then packet and bytes say so, and nothing else has changed
    assert stored.transaction is not None
    assert bool(stored.transaction.flags & FIRST_MESSAGE) is first
    assert bool(stored.transaction.flags & LAST_MESSAGE) is last
    assert stored.transaction.flags & TRANSACTION_ID == 0xABCDE0
    assert bytes(stored.data) == stored.packet.encode()
    assert packet.encode() == before
    differing = sum(a != b for a, b in zip(before, stored.data, strict=True))
    assert differing == 1


def test_a_message_outside_a_transaction_takes_no_mark() -> None:
    stored = message(b"body")
    before = bytes(stored.data)
    stored.mark_in_transaction(first=True, last=True)
    assert bytes(stored.data) == before
    assert stored.wire_transaction_id == 0
