"""Why a change of the directory is not here: from facts to causes, nothing has to happen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.service.why import Explanation, Severity
from falconmq.service.why.replication_facts import PartitionFacts, ReplicationFacts, Spot
from falconmq.service.why.replication_judging import judge_replication
from tests.directory.enterprises import guid
from tests.service.why.situations import codes

NOW = 1_000_000.0
HOUR = 3600.0
PARIS = PartitionFacts(
    name="Paris",
    authority="PSC1",
    source="PSC1",
    is_own=False,
    last=12,
    told_last=12,
    pending=0,
    state="NORMAL",
    asked_seconds=None,
    asked_times=0,
    heard_seconds=5.0,
)
BERLIN = replace(PARIS, name="Berlin", authority="PEC0", source="PEC0", is_own=True)
SPOT = Spot("queue", guid("a queue"), guid("Paris"), 9, is_deleted=False)


def judged(*partitions: PartitionFacts, spot: Spot | None = None, **more: object) -> Explanation:
    facts = ReplicationFacts(
        "orders", NOW, "BSC11", "bsc", True, 10 * HOUR, spot, partitions or (PARIS,)
    )
    return judge_replication(replace(facts, **more))  # type: ignore[arg-type]  # any of its fields


@pytest.mark.parametrize(
    ("changed", "code", "severity", "words"),
    [
        ({"told_last": 15}, "behind", Severity.WARNING, "up to 12, and has heard of 15"),
        (
            {"told_last": 15, "pending": 2, "asked_seconds": 5.0},
            "behind",
            Severity.WARNING,
            "2 came before others that are missing; PSC1 was asked 5 s ago",
        ),
        ({"told_last": 15, "asked_seconds": 300.0}, "behind", Severity.ERROR, "asked 5 min ago"),
        (
            {"asked_seconds": 300.0, "asked_times": 5},
            "unanswered",
            Severity.ERROR,
            "PSC1 was asked 5 times in 5 min for the changes of site Paris, and has not answered",
        ),
        ({"state": "SYNC0"}, "full-sync", Severity.WARNING, "the objects are on their way"),
        (
            {"state": "STARTSYNC0", "asked_seconds": HOUR},
            "full-sync",
            Severity.ERROR,
            "fetches all of it anew from PSC1",
        ),
        ({"source": "", "authority": ""}, "no-authority", Severity.ERROR, "no server decides"),
        ({"heard_seconds": 2 * HOUR}, "silent", Severity.WARNING, "of PSC1 for 2 h"),
        ({"heard_seconds": None}, "silent", Severity.WARNING, "of PSC1 for 10 h"),
    ],
)
def test_what_is_wrong_with_a_partition(
    changed: dict[str, object], code: str, severity: Severity, words: str
) -> None:
    found = judged(replace(PARIS, **changed), spot=SPOT)  # type: ignore[arg-type]
    assert codes(found) == [code, "older"]
    assert found.severity is severity
    assert words in found.causes[0].text
    assert found.summary.startswith(
        "The queue is here as it was with change 9 of site Paris, of 12"
    )
    assert found.hints


def test_who_is_asked_and_cannot_be_reached_is_pinged() -> None:
    asked = replace(PARIS, source="PSC9", asked_seconds=600.0, asked_times=9)
    found = judged(asked)
    assert codes(found) == ["unanswered", "not-here"]
    assert found.hints == [
        r"can it be reached? falconmq ping PSC9; falconmq why 'DIRECT=OS:PSC9\private$\mqis_queue$'"
    ]
    assert found.causes[0].since == NOW - 600.0
    assert "asks PSC9" in found.facts[-1].value


def test_all_is_well_and_the_object_is_here_or_unknown() -> None:
    found = judged(replace(PARIS, asked_seconds=3.0, asked_times=1), spot=SPOT)
    assert codes(found) == ["in-step"]
    assert "all 12 changes that it has heard of" in found.summary
    assert "on PSC1: falconmq directory replication why 'orders'" in found.hints[0]
    unknown = judged()
    assert codes(unknown) == ["unknown"]
    assert unknown.severity is Severity.WARNING
    assert "on PSC1:" in unknown.hints[0]
    made_by_nobody = judged(BERLIN, to_send={"PSC1": 3})
    assert codes(made_by_nobody) == ["never-made"]
    assert "which decides about site Berlin: never made, or deleted" in made_by_nobody.summary
    deleted = judged(spot=SPOT._replace(is_deleted=True))
    assert codes(deleted) == ["deleted"]
    assert deleted.severity is Severity.INFO


def test_who_decides_says_what_it_has_not_sent() -> None:
    found = judged(BERLIN, spot=SPOT, to_send={"PSC1": 3, "BSC01": 0})
    assert codes(found) == ["to-send", "decided-here"]
    assert "3 changes wait to be sent to PSC1" in found.summary
    assert found.severity is Severity.INFO


@pytest.mark.parametrize(("seconds", "severity"), [(5, Severity.WARNING), (500, Severity.ERROR)])
def test_before_the_first_copy(seconds: int, severity: Severity) -> None:
    found = judged(is_ready=False, running_seconds=float(seconds))
    assert codes(found)[0] == "first-copy"
    assert found.severity is severity


def test_the_worst_comes_first() -> None:
    behind = replace(PARIS, told_last=15)
    lost = replace(PARIS, name="Rome", asked_seconds=300.0, asked_times=5)
    found = judged(behind, lost)
    assert codes(found) == ["unanswered", "behind", "not-here"]
    assert "site Rome" in found.summary


def test_among_many_partitions_one_without_a_server_is_no_reason() -> None:
    found = judged(PARIS, replace(PARIS, name="Rome", source="", authority=""))
    assert codes(found) == ["unknown"]
