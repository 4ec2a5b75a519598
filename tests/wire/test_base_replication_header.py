"""BaseReplicationHeader, MQDSRP 2.2.5.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_replication_header import SIZE, BaseReplicationHeader
from falconmq.wire.reader import Reader
from tests.strategies.replication import base_replication_headers
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

SITE = bytes(range(0x11, 0x21))
BYTES = b"\x00" + SITE + b"\x05"


@pytest.mark.requirement(
    "RP-2.2.5.1-01", "RP-2.2.5.1-02", "RP-2.2.5.1-04", "RP-2.2.5.1-05", "RP-2.2.6.1-01"
)
def test_every_field_stands_at_its_offset() -> None:
    header = BaseReplicationHeader.decode(BYTES)
    assert header == BaseReplicationHeader(SITE, 5)
    assert header.encode() == BYTES
    assert len(BYTES) == SIZE == 18


@pytest.mark.requirement("RP-2.2.5.1-03")
def test_the_version_is_0() -> None:
    assert BaseReplicationHeader(SITE, 1).encode()[0] == 0
    for version in (1, 0xFF):
        with pytest.raises(WireError, match="Version at offset 0"):
            BaseReplicationHeader.decode(bytes([version]) + BYTES[1:])


@pytest.mark.requirement("RP-2.2.5.1-06")
def test_the_operation_is_0_to_7() -> None:
    for operation in range(8):
        data = BaseReplicationHeader(SITE, operation).encode()
        assert data[17] == operation
        assert BaseReplicationHeader.decode(data).operation == operation
    for operation in (8, 0xFF):
        with pytest.raises(WireError, match="Operation at offset 17"):
            BaseReplicationHeader.decode(BYTES[:17] + bytes([operation]))
    for operation in (-1, 8):
        with pytest.raises(WireError, match="Operation"):
            BaseReplicationHeader(SITE, operation).encode()


def test_a_header_of_another_message_is_refused() -> None:
    assert BaseReplicationHeader.expect(Reader(BYTES), 5) == SITE
    with pytest.raises(WireError, match="Operation at offset 17: 5 instead of 4"):
        BaseReplicationHeader.expect(Reader(BYTES), 4)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_a_site_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="SiteID"):
        BaseReplicationHeader(bytes(size), 0).encode()


@given(base_replication_headers)
def test_round_trip(header: BaseReplicationHeader) -> None:
    assert len(assert_round_trip(header)) == SIZE


@given(st.binary(max_size=SIZE + 2))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(BaseReplicationHeader.decode, data)


def test_a_cut_header_is_refused() -> None:
    assert_every_cut_is_refused(BaseReplicationHeader.decode, BYTES)
