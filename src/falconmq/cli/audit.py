"""`falconmq audit`: who administered what, when, from where, and how it ended."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import Place
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import local_time, print_json, print_table

EPILOG = """\b
Examples:
  falconmq audit                                        the last 50 entries
  falconmq audit --result refused --since 2026-05-01
  falconmq audit --target orders --json | jq -r .who
"""
RESULTS: Final = ("done", "refused", "failed")
_PAGE: Final = 1000

Json = dict[str, Any]


def audit(
    last: Annotated[
        int, typer.Option(help="How many of the newest.", metavar="NUMBER", min=1)
    ] = 50,
    action: Annotated[
        str,
        typer.Option(help="Only these: 'queue delete'.", metavar="ACTION", show_default=False),
    ] = "",
    who: Annotated[
        str,
        typer.Option(
            help="Only by this one: owner, 'token web-shop'.", metavar="WHO", show_default=False
        ),
    ] = "",
    target: Annotated[
        str, typer.Option(help="Only what has this text.", metavar="TEXT", show_default=False)
    ] = "",
    result: Annotated[
        str,
        typer.Option(help="done, refused or failed.", metavar="RESULT", show_default=False),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            help="Not before: 2026-05-01, 2026-05-01T12:00Z.", metavar="TIME", show_default=False
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            help="Before this time, written the same.", metavar="TIME", show_default=False
        ),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each entry.")
    ] = False,
    *,
    place: Place,
) -> int:
    """List who administered what, and who was refused, the oldest first."""
    if result and result not in RESULTS:
        raise WrongUsageError(f"unknown result {result!r}", f"choose from {', '.join(RESULTS)}")
    asked = {"action": action, "who": who, "target": target, "result": result}
    asked |= {"since": since, "until": until}
    entries: list[Json] = []
    with service(place) as client:
        query: Json = {name: value for name, value in asked.items() if value}
        while len(entries) < last:
            query["count"] = min(last - len(entries), _PAGE)
            page = client.request("GET", f"/audit?{urlencode(query)}")
            entries += page["entries"]
            if page["next"] is None:
                break
            query["before"] = page["next"]
    entries.reverse()
    if as_json:
        for entry in entries:
            print_json(entry, as_line=True)
    elif entries:
        print_table(("TIME", "WHO", "FROM", "ACTION", "TARGET", "RESULT"), map(_row, entries))
    else:
        sys.stderr.write("no entries\n")
    return 0


def _row(entry: Json) -> tuple[object, ...]:
    result = entry["result"]
    why = entry["problem"] or entry["details"]
    return (
        local_time(entry["time"]),
        entry["who"] or "nobody known",
        entry["origin"],
        entry["action"],
        entry["target"],
        f"{result}: {why}" if why else result,
    )
