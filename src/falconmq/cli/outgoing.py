"""`falconmq outgoing` and `falconmq session`: what is on its way, and over which connections."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, YesOption
from falconmq.cli.problems import CommandError
from falconmq.cli.tables import count_of, local_time, print_json, print_table

if TYPE_CHECKING:
    from falconmq.client import ControlClient

LIST_EPILOG = """\b
Examples:
  falconmq outgoing list
  falconmq outgoing list --all
  falconmq outgoing list --json --url http://sales02:8018
"""
PAUSE_EPILOG = """\b
Examples:
  falconmq outgoing pause 7
  falconmq outgoing pause 'DIRECT=OS:sales02\\private$\\orders'
  falconmq outgoing pause 7 --data ./data
"""
RESUME_EPILOG = PAUSE_EPILOG.replace("pause", "resume")
PURGE_EPILOG = """\b
Examples:
  falconmq outgoing purge 7
  falconmq outgoing purge 'DIRECT=OS:sales02\\private$\\orders' --yes
  falconmq outgoing purge 7 --json
"""
SESSION_EPILOG = """\b
Examples:
  falconmq session list
  falconmq session list --json
  falconmq session list --data ./data
"""

Json = dict[str, Any]

OutgoingArgument = Annotated[
    str,
    typer.Argument(
        metavar="NUMBER|QUEUE",
        help="Its number, or the format name of the queue it leads to; see: outgoing list.",
        show_default=False,
    ),
]


def list_outgoing(
    everything: Annotated[bool, typer.Option("--all", help="Those without messages too.")] = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """List the outgoing queues: messages that wait for other queue managers, and why."""
    with service(place) as client:
        found = client.outgoing()
    found = [queue for queue in found if everything or queue["messages"]]
    if as_json:
        print_json({"outgoing": found})
    elif found:
        print_outgoing(found, with_numbers=True)
    else:
        sys.stderr.write("nothing waits for other queue managers\n")
    return 0


def pause(outgoing: OutgoingArgument, place: Place, as_json: JsonOption = False) -> int:
    """Send nothing more from an outgoing queue until it is resumed; messages wait."""
    with service(place) as client:
        queue = _find(client, outgoing)
        client.pause(queue["number"])
    _print_change("paused", queue, as_json=as_json)
    return 0


def resume(outgoing: OutgoingArgument, place: Place, as_json: JsonOption = False) -> int:
    """Send again from an outgoing queue that was paused."""
    with service(place) as client:
        queue = _find(client, outgoing)
        client.resume(queue["number"])
    _print_change("resumed", queue, as_json=as_json)
    return 0


def purge(
    outgoing: OutgoingArgument,
    yes: YesOption = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Delete the messages of an outgoing queue: they are never sent. On a terminal it asks first.

    A message that was sent and not acknowledged yet may have arrived.
    """
    with service(place) as client:
        queue = _find(client, outgoing)
        many = count_of(queue["messages"], "message")
        confirm(f"delete {many} for {_shown(queue)}?", yes=yes or not queue["messages"])
        purged = client.request("DELETE", f"/outgoing/{queue['number']}/messages")["purged"]
    if as_json:
        print_json({"purged": purged})
    else:
        sys.stdout.write(f"purged {count_of(purged, 'message')}\n")
    return 0


def list_sessions(place: Place, as_json: JsonOption = False) -> int:
    """List the sessions with other queue managers, who opened them, and what went over them."""
    with service(place) as client:
        found = client.request("GET", "/sessions")["sessions"]
    if as_json:
        print_json({"sessions": found})
    elif found:
        print_sessions(found)
    else:
        sys.stderr.write("no sessions\n")
    return 0


def print_outgoing(outgoing: list[Json], *, with_numbers: bool = False) -> None:
    """A line for each, and below why messages wait."""
    headings: tuple[str, ...] = ("OUTGOING QUEUE", "STATE", "NEXT HOP", "MESSAGES", "LAST TRY")
    rows: list[tuple[object, ...]] = [
        (
            _shown(queue),
            queue["state"],
            ", ".join(queue["next_hops"]) or "unknown",
            queue["messages"],
            _last_try(queue["connection_history"]),
        )
        for queue in outgoing
    ]
    if with_numbers:
        headings = ("NUMBER", *headings)
        rows = [(queue["number"], *row) for queue, row in zip(outgoing, rows, strict=True)]
    print_table(headings, rows)
    for queue in outgoing:
        if queue["messages"] and queue["problem"]:
            sys.stdout.write(f"{_shown(queue)}: {queue['problem']}{_next_try(queue)}\n")


def print_sessions(sessions: list[Json]) -> None:
    """Whatever the transport says about its sessions, a column for each word."""
    headings = list(sessions[0])
    print_table(
        [heading.replace("_", " ").upper() for heading in headings],
        [[_cell(session.get(heading)) for heading in headings] for session in sessions],
    )


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else value


def _next_try(queue: Json) -> str:
    seconds = queue["next_try_seconds"]
    return "" if seconds is None else f"; next try in {seconds:.0f} s"


def _last_try(history: list[Json]) -> str:
    if not history:
        return "none yet"
    last = history[-1]
    where = f" ({', '.join(last['addresses'])})" if last["addresses"] else ""
    return f"{local_time(last['time'])} {last['status']}{where}"


def _find(client: ControlClient, outgoing: str) -> Json:
    """By its number, or by where it leads."""
    queues = client.outgoing()
    for queue in queues:
        names = {str(queue.get(key, "")).lower() for key in ("number", "destination", "path_name")}
        if outgoing and outgoing.lower() in names:
            return queue
    raise CommandError(
        f"there is no outgoing queue {outgoing}", "see: falconmq outgoing list --all"
    )


def _print_change(change: str, queue: Json, *, as_json: bool) -> None:
    if as_json:
        print_json({change: queue["destination"], "number": queue["number"]})
    else:
        sys.stdout.write(f"{change} {_shown(queue)}\n")


def _shown(queue: Json) -> str:
    """Where it leads: the path name of a public queue says more than its GUID."""
    return str(queue.get("path_name") or queue["destination"])
