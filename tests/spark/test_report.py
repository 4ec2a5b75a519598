"""The report: words, plots, the page, and what it asks of the lake."""

from __future__ import annotations

import html.parser
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import FalconMQError
from falconmq.spark.jobs import lake_tables, report
from falconmq.spark.jobs.running import Progress, tell_nobody
from falconmq.spark.report import charts, words
from falconmq.spark.report.close_up import close_up
from falconmq.spark.report.coverage import coverage_of
from falconmq.spark.report.facts import (
    Coverage,
    Finding,
    Headline,
    KindCount,
    Period,
    Rejects,
    Report,
    Route,
    Series,
    Timeline,
)
from falconmq.spark.report.gathering import Gatherer
from falconmq.spark.report.page import render
from falconmq.spark.report.periods import default_period, step_of
from falconmq.spark.tables import Lake
from tests.spark.gold_samples import DAY, HOSTILE, LOST, QUEUE, ROUTE, put, write_samples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERIOD = Period(DAY, DAY + timedelta(days=1))
COVERED = (Coverage("SALES01", "g", DAY, DAY, 10, 0),)


def made(
    messages: int = 100,
    delivered: int = 100,
    *kinds: KindCount,
    dead: int = 0,
    undelivered: int = 0,
    coverage: tuple[Coverage, ...] = COVERED,
    rejects: tuple[Rejects, ...] = (),
) -> Report:
    return Report(
        PERIOD,
        DAY,
        Headline(messages, delivered, 0.5, undelivered, dead),
        None,
        kinds=kinds,
        coverage=coverage,
        rejects=rejects,
    )


ON_THE_WAY = "on the way from SALES01 to BERLIN between 10:02 and 10:04"
LOST_TWO = KindCount(
    "lost",
    2,
    2,
    (ROUTE,),
    DAY + timedelta(hours=10, minutes=2),
    DAY + timedelta(hours=10, minutes=4),
)


@pytest.mark.parametrize(
    ("facts", "tone", "text"),
    [
        (
            made(14302, 14300, LOST_TWO),
            words.BAD,
            f"2 of 14,302 messages were lost, {ON_THE_WAY}.",
        ),
        (
            made(10, 9, KindCount("lost", 1, 1, ("A -> B", "A -> C"))),
            words.BAD,
            "1 of 10 messages was lost, most of them on the way from A to B.",
        ),
        (
            made(10, 10, KindCount("doubled", 1, 1, ("SALES01",), DAY, DAY)),
            words.BAD,
            "1 of 10 messages was received more than once, at SALES01 at 00:00.",
        ),
        (
            made(100, 97, dead=3),
            words.WARN,
            "Nothing was lost, but 3 of 100 messages were not delivered.",
        ),
        (
            made(100, 99, undelivered=1),
            words.WARN,
            "Nothing was lost, but 1 of 100 messages was not delivered.",
        ),
        (
            made(100, 100, KindCount("late", 4, 4)),
            words.WARN,
            "All is accounted for: of 100 messages none was lost, but 4 messages came late.",
        ),
        (made(100, 100), words.GOOD, "All 100 messages arrived."),
        (made(100, 100, KindCount("repeated", 8, 8)), words.GOOD, "All 100 messages arrived."),
        (
            made(100, 99),
            words.GOOD,
            "Nothing was lost: of 100 messages 99 arrived, 1 is on its way.",
        ),
        (made(0, 0), words.WARN, "No messages were sent in this time."),
        (
            made(5, 5, KindCount("archive_gap", 1, 40)),
            words.WARN,
            "Of 5 messages none is known to be lost.",
        ),
    ],
    ids=[
        "lost",
        "several routes",
        "doubled",
        "dead",
        "refused",
        "late",
        "good",
        "sent again",
        "under way",
        "none",
        "gap",
    ],
)
def test_the_verdict_says_the_worst_first(facts: Report, tone: str, text: str) -> None:
    verdict = words.verdict(facts)
    assert (verdict.tone, verdict.text) == (tone, text)


