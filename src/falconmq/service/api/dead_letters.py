"""Dead letters: look at them, send them again, delete them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query

from falconmq.embedded.messages import from_position
from falconmq.manager.core import QueueManagerCore
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.explaining_schemas import (
    DeadLetterDetails,
    DeadLetterList,
    LetterFilters,
    LettersAnswer,
    LettersQuery,
    LettersRequest,
    RedriveRequest,
)
from falconmq.service.operating.dead_letters import (
    Json,
    Work,
    count_of,
    delete,
    letter_not_found,
    queues_of,
    redrive_to,
    show,
    walk,
)
from falconmq.service.requests.messages import to_json
from falconmq.service.web.audited import note, note_question
from falconmq.wire.sid import Sid

router: Final = APIRouter(dependencies=[Depends(require(Role.READ))])
_MANAGE: Final = [Depends(require(Role.MANAGE))]


@router.get("/dead-letters", response_model=DeadLetterList)
async def list_dead_letters(
    control: Given, given: Annotated[LettersQuery, Query()]
) -> dict[str, Any]:
    """What could not be delivered, and why: of both system queues, or of the one that is named."""
    return await get_dead_letters(control, given, given.count, given.after)


async def get_dead_letters(
    control: Control, filters: LetterFilters, count: int = 50, after: str | None = None
) -> dict[str, Any]:
    """The same for callers in this process."""
    page = await walk(control.engine, filters, show, count=count, after=after)
    return {"letters": page.items, "next": page.next, "as_of": _now(control)}


@router.get("/dead-letters/message", response_model=DeadLetterDetails)
async def get_dead_letter(
    control: Given,
    queue: Annotated[str, Query(description="deadletter, deadxact or the name of a queue.")],
    lookup_id: Annotated[str, Query(pattern=r"^\d{1,20}$")],
) -> dict[str, Any]:
    """One dead letter with the whole message."""
    return control.engine.look(_details, queue, int(lookup_id), control.principals.names)


@router.post("/dead-letters/redrive", response_model=LettersAnswer, dependencies=_MANAGE)
async def redrive(control: Given, given: RedriveRequest) -> dict[str, Any]:
    """Send dead letters again; each is sent and taken away at once, or stays."""
    if given.dry_run:
        note_question()
    return await _work(control, given, redrive_to(given.target, dry_run=given.dry_run))


@router.post("/dead-letters/delete", response_model=LettersAnswer, dependencies=_MANAGE)
async def delete_letters(control: Given, given: LettersRequest) -> dict[str, Any]:
    """Delete dead letters for good."""
    return await _work(control, given, delete)


async def _work(control: Control, given: LettersRequest, work: Work) -> dict[str, Any]:
    as_of = _now(control)
    page = await walk(control.engine, given, work, count=count_of(given), after=given.after)
    stayed = sum(1 for letter in page.items if letter["outcome"] == "stays")
    details = f"{len(page.items) - stayed} done, {stayed} stayed"
    note(target=given.queue or "", details=details)
    return {
        "done": len(page.items) - stayed,
        "stayed": stayed,
        "letters": page.items,
        "next": page.next,
        "as_of": as_of,
    }


def _details(core: QueueManagerCore, name: str, lookup_id: int, names: Mapping[str, Sid]) -> Json:
    (queue,) = queues_of(core, name)
    position = queue.positions.find(lookup_id)
    if position is None or not position.message.arrival_number:
        raise letter_not_found(name, lookup_id)
    message = to_json(from_position(position), names=names)
    return {"letter": show(core, position), "message": message}


def _now(control: Control) -> str:
    return datetime.fromtimestamp(control.engine.core.clock.time(), UTC).isoformat()
