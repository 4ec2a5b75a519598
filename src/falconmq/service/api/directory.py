r"""The directory in words: its objects, for people to look at and to change.

It is the one that this queue manager has joined, or else the one in its own store. Everything
happens beside the loop: a change is durable when its answer leaves, and the owner of what was
changed is told of it. What machines ask for is in `directory_rows`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from falconmq.directory.base import DirectoryBase
from falconmq.directory.embedded import EmbeddedDirectory
from falconmq.directory.guard import GuardedDirectory
from falconmq.directory.queries import find_all, find_one, query_error
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.texts import in_order, named, parse_filters, parsed, shown, table_for
from falconmq.errors import MqStatus
from falconmq.manager.access import caller_of
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import ChangeOperation, DirectoryResult
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.directory.naming import with_identifiers
from falconmq.service.directory.notifying import notice
from falconmq.service.schemas import Strict
from falconmq.service.web.audited import note

router: Final = APIRouter()
_READ: Final = [Depends(require(Role.READ, Role.DIRECTORY))]
_CHANGE: Final = [Depends(require(Role.DIRECTORY))]
_OBJECTS_MAX: Final = 1000
_FILTERS_MAX: Final = 16
_NAME_MAX: Final = 400

Answer = TypeVar("Answer")
Kind = Literal[
    "enterprise",
    "site",
    "routing-link",
    "connected-network",
    "queue-manager",
    "queue",
    "user",
    "distribution-list",
    "queue-alias",
]


class ObjectIn(Strict):
    """Attributes by name, as answers show them."""

    attributes: dict[str, Any] = Field(examples=[{"name": "Berlin"}], min_length=1, max_length=40)


class ObjectOut(Strict):
    """One object."""

    type: str
    attributes: dict[str, Any]


class ObjectList(Strict):
    """Objects of one type."""

    type: str
    objects: list[dict[str, Any]]


async def kept_directory(request: Request, control: Given) -> DirectoryBase:
    """The directory in the store, the same for all requests: it lets one change in at a time."""
    if control.hub is not None:
        return control.hub.kept
    known: DirectoryBase | None = getattr(request.app.state, "directory", None)
    if known is None:
        core = control.engine.core
        kept = EmbeddedDirectory(control.engine.store, core.clock, core.random)
        known = GuardedDirectory(kept, lambda: caller_of(core))
        request.app.state.directory = known
    return known


async def asked_directory(request: Request, control: Given) -> DirectoryBase:
    """The directory that this queue manager has joined; in a workgroup, the one in its store."""
    if control.hub is not None:
        return control.hub.asked
    return await kept_directory(request, control)


Asked = Annotated[DirectoryBase, Depends(asked_directory)]


@router.get("/directory/{kind}", response_model=ObjectList, dependencies=_READ)
async def list_objects(
    directory: Asked,
    kind: Kind,
    where: Annotated[list[str] | None, Query(max_length=_FILTERS_MAX)] = None,
    skip: Annotated[int, Query(ge=0, le=0xFFFFFFFF)] = 0,
    limit: Annotated[int, Query(ge=1, le=_OBJECTS_MAX)] = 100,
) -> dict[str, Any]:
    """Objects of one type by name; `where` conditions such as label=Orders have to hold all."""

    def find() -> list[dict[str, Any]]:
        table = table_for(kind)
        rows = find_all(directory, table.type_name, parse_filters(table, where or []))
        return [shown(table, row) for row in in_order(table, rows)[skip : skip + limit]]

    return {"type": kind, "objects": await beside(find)}


@router.get("/directory/{kind}/{name:path}", response_model=ObjectOut, dependencies=_READ)
async def get_object(directory: Asked, kind: Kind, name: str) -> dict[str, Any]:
    """One object, by its GUID or by what people call it."""

    def find() -> dict[str, Any]:
        table = table_for(kind)
        return _out(kind, table, _found(directory, table, name))

    return await beside(find)


@router.post(
    "/directory/{kind}",
    response_model=ObjectOut,
    status_code=HTTPStatus.CREATED,
    dependencies=_CHANGE,
)
async def create_object(
    control: Given, directory: Asked, kind: Kind, given: ObjectIn
) -> dict[str, Any]:
    """Create an object. The enterprise comes first, then its sites, queue managers and queues."""
    note(target=kind)

    def create() -> dict[str, Any]:
        table = table_for(kind)
        row = parsed(table, with_identifiers(directory, given.attributes))
        result, identifier = directory.create(table.type_name, row)
        check(directory, table, result)
        made = find_one(directory, table.type_name, equals("identifier", identifier))
        if made is None:  # another server made it, and has not told us yet
            made = {**table.complete(row), "identifier": identifier}
        notice(control, table, ChangeOperation.QUEUE_CREATION, made)
        return _out(kind, table, made)

    return await beside(create)


@router.patch("/directory/{kind}/{name:path}", response_model=ObjectOut, dependencies=_CHANGE)
async def change_object(
    control: Given, directory: Asked, kind: Kind, name: str, given: ObjectIn
) -> dict[str, Any]:
    """Change attributes of an object; those that never change are refused."""

    def change() -> dict[str, Any]:
        table = table_for(kind)
        row = parsed(table, with_identifiers(directory, given.attributes))
        fixed = sorted(row.keys() - table.changes(row).keys())
        if fixed:
            problem = f"{fixed[0]} of a {kind} never changes"
            raise refusal(problem, MqStatus.PROPERTY_NOTALLOWED, "create another one")
        known = _found(directory, table, name)
        identifier = known["identifier"]
        result = directory.write(table.type_name, {**row, "identifier": identifier})
        check(directory, table, result)
        by_identifier = equals("identifier", identifier)
        # as it is now, and as it was asked for where another server has not told us yet
        changed = find_one(directory, table.type_name, by_identifier) or known
        changed = {**changed, **row}
        notice(control, table, ChangeOperation.QUEUE_UPDATE, changed, row)
        return _out(kind, table, changed)

    return await beside(change)


@router.delete(
    "/directory/{kind}/{name:path}", status_code=HTTPStatus.NO_CONTENT, dependencies=_CHANGE
)
async def delete_object(control: Given, directory: Asked, kind: Kind, name: str) -> None:
    """Delete an object. What others stand below stays until they are gone."""

    def delete() -> None:
        table = table_for(kind)
        row = _found(directory, table, name)
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        check(directory, table, directory.delete(table.type_name, identifier))
        notice(control, table, ChangeOperation.QUEUE_DELETION, row)

    await beside(delete)


async def beside(work: Callable[[], Answer]) -> Answer:
    """Do in a thread what may take its time."""
    return await asyncio.to_thread(work)


def _found(directory: DirectoryBase, table: ObjectTable, name: str) -> Row:
    if len(name) > _NAME_MAX:
        raise refusal("no name is that long", MqStatus.INVALID_PARAMETER)
    row = find_one(directory, table.type_name, named(table, name))
    if row is None:
        raise query_error(directory, table.type_name, DirectoryResult.OBJECT_NOT_FOUND)
    return row


def check(directory: DirectoryBase, table: ObjectTable, result: DirectoryResult) -> None:
    """Refuse the request if the directory did not do what it was asked."""
    if result is not DirectoryResult.SUCCESS:
        raise query_error(directory, table.type_name, result)


def _out(kind: str, table: ObjectTable, row: Row) -> dict[str, Any]:
    return {"type": kind, "attributes": shown(table, row)}
