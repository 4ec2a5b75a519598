"""Queues as the remote client holds them, and what can be done with a queue as a whole."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from falconmq.client.calls import Call, Operation
from falconmq.client.problems import ServiceError, as_embedded
from falconmq.client.session import (
    Json,
    Outcome,
    Session,
    ask,
    ask_json,
    closed,
    name_path,
    post,
    queue_path,
)
from falconmq.client.transactions import Work, refused_in, spoil, use
from falconmq.embedded.manager import ManagerStatus, QueueStatus
from falconmq.embedded.refusals import deleted
from falconmq.errors import MqStatus, QueueError, UnreachableError
from falconmq.manager.model import UNLIMITED, QueueProperties
from falconmq.manager.states import QueuePrivacy
from falconmq.names import (
    FormatName,
    MultipleElementFormatName,
    PathName,
    parse_format_name,
    parse_queue_name,
)
from falconmq.store import Durability

SYSTEM_QUEUES: Final = {
    "dead_letter": (r".\system$;deadletter", "DEADLETTER"),
    "transactional_dead_letter": (r".\system$;deadxact", "DEADXACT"),
    "journal": (r".\system$;journal", "JOURNAL"),
}
_JOURNAL: Final = ";JOURNAL"


@dataclass(slots=True, eq=False)
class Place:
    """One queue: how it is named, and what the service keeps open for it."""

    session: Session
    name: str  # the path name; the format name of a queue on another computer
    format_name: str
    is_local: bool = True
    is_exclusive: bool = False
    is_closed: bool = False
    handle: str | None = None  # of an exclusive queue, while it is open
    parsed: FormatName = field(init=False)
    seen: Json = field(default_factory=dict)  # what the service said of it last

    def __post_init__(self) -> None:
        self.parsed = parse_format_name(self.format_name)

    @property
    def path(self) -> str:
        """Its format name in a URL: a queue that is made anew under the old name is another one."""
        return queue_path(self.format_name)

    @property
    def has_many(self) -> bool:
        return isinstance(self.parsed, MultipleElementFormatName)

    def check_open(self) -> None:
        if self.session.is_closed:
            raise closed()
        if self.is_closed:
            raise QueueError(
                f"{self.name} was closed here",
                status=MqStatus.INVALID_HANDLE,
                hint="open it again: manager.queue(...)",
            )

    def check_local(self) -> None:
        if not self.is_local:
            raise QueueError(
                f"{self.name} is on another computer: it can be sent to, not read or managed "
                "from here",
                status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
                hint="read it through its own queue manager",
            )

    def error(self, refused: ServiceError) -> Exception:
        """What a refusal means to somebody who holds the queue."""
        if refused.status is MqStatus.QUEUE_NOT_FOUND and self.is_local:
            return deleted(self.name)
        return as_embedded(refused)

    def checked(self, outcome: Outcome, work: Work | None = None) -> Outcome:
        refused_in(work, outcome)
        refused = outcome.refusal()
        if refused is not None:
            raise self.error(refused)
        return outcome


# Finding and making


def find(
    session: Session, name: str | PathName | FormatName, *, exclusive: bool = False
) -> Operation[Place]:
    """A queue of the service by any of its names, or one elsewhere that can be sent to."""
    parsed = parse_queue_name(name) if isinstance(name, str) else name
    if isinstance(parsed, MultipleElementFormatName):
        return _elsewhere(session, parsed)
    outcome = yield from ask(session, Call("GET", queue_path(str(parsed))))
    refused = outcome.refusal()
    if refused is not None:
        if refused.status is not MqStatus.UNSUPPORTED_FORMATNAME_OPERATION:
            raise as_embedded(refused)
        if isinstance(parsed, PathName):
            found = yield from ask_json(session, Call("GET", name_path(str(parsed))))
            parsed = parse_format_name(str(found["format_name"]))
        return _elsewhere(session, parsed)
    return of_row(session, outcome.json(session), exclusive=exclusive)


def _elsewhere(session: Session, name: FormatName) -> Place:
    return Place(session, str(name), str(name), is_local=False)


def of_row(session: Session, row: Json, *, exclusive: bool = False) -> Place:
    name, format_name = str(row["name"]), str(row["format_name"])
    return Place(session, name, format_name, is_exclusive=exclusive, seen=row)


def system_place(session: Session, which: str) -> Place:
    name, suffix = SYSTEM_QUEUES[which]
    return Place(session, name, f"MACHINE={str(session.id).upper()};{suffix}")


def journal_of(place: Place) -> Place:
    """The journal of a queue, which every created queue has."""
    place.check_local()
    if place.session.is_closed:
        raise closed()
    if place.format_name.upper().startswith("MACHINE=") or ";" in place.name:
        raise QueueError(
            f"{place.name} has no journal",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint="subqueues and system queues have none; ask the queue itself",
        )
    return Place(place.session, f"{place.name};journal", place.format_name + _JOURNAL)


def create(
    session: Session, name: str | PathName, properties: dict[str, Any], *, transactional: bool
) -> Operation[Place]:
    path_name = PathName.parse(name) if isinstance(name, str) else name
    QueueProperties(transactional=transactional, **properties)  # knows which there are
    body = {"name": str(path_name), "transactional": transactional, **_sent(properties)}
    outcome = yield from ask(session, post("/queues", body))
    refused = outcome.refusal()
    if refused is None:
        return of_row(session, outcome.json(session))
    if outcome.was_tried and refused.status is MqStatus.QUEUE_EXISTS:
        return (yield from find(session, path_name))  # the first try made it
    raise as_embedded(refused)


def subqueue(place: Place, name: str) -> Operation[Place]:
    """A subqueue, made when it is first asked for."""
    place.check_open()
    place.check_local()
    session = place.session
    parent = PathName.parse(place.name)
    path_name = dataclasses.replace(parent, subqueue=name, journal=False)
    outcome = yield from ask(session, Call("GET", queue_path(str(path_name))))
    if outcome.refusal() is None:
        return of_row(session, outcome.json(session))
    outcome = yield from ask(session, post("/queues", {"name": str(path_name)}))
    refused = outcome.refusal()
    if refused is not None and refused.status is MqStatus.QUEUE_EXISTS:
        return (yield from find(session, path_name))  # somebody else asked for it first
    return of_row(session, place.checked(outcome).json(session))


def all_queues(session: Session) -> Operation[list[Place]]:
    found = yield from ask_json(session, Call("GET", "/queues"))
    return [of_row(session, row) for row in found["queues"]]


# Looking and changing


def look(place: Place) -> Operation[Json]:
    """What the service says of a queue at this moment."""
    place.check_local()
    outcome = yield from ask(place.session, Call("GET", place.path))
    place.seen = place.checked(outcome).json(place.session)
    return place.seen


def look_at_size(place: Place) -> Operation[Json]:
    """`look`; for a queue elsewhere, what waits here to be sent to it."""
    if place.is_local or place.has_many:
        return (yield from look(place))
    found = yield from ask_json(place.session, Call("GET", "/outgoing"))
    rows: list[Json] = found["outgoing"]
    is_ours = place.format_name.upper()
    place.seen = next(
        (row for row in rows if str(row["destination"]).upper() == is_ours),
        {"messages": 0, "size_bytes": 0},
    )
    return place.seen


def delete(place: Place) -> Operation[None]:
    place.check_local()
    outcome = yield from ask(place.session, Call("DELETE", place.path))
    refused = outcome.refusal()
    if refused is not None and outcome.was_tried and refused.http_status == HTTPStatus.NOT_FOUND:
        return  # the first try did it
    place.checked(outcome)


def purge(place: Place) -> Operation[int]:
    place.check_local()
    call = post(f"{place.path}/purge")
    outcome = yield from ask(place.session, call, is_repeatable=False)
    purged: int = place.checked(outcome).json(place.session)["purged"]
    return purged


def update(place: Place, changes: dict[str, Any]) -> Operation[None]:
    place.check_local()
    unknown = changes.keys() - {f.name for f in dataclasses.fields(QueueProperties)}
    if unknown:
        names = ", ".join(sorted(unknown))
        raise QueueError(f"a queue has no property {names}", status=MqStatus.ILLEGAL_PROPID)
    call = post(place.path, _sent(changes))
    outcome = yield from ask(place.session, dataclasses.replace(call, method="PATCH"))
    place.seen = place.checked(outcome).json(place.session)


def move(place: Place, lookup_id: int, target: Place, work: Work | None) -> Operation[None]:
    place.check_local()
    target.check_local()
    body: Json = {"lookup_ids": [str(lookup_id)], "target": target.format_name}
    if work is not None:
        yield from use(work)
        body["transaction"] = str(work.id)
    call = post(f"{place.path}/messages/move", body)
    try:
        outcome = yield from ask(place.session, call, is_repeatable=False)
    except UnreachableError as error:
        if work is not None:
            yield from spoil(work, f"a move in it broke off: {error}")
        raise
    place.checked(outcome, work)


def open_handle(place: Place) -> Operation[str | None]:
    """What an exclusive queue is read through; None for others."""
    place.check_open()
    if place.is_exclusive and place.handle is None:
        call = post(f"{place.path}/handles", {"exclusive": True})
        outcome = yield from ask(place.session, call, is_repeatable=False)
        place.handle = str(place.checked(outcome).json(place.session)["id"])
    return place.handle


def close(place: Place) -> Operation[None]:
    """Give up what the service keeps open for a queue."""
    place.is_closed = True
    handle, place.handle = place.handle, None
    if handle is not None and not place.session.is_closed:
        yield from ask(place.session, Call("DELETE", f"/handles/{handle}"))


def manager_status(session: Session) -> Operation[ManagerStatus]:
    found = yield from ask_json(session, Call("GET", "/manager"))
    listed = yield from ask_json(session, Call("GET", "/queues"))
    names = [
        each.name
        for each in dataclasses.fields(ManagerStatus)
        if each.name not in ("id", "durability", "queues")
    ]
    rows = [
        QueueStatus(
            row["name"],
            row["messages"],
            row["size_bytes"],
            row["transactional"],
            row["journal_messages"],
        )
        for row in listed["queues"]
    ]
    return ManagerStatus(
        id=UUID(found["id"]),
        durability=Durability[found["durability"]],
        queues=tuple(rows),
        **{name: found[name] for name in names},
    )


# Values of JSON


def facts(place: Place) -> Json:
    """What was last seen of a queue."""
    place.check_local()
    return _seen(place)


def sizes(place: Place) -> Json:
    """The same for how much is in it; a queue elsewhere has messages that wait to be sent."""
    if place.has_many:
        place.check_local()
    return _seen(place)


def _seen(place: Place) -> Json:
    if not place.seen:
        raise QueueError(
            f"{place.name} was not looked at yet",
            status=MqStatus.INVALID_HANDLE,
            hint="await queue.refresh() first",
        )
    return place.seen


def quota(row: Json, name: str) -> int:
    """KiB; null is no limit."""
    value: int | None = row[name]
    return UNLIMITED if value is None else value


def privacy(row: Json) -> QueuePrivacy:
    return QueuePrivacy[row["privacy_level"]]


def moment(row: Json, name: str) -> datetime:
    return datetime.fromisoformat(row[name])


def _sent(properties: dict[str, Any]) -> Json:
    """Properties as JSON."""
    sent = dict(properties)
    if "privacy_level" in sent:
        sent["privacy_level"] = QueuePrivacy(sent["privacy_level"]).name
    return sent
