"""`falconmq tail`: messages of a queue as they arrive.

The service tells what arrives (`GET /events`), in that order, and each message is looked at by its
lookup id: it stays where it is. A message that somebody took at once is still told about, without
its body. If the line breaks, it is taken up again where it was; if the service was started anew in
between, what came meanwhile is found in the queue by its time of arrival.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from falconmq.cli.connection import service
from falconmq.cli.messages import first_line, print_bodies, print_messages_as_json
from falconmq.cli.options import Place, QueueArgument
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.queue_messages import browse
from falconmq.cli.tables import local_time, printable, shortened

if TYPE_CHECKING:
    from falconmq.client import ControlClient

EPILOG = """\b
Examples:
  falconmq tail '.\\private$\\orders'
  falconmq tail '.\\private$\\orders' --from-start --bodies
  falconmq tail '.\\private$\\orders' --json | jq .label
"""
_REMEMBERED: Final = 100_000  # messages that were printed and may be told about again
_RETRY_SECONDS: Final = 1.0
_SILENCE: Final = 60.0  # seconds; the service says something every 15
_SEQUENCE: Final = (1 << 56) - 1  # of a lookup id: what is left without the priority
_WIDTH: Final = 60

Json = dict[str, Any]


def tail(
    queue: QueueArgument,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="The messages that are there first.")
    ] = False,
    count: Annotated[
        int | None,
        typer.Option(
            help="End after so many messages.", metavar="NUMBER", min=1, show_default=False
        ),
    ] = None,
    bodies: Annotated[bool, typer.Option("--bodies", help="The whole bodies, as text.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object with all properties for each message.")
    ] = False,
    *,
    place: Place,
) -> int:
    """Follow a queue: print messages as they arrive, in that order; they stay in the queue.

    Ctrl-C ends it. It goes on when the service was started anew.
    """
    if bodies and as_json:
        raise WrongUsageError("--bodies and --json exclude each other", "give one of them")
    show = print_messages_as_json if as_json else print_bodies if bodies else _print_lines
    with service(place) as client:
        follower = Follower(client, queue, from_start=from_start)
        left = count
        for message in follower.messages():
            show([message])
            sys.stdout.flush()
            left = None if left is None else left - 1
            if left == 0:
                break
    return 0


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    kind: str
    number: str  # empty: it is about no message
    data: Json


class Follower:
    """The messages of one queue in the order of their arrival, across broken lines."""

    def __init__(self, client: ControlClient, queue: str, *, from_start: bool) -> None:
        self._client = client
        self._path = f"/queues/{quote(queue, safe='')}/messages"
        self._queue = str(client.queue(queue)["name"])  # an error if there is none
        self._catches_up = from_start
        self._since = ""  # the time of the last event: what came later was not printed
        self._run = ""
        self._number = ""
        self._printed: OrderedDict[str, None] = OrderedDict()

    def messages(self) -> Iterator[Json]:
        """Without an end."""
        from falconmq.client import UnreachableError  # noqa: PLC0415

        is_first = True
        while True:
            try:
                with self._events() as events:
                    for event in events:
                        is_first = False
                        yield from self._told(event)
            except UnreachableError:
                if is_first:
                    raise
            time.sleep(_RETRY_SECONDS)  # the service stops, or is being started anew

    @contextlib.contextmanager
    def _events(self) -> Iterator[Iterable[Event]]:
        query = {"queue": self._queue, "kind": "ARRIVED"}
        if self._run:
            query |= {"run": self._run, "after": self._number}
        with self._client.stream("GET", f"/events?{urlencode(query)}") as chunks:
            yield parse_events(chunks)

    def _told(self, event: Event) -> Iterator[Json]:
        if event.kind == "start":
            is_restarted = bool(self._run) and event.data["run_id"] != self._run
            if not self._run or is_restarted:
                self._run, self._number = event.data["run_id"], str(event.data["number"])
            if self._catches_up or is_restarted:
                self._catches_up = False
                yield from self._found()
        elif event.kind == "gap":
            yield from self._found()
        elif event.kind == "ARRIVED":
            self._number, self._since = event.number, event.data["time"]
            if event.data["lookup_id"] not in self._printed:
                yield self._remember(self._message(event))

    def _found(self) -> Iterator[Json]:
        """What is in the queue and came after the last event, by the order of arrival."""
        since = self._since[:19]  # to the second: that is what a message remembers
        found = [
            message["lookup_id"]
            for page in browse(self._client, self._queue)
            for message in page
            if (message["arrived_at"] or "")[:19] >= since
            and message["lookup_id"] not in self._printed
        ]
        for lookup_id in sorted(found, key=lambda id: int(id) & _SEQUENCE):
            message = self._look(lookup_id)
            if message is not None:
                yield self._remember(message)

    def _message(self, event: Event) -> Json:
        found = self._look(event.data["lookup_id"])
        return found if found is not None else _gone(event.data)

    def _look(self, lookup_id: str) -> Json | None:
        """The message; None if it is there no more, or somebody holds it."""
        from falconmq.client import ServiceError  # noqa: PLC0415

        try:
            return self._client.request("GET", f"{self._path}/{lookup_id}")
        except ServiceError:
            return None

    def _remember(self, message: Json) -> Json:
        self._printed[message["lookup_id"]] = None
        if len(self._printed) > _REMEMBERED:
            self._printed.popitem(last=False)
        return message


def parse_events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """Server-sent events of a stream; comments, which keep the line alive, are passed over."""
    buffer = b""
    for chunk in chunks:
        buffer += chunk
        *blocks, buffer = buffer.split(b"\n\n")
        for block in blocks:
            fields = dict(
                line.partition(": ")[::2]
                for line in block.decode().splitlines()
                if not line.startswith(":")
            )
            if "data" in fields:
                kind = fields.get("event", "message")
                yield Event(kind, fields.get("id", ""), json.loads(fields["data"]))


def _gone(event: Json) -> Json:
    """What is known of a message that was taken before anybody could look at it."""
    return {
        "id": event["message_id"],
        "lookup_id": event["lookup_id"],
        "arrived_at": event["time"],
        "label": "",
        "text": None,
        "summary": f"{event['size']} bytes, received already",
        "priority": None,
        "gone": True,
    }


def _print_lines(messages: Iterable[Json]) -> None:
    for message in messages:
        label = f"{shortened(printable(message['label']), _WIDTH)}  " if message["label"] else ""
        body = printable(shortened(first_line(message), _WIDTH))
        when = local_time(message["arrived_at"])
        sys.stdout.write(f"{when}  {message['id']}  {label}{body}\n")
