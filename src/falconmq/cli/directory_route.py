r"""`falconmq directory route`: the way of messages to another queue manager, hop by hop.

falconmq directory route sales02
falconmq directory route 'PUBLIC=55735802-9150-9595-4997-B6E611EA26C6' --refresh
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.tables import count_of, local_time, print_json, print_table, printable

EPILOG = """\b
Examples:
  falconmq directory route sales02               a queue manager, or a queue that it has
  falconmq directory route 'PUBLIC=55735802-9150-9595-4997-B6E611EA26C6'
  falconmq directory route sales02 --refresh     read sites and links again first
"""
NO_WAY: Final = 1  # exit code

Json = dict[str, Any]


def route(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|GUID|QUEUE",
            help="A queue manager by its name or GUID, or by a queue that it has.",
            show_default=False,
        ),
    ],
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read sites, links and gates again first.")
    ] = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Show which way messages to a queue manager go, why, and what it costs; exit 1 if none."""
    with service(place) as client:
        if refresh:
            client.request("POST", "/routes/refresh")
        found: Json = client.request("GET", f"/routes/{quote(name, safe='')}")
    if as_json:
        print_json(found)
    else:
        _print_way(found)
        _print_steps(found["steps"])
        _print_map(found["map"])
    return 0 if found["possible"] else NO_WAY


def _print_way(found: Json) -> None:
    """The way in one line."""
    steps = found["steps"]
    names = [step["queue_manager"] for step in steps]
    if found["configured"]:
        names += steps[0]["next"][:1]
    if not found["possible"]:
        text = f"no way from {names[0]} to {found['destination']}"
        text += "" if len(names) == 1 else f": it ends at {names[-1]}"
    else:
        text = " -> ".join(names) + _price(steps[0], is_configured=found["configured"])
    sys.stdout.write(printable(text) + "\n")


def _price(step: Json, *, is_configured: bool) -> str:
    if is_configured or not step["links"]:
        return ""
    return f", cost {step['cost']} over {count_of(step['links'], 'link')}"


def _print_steps(steps: list[Json]) -> None:
    sys.stdout.write("\n")
    rows = [
        (
            number,
            step["queue_manager"],
            ", ".join(step["next"]) or "-",
            "-" if step["cost"] is None else step["cost"],
            step["reason"],
        )
        for number, step in enumerate(steps, start=1)
    ]
    print_table(("STEP", "AT", "NEXT", "COST LEFT", "WHY"), rows)


def _print_map(chart: Json) -> None:
    """How good the map is, and what is wrong with it."""
    size = ", ".join(
        (
            count_of(chart["sites"], "site"),
            count_of(chart["links"], "link"),
            count_of(chart["queue_managers"], "queue manager"),
        )
    )
    when = f"read {local_time(chart['read_at'])}" if chart["read_at"] else "never read"
    sys.stdout.write(f"\nmap:   {size}; {when}\n")
    if not chart["joined"]:
        sys.stdout.write("note:  this queue manager is in no directory: nothing follows this map\n")
    if chart["problem"]:
        sys.stdout.write(f"note:  the map is old, for {printable(chart['problem'])}\n")
    for fault in chart["faults"]:
        sys.stdout.write(f"fault: {printable(fault)}\n")
