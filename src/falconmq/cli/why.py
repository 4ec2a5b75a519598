r"""`falconmq why`: where a message or a backlog is, why, and what to do."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, complete_queue
from falconmq.cli.tables import local_time, print_json, print_table, printable

EPILOG = """\b
Examples:
  falconmq why '.\\private$\\orders'                            a queue that grows
  falconmq why 'DIRECT=OS:sales02\\private$\\orders'            messages that do not leave
  falconmq why '{55735802-9150-9595-4997-B6E611EA26C6}\\2286'   one message
"""

Json = dict[str, Any]


def why(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE|MESSAGE-ID|OUTGOING",
            help="A queue, a message by its id, or an outgoing queue by its number or destination; "
            "in single quotes.",
            show_default=False,
            autocompletion=complete_queue,
        ),
    ],
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Explain where a message or a backlog is, and why it is not further."""
    with service(place) as client:
        found = client.request("GET", f"/why?subject={quote(subject, safe='')}")
    if as_json:
        print_json(found)
        return 0
    print_explanation(found)
    return 0


def print_explanation(found: Json) -> None:
    """The answer, what it rests on, and what happened."""
    _print_answer(found)
    _print_facts(found["facts"])
    _print_timeline(found["timeline"])


def _print_answer(found: Json) -> None:
    """The sentences, what else is wrong, what to do."""
    sys.stdout.write(printable(found["summary"]) + "\n")
    for cause in found["causes"]:
        text = cause["text"]
        if f"{text[:1].upper()}{text[1:]}." not in found["summary"]:
            sys.stdout.write(f"also:  {printable(text)}\n")
    for hint in found["hints"]:
        sys.stdout.write(f"hint:  {printable(hint)}\n")


def _print_facts(facts: list[Json]) -> None:
    """Facts of the same name below each other, the name once."""
    width = max((len(fact["label"]) for fact in facts), default=0)
    before = ""
    for fact in facts:
        sys.stdout.write("" if before else "\n")
        label = "" if fact["label"] == before else fact["label"]
        sys.stdout.write(f"{label.ljust(width)}  {printable(fact['value'])}\n")
        before = fact["label"]


def _print_timeline(timeline: list[Json]) -> None:
    if timeline:
        sys.stdout.write("\n")
        rows = [(local_time(step["time"]), step["text"], step["queue"]) for step in timeline]
        print_table(("TIME", "WHAT HAPPENED", "QUEUE"), rows)
