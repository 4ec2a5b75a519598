"""The options of `frame.write.format("falconmq")`: one table, and their documentation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from falconmq.client.doors import from_anywhere
from falconmq.client.ingests import PATIENCE_SECONDS, STAGE_SECONDS
from falconmq.client.packets import REQUEST_BYTES
from falconmq.errors import FalconMQError
from falconmq.spark.option_table import DEFAULT_URL, Option, check_names, refuse

FAIL: Final = "fail"
COLLECT: Final = "collect"
KEY_MAX: Final = 200  # characters
_OF_SPARK: Final = ("checkpointLocation", "path", "queryName")  # which hands them on
_REQUEST_BYTES: Final = 8 << 20
_SECONDS_MAX: Final = 3600
_BATCH_MAX: Final = (1 << 63) - 1


def _text(given: str) -> str:
    if not given.strip():
        raise ValueError("it is empty")
    return given.strip()


def _choice(*words: str) -> Callable[[str], str]:
    def read(given: str) -> str:
        word = given.strip().lower()
        if word not in words:
            raise ValueError(f"write one of {', '.join(words)}")
        return word

    return read


def _flag(given: str) -> bool:
    return _choice("true", "false")(given) == "true"


def _number(kind: type[int | float], least: int, most: int) -> Callable[[str], Any]:
    def read(given: str) -> int | float:
        try:
            number = kind(given)
        except ValueError:
            raise ValueError("write a number") from None
        if not least <= number <= most:
            raise ValueError(f"it must be {least} to {most}")
        return number

    return read


SINK_OPTIONS: Final = (
    Option("queue", _text, "", "Where the rows go: a path name or format name. It is needed."),
    Option(
        "url",
        _text,
        f"`FALCONMQ_URL`, else the socket of `FALCONMQ_DATA`, else {DEFAULT_URL}",
        "The queue manager: `http://HOST:8018` or `unix:/path/to/data`.",
    ),
    Option("token", _text, "`FALCONMQ_TOKEN`", "Who sends; it needs the role send."),
    Option("caFile", _text, "", "Certificate of the authority that is trusted, for `https`."),
    Option(
        "key",
        _text,
        "the id of the streaming query; of a batch write, one of its own",
        "Names the writer in the queue manager. A batch write with a key that was used before "
        "sends nothing: it is done. In a stream the id of the query is put behind it.",
    ),
    Option(
        "batch",
        _number(int, 0, _BATCH_MAX),
        "0",
        "Of a batch write with a key: its number. Of each key numbers must grow.",
    ),
    Option(
        "orderBy",
        _text,
        "",
        "Sort the rows of each partition by this column before they are sent; if it is no column "
        "of a message, it is used for that alone. Without it rows go in the order of their "
        "partition.",
    ),
    Option(
        "onReject",
        _choice(FAIL, COLLECT),
        FAIL,
        "What becomes of rows that cannot be messages: `fail` fails the batch; `collect` writes "
        "them to files and sends the others.",
    ),
    Option(
        "rejectPath",
        _text,
        "",
        "With `collect`: the directory for these files, JSON lines with row and reason. All "
        "executors must reach it.",
    ),
    Option(
        "keepIds",
        _flag,
        "false",
        "Messages keep `message_id` and `sent_at` of their rows. It needs the role manage and a "
        "queue of this queue manager.",
    ),
    Option(
        "transactional",
        _flag,
        "false",
        "Of a queue on another computer: whether it is. Of its own queues the manager knows it.",
    ),
    Option(
        "stageSeconds",
        _number(float, 1, _SECONDS_MAX),
        f"{STAGE_SECONDS:.0f}",
        "How long the queue manager keeps rows that wait for the commit of their batch.",
    ),
    Option(
        "timeout",
        _number(float, 0, _SECONDS_MAX),
        f"{PATIENCE_SECONDS:.0f}",
        "Seconds that the queue manager may be away.",
    ),
    Option(
        "requestBytes",
        _number(int, 1 << 16, REQUEST_BYTES),
        str(_REQUEST_BYTES),
        "What one request carries.",
    ),
)
_BY_NAME: Final = {option.name.lower(): option for option in SINK_OPTIONS}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options as values. They hold no connection: they are sent to the executors."""

    url: str
    queue: str
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    key: str | None = None
    batch: int = 0
    order_by: str | None = None
    on_reject: str = FAIL
    reject_path: str | None = None
    keep_ids: bool = False
    transactional: bool = False
    stage_seconds: float = STAGE_SECONDS
    timeout: float = PATIENCE_SECONDS
    request_bytes: int = _REQUEST_BYTES

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SinkOptions:
        """Make values of what Spark hands over; FalconMQError names the option that is wrong."""
        check_names(given, (*(option.name for option in SINK_OPTIONS), *_OF_SPARK))
        values = _values(given)
        if "queue" not in values:
            raise refuse("no queue is named", r"give the option queue, '.\private$\orders' for one")
        options = cls(
            url=from_anywhere(values.get("url") or _default_url()),
            queue=values["queue"],
            token=values.get("token") or os.environ.get("FALCONMQ_TOKEN") or None,
            ca_file=values.get("caFile"),
            key=values.get("key"),
            batch=values.get("batch", 0),
            order_by=values.get("orderBy"),
            on_reject=values.get("onReject", FAIL),
            reject_path=values.get("rejectPath"),
            keep_ids=values.get("keepIds", False),
            transactional=values.get("transactional", False),
            stage_seconds=values.get("stageSeconds", STAGE_SECONDS),
            timeout=values.get("timeout", PATIENCE_SECONDS),
            request_bytes=values.get("requestBytes", _REQUEST_BYTES),
        )
        _check(options, values)
        return options


def _values(given: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in given.items():
        option = _BY_NAME.get(name.lower())
        if option is None:
            continue  # one of Spark's
        try:
            values[option.name] = option.read(text)
        except ValueError as error:
            shown = "" if option.name == "token" else f" {text!r}"
            raise refuse(f"option {option.name}{shown}: {error}") from error
    return values


def _default_url() -> str:
    data = os.environ.get("FALCONMQ_DATA")
    return os.environ.get("FALCONMQ_URL") or (f"unix:{data}" if data else DEFAULT_URL)


def _check(options: SinkOptions, values: Mapping[str, Any]) -> None:
    """What does not go together."""
    if options.on_reject == COLLECT and options.reject_path is None:
        raise refuse("onReject collect needs a place for the rows", "give the option rejectPath")
    if options.on_reject == FAIL and options.reject_path is not None:
        raise refuse("rejectPath is given, but onReject is fail", "set onReject to collect")
    if "batch" in values and options.key is None:
        raise refuse("batch is given without key", "the number of a batch is one of its key")
    if options.key is not None:
        check_key(options.key)


def check_key(key: str) -> str:
    """The key, if the queue manager takes it."""
    if len(key) > KEY_MAX:
        raise refuse(f"key has {len(key)} characters, {KEY_MAX} are possible", "give a shorter one")
    return key


def overwriting() -> FalconMQError:
    """Why a queue cannot be replaced by rows."""
    return refuse(
        "a queue cannot be overwritten: messages are only added",
        'write with mode("append"), and streams with outputMode("append") or "update"; to empty a '
        "queue first: falconmq queue purge",
    )
