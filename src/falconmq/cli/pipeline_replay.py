"""`falconmq pipeline replay`: archived messages, sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from falconmq.cli.options import JsonOption, Place, QueueArgument
from falconmq.cli.pipeline_options import (
    Engine,
    SinceOption,
    UntilOption,
    check_reachable,
    manager_url,
    moment,
)
from falconmq.cli.pipeline_running import Work, run_jobs
from falconmq.cli.problems import WrongUsageError

if TYPE_CHECKING:
    from falconmq.spark.jobs.running import Summary

EPILOG = """\b
Examples:
  falconmq pipeline replay '.\\private$\\orders' --name monday --since 2026-11-16 --dry-run
  falconmq pipeline replay '.\\private$\\test' --name load-test --queue '*\\orders' --rate 200
  falconmq pipeline replay '.\\private$\\orders' --name fix-17 --where "priority > 3" --link
"""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which archived messages are meant; all of them if nothing is said."""

    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            help="Those of this queue, as the archive names it; * and ? stand for anything. May "
            "be repeated.",
            metavar="PATTERN",
            show_default=False,
        ),
    ] = None
    since: SinceOption = None
    until: UntilOption = None
    label: Annotated[
        str | None,
        typer.Option(
            "--label", help="With such a label; * and ?.", metavar="PATTERN", show_default=False
        ),
    ] = None
    message_id: Annotated[
        list[str] | None,
        typer.Option(
            "--message-id", help="This one; may be repeated.", metavar="ID", show_default=False
        ),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            help="For which this is true: an SQL expression over the columns of bronze/messages.",
            metavar="EXPRESSION",
            show_default=False,
        ),
    ] = None


def replay(
    to: QueueArgument,
    filters: Filters,
    name: Annotated[
        str,
        typer.Option(
            "--name",
            help="Names the replay: the same name never sends a message twice.",
            metavar="NAME",
            show_default=False,
        ),
    ],
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="At most so many a second.", metavar="N", show_default=False),
    ] = None,
    keep_ids: Annotated[
        bool, typer.Option("--keep-ids", help="Keep message ids and times of sending.")
    ] = False,
    link: Annotated[
        bool,
        typer.Option(
            "--link", help="Old id as correlation id, in messages that have no correlation id."
        ),
    ] = False,
    *,
    engine: Engine,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Send archived messages to a queue again, each once, in the order of their arrival.

    A replay that was interrupted is started again with the same options and goes on where it was.
    """
    if keep_ids and link:
        raise WrongUsageError("--keep-ids and --link exclude each other", "give one of them")
    if rate is not None and rate <= 0:
        raise WrongUsageError(f"--rate {rate:g} sends nothing", "give a number above 0")
    since, until = moment(filters.since, "--since"), moment(filters.until, "--until")
    engine.check()
    url, token = manager_url(place), place.secret()
    if not engine.dry_run:
        check_reachable([url], token)

    def start(work: Work) -> Summary:
        from falconmq.spark.jobs import replay as job  # noqa: PLC0415 - it needs pyspark
        from falconmq.spark.replaying.choosing import Wanted  # noqa: PLC0415

        wanted = Wanted(
            tuple(filters.queue or ()),
            since,
            until,
            filters.label,
            tuple(filters.message_id or ()),
            filters.where,
        )
        options = job.Options(
            name=name,
            to=to,
            url=url,
            token=token,
            wanted=wanted,
            rate=rate,
            keep_ids=keep_ids,
            link=link,
            dry_run=engine.dry_run,
        )
        return job.run(work.spark, work.lake, options, work.tell)

    return run_jobs(engine, [start], as_json=as_json)
