"""Lines on standard output: styled text, wrapped to the width of the terminal, or JSON.

Results go to standard output, everything else to stderr.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from rich.console import Console
from rich.text import Text

Part = str | tuple[str, str]
"""Text, or text with a style of rich."""

_GUID: Final = re.compile(r"\b([0-9A-F]{8})(?:-[0-9A-F]{4}){3}-[0-9A-F]{12}\b")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # `main` knows what to do; rich itself would exit with 1


class Screen:
    """Lines of styled text. Without colours they are written plainly, which is fast."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._console = _Console(file=self._stream, highlight=False, markup=False, emoji=False)
        self._has_colour = self._console.color_system is not None
        self.width = max(self._console.width, 60)

    def line(self, *parts: Part) -> None:
        if self._has_colour:
            self._console.print(Text.assemble(*parts), soft_wrap=True)
            return
        text = "".join(part if isinstance(part, str) else part[0] for part in parts)
        self._stream.write(text.rstrip() + "\n")

    def wrapped(
        self, *first: Part, text: str, style: str = "", indent: int = 0, by: str = " "
    ) -> None:
        """`text` behind `first`, continued at column `indent`. It is only broken behind `by`."""
        used = sum(len(part if isinstance(part, str) else part[0]) for part in first)
        pieces = wrap(text, self.width - used, self.width - indent, by)
        self.line(*first, (pieces[0], style))
        for piece in pieces[1:]:
            # a SID or a GUID that is too long for its column moves to the left
            self.line(" " * min(indent, max(self.width - len(piece), 4)), (piece, style))


def wrap(text: str, first_room: int, room: int, by: str = " ") -> list[str]:
    """Pieces of a text that fit the first line and those below it; a long word stands alone."""
    words = text.split(by)
    if by != " ":
        if max(map(len, words)) >= room:
            return wrap(text, first_room, room)
        first_room, room = first_room - 1, room - 1  # for the comma at the end of a line
    pieces = [words[0]] if len(words[0]) <= first_room else ["", words[0]]
    for word in words[1:]:
        limit = first_room if len(pieces) == 1 else room
        if len(pieces[-1]) + len(by) + len(word) <= limit:
            pieces[-1] += by + word
        else:
            pieces[-1] += by.rstrip()
            pieces.append(word)
    return pieces


def short_guids(text: str) -> str:
    """GUIDs cut to their first eight digits, for narrow lines; the tree has them in full."""
    return _GUID.sub(r"\1..", text)


def iso_time(time_ns: int | None) -> str:
    """2023-11-14T22:13:20.003000Z"""
    if time_ns is None:
        return "(no time)"
    seconds, fraction = divmod(time_ns, 10**9)
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction // 1000:06}Z"


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """One document on standard output."""
    out = stream if stream is not None else sys.stdout
    out.write(json.dumps(value, indent=1) + "\n")
