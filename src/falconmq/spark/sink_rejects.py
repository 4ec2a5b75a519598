"""Rows that could not be messages, as files: one for each partition of a batch, JSON lines.

    {"row": 17, "column": "label", "reason": "label: ...", "status": "...", "values": {...}}

A file is there when its task has ended, whole. A task that runs again writes the same file again.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from falconmq.errors import FalconMQError, MqStatus
from falconmq.spark.sink_rows import Rejected


class RejectFile:
    """The rejected rows of one task; nothing is written if there are none."""

    def __init__(self, folder: str, key: str, batch: int, partition: int, attempt: str) -> None:
        name = f"batch-{batch:010}-part-{partition:05}.jsonl"
        self._path = Path(folder.removeprefix("file:")) / quote(key, safe="") / name
        self._attempt = attempt
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, rejected: Rejected) -> None:
        error = rejected.error
        line = {
            "row": rejected.row,
            "column": getattr(error, "field", None),
            "reason": rejected.reason,
            "status": error.status.symbol,
            "values": rejected.values,
        }
        self._lines.append(json.dumps(line, default=_plain))

    def close(self) -> None:
        """Write what there is, under its name or not at all."""
        if not self._lines:
            return
        draft = self._path.with_name(f".{self._path.name}.{self._attempt}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text("\n".join(self._lines) + "\n", encoding="utf-8")
            draft.replace(self._path)
        except OSError as error:
            raise FalconMQError(
                f"rejected rows cannot be written to {self._path.parent}: {error.strerror}",
                status=MqStatus.INVALID_PARAMETER,
                hint="rejectPath must be a directory that all executors can write to",
            ) from error


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
