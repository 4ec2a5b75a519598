"""What the tests of the store share: batches in one line, and a store that waits to be told."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from falconmq.store import MemoryStore, WriteBatch

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 30.0  # long enough never to pass; no test waits for it to


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def puts(table: str, records: Mapping[bytes, bytes]) -> WriteBatch:
    batch = WriteBatch()
    for key, value in records.items():
        batch.put(table, key, value)
    return batch


def deletes(table: str, keys: Sequence[bytes]) -> WriteBatch:
    batch = WriteBatch()
    for key in keys:
        batch.delete(table, key)
    return batch


class GatedStore(MemoryStore):
    """A store whose commits stop at a gate, and that remembers what came through together."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[WriteBatch]] = []
        self.arrived = threading.Semaphore(0)  # a commit stands at the gate
        self.gate = threading.Semaphore(0)

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        self.arrived.release()
        assert self.gate.acquire(timeout=SECONDS)
        self.groups.append(list(batches))
        super().commit(batches)

    def await_commit(self) -> None:
        assert self.arrived.acquire(timeout=SECONDS)

    def let_through(self, commits: int = 1) -> None:
        self.gate.release(commits)
