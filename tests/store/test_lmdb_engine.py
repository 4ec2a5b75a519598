"""The embedded engine: full disks, damage that shows on reading, long lives, crashes."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import lmdb
import pytest

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.store import Durability, LmdbStore, Store, WriteBatch, open_data_directory
from falconmq.store.lmdb_errors import READERS_MAX
from falconmq.store.reserve import RESERVE_BYTES
from tests.store.helpers import ROOT, deletes, number, puts

MESSAGE = b"m" * 1000


def messages(first: int, count: int, value: bytes = MESSAGE) -> WriteBatch:
    return puts("messages", {number(n): value for n in range(first, first + count)})


def fill(store: Store, each: int, value: bytes = MESSAGE) -> tuple[int, ResourceError]:
    """Put messages until the store refuses; how many it took."""
    for first in range(0, 1 << 30, each):
        try:
            store.commit([messages(first, each, value)])
        except ResourceError as error:
            return first, error
    raise AssertionError("it never became full")


def count(store: Store) -> int:
    return sum(1 for _ in store.scan("messages"))


def use_up(disk: Path) -> None:
    """Others take what is left."""
    with (disk / "others").open("wb", buffering=0) as others, suppress(OSError):
        while others.write(bytes(4096)):
            pass


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB; only root may have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here; the other full-disk tests need no rights")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_relaxed_durability_has_to_be_asked_for_and_is_visible(tmp_path: Path) -> None:
    with open_data_directory(tmp_path / "safe") as safe:
        assert safe.statistics().durability is Durability.SYNC
        flags = safe._environment.flags()
        assert flags["sync"]
        assert flags["metasync"]
    with open_data_directory(tmp_path / "fast", durability=Durability.RELAXED) as fast:
        assert fast.statistics().durability is Durability.RELAXED
        assert not fast._environment.flags()["sync"]


def cycle(store: Store, rounds: int) -> int:
    """Let messages come and go; the size of the file afterwards."""
    for n in range(rounds):
        store.commit([messages(n, 1)])
        store.commit([deletes("messages", [number(n)])])
    return store.statistics().file_bytes


def test_an_abandoned_scan_keeps_no_space_from_being_used_again(tmp_path: Path) -> None:
    with open_data_directory(tmp_path, durability=Durability.RELAXED) as store:
        store.commit([puts("other", {number(n): MESSAGE for n in range(100)})])
        size = cycle(store, 50)
        scan = store.scan("other")
        next(scan)
        assert cycle(store, 200) == size
        with store.snapshot():  # this is what it would look like
            assert cycle(store, 200) > 2 * size
        assert len(list(scan)) == 99


def test_too_many_readers_is_a_named_error(tmp_path: Path) -> None:
    with open_data_directory(tmp_path) as store, ExitStack() as snapshots:
        for _ in range(READERS_MAX):
            snapshots.enter_context(store.snapshot())
        with pytest.raises(ResourceError, match=f"{READERS_MAX} readers") as caught:
            snapshots.enter_context(store.snapshot())
        assert caught.value.status is MqStatus.INSUFFICIENT_RESOURCES
        assert "close snapshots" in caught.value.hint


def test_the_limit_of_the_file_is_a_named_error_and_nothing_is_lost(tmp_path: Path) -> None:
    with open_data_directory(tmp_path, map_size=4 << 20) as store:
        stored, error = fill(store, 64)
        assert str(error) == f"{tmp_path}/data.mdb has reached its limit of {4 << 20} bytes"
        assert error.status is MqStatus.MESSAGE_STORAGE_FAILED
        assert "map_size" in error.hint
        assert count(store) == stored
        assert store.verify() == []
    # a larger limit continues where it stopped
    with open_data_directory(tmp_path, map_size=8 << 20) as store:
        store.commit([messages(stored, 64)])
        assert count(store) == stored + 64


@pytest.mark.parametrize("size", [100, 1000, 9000])
def test_a_full_disk_is_a_named_error_and_the_queue_can_still_be_emptied(
    small_disk: Path, size: int
) -> None:
    value = b"v" * size
    with open_data_directory(small_disk / "data") as store:
        # given a disk that is full to the last message
        stored, error = fill(store, 64, value)
        for first in range(stored, 1 << 30):
            try:
                store.commit([messages(first, 1, value)])
            except ResourceError:
                stored = first
                break
        # then the error says so, and everything that was acknowledged is there
        assert "data.mdb: No space left on device (ENOSPC)" in str(error)
        assert error.status is MqStatus.MESSAGE_STORAGE_FAILED
        assert "free some space" in error.hint
        assert count(store) == stored
        # when the messages are received one by one from the head, a reader at work beside it
        for n in range(100):
            store.commit([deletes("messages", [number(n)])])
        # then there is room again, and the reserve for the next time is there as well
        store.commit([messages(stored, 1, value)])
        assert (small_disk / "data" / "reserve").stat().st_size > RESERVE_BYTES * 3 // 4
        assert store.verify() == []
    with open_data_directory(small_disk / "data") as store:
        assert count(store) == stored - 99


def test_a_full_disk_is_survived_by_a_restart(small_disk: Path) -> None:
    with open_data_directory(small_disk / "data") as store:
        stored, _ = fill(store, 16)
    # given that others took the rest, and the table of readers is gone
    (small_disk / "data" / "lock.mdb").unlink()
    use_up(small_disk)
    # then the store opens with the help of its reserve, and can be emptied
    with open_data_directory(small_disk / "data") as store:
        assert count(store) == stored
        store.commit([deletes("messages", [number(n) for n in range(stored)])])
        assert count(store) == 0


def test_a_disk_too_full_to_begin_with_is_a_named_error(small_disk: Path) -> None:
    use_up(small_disk)
    with pytest.raises(ResourceError, match="No space left on device") as caught:
        open_data_directory(small_disk / "data")
    assert caught.value.status is MqStatus.MESSAGE_STORAGE_FAILED


FILE_SIZE_LIMIT = """
import resource, sys
from falconmq.errors import ResourceError
from falconmq.store import open_data_directory
from tests.store.test_lmdb_engine import count, fill
with open_data_directory(sys.argv[1]) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, resource.RLIM_INFINITY))
    stored, error = fill(store, 16)
    print(error)
    assert count(store) == stored
    assert store.verify() == []
