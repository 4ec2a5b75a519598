"""Roles, and who has them.

A door (`service.control`, the HTTP port) finds out who a caller is and writes it into the request
with `set_principal`; every route says with `require` which role it needs. A request that no door
has looked at has no principal, and is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request
from starlette.exceptions import HTTPException

_KEY: Final = "falconmq.principal"

Scope = MutableMapping[str, Any]


class Role(StrEnum):
    """What somebody may do. MANAGE includes the others."""

    READ = "read"  # look at everything, messages included
    SEND = "send"
    RECEIVE = "receive"
    MANAGE = "manage"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks."""

    name: str
    roles: frozenset[Role]

    def may(self, role: Role) -> bool:
        return role in self.roles or Role.MANAGE in self.roles


OWNER: Final = Principal("owner", frozenset(Role))  # of the control socket


def set_principal(scope: Scope, principal: Principal) -> None:
    scope[_KEY] = principal


def principal_of(scope: Scope) -> Principal | None:
    """Who a door has found to ask; None: nobody known."""
    found: Principal | None = scope.get(_KEY)
    return found


def check(scope: Scope, role: Role) -> Principal:
    """The caller, if it has a role; else 401 or 403."""
    principal = principal_of(scope)
    if principal is None:
        raise HTTPException(
            HTTPStatus.UNAUTHORIZED, "a token is needed", {"WWW-Authenticate": "Bearer"}
        )
    if not principal.may(role):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, f"the token {principal.name} has not the role {role}"
        )
    return principal


def require(role: Role) -> Callable[[Request], Awaitable[Principal]]:
    """A dependency of a route: the caller, who has this role."""

    async def checked(request: Request) -> Principal:
        return check(request.scope, role)

    return checked
