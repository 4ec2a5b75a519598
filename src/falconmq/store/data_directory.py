"""The directory of a queue manager: who may use it, which version it has, what is in it.

    version     one line of text, "falconmq data 1"; written last, so with it everything is there
    lock        held while a process uses the directory; names that process
    data.mdb    everything (LMDB)
    lock.mdb    LMDB's table of readers; means nothing between two runs
    reserve     space for the day the disk is full
    tokens.json who may use the HTTP port; may be there before anything else
    membership.toml
                which directory was joined (`falconmq directory join`)
    keys.json, peer-keys.json, certificates.json
                what `falconmq key` and `falconmq certificate` keep

Opening goes from cheap to expensive and changes nothing until it is sure: directory, lock, version,
pages of the data file, and only then LMDB. Each refusal names the file and what can be done.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.security.file_names import SECURITY_FILES
from falconmq.store.directory_lock import LOCK_FILE, DirectoryLock
from falconmq.store.interface import Durability
from falconmq.store.lmdb_engine import (
    DATA_FILE,
    DEFAULT_MAP_SIZE,
    LmdbStore,
    sync_file,
    verify_file,
)
from falconmq.store.lmdb_errors import READERS_MAX, damaged, disk_full
from falconmq.store.lmdb_pages import check_pages
from falconmq.store.reserve import RESERVE_FILE, Reserve, allocate

FORMAT: Final = 1
DIRECTORY_MODE: Final = 0o700
VERSION_FILE: Final = "version"
READERS_FILE: Final = "lock.mdb"
COMPACTING: Final = "compacting"  # a directory in which a compact copy grows
RESTORING: Final = "restoring"  # the same for a backup that is brought back
TOKENS_FILE: Final = "tokens.json"
MEMBERSHIP_FILE: Final = "membership.toml"
SIDE_FILES: Final = (TOKENS_FILE, MEMBERSHIP_FILE, *SECURITY_FILES)  # small; a backup has them too

READERS_BYTES: Final = READERS_MAX * 64  # LMDB takes 64 bytes for each
_LABEL: Final = "falconmq data"
_OURS: Final = frozenset(
    {
        VERSION_FILE,
        LOCK_FILE,
        DATA_FILE,
        READERS_FILE,
        RESERVE_FILE,
        COMPACTING,
        RESTORING,
        *SIDE_FILES,
    }
)
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def open_data_directory(
    path: Path | str,
    *,
    durability: Durability = Durability.SYNC,
    map_size: int = DEFAULT_MAP_SIZE,
) -> LmdbStore:
    """Open the store of a queue manager, or make a new one in a new or empty directory."""
    directory = Path(path).absolute()
    with reporting(directory):
        make_directory(directory)
        lock = DirectoryLock(directory)
    try:
        with reporting(directory):
            for name in (COMPACTING, RESTORING):  # of one that was interrupted
                shutil.rmtree(directory / name, ignore_errors=True)
            is_new = _check_version(directory)
            if not is_new:
                check_pages(directory / DATA_FILE)
            _allocate_readers(directory)
            store = LmdbStore(directory, durability=durability, map_size=map_size, lock=lock)
    except BaseException:
        lock.release()
        raise
    if is_new:
        try:
            with reporting(directory):
                write_version(directory)
        except BaseException:
            store.close()
            raise
    return store


def check_data_directory(path: Path | str) -> list[str]:
    """Read everything in a data directory, damaged or not; what is wrong, one line each."""
    directory = Path(path).absolute()
    with locked(directory):
        data_file = directory / DATA_FILE
        try:
            check_pages(data_file)
        except StoreError as error:
            return [str(error)]
        problems = verify_file(data_file)
        if not problems:
            with LmdbStore(directory) as store:
                problems = store.verify()
    return problems


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """An existing data directory of our version, for ourselves."""
    with reporting(directory):
        if not (directory / VERSION_FILE).exists():
            raise StoreError(
                f"{directory} is no data directory of FalconMQ: it has no file {VERSION_FILE}"
            )
        lock = DirectoryLock(directory)
        try:
            _check_version(directory)
            yield
        finally:
            lock.release()


def make_directory(directory: Path) -> None:
    """The directory and those above it, as far as they are missing; only we may look into it."""
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True)
    except FileExistsError:
        if not directory.is_dir():
            raise StoreError(
                f"{directory} is a file, not a directory", hint="name another directory"
            ) from None
        return
    sync_file(directory.parent)


def _check_version(directory: Path) -> bool:
    """True if there is nothing yet. StoreError if what is there is not for us."""
    version_file, data_file = directory / VERSION_FILE, directory / DATA_FILE
    try:
        text = version_file.read_text("utf-8", "replace")
    except FileNotFoundError:
        check_empty(directory)
        return True
    label, _, number = text.strip().rpartition(" ")
    if label != _LABEL or not (number.isascii() and number.isdigit()):
        raise damaged(version_file, f"it should say {_LABEL!r} and a number")
    if int(number) != FORMAT:
        raise _other_version(directory, int(number))
    if not data_file.exists():
        raise damaged(data_file, f"it is missing, although {VERSION_FILE} is there")
    return False


def check_empty(directory: Path) -> None:
    """A directory without a version is new, or its creation was interrupted, or it is not ours."""
    strangers = sorted(
        entry.name
        for entry in directory.iterdir()
        if entry.name not in _OURS and entry.name[0] != "." and entry.name != "lost+found"
    )
    if strangers:
        raise StoreError(
            f"{directory} is not empty and no data directory of FalconMQ: it has {strangers[0]}",
            hint="name a new or an empty directory",
        )
    data_file = directory / DATA_FILE
    if data_file.exists() and data_file.stat().st_size and check_pages(data_file).tables:
        raise StoreError(
            f"{data_file} holds data, but the file {VERSION_FILE} beside it is missing",
            status=MqStatus.MESSAGE_STORAGE_FAILED,
            hint=f"if this directory was written by this version of FalconMQ, put the line "
            f"'{_LABEL} {FORMAT}' into {directory / VERSION_FILE}",
        )


def _allocate_readers(directory: Path) -> None:
    """Give LMDB's table of readers its blocks now.

    It is written through a map: on a full disk that would end the process with SIGBUS, much later.
    """
    try:
        allocate(directory / READERS_FILE, 0, READERS_BYTES)
    except OSError as error:
        if error.errno not in _FULL or not (directory / RESERVE_FILE).exists():
            raise
        Reserve(directory).spend()
        allocate(directory / READERS_FILE, 0, READERS_BYTES)


def write_version(directory: Path) -> None:
    """The last step of making a directory: when this file is there, everything is."""
    sync_file(directory / DATA_FILE)
    temporary = directory / f".{VERSION_FILE}"
    temporary.write_text(f"{_LABEL} {FORMAT}\n", "utf-8")
    sync_file(temporary)
    temporary.replace(directory / VERSION_FILE)
    sync_file(directory)


def _other_version(directory: Path, number: int) -> StoreError:
    if number > FORMAT:
        what, hint = "a newer", "upgrade FalconMQ, or restore a backup made by this version"
    else:
        what, hint = "an older", "open it once with the FalconMQ in between, which converts it"
    return StoreError(
        f"{directory} was written by {what} FalconMQ: it has format {number}, "
        f"this one reads {FORMAT}",
        hint=hint,
    )


@contextmanager
def reporting(directory: Path) -> Iterator[None]:
    """The operating system's refusals in our words."""
    try:
        yield
    except OSError as error:
        path = Path(error.filename) if isinstance(error.filename, str) else directory
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> StoreError | ResourceError:
    code = error.errno or 0
    if code in _FULL:
        return disk_full(path, code)
    if code in (errno.EACCES, errno.EPERM):
        hint = f"give the user {os.geteuid()} the right to write there (chown, chmod)"
    elif code == errno.EROFS:
        hint = "that file system is mounted read-only: remount it, or name another directory"
    else:
        hint = "check the path and the disk"
    return StoreError(
        f"cannot use {path}: {error.strerror}", status=MqStatus.MESSAGE_STORAGE_FAILED, hint=hint
    )
