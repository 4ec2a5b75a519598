"""`falconmq pipeline report`: what to show to people."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from falconmq.cli.options import JsonOption
from falconmq.cli.pipeline_options import Engine, SinceOption, UntilOption, moment
from falconmq.cli.pipeline_running import Start, Work, run_jobs

if TYPE_CHECKING:
    from falconmq.spark.jobs.running import Summary

EPILOG = """\b
Examples:
  falconmq pipeline report                                    of the last day
  falconmq pipeline report --output queues.html --since 2026-11-01 --until 2026-12-01
  falconmq pipeline report --lake /srv/lake --dry-run         only the verdict
"""
DEFAULT_REPORT: Final = Path("report.html")


def report(
    output: Annotated[
        Path, typer.Option("--output", help="File of the page.", metavar="FILE")
    ] = DEFAULT_REPORT,
    since: SinceOption = None,
    until: UntilOption = None,
    *,
    engine: Engine,
    as_json: JsonOption = False,
) -> int:
    """Write one HTML page: a verdict in words, figures, plots, findings, and how complete it is.

    Without --since and --until it is about the last day that the lake knows. The page needs no
    network and no script.
    """
    job = report_job(output, moment(since, "--since"), moment(until, "--until"), engine)
    return run_jobs(engine, [job], as_json=as_json)


def report_job(
    output: Path, since: datetime | None, until: datetime | None, engine: Engine
) -> Start:
    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import report as job  # noqa: PLC0415 - it needs pyspark

        options = job.Options(output, since, until, engine.dry_run)
        return job.run(work.spark, work.lake, options, work.tell)

    return start
