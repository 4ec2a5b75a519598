"""What a store promises, shaped by queues.

Named tables of ordered byte keys. A `WriteBatch` holds changes to any number of tables; `commit`
makes a group of batches durable in one atomic step, in order, all or nothing: when it returns they
survive a crash and a power cut (unless the durability was relaxed on purpose); when it raises, none
of them happened. Readers see whole commits only, and never block the writer. What a store cannot
read back as it was written is a StoreError that names the place; nothing is ever skipped.

Errors: StoreError for a store that cannot be used (closed, damaged, broken disk), ResourceError for
one that is full; after a ResourceError the store goes on working and deletions make room.

Keys sort as bytes, so numbers in keys are big-endian. A queue's messages have the key
`queue number + lookup identifier`: the head of a queue is the first key with its prefix, found in
the same time whether ten messages or ten million were deleted before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from typing import Final, Protocol

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.wire.reader import Buffer

KEY_BYTES_MAX: Final = 511  # what the embedded engine can index
TABLES_MAX: Final = 64

Operation = tuple[str, bytes, Buffer | None]
"""Table, key, and the value to put; None deletes the key."""


class Durability(Enum):
    """What a commit that has returned survives."""

    SYNC = "sync"  # a power cut
    RELAXED = "relaxed"  # the end of the process, but not a power cut; only by explicit wish


class WriteBatch:
    """Changes that become true together, in the order they were added."""

    __slots__ = ("operations", "size")

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.size = 0  # bytes of keys and values, for whoever bounds what waits

    def put(self, table: str, key: bytes, value: Buffer) -> None:
        """Put a key of 1 to KEY_BYTES_MAX bytes; the value may not change before the commit."""
        self.operations.append((table, key, value))
        self.size += len(key) + len(value)

    def delete(self, table: str, key: bytes) -> None:
        """Delete a key; one that is not there stays away."""
        self.operations.append((table, key, None))
        self.size += len(key)

    def __len__(self) -> int:
        return len(self.operations)


@dataclass(frozen=True)
class StoreStatistics:
    """What `status` shows of a store."""

    engine: str
    path: str  # "" for a store without files
    durability: Durability
    used_bytes: int  # what live data and its index take
    reusable_bytes: int  # freed by deletions, used again before the file grows
    file_bytes: int
    limit_bytes: int  # the file never grows beyond this
    commits: int = 0  # since it was opened
    records: dict[str, int] = field(default_factory=dict)  # by table


class StoreReader(Protocol):
    """A view of all tables; a table nobody wrote to is empty."""

    def get(self, table: str, key: bytes) -> bytes | None: ...

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys in `start <= key < stop` with their values, in order; backwards if `reverse`."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbours, many at once: their keys, and their values in one buffer, one behind the other.

    Behind each value stand `gap` bytes that are the engine's own.
    """

    keys: Sequence[bytes]  # none where the caller knows them
    data: bytes
    sizes: Sequence[int]  # of the values
    gap: int = 0

    def values(self) -> list[bytes]:
        """Each for itself, for whoever wants only some of them."""
        ends = accumulate(size + self.gap for size in self.sizes)
        return [
            self.data[end - self.gap - size : end - self.gap]
            for end, size in zip(ends, self.sizes, strict=True)
        ]


class StoreView(StoreReader, Protocol):
    """All tables at one moment."""

    def blocks(self, table: str, start: bytes, stop: bytes) -> Iterator[Block]:
        """As `scan`, for whoever reads much: a third less work. A block has some MiB at most."""
        ...

    def neighbours(self, table: str, prefix: bytes, first: int, count: int) -> Iterator[Block]:
        """The values of keys that are `prefix` and a number of 8 bytes, from `first` on.

        The least work of all; it ends early where a number is missing, and nobody knows yet why.
        """
        ...


class Store(StoreReader, Protocol):
    """A store. `get` and `scan` see the latest commit, `snapshot` keeps one moment in view.

    A scan outside a snapshot reads ahead in pieces and holds nothing between them, so it may be
    left unfinished. What is committed behind it may show up ahead of it; a key comes at most once.
    """

    def commit(self, batches: Sequence[WriteBatch]) -> None:
        """Make the batches true and durable, all or nothing. The error says why it could not."""
        ...

    def snapshot(self) -> AbstractContextManager[StoreView]:
        """All tables as of now, for one thread at a time, any thread; close it soon.

        While it is open, the space of everything deleted since cannot be used again.
        """
        ...

    def write_copy(self, descriptor: int) -> dict[str, int]:
        """Write all tables as of now into a file or pipe, as the embedded engine keeps them.

        For a backup: commits go on meanwhile. Returns the number of records by table.
        """
        ...

    def statistics(self) -> StoreStatistics: ...

    def verify(self) -> list[str]:
        """Read everything; what is wrong, one line each. Commits wait meanwhile."""
        ...

    def close(self) -> None:
        """Give everything back. Nothing is lost: what was committed is durable already."""
        ...


def bad_key(table: str, key: bytes) -> StoreError:
    return StoreError(
        f"a key of {len(key)} bytes in table {table}: 1 to {KEY_BYTES_MAX} bytes are possible"
    )


def too_many_tables() -> ResourceError:
    return ResourceError(
        f"a store has at most {TABLES_MAX} tables", status=MqStatus.INSUFFICIENT_RESOURCES
    )
