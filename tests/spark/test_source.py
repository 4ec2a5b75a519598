"""Batch reads over a real queue manager: most of them as Spark would call them, some by Spark."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from falconmq.client import arrow
from falconmq.message import Delivery, Message
from falconmq.names import parse_format_name
from tests.e2e.estate import Daemon, Estate, path, wait_until
from tests.spark.playing import Query, load, source, url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_names = itertools.count()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One for all tests here; each has queues of its own."""
    with Estate(tmp_path_factory.mktemp("source")) as estate:
        yield estate.manager("A").start()


def new_queue(daemon: Daemon, **properties: object) -> str:
    name = f"s{next(_names)}"
    daemon.create_queue(name, **properties)
    return path(name)


def send(daemon: Daemon, queue: str, *texts: object, **properties: object) -> None:
    daemon.client.send(queue, [{"text": str(text), **properties} for text in texts])


def some_of_everything() -> list[Message]:
    answers = parse_format_name(r"DIRECT=OS:SALES02\private$\answers")
    return [
        Message("grün", label="Größe", priority=7, delivery=Delivery.RECOVERABLE),
        Message(b"\0\xff", application_tag=9, extension=b"beside", priority=0),
        Message("", response_queue=answers, time_to_be_received=1000),  # type: ignore[arg-type]
        Message.json({"a": 1}),
    ]


