"""Write docs/reference/ from the code; `--check` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer.main import get_command
from typer.testing import CliRunner

from falconmq.cli.app import app
from falconmq.client.columns import COLUMNS
from falconmq.errors import MqStatus
from falconmq.manager.events import EventKind
from falconmq.service.configuration.examples import reference as configuration
from falconmq.service.observation.metric_names import METRICS, QUEUES_MAX
from tools.http_reference import http_api
from tools.spark_reference import lake_tables, spark_options

_TERMINAL: Final = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
FOLDER: Final = Path(__file__).parent.parent / "docs" / "reference"


def status_codes() -> str:
    """Every status code with number, name and meaning."""
    lines = [
        "# Status codes\n\nMade by `make reference`; do not edit. Every error FalconMQ raises",
        "carries one of these in `.status`; the command line prints number and name.\n",
        "| HRESULT | name | `MqStatus` | meaning |",
        "|---|---|---|---|",
    ]
    lines += [f"| 0x{s:08X} | {s.symbol} | {s.name} | {s.meaning} |" for s in MqStatus]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The help of every command, as the terminal shows it at 100 columns."""
    parts = ["# Commands\n\nMade by `make reference` from `--help`; do not edit.\n"]
    for path in walk((), get_command(app)):
        shown = CliRunner().invoke(app, [*path, "--help"], prog_name="falconmq", env=_TERMINAL)
        name = " ".join(("falconmq", *path))
        parts.append(f"\n## {name}\n\n```\n{shown.output.rstrip()}\n```\n")
    return "".join(parts)


def walk(path: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups before what is in them."""
    yield path
    children: dict[str, object] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from walk((*path, name), child)


def metrics() -> str:
    """Every metric of /metrics."""
    lines = [
        "# Metrics\n\nMade by `make reference`; do not edit. `GET /metrics` shows all of these in",
        "the text format of Prometheus (or OpenMetrics, if it is accepted) to whoever has the role",
        f"`read`. The first {QUEUES_MAX} queues and destinations have series of their own;",
        "`/metrics?queues=N` sets another limit. Counters begin at 0 when the service starts.",
        "Dashboard and alerts that use them: `deploy/grafana`, `deploy/prometheus`.\n",
        "| metric | type | labels | meaning |",
        "|---|---|---|---|",
    ]
    for name, kind, help_, labels in METRICS:
        shown = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{name}` | {kind} | {shown} | {help_} |")
    kinds = ", ".join(f"`{kind.name.lower()}`" for kind in EventKind)
    lines.append(f"\n`kind` is one of {kinds}.")
    lines.append("`class` is the name of a message class, such as `NACK_BAD_DST_Q`.")
    return "\n".join(lines) + "\n"


def arrow_schema() -> str:
    """Every column of messages as a table."""
    lines = [
        "# Messages as a table\n\nMade by `make reference`; do not edit. These are the columns of",
        "Arrow streams over HTTP (`application/vnd.apache.arrow.stream`) and of Parquet files.",
        "What is read has all of them, in this order. What is sent needs `body` alone: a column",
        "that is missing, or null in a row, stands for the default. Columns not *sent* are",
        "filled in by queue managers, and ignored in what is sent; a name that is not in this list",
        "is refused. Compressed streams are refused too.\n",
        "| column | type | sent | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{column.name}` | {column.type} | {'yes' if column.is_sent else ''} |"
        f" {column.description} |"
        for column in COLUMNS
    ]
    return "\n".join(lines) + "\n"


PAGES: Final = {
    "status-codes.md": status_codes,
    "cli.md": commands,
    "configuration.md": configuration,
    "http-api.md": http_api,
    "metrics.md": metrics,
    "arrow-schema.md": arrow_schema,
    "spark-options.md": spark_options,
    "lake-tables.md": lake_tables,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a page is out of date")
    options = parser.parse_args(arguments)
    stale = False
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        path, text = FOLDER / name, make()
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(
                f"error: docs/reference/{name} is out of date: run make reference", file=sys.stderr
            )
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
