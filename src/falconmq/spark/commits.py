"""Commits of tables: small files that say which batches count, durable before they are read."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from falconmq.errors import FalconMQError

VERSION: Final = 1


class LakeError(FalconMQError):
    """A lake that cannot be used as it is."""


@dataclass(frozen=True)
class Commit:
    """A batch that counts."""

    sequence: int  # in its table
    source: str  # who wrote it
    batch: int  # its number there
    folder: str  # below `data`; "" if it had no rows
    rows: int
    at: str
    is_replacing: bool = False  # everything before it no longer counts
    facts: dict[str, Any] = field(default_factory=dict)  # of the source: offsets, counts
    replaces: list[int] = field(default_factory=list)  # by sequence: these no longer count


def write_commit(folder: Path, commit: Commit) -> None:
    """Write the file that makes a batch count: durable, and all of it or none."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{commit.sequence:08d}.json"
    new = final.with_suffix(".new")
    with new.open("w") as file:
        json.dump({"version": VERSION, **commit.__dict__}, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(final)
    _sync_one(folder)


def read_commit(file: Path) -> Commit:
    try:
        fields = json.loads(file.read_text())
        version = fields.pop("version")
        if version != VERSION:
            raise ValueError(f"version {version}, this FalconMQ writes {VERSION}")
        return Commit(**fields)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise LakeError(
            f"the commit {file} cannot be read: {error}",
            hint="restore the file; without it nobody knows whether its rows count",
        ) from error


def sync(folder: Path) -> None:
    """Let the disk have a folder, its files and its place in the folder above."""
    for path in (*folder.rglob("*"), folder, folder.parent, folder.parent.parent):
        _sync_one(path)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
