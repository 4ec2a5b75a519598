"""A small reader of Containerfiles: enough to look at what they do."""

from __future__ import annotations

import re
from typing import NamedTuple

_KNOWN = re.compile(
    "ADD|ARG|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|RUN|STOPSIGNAL|USER|VOLUME|"
    "WORKDIR"
)


class Instruction(NamedTuple):
    word: str
    rest: str


def parse(text: str) -> list[Instruction]:
    """The instructions, each on one line; ValueError for a line that is none."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    found = []
    for line in joined.splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            if not _KNOWN.fullmatch(word) or not rest.strip():
                raise ValueError(f"no instruction: {line}")
            found.append(Instruction(word, " ".join(rest.split())))
    return found


def variables(instructions: list[Instruction]) -> dict[str, str]:
    """What ENV sets."""
    found: dict[str, str] = {}
    for word, rest in instructions:
        if word == "ENV":
            found.update(re.findall(r'(\w+)="?([^" ]*)"?', rest))
    return found
