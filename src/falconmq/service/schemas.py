"""The JSON of the HTTP API: what requests may say and what answers hold.

A message has the properties of `falconmq.Message` under the same names, both ways:

    choices     by name, `"VT_BSTR"`, `"ADVANCED"`; a number where MSMQ has no name for it
    flags       a list of names, `["POSITIVE_ARRIVAL", "NEGATIVE_ARRIVAL"]`
    bytes       base64
    queues      format names
    times       seconds, or `"infinite"`; moments are ISO 8601 in UTC
    64 bits     texts of digits, because JSON readers round numbers beyond 2**53
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

MESSAGES_MAX: Final = 1000  # in one request or answer
TIMEOUT_MAX: Final = 3600.0  # seconds that one request may wait; ask again to wait longer
LIFETIME_MAX: Final = 3600.0  # seconds that something may stay open without being extended

Bytes = Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]
Choice = str | int
Seconds = Annotated[int, Field(ge=0, le=0xFFFFFFFF)] | Literal["infinite"]
Lifetime = Annotated[float, Field(ge=1, le=LIFETIME_MAX)]
Wide = Annotated[str, Field(pattern=r"^\d{1,20}$", examples=["288230376151711745"])]


class Strict(BaseModel):
    """A name that is not known is refused: it would be a mistake that nobody sees."""

    model_config = ConfigDict(extra="forbid")


class Provider(Strict):
    """The cryptographic provider that made a signature."""

    name: str
    type: int = 1


class MessageIn(Strict):
    """A message to send. All is optional; the body is given as one of text, json or body."""

    text: str | None = Field(None, description="The body as text: VT_BSTR unless body_type says.")
    json_: object = Field(None, alias="json", description="The body as JSON in UTF-8.")
    body: Bytes | None = Field(None, description="The body as bytes.")
    body_type: Choice | None = Field(None, description="What the body is: VT_BSTR, VT_I4, 0x1011.")
    label: str | None = None
    priority: int | None = None
    recoverable: bool | None = Field(None, description="False: it lives in memory alone.")
    time_to_reach_queue: Seconds | None = Field(
        None, description="Left out: the default of the queue manager, four days."
    )
    time_to_be_received: Seconds | None = None
    acknowledgements: list[str] | None = None
    journal: list[str] | None = None
    administration_queue: str | None = None
    administration_queues: list[str] | None = None
    response_queue: str | None = None
    response_queues: list[str] | None = None
    correlation_id: str | None = Field(None, description=r"{GUID}\number, the id it answers.")
    application_tag: int | None = None
    extension: Bytes | None = None
    message_class: Choice | None = None
    dead_letter_queue: str | None = None
    allow_peek_when_locked: bool | None = None
    trace: bool | None = None
    report_queue: UUID | None = None
    connector_type: UUID | None = None
    privacy_level: Choice | None = Field(
        None, description="Encrypt the body on its way: BASE, ENHANCED or ADVANCED."
    )
    encryption_algorithm: Choice | None = None
    hash_algorithm: Choice | None = Field(None, description="Of the signature: SHA_512.")
    authentication_level: Choice | None = Field(
        None, description="Sign it: SIG10, SIG20 or SIG30; a list of queues always has SIG30."
    )
    sender_id: Bytes | None = Field(
        None, description="A SID. Left out: that of the caller, if it is a principal."
    )
    sender_id_type: Choice | None = Field(
        None, description="NONE: the message does not say who sent it."
    )
    sender_certificate: Bytes | None = Field(
        None, description="With authentication_level: which one to sign with, DER or PEM."
    )
    signature: Bytes | None = None
    multiple_destination_signature: Bytes | None = None
    symmetric_key: Bytes | None = None
    provider: Provider | None = None
    soap_header: str | None = None
    soap_body: str | None = None


class SenderOut(Strict):
    """Who a message says has sent it. That is proven if authentication_level is not NONE."""

    sid: str | None
    name: str = Field(description="That of a principal of the configuration, or the SID.")
    certificate: str = Field(description="The subject of the certificate that came with it.")


class TransactionOut(Strict):
    """A message's place in its transaction and in the sequence to its destination."""

    sequence_id: Wide
    sequence_number: int
    previous_sequence_number: int
    id: int
    is_first: bool
    is_last: bool
    final_ack_required: bool
    connector_queue_manager: UUID | None