def test_all_columns_are_what_a_look_at_the_queue_shows(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    daemon.client.send_packets(queue, some_of_everything())
    looked = daemon.client.receive_packets(queue, count=100, peek=True)
    wanted = arrow.messages_to_batch(looked, queue).to_pylist()
    rows = sorted(load(daemon, queue=queue), key=lambda row: int(row["lookup_id"]))
    assert len(rows) == len(wanted) == 4
    numbers = [row.pop("arrival_number") for row in rows]
    assert sorted(numbers) == list(range(min(numbers), min(numbers) + 4))
    for row, expected in zip(rows, wanted, strict=True):
        assert row["size"] > 0
        beside = {"arrival_number": None, "locked": None, "size": None, "arrived_at": None}
        assert {**row, **beside} == {**expected, **beside}
        assert row["locked"] is False
        assert row["arrived_at"] is not None
    shown = {message["id"] for message in daemon.client.receive(queue, count=9, peek=True)}
    assert {row["message_id"].upper() for row in rows} == {id.upper() for id in shown}


def test_columns_bodies_and_the_range_are_chosen(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    send(daemon, queue, *range(6))
    rows = load(daemon, queue=queue, columns="body,arrival_number", bodyFormat="string")
    assert [row["body"] for row in rows] == list("012345")
    assert list(rows[0]) == ["body", "arrival_number"]
    second, fifth = rows[1]["arrival_number"], rows[4]["arrival_number"]
    chosen = {
        "startingOffsets": f'{{"{queue}": {second}}}'.replace("\\", "\\\\"),
        "endingOffsets": f'{{"{queue}": {fifth}}}'.replace("\\", "\\\\"),
    }
    assert [row["body"] for row in load(daemon, queue=queue, bodyFormat="string", **chosen)] == [
        *"123"
    ]
    assert "body" not in load(daemon, queue=queue, includeBody=False)[0]
    assert load(daemon, queue=queue, endingTimestamp="2000-01-01") == []
    assert load(daemon, queue=queue, endingOffsets="earliest") == []


def test_an_empty_queue_and_large_bodies(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    assert load(daemon, queue=queue) == []
    bodies = [bytes([number]) * (4_000_000 + number) for number in range(12)]
    for body in bodies:
        daemon.client.send_packets(queue, [Message(body)])
    made = source(daemon, queue=queue, columns="body")
    reader = made.reader(made.schema())
    parts = reader.partitions()
    found: list[bytes] = []
    for part in parts:
        for batch in reader.read(part):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.nbytes < 40_000_000, "never all of it at once"
            found += batch.column("body").to_pylist()
    assert found == bodies


def test_journals_dead_letters_and_events(daemon: Daemon) -> None:
    queue = new_queue(daemon, journaling=True)
    send(daemon, queue, "kept")
    daemon.client.receive(queue)
    text: dict[str, Any] = {"columns": "body,queue", "bodyFormat": "string"}
    assert [row["body"] for row in load(daemon, source="journal", queue=queue, **text)] == ["kept"]
    assert load(daemon, source="journal", queuePattern=queue + "x", **text) == []
    assert [row["queue"] for row in load(daemon, source="journal", queuePattern=queue, **text)] == [
        f"{queue};journal"
    ]
    assert load(daemon, source="journal", **text) == []
    send(daemon, queue, "dead", time_to_be_received=0, journal=["DEAD_LETTER"])
    wait_until(lambda: bool(load(daemon, source="deadletter", **text)), "it is a dead letter")
    dead = load(daemon, source="deadletter", bodyFormat="string")
    assert [(row["body"], row["queue"]) for row in dead] == [("dead", r".\system$;deadletter")]
    assert dead[0]["message_class"].startswith("NACK")

    def kinds() -> list[str]:
        events = load(daemon, source="events", columns="kind,queue,number")
        return [row["kind"] for row in events if row["queue"] == queue]

    wait_until(lambda: "expired" in kinds() or "dead_lettered" in kinds(), "the log has it all")
    assert kinds()[:2] == ["arrived", "received"]
    numbers = [row["number"] for row in load(daemon, source="events", minPartitions=3)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    late = load(daemon, source="events", startingTimestamp="2100-01-01")
    assert late == []


def frame(spark: SparkSession, daemon: Daemon, **options: object) -> DataFrame:
    reader = spark.read.format("falconmq").option("url", url(daemon))
    return reader.options(**{name: str(value) for name, value in options.items()}).load()


@pytest.mark.slow
def test_spark_reads_queues(spark: SparkSession, daemon: Daemon) -> None:
    queue, other = new_queue(daemon), new_queue(daemon)
    daemon.client.send_packets(queue, some_of_everything())
    send(daemon, other, *range(100))
    everything = frame(spark, daemon, queue=queue)
    rows = {row["message_id"]: row.asDict() for row in everything.collect()}
    wanted = {row["message_id"]: row for row in load(daemon, queue=queue)}
    assert rows.keys() == wanted.keys()
    for id, row in rows.items():
        for name in ("sent_at", "arrived_at"):  # Spark's have no zone; the session is in UTC
            row[name] = row[name].replace(tzinfo=wanted[id][name].tzinfo)
        assert row == wanted[id]
    numbers = frame(
        spark, daemon, queues=f"{queue},{other}", minPartitions=4, columns="queue,priority"
    )
    assert numbers.rdd.getNumPartitions() >= 4
    # The same DataFrame used twice reads the same snapshot, whatever came meanwhile.
    assert numbers.where("priority = 7").count() == 1
    send(daemon, other, "later")
    assert numbers.count() == 104
    assert numbers.union(numbers.where("priority = 7")).count() == 105
    assert frame(spark, daemon, queue=other).count() == 101
    own = spark.read.format("falconmq").schema("body string, priority int")
    own = own.option("url", url(daemon)).option("queue", queue)
    assert {row["body"] for row in own.load().collect()} == {"grün", "", '{"a":1}', None}
    assert frame(spark, daemon, queue=new_queue(daemon)).count() == 0
    with pytest.raises(PySparkException, match="did you mean minPartitions"):
        frame(spark, daemon, queue=queue, minPartition=3)
    with pytest.raises(PySparkException, match="column priority is int, not string"):
        own.schema("priority string").option("url", url(daemon)).option(
            "queue", queue
        ).load().count()
    with pytest.raises(PySparkException, match=r"no queue \.\\private\$\\nobody"):
        frame(spark, daemon, queue=path("nobody")).count()


@pytest.mark.slow
def test_spark_consumes_a_queue_once_and_goes_on_from_its_checkpoint(
    spark: SparkSession, daemon: Daemon, tmp_path: Path
) -> None:
    queue = new_queue(daemon)

    def run() -> list[str]:
        stream = spark.readStream.format("falconmq").options(
            url=url(daemon),
            queue=queue,
            mode="consume",
            consumer="spark-test",
            columns="body,arrival_number",
            bodyFormat="string",
            maxMessagesPerTrigger="4",
        )
        writer = stream.load().writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [each for each in query.recentProgress if each.numInputRows]
        assert all(each.numInputRows <= 4 for each in progress)
        assert '"seen"' in str(progress[-1].sources[0].endOffset)
        assert '"next"' in str(progress[-1].sources[0].latestOffset)
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        return [row["body"] for row in sorted(rows, key=lambda row: row["arrival_number"])]

    send(daemon, queue, *range(10))
    assert run() == [*"0123456789"]
    assert daemon.client.queue(queue)["messages"] == 0
    send(daemon, queue, "more")
    assert run() == [*"0123456789", "more"]
    assert daemon.client.queue(queue)["messages"] == 0
    (consumer,) = daemon.client.request("GET", "/consumers")["consumers"]
    assert consumer["fence"] == 2
    assert consumer["queues"][0]["behind"] == 0


def test_a_stream_of_everything_a_batch_reads(daemon: Daemon) -> None:
    queue = new_queue(daemon)
    daemon.client.send_packets(queue, some_of_everything())
    assert Query(daemon, queue=queue).batch() == load(daemon, queue=queue)


def test_importing_falconmq_imports_no_spark() -> None:
    code = (
        "import falconmq, falconmq.client, falconmq.client.ranges, falconmq.spark, sys;"
        "print(*{'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
