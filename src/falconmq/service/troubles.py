"""Whether the store can take what is to be kept, seen from outside: nothing is written to try."""

from __future__ import annotations

import os
from typing import Final

from falconmq.embedded.engine import Engine

_LEAST_BYTES: Final = 1 << 20  # that must be free on the disk: less is gone with one large message


def store_troubles(engine: Engine) -> list[str]:
    """Why a message could not be kept now."""
    if engine.is_closed:
        return ["the queue manager is closed"]
    troubles: list[str] = []
    if engine.committer.error is not None:
        troubles.append(f"the store cannot write: {engine.committer.error}")
    store = engine.store.statistics()
    if store.limit_bytes and store.limit_bytes - store.used_bytes < _LEAST_BYTES:
        troubles.append(f"the store is full: it may have {store.limit_bytes} bytes")
    return (
        [*troubles, *_disk_troubles(store.path, store.reusable_bytes)] if store.path else troubles
    )


def _disk_troubles(path: str, reusable: int) -> list[str]:
    """What keeps a data directory from taking more."""
    try:
        disk = os.statvfs(path)
    except OSError as error:
        return [f"the data directory cannot be used: {error.strerror}"]
    if disk.f_flag & os.ST_RDONLY:
        return [f"the disk of {path} is read-only"]
    free = disk.f_bavail * disk.f_frsize + reusable
    return [f"the disk of {path} is full: {free} bytes are free"] if free < _LEAST_BYTES else []
