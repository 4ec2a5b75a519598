"""Connections and their packets: the quick reader finds what the wire layer's own reader finds."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.capture.frames import ACK, FIN
from falconmq.spark.capture.files import read_frames
from falconmq.spark.capture.flows import Flows
from falconmq.spark.capture.headers import Addresses, dissect_frames
from falconmq.spark.capture.reading import SetReader
from falconmq.spark.capture.sorting import Run
from falconmq.spark.capture.views import ints
from tests.spark.captures import PACKETS, by_direction, seen_quickly, seen_slowly, traffic
from tests.strategies.captures import CLIENT, MS, SERVER, Connection, ethernet, pcap, tcp

MESSAGES = b"".join(PACKETS)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    stretch_bytes=st.sampled_from((300, 3000, 1 << 24)),
    lanes=st.sampled_from((1, 1, 3)),
    snap_length=st.sampled_from((262144, 262144, 262144, 150)),
)
def test_any_traffic_gives_the_same_packets(
    seed: int, stretch_bytes: int, lanes: int, snap_length: int
) -> None:
    content = pcap(traffic(random.Random(seed)), snap_length=snap_length)
    slow, slow_damages = seen_slowly([content])
    with tempfile.TemporaryDirectory() as folder:
        quick, damages = seen_quickly(
            [content], Path(folder), stretch_bytes=stretch_bytes, lanes=lanes
        )
    assert by_direction(quick) == by_direction(slow)
    assert damages == slow_damages


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), cut=st.floats(0, 1), lanes=st.sampled_from((1, 2)))
def test_connections_go_on_in_the_next_file_of_a_set(seed: int, cut: float, lanes: int) -> None:
    frames = traffic(random.Random(seed))
    place = round(cut * len(frames))
    contents = [pcap(frames[:place]), pcap(frames[place:], order=">")]
    whole, _ = seen_slowly([pcap(frames)])
    with tempfile.TemporaryDirectory() as folder:
        quick, _ = seen_quickly(contents, Path(folder), lanes=lanes)
    assert by_direction(quick) == by_direction(whole)


# Every story is told by segments (from client, position, bytes, flags, acknowledged): a stream of
# packets from the client whose second segment comes last, after something that decides its fate.
STREAM = (PACKETS[1] * 40)[:1000]
A, B, C = (True, 0, STREAM[:300]), (True, 300, STREAM[300:600]), (True, 600, STREAM[600:])
STORIES: dict[str, list[tuple[bool, int, bytes, int, int]]] = {
    "acknowledged before the hole was seen": [
        (*A, ACK, 0), (False, 0, b"", ACK, 600), (*C, ACK, 0), (*B, ACK, 0),
    ],
    "acknowledged, then an older acknowledgement": [
        (*A, ACK, 0), (False, 0, b"", ACK, 600), (False, 0, b"", ACK, 300), (*C, ACK, 0),
        (*B, ACK, 0),
    ],
    "an acknowledgement from half the world away": [
        (*A, ACK, 0), (False, 0, b"", ACK, 2**31 + 100), (*C, ACK, 0), (*B, ACK, 0),
    ],
    "half the world away as the stream began": [
        (True, 0, b"", ACK, 0), (True, 0, b"", ACK, 0), (*A, ACK, 0),
        (False, 0, b"", ACK, 2**31 + 100), (*C, ACK, 0), (*B, ACK, 0),
    ],
    "not acknowledged": [
        (*A, ACK, 0), (False, 0, b"", ACK, 300), (*C, ACK, 0), (*B, ACK, 0),
    ],
    "bytes where the stream has ended": [
        (*A, ACK, 0), (True, 300, b"", FIN | ACK, 0), (False, 0, PACKETS[1], ACK, 300),
        (*B, ACK, 0), (*C, ACK, 0),
    ],
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_what_decides_about_a_hole_is_seen_by_both(tmp_path: Path, story: str) -> None:
    frames = Connection().open().frames
    for from_client, position, payload, flags, acknowledged in STORIES[story]:
        ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
        one, other = (1001, 5001) if from_client else (5001, 1001)
        segment = tcp(
            *ends, one + position, payload, flags=flags, acknowledged=other + acknowledged
        )
        frames.append((frames[-1][0] + MS, ethernet(segment)))
    slow, _ = seen_slowly([pcap(frames)])
    for stretch_bytes in (1 << 26, *range(100, 1200, 25)):
        quick, _ = seen_quickly([pcap(frames)], tmp_path, stretch_bytes=stretch_bytes)
        assert by_direction(quick) == by_direction(slow)


def test_frames_are_numbered_by_file(tmp_path: Path) -> None:
    frames = Connection().open().send(MESSAGES, mss=100).close().frames
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(pcap(frames[:5]))
    paths[1].write_bytes(pcap(frames[5:]))
    reader = SetReader([str(path) for path in paths])
    list(reader.stretches())
    files, numbers = reader.place_of(ints([1, 5, 6, len(frames)]))
    assert files.tolist() == [0, 0, 1, 1]
    assert numbers.tolist() == [1, 5, 1, len(frames) - 5]


def test_plain_segments_are_handed_out_in_runs() -> None:
    # given a connection of which one segment comes late
    frames = Connection().open().send(MESSAGES * 4, mss=50).close().frames
    late = len(frames) // 2
    frames[late], frames[late + 1] = frames[late + 1], frames[late]
    # when it is fed
    (stretch,) = read_frames(memoryview(pcap(frames)))
    addresses = Addresses()
    segments = dissect_frames(stretch, addresses).segments
    flows = Flows(addresses, frozenset((1801,)))
    fed = flows.feed(segments, segments.frames, stretch.times[segments.frames], stretch.data)
    events = [event for group in fed for event in group]
    # then nearly all of it comes in two runs, before and behind the trouble
    runs = [event for event in events if isinstance(event, Run)]
    assert len(runs) == 2
    assert sum(len(run.starts) for run in runs) > len(frames) - 12


@pytest.mark.parametrize("lanes", [2, 3, 8])
def test_every_connection_has_one_lane(tmp_path: Path, lanes: int) -> None:
    frames = []
    for number in range(30):
        connection = Connection(client=("10.0.0.7", 50000 + number))
        frames += connection.open().send(PACKETS[0]).send(PACKETS[0], from_client=False).frames
    (tmp_path / "a").write_bytes(pcap(frames))
    ends = []
    for lane in range(lanes):
        reader = SetReader([str(tmp_path / "a")], lane=lane, lanes=lanes)
        ends.append([e for s in reader.stretches() for e in s.ended])
    assert all(ends)
    assert sum(map(len, ends)) == 30
    assert all(set(e.flow.directions) == {True, False} for lane in ends for e in lane)


def test_a_connection_knows_its_repeated_segments_and_its_end(tmp_path: Path) -> None:
    connection = Connection().open().send(MESSAGES, mss=100)
    connection.frames.append(connection.frames[-1])
    connection.frames.append(connection.frames[5])
    connection.reset()
    (tmp_path / "a").write_bytes(pcap(connection.frames))
    reader = SetReader([str(tmp_path / "a")])
    (end,) = [end for stretch in reader.stretches() for end in stretch.ended]
    assert end.reason == "reset"
    assert end.flow.tally.repeated == 2
    assert end.flow.tally.segments == -(-len(MESSAGES) // 100) + 2
    assert end.flow.tally.first_frame == 1
    assert end.flow.directions[True].size == len(MESSAGES)
