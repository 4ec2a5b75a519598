"""The JSON of ingests: batches of messages that are sent exactly once."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from pydantic import Field

from falconmq.service.schemas import Strict

KEY_MAX: Final = 200  # characters
BATCH_MAX: Final = (1 << 63) - 1
STAGES_MAX: Final = 10_000  # that one commit lists


class StageOut(Strict):
    """A stage, and what its packets must be."""

    stage: UUID
    count: int = Field(description="Messages that it has so far.")
    bytes: int = Field(description="Of their packets.")
    repeated: bool = Field(
        description="The batch is done already: nothing was kept, and nothing has to be sent."
    )
    format_name: str = Field(description="The destination that its packets name.")
    transactional: bool | None = Field(
        description="Whether each packet needs a TransactionHeader; null: the queue is on another "
        "computer, and the first packet says it for all."
    )
    manager: UUID = Field(description="The queue manager that sends them.")
    expires_at: str | None = Field(description="When it is dropped, if nobody touches it.")


class StageList(Strict):
    """Stages of one batch."""

    stages: Annotated[list[UUID], Field(max_length=STAGES_MAX)] = Field(
        description="In the order in which their messages are sent."
    )


class CommitOut(Strict):
    """What a commit did."""

    committed: int = Field(description="Messages that were sent by this request.")
    repeated: bool = Field(description="The batch, or a later one, was done before.")


class IngestOut(Strict):
    """How far a key is."""

    key: str
    last_batch: int | None = Field(description="null: it has done none.")
    count: int = Field(description="Messages of that batch.")
    updated_at: str | None


class StagedOut(Strict):
    """What waits in memory for a commit."""

    stages: int
    bytes: int
    bytes_max: int = Field(description="http.staged_bytes of the configuration.")


class IngestList(Strict):
    """The keys that are remembered, the one that was used last first."""

    ingests: list[IngestOut]
    staged: StagedOut
