"""`falconmq status`: what a running queue manager has, and what it does with it."""

from __future__ import annotations

import sys
from typing import Any

from falconmq.cli.config import print_findings
from falconmq.cli.connection import service
from falconmq.cli.directory_membership import membership_line
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.outgoing import print_outgoing, print_sessions
from falconmq.cli.tables import count_of, print_json, print_table, size_text

EPILOG = """\b
Examples:
  falconmq status                       of the user's own service
  falconmq status --data ./data         of the one with this data directory
  falconmq status --json                everything it knows
"""

Json = dict[str, Any]


def status(place: Place, as_json: JsonOption = False) -> int:
    """Show queues, outgoing queues with their last tries to connect, and sessions."""
    with service(place) as client:
        found = client.status()
    if as_json:
        print_json(found)
        return 0
    _print_manager(found)
    _print_queues(found["queues"])
    if outgoing := found["outgoing"]:
        sys.stdout.write("\n")
        print_outgoing(outgoing)
    if sessions := found.get("sessions"):
        sys.stdout.write("\n")
        print_sessions(sessions)
    return 0


def _print_manager(found: Json) -> None:
    used, quota = size_text(found["message_bytes"]), size_text(found["quota_kilobytes"] * 1024)
    sys.stdout.write(
        f"{found['computer_name']}  {{{found['id'].upper()}}}\n"
        f"data      {found['path']}, {size_text(found['used_bytes'])} used, "
        f"durability {found['durability'].lower()}\n"
        f"messages  {found['messages']}, {used} of {quota}; "
        f"{count_of(found['transactions'], 'open transaction')}\n"
    )
    if found["hardened"]:
        sys.stdout.write("mode      hardened: no message comes or goes over the MSMQ port\n")
    if listening := found.get("listening"):
        sys.stdout.write(f"listens   {', '.join(map(str, listening))}\n")
    if line := membership_line(found.get("directory") or {"is_joined": False}):
        sys.stdout.write(f"{line}\n")
    if files := found.get("files"):
        print_findings(files)


def _print_queues(queues: list[Json]) -> None:
    _table(
        ("QUEUE", "MESSAGES", "BYTES", "JOURNAL", "KIND"),
        [
            (
                queue["name"],
                queue["messages"],
                queue["size_bytes"],
                queue["journal_messages"],
                "transactional" if queue["transactional"] else "",
            )
            for queue in queues
        ],
    )


def _table(headings: list[str] | tuple[str, ...], rows: list[Any]) -> None:
    if rows:
        sys.stdout.write("\n")
        print_table(headings, rows)
