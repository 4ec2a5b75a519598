"""How far a job is, where people see it.

On a terminal a bar; in a log file a line now and then; nothing if nobody wants to know.

    with shown(sys.stderr) as tell:
        archive.run(spark, lake, options, tell)
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final, TextIO

from falconmq.spark.jobs.running import Progress, Tell, tell_nobody

EVERY_SECONDS: Final = 10.0  # between two lines about the same step


@contextlib.contextmanager
def shown(
    stream: TextIO, *, is_quiet: bool = False, now: Callable[[], float] = time.monotonic
) -> Iterator[Tell]:
    """A `tell` for a job, for as long as the block runs."""
    if is_quiet:
        yield tell_nobody
    elif stream.isatty():
        with _bars(stream) as tell:
            yield tell
    else:
        yield Lines(stream, now)


class Lines:
    """A line for each new step, and one every ten seconds while it goes on."""

    def __init__(self, stream: TextIO, now: Callable[[], float]) -> None:
        self._stream = stream
        self._now = now
        self._written: dict[str, tuple[float, Progress]] = {}  # the last line of each step

    def __call__(self, progress: Progress) -> None:
        now = self._now()
        before = self._written.get(progress.step)
        if before is not None and (now - before[0] < EVERY_SECONDS or progress == before[1]):
            return
        self._written[progress.step] = now, progress
        self._stream.write(line(progress) + "\n")
        self._stream.flush()


def line(progress: Progress) -> str:
    """`reading events of A: 1,200 of 4,000 rows`."""
    step = _printable(progress.step)
    if progress.total is None:
        return f"{step}: {progress.done:,} {progress.unit}" if progress.done else step
    return f"{step}: {progress.done:,} of {progress.total:,} {progress.unit}"


@contextlib.contextmanager
def _bars(stream: TextIO) -> Iterator[Tell]:
    """A bar for the step that runs; a new step begins a new one."""
    from rich import progress as rich  # noqa: PLC0415 - slow, and only for terminals
    from rich.console import Console  # noqa: PLC0415

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[unit]}", markup=False),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=Console(file=stream), transient=True) as bars:
        current = bars.add_task("starting Spark", total=None, unit="")
        step: str | None = None

        def tell(progress: Progress) -> None:
            nonlocal current, step
            if progress.step != step:
                bars.remove_task(current)
                step = progress.step
                current = bars.add_task(_printable(step), total=None, unit=progress.unit)
            bars.update(current, completed=progress.done, total=progress.total)

        yield tell


def _printable(text: str) -> str:
    """Names of queues may hold anything; none may move the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
