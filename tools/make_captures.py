"""Make captures of MSMQ sessions, with the truth about them beside.

    python -m tools.make_captures OUT --megabytes 100 --seed 1 --damage

Writes rotation sets of pcap and pcapng files: many sessions at once, both IP versions, VLAN tags,
segments cut anywhere, some late, some sent twice. With --damage also: segments that the capture
missed or cut, overlaps with other boundaries, broken packets, connections reset in the middle of a
packet, a file that ends in the middle of a frame. `truth.json` says for each session which messages
a reader must find and which it cannot find. The same seed makes the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import BinaryIO, Final

from falconmq.capture.frames import ACK, FIN, RST, SYN
from falconmq.wire import base_header, user_header
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.ordering_acks import OrderAck, OrderAckBody
from falconmq.wire.ping import Ping
from falconmq.wire.security_header import SecurityHeader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage

SET_BYTES: Final = 256 * 1024 * 1024
FILE_BYTES: Final = 128 * 1024 * 1024
EPOCH_NS: Final = 1_790_000_000 * 10**9
SEQUENCE_MARK: Final = 0x5EC0_5EC0_5EC0_5EC0
_SENT_TIME: Final = 52
_MESSAGE_ID: Final = 56
_SOURCE: Final = 16
_SESSION: Final = struct.Struct("<HHIHHHH")
_TCP_IPV4: Final = struct.Struct(">BBHHHBBH4s4sHHIIBBHHH")
_TCP_IPV6: Final = struct.Struct(">IHBB16s16sHHIIBBHHH")
_UDP_IPV4: Final = struct.Struct(">BBHHHBBH4s4sHHHH")


# Packets


@dataclass(slots=True)
class Template:
    """An encoded message whose numbers are filled in anew for each copy."""

    data: bytes
    transaction: int  # where its TransactionHeader is; 0 if it has none

    def fill(self, source: bytes, number: int, sent: int, place: tuple[int, int]) -> bytearray:
        packet = bytearray(self.data)
        packet[_SOURCE : _SOURCE + 16] = source
        struct.pack_into("<II", packet, _SENT_TIME, sent, number)
        if self.transaction:
            sequence, at = place
            struct.pack_into("<QII", packet, self.transaction + 4, sequence, at, at - 1)
        return packet


def make_templates(chance: random.Random) -> list[Template]:
    """Messages of many shapes."""
    templates = []
    for number in range(48):
        body = chance.randbytes(chance.choice((36, 120, 200, 300, 700, 1500, 4000)))
        label = chance.choice(("", f"order {number}", "Bestätigung Größe", "price 📈 update"))
        kind = number % 8
        destination = chance.choice((
            (7, f"TCP:10.1.0.{number}\\private$\\orders"), (3, 17), (5, chance.randbytes(16)),
        ))  # fmt: skip
        flags = destination[0] << user_header.DESTINATION_QUEUE_TYPE_SHIFT
        flags |= user_header.MESSAGE_PROPERTIES_HEADER
        transaction = security = debug = admin = response = None
        priority = number % 8
        if kind in (0, 1, 2):  # transactional
            transaction = TransactionHeader(0x0C, SEQUENCE_MARK, 1, 0)
            priority = 0
        if kind in (0, 1, 2, 3):
            flags |= 1 << user_header.DELIVERY_MODE_SHIFT
        if kind in (1, 4):
            security = SecurityHeader(0x41, chance.randbytes(28))
        if kind == 5:
            admin, response = "OS:clerk\\private$\\answers", 9
            flags |= 7 << user_header.ADMIN_QUEUE_TYPE_SHIFT
            flags |= 2 << user_header.RESPONSE_QUEUE_TYPE_SHIFT
        if number == 7:
            debug = DebugHeader(queue_identifier=chance.randbytes(16))
        address = bytes(16) if destination[0] == 7 else chance.randbytes(16)
        message = UserMessage(
            BaseHeader(priority, base_header.PACKET_SIZE_MIN, 345600),
            UserHeader(
                bytes(16), address, 0xFFFFFFFF, 0, 0, flags, destination[1], admin, response
            ),
            MessagePropertiesHeader(
                label=label, message_body=body, extension_data=chance.randbytes(number % 3)
            ),
            transaction=transaction,
            security=security,
            debug=debug,
        )
        data = message.encode()
        mark = data.find(struct.pack("<Q", SEQUENCE_MARK))
        templates.append(Template(data, mark - 4 if mark > 0 else 0))
    return templates


@dataclass(slots=True)
class Side:
    """One direction of a session: its bytes, as far as they are made, and where messages lie."""

    address: bytes
    port: int
    sequence: int
    position: int = 0  # of the next byte to send
    starts: list[int] = field(default_factory=list)  # of messages
    ends: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # their message ids
    damaged: list[tuple[int, int]] = field(default_factory=list)  # ranges nobody can read

    def hit(self) -> list[int]:
        """Messages of which bytes are gone or broken."""
        lost: set[int] = set()
        for begin, end in self.damaged:
            first = bisect_right(self.ends, begin)
            while first < len(self.starts) and self.starts[first] < end:
                lost.add(self.numbers[first])
                first += 1
        return sorted(lost)


# Sessions


@dataclass(slots=True)
class Frame:
    """An IP packet on its way into a file."""

    data: bytes
    keep: int | None = None  # bytes that the capture keeps


class Session:
    """One TCP connection, from SYN to its end."""

    def __init__(self, world: World, number: int) -> None:
        chance = world.chance
        self.world = world
        self.is_ipv6 = chance.random() < 0.2
        self.vlans = chance.choice((0, 0, 0, 1, 2))
        self.interface = int(self.is_ipv6)
        pool = 20
        ends = [world.managers[chance.randrange(pool)] for _ in range(2)]
        self.client_manager, self.server_manager = ends
        port = 20000 + number % 40000
        net = number // 40000
        self.client = Side(self._address(net, 7), port, self._first_sequence())
        self.server = Side(self._address(net, 8), 1801, self._first_sequence())
        self.sequence_id = chance.getrandbits(63)
        self.sent = self.answered = self.transactional = 0
        self.messages = chance.choice((3, 20, 100, 400, 1500))
        self.truth: dict[str, object] = {}

    def _address(self, net: int, host: int) -> bytes:
        if self.is_ipv6:
            return ip_address(f"fd00::{net:x}:{host}").packed
        return bytes((10, 1 + net, 0, host))

    def _first_sequence(self) -> int:
        near_the_wrap = self.world.chance.random() < 0.3
        return 2**32 - 5000 if near_the_wrap else self.world.chance.getrandbits(32)

    def frames(self) -> Iterator[Frame]:
        """All of it, one by one; the world decides when."""
        yield self._segment(True, b"", SYN)
        yield self._segment(False, b"", SYN | ACK)
        yield self._segment(True, b"", ACK)
        request = EstablishConnection.request(self.client_manager, uptime_ms=1)
        for from_client, data in (
            (True, request.encode()),
            (False, request.response(self.server_manager).encode()),
            (True, ConnectionParameters(500, 20000).encode()),
            (False, ConnectionParameters(500, 20000).encode()),
        ):
            yield from self._send(from_client, data)
        while self.sent < self.messages:
            yield from self._send(True, self._some_messages())
            yield from self._send(False, self._answers())
        yield from self._end()
        self.truth = self.told()

    def _some_messages(self) -> bytes:
        world, chance, side = self.world, self.world.chance, self.client
        parts: list[bytes | bytearray] = []
        position = side.position
        for _ in range(chance.randint(1, 16)):
            template = chance.choice(world.templates)
            self.sent += 1
            self.transactional += template.transaction > 0
            number = world.next_number(self.client_manager)
            place = self.sequence_id, max(self.transactional, 1)
            packet = template.fill(self.client_manager, number, world.seconds, place)
            if self.sent % 10 == 0:
                packet[2] |= base_header.SESSION_HEADER
                packet += _SESSION.pack(self.answered & 0xFFFF, 0, 0, self.sent & 0xFFFF, 0, 64, 0)
            side.starts.append(position)
            side.ends.append(position + len(packet))
            side.numbers.append(number)
            if world.damage and chance.random() < 0.001:
                world.break_packet(packet, side, position)
            position += len(packet)
            parts.append(packet)
        return b"".join(parts)

    def _answers(self) -> bytes:
        side, world = self.server, self.world
        parts = []
        if self.transactional and world.chance.random() < 0.5:
            number = world.next_number(self.server_manager)
            message = OrderAck(OrderAckBody.up_to(self.sequence_id, self.transactional))
            packet = message.to_user_message(
                source_queue_manager=self.server_manager,
                destination=self.client_manager,
                sent_time=world.seconds,
                message_id=number,
            ).encode()
            self.answered += 1
            side.starts.append(side.position)
            side.ends.append(side.position + len(packet))
            side.numbers.append(number)
            parts.append(packet)
        header = SessionHeader(self.sent & 0xFFFF, 0, 0, self.answered & 0xFFFF, 0)
        parts.append(SessionAck(header).encode())
        return b"".join(parts)

    def _end(self) -> Iterator[Frame]:
        if self.world.damage and self.world.chance.random() < 0.05:
            data = self._some_messages()
            side, cut = self.client, len(data) // 2
            end = side.position + cut
            yield from self._send(True, data[:cut])
            side.damaged.append((end, end + len(data)))
            self.world.note("reset in the middle of a packet")
            yield self._segment(False, b"", RST | ACK)
            return
        yield self._segment(True, b"", FIN | ACK)
        self.client.position += 1
        yield self._segment(False, b"", FIN | ACK)
        self.server.position += 1
        yield self._segment(True, b"", ACK)

    def _send(self, from_client: bool, data: bytes) -> Iterator[Frame]:
        """Segments of it, cut anywhere, and what may happen to them on the way."""
        chance = self.world.chance
        segments: list[Frame] = []
        side = self.client if from_client else self.server
        begin = side.position
        position = 0
        while position < len(data):
            size = 1440 if chance.random() < 0.7 else chance.randint(1, 1440)
            piece = data[position : position + size]
            segments += self._on_the_way(from_client, piece, position and data[:position])
            side.position += len(piece)
            position += len(piece)
        assert side.position == begin + len(data)
        for place in range(1, len(segments)):
            if chance.random() < 0.01:
                segments[place - 1], segments[place] = segments[place], segments[place - 1]
        yield from segments
        if chance.random() < 0.5:
            yield self._segment(not from_client, b"", ACK)

    def _on_the_way(self, from_client: bool, piece: bytes, before: bytes | int) -> list[Frame]:
        chance, damage = self.world.chance, self.world.damage
        segment = self._segment(from_client, piece, ACK)
        luck = chance.random()
        if luck < 0.01:
            return [segment, segment]  # sent twice
        if not damage or luck > 0.02:
            return [segment]
        side = self.client if from_client else self.server
        if luck < 0.012:
            self.world.note("a segment that the capture missed")
            side.damaged.append((side.position, side.position + len(piece)))
            return []
        if luck < 0.014 and len(piece) > 20:
            self.world.note("a frame that the capture cut")
            cut = chance.randint(1, len(piece) - 1)
            side.damaged.append((side.position + len(piece) - cut, side.position + len(piece)))
            return [Frame(segment.data, len(segment.data) - cut)]
        if isinstance(before, bytes):  # sent again, with other boundaries
            # Not so far back that it would bring what the capture missed.
            whole = side.position - max((end for _, end in side.damaged), default=0)
            early = min(len(before), whole, chance.randint(1, 900))
            if early <= 0:
                return [segment]
            again = before[-early:] + piece[: chance.randint(0, len(piece))]
            return [segment, self._segment(from_client, again, ACK, back=early)]
        return [segment]

    def _segment(self, from_client: bool, payload: bytes, flags: int, back: int = 0) -> Frame:
        one, other = (self.client, self.server) if from_client else (self.server, self.client)
        sequence = one.sequence + one.position - back
        acknowledged = other.sequence + other.position
        tail = (one.port, other.port, sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF, 0x50,
                flags, 0xFFFF, 0, 0)  # fmt: skip
        if flags & SYN:
            one.sequence += 1
        ends = one.address, other.address
        size = 20 + len(payload)
        if self.is_ipv6:
            return Frame(_TCP_IPV6.pack(6 << 28, size, 6, 64, *ends, *tail) + payload)
        head = (0x45, 0, 20 + size, 1, 0x4000, 64, 6, 0)
        return Frame(_TCP_IPV4.pack(*head, *ends, *tail) + payload)

    def told(self) -> dict[str, object]:
        return {
            "client": f"{ip_address(self.client.address)}:{self.client.port}",
            "client_manager": self.client_manager.hex(),
            "server_manager": self.server_manager.hex(),
            "sent": self.client.numbers,
            "sent_lost": self.client.hit(),
            "answered": self.server.numbers,
            "answered_lost": self.server.hit(),
        }


# Files


class World:
    """Everything that happens, in the order in which it is captured."""

    def __init__(self, seed: int, *, flows: int, damage: bool) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self.damage = damage
        self.flows = flows
        self.managers = [self.chance.randbytes(16) for _ in range(20)]
        self.templates = make_templates(self.chance)
        self.time_ns = EPOCH_NS
        self.sessions: list[dict[str, object]] = []
        self.damages: dict[str, int] = {}
        self.pings = 0
        self._active: list[tuple[Session, Iterator[Frame]]] = []
        self._numbers = dict.fromkeys(self.managers, 0)
        self._began = 0

    @property
    def seconds(self) -> int:
        return self.time_ns // 10**9

    def next_number(self, manager: bytes) -> int:
        self._numbers[manager] += 1
        return self._numbers[manager]

    def note(self, damage: str) -> None:
        self.damages[damage] = self.damages.get(damage, 0) + 1

    def break_packet(self, packet: bytearray, side: Side, position: int) -> None:
        """So that nobody can decode it, and its size stays right unless its start is broken."""
        if self.chance.random() < 0.5:
            self.note("a packet without its signature")
            packet[4:8] = b"RIOL"
        else:
            self.note("a packet with an impossible header")
            packet[_MESSAGE_ID + 4 : _MESSAGE_ID + 8] = bytes(4)  # UserHeader.Flags
        side.damaged.append((position, position + len(packet)))

    def frames(self) -> Iterator[tuple[Session | None, Frame]]:
        """Without end: sessions come and go."""
        active = self._active
        while True:
            while len(active) < self.flows:
                session = Session(self, self._began)
                self._began += 1
                active.append((session, session.frames()))
            place = self.chance.randrange(len(active))
            session, frames = active[place]
            for _ in range(self.chance.randint(1, 8)):
                frame = next(frames, None)
                if frame is None:
                    self.sessions.append(session.truth)
                    del active[place]
                    break
                self.time_ns += self.chance.randint(1000, 60000)
                yield session, frame
            if self.chance.random() < 0.0005:
                self.pings += 1
                yield None, self._ping()

    def finish(self) -> None:
        """The capture stops; what some sessions were about to send is not in it."""
        for session, _ in self._active:
            self.sessions.append(session.told() | {"is_open": True})

    def _ping(self) -> Frame:
        ping = Ping.request(self.pings, self.managers[0]).encode()
        ends = bytes((10, 1, 0, 7)), bytes((10, 1, 0, 8))
        head = (0x45, 0, 28 + len(ping), 1, 0, 64, 17, 0)
        return Frame(_UDP_IPV4.pack(*head, *ends, 4000, 3527, 8 + len(ping), 0) + ping)


def on_ethernet(frame: bytes, vlans: int) -> bytes:
    kind = b"\x08\x00" if frame[0] >> 4 == 4 else b"\x86\xdd"
    data = bytes(12) + b"\x81\x00\x00\x07" * vlans + kind + frame
    return data + bytes(60 - len(data)) if len(data) < 60 else data


class Writer:
    """One capture file: pcap in either byte order, or pcapng with two interfaces."""

    def __init__(self, file: BinaryIO, kind: str) -> None:
        self._file, self._kind = file, kind
        self.size = 0
        self.frames = 0
        order = ">" if kind == "pcap-big" else "<"
        self._record = struct.Struct(order + "IIII")
        if kind == "pcapng":
            self._put(_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
            option = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
            for link_type in (1, 101):
                self._put(_block(1, struct.pack("<HHI", link_type, 0, 0) + option))
        else:
            magic = 0xA1B23C4D if kind == "pcap-big" else 0xA1B2C3D4
            link_type = 113 if kind == "pcap-cooked" else 1
            self._put(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link_type))

    def write(self, time_ns: int, session: Session | None, frame: Frame) -> None:
        vlans = session.vlans if session is not None else 0
        raw = self._kind == "pcapng" and session is not None and session.interface == 1
        if raw:
            data = frame.data
        elif self._kind == "pcap-cooked":
            is_ipv4 = frame.data[0] >> 4 == 4
            data = bytes(14) + (b"\x08\x00" if is_ipv4 else b"\x86\xdd") + frame.data
        else:
            data = on_ethernet(frame.data, vlans)
        size = len(data)
        if frame.keep is not None:
            data = data[: size - (len(frame.data) - frame.keep)]
        self.frames += 1
        if self._kind == "pcapng":
            head = struct.pack(
                "<IIIII", int(raw), time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), size
            )
            self._put(_block(6, head + data))
            return
        seconds, rest = divmod(time_ns, 10**9)
        rest = rest if self._kind == "pcap-big" else rest // 1000
        self._put(self._record.pack(seconds, rest, len(data), size) + data)

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)


def _block(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


KINDS: Final = ("pcap", "pcapng", "pcap-big", "pcap-cooked")


def make(
    out: Path, megabytes: float, seed: int, *, flows: int = 100, damage: bool = False
) -> list[Path]:
    """Write the sets and the truth; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    left = int(megabytes * 1_000_000)
    truth: dict[str, object] = {"seed": seed, "damage": damage, "sets": {}}
    files: list[Path] = []
    sets = max(1, min(len(KINDS), left // 200_000), -(-left // SET_BYTES))
    for number in range(sets):
        world = World(seed * 1000 + number, flows=flows, damage=damage)
        name = f"traffic-{number:02d}"
        written = _write_set(out, name, KINDS[number % len(KINDS)], world, left // sets)
        files += [path for path, _ in written]
        truth["sets"][name] = {  # type: ignore[index]  # JSON
            "files": {path.name: frames for path, frames in written},
            "sessions": world.sessions,
            "damages": world.damages,
            "pings": world.pings,
        }
    (out / "truth.json").write_text(json.dumps(truth))
    return files


def _write_set(out: Path, name: str, kind: str, world: World, size: int) -> list[tuple[Path, int]]:
    """Files of a set; the sessions that are open when it is full go on to their end."""
    suffix = "pcapng" if kind == "pcapng" else "pcap"
    parts = max(2, -(-size // FILE_BYTES))
    frames = world.frames()
    written = []
    for part in range(parts):
        path = out / f"{name}_{part + 1:05d}.{suffix}"
        with path.open("wb", buffering=1 << 20) as file:
            writer = Writer(file, kind)
            while writer.size < size / parts:
                session, frame = next(frames)
                writer.write(world.time_ns, session, frame)
        written.append((path, writer.frames))
    world.finish()
    if world.damage:
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - 7)
        world.note("a file that ends in the middle of a frame")
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flows", type=int, default=100, help="sessions at any moment of a set")
    parser.add_argument("--damage", action="store_true")
    options = parser.parse_args()
    files = make(
        options.out, options.megabytes, options.seed, flows=options.flows, damage=options.damage
    )
    size = sum(path.stat().st_size for path in files)
    print(f"{len(files)} files, {size / 1e6:.0f} MB, in {options.out}")


if __name__ == "__main__":
    main()
