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
import fcntl
import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from falconmq.errors import MqStatus, ResourceError, StoreError
from falconmq.security.file_names import SECURITY_FILES
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
LOCK_FILE: Final = "lock"
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


class DirectoryLock:
    """One process, one store: a lock of the operating system, which ends with its process.

    It belongs to the open file, so a second open in the same process is refused as well. A forked
    child drops its copy: a worker that outlives its parent must not keep the directory.
    """

    def __init__(self, directory: Path) -> None:
        self._file = _open_lock(directory / LOCK_FILE)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file.fileno(), 200, 0).decode("utf-8", "replace")
            self._file.close()
            raise _in_use(directory, holder.partition("\n")[0]) from None
        with suppress(OSError):  # the name is a courtesy, and the disk may be full
            os.pwrite(self._file.fileno(), f"{os.getpid()} {_program()}\n".encode(), 0)
        _held.add(self)

    def release(self) -> None:
        """Let others in; the name stays, for taking it out could fail where writing it did not."""
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()

    def forget(self) -> None:
        """Drop this process's copy of a lock that its parent holds."""
        self._file.close()


def _forget_locks() -> None:
    for lock in list(_held):
        lock.forget()


_held: Final = weakref.WeakSet[DirectoryLock]()
os.register_at_fork(after_in_child=_forget_locks)


@dataclass(frozen=True, slots=True)
class Compaction:
    """Size of the data file before and after."""

    bytes_before: int
    bytes_after: int


def open_data_directory(
    path: Path | str,
    *,
    durability: Durability = Durability.SYNC,
    map_size: int = DEFAULT_MAP_SIZE,
) -> LmdbStore:
    """Open the store of a queue manager, or make a new one in a new or empty directory."""
    directory = Path(path).absolute()
    with _reporting(directory):
        _make_directory(directory)
        lock = DirectoryLock(directory)
    try:
        with _reporting(directory):
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
            with _reporting(directory):
                _write_version(directory)
        except BaseException:
            store.close()
            raise
    return store


def check_data_directory(path: Path | str) -> list[str]:
    """Read everything in a data directory, damaged or not; what is wrong, one line each."""
    directory = Path(path).absolute()
    with _locked(directory):
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


def compact(path: Path | str) -> Compaction:
    """Give the space of deleted messages back to the file system; nobody may use the directory.

    A copy without free pages replaces the file in one step: a crash leaves the one or the other.
    """
    directory = Path(path).absolute()
    with _locked(directory):
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
    with _reporting(directory):
        _make_directory(directory)
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
    _check_empty(directory)


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
    _write_version(directory)


def _copy(directory: Path, target: Path) -> None:
    """A compact copy that has the same records as the original, and is on the disk."""
    with LmdbStore(directory) as store:
        store.copy_compact(target)
        expected = store.statistics().records
    found = check_pages(target / DATA_FILE).tables
    if found != expected:
        raise damaged(target / DATA_FILE, f"the copy has {found}, the original {expected}")


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """An existing data directory of our version, for ourselves."""
    with _reporting(directory):
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


def _make_directory(directory: Path) -> None:
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
        _check_empty(directory)
        return True
    label, _, number = text.strip().rpartition(" ")
    if label != _LABEL or not (number.isascii() and number.isdigit()):
        raise damaged(version_file, f"it should say {_LABEL!r} and a number")
    if int(number) != FORMAT:
        raise _other_version(directory, int(number))
    if not data_file.exists():
        raise damaged(data_file, f"it is missing, although {VERSION_FILE} is there")
    return False


def _check_empty(directory: Path) -> None:
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


def _write_version(directory: Path) -> None:
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


def _open_lock(path: Path) -> FileIO:
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")


def _in_use(directory: Path, holder: str) -> StoreError:
    pid, _, program = holder.partition(" ")
    who = f"process {pid} ({program})" if pid.isdigit() else "another process"
    if pid == str(os.getpid()):
        who = "this process"
    return StoreError(
        f"{directory} is in use by {who}",
        status=MqStatus.SHARING_VIOLATION,
        hint="one queue manager per data directory: stop the other one, or name another directory",
    )


def _program() -> str:
    """What this process is called, as far as the system tells."""
    try:
        return Path("/proc/self/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "unknown"


@contextmanager
def _reporting(directory: Path) -> Iterator[None]:
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
