"""The places of many messages as flat arrays, for whoever looks at all of them at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.spark.grouped import NONE, Texts, numbers
from falconmq.spark.jobs.merging import PLACE

if TYPE_CHECKING:
    from numpy.typing import NDArray

COPIES: Final = re.compile(r";(journal|deadletter|deadxact)$", re.IGNORECASE)
_DEAD: Final = re.compile(r";(deadletter|deadxact)$", re.IGNORECASE)
_GUID: Final = slice(1, 37)  # of `{GUID}\number`


@dataclass
class Flat:
    """Messages, and their places one behind the other: `message` says whose each place is."""

    texts: Texts
    count: int  # of messages
    message: NDArray[np.int64]
    place: dict[str, NDArray[np.int64]]
    is_copy: NDArray[np.bool_]  # a journal, a dead-letter queue: what is read there was read before
    is_dead: NDArray[np.bool_]
    sender: NDArray[np.int64]  # of the messages, from here on
    destination: NDArray[np.int64]
    sent_at: NDArray[np.int64]
    last_at: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    is_told: NDArray[np.bool_]
    told_received: NDArray[np.bool_]
    told_negative: NDArray[np.int64]  # the first such class; -1 if none


def flatten(rows: pa.RecordBatch) -> Flat:
    """Rows of `merging.MERGED`."""
    texts = Texts()
    places = rows.column("places")
    message = pc.list_parent_indices(places).to_numpy().astype(np.int64)
    flat = pc.list_flatten(places)
    place = {field.name: _values(flat.field(field.name), texts) for field in PLACE}
    copies = np.array([bool(COPIES.search(text)) for text in texts.values] + [False])
    dead = np.array([bool(_DEAD.search(text)) for text in texts.values] + [False])
    ids = pc.utf8_slice_codeunits(rows.column("message_id"), _GUID.start, _GUID.stop)
    is_told, received, negative = _told(rows.column("told"), rows.num_rows, texts)
    return Flat(
        texts,
        rows.num_rows,
        message,
        place,
        copies[place["queue"]] | (place["kept_at"] != NONE),
        dead[place["queue"]],
        texts.codes(pc.utf8_lower(ids)),
        texts.codes(rows.column("destination")),
        numbers(rows.column("sent_at")),
        numbers(rows.column("last_at")),
        numbers(rows.column("duplicates")),
        is_told,
        received,
        negative,
    )


def _values(column: Any, texts: Texts) -> NDArray[np.int64]:
    return texts.codes(column) if pa.types.is_string(column.type) else numbers(column)


def _told(told: Any, count: int, texts: Texts) -> tuple[Any, Any, Any]:
    """What answers say; few messages have any."""
    some = np.flatnonzero(pc.list_value_length(told).fill_null(0).to_numpy() > 0)
    received, negative = np.zeros(count, bool), np.full(count, -1, np.int64)
    is_told = np.zeros(count, bool)
    is_told[some] = True
    for row in some.tolist():
        answers = told[row].as_py()
        received[row] = "ACK_RECEIVE" in answers
        bad = next((answer for answer in answers if answer.startswith("NACK")), None)
        negative[row] = texts.code(bad)
    return is_told, received, negative
