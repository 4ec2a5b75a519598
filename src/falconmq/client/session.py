"""What a remote client knows of its service, and how it asks until there is an answer.

Nothing is lost and nothing done twice, because each request is one of three kinds:

    repeatable   it looks, or it says the same thing again (commit this id): asked until answered
    keyed        a send: the service knows its key and gives the same answer again, as long as it
                 was not restarted; `run_id` tells
    otherwise    asked again only if nothing of it was sent
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID, uuid4

from falconmq.client.calls import Answer, BrokenError, Call, Operation, Pause
from falconmq.client.doors import Door
from falconmq.client.packets import NOBODY
from falconmq.client.problems import ServiceError, as_embedded, refusal
from falconmq.errors import FalconMQError, MqStatus, QueueError, UnreachableError

JSON: Final = "application/json"
RUN: Final = "X-FalconMQ-Run"
KEY: Final = "Idempotency-Key"
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
# Refused without being carried out, for a reason that passes: the service stops or is overloaded.
_PASSING: Final = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)
# What a proxy says in place of the service: it may have been carried out.
_PROXY: Final = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)

Json = dict[str, Any]


@dataclass(slots=True)
class Session:
    """One client of one service."""

    door: Door
    clock: Callable[[], float]
    retry_seconds: float
    transaction_timeout: float
    id: UUID = NOBODY  # of the queue manager
    computer_name: str = ""
    run_id: str = ""  # another one after every start of the service
    is_closed: bool = False
    chance: random.Random = field(default_factory=random.Random)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer, and whether an earlier try of the same request may have been carried out."""

    answer: Answer
    was_tried: bool

    @property
    def is_restarted(self) -> bool:
        """Whether the request was for another run of the service."""
        return self.answer.status == HTTPStatus.PRECONDITION_FAILED

    def json(self, session: Session) -> Json:
        """The content; the right error if it is a refusal."""
        checked(self.answer)
        if not self.answer.content:
            return {}
        try:
            found: Json = json.loads(self.answer.content)
        except ValueError as error:
            raise session.door.no_answer(error) from error
        return found

    def refusal(self) -> ServiceError | None:
        if self.answer.status < HTTPStatus.BAD_REQUEST:
            return None
        return refusal(self.answer.status, self.answer.content)


def checked(answer: Answer) -> Answer:
    """The answer, if it is no refusal."""
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise as_embedded(refusal(answer.status, answer.content))
    return answer


def queue_path(name: str, behind: str = "") -> str:
    return f"/queues/{quote(name, safe='')}{behind}"


def name_path(name: str) -> str:
    """Where the service says which format name a path name stands for."""
    return f"/names/{quote(name, safe='')}"


def post(path: str, body: Json | None = None, **more: Any) -> Call:
    content = None if body is None else json.dumps(body).encode()
    return Call("POST", path, content, {"Content-Type": JSON}, **more)


def ask(
    session: Session, call: Call, *, is_repeatable: bool = True, patience: float | None = None
) -> Operation[Outcome]:
    """Ask, and ask again when the connection breaks, for as long as the session is patient."""
    was_tried = False
    deadline: float | None = None
    pauses = _pauses(session)
    while True:
        if session.is_closed:
            raise closed()
        try:
            answer = yield call
            broken = _as_broken(session, answer)
            if broken is None:
                return Outcome(answer, was_tried)
        except BrokenError as error:
            broken = error
        was_tried = was_tried or broken.was_sent
        if session.is_closed:
            raise _cancelled(session)
        now = session.clock()
        if deadline is None:
            deadline = now + (session.retry_seconds if patience is None else patience)
        is_over = now >= deadline or broken.is_hopeless
        if is_over or (broken.was_sent and not is_repeatable):
            raise broken.error
        yield Pause(min(next(pauses), max(0.0, deadline - now)))


def _cancelled(session: Session) -> FalconMQError:
    # Imported here: who only sends or reads by ranges needs no queue manager beside it.
    from falconmq.embedded.refusals import read_error  # noqa: PLC0415

    return read_error(session.door.shown, MqStatus.OPERATION_CANCELLED, None)


def ask_json(session: Session, call: Call, *, is_repeatable: bool = True) -> Operation[Json]:
    outcome = yield from ask(session, call, is_repeatable=is_repeatable)
    return outcome.json(session)


def ask_keyed(session: Session, call: Call) -> Operation[Outcome]:
    """Send something that must not be sent twice.

    If the service was restarted between two tries, it does not know any more whether the first one
    was carried out: the outcome `is_restarted`.
    """
    key = str(uuid4())
    while True:
        headers = {**call.headers, KEY: key, RUN: session.run_id}
        keyed = Call(call.method, call.path, call.content, headers, call.wait_seconds)
        outcome = yield from ask(session, keyed)
        if outcome.is_restarted:
            yield from greet(session)
        if outcome.was_tried or not outcome.is_restarted:
            return outcome


def restarted(session: Session) -> UnreachableError:
    return UnreachableError(
        f"the service at {session.door.shown} was restarted while it was asked",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="it may have been sent; look before sending again",
    )


def greet(session: Session, *, patience: float | None = None) -> Operation[None]:
    """Learn who the service is, and which run of it."""
    outcome = yield from ask(session, Call("GET", "/manager"), patience=patience)
    found = outcome.json(session)
    session.id = UUID(found["id"])
    session.computer_name = str(found["computer_name"])
    session.run_id = str(found["run_id"])


def closed() -> FalconMQError:
    return QueueError(
        "the queue manager was closed",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="use it inside its `with` block, or connect again",
    )


def _as_broken(session: Session, answer: Answer) -> BrokenError | None:
    """Answers that are none: somebody says that the service cannot be asked now."""
    if answer.status in _PASSING:
        error = refusal(answer.status, answer.content)
        if error.family == "DirectoryError":  # that will not pass by itself
            return None
        told = UnreachableError(str(error), status=error.status, hint=error.hint)
        return BrokenError(told, was_sent=False)
    if answer.status in _PROXY:
        said = f"HTTP status {answer.status}"
        return BrokenError(session.door.no_answer(said), was_sent=True)
    return None


def _pauses(session: Session) -> Iterator[float]:
    """Longer and longer, each a bit by chance: clients of one service do not return in step."""
    pause = _FIRST_PAUSE
    while True:
        yield pause * session.chance.uniform(0.5, 1)
        pause = min(2 * pause, _LONGEST_PAUSE)