def test_the_verdict_says_what_else_and_how_sure_it_is() -> None:
    facts = made(10, 8, LOST_TWO, KindCount("late", 3, 3), rejects=(Rejects("archive", 4),))
    assert words.verdict(facts).more == (
        "Also: 3 came late. The data are not complete: 4 rows could not be read."
    )
    assert "not known which queue managers" in words.verdict(made(1, 1, coverage=())).more


@pytest.mark.parametrize(
    ("now", "before", "less_is_better", "expected"),
    [
        (110, 100, None, ("10 % more", "")),
        (50, 100, True, ("50 % less", words.GOOD)),
        (110, 100, True, ("10 % more", words.BAD)),
        (400, 100, True, ("4.0 times as much", words.BAD)),
        (3, 0, True, ("none before", words.BAD)),
        (0, 3, True, ("3 before", words.GOOD)),
        (0, 0, True, ("as before", "")),
        (1000, 1001, True, ("as before", "")),
        (5, None, True, ("", "")),
    ],
    ids=str,
)
def test_changes_in_words(
    now: float, before: float | None, *, less_is_better: bool | None, expected: tuple[str, str]
) -> None:
    assert tuple(words.change(now, before, less_is_better=less_is_better)) == expected


def test_almost_all_is_not_all() -> None:
    assert words.delivered_share(Headline(100_000, 99_999)) == "< 100 %"
    assert words.delivered_share(Headline(1000, 999)) == "99.9 %"
    assert words.delivered_share(Headline(7, 7)) == "100 %"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0"),
        (0.34, "340 ms"),
        (12, "12 s"),
        (119, "119 s"),
        (240, "4 min"),
        (3600, "1 h"),
        (200_000, "2 days"),
    ],
    ids=str,
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@given(highest=st.floats(1e-9, 1e15))
def test_the_scale_holds_every_value_and_wastes_little(highest: float) -> None:
    assert highest <= charts.nice(highest) * 1.000_01 <= highest * 2.6


def timeline(*series: Series) -> Timeline:
    moments = tuple(DAY + timedelta(hours=hour) for hour in range(len(series[0].values)))
    return Timeline(moments, timedelta(hours=1), series)


def shapes(markup: str, tag: str) -> list[ET.Element]:
    root = ET.fromstring(f"<x>{markup}</x>")
    return [element for element in root.iter() if element.tag == tag]


def test_lines_break_where_nothing_was_measured() -> None:
    drawn = charts.lines("a", "t", timeline(Series("s", (1.0, 2.0, None, 5.0))))
    path, alone = shapes(drawn, "path")
    assert path.get("d") == "M125.0 160.0L375.0 120.0M875.0 0.0"
    assert alone.get("d") == "M875.0 0.0h0.01"  # a single point is seen


def test_stacked_bars_stand_on_each_other() -> None:
    drawn = charts.stacked_bars(
        "a", "t", timeline(Series("x", (1.0, 2.0)), Series("y", (4.0, None)))
    )
    bars = [rect for rect in shapes(drawn, "rect") if rect.get("class") != "hover"]
    assert [(bar.get("y"), bar.get("height")) for bar in bars] == [
        ("160.0", "40.0"),
        ("0.0", "160.0"),
        ("120.0", "80.0"),
    ]


def test_longer_waits_are_darker() -> None:
    assert [charts.shade(s) for s in (None, 0.5, 2, 11, 61, 601, 3601)] == [0, 0, 1, 2, 3, 4, 5]


