"""Roles, and who has them.

A door (`service.web.control`, the HTTP port) finds out who a caller is and writes it into the
request with `set_principal`; every route says with `require` which role it needs. A request that no
door has looked at has no principal, and is refused.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

CERTIFICATE: Final = "falconmq.certificate"  # in the state of a request: its fingerprint
_KEY: Final = "falconmq.principal"

Scope = MutableMapping[str, Any]

# Only for openapi.json, where every route that needs a role names it; the door does the work.
_BEARER: Final = HTTPBearer(
    scheme_name="token",
    description="On the HTTP port. A token is made with `falconmq token create`.",
    auto_error=False,
)
_Shown = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


class Role(StrEnum):
    """What somebody may do. MANAGE includes the others."""

    READ = "read"  # look at everything, messages included
    SEND = "send"
    RECEIVE = "receive"
    DIRECTORY = "directory"  # look at the directory and change it, as far as its objects allow
    MANAGE = "manage"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks."""

    name: str
    roles: frozenset[Role]
    token: str = ""  # the name of the token that it has shown, if it has
    certificate: str = ""  # the fingerprint of the certificate that it has shown, if it has

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
        raise HTTPException(HTTPStatus.FORBIDDEN, f"{principal.name} has not the role {role}")
    return principal


def check_either(scope: Scope, role: Role, *others: Role) -> Principal:
    """The caller, if it has one of these roles."""
    principal = principal_of(scope)
    if principal is not None and any(principal.may(other) for other in others):
        return principal
    return check(scope, role)


class Required:
    """A dependency of a route: the caller, who has one of these roles."""

    def __init__(self, role: Role, *others: Role) -> None:
        self.roles = (role, *others)

    async def __call__(self, request: Request, _: _Shown) -> Principal:
        return check_either(request.scope, *self.roles)


def require(role: Role, *others: Role) -> Required:
    """A dependency of a route: the caller, who has this role, or one of the others."""
    return Required(role, *others)
