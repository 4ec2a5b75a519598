"""Another data file in the place of ours: a compact copy, or a backup that is brought back.

The new file grows in a directory beside the old one and takes its place in one step: a crash leaves
the one or the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from falconmq.errors import MqStatus, StoreError
from falconmq.store.data_directory import (
    COMPACTING,
    DIRECTORY_MODE,
    RESTORING,
    SIDE_FILES,
    VERSION_FILE,
    check_empty,
    locked,
    make_directory,
    reporting,
    write_version,
)
from falconmq.store.directory_lock import DirectoryLock
from falconmq.store.lmdb_engine import DATA_FILE, LmdbStore, sync_file, verify_file
from falconmq.store.lmdb_errors import damaged
from falconmq.store.lmdb_pages import check_pages


@dataclass(frozen=True, slots=True)
class Compaction:
    """Size of the data file before and after."""

    bytes_before: int
    bytes_after: int


def compact(path: Path | str) -> Compaction:
    """Give the space of deleted messages back to the file system; nobody may use the directory.

    A copy without free pages replaces the file in one step: a crash leaves the one or the other.
    """
    directory = Path(path).absolute()
    with locked(directory):
        check_pages(directory / DATA_FILE)
        target = directory / COMPACTING
        shutil.rmtree(target, ignore_errors=True)
        data_file = directory / DATA_FILE
        before = data_file.stat().st_size
        target.mkdir(mode=DIRECTORY_MODE)
        try:
            _copy(directory, target)
            after = (target / DATA_FILE).stat().st_size
            (target / DATA_FILE).replace(data_file)
            sync_file(directory)
        finally:
            shutil.rmtree(target, ignore_errors=True)
    return Compaction(before, after)


def replace_data(path: Path | str, fill: Callable[[Path], None], *, force: bool = False) -> None:
    """Make a data directory of the files that `fill` writes into a directory it is given.

    StoreError if there is data already, unless `force`, or if what was written cannot be used. The
    old file goes in the same step as the new one comes: a crash leaves the one or the other.
    """
    directory = Path(path).absolute()
    with reporting(directory):
        make_directory(directory)
        lock = DirectoryLock(directory)
        try:
            if not force:
                _check_unused(directory)
            target = directory / RESTORING
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(mode=DIRECTORY_MODE)
            try:
                fill(target)
                _check_copy(target)
                _move_in(directory, target)
            finally:
                shutil.rmtree(target, ignore_errors=True)
        finally:
            lock.release()


def _check_unused(directory: Path) -> None:
    if (directory / VERSION_FILE).exists():
        raise StoreError(
            f"{directory} holds the data of a queue manager",
            hint="name a new or an empty directory; --force replaces what is there",
        )
    check_empty(directory)


def _check_copy(target: Path) -> None:
    """Every page and every record of a file that came from elsewhere."""
    check_pages(target / DATA_FILE)
    problems = verify_file(target / DATA_FILE)
    if not problems:
        with LmdbStore(target) as store:
            problems = store.verify()
    if problems:
        raise StoreError(problems[0], status=MqStatus.MESSAGE_STORAGE_FAILED)
    sync_file(target / DATA_FILE)


def _move_in(directory: Path, target: Path) -> None:
    """First the data, then what belongs to them, at last the version that says all is there."""
    (target / DATA_FILE).replace(directory / DATA_FILE)
    for name in SIDE_FILES:
        if (target / name).exists():
            sync_file(target / name)
            (target / name).replace(directory / name)
    sync_file(directory)
    write_version(directory)


def _copy(directory: Path, target: Path) -> None:
    """A compact copy that has the same records as the original, and is on the disk."""
    with LmdbStore(directory) as store:
        store.copy_compact(target)
        expected = store.statistics().records
    found = check_pages(target / DATA_FILE).tables
    if found != expected:
        raise damaged(target / DATA_FILE, f"the copy has {found}, the original {expected}")
