"""Messages one by one: pages of a queue, one message, delete it, move some.

GET    /queues/{name}/messages                  a page; ?count= &after= or &before= &body=
GET    /queues/{name}/messages/{lookup_id}      one, with its whole body
DELETE /queues/{name}/messages/{lookup_id}      take it away, as a purge does
POST   /queues/{name}/messages/move             to another queue, or a subqueue
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from falconmq.embedded.messages import from_position
from falconmq.service import schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Control, Given
from falconmq.service.api.slashes import OwnSlashes
from falconmq.service.requests.browsing import delete, message_at, move, page_of
from falconmq.service.requests.messages import Shown, to_json
from falconmq.service.requests.reading import durable

router: Final = APIRouter(route_class=OwnSlashes)
_READ: Final = [Depends(require(Role.READ))]
_LookupId = Annotated[str, Path(pattern=r"^\d{1,20}$")]
_PAGE: Final = 50


@router.get("/queues/{name:path}/messages", response_model=schemas.MessagePage, dependencies=_READ)
async def get_messages(
    control: Given,
    name: str,
    count: Annotated[int, Query(ge=1, le=schemas.MESSAGES_MAX)] = _PAGE,
    after: Annotated[schemas.Wide | None, Query(description="Behind this lookup id.")] = None,
    before: Annotated[
        schemas.Wide | None, Query(description="The last ones in front of this lookup id.")
    ] = None,
    body: Annotated[Shown, Query(description="How much of each body.")] = Shown.PREVIEW,
) -> JSONResponse:
    """A page of a queue, its journal or a subqueue. It never waits, and takes nothing.

    An answer of large messages may hold fewer than `count`; `next` tells whether there are more.
    """
    return JSONResponse(await message_page(control, name, count, after, before, body))


async def message_page(
    control: Control,
    name: str,
    count: int = _PAGE,
    after: str | None = None,
    before: str | None = None,
    body: Shown = Shown.PREVIEW,
) -> dict[str, Any]:
    """The same as a dictionary (`schemas.MessagePage`)."""
    if after is not None and before is not None:
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, "either after or before, not both")
    page = await page_of(
        control.engine,
        name,
        count,
        after=None if after is None else int(after),
        before=None if before is None else int(before),
    )
    return {
        "messages": [
            to_json(from_position(position), body, control.principals.names)
            for position in page.positions
        ],
        "next": None if page.next is None else str(page.next),
        "previous": None if page.previous is None else str(page.previous),
        "held": page.held,
    }


@router.get(
    "/queues/{name:path}/messages/{lookup_id}",
    response_model=schemas.MessageOut,
    dependencies=_READ,
)
async def get_message(control: Given, name: str, lookup_id: _LookupId) -> dict[str, Any]:
    """One message with its whole body; 409 while somebody holds it."""
    position = await message_at(control.engine, name, int(lookup_id))
    return to_json(from_position(position), names=control.principals.names)


@router.delete(
    "/queues/{name:path}/messages/{lookup_id}",
    status_code=HTTPStatus.NO_CONTENT,
    dependencies=[Depends(require(Role.MANAGE))],
)
async def delete_message(control: Given, name: str, lookup_id: _LookupId) -> None:
    """Take a message away, as if its queue were purged of it.

    Its sender, if it asked for that, gets the negative acknowledgement Q_PURGED; nothing goes to
    the journal. 409 while somebody holds it.
    """
    _, commit = control.engine.run(delete, name, int(lookup_id))
    if commit is not None:
        await durable(control.engine, commit)


@router.post(
    "/queues/{name:path}/messages/move",
    response_model=schemas.MoveAnswer,
    dependencies=[Depends(require(Role.RECEIVE)), Depends(require(Role.SEND))],
)
async def move_messages(control: Given, name: str, given: schemas.MoveRequest) -> dict[str, int]:
    """Move messages to another queue of this queue manager, all or none.

    A subqueue is made if there is none of that name, and its messages keep their lookup ids. Nobody
    is told: a message that moves was neither received nor lost.
    """
    lookup_ids = [int(lookup_id) for lookup_id in given.lookup_ids]
    owner = None
    if given.transaction is not None:
        owner = control.transactions.use(given.transaction).use()
    moved, commit = control.engine.run(move, name, lookup_ids, given.target, owner)
    if commit is not None:
        await durable(control.engine, commit)
    return {"moved": moved}
