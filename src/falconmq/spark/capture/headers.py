"""Frames to TCP segments and UDP datagrams, a whole stretch of a capture at once.

The rules are those of `falconmq.capture.frames`, in the same order; each step looks at the frames
that are still in question and either decides them or hands them on. VLAN tags and IPv6 extension
headers are stepped over in rounds, as many as the frame with most of them needs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, NamedTuple, Self

import numpy as np

from falconmq.capture.frames import (
    LINKTYPE_ETHERNET,
    LINKTYPE_IPV4,
    LINKTYPE_IPV6,
    LINKTYPE_LINUX_SLL,
    LINKTYPE_LINUX_SLL2,
    LINKTYPE_LOOP,
    LINKTYPE_NULL,
    LINKTYPE_RAW,
    Endpoint,
    Undissected,
)
from falconmq.spark.capture.files import Frames
from falconmq.spark.capture.views import Flags, Ints, Numbers, ints, numbers_at

TCP: Final = 6
UDP: Final = 17

_RAW_LINKS: Final = (12, 14, LINKTYPE_RAW, LINKTYPE_IPV4, LINKTYPE_IPV6)
_LOOPBACK_LINKS: Final = (LINKTYPE_NULL, LINKTYPE_LOOP)
_COOKED_HEADERS: Final = {LINKTYPE_LINUX_SLL: (14, 16), LINKTYPE_LINUX_SLL2: (0, 20)}
_VLAN_TAGS: Final = (0x8100, 0x88A8, 0x9100)
_ETHERTYPES: Final = (0x0800, 0x86DD)
_IPV6_FRAGMENT: Final = 44
_IPV6_AUTHENTICATION: Final = 51
_IPV6_EXTENSIONS: Final = (0, 43, 60, 135, _IPV6_AUTHENTICATION)
_FIRST_IPV6: Final = 1 << 32  # IPv6 addresses are numbered from here; below are those of IPv4
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class Addresses:
    """Numbers for addresses: an IPv4 address is its own, an IPv6 address gets the next one.

    An endpoint is one number too: that of its address, then 16 bits of port.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._packed: list[bytes] = []
        self._endpoints: dict[int, Endpoint] = {}

    def number_ipv6(self, packed: Numbers) -> Ints:
        """Of addresses given as rows of 16 bytes."""
        halves = packed.view(np.uint64).reshape(-1, 2)
        mixed = halves[:, 0] * _MIX ^ halves[:, 1]
        _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
        if (halves[first][inverse] != halves).any():  # two addresses mixed to the same number
            first, inverse = np.arange(len(packed)), np.arange(len(packed))
        known = [self._number(bytes(row)) for row in packed[first]]
        return np.array(known, np.int64)[inverse]

    def _number(self, packed: bytes) -> int:
        number = self._numbers.get(packed)
        if number is None:
            number = self._numbers[packed] = _FIRST_IPV6 + len(self._packed)
            self._packed.append(packed)
        return number

    def endpoint(self, number: int) -> Endpoint:
        found = self._endpoints.get(number)
        if found is None:
            address, port = number >> 16, number & 0xFFFF
            is_ipv4 = address < _FIRST_IPV6
            packed = address.to_bytes(4) if is_ipv4 else self._packed[address - _FIRST_IPV6]
            found = self._endpoints[number] = Endpoint(packed, port)
        return found


@lru_cache(maxsize=65536)
def address_text(endpoint: Endpoint) -> str:
    return str(ip_address(endpoint.address))


@dataclass(slots=True)
class Segments:
    """TCP segments or UDP datagrams, in file order; the last three only of segments."""

    frames: Ints  # places in the stretch
    sources: Ints  # numbers of endpoints
    destinations: Ints
    starts: Ints  # of the payload, in the file
    sizes: Ints  # of the payload that is there
    missing: Ints  # bytes of it that the capture cut off
    sequences: Ints
    acknowledged: Ints
    flags: Ints

    def __len__(self) -> int:
        return len(self.frames)

    def choose(self, which: Numbers) -> Self:
        """Those at these places, or for which this is true."""
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))


class Dissected(NamedTuple):
    segments: Segments
    datagrams: Segments
    left_out: dict[Undissected, Ints]  # places of frames that gave neither


def dissect_frames(frames: Frames, addresses: Addresses) -> Dissected:
    """All segments and datagrams of a stretch, and why the other frames gave none."""
    return _Dissector(frames, addresses).dissect()


def lanes_of(segments: Segments, lanes: int) -> Ints:
    """Which of so many workers handles each; the same for both directions of a connection."""
    both = (segments.sources + segments.destinations).astype(np.uint64)
    return ((both * _MIX >> np.uint64(33)) % np.uint64(lanes)).astype(np.int64)


@dataclass(slots=True)
class _Packets:
    """IP packets on their way to a transport: all arrays alike, positions within the frame."""

    frames: Ints
    sources: Ints
    destinations: Ints
    protocols: Ints
    starts: Ints
    ends: Ints

    def choose(self, which: Numbers) -> _Packets:
        return _Packets(*(getattr(self, field.name)[which] for field in fields(self)))

    @classmethod
    def joined(cls, one: _Packets, other: _Packets) -> _Packets:
        both = (
            np.concatenate((getattr(one, field.name), getattr(other, field.name)))
            for field in fields(cls)
        )
        return cls(*both)


