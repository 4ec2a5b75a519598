"""The directory: made, locked, versioned, refused, checked, compacted."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.errors import MqStatus, StoreError
from falconmq.store import (
    Durability,
    LmdbStore,
    WriteBatch,
    check_data_directory,
    compact,
    lmdb_pages,
    open_data_directory,
)
from falconmq.store.lmdb_pages import check_pages
from tests.store.helpers import ROOT, deletes, number, puts

HOLDER = """
import sys
from falconmq.store import open_data_directory
store = open_data_directory(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def some_messages(count: int = 500, size: int = 700) -> WriteBatch:
    """Enough for branch pages, and every tenth too big for a leaf."""
    value = {n: bytes([n & 255]) * (size if n % 10 else 9 * size) for n in range(count)}
    return puts("messages", {number(n): value[n] for n in range(count)})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory with two tables, free pages, and two levels of pages."""
    path = tmp_path / "data"
    with open_data_directory(path, durability=Durability.RELAXED) as store:
        store.commit([some_messages(), puts("queues", {b"q": b"orders"})])
        store.commit([deletes("messages", [number(n) for n in range(100, 200)])])
        store.commit([puts("meta", {b"next": number(500)})])
    return path


def test_a_new_directory_is_private_and_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where"
    with open_data_directory(str(path)) as store:
        assert isinstance(store, LmdbStore)
        assert path.stat().st_mode & 0o777 == 0o700
        assert (path / "version").read_text() == "falconmq data 1\n"
        assert (path / "data.mdb").stat().st_mode & 0o777 == 0o600
        assert (path / "lock").read_text().split()[0] == str(os.getpid())


def test_an_empty_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".keep").touch()
    with open_data_directory(tmp_path) as store:
        store.commit([some_messages(1)])


def test_a_creation_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    with open_data_directory(tmp_path):
        pass
    (tmp_path / "version").unlink()  # it is written last
    with open_data_directory(tmp_path) as store:
        store.commit([some_messages(1)])
    (tmp_path / "data.mdb").stat()
    assert (tmp_path / "version").read_text() == "falconmq data 1\n"


def test_a_directory_of_somebody_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    with pytest.raises(StoreError, match=r"is not empty .* it has thesis\.txt") as caught:
        open_data_directory(tmp_path)
    assert "empty directory" in caught.value.hint
    assert not (tmp_path / "data.mdb").exists()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreError, match="data is a file"):
        open_data_directory(tmp_path / "data")
    with pytest.raises(StoreError, match="Not a directory"):
        open_data_directory(tmp_path / "data" / "below")


def test_a_second_open_in_the_same_process_is_refused(directory: Path) -> None:
    with open_data_directory(directory) as store:
        with pytest.raises(StoreError, match="is in use by this process") as caught:
            open_data_directory(directory / ".." / directory.name)
        assert caught.value.status is MqStatus.SHARING_VIOLATION
        assert store.get("queues", b"q") == b"orders"
    with open_data_directory(directory):
        pass


def test_another_process_that_holds_the_directory_is_named(directory: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        for attempt in (open_data_directory, compact, check_data_directory):
            with pytest.raises(StoreError, match=f"is in use by process {holder.pid} ") as caught:
                attempt(directory)
            assert "stop the other one" in caught.value.hint
        holder.communicate()
    with open_data_directory(directory):
        pass


def test_the_lock_of_a_dead_process_is_no_obstacle(directory: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        os.kill(holder.pid, signal.SIGKILL)
    assert (directory / "lock").read_text().split()[0] == str(holder.pid)
    with open_data_directory(directory) as store:
        assert store.get("queues", b"q") == b"orders"


FORKING = """
import os, sys
from falconmq.store import open_data_directory
store = open_data_directory(sys.argv[1])
if os.fork() == 0:
    print("forked", flush=True)
    sys.stdin.read()
    os._exit(0)
os._exit(1)
"""


def test_a_forked_child_does_not_keep_the_directory_of_its_dead_parent(directory: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKING, str(directory)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        assert parent.wait() == 1
        with open_data_directory(directory):
            pass
        parent.communicate()


def test_a_refused_open_gives_the_lock_back(directory: Path) -> None:
    (directory / "version").write_text("falconmq data 99\n")
    with pytest.raises(StoreError):
        open_data_directory(directory)
    with (directory / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("falconmq data 2\n", "a newer FalconMQ: it has format 2, this one reads 1", "upgrade"),
        ("falconmq data 0\n", "an older FalconMQ: it has format 0, this one reads 1", "converts"),
        ("falconmq data x\n", "version is damaged", "backup"),
        ("", "version is damaged", "backup"),
        ("\xff\xfe 1", "version is damaged", "backup"),
    ],
)
def test_another_version_is_refused_and_left_alone(
    directory: Path, text: str, message: str, hint: str
) -> None:
    (directory / "version").write_text(text, "latin-1")
    before = (directory / "data.mdb").read_bytes()
    for attempt in (open_data_directory, compact, check_data_directory):
        with pytest.raises(StoreError, match=message) as caught:
            attempt(directory)
        assert hint in caught.value.hint
        assert str(directory) in str(caught.value)
    assert (directory / "data.mdb").read_bytes() == before


def test_data_without_its_version_is_refused(directory: Path) -> None:
    (directory / "version").unlink()
    with pytest.raises(StoreError, match=r"data\.mdb holds data, but the file version") as caught:
        open_data_directory(directory)
    assert "'falconmq data 1'" in caught.value.hint


@pytest.mark.parametrize("attempt", [compact, check_data_directory])
def test_there_must_be_a_data_directory_to_check_or_compact(
    tmp_path: Path, attempt: object
) -> None:
    assert callable(attempt)
    with pytest.raises(StoreError, match="is no data directory of FalconMQ"):
        attempt(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def read_only(directory: Path) -> Iterator[Path]:
    """The directory, not to be written: by its mode, or for root by a mount."""
    if os.geteuid():
        directory.chmod(0o500)
        for file in directory.iterdir():
            file.chmod(0o400)
        yield directory
        directory.chmod(0o700)
        return
    bind = ["mount", "--bind", str(directory), str(directory)]
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("root ignores modes, and mounting is not permitted here")
    subprocess.run(["mount", "-o", "remount,ro,bind", str(directory)], check=True)
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


def test_a_read_only_directory_is_a_named_error(read_only: Path) -> None:
    with pytest.raises(StoreError, match=f"cannot use {read_only}/lock: ") as caught:
        open_data_directory(read_only)
    assert caught.value.status is MqStatus.MESSAGE_STORAGE_FAILED
    assert "read-only" in caught.value.hint or "right to write" in caught.value.hint


def test_a_place_where_no_directory_can_be_made_is_a_named_error() -> None:
    with pytest.raises(StoreError, match="cannot use /proc/falconmq: "):
        open_data_directory("/proc/falconmq/data")


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(8192), b"garbage!" * 4096])
def test_a_file_that_is_no_store_is_named(directory: Path, content: bytes) -> None:
    (directory / "data.mdb").write_bytes(content)
    with pytest.raises(StoreError, match=r"data\.mdb is damaged: ") as caught:
        open_data_directory(directory)
    assert caught.value.status is MqStatus.MESSAGE_STORAGE_FAILED
    assert "restore the directory from a backup" in caught.value.hint
    assert (directory / "data.mdb").read_bytes() == content
    assert len(check_data_directory(directory)) == 1


def test_a_missing_file_is_not_replaced_by_an_empty_one(directory: Path) -> None:
    (directory / "data.mdb").unlink()
    with pytest.raises(StoreError, match=r"data\.mdb is damaged: it is missing"):
        open_data_directory(directory)
    assert not (directory / "data.mdb").exists()


@pytest.mark.parametrize("percent", [1, 10, 50, 90, 99])
def test_a_file_that_was_cut_is_named_before_anything_reads_behind_its_end(
    directory: Path, percent: int
) -> None:
    size = (directory / "data.mdb").stat().st_size
    os.truncate(directory / "data.mdb", size * percent // 100)
    with pytest.raises(StoreError, match=r"data\.mdb is damaged: ") as caught:
        open_data_directory(directory)
    assert "keep a copy" in caught.value.hint
    assert check_data_directory(directory)


def test_only_the_free_end_of_a_file_may_be_missing(tmp_path: Path) -> None:
    """LMDB need not write pages at the end that were used and freed in one transaction."""
    with open_data_directory(tmp_path) as store:
        store.commit([some_messages(200)])
        store.commit([deletes("messages", [number(n) for n in range(20, 200)])])
        kept = dict(store.scan("messages"))
    data_file = tmp_path / "data.mdb"
    size = data_file.stat().st_size
    page = 4096
    while True:  # cut page by page, as far as the check lets it through
        size -= page
        os.truncate(data_file, size)
        try:
            check_pages(data_file)
        except StoreError as error:
            assert "cut short" in str(error)
            break
        with open_data_directory(tmp_path) as store:
            assert dict(store.scan("messages")) == kept


class RememberingWalk(lmdb_pages._Walk):
    """Remembers the branch and leaf pages in use, and where their keys are."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.numbers: list[int] = []
        self.keys: list[tuple[int, bytes]] = []

    def _check_page(self, number: int, kind: int) -> tuple[int, lmdb_pages.Pointers]:
        self.numbers.append(number)
        return super()._check_page(number, kind)

    def _keys(self, offset: int, pointers: lmdb_pages.Pointers) -> list[bytes]:
        keys = super()._keys(offset, pointers)
        self.keys += zip([offset + pointer + 8 for pointer in pointers], keys, strict=True)
        return keys


def walk(path: Path) -> RememberingWalk:
    walk = RememberingWalk(path.read_bytes())
    walk.run()
    return walk


@pytest.mark.parametrize(
    "what", ["zeros", "noise", "another page", "its header", "its kind", "its pointers"]
)
def test_every_page_that_was_overwritten_is_noticed_at_open(directory: Path, what: str) -> None:
    data_file = directory / "data.mdb"
    sound = data_file.read_bytes()
    pages = walk(data_file).numbers
    assert len(pages) > 50
    chance = random.Random(7)
    for page in pages:
        data = bytearray(sound)
        at = page * 4096
        match what:
            case "zeros":
                data[at : at + 4096] = bytes(4096)
            case "noise":
                data[at : at + 4096] = chance.randbytes(4096)
            case "another page":
                other = next(other for other in pages if other != page) * 4096
                data[at : at + 4096] = sound[other : other + 4096]
            case "its header":
                data[at : at + 16] = chance.randbytes(16)
            case "its kind":
                data[at + 10] ^= 3  # a leaf becomes a branch, a branch a leaf
            case _:
                data[at + 16 : at + 18] = b"\x04\x00"  # the first node would be in the header
        data_file.write_bytes(data)
        with pytest.raises(StoreError, match=r"data\.mdb is damaged: "):
            check_pages(data_file)
    with pytest.raises(StoreError, match=r"data\.mdb is damaged: "):
        open_data_directory(directory)
    data_file.write_bytes(sound)
    with open_data_directory(directory) as store:
        assert store.verify() == []


@pytest.mark.parametrize("other", [b"order 00000", b"order 99999"])
def test_every_key_out_of_its_order_is_noticed_at_open(tmp_path: Path, other: bytes) -> None:
    """A search would miss it and others, and nobody would ever read it to see its checksum."""
    keys = [b"order %05d" % n for n in range(1, 500)]
    with open_data_directory(tmp_path, durability=Durability.RELAXED) as store:
        store.commit([puts("messages", dict.fromkeys(keys, b"v" * 300))])
    data_file = tmp_path / "data.mdb"
    sound = data_file.read_bytes()
    # where keys are, but for the first, which may become smaller, and the last, larger
    places = [(at, key) for at, key in walk(data_file).keys if key in keys[1:-1]]
    assert len(places) > len(keys)  # some are in branch pages too
    for at, key in places[::7]:
        data_file.write_bytes(sound[:at] + other + sound[at + len(key) :])
        with pytest.raises(StoreError, match="has keys out of order"):
            check_pages(data_file)


def tree_record(data: bytes, table: bytes) -> int:
    """Where the main tree keeps the root of a table: behind its name."""
    walk = RememberingWalk(data)
    walk.run()
    return next(at for at, key in walk.keys if key == table) + len(table)


def test_a_table_that_lost_records_is_noticed_at_open(directory: Path) -> None:
    data_file = directory / "data.mdb"
    data = bytearray(data_file.read_bytes())
    at = tree_record(bytes(data), b"messages") + 32  # how many entries it has
    assert data[at : at + 8] == (400).to_bytes(8, "little")
    data[at : at + 8] = (401).to_bytes(8, "little")
    data_file.write_bytes(data)
    with pytest.raises(StoreError, match="table messages has 400 entries, its head says 401"):
        open_data_directory(directory)


def test_a_page_with_two_owners_is_noticed_at_open(directory: Path) -> None:
    data_file = directory / "data.mdb"
    data = bytearray(data_file.read_bytes())
    queues, meta = tree_record(bytes(data), b"queues"), tree_record(bytes(data), b"meta")
    data[meta : meta + 48] = data[queues : queues + 48]
    data_file.write_bytes(data)
    with pytest.raises(StoreError, match="is used twice"):
        open_data_directory(directory)


def test_a_big_value_that_was_cut_off_is_noticed_at_open(tmp_path: Path) -> None:
    # given a file that ends with the pages of one value
    with open_data_directory(tmp_path) as store:
        for n in range(20):
            store.commit([puts("messages", {number(n): b"small"})])
        store.commit([puts("messages", {number(20): b"z" * 100_000})])
    data_file = tmp_path / "data.mdb"
    size = data_file.stat().st_size
    assert data_file.read_bytes()[-4096:].startswith(b"zzz")
    # when its last page is gone
    os.truncate(data_file, size - 4096)
    # then that is an error, not a SIGBUS when somebody reads the value
    with pytest.raises(StoreError, match="it was cut short"):
        open_data_directory(tmp_path)


@pytest.mark.parametrize("head", [0, 1])
def test_a_damaged_head_is_noticed_at_open(directory: Path, head: int) -> None:
    data_file = directory / "data.mdb"
    sound = data_file.read_bytes()
    for at in (0, 10, 16, 20, 40):  # number, kind, signature, version, page size
        data = bytearray(sound)
        data[head * 4096 + at : head * 4096 + at + 2] = b"\x5a\x5a"
        data_file.write_bytes(data)
        with pytest.raises(StoreError, match=r"data\.mdb is damaged: "):
            open_data_directory(directory)


CHECKER = """
import sys
from falconmq.errors import StoreError
from falconmq.store import open_data_directory
try:
    with open_data_directory(sys.argv[1]) as store:
        for table in ("messages", "queues", "meta"):
            for _ in store.scan(table): pass
except StoreError as error:
    assert "data.mdb is damaged" in str(error), error
    print("named")
else:
    print("sound")
"""


@pytest.mark.slow
def test_no_damage_ends_the_process(directory: Path) -> None:
    """Whatever is overwritten, opening and reading ends with a named error or with all the data."""
    data_file = directory / "data.mdb"
    sound = data_file.read_bytes()
    chance = random.Random(11)
    outcomes = []
    for _ in range(30):
        data = bytearray(sound)
        for _ in range(chance.choice((1, 5, 40))):
            at = chance.randrange(8192, len(data))
            size = chance.choice((1, 8, 64, 4096))
            data[at : at + size] = chance.randbytes(len(data[at : at + size]))
        data_file.write_bytes(data)
        command = [sys.executable, "-c", CHECKER, str(directory)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outcomes.append(done.stdout.strip())
    assert set(outcomes) == {"named", "sound"}


def test_check_finds_what_open_does_not_look_at(directory: Path) -> None:
    assert check_data_directory(directory) == []
    # a value in pages of its own: found by its checksum
    data_file = directory / "data.mdb"
    sound = data_file.read_bytes()
    data = bytearray(sound)
    at = data.index(bytes([250]) * 6300)
    data[at + 3000] ^= 1
    data_file.write_bytes(data)
    with open_data_directory(directory):
        pass
    record = f"the record {number(250).hex()} of table messages has changed"
    assert [record in line for line in check_data_directory(directory)] == [True]


def test_compacting_gives_space_back_and_keeps_every_record(directory: Path) -> None:
    with open_data_directory(directory) as store:
        store.commit([deletes("messages", [number(n) for n in range(10, 490)])])
        before = {table: list(store.scan(table)) for table in ("messages", "queues", "meta")}
    size = (directory / "data.mdb").stat().st_size
    done = compact(directory)
    assert (done.bytes_before, done.bytes_after) == (size, (directory / "data.mdb").stat().st_size)
    assert done.bytes_after < size / 5
    assert check_data_directory(directory) == []
    with open_data_directory(directory) as store:
        assert {table: list(store.scan(table)) for table in before} == before
        assert store.statistics().reusable_bytes < 10 * 4096
        store.commit([some_messages()])


def test_what_an_interrupted_compaction_left_is_cleared_away(directory: Path) -> None:
    (directory / "compacting").mkdir()
    shutil.copy(directory / "data.mdb", directory / "compacting")
    with open_data_directory(directory) as store:
        assert store.get("queues", b"q") == b"orders"
    assert not (directory / "compacting").exists()
    (directory / "compacting").mkdir()
    shutil.copy(directory / "data.mdb", directory / "compacting")
    compact(directory)
    assert not (directory / "compacting").exists()


def test_a_damaged_file_is_not_compacted(directory: Path) -> None:
    data_file = directory / "data.mdb"
    os.truncate(data_file, data_file.stat().st_size // 2)
    before = data_file.read_bytes()
    with pytest.raises(StoreError, match="is damaged"):
        compact(directory)
    assert data_file.read_bytes() == before


@pytest.mark.parametrize("file", ["lock.mdb", "reserve", "lock"])
def test_what_means_nothing_between_two_runs_may_be_missing(directory: Path, file: str) -> None:
    (directory / file).unlink()
    with open_data_directory(directory) as store:
        assert store.get("queues", b"q") == b"orders"
