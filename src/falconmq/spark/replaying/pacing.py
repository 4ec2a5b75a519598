"""Not faster than so many messages a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from falconmq.errors import FalconMQError, MqStatus

CHUNK_SECONDS: Final = 5  # a chunk is what may be sent in so long
CHUNK_MOST: Final = 50_000  # messages
_NAP: Final = 0.5  # seconds


def chunk_size(rate: float | None) -> int:
    """Messages that go at once; small enough for the rate to be held."""
    if rate is None:
        return CHUNK_MOST
    if rate <= 0:
        raise FalconMQError(
            f"a rate of {rate:g} messages a second sends nothing",
            status=MqStatus.INVALID_PARAMETER,
            hint="leave --rate out, or give a number above 0",
        )
    return max(1, min(CHUNK_MOST, round(rate * CHUNK_SECONDS)))


class Pace:
    """Keeps the sender from being quicker than a rate, counted from its start."""

    def __init__(
        self,
        rate: float | None,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._now = now
        self._sleep = sleep
        self._began = now()
        self._sent = 0

    def sent(self, messages: int) -> None:
        self._sent += messages

    def wait(self, meanwhile: Callable[[], None]) -> None:
        """Until the next may go; `meanwhile` is called twice a second and may raise to end it."""
        if self._rate is None:
            return
        due = self._began + self._sent / self._rate
        while (left := due - self._now()) > 0:
            meanwhile()
            self._sleep(min(left, _NAP))
