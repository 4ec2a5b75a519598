"""What any store promises, over both engines."""

from __future__ import annotations

import sys
import threading
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.store import (
    Durability,
    LmdbStore,
    MemoryStore,
    Store,
    StoreReader,
    WriteBatch,
    open_data_directory,
)
from falconmq.store.interface import KEY_BYTES_MAX, TABLES_MAX
from tests.store.conftest import Reopen
from tests.store.helpers import SECONDS, deletes, number, puts
from tests.strategies.store import TABLES, bounds, tables, write_batches


def test_what_is_put_is_there_and_what_is_deleted_is_gone(store: Store) -> None:
    store.commit([puts("messages", {b"a": b"1", b"b": b"2"})])
    store.commit([deletes("messages", [b"a"])])
    assert store.get("messages", b"a") is None
    assert store.get("messages", b"b") == b"2"


def test_a_table_nobody_wrote_to_is_empty(store: Store) -> None:
    assert store.get("queues", b"a") is None
    assert list(store.scan("queues")) == []
    with store.snapshot() as snapshot:
        assert snapshot.get("queues", b"a") is None
        assert list(snapshot.scan("queues")) == []


def test_the_batches_of_a_commit_apply_in_order(store: Store) -> None:
    again = puts("meta", {b"counter": b"2"})
    store.commit([puts("meta", {b"counter": b"1"}), deletes("meta", [b"counter"]), again])
    assert store.get("meta", b"counter") == b"2"


def test_deleting_what_is_not_there_is_no_error(store: Store) -> None:
    store.commit([deletes("messages", [b"nobody"])])
    assert list(store.scan("messages")) == []


def test_an_empty_value_is_a_value(store: Store) -> None:
    store.commit([puts("meta", {b"flag": b""})])
    assert store.get("meta", b"flag") == b""
    assert list(store.scan("meta")) == [(b"flag", b"")]


def test_values_come_back_as_bytes_whatever_went_in(store: Store) -> None:
    batch = WriteBatch()
    batch.put("messages", b"a", bytearray(b"12"))
    batch.put("messages", b"b", memoryview(b"0123")[1:3])
    store.commit([batch])
    values = [store.get("messages", b"a"), *(value for _, value in store.scan("messages"))]
    assert values == [b"12", b"12", b"12"]
    assert {type(value) for value in values} == {bytes}


def test_a_scan_has_its_start_but_not_its_stop(store: Store) -> None:
    store.commit([puts("messages", {key: key for key in (b"a", b"b", b"c", b"d")})])
    assert [key for key, _ in store.scan("messages", b"b", b"d")] == [b"b", b"c"]
    assert [key for key, _ in store.scan("messages", b"b", b"d", reverse=True)] == [b"c", b"b"]


def test_a_long_scan_in_both_directions_misses_and_repeats_nothing(store: Store) -> None:
    count = 5000  # many pieces
    store.commit([puts("messages", {number(n): number(n) for n in range(count)})])
    forwards = list(store.scan("messages", number(3), number(count - 3)))
    assert forwards == [(number(n), number(n)) for n in range(3, count - 3)]
    backwards = list(store.scan("messages", number(3), number(count - 3), reverse=True))
    assert backwards == forwards[::-1]


def test_the_longest_key_is_scanned_past(store: Store) -> None:
    # given more records with the longest keys than one piece of a scan has
    keys = [bytes(KEY_BYTES_MAX - 2) + n.to_bytes(2, "big") for n in range(300)]
    store.commit([puts("messages", dict.fromkeys(keys, b"x"))])
    # then the scan goes on behind each of them
    assert [key for key, _ in store.scan("messages")] == keys
    assert [key for key, _ in store.scan("messages", reverse=True)] == keys[::-1]


def test_a_bound_may_be_longer_than_any_key(store: Store) -> None:
    key = b"k" * KEY_BYTES_MAX
    store.commit([puts("messages", {b"a": b"1", key: b"2", b"z": b"3"})])
    for reverse in (False, True):
        assert list(store.scan("messages", key + b"k", None, reverse=reverse)) == [(b"z", b"3")]
        found = [k for k, _ in store.scan("messages", b"b", key + b"k", reverse=reverse)]
        assert found == [key]


