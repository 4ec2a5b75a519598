"""Writing down which directory was joined: `membership.toml`, for the next start."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path

from falconmq.errors import DirectoryError, MqStatus
from falconmq.security.files import FILE_MODE
from falconmq.service.configuration import Configuration, DirectorySection, Source
from falconmq.service.configuration.examples import toml
from falconmq.store.data_directory import MEMBERSHIP_FILE

_HEAD = "# Written by `falconmq directory join`; `falconmq directory leave` takes it away.\n"


def write_membership(data: Path, section: DirectorySection) -> None:
    """Remember a directory; whole or not at all, durable when this returns."""
    lines = [f"{name} = {toml(value)}\n" for name, value in _said(section).items()]
    path = data / MEMBERSHIP_FILE
    temporary = path.with_name(f".{MEMBERSHIP_FILE}.new")
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_HEAD + "".join(lines))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync(data)
    except OSError as error:
        raise _not_written(path, error) from error


def delete_membership(data: Path) -> None:
    """Forget it again."""
    path = data / MEMBERSHIP_FILE
    try:
        path.unlink(missing_ok=True)
        _sync(data)
    except OSError as error:
        raise _not_written(path, error) from error


def with_membership(configuration: Configuration, section: DirectorySection) -> Configuration:
    """The configuration as the next reading of it will find it."""
    prefix = "directory."
    sources = {
        name: source
        for name, source in configuration.sources.items()
        if not (name.startswith(prefix) and source is Source.MEMBERSHIP)
    }
    sources |= {prefix + name: Source.MEMBERSHIP for name in _said(section)}
    return replace(configuration, directory=section, sources=sources)


def _said(section: DirectorySection) -> dict[str, object]:
    """The keys that are not as usual."""
    usual = DirectorySection()
    values = {field.name: getattr(section, field.name) for field in fields(section)}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _not_written(path: Path, error: OSError) -> DirectoryError:
    return DirectoryError(
        f"cannot write {path}: {error.strerror}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="the service must be able to write in its data directory",
    )