class Tags(html.parser.HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        if tag not in ("meta", "line", "path", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("line", "path", "rect"):
            return
        assert self.open.pop() == tag


def test_whatever_a_name_holds_it_stays_a_text() -> None:
    series = Series(HOSTILE, (1.0, 2.0))
    facts = Report(
        PERIOD,
        DAY,
        Headline(3, 2, 1.0, 0, 1),
        Headline(3, 3, 1.0, 0, 1),
        *(timeline(series),) * 4,
        routes=(Route(HOSTILE, 3, 1.0),),
        kinds=(KindCount(HOSTILE, 1, 1, (HOSTILE,)), KindCount("lost", 1, 1, (HOSTILE,))),
        findings=(
            Finding("lost", "error", HOSTILE, f"{HOSTILE}\n$(rm)", HOSTILE, HOSTILE),
            Finding(HOSTILE, HOSTILE, HOSTILE, None, "it's", None),
        ),
        coverage=(Coverage(HOSTILE, "g", None, None, 0, None),),
        rejects=(Rejects(HOSTILE, 1, ((HOSTILE, 1),)),),
    )
    page = render(facts)
    tags = Tags(page)
    assert "script" not in tags.tags
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))
    assert "http://" not in page.replace("http-equiv", "")
    assert "https://" not in page
    assert "falconmq why &#x27;it&#x27;\\&#x27;&#x27;s&#x27;" in page  # quoted for a shell


def test_a_page_without_data_is_a_page() -> None:
    page = render(made(0, 0, coverage=()))
    assert Tags(page).open == []
    assert "No queue manager has been archived." in page


def test_the_period_is_the_last_day_unless_somebody_says() -> None:
    newest = DAY + timedelta(hours=5)
    known = Period(DAY - timedelta(days=9), newest)
    assert default_period(known, None, None) == Period(newest - timedelta(days=1), newest)
    assert default_period(None, DAY, newest) == Period(DAY, newest)
    young = Period(DAY, newest)  # it knows less than a day
    assert default_period(young, None, None) == young
    with pytest.raises(FalconMQError, match="holds nothing"):
        default_period(None, None, None)
    with pytest.raises(FalconMQError, match="ends before it begins"):
        default_period(known, newest, DAY)


@given(minutes=st.integers(1, 5_000_000))
def test_a_plot_has_few_enough_points(minutes: int) -> None:
    period = Period(DAY, DAY + timedelta(minutes=minutes))
    assert 1 <= period.length / step_of(period) <= 100.01 or step_of(period) == timedelta(minutes=1)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("gold"))
    write_samples(lake)
    facts = {"computer": "SALES01", "from": 1, "to": 2, "latest": 5}
    facts |= {"first_at": DAY.isoformat(), "last_at": DAY.isoformat()}
    event = {"number": 1, "at": DAY, "kind": "arrived", "day": DAY.date()}
    put(lake, lake_tables.EVENTS, [event], "archive:g", facts)
    return lake


def test_the_facts_of_a_period_are_what_the_tables_say(spark: SparkSession, lake: Lake) -> None:
    gatherer = Gatherer(spark, lake)
    assert gatherer.known() == Period(DAY - timedelta(days=1), PERIOD.until)
    facts = gatherer.report(PERIOD, datetime.now(UTC))
    assert facts.now == Headline(200, 198, 2.0, 1, 28)
    assert facts.earlier == Headline(100, 100, 0.5, 0, 4)
    arrived, received = facts.throughput.series
    assert facts.throughput.step == timedelta(minutes=15)
    assert (arrived.values[0], received.values[0]) == (4.0, 2.0)  # of 15 minutes
    assert (arrived.values[1], arrived.values[92], arrived.values[93]) == (0.0, 2.0, None)
    assert [series.label for series in facts.latency.series] == ["p50", "p95", "p99"]
    assert facts.latency.series[1].values[8:12] == (1.6, 1.8, 2.0, None)
    assert [series.label for series in facts.backlog.series] == [QUEUE, "SALES01\\private$\\calm"]
    assert max(value or 0 for value in facts.backlog.series[0].values) == 4000.0
    labels = [series.label for series in facts.dead_letters.series]
    assert labels == ["CAUSE_0", "CAUSE_1", "CAUSE_2", "CAUSE_3", "CAUSE_4", "others"]
    assert [series.values[9] for series in facts.dead_letters.series] == [7, 6, 5, 4, 3, 3]
    assert facts.routes == (Route(ROUTE, 120, 2.0), Route(HOSTILE, 78, 2.0))
    assert [(kind.kind, kind.messages) for kind in facts.kinds] == [("lost", 2), ("late", 30)]
    assert facts.kind("lost") == LOST_TWO
    listed = [finding.kind for finding in facts.findings]
    assert (listed.count("lost"), listed.count("late")) == (2, 20)
    assert facts.findings[-1].message_id == LOST
    assert facts.coverage == (Coverage("SALES01", "g", DAY, DAY, 1, 3),)
    assert facts.rejects == (Rejects("archive", 1, ((HOSTILE, 1),)),)


