"""What a replay means to send, and how much of it is sent.

The first run of a name writes its messages down, with their chunks, in a table of their own:
`replays/NAME`. From then on the name means these messages and no others, whatever the archive
gains. The queue manager remembers the last chunk under the replay's key, together with its
messages: that is the truth. `state.json` beside the table is a note of it, for `falconmq pipeline
status`.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.jobs.lake_tables import MESSAGES
from falconmq.spark.tables import Lake, TableSpec

FOLDER: Final = "replays"
CHUNK: Final = "chunk"  # columns of the table
POSITION: Final = "position"
SOURCE: Final = "plan"
_STATE: Final = "state.json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class State:
    """How far a replay is."""

    name: str
    to: str  # the queue
    url: str
    total: int
    sent: int = 0
    last_chunk: int = -1
    updated_at: str = ""

    @property
    def is_done(self) -> bool:
        return self.sent >= self.total


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise FalconMQError(
            f"{name!r} is no name for a replay",
            status=MqStatus.INVALID_PARAMETER,
            hint="use letters, digits, dots and hyphens: --name orders-of-monday",
        )


def table_of(name: str) -> TableSpec:
    schema = f"{MESSAGES.schema}, at timestamp, {POSITION} bigint, {CHUNK} bigint"
    return TableSpec(f"{FOLDER}/{name}", schema, (), "The messages of a replay.")


def key_of(name: str) -> str:
    """The name that the queue manager knows."""
    return f"replay:{name}"


def read_states(lake: Lake) -> list[State]:
    """All replays of a lake, by name."""
    files = sorted((lake.path / FOLDER).glob(f"*/{_STATE}"))
    return [state for file in files if (state := _read(file)) is not None]


def read_state(lake: Lake, name: str) -> State | None:
    return _read(lake.path / FOLDER / name / _STATE)


def write_state(lake: Lake, state: State) -> None:
    """All of it or nothing."""
    file = lake.path / FOLDER / state.name / _STATE
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(asdict(state)))
    new.replace(file)


def _read(file: Path) -> State | None:
    try:
        return State(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, OSError) as error:
        raise FalconMQError(
            f"{file} cannot be read: {error}",
            hint="remove it; the queue manager knows how far the replay is",
        ) from error
