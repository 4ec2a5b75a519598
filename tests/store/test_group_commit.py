"""Group commit: order, sharing a sync, failures, the bound, the end."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.errors import ResourceError, StoreError
from falconmq.store import (
    Commit,
    Committer,
    GroupCommitter,
    MemoryStore,
    ProcessCrash,
    SynchronousCommitter,
    WriteBatch,
    open_data_directory,
)
from tests.store.helpers import SECONDS, GatedStore, number, puts


def stumble(_: Commit) -> None:
    raise ValueError("a listener's mistake")


def batch(n: int) -> WriteBatch:
    return puts("messages", {number(n): b"v"})


@pytest.fixture
def gated() -> Iterator[tuple[GatedStore, GroupCommitter]]:
    store = GatedStore()
    committer = GroupCommitter(store)
    yield store, committer
    store.let_through(1000)
    committer.close()


@pytest.fixture(params=[GroupCommitter, SynchronousCommitter])
def committer(request: pytest.FixtureRequest) -> Iterator[tuple[MemoryStore, Committer]]:
    store = MemoryStore()
    committer: Committer = request.param(store)
    yield store, committer
    committer.close()


def test_a_commit_that_was_waited_for_is_in_the_store(
    committer: tuple[MemoryStore, Committer],
) -> None:
    store, writer = committer
    commit = writer.submit(batch(1))
    commit.wait(SECONDS)
    assert commit.is_done
    assert commit.error is None
    assert store.get("messages", number(1)) == b"v"


def test_what_arrives_during_a_sync_shares_the_next_one_in_order(
    gated: tuple[GatedStore, GroupCommitter],
) -> None:
    store, committer = gated
    # given a commit that is being written
    batches = [batch(n) for n in range(5)]
    commits = [committer.submit(batches[0])]
    store.await_commit()
    # when four more are submitted meanwhile
    commits += [committer.submit(each) for each in batches[1:]]
    store.let_through(2)
    for commit in commits:
        commit.wait(SECONDS)
    # then they are one group, in the order they came
    assert store.groups == [batches[:1], batches[1:]]
    assert (committer.groups, committer.batches) == (2, 5)


def test_the_writer_gives_those_it_has_told_a_moment_to_come_back() -> None:
    # given a caller whose batch is being written, and another one queued behind it
    store = GatedStore()
    committer = GroupCommitter(store, patience=1e9)
    first = committer.submit(batch(0))
    store.await_commit()
    second = committer.submit(batch(1))
    # when the first caller is told, and sends again
    store.let_through(2)
    first.wait(SECONDS)
    third = committer.submit(batch(2))
    # then its batch shares the sync of the other
    second.wait(SECONDS)
    assert third.is_done
    assert [len(group) for group in store.groups] == [1, 2]
    committer.close()


def test_the_writer_does_not_wait_for_somebody_who_does_not_come_back() -> None:
    store = GatedStore()
    with GroupCommitter(store, patience=1e-9) as committer:
        committer.submit(batch(0))
        store.await_commit()
        second = committer.submit(batch(1))
        store.let_through(2)
        second.wait(SECONDS)
        assert [len(group) for group in store.groups] == [1, 1]


def test_nothing_is_done_before_the_store_has_it(
    gated: tuple[GatedStore, GroupCommitter],
) -> None:
    store, committer = gated
    commit = committer.submit(batch(1))
    store.await_commit()
    assert not commit.is_done
    with pytest.raises(TimeoutError, match="not durable after 0"):
        commit.wait(0)
    store.let_through()
    commit.wait(SECONDS)


def test_an_empty_batch_waits_for_everything_before_it(
    gated: tuple[GatedStore, GroupCommitter],
) -> None:
    store, committer = gated
    first = committer.submit(batch(1))
    store.await_commit()
    empty = committer.submit(WriteBatch())
    assert not empty.is_done
    store.let_through()
    empty.wait(SECONDS)
    assert first.is_done
    assert len(store.groups) == 1  # there was nothing to write for it


def test_an_empty_batch_with_nothing_before_it_is_done_at_once(
    committer: tuple[MemoryStore, Committer],
) -> None:
    store, writer = committer
    assert writer.submit(WriteBatch()).is_done
    assert store.commits == 0


def test_a_failure_takes_everything_behind_it_along_until_resume(
    gated: tuple[GatedStore, GroupCommitter],
) -> None:
    store, committer = gated
    # given a group that fails, with others behind it
    store.fail_commit(1)
    commits = [committer.submit(batch(0))]
    store.await_commit()
    commits += [committer.submit(batch(n)) for n in (1, 2)]
    commits.append(committer.submit(WriteBatch()))
    store.let_through()
    for commit in commits:
        with pytest.raises(StoreError, match="made to fail"):
            commit.wait(SECONDS)
    # when more is submitted before the host has put its memory right
    late = [committer.submit(batch(3)), committer.submit(WriteBatch())]
    # then it fails with the same error, at once
    assert all(commit.is_done and commit.error is committer.error for commit in late)
    assert list(store.scan("messages")) == []
    # and after resume the store is written again
    committer.resume()
    store.let_through()
    committer.submit(batch(4)).wait(SECONDS)
    assert [key for key, _ in store.scan("messages")] == [number(4)]
    assert committer.error is None


def test_a_failure_is_the_same_without_a_thread() -> None:
    store = MemoryStore()
    committer = SynchronousCommitter(store)
    store.fail_commit(2)
    assert committer.submit(batch(0)).error is None
    failed = committer.submit(batch(1))
    assert failed.is_done
    with pytest.raises(StoreError, match="made to fail"):
        failed.wait()
    assert committer.submit(batch(2)).error is committer.error is failed.error
    assert committer.submit(WriteBatch()).error is committer.error
    committer.resume()
    assert committer.submit(batch(3)).error is None
    assert [key for key, _ in store.scan("messages")] == [number(0), number(3)]


def test_the_simulators_crash_comes_out_of_submit() -> None:
    store = MemoryStore()
    committer = SynchronousCommitter(store)
    store.fail_commit(1, durable=True)
    with pytest.raises(ProcessCrash):
        committer.submit(batch(1))
    store.crash()
    assert store.get("messages", number(1)) == b"v"


def test_an_unexpected_exception_reaches_those_who_wait(
    committer: tuple[MemoryStore, Committer],
) -> None:
    store, writer = committer
    store.fail_commit(1, ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        writer.submit(batch(1)).wait(SECONDS)


def test_a_full_store_is_reported_and_takes_batches_again_after_resume(
    committer: tuple[MemoryStore, Committer],
) -> None:
    store, writer = committer
    store.is_full = True
    with pytest.raises(ResourceError, match="limit"):
        writer.submit(batch(1)).wait(SECONDS)
    store.is_full = False
    writer.resume()
    writer.submit(batch(2)).wait(SECONDS)


def test_callbacks_run_once_in_order_and_at_once_if_it_is_over(
    gated: tuple[GatedStore, GroupCommitter],
) -> None:
    store, committer = gated
    called: list[tuple[int, Commit, threading.Thread]] = []
    ended = threading.Event()

    def note(n: int, commit: Commit) -> None:
        called.append((n, commit, threading.current_thread()))

    first, second = committer.submit(batch(1)), committer.submit(batch(2))
    store.await_commit()
    first.add_done_callback(lambda commit: note(1, commit))
    first.add_done_callback(lambda commit: note(2, commit))
    second.add_done_callback(lambda commit: note(3, commit))
    second.add_done_callback(lambda _: ended.set())
    assert called == []
    store.let_through(2)
    assert ended.wait(SECONDS)
    assert [(n, commit) for n, commit, _ in called] == [(1, first), (2, first), (3, second)]
    assert {thread.name for _, _, thread in called} == {"falconmq writer"}
    first.add_done_callback(lambda commit: note(4, commit))
    assert called[-1] == (4, first, threading.current_thread())


def test_a_callback_that_raises_is_logged_and_stops_nobody(
    gated: tuple[GatedStore, GroupCommitter], caplog: pytest.LogCaptureFixture
) -> None:
    store, committer = gated
    commit = committer.submit(batch(1))
    store.await_commit()
    ended = threading.Event()
    commit.add_done_callback(stumble)
    commit.add_done_callback(lambda _: ended.set())
    store.let_through(2)
    assert ended.wait(SECONDS)
    committer.submit(batch(2)).wait(SECONDS)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_submitting_blocks_when_too_much_is_queued() -> None:
    # given a committer that may hold two small batches, the writer busy with a third
    store = GatedStore()
    committer = GroupCommitter(store, queued_bytes_max=20)
    committer.submit(batch(0))
    store.await_commit()
    committer.submit(batch(1))
    committer.submit(batch(2))
    assert committer.queued_bytes == 18
    # when a fourth is submitted
    submitted = threading.Event()

    def submit() -> None:
        committer.submit(batch(3)).wait(SECONDS)
        submitted.set()

    thread = threading.Thread(target=submit)
    thread.start()
    # then it gets in only when the writer has taken what was queued
    store.let_through()
    store.await_commit()
    store.let_through(2)
    assert submitted.wait(SECONDS)
    assert [len(group) for group in store.groups] == [1, 2, 1]
    committer.close()
    thread.join(SECONDS)


def test_a_batch_larger_than_the_bound_gets_through_alone() -> None:
    with GroupCommitter(MemoryStore(), queued_bytes_max=20) as committer:
        committer.submit(puts("messages", {b"k": bytes(1000)})).wait(SECONDS)


def test_a_failure_frees_those_who_wait_for_room() -> None:
    store = GatedStore()
    committer = GroupCommitter(store, queued_bytes_max=10)
    store.fail_commit(1)
    committer.submit(batch(0))
    store.await_commit()
    committer.submit(batch(1))
    errors: list[BaseException | None] = []
    thread = threading.Thread(target=lambda: errors.append(committer.submit(batch(2)).error))
    thread.start()
    store.let_through()
    thread.join(SECONDS)
    assert [type(error) for error in errors] == [StoreError]
    committer.close()


def test_a_callback_may_submit_although_the_queue_is_full() -> None:
    store = GatedStore()
    committer = GroupCommitter(store, queued_bytes_max=10)
    done = threading.Event()

    def again(_: Commit) -> None:
        for n in (7, 8, 9):
            committer.submit(batch(n)).add_done_callback(lambda _: done.set())

    committer.submit(batch(0)).add_done_callback(again)
    store.let_through(2)
    assert done.wait(SECONDS)
    committer.close()


def test_closing_writes_what_is_queued_and_refuses_what_comes_later() -> None:
    store = GatedStore()
    committer = GroupCommitter(store)
    commits = [committer.submit(batch(0))]
    store.await_commit()
    commits += [committer.submit(batch(n)) for n in range(1, 4)]
    store.let_through(2)
    committer.close()
    committer.close()
    assert all(commit.is_done and commit.error is None for commit in commits)
    assert len(list(store.scan("messages"))) == 4
    with pytest.raises(StoreError, match="closed"):
        committer.submit(batch(9))


def test_closing_from_a_callback_does_not_wait_for_itself() -> None:
    committer = GroupCommitter(MemoryStore())
    closed = threading.Event()

    def close(_: Commit) -> None:
        committer.close()
        closed.set()

    committer.submit(batch(0)).add_done_callback(close)
    assert closed.wait(SECONDS)
    committer.close()


def test_an_interrupt_ends_the_wait_and_not_the_commit(
    gated: tuple[GatedStore, GroupCommitter],
) -> None:
    store, committer = gated
    commit = committer.submit(batch(1))
    store.await_commit()
    main = threading.main_thread().ident
    assert main is not None
    interrupter = threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGINT))

    def wait() -> None:
        interrupter.start()
        commit.wait(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert not commit.is_done
    store.let_through()
    commit.wait(SECONDS)
    assert store.get("messages", number(1)) == b"v"


def test_many_threads_share_syncs_and_keep_their_own_order(tmp_path: Path) -> None:
    threads, each = 8, 40
    with open_data_directory(tmp_path) as store, GroupCommitter(store) as committer:
        lock = threading.Lock()
        order: list[int] = []

        def send(first: int) -> None:
            for n in range(first, first + each):
                with lock:  # as a host does: the order of turns is the order of batches
                    order.append(n)
                    sequence = puts("order", {number(len(order)): number(n)})
                    commit = committer.submit(sequence)
                commit.wait(SECONDS)

        senders = [threading.Thread(target=send, args=(1000 * t,)) for t in range(threads)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(SECONDS)
        assert [value for _, value in store.scan("order")] == [number(n) for n in order]
        assert committer.batches == threads * each
        assert committer.groups < threads * each / 2  # two at least shared a sync, mostly eight
