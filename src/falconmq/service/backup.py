"""Backups: a copy of a queue manager's data, made while it runs. `restore` is the way back.

A backup is a tar archive that is made in one go, so that it can be sent while it is made:

    falconmq-backup.json    what this is: format, queue manager, time
    data.mdb/000001 ...     the data file in parts; `cat data.mdb/*` makes it whole again
    tokens.json             who may use the HTTP port, if there is such a file
    keys.json and others    private keys and certificates, if there are any: keep backups private
    manifest.json           size and SHA-256 of each file, records by table; it comes last, so that
                            a backup without it is known to be incomplete

The data are those of one moment, with everything that was acknowledged before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tarfile
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Self

from falconmq.errors import FalconMQError, StoreError
from falconmq.manager.persistence import stored_identifier
from falconmq.store import Store
from falconmq.store.data_directory import FORMAT as DATA_FORMAT
from falconmq.store.data_directory import SIDE_FILES
from falconmq.store.lmdb_engine import DATA_FILE

FORMAT: Final = 1
HEAD: Final = "falconmq-backup.json"
MANIFEST: Final = "manifest.json"
MEDIA_TYPE: Final = "application/x-tar"
PART_BYTES: Final = 4 << 20
_READ_BYTES: Final = 1 << 20

Json = dict[str, Any]
Pieces = Generator[bytes, None, dict[str, int]]


@dataclass
class Digest:
    """What a manifest says of a file."""

    size: int = 0
    parts: int = 0
    sha256: Any = field(default_factory=hashlib.sha256)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.parts += 1
        self.sha256.update(data)

    def to_json(self) -> Json:
        return {"size": self.size, "parts": self.parts, "sha256": self.sha256.hexdigest()}


class Backup:
    """A backup in the making: ask for one piece of the archive after the other, from any thread.

    Whoever stops before the end calls `close`, so that the copying ends.
    """

    def __init__(self, store: Store, name: str, directory: Path | None, now: float) -> None:
        identifier = stored_identifier(store)
        self.head: Json = {
            "format": FORMAT,
            "falconmq": metadata.version("falconmq"),
            "data_format": DATA_FORMAT,
            "queue_manager": None if identifier is None else str(identifier),
            "name": name,
            "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        }
        self._store = store
        self._directory = directory  # where tokens and keys are; None: there are none
        self._digests: dict[str, Digest] = {}
        self._pieces = self._make()
        self._using = threading.Lock()

    def next(self) -> bytes | None:
        """The next piece; None at the end. FalconMQError if the data cannot be read."""
        with self._using:
            return next(self._pieces, None)

    def close(self) -> None:
        with self._using:
            self._pieces.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self) -> Generator[bytes]:
        yield member(HEAD, _json(self.head))
        records = yield from self._data()
        yield from self._side_files()
        files = {name: digest.to_json() for name, digest in self._digests.items()}
        yield member(MANIFEST, _json({**self.head, "files": files, "records": records}))
        yield bytes(2 * tarfile.BLOCKSIZE)  # the end of an archive

    def _data(self) -> Pieces:
        """The data file as it comes out of the store; in the end the records by table."""
        digest = self._digests[DATA_FILE] = Digest()
        with _Copy(self._store) as copy:
            while part := copy.read(PART_BYTES):
                digest.add(part)
                yield member(f"{DATA_FILE}/{digest.parts:06d}", part)
            return copy.finish()

    def _side_files(self) -> Generator[bytes]:
        """Tokens, keys and certificates: without them a restored service is another one."""
        if self._directory is None:
            return
        for name in SIDE_FILES:
            with contextlib.suppress(FileNotFoundError):
                content = (self._directory / name).read_bytes()
                self._digests[name] = Digest()
                self._digests[name].add(content)
                yield member(name, content)


class _Copy:
    """The store writes into a pipe in a thread of its own; we read at our own pace.

    A reader that goes away closes the pipe, and the writer ends with an error that nobody needs.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records: dict[str, int] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="falconmq backup", daemon=True)

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        self._thread.start()
        return self

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, fewer only at the end."""
        parts, missing = [], size
        while missing and (part := os.read(self._reading, min(missing, _READ_BYTES))):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def finish(self) -> dict[str, int]:
        """Everything was read: the records by table, or why the store could not write them."""
        self._thread.join()
        if isinstance(self._error, FalconMQError):
            raise self._error
        if self._error is not None:
            raise StoreError(f"the data cannot be copied: {self._error}") from self._error
        return self._records

    def __exit__(self, *_: object) -> None:
        os.close(self._reading)
        self._thread.join()

    def _write(self) -> None:
        try:
            self._records = self._store.write_copy(self._writing)
        except BaseException as error:  # noqa: BLE001  # whoever reads is told
            self._error = error
        finally:
            os.close(self._writing)


def member(name: str, data: bytes) -> bytes:
    """A file of a tar archive: its header, its content, and what fills the last block."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    header = info.tobuf(tarfile.USTAR_FORMAT)
    return b"".join((header, data, bytes(-len(data) % tarfile.BLOCKSIZE)))


def _json(value: Json) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
