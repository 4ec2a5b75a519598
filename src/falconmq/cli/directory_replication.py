r"""`falconmq directory replication`: how far the copies of the directory are, and what differs.

falconmq directory replication status
falconmq directory replication compare http://psc2:8018
falconmq directory replication why 'PARIS03\orders'
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.tables import count_of, print_json, print_pairs, print_table, printable
from falconmq.cli.why import print_explanation

if TYPE_CHECKING:
    from falconmq.client import ControlClient

STATUS_EPILOG = """\b
Examples:
  falconmq directory replication status                 roles, numbers, neighbours
  falconmq directory replication status --json
  falconmq directory replication status --url http://psc1:8018
"""
COMPARE_EPILOG = """\b
Examples:
  falconmq directory replication compare http://psc2:8018
  falconmq directory replication compare http://psc2:8018 --other-token-file psc2.token
  falconmq directory replication compare http://psc2:8018 --json
"""
WHY_EPILOG = """\b
Examples:
  falconmq directory replication why 'PARIS03\\orders'       a queue that is not here
  falconmq directory replication why 3f2504e0-4f89-41d3-9a0c-0305e82c3301
  falconmq directory replication why Paris --url http://psc1:8018
"""
DIFFERENT: Final = 1  # exit code
SHOWN_MAX: Final = 20  # differences; all of them with --json
_PATH: Final = "/directory-replication"
_DELETED: Final = "deleted"

Json = dict[str, Any]


def status(*, place: Place, as_json: JsonOption = False) -> int:
    """Show how far this directory server is, and whom it tells of changes."""
    with service(place) as client:
        found: Json = client.request("GET", _PATH)
    if as_json:
        print_json(found)
        return 0
    _print_server(found)
    sys.stdout.write("\n")
    print_table(
        ("PARTITION", "DECIDES", "LAST", "BEHIND", "PENDING", "STATE"),
        [
            (
                each["name"],
                "this server" if each["own"] else each["authority"] or "nobody yet",
                each["number"],
                each["lag"],
                each["pending"],
                _state(each),
            )
            for each in found["partitions"]
        ],
    )
    if found["neighbours"]:
        sys.stdout.write("\n")
        print_table(
            ("NEIGHBOUR", "KIND", "SITE", "TO SEND", "TOLD OUR NUMBERS"),
            [
                (
                    each["machine"],
                    each["kind"],
                    each["site"],
                    each["waiting_changes"],
                    _ago(each["last_hello_seconds"]),
                )
                for each in found["neighbours"]
            ],
        )
    _print_doubles(found["doubles"])
    return 0


def compare(
    other: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The other directory server: http://psc2:8018.",
            show_default=False,
        ),
    ],
    other_token_file: Annotated[
        Path | None,
        typer.Option(
            "--other-token-file",
            help="A file with the token for the other server.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Show what two directory servers have that differs; exit 1 if anything does.

    Changes take seconds to arrive: what differs now and not in a minute was on its way.
    """
    with service(place) as client:
        here = _fingerprints(client)
    there_place = replace(Place(), url=other, token_file=other_token_file, verbose=place.verbose)
    with service(there_place) as client:
        there = _fingerprints(client)
    found = differences(here, there)
    if as_json:
        print_json({"objects": len(here), "other_objects": len(there), "differences": found})
    else:
        _print_differences(found, len(here))
    return DIFFERENT if found else 0


def why(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="NAME|GUID",
            help="A queue, queue manager, site or network by its name, or any object by its GUID.",
            show_default=False,
        ),
    ],
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Explain why a change of the directory is not here, and who has it."""
    with service(place) as client:
        found: Json = client.request("GET", f"{_PATH}/why?subject={quote(subject, safe='')}")
    if as_json:
        print_json(found)
    else:
        print_explanation(found)
    return 0


def differences(here: dict[str, str], there: dict[str, str]) -> list[Json]:
    """What only one has, and what both have in another form, in the order of the names."""
    found = []
    for name in sorted(here.keys() | there.keys()):
        ours, theirs = here.get(name), there.get(name)
        if ours == theirs:
            continue
        partition, kind, identifier = name.split("/", 2)
        missing = "missing here" if ours is None else "missing there"
        found.append(
            {
                "partition": partition,
                "kind": "deletion" if kind == _DELETED else kind,
                "id": identifier,
                "difference": "different" if None not in (ours, theirs) else missing,
                "here": ours,
                "there": theirs,
            }
        )
    return found


def _fingerprints(client: ControlClient) -> dict[str, str]:
    found: dict[str, str] = {}
    after = ""
    while True:
        page: Json = client.request("GET", f"{_PATH}/fingerprints?{urlencode({'after': after})}")
        found.update(page["fingerprints"])
        after = page["next"]
        if not after:
            return found


def _print_server(found: Json) -> None:
    role = found["role"]
    if role != found["configured_role"]:
        role = f"{role} by the directory; the configuration says {found['configured_role']}"
    pairs = {"role": role, "server": found["machine"], "site": found["site"]}
    if found["awaits_role"]:
        pairs["awaits"] = f"that {found['primary_site_controller']} hands over the site"
    if found["primary_site_controller"]:
        pairs["asks"] = found["primary_site_controller"]
    pairs["copy"] = "here" if found["ready"] else "not here yet: the first one is awaited"
    if found["waiting_writes"]:
        pairs["waiting"] = count_of(found["waiting_writes"], "write") + " for other servers"
    print_pairs(pairs)


def _print_doubles(doubles: list[Json]) -> None:
    """What two sites have: rare, and a person has to say which one is right."""
    if not doubles:
        return
    sys.stdout.write("\n")
    print_table(
        ("IN TWO SITES", "KIND", "SHOWN AS IN", "ALSO IN"),
        [
            (each["name"], each["kind"], each["shown"], ", ".join(each["others"]))
            for each in doubles
        ],
    )
    command = "falconmq directory replication remove-claim NAME SITE"
    sys.stderr.write(f"hint:  to take it out of the wrong site: {command}\n")


def _print_differences(found: list[Json], size: int) -> None:
    if not found:
        sys.stdout.write(f"no difference: {size} objects and deletions\n")
        return
    rows = [(each["kind"], each["id"], each["difference"]) for each in found[:SHOWN_MAX]]
    print_table(("KIND", "ID", "DIFFERENCE"), rows)
    rest = len(found) - len(rows)
    if rest:
        sys.stdout.write(printable(f"and {rest} more: --json shows all\n", keep="\n"))


def _state(partition: Json) -> str:
    words = [partition["state"]]
    if partition["waiting"]:
        words.append("asked")
    if partition["taken_over_at"]:
        words.append(f"taken over {partition['taken_over_at'][:16]}Z")
    return ", ".join(words)


def _ago(seconds: float | None) -> str:
    return "not yet" if seconds is None else f"{seconds:.0f} s ago"
