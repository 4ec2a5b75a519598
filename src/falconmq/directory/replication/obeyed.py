"""Change requests that were answered: one that comes twice is answered twice and obeyed once.

An express message comes again when a session breaks before its acknowledgement, and a queue manager
that was killed has forgotten that it had it. Obeyed again, a request would undo what was decided
since: a queue that was deleted would be there once more. So the answer is kept in the store,
together with the change, under who asked and the number that he gave his request.

Requests live for seconds, so the last ones of each requester are enough: their numbers grow, and
share so many places.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from falconmq.directory.workspace import Workspace
from falconmq.wire.replication_messages import ChangeRequestMessage

TABLE: Final = "directory_requests"  # requester, place -> number, status, digest
PLACES: Final = 1024  # of each requester

_ANSWER: Final = struct.Struct(">II16s")


def answer_of(workspace: Workspace, request: ChangeRequestMessage) -> int | None:
    """The status that a request was answered with; None: it is new."""
    record = workspace.get(TABLE, _key(request))
    if record is None:
        return None
    number, status, digest = _ANSWER.unpack(record)
    is_known = number == request.request_identifier and digest == _digest(request)
    return int(status) if is_known else None


def remember_answer(workspace: Workspace, request: ChangeRequestMessage, status: int) -> None:
    answer = _ANSWER.pack(request.request_identifier, status & 0xFFFFFFFF, _digest(request))
    workspace.put(TABLE, _key(request), answer)


def _key(request: ChangeRequestMessage) -> bytes:
    place = request.request_identifier % PLACES
    return _short(request.requester_name.lower().encode()) + place.to_bytes(2, "big")


def _digest(request: ChangeRequestMessage) -> bytes:
    """Somebody who begins to count anew may use a number again, for another change."""
    change = request.directory_change  # not its bytes: nobody could write some that can be read
    return _short(repr((change.command, change.identifier, change.properties)).encode())


def _short(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
