"""`falconmq queue`: create, list, delete and purge queues."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from falconmq.cli.connection import ConfigOption, DataOption, QueueArgument, service
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import count_of, print_json, print_table

EPILOG = """\b
Examples:
  falconmq queue create '.\\private$\\orders' --label 'orders of the web shop'
  falconmq queue create '.\\private$\\ledger' --transactional --journaling
  falconmq queue list --json
"""
PRIVACY_LEVELS = ("none", "optional", "body")

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document.")]


def create(
    name: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE",
            help=r"Path name, in single quotes: '.\private$\orders'.",
            show_default=False,
        ),
    ],
    transactional: Annotated[
        bool,
        typer.Option("--transactional", help="Take messages in transactions only; for good."),
    ] = False,
    label: Annotated[str, typer.Option(help="Text that people see.", show_default=False)] = "",
    journaling: Annotated[
        bool, typer.Option("--journaling", help="Keep a copy of every received message.")
    ] = False,
    quota: Annotated[
        int | None,
        typer.Option(help="KiB its messages may take.", metavar="KIB", min=0, show_default=False),
    ] = None,
    journal_quota: Annotated[
        int | None,
        typer.Option(help="KiB its journal may take.", metavar="KIB", min=0, show_default=False),
    ] = None,
    authentication: Annotated[
        bool, typer.Option("--authentication", help="Take signed messages only.")
    ] = False,
    privacy_level: Annotated[
        str,
        typer.Option(
            help="Bodies it takes: none (plain), body (encrypted) or optional (both).",
            metavar="LEVEL",
        ),
    ] = "optional",
    base_priority: Annotated[
        int, typer.Option(help="Before other queues on the way, if greater.", metavar="NUMBER")
    ] = 0,
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Create a queue."""
    if privacy_level.lower() not in PRIVACY_LEVELS:
        levels = ", ".join(PRIVACY_LEVELS)
        raise WrongUsageError(f"unknown privacy level {privacy_level!r}", f"choose from {levels}")
    with service(data, config) as client:
        queue = client.create_queue(
            name,
            transactional=transactional,
            label=label,
            journaling=journaling,
            quota_kilobytes=quota,
            journal_quota_kilobytes=journal_quota,
            authentication=authentication,
            privacy_level=privacy_level.upper(),
            base_priority=base_priority,
        )
    if as_json:
        print_json(queue)
    else:
        sys.stdout.write(f"created {queue['name']}\n")
    return 0


def list_queues(
    system: Annotated[
        bool, typer.Option("--system", help="Dead-letter queues and the journal too.")
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """List the queues with their messages."""
    with service(data, config) as client:
        queues = client.queues(system=system)
    if as_json:
        print_json({"queues": queues})
    elif queues:
        print_table(
            ("QUEUE", "MESSAGES", "BYTES", "JOURNAL", "KIND", "LABEL"),
            [
                (
                    queue["name"],
                    queue["messages"],
                    queue["size_bytes"],
                    queue["journal_messages"],
                    "transactional" if queue["transactional"] else "",
                    queue["label"],
                )
                for queue in queues
            ],
        )
    else:
        sys.stderr.write("no queues yet\n")
    return 0


def delete(
    name: QueueArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Even if there are messages in it.")
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
) -> int:
    """Delete a queue. One that holds messages is only deleted with --force."""
    with service(data, config) as client:
        client.delete_queue(name, only_if_empty=not force)
    sys.stdout.write(f"deleted {name}\n")
    return 0


def purge(
    name: QueueArgument,
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Delete all messages of a queue; the queue stays."""
    with service(data, config) as client:
        purged = client.purge_queue(name)
    if as_json:
        print_json({"purged": purged})
    else:
        sys.stdout.write(f"purged {count_of(purged, 'message')}\n")
    return 0
