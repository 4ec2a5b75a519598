"""Spark Connect: a client that has no Java in its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.estate import Estate, path
from tests.spark.playing import url

# A process is a client of Spark Connect or it is not: this one is.
_CLIENT = """
import sys
from falconmq.spark.session import session
with session(remote="local[2]") as spark:
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    def reader(of):
        made = of.format("falconmq").option("url", sys.argv[1]).option("queue", sys.argv[2])
        return made.option("columns", "body").option("bodyFormat", "string")
    print(*sorted(row["body"] for row in reader(spark.read).load().collect()))
    stream = reader(spark.readStream).option("mode", "consume").option("consumer", "connect").load()
    writer = stream.writeStream.format("parquet").option("path", sys.argv[3] + "/out")
    writer = writer.option("checkpointLocation", sys.argv[3] + "/checkpoint")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    print(*sorted(row["body"] for row in spark.read.parquet(sys.argv[3] + "/out").collect()))

    from falconmq.spark.jobs import archive, ledger
    from falconmq.spark.tables import Lake
    lake = Lake(sys.argv[3] + "/lake")
    options = archive.Options(urls=(sys.argv[1],))
    print(archive.run(spark, lake, options, lambda progress: None).written["bronze/events"])
    print(ledger.run(spark, lake, ledger.Options(), lambda progress: None).read)
"""


@pytest.mark.slow
def test_queues_are_read_consumed_and_archived_over_spark_connect(
    estate: Estate, tmp_path: Path
) -> None:
    daemon = estate.manager("A").start()
    daemon.create_queue("orders")
    daemon.client.send(path("orders"), [{"text": str(number)} for number in range(6)])
    run = subprocess.run(
        [sys.executable, "-c", _CLIENT, url(daemon), path("orders"), str(tmp_path)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    # six messages that arrived and were received
    assert run.stdout.splitlines() == ["0 1 2 3 4 5", "0 1 2 3 4 5", "12", "12"]
    assert daemon.count("orders") == 0
