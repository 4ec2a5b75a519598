"""Traffic of any kind from a seed, and what the wire layer's own reader finds in it."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from falconmq.capture.frames import ACK, FIN, RST, SYN
from falconmq.capture.packets import CapturedPacket, CaptureReader
from falconmq.capture.pcap import CaptureError, read_capture
from falconmq.spark.capture.files import NO_TIME
from falconmq.spark.capture.reading import Datagrams, SetReader
from falconmq.spark.capture.streams import Direction, Gap, Whole
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.strategies.captures import T0, Peer, Timed, ethernet, tcp, udp
from tools.make_captures import make_templates

TEMPLATES = [template.data for template in make_templates(random.Random(7))]
PACKETS = [
    EstablishConnection.request(bytes(range(16)), uptime_ms=5).encode(),
    ConnectionParameters(500, 20000).encode(),
    SessionAck(SessionHeader(1, 0, 0, 1, 0)).encode(),
    *sorted(TEMPLATES, key=len)[:6],
]


class Seen(NamedTuple):
    """A packet, or bytes that are none, as both readers tell it."""

    source: str
    destination: str
    frame: int
    time_ns: int | None
    data: bytes
    size: int
    problem: str
    lost: int
    from_client: bool | None
    started_ns: int | None
    is_whole: bool | None


def traffic(chance: random.Random) -> list[Timed]:
    """Frames of some connections at once: everything that can happen to segments does."""
    connections = [_connection(chance) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.2:
        ping = udp(("10.0.0.1", 4000), ("10.0.0.9", 3527), bytes(chance.randint(0, 30)))
        connections.append([ping] * 3)
    frames = []
    while connections := [frames_of for frames_of in connections if frames_of]:
        frames.append(chance.choice(connections).pop(0))
    return [(T0 + place * 1000, ethernet(frame)) for place, frame in enumerate(frames)]


def _connection(chance: random.Random) -> list[bytes]:
    port = chance.choice((1801, 1801, 9000))
    client: Peer = (f"10.0.0.{chance.randint(1, 2)}", chance.choice((5000, 5001)))
    server: Peer = ("10.0.0.9", port)
    if chance.random() < 0.2:
        client, server = ("fe80::1", 5000), ("fe80::2", port)
    streams = {True: _stream(chance), False: _stream(chance)}
    segments = [(True, -1, b"", SYN), (False, -1, b"", SYN | ACK)] * (chance.random() < 0.8)
    segments += _segments(chance, streams)
    segments += _end(chance, streams)
    if chance.random() < 0.1:
        stray = (chance.random() < 0.5, chance.randint(-5, 50), b"", chance.choice((SYN, FIN, RST)))
        segments.insert(chance.randint(0, len(segments)), stray)
    base = {
        True: chance.choice((1000, 2**32 - 300, chance.getrandbits(32))),
        False: chance.choice((5000, 2**32 - 50)),
    }
    sent = {True: 0, False: 0}
    frames = []
    for from_client, position, payload, flags in segments:
        sent[from_client] = max(sent[from_client], position + len(payload))
        acknowledged = base[not from_client] + sent[not from_client]
        acknowledged -= chance.choice((0, 0, 0, 0, 100))
        if chance.random() < 0.01:
            acknowledged = chance.getrandbits(32)
        ends = (client, server) if from_client else (server, client)
        sequence = base[from_client] + position
        frames.append(tcp(*ends, sequence, payload, flags=flags, acknowledged=acknowledged))
    return frames


Segment = tuple[bool, int, bytes, int]


def _stream(chance: random.Random) -> bytes:
    """Packets, or what only looks a little like them."""
    stream = b"".join(chance.choice(PACKETS) for _ in range(chance.randint(0, 6)))
    luck = chance.random()
    if luck < 0.15:
        return bytes(chance.randint(1, 40)) + stream
    if luck < 0.3:
        place = chance.randint(0, len(stream))
        return stream[:place] + b"\x55" * chance.randint(1, 30) + stream[place:]
    if luck < 0.4:
        return stream[: chance.randint(0, len(stream))]
    return chance.randbytes(300) if luck < 0.5 else stream


def _segments(chance: random.Random, streams: dict[bool, bytes]) -> list[Segment]:
    """Cut anywhere; some lost, some again and with other boundaries, some out of order."""
    segments: list[Segment] = []
    at = {True: 0, False: 0}
    while left := [side for side in at if at[side] < len(streams[side])]:
        side = chance.choice(left)
        size = chance.choice((chance.randint(1, 8), chance.randint(1, 200), 200, 600))
        begin, at[side] = at[side], min(at[side] + size, len(streams[side]))
        if chance.random() < 0.05:
            continue
        segments.append((side, begin, streams[side][begin : at[side]], ACK))
        if chance.random() < 0.08:
            early = max(0, at[side] - chance.randint(0, 300))
            again = streams[side][early : early + chance.randint(0, 400)]
            segments.append((side, early, again, ACK))
        if chance.random() < 0.2:
            segments.append((not side, at[not side], b"", ACK))
    for _ in range(chance.choice((0, 0, 1, 4)) if len(segments) > 2 else 0):
        one = chance.randrange(len(segments))
        other = min(len(segments) - 1, one + chance.randint(0, 5))
        segments[one], segments[other] = segments[other], segments[one]
    return segments


def _end(chance: random.Random, streams: dict[bool, bytes]) -> list[Segment]:
    client, server = len(streams[True]), len(streams[False])
    luck = chance.random()
    if luck < 0.5:
        end = [(True, client, b"", FIN | ACK), (False, server, b"", FIN | ACK)]
        return end + [(True, client, b"late", ACK)] * (luck < 0.1)
    return [(True, client, b"", RST)] if luck < 0.65 else []


# The two readers


class SlowSetReader(CaptureReader):
    """The wire layer's own reader, over several files that follow each other."""

    def __init__(self, contents: Sequence[bytes]) -> None:
        super().__init__(io.BytesIO())
        self._contents = contents
        self.damages: list[str] = []

    def all_packets(self) -> list[CapturedPacket]:
        found: list[CapturedPacket] = []
        passed = 0
        for content in self._contents:
            begun = self.totals.frames
            try:
                for frame in read_capture(io.BytesIO(content)):
                    frame.number += passed
                    found += self._frame(frame)
            except CaptureError as error:
                self.damages.append(str(error))
            passed += self.totals.frames - begun
        for event in self._reassembler.finish():
            found += self._stream_event(event)
        return found


