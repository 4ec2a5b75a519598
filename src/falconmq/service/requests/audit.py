"""The audit log: who did what to the queue manager, when, from where, and how it ended.

It is a table of the store, numbered from 1, kept as long as `security.audit_bytes` allows; the
oldest entries make room. An entry is durable before the answer leaves. It has names and no
contents: no message, no token, no password.

Whoever has no right to come in must not be able to wash out what others did: of refusals at most
`REFUSALS` a minute are written, and the next entry says how many were left out.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.service.requests.reading import durable

TABLE: Final = "audit"
REFUSALS: Final = 60
_PERIOD: Final = 60.0  # seconds
_BYTES_KEY: Final = b"audit_bytes"
_DROPPED_AT_ONCE: Final = 1000
_LONGEST: Final = 400  # characters of a text

_log = logging.getLogger("falconmq.service")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that somebody did, or tried to do."""

    who: str  # a token, the owner of the socket, "" for somebody unknown
    origin: str  # the address, or "control socket"
    action: str
    target: str
    result: str  # done, refused, failed
    code: int = 0  # of HTTP
    problem: str = ""
    details: str = ""
    principal: str = ""  # whose permissions counted


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries somebody wants to see; what is empty does not matter."""

    action: str = ""
    who: str = ""
    target: str = ""
    result: str = ""
    since: float = 0.0  # seconds since 1970
    until: float = math.inf

    def takes(self, entry: dict[str, Any]) -> bool:
        return (
            self.action in ("", entry["action"])
            and self.who in ("", entry.get("who", ""))
            and self.result in ("", entry["result"])
            and self.target.casefold() in entry.get("target", "").casefold()
            and self.since <= entry["time"] < self.until
        )


class AuditLog:
    """Writes and reads the table. `limit` says how many bytes it may take, whenever it is asked."""

    def __init__(self, engine: Engine, limit: Callable[[], int]) -> None:
        self._engine = engine
        self._limit = limit
        self._is_loaded = False
        self._next = 1
        self._first = b""  # what is in front of this key is gone
        self._bytes = 0
        self._refusals = 0  # in the period that began at
        self._period = 0.0
        self._skipped = 0

    async def record(self, entry: Entry) -> None:
        """Write an entry; when this returns it is durable. A store that is full is only logged."""
        if entry.result == "refused" and self._is_too_much():
            self._skipped += 1
            return
        try:
            _, commit = self._engine.run(self._write, entry)
            if commit is not None:
                await durable(self._engine, commit)
        except FalconMQError as error:
            self._is_loaded = False  # what is in the store counts
            _log.error(
                "audit entry lost who=%s action=%s target=%s result=%s: %s",
                *(entry.who, entry.action, entry.target, entry.result, error),
            )

    def newest(
        self, wanted: Wanted, count: int, before: int | None = None, *, scanned: int = 100_000
    ) -> tuple[list[dict[str, Any]], int | None]:
        """Entries, the newest first, and the number before which there may be more."""
        found: list[dict[str, Any]] = []
        stop = None if before is None else _key(before)
        for seen, entry in enumerate(self._entries(stop), 1):
            if wanted.takes(entry):
                found.append(shown(entry))
            if len(found) == count or seen == scanned:
                return found, entry["number"]
        return found, None

    def _entries(self, stop: bytes | None) -> Iterator[dict[str, Any]]:
        for key, value in self._engine.store.scan(TABLE, stop=stop, reverse=True):
            yield {"number": int.from_bytes(key, "big"), **json.loads(value)}

    def _is_too_much(self) -> bool:
        now = self._engine.core.clock.monotonic()
        if now - self._period >= _PERIOD:
            self._period, self._refusals = now, 0
        self._refusals += 1
        return self._refusals > REFUSALS

    def _write(self, core: QueueManagerCore, entry: Entry) -> None:
        self._load(core)
        values = {name: value for name, value in asdict(entry).items() if value}
        content: dict[str, Any] = {"time": core.clock.time(), **values}
        for name in ("target", "problem", "details"):
            if name in content:
                content[name] = content[name][:_LONGEST]
        if self._skipped:
            content["skipped"], self._skipped = self._skipped, 0
        key, value = _key(self._next), json.dumps(content).encode()
        core.batch.put(TABLE, key, value)
        self._next += 1
        self._bytes += len(key) + len(value)
        self._drop(core)
        core.batch.put("meta", _BYTES_KEY, self._bytes.to_bytes(8, "big"))

    def _load(self, core: QueueManagerCore) -> None:
        """Where the table ends, and what it takes; once, unless a commit failed."""
        if self._is_loaded:
            return
        last = next(iter(core.store.scan(TABLE, reverse=True)), None)
        self._next = 1 if last is None else int.from_bytes(last[0], "big") + 1
        self._bytes = int.from_bytes(core.store.get("meta", _BYTES_KEY) or b"", "big")
        self._first = b""
        self._is_loaded = True

    def _drop(self, core: QueueManagerCore) -> None:
        """Let the oldest entries go until the rest fits."""
        limit = self._limit()
        if self._bytes <= limit:
            return
        oldest = islice(core.store.scan(TABLE, self._first), _DROPPED_AT_ONCE)
        for key, value in oldest:
            if self._bytes <= limit:
                break
            core.batch.delete(TABLE, key)
            self._bytes -= len(key) + len(value)
            self._first = key + b"\0"


def shown(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry as callers see it: every field, and a time that people can read."""
    moment = datetime.fromtimestamp(entry["time"], UTC)
    empty = {"who": "", "origin": "", "target": "", "problem": "", "details": "", "principal": ""}
    return {
        "code": 0,
        "skipped": 0,
        **empty,
        **entry,
        "time": moment.isoformat(timespec="milliseconds"),
    }


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big")
