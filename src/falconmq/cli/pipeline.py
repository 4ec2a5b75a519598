"""`falconmq pipeline archive`, `ledger`, `metrics`, `run`, `capture`, `directory`, `warm-up`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from falconmq.cli.options import JsonOption, Place
from falconmq.cli.pipeline_options import Engine, Managers, check_reachable, manager_urls
from falconmq.cli.pipeline_report import DEFAULT_REPORT, report_job
from falconmq.cli.pipeline_running import Start, Work, run_jobs, told_errors
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import print_json, size_text

if TYPE_CHECKING:
    from falconmq.spark.jobs.running import Summary

ARCHIVE_EPILOG = """\b
Examples:
  falconmq pipeline archive --manager http://sales01:8018 --manager http://sales02:8018
  falconmq pipeline archive --data /var/lib/falconmq --follow
  falconmq pipeline archive --snapshot '.\\private$\\orders;journal'
"""
LEDGER_EPILOG = """\b
Examples:
  falconmq pipeline ledger
  falconmq pipeline ledger --late 30 --stuck 3600
  falconmq pipeline ledger --lake /srv/lake --dry-run
"""
METRICS_EPILOG = """\b
Examples:
  falconmq pipeline metrics
  falconmq pipeline metrics --lake /srv/lake
  falconmq pipeline metrics --json
"""
RUN_EPILOG = """\b
Examples:
  falconmq pipeline run --manager http://sales01:8018
  falconmq pipeline run --output /var/www/queues.html --quiet
  falconmq pipeline run --master spark://cluster:7077 --lake /srv/lake
"""
CAPTURE_EPILOG = """\b
Examples:
  falconmq pipeline capture monday.pcapng
  falconmq pipeline capture /captures --lake /srv/lake
  falconmq pipeline capture '/captures/2026-11-*.pcap' --dry-run
"""
DIRECTORY_EPILOG = """\b
Examples:
  falconmq pipeline directory psc1.jsonl psc2.jsonl bsc7.jsonl
  falconmq pipeline directory /exports
  falconmq pipeline directory /exports --json
"""
WARM_UP_EPILOG = """\b
Examples:
  falconmq pipeline warm-up                        once for each user
  falconmq pipeline warm-up --if-missing           for scripts
  JAVA_HOME=/opt/java21 falconmq pipeline warm-up    for another Java
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """How event logs are read."""

    rows: Annotated[
        int, typer.Option("--rows", help="Events of one batch.", metavar="N", min=1)
    ] = 500_000
    allow_loss: Annotated[
        bool,
        typer.Option(
            "--allow-loss", help="Go on if a log has dropped events that were not read yet."
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class Judging:
    """When a message is late, stuck or lost."""

    grace: Annotated[
        float,
        typer.Option("--grace", help="Seconds until a message counts as lost.", metavar="SECONDS"),
    ] = 300.0
    late: Annotated[
        float,
        typer.Option(
            "--late", help="Seconds until its queue that are too long.", metavar="SECONDS"
        ),
    ] = 60.0
    stuck: Annotated[
        float,
        typer.Option("--stuck", help="Seconds under way that are too long.", metavar="SECONDS"),
    ] = 3600.0
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            help="Seconds that clocks of two computers may differ.",
            metavar="SECONDS",
        ),
    ] = 2.0


