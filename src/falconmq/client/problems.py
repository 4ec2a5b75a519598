"""Refusals of the service, as errors: those that embedded programs get, by class and status."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Final

from falconmq.errors import (
    DirectoryError,
    FalconMQError,
    MessageError,
    MqStatus,
    QueueError,
    ReadError,
    ResourceError,
    StoreError,
    TransactionError,
)

_FAMILIES: Final[dict[str, type[FalconMQError]]] = {
    kind.__name__: kind
    for kind in (
        DirectoryError,
        QueueError,
        ReadError,
        ResourceError,
        StoreError,
        TransactionError,
    )
}
_WHICH: Final = re.compile(r"(?:packets|messages)\[(\d+)\][:.] ?")  # of those in the request
_FIELD: Final = re.compile(r"(\w+): (.*)", re.DOTALL)


class ServiceError(FalconMQError):
    """The service refused; status and hint are its own, `http_status` says it the HTTP way.

    `family` is the name of its class there.
    """

    def __init__(
        self,
        message: str,
        *,
        status: MqStatus,
        hint: str,
        http_status: int,
        family: str = "",
    ) -> None:
        super().__init__(message, status=status, hint=hint)
        self.http_status = http_status
        self.family = family


def refusal(code: int, data: bytes) -> ServiceError:
    """What an answer of 400 and more says."""
    try:
        problem = json.loads(data)
        status = MqStatus(int(problem["hresult"], 16))
        detail, hint = str(problem["detail"]), str(problem["hint"])
        family = str(problem.get("family", ""))
    except (ValueError, KeyError, TypeError):  # whatever listens there, it is not our service
        return ServiceError(
            f"the service answered with HTTP status {code}",
            status=MqStatus.ERROR,
            hint="is it another version of FalconMQ?",
            http_status=code,
        )
    return ServiceError(detail, status=status, hint=hint, http_status=code, family=family)


def as_embedded(error: ServiceError) -> FalconMQError:
    """The error that an embedded queue manager raises in the same case."""
    text = _WHICH.sub("", str(error), count=1)
    if error.http_status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return FalconMQError(text, status=MqStatus.ACCESS_DENIED, hint=error.hint)
    if error.family == "MessageError" and (found := _FIELD.fullmatch(text)):
        return MessageError(found[1], found[2], status=error.status, hint=error.hint)
    kind = _FAMILIES.get(error.family, FalconMQError)
    return kind(text, status=error.status, hint=error.hint)
