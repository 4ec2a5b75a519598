r"""`falconmq events`: what happened to messages, from the log that the store keeps.

Unlike `tail` and `why`, which ask a service what it remembers, this reads what is written down: it
survives restarts, and a directory that nobody serves has it too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import Place, complete_queue
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import local_time, print_json, printable, size_text

if TYPE_CHECKING:
    from falconmq.client import ControlClient

EPILOG = """\b
Examples:
  falconmq events --last 20
  falconmq events --queue '.\\private$\\orders' --kind received --follow
  falconmq events --after 0 --json | jq 'select(.kind == "dead_lettered")'
"""
_WAIT_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 1.0
_KIND_WIDTH: Final = 13  # of the longest kind

Json = dict[str, Any]
IsWanted = Callable[[Json], bool]


def events(
    after: Annotated[
        int | None,
        typer.Option(
            help="All events behind this number; 0: from the first one on.",
            metavar="NUMBER",
            min=0,
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        int, typer.Option(help="Without --after: how many of the newest.", metavar="NUMBER", min=0)
    ] = 100,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Only these, such as arrived,received.",
            metavar="KIND",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            help="Only of this queue.",
            metavar="QUEUE",
            show_default=False,
            autocompletion=complete_queue,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what happens from now on.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object for each event.")
    ] = False,
    *,
    place: Place,
) -> int:
    """List what happened to messages, the oldest first, as it is written in the store.

    --kind and --queue choose among the events that --after or --last name.
    """  # fmt: skip
    is_wanted = _choice(_kinds(kind), _name(queue))
    with service(place) as client:
        state = client.request("GET", "/event-log")
        start = state["first"]
        if after is not None:
            start = start if after == 0 else after + 1
        elif last < state["next"] - start:
            start = state["next"] - last
        log = _followed(client, start) if follow else _entries(client, start, state["next"])
        for entry in log:
            if is_wanted(entry):
                _print(entry, as_json=as_json)
    _say(state)
    return 0


def _entries(client: ControlClient, start: int, stop: int) -> Iterator[Json]:
    while start < stop:
        found = client.request(
            "GET", f"/event-log/entries?{urlencode({'from': start, 'to': stop})}"
        )
        yield from found["entries"]
        start = found["to"]


def _followed(client: ControlClient, start: int) -> Iterator[Json]:
    """Without an end; a service that is started anew goes on where it was."""
    from falconmq.client import UnreachableError  # noqa: PLC0415

    while True:
        try:
            query = urlencode({"after": start, "wait": _WAIT_SECONDS})
            state = client.request("GET", f"/event-log?{query}", timeout=_WAIT_SECONDS)
            for entry in _entries(client, start, state["next"]):
                yield entry
                start = entry["number"] + 1
                sys.stdout.flush()
        except UnreachableError:
            time.sleep(_RETRY_SECONDS)


def _choice(kinds: frozenset[str], queue: str | None) -> IsWanted:
    def is_wanted(entry: Json) -> bool:
        is_there = queue is None or (entry["queue"] or "").casefold() == queue
        return is_there and (not kinds or entry["kind"] in kinds)

    return is_wanted


def _kinds(names: list[str] | None) -> frozenset[str]:
    from falconmq.manager.events import EventKind  # noqa: PLC0415
    from falconmq.names.syntax import did_you_mean  # noqa: PLC0415

    known = [kind.name for kind in EventKind]
    words = [word for name in names or () for word in name.upper().replace("-", "_").split(",")]
    for word in words:
        if word not in known:
            hint = did_you_mean(word, known).lower()
            raise WrongUsageError(f"--kind {word.lower()}: there is no such event", hint)
    return frozenset(word.lower() for word in words)


def _name(queue: str | None) -> str | None:
    """A queue as the log calls it; it need not be there any more."""
    if queue is None:
        return None
    from falconmq.errors import NameSyntaxError  # noqa: PLC0415
    from falconmq.names import PathName, parse_queue_name  # noqa: PLC0415

    try:
        name = parse_queue_name(queue)
    except NameSyntaxError as error:
        raise WrongUsageError(str(error), error.hint) from error
    return str(name.with_computer(".") if isinstance(name, PathName) else name).casefold()


def _print(entry: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(entry, as_line=True)
        return
    about = [entry["queue"], entry["message_id"], entry["reason"], entry["detail"]]
    words = "  ".join(str(word) for word in about if word)
    line = (
        f"{entry['number']:>8}  {local_time(entry['at'])}  {entry['kind']:<{_KIND_WIDTH}}  {words}"
    )
    sys.stdout.write(printable(line.rstrip()) + "\n")


def _say(state: Json) -> None:
    """How much there is, where it does not disturb what is printed."""
    if state["first"] == state["next"]:
        text = "no events are kept"
    else:
        size = size_text(state["bytes"])
        text = f"events {state['first']} to {state['next'] - 1} are kept, {size}"
    if not state["is_kept"]:
        text += "; nothing is added: keep = true in [events] changes that"
    sys.stderr.write(f"{text}\n")
