"""The way back from a backup: check all of it, make a data directory, let its numbers go ahead.

A restored queue manager is the one of the backup: same identifier, same queues, same messages. What
was sent and received since is not in it. Its peers know of that, so numbers that it may have given
since are skipped (`transport.restoring`).
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from falconmq.errors import MqStatus, StoreError
from falconmq.service.backup import FORMAT, HEAD, MANIFEST, Digest, Json
from falconmq.store import LmdbStore
from falconmq.store.data_directory import FORMAT as DATA_FORMAT
from falconmq.store.data_directory import SIDE_FILES
from falconmq.store.lmdb_engine import DATA_FILE
from falconmq.store.replacing import replace_data
from falconmq.transport.restoring import begin_anew

_SMALL_MAX: Final = 16 << 20  # bytes of a file that is read at once
_PART: Final = re.compile(rf"{re.escape(DATA_FILE)}/(\d{{6,}})")

Write = Callable[[str, bytes], None]


class BackupError(StoreError):
    """A file that is no backup, or not a whole one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, status=MqStatus.MESSAGE_STORAGE_FAILED, hint=hint)


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back."""

    manifest: Json
    sent_again: int  # transactional messages that may reach their queues twice


def verify(source: BinaryIO, advance: Callable[[int], None] | None = None) -> Json:
    """Read a whole backup and compare it with its manifest, which is returned. BackupError."""
    return _read(source, _nowhere, advance)


def restore(
    source: BinaryIO,
    directory: Path,
    now: float,
    *,
    force: bool = False,
    advance: Callable[[int], None] | None = None,
) -> Restored:
    """Make a data directory of a backup. StoreError, and then the directory is as it was."""
    found: list[Restored] = []

    def fill(target: Path) -> None:
        with _files(target) as write:
            manifest = _read(source, write, advance)
        with LmdbStore(target) as store:
            found.append(Restored(manifest, begin_anew(store, now)))

    replace_data(directory, fill, force=force)
    return found[0]


def _nowhere(name: str, data: bytes) -> None:
    """Only the digests are wanted."""


@contextmanager
def _files(target: Path) -> Iterator[Write]:
    """Write pieces of files into a directory; on the disk when the block ends."""
    opened: dict[str, BinaryIO] = {}

    def write(name: str, data: bytes) -> None:
        if name not in opened:
            descriptor = os.open(target / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            opened[name] = os.fdopen(descriptor, "wb")
        opened[name].write(data)

    try:
        yield write
        for file in opened.values():
            file.flush()
            os.fsync(file.fileno())
    finally:
        for file in opened.values():
            file.close()


def _read(source: BinaryIO, write: Write, advance: Callable[[int], None] | None) -> Json:
    digests: dict[str, Digest] = {}
    manifest: Json | None = None
    try:
        with tarfile.open(fileobj=source, mode="r|") as archive:
            _check_head(_json(archive, archive.next(), HEAD))
            while (info := archive.next()) is not None:
                if info.name == MANIFEST:
                    manifest = _json(archive, info, MANIFEST)
                    break
                name, data = _content(archive, info, digests)
                digests.setdefault(name, Digest()).add(data)
                write(name, data)
                if advance is not None:
                    advance(len(data))
    except (tarfile.TarError, EOFError) as error:
        raise BackupError(f"this is no whole backup: {error}", _INCOMPLETE) from error
    if manifest is None:
        raise BackupError("the backup is not complete: it ends before its manifest", _INCOMPLETE)
    found = {name: digest.to_json() for name, digest in digests.items()}
    if found != manifest.get("files") or DATA_FILE not in found:
        raise BackupError("the backup is damaged: its files are not those of its manifest")
    return manifest


_INCOMPLETE: Final = "the copying was interrupted, or it is another file; take another backup"


def _content(
    archive: tarfile.TarFile, info: tarfile.TarInfo, digests: dict[str, Digest]
) -> tuple[str, bytes]:
    """The file that a member of the archive belongs to, and its bytes. Others are refused."""
    part = _PART.fullmatch(info.name)
    if part is not None:
        name = DATA_FILE
        parts = digests[name].parts if name in digests else 0
        if int(part[1]) != parts + 1:
            raise BackupError(f"the backup is damaged: {info.name} is out of order")
    elif info.name in SIDE_FILES and info.name not in digests:
        name = info.name
    else:
        raise BackupError(f"the backup holds {info.name!r}, which is none of its files")
    return name, _bytes(archive, info)


def _bytes(archive: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(info) if info.isreg() and info.size <= _SMALL_MAX else None
    if file is None:
        raise BackupError(f"the backup is damaged: {info.name} is no file of its kind")
    return file.read()


def _json(archive: tarfile.TarFile, info: tarfile.TarInfo | None, name: str) -> Json:
    if info is None or info.name != name:
        raise BackupError("this is no backup of FalconMQ", "it begins with falconmq-backup.json")
    try:
        value: Any = json.loads(_bytes(archive, info))
    except ValueError as error:
        raise BackupError(f"the backup is damaged: {name}: {error}") from error
    if not isinstance(value, dict):
        raise BackupError(f"the backup is damaged: {name} is {value!r}")
    return value


def _check_head(head: Json) -> None:
    if head.get("format") != FORMAT or head.get("data_format") != DATA_FORMAT:
        raise BackupError(
            f"the backup has format {head.get('format')} with data of format "
            f"{head.get('data_format')}; this FalconMQ reads {FORMAT} with {DATA_FORMAT}",
            f"restore it with FalconMQ {head.get('falconmq')}",
        )
