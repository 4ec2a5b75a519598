"""One request for a page: who asks, what the page is drawn from, and how the answer leaves.

A page is a function from a `View` to a response. `guarded` makes a route of it: it asks for the
role, checks the CSRF token of forms, and turns errors into pages that say what to do next.

Forms answer with a redirect (so that reloading a page sends nothing twice); what they have to say
waits in a cookie until the next page shows it.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from markupsafe import Markup
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from falconmq.errors import FalconMQError
from falconmq.service.access import Principal, Role, principal_of
from falconmq.service.access.roles import check
from falconmq.service.access.sessions import check_csrf, csrf_of, is_encrypted, session_of
from falconmq.service.api.context import Control
from falconmq.service.console.drawing import ENVIRONMENT
from falconmq.service.console.explaining import Trouble, trouble_of
from falconmq.service.web.audited import note, note_question

FLASH: Final = "falconmq_flash"
THEME: Final = "falconmq_theme"
_FLASH_LONGEST: Final = 400  # characters; browsers keep cookies of 4096 bytes
_FIELDS_MOST: Final = 2000  # in one form: a page of messages may be selected, and some
_THEMES: Final = ("light", "dark")

NAVIGATION: Final = (
    ("/", "Overview", "read"),
    ("/queues", "Queues", "read"),
    ("/outgoing", "Outgoing", "read"),
    ("/dead-letters", "Dead letters", "read"),
    ("/messages", "Trace", "read"),
    ("/sessions", "Sessions", "read"),
    ("/transactions", "Transactions", "read"),
    ("/charts", "Charts", "read"),
    ("/directory", "Directory", "read"),
    ("/configuration", "Configuration", "read"),
    ("/tokens", "Tokens", "manage"),
    ("/permissions", "Permissions", "manage"),
    ("/keys", "Keys", "manage"),
    ("/audit", "Audit", "manage"),
)

_log = logging.getLogger("falconmq.service")


class Fields(dict[str, Any]):
    """What is written in the fields of a form; a field that is not there is empty."""

    def __missing__(self, key: str) -> str:
        return ""


class View:
    """A request for a page, and the tools to answer it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.control: Control = request.app.state.control
        self.principal: Principal | None = principal_of(request.scope)
        self._form: FormData | None = None

    # What was asked.

    def path(self, name: str) -> str:
        """A part of the path, as it was before it was quoted; see `ConsoleRoute`."""
        return unquote(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()

    def number(self, name: str, default: int, most: int = 2**63) -> int:
        """A whole number of the query; anything else is taken for the default."""
        text = self.query(name)
        return min(int(text), most) if text.isascii() and text.isdigit() else default

    def field(self, name: str) -> str:
        """A field of the form; "" if it is not there."""
        assert self._form is not None
        value = self._form.get(name, "")
        return "" if isinstance(value, UploadFile) else value

    def fields(self, name: str) -> list[str]:
        """All values of a field, such as the boxes that were ticked."""
        assert self._form is not None
        return [value for value in self._form.getlist(name) if isinstance(value, str)]

    @cached_property
    def values(self) -> Fields:
        """Every field of the form once, for drawing it again."""
        given = {} if self._form is None else dict(self._form.items())
        return Fields({key: value for key, value in given.items() if isinstance(value, str)})

    def may(self, role: str) -> bool:
        return self.principal is not None and self.principal.may(Role(role))

    def csrf_field(self) -> Markup:
        """What every form carries, as proof that a page of ours made it."""
        field = Markup('<input type="hidden" name="csrf_token" value="{}">')
        return field.format(csrf_of(self.request.scope))

    async def read_form(self) -> None:
        """Read the fields; 403 if one of our own pages did not make them."""
        self._form = await self.request.form(max_fields=_FIELDS_MOST, max_files=1)
        check_csrf(self.request.scope, self._form.get("csrf_token"))

    # How it is answered.

    def page(self, template: str, /, status: int = HTTPStatus.OK, **values: object) -> HTMLResponse:
        """Draw a template. The flash of an earlier form is shown once."""
        trouble, flash = values.get("trouble"), self._flash()
        if isinstance(trouble, Trouble):
            note(problem=trouble.detail)
        text = ENVIRONMENT.get_template(template).render(
            view=self,
            request=self.request,
            principal=self.principal,
            has_session=session_of(self.request.scope) is not None,
            csrf_field=self.csrf_field,
            navigation=NAVIGATION,
            manager_name=self.control.engine.core.settings.computer_name,
            theme=self._theme(),
            flash=flash,
            may=self.may,
            **values,
        )
        response = HTMLResponse(text, status)
        if flash is not None:
            response.delete_cookie(FLASH, path="/", httponly=True, samesite="strict")
        return response

    def done(self, path: str, text: str = "") -> Response:
        """A form did its work: on to another page, which says so."""
        return self._on(path, "done", text)

    def refused(self, path: str, error: Exception) -> Response:
        """A form could not do its work: back to the page it came from, which says why."""
        trouble = trouble_of(error)
        is_refused = trouble.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        note(problem=trouble.detail, result="refused" if is_refused else "failed")
        return self._on(path, "refused", trouble.detail, trouble.hint)

    def confirm(self, question: str, button: str, back: str) -> Response | None:
        """The page that asks first; None if the answer has come with the form.

        The script of the console asks in a dialog and sends `confirmed` along.
        """
        if self.field("confirmed"):
            return None
        assert self._form is not None
        note_question()
        kept = [
            (key, value)
            for key, value in self._form.multi_items()
            if key != "csrf_token" and isinstance(value, str)
        ]
        return self.page("confirm.html", question=question, button=button, back=back, kept=kept)

    def trouble(self, trouble: Trouble, headers: Mapping[str, str] | None = None) -> Response:
        """The page of an error."""
        response = self.page("error.html", status=trouble.code, trouble=trouble)
        response.headers.update(headers or {})
        return response

    def to_login(self) -> Response:
        """Whoever is not known logs in first, and comes back to a page that can be read."""
        url = self.request.url
        wanted = _raw_path(self.request) + (f"?{url.query}" if url.query else "")
        is_start = wanted == "/" or self.request.method != "GET"
        place = "/login" if is_start else f"/login?next={quote(wanted, safe='')}"
        return RedirectResponse(place, HTTPStatus.SEE_OTHER)

    def _on(self, path: str, kind: str, text: str, hint: str = "") -> Response:
        response = RedirectResponse(path, HTTPStatus.SEE_OTHER)
        if text:
            said = json.dumps({"kind": kind, "text": _cut(text), "hint": _cut(hint)})
            response.set_cookie(
                FLASH,
                base64.urlsafe_b64encode(said.encode()).decode("ascii"),
                max_age=60,
                path="/",
                httponly=True,
                samesite="strict",
                secure=is_encrypted(self.request.scope),
            )
        return response

    def _flash(self) -> dict[str, str] | None:
        text = self.request.cookies.get(FLASH)
        if not text or "x-console-live" in self.request.headers:
            return None
        try:
            said = json.loads(base64.urlsafe_b64decode(text))
            kind = "refused" if said["kind"] == "refused" else "done"
            return {"kind": kind, "text": str(said["text"]), "hint": str(said["hint"])}
        except (ValueError, KeyError, TypeError):  # not ours, or cut by the browser
            return None

    def _theme(self) -> str:
        theme = self.request.cookies.get(THEME, "")
        return theme if theme in _THEMES else ""


Page = Callable[[View], Awaitable[Response]]


def guarded(page: Page, role: Role | None) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a page that needs a role; None: everybody may see it."""

    async def endpoint(request: Request) -> Response:
        view = View(request)
        try:
            if role is not None:
                if view.principal is None and request.method in ("GET", "HEAD"):
                    return view.to_login()
                check(request.scope, role)
            if request.method == "POST":
                await view.read_form()
            return await page(view)
        except (FalconMQError, ValidationError) as error:
            return view.trouble(trouble_of(error))
        except HTTPException as error:
            return view.trouble(trouble_of(error), error.headers)
        except Exception as error:  # noqa: BLE001  # the page says so; the log has the rest
            _log.error("page failed path=%s", request.url.path, exc_info=error)
            return view.trouble(trouble_of(error))

    return endpoint


def local_path(text: str) -> str:
    """Where to go after a log-in: a path of this console, never another site."""
    parts = urlsplit(text)
    is_ours = text.startswith("/") and not text.startswith(("//", "/\\"))
    if parts.scheme or parts.netloc or not is_ours or not text.isprintable() or "\\" in text:
        return "/"
    return text


def _cut(text: str) -> str:
    """Short enough for a cookie, even if every letter of it needs an escape of six."""
    escaped = len(json.dumps(text))
    return text if escaped <= 3 * _FLASH_LONGEST else f"{text[: _FLASH_LONGEST // 2]} ..."


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or quote(request.url.path).encode()
    return raw.decode("ascii", "replace").split("?")[0]
