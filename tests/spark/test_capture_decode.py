"""Packets to rows: the columns of many at once are those of each alone."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.capture.frames import Endpoint
from falconmq.capture.reassembly import Conversation
from falconmq.spark.capture.facts import MALFORMED, Row, packet_facts
from falconmq.spark.capture.flows import Tally
from falconmq.spark.capture.numbering import UNKNOWN, number_messages
from falconmq.spark.capture.reading import SetReader
from falconmq.spark.capture.rows import RowMaker
from falconmq.spark.capture.shapes import recognise
from falconmq.spark.capture.streams import Cutter, Direction, Flow
from falconmq.spark.capture.tables import PACKET_FACTS, TABLES, array
from falconmq.spark.capture.views import Ints, ints
from falconmq.wire.base_header import SESSION_HEADER
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.ordering_acks import FinalAck, FinalAckBody, OrderAck, OrderAckBody
from falconmq.wire.ping import Ping
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.spark.captures import PACKETS, TEMPLATES
from tests.strategies.captures import MS, T0, Connection, ethernet, pcap, udp

MANAGER = bytes(range(16))
SEQUENCE = 2**63 + 5  # does not fit a signed number


def _acknowledgements() -> Iterable[bytes]:
    for destination in (MANAGER, "10.0.0.1"):
        where: dict[str, Any] = {
            "source_queue_manager": MANAGER,
            "destination": destination,
            "sent_time": 5,
            "message_id": 3,
        }
        yield OrderAck(OrderAckBody.up_to(SEQUENCE, 7)).to_user_message(**where).encode()
        about = FinalAckBody(SEQUENCE, 6, 5, MANAGER, 77)
        for fate in (0x4000, 0xC001):
            yield FinalAck(about, fate).to_user_message(**where).encode()


REQUEST = EstablishConnection.request(MANAGER, uptime_ms=1)
ALL = [
    *TEMPLATES,
    *_acknowledgements(),
    *PACKETS[:2],
    EstablishConnection.request(MANAGER, uptime_ms=1)
    .response(MANAGER[::-1], refused=True)
    .encode(),
    SessionAck(SessionHeader(1, 2, 3, 4, 5)).encode(),
]


def with_session(packet: bytes, session: SessionHeader) -> bytes:
    """A user message with a SessionHeader behind it."""
    return packet[:2] + bytes((packet[2] | SESSION_HEADER,)) + packet[3:] + session.encode()


def mangled(chance: random.Random) -> bytes | None:
    """A packet with some bytes changed; None if it no longer is where the framing says."""
    data = bytearray(chance.choice(ALL))
    if chance.random() < 0.3 and not data[2] & 8:
        data = bytearray(with_session(bytes(data), SessionHeader(*chance.choices(range(9), k=5))))
    for _ in range(chance.choice((0, 0, 1, 1, 3))):
        place = chance.choice((2, 3, 18, 19, -30, *range(56, min(len(data), 260))))
        if place % len(data) >= 12 or place in (2, 3):  # the framing vouches for the others
            data[place % len(data)] = chance.choice((0, 1, 2, 4, 16, 17, 32, 64, 255))
    flags, size = struct.unpack_from("<2xHxxxxI", data)
    length = size + 16 if flags & 0x18 == 0x10 else size
    return bytes(data[:length]) if length <= len(data) else None


def packed(packets: list[bytes]) -> tuple[bytes, Ints, Ints]:
    lengths = ints([len(packet) for packet in packets])
    return b"".join(packets), np.cumsum(lengths) - lengths, lengths


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_packets_that_are_recognised_have_the_facts_of_the_wire_layer(seed: int) -> None:
    chance = random.Random(seed)
    packets = [packet for _ in range(40) if (packet := mangled(chance)) is not None]
    facts = [packet_facts(packet) for packet in packets]
    for rows, columns in recognise(*packed(packets)):
        for name, _ in PACKET_FACTS:
            expected = array(name, [facts[row].get(name) for row in rows.tolist()])
            assert columns.get(name, pa.nulls(len(rows), expected.type)).equals(expected), name


def test_packets_of_common_shapes_are_recognised() -> None:
    recognised = {row for rows, _ in recognise(*packed(ALL)) for row in rows.tolist()}
    assert recognised == set(range(len(ALL)))


def direction(*, is_whole: bool = True) -> Direction:
    ends = Endpoint(bytes(4), 1), Endpoint(bytes(4), 1801)
    flow = Flow(Conversation(1, *ends, T0, is_whole), Tally(1), "a flow")
    return Direction(flow, True, Cutter())


def numbers(of: Direction, *packets: bytes, trouble: tuple[int, ...] = ()) -> list[int]:
    owners = np.zeros(len(packets), np.int64)
    behind = np.isin(np.arange(len(packets)), trouble)
    found, _ = number_messages(*packed(list(packets)), owners, [of], behind)
    return [int(number) for number in found]


def test_messages_of_a_whole_session_count_from_one() -> None:
    one = direction()
    assert numbers(one, PACKETS[0], TEMPLATES[0], PACKETS[2], TEMPLATES[1]) == [-1, 1, -1, 2]
    assert numbers(one, TEMPLATES[0]) == [3]


def test_a_session_header_says_where_its_side_is() -> None:
    one = direction(is_whole=False)
    claim = with_session(TEMPLATES[0], SessionHeader(0, 0, 0, 0xFFFF, 0))
    assert numbers(one, TEMPLATES[0], claim, TEMPLATES[0]) == [UNKNOWN, 0xFFFF, 0x10000]
    # two messages got lost, and the count has wrapped
    claim = with_session(TEMPLATES[0], SessionHeader(0, 0, 0, 3, 0))
    assert numbers(one, claim, TEMPLATES[0]) == [0x10003, 0x10004]


def test_behind_lost_bytes_no_number_is_known_until_a_header_says_it() -> None:
    one = direction()
    assert numbers(one, *TEMPLATES[:3], trouble=(1,)) == [1, UNKNOWN, UNKNOWN]
    assert numbers(one, TEMPLATES[0]) == [UNKNOWN]
    claim = with_session(TEMPLATES[0], SessionHeader(0, 0, 0, 7, 0))
    assert numbers(one, TEMPLATES[0], claim, TEMPLATES[0]) == [UNKNOWN, 7, 8]
    assert numbers(one, claim, TEMPLATES[0], trouble=(0, 1)) == [7, UNKNOWN]


def test_acknowledged_numbers_do_not_wrap() -> None:
    one = direction()
    acks = [
        SessionAck(SessionHeader(number & 0xFFFF, 0, 0, 0, 0)).encode()
        for number in range(0, 200_000, 30_000)
    ]
    owners = np.zeros(len(acks), np.int64)
    _, found = number_messages(*packed(acks), owners, [one], owners > 0)
    assert found.tolist() == list(range(0, 200_000, 30_000))


# Whole captures


def read_rows(path: Path, **options: Any) -> dict[str, list[Row]]:
    reader = SetReader([str(path)])
    rows = RowMaker("the set", reader, **options)
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for stretch in reader.stretches():
        for batch in rows.batches(stretch):
            for name in TABLES:
                found[name] += [row for row in batch.column(name).to_pylist() if row is not None]
    return found


def test_a_session_becomes_rows(tmp_path: Path) -> None:
    connection = Connection().open()
    request, answer = PACKETS[0], bytearray(PACKETS[0])
    answer[36:52] = MANAGER[::-1]  # ServerGuid
    connection.send(request).send(bytes(answer), from_client=False)
    connection.send(TEMPLATES[0], mss=100).send(ALL[-1], from_client=False).close()
    ping = udp(("10.0.0.7", 4000), ("10.0.0.8", 3527), Ping.request(5, MANAGER).encode())
    frames = [*connection.frames, (connection.time_ns, ethernet(ping))]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(frames))
    found = read_rows(path, keep_packets=True)
    kinds = sorted(row["kind"] for row in found["packet"])
    assert kinds == [
        "EstablishConnection", "EstablishConnection", "Ping", "SessionAck", "UserMessage",
    ]  # fmt: skip
    (message,) = [row for row in found["packet"] if row["kind"] == "UserMessage"]
    assert message["flow"] == "10.0.0.7:49759-10.0.0.8:1801#1"
    assert (message["source"], message["destination_port"]) == ("10.0.0.7", 1801)
    assert (message["direction"], message["index"]) == ("to_server", 1)
    assert message["capture"] == str(path)
    assert message["frame"] == 5 + -(-len(TEMPLATES[0]) // 100)
    assert round(message["at"].timestamp() * 1e6) == (T0 + (message["frame"] - 1) * MS) // 1000
    assert message["packet"] == TEMPLATES[0]
    assert message["message_number"] == 1
    (session,) = found["session"]
    assert session["client_manager"] == "03020100-0504-0706-0809-0a0b0c0d0e0f"
    assert session["server_manager"] == "0c0d0e0f-0a0b-0809-0706-050403020100"
    assert (session["client_packets"], session["server_packets"]) == (2, 2)
    assert (session["end_reason"], session["is_whole"]) == ("closed", True)
    assert session["client_bytes"] == len(request) + len(TEMPLATES[0])
    assert found["anomaly"] == []


def test_trouble_is_told_with_its_place_and_its_bytes(tmp_path: Path) -> None:
    malformed = bytearray(TEMPLATES[3])
    malformed[60:64] = bytes(4)  # UserHeader.Flags
    connection = Connection().open().send(PACKETS[0]).send(bytes(malformed)).send(b"?" * 40)
    connection.send(PACKETS[1]).lose(PACKETS[2]).send(PACKETS[1] + TEMPLATES[3][:50]).reset()
    fragment = bytearray(udp(("10.0.0.7", 4000), ("10.0.0.8", 3527), bytes(24)))
    fragment[6:8] = b"\x20\x00"
    frames = [*connection.frames, (connection.time_ns, ethernet(bytes(fragment)))]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(frames)[:-3] + bytes(1))
    found = read_rows(path)
    told = {(row["kind"], row["reason"].split(":")[0]): row for row in found["anomaly"]}
    path.write_bytes(pcap(frames))
    told |= {(row["kind"], row["reason"]): row for row in read_rows(path)["anomaly"]}
    assert told["malformed", "UserHeader.Flags at offset 60"]["frame"] == 5
    assert told["malformed", "UserHeader.Flags at offset 60"]["first_bytes"] == malformed[:64]
    assert told["skipped", "no packet begins here"]["size"] == 40
    assert told["skipped", "no packet begins here"]["first_bytes"] == b"?" * 40
    assert told["gap", "bytes are missing in the capture"]["size"] == len(PACKETS[2])
    reset = told["incomplete", "the connection was reset before its end"]
    assert (reset["size"], reset["first_bytes"]) == (len(TEMPLATES[3]), TEMPLATES[3][:50])
    assert told["fragment", "IP fragments"]["frame"] == len(frames)
    assert told["damaged_file", f"the capture ends in the middle of frame {len(frames)}"]
    assert [row["kind"] for row in found["packet"]].count(MALFORMED) == 1
    lost = [row["lost"] for row in found["packet"] if row["lost"]]
    assert lost == [len(PACKETS[2])]


def test_rows_of_a_session_that_only_knocked(tmp_path: Path) -> None:
    connection = Connection()
    connection.open().reset(from_client=False)
    (tmp_path / "a").write_bytes(pcap([connection.frames[0], connection.frames[-1]]))
    (session,) = read_rows(tmp_path / "a")["session"]
    assert (session["end_reason"], session["segments"]) == ("reset", 0)
    assert session["client_manager"] is None


def test_messages_behind_a_gap_have_no_number(tmp_path: Path) -> None:
    claim = with_session(TEMPLATES[0], SessionHeader(0, 0, 0, 4, 0))
    connection = Connection().open().send(TEMPLATES[0]).lose(TEMPLATES[0])
    connection.send(TEMPLATES[0]).send(claim).close()
    (tmp_path / "a").write_bytes(pcap(connection.frames))
    found = read_rows(tmp_path / "a")
    packets = sorted(found["packet"], key=lambda row: row["index"])
    assert [row["missing_bytes"] for row in found["session"]] == [len(TEMPLATES[0])]
    assert [row["message_number"] for row in packets] == [1, None, 4]
    assert [row["lost"] for row in packets] == [0, len(TEMPLATES[0]), 0]
