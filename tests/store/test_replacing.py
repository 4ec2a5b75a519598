"""Copies of a store, and a data directory that is made of one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from falconmq.errors import StoreError
from falconmq.store import (
    LmdbStore,
    MemoryStore,
    Store,
    check_data_directory,
    open_data_directory,
)
from falconmq.store.replacing import replace_data
from tests.store.helpers import deletes, number, puts


@contextmanager
def filled(kind: str, path: Path) -> Iterator[Store]:
    store: Store = MemoryStore() if kind == "memory" else open_data_directory(path)
    store.commit([puts("messages", {number(n): b"x" * 900 for n in range(300)})])
    store.commit([deletes("messages", [number(n) for n in range(100)])])
    store.commit([puts("meta", {b"next": b"7"})])
    yield store
    store.close()


def copy(store: Store, target: Path) -> dict[str, int]:
    with (target / "data.mdb").open("wb") as file:
        return store.write_copy(file.fileno())


def some_data(target: Path) -> None:
    with LmdbStore(target) as store:
        store.commit([puts("meta", {b"next": b"7"})])


@pytest.mark.parametrize("kind", ["lmdb", "memory"])
def test_a_copy_has_everything_and_says_how_much(kind: str, tmp_path: Path) -> None:
    with filled(kind, tmp_path / "source") as store:
        counts: list[dict[str, int]] = []
        replace_data(tmp_path / "copy", lambda target: counts.append(copy(store, target)))
        assert counts == [{"messages": 200, "meta": 1}]
        with open_data_directory(tmp_path / "copy") as found:
            for table in ("messages", "meta"):
                assert list(found.scan(table)) == list(store.scan(table))


def test_a_copy_is_of_one_moment_while_commits_go_on(tmp_path: Path) -> None:
    with open_data_directory(tmp_path / "source") as store:
        batch = {number(n): b"x" * 3000 for n in range(2000)}
        store.commit([puts("messages", batch)])
        reading, writing = os.pipe()
        counts: list[dict[str, int]] = []

        def write() -> None:
            counts.append(store.write_copy(writing))
            os.close(writing)

        thread = threading.Thread(target=write)
        thread.start()
        content = [os.read(reading, 100)]  # it has begun, and the pipe is full
        store.commit([deletes("messages", list(batch)), puts("other", {b"a": b"b"})])
        while content[-1]:
            content.append(os.read(reading, 1 << 20))
        thread.join()
        os.close(reading)

    def fill(target: Path) -> None:
        (target / "data.mdb").write_bytes(b"".join(content))

    replace_data(tmp_path / "copy", fill)
    with open_data_directory(tmp_path / "copy") as found:
        assert dict(found.scan("messages")) == batch
        assert list(found.scan("other")) == []
    assert counts == [{"messages": 2000}]


def test_a_reader_that_goes_away_ends_the_copy(tmp_path: Path) -> None:
    with open_data_directory(tmp_path) as store:
        store.commit([puts("messages", {number(n): b"x" * 3000 for n in range(1000)})])
        reading, writing = os.pipe()
        os.close(reading)
        with pytest.raises(StoreError):
            store.write_copy(writing)
        os.close(writing)
        assert store.get("messages", number(0)) is not None


def test_what_cannot_be_used_replaces_nothing(tmp_path: Path) -> None:
    replace_data(tmp_path / "data", some_data)
    with open_data_directory(tmp_path / "source") as store:
        store.commit([puts("messages", {number(n): b"x" * 900 for n in range(300)})])

        def damage(target: Path) -> None:
            copy(store, target)
            content = (target / "data.mdb").read_bytes()
            at = content.rindex(b"x" * 500)
            (target / "data.mdb").write_bytes(content[:at] + b"y" + content[at + 1 :])

        with pytest.raises(StoreError):
            replace_data(tmp_path / "data", damage, force=True)
    with open_data_directory(tmp_path / "data") as found:
        assert found.get("meta", b"next") == b"7"
    assert check_data_directory(tmp_path / "data") == []


def test_what_an_interrupted_restore_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "data" / "restoring"
    left.mkdir(parents=True)
    (left / "data.mdb").write_bytes(b"half")
    with open_data_directory(tmp_path / "data"):
        assert not left.exists()


def test_an_error_while_filling_leaves_an_empty_directory_empty(tmp_path: Path) -> None:
    def fail(target: Path) -> None:
        (target / "data.mdb").write_bytes(b"half")
        raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        replace_data(tmp_path / "data", fail)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["lock"]
    replace_data(tmp_path / "data", some_data)
