"""`falconmq consumer`: who reads queues by arrival numbers, and how far behind it is."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, YesOption
from falconmq.cli.tables import local_time, print_json, print_table

LIST_EPILOG = """\b
Examples:
  falconmq consumer list                                of the user's own service
  falconmq consumer list --json
  falconmq consumer list --url https://sales02:8018
"""
DELETE_EPILOG = """\b
Examples:
  falconmq consumer delete nightly-archive              asks first
  falconmq consumer delete nightly-archive --yes
  falconmq consumer delete nightly-archive --data ./data
"""

Json = dict[str, Any]

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Its name; see: falconmq consumer list.", show_default=False
    ),
]


def list_consumers(place: Place, as_json: JsonOption = False) -> int:
    """List those who read queues by arrival numbers: Spark streams that consume, and others."""
    with service(place) as client:
        answer: Json = client.request("GET", "/consumers")
    if as_json:
        print_json(answer)
    elif answer["consumers"]:
        columns = ("NAME", "QUEUE", "BEHIND", "NEXT", "ACKNOWLEDGED", "HAS IT UNTIL")
        print_table(columns, [row for each in answer["consumers"] for row in _rows(each)])
    else:
        sys.stderr.write("no consumers yet\n")
    return 0


def delete(
    name: NameArgument, place: Place, yes: YesOption = False, as_json: JsonOption = False
) -> int:
    """Forget a consumer and how far it was. Messages stay; its next run begins at the front."""
    with service(place) as client:
        confirm(f"forget how far {name} is in its queues", yes=yes)
        client.request("DELETE", f"/consumers/{quote(name, safe='')}")
    if as_json:
        print_json({"deleted": name})
    else:
        sys.stdout.write(f"deleted {name}\n")
    return 0


def _rows(consumer: Json) -> list[tuple[str, ...]]:
    """A line for each queue; one without queues has a line too."""
    name, until = consumer["name"], local_time(consumer["expires_at"])
    rows: list[tuple[str, ...]] = [
        (
            name,
            queue["queue"],
            f"{queue['behind']:,}",
            str(queue["next"]),
            local_time(queue["updated_at"]) or "never",
            until,
        )
        for queue in consumer["queues"]
    ]
    return rows or [(name, "", "", "", "", until)]
