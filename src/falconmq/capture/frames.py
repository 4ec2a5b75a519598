"""Link-layer frames down to TCP segments and UDP datagrams.

Ethernet with any stack of VLAN tags, Linux cooked captures (v1 and v2), raw IP, BSD loopback. IP
fragments are not put together: MSMQ never needs them, and they are counted instead.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from typing import Final, NamedTuple

from falconmq.capture.pcap import Frame

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10

LINKTYPE_NULL: Final = 0
LINKTYPE_ETHERNET: Final = 1
LINKTYPE_RAW: Final = 101
LINKTYPE_LOOP: Final = 108
LINKTYPE_LINUX_SLL: Final = 113
LINKTYPE_IPV4: Final = 228
LINKTYPE_IPV6: Final = 229
LINKTYPE_LINUX_SLL2: Final = 276

_RAW_LINKS: Final = frozenset((12, 14, LINKTYPE_RAW, LINKTYPE_IPV4, LINKTYPE_IPV6))  # 12, 14: BSDs
_LOOPBACK_LINKS: Final = frozenset((LINKTYPE_NULL, LINKTYPE_LOOP))
_COOKED_HEADERS: Final = {LINKTYPE_LINUX_SLL: (14, 16), LINKTYPE_LINUX_SLL2: (0, 20)}
_VLAN_TAGS: Final = frozenset((0x8100, 0x88A8, 0x9100))
_ETHERTYPE_IPV4: Final = 0x0800
_ETHERTYPE_IPV6: Final = 0x86DD
_PROTOCOL_TCP: Final = 6
_PROTOCOL_UDP: Final = 17
_IPV6_FRAGMENT: Final = 44
_IPV6_AUTHENTICATION: Final = 51
_IPV6_EXTENSIONS: Final = frozenset((0, 43, 60, 135, _IPV6_AUTHENTICATION))

_TCP: Final = struct.Struct(">HHIIBBHHH")
_UDP: Final = struct.Struct(">HHHH")


class Endpoint(NamedTuple):
    """Address (4 or 16 bytes) and port."""

    address: bytes
    port: int

    def __str__(self) -> str:
        host = ip_address(self.address)
        return f"[{host}]:{self.port}" if host.version == 6 else f"{host}:{self.port}"


@dataclass(slots=True)
class TcpSegment:
    source: Endpoint
    destination: Endpoint
    sequence: int
    acknowledged: int  # only with the flag ACK
    flags: int
    payload: bytes
    missing: int = 0  # bytes of the payload that the capture cut off


@dataclass(slots=True)
class UdpDatagram:
    source: Endpoint
    destination: Endpoint
    payload: bytes
    missing: int = 0


class Undissected(Enum):
    """Why a frame gave no segment."""

    OTHER_PROTOCOL = "neither TCP nor UDP over IP"
    FRAGMENT = "IP fragments"
    CUT_SHORT = "headers cut short or damaged"
    UNKNOWN_LINK = "link type not supported"


Dissection = TcpSegment | UdpDatagram | Undissected


def dissect(frame: Frame) -> Dissection:
    """The segment or datagram of a frame, or why there is none. Never raises."""
    try:
        return _link(frame.link_type, frame.data)
    except (struct.error, IndexError):
        return Undissected.CUT_SHORT


def _link(link_type: int, data: bytes) -> Dissection:
    if link_type == LINKTYPE_ETHERNET:
        offset = 12
        while (ether_type := int.from_bytes(data[offset : offset + 2], "big")) in _VLAN_TAGS:
            offset += 4
        return _network(ether_type, data, offset + 2)
    if link_type in _COOKED_HEADERS:
        type_offset, header_size = _COOKED_HEADERS[link_type]
        ether_type = int.from_bytes(data[type_offset : type_offset + 2], "big")
        return _network(ether_type, data, header_size)
    if link_type in _RAW_LINKS:
        return _ip(data, 0)
    if link_type in _LOOPBACK_LINKS:
        return _ip(data, 4)  # the family number differs between systems: the IP version decides
    return Undissected.UNKNOWN_LINK


def _network(ether_type: int, data: bytes, offset: int) -> Dissection:
    if ether_type in (_ETHERTYPE_IPV4, _ETHERTYPE_IPV6):
        return _ip(data, offset)
    return Undissected.OTHER_PROTOCOL if len(data) >= offset else Undissected.CUT_SHORT


def _ip(data: bytes, offset: int) -> Dissection:
    version = data[offset] >> 4
    if version == 4:
        return _ipv4(data, offset)
    if version == 6:
        return _ipv6(data, offset)
    return Undissected.OTHER_PROTOCOL


def _ipv4(data: bytes, offset: int) -> Dissection:
    header_size = (data[offset] & 0x0F) * 4
    total, _, fragment = struct.unpack_from(">HHH", data, offset + 2)
    protocol = data[offset + 9]
    source, destination = struct.unpack_from("4s4s", data, offset + 12)
    if header_size < 20 or 0 < total < header_size:
        return Undissected.CUT_SHORT
    if fragment & 0x3FFF:  # more fragments, or an offset
        return Undissected.FRAGMENT
    # Total length 0: the network card was to cut this segment (offload); all bytes belong to it.
    end = offset + total if total else len(data)
    return _transport(protocol, source, destination, data, offset + header_size, end)


def _ipv6(data: bytes, offset: int) -> Dissection:
    payload_size, protocol = struct.unpack_from(">HB", data, offset + 4)
    source, destination = struct.unpack_from("16s16s", data, offset + 8)
    start = offset + 40
    end = start + payload_size if payload_size else len(data)
    while protocol in _IPV6_EXTENSIONS:
        unit, extra = (4, 2) if protocol == _IPV6_AUTHENTICATION else (8, 1)
        protocol, length = data[start], data[start + 1]
        start += (length + extra) * unit
    if protocol == _IPV6_FRAGMENT:
        return Undissected.FRAGMENT
    return _transport(protocol, source, destination, data, start, end)


def _transport(
    protocol: int, source: bytes, destination: bytes, data: bytes, start: int, end: int
) -> Dissection:
    if protocol == _PROTOCOL_TCP:
        fields = _TCP.unpack_from(data, start)
        source_port, destination_port, sequence, acknowledged, data_offset, flags = fields[:6]
        header_size = (data_offset >> 4) * 4
        start += header_size
        if header_size < 20 or start > end:
            return Undissected.CUT_SHORT
        return TcpSegment(
            Endpoint(source, source_port),
            Endpoint(destination, destination_port),
            sequence,
            acknowledged,
            flags,
            data[start:end],  # behind `end` is padding of the link
            max(0, end - max(start, len(data))),
        )
    if protocol == _PROTOCOL_UDP:
        source_port, destination_port, length, _ = _UDP.unpack_from(data, start)
        end = min(end, start + length) if length >= _UDP.size else end
        start += _UDP.size
        return UdpDatagram(
            Endpoint(source, source_port),
            Endpoint(destination, destination_port),
            data[start:end],
            max(0, end - max(start, len(data))),
        )
    return Undissected.OTHER_PROTOCOL
