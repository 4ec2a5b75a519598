"""Whether a directory is there: every call notices it, and a thread looks while it is away.

A directory that did not answer is *away* from then on, for everybody and at once. The prober, a
thread of its own, asks it again and again, ever more rarely, until somebody answers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

FIRST_PROBE_SECONDS: Final = 2.0
LONGEST_PROBE_SECONDS: Final = 30.0

_log = logging.getLogger("falconmq.directory")


class Presence:
    """Away or there. Any thread may call it.

    `probe` asks the directory, however long that takes: "" if it answered, else why it did not.
    `on_change` is called, in whichever thread notices, when it goes away or has come back.
    """

    def __init__(
        self,
        probe: Callable[[], str],
        time: Callable[[], float],
        on_change: Callable[[], None],
    ) -> None:
        self.away_since: float | None = None  # wall clock; None: it is there
        self.problem = ""  # why it is away
        self._probe = probe
        self._time = time
        self._on_change = on_change
        self._mutex = threading.Lock()
        self._closing = threading.Event()
        self._prober: threading.Thread | None = None

    @property
    def is_away(self) -> bool:
        """The last call failed, and nobody has reached it since; or it is closed."""
        return self.away_since is not None or self._closing.is_set()

    def went_away(self, problem: str) -> None:
        """A call found that it cannot be reached."""
        with self._mutex:
            if self.is_away:
                return
            self.problem = problem
            self.away_since = self._time()
            self._prober = threading.Thread(
                target=self._look, name="falconmq directory prober", daemon=True
            )
            self._prober.start()
        _log.warning("directory is away problem=%s", problem)
        self._on_change()

    def close(self, seconds: float) -> None:
        """Look no more, and be away for good."""
        self._closing.set()
        prober = self._prober
        if prober is not None and prober is not threading.current_thread():
            prober.join(seconds)  # it may hang in a call: then it ends by itself

    def _look(self) -> None:
        seconds = FIRST_PROBE_SECONDS
        while not self._closing.wait(seconds):
            seconds = min(2 * seconds, LONGEST_PROBE_SECONDS)
            problem = self._probe()
            if not problem:
                break
            self.problem = problem
        if self._closing.is_set():
            return
        with self._mutex:
            self.problem, self.away_since, self._prober = "", None, None
        _log.info("directory is back")
        self._on_change()
