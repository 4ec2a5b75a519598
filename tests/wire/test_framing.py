"""Where a packet ends: MQMQ 2.2.19.1 and contradiction QB-A09."""

from __future__ import annotations

import pytest
from hypothesis import given

from falconmq.errors import WireError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.framing import packet_length
from tests.strategies.headers import base_headers


@pytest.mark.requirement("QB-A09-01")
@pytest.mark.parametrize(
    ("flags", "extra"),
    [
        (0x0000, 0),  # a user message
        (0x0010, 16),  # a user message with a SessionHeader behind it
        (0x0008, 0),  # an internal packet
        (0x0018, 0),  # a SessionAck counts its SessionHeader
        (0xFFEF, 0),
        (0xFFF7, 16),
        (0xFFFF, 0),
        (0xFFE7, 0),
    ],
)
def test_only_the_session_header_of_a_user_message_is_not_counted(flags: int, extra: int) -> None:
    assert packet_length(BaseHeader(flags, 1000)) == 1000 + extra


@pytest.mark.requirement("QB-A09-01")
@pytest.mark.parametrize(
    ("size", "accepted"),
    [(0, False), (16, False), (19, False), (20, True), (0x400000, True), (0x400001, False)],
)
def test_a_packet_size_outside_20_to_4_mib_is_malformed(size: int, accepted: bool) -> None:
    data = bytes.fromhex("10000000 4c494f52") + size.to_bytes(4, "little") + b"\xff" * 4
    if accepted:
        assert packet_length(BaseHeader.decode(data)) == size
    else:
        with pytest.raises(WireError) as caught:
            BaseHeader.decode(data)
        assert (caught.value.field, caught.value.offset) == ("PacketSize", 8)


@given(base_headers)
def test_a_length_is_never_less_than_the_packet_size(header: BaseHeader) -> None:
    assert packet_length(header) - header.packet_size in (0, 16)
