"""Log in with a token, and out again."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from falconmq.service.access.sessions import clear_cookie, set_cookie
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.console.view import View, local_path


async def show(view: View) -> Response:
    if view.principal is not None:
        return RedirectResponse(local_path(view.query("next")), HTTPStatus.SEE_OTHER)
    return _form(view, local_path(view.query("next")))


async def log_in(view: View) -> Response:
    """The token is exchanged for a cookie; it is never written into a page or a log."""
    wanted = local_path(view.field("next"))
    access = view.control.access
    if access is None:
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "this door knows no tokens")
    token = view.field("token").strip()
    try:
        session = access.log_in(view.request.scope, token)
    except HTTPException as error:
        answer = _form(view, wanted, trouble_of(error), error.status_code)
        answer.headers.update(error.headers or {})
        return answer
    answer = RedirectResponse(wanted, HTTPStatus.SEE_OTHER)
    set_cookie(answer, view.request.scope, session)
    return answer


async def log_out(view: View) -> Response:
    if view.control.access is not None:
        view.control.access.log_out(view.request.scope)
    answer = view.done("/login", "You are logged out.")
    clear_cookie(answer, view.request.scope)
    return answer


def _form(
    view: View, wanted: str, trouble: Trouble | None = None, status: int = HTTPStatus.OK
) -> Response:
    return view.page("login.html", status=status, wanted=wanted, trouble=trouble)
