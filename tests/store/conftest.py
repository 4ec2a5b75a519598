"""Both engines, for the tests that any store has to pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from falconmq.store import LmdbStore, MemoryStore, Store, open_data_directory

Reopen = Callable[[Store], Store]


@pytest.fixture(params=["lmdb", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = MemoryStore()
    if request.param == "lmdb":
        opened = open_data_directory(tmp_path / "data", map_size=1 << 30)
    yield opened
    opened.close()


@pytest.fixture
def reopen() -> Iterator[Reopen]:
    """End the use of a store and open it again, as the next process would."""
    opened: list[Store] = []

    def again(store: Store) -> Store:
        store.close()
        if isinstance(store, MemoryStore):
            store.crash()
            return store
        assert isinstance(store, LmdbStore)
        opened.append(open_data_directory(store.path, map_size=1 << 30))
        return opened[-1]

    yield again
    for store in opened:
        store.close()
