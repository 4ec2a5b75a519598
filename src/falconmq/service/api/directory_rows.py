r"""The directory for other queue managers: exact rows, many at a time.

    GET    /directory/rows/{kind}          objects that pass filters, page by page
    POST   /directory/rows/{kind}          create one or many
    PATCH  /directory/rows/{kind}/{id}     DELETE deletes it
    GET    /directory/place                the object at a place in the tree
    GET    /directory/members/{id}         the destinations of a distribution list
    GET    /directory/servers              who serves this directory

What people see of an object is in words, and not always all of it; a row has every value as it is
kept (`directory.records`), so that a queue manager that asks here (`client.remote_directory`) knows
what it would know of a directory of its own. Served is the directory in the store of this queue
manager, and never another one that it asks itself: two that ask each other would never end.

A page is in the order of GUIDs, and the next one begins behind the last GUID of it: nothing stays
open between two requests, and no object is looked at twice.

A queue manager that changes a row tells its owner itself (MQCN 3.3.4.1), so nobody is told here.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import query_error
from falconmq.directory.records import exact_row, from_exact, row_of_exact
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.texts import WORDS, table_for
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_backend import AttributeFilter, FilterOperator
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryResult
from falconmq.names import DistributionListFormatName
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.api.directory import Kind, beside, check, kept_directory
from falconmq.service.directory.notifying import forget
from falconmq.service.schemas import Strict
from falconmq.service.web.audited import note

router: Final = APIRouter()
_READ: Final = [Depends(require(Role.DIRECTORY, Role.READ))]
_CHANGE: Final = [Depends(require(Role.DIRECTORY))]
_PAGE_MAX: Final = 1000
_MANY: Final = 1000  # rows of one request
_FILTERS_MAX: Final = 16
_ATTRIBUTES_MAX: Final = 40
_WORD_OF: Final = {type_name: word for word, type_name in WORDS.items()}

Kept = Annotated[DirectoryBase, Depends(kept_directory)]
Fields = dict[str, Any]


class RowPage(Strict):
    """Some rows, in the order of their GUIDs."""

    rows: list[Fields]
    next: str | None = Field(description="`after` of the next page; null behind the last.")


class RowsIn(Strict):
    """Rows to create, one after the other."""

    rows: list[Fields] = Field(
        examples=[[{"path_name": "sales01\\orders", "label": "Orders"}]],
        min_length=1,
        max_length=_MANY,
    )


class RowIn(Strict):
    """The attributes to change, in their exact form."""

    row: Fields = Field(examples=[{"label": "Orders"}], max_length=_ATTRIBUTES_MAX)


class RowResult(Strict):
    """What became of a row."""

    result: str = Field(description="SUCCESS, or why it was not created.")
    identifier: str | None


class RowResults(Strict):
    """What became of each row, and the words for the last one that was refused."""

    results: list[RowResult]
    problem: str
    hint: str


class Placed(Strict):
    """The object at a place."""

    type: str
    row: Fields


class Members(Strict):
    """Format names of all destinations, each once."""

    members: list[str]


class Servers(Strict):
    """Computers that serve this directory."""

    servers: list[str]


@router.get("/directory/rows/{kind}", response_model=RowPage, dependencies=_READ)
async def get_rows(
    directory: Kept,
    kind: Kind,
    filter: Annotated[  # noqa: A002 - the name of the parameter
        list[str] | None,
        Query(
            max_length=_FILTERS_MAX,
            description='Each a JSON list, such as ["label","=","Orders"]; all have to hold.',
        ),
    ] = None,
    attributes: Annotated[
        list[str] | None, Query(max_length=_ATTRIBUTES_MAX, description="Left out: all.")
    ] = None,
    after: Annotated[UUID | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=_PAGE_MAX)] = 100,
) -> Response:
    """Objects in their exact form. A page may be short and yet not the last: see `next`."""

    def find() -> Response:
        table = table_for(kind)
        filters = [_filter(table, text) for text in filter or []]
        result, page = directory.page(table.type_name, filters, attributes, after, limit)
        check(directory, table, result)
        rows = [exact_row(table, row) for row in page.rows]
        return _json({"rows": rows, "next": None if page.next is None else page.next.hex})

    return await beside(find)


@router.post(
    "/directory/rows/{kind}",
    response_model=RowResults,
    status_code=HTTPStatus.CREATED,
    dependencies=_CHANGE,
)
async def create_rows(control: Given, directory: Kept, kind: Kind, given: RowsIn) -> dict[str, Any]:
    """Create objects; what is wrong with one of many does not stop the others."""
    note(target=kind)

    def create() -> dict[str, Any]:
        table = table_for(kind)
        rows = [row_of_exact(table, fields) for fields in given.rows]
        results = directory.create_many(table.type_name, rows)
        forget(control, table, results[0][1])
        refused = [result for result, _ in results if result is not DirectoryResult.SUCCESS]
        if refused and len(results) == 1:
            check(directory, table, refused[0])
        note(details=f"{len(results) - len(refused)} created, {len(refused)} refused")
        error = query_error(directory, table.type_name, refused[-1]) if refused else None
        return {
            "results": [_result(result, identifier) for result, identifier in results],
            "problem": "" if error is None else str(error),
            "hint": "" if error is None else error.hint,
        }

    return await beside(create)


@router.patch(
    "/directory/rows/{kind}/{identifier}", status_code=HTTPStatus.NO_CONTENT, dependencies=_CHANGE
)
async def change_row(
    control: Given, directory: Kept, kind: Kind, identifier: UUID, given: RowIn
) -> None:
    """Change attributes of an object; those that never change are left alone."""

    def change() -> None:
        table = table_for(kind)
        row: Row = {**row_of_exact(table, given.row), "identifier": identifier}
        check(directory, table, directory.write(table.type_name, row))
        forget(control, table, identifier)

    await beside(change)


@router.delete(
    "/directory/rows/{kind}/{identifier}", status_code=HTTPStatus.NO_CONTENT, dependencies=_CHANGE
)
async def delete_row(control: Given, directory: Kept, kind: Kind, identifier: UUID) -> None:
    """Delete an object."""

    def delete() -> None:
        table = table_for(kind)
        check(directory, table, directory.delete(table.type_name, identifier))
        forget(control, table, identifier)

    await beside(delete)


@router.get("/directory/place", response_model=Placed, dependencies=_READ)
async def get_place(directory: Kept, at: Annotated[str, Query(max_length=4000)]) -> Response:
    """The object at a place in the tree, by its distinguished name, of whatever type."""

    def find() -> Response:
        table, row = directory.at(at)
        return _json({"type": _WORD_OF[table.type_name], "row": exact_row(table, row)})

    return await beside(find)


@router.get("/directory/members/{identifier}", response_model=Members, dependencies=_READ)
async def get_members(directory: Kept, identifier: UUID) -> dict[str, Any]:
    """All destinations of a distribution list, those of the lists inside it too."""

    def find() -> dict[str, Any]:
        name = DistributionListFormatName(identifier)
        result, members = directory.resolve_distribution_list(name)
        check(directory, table_for("distribution-list"), result)
        return {"members": [str(member) for member in members]}

    return await beside(find)


@router.get("/directory/servers", response_model=Servers, dependencies=_READ)
async def get_servers(
    directory: Kept, domain: Annotated[str, Query(max_length=400)] = ""
) -> dict[str, Any]:
    """The queue managers that serve this directory to others."""

    def find() -> dict[str, Any]:
        return {"servers": list(directory.find_servers(domain))}

    return await beside(find)


def _filter(table: ObjectTable, text: str) -> AttributeFilter:
    try:
        name, operator, value = json.loads(text)
        attribute = table.find(name)
        return AttributeFilter(name, FilterOperator(operator), from_exact(attribute, value))
    except FalconMQError:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"{text!r:.80} is no filter"
        hint = 'write a JSON list: ["NAME","=",VALUE], or with != < > <= >='
        raise refusal(problem, MqStatus.ILLEGAL_RELATION, hint) from error


def _result(result: DirectoryResult, identifier: UUID) -> dict[str, Any]:
    is_there = result is DirectoryResult.SUCCESS
    return {"result": result.name, "identifier": identifier.hex if is_there else None}


def _json(content: object) -> Response:
    """Without a second look: rows are many, and their values are as they should be."""
    data = json.dumps(content, separators=(",", ":")).encode()
    return Response(data, media_type="application/json")
