"""TA_ADDRESS: where a computer is reached, as the directory keeps it (MQMQ 2.2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.guid import guid_text
from falconmq.wire.reader import Buffer, Layout, Reader, Structure

IP_ADDRESS_TYPE: Final = 0x0001
IP_RAS_ADDRESS_TYPE: Final = 0x0002  # IPv4 over a remote-access connection
IPX_ADDRESS_TYPE: Final = 0x0003
FOREIGN_ADDRESS_TYPE: Final = 0x0005  # a connected network, by its GUID
NETNUM_SIZE: Final = 4  # of an IPX address; the other six bytes are the node

ADDRESS_LENGTHS: Final[Mapping[int, int]] = {  # MQ-2.2.4-02, MQ-2.2.4-04
    IP_ADDRESS_TYPE: 4,
    IP_RAS_ADDRESS_TYPE: 4,
    IPX_ADDRESS_TYPE: 10,
    FOREIGN_ADDRESS_TYPE: 16,
}

_LAYOUT: Final = Layout("TA_ADDRESS", "HH", "AddressLength", "AddressType")


@dataclass(slots=True)
class TaAddress(Structure):
    """An address of one of four types; the type fixes its length."""

    address_type: int
    address: bytes

    @classmethod
    def ip(cls, text: str, address_type: int = IP_ADDRESS_TYPE) -> Self:
        """The address of an IPv4 text; the first number comes first (MQ-2.2.4.1-01)."""
        try:
            return cls(address_type, IPv4Address(text).packed)
        except AddressValueError as error:
            raise WireError("TA_ADDRESS", "Address", f"{text!r} is no IPv4 address") from error

    @property
    def text(self) -> str:
        """10.0.0.7, 0000000A.0002A5F1B3C4 (net and node of IPX) or the GUID of a network."""
        if self.address_type in (IP_ADDRESS_TYPE, IP_RAS_ADDRESS_TYPE):
            return str(IPv4Address(self.address))
        if self.address_type == IPX_ADDRESS_TYPE:
            net, node = self.address[:NETNUM_SIZE], self.address[NETNUM_SIZE:]
            return f"{net.hex()}.{node.hex()}".upper()
        return guid_text(self.address)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("TA_ADDRESS")
        size, address_type = reader.fixed(_LAYOUT)
        expected = ADDRESS_LENGTHS.get(address_type)
        if expected is None:
            raise reader.refuse(_LAYOUT, "AddressType", f"{address_type:#06x} is unknown")
        if size != expected:
            raise reader.refuse(_LAYOUT, "AddressLength", f"{size} instead of {expected}")
        address = bytes(reader.take(size, "Address"))
        reader.leave(outer)
        return cls(address_type, address)

    def encode(self) -> bytes:
        expected = ADDRESS_LENGTHS.get(self.address_type)
        if expected is None:
            raise WireError("TA_ADDRESS", "AddressType", f"{self.address_type:#x} is unknown")
        if len(self.address) != expected:
            problem = f"{len(self.address)} bytes instead of {expected}"
            raise WireError("TA_ADDRESS", "Address", problem)
        return _LAYOUT.pack(expected, self.address_type) + self.address


def read_ta_addresses(reader: Reader) -> list[TaAddress]:
    """Read packed addresses up to the end of the part, as PROPID_QM_ADDRESS holds them."""
    addresses = []
    while reader.remaining:
        addresses.append(TaAddress.read(reader))
    return addresses


def decode_ta_addresses(buffer: Buffer) -> list[TaAddress]:
    return read_ta_addresses(Reader(buffer))


def encode_ta_addresses(addresses: Iterable[TaAddress]) -> bytes:
    return b"".join([address.encode() for address in addresses])
