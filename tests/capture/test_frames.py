"""Link-layer frames to segments and datagrams."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.capture.frames import (
    ACK,
    SYN,
    Dissection,
    Endpoint,
    TcpSegment,
    UdpDatagram,
    Undissected,
    dissect,
)
from falconmq.capture.pcap import Frame
from tests.strategies.captures import CLIENT, SERVER, ethernet, ip, tcp, udp

V6_CLIENT = ("2001:db8::7", 49759)
V6_SERVER = ("2001:db8::8", 1801)


def run(link_type: int, data: bytes) -> Dissection:
    return dissect(Frame(1, 0, link_type, data, len(data)))


def peer(endpoint: Endpoint) -> str:
    return str(endpoint)


def cooked_v1(packet: bytes) -> bytes:
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), _ether_type(packet)) + packet


def cooked_v2(packet: bytes) -> bytes:
    return struct.pack(">HHIHBB8s", _ether_type(packet), 0, 2, 1, 0, 6, bytes(8)) + packet


def _ether_type(packet: bytes) -> int:
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


LINKS = [
    pytest.param(1, ethernet, id="Ethernet"),
    pytest.param(1, lambda p: ethernet(p, vlans=[0x8100]), id="VLAN"),
    pytest.param(1, lambda p: ethernet(p, vlans=[0x88A8, 0x8100]), id="double VLAN"),
    pytest.param(113, cooked_v1, id="Linux cooked v1"),
    pytest.param(276, cooked_v2, id="Linux cooked v2"),
    pytest.param(101, lambda p: p, id="raw"),
    pytest.param(12, lambda p: p, id="raw as BSD numbers it"),
    pytest.param(228, lambda p: p, id="raw IPv4"),
    pytest.param(229, lambda p: p, id="raw IPv6"),
    pytest.param(0, lambda p: b"\x02\0\0\0" + p, id="BSD loopback, little-endian"),
    pytest.param(0, lambda p: b"\0\0\0\x1e" + p, id="BSD loopback, big-endian"),
    pytest.param(108, lambda p: b"\0\0\0\x02" + p, id="OpenBSD loopback"),
]


@pytest.mark.parametrize(("link_type", "wrap"), LINKS)
@pytest.mark.parametrize(("client", "server"), [(CLIENT, SERVER), (V6_CLIENT, V6_SERVER)])
def test_a_segment_is_found_below_every_link(link_type: int, wrap, client, server) -> None:  # type: ignore[no-untyped-def]  # parametrised
    packet = tcp(client, server, 7, b"payload", flags=SYN | ACK, acknowledged=9, options=bytes(8))
    segment = run(link_type, wrap(packet))
    assert isinstance(segment, TcpSegment)
    assert (segment.sequence, segment.acknowledged, segment.flags) == (7, 9, SYN | ACK)
    assert (segment.payload, segment.missing) == (b"payload", 0)
    assert (segment.source.port, segment.destination.port) == (client[1], server[1])
    assert client[0] in str(segment.source)
    assert server[0] in str(segment.destination)


@pytest.mark.parametrize(("client", "server"), [(CLIENT, SERVER), (V6_CLIENT, V6_SERVER)])
def test_a_datagram_is_found(client: tuple[str, int], server: tuple[str, int]) -> None:
    datagram = run(1, ethernet(udp(client, server, b"ping")))
    assert isinstance(datagram, UdpDatagram)
    assert (datagram.payload, datagram.missing) == (b"ping", 0)
    assert (datagram.source.port, datagram.destination.port) == (client[1], server[1])


def test_endpoints_are_written_as_people_write_them() -> None:
    datagram = run(1, ethernet(udp(V6_CLIENT, V6_SERVER, b"")))
    assert isinstance(datagram, UdpDatagram)
    assert str(datagram.source) == "[2001:db8::7]:49759"
    datagram = run(1, ethernet(udp(CLIENT, SERVER, b"")))
    assert isinstance(datagram, UdpDatagram)
    assert str(datagram.destination) == "10.0.0.8:1801"


def test_padding_of_the_link_is_no_payload() -> None:
    segment = run(1, ethernet(tcp(CLIENT, SERVER, 1, b"")))
    assert isinstance(segment, TcpSegment)
    assert segment.payload == b""


def test_what_the_snap_length_cut_off_is_counted() -> None:
    frame = ethernet(tcp(CLIENT, SERVER, 1, bytes(100)))
    segment = run(1, frame[:-30])
    assert isinstance(segment, TcpSegment)
    assert (len(segment.payload), segment.missing) == (70, 30)
    datagram = run(1, ethernet(udp(CLIENT, SERVER, bytes(100)))[:-30])
    assert isinstance(datagram, UdpDatagram)
    assert (len(datagram.payload), datagram.missing) == (70, 30)


def test_a_segment_that_the_network_card_was_to_cut_has_no_length() -> None:
    packet = bytearray(tcp(CLIENT, SERVER, 1, bytes(3000)))
    packet[2:4] = b"\0\0"
    segment = run(101, bytes(packet))
    assert isinstance(segment, TcpSegment)
    assert len(segment.payload) == 3000


def test_extension_headers_of_ipv6_are_stepped_over() -> None:
    transport = tcp(V6_CLIENT, V6_SERVER, 5, b"x")[40:]
    options = bytes([51, 1]) + bytes(14)  # hop by hop, 16 bytes, then authentication
    authentication = bytes([6, 4]) + bytes(22)  # 24 bytes
    packet = ip(V6_CLIENT[0], V6_SERVER[0], 0, options + authentication + transport)
    segment = run(229, packet)
    assert isinstance(segment, TcpSegment)
    assert (segment.sequence, segment.payload) == (5, b"x")


@pytest.mark.parametrize(
    ("link_type", "data", "reason"),
    [
        (1, bytes(12) + b"\x08\x06" + bytes(46), Undissected.OTHER_PROTOCOL),  # ARP
        (1, ethernet(ip("10.0.0.1", "10.0.0.2", 1, bytes(8))), Undissected.OTHER_PROTOCOL),  # ICMP
        (101, bytes([0x55]) + bytes(40), Undissected.OTHER_PROTOCOL),  # IP version 5
        (147, bytes(60), Undissected.UNKNOWN_LINK),
        (1, b"", Undissected.CUT_SHORT),
        (1, ethernet(tcp(CLIENT, SERVER, 1))[:40], Undissected.CUT_SHORT),
        (101, ip("::1", "::2", 44, bytes(20)), Undissected.FRAGMENT),
    ],
)
def test_a_frame_without_a_segment_says_why(
    link_type: int, data: bytes, reason: Undissected
) -> None:
    assert run(link_type, data) is reason


@pytest.mark.parametrize("fragment", [b"\x20\x00", b"\x00\x10"])
def test_fragments_of_ipv4_are_told_apart(fragment: bytes) -> None:
    packet = bytearray(tcp(CLIENT, SERVER, 1, b"x"))
    packet[6:8] = fragment
    assert run(101, bytes(packet)) is Undissected.FRAGMENT


@given(link_type=st.sampled_from([0, 1, 101, 108, 113, 276, 999]), data=st.binary(max_size=120))
def test_any_bytes_are_dissected_or_left_out(link_type: int, data: bytes) -> None:
    run(link_type, data)


@given(size=st.integers(0, 100), place=st.integers(0, 60), byte=st.integers(0, 255))
def test_a_damaged_frame_never_raises(size: int, place: int, byte: int) -> None:
    frame = bytearray(ethernet(tcp(CLIENT, SERVER, 1, bytes(40))))
    frame[place] = byte
    run(1, bytes(frame[:size]))
    packet = bytearray(tcp(V6_CLIENT, V6_SERVER, 1, bytes(40)))
    packet[place] = byte
    run(101, bytes(packet[:size]))
