"""Progress of jobs: bars on terminals, lines elsewhere, and what streams tell."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from falconmq.spark.jobs.running import Progress
from falconmq.spark.listening import Listener, followed, position
from falconmq.spark.progress import EVERY_SECONDS, line, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_for_each_step_and_one_now_and_then() -> None:
    now = [0.0]
    stream = io.StringIO()
    with shown(stream, now=lambda: now[0]) as tell:
        tell(Progress("reading events of A", 0, 4000))
        tell(Progress("reading events of A", 100, 4000))  # too soon
        now[0] = EVERY_SECONDS
        tell(Progress("reading events of A", 1200, 4000))
        tell(Progress("writing", 7, unit="tables"))
        now[0] *= 3
        tell(Progress("reading events of A", 1200, 4000))  # nothing new
    assert stream.getvalue().splitlines() == [
        "reading events of A: 0 of 4,000 rows",
        "reading events of A: 1,200 of 4,000 rows",
        "writing: 7 tables",
    ]


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with shown(stream) as tell:
        tell(Progress(r"reading [bold]x[/bold]", 0, 4000))
        tell(Progress(r"reading [bold]x[/bold]", 4000, 4000))
        tell(Progress("writing", 2, 5, "tables"))
    text = stream.getvalue()
    assert "reading [bold]x[/bold]" in text  # a name, not a wish for bold letters
    assert "writing" in text
    assert text.endswith("\x1b[2K") or "\x1b[1A\x1b[2K" in text  # wiped


def test_quiet_says_nothing() -> None:
    stream = Terminal()
    with shown(stream, is_quiet=True) as tell:
        tell(Progress("reading", 1, 2))
    assert stream.getvalue() == ""


def test_names_cannot_move_the_cursor() -> None:
    assert line(Progress("reading \x1b[2Jq", 0)) == r"reading \x1b[2Jq"


def offsets(**numbers: int) -> str:
    queues = {name: {"next": number, "seen": 3} for name, number in numbers.items()}
    return json.dumps({"v": 1, "managers": {"g": {"url": "u", "queues": queues}}})


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (offsets(a=5, b=7), 12),
        (offsets(next=5), 5),  # a queue of that name
        ("17", None),
        ("not JSON", None),
        (None, None),
    ],
    ids=["two queues", "a queue called next", "a number", "no JSON", "nothing"],
)
def test_a_position_is_the_sum_of_what_comes_next(offset: str | None, expected: int | None) -> None:
    assert position(offset) == expected


def batch(start: str | None, end: str, latest: str | None, rows: int | None) -> Any:
    source = SimpleNamespace(startOffset=start, endOffset=end, latestOffset=latest)
    return SimpleNamespace(name="q", numInputRows=rows, sources=[source])


def test_a_stream_tells_how_far_it_is() -> None:
    told: list[Progress] = []
    listener = Listener("following A", told.append)
    listener.took(batch(offsets(a=100), offsets(a=150), offsets(a=300), 50))
    listener.took(batch(offsets(a=150), offsets(a=320), offsets(a=300), 170))  # it grew meanwhile
    assert told == [Progress("following A", 50, 200), Progress("following A", 220, 220)]


def test_a_stream_of_another_source_tells_rows() -> None:
    told: list[Progress] = []
    listener = Listener("following", told.append)
    listener.took(batch("5", "9", None, 4))
    listener.took(batch("9", "9", None, None))  # Spark Connect does not say
    assert told == [Progress("following", 4), Progress("following", 4)]


def test_real_streams_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    told: list[Progress] = []
    spark.range(20).write.parquet(str(tmp_path / "rows"))
    with followed(spark, "copying", told.append, "mine"):
        stream = spark.readStream.schema("id long").parquet(str(tmp_path / "rows"))
        writer = stream.writeStream.format("noop").queryName("mine").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "log")).start()
        query.awaitTermination()
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert told
    assert told[-1] == Progress("copying", 20)
