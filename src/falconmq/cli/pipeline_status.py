"""`falconmq pipeline status`: what is in a lake. It needs neither Spark nor Java."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from falconmq.cli.options import JsonOption
from falconmq.cli.pipeline_options import DEFAULT_LAKE, LakeOption
from falconmq.cli.pipeline_running import told_errors
from falconmq.cli.problems import CommandError
from falconmq.cli.tables import local_time, print_json, print_table

if TYPE_CHECKING:
    from falconmq.spark.tables import Lake

EPILOG = """\b
Examples:
  falconmq pipeline status
  falconmq pipeline status --lake /srv/lake
  falconmq pipeline status --json
"""

Json = dict[str, Any]


def status(lake: LakeOption = DEFAULT_LAKE, as_json: JsonOption = False) -> int:
    """Show the tables of a lake, how far each queue manager was read, rejects and replays."""
    with told_errors():
        from falconmq.spark.tables import Lake  # noqa: PLC0415 - only the pipeline needs it

        if not lake.is_dir():
            raise CommandError(
                f"there is no lake at {lake}", "fill one: falconmq pipeline run --lake DIR"
            )
        found = describe(Lake(lake))
    if as_json:
        print_json(found)
        return 0
    _print(found)
    return 0


def describe(lake: Lake) -> Json:
    """Everything that the commits say."""
    from falconmq.spark.replaying.plans import FOLDER, read_states  # noqa: PLC0415
    from falconmq.spark.report.coverage import coverage_of  # noqa: PLC0415

    tables = [_table(lake, name) for name in _table_names(lake) if not name.startswith(FOLDER)]
    return {
        "lake": str(lake.path),
        "format": lake.format,
        "tables": [table for table in tables if not table["name"].startswith("rejects/")],
        "rejects": [table for table in tables if table["name"].startswith("rejects/")],
        "managers": [
            {
                **asdict(one),
                "first_at": one.first_at and one.first_at.isoformat(),
                "last_at": one.last_at and one.last_at.isoformat(),
            }
            for one in coverage_of(lake)
        ],
        "replays": [{**asdict(state), "done": state.is_done} for state in read_states(lake)],
    }


def _table_names(lake: Lake) -> list[str]:
    found = (path.parent.relative_to(lake.path) for path in lake.path.glob("*/*/_commits"))
    return sorted(map(str, found))


def _table(lake: Lake, name: str) -> Json:
    from falconmq.spark.tables import TableSpec  # noqa: PLC0415

    table = lake.table(TableSpec(name, ""))
    commits = table.commits()
    last = commits[-1] if commits else None
    return {
        "name": name,
        "rows": table.rows,
        "commits": len(commits),
        "last_commit": last and last.at,
        "last_source": last and last.source,
    }


def _print(found: Json) -> None:
    rows = [
        (table["name"], table["rows"], table["commits"], local_time(table["last_commit"]))
        for table in found["tables"]
    ]
    if not rows:
        sys.stderr.write("no tables yet\n")
    else:
        print_table(("TABLE", "ROWS", "COMMITS", "LAST COMMIT"), rows)
    if found["format"] != "parquet":
        sys.stdout.write(f"\nthe tables are {found['format'].capitalize()} tables as well\n")
    if managers := found["managers"]:
        sys.stdout.write("\n")
        headings = ("QUEUE MANAGER", "EVENTS", "BEHIND", "FROM", "TO")
        print_table(headings, [_manager(one) for one in managers])
    if rejects := [table for table in found["rejects"] if table["rows"]]:
        sys.stdout.write("\n")
        print_table(("REJECTED BY", "ROWS"), [(t["name"], t["rows"]) for t in rejects])
    if replays := found["replays"]:
        sys.stdout.write("\n")
        headings = ("REPLAY", "SENT", "OF", "TO", "LAST CHUNK")
        print_table(headings, [_replay(one) for one in replays])


def _manager(one: Json) -> tuple[object, ...]:
    behind = "unknown" if one["behind"] is None else one["behind"]
    return (
        one["computer"],
        one["events"],
        behind,
        local_time(one["first_at"]),
        local_time(one["last_at"]),
    )


def _replay(one: Json) -> tuple[object, ...]:
    return one["name"], one["sent"], one["total"], one["to"], local_time(one["updated_at"])
