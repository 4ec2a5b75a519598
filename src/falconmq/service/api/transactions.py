"""Transactions: begin one, send and receive in it with other requests, end it.

    POST   /transactions                   begin; {id, state, timeout, expires_at}
    GET    /transactions                   those that have not ended
    GET    /transactions/{id}              also one that has: the last 10,000 ends are remembered
    POST   /transactions/{id}/commit       and /abort, /prepare, /extend

To commit or abort again what was committed or aborted is no error: the first answer may be lost.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Depends

from falconmq.service import state_schemas as schemas
from falconmq.service.access import Role, require
from falconmq.service.api.context import Given
from falconmq.service.state_schemas import State

router: Final = APIRouter()
_USE: Final = [Depends(require(Role.SEND, Role.RECEIVE))]
_READ: Final = [Depends(require(Role.READ, Role.SEND, Role.RECEIVE))]


@router.post(
    "/transactions",
    response_model=schemas.OpenTransactionOut,
    status_code=HTTPStatus.CREATED,
    dependencies=_USE,
)
async def begin(control: Given, given: schemas.BeginRequest) -> dict[str, Any]:
    """Begin a transaction; it is aborted when its time is over."""
    return control.transactions.begin(given.timeout, given.id)


@router.get(
    "/transactions",
    response_model=schemas.TransactionList,
    dependencies=[Depends(require(Role.READ))],
)
async def get_transactions(control: Given) -> dict[str, Any]:
    """Those that have not ended, and those that an earlier run left in doubt."""
    return {"transactions": control.transactions.all()}


@router.get("/transactions/{id}", response_model=schemas.OpenTransactionOut, dependencies=_READ)
async def get_transaction(control: Given, id: UUID) -> dict[str, Any]:
    """A transaction, or how it ended."""
    return control.transactions.get(id)


@router.post(
    "/transactions/{id}/prepare", response_model=schemas.OpenTransactionOut, dependencies=_USE
)
async def prepare(control: Given, id: UUID) -> dict[str, Any]:
    """Promise to commit, durably: it takes no more operations and waits for commit or abort."""
    return await control.transactions.prepare(id)


@router.post(
    "/transactions/{id}/commit", response_model=schemas.OpenTransactionOut, dependencies=_USE
)
async def commit(control: Given, id: UUID) -> dict[str, Any]:
    """Make it true; durable when the answer comes. A read that waits in it ends."""
    return await control.transactions.end(id, State.COMMITTED)


@router.post(
    "/transactions/{id}/abort", response_model=schemas.OpenTransactionOut, dependencies=_USE
)
async def abort(control: Given, id: UUID) -> dict[str, Any]:
    """Take it back: what was received is in its place again, what was sent never was."""
    return await control.transactions.end(id, State.ABORTED)


@router.post(
    "/transactions/{id}/extend", response_model=schemas.OpenTransactionOut, dependencies=_USE
)
async def extend(
    control: Given, id: UUID, given: schemas.ExtendRequest | None = None
) -> dict[str, Any]:
    """Give it more time, from now on."""
    return control.transactions.extend(id, None if given is None else given.timeout)
