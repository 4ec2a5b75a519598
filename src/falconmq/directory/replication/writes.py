"""Writes that another server decides about: who waits for which answer (MQDSRP 3.3.7.1; A-08).

A request is sent on and remembered under the name of whoever began it and the number that he gave
it: numbers are unique at one server only (A-09). What ends the wait is a reply, a nack or the time;
whatever comes later finds nobody waiting. The end of the time does not mean that nothing happened:
the other server may have made the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from falconmq.directory.replication.properties import Properties
from falconmq.wire.directory_change import Identifier
from falconmq.wire.replication_messages import ChangeRequestMessage

WriteKey: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """A change that somebody at this server wants: of which object, in which partition."""

    command: int
    identifier: Identifier  # path name, or the bytes of a GUID where there is no path
    partition_id: UUID
    properties: Properties


class PendingWrite:
    """A write whose result comes later; `status` is None until then."""

    def __init__(self) -> None:
        self.status: int | None = None
        self._callbacks: list[Callable[[PendingWrite], None]] = []

    def add_done_callback(self, callback: Callable[[PendingWrite], None]) -> None:
        """Call back once, at once if the result is there."""
        if self.status is not None:
            callback(self)
        else:
            self._callbacks.append(callback)

    def finish(self, status: int) -> None:
        self.status = status
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


@dataclass(slots=True)
class WaitingWrite:
    """A request that was sent on. `write` is None: it is another server's, which gets a reply."""

    request: ChangeRequestMessage
    next_hop: str
    write: PendingWrite | None


def write_key(requester_name: str, request_identifier: int) -> WriteKey:
    return requester_name.lower(), request_identifier
