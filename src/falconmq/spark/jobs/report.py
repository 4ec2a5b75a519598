"""The report job: gold and findings of a period become one HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from falconmq.errors import FalconMQError
from falconmq.spark.jobs.running import Progress, Summary, Tell
from falconmq.spark.report.gathering import Gatherer
from falconmq.spark.report.page import render
from falconmq.spark.report.periods import default_period
from falconmq.spark.report.words import period_text, verdict
from falconmq.spark.tables import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STEPS: Final = 3


@dataclass(frozen=True)
class Options:
    """Which period, and into which file; the last day that the lake knows if nobody says."""

    file: Path
    since: datetime | None = None
    until: datetime | None = None
    dry_run: bool = False


def run(spark: SparkSession, lake: Lake, options: Options, tell: Tell) -> Summary:
    """Write the page; a dry run says what would stand at its top."""
    _check(options.file)
    tell(Progress("looking for the newest data", 0, _STEPS, "steps"))
    gatherer = Gatherer(spark, lake)
    is_open = options.since is None or options.until is None
    known = gatherer.known() if is_open else None
    period = default_period(known, options.since, options.until)
    tell(Progress("adding up", 1, _STEPS, "steps"))
    report = gatherer.report(period, datetime.now(UTC))
    tell(Progress("drawing", 2, _STEPS, "steps"))
    page = render(report)
    summary = Summary("report", is_dry=options.dry_run, read=report.now.messages)
    summary.facts = {
        "period": period_text(period),
        "verdict": verdict(report).text,
        "findings": sum(kind.findings for kind in report.kinds),
        "file": str(options.file),
        "bytes": len(page.encode()),
    }
    if not options.dry_run:
        _write(options.file, page)
    tell(Progress("done", _STEPS, _STEPS, "steps"))
    return summary


def _check(file: Path) -> None:
    """Before the work: whoever mistypes a folder need not wait for it."""
    if not file.absolute().parent.is_dir():
        raise FalconMQError(
            f"cannot write {file}: there is no folder {file.parent}",
            hint="name another file: --output",
        )


def _write(file: Path, page: str) -> None:
    """All of it or nothing: a reader of an old report keeps it until the new one is whole."""
    new = file.with_name(f"{file.name}.new")
    try:
        new.write_text(page, "utf-8")
        new.replace(file)
    except OSError as error:
        raise FalconMQError(
            f"cannot write {file}: {error.strerror or error}",
            hint="name another file: --output",
        ) from error
