"""`falconmq queue`: create, list, show, set, delete. `queue_messages` empties and moves."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, QueueArgument, YesOption
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import count_of, local_time, print_json, print_pairs, print_table

CREATE_EPILOG = """\b
Examples:
  falconmq queue create '.\\private$\\orders' --label 'orders of the web shop'
  falconmq queue create '.\\private$\\ledger' --transactional --journaling
  falconmq queue create orders --quota 10240      a public queue, which the directory knows
"""
LIST_EPILOG = """\b
Examples:
  falconmq queue list --contains order
  falconmq queue list --system
  falconmq queue list --json
"""
SHOW_EPILOG = """\b
Examples:
  falconmq queue show '.\\private$\\orders'
  falconmq queue show '.\\system$;deadletter'
  falconmq queue show '.\\private$\\orders' --json
"""
SET_EPILOG = """\b
Examples:
  falconmq queue set '.\\private$\\orders' --label 'orders of 2026'
  falconmq queue set '.\\private$\\orders' --quota 10240 --journaling
  falconmq queue set '.\\private$\\orders' --quota unlimited --no-journaling
"""
DELETE_EPILOG = """\b
Examples:
  falconmq queue delete '.\\private$\\orders'
  falconmq queue delete '.\\private$\\orders' --force
  falconmq queue delete '.\\private$\\orders' --force --yes
"""
PAGE: Final = 500  # queues of one request
PRIVACY_LEVELS: Final = ("none", "optional", "body")
_NO_LIMIT: Final = "unlimited"
_KILOBYTES_MAX: Final = 0xFFFFFFFF  # the number that means no limit

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """The properties of a queue that may be changed; None: as they are."""

    label: Annotated[
        str | None,
        typer.Option(help="Text that people see.", metavar="TEXT", show_default=False),
    ] = None
    journaling: Annotated[
        bool | None,
        typer.Option(
            "--journaling/--no-journaling",
            help="Keep a copy of every received message.",
            show_default=False,
        ),
    ] = None
    quota: Annotated[
        str | None,
        typer.Option(
            help="KiB its messages may take, or 'unlimited'.", metavar="KIB", show_default=False
        ),
    ] = None
    journal_quota: Annotated[
        str | None,
        typer.Option(
            help="KiB its journal may take, or 'unlimited'.", metavar="KIB", show_default=False
        ),
    ] = None
    authentication: Annotated[
        bool | None,
        typer.Option(
            "--authentication/--no-authentication",
            help="Take signed messages only.",
            show_default=False,
        ),
    ] = None
    privacy_level: Annotated[
        str | None,
        typer.Option(
            help="Bodies it takes: none (plain), body (encrypted) or optional (both).",
            metavar="LEVEL",
            show_default=False,
        ),
    ] = None
    base_priority: Annotated[
        int | None,
        typer.Option(
            help="Before other queues on the way, if greater.",
            metavar="NUMBER",
            min=-32768,
            max=32767,
            show_default=False,
        ),
    ] = None

    def as_json(self) -> Json:
        """What was given, as the service takes it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in given.items() if value is not None}
        for option in ("quota", "journal_quota"):
            if option in given:
                given[f"{option}_kilobytes"] = _kilobytes(option, given.pop(option))
        if "privacy_level" in given:
            given["privacy_level"] = _privacy_level(given["privacy_level"])
        return given


