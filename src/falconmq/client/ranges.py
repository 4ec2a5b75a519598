r"""Reading by numbers: ranges of a queue's messages, ranges of the event log, and consumers.

How to think about it. A queue manager numbers messages as they become readable. Whoever remembers
the next number it wants can read a queue in ranges, `[start, stop)`, again and again, without
opening it and without taking anything: that is how Spark reads. A *consumer* is a name under which
the queue manager remembers how far somebody is who does take messages, so that nobody else does.

    with Ranges(ControlClient.connect("http://sales02:8018", token)) as ranges:
        there = ranges.arrivals(r".\private$\orders")
        for batch in ranges.read(r".\private$\orders", there.first, there.next):
            ...

Everything here may be asked twice with the same result. So a queue manager that is away is asked
again until `patience` seconds are over, and a stream of messages that breaks goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from falconmq.client import arrow
from falconmq.client.control import ControlClient
from falconmq.client.patience import Patience
from falconmq.client.pieces import as_file
from falconmq.client.problems import ServiceError
from falconmq.closing import Closing
from falconmq.errors import UnreachableError

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE: Final = 60.0  # seconds that a queue manager may be away
WAIT_MAX: Final = 30.0  # seconds that one request may wait
ARRIVAL: Final = "arrival_number"
NUMBER: Final = "number"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Arrivals:
    """What a queue holds, by arrival numbers."""

    queue: str  # its name, as the queue manager writes it
    manager: str  # GUID of the queue manager
    first: int  # of the oldest message; `next` if there is none
    next: int  # one more than the highest known; 0 if none is known
    count: int
    bytes: int
    counter: int  # the highest number that the queue manager gave to anything


@dataclass(frozen=True)
class Piece:
    """The messages of a range that were there when it was planned."""

    start: int
    stop: int
    count: int
    bytes: int | None  # only if bytes were to be limited: counting them is work


@dataclass(frozen=True)
class Plan(Piece):
    """A range, and how to cut it into parts of about the same size."""

    parts: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A lease on queues: its number proves later that nobody else took over."""

    fence: int
    positions: Mapping[str, int]  # how far the consumer is, by queue


@dataclass(frozen=True)
class LogState:
    """What the event log holds: all numbers from `first` up to `next`."""

    manager: str
    computer: str
    first: int
    next: int
    bytes: int
    is_kept: bool


