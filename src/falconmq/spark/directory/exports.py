r"""Exports of directory replicas: files of JSON lines, at least one for each replica.

How to think about it. The directory of MSMQ 1.0 is cut into partitions: one for the enterprise (its
id is the null GUID) and one for each site (its id is the site's GUID). Only one server, the
partition's *authority*, changes it; it gives each change the next sequence number of the partition,
and the other servers apply the changes in that order (MC-MQDSRP). A deleted object leaves a
tombstone with the number of its deletion, until the authority purges it. So a number says all: a
replica at 41 has every change up to 41 and none behind it.

There are three kinds of lines. `replica` is the computer's name (upper and lower case are the
same), `server` the GUID of its queue manager, `partition` the GUID of the partition, `authority`
the name of its one writer. A `sequence` is a number, or the eight bytes of the protocol as 16
hexadecimal digits. Times are ISO 8601; without a zone they are UTC.

An object as a replica has it, or its tombstone (`deleted`, without attributes):

    {"kind": "object", "replica": "PSC1", "server": "9d3c...", "partition": "0b6e...",
     "authority": "PSC1", "object": "71aa...", "class": "queue", "sequence": "00000000000001A4",
     "changed_at": "2026-11-16T10:02:00Z", "deleted": false,
     "attributes": {"PROPID_Q_PATHNAME": "SALES01\\orders", "PROPID_Q_JOURNAL": 1}}

How far a replica is with a partition (LastSeqNumber, PurgedSeqNumber), once for each of them:

    {"kind": "partition", "replica": "PSC1", "partition": "0b6e...", "authority": "PSC1",
     "sequence": 420, "purged": 12, "exported_at": "2026-11-16T10:05:00Z"}

A line of a replica's replication log, when it applied a change; the authority's own line is the
moment when the change was made:

    {"kind": "change", "replica": "BSC7", "partition": "0b6e...", "sequence": 420,
     "object": "71aa...", "applied_at": "2026-11-16T10:02:11Z"}

Attributes are compared as JSON; names that a line has beyond these are ignored. A line that is none
of these is kept among the rejects, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

SCHEMA: Final = (
    "file string, line bigint, kind string, replica string, server string, partition string, "
    "authority string, object string, class string, sequence bigint, purged bigint, at timestamp, "
    "is_deleted boolean, attributes map<string,string>, reason string, record binary"
)
"""A line that was read, or one with a `reason` that could not be."""

FILES: Final = ("*.jsonl", "*.ndjson")  # of a folder
_BATCH: Final = 5000  # lines
_LINE_BYTES: Final = 4 << 20
_RECORD_BYTES: Final = 64 << 10  # of a damaged line that are kept
_SEQUENCE_MAX: Final = (1 << 63) - 1
_TIMES: Final = {"object": "changed_at", "partition": "exported_at", "change": "applied_at"}


class DamagedLineError(ValueError):
    """A line that is no line of an export; the text says why."""


def parse(line: bytes) -> dict[str, Any]:
    """The columns of a line; DamagedLineError if it is none of the three kinds."""
    if len(line) > _LINE_BYTES:
        raise DamagedLineError(f"longer than {_LINE_BYTES} bytes")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedLineError("no JSON") from error
    if not isinstance(fields, dict):
        raise DamagedLineError("no JSON object")
    kind = fields.get("kind")
    if kind not in _TIMES:
        raise DamagedLineError("kind is none of object, partition, change")
    authority = fields.get("authority")
    row: dict[str, Any] = {
        "kind": kind,
        "replica": _name(fields, "replica"),
        "partition": _guid(fields, "partition"),
        "sequence": _sequence(fields.get("sequence"), "sequence"),
        "at": _time(fields, _TIMES[kind], is_needed=kind == "change"),
        "server": _guid(fields, "server") if fields.get("server") is not None else None,
        "authority": None if authority is None else _name(fields, "authority"),
    }
    if kind == "partition":
        row["purged"] = _sequence(fields.get("purged", 0), "purged")
    elif kind == "object" or fields.get("object") is not None:
        row["object"] = _guid(fields, "object")
    if kind == "object":
        row |= _object(fields)
    return row


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    is_deleted = fields.get("deleted", False)
    attributes = fields.get("attributes", {})
    if not isinstance(is_deleted, bool):
        raise DamagedLineError("deleted is neither true nor false")
    if not isinstance(attributes, dict):
        raise DamagedLineError("attributes is no JSON object")
    texts = {
        name: json.dumps(value, sort_keys=True, ensure_ascii=False)
        for name, value in attributes.items()
    }
    class_ = fields.get("class")
    if not isinstance(class_, str):
        raise DamagedLineError("class is missing")
    return {"class": class_.lower(), "is_deleted": is_deleted, "attributes": texts}


def _name(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DamagedLineError(f"{key} is missing")
    return value.strip().upper()


def _guid(fields: dict[str, Any], key: str) -> str:
    try:
        return str(UUID(fields[key]))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DamagedLineError(f"{key} is no GUID") from error


def _sequence(value: Any, key: str) -> int:
    if isinstance(value, str) and len(value) == 16:
        try:
            value = int(value, 16)
        except ValueError:
            value = None
    if not isinstance(value, int) or isinstance(value, bool):
        raise DamagedLineError(f"{key} is neither a number nor 16 hexadecimal digits")
    if not 0 <= value <= _SEQUENCE_MAX:
        raise DamagedLineError(f"{key} is not in 0..{_SEQUENCE_MAX}")
    return value


def _time(fields: dict[str, Any], key: str, *, is_needed: bool) -> datetime | None:
    value = fields.get(key)
    if value is None and not is_needed:
        return None
    try:
        at = datetime.fromisoformat(value)  # type: ignore[arg-type]  # a TypeError is caught
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise DamagedLineError(f"{key} is no time") from error


def read_rows(file: str) -> Iterator[dict[str, Any]]:
    """All lines of a file; empty ones are none."""
    with Path(file).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row: dict[str, Any] = {"file": file, "line": number}
            try:
                row |= parse(line)
            except DamagedLineError as error:
                row |= {"reason": str(error), "record": line[:_RECORD_BYTES]}
            yield row


def read_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Files in, lines out, as `mapInArrow` has it; runs where the executors are."""
    import pyarrow as pa  # noqa: PLC0415 - optional

    schema = _arrow_schema()
    for batch in batches:
        for file in batch.column(0).to_pylist():
            rows: list[dict[str, Any]] = []
            for row in read_rows(file):
                rows.append(row)
                if len(rows) == _BATCH:
                    yield pa.RecordBatch.from_pylist(rows, schema)
                    rows = []
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema)


def _arrow_schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415

    types = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }
    return pa.schema([(n, types[t]) for n, t in (field.split(" ") for field in SCHEMA.split(", "))])
