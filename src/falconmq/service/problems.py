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

MEDIA_TYPE: Final = "application/problem+json"

_log: Final = logging.getLogger("falconmq.service")

_STATUSES: Final[Mapping[MqStatus, HTTPStatus]] = {
    MqStatus.QUEUE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.MESSAGE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.MACHINE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    MqStatus.QUEUE_NOT_AVAILABLE: HTTPStatus.GONE,
    MqStatus.QUEUE_DELETED: HTTPStatus.GONE,
    MqStatus.ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    MqStatus.QUEUE_EXISTS: HTTPStatus.CONFLICT,
    MqStatus.SHARING_VIOLATION: HTTPStatus.CONFLICT,
    MqStatus.MESSAGE_ALREADY_RECEIVED: HTTPStatus.CONFLICT,
    MqStatus.TRANSACTION_USAGE: HTTPStatus.CONFLICT,
    MqStatus.TRANSACTION_SEQUENCE: HTTPStatus.CONFLICT,
    MqStatus.STALE_HANDLE: HTTPStatus.CONFLICT,
    MqStatus.INSUFFICIENT_RESOURCES: HTTPStatus.INSUFFICIENT_STORAGE,
    MqStatus.MESSAGE_STORAGE_FAILED: HTTPStatus.INSUFFICIENT_STORAGE,
    MqStatus.SERVICE_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    MqStatus.OPERATION_CANCELLED: HTTPStatus.SERVICE_UNAVAILABLE,
    MqStatus.NO_DS: HTTPStatus.SERVICE_UNAVAILABLE,
    MqStatus.ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
}


class QueueNotEmptyError(QueueError):
    """A queue was to be deleted only if it is empty. MSMQ has no status for that."""

    def __init__(self, name: str, count: int) -> None:
        holds = "1 message" if count == 1 else f"{count} messages"
        super().__init__(
            f"{name} holds {holds}", hint="purge it first, or delete it without only_if_empty"
        )


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
) -> JSONResponse:
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": status.meaning,
        "status": code,
        "detail": detail,
        "error": status.symbol,
        "hresult": f"0x{status:08X}",
        "hint": hint,
    }
    return JSONResponse(content, code, headers, media_type=MEDIA_TYPE)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, FalconMQError)
    code = _STATUSES.get(error.status, HTTPStatus.BAD_REQUEST)
    if isinstance(error, QueueNotEmptyError):
        code = HTTPStatus.CONFLICT
    return problem(code, str(error), error.status, error.hint)


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
    hint = "the paths are listed in /api/v1/openapi.json"
    return problem(
        error.status_code, str(error.detail), MqStatus.INVALID_PARAMETER, hint, error.headers
    )


async def _bug(request: Request, error: Exception) -> JSONResponse:
    _log.error("request failed method=%s path=%s", request.method, request.url.path, exc_info=error)
    detail = f"{type(error).__name__} in the service: this is a bug in FalconMQ"
    hint = "the log of the service has the details"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, MqStatus.ERROR, hint)
