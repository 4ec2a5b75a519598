r"""The options of `spark.read.format("falconmq")`: one table, which is also their documentation.

Spark hands options over as texts and without regard to upper and lower case. An option that does
not exist is refused, with the name that was probably meant: a limit that nobody noticed is worse
than an error.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from falconmq.client.ranges import PATIENCE
from falconmq.errors import FalconMQError, MqStatus

DEFAULT_URL: Final = "http://127.0.0.1:8018"
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
MESSAGES, JOURNAL, DEADLETTER, EVENTS = "messages", "journal", "deadletter", "events"
BROWSE, CONSUME = "browse", "consume"
BODY_FORMATS: Final = ("binary", "string", "json", "xml", "auto")


class Option(NamedTuple):
    """An option: its name, what its text means, and what counts if nobody gives it."""

    name: str
    read: Callable[[str], Any]
    default: str  # in words
    description: str
    also: str = ""  # another name for it

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.also) if self.also else (self.name,)


def _text(given: str) -> str:
    return given.strip()


def split_list(given: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in given.split(",") if word.strip())


def _flag(given: str) -> bool:
    word = given.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("write true or false")
    return word == "true"


def _choice(*words: str) -> Callable[[str], str]:
    def read(given: str) -> str:
        word = given.strip().lower()
        if word not in words:
            raise ValueError(f"write one of {', '.join(words)}")
        return word

    return read


def _number(least: int) -> Callable[[str], int]:
    def read(given: str) -> int:
        try:
            number = int(given)
        except ValueError:
            raise ValueError("write a number") from None
        if number < least:
            raise ValueError(f"it must be at least {least}")
        return number

    return read


def _offsets(given: str) -> str | dict[str, Any]:
    if given.strip().lower() in (EARLIEST, LATEST):
        return given.strip().lower()
    try:
        document = json.loads(given)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ValueError(r'write earliest, latest or JSON: {".\\private$\\orders": 4711}')
    return document


def _time(given: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(given) / 1000, UTC)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(given.strip())
    except ValueError:
        raise ValueError("write 2026-11-16T08:00:00Z, or milliseconds since 1970") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


OPTIONS: Final = (
    Option(
        "url",
        split_list,
        f"`FALCONMQ_URL`, else the socket of `FALCONMQ_DATA`, else {DEFAULT_URL}",
        "The queue manager: `http://HOST:8018` or `unix:/path/to/data`. Several, with commas, are "
        "read side by side.",
    ),
    Option(
        "token",
        split_list,
        "`FALCONMQ_TOKEN`",
        "Who asks. One for all queue managers, or one for each, with commas.",
    ),
    Option("caFile", _text, "", "Certificate of the authority that is trusted, for `https`."),
    Option(
        "queue",
        split_list,
        "",
        "What is read: a path name or format name; several with commas.",
        also="queues",
    ),
    Option(
        "queuePattern",
        _text,
        "",
        r"All queues whose path name fits: `.\private$\orders-*`. New ones join a stream.",
    ),
    Option(
        "source",
        _choice(MESSAGES, JOURNAL, DEADLETTER, EVENTS),
        MESSAGES,
        "`messages` of queues; the `journal` of the queues, or without a queue that of the "
        "computer; `deadletter`: both dead-letter queues; `events`: the event log.",
    ),
    Option(
        "mode",
        _choice(BROWSE, CONSUME),
        BROWSE,
        "`browse` leaves messages alone. `consume`, for streams, removes them when Spark has "
        "committed the batch they were in.",
    ),
    Option(
        "consumer",
        _text,
        "",
        "Needed to consume: a name of its own for each query. It shows in the queue manager, and "
        "the same name takes over after a crash.",
    ),
    Option(
        "startingOffsets",
        _offsets,
        EARLIEST,
        "Where a new query begins: `earliest`, `latest`, numbers by queue as JSON, or the offset "
        "of another query.",
    ),
    Option("endingOffsets", _offsets, LATEST, "Where a batch ends, as above; not for streams."),
    Option(
        "startingTimestamp",
        _time,
        "",
        "Begin with what came at this time: ISO 8601, or milliseconds since 1970.",
    ),
    Option("endingTimestamp", _time, "", "End before this time; not for streams."),
    Option("maxMessagesPerTrigger", _number(1), "", "Messages in a batch of a stream, at most."),
    Option(
        "maxBytesPerTrigger",
        _number(1),
        "",
        "Bytes in a batch of a stream, at most; one message that is larger comes alone.",
    ),
    Option("minPartitions", _number(1), "1", "Partitions of a batch, at least."),
    Option("maxMessagesPerPartition", _number(1), "100000", "Messages in a partition, at most."),
    Option(
        "failOnDataLoss",
        _flag,
        "false to browse messages, else true",
        "Fail when messages of a planned batch are gone; else they are counted as `lost` in the "
        "offsets.",
    ),
    Option(
        "columns",
        split_list,
        "all",
        "The columns that are read. A schema of your own does the same.",
    ),
    Option("includeBody", _flag, "true", "With `false` bodies are not read."),
    Option(
        "bodyFormat",
        _choice(*BODY_FORMATS),
        "binary",
        "What `body` is: `binary`; or a text: `string`, the `json` or `xml` document it is, or "
        "`auto` by its type. Null where a body is none.",
        also="body",
    ),
    Option("pollTimeoutMs", _number(0), "500", "How long a stream waits for a message at a time."),
    Option(
        "acknowledgeLag",
        _number(0),
        "0",
        "Batches that removal stays behind Spark's commit: 1 survives a power cut of the driver, "
        "whose checkpoints are not synced.",
    ),
    Option(
        "leaseSeconds",
        _number(1),
        "60",
        "How long the queues stay reserved after the last sign of life of a query that consumes.",
    ),
    Option("timeout", _number(0), f"{PATIENCE:.0f}", "Seconds that a queue manager may be away."),
    Option("packets", _flag, "false", "Of events: read the kept packets, as column `packet`."),
)


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first option that does not exist, with the nearest one that does."""
    names = list(known)
    lower = set(map(str.lower, names))
    for name in given:
        if name.lower() not in lower:
            raise refuse(f"{name} is no option of FalconMQ", nearest(name, names))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint with the name that was probably meant; if none is like it, with all."""
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), names, 1)
    if close:
        return f"did you mean {names[close[0]]}?"
    return f"one of {', '.join(sorted(names.values(), key=str.lower))}"


def refuse(problem: str, hint: str = "") -> FalconMQError:
    return FalconMQError(problem, status=MqStatus.INVALID_PARAMETER, hint=hint)
