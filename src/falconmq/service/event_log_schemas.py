"""The JSON of the stored event log."""

from __future__ import annotations

from pydantic import Field

from falconmq.service.schemas import Bytes, Strict, Wide


class EventLogOut(Strict):
    """Where the log begins and ends; all of it is durable."""

    manager: str = Field(description="GUID of the queue manager.")
    computer: str
    first: int = Field(description="Number of the oldest event; `next` if there is none.")
    next: int = Field(description="Number of the first event that is not there yet.")
    bytes: int = Field(description="What the log takes.")
    is_kept: bool = Field(description="False: nothing is added to it.")


class EntryOut(Strict):
    """One thing that happened to one message."""

    number: int = Field(description="Without gaps, across restarts.")
    at: str
    kind: str = Field(description="queued, arrived, delivered, received, expired, ...")
    manager: str
    computer: str
    message_id: str | None
    queue: str | None = Field(description="Path name; of an outgoing queue where it leads.")
    lookup_id: Wide | None
    arrival_number: int | None
    size: int
    reason: str | None = Field(description="The message class that says why.")
    detail: str | None
    sent_at: str | None
    sequence_id: Wide | None
    sequence_number: int | None
    previous_number: int | None
    destination: str | None = Field(description="Format name that the message was sent to.")
    trace: bool
    packet: Bytes | None = Field(description="The message as it travels, if it is kept and wanted.")


class EntriesOut(Strict):
    """Events of a range, the oldest first."""

    start: int = Field(alias="from")
    to: int = Field(description="Go on from here.")
    entries: list[EntryOut]
