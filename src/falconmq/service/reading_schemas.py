"""The JSON of those who read queues by arrival numbers: ranges, plans and consumers.

Arrival numbers are plain numbers here: they stay below 2**53 for as long as anybody cares.
"""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from falconmq.service.schemas import Lifetime, Strict

ARRIVAL_MAX: Final = 1 << 63
WAIT_MAX: Final = 30.0  # seconds that a look at the arrivals of a queue may wait
PARTS_MAX: Final = 10_000
CONSUMER_SECONDS: Final = 60.0
QUEUES_MAX: Final = 1000  # of one consumer

Arrival = Annotated[int, Field(ge=0, lt=ARRIVAL_MAX)]
Fence = Annotated[int, Field(ge=1, lt=ARRIVAL_MAX)]


class ArrivalsOut(Strict):
    """How far a queue is."""

    queue: str
    format_name: str
    manager: UUID
    first: Arrival = Field(description="The oldest message that is there; `next` if none is.")
    next: Arrival = Field(
        description="One more than the highest number that is durable; 0 if none is known."
    )
    count: int = Field(description="Messages that are there, those that a reader holds included.")
    bytes: int
    counter: int = Field(description="The highest number that was given to anything so far.")


class PartOut(Strict):
    """A piece of a range."""

    from_: Arrival = Field(alias="from")
    to: Arrival
    count: int
    bytes: int | None


class PlanOut(Strict):
    """What a range of arrival numbers holds now."""

    queue: str
    from_: Arrival = Field(alias="from")
    to: Arrival = Field(description="Where it ends; sooner than asked if a limit was met.")
    count: int
    bytes: int | None = Field(description="Null if bytes were not limited: nobody counted them.")
    parts: list[PartOut]


class ClaimRequest(Strict):
    """Queues that a consumer wants for itself."""

    queues: Annotated[list[str], Field(min_length=1, max_length=QUEUES_MAX)]
    seconds: Lifetime = Field(CONSUMER_SECONDS, description="Until others may have them.")


class ClaimedQueue(Strict):
    """How far a consumer is in a queue."""

    next: Arrival = Field(description="All below was acknowledged; 0 if nothing was.")


class ClaimAnswer(Strict):
    """What a consumer has now."""

    consumer: str
    fence: Fence = Field(description="Shows who is the newest run of this consumer.")
    expires_at: str
    queues: dict[str, ClaimedQueue]


class AcknowledgeRequest(Strict):
    """How far a consumer is done."""

    fence: Fence
    seconds: Lifetime = Field(CONSUMER_SECONDS, description="Until others may have the queues.")
    queues: dict[str, Arrival] = Field(
        description="By queue: every message with a smaller arrival number is removed.",
        max_length=QUEUES_MAX,
    )


class AcknowledgeAnswer(Strict):
    """What was removed, durably."""

    removed: int
    locked: int = Field(description="Messages that stayed because somebody holds them.")
    expires_at: str


class RenewRequest(Strict):
    """More time."""

    fence: Fence
    seconds: Lifetime = CONSUMER_SECONDS


class RenewAnswer(Strict):
    expires_at: str


class ReleaseRequest(Strict):
    """The run is over: others may have the queues."""

    fence: Fence


class ConsumedQueue(Strict):
    """How far a consumer is in a queue."""

    queue: str
    next: Arrival
    behind: int = Field(description="Messages that are there and were not acknowledged.")
    updated_at: str | None


class ConsumerOut(Strict):
    """Somebody who reads queues by arrival numbers."""

    name: str
    fence: int
    is_live: bool = Field(description="It has its queues for itself now.")
    expires_at: str | None
    queues: list[ConsumedQueue]


class ConsumerList(Strict):
    consumers: list[ConsumerOut]
