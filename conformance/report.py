"""What is proven: rows of the catalogue against the tests that named them and passed.

`python -m conformance.report RESULTS` prints the report; `--write` also writes docs/conformance.md,
`--check` fails when that page is out of date, `--open PREFIX` lists the rows nobody proves yet.
RESULTS is what `pytest --requirements-json` wrote: for each id the tests that passed and those
that did not. A row is proven when at least one test names it and every test that names it passed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from conformance.catalogue import (
    DOCUMENTS,
    FOLDER,
    Requirement,
    load_catalogue,
    load_gaps,
    load_owners,
)

PAGE = FOLDER.parent / "docs" / "conformance.md"


class State(Enum):
    PROVEN = "proven"
    GAP = "stated gap"
    OPEN = "open"


@dataclass
class Tally:
    """Counts of one section or document, over all rows and over the MUST rows alone."""

    rows: Counter[State] = field(default_factory=Counter)
    must: Counter[State] = field(default_factory=Counter)

    def add(self, row: Requirement, state: State) -> None:
        self.rows[state] += 1
        if row.level == "MUST":
            self.must[state] += 1


@dataclass
class Report:
    states: dict[str, State]
    catalogue: dict[str, Requirement]
    problems: list[str]  # what makes the run fail

    @property
    def total(self) -> Tally:
        tally = Tally()
        for row in self.catalogue.values():
            tally.add(row, self.states[row.id])
        return tally

    @property
    def last_line(self) -> str:
        must = self.total.must
        return (
            f"conformance: {must[State.PROVEN]} of {must.total()} MUST rows proven, "
            f"{must[State.GAP]} stated gaps, {must[State.OPEN]} open"
        )


def judge(
    results: dict[str, dict[str, list[str]]],
    catalogue: dict[str, Requirement],
    gaps: dict[str, str],
) -> Report:
    """Decide the state of every row and find what is wrong with markers and gaps."""
    problems = [
        f"a test names {id}, which is not in the catalogue" for id in results.keys() - catalogue
    ]
    problems += [
        f"gaps.tsv names {id}, which is not in the catalogue" for id in gaps.keys() - catalogue
    ]
    states: dict[str, State] = {}
    for id in catalogue:
        tests = results.get(id, {"passed": [], "failed": []})
        if tests["passed"] and not tests["failed"]:
            states[id] = State.PROVEN
            if id in gaps:
                problems.append(f"{id} is proven: take it out of gaps.tsv")
        else:
            states[id] = State.GAP if id in gaps else State.OPEN
    return Report(states, catalogue, sorted(problems))


def section_key(section: str) -> tuple[object, ...]:
    """Sort 2.2.9 before 2.2.10; letters after numbers."""
    return tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.split(r"[.\s]", section))


def by_section(report: Report, document: str) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    for row in report.catalogue.values():
        if row.document == document:
            key = ".".join(row.section.split(".")[:3])
            tallies.setdefault(key, Tally()).add(row, report.states[row.id])
    return dict(sorted(tallies.items(), key=lambda item: section_key(item[0])))


_INTRODUCTION = """# Conformance

Made by `make conformance`; do not edit. A row is one testable statement of a specification
(`conformance/*.tsv`). It counts as proven only while every test that names it passes.
"""

_HEAD = (
    "| section | rows | proven | stated gaps | open | MUST rows | MUST proven |\n"
    "|---|---:|---:|---:|---:|---:|---:|\n"
)


def _line(name: str, tally: Tally) -> str:
    rows, must = tally.rows, tally.must
    counts = (rows.total(), rows[State.PROVEN], rows[State.GAP], rows[State.OPEN])
    numbers = (*counts, must.total(), must[State.PROVEN])
    return f"| {name} | " + " | ".join(str(number) for number in numbers) + " |\n"


def page(report: Report, gaps: dict[str, str]) -> str:
    """docs/conformance.md."""
    parts = [_INTRODUCTION]
    for document, title in DOCUMENTS.items():
        parts.append(f"\n## {title}\n\n{_HEAD}")
        total = Tally()
        for section, tally in by_section(report, document).items():
            parts.append(_line(section, tally))
            total.rows += tally.rows
            total.must += tally.must
        parts.append(_line("**all**", total))
    if gaps:
        parts.append(
            "\n## Stated gaps\n\n| row | requirement | why it is left out |\n|---|---|---|\n"
        )
        for id in sorted(gaps, key=lambda id: section_key(id.replace("-", "."))):
            text = report.catalogue[id].text if id in report.catalogue else "?"
            parts.append(f"| {id} | {_cell(text)} | {_cell(gaps[id])} |\n")
    parts.append(owned_rows(report))
    parts.append(f"\n`{report.last_line}`\n")
    return "".join(parts)


def owned_rows(report: Report) -> str:
    """The open rows that a part to come will prove, by owner."""
    rows: dict[str, list[str]] = {}
    for id, owner in load_owners().items():
        if report.states.get(id) is State.OPEN:
            rows.setdefault(owner, []).append(id)
    lines = [f"| {owner} | {', '.join(ids)} |\n" for owner, ids in sorted(rows.items())]
    head = (
        "\n## Open rows of MS-MQDMPR that another part will prove\n\n| part | rows |\n|---|---|\n"
    )
    return head + "".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def console(report: Report) -> str:
    lines = []
    for document, title in DOCUMENTS.items():
        lines.append(f"\n{title}\n  {'section':<12}{'rows':>6}{'proven':>8}{'gaps':>6}{'open':>6}")
        for section, tally in by_section(report, document).items():
            rows = tally.rows
            lines.append(
                f"  {section:<12}{rows.total():>6}{rows[State.PROVEN]:>8}"
                f"{rows[State.GAP]:>6}{rows[State.OPEN]:>6}"
            )
    rows = report.total.rows
    lines.append(
        f"\nall rows: {rows[State.PROVEN]} of {rows.total()} proven, "
        f"{rows[State.GAP]} stated gaps, {rows[State.OPEN]} open"
    )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="conformance", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("results", type=Path, help="what pytest --requirements-json wrote")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--check", action="store_true", help=f"fail if {PAGE.name} is out of date")
    parser.add_argument("--open", metavar="PREFIX", help="list the open rows whose id starts so")
    options = parser.parse_args(arguments)
    try:
        results = json.loads(options.results.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"error: cannot read {options.results}: {error}", file=sys.stderr)
        return 2
    gaps = load_gaps()
    report = judge(results, load_catalogue(), gaps)
    if options.open is not None:
        for row in report.catalogue.values():
            if row.id.startswith(options.open) and report.states[row.id] is State.OPEN:
                print(f"{row.id}\t{row.level}\t{row.text}")
        return 0
    if options.write:
        PAGE.write_text(page(report, gaps), encoding="utf-8")
    elif options.check and (not PAGE.exists() or PAGE.read_text("utf-8") != page(report, gaps)):
        report.problems.append("docs/conformance.md is out of date: run make conformance")
    print(console(report))
    for problem in report.problems:
        print(f"error: {problem}", file=sys.stderr)
    print(report.last_line, flush=True)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
