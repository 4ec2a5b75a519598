"""How long a service that is away is asked again, by those whose questions may be asked twice."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeAlias

from falconmq.client.problems import ServiceError
from falconmq.errors import MqStatus, UnreachableError

_PAUSES: Final = (0.05, 0.1, 0.25, 0.5, 1.0)  # seconds between tries; the last one again and again
_HOPELESS: Final = (MqStatus.INVALID_CERTIFICATE, MqStatus.ACCESS_DENIED)
AWAY: Final = (  # what a service answers, or a proxy for it, that cannot work now
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)

Failure: TypeAlias = UnreachableError | ServiceError


class Patience:
    """How long something that fails is tried again."""

    def __init__(
        self, seconds: float, clock: Callable[[], float], pause: Callable[[float], None]
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._pause = pause
        self._deadline: float | None = None
        self._tries = 0

    def lose(self, error: Failure) -> None:
        """It failed: wait a little, or raise the error if no waiting helps."""
        now = self._clock()
        if self._deadline is None:
            self._deadline = now + self._seconds
        if not _is_away(error) or now >= self._deadline:
            raise error
        self._pause(_PAUSES[min(self._tries, len(_PAUSES) - 1)])
        self._tries += 1


def _is_away(error: Failure) -> bool:
    if isinstance(error, ServiceError):
        return error.http_status in AWAY
    return error.status not in _HOPELESS
