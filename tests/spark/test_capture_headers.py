"""Headers of frames: all at once gives what `capture.frames` gives one by one."""

from __future__ import annotations

import io
import random
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.capture.frames import (
    Dissection,
    TcpSegment,
    UdpDatagram,
    dissect,
)
from falconmq.capture.pcap import read_capture
from falconmq.spark.capture.files import read_frames
from falconmq.spark.capture.headers import Addresses, Segments, dissect_frames, lanes_of
from tests.strategies.captures import (
    CLIENT,
    SERVER,
    T0,
    enhanced,
    ethernet,
    interface,
    pcap,
    section,
    tcp,
    udp,
)

LINKS = (1, 1, 1, 0, 12, 101, 108, 113, 228, 276, 999)
EXTENSIONS = (0, 43, 60, 135, 51, 44)


def quickly(content: bytes) -> dict[int, Dissection]:
    found: dict[int, Dissection] = {}
    addresses = Addresses()
    for frames in read_frames(memoryview(content)):
        dissected = dissect_frames(frames, addresses)
        for number, segment in _each(dissected.segments, addresses, content):
            found[frames.first + number] = segment
        for number, segment in _each(dissected.datagrams, addresses, content):
            datagram = UdpDatagram(
                segment.source, segment.destination, segment.payload, segment.missing
            )
            found[frames.first + number] = datagram
        for why, places in dissected.left_out.items():
            found |= {frames.first + place: why for place in places.tolist()}
    return found


def _each(segments: Segments, addresses: Addresses, content: bytes) -> list[tuple[int, TcpSegment]]:
    found = []
    for place in range(len(segments)):
        start, size = int(segments.starts[place]), int(segments.sizes[place])
        segment = TcpSegment(
            addresses.endpoint(int(segments.sources[place])),
            addresses.endpoint(int(segments.destinations[place])),
            int(segments.sequences[place]),
            int(segments.acknowledged[place]),
            int(segments.flags[place]),
            content[start : start + size],
            int(segments.missing[place]),
        )
        found.append((int(segments.frames[place]), segment))
    return found


def some_packet(chance: random.Random) -> bytes:
    if chance.random() < 0.6:
        one, other = ((f"10.0.0.{chance.randint(1, 3)}", chance.choice((1801, 5))) for _ in "ab")
    else:
        one, other = ((f"fe80::{chance.randint(1, 3):x}", 1801) for _ in "ab")
    if chance.random() < 0.7:
        payload = chance.randbytes(chance.randint(0, 60))
        options = bytes(chance.choice((0, 4, 12)))
        packet = tcp(one, other, chance.getrandbits(32), payload, flags=0x18, options=options)
    else:
        packet = udp(one, other, chance.randbytes(chance.randint(0, 40)))
    if packet[0] >> 4 == 6 and chance.random() < 0.5:
        packet = _extended(chance, packet)
    damaged = bytearray(packet)
    if chance.random() < 0.1:  # the network card was to cut this one: no length yet
        damaged[2:4] = bytes(2) if packet[0] >> 4 == 4 else damaged[2:4]
        damaged[4:6] = bytes(2) if packet[0] >> 4 == 6 else damaged[4:6]
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        damaged[chance.randrange(min(len(damaged), 60))] = chance.getrandbits(8)
    return bytes(damaged)


def _extended(chance: random.Random, packet: bytes) -> bytes:
    kinds = [chance.choice(EXTENSIONS) for _ in range(chance.randint(1, 3))]
    extensions = b""
    for kind, following in zip(kinds, [*kinds[1:], packet[6]], strict=True):
        size = chance.choice((0, 1, 4)) if kind == 51 else chance.choice((0, 0, 1))
        extensions += bytes((following, size)) + bytes(10 if kind == 51 else 6)
    length = struct.pack(">H", len(packet) - 40 + len(extensions))
    return packet[:4] + length + bytes((kinds[0],)) + packet[7:40] + extensions + packet[40:]


def some_frame(chance: random.Random, link_type: int) -> bytes:
    packet = some_packet(chance)
    if link_type == 1:
        tags = [
            chance.choice((0x8100, 0x88A8, 0x9100)) for _ in range(chance.choice((0, 0, 1, 2, 4)))
        ]
        frame = ethernet(packet, vlans=tags)
    elif link_type in (0, 108):
        frame = bytes(4) + packet
    elif link_type in (113, 276):
        kind = struct.pack(">H", chance.choice((0x0800, 0x86DD, 5)))
        frame = bytes(14) + kind + packet if link_type == 113 else kind + bytes(18) + packet
    else:
        frame = packet
    return frame[: chance.randint(0, len(frame))] if chance.random() < 0.2 else frame


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_any_frames_give_the_same_segments(seed: int) -> None:
    chance = random.Random(seed)
    links = [chance.choice(LINKS) for _ in range(3)]
    parts = [section(), *(interface(link, resolution=9) for link in links)]
    for _ in range(chance.randint(0, 25)):
        index = chance.randrange(3)
        parts.append(enhanced(T0, some_frame(chance, links[index]), index=index))
    content = b"".join(parts)
    expected = {frame.number: dissect(frame) for frame in read_capture(io.BytesIO(content))}
    assert quickly(content) == expected


def test_any_bytes_are_dissected_alike() -> None:
    chance = random.Random(5)
    frames = [(T0, chance.randbytes(chance.randint(0, 90))) for _ in range(3000)]
    content = pcap(frames, link_type=101)
    expected = {frame.number: dissect(frame) for frame in read_capture(io.BytesIO(content))}
    assert quickly(content) == expected


def test_both_directions_have_the_same_lane() -> None:
    frames = []
    for number in range(200):
        client = (CLIENT[0] if number % 2 else "fe80::1", 1000 + number)
        server = SERVER if number % 2 else ("fe80::2", 1801)
        frames += [(T0, ethernet(tcp(client, server, 1))), (T0, ethernet(tcp(server, client, 1)))]
    (stretch,) = read_frames(memoryview(pcap(frames)))
    lanes = lanes_of(dissect_frames(stretch, Addresses()).segments, 4).tolist()
    assert lanes[::2] == lanes[1::2]
    assert set(lanes) == {0, 1, 2, 3}
