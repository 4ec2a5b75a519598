"""MSMQ packets found in streams and captures."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.capture.frames import Undissected
from falconmq.capture.packets import (
    NO_BEGINNING,
    NO_PACKET,
    CapturedPacket,
    CaptureReader,
    Cut,
    PacketStream,
)
from falconmq.capture.pcap import CaptureError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.ping import Ping
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from tests.strategies.captures import (
    CLIENT,
    MS,
    SERVER,
    T0,
    Connection,
    ethernet,
    ip,
    mangled_segments,
    pcap,
    tcp,
    udp,
)

ESTABLISH = EstablishConnection.request(bytes(range(16)), uptime_ms=5).encode()
PARAMETERS = ConnectionParameters(500, 20000).encode()
ACKNOWLEDGE = SessionAck(SessionHeader(1, 0, 0, 1, 0)).encode()
# A user message is opaque here; its SessionHeader lies beyond PacketSize (QB-A09).
MESSAGE = BaseHeader(0x0013, 120).encode() + bytes(104) + SessionHeader(1, 0, 0, 1, 0).encode()
PACKETS = [ESTABLISH, PARAMETERS, MESSAGE, ACKNOWLEDGE]
STREAM = b"".join(PACKETS)


def read(frames: list[tuple[int, bytes]], **options: frozenset[int]) -> list[CapturedPacket]:
    return list(CaptureReader(io.BytesIO(pcap(frames)), **options).packets())


def whole(cuts: list[Cut]) -> list[bytes]:
    return [cut.data for cut in cuts if not cut.problem]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_segment_boundaries_do_not_matter(cuts: list[int]) -> None:
    stream = PacketStream()
    found: list[Cut] = []
    for start, end in itertools.pairwise([0, *sorted(cuts), len(STREAM)]):
        found += stream.feed(STREAM[start:end])
    found += stream.finish("end")
    assert [(cut.data, cut.problem) for cut in found] == [(packet, "") for packet in PACKETS]


@given(start=st.integers(1, len(ESTABLISH) - 1), cut=st.integers(0, len(STREAM)))
def test_a_stream_that_begins_in_the_middle_finds_the_next_packet(start: int, cut: int) -> None:
    stream = PacketStream(at_start=False)
    rest = STREAM[start:]
    found = [*stream.feed(rest[:cut]), *stream.feed(rest[cut:]), *stream.finish("end")]
    assert whole(found) == PACKETS[1:]
    skipped = [cut for cut in found if cut.problem]
    assert {cut.problem for cut in skipped} == {NO_BEGINNING}
    assert sum(cut.size for cut in skipped) == len(ESTABLISH) - start


def test_bytes_that_only_look_like_a_header_are_passed_over() -> None:
    decoys = b"LIOR" + b"\x10abcLIOR" + bytes(8) + b"\x11\0\0\0LIOR"
    stream = PacketStream(at_start=False)
    found = [*stream.feed(decoys + PARAMETERS), *stream.finish("end")]
    assert whole(found) == [PARAMETERS]
    assert [cut.size for cut in found if cut.problem] == [len(decoys)]
    assert found[0].data == decoys[:64]


def test_a_broken_header_is_skipped_and_reported() -> None:
    stream = PacketStream()
    broken = b"\x11" + PARAMETERS[1:]
    found = [*stream.feed(PARAMETERS + broken + ACKNOWLEDGE), *stream.finish("end")]
    assert whole(found) == [PARAMETERS, ACKNOWLEDGE]
    assert [(cut.size, cut.problem) for cut in found if cut.problem] == [(len(broken), NO_PACKET)]


def test_a_gap_drops_the_packet_it_hits_and_nothing_else() -> None:
    stream = PacketStream()
    found = [*stream.feed(PARAMETERS + ESTABLISH[:100])]
    found += stream.feed(ESTABLISH[200:] + MESSAGE, missing=100)
    found += stream.finish("end")
    assert whole(found) == [PARAMETERS, MESSAGE]
    assert [cut.problem for cut in found[2:]] == [NO_BEGINNING, ""]
    partial = found[1]
    assert (partial.data, partial.size) == (ESTABLISH[:100], 572)
    assert partial.problem == "100 bytes are missing in the capture"


def test_an_unfinished_packet_is_reported_with_what_there_is() -> None:
    stream = PacketStream()
    assert whole([*stream.feed(PARAMETERS + MESSAGE[:50])]) == [PARAMETERS]
    (left,) = stream.finish("the capture ends before its end")
    assert (left.data, left.size) == (MESSAGE[:50], len(MESSAGE))
    assert left.problem == "the capture ends before its end"


@given(data=st.binary(max_size=300), at_start=st.booleans())
def test_every_byte_is_accounted_for(data: bytes, at_start: bool) -> None:
    stream = PacketStream(at_start=at_start)
    cuts = [*stream.feed(data + PARAMETERS), *stream.finish("end")]
    sizes = [len(cut.data) if cut.problem == "end" else cut.size for cut in cuts]
    assert sum(sizes) == len(data) + len(PARAMETERS)


def test_a_conversation_has_its_packets_with_direction_and_time() -> None:
    connection = Connection().open().send(ESTABLISH).send(ESTABLISH, from_client=False)
    connection.send(PARAMETERS + MESSAGE, mss=40).send(ACKNOWLEDGE, from_client=False).close()
    packets = read(connection.frames)
    assert [(p.data, p.from_client) for p in packets] == [
        (ESTABLISH, True),
        (ESTABLISH, False),
        (PARAMETERS, True),
        (MESSAGE, True),
        (ACKNOWLEDGE, False),
    ]
    assert [str(p.source) for p in packets[:2]] == ["10.0.0.7:49759", "10.0.0.8:1801"]
    assert packets[0].time_ns == T0 + 3 * MS
    assert packets[0].frame == 4
    assert all(p.conversation is packets[0].conversation for p in packets)


@given(mangled=mangled_segments(STREAM))
def test_retransmitted_and_reordered_segments_give_the_same_packets(
    mangled: list[tuple[int, bytes]],
) -> None:
    connection = Connection().open()
    base = connection.client_sequence
    for position, data in mangled:
        frame = ethernet(tcp(CLIENT, SERVER, base + position, data))
        connection.frames.append((connection.time_ns, frame))
    assert [packet.data for packet in read(connection.frames)] == PACKETS


def test_a_session_on_another_port_is_recognised_by_its_first_bytes() -> None:
    elsewhere = Connection(server=("10.0.0.8", 2801)).open()
    elsewhere.send(ESTABLISH[:3], mss=1).send(ESTABLISH[3:]).send(PARAMETERS, from_client=False)
    assert [p.data for p in read(elsewhere.frames)] == [ESTABLISH, PARAMETERS]


def test_other_protocols_are_left_alone_unless_their_port_is_named() -> None:
    web = Connection(server=("10.0.0.8", 80)).open().send(b"GET / HTTP/1.1\r\n\r\n" * 9).close()
    assert read(web.frames) == []
    (junk,) = read(web.frames, session_ports=frozenset((80,)))
    assert (junk.size, junk.problem) == (18 * 9, NO_PACKET)


def test_pings_are_found_by_their_port_both_ways() -> None:
    ping = Ping.request(4, bytes(16)).encode()
    there, back = (CLIENT[0], 4057), (SERVER[0], 3527)
    frames = [
        (T0, ethernet(udp(there, back, ping))),
        (T0 + MS, ethernet(udp(back, there, ping))),
        (T0 + MS, ethernet(udp(there, (SERVER[0], 53), b"name?"))),
    ]
    packets = read(frames)
    assert [(p.data, str(p.source)) for p in packets] == [
        (ping, "10.0.0.7:4057"),
        (ping, "10.0.0.8:3527"),
    ]
    assert all(p.conversation is None for p in packets)


def test_a_lost_segment_costs_one_packet_and_is_counted() -> None:
    connection = Connection().open().send(PARAMETERS).lose(MESSAGE).send(ACKNOWLEDGE).close()
    reader = CaptureReader(io.BytesIO(pcap(connection.frames)))
    packets = list(reader.packets())
    assert [(p.data, p.lost) for p in packets] == [(PARAMETERS, 0), (ACKNOWLEDGE, len(MESSAGE))]
    assert reader.totals.missing == len(MESSAGE)


def test_totals_say_what_the_capture_held() -> None:
    connection = Connection().open().send(PARAMETERS + MESSAGE[:30]).close()
    frames = [
        *connection.frames,
        (
            T0 + 9 * MS,
            ethernet(udp(CLIENT, (SERVER[0], 3527), Ping.request(1, bytes(16)).encode())),
        ),
        (T0 + 10 * MS, ethernet(ip("10.0.0.1", "10.0.0.2", 1, bytes(8)))),
    ]
    reader = CaptureReader(io.BytesIO(pcap(frames)))
    list(reader.packets())
    totals = reader.totals
    assert (totals.frames, totals.conversations, totals.packets, totals.pings) == (8, 1, 1, 1)
    assert totals.incomplete == 1
    assert totals.left_out == {Undissected.OTHER_PROTOCOL: 1}
    assert (totals.first_ns, totals.last_ns) == (T0, T0 + 10 * MS)


def test_a_damaged_capture_gives_its_packets_then_raises() -> None:
    frames = Connection().open().send(PARAMETERS).frames
    reader = CaptureReader(io.BytesIO(pcap(frames) + b"half a record"))
    packets = reader.packets()
    assert next(packets).data == PARAMETERS
    with pytest.raises(CaptureError, match="ends in the middle of the header of frame 5"):
        next(packets)


def test_snap_length_cuts_are_seen_as_missing_bytes() -> None:
    connection = Connection().open().send(ESTABLISH).send(PARAMETERS).close()
    data = pcap(connection.frames, snap_length=200)
    reader = CaptureReader(io.BytesIO(data))
    packets = list(reader.packets())
    assert [(p.size, bool(p.problem)) for p in packets] == [(572, True), (32, False)]
    assert packets[0].data == ESTABLISH[: len(packets[0].data)]
    assert reader.totals.missing == 572 - len(packets[0].data)