def test_commits_behind_a_scan_do_not_disturb_it(store: Store) -> None:
    # given a scan that has read one record
    store.commit([puts("messages", {number(n): b"old" for n in range(3000)})])
    scan = store.scan("messages")
    assert next(scan)[0] == number(0)
    # when records before and after it go, and one at the end comes
    store.commit([deletes("messages", [number(n) for n in range(0, 3000, 2)])])
    store.commit([puts("messages", {number(3000): b"new"})])
    # then it ends in order, with every record that was there all the time
    keys = [key for key, _ in scan]
    assert keys == sorted(set(keys))
    assert set(keys) >= {number(n) for n in range(1, 3000, 2)}


@pytest.mark.parametrize("key", [b"", b"k" * (KEY_BYTES_MAX + 1)])
def test_a_key_that_cannot_be_indexed_fails_the_whole_commit(store: Store, key: bytes) -> None:
    with pytest.raises(StoreError, match=f"a key of {len(key)} bytes in table meta"):
        store.commit([puts("messages", {b"a": b"1"}), puts("meta", {key: b"2"})])
    assert store.get("messages", b"a") is None
    assert store.get("meta", key) is None
    store.commit([puts("messages", {b"a": b"1"})])


def test_more_tables_than_there_is_room_for_is_a_named_error(store: Store) -> None:
    store.commit([puts(f"table {n}", {b"k": b"v"}) for n in range(TABLES_MAX)])
    with pytest.raises(ResourceError, match="at most 64 tables") as caught:
        store.commit([puts("meta", {b"a": b"1"})])
    assert caught.value.status is MqStatus.INSUFFICIENT_RESOURCES
    assert sum(store.statistics().records.values()) == TABLES_MAX


def test_a_snapshot_keeps_its_moment_while_commits_go_on(store: Store) -> None:
    store.commit([puts("messages", {b"a": b"1", b"b": b"2"})])
    with store.snapshot() as snapshot:
        store.commit([deletes("messages", [b"a"]), puts("messages", {b"b": b"3", b"c": b"4"})])
        store.commit([puts("queues", {b"q": b"new table"})])
        assert list(snapshot.scan("messages")) == [(b"a", b"1"), (b"b", b"2")]
        assert snapshot.get("messages", b"c") is None
        assert list(snapshot.scan("queues")) == []
    assert list(store.scan("messages")) == [(b"b", b"3"), (b"c", b"4")]


def test_a_snapshot_can_be_read_by_another_thread(store: Store) -> None:
    store.commit([puts("messages", {number(n): b"v" for n in range(1000)})])
    read: list[tuple[bytes, bytes]] = []
    with store.snapshot() as snapshot:
        thread = threading.Thread(target=lambda: read.extend(snapshot.scan("messages")))
        thread.start()
        store.commit([deletes("messages", [number(n) for n in range(1000)])])
        thread.join(SECONDS)
    assert len(read) == 1000


