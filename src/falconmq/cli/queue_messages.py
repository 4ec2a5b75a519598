"""`falconmq queue purge` and `falconmq queue move`: many messages of a queue at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, QueueArgument, YesOption, complete_queue
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.progress import progress
from falconmq.cli.tables import count_of, print_json

if TYPE_CHECKING:
    from falconmq.client import ControlClient

PURGE_EPILOG = """\b
Examples:
  falconmq queue purge '.\\private$\\orders'
  falconmq queue purge '.\\private$\\orders' --yes
  falconmq queue purge '.\\private$\\orders;journal' --json
"""
MOVE_EPILOG = """\b
Examples:
  falconmq queue move '.\\private$\\orders' --to '.\\private$\\orders;later' --all
  falconmq queue move '.\\private$\\orders;later' --to '.\\private$\\orders' --label urgent
  falconmq queue move '.\\private$\\orders' --to '.\\private$\\orders;later' --lookup-id 7
"""
PAGE: Final = 500  # messages of one request

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which messages of a queue; at least one has to be said."""

    everything: Annotated[bool, typer.Option("--all", help="All messages that are there.")] = False
    lookup_id: Annotated[
        list[int] | None,
        typer.Option(
            help="This message. May be repeated.", metavar="ID", min=0, show_default=False
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            help="Those with this text in their label.", metavar="TEXT", show_default=False
        ),
    ] = None
    priority: Annotated[
        int | None,
        typer.Option(
            help="Those with this priority.", metavar="NUMBER", min=0, max=7, show_default=False
        ),
    ] = None

    def check(self) -> None:
        filters = self.label is not None or self.priority is not None
        if self.lookup_id and (filters or self.everything):
            raise WrongUsageError("--lookup-id names the messages already", "leave the others out")
        if not (self.everything or self.lookup_id or filters):
            hint = "give --all, --lookup-id ID, --label TEXT or --priority NUMBER"
            raise WrongUsageError("which messages?", hint)

    def matches(self, message: Json) -> bool:
        is_label = self.label is None or self.label in message["label"]
        return is_label and (self.priority is None or self.priority == message["priority"])


def purge(
    queue: QueueArgument,
    yes: YesOption = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Delete all messages of a queue; the queue stays. On a terminal it asks first."""
    with service(place) as client:
        found = client.queue(queue)
        count = found["messages"]
        confirm(f"delete {count_of(count, 'message')} of {found['name']}?", yes=yes or not count)
        with progress("purge", count) as advance:
            purged = client.purge_queue(queue)
            advance(purged)
    if as_json:
        print_json({"purged": purged})
    else:
        sys.stdout.write(f"purged {count_of(purged, 'message')}\n")
    return 0


def move(
    queue: QueueArgument,
    target: Annotated[
        str,
        typer.Option(
            "--to",
            help="Another queue, or a subqueue: '.\\private$\\orders;later'.",
            metavar="QUEUE",
            show_default=False,
            autocompletion=complete_queue,
        ),
    ],
    *,
    chosen: Chosen,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Move messages to another queue of this queue manager, or to a subqueue, and back.

    They keep everything, their ids and their age too. A subqueue that is not there is made.
    """
    chosen.check()
    moved = 0
    with service(place) as client:
        total = client.queue(queue)["messages"]
        with progress("move", total) as advance:
            for page, ids in _pages(client, queue, chosen):
                moved += _move(client, queue, ids, target) if ids else 0
                advance(page)
    if not moved and not chosen.everything:
        raise CommandError(f"no message of {queue} is meant", f"see: falconmq peek '{queue}' --all")
    if as_json:
        print_json({"moved": moved})
    else:
        sys.stdout.write(f"moved {count_of(moved, 'message')}\n")
    return 0


def _pages(client: ControlClient, queue: str, chosen: Chosen) -> Iterator[tuple[int, list[str]]]:
    """How many messages were looked at, and which of them are meant."""
    if chosen.lookup_id:
        yield len(chosen.lookup_id), [str(id) for id in chosen.lookup_id]
        return
    for page in browse(client, queue):
        yield len(page), [message["lookup_id"] for message in page if chosen.matches(message)]


def browse(client: ControlClient, queue: str, *, body: str = "none") -> Iterator[list[Json]]:
    """All messages that are there, page by page; a page may be used up before the next is read."""
    query: Json = {"count": PAGE, "body": body}
    while True:
        found = client.request(
            "GET", f"/queues/{quote(queue, safe='')}/messages?{urlencode(query)}"
        )
        if found["messages"]:
            yield found["messages"]
        if found["next"] is None:
            return
        query["after"] = found["next"]


def _move(client: ControlClient, queue: str, lookup_ids: list[str], target: str) -> int:
    body = {"lookup_ids": lookup_ids, "target": target}
    path = f"/queues/{quote(queue, safe='')}/messages/move"
    moved: int = client.request("POST", path, body)["moved"]
    return moved