"""


def test_a_file_that_may_not_grow_is_a_named_error(tmp_path: Path) -> None:
    """What needs no rights: the limit of the process for the size of a file."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", FILE_SIZE_LIMIT, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"cannot write {tmp_path}/data.mdb: File too large (EFBIG)\n"


def test_a_disk_that_breaks_is_not_called_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_data_directory(tmp_path) as store:

        def broken(_: object) -> None:
            error = lmdb.Error("mdb_txn_commit: Input/output error")
            error.code = errno.EIO  # type: ignore[misc]  # as LMDB itself sets it
            raise error

        monkeypatch.setattr(store, "_write", broken)
        with pytest.raises(StoreError, match="Input/output error") as caught:
            store.commit([messages(0, 1)])
        assert "check the disk" in caught.value.hint


@pytest.mark.parametrize("size", [10, 1000, 9000])
def test_a_changed_value_is_reported_whoever_reads_it(tmp_path: Path, size: int) -> None:
    # given one bit of one message that changed on the disk
    with open_data_directory(tmp_path) as store:
        store.commit([messages(0, 5, b"a" * size)])
        store.commit([puts("messages", {number(5): b"secret" * (size // 6)})])
    data_file = tmp_path / "data.mdb"
    data = bytearray(data_file.read_bytes())
    data[data.rindex(b"secret") + 2] ^= 0x10
    data_file.write_bytes(data)
    # then the store opens, and every way to read that message names it
    problem = f"data.mdb is damaged: the record {number(5).hex()} of table messages has changed"
    with open_data_directory(tmp_path) as store:
        assert store.get("messages", number(4)) == b"a" * size
        with pytest.raises(StoreError, match=problem):
            store.get("messages", number(5))
        with pytest.raises(StoreError, match=problem):
            list(store.scan("messages"))
        with pytest.raises(StoreError, match=problem):
            next(store.scan("messages", reverse=True))
        with store.snapshot() as snapshot:
            with pytest.raises(StoreError, match=problem):
                snapshot.get("messages", number(5))
            with pytest.raises(StoreError, match=problem):
                list(snapshot.scan("messages"))
            with pytest.raises(StoreError, match=problem):
                list(snapshot.blocks("messages", number(0), number(9)))
            assert list(snapshot.neighbours("messages", b"", 5, 1)) == []
            (whole,) = snapshot.neighbours("messages", b"", 0, 5)
            assert whole.values() == [b"a" * size] * 5
        assert [line.split(": ", 1)[1] for line in store.verify()] == [problem.split(": ", 1)[1]]


def test_a_value_under_another_key_is_reported(tmp_path: Path) -> None:
    with open_data_directory(tmp_path) as store:
        store.commit([puts("messages", {b"key one": b"1", b"key two": b"2"})])
    data_file = tmp_path / "data.mdb"
    data_file.write_bytes(data_file.read_bytes().replace(b"key two", b"key twp"))
    with open_data_directory(tmp_path) as store, pytest.raises(StoreError, match="has changed"):
        list(store.scan("messages"))


def test_a_value_under_another_number_is_not_taken_for_a_neighbour(tmp_path: Path) -> None:
    with open_data_directory(tmp_path) as store:
        store.commit([messages(0, 9)])
        store.commit([deletes("messages", [number(4)])])
        with store.snapshot() as snapshot:
            assert list(snapshot.neighbours("messages", b"", 2, 5)) == []


def test_the_file_does_not_grow_while_messages_come_and_go(tmp_path: Path) -> None:
    """A queue of ten that is cycled a thousand times takes the space of some tens."""
    with open_data_directory(tmp_path, durability=Durability.RELAXED) as store:
        for first in range(0, 200, 10):
            store.commit([messages(first, 10)])
            store.commit([deletes("messages", [number(n) for n in range(first, first + 10)])])
        before = store.statistics()
        for first in range(200, 10_000, 10):
            store.commit([messages(first, 10)])
            store.commit([deletes("messages", [number(n) for n in range(first, first + 10)])])
        after = store.statistics()
    assert after.file_bytes == before.file_bytes
    assert after.records == {"messages": 0}
    assert after.used_bytes + after.reusable_bytes <= after.file_bytes


def test_statistics_show_what_deletions_left_to_be_used_again(tmp_path: Path) -> None:
    with open_data_directory(tmp_path, map_size=1 << 30) as store:
        store.commit([messages(0, 1000)])
        full = store.statistics()
        store.commit([deletes("messages", [number(n) for n in range(1000)])])
        empty = store.statistics()
    assert full.used_bytes > 1000 * len(MESSAGE) > empty.used_bytes
    assert empty.reusable_bytes > 1000 * len(MESSAGE)
    assert empty.file_bytes >= full.file_bytes
    assert full.limit_bytes == empty.limit_bytes == 1 << 30
    assert (full.engine, full.path) == ("lmdb", str(tmp_path))


def depth_and_pages(store: LmdbStore) -> tuple[int, int]:
    with store._environment.begin() as transaction:
        stat = transaction.stat(store._tables["messages"])
    return stat["depth"], stat["branch_pages"] + stat["leaf_pages"]


@pytest.mark.slow
def test_the_head_is_as_near_after_a_million_deletions(tmp_path: Path) -> None:
    """No tombstones: what was deleted is not stepped over, so the work is the tree's depth."""
    million = 1_000_000
    with open_data_directory(tmp_path, durability=Durability.RELAXED) as store:
        for first in range(0, million, 10_000):
            store.commit([messages(first, 10_000, b"v" * 20)])
        depth, pages = depth_and_pages(store)
        assert depth <= 4
        # when all but the last thousand are deleted from the head
        last = million - 1000
        for first in range(0, last, 10_000):
            keys = [number(n) for n in range(first, min(first + 10_000, last))]
            store.commit([deletes("messages", keys)])
        # then the pages are gone from the tree, not only their records
        depth_after, pages_after = depth_and_pages(store)
        assert depth_after <= depth
        assert pages_after < pages / 500
        assert next(store.scan("messages"))[0] == number(last)
        # and the space takes the next half million without growing
        size = store.statistics().file_bytes
        for first in range(million, million + million // 2, 10_000):
            store.commit([messages(first, 10_000, b"v" * 20)])
        assert store.statistics().file_bytes == size
    with open_data_directory(tmp_path) as store:
        assert store.statistics().records == {"messages": 1000 + million // 2}


WRITER = """
import os, random, sys, threading
from falconmq.store import GroupCommitter, open_data_directory
from tests.store.helpers import ROOT, deletes, number, puts
store = open_data_directory(sys.argv[1])
committer = GroupCommitter(store)
chance = random.Random(int(sys.argv[2]))
lock = threading.Lock()
first = int.from_bytes(store.get("meta", b"next") or b"", "big")
state = {"next": first}

def work():
    while True:
        with lock:
            n = state["next"]
            state["next"] = n + 1
            batch = puts("messages", {number(n): bytes([n & 255]) * chance.randrange(1, 6000)})
            batch.put("copies", number(n), number(n))
            batch.put("meta", b"next", number(n + 1))
            if n >= 20:
                batch.delete("messages", number(n - 20))
                batch.delete("copies", number(n - 20))
            commit = committer.submit(batch)
        commit.wait()
        os.write(1, b"%d\\n" % n)

threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def read_acknowledged(output: IO[str], count: int) -> list[int]:
    """The numbers that the writer said were durable; its last line may be cut."""
    lines = []
    for line in output:
        if line.endswith("\n"):
            lines.append(int(line))
        if len(lines) == count:
            break
    return lines


@pytest.mark.slow
def test_a_killed_writer_leaves_everything_it_acknowledged_and_nothing_half(
    tmp_path: Path,
) -> None:
    chance = random.Random(4711)
    acknowledged = -1
    for round_number in range(6):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(round_number)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            numbers = read_acknowledged(writer.stdout, chance.randrange(1, 400))
            os.kill(writer.pid, signal.SIGKILL)
            numbers += read_acknowledged(writer.stdout, 1 << 30)
        assert numbers, "the writer never came to work"
        acknowledged = max(acknowledged, *numbers)
        with open_data_directory(tmp_path) as store:
            assert store.verify() == []
            following = int.from_bytes(store.get("meta", b"next") or b"", "big")
            # everything acknowledged is there, and what came before it as well
            assert following > acknowledged
            expected = list(range(max(0, following - 20), following))
            # each batch is whole: both records and the counter, and the deletions
            stored = {int.from_bytes(key, "big"): value for key, value in store.scan("messages")}
            copies = [int.from_bytes(key, "big") for key, _ in store.scan("copies")]
            assert list(stored) == copies == expected
            assert all(set(value) == {n & 255} for n, value in stored.items())
