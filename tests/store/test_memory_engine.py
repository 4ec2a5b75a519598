"""The bad days that the store in memory can have."""

from __future__ import annotations

import pytest

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.store import MemoryStore, ProcessCrash
from tests.store.helpers import deletes, puts


def test_a_crash_leaves_what_was_committed() -> None:
    store = MemoryStore()
    store.commit([puts("messages", {b"a": b"1"})])
    puts("messages", {b"b": b"2"})  # nobody committed it
    store.crash()
    assert list(store.scan("messages")) == [(b"a", b"1")]


def test_the_chosen_commit_fails_before_anything_happens_and_only_that_one() -> None:
    store = MemoryStore()
    store.fail_commit(2)
    store.commit([puts("messages", {b"a": b"1"})])
    with pytest.raises(StoreError, match="made to fail"):
        store.commit([puts("messages", {b"b": b"2"})])
    store.commit([puts("messages", {b"c": b"3"})])
    assert [key for key, _ in store.scan("messages")] == [b"a", b"c"]


@pytest.mark.parametrize(("is_durable", "expected"), [(False, None), (True, b"1")])
def test_the_process_may_end_just_before_or_just_after_the_sync(
    is_durable: bool, expected: bytes | None
) -> None:
    store = MemoryStore()
    store.fail_commit(1, ProcessCrash(), durable=is_durable)
    with pytest.raises(ProcessCrash):
        store.commit([puts("messages", {b"a": b"1"})])
    # nothing works until the next process opens the store
    with pytest.raises(StoreError, match="has crashed"):
        store.get("messages", b"a")
    with pytest.raises(StoreError, match="has crashed"):
        store.commit([puts("messages", {b"b": b"2"})])
    store.crash()
    assert store.get("messages", b"a") == expected


def test_a_crash_closes_the_snapshots_of_the_process() -> None:
    store = MemoryStore()
    with store.snapshot() as snapshot:
        store.crash()
        with pytest.raises(StoreError, match="closed"):
            snapshot.get("messages", b"a")


def test_a_full_store_refuses_puts_and_takes_deletions() -> None:
    store = MemoryStore()
    store.commit([puts("messages", {b"a": b"1"})])
    store.is_full = True
    with pytest.raises(ResourceError) as caught:
        store.commit([deletes("messages", [b"a"]), puts("messages", {b"b": b"2"})])
    assert caught.value.status is MqStatus.MESSAGE_STORAGE_FAILED
    assert store.get("messages", b"a") == b"1"
    store.commit([deletes("messages", [b"a"])])


def test_the_limit_counts_what_is_there() -> None:
    store = MemoryStore(limit_bytes=10)
    store.commit([puts("messages", {b"a": b"12345678"})])
    with pytest.raises(ResourceError, match="limit of 10 bytes"):
        store.commit([puts("messages", {b"b": b"1"})])
    store.commit([deletes("messages", [b"a"])])
    store.commit([puts("messages", {b"b": b"1"})])
    store.commit([puts("messages", {b"b": b"12"})])
    assert store.statistics().used_bytes == 3