@pytest.mark.parametrize("size", [3, 100_000])
def test_blocks_hold_what_a_scan_gives(store: Store, size: int) -> None:
    count = 700 if size < 1000 else 60
    store.commit([puts("messages", {number(n): b"%d" % n * (size // 3) for n in range(count)})])
    for first, last in ((0, count), (1, count - 1), (20, 21), (5, 5), (count, count + 9)):
        start, stop = number(first), number(last)
        with store.snapshot() as snapshot:
            blocks = list(snapshot.blocks("messages", start, stop))
            scanned = list(snapshot.scan("messages", start, stop))
        found = [pair for block in blocks for pair in zip(block.keys, block.values(), strict=True)]
        assert found == scanned
        assert all(len(block.keys) and len(block.data) < 8 << 20 for block in blocks)


def test_neighbours_are_given_up_to_the_first_that_is_missing(store: Store) -> None:
    prefix = b"queue 17"
    first = (1 << 32) - 300  # the last bytes of the numbers begin anew twice
    values = {first + n: b"%d" % n * (n % 7 + 1) for n in range(700)}
    del values[first + 600]
    records = {prefix + n.to_bytes(8, "big"): value for n, value in values.items()}
    store.commit([puts("messages", records), puts("messages", {b"queue 18" + bytes(8): b"other"})])

    def read(begin: int, count: int) -> list[bytes]:
        with store.snapshot() as snapshot:
            blocks = snapshot.neighbours("messages", prefix, begin, count)
            return [value for block in blocks for value in block.values()]

    wanted = list(values.values())
    assert read(first, 500) == wanted[:500]
    assert read(first + 3, 2) == wanted[3:5]
    assert read(first + 250, 100) == wanted[250:350]
    assert read(first + 601, 99) == wanted[600:]
    assert read(first + 600, 5) == []
    found = read(first, 700)  # it may end before the hole, for a block is whole or not there
    assert found == wanted[: len(found)]
    assert 300 < len(found) <= 600
    beyond = read(first + 601, 200)
    assert beyond == wanted[600 : 600 + len(beyond)]
    with store.snapshot() as snapshot:
        assert list(snapshot.neighbours("nobody", prefix, first, 5)) == []
        assert list(snapshot.blocks("nobody", b"", b"z")) == []


def test_a_closed_snapshot_says_so(store: Store) -> None:
    store.commit([puts("messages", {number(n): b"v" for n in range(1000)})])
    with store.snapshot() as snapshot:
        scan = snapshot.scan("messages")
        next(scan)
    with pytest.raises(StoreError, match="snapshot is closed"):
        snapshot.get("messages", number(1))
    with pytest.raises(StoreError, match="snapshot is closed"):
        list(scan)
    with pytest.raises(StoreError, match="snapshot is closed"):
        list(snapshot.scan("messages"))
    with pytest.raises(StoreError, match="snapshot is closed"):
        list(snapshot.blocks("messages", b"", b"z"))
    with pytest.raises(StoreError, match="snapshot is closed"):
        list(snapshot.neighbours("messages", b"", 0, 9))


def test_readers_in_other_threads_see_whole_commits_only(store: Store) -> None:
    # given a writer that always changes two records together
    store.commit([puts("messages", {b"a": number(0)}), puts("meta", {b"b": number(0)})])
    torn: list[tuple[bytes | None, bytes | None]] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            with store.snapshot() as snapshot:
                pair = snapshot.get("messages", b"a"), snapshot.get("meta", b"b")
            if pair[0] != pair[1]:
                torn.append(pair)

    watchers = [threading.Thread(target=watch) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    for n in range(1, 60):
        store.commit([puts("messages", {b"a": number(n)}), puts("meta", {b"b": number(n)})])
    is_over.set()
    for watcher in watchers:
        watcher.join(SECONDS)
    assert torn == []


def test_a_closed_store_refuses_everything(store: Store) -> None:
    store.commit([puts("messages", {number(n): b"v" for n in range(1000)})])
    scan = store.scan("messages")
    next(scan)
    store.close()
    store.close()
    for attempt in (
        lambda: store.get("messages", number(1)),
        lambda: store.get("unknown", number(1)),
        lambda: store.commit([puts("messages", {b"a": b"1"})]),
        lambda: list(store.scan("messages")),
        lambda: list(scan),
        store.statistics,
        store.verify,
        lambda: store.snapshot().__enter__(),
    ):
        with pytest.raises(StoreError, match="closed"):
            attempt()


def test_what_was_committed_is_there_after_opening_again(store: Store, reopen: Reopen) -> None:
    store.commit([puts("messages", {b"a": b"1"}), puts("queues", {b"q": b"2"})])
    store = reopen(store)
    assert store.get("messages", b"a") == b"1"
    assert store.get("queues", b"q") == b"2"
    assert store.verify() == []


def test_statistics_are_read_while_tables_come_to_be(
    store: Store, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)  # threads take turns as often as they can

    def create() -> None:
        for name in range(TABLES_MAX):
            store.commit([puts(f"table {name}", {b"a": b"1"})])

    thread = threading.Thread(target=create)
    thread.start()
    seen = 0
    while thread.is_alive():
        records = store.statistics().records
        assert len(records) >= seen
        seen = len(records)
    thread.join()
    assert len(store.statistics().records) == TABLES_MAX


def test_statistics_count_records_and_commits(store: Store) -> None:
    store.commit([puts("messages", {b"a": b"1", b"b": b"2"}), puts("meta", {b"c": b"3"})])
    store.commit([deletes("messages", [b"a"])])
    statistics = store.statistics()
    assert statistics.records == {"messages": 1, "meta": 1}
    assert statistics.commits == 2
    assert statistics.durability is Durability.SYNC
    assert 0 < statistics.used_bytes <= statistics.limit_bytes


@pytest.mark.parametrize("engine", ["lmdb", "memory"])
@settings(max_examples=60)
@given(
    batches=st.lists(write_batches(), max_size=4),
    table=tables,
    start=bounds,
    stop=st.none() | bounds,
    reverse=st.booleans(),
)
def test_a_range_is_what_a_sorted_dictionary_says(
    engine: str,
    batches: list[WriteBatch],
    table: str,
    start: bytes,
    stop: bytes | None,
    reverse: bool,
) -> None:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as path:
        store: Store = MemoryStore() if engine == "memory" else open_data_directory(path)
        store.commit(batches)
        model: dict[bytes, bytes] = {}
        for name, key, value in (o for batch in batches for o in batch.operations):
            if name == table:
                model.pop(key, None)
                if value is not None:
                    model[key] = bytes(value)
        expected = sorted(
            (
                (key, value)
                for key, value in model.items()
                if key >= start and (stop is None or key < stop)
            ),
            reverse=reverse,
        )
        assert list(store.scan(table, start, stop, reverse=reverse)) == expected
        with store.snapshot() as snapshot:
            assert list(snapshot.scan(table, start, stop, reverse=reverse)) == expected
        store.close()


class StoreMachine(RuleBasedStateMachine):
    """Commits, refusals, snapshots, restarts, compared with dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, dict[bytes, bytes]] = {table: {} for table in TABLES}
        self.kept: list[tuple[StoreReader, dict[str, dict[bytes, bytes]]]] = []
        self.open_snapshots: list[object] = []
        self.store = self.make()

    def make(self) -> Store:
        return MemoryStore()

    def restart(self) -> None:
        assert isinstance(self.store, MemoryStore)
        self.store.crash()

    @rule(batches=st.lists(write_batches(), max_size=3))
    def commit(self, batches: list[WriteBatch]) -> None:
        self.store.commit(batches)
        for table, key, value in (o for batch in batches for o in batch.operations):
            self.model[table].pop(key, None)
            if value is not None:
                self.model[table][key] = bytes(value)

    @rule(batch=write_batches())
    def commit_that_is_refused(self, batch: WriteBatch) -> None:
        with pytest.raises(StoreError):
            self.store.commit([batch, puts("meta", {b"": b"no key"})])

    @precondition(lambda self: len(self.kept) < 3)
    @rule()
    def take_snapshot(self) -> None:
        context = self.store.snapshot()
        self.open_snapshots.append(context)
        self.kept.append((context.__enter__(), {t: dict(r) for t, r in self.model.items()}))

    @rule()
    def end(self) -> None:
        self.kept.clear()
        self.open_snapshots.clear()
        self.restart()

    @invariant()
    def tables_are_as_committed(self) -> None:
        for reader, model in [*self.kept, (self.store, self.model)]:
            for table in TABLES:
                assert list(reader.scan(table)) == sorted(model[table].items())

    @invariant()
    def heads_are_found(self) -> None:
        for table in TABLES:
            expected = sorted(self.model[table].items())
            assert list(islice(self.store.scan(table), 1)) == expected[:1]
            assert list(islice(self.store.scan(table, reverse=True), 1)) == expected[-1:]

    @invariant()
    def counts_are_right(self) -> None:
        records = self.store.statistics().records
        assert all(records.get(table, 0) == len(self.model[table]) for table in TABLES)

    def teardown(self) -> None:
        self.kept.clear()
        self.open_snapshots.clear()
        self.store.close()


class LmdbStoreMachine(StoreMachine):
    """The same over files."""

    def make(self) -> Store:
        self.directory = TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        return open_data_directory(self.directory.name, map_size=1 << 30)

    def restart(self) -> None:
        assert isinstance(self.store, LmdbStore)
        self.store.close()
        self.store = open_data_directory(self.directory.name, map_size=1 << 30)

    def teardown(self) -> None:
        super().teardown()
        self.directory.cleanup()


TestStoreInMemory = StoreMachine.TestCase
TestStoreInMemory.settings = settings(max_examples=25, stateful_step_count=25)
TestStoreInFiles = LmdbStoreMachine.TestCase
TestStoreInFiles.settings = settings(max_examples=25, stateful_step_count=25)
