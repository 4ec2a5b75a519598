"""Who sent a message, for people: a SID with its name, and whose certificate came with it.

A sender id is a claim. It is proven if the message is signed and its signature was verified, which
`authentication_level` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from falconmq.errors import WireError
from falconmq.manager.permissions import name_of
from falconmq.message import Message, SenderIdType
from falconmq.security.certificates import read_certificate
from falconmq.security.problems import SecurityError
from falconmq.wire.sid import Sid


def sender_json(message: Message, names: Mapping[str, Sid]) -> dict[str, Any] | None:
    """As `schemas.SenderOut` describes it; None if the message says nothing of its sender."""
    if not message.sender_id and not message.sender_certificate:
        return None
    sid = _sid(message)
    name = ""
    if sid is not None:
        name = name_of(sid, names)
    elif message.sender_id_type == SenderIdType.QUEUE_MANAGER and len(message.sender_id) == 16:
        name = f"queue manager {UUID(bytes_le=message.sender_id)}"
    return {
        "sid": None if sid is None else str(sid),
        "name": name,
        "certificate": _subject(message.sender_certificate),
    }


def _sid(message: Message) -> Sid | None:
    if message.sender_id_type != SenderIdType.SID or not message.sender_id:
        return None
    try:
        return Sid.decode(message.sender_id)
    except WireError:
        return None  # what a peer sent


@lru_cache(maxsize=256)
def _subject(data: bytes) -> str:
    """Whom a certificate names; nothing if it is none, or if nobody here can read it."""
    if not data:
        return ""
    try:
        return read_certificate(data).subject
    except SecurityError:
        return ""