class _Dissector:
    def __init__(self, frames: Frames, addresses: Addresses) -> None:
        self._frames = frames
        self._addresses = addresses
        self._left_out: dict[Undissected, list[Ints]] = {}
        self._bytes = np.frombuffer(frames.data, np.uint8)
        self._words = numbers_at(frames.data, ">u2")
        self._doubles = numbers_at(frames.data, ">u4")

    def dissect(self) -> Dissected:
        chosen, offsets = self._links()
        chosen, offsets = self._present(chosen, offsets, 1)
        versions = self._byte(chosen, offsets) >> 4
        self._leave(chosen[(versions != 4) & (versions != 6)], Undissected.OTHER_PROTOCOL)
        four, six = versions == 4, versions == 6
        packets = _Packets.joined(
            self._ipv4(chosen[four], offsets[four]), self._ipv6(chosen[six], offsets[six])
        )
        is_tcp, is_udp = packets.protocols == TCP, packets.protocols == UDP
        self._leave(packets.frames[~(is_tcp | is_udp)], Undissected.OTHER_PROTOCOL)
        segments = self._tcp(packets.choose(is_tcp))
        datagrams = self._udp(packets.choose(is_udp))
        left_out = {why: np.sort(np.concatenate(which)) for why, which in self._left_out.items()}
        return Dissected(_in_order(segments), _in_order(datagrams), left_out)

    # What the steps share

    def _leave(self, which: Ints, why: Undissected) -> None:
        if len(which):
            self._left_out.setdefault(why, []).append(which)

    def _present(self, chosen: Ints, offsets: Ints, size: int) -> tuple[Ints, Ints]:
        """Those of which the capture holds `size` bytes from the offset on."""
        is_there = self._frames.sizes[chosen] >= offsets + size
        if is_there.all():
            return chosen, offsets
        self._leave(chosen[~is_there], Undissected.CUT_SHORT)
        return chosen[is_there], offsets[is_there]

    def _byte(self, chosen: Ints, offsets: Ints | int) -> Ints:
        return ints(self._bytes[self._frames.starts[chosen] + offsets])

    def _word(self, chosen: Ints, offsets: Ints | int) -> Ints:
        return ints(self._words[self._frames.starts[chosen] + offsets])

    def _double(self, chosen: Ints, offsets: Ints | int) -> Ints:
        return ints(self._doubles[self._frames.starts[chosen] + offsets])

    # Links

    def _links(self) -> tuple[Ints, Ints]:
        """Frames that hold IP, and where it begins in them."""
        found: list[tuple[Ints, Ints]] = []
        for link_type in np.unique(self._frames.links).tolist():
            chosen = np.flatnonzero(self._frames.links == link_type)
            if link_type == LINKTYPE_ETHERNET:
                found.append(self._ethernet(chosen))
            elif link_type in _COOKED_HEADERS:
                found.append(self._cooked(chosen, *_COOKED_HEADERS[link_type]))
            elif link_type in _RAW_LINKS:
                found.append((chosen, np.zeros(len(chosen), np.int64)))
            elif link_type in _LOOPBACK_LINKS:
                found.append((chosen, np.full(len(chosen), 4)))
            else:
                self._leave(chosen, Undissected.UNKNOWN_LINK)
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([c for c, _ in found]), np.concatenate([o for _, o in found])

    def _ethernet(self, chosen: Ints) -> tuple[Ints, Ints]:
        offsets = np.full(len(chosen), 12)
        chosen, offsets = self._present(chosen, offsets, 2)
        kinds = self._word(chosen, offsets)
        while (tagged := np.isin(kinds, _VLAN_TAGS)).any():
            offsets = offsets + np.where(tagged, 4, 0)
            is_there = self._frames.sizes[chosen] >= offsets + 2
            self._leave(chosen[~is_there], Undissected.CUT_SHORT)
            chosen, offsets = chosen[is_there], offsets[is_there]
            kinds = self._word(chosen, offsets)
        return self._with_ip(chosen, offsets + 2, kinds)

    def _cooked(self, chosen: Ints, type_offset: int, size: int) -> tuple[Ints, Ints]:
        chosen, offsets = self._present(chosen, np.full(len(chosen), size), 0)
        return self._with_ip(chosen, offsets, self._word(chosen, type_offset))

    def _with_ip(self, chosen: Ints, offsets: Ints, kinds: Ints) -> tuple[Ints, Ints]:
        has_ip = np.isin(kinds, _ETHERTYPES)
        self._leave(chosen[~has_ip], Undissected.OTHER_PROTOCOL)
        return chosen[has_ip], offsets[has_ip]

    # IP

    def _ipv4(self, chosen: Ints, offsets: Ints) -> _Packets:
        chosen, offsets = self._present(chosen, offsets, 20)
        sizes = (self._byte(chosen, offsets) & 0x0F) * 4
        totals = self._word(chosen, offsets + 2)
        is_bad = (sizes < 20) | ((totals > 0) & (totals < sizes))
        is_fragment = ~is_bad & (self._word(chosen, offsets + 6) & 0x3FFF != 0)
        self._leave(chosen[is_bad], Undissected.CUT_SHORT)
        self._leave(chosen[is_fragment], Undissected.FRAGMENT)
        # Total length 0: the network card was to cut this segment; all bytes belong to it.
        ends = np.where(totals, offsets + totals, self._frames.sizes[chosen])
        packets = _Packets(
            chosen,
            self._double(chosen, offsets + 12),
            self._double(chosen, offsets + 16),
            self._byte(chosen, offsets + 9),
            offsets + sizes,
            ends,
        )
        return packets.choose(~(is_bad | is_fragment))

    def _ipv6(self, chosen: Ints, offsets: Ints) -> _Packets:
        chosen, offsets = self._present(chosen, offsets, 40)
        sizes = self._word(chosen, offsets + 4)
        starts = offsets + 40
        ends = np.where(sizes, starts + sizes, self._frames.sizes[chosen])
        rows = np.arange(8, 40)[None] + (self._frames.starts[chosen] + offsets)[:, None]
        pairs = self._bytes[rows].reshape(-1, 16)
        numbers = self._addresses.number_ipv6(pairs).reshape(-1, 2) if len(pairs) else pairs
        sources, destinations = numbers[:, 0].astype(np.int64), numbers[:, -1].astype(np.int64)
        protocols = self._byte(chosen, offsets + 6)
        packets = _Packets(chosen, sources, destinations, protocols, starts, ends)
        while (extended := np.isin(packets.protocols, _IPV6_EXTENSIONS)).any():
            packets = self._behind_extension(packets, extended)
        is_fragment = packets.protocols == _IPV6_FRAGMENT
        self._leave(packets.frames[is_fragment], Undissected.FRAGMENT)
        return packets.choose(~is_fragment)

    def _behind_extension(self, packets: _Packets, extended: Flags) -> _Packets:
        is_cut = extended & (self._frames.sizes[packets.frames] < packets.starts + 2)
        self._leave(packets.frames[is_cut], Undissected.CUT_SHORT)
        packets, extended = packets.choose(~is_cut), extended[~is_cut]
        which = packets.frames[extended]
        starts = packets.starts[extended]
        is_authentication = packets.protocols[extended] == _IPV6_AUTHENTICATION
        lengths = self._byte(which, starts + 1)
        steps = np.where(is_authentication, (lengths + 2) * 4, (lengths + 1) * 8)
        packets.protocols[extended] = self._byte(which, starts)
        packets.starts[extended] = starts + steps
        return packets

    # Transports

    def _tcp(self, packets: _Packets) -> Segments:
        packets = self._with_header(packets, 20)
        chosen, starts = packets.frames, packets.starts
        header_sizes = (self._byte(chosen, starts + 12) >> 4) * 4
        is_bad = (header_sizes < 20) | (starts + header_sizes > packets.ends)
        self._leave(chosen[is_bad], Undissected.CUT_SHORT)
        packets, header_sizes = packets.choose(~is_bad), header_sizes[~is_bad]
        chosen, starts = packets.frames, packets.starts
        return self._segments(
            packets,
            starts + header_sizes,
            self._double(chosen, starts + 4),
            self._double(chosen, starts + 8),
            self._byte(chosen, starts + 13),
        )

    def _udp(self, packets: _Packets) -> Segments:
        packets = self._with_header(packets, 8)
        lengths = self._word(packets.frames, packets.starts + 4)
        ends = np.minimum(packets.ends, packets.starts + lengths)
        packets.ends = np.where(lengths >= 8, ends, packets.ends)
        nothing = np.zeros(len(packets.frames), np.int64)
        return self._segments(packets, packets.starts + 8, nothing, nothing, nothing)

    def _with_header(self, packets: _Packets, size: int) -> _Packets:
        is_there = self._frames.sizes[packets.frames] >= packets.starts + size
        self._leave(packets.frames[~is_there], Undissected.CUT_SHORT)
        return packets.choose(is_there)

    def _segments(
        self, packets: _Packets, payloads: Ints, sequences: Ints, acknowledged: Ints, flags: Ints
    ) -> Segments:
        chosen, ends = packets.frames, packets.ends
        there = self._frames.sizes[chosen]
        return Segments(
            chosen,
            packets.sources << 16 | self._word(chosen, packets.starts),
            packets.destinations << 16 | self._word(chosen, packets.starts + 2),
            self._frames.starts[chosen] + payloads,
            np.maximum(np.minimum(ends, there) - payloads, 0),  # behind `ends` is padding
            np.maximum(ends - np.maximum(payloads, there), 0),
            sequences,
            acknowledged,
            flags,
        )


def _in_order(segments: Segments) -> Segments:
    frames: Any = segments.frames
    if len(frames) < 2 or (frames[1:] > frames[:-1]).all():
        return segments
    return segments.choose(np.argsort(frames, kind="stable"))
