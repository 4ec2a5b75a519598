"""In front of all handlers: for whom they work, whether they may, and what is written down of it.

Every request works for the principal that its caller is (`service.access.principals`), so that the
core checks permissions. Requests that administer (`service.access.administration`) are written into
the audit log before their answer leaves, and so is every request that was refused.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from falconmq.embedded.signing import signing_for_others
from falconmq.errors import FalconMQError
from falconmq.manager.access import acting_as, check_manager
from falconmq.service.access.access import address_of
from falconmq.service.access.administration import Action, action_of
from falconmq.service.access.roles import Principal, Role, principal_of
from falconmq.service.requests.audit import Entry
from falconmq.service.web.problems import MEDIA_TYPE, refused

if TYPE_CHECKING:
    from falconmq.service.api.context import Control

SOCKET: Final = "control socket"
_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_BAD: Final = HTTPStatus.BAD_REQUEST
_ASKED: Final = "asked"

_noted: ContextVar[dict[str, str] | None] = ContextVar("falconmq audit", default=None)


def note(*, target: str = "", details: str = "", problem: str = "", result: str = "") -> None:
    """For handlers: what path and status of the request do not say. Names only, and no secrets.

    A page that says what went wrong answers like one that did its work; it notes the `result`.
    """
    noted = _noted.get()
    if noted is not None:
        given = {"target": target, "details": details, "problem": problem, "result": result}
        noted.update({key: value for key, value in given.items() if value})


def note_question() -> None:
    """For pages that ask first, and for trials: nothing was done, and nothing is written down."""
    note(result=_ASKED)


class AuditedApp:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, *, control: Control) -> None:
        self._app = app
        self._control = control

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        control, caller = self._control, principal_of(scope)
        principal = control.principals.of(caller)
        action = action_of(scope["method"], scope["path"])
        noted: dict[str, str] = {}
        token = _noted.set(noted)
        answer = _Answer(control, scope, send, action, noted)
        try:
            is_manager = caller is not None and caller.may(Role.MANAGE)
            with acting_as(principal), signing_for_others(is_manager):
                app = self._app if action is None else self._allowed(action)
                await app(scope, receive, answer.send)
        finally:
            _noted.reset(token)

    def _allowed(self, action: Action) -> ASGIApp:
        """The application, if the caller may administer so; else the refusal."""
        try:
            if action.rights:
                self._control.engine.look(check_manager, action.rights)
        except FalconMQError as error:
            return refused(error)
        return self._app


class _Answer:
    """The answer on its way: an entry is written before it goes on."""

    def __init__(
        self,
        control: Control,
        scope: Scope,
        send: Send,
        action: Action | None,
        noted: dict[str, str],
    ) -> None:
        self._control = control
        self._scope = scope
        self._send = send
        self._action = action
        self._noted = noted
        self._start: Message | None = None  # held back until the reason of a refusal is known

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            code = message["status"]
            if self._action is None and code not in _REFUSED:
                await self._send(message)
            elif code < _BAD:
                await self._record(code, "")
                await self._send(message)
            else:
                self._start = message
            return
        if self._start is not None:
            start, self._start = self._start, None
            await self._record(start["status"], _problem(start, message.get("body", b"")))
            await self._send(start)
        await self._send(message)

    async def _record(self, code: int, problem: str) -> None:
        scope, action = self._scope, self._action
        result = "done" if code < _BAD else "refused" if code in _REFUSED else "failed"
        result = self._noted.get("result", result)
        if result == _ASKED:
            return
        await self._control.audit.record(
            Entry(
                who=name_of(principal_of(scope)),
                origin=origin_of(scope),
                action=f"{scope['method']} request" if action is None else action.name,
                target=self._noted.get("target")
                or (scope["path"] if action is None else action[1]),
                result=result,
                code=code,
                problem=problem or self._noted.get("problem", ""),
                details=self._noted.get("details", ""),
                principal=str(self._control.principals.of(principal_of(scope)) or ""),
            )
        )


async def refused_at_door(control: Control, scope: Scope, code: int, problem: str) -> None:
    """Somebody did not even come in: a wrong token, a page of another site."""
    entry = Entry(
        "", origin_of(scope), "come in", scope["path"], "refused", code=code, problem=problem
    )
    await control.audit.record(entry)


def name_of(caller: Principal | None) -> str:
    """Who asks, so that a token called owner is not taken for the owner."""
    if caller is None:
        return ""
    return f"token {caller.token}" if caller.token else caller.name


def origin_of(scope: Scope) -> str:
    """Where a request comes from."""
    return address_of(scope) or SOCKET


def _problem(start: Message, body: bytes) -> str:
    """Why a request was refused, if its answer says so in JSON."""
    headers = dict(start.get("headers", ()))
    if headers.get(b"content-type", b"").decode("latin-1") != MEDIA_TYPE:
        return ""
    try:
        return str(json.loads(body)["detail"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        return ""
