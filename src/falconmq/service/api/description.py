"""The OpenAPI description, with what the framework does not say of itself.

Problems have a media type of their own (RFC 9457), the answer to an unfitting request is a problem
like every other, and each operation names the roles that its caller needs (`x-roles`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from falconmq.service.access import Required, Role
from falconmq.service.web.problems import MEDIA_TYPE

ROLES: Final = "x-roles"
_PROBLEM: Final[dict[str, Any]] = {
    "description": "a problem",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_NOT_OURS: Final = ("HTTPValidationError", "ValidationError")  # of the framework


def describe(app: FastAPI, routers: Mapping[str, Iterable[APIRouter]]) -> None:
    """Let an application describe itself as it is; `routers` by the prefix of their paths."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
            for prefix, some in routers.items():
                for router in some:
                    _name_roles(app.openapi_schema["paths"], prefix, router)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend it


def _described(app: FastAPI) -> dict[str, Any]:
    described = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    for operations in described["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            answers.pop("422", None)
            answers["default"] = _PROBLEM
    for name in _NOT_OURS:
        described["components"]["schemas"].pop(name, None)
    return described


def _name_roles(paths: dict[str, Any], prefix: str, router: APIRouter) -> None:
    for route in router.routes:
        if not isinstance(route, APIRoute):
            continue
        roles = needed_roles(route.dependant)
        for method in route.methods or ():
            operation = paths.get(prefix + route.path_format, {}).get(method.lower())
            if operation is not None and roles:
                operation[ROLES] = roles


def needed_roles(dependant: Dependant) -> str:
    """The roles that a caller needs, in words: "send", "read or receive", "receive and send"."""
    found = dict.fromkeys(required.roles for required in _required(dependant))
    if (Role.MANAGE,) in found:
        return Role.MANAGE  # it includes the others
    return " and ".join(" or ".join(roles) for roles in found)


def _required(dependant: Dependant) -> Iterator[Required]:
    for inner in dependant.dependencies:
        if isinstance(inner.call, Required):
            yield inner.call
        yield from _required(inner)
