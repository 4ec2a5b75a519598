"""Replicas of a directory with known differences: the job finds those and no others."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import FalconMQError
from falconmq.spark.directory.exports import DamagedLineError, parse, read_rows
from falconmq.spark.jobs import directory
from falconmq.spark.jobs.running import Progress, tell_nobody
from falconmq.spark.tables import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SITE, ENTERPRISE = str(UUID(int=0xA)), str(UUID(int=0))
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
Json = dict[str, Any]


def guid(number: int) -> str:
    return str(UUID(int=number))


@dataclass
class Replica:
    """A server that applies changes in their order, and notes when."""

    name: str
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)
    lasts: dict[str, int] = field(default_factory=dict)
    log: list[Json] = field(default_factory=list)

    def apply(self, change: Json, at: datetime) -> None:
        partition = change["partition"]
        self.objects[partition, change["object"]] = change
        self.lasts[partition] = change["sequence"]
        line = {name: change[name] for name in ("partition", "sequence", "object")}
        self.log.append({"kind": "change", **line, "applied_at": at.isoformat()})

    def write(self, folder: Path, authority: str) -> Path:
        own = {"replica": self.name, "authority": authority, "server": guid(hash(self.name) & 255)}
        lines = [{"kind": "object", **own, **state} for state in self.objects.values()]
        lines += [
            {"kind": "partition", **own, "partition": partition, "sequence": last, "purged": 0}
            for partition, last in self.lasts.items()
        ]
        lines += [{"replica": self.name, **line} for line in self.log]
        file = folder / f"{self.name}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return file


def change(number: int, object_: int, *, deleted: bool = False, **attributes: object) -> Json:
    made = {"partition": SITE, "object": guid(object_), "class": "queue", "sequence": number}
    made |= {"deleted": deleted, "attributes": {} if deleted else attributes}
    return {**made, "changed_at": (NOON + timedelta(minutes=number)).isoformat()}


def estate(seed: int) -> tuple[list[Replica], set[tuple[str, str, str, str | None, bool]], int]:
    """Three replicas and 60 changes, with one fault of each kind; the truth about them.

    PSC1 is the authority, PSC2 has everything 10 s later, BSC7 a minute later, but for the last.
    """
    chance = random.Random(seed)
    replicas = [Replica("PSC1"), Replica("psc2"), Replica("BSC7")]
    cut = 60 - chance.randrange(1, 8)
    for number in range(1, 61):
        object_ = number if number <= 20 else chance.randrange(5, 20)
        # Nobody changes the first four: faults are put there.
        is_deleted = number > 20 and chance.random() < 0.2
        made = change(number, object_, deleted=is_deleted, LABEL=f"v{number}", QUOTA=number % 3)
        for replica, delay in zip(replicas, (0, 10, 60), strict=True):
            if number <= cut or replica.name != "BSC7":
                # The clock of BSC7 was wrong at first: it had a change before it was made.
                seconds = -2 if (number, replica.name) == (1, "BSC7") else delay
                replica.apply(made, NOON + timedelta(minutes=number, seconds=seconds))
    psc1, psc2, bsc7 = replicas
    truth = _behind(psc1, bsc7)
    psc2.objects[SITE, guid(1)] = change(1, 1, LABEL="other", QUOTA=1)
    truth.add(("PSC2", guid(1), "differs", "LABEL", False))
    del psc2.objects[SITE, guid(2)]
    truth.add(("PSC2", guid(2), "missing", None, False))
    psc2.objects[SITE, guid(99)] = change(7, 99, LABEL="nobody knows me")
    truth.add(("PSC2", guid(99), "extra", None, False))
    psc1.objects[SITE, guid(3)] = change(40, 3, deleted=True)
    truth |= {("PSC2", guid(3), "undeleted", None, False)}
    truth |= {("BSC7", guid(3), "undeleted", None, cut < 40)}
    bsc7.objects[SITE, guid(4)] = change(70, 4, LABEL="v4", QUOTA=1)
    truth |= {("BSC7", guid(4), "ahead", None, False)}
    return replicas, truth, cut


def _behind(authority: Replica, other: Replica) -> set[tuple[str, str, str, str | None, bool]]:
    """What a replica that stopped early must lack."""
    truth: set[tuple[str, str, str, str | None, bool]] = set()
    for key, there in authority.objects.items():
        here = other.objects[key]
        if here["sequence"] == there["sequence"]:
            continue
        if there["deleted"]:
            if not here["deleted"]:
                truth.add((other.name, key[1], "undeleted", None, True))
        elif here["deleted"]:
            truth.add((other.name, key[1], "deleted", None, True))
        else:
            for name in ("LABEL", "QUOTA"):
                if here["attributes"][name] != there["attributes"][name]:
                    truth.add((other.name, key[1], "stale", name, True))
    return truth


DAMAGED = b'{"kind": "object"\n\n\xff\xfe\n[]\n{"kind": "change"}\n'


def test_exactly_the_known_differences_are_found(spark: SparkSession, tmp_path: Path) -> None:
    replicas, truth, cut = estate(seed=7)
    for replica in replicas:
        replica.write(tmp_path, "PSC1")
    (tmp_path / "damaged.jsonl").write_bytes(DAMAGED)
    lake = Lake(tmp_path / "lake")
    told: list[Progress] = []
    options = directory.Options((tmp_path,))
    summary = directory.run(spark, lake, options, told.append)
    lines = [file.read_bytes().splitlines() for file in tmp_path.glob("*.jsonl")]
    assert summary.read == sum(len([line for line in of_file if line]) for of_file in lines)
    assert told[-1].done == told[-1].total
    _check_differences(spark, lake, truth)
    _check_convergence(spark, lake, cut)
    assert summary.rejected == 4
    rejected = lake.table(directory.REJECTS).read(spark).collect()
    assert {(row["place"], row["reason"]) for row in rejected} == {
        ("line 1", "no JSON"),
        ("line 3", "no JSON"),
        ("line 4", "no JSON object"),
        ("line 5", "replica is missing"),
    }

    # when nothing changed, nothing is done
    assert directory.run(spark, lake, options, tell_nobody).facts["unchanged"] is True
    # when all are equal and whole, the tables are replaced
    (tmp_path / "damaged.jsonl").unlink()
    for replica in replicas[1:]:
        replica.objects, replica.lasts = replicas[0].objects, replicas[0].lasts
        replica.write(tmp_path, "PSC1")
    summary = directory.run(spark, lake, options, tell_nobody)
    assert (summary.rejected, lake.table(directory.REJECTS).rows) == (0, 0)
    assert lake.table(directory.DIFFERENCES).rows == 0
    changes = lake.table(directory.CONVERGENCE).read(spark).where(f"sequence > {cut}").collect()
    # BSC7 got the last ones without a line in its log
    assert {(row["unlogged"], len(row["missing"]), row["seconds"]) for row in changes} == {
        (1, 0, 10.0)
    }


Truth = set[tuple[str, str, str, str | None, bool]]


def _check_differences(spark: SparkSession, lake: Lake, truth: Truth) -> None:
    found = lake.table(directory.DIFFERENCES).read(spark).collect()
    columns = ("replica", "object", "kind", "attribute", "is_expected")
    assert {tuple(row[name] for name in columns) for row in found} == truth
    assert len(found) == len(truth)
    differs = next(row for row in found if row["kind"] == "differs")
    values = (differs["value"], differs["reference_value"], differs["reference"])
    assert values == ('"other"', '"v1"', "PSC1")


def _check_convergence(spark: SparkSession, lake: Lake, cut: int) -> None:
    places = {row["replica"]: row for row in lake.table(directory.REPLICAS).read(spark).collect()}
    lasts = {name: row["last"] for name, row in places.items()}
    assert lasts == {"PSC1": 60, "PSC2": 60, "BSC7": cut}
    assert (places["BSC7"]["behind"], places["PSC2"]["behind"]) == (60 - cut, 0)
    assert places["PSC2"]["p95_seconds"] == 10
    assert places["BSC7"]["max_seconds"] == 60
    assert (places["BSC7"]["times_last"], places["PSC2"]["times_last"]) == (cut - 1, 1)
    assert (places["PSC2"]["differences"], places["PSC2"]["unexpected"]) == (4, 4)
    changes = lake.table(directory.CONVERGENCE).read(spark).orderBy("sequence").collect()
    assert [row["sequence"] for row in changes] == list(range(1, 61))
    # the first one at the time of the authority, although the clock of BSC7 is behind
    assert {row["seconds"] for row in changes[1:cut]} == {60.0}
    assert changes[0]["seconds"] == 10.0
    assert {tuple(row["missing"]) for row in changes[cut:]} == {("BSC7",)}
    assert {row["seconds"] for row in changes[cut:]} == {None}


def test_a_dry_run_lists_the_files_and_reads_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    lake = Lake(tmp_path / "lake")
    spark: Any = None  # it is not needed
    options = directory.Options((tmp_path,), dry_run=True)
    summary = directory.run(spark, lake, options, tell_nobody)
    assert summary.facts["names"] == [str(tmp_path / "a.jsonl")]
    assert not lake.path.exists()


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FalconMQError, match="there is no"):
        directory.find_files((tmp_path / "none.jsonl",))
    with pytest.raises(FalconMQError, match="no exports in"):
        directory.find_files((tmp_path,))


GOOD = {
    "kind": "object",
    "replica": "psc1",
    "partition": SITE,
    "object": guid(5),
    "class": "Queue",
    "sequence": "00000000000001A4",
    "changed_at": "2026-11-16T10:02:00",
    "attributes": {"B": [2, 1], "A": {"y": 1, "x": "ä"}},
    "vendor": "ignored",
}


def test_a_line_becomes_columns() -> None:
    row = parse(json.dumps(GOOD).encode())
    assert row["replica"] == "PSC1"
    assert row["class"] == "queue"
    assert row["sequence"] == 0x1A4
    assert row["at"] == datetime(2026, 11, 16, 10, 2, tzinfo=UTC)
    assert row["attributes"] == {"B": "[2, 1]", "A": '{"x": "ä", "y": 1}'}
    assert row["is_deleted"] is False


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"kind": "thing"}, "kind is none of object, partition, change"),
        ({"replica": " "}, "replica is missing"),
        ({"partition": "x"}, "partition is no GUID"),
        ({"object": None}, "object is no GUID"),
        ({"sequence": "1A4"}, "sequence is neither a number nor 16 hexadecimal digits"),
        ({"sequence": True}, "sequence is neither a number nor 16 hexadecimal digits"),
        ({"sequence": -1}, "sequence is not in 0..9223372036854775807"),
        ({"sequence": "F" * 16}, "sequence is not in 0..9223372036854775807"),
        ({"changed_at": "noon"}, "changed_at is no time"),
        ({"deleted": 1}, "deleted is neither true nor false"),
        ({"attributes": []}, "attributes is no JSON object"),
        ({"class": None}, "class is missing"),
        ({"kind": "change"}, "applied_at is no time"),
        ({"kind": "partition", "purged": "x"}, "purged is neither a number nor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_lines_say_why(wrong: Json, reason: str) -> None:
    with pytest.raises(DamagedLineError, match=reason.replace(".", r"\.")):
        parse(json.dumps({**GOOD, **wrong}).encode())


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_row_or_a_reject(data: bytes, tmp_path_factory: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_bytes(data)
    for row in read_rows(str(file)):
        assert ("reason" in row) != ("replica" in row)
