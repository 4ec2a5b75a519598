"""What a running stream tells of itself, as the progress of a job.

Spark says after each batch where it is (`endOffset`) and, because our source reports it, where the
queue or event log ends (`latestOffset`). Both are JSON in which each `next` is the number to read
next: how much those grew is how far the stream is.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from falconmq.spark.jobs.running import Progress, Tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )


@contextlib.contextmanager
def followed(
    spark: SparkSession, step: str, tell: Tell, query: str | None = None
) -> Iterator[None]:
    """Tell of the streams that run in this block; of the one with this name, if it is given."""
    listener = Listener(step, tell, query)
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


class Listener(StreamingQueryListener):
    """Adds up what the batches of a stream report."""

    def __init__(self, step: str, tell: Tell, query: str | None = None) -> None:
        self._step = step
        self._tell = tell
        self._query = query
        self._first: int | None = None  # where the stream began
        self._rows = 0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Whoever waits for the stream hears of it there."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        if self._query is None or progress.name == self._query:
            self.took(progress)

    def took(self, progress: StreamingQueryProgress) -> None:
        """One batch is done."""
        self._rows += progress.numInputRows or 0  # None under Spark Connect
        sources = progress.sources
        ends = [position(source.endOffset) for source in sources]
        if not sources or any(end is None for end in ends):
            self._tell(Progress(self._step, self._rows))
            return
        if self._first is None:
            self._first = sum(position(source.startOffset) or 0 for source in sources)
        end = sum(end or 0 for end in ends)
        latest = [position(source.latestOffset) for source in sources]
        known = [place for place in latest if place is not None]
        total = max(sum(known), end) - self._first if len(known) == len(latest) else None
        self._tell(Progress(self._step, end - self._first, total))


def position(offset: str | None) -> int | None:
    """The sum of all `next` in an offset; None if it has none."""
    try:
        found = list(_nexts(json.loads(offset or "null")))
    except ValueError:
        return None
    return sum(found) if found else None


def _nexts(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "next" and isinstance(inner, int):
                yield inner
            else:
                yield from _nexts(inner)
