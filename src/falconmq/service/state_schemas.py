"""The JSON of what stays open between requests: transactions, leases, handles and cursors.

All of it has a life in seconds. A transaction and a lease end when theirs is over, whatever they
are used for; handles and cursors when nobody has used them for so long.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final
from uuid import UUID

from pydantic import Field

from falconmq.service.schemas import Lifetime, Strict

TRANSACTION_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 300.0


class State(StrEnum):
    """How far a transaction or a lease is."""

    ACTIVE = "active"
    PREPARED = "prepared"  # promised to a coordinator, who decides; it has no time-out
    COMMITTED = "committed"
    ABORTED = "aborted"


class BeginRequest(Strict):
    """A transaction to begin."""

    timeout: Lifetime = Field(TRANSACTION_SECONDS, description="Seconds until it is aborted.")
    id: UUID | None = Field(None, description="If a coordinator has named it.")


class ExtendRequest(Strict):
    """A new life, from now on."""

    timeout: Lifetime | None = Field(None, description="Left out: as long as it was given first.")


class OpenTransactionOut(Strict):
    """A transaction, or how it ended."""

    id: UUID
    state: State
    timeout: float | None
    expires_at: str | None = Field(description="When it is aborted; null if it is not active.")
    operations: int = Field(description="Messages that it has sent, received and moved so far.")
    reason: str = Field(description="Why it was aborted, if nobody asked for it.")


class TransactionList(Strict):
    """All transactions that have not ended, those of earlier runs included."""

    transactions: list[OpenTransactionOut]


class LeaseOut(Strict):
    """Messages that a caller holds, or how that ended."""

    id: UUID
    state: State
    queue: str
    messages: int
    purged: int = Field(description="Of them: purged from the queue before they were committed.")
    timeout: float
    expires_at: str | None = Field(description="When the messages are given back.")
    reason: str = Field(description="Why it was aborted, if nobody asked for it.")


class LeaseList(Strict):
    """All leases that have not ended."""

    leases: list[LeaseOut]


class OpenRequest(Strict):
    """A queue to open and to keep open."""

    exclusive: bool = Field(False, description="Nobody else may receive from it meanwhile.")
    timeout: Lifetime = Field(IDLE_SECONDS, description="Seconds without use until it is closed.")


class HandleOut(Strict):
    """A queue that is kept open."""

    id: UUID
    queue: str
    exclusive: bool
    timeout: float
    expires_at: str


class CursorRequest(Strict):
    """A place in a queue to walk along its messages, at its start."""

    handle: UUID | None = Field(None, description="Through this handle; it closes with it.")
    peek: bool = Field(False, description="To look only; then the role read is enough.")
    timeout: Lifetime = Field(IDLE_SECONDS, description="Seconds without use until it is closed.")


class CursorOut(Strict):
    """A place in a queue that is kept."""

    id: UUID
    queue: str
    peek: bool
    timeout: float
    expires_at: str
