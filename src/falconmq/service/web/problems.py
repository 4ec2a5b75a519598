"""Errors as HTTP answers: application/problem+json (RFC 9457), never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from falconmq.errors import FalconMQError, MqStatus, QueueError
from falconmq.security.problems import CertificateExistsError, UnknownEntryError

MEDIA_TYPE: Final = "application/problem+json"
FAMILIES: Final = FalconMQError.__module__

_log: Final = logging.getLogger("falconmq.service")

_STATUSES: Final[Mapping[MqStatus, HTTPStatus]] = {
    MqStatus.QUEUE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.MESSAGE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.MACHINE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.MQDS_OBJECT_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.QUEUE_NOT_AVAILABLE: HTTPStatus.GONE,
    MqStatus.QUEUE_DELETED: HTTPStatus.GONE,
    MqStatus.ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    MqStatus.QUEUE_EXISTS: HTTPStatus.CONFLICT,
    MqStatus.SHARING_VIOLATION: HTTPStatus.CONFLICT,
    MqStatus.MESSAGE_ALREADY_RECEIVED: HTTPStatus.CONFLICT,
    MqStatus.TRANSACTION_USAGE: HTTPStatus.CONFLICT,
    MqStatus.TRANSACTION_SEQUENCE: HTTPStatus.CONFLICT,
    MqStatus.TRANSACTION_ENLIST: HTTPStatus.CONFLICT,
    MqStatus.STALE_HANDLE: HTTPStatus.CONFLICT,
    MqStatus.INSUFFICIENT_RESOURCES: HTTPStatus.INSUFFICIENT_STORAGE,
    MqStatus.MESSAGE_STORAGE_FAILED: HTTPStatus.INSUFFICIENT_STORAGE,
    MqStatus.SERVICE_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    MqStatus.OPERATION_CANCELLED: HTTPStatus.SERVICE_UNAVAILABLE,
    MqStatus.NO_DS: HTTPStatus.SERVICE_UNAVAILABLE,
    MqStatus.ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
}

_HINTS: Final[Mapping[int, str]] = {
    HTTPStatus.UNPROCESSABLE_ENTITY: "what may be said is in /api/v1/openapi.json",
    HTTPStatus.UNAUTHORIZED: "a token is made with: falconmq token create NAME --role ROLE",
    HTTPStatus.FORBIDDEN: "falconmq token list shows which roles the tokens have",
    HTTPStatus.TOO_MANY_REQUESTS: "wait as long as Retry-After says",
    HTTPStatus.REQUEST_TIMEOUT: "",
    HTTPStatus.SERVICE_UNAVAILABLE: "try again in a moment",
}


class QueueNotEmptyError(QueueError):
    """A queue was to be deleted only if it is empty. MSMQ has no status for that."""

    def __init__(self, name: str, count: int) -> None:
        holds = "1 message" if count == 1 else f"{count} messages"
        super().__init__(
            f"{name} holds {holds}", hint="purge it first, or delete it without only_if_empty"
        )


def family_of(error: FalconMQError) -> str:
    """The class of `falconmq.errors` that an error belongs to: clients raise the same one."""
    if isinstance(error, PartlySentError):
        error = error.refusal
    return next(kind for kind in type(error).__mro__ if kind.__module__ == FAMILIES).__name__


class NotKnownError(FalconMQError):
    """An id of something that is not open here, or not any more."""


class EventsLostError(FalconMQError):
    """Events that have left the log: a reader came too late. MSMQ has no status for that."""

    def __init__(self, start: int, first: int) -> None:
        super().__init__(
            f"events {start} to {first - 1} are gone: the log begins with number {first}",
            status=MqStatus.INVALID_PARAMETER,
            hint=f"go on from {first}; max_age_days and max_bytes of [events] keep them longer",
        )


class PartlySentError(FalconMQError):
    """A message was refused, and those before it were sent outside a transaction."""

    def __init__(self, refusal: FalconMQError, sent: int) -> None:
        super().__init__(str(refusal), status=refusal.status, hint=refusal.hint)
        self.refusal = refusal
        self.sent = sent


def code_of(error: FalconMQError) -> HTTPStatus:
    """The HTTP status that an error is answered with."""
    if isinstance(error, QueueNotEmptyError | CertificateExistsError):
        return HTTPStatus.CONFLICT
    if isinstance(error, NotKnownError | UnknownEntryError):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, EventsLostError):
        return HTTPStatus.GONE
    return _STATUSES.get(error.status, HTTPStatus.BAD_REQUEST)


def install(app: FastAPI) -> None:
    """Every error of this application becomes a problem."""
    app.add_exception_handler(FalconMQError, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


def problem(
    code: int,
    detail: str,
    status: MqStatus,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    family: str = "FalconMQError",
    sent: int | None = None,
) -> JSONResponse:
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": status.meaning,
        "status": code,
        "detail": detail,
        "error": status.symbol,
        "hresult": f"0x{status:08X}",
        "hint": hint,
        "family": family,
    }
    if sent is not None:
        content["sent"] = sent
    return JSONResponse(content, code, headers, media_type=MEDIA_TYPE)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FalconMQError)
    return refused(error)


def refused(error: FalconMQError) -> JSONResponse:
    """An error of ours as an answer."""
    sent = error.sent if isinstance(error, PartlySentError) else None
    return problem(
        code_of(error), str(error), error.status, error.hint, family=family_of(error), sent=sent
    )


async def _not_valid(_: Request, error: Exception) -> JSONResponse:
    """The first thing that is wrong with the JSON; one is enough to go on."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    detail = f"{where or 'the request'}: {first['msg']}"
    hint = "the properties are listed in /api/v1/openapi.json"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, MqStatus.ILLEGAL_PROPERTY_VALUE, hint)


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return http_problem(error)


def http_problem(error: HTTPException) -> JSONResponse:
    """An error that only HTTP has: no such path, no such method, no right to ask."""
    code = error.status_code
    hint = _HINTS.get(code, "the paths are listed in /api/v1/openapi.json")
    is_denied = code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    status = MqStatus.ACCESS_DENIED if is_denied else MqStatus.INVALID_PARAMETER
    return problem(code, str(error.detail), status, hint, error.headers)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    _log.error("request failed method=%s path=%s", request.method, request.url.path, exc_info=error)
    detail = f"{type(error).__name__} in the service: this is a bug in FalconMQ"
    hint = "the log of the service has the details"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, MqStatus.ERROR, hint)
