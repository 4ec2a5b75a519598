"""Progress bars: on standard error, only on a terminal, for work of more than a moment."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]


@contextlib.contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """`with progress("export", total) as advance: ... advance(100)`; total None: not known."""
    if not sys.stderr.isatty():
        yield _unseen
        return
    # Imported here: whoever writes into a file need not wait for it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda count: bars.advance(task, count)


def _unseen(count: int) -> None:
    """Nobody looks."""
