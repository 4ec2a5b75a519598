"""`falconmq receive` and `falconmq peek`."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import Place, QueueArgument
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.tables import local_time, print_json, print_table, printable, shortened

if TYPE_CHECKING:
    from falconmq.client import ControlClient

RECEIVE_EPILOG = """\b
Examples:
  falconmq receive '.\\private$\\orders' --timeout 10
  falconmq receive '.\\private$\\orders' --all --json > orders.jsonl
  falconmq receive '.\\system$;deadletter' --count 5 --table
"""
PEEK_EPILOG = """\b
Examples:
  falconmq peek '.\\private$\\orders'
  falconmq peek '.\\private$\\orders' --all --table
  falconmq peek '.\\private$\\orders;journal' --count 10 --json
"""
PAGE: Final = 100  # messages of one request
LONGEST_WAIT: Final = 3600.0  # seconds of one request; then it is asked again
_COLUMN: Final = 40

Json = dict[str, Any]
Printer = Callable[[list[Json]], None]


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """What `receive` and `peek` have in common."""

    count: Annotated[
        int, typer.Option(help="At most so many messages.", metavar="NUMBER", min=1)
    ] = 1
    timeout: Annotated[
        float, typer.Option(help="Wait so long for a message.", metavar="SECONDS", min=0)
    ] = 0
    wait: Annotated[bool, typer.Option("--wait", help="Wait for a message without a limit.")] = (
        False
    )
    everything: Annotated[bool, typer.Option("--all", help="All messages that are there.")] = False
    lookup_id: Annotated[
        int | None,
        typer.Option(help="This message and no other.", metavar="ID", min=0, show_default=False),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object with all properties for each message.")
    ] = False
    as_table: Annotated[bool, typer.Option("--table", help="One line for each message.")] = False
    raw: Annotated[bool, typer.Option("--raw", help="The bytes of the bodies, nothing else.")] = (
        False
    )

    def wanted(self, queue: str, *, peek: bool) -> Wanted:
        count = None if self.everything else self.count
        return Wanted(queue, peek, count, None if self.wait else self.timeout, self.lookup_id)

    def printer(self) -> Printer:
        return _printer(as_json=self.as_json, as_table=self.as_table, raw=self.raw)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages to read."""

    queue: str
    peek: bool
    count: int | None  # None: all that are there
    timeout: float | None  # None: for ever
    lookup_id: int | None


def receive(
    queue: QueueArgument,
    reading: ReadingOptions,
    place: Place,
) -> int:
    """Take messages out of a queue and print their bodies.

    What was printed is gone from the queue. Ctrl-C while it waits loses nothing. Exit code 1: no
    message came.
    """
    return _read(reading.wanted(queue, peek=False), reading.printer(), place)


def peek(queue: QueueArgument, reading: ReadingOptions, place: Place) -> int:
    """Print messages of a queue; they stay in it. Exit code 1: there is none."""
    return _read(reading.wanted(queue, peek=True), reading.printer(), place)


def _read(wanted: Wanted, show: Printer, place: Place) -> int:
    found = False
    with service(place) as client:
        for page in _pages(client, wanted):
            found = True
            show(page)
            sys.stdout.flush()  # before more is taken out of the queue
    if not found and wanted.count is not None:
        raise _nothing(wanted)
    return 0


def _pages(client: ControlClient, wanted: Wanted) -> Iterator[list[Json]]:
    if wanted.lookup_id is not None:
        id = str(wanted.lookup_id)
        yield client.receive(wanted.queue, peek=wanted.peek, lookup_id=id)
        return
    left, after = wanted.count, None
    while left is None or left > 0:
        size = PAGE if left is None else min(left, PAGE)
        page = _page(client, wanted, size, after)
        if not page:
            return
        yield page
        left = None if left is None else left - len(page)
        after = page[-1]["lookup_id"] if wanted.peek else None


def _page(client: ControlClient, wanted: Wanted, size: int, after: str | None) -> list[Json]:
    """The next messages; a long wait is asked for in parts."""
    left = wanted.timeout
    while True:
        part = LONGEST_WAIT if left is None else min(left, LONGEST_WAIT)
        page = client.receive(wanted.queue, count=size, timeout=part, peek=wanted.peek, after=after)
        left = None if left is None else left - part
        if page or after is not None or (left is not None and left <= 0):
            return page


def _nothing(wanted: Wanted) -> CommandError:
    if wanted.timeout:
        return CommandError(f"no message came to {wanted.queue} within {wanted.timeout:g} seconds")
    return CommandError(
        f"there is no message in {wanted.queue}", "to wait for one: --timeout 10, or --wait"
    )


def _printer(*, as_json: bool, as_table: bool, raw: bool) -> Printer:
    if as_json + as_table + raw > 1:
        raise WrongUsageError("--json, --table and --raw exclude each other", "give one of them")
    if as_json:
        return print_messages_as_json
    if as_table:
        return _print_messages
    return _print_raw if raw else print_bodies


def print_messages_as_json(page: Iterable[Json]) -> None:
    for message in page:
        print_json(message, as_line=True)


def _print_raw(page: Iterable[Json]) -> None:
    sys.stdout.flush()
    for message in page:
        sys.stdout.buffer.write(base64.b64decode(message["body"]))
    sys.stdout.buffer.flush()


def print_bodies(page: Iterable[Json]) -> None:
    on_screen = sys.stdout.isatty()
    for message in page:
        text = message["text"]
        if text is None:
            text = f"<{message['summary']}: see --raw or --json>"
        elif on_screen:
            text = printable(text, keep="\n\t")
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def _print_messages(page: Iterable[Json]) -> None:
    rows = [
        (
            message["lookup_id"],
            local_time(message["arrived_at"]),
            message["priority"],
            len(base64.b64decode(message["body"])),
            _class(message),
            shortened(message["label"], _COLUMN),
            shortened(first_line(message), _COLUMN),
        )
        for message in page
    ]
    print_table(("LOOKUP ID", "ARRIVED", "PRIORITY", "BYTES", "CLASS", "LABEL", "BODY"), rows)


def _class(message: Json) -> str:
    """What an acknowledgement says; nothing for an ordinary message."""
    name = str(message["message_class"])
    return "" if name.lower() == "normal" else name


def first_line(message: Json) -> str:
    text = message["text"]
    if text is None:
        return f"<{message['summary']}>"
    return str(text).strip().partition("\n")[0]
