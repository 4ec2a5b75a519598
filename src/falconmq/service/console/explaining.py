"""Errors as people read them on a page: what happened, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError
from starlette.exceptions import HTTPException

from falconmq.errors import FalconMQError
from falconmq.service.web import problems

_HINTS: Final = {
    HTTPStatus.UNAUTHORIZED: "log in with a token; falconmq token create makes one",
    HTTPStatus.FORBIDDEN: "log in with a token that has the role, or ask whoever gave you this one",
    HTTPStatus.NOT_FOUND: "it may have been deleted or received meanwhile; the navigation leads on",
    HTTPStatus.METHOD_NOT_ALLOWED: "go back and use the buttons of the page",
    HTTPStatus.TOO_MANY_REQUESTS: "wait a minute, then try again",
    HTTPStatus.INTERNAL_SERVER_ERROR: "the log of the service has the details",
    HTTPStatus.SERVICE_UNAVAILABLE: "the service is starting, stopping or busy: try again soon",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong."""

    code: int
    title: str
    detail: str
    hint: str = ""
    name: str = ""  # of the status of MSMQ, with its number


def trouble_of(error: Exception) -> Trouble:
    code: int
    if isinstance(error, FalconMQError):
        code = problems.code_of(error)
        name = f"{error.status.symbol} 0x{error.status:08X}"
        return Trouble(code, _title(code), str(error), error.hint or _hint(code), name)
    if isinstance(error, HTTPException):
        code = error.status_code
        return Trouble(code, _title(code), str(error.detail), _hint(code))
    if isinstance(error, ValidationError):
        code = HTTPStatus.UNPROCESSABLE_ENTITY
        first = error.errors()[0]
        where = " ".join(str(part) for part in first["loc"])
        return Trouble(code, _title(code), f"{where}: {first['msg']}", "correct the field")
    code = HTTPStatus.INTERNAL_SERVER_ERROR
    detail = f"{type(error).__name__} in the service: this is a bug in FalconMQ"
    return Trouble(code, _title(code), detail, _hint(code))


def _title(code: int) -> str:
    return {
        HTTPStatus.UNAUTHORIZED: "Log in first",
        HTTPStatus.FORBIDDEN: "Not allowed",
        HTTPStatus.NOT_FOUND: "Not found",
        HTTPStatus.INTERNAL_SERVER_ERROR: "Something broke",
        HTTPStatus.SERVICE_UNAVAILABLE: "Not available now",
    }.get(HTTPStatus(code), HTTPStatus(code).phrase)


def _hint(code: int) -> str:
    return _HINTS.get(HTTPStatus(code), "")