def test_a_report_is_one_whole_file(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("the old one")
    told: list[Progress] = []
    summary = report.run(spark, lake, report.Options(file), told.append)
    page = file.read_text("utf-8")
    assert summary.facts["bytes"] == file.stat().st_size
    assert summary.facts["verdict"] == f"2 of 200 messages were lost, {ON_THE_WAY}."
    assert summary.facts["verdict"] in page
    assert f"falconmq why &#x27;{LOST}&#x27;" in page
    assert "10 more: see the table silver/findings" in page
    assert Tags(page).open == []
    assert "<td class=number>1.6 s</td>" in page  # the table behind the plot says its unit
    assert re.search(r'<dd class="value">200</dd><dd class="change ">100 % more</dd>', page)
    assert told[-1].done == told[-1].total
    assert list(tmp_path.iterdir()) == [file]


def test_an_empty_lake_has_nothing_to_report(spark: SparkSession, tmp_path: Path) -> None:
    lake, file = Lake(tmp_path), tmp_path / "report.html"
    with pytest.raises(FalconMQError, match="holds nothing to report on"):
        report.run(spark, lake, report.Options(file), tell_nobody)
    options = report.Options(file, PERIOD.since, PERIOD.until, dry_run=True)
    summary = report.run(spark, lake, options, tell_nobody)
    assert summary.facts["verdict"] == "No messages were sent in this time."
    assert not file.exists()
    assert coverage_of(lake) == ()


def test_a_file_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    spark: Any = None  # nothing is asked of it
    with pytest.raises(FalconMQError, match="there is no folder"):
        report.run(spark, Lake(tmp_path), report.Options(tmp_path / "no" / "x.html"), tell_nobody)
    with pytest.raises(FalconMQError, match="cannot write"):
        report._write(tmp_path, "page")


def test_a_story_of_some_minutes_is_drawn_by_seconds(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    sent = [DAY + timedelta(seconds=second) for second in (0, 0, 10, 19)]
    rows = [
        {
            "message_id": f"{{{'0' * 36}}}\\{number}",
            "begun_at": at,
            "arrived_at": at + timedelta(seconds=0.5),
            "received_at": at + timedelta(seconds=1),
            "latency_seconds": 0.5,
            "day": DAY.date(),
        }
        for number, at in enumerate(sent)
    ]
    put(lake, lake_tables.LEDGER, rows)
    near = close_up(spark, lake, PERIOD)
    assert near is not None
    arrived, received = (series.values for series in near.throughput.series)
    assert [place for place, rate in enumerate(arrived) if rate] == [0, 10, 19]
    assert (arrived[0], received[0], received[1], received[20]) == (2.0, 0.0, 2.0, 1.0)
    assert near.latency.series[0].values[10] == 0.5
    assert close_up(spark, Lake(tmp_path / "none"), PERIOD) is None
    put(lake, lake_tables.LEDGER, [{**rows[0], "begun_at": DAY + timedelta(minutes=16)}])
    assert close_up(spark, lake, PERIOD) is None  # that is long enough for minutes
