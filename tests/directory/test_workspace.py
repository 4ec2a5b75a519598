"""A workspace: what was written shows at once, to its owner only, and becomes true together."""

from __future__ import annotations

from random import Random

import pytest

from falconmq.directory.workspace import Workspace
from falconmq.store import MemoryStore
from falconmq.store.interface import WriteBatch


def filled(*keys: bytes) -> MemoryStore:
    store, batch = MemoryStore(), WriteBatch()
    for key in keys:
        batch.put("t", key, b"old")
    store.commit([batch])
    return store


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_see_what_was_written(reverse: bool) -> None:
    random = Random(3)
    keys = [bytes((number,)) for number in range(1, 40)]
    for _ in range(50):
        store = filled(*random.sample(keys, 15))
        workspace = Workspace(store)
        expected = dict(store.scan("t"))
        for key in random.sample(keys, 12):
            if random.random() < 0.5:
                workspace.put("t", key, b"new")
                expected[key] = b"new"
            else:
                workspace.delete("t", key)
                expected.pop(key, None)
        first, last = sorted(random.sample(keys, 2))
        found = list(workspace.scan("t", first, last, reverse=reverse))
        wanted = sorted((k, v) for k, v in expected.items() if first <= k < last)
        assert found == (wanted[::-1] if reverse else wanted)
        assert all(workspace.get("t", key) == expected.get(key) for key in keys)


def test_nobody_else_sees_anything_before_the_commit() -> None:
    store = filled(b"a")
    workspace = Workspace(store)
    workspace.put("t", b"b", b"new")
    workspace.delete("t", b"a")
    assert dict(store.scan("t")) == {b"a": b"old"}
    workspace.commit()
    assert dict(store.scan("t")) == {b"b": b"new"}
    commits = store.commits
    Workspace(store).commit()
    assert store.commits == commits  # nothing was changed: nothing is written


def test_a_mark_is_a_way_back() -> None:
    workspace = Workspace(filled(b"a"))
    workspace.put("t", b"b", b"new")
    mark = workspace.mark()
    workspace.put("t", b"b", b"newer")
    workspace.delete("t", b"a")
    workspace.restore(mark)
    assert dict(workspace.scan("t")) == {b"a": b"old", b"b": b"new"}
