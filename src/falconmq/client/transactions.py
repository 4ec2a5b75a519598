"""Transactions of a remote client: begun, used and ended with requests that name their id.

The service aborts a transaction that nobody uses for its time-out. A client has no thread to keep
it alive: each operation extends it when more than half of the time is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from uuid import UUID, uuid4

from falconmq.client.calls import BrokenError, Call, Operation
from falconmq.client.problems import ServiceError, as_embedded
from falconmq.client.session import Json, Outcome, Session, ask, ask_json, closed, post
from falconmq.errors import FalconMQError, MqStatus, TransactionError

_LAST_TRY_SECONDS: Final = 5.0
_NEW: Final = "new"
_ACTIVE: Final = "active"
_PREPARED: Final = "prepared"


@dataclass(slots=True, eq=False)
class Work:
    """A transaction as the client knows it."""

    session: Session
    id: UUID
    state: str = _NEW  # or active, prepared, or how it ended
    why: str = ""  # it ended, if nobody asked for that
    renewed: float = 0.0  # when the service last gave it its whole time
    was_ended: bool = False  # by the caller, with commit or abort

    @property
    def is_active(self) -> bool:
        return self.state in (_NEW, _ACTIVE, _PREPARED)

    @property
    def is_prepared(self) -> bool:
        return self.state == _PREPARED

    def end(self, state: str, why: str = "") -> None:
        self.state, self.why = state, why

    def check(self) -> None:
        """TransactionError if it has ended."""
        if not self.is_active:
            raise self.ended()

    def ended(self) -> TransactionError:
        how = f"{self.state}, because {self.why}" if self.why else self.state
        return TransactionError(
            f"the transaction was {how}: it cannot be used again",
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint="begin another one: manager.transaction()",
        )


def new(session: Session, id: UUID | None) -> Work:
    return Work(session, uuid4() if id is None else id)


def active(session: Session, work: Work | None) -> Work | None:
    """The transaction of a call, if it is one of the same queue manager that has not ended."""
    if work is None:
        return None
    if work.session is not session:
        raise TransactionError(
            "the transaction belongs to another queue manager",
            status=MqStatus.TRANSACTION_ENLIST,
            hint="begin it with the manager whose queues take part",
        )
    work.check()
    return work


def begin(work: Work) -> Operation[None]:
    """Let the service know it, when that has to be."""
    if work.state != _NEW:
        return
    session = work.session
    wanted = {"id": str(work.id), "timeout": session.transaction_timeout}
    work.renewed = session.clock()
    outcome = yield from ask(session, post("/transactions", wanted))
    refused = outcome.refusal()
    is_ours = outcome.was_tried and refused is not None and _is_taken(refused)
    if refused is not None and not is_ours:
        raise as_embedded(refused)
    work.state = _ACTIVE


def use(work: Work) -> Operation[None]:
    """Make it ready for one more operation: known to the service, and with enough time left."""
    work.check()
    yield from begin(work)
    session, now = work.session, work.session.clock()
    if work.state != _ACTIVE or now - work.renewed < session.transaction_timeout / 2:
        return
    outcome = yield from ask(session, post(f"/transactions/{work.id}/extend"))
    refused = outcome.refusal()
    if refused is not None:
        raise lost(work, refused)
    work.renewed = now


def prepare(work: Work) -> Operation[None]:
    """Promise to commit."""
    yield from use(work)
    outcome = yield from ask(work.session, post(f"/transactions/{work.id}/prepare"))
    refused = outcome.refusal()
    if refused is not None and outcome.was_tried:
        found = yield from ask_json(work.session, Call("GET", f"/transactions/{work.id}"))
        refused = None if found["state"] == _PREPARED else refused
    if refused is not None:
        raise lost(work, refused)
    work.state = _PREPARED


def commit(work: Work) -> Operation[None]:
    """Make it true. It is asked for until the answer is known."""
    work.check()
    if work.session.is_closed:
        raise closed()
    state, work.was_ended = work.state, True
    work.end("committed")
    if state == _NEW:
        return  # nothing happened in it
    try:
        outcome = yield from ask(work.session, post(f"/transactions/{work.id}/commit"))
    except BaseException as error:
        work.end("left", f"its outcome is not known: {str(error) or type(error).__name__}")
        raise
    refused = outcome.refusal()
    if refused is not None:
        if refused.http_status == HTTPStatus.NOT_FOUND and (
            outcome.was_tried or state == _PREPARED  # somebody else has decided
        ):
            raise _unknown(work)
        if state == _PREPARED and refused.family == "ResourceError":
            work.state, work.was_ended = _PREPARED, False  # the promise stands
            raise as_embedded(refused)
        raise lost(work, refused)


def abort(work: Work) -> Operation[None]:
    """Take it back."""
    work.check()
    if work.session.is_closed:
        raise closed()
    is_known, work.was_ended = work.state != _NEW, True
    work.end("aborted")
    if is_known:
        outcome = yield from ask(work.session, post(f"/transactions/{work.id}/abort"))
        refused = outcome.refusal()
        if refused is not None and refused.http_status != HTTPStatus.NOT_FOUND:
            raise as_embedded(refused)  # what the service does not know never happened


def leave(work: Work, *, is_well: bool) -> Operation[None]:
    """The end of a `with` block: commit or abort, unless the block has done so or prepared it."""
    if work.was_ended or work.is_prepared:
        return
    if is_well:
        yield from commit(work)
    elif work.is_active and not work.session.is_closed:
        yield from abort(work)


def spoil(work: Work, why: str) -> Operation[None]:
    """An operation broke off: abort, so that nothing of which the client knows nothing happens."""
    work.end("aborted", why)
    call = post(f"/transactions/{work.id}/abort", answer_seconds=_LAST_TRY_SECONDS)
    try:
        yield call
    except (BrokenError, FalconMQError):
        return  # its time-out does it


def in_doubt(session: Session) -> Operation[list[Work]]:
    found = yield from ask_json(session, Call("GET", "/transactions"))
    rows: list[Json] = found["transactions"]
    prepared = [row for row in rows if row["state"] == _PREPARED]
    return [Work(session, UUID(row["id"]), _PREPARED) for row in prepared]


def lost(work: Work, refused: ServiceError) -> FalconMQError:
    """The error for a refusal after which the transaction is no more."""
    if refused.http_status == HTTPStatus.NOT_FOUND:
        return forgotten(work)
    work.end("aborted", str(refused))
    is_ended = refused.status is MqStatus.TRANSACTION_SEQUENCE
    return work.ended() if is_ended else as_embedded(refused)


def forgotten(work: Work) -> TransactionError:
    """The service was restarted, and what was not prepared never happened."""
    work.end("aborted", "the service does not know it any more: it was restarted")
    return work.ended()


def refused_in(work: Work | None, outcome: Outcome) -> None:
    """Notice that the transaction of an operation is gone, from the refusal of the operation."""
    refused = outcome.refusal()
    if work is not None and refused is not None and is_about(work, refused):
        raise lost(work, refused)


def is_about(work: Work, refused: ServiceError) -> bool:
    """Whether it is the transaction itself that is refused."""
    is_ended = refused.status is MqStatus.TRANSACTION_SEQUENCE
    return is_ended and str(work.id) in str(refused)


def _is_taken(refused: ServiceError) -> bool:
    return refused.status is MqStatus.TRANSACTION_ENLIST


def _unknown(work: Work) -> TransactionError:
    work.end("left", "its outcome is not known")
    return TransactionError(
        "the service does not know the transaction any more: its outcome is not known",
        status=MqStatus.TRANSACTION_SEQUENCE,
        hint="it was restarted; look where the messages are before doing it again",
    )
