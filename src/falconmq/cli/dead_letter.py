r"""`falconmq dead-letter`: look at what could not be delivered, send it again, delete it."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.interrupting import Interrupt, interrupt_between_steps
from falconmq.cli.options import JsonOption, Place, YesOption, complete_queue
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.progress import Advance, progress
from falconmq.cli.tables import (
    count_of,
    local_time,
    print_json,
    print_pairs,
    print_table,
    printable,
    shortened,
)

if TYPE_CHECKING:
    from falconmq.client import ControlClient

LIST_EPILOG = """\b
Examples:
  falconmq dead-letter list
  falconmq dead-letter list --reason NACK_RECEIVE_TIMEOUT --newer-than 2h
  falconmq dead-letter list --contains orders --json
"""
SHOW_EPILOG = """\b
Examples:
  falconmq dead-letter show '{55735802-9150-9595-4997-B6E611EA26C6}\\2286'
  falconmq dead-letter show 288230376151711745
  falconmq dead-letter show 288230376151711745 --queue deadxact --json
"""
REDRIVE_EPILOG = """\b
Examples:
  falconmq dead-letter redrive --dry-run
  falconmq dead-letter redrive --reason NACK_REACH_QUEUE_TIMEOUT --rate 50
  falconmq dead-letter redrive --contains orders --to '.\\private$\\orders'
"""
DELETE_EPILOG = """\b
Examples:
  falconmq dead-letter delete --older-than 30d
  falconmq dead-letter delete --id '{55735802-9150-9595-4997-B6E611EA26C6}\\2286'
  falconmq dead-letter delete --queue deadxact --yes
"""

Json = dict[str, Any]
_BATCH = 100
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_LABEL_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Filters:
    """Which dead letters a command means."""

    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="QUEUE",
            help="deadletter, deadxact, or an application's own dead-letter queue; left out: the "
            "two of the system.",
            show_default=False,
            autocompletion=complete_queue,
        ),
    ] = None
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="CLASS", help="Why it died.", show_default=False),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="GUID", help="Queue manager that sent it.", show_default=False
        ),
    ] = None
    contains: Annotated[
        str | None,
        typer.Option(
            "--contains",
            metavar="TEXT",
            help="In the label, the destination or the id.",
            show_default=False,
        ),
    ] = None
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="MESSAGE-ID", help="This message.", show_default=False),
    ] = None
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="TIME",
            help="Died so long ago: 90s, 15m, 2h, 7d.",
            show_default=False,
        ),
    ] = None
    newer_than: Annotated[
        str | None,
        typer.Option(
            "--newer-than", metavar="TIME", help="Died not longer ago.", show_default=False
        ),
    ] = None

    def as_json(self) -> Json:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        for name in ("older_than", "newer_than"):
            if name in given:
                given[name] = _seconds(given[name])
        return given


def list_letters(
    filters: Filters,
    count: Annotated[int, typer.Option(help="At most so many.", min=1)] = 100,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """List messages that could not be delivered, with the reason and where they wanted to go."""
    with service(place) as client:
        letters, has_more = _some(client, filters.as_json(), count)
    if as_json:
        print_json({"letters": letters})
    elif letters:
        _print_letters(letters)
        if has_more:
            sys.stderr.write(f"there are more than {count}; to see them: --count\n")
    else:
        sys.stderr.write("no dead letters\n")
    return 0


def show(
    letter: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE-ID|LOOKUP-ID", help="As `list` shows it.", show_default=False
        ),
    ],
    queue: Annotated[
        str | None,
        typer.Option("--queue", metavar="QUEUE", help="Where it is.", show_default=False),
    ] = None,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Show one dead letter: why it died, its properties, its body."""
    with service(place) as client:
        found = _find(client, letter, queue)
        asked = urlencode({"queue": found["queue"], "lookup_id": found["lookup_id"]})
        whole = client.request("GET", f"/dead-letters/message?{asked}")
    if as_json:
        print_json(whole)
        return 0
    print_pairs({name.replace("_", " "): value for name, value in whole["letter"].items()})
    text = whole["message"]["text"]
    sys.stdout.write(f"\n{printable(whole['message']['summary'])}\n")
    if text:
        sys.stdout.write(printable(text, keep="\n\t") + "\n")
    return 0


def redrive(
    filters: Filters,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="QUEUE",
            help="Another queue than the original destination.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="At most so many a second.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="At most so many.", min=1, show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would go where.")
    ] = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Send dead letters again: as new messages, to where they wanted to go.

    Each is sent and taken away in one step; what is refused stays where it is. It can be
    interrupted at any time, and run again.
    """
    if rate is not None and rate <= 0:
        raise WrongUsageError(f"--rate {rate:g} is no rate", "give messages a second: --rate 10")
    asked = {**filters.as_json(), "dry_run": dry_run}
    asked.update({} if to is None else {"target": to})
    run = _Run("/dead-letters/redrive", asked, limit, rate)
    with service(place) as client, progress("redrive", limit) as advance:
        run.begin(client)
        _finish(run, client, advance, as_json=as_json, verb="redriven", dry_run=dry_run)
    return 1 if run.stayed and not run.done else 0


def delete(
    filters: Filters,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", help="At most so many.", min=1, show_default=False),
    ] = None,
    yes: YesOption = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Delete dead letters for good. On a terminal it asks first."""
    run = _Run("/dead-letters/delete", filters.as_json(), limit, None)
    with service(place) as client:
        run.begin(client)
        confirm("delete these dead letters for good?", yes=yes)
        with progress("delete", limit) as advance:
            _finish(run, client, advance, as_json=as_json, verb="deleted", dry_run=False)
    return 0


