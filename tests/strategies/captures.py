"""Captures built byte by byte: files, frames, TCP connections, and ways to mangle them."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from hypothesis import strategies as st

from falconmq.capture.frames import ACK, FIN, RST, SYN

CLIENT = ("10.0.0.7", 49759)
SERVER = ("10.0.0.8", 1801)
T0 = 1_700_000_000_000_000_000  # 2023-11-14T22:13:20Z
MS = 1_000_000
Peer = tuple[str, int]
Timed = tuple[int, bytes]  # nanoseconds, frame


# Files


def pcap(
    frames: Iterable[Timed],
    *,
    order: str = "<",
    nanoseconds: bool = False,
    link_type: int = 1,
    snap_length: int = 262144,
) -> bytes:
    """A classic capture; frames longer than `snap_length` are cut as tcpdump cuts them."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_length, link_type)]
    for time_ns, frame in frames:
        seconds, fraction = divmod(time_ns, 10**9)
        cut = frame[:snap_length]
        fraction = fraction if nanoseconds else fraction // 1000
        parts += [struct.pack(order + "IIII", seconds, fraction, len(cut), len(frame)), cut]
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Any block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    link_type: int = 1,
    *,
    order: str = "<",
    snap_length: int = 0,
    resolution: int | None = None,
    offset_seconds: int | None = None,
) -> bytes:
    """Interface Description Block; the options only where they differ from the default."""
    options = struct.pack(order + "HH4s", 2, 4, b"eth0")
    if resolution is not None:
        options += struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset_seconds is not None:
        options += struct.pack(order + "HHq", 14, 8, offset_seconds)
    options += struct.pack(order + "HH", 0, 0)
    return block(1, struct.pack(order + "HHI", link_type, 0, snap_length) + options, order)


def enhanced(
    units: int, frame: bytes, *, order: str = "<", index: int = 0, original: int | None = None
) -> bytes:
    size = len(frame) if original is None else original
    head = struct.pack(order + "IIIII", index, units >> 32, units & 0xFFFFFFFF, len(frame), size)
    return block(6, head + frame, order)


def obsolete(units: int, frame: bytes, *, order: str = "<", index: int = 0) -> bytes:
    low = units & 0xFFFFFFFF
    head = struct.pack(order + "HHIIII", index, 0, units >> 32, low, len(frame), len(frame))
    return block(2, head + frame, order)


def simple(frame: bytes, *, order: str = "<", original: int | None = None) -> bytes:
    size = len(frame) if original is None else original
    return block(3, struct.pack(order + "I", size) + frame, order)


# Frames


def tcp(
    source: Peer,
    destination: Peer,
    sequence: int,
    payload: bytes = b"",
    *,
    flags: int = ACK,
    acknowledged: int = 0,
    options: bytes = b"",
) -> bytes:
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(
        ">HHIIBBHHH",
        source[1],
        destination[1],
        sequence & 0xFFFFFFFF,
        acknowledged & 0xFFFFFFFF,
        offset,
        flags,
        0xFFFF,
        0,
        0,
    )
    return ip(source[0], destination[0], 6, head + options + payload)


def udp(source: Peer, destination: Peer, payload: bytes) -> bytes:
    head = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0)
    return ip(source[0], destination[0], 17, head + payload)


def ip(source: str, destination: str, protocol: int, payload: bytes) -> bytes:
    """IPv4 or IPv6, as the addresses say."""
    ends = ip_address(source).packed + ip_address(destination).packed
    if len(ends) == 8:
        size = 20 + len(payload)
        return struct.pack(">BBHHHBBH", 0x45, 0, size, 1, 0x4000, 64, protocol, 0) + ends + payload
    return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload


def ethernet(packet: bytes, *, vlans: Sequence[int] = ()) -> bytes:
    """With VLAN tags, outermost first, and padded to the 60 bytes that Ethernet demands."""
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    tags = b"".join(struct.pack(">HH", tag, 7) for tag in vlans)
    frame = bytes(12) + tags + struct.pack(">H", kind) + packet
    return frame + b"\xee" * (60 - len(frame))


# Connections


@dataclass
class Connection:
    """Writes the frames of a TCP connection; each call adds one, a millisecond later."""

    client: Peer = CLIENT
    server: Peer = SERVER
    client_sequence: int = 1000
    server_sequence: int = 5000
    time_ns: int = T0
    frames: list[Timed] = field(default_factory=list)

    def open(self) -> Connection:
        self._add(True, b"", SYN)
        self.client_sequence += 1
        self._add(False, b"", SYN | ACK)
        self.server_sequence += 1
        self._add(True, b"", ACK)
        return self

    def send(self, payload: bytes, *, from_client: bool = True, mss: int = 1460) -> Connection:
        for start in range(0, len(payload), mss):
            piece = payload[start : start + mss]
            self._add(from_client, piece, ACK)
            self._advance(from_client, len(piece))
        return self

    def lose(self, payload: bytes, *, from_client: bool = True) -> Connection:
        """The same as `send`, but the capture missed it."""
        self._advance(from_client, len(payload))
        return self

    def close(self) -> Connection:
        for from_client in (True, False):
            self._add(from_client, b"", FIN | ACK)
            self._advance(from_client, 1)
        return self

    def reset(self, *, from_client: bool = True) -> Connection:
        self._add(from_client, b"", RST | ACK)
        return self

    def _advance(self, from_client: bool, size: int) -> None:
        if from_client:
            self.client_sequence += size
        else:
            self.server_sequence += size

    def _add(self, from_client: bool, payload: bytes, flags: int) -> None:
        ends = (self.client, self.server) if from_client else (self.server, self.client)
        numbers = (self.client_sequence, self.server_sequence)
        sequence, acknowledged = numbers if from_client else numbers[::-1]
        frame = tcp(*ends, sequence, payload, flags=flags, acknowledged=acknowledged)
        self.frames.append((self.time_ns, ethernet(frame)))
        self.time_ns += MS


@st.composite
def mangled_segments(draw: st.DrawFn, stream: bytes, window: int = 6) -> list[tuple[int, bytes]]:
    """(position, bytes) that together carry the stream: cut anywhere, some sent twice, some with
    overlaps, each at most `window` places from where it belongs. The first one stays first."""
    cuts = draw(st.lists(st.integers(0, len(stream)), max_size=30))
    edges = sorted({0, len(stream), *cuts})
    segments = []
    for start, end in itertools.pairwise(edges):
        segments.append((start, stream[start:end]))
        if draw(st.integers(0, 4)) == 0:  # sent again, with other boundaries
            early = max(0, start - draw(st.integers(0, 40)))
            late = min(len(stream), end + draw(st.integers(0, 40)))
            segments.append((early, stream[early:late]))
    places = [(place + draw(st.integers(0, window)), place) for place in range(len(segments))]
    return [segments[place] for _, place in sorted(places)]
