"""Cursors of a remote client: the service keeps the place, the client its id."""

from __future__ import annotations

from dataclasses import dataclass

from falconmq.client import reading
from falconmq.client.calls import Call, Operation
from falconmq.client.places import Place, open_handle
from falconmq.client.session import Json, ask, post
from falconmq.client.transactions import Work, active
from falconmq.message import Message


@dataclass(slots=True, eq=False)
class Walk:
    """A place in a queue."""

    place: Place
    id: str

    @property
    def wanted(self) -> Json:
        return {"cursor": self.id}


def begin(place: Place) -> Operation[Walk]:
    """A place at the start of a queue."""
    place.check_local()
    handle = yield from open_handle(place)
    body: Json = {} if handle is None else {"handle": handle}
    outcome = yield from ask(place.session, post(f"{place.path}/cursors", body))
    return Walk(place, str(place.checked(outcome).json(place.session)["id"]))


def peek(walk: Walk, timeout: float | None) -> Operation[Message]:
    return (yield from reading.peek(walk.place, walk.wanted, timeout))


def peek_next(walk: Walk, timeout: float | None) -> Operation[Message]:
    """Go on and look. A step whose answer is lost may have been made, so it is not repeated."""
    return (yield from reading.peek(walk.place, {**walk.wanted, "next": True}, timeout))


def receive(walk: Walk, timeout: float | None, work: Work | None) -> Operation[Message]:
    work = active(walk.place.session, work)
    return (yield from reading.receive(walk.place, walk.wanted, timeout, work))


def close(walk: Walk) -> Operation[None]:
    """Give the place up; one that the service has forgotten is given up already."""
    if not walk.place.session.is_closed:
        yield from ask(walk.place.session, Call("DELETE", f"/cursors/{walk.id}"))
