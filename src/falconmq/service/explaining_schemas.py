"""The JSON of the part of the HTTP API that explains: why, dead letters, traces, pings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from falconmq.service.schemas import Strict, Wide

LETTERS_MAX = 1000  # dead letters in one request or answer


class FactOut(Strict):
    """Something that is so."""

    label: str
    value: str


class CauseOut(Strict):
    """One reason, the one that matters most first."""

    code: str = Field(examples=["connection-refused"])
    text: str
    severity: Literal["info", "warning", "error"]
    hint: str = Field(description="What to do next; empty if nothing.")
    since: str | None


class StepOut(Strict):
    """One thing that happened to a message."""

    time: str
    kind: str
    text: str
    queue: str


class ExplanationOut(Strict):
    """Why a message or a backlog is where it is."""

    subject: str
    kind: Literal["message", "queue", "outgoing", "directory"]
    summary: str = Field(description="One or two sentences.")
    severity: Literal["info", "warning", "error"] = Field(description="That of the worst cause.")
    facts: list[FactOut]
    causes: list[CauseOut]
    hints: list[str]
    timeline: list[StepOut] = Field(description="Of a message, the oldest first.")


class DeadLetterOut(Strict):
    """A message that was not delivered."""

    queue: str = Field(description="The dead-letter queue that has it.")
    lookup_id: str
    id: str
    reason: str = Field(examples=["NACK_RECEIVE_TIMEOUT"])
    reason_text: str = Field(examples=["not read in time"])
    destination: str
    source: str = Field(description="The queue manager that sent it.")
    label: str
    died_at: str
    sent_at: str
    age_seconds: float
    size_bytes: int
    transactional: bool
    is_held: bool = Field(description="Somebody is reading it.")


class DeadLetterList(Strict):
    """Dead letters, those of the first queue first."""

    letters: list[DeadLetterOut]
    next: str | None = Field(description="`after` of the next page; null: there are no more.")
    as_of: str = Field(description="The time of the answer, for `until`.")


class DeadLetterDetails(Strict):
    """One dead letter, and the message in it."""

    letter: DeadLetterOut
    message: dict[str, Any]


class LetterFilters(Strict):
    """Which dead letters are meant; all that match everything that is given."""

    queue: str | None = Field(
        default=None, description="One dead-letter queue; left out: the two of the system."
    )
    reason: str | None = Field(
        default=None, description="A class by its name: NACK_RECEIVE_TIMEOUT."
    )
    source: str | None = Field(
        default=None, description="The id of the queue manager that sent it."
    )
    contains: str | None = Field(
        default=None, description="In the label, the destination or the id."
    )
    id: str | None = Field(default=None, description="This message.")
    older_than: float | None = Field(default=None, ge=0, description="Seconds since it died.")
    newer_than: float | None = Field(default=None, ge=0, description="Seconds since it died.")
    until: str | None = Field(
        default=None,
        description="ISO time: only those that died before; keeps a long run from meeting "
        "its own letters again.",
    )


class LettersQuery(LetterFilters):
    """Which dead letters to show."""

    count: Annotated[int, Field(ge=1, le=LETTERS_MAX)] = 50
    after: str | None = Field(default=None, description="`next` of the page before.")


class LettersRequest(LetterFilters):
    """Dead letters to work on, by filters or by their places."""

    lookup_ids: Annotated[list[Wide], Field(max_length=LETTERS_MAX)] | None = Field(
        default=None, description="These, of `queue`, and no others."
    )
    limit: Annotated[int, Field(ge=1, le=LETTERS_MAX)] = 100
    after: str | None = Field(default=None, description="`next` of the answer before.")


class RedriveRequest(LettersRequest):
    """Dead letters to send again."""

    target: str | None = Field(
        default=None, description="Another queue than the original destination."
    )
    dry_run: bool = Field(default=False, description="Only say what would happen.")


class LetterOutcome(Strict):
    """What became of one dead letter."""

    queue: str
    lookup_id: str
    id: str
    reason: str
    destination: str
    label: str
    outcome: Literal["redriven", "would-go", "stays", "deleted"]
    new_id: str | None = None
    problem: str = Field(default="", description="Why it stays.")


class LettersAnswer(Strict):
    """What was done."""

    done: int = Field(description="How many were sent again or deleted, or would be.")
    stayed: int
    letters: list[LetterOutcome]
    next: str | None = Field(description="`after` for the rest; null: there are no more.")
    as_of: str


class StopOut(Strict):
    """One thing that is known of a message on its way."""

    manager: str = Field(description="The id of the queue manager.")
    name: str = Field(description="Its name, as far as it is known here.")
    queue: str
    time: str
    kind: str
    text: str
    source: Literal["here", "report"]


class EdgeOut(Strict):
    """From one queue manager to the next."""

    start: int = Field(description="Index of the stop that it left.")
    end: int = Field(description="Index of the stop where it came.")
    seconds: float | None


class RouteOut(Strict):
    """Where a message was."""

    id: str
    summary: str
    stops: list[StopOut]
    edges: list[EdgeOut]


class RouteList(Strict):
    """The routes of the newest messages of a queue."""

    routes: list[RouteOut]


class SessionOut(Strict):
    """A connection with another queue manager."""

    address: str
    queue_manager: str | None
    state: str
    is_initiator: bool
    is_direct: bool
    messages_sent: int
    messages_received: int
    unacknowledged: int
    bytes_sent: int
    bytes_received: int
    open_seconds: float | None
    acknowledged_seconds: float | None


class SessionList(Strict):
    """All sessions at this moment."""

    sessions: list[SessionOut]


class PingRequest(Strict):
    """Whom to ask."""

    address: str = Field(min_length=1, max_length=255, examples=["SALES02", "10.0.0.7"])
    timeout: Annotated[float, Field(gt=0, le=30)] = 2.0


class PingedAddress(Strict):
    """One address of a host."""

    address: str
    ping: Literal["welcome", "refused", "no answer", "not asked"]
    ping_seconds: float | None
    tcp: str = Field(description="connected, or why not.")
    tcp_seconds: float | None = Field(description="null: not connected.")


class PingAnswer(Strict):
    """How a queue manager can be reached."""

    host: str
    is_reachable: bool = Field(description="A connection to the port of MSMQ was made.")
    problem: str = Field(description="Why there is no address; empty if there is one.")
    port: int
    ping_port: int
    addresses: list[PingedAddress]


class PurgeOutgoingAnswer(Strict):
    """How many messages were given up."""

    purged: int
