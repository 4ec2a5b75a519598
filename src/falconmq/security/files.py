"""Files of the data directory that only their owner may read.

Each is one JSON document. It is written all or nothing, and it is not used if others could have
read or changed it: a secret that everybody may know is none. Commands and a service that runs
change the files at the same time; they take turns with a lock on the directory. Every change makes
the file younger, so a look at its status is enough to see that there was one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from falconmq.security.problems import KeyFileError

FILE_MODE: Final = 0o600
_FORMAT: Final = 1
OTHERS: Final = 0o077  # what a group and everybody may do

Json = dict[str, Any]


class PrivateFile:
    """One of these files. It may be missing, which is the same as empty."""

    def __init__(self, directory: Path, name: str) -> None:
        self.path = directory / name
        self._directory = directory

    def read(self) -> Json | None:
        """What is in it; None if it is not there. KeyFileError if it must not be used."""
        try:
            with self.path.open("rb") as file:
                self._check(os.fstat(file.fileno()))
                document = json.loads(file.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyFileError(
                f"cannot read {self.path}: {error.strerror}",
                hint="it must belong to the user that the service runs as",
            ) from error
        except ValueError as error:
            raise self.damaged("it is no JSON") from error
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise self.damaged(f"it should be a document of format {_FORMAT}")
        return document

    @contextmanager
    def changing(self) -> Iterator[Json]:
        """What is in it, to be changed; written at the end unless something was raised."""
        try:
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise KeyFileError(
                f"cannot use {self._directory}: {error.strerror}",
                hint="it is made by: falconmq serve --data DIR",
            ) from error
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            document = self.read() or {"format": _FORMAT}
            before = json.dumps(document)
            yield document
            if json.dumps(document) != before:
                self._write(directory, document)
        except OSError as error:
            raise KeyFileError(f"cannot write {self.path}: {error.strerror}") from error
        finally:
            os.close(directory)

    def damaged(self, problem: str) -> KeyFileError:
        """The error for a file that holds something else than it should."""
        return KeyFileError(
            f"{self.path} is damaged: {problem}",
            hint="restore it from a backup, or move it away and begin anew",
        )

    def _check(self, status: os.stat_result) -> None:
        mode = stat.S_IMODE(status.st_mode)
        if mode & OTHERS:
            raise KeyFileError(
                f"{self.path} has mode {mode:04o}: others may have read it",
                hint=f"make anew what is in it if they could; else: "
                f"chmod 600 {shlex.quote(str(self.path))}",
            )

    def _write(self, directory: int, document: Json) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                _give_to_owner(file.fileno(), directory)
                file.write(json.dumps(document, indent=1) + "\n")
                file.flush()
                self._make_younger(file.fileno())
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        os.fsync(directory)

    def _make_younger(self, file: int) -> None:
        """The clock of files ticks every few milliseconds: two changes may come within one tick."""
        try:
            before = self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if os.fstat(file).st_mtime_ns <= before:
            os.utime(file, ns=(before + 1, before + 1))


def _give_to_owner(file: int, directory: int) -> None:
    """Root may make files for a service that runs as somebody else, who has to read them."""
    if os.geteuid() == 0:
        owner = os.fstat(directory)
        with contextlib.suppress(PermissionError):
            os.fchown(file, owner.st_uid, owner.st_gid)
