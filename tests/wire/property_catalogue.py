"""What the requirement catalogue says about properties: the expectations of the table tests."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

CATALOGUE = Path(__file__).parents[2] / "conformance"

# VARENUM of MQMQ 2.2.12, spelled here so that the code under test is not its own witness
TYPES = {
    "VT_I2": 0x0002,
    "VT_I4": 0x0003,
    "VT_VARIANT": 0x000C,
    "VT_UI1": 0x0011,
    "VT_UI2": 0x0012,
    "VT_UI4": 0x0013,
    "VT_I8": 0x0014,
    "VT_LPWSTR": 0x001F,
    "VT_BLOB": 0x0041,
    "VT_CLSID": 0x0048,
    "VT_VECTOR": 0x1000,
}


def rows(file: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Id and text of the catalogue rows whose id begins with `prefix`."""
    with (CATALOGUE / file).open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row[0].startswith(prefix):
                yield row[0], row[4]


def requirement(row_id: str) -> str:
    """The text of one row."""
    (text,) = [text for found, text in rows(_file_of(row_id), row_id) if found == row_id]
    return text


def type_number(names: str) -> int:
    """The number of "VT_UI1|VT_VECTOR"."""
    return sum(TYPES[name] for name in names.split("|"))


def numbers_in(text: str) -> list[int]:
    """Every number of a text, decimal or 0x."""
    return [int(number, 0) for number in re.findall(r"\b(?:0x[0-9A-Fa-f]+|[0-9]+)\b", text)]


def _file_of(row_id: str) -> str:
    return {"MQ": "mqmq.tsv", "CN": "mqcn.tsv", "RP": "mqdsrp.tsv"}[row_id[:2]]
