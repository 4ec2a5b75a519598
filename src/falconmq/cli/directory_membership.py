r"""`falconmq directory join`, `leave`, `status`: which directory a queue manager is a part of.

falconmq directory join https://hq.example.com:8018 --directory-token-file hq.token
falconmq directory status
falconmq directory leave
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.directory_options import ServerOptions
from falconmq.cli.options import JsonOption, Place, YesOption
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import count_of, local_time, print_json, print_pairs

JOIN_EPILOG = """\b
Examples:
  falconmq directory join --domain example.com --site Berlin       keep it in our own store
  falconmq directory join https://hq:8018 --directory-token-file hq.token    of another FalconMQ
  falconmq directory join ldap://dc1 --bind-name CN=mq,DC=example,DC=com --password-file mq.password
"""
LEAVE_EPILOG = """\b
Examples:
  falconmq directory leave                  asks first
  falconmq directory leave --yes
  falconmq directory leave --force --yes    although it has public queues, or the directory is away
"""
STATUS_EPILOG = """\b
Examples:
  falconmq directory status
  falconmq directory status --json
  falconmq directory status --data ./data
"""
_PATH: Final = "/membership"
_KINDS: Final = {
    "http": "remote",
    "https": "remote",
    "ldap": "ldap",
    "ldaps": "ldap",
    "ldapi": "ldap",
}

Json = dict[str, Any]


def join(
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL...]",
            help="Its servers, https:// or ldap://; none: this queue manager keeps it itself.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[str, typer.Option("--site", help="Which site; the only one if left out.")] = "",
    domain: Annotated[str, typer.Option("--domain", help="Domain of this computer.")] = "",
    host_name: Annotated[
        str, typer.Option("--host-name", help="Name or address under which others reach us.")
    ] = "",
    routing_server: Annotated[
        bool, typer.Option("--routing-server", help="Others may route over this queue manager.")
    ] = False,
    directory_token_file: Annotated[
        Path | None,
        typer.Option("--directory-token-file", help="File with the token for another FalconMQ."),
    ] = None,
    *,
    speaking: ServerOptions,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Make a queue manager a part of a directory, now and at every start."""
    body: Json = {
        "kind": _kind(servers or []),
        "servers": servers or [],
        "site": site,
        "domain": domain,
        "host_name": host_name,
        "routing_server": routing_server,
        "token_file": _absolute(directory_token_file),
        "root": speaking.root,
        "bind_name": speaking.bind_name,
        "password_file": _absolute(speaking.password_file),
        "start_tls": speaking.start_tls,
        "ca_file": _absolute(speaking.ca_file),
    }
    with service(place) as client:
        found: Json = client.request("POST", _PATH, body)
    return _print(found, as_json=as_json)


def leave(
    force: Annotated[
        bool,
        typer.Option("--force", help="Although it has public queues, or the directory is away."),
    ] = False,
    *,
    place: Place,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> int:
    """Make a queue manager a workgroup again; its queues and messages stay."""
    confirm("leave the directory?", yes=yes)
    with service(place) as client:
        found: Json = client.request("DELETE", f"{_PATH}?force={str(force).lower()}")
    return _print(found, as_json=as_json)


def status(place: Place, as_json: JsonOption = False) -> int:
    """Show which directory a queue manager is a part of, and whether it can be reached."""
    with service(place) as client:
        found: Json = client.request("GET", _PATH)
    return _print(found, as_json=as_json)


def membership_line(found: Json) -> str:
    """One line of `falconmq status`; empty for a workgroup."""
    if not found["is_joined"]:
        return ""
    where = ", ".join(found["servers"]) or "in its own store"
    queues = count_of(found["public_queues"], "public queue")
    line = f"directory {found['kind']}, {where}; {queues}"
    if found["is_away"]:
        return f"{line}; {_away(found)}"
    return line


def _print(found: Json, *, as_json: bool) -> int:
    if as_json:
        print_json(found)
    elif not found["is_joined"]:
        sys.stdout.write("this queue manager is in no directory: a workgroup\n")
    else:
        print_pairs(_pairs(found))
    return 0


def _pairs(found: Json) -> dict[str, str]:
    places = found["map"]
    return {
        "kind": found["kind"],
        "servers": ", ".join(found["servers"]) or "this queue manager",
        "directory": _away(found) if found["is_away"] else "there",
        "domain": found["domain"],
        "sites": ", ".join(found["sites"]),
        "registered": "yes" if found["is_registered"] else "no",
        "public queues": str(found["public_queues"]),
        "map": f"{count_of(places['sites'], 'site')}, {count_of(places['links'], 'link')}, "
        f"{count_of(places['queue_managers'], 'queue manager')}; "
        f"read {local_time(places['read_at'])}",
        "faults": "; ".join(places["faults"]) or "none",
        "notifications": f"{found['notifications_received'].get('received', 0)} received, "
        f"{found['notifications_sent'].get('sent', 0)} sent",
    }


def _away(found: Json) -> str:
    return f"away since {local_time(found['away_since'])}: {found['problem']}"


def _kind(servers: list[str]) -> str:
    kinds = {_KINDS.get(urlsplit(server).scheme, "") for server in servers}
    if not kinds:
        return "embedded"
    if len(kinds) > 1 or "" in kinds:
        raise WrongUsageError(
            f"{' '.join(servers)}: these are not servers of one directory",
            "write https://host:8018 for another FalconMQ, ldap://host for LDAP",
        )
    return kinds.pop()


def _absolute(path: Path | None) -> str:
    return "" if path is None else str(path.absolute())
