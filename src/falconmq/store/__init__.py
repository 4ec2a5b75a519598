"""Durable storage: one small contract, two engines."""

from falconmq.store.data_directory import check_data_directory, open_data_directory
from falconmq.store.group_commit import (
    Commit,
    Committer,
    GroupCommitter,
    SynchronousCommitter,
)
from falconmq.store.interface import (
    Durability,
    Store,
    StoreReader,
    StoreStatistics,
    WriteBatch,
)
from falconmq.store.lmdb_engine import LmdbStore
from falconmq.store.memory_engine import MemoryStore, ProcessCrash
from falconmq.store.replacing import Compaction, compact

__all__ = [
    "Commit",
    "Committer",
    "Compaction",
    "Durability",
    "GroupCommitter",
    "LmdbStore",
    "MemoryStore",
    "ProcessCrash",
    "Store",
    "StoreReader",
    "StoreStatistics",
    "SynchronousCommitter",
    "WriteBatch",
    "check_data_directory",
    "compact",
    "open_data_directory",
]