class Ranges(Closing):
    """A queue manager that is read by numbers. Close it, or use `with`."""

    def __init__(
        self,
        client: ControlClient,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self._patience = patience
        self._clock = clock
        self._pause = pause

    @property
    def shown(self) -> str:
        """The queue manager, in texts for people."""
        return self.client.channel.door.shown

    def close(self) -> None:
        self.client.close()

    def manager_id(self) -> str:
        """GUID of the queue manager."""
        return str(self._keep_trying(self.client.status)["id"]).lower()

    # Queues

    def queue_names(self) -> list[str]:
        """All queues of applications."""
        found = self._keep_trying(self.client.queues)
        return [str(queue["name"]) for queue in found]

    def arrivals(self, queue: str, *, after: int | None = None, wait: float = 0) -> Arrivals:
        """What a queue holds; with `after` it waits until there is a message behind it."""
        query: dict[str, object] = {}
        if after is not None:
            query = {"after": after, "wait": min(wait, WAIT_MAX)}
        answer = self._get(_path(queue, "arrivals", query), wait)
        return Arrivals(
            str(answer["queue"]),
            str(answer["manager"]).lower(),
            int(answer["first"]),
            int(answer["next"]),
            int(answer["count"]),
            int(answer["bytes"]),
            int(answer["counter"]),
        )

    def plan(
        self,
        queue: str,
        start: int,
        stop: int | None = None,
        *,
        messages: int | None = None,
        bytes: int | None = None,  # noqa: A002 - the word of the API
        parts: int = 1,
    ) -> Plan:
        """What a range holds now; with limits, its beginning that keeps them."""
        limits = {"to": stop, "messages": messages, "bytes": bytes}
        given = {name: value for name, value in limits.items() if value is not None}
        answer = self._get(_path(queue, "arrivals/plan", {"from": start, **given, "parts": parts}))
        whole = _piece(answer)
        return Plan(
            whole.start, whole.stop, whole.count, whole.bytes, tuple(map(_piece, answer["parts"]))
        )

    def read(
        self, queue: str, start: int, stop: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The messages of a range that are still there, as they come, in order of arrival."""
        asked = None if columns is None else _with(columns, ARRIVAL)

        def path(position: int) -> str:
            query: dict[str, object] = {"from_arrival": position, "to_arrival": stop}
            if asked is not None:
                query["columns"] = ",".join(asked)
            return _path(queue, "messages", query)

        return self._resumed(path, ARRIVAL, start, stop, columns)

    # Consumers

    def claim(self, consumer: str, queues: Sequence[str], seconds: float) -> Claim:
        """Take the queues for a consumer; whoever had its name before is fenced off."""
        body = {"queues": list(queues), "seconds": seconds}
        answer = self._post(f"/consumers/{_quoted(consumer)}/claim", body)
        positions = {name: int(state["next"]) for name, state in answer["queues"].items()}
        return Claim(int(answer["fence"]), positions)

    def acknowledge(
        self, consumer: str, fence: int, positions: Mapping[str, int], seconds: float
    ) -> int:
        """Remove everything below these numbers, durably, and renew the lease; how many left."""
        body = {"fence": fence, "seconds": seconds, "queues": dict(positions)}
        return int(self._post(f"/consumers/{_quoted(consumer)}/acknowledge", body)["removed"])

    def renew(self, consumer: str, fence: int, seconds: float) -> None:
        """Keep the lease; asked once, for whoever renews does it again and again."""
        body = {"fence": fence, "seconds": seconds}
        self.client.request("POST", f"/consumers/{_quoted(consumer)}/renew", body)

    def release(self, consumer: str, fence: int) -> None:
        """Let others have the queues; asked once, for a lease ends by itself too."""
        self.client.request("POST", f"/consumers/{_quoted(consumer)}/release", {"fence": fence})

    # The event log

    def log_state(self, *, after: int | None = None, wait: float = 0) -> LogState:
        """What the event log holds; with `after` it waits until there is an event behind it."""
        query = "" if after is None else "?" + urlencode({"after": after, "wait": wait})
        answer = self._get(f"/event-log{query}", wait)
        return LogState(
            str(answer["manager"]).lower(),
            str(answer["computer"]),
            int(answer["first"]),
            int(answer["next"]),
            int(answer["bytes"]),
            bool(answer["is_kept"]),
        )

    def log_number(self, number: int) -> int:
        """The first event at or above a number; there has to be one."""
        query = urlencode({"from": number, "limit": 1})
        return int(self._get(f"/event-log/entries?{query}")["entries"][0]["number"])

    def read_log(
        self,
        start: int,
        stop: int,
        columns: Sequence[str] | None = None,
        *,
        packets: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The events of a range, as they come."""

        def path(position: int) -> str:
            query = {"from": position, "to": stop, "packets": str(packets).lower()}
            return f"/event-log/entries?{urlencode(query)}"

        return self._resumed(path, NUMBER, start, stop, columns)

    # How it is asked

    def _get(self, path: str, wait: float = 0) -> dict[str, Any]:
        return self._keep_trying(lambda: self.client.request("GET", path, timeout=wait))

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._keep_trying(lambda: self.client.request("POST", path, body))

    def _keep_trying(self, ask: Callable[[], _T]) -> _T:
        patience = Patience(self._patience, self._clock, self._pause)
        while True:
            try:
                return ask()
            except (UnreachableError, ServiceError) as error:
                patience.lose(error)

    def _resumed(
        self,
        path: Callable[[int], str],
        numbers: str,
        start: int,
        stop: int,
        columns: Sequence[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        """Batches with numbers that grow; after a broken line it goes on behind the last one."""
        position, patience = start, Patience(self._patience, self._clock, self._pause)
        while position < stop:
            try:
                for batch in self._batches(path(position)):
                    if batch.num_rows:
                        position = batch.column(numbers)[-1].as_py() + 1
                        patience = Patience(self._patience, self._clock, self._pause)
                    yield batch if columns is None else batch.select(list(columns))
                return
            except (UnreachableError, ServiceError) as error:
                patience.lose(error)

    def _batches(self, path: str) -> Iterator[pa.RecordBatch]:
        pyarrow = arrow.load()
        headers = {"Accept": arrow.MEDIA_TYPE}
        with self.client.stream("GET", path, headers=headers) as pieces:
            try:
                yield from pyarrow.ipc.open_stream(as_file(pieces))
            except pyarrow.ArrowException as error:
                raise self.client.channel.door.no_answer(error) from error


def _piece(answer: Mapping[str, Any]) -> Piece:
    return Piece(int(answer["from"]), int(answer["to"]), int(answer["count"]), answer["bytes"])


def _with(columns: Sequence[str], name: str) -> list[str]:
    return [*columns] if name in columns else [*columns, name]


def _path(queue: str, what: str, query: Mapping[str, object]) -> str:
    path = f"/queues/{_quoted(queue)}/{what}"
    return f"{path}?{urlencode(query)}" if query else path


def _quoted(name: str) -> str:
    return quote(name, safe="")
