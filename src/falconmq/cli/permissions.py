r"""`falconmq queue permissions`: who may do what with a queue.

    falconmq queue permissions grant '.\private$\orders' web-shop send

Who: Everyone, Anonymous, Administrators, a principal of the configuration, or a SID. What: send,
receive, peek, receive-journal, get-properties, set-properties, get-permissions, set-permissions,
delete, take-ownership; properties, permissions and full are several of them together.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, QueueArgument
from falconmq.cli.tables import print_json, print_pairs, print_table

SHOW_EPILOG = """\b
Examples:
  falconmq queue permissions show '.\\private$\\orders'
  falconmq queue permissions show '.\\private$\\orders' --json
  falconmq queue permissions show '.\\private$\\orders' --sddl
"""
GRANT_EPILOG = """\b
Examples:
  falconmq queue permissions grant '.\\private$\\orders' web-shop send
  falconmq queue permissions grant '.\\private$\\orders' S-1-5-32-545 receive peek
  falconmq queue permissions grant '.\\private$\\orders' Administrators full
"""
REVOKE_EPILOG = """\b
Examples:
  falconmq queue permissions revoke '.\\private$\\orders' Everyone receive
  falconmq queue permissions revoke '.\\private$\\orders' Everyone full
  falconmq queue permissions revoke '.\\private$\\orders' web-shop send
"""
SET_EPILOG = """\b
Examples:
  falconmq queue permissions set '.\\private$\\orders' 'D:(A;;GA;;;BA)(A;;0x4;;;WD)'
  falconmq queue permissions set '.\\private$\\orders' 'O:BA'
  falconmq queue permissions set '.\\private$\\orders' 'D:(A;;GA;;;WD)' --json
"""

Json = dict[str, Any]

WhoArgument = Annotated[
    str,
    typer.Argument(
        metavar="WHO",
        help="Everyone, Anonymous, Administrators, a principal of the configuration, or a SID.",
        show_default=False,
    ),
]
RightsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RIGHT...",
        help="send, receive, peek, receive-journal, properties, permissions, delete, "
        "take-ownership, full; get- and set-properties and -permissions apart.",
        show_default=False,
    ),
]


def show(
    queue: QueueArgument,
    sddl: Annotated[bool, typer.Option("--sddl", help="Only the text that `set` takes.")] = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Show who may do what with a queue. The first line that fits decides about each right."""
    with service(place) as client:
        found = client.request("GET", _path(queue))
    if sddl:
        sys.stdout.write(f"{found['sddl'] or ''}\n")
    else:
        _print(found, as_json=as_json)
    return 0


def grant(
    queue: QueueArgument,
    who: WhoArgument,
    rights: RightsArgument,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Give somebody rights to a queue; what denied them is gone."""
    return _change(place, queue, {"grant": [{"who": who, "rights": rights}]}, as_json=as_json)


def revoke(
    queue: QueueArgument,
    who: WhoArgument,
    rights: RightsArgument,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Take rights away from somebody, who may still have them as a member of a group."""
    return _change(place, queue, {"revoke": [{"who": who, "rights": rights}]}, as_json=as_json)


def set_permissions(
    queue: QueueArgument,
    sddl: Annotated[
        str,
        typer.Argument(
            metavar="SDDL",
            help="The new list (D:...), owner (O:...) or both; what is left out stays.",
            show_default=False,
        ),
    ],
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Replace the permissions of a queue."""
    with service(place) as client:
        found = client.request("PUT", _path(queue), {"sddl": sddl})
    _print(found, as_json=as_json)
    return 0


def _change(place: Place, queue: str, change: Json, *, as_json: bool) -> int:
    with service(place) as client:
        found = client.request("PATCH", _path(queue), change)
    _print(found, as_json=as_json)
    return 0


def _path(queue: str) -> str:
    return f"/queues/{quote(queue, safe='')}/permissions"


def _print(found: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    named = found["owner_name"]
    owner = named if named in ("", found["owner"]) else f"{named} ({found['owner']})"
    print_pairs({"queue": found["queue"], "owner": owner, "sddl": found["sddl"] or "-"})
    if found["unlimited"]:
        sys.stdout.write("\nthere is no list: everybody may do everything\n")
        return
    sys.stdout.write("\n")
    rows = [(e["kind"].upper(), e["name"], ", ".join(e["rights"])) for e in found["entries"]]
    if rows:
        print_table(("", "WHO", "RIGHTS"), rows)
    else:
        sys.stdout.write("the list is empty: nobody may do anything\n")
