r"""`falconmq directory replication move`, `take-over`, `remove-site`, `remove-claim`: who decides.

falconmq directory replication move Paris PARIS02
falconmq directory replication take-over PARIS01 --accept-loss
falconmq directory replication remove-site Paris --accept-loss
falconmq directory replication remove-claim STORE7 Paris
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.tables import print_json, printable

MOVE_EPILOG = """\b
Examples:
  falconmq directory replication move Paris PARIS02          a backup becomes the PSC of Paris
  falconmq directory replication move enterprise PARIS01     a PSC becomes the PEC
  falconmq directory replication move Paris PARIS02 --dry-run
"""
TAKE_OVER_EPILOG = """\b
Examples:
  falconmq directory replication take-over PARIS01 --dry-run          what would be done
  falconmq directory replication take-over PARIS01 --accept-loss      at a backup of Paris
  falconmq directory replication take-over HQ01 --accept-loss         at a PSC: it becomes the PEC
"""
REMOVE_SITE_EPILOG = """\b
Examples:
  falconmq directory replication remove-site Paris --dry-run        how much is in it
  falconmq directory replication remove-site Paris --accept-loss
  falconmq directory replication remove-site Paris --accept-loss --url http://hq01:8018
"""
REMOVE_CLAIM_EPILOG = """\b
Examples:
  falconmq directory replication remove-claim STORE7 Paris --dry-run
  falconmq directory replication remove-claim STORE7 Paris          it is in the other site only
  falconmq directory replication remove-claim 'STORE7\\orders' Paris
"""
_PATH: Final = "/directory-replication"
_SECONDS: Final = 300.0  # other servers are asked, and waited for

Json = dict[str, Any]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only look whether it can be done.")]


def move(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SITE", help="The name of a site, or: enterprise.", show_default=False
        ),
    ],
    server: Annotated[
        str,
        typer.Argument(
            metavar="SERVER",
            help="Who decides then: a backup of the site; for the enterprise, a PSC.",
            show_default=False,
        ),
    ],
    *,
    dry_run: _DryRun = False,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Let another server decide about a site, or about the enterprise, while both are there.

    Any directory server can be asked. Nothing is lost and nothing must be restarted: the new one
    begins when it has everything that the old one has decided.
    """
    asked = {"subject": subject, "server": server, "dry_run": dry_run}
    with service(place) as client:
        found: Json = client.request("POST", f"{_PATH}/move", asked, timeout=_SECONDS)
    if as_json:
        print_json(found)
        return 0
    old, new = found["old_server"], found["new_server"]
    if not found["done"]:
        _say(f"{new} could decide about {found['subject']} instead of {old}")
        return 0
    _say(f"{new} decides about {found['subject']} as soon as it has everything that {old} has")
    sys.stderr.write(printable(_hint(found), keep="\n"))
    return 0


def take_over(
    server: Annotated[
        str,
        typer.Argument(
            metavar="SERVER", help="The server that is gone for good.", show_default=False
        ),
    ],
    *,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Changes that only the dead server has are lost, also acknowledged ones.",
        ),
    ] = False,
    pec: Annotated[
        str,
        typer.Option(
            "--pec", help="The PEC by now, if the dead server was it.", show_default=False
        ),
    ] = "",
    ignore_others: Annotated[
        bool,
        typer.Option(
            "--ignore-others", help="Go on although servers do not answer that may know more."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be taken over.")
    ] = False,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Decide here instead of a server that is gone for good.

    A backup takes over its site, and the enterprise with it if its PSC was the PEC and --pec names
    no other one; a PSC takes over the enterprise. The other servers are asked for everything that
    they have heard. A dead server that comes back follows this one, and what only it had is gone.
    """
    asked = {
        "server": server,
        "pec": pec,
        "accept_loss": accept_loss,
        "ignore_others": ignore_others,
        "dry_run": dry_run,
    }
    with service(place) as client:
        found: Json = client.request("POST", f"{_PATH}/take-over", asked, timeout=_SECONDS)
    if as_json:
        print_json(found)
        return 0
    roles, old = " and ".join(found["roles"]), found["old_server"]
    if not found["done"]:
        named = f"; {found['pec']} has to agree" if found["pec"] else ""
        _say(f"this server would decide about {roles} instead of {old}{named}")
        return 0
    told = ", ".join(name for name in found["asked"] if name not in found["silent"])
    _say(f"this server decides about {roles} now, instead of {old}")
    _say(f"asked for what they have heard: {told or 'nobody else has a copy'}")
    if found["silent"]:
        _say(f"without an answer: {', '.join(found['silent'])}")
    return 0


def remove_site(
    site: Annotated[
        str, typer.Argument(metavar="SITE", help="The name of a site.", show_default=False)
    ],
    *,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss", help="All queue managers and queues of the site are deleted."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Take a site out of the enterprise, with all that is in it.

    At the PEC, when the servers of the site are gone for good and no backup takes over, or when
    they are stopped because the site is given up. All other servers forget what was in it.
    """
    asked = {"site": site, "accept_loss": accept_loss, "dry_run": dry_run}
    with service(place) as client:
        found: Json = client.request("POST", f"{_PATH}/remove-site", asked, timeout=_SECONDS)
    if as_json:
        print_json(found)
        return 0
    verb = "is removed" if found["done"] else "would be removed"
    counts = f"queue managers: {found['queue_managers']}, public queues: {found['queues']}"
    _say(f"{found['site']} {verb}, with what is in it; {counts}")
    return 0


def remove_claim(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="NAME|GUID",
            help="A queue manager or a queue that is in two sites.",
            show_default=False,
        ),
    ],
    site: Annotated[
        str,
        typer.Argument(metavar="SITE", help="The site that it is in no more.", show_default=False),
    ],
    *,
    dry_run: _DryRun = False,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Let one of two sites forget an object that both have.

    That happens when somebody took over from a server that was gone, and the deletion of what had
    moved to another site was lost with it. All servers show the one that was made last. The server
    of the site is asked to delete its word; what the other site says stays.
    """
    asked = {"object": subject, "site": site, "dry_run": dry_run}
    with service(place) as client:
        found: Json = client.request("POST", f"{_PATH}/remove-claim", asked, timeout=_SECONDS)
    if as_json:
        print_json(found)
        return 0
    rest = " and ".join(found["rest"])
    if found["done"]:
        _say(f"{found['name']} is no more in {found['site']}; it is in {rest}")
    else:
        _say(f"{found['server']} would delete {found['name']} in {found['site']}; {rest} keeps it")
    return 0


def _hint(found: Json) -> str:
    """What is left to do: nothing that cannot wait."""
    old, new = found["old_server"], found["new_server"]
    of_new, of_old = ("pec", "psc") if found["subject"] == "enterprise" else ("psc", "bsc")
    return (
        f"hint:  look: falconmq directory replication status; some day write role = {of_new!r} "
        f"into the configuration of {new} and role = {of_old!r} into that of {old}\n"
    )


def _say(text: str) -> None:
    sys.stdout.write(printable(text + "\n", keep="\n"))
