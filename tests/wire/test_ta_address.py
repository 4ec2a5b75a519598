"""TA_ADDRESS, MQMQ 2.2.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.reader import Reader
from falconmq.wire.ta_address import (
    IP_RAS_ADDRESS_TYPE,
    TaAddress,
    decode_ta_addresses,
    encode_ta_addresses,
    read_ta_addresses,
)
from tests.strategies.keys import ta_addresses
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

IPX = bytes(range(0x10, 0x1A))
GUID = bytes(range(0x20, 0x30))
LENGTHS = {0x0001: 4, 0x0002: 4, 0x0003: 10, 0x0005: 16}  # MQ-2.2.4-02, MQ-2.2.4-04


@pytest.mark.requirement("MQ-2.2.4-01", "MQ-2.2.4-03", "MQ-2.2.4-06")
def test_every_field_stands_at_its_offset() -> None:
    data = bytes.fromhex("0a00 0300") + IPX
    assert TaAddress.decode(data) == TaAddress(3, IPX)
    assert TaAddress(3, IPX).encode() == data


@pytest.mark.requirement("MQ-2.2.4-02", "MQ-2.2.4-04")
@pytest.mark.parametrize("address_type", [0, 1, 2, 3, 4, 5, 6, 0xFFFF])
@pytest.mark.parametrize("size", [0, 3, 4, 5, 9, 10, 11, 15, 16, 17])
def test_the_type_fixes_the_length(address_type: int, size: int) -> None:
    address = bytes(range(size))
    data = size.to_bytes(2, "little") + address_type.to_bytes(2, "little") + address
    value = TaAddress(address_type, address)
    if LENGTHS.get(address_type) == size:
        assert TaAddress.decode(data) == value
        assert value.encode() == data
    else:
        with pytest.raises(WireError):
            TaAddress.decode(data)
        with pytest.raises(WireError):
            value.encode()


@pytest.mark.requirement("MQ-2.2.4-07")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(
            bytes.fromhex("0400 0100 0a000007"),
            "10.0.0.7",
            marks=pytest.mark.requirement("MQ-2.2.4.1-01"),
        ),
        pytest.param(
            bytes.fromhex("0400 0200 c0a80102"),
            "192.168.1.2",
            marks=pytest.mark.requirement("MQ-2.2.4-05", "MQ-2.2.4.1-01"),
        ),
        pytest.param(
            bytes.fromhex("0a00 0300") + IPX,
            "10111213.141516171819",
            marks=pytest.mark.requirement("MQ-2.2.4.2-01"),
        ),
        (bytes.fromhex("1000 0500") + GUID, "23222120-2524-2726-2829-2A2B2C2D2E2F"),
    ],
)
def test_each_kind_of_address_reads_as_people_write_it(data: bytes, text: str) -> None:
    assert TaAddress.decode(data).text == text


@pytest.mark.requirement("MQ-2.2.4.1-01")
def test_an_ip_address_keeps_the_order_of_its_text() -> None:
    assert TaAddress.ip("10.0.0.7").encode() == bytes.fromhex("0400 0100 0a000007")
    ras = TaAddress.ip("192.168.1.2", IP_RAS_ADDRESS_TYPE)
    assert ras.encode() == bytes.fromhex("0400 0200 c0a80102")


@pytest.mark.parametrize("text", ["", "10.0.0", "10.0.0.256", "::1", "host"])
def test_another_text_is_no_ip_address(text: str) -> None:
    with pytest.raises(WireError, match="no IPv4 address"):
        TaAddress.ip(text)


@given(st.lists(ta_addresses, max_size=5))
def test_packed_addresses_make_a_round_trip(addresses: list[TaAddress]) -> None:
    data = encode_ta_addresses(addresses)
    assert data == b"".join(address.encode() for address in addresses)
    assert decode_ta_addresses(data) == addresses


def test_packed_addresses_end_with_their_part() -> None:
    data = TaAddress.ip("10.0.0.7").encode()
    reader = Reader(data + data + b"rest")
    assert len(read_ta_addresses(reader.part(16, "Addresses"))) == 2
    with pytest.raises(WireError):
        decode_ta_addresses(data + data[:-1])


@given(ta_addresses)
def test_round_trip(address: TaAddress) -> None:
    assert_round_trip(address)
    assert address.text


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(TaAddress.decode, data)
    assert_decodes_or_refuses(decode_ta_addresses, data)


@given(ta_addresses, st.integers(0, 3), st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_wire_error(
    address: TaAddress, index: int, byte: int
) -> None:
    data = address.encode()
    changed = data[:index] + bytes([byte]) + data[index + 1 :]
    assert_decodes_or_refuses(TaAddress.decode, changed)


def test_a_cut_address_is_refused() -> None:
    assert_every_cut_is_refused(TaAddress.decode, TaAddress(5, GUID).encode())
