r"""`falconmq trace`: the route of a message."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, complete_queue
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import local_time, print_json, printable

EPILOG = """\b
Examples:
  falconmq trace '{55735802-9150-9595-4997-B6E611EA26C6}\\2286'
  falconmq trace --queue '.\\private$\\orders'
  falconmq trace --queue '.\\private$\\orders' --count 20 --json
"""

Json = dict[str, Any]


def trace(
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="MESSAGE-ID", help="In single quotes: '{guid}\\number'.", show_default=False
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="QUEUE",
            help="The messages that something happened to lately in this queue.",
            show_default=False,
            autocompletion=complete_queue,
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="How many of them.", min=1, max=100)] = 5,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Show where a message was: from what happened here, and from the trace reports of others.

    Reports come only of messages that were sent with a report queue, to that queue.
    """
    if (message is None) == (queue is None):
        raise WrongUsageError("give a message id or --queue", "see: falconmq trace --help")
    with service(place) as client:
        if message is not None:
            found = client.request("GET", f"/messages/{quote(message, safe='')}/trace")
            routes = [found]
        else:
            found = client.request("GET", f"/traces?{urlencode({'queue': queue, 'count': count})}")
            routes = found["routes"]
    if as_json:
        print_json(found)
        return 0
    for route in routes:
        _print_route(route)
    if not routes:
        sys.stderr.write("nothing happened to messages of this queue lately\n")
    return 0


def _print_route(route: Json) -> None:
    """Queue managers below each other, what happened at each beside them."""
    sys.stdout.write(f"{route['id']}\n{printable(route['summary'])}\n")
    edges = {edge["end"]: edge for edge in route["edges"]}
    at = 0
    for _, stops in groupby(route["stops"], key=lambda stop: stop["manager"]):
        stay = list(stops)
        if at in edges:
            sys.stdout.write(f"      | {edges[at]['seconds']:.1f} s\n")
        sys.stdout.write(f"  {printable(stay[0]['name'] or stay[0]['manager'])}\n")
        for stop in stay:
            where = f"  {stop['queue']}" if stop["queue"] else ""
            mark = " (report)" if stop["source"] == "report" else ""
            line = f"    - {local_time(stop['time'])}  {stop['text']}{mark}{where}"
            sys.stdout.write(printable(line) + "\n")
        at += len(stay)
