"""Reading the requirement catalogue: one row, one testable statement with an id.

`conformance/*.tsv` hold id, section, level (MUST, SHOULD, MAY, FACT), role and requirement.
`conformance/gaps.tsv` holds id and reason for the rows FalconMQ leaves out on purpose,
`conformance/owners.tsv` id and owner for open rows of a finished part that another part proves.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
DOCUMENTS: Final = {
    "mqmq": "MS-MQMQ, data structures",
    "mqqb": "MS-MQQB, binary protocol",
    "mqdmpr": "MS-MQDMPR, data model and processing rules",
    "mqcn": "MS-MQCN, change notification",
    "mqdsrp": "MC-MQDSRP, directory replication",
}


@dataclass(frozen=True)
class Requirement:
    id: str
    document: str  # key of DOCUMENTS
    section: str
    level: str
    role: str
    text: str


def load_catalogue(folder: Path = FOLDER) -> dict[str, Requirement]:
    """All rows by id, in the order of the documents."""
    rows: dict[str, Requirement] = {}
    for document in DOCUMENTS:
        for line in _read(folder / f"{document}.tsv"):
            row = Requirement(
                line["id"],
                document,
                line["section"],
                line["level"],
                line["role"],
                line["requirement"],
            )
            if row.id in rows:
                raise ValueError(f"{document}.tsv: id {row.id} stands twice")
            rows[row.id] = row
    return rows


def load_gaps(folder: Path = FOLDER) -> dict[str, str]:
    """Reason by id of every row that is left out on purpose."""
    gaps: dict[str, str] = {}
    for line in _read(folder / "gaps.tsv"):
        if line["id"] in gaps:
            raise ValueError(f"gaps.tsv: id {line['id']} stands twice")
        if not line["reason"]:
            raise ValueError(f"gaps.tsv: {line['id']} has no reason")
        gaps[line["id"]] = line["reason"]
    return gaps


def load_owners(folder: Path = FOLDER) -> dict[str, str]:
    """The part of FalconMQ to come that will prove an open row, by id."""
    return {line["id"]: line["owner"] for line in _read(folder / "owners.tsv")}


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
