"""Pages for what is not there."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from falconmq.service.console.view import View


async def not_found(view: View) -> Response:
    """A path that no page has. Whoever is not logged in learns only that."""
    if view.principal is None:
        return view.to_login()
    raise HTTPException(HTTPStatus.NOT_FOUND, f"there is no page {view.request.url.path}")
