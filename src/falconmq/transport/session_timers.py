"""The timers of one session, as the times at which they end (MQQB 3.1.2.1 to 3.1.2.5).

`inf` is a timer that stands still. Nobody is called here: the session looks which time is over.
"""

from __future__ import annotations

from math import inf
from typing import Final

PIGGY_BACK_AFTER: Final = 0.75  # of the Session Ack Send Timer, QB-3.1.7.11-02


class SessionTimers:
    """Times in seconds of the session's clock; all stand still at first (QB-3.1.3.2-08, -09)."""

    __slots__ = (
        "ack_send",
        "ack_wait",
        "cleanup",
        "initialization",
        "piggy_back_after",
        "window_growth",
    )

    def __init__(self) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop them all (QB-3.1.5.9-04)."""
        self.initialization = inf  # Session Initialization Timer
        self.cleanup = inf  # Session Cleanup Timer
        self.ack_wait = inf  # Session Ack Wait Timer
        self.window_growth = inf  # QB-A30
        self.stop_ack_send()

    @property
    def deadline(self) -> float | None:
        """When the first of them ends."""
        earliest = min(
            self.initialization, self.cleanup, self.ack_wait, self.ack_send, self.window_growth
        )
        return None if earliest == inf else earliest

    def start_ack_send(self, timeout_ms: float, now: float) -> None:
        """Start the Session Ack Send Timer, from the beginning if it runs."""
        timeout = timeout_ms / 1000
        self.ack_send = now + timeout
        self.piggy_back_after = now + timeout * PIGGY_BACK_AFTER

    def stop_ack_send(self) -> None:
        self.ack_send = self.piggy_back_after = inf
