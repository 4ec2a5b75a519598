"""Reading from a queue of a service, so that no message is lost on the way.

How to think about it. A receive is two requests: the first locks the message under a lease and
brings it here, the second confirms that it has come, and deletes it. The confirmation is repeated
until its outcome is known. Whatever goes wrong before it was carried out, the lease ends, by our
word or with its time, and the message is in its place again. The client chooses the id of the lease
beforehand, so it can give back even what it never got to see.

In a transaction the first request is enough: the commit confirms. If its answer is lost, nobody
knows what the transaction holds, so it is aborted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from falconmq.client import packets
from falconmq.client.calls import BrokenError, Call, Later, Operation
from falconmq.client.places import Place, open_handle
from falconmq.client.problems import as_embedded, refusal
from falconmq.client.session import JSON, Json, Outcome, Session, ask, post
from falconmq.client.transactions import Work, spoil, use
from falconmq.embedded.refusals import read_error
from falconmq.errors import MqStatus, ReadError, UnreachableError, WireError
from falconmq.manager.states import SeekAction
from falconmq.message import Message

LEASE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 30.0  # that one request waits; then the next one does
PAGE: Final = 100  # messages that an iteration fetches at once
_LAST_TRY_SECONDS: Final = 5.0
_LAST_TRIES: Final = 3
_HEADERS: Final = {"Content-Type": JSON, "Accept": packets.MEDIA_TYPE}


def peek(place: Place, wanted: Json, timeout: float | None) -> Operation[Message]:
    """Look at a message; wait for it.

    A cursor makes its step with the first request: a step that brought it to the end of the queue
    was made, so the next requests wait there. One whose answer is lost may have been made.
    """
    for seconds in _polls(place.session, timeout):
        body = {**wanted, "peek": True, "timeout": seconds}
        found = yield from _read(place, body, None, is_repeatable="next" not in wanted)
        if found:
            return found[0]
        wanted = {name: value for name, value in wanted.items() if name != "next"}
    raise read_error(place.name, MqStatus.IO_TIMEOUT, timeout)


def receive(
    place: Place, wanted: Json, timeout: float | None, work: Work | None
) -> Operation[Message]:
    """Take a message; wait for it."""
    for seconds in _polls(place.session, timeout):
        body = {**wanted, "timeout": seconds}
        if work is None:
            found = yield from _take(place, body)
        else:
            found = yield from _take_in(place, body, work)
        if found:
            return found[0]
    raise read_error(place.name, MqStatus.IO_TIMEOUT, timeout)


def sought(lookup_id: int, seek: SeekAction) -> Json:
    """One message by its lookup id, or the one before or behind it."""
    return {"lookup_id": str(lookup_id), "seek": seek.name.lower()}


def page(place: Place, after: int | None) -> Operation[list[Message]]:
    """The messages behind a lookup id that are there; they stay."""
    body: Json = {"peek": True, "count": PAGE}
    if after is not None:
        body["after"] = str(after)
    return (yield from _read(place, body, None))


def _take_in(place: Place, body: Json, work: Work) -> Operation[list[Message]]:
    yield from use(work)
    try:
        return (yield from _read(place, {**body, "transaction": str(work.id)}, work))
    except UnreachableError as error:
        yield from spoil(work, f"a read in it broke off: {error}")
        raise
    except (Exception, GeneratorExit):
        raise
    except BaseException:  # Ctrl-C, cancelled: it may hold a message that nobody has seen
        yield from spoil(work, "a read in it was interrupted")
        raise


def _take(place: Place, body: Json) -> Operation[list[Message]]:
    """Lock, bring here, confirm."""
    while True:
        lease = str(uuid4())
        asked = {**body, "lease": LEASE_SECONDS, "lease_id": lease}
        try:
            found = yield from _read(place, asked, None, is_repeatable=False)
            break
        except UnreachableError:
            # Before anything else, or the next message would overtake the one we did not see.
            yield from ask(place.session, post(f"/leases/{lease}/abort"))
            if "cursor" in body:  # nobody knows where it stands now
                raise
        except ReadError:
            if place.is_closed and not place.session.is_closed:
                yield from _give_back(lease)  # it may have come in the same moment
            raise
        except (Exception, GeneratorExit):
            raise
        except BaseException:  # Ctrl-C, cancelled
            yield from _give_back(lease)
            raise
    if found:
        yield from _confirm(place, lease, found)
    return found


def _confirm(place: Place, lease: str, found: list[Message]) -> Operation[None]:
    call = post(f"/leases/{lease}/commit")
    try:
        outcome = yield from ask(place.session, call)
    except UnreachableError as error:
        error.messages = tuple(found)
        error.hint = "the message may have been received; look before receiving again"
        raise
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:  # Ctrl-C, cancelled: back with it, unless it is too late
        if (yield from _give_back(lease)):
            raise
        yield Later(error)
        return
    refused = outcome.refusal()
    if refused is None:
        return
    if refused.http_status == HTTPStatus.NOT_FOUND and outcome.was_tried:
        yield from _find_out(place, found)
    if refused.family not in ("FalconMQError", "TransactionError"):
        raise as_embedded(refused)
    raise UnreachableError(
        f"{place.name}: a message came, but could not be confirmed: {refused}",
        status=MqStatus.OPERATION_CANCELLED,
        hint="it is in its queue again: receive once more",
    )


def _find_out(place: Place, found: list[Message]) -> Operation[None]:
    """The service was restarted in the middle: is the message still there?"""
    body: Json = {"peek": True, "lookup_id": str(found[0].lookup_id)}
    try:
        seen = yield from _read(place, body, None)
        if seen and seen[0].id == found[0].id:
            return
    except ReadError:
        pass
    error = UnreachableError(
        f"{place.name}: the service was restarted while a message was confirmed",
        status=MqStatus.SERVICE_NOT_AVAILABLE,
        hint="it has left the queue, by this receive or by another one; error.messages has it",
    )
    error.messages = tuple(found)
    raise error


def _give_back(lease: str) -> Operation[bool]:
    """End a lease that the service may have given; False: it is too late, it was confirmed.

    Nobody waits for long now. If no answer comes, the time of the lease ends it.
    """
    call = post(f"/leases/{lease}/abort", answer_seconds=_LAST_TRY_SECONDS)
    for _ in range(_LAST_TRIES):
        try:
            answer = yield call
        except BrokenError:
            continue
        return answer.status != HTTPStatus.CONFLICT
    return True


def _read(
    place: Place, body: Json, work: Work | None, *, is_repeatable: bool = True
) -> Operation[list[Message]]:
    """One request to read; none if no message came in time."""
    place.check_local()
    place.check_open()
    if "cursor" not in body and (handle := (yield from open_handle(place))) is not None:
        body = {**body, "handle": handle}
    wait = float(body.get("timeout", 0))
    content = json.dumps(body).encode()
    call = Call("POST", f"{place.path}/receive", content, _HEADERS, wait, place)
    can_repeat = is_repeatable and work is None
    try:
        outcome = yield from ask(place.session, call, is_repeatable=can_repeat)
    except UnreachableError:
        if place.is_closed:
            raise read_error(place.name, MqStatus.OPERATION_CANCELLED, None) from None
        raise
    if _is_handle_gone(place, outcome):
        place.handle = None  # nobody used it for long, or the service was restarted
        body = {key: value for key, value in body.items() if key != "handle"}
        return (yield from _read(place, body, work, is_repeatable=is_repeatable))
    place.checked(outcome, work)
    return _messages(place.session, outcome.answer.content)


def _is_handle_gone(place: Place, outcome: Outcome) -> bool:
    if place.handle is None or outcome.answer.status != HTTPStatus.NOT_FOUND:
        return False
    return place.handle in str(refusal(outcome.answer.status, outcome.answer.content))


def _messages(session: Session, content: bytes) -> list[Message]:
    try:
        return packets.from_packets(content)
    except (WireError, ValueError, KeyError, TypeError) as error:
        raise session.door.no_answer(error) from error


def _polls(session: Session, timeout: float | None) -> Iterator[float]:
    """How long each request may wait, until the time is over; at least one is made."""
    if timeout is None:
        while True:
            yield POLL_SECONDS
    deadline = session.clock() + timeout
    yield min(max(timeout, 0), POLL_SECONDS)
    while (left := deadline - session.clock()) > 0:
        yield min(left, POLL_SECONDS)
