"""Capture files: the quick reader finds the same frames, and the same faults, as the plain one."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.capture.pcap import CaptureError, read_capture
from falconmq.spark.capture.files import NO_TIME, mapped, read_frames
from falconmq.spark.capture.sets import find_captures, group, lanes_for, set_name
from tests.strategies.captures import (
    T0,
    block,
    enhanced,
    interface,
    obsolete,
    pcap,
    section,
    simple,
)

Told = tuple[list[tuple[int, int | None, int, bytes]], str]
TIME_MAX = 2**63 - 1


def slowly(content: bytes) -> Told:
    frames = []
    try:
        for frame in read_capture(io.BytesIO(content)):
            time = frame.time_ns
            if time is not None:  # the quick one keeps times in 64 bits
                time = max(min(time, TIME_MAX), NO_TIME + 1)
            frames.append((frame.number, time, frame.link_type, frame.data))
    except CaptureError as error:
        return frames, str(error)
    return frames, ""


def quickly(content: bytes, stretch_bytes: int) -> Told:
    found: list[tuple[int, int | None, int, bytes]] = []
    try:
        for frames in read_frames(memoryview(content), stretch_bytes):
            columns = (frames.starts, frames.sizes, frames.times, frames.links)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            for number, (start, size, time, link) in enumerate(rows, frames.first):
                data = content[start : start + size]
                found.append((number, None if time == NO_TIME else time, link, data))
    except CaptureError as error:
        return found, str(error)
    return found, ""


def some_file(chance: random.Random) -> bytes:
    frames = [chance.randbytes(chance.randint(0, 80)) for _ in range(chance.randint(0, 12))]
    if chance.random() < 0.4:
        timed = [(T0 + chance.randrange(10**12), frame) for frame in frames]
        return pcap(
            timed,
            order=chance.choice("<>"),
            nanoseconds=chance.random() < 0.5,
            link_type=chance.choice((1, 101, 113)),
            snap_length=chance.choice((262144, 40)),
        )
    return b"".join(some_section(chance, frames) for _ in range(chance.randint(1, 3)))


def some_interface(chance: random.Random, order: str) -> bytes:
    return interface(
        chance.choice((1, 101, 113)),
        order=order,
        snap_length=chance.choice((0, 0, 50)),
        resolution=chance.choice((None, 6, 9, 3, 0x94, 12)),
        offset_seconds=chance.choice((None, 5, -7)),
    )


def some_section(chance: random.Random, frames: list[bytes]) -> bytes:
    order = chance.choice("<>")
    interfaces = chance.randint(1, 3)
    parts = [section(order), *(some_interface(chance, order) for _ in range(interfaces))]
    for frame in frames:
        units = chance.getrandbits(chance.choice((50, 60, 64)))
        index = chance.randrange(interfaces + (chance.random() < 0.02))
        original = chance.choice((None, None, None, 20, 5000))
        luck = chance.random()
        if luck < 0.6:
            parts.append(enhanced(units, frame, order=order, index=index, original=original))
        elif luck < 0.75:
            parts.append(obsolete(units, frame, order=order, index=index))
        elif luck < 0.9:
            parts.append(simple(frame, order=order, original=original))
        else:
            parts.append(block(5, frame, order))
    return b"".join(parts)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), stretch_bytes=st.sampled_from((1, 100, 1000, 1 << 26)))
def test_any_file_gives_the_same_frames(seed: int, stretch_bytes: int) -> None:
    content = some_file(random.Random(seed))
    assert quickly(content, stretch_bytes) == slowly(content)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), stretch_bytes=st.sampled_from((100, 1 << 26)))
def test_a_damaged_file_gives_what_came_before_and_the_same_fault(
    seed: int, stretch_bytes: int
) -> None:
    chance = random.Random(seed)
    content = bytearray(some_file(chance))
    for _ in range(chance.randint(0, 2)):
        content[chance.randrange(len(content))] = chance.getrandbits(8)
    damaged = bytes(content[: chance.randint(0, len(content))])
    assert quickly(damaged, stretch_bytes) == slowly(damaged)


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_file_may_end_anywhere(kind: str) -> None:
    frames = [b"first frame", b"second"]
    content = pcap([(T0, frame) for frame in frames])
    if kind == "pcapng":
        blocks = [simple(frames[0]), enhanced(5, frames[1])]
        content = section() + interface() + b"".join(blocks) + section(">") + interface(order=">")
    for end in range(len(content) + 1):
        assert quickly(content[:end], 1 << 26) == slowly(content[:end])


def test_a_frame_larger_than_any_is_damage() -> None:
    content = bytearray(pcap([(T0, b"first"), (T0, b"second")]))
    size = 24 + 16 + len(b"first") + 8
    content[size : size + 4] = (65 * 1024 * 1024).to_bytes(4, "little")
    told = quickly(bytes(content), 1 << 26)
    assert told == slowly(bytes(content))
    assert "frame 2 claims 68157440 bytes" in told[1]


def test_files_are_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(T0, b"frame")]))
    with mapped(path) as data:
        (frames,) = read_frames(data)
    assert bytes(data[int(frames.starts[0]) :][:5]) == b"frame"
    empty = tmp_path / "empty.pcap"
    empty.touch()
    with mapped(empty) as data, pytest.raises(CaptureError, match="begins with nothing"):
        list(read_frames(data))


# Sets


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("trace_00001_20261116093000.pcapng", "trace_00002_20261116094000.pcapng", True),
        ("trace.pcap", "trace.pcap12", True),
        ("trace-20261116.pcap", "trace-20261117.pcap", True),
        ("client1.pcap", "client2.pcap", False),
        ("client.pcap", "server.pcap", False),
        ("trace_00001.pcap", "trace_00001.pcapng", False),
    ],
)
def test_files_of_a_rotation_form_a_set(one: str, other: str, is_same: bool) -> None:
    assert (set_name(one) == set_name(other)) is is_same


def test_a_set_is_in_order_of_time_and_knows_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "t_00001.pcap").write_bytes(pcap([(T0 + 10**9, b"x")]))
    (tmp_path / "t_00002.pcap").write_bytes(pcap([(T0, b"x")]))
    (tmp_path / "note.txt").write_text("no capture")
    (tmp_path / "fake.pcap").write_text("no capture either")
    (one,) = group(find_captures([str(tmp_path)]))
    assert [Path(file.path).name for file in one.files] == ["t_00002.pcap", "t_00001.pcap"]
    assert group(find_captures([str(tmp_path / "*.pcap")]))[1] == one
    with (tmp_path / "t_00001.pcap").open("ab") as file:
        file.write(pcap([(T0 + 10**9, b"more")])[24:])
    (grown,) = group(find_captures([str(tmp_path)]))
    assert grown.name == one.name
    assert grown.fingerprint() != one.fingerprint()
    apart = group(find_captures([str(tmp_path)]), is_joined=False)
    assert [len(each.files) for each in apart] == [1, 1]


def test_a_path_without_captures_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"no capture .*missing\.pcap"):
        find_captures([str(tmp_path / "missing.pcap")])


def test_workers_are_shared_by_size(tmp_path: Path) -> None:
    paths = [tmp_path / "large.pcap", tmp_path / "small.pcap"]
    for path, size in zip(paths, (900, 20), strict=True):
        with path.open("wb") as file:
            file.write(pcap([]))
            file.truncate(size * 1_000_000)
    sets = group(paths)
    assert lanes_for(sets, 4) == [4, 1]
    assert lanes_for(sets, 64) == [8, 1]
    assert lanes_for(sets[1:], 64) == [1]