@dataclass(slots=True)
class _Run:
    """Batch after batch, until nothing is left that was there at the beginning."""

    path: str
    asked: Json
    limit: int | None
    rate: float | None
    done: int = 0
    stayed: int = 0
    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    letters: list[Json] = field(default_factory=list)

    def begin(self, client: ControlClient) -> None:
        """What dies from now on is left for another time: it may be what was just redriven."""
        self.asked["until"] = client.request("GET", "/dead-letters?count=1")["as_of"]

    def go(self, client: ControlClient, advance: Advance, interrupt: Interrupt) -> None:
        started, after = time.monotonic(), None
        while not interrupt.is_pressed:
            answer = client.request("POST", self.path, self._request(after))
            self._count(answer)
            advance(answer["done"] + answer["stayed"])
            after = answer["next"]
            if after is None or not self._left():
                return
            if self.rate is not None:
                interrupt.sleep(started + self.done / self.rate - time.monotonic())

    def _request(self, after: str | None) -> Json:
        batch = _BATCH if self.rate is None else max(1, min(_BATCH, int(self.rate)))
        return {**self.asked, "after": after, "limit": min(batch, self._left())}

    def _left(self) -> int:
        """How many letters may still be looked at."""
        return sys.maxsize if self.limit is None else self.limit - self.done - self.stayed

    def _count(self, answer: Json) -> None:
        self.done += answer["done"]
        self.stayed += answer["stayed"]
        self.letters += answer["letters"]
        for letter in answer["letters"]:
            self.reasons[letter["reason"], letter["outcome"], letter["problem"]] += 1


def _finish(
    run: _Run, client: ControlClient, advance: Advance, *, as_json: bool, verb: str, dry_run: bool
) -> None:
    """Do it and say what was done, also when somebody interrupts."""
    with interrupt_between_steps() as interrupt:
        try:
            run.go(client, advance, interrupt)
        finally:
            if as_json:
                print_json({"done": run.done, "stayed": run.stayed, "letters": run.letters})
            else:
                _print_run(run, verb, dry_run=dry_run)


def _print_run(run: _Run, verb: str, *, dry_run: bool) -> None:
    if dry_run and run.letters:
        target = run.asked.get("target")
        going = f"would go to {target}" if target else "would go"
        rows = [(s["id"], s["destination"], s["problem"] or going) for s in run.letters]
        print_table(("MESSAGE", "DESTINATION", "WHAT WOULD HAPPEN"), rows)
    elif run.reasons:
        rows_by = [
            (count, reason, outcome + (f": {problem}" if problem else ""))
            for (reason, outcome, problem), count in run.reasons.most_common()
        ]
        print_table(("LETTERS", "REASON", "OUTCOME"), rows_by)
    would = "would be " if dry_run else ""
    sys.stdout.write(f"{count_of(run.done, 'dead letter')} {would}{verb}, {run.stayed} stay\n")


def _some(client: ControlClient, asked: Json, count: int) -> tuple[list[Json], bool]:
    """Up to `count` letters, and whether there are more."""
    found: list[Json] = []
    after: str | None = ""
    while after is not None and len(found) < count:
        page = {**asked, "count": min(1000, count - len(found))}
        page.update({"after": after} if after else {})
        answer = client.request("GET", f"/dead-letters?{urlencode(page)}")
        found += answer["letters"]
        after = answer["next"]
    return found, after is not None


def _find(client: ControlClient, letter: str, queue: str | None) -> Json:
    """By its id, or by its lookup id."""
    is_place = letter.isdecimal()
    asked = {} if is_place else {"id": letter}
    asked.update({} if queue is None else {"queue": queue})
    found, _ = _some(client, asked, 1000 if is_place else 1)
    for candidate in found:
        if not is_place or candidate["lookup_id"] == letter:
            return candidate
    raise CommandError(f"there is no dead letter {letter}", "see: falconmq dead-letter list")


def _print_letters(letters: list[Json]) -> None:
    print_table(
        ("DIED", "REASON", "DESTINATION", "LABEL", "BYTES", "MESSAGE"),
        [
            (
                local_time(letter["died_at"]),
                letter["reason_text"],
                letter["destination"],
                shortened(letter["label"], _LABEL_WIDTH),
                letter["size_bytes"],
                letter["id"],
            )
            for letter in letters
        ],
    )


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None:
        raise WrongUsageError(f"{text!r} is no time", "such as 90s, 15m, 2h or 7d")
    return float(found[1]) * _UNITS[found[2]]
