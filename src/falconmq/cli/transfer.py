"""Messages in files: what `falconmq export` writes and `falconmq import` reads.

A file of JSON lines has one message a line, with the names of the HTTP API, as `falconmq receive
--json` prints them. A Parquet file has one message a row (`falconmq.client.arrow`). Bodies are kept
as their bytes with their type, so nothing is lost on the way.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from falconmq.cli.problems import CommandError, WrongUsageError

if TYPE_CHECKING:
    from falconmq.message import Message

ROWS: Final = 1000  # of a Parquet file that are in memory at once
STREAM: Final = Path("-")
ID: Final = "message_id"  # the column with the id

# What a message says about its life, not about itself: the next queue manager knows better.
_HISTORY: Final = frozenset(
    {
        "id",
        "lookup_id",
        "summary",
        "body_size",
        "destination",
        "destinations",
        "soap_envelope",
        "soap_compound_message",
        "authentication_level",
        "sender",
        "sent_at",
        "arrived_at",
        "source_queue_manager",
        "destination_queue_manager",
        "hop_count",
        "abort_count",
        "move_count",
        "transaction",
        "transaction_status_queue",
    }
)

Json = dict[str, Any]


class FileFormat(StrEnum):
    """How messages are written."""

    JSONL = "jsonl"
    PARQUET = "parquet"


FormatOption = Annotated[
    FileFormat | None,
    typer.Option(
        "--format",
        help="jsonl or parquet; as the name of the file ends if left out.",
        metavar="FORMAT",
        show_default=False,
    ),
]


def format_of(file: Path, given: FileFormat | None) -> FileFormat:
    """What was asked for, or what the name says."""
    if given is not None:
        chosen = given
    elif file == STREAM or file.suffix.lower() in (".jsonl", ".ndjson"):
        chosen = FileFormat.JSONL
    elif file.suffix.lower() == ".parquet":
        chosen = FileFormat.PARQUET
    else:
        hint = "name it .jsonl or .parquet, or say --format"
        raise WrongUsageError(f"what is in {file}?", hint)
    if chosen is FileFormat.PARQUET:
        if file == STREAM:
            raise WrongUsageError("Parquet needs a file", "name one, or use --format jsonl")
        _require_arrow()
    return chosen


def as_sent(message: Json) -> Json:
    """A message of a file as the service takes it: every property but its history."""
    sent = {
        name: value
        for name, value in message.items()
        if name not in _HISTORY and value is not None and value != []
    }
    if "body" in message:
        sent.pop("text", None)  # the same again, for people
    if "delivery" in sent:
        sent["recoverable"] = sent.pop("delivery") == "RECOVERABLE"
    return sent


def read_lines(lines: Iterable[bytes], name: str) -> Iterator[Json]:
    """The messages of JSON lines; CommandError names the line that is none. Empty ones count."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except ValueError as error:
            raise CommandError(f"{name}, line {number}: no JSON: {error}") from error
        if not isinstance(message, dict):
            raise CommandError(f"{name}, line {number}: no message, but {type(message).__name__}")
        yield message


def read_parquet(file: Path) -> Iterator[Json]:
    """The messages of a Parquet file, as JSON lines have them."""
    import pyarrow as pa  # noqa: PLC0415 - optional
    import pyarrow.parquet as pq  # noqa: PLC0415

    from falconmq.client.arrow import table_to_messages  # noqa: PLC0415
    from falconmq.client.json_messages import to_json  # noqa: PLC0415

    first = 1
    try:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(ROWS):
                ids = batch.column(ID).to_pylist() if ID in batch.schema.names else []
                messages = table_to_messages(batch, first)
                for message, id in zip_longest(messages, ids):
                    yield {"id": id, **to_json(message)}
                first += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"cannot read {file}: {error}") from error


def write_parquet(source: Path, target: Path, queue: str) -> None:
    """Make a Parquet file of JSON lines."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - optional

    from falconmq.client.arrow import messages_to_table, schema  # noqa: PLC0415

    with source.open("rb") as lines, pq.ParquetWriter(target, schema()) as writer:
        messages = read_lines(lines, str(source))
        while rows := [as_message(line) for line in islice(messages, ROWS)]:
            writer.write_table(messages_to_table(rows, queue))


def as_message(line: Json) -> Message:
    """A message of a file with its history, as whoever received it had it."""
    from falconmq.message import AuthenticationLevel, MessageId  # noqa: PLC0415
    from falconmq.service.requests.messages import from_json  # noqa: PLC0415
    from falconmq.service.schemas import MessageIn  # noqa: PLC0415

    message = from_json(MessageIn.model_validate(as_sent(line)))
    if line.get("id"):
        message.id = MessageId.parse(line["id"])
    if line.get("lookup_id"):
        message.lookup_id = int(line["lookup_id"])
    message.sent_time = _seconds(line.get("sent_at"))
    message.arrived_time = _seconds(line.get("arrived_at"))
    for count in ("hop_count", "abort_count", "move_count"):
        setattr(message, count, line.get(count, 0))
    level = line.get("authentication_level", 0)
    message.authentication_level = AuthenticationLevel[level] if isinstance(level, str) else level
    message.soap_envelope = line.get("soap_envelope")
    message.soap_compound_message = line.get("soap_compound_message")
    _add_names(message, line)
    return message


def _add_names(message: Message, line: Json) -> None:
    """The queues and queue managers that a message was at."""
    from uuid import UUID  # noqa: PLC0415

    from falconmq.message import MessageTransaction  # noqa: PLC0415
    from falconmq.names import SingleFormatName, parse_format_name  # noqa: PLC0415

    def name_of(text: str) -> SingleFormatName:
        return cast("SingleFormatName", parse_format_name(text))

    if line.get("destination"):
        message.destination = name_of(line["destination"])
    message.destinations = tuple(name_of(name) for name in line.get("destinations") or ())
    if line.get("transaction_status_queue"):
        message.transaction_status_queue = name_of(line["transaction_status_queue"])
    if line.get("destination_queue_manager"):
        message.destination_queue_manager = UUID(line["destination_queue_manager"])
    if place := line.get("transaction"):
        connector = place["connector_queue_manager"]
        message.transaction = MessageTransaction(
            **{
                **place,
                "sequence_id": int(place["sequence_id"]),
                "connector_queue_manager": UUID(connector) if connector else None,
            }
        )


def _seconds(moment: str | None) -> int | None:
    from datetime import datetime  # noqa: PLC0415

    return None if not moment else int(datetime.fromisoformat(moment).timestamp())


def sync(file: IO[bytes]) -> None:
    """On the disk, if it is one that has a disk."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in (None, errno.EINVAL, errno.ENOTSUP):  # a pipe, a terminal
            raise


def _require_arrow() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    missing = [package for package in ("pyarrow", "pydantic") if find_spec(package) is None]
    if missing:
        raise CommandError(
            f"Parquet needs {' and '.join(missing)}, which is not installed",
            "pip install 'falconmq[arrow,server]'",
        )