def seen_slowly(contents: Sequence[bytes]) -> tuple[list[Seen], list[str]]:
    reader = SlowSetReader(contents)
    found = []
    for packet in reader.all_packets():
        talk = packet.conversation
        found.append(
            Seen(
                str(packet.source),
                str(packet.destination),
                packet.frame,
                packet.time_ns,
                packet.data,
                packet.size,
                packet.problem,
                packet.lost,
                None if talk is None else packet.from_client,
                None if talk is None else talk.started_ns,
                None if talk is None else talk.is_whole,
            )
        )
    return found, reader.damages


def seen_quickly(
    contents: Sequence[bytes], folder: Path, *, stretch_bytes: int = 1 << 26, lanes: int = 1
) -> tuple[list[Seen], list[str]]:
    paths = []
    for place, content in enumerate(contents):
        path = folder / f"capture-{place}"
        path.write_bytes(content)
        paths.append(str(path))
    found: list[Seen] = []
    damages: list[str] = []
    for lane in range(lanes):
        reader = SetReader(paths, lane=lane, lanes=lanes, stretch_bytes=stretch_bytes)
        for stretch in reader.stretches():
            for item in stretch.found:
                if isinstance(item, Whole):
                    found += _whole(item)
                elif not isinstance(item, Gap):
                    cut = item.cut
                    facts = (cut.data, cut.size, cut.problem, cut.lost)
                    found.append(_seen(item.direction, item.frame, item.time_ns, *facts))
            if stretch.pings is not None:
                found += _pings(stretch.pings, reader)
            if stretch.file is not None and stretch.file.damage is not None and not lane:
                damages.append(str(stretch.file.damage))
    return found, damages


def _whole(whole: Whole) -> list[Seen]:
    places = zip(whole.frames.tolist(), whole.times.tolist(), strict=True)
    pieces = zip(whole.starts, whole.lengths, strict=True)
    return [
        _seen(whole.direction, frame, time, whole.data[start : start + size], size, "", 0)
        for (start, size), (frame, time) in zip(pieces, places, strict=True)
    ]


def _seen(
    direction: Direction, frame: int, time: int, data: bytes, size: int, problem: str, lost: int
) -> Seen:
    talk = direction.flow.conversation
    ends = (talk.client, talk.server) if direction.from_client else (talk.server, talk.client)
    return Seen(
        str(ends[0]),
        str(ends[1]),
        frame,
        _time(time),
        data,
        size,
        problem,
        lost,
        direction.from_client,
        talk.started_ns,
        talk.is_whole,
    )


def _pings(pings: Datagrams, reader: SetReader) -> list[Seen]:
    found = []
    for place, payload in enumerate(pings.payloads):
        source = reader.addresses.endpoint(int(pings.segments.sources[place]))
        destination = reader.addresses.endpoint(int(pings.segments.destinations[place]))
        missing = int(pings.segments.missing[place])
        found.append(
            Seen(
                str(source),
                str(destination),
                int(pings.frames[place]),
                _time(int(pings.times[place])),
                payload,
                len(payload) + missing,
                "the capture cut it short" if missing else "",
                0,
                None,
                None,
                None,
            )
        )
    return found


def _time(time_ns: int) -> int | None:
    return None if time_ns == NO_TIME else time_ns


def by_direction(found: list[Seen]) -> dict[tuple[object, ...], list[Seen]]:
    """Each direction's packets in order; connections may come in any order."""
    sorted_out: dict[tuple[object, ...], list[Seen]] = {}
    for seen in found:
        key = (seen.source, seen.destination, seen.from_client, seen.started_ns, seen.is_whole)
        sorted_out.setdefault(key, []).append(seen)
    return sorted_out