class MessageOut(Strict):
    """A message that was received or peeked."""

    id: str | None
    lookup_id: Wide | None = Field(description="Names it in its queue.")
    label: str
    text: str | None = Field(description="The body as text; null if it is none.")
    body: Bytes = Field(description="The bytes; the first 512 of a preview, none if none is asked.")
    body_size: int = Field(description="Bytes of the whole body.")
    body_type: Choice
    summary: str = Field(description="What the body is, in a few words.")
    priority: int
    delivery: Choice
    time_to_reach_queue: Seconds | None
    time_to_be_received: Seconds
    acknowledgements: list[str]
    journal: list[str]
    destination: str | None
    destinations: list[str]
    administration_queue: str | None
    administration_queues: list[str]
    response_queue: str | None
    response_queues: list[str]
    correlation_id: str | None
    application_tag: int
    extension: Bytes
    message_class: Choice
    dead_letter_queue: str
    allow_peek_when_locked: bool
    trace: bool
    report_queue: UUID | None
    connector_type: UUID | None
    privacy_level: Choice
    encryption_algorithm: Choice
    hash_algorithm: Choice
    sender_id: Bytes
    sender_id_type: Choice
    sender_certificate: Bytes
    signature: Bytes
    multiple_destination_signature: Bytes
    symmetric_key: Bytes
    provider: Provider | None
    soap_header: str | None
    soap_body: str | None
    soap_envelope: str | None
    soap_compound_message: str | None
    authentication_level: Choice = Field(description="Which signature was verified.")
    sender: SenderOut | None
    sent_at: str | None
    arrived_at: str | None
    source_queue_manager: UUID | None
    destination_queue_manager: UUID | None
    hop_count: int
    abort_count: int
    move_count: int
    transaction: TransactionOut | None
    transaction_status_queue: str | None


class SendRequest(Strict):
    """Messages for one queue; they are stored with one sync."""

    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=MESSAGES_MAX)]
    transaction: bool | UUID | None = Field(
        None,
        description="true: all or nothing. The id of an open transaction: sent when that commits. "
        "Left out: as the queue needs it; a queue on another computer that is transactional "
        "needs true.",
    )


class SendAnswer(Strict):
    """The ids of the messages, in their order."""

    ids: list[str]


class SendPacketsAnswer(Strict):
    """How many were sent. Their ids are consecutive; behind 4294967295 comes 1."""

    count: int
    first_id: str
    last_id: str


