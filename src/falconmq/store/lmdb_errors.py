"""LMDB's errors, and those of the operating system below it, in our words.

Each says which file, which limit and its value, and what can be done.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import lmdb

from falconmq.errors import FalconMQError, MqStatus, ResourceError, StoreError

READERS_MAX: Final = 512
ROOM_FOR_PAGES: Final = 1 << 20  # pages that a commit copies on top of what it puts
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_DAMAGE: Final = (
    lmdb.CorruptedError,
    lmdb.InvalidError,
    lmdb.PageFullError,
    lmdb.PageNotFoundError,
    lmdb.VersionMismatchError,
)


def translate(error: Exception, data_file: Path, map_size: int, size: int = 0) -> FalconMQError:
    """Our error for one that came out of LMDB while it worked on `data_file`.

    `size` is how many bytes it was about to write.
    """
    code = _code(error, data_file, size)
    if code in FULL:
        return disk_full(data_file, code)
    if isinstance(error, _DAMAGE):
        return damaged(data_file, str(error))
    if isinstance(error, lmdb.MapFullError):
        return ResourceError(
            f"{data_file} has reached its limit of {map_size} bytes",
            status=MqStatus.MESSAGE_STORAGE_FAILED,
            hint="receive or purge messages, or open the directory with a larger map_size",
        )
    if isinstance(error, lmdb.ReadersFullError):
        return ResourceError(
            f"{READERS_MAX} readers of {data_file} are open, no more are possible",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="close snapshots when they are no longer needed",
        )
    if code == errno.ENOMEM:
        return ResourceError(
            f"no address space to map {map_size} bytes of {data_file}",
            status=MqStatus.INSUFFICIENT_RESOURCES,
            hint="open the directory with a smaller map_size, or raise the limit (ulimit -v)",
        )
    if isinstance(error, lmdb.PanicError):
        return StoreError(
            f"{data_file} could not be written, and has to be opened again",
            status=MqStatus.MESSAGE_STORAGE_FAILED,
            hint="check the disk, then restart; what was acknowledged is safe",
        )
    return StoreError(
        f"{data_file}: {error}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="check the disk, and who may write to the directory",
    )


def is_disk_full(error: lmdb.Error, data_file: Path, size: int) -> bool:
    """True if the disk had no room for a commit of `size` bytes."""
    return _code(error, data_file, size) in FULL


def _code(error: Exception, data_file: Path, size: int) -> int:
    """The operating system's number for an error, 0 if it has none.

    LMDB calls it an input/output error when the disk took only a part of what it wrote, which is
    how a disk that becomes full shows itself first. Asking for as much room once more tells.
    """
    code = error.errno if isinstance(error, OSError) else getattr(error, "code", 0)
    if code == errno.EIO and size:
        return _ask_for_room(data_file, size + ROOM_FOR_PAGES) or errno.EIO
    return code or 0


def _ask_for_room(data_file: Path, size: int) -> int:
    """The error of a file beside `data_file` that grows as it would; 0 if there is room."""
    try:
        with TemporaryFile(dir=data_file.parent) as probe:
            os.posix_fallocate(probe.fileno(), data_file.stat().st_size, size)
    except OSError as error:
        return error.errno or 0
    return 0


def damaged(path: Path, problem: str) -> StoreError:
    """A file that is not as it was written."""
    return StoreError(
        f"{path} is damaged: {problem}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint=f"nothing was changed; keep a copy of {path.parent}, check the disk, "
        "and restore the directory from a backup",
    )


def damaged_record(data_file: Path, table: str, key: bytes) -> StoreError:
    return damaged(data_file, f"the record {key.hex()} of table {table} has changed")


def disk_full(path: Path, code: int) -> ResourceError:
    """No more room on the disk, in the quota of the user, or for a file of this size."""
    return ResourceError(
        f"cannot write {path}: {os.strerror(code)} ({errno.errorcode[code]})",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="free some space on that file system, or receive or purge messages",
    )
