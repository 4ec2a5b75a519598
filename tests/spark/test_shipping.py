"""Executors that do not have FalconMQ, nor anything but Spark, pyarrow and numpy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from falconmq.spark.shipping import package_file, package_zip
from tests.e2e.estate import Estate, path
from tests.spark.playing import url

_SITE = Path(pyspark.__file__).parents[1]
# What a cluster with Spark has.
_THERE = (
    "dateutil",
    "numpy",
    "numpy.libs",
    "pandas",
    "py4j",
    "pyarrow",
    "pyspark",
    "pytz",
    "six.py",
    "tzdata",
)
_IMPORTS = """
import sys
import falconmq.spark.source, falconmq.spark.sink, falconmq.spark.following
import falconmq.spark.jobs.archive_tasks
from falconmq.client import ControlClient
import falconmq
assert falconmq.Message("x").body
assert "zip" in falconmq.__file__, falconmq.__file__
print(*{"lmdb", "sortedcontainers", "httpx", "typer", "rich"} & set(sys.modules))
"""
_CLUSTER = """
import sys
from falconmq.spark.session import session
settings = {
    "spark.pyspark.python": sys.argv[1],
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.memory": "512m",
}
with session(master="local-cluster[1,1,512]", settings=settings) as spark:
    reader = spark.read.format("falconmq").option("url", sys.argv[2])
    reader = reader.option("queue", sys.argv[3]).option("minPartitions", 2)
    frame = reader.option("bodyFormat", "string").load()
    print(*sorted(row["body"] for row in frame.collect()))

    def places(batches):
        import falconmq
        import pyarrow
        for batch in batches:
            yield pyarrow.RecordBatch.from_pydict({"place": [falconmq.__file__]})

    for row in frame.select("label").mapInArrow(places, "place string").collect():
        print(row["place"])

    from falconmq.spark.jobs import archive, ledger
    from falconmq.spark.tables import Lake
    lake = Lake("lake")
    options = archive.Options(urls=(sys.argv[2],))
    print(archive.run(spark, lake, options, lambda progress: None).written["bronze/events"])
    print(ledger.run(spark, lake, ledger.Options(), lambda progress: None).read)
"""


@pytest.fixture
def lean_python(tmp_path: Path) -> Path:
    """A Python as executors have it."""
    home = tmp_path / "lean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for name in _THERE:
        if (_SITE / name).exists():
            (site / name).symlink_to(_SITE / name)
    return home / "bin" / "python"


def test_the_zip_is_the_same_each_time_and_kept(tmp_path: Path) -> None:
    assert package_zip() == package_zip()
    file = package_file(tmp_path)
    assert file == package_file(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert file.stat().st_size < 2_000_000


def test_what_tasks_run_needs_nothing_that_executors_lack(
    lean_python: Path, tmp_path: Path
) -> None:
    environment = {"PYTHONPATH": str(package_file(tmp_path)), "PATH": os.environ["PATH"]}
    run = subprocess.run(
        [lean_python, "-c", _IMPORTS], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""


@pytest.mark.slow
def test_a_cluster_reads_queues_and_runs_jobs_without_falconmq_installed(
    lean_python: Path, estate: Estate, tmp_path: Path
) -> None:
    daemon = estate.manager("A").start()
    daemon.create_queue("orders")
    daemon.client.send(path("orders"), [{"text": str(number)} for number in range(6)])
    environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
    run = subprocess.run(
        [sys.executable, "-c", _CLUSTER, lean_python, url(daemon), path("orders")],
        env={**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    bodies, *places, archived, followed = run.stdout.splitlines()
    assert (archived, followed) == ("6", "6")
    assert bodies == "0 1 2 3 4 5"
    assert places
    assert all(".zip" in place for place in places)