def archive(
    managers: Managers,
    reading: Reading,
    engine: Engine,
    place: Place,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    snapshot: Annotated[
        list[str] | None,
        typer.Option(
            "--snapshot",
            help="Copy this queue as it is now, instead of the event log; may be repeated.",
            metavar="QUEUE",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Keep what queue managers tell of their messages: bronze/events and bronze/messages.

    Each event once: a run that was interrupted is started again and goes on. The queue managers
    must keep an event log ([events] in their configuration).
    """
    if follow and (engine.dry_run or snapshot):
        other = "--dry-run" if engine.dry_run else "--snapshot"
        raise WrongUsageError(f"--follow and {other} exclude each other", "give one of them")
    engine.check()
    urls, token = manager_urls(managers, place), place.secret()
    check_reachable(urls, token)
    job = _archive_job(urls, token, reading, engine, follow, tuple(snapshot or ()))
    return run_jobs(engine, [job], as_json=as_json)


def ledger(judging: Judging, engine: Engine, as_json: JsonOption = False) -> int:
    """Follow each message through its life, and find what went wrong: silver/ledger, findings.

    Reads what `archive` has added since the last run.
    """
    return run_jobs(engine, [_ledger_job(judging, engine)], as_json=as_json)


def metrics(engine: Engine, as_json: JsonOption = False) -> int:
    """Latencies, throughput, backlog and dead letters by queue and time: the gold tables."""
    return run_jobs(engine, [_metrics_job(engine)], as_json=as_json)


def run(
    managers: Managers,
    reading: Reading,
    judging: Judging,
    engine: Engine,
    place: Place,
    output: Annotated[
        Path, typer.Option("--output", help="File of the report.", metavar="FILE")
    ] = DEFAULT_REPORT,
    as_json: JsonOption = False,
) -> int:
    """Do `archive`, `ledger`, `metrics` and `report` one after the other: for cron."""
    engine.check()
    urls, token = manager_urls(managers, place), place.secret()
    check_reachable(urls, token)
    jobs = [
        _archive_job(urls, token, reading, engine, False, ()),
        _ledger_job(judging, engine),
        _metrics_job(engine),
        report_job(output, None, None, engine),
    ]
    return run_jobs(engine, jobs, as_json=as_json)


def capture(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Packet captures (pcap, pcapng), folders of them, or patterns in quotes.",
            show_default=False,
        ),
    ],
    engine: Engine,
    as_json: JsonOption = False,
) -> int:
    """Decode MSMQ traffic: packets, sessions, conversations and anomalies of packet captures.

    Files that were read before are left out.
    """

    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import capture as job  # noqa: PLC0415 - it needs pyspark

        options = job.CaptureOptions(tuple(paths), is_dry=engine.dry_run)
        return job.run(work.spark, work.lake, options, work.tell)

    return run_jobs(engine, [start], as_json=as_json)


def directory(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Exports of directory replicas (JSON lines), or folders of them.",
            exists=True,
            show_default=False,
        ),
    ],
    engine: Engine,
    as_json: JsonOption = False,
) -> int:
    """Compare replicas of a directory: where they differ, who is behind, how long changes take."""

    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import directory as job  # noqa: PLC0415 - it needs pyspark

        options = job.Options(tuple(paths), dry_run=engine.dry_run)
        return job.run(work.spark, work.lake, options, work.tell)

    return run_jobs(engine, [start], as_json=as_json)


def warm_up(
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Only if it was not done before.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Let Java write down the classes of Spark, so that every later start takes half the time."""
    began = time.monotonic()
    with told_errors():
        from falconmq.spark.class_archive import archive_file, make_archive  # noqa: PLC0415
        from falconmq.spark.java import find_java  # noqa: PLC0415
        from falconmq.spark.session import load  # noqa: PLC0415

        load()
        file = archive_file(find_java())
        if not (if_missing and file.is_file()):
            if not as_json:
                sys.stderr.write("this takes half a minute\n")
            file = make_archive()
    seconds, size = time.monotonic() - began, file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "seconds": round(seconds, 1)})
    else:
        sys.stdout.write(f"{file}, {size_text(size)}, in {seconds:.0f} s\n")
    return 0


def _archive_job(
    urls: tuple[str, ...],
    token: str | None,
    reading: Reading,
    engine: Engine,
    follow: bool,
    snapshot: tuple[str, ...],
) -> Start:
    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import archive as job  # noqa: PLC0415 - it needs pyspark

        options = job.Options(
            urls=urls,
            token=token,
            rows=reading.rows,
            follow=follow,
            snapshot=snapshot,
            allow_loss=reading.allow_loss,
            dry_run=engine.dry_run,
        )
        return job.run(work.spark, work.lake, options, work.tell)

    return start


def _ledger_job(judging: Judging, engine: Engine) -> Start:
    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import ledger as job  # noqa: PLC0415 - it needs pyspark

        options = job.Options(
            late_seconds=judging.late,
            stuck_seconds=judging.stuck,
            grace_seconds=judging.grace,
            clock_tolerance_seconds=judging.tolerance,
            dry_run=engine.dry_run,
        )
        return job.run(work.spark, work.lake, options, work.tell)

    return start


def _metrics_job(engine: Engine) -> Start:
    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import metrics as job  # noqa: PLC0415 - it needs pyspark

        options = job.Options(dry_run=engine.dry_run)
        return job.run(work.spark, work.lake, options, work.tell)

    return start
