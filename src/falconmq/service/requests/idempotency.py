"""Requests that may come twice: the first one is done, and its answer is given to all.

A sender whose connection broke cannot know whether its messages were sent. If it named its request
(`Idempotency-Key`), it sends it again and gets the answer that it missed. The names live in memory:
after a restart nobody knows them, so a sender that must not send twice also says for which run its
request is meant (`X-FalconMQ-Run`, from GET /manager), and is refused by any other.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Header, Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from falconmq.errors import MqStatus
from falconmq.service.access import principal_of
from falconmq.service.web.problems import problem

KEY_HEADER: Final = "Idempotency-Key"
RUN_HEADER: Final = "X-FalconMQ-Run"
KEY_MAX: Final = 200  # characters
KEYS: Final = 10_000  # that are remembered,
REMEMBERED_BYTES: Final = 64 * 1024 * 1024  # with answers that take so much together

Json = dict[str, Any]


@dataclass(slots=True, eq=False)
class _Answer:
    fingerprint: bytes
    task: asyncio.Task[Json]
    size: int = 0


class Answers:
    """The requests with a name, and how they were answered."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Answer] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    async def once(
        self,
        key: str | None,
        content: tuple[object, ...],
        work: Callable[[], Awaitable[Json]],
        *,
        is_final: Callable[[], bool] = bool,
    ) -> Json:
        """Do the work, or wait for the answer that somebody else with this key gets.

        Refused work may be tried again with the same key, unless it `is_final`: part of it is done.
        """
        if key is None:
            return await work()
        fingerprint = _fingerprint(content)
        answer = self._known.get(key)
        if answer is None:
            answer = self._begin(key, fingerprint, work, is_final)
        elif answer.fingerprint != fingerprint:
            raise HTTPException(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"the {KEY_HEADER} was used for another request: each request needs its own",
            )
        return await asyncio.shield(answer.task)

    def _begin(
        self,
        key: str,
        fingerprint: bytes,
        work: Callable[[], Awaitable[Json]],
        is_final: Callable[[], bool],
    ) -> _Answer:
        async def run() -> Json:
            return await work()

        answer = self._known[key] = _Answer(fingerprint, asyncio.ensure_future(run()))
        answer.task.add_done_callback(lambda _: self._end(key, answer, is_final()))
        return answer

    def _end(self, key: str, answer: _Answer, is_final: bool) -> None:
        """Remember it, or let it be tried again."""
        is_refused = answer.task.cancelled() or answer.task.exception() is not None
        if self._known.get(key) is not answer:
            return
        if is_refused and not is_final:
            del self._known[key]
            return
        answer.size = 0 if is_refused else len(json.dumps(answer.task.result()))
        self._bytes += answer.size
        while len(self._known) > KEYS or self._bytes > REMEMBERED_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._bytes -= oldest.size


def scoped_key(request: Request, key: str | None) -> str | None:
    """The key as it is remembered: callers do not see each other's."""
    if key is None:
        return None
    if len(key) > KEY_MAX:
        raise HTTPException(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"{KEY_HEADER} may have {KEY_MAX} characters"
        )
    principal = principal_of(request.scope)
    return f"{'' if principal is None else principal.name}\0{key}"


async def _given_key(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(description="Names the request; sent again, it is done once.")
    ] = None,
) -> str | None:
    return scoped_key(request, idempotency_key)


Key = Annotated[str | None, Depends(_given_key)]


class SameRun:
    """An ASGI application in front of another one: refuses requests for another run."""

    def __init__(self, app: ASGIApp, run_id: UUID) -> None:
        self._app = app
        self._run_id = str(run_id)
        self._name = RUN_HEADER.lower().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and any(name == self._name for name, _ in scope["headers"]):
            wanted = Headers(scope=scope)[RUN_HEADER]
            if wanted.lower() != self._run_id:
                await self._refuse(wanted)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refuse(self, wanted: str) -> ASGIApp:
        return problem(
            HTTPStatus.PRECONDITION_FAILED,
            f"this is run {self._run_id} of the service, the request is for {wanted}",
            MqStatus.STALE_HANDLE,
            "the service was restarted: what was open is gone, and what was sent is unknown here",
        )


def _fingerprint(content: tuple[object, ...]) -> bytes:
    digest = blake2b(digest_size=16)
    for part in content:
        digest.update(part if isinstance(part, bytes) else repr(part).encode("utf-8", "replace"))
        digest.update(b"\0")
    return digest.digest()
