"""Tokens: who may come in, and with which roles."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.errors import FalconMQError
from falconmq.service.access import Role
from falconmq.service.api import tokens as api
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View

_DAY = 86_400


async def show(view: View) -> Response:
    return await _page(view)


async def create(view: View) -> Response:
    """Make a token. Its text is on the page of this answer, and never again."""
    days = view.field("days").strip()
    given = {
        "name": view.field("name").strip(),
        "roles": view.fields("role"),
        "lifetime": None if not days else _seconds(days),
    }
    try:
        request = api.CreateTokenRequest.model_validate(given)
        made = await api.create_token(view.control, request)
    except (FalconMQError, HTTPException, ValidationError) as error:
        return await _page(view, trouble=trouble_of(error))
    return await _page(view, made=made)


async def revoke(view: View) -> Response:
    name = view.path("name")
    question = (
        f"Revoke the token {name}? Whoever uses it, or has logged in with it, is out at once."
    )
    if (asked := view.confirm(question, "Revoke", "/tokens")) is not None:
        return asked
    await api.revoke_token(view.control, name)
    return view.done("/tokens", f"The token {name} is revoked.")


async def _page(
    view: View, made: dict[str, object] | None = None, trouble: Trouble | None = None
) -> Response:
    listed = (await api.get_tokens(view.control))["tokens"]
    return view.page(
        "tokens.html",
        status=HTTPStatus.OK if trouble is None else trouble.code,
        tokens=listed,
        made=made,
        trouble=trouble,
        form=view.values,
        ticked=view.fields("role") if trouble is not None else [],
        roles=tuple(Role),
    )


def _seconds(days: str) -> float | str:
    """What is no number is left to the check of the request, which says so."""
    try:
        return float(days) * _DAY
    except ValueError:
        return days
