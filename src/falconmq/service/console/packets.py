"""The headers of a message, every field of its packet, as `falconmq decode` shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from falconmq.wire.inspection import inspect, lines
from falconmq.wire.reader import Buffer

_ROWS_MOST: Final = 600
_DEEPEST: Final = 4  # that the style sheet knows


@dataclass(frozen=True, slots=True)
class Row:
    """A field or a structure."""

    depth: int
    name: str
    offset: int
    size: int
    value: str
    meaning: str
    is_structure: bool


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A packet as a table."""

    summary: str
    rows: tuple[Row, ...]
    findings: tuple[str, ...]  # rules that it breaks


def anatomy(data: Buffer) -> Anatomy:
    """Decode a packet for a page; the body is shown elsewhere, here it is one line."""
    inspection = inspect(bytes(data))
    rows: list[Row] = []
    for line in lines(inspection.tree, data):
        if len(rows) >= _ROWS_MOST:
            break
        node, words = line.node, line.annotation
        depth = min(line.depth, _DEEPEST)
        rows.append(
            Row(
                depth, node.name, node.offset, node.size, words.value, words.meaning,
                node.is_structure,
            )
        )  # fmt: skip
    findings = tuple(str(finding) for finding in inspection.findings)
    return Anatomy(inspection.summary, tuple(rows), findings)
