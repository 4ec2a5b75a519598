"""Plain tables and JSON of the commands that talk to the service. They need no library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

_GAP: Final = "  "


def print_json(value: Any, *, as_line: bool = False) -> None:
    """One document, or one line."""
    text = json.dumps(value, indent=None if as_line else 1, ensure_ascii=False)
    sys.stdout.write(text + "\n")


def print_pairs(pairs: Mapping[str, object]) -> None:
    """A word and its value on each line, the values below each other."""
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        sys.stdout.write(f"{name.ljust(width)}{_GAP}{printable(str(value))}".rstrip() + "\n")


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as they need to be; numbers stand to the right."""
    rows = list(rows)
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *texts, strict=True)]
    numeric = [bool(rows) and isinstance(cell, int) for cell in (rows[0] if rows else headings)]
    for line in (headings, *texts):
        cells = [
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, numeric, strict=True)
        ]
        sys.stdout.write(_GAP.join(cells).rstrip() + "\n")


def printable(text: str, *, keep: str = "") -> str:
    """Text that cannot move the cursor or colour the screen: control characters are shown."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def local_time(moment: str | None) -> str:
    """An ISO time of the service, for the reader's own clock."""
    if not moment:
        return ""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size_text(size: int) -> str:
    """`1.2 MB`: three digits are enough."""
    number, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{size} B" if unit == "B" else f"{number:.3g} {unit}"
