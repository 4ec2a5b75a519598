"""What `benchmarks.transport` measured, and how it is shown."""

from __future__ import annotations

import pstats
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass
class Slice:
    """One turn of one system."""

    per_second: float
    p50: float  # milliseconds
    p99: float
    longest: float
    microseconds: dict[str, float]  # of processor time a message, by process


@dataclass
class Row:
    """One system, one kind of message, one size: the medians of its turns."""

    part: str
    system: str
    kind: str
    body: str
    per_second: float
    p50: float
    p99: float
    longest: float
    microseconds: dict[str, float]  # the least of a round
    ratio: float | None = None  # FalconMQ's rate to this one's, median over the rounds
    ratios: list[float] = field(default_factory=list)  # of each round: how far they lie apart


def summary(part: str, system: str, kind: str, body: str, taken: list[Slice]) -> Row:
    return Row(
        part,
        system,
        kind,
        body,
        statistics.median(each.per_second for each in taken),
        statistics.median(each.p50 for each in taken),
        statistics.median(each.p99 for each in taken),
        statistics.median(each.longest for each in taken),
        {name: min(each.microseconds[name] for each in taken) for name in taken[0].microseconds},
    )


def print_tables(rows: list[Row]) -> None:
    console = Console(width=140)
    for part in dict.fromkeys(row.part for row in rows):
        table = Table(title=part)
        for column in ("message", "body", "system"):
            table.add_column(column)
        for column in ("messages a second", "FalconMQ to it", "p50 ms", "p99 ms", "longest ms"):
            table.add_column(column, justify="right")
        table.add_column("processor, µs a message")
        for row in (row for row in rows if row.part == part):
            is_other = row.ratio is not None and row.system != "falconmq"
            times = (row.p50, row.p99, row.longest)
            table.add_row(
                row.kind,
                row.body,
                row.system,
                f"{row.per_second:,.0f}",
                f"{row.ratio:.2f} ({min(row.ratios):.2f}-{max(row.ratios):.2f})"
                if is_other
                else "",
                *(f"{each:,.1f}" if each else "" for each in times),
                ", ".join(f"{name} {value:.0f}" for name, value in row.microseconds.items()),
            )
        console.print(table)


def print_profiles(directory: Path) -> None:
    """Where the time goes in each daemon; the files stay for a closer look."""
    for path in sorted(directory.glob("*.prof")):
        print(f"\n{path}")
        pstats.Stats(str(path)).sort_stats("tottime").print_stats(35)
