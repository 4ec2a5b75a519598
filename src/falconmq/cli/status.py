"""`falconmq status`: what a running queue manager has, and what it does with it."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from falconmq.cli.connection import ConfigOption, DataOption, service
from falconmq.cli.tables import count_of, local_time, print_json, print_table, size_text

EPILOG = """\b
Examples:
  falconmq status                       of the user's own service
  falconmq status --data ./data         of the one with this data directory
  falconmq status --json                everything it knows
"""

Json = dict[str, Any]


def status(
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Show queues, outgoing queues with their last tries to connect, and sessions."""
    with service(data, config) as client:
        found = client.status()
    if as_json:
        print_json(found)
        return 0
    _print_manager(found)
    _print_queues(found["queues"])
    _print_outgoing(found["outgoing"])
    _print_sessions(found.get("sessions", []))
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
    if listening := found.get("listening"):
        sys.stdout.write(f"listens   {', '.join(map(str, listening))}\n")


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


def _print_outgoing(outgoing: list[Json]) -> None:
    _table(
        ("OUTGOING QUEUE", "STATE", "NEXT HOP", "MESSAGES", "LAST TRY"),
        [
            (
                queue["destination"],
                queue["state"],
                ", ".join(queue["next_hops"]) or "unknown",
                queue["messages"],
                _last_try(queue["connection_history"]),
            )
            for queue in outgoing
        ],
    )
    for queue in outgoing:
        if queue["messages"] and queue["problem"]:
            sys.stdout.write(f"{queue['destination']}: {queue['problem']}{_next_try(queue)}\n")


def _next_try(queue: Json) -> str:
    seconds = queue["next_try_seconds"]
    return "" if seconds is None else f"; next try in {seconds:.0f} s"


def _last_try(history: list[Json]) -> str:
    if not history:
        return "none yet"
    last = history[-1]
    where = f" ({', '.join(last['addresses'])})" if last["addresses"] else ""
    return f"{local_time(last['time'])} {last['status']}{where}"


def _print_sessions(sessions: list[Json]) -> None:
    """Whatever the transport says about its sessions, a column for each word."""
    if sessions:
        headings = list(sessions[0])
        _table(
            [heading.replace("_", " ").upper() for heading in headings],
            [[session.get(heading, "") for heading in headings] for session in sessions],
        )


def _table(headings: list[str] | tuple[str, ...], rows: list[Any]) -> None:
    if rows:
        sys.stdout.write("\n")
        print_table(headings, rows)
