"""The lease of a query that consumes: nobody else takes messages of its queues meanwhile.

Spark does not tell a source when its query ends, so a lease ends by itself. While the query lives a
thread renews it, for a batch may take longer than any lease. Each run of a query claims its
consumer anew and gets a higher number, the fence; with a lower one nothing is removed any more. So
of two drivers that both think they are the query only the later one goes on.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from falconmq.client.problems import ServiceError
from falconmq.client.ranges import Ranges
from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.problems import taken_over

_RENEWALS: Final = 3  # in the time of one lease


class Lease:
    """A consumer's hold on queues of one queue manager. Close it."""

    def __init__(self, ranges: Ranges, consumer: str, seconds: int) -> None:
        self._ranges = ranges
        self._consumer = consumer
        self._seconds = seconds
        self._fence = 0
        self._queues: frozenset[str] = frozenset()
        self._acknowledged: dict[str, int] = {}
        self._lost: FalconMQError | None = None  # what the thread was told
        self._lock = threading.Lock()  # a renewal with the fence of before would look stale
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, queues: Sequence[str]) -> Mapping[str, int]:
        """Claim the queues if that was not done; how far the consumer is, if it was done now."""
        if self._lost is not None:
            raise self._lost
        if self._queues.issuperset(queues):
            return {}
        wanted = sorted(self._queues.union(queues))
        with self._lock:
            claim = self._ranges.claim(self._consumer, wanted, self._seconds)
            self._fence, self._queues = claim.fence, frozenset(wanted)
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew, daemon=True)
            self._thread.start()
        return claim.positions

    def acknowledge(self, positions: Mapping[str, int]) -> None:
        """Remove everything below these numbers; what was removed before is not asked again."""
        if self._lost is not None:
            raise self._lost
        news = {
            name: number
            for name, number in positions.items()
            if name in self._queues and number > self._acknowledged.get(name, 0)
        }
        if not news:
            return
        try:
            self._ranges.acknowledge(self._consumer, self._fence, news, self._seconds)
        except ServiceError as error:
            raise self._explained(error) from error
        self._acknowledged.update(news)

    def close(self) -> None:
        """Let others have the queues at once."""
        self._ended.set()
        if self._fence:
            with contextlib.suppress(FalconMQError):  # it ends by itself too
                self._ranges.release(self._consumer, self._fence)

    def _renew(self) -> None:
        while not self._ended.wait(self._seconds / _RENEWALS):
            try:
                with self._lock:
                    self._ranges.renew(self._consumer, self._fence, self._seconds)
            except ServiceError as error:
                if error.status is MqStatus.STALE_HANDLE:
                    self._lost = self._explained(error)
                    return
            except FalconMQError:
                pass  # it is away: the next acknowledgement takes the lease again

    def _explained(self, error: ServiceError) -> FalconMQError:
        if error.status is not MqStatus.STALE_HANDLE:
            return error
        return taken_over(self._consumer, self._ranges.shown, error)
