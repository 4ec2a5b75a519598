"""Who else may read or change the files that the service lives from.

Looked at before any of them is used, by `falconmq serve` and by every command that opens a data
directory itself, and again by whoever asks for the status:

    data directory     refused if everybody may write there: whoever can put files in it can put in
                       tokens and keys of his own; a warning if others may look inside
    data.mdb           refused if others may change it
    tokens.json, keys.json, peer-keys.json, certificates.json, membership.toml,
    directory.password_file, directory.token_file
                       refused if anybody but the owner may do anything with them
    http.key           refused if others may read or change it; a group may read it, as Debian's
                       ssl-cert does
    http.certificate, http.client_ca, directory.ca_file, the configuration
                       public, but refused if everybody may change them
    control.sock       a warning if others may use it; the service makes it with mode 0600

Root may read everything whatever the modes say, and is never refused for that: what counts is what
the modes let others do.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.security.files import OTHERS
from falconmq.service.configuration import Configuration, DirectorySection
from falconmq.store.data_directory import SIDE_FILES
from falconmq.store.lmdb_engine import DATA_FILE

_EVERYBODY_WRITES: Final = 0o002
_GROUP_WRITES: Final = 0o020
_EVERYBODY_LOOKS: Final = 0o005
_BEYOND_READING_GROUP: Final = 0o037


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that others may do with a file, and should not be able to."""

    path: Path
    is_refused: bool  # else it is only a warning
    text: str
    hint: str  # the command that mends it

    def to_json(self) -> dict[str, Any]:
        severity = "refused" if self.is_refused else "warning"
        return {
            "path": str(self.path),
            "severity": severity,
            "text": self.text,
            "hint": self.hint,
        }


class FileModeError(FalconMQError):
    """A file that others may read or change: nothing is started on it."""

    def __init__(self, finding: Finding, more: int = 0) -> None:
        others = f"; {more} more: falconmq config check" if more else ""
        super().__init__(
            finding.text, status=MqStatus.ACCESS_DENIED, hint=f"{finding.hint}{others}"
        )


def check_files(configuration: Configuration) -> list[Finding]:
    """What is worth a warning; FileModeError if the service must not use these files."""
    found = find(configuration)
    refused = [finding for finding in found if finding.is_refused]
    if refused:
        raise FileModeError(refused[0], len(refused) - 1)
    return found


def find(configuration: Configuration) -> list[Finding]:
    """Everything that others may do, what is refused first."""
    data = configuration.manager.data
    found = [
        *_data_directory(data),
        *_writable([data / DATA_FILE], "600", OTHERS & 0o022),
        *_private(data, [data / name for name in SIDE_FILES]),
        *_private(data, _secrets(configuration.directory)),
        *_tls_key(configuration.http.key),
        *_writable(_public_files(configuration), "o-w", _EVERYBODY_WRITES),
        *_control_socket(configuration.control_socket),
    ]
    return sorted(found, key=lambda finding: not finding.is_refused)


def _data_directory(path: Path) -> Iterator[Finding]:
    mode = _mode_of(path)
    if mode is None:
        return
    hint = f"chmod 700 {_quoted(path)}"
    if mode & _EVERYBODY_WRITES:
        text = f"everybody may write in the data directory {path} (mode {mode:04o})"
        yield Finding(path, True, text, hint)
    elif mode & _GROUP_WRITES:
        text = f"a group may write in the data directory {path} (mode {mode:04o})"
        yield Finding(path, False, text, hint)
    elif mode & _EVERYBODY_LOOKS:
        text = f"everybody may look into the data directory {path} (mode {mode:04o})"
        yield Finding(path, False, text, hint)


def _private(data: Path, paths: Iterable[Path]) -> Iterator[Finding]:
    """Secrets: for the owner alone, who is the one of the directory, the service, or root."""
    owners = {0, os.geteuid(), _owner_of(data)}
    for path in paths:
        mode = _mode_of(path)
        if mode is None:
            continue
        hint = f"make anew what is in it if they could; else: chmod 600 {_quoted(path)}"
        if mode & OTHERS:
            text = f"{path} has mode {mode:04o}: others may have read or changed it"
            yield Finding(path, True, text, hint)
        elif (owner := _owner_of(path)) not in owners:
            text = f"{path} belongs to another user ({owner}), who can read and change it"
            yield Finding(path, True, text, f"chown {os.geteuid()} {_quoted(path)}")


def _secrets(section: DirectorySection) -> list[Path]:
    """What the configuration names as the way into a directory."""
    return [path for path in (section.password_file, section.token_file) if path is not None]


def _tls_key(path: Path | None) -> Iterator[Finding]:
    mode = None if path is None else _mode_of(path)
    if path is not None and mode is not None and mode & _BEYOND_READING_GROUP:
        text = f"http.key {path} has mode {mode:04o}: others may have read or changed it"
        hint = f"get a new key if they could; else: chmod 600 {_quoted(path)}"
        yield Finding(path, True, text, hint)


def _writable(paths: Iterable[Path], wanted: str, mask: int) -> Iterator[Finding]:
    for path in paths:
        mode = _mode_of(path)
        if mode is not None and mode & mask:
            text = f"others may change {path} (mode {mode:04o})"
            yield Finding(path, True, text, f"chmod {wanted} {_quoted(path)}")


def _control_socket(path: Path) -> Iterator[Finding]:
    mode = _mode_of(path)
    if mode is not None and mode & OTHERS:
        text = f"others may use the control socket {path} (mode {mode:04o})"
        yield Finding(path, False, text, f"chmod 600 {_quoted(path)}")


def _public_files(configuration: Configuration) -> list[Path]:
    http = configuration.http
    named = (
        configuration.origin.path,
        http.certificate,
        http.client_ca,
        configuration.directory.ca_file,
    )
    return [path for path in named if path is not None]


def _mode_of(path: Path) -> int | None:
    """What a file allows whom; None if it cannot be looked at: whoever needs it will say so."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def _owner_of(path: Path) -> int:
    try:
        return path.stat().st_uid
    except OSError:
        return 0


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