class ReceiveRequest(Strict):
    """Which messages to read."""

    count: Annotated[int, Field(ge=1, le=MESSAGES_MAX)] = 1
    timeout: Annotated[float, Field(ge=0, le=TIMEOUT_MAX)] = Field(
        0, description="Seconds to wait for the first message; the others must be there."
    )
    peek: bool = Field(False, description="Look only: the messages stay in the queue.")
    lookup_id: Wide | None = Field(None, description="This message and no other.")
    seek: Literal["current", "next", "previous", "first", "last"] | None = Field(
        None, description="The message there, seen from lookup_id; first and last need none."
    )
    after: Wide | None = Field(None, description="Peek behind this lookup id: the next page.")
    transaction: UUID | None = Field(None, description="Receive in this open transaction.")
    lease: Lifetime | None = Field(
        None, description="Lock the messages for so many seconds; POST /leases/{id}/commit ends it."
    )
    lease_id: UUID | None = Field(
        None, description="The id for the lease: a caller that misses the answer can abort it."
    )
    cursor: UUID | None = Field(None, description="At this open cursor, one message a request.")
    next: bool = Field(False, description="Let the cursor go on first; with peek.")
    handle: UUID | None = Field(None, description="Through this open handle.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        """What goes together and what does not."""
        if self.seek in ("current", "next", "previous") and self.lookup_id is None:
            raise ValueError(f"seek {self.seek} needs a lookup_id")
        if self.peek and (self.transaction is not None or self.lease is not None):
            raise ValueError("a peek takes nothing: no transaction and no lease")
        if self.lease_id is not None and self.lease is None:
            raise ValueError("lease_id names a lease: say how long it is to last")
        if self.transaction is not None and self.lease is not None:
            raise ValueError("either a transaction or a lease")
        if self.next and (self.cursor is None or not self.peek):
            raise ValueError("next is for peeks with a cursor")
        if self.cursor is not None:
            self._check_cursor()
        return self

    def _check_cursor(self) -> None:
        if self.handle is not None:
            raise ValueError("a cursor has its handle already")
        if self.lookup_id is not None or self.seek is not None or self.after is not None:
            raise ValueError("a cursor knows its place: no lookup_id, seek or after")
        if self.count != 1:
            raise ValueError("a cursor gives one message a request")

    @property
    def has_place(self) -> bool:
        """Whether it names one message by its lookup id, or one near it: that never waits."""
        return self.lookup_id is not None or self.seek is not None


class ReceiveAnswer(Strict):
    """The messages, in their order; none if none came in time."""

    messages: list[MessageOut]
    lease: UUID | None = Field(description="Holds the messages, if a lease was asked for.")


class MessagePage(Strict):
    """Messages of a queue, in its order. Nothing is taken, and nobody is kept waiting."""

    messages: list[MessageOut]
    next: Wide | None = Field(description="`after` for the page behind this one; null at the end.")
    previous: Wide | None = Field(description="`before` for the page in front; null at the start.")
    held: int = Field(description="Messages that readers or senders hold, and nobody else sees.")


class MoveRequest(Strict):
    """Messages to move to another queue of this queue manager, or to a subqueue."""

    lookup_ids: Annotated[list[Wide], Field(min_length=1, max_length=MESSAGES_MAX)]
    target: str
    transaction: UUID | None = None


class MoveAnswer(Strict):
    """How many messages were moved."""

    moved: int


class QueueProperties(Strict):
    """What a creator may choose beside the name."""

    transactional: bool = False
    label: str = ""
    journaling: bool = False
    quota_kilobytes: Annotated[int, Field(ge=0, le=0xFFFFFFFF)] | None = None
    journal_quota_kilobytes: Annotated[int, Field(ge=0, le=0xFFFFFFFF)] | None = None
    authentication: bool = False
    privacy_level: Literal["NONE", "OPTIONAL", "BODY"] | None = None
    base_priority: Annotated[int, Field(ge=-32768, le=32767)] | None = None


class QueueUpdate(Strict):
    """Properties to change; what is left out stays. null for a quota: no limit."""

    label: str = ""
    journaling: bool = False
    quota_kilobytes: Annotated[int, Field(ge=0, le=0xFFFFFFFF)] | None = None
    journal_quota_kilobytes: Annotated[int, Field(ge=0, le=0xFFFFFFFF)] | None = None
    authentication: bool = False
    privacy_level: Literal["NONE", "OPTIONAL", "BODY"] = "OPTIONAL"
    base_priority: Annotated[int, Field(ge=-32768, le=32767)] = 0


class CreateQueueRequest(QueueProperties):
    """A queue to create."""

    name: str = Field(examples=[r".\private$\orders"])


class IncomingStreamOut(Strict):
    """How far one sender's transactional messages to a queue are."""

    sender: str
    format_name: str
    sequence_id: str
    sequence_number: int
    reject_count: int
    last_access_time: str | None


class QueueOut(Strict):
    """A queue of this queue manager."""

    name: str
    format_name: str
    label: str
    transactional: bool
    journaling: bool
    quota_kilobytes: int | None = Field(description="null: no limit.")
    journal_quota_kilobytes: int | None
    authentication: bool
    privacy_level: Choice
    base_priority: int
    created_at: str
    modified_at: str
    messages: int
    size_bytes: int
    journal_messages: int
    waiting_readers: int = Field(description="Reads that wait for a message.")
    incoming_streams: list[IncomingStreamOut]


class QueueList(Strict):
    """Queues that were created here, in the order of their names."""

    queues: list[QueueOut]
    next: str | None = Field(None, description="`after` for the page behind this one; null: none.")


class PurgeAnswer(Strict):
    """How many messages were deleted."""

    purged: int


class ConnectionAttemptOut(Strict):
    """One try to reach the next hop."""

    time: str
    status: str
    error: str
    addresses: list[str]


class SequenceOut(Strict):
    """A place in a transactional stream."""

    id: str = Field(description="TxSequenceID, a 64-bit number as text.")
    number: int
    previous: int


class OutgoingStreamOut(Strict):
    """How far the transactional messages of an outgoing queue are (OutgoingTransferInfo)."""

    first_not_acknowledged: SequenceOut | None
    last_not_acknowledged: SequenceOut | None
    last_acknowledged: SequenceOut | None
    next: SequenceOut | None
    not_acknowledged: int = Field(description="Sent, no OrderAck yet.")
    not_read: int = Field(description="Arrived, and waiting for the news of their end.")
    last_ack_count: int = Field(description="How often the last OrderAck came.")
    last_ack_time: str | None
    resend_count: int
    resend_interval_seconds: float
    resend_time: str | None


class OutgoingOut(Strict):
    """Messages on their way to a queue of another queue manager."""

    number: int = Field(description="Names it for pause and resume.")
    destination: str
    path_name: str = Field(description="Of a public queue, if it is known here; else empty.")
    state: str
    next_hops: list[str]
    messages: int
    size_bytes: int
    problem: str = Field(description="Why the last try to connect failed; empty if it did not.")
    next_try_seconds: float | None = Field(description="Until the next try to connect.")
    stream: OutgoingStreamOut | None
    connection_history: list[ConnectionAttemptOut]


class OutgoingList(Strict):
    """All outgoing queues."""

    outgoing: list[OutgoingOut]


class Problem(BaseModel):
    """What went wrong (RFC 9457), with the status of MSMQ and what to do next."""

    type: str = "about:blank"
    title: str
    status: int = Field(description="The HTTP status.")
    detail: str
    error: str = Field(examples=["MQ_ERROR_QUEUE_NOT_FOUND"])
    hresult: str = Field(examples=["0xC00E0003"])
    hint: str = ""
    family: str = Field("FalconMQError", description="The class of the error in Python.")
    sent: int | None = Field(
        None, description="How many messages were sent before the refused one, if any was."
    )
