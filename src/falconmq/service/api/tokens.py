"""The tokens of the HTTP port."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.exceptions import HTTPException

from falconmq.errors import MqStatus, QueueError
from falconmq.service.access import (
    Role,
    TokenExistsError,
    TokenNotFoundError,
    TokenStore,
    require,
)
from falconmq.service.api.context import Control, Given
from falconmq.service.schemas import Strict
from falconmq.service.web.audited import note

LIFETIME_MAX: Final = 100 * 366 * 86_400  # seconds; a longer time is a mistake of units

router: Final = APIRouter(dependencies=[Depends(require(Role.MANAGE))])


class CreateTokenRequest(Strict):
    """A token to make."""

    name: str = Field(description="Who will use it.", examples=["web-shop"])
    roles: Annotated[list[Role], Field(min_length=1, max_length=len(Role))]
    lifetime: float | None = Field(
        None, gt=0, le=LIFETIME_MAX, description="Seconds; left out: it does not expire."
    )


class TokenOut(Strict):
    """A token, without its secret."""

    name: str
    roles: list[Role]
    hint: str = Field(description="Its last characters.")
    created: str
    expires: str | None
    expired: bool


class NewToken(TokenOut):
    """A token that was just made."""

    token: str = Field(description="Its text: nobody can see it again.")


class TokenList(Strict):
    """All tokens, by name."""

    tokens: list[TokenOut]


@router.get("/tokens", response_model=TokenList)
async def get_tokens(control: Given) -> dict[str, Any]:
    """Every token, expired ones too; without their secrets."""
    return {"tokens": _tokens(control).listing()}


@router.post("/tokens", response_model=NewToken, status_code=HTTPStatus.CREATED)
async def create_token(control: Given, given: CreateTokenRequest) -> dict[str, Any]:
    """Make a token. Its text is in this answer and nowhere else."""
    tokens = _tokens(control)
    note(target=given.name, details=f"roles {', '.join(sorted(given.roles))}")
    try:
        text, token = tokens.create(given.name, given.roles, given.lifetime)
    except TokenExistsError as error:
        raise HTTPException(HTTPStatus.CONFLICT, str(error)) from error
    return {**token.shown(token.created), "token": text}


@router.delete("/tokens/{name}", status_code=HTTPStatus.NO_CONTENT)
async def revoke_token(control: Given, name: str) -> None:
    """Take a token away: whoever has it, or has logged in with it, is out."""
    try:
        _tokens(control).revoke(name)
    except TokenNotFoundError as error:
        raise HTTPException(HTTPStatus.NOT_FOUND, str(error)) from error


def _tokens(control: Control) -> TokenStore:
    if control.access is None:
        raise QueueError(
            "this queue manager has no HTTP port",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="start it with: falconmq serve",
        )
    return control.access.tokens