def create(
    name: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE",
            help=r"Path name, in single quotes: '.\private$\orders'; orders alone is a public one.",
            show_default=False,
        ),
    ],
    transactional: Annotated[
        bool,
        typer.Option("--transactional", help="Take messages in transactions only; for good."),
    ] = False,
    *,
    properties: QueueOptions,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Create a queue. A data directory that --data names and nobody has made yet is made.

    A public queue is created in the directory as well, if this queue manager is in one.
    """
    from falconmq.manager.path_names import in_full  # noqa: PLC0415 - not for --help

    chosen = properties.as_json()
    with service(place, makes=True) as client:
        queue = client.create_queue(in_full(name), transactional=transactional, **chosen)
    if as_json:
        print_json(queue)
    else:
        sys.stdout.write(f"created {queue['name']}\n")
    return 0


def list_queues(
    contains: Annotated[
        str, typer.Option(help="Only names with this text.", metavar="TEXT", show_default=False)
    ] = "",
    system: Annotated[
        bool, typer.Option("--system", help="Dead-letter queues and the journal too.")
    ] = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """List the queues with their messages."""
    queues: list[Json] = []
    with service(place) as client:
        query: Json = {"count": PAGE, "contains": contains, "system": str(system).lower()}
        while True:
            page = client.request("GET", f"/queues?{urlencode(query)}")["queues"]
            queues += page
            if len(page) < PAGE:
                break
            query["after"] = page[-1]["name"]
    if as_json:
        print_json({"queues": queues})
    elif queues:
        print_table(("QUEUE", "MESSAGES", "BYTES", "JOURNAL", "KIND", "LABEL"), map(_row, queues))
    else:
        sys.stderr.write(
            f"no queue has {contains!r} in its name\n" if contains else "no queues yet\n"
        )
    return 0


def _row(queue: Json) -> tuple[object, ...]:
    kinds = ["public"] if _is_public(queue) else []
    kind = ", ".join([*kinds, "transactional"] if queue["transactional"] else kinds)
    counts = queue["messages"], queue["size_bytes"], queue["journal_messages"]
    return queue["name"], *counts, kind, queue["label"]


def show(queue: QueueArgument, place: Place, as_json: JsonOption = False) -> int:
    """Show the properties of a queue and what is in it."""
    with service(place) as client:
        found = client.queue(queue)
    if as_json:
        print_json(found)
    else:
        _print_queue(found)
    return 0


def set_properties(
    queue: QueueArgument,
    *,
    properties: QueueOptions,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Change properties of a queue; the others stay. What kind it is cannot be changed."""
    changes = properties.as_json()
    if not changes:
        raise WrongUsageError("there is nothing to change", "give at least one property")
    with service(place) as client:
        found = client.request("PATCH", f"/queues/{quote(queue, safe='')}", changes)
    if as_json:
        print_json(found)
    else:
        _print_queue(found)
    return 0


def delete(
    queue: QueueArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Even if there are messages in it.")
    ] = False,
    yes: YesOption = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Delete a queue. One that holds messages is only deleted with --force.

    On a terminal it asks first.
    """
    with service(place) as client:
        found = client.queue(queue)
        held = f" with {count_of(found['messages'], 'message')}" if force else ""
        confirm(f"delete {found['name']}{held}?", yes=yes)
        client.delete_queue(queue, only_if_empty=not force)
    if as_json:
        print_json({"deleted": found["name"]})
    else:
        sys.stdout.write(f"deleted {queue}\n")
    return 0


def _print_queue(queue: Json) -> None:
    print_pairs(
        {
            "queue": queue["name"],
            "format name": queue["format_name"],
            "label": queue["label"],
            "kind": _kind(queue),
            "messages": f"{queue['messages']}, {queue['size_bytes']} bytes",
            "quota": _limit(queue["quota_kilobytes"]),
            "journal": _journal(queue),
            "journal quota": _limit(queue["journal_quota_kilobytes"]),
            "authentication": "signed messages only" if queue["authentication"] else "not required",
            "privacy level": str(queue["privacy_level"]).lower(),
            "base priority": queue["base_priority"],
            "created": local_time(queue["created_at"]),
            "changed": local_time(queue["modified_at"]),
        }
    )
    if streams := queue["incoming_streams"]:
        sys.stdout.write("\n")
        print_table(
            ("SENDER", "NUMBER", "REJECTED", "LAST MESSAGE"),
            [
                (
                    stream["sender"],
                    stream["sequence_number"],
                    stream["reject_count"],
                    local_time(stream["last_access_time"]),
                )
                for stream in streams
            ],
        )


def _kind(queue: Json) -> str:
    kind = "transactional" if queue["transactional"] else "not transactional"
    return f"public, {kind}" if _is_public(queue) else kind


def _is_public(queue: Json) -> bool:
    return str(queue["format_name"]).startswith("PUBLIC=")


def _journal(queue: Json) -> str:
    kept = "of every received message" if queue["journaling"] else "off"
    return f"{kept}, {count_of(queue['journal_messages'], 'message')}"


def _limit(kilobytes: int | None) -> str:
    return _NO_LIMIT if kilobytes is None else f"{kilobytes} KiB"


def _kilobytes(option: str, text: str) -> int:
    if text.lower() == _NO_LIMIT:
        return _KILOBYTES_MAX
    if not text.isascii() or not text.isdigit() or int(text) > _KILOBYTES_MAX:
        shown = option.replace("_", "-")
        raise WrongUsageError(f"--{shown} {text}: no size", f"give KiB, or '{_NO_LIMIT}'")
    return int(text)


def _privacy_level(text: str) -> str:
    if text.lower() not in PRIVACY_LEVELS:
        levels = ", ".join(PRIVACY_LEVELS)
        raise WrongUsageError(f"unknown privacy level {text!r}", f"choose from {levels}")
    return text.upper()
