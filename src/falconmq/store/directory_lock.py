"""Who uses a data directory: one process at a time, and its name for those who come later."""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final

from falconmq.errors import MqStatus, StoreError

LOCK_FILE: Final = "lock"


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
