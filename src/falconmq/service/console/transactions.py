"""Transactions that have not ended, those in doubt first, and messages that somebody leases."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.api import leases
from falconmq.service.api import transactions as api
from falconmq.service.console.view import View
from falconmq.service.state_schemas import State

_PATH = "/transactions"


async def show(view: View) -> Response:
    found = (await api.get_transactions(view.control))["transactions"]
    found.sort(key=lambda each: each["state"] != State.PREPARED)
    leased = (await leases.get_leases(view.control))["leases"]
    return view.page("transactions.html", transactions=found, leases=leased)


async def commit(view: View) -> Response:
    id = _id(view)
    question = f"Commit the transaction {id}? Only its coordinator knows whether that is right."
    if (asked := view.confirm(question, "Commit", _PATH)) is not None:
        return asked
    try:
        await api.commit(view.control, id)
    except FalconMQError as error:
        return view.refused(_PATH, error)
    return view.done(_PATH, f"The transaction {id} is committed.")


async def abort(view: View) -> Response:
    id = _id(view)
    question = f"Abort the transaction {id}? What it received is in the queues again."
    if (asked := view.confirm(question, "Abort", _PATH)) is not None:
        return asked
    try:
        await api.abort(view.control, id)
    except FalconMQError as error:
        return view.refused(_PATH, error)
    return view.done(_PATH, f"The transaction {id} is aborted.")


async def end_lease(view: View) -> Response:
    """Give leased messages back to their places."""
    id = _id(view)
    question = "Give the messages of this lease back to their queue? Its reader cannot commit then."
    if (asked := view.confirm(question, "Give back", _PATH)) is not None:
        return asked
    try:
        await leases.abort(view.control, id)
    except FalconMQError as error:
        return view.refused(_PATH, error)
    return view.done(_PATH, "The messages are in their queue again.")


def _id(view: View) -> UUID:
    try:
        return UUID(view.path("id"))
    except ValueError:
        raise HTTPException(HTTPStatus.NOT_FOUND, "this is no id of a transaction") from None
