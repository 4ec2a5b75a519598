"""The sink: rows become messages, each once, whatever fails on the way."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest

from falconmq import FalconMQError, Message, MqStatus
from falconmq.client.arrow import messages_to_batch
from falconmq.clock import VirtualClock
from falconmq.spark import sink, sink_stage
from falconmq.spark.sink_options import COLLECT, SinkOptions
from tests.e2e.estate import Daemon, Estate
from tests.service.asking import LEDGER, ORDERS, clocked_engine
from tests.service.control import ControlledManager

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REMOTE = r"DIRECT=OS:sales02\private$\orders"
HTTP_PORT = 8018
SMALL = 1 << 16  # bytes of a request: the least


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    engine, _ = clocked_engine()
    with ControlledManager(tmp_path, engine) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled


def options(controlled: ControlledManager, queue: str = ORDERS, **given: Any) -> SinkOptions:
    return SinkOptions(url=f"unix:{controlled.directory}", queue=queue, timeout=5, **given)


def rows(*bodies: object, **columns: list[Any]) -> pa.RecordBatch:
    arrays = {"body": pa.array(list(bodies)), **{k: pa.array(v) for k, v in columns.items()}}
    return pa.record_batch(list(arrays.values()), names=list(arrays))


def hand_in(
    given: SinkOptions, batches: Iterable[pa.RecordBatch], batch: int = 0, partition: int = 0
) -> sink.Handed:
    handed = sink.hand_in(iter(batches), given, "key", batch, partition)
    return pickle.loads(pickle.dumps(handed))  # type: ignore[no-any-return]  # as Spark does it


def write(given: SinkOptions, *batches: pa.RecordBatch, batch: int = 0) -> sink.Handed:
    handed = hand_in(given, batches, batch)
    sink.commit(given, "key", batch, [handed])
    return handed


def texts(controlled: ControlledManager, queue: str = ORDERS) -> list[str]:
    return [message.text for message in controlled.blocking.queue(queue)]


def staged(controlled: ControlledManager) -> int:
    with controlled.client() as client:
        number: int = client.request("GET", "/ingests")["staged"]["stages"]
        return number


# Rows


@pytest.mark.parametrize("queue", [ORDERS, LEDGER])
def test_rows_become_messages_in_their_order_with_the_commit(
    controlled: ControlledManager, queue: str
) -> None:
    given = options(controlled, queue)
    parts = [
        hand_in(given, [rows("c", "d", label=["3", "4"])], partition=1),
        hand_in(given, [rows("a", label=["1"]), rows("b", label=["2"])]),
        hand_in(given, [rows(), rows("e").slice(0, 0)], partition=2),
    ]
    assert [(part.count, part.stage is None) for part in parts] == [
        (2, False), (2, False), (0, True),
    ]  # fmt: skip
    assert texts(controlled, queue) == []
    sink.commit(given, "key", 0, [parts[1], parts[0], parts[2]])
    messages = list(controlled.blocking.queue(queue))
    assert [(m.text, m.label) for m in messages] == [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]
    assert all(m.recoverable and m.is_transactional is (queue == LEDGER) for m in messages)


def test_what_was_read_can_be_written(controlled: ControlledManager) -> None:
    sent = [Message("a", label="x", priority=5, application_tag=7), Message(b"\0\1")]
    write(options(controlled), messages_to_batch(sent))
    first, second = controlled.blocking.queue(ORDERS)
    assert (first.text, first.label, first.priority, first.application_tag) == ("a", "x", 5, 7)
    assert second.body == b"\0\1"


def test_a_queue_on_another_computer_is_what_the_options_say(
    controlled: ControlledManager,
) -> None:
    for number, transactional in enumerate((True, False)):
        given = options(controlled, REMOTE, transactional=transactional)
        write(given, rows("a"), batch=number)
    (outgoing,) = controlled.engine.core.outgoing.values()
    found = [outgoing.positions.find(id) for id in outgoing.positions.available]
    kinds = [each.message.transaction is not None for each in found if each]
    assert sorted(kinds) == [False, True]


def test_large_bodies_go_in_requests_of_their_own_and_too_large_ones_are_refused(
    controlled: ControlledManager,
) -> None:
    body = bytes(range(256)) * (16_384 - 2)  # 4 MiB with its headers
    handed = write(options(controlled), rows(*([body] * 5)))
    assert (handed.count, handed.bytes > 5 * len(body)) == (5, True)
    assert all(message.body == body for message in controlled.blocking.queue(ORDERS))
    with pytest.raises(FalconMQError, match="row 1"):
        hand_in(options(controlled), [rows(b"", body * 2)], 1)
    assert staged(controlled) == 0


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (rows("a", lable=["x"]), "lable: is no column of a message"),
        (rows("a").rename_columns(["label"]), "body: the column is missing"),
        (rows("a", priority=["high"]), "priority: the column is string"),
        (rows(1, 2), "body: the column is int64"),
        (rows("a", label=["x" * 300]), "row 0: label"),
        (rows("a", None), "row 1: body: is null"),
    ],
    ids=["unknown", "missing", "type", "body type", "too long", "null"],
)
def test_a_mistake_in_the_rows_is_named_and_sends_nothing(
    controlled: ControlledManager, batch: pa.RecordBatch, said: str
) -> None:
    with pytest.raises(FalconMQError) as caught:
        hand_in(options(controlled), [batch])
    assert said in str(caught.value)
    assert (staged(controlled), texts(controlled)) == (0, [])


def test_the_row_that_is_wrong_is_counted_over_the_whole_task(
    controlled: ControlledManager,
) -> None:
    with pytest.raises(FalconMQError, match="row 4: label"):
        hand_in(options(controlled), [rows(*"abc"), rows("d", "e", label=["", "x" * 300])])


# Rejected rows


def test_rejected_rows_are_collected_and_the_others_sent(
    controlled: ControlledManager, tmp_path: Path
) -> None:
    given = options(controlled, on_reject=COLLECT, reject_path=str(tmp_path / "rejects"))
    labels = ["a", "x" * 300, "c", "d"]
    batches = rows(b"1", b"2", None, b"4", label=labels), rows(b"5", label=["y" * 250])
    for batch in (0, 0, 1):  # a task that runs again writes the same file
        handed = hand_in(given, batches, batch, partition=7)
        assert (handed.count, handed.rejected) == (2, 3)
    sink.commit(given, "key", 0, [hand_in(given, batches, partition=7)])
    assert [m.body for m in controlled.blocking.queue(ORDERS)] == [b"1", b"4"]
    files = sorted((tmp_path / "rejects" / "key").iterdir())
    assert [file.name for file in files] == [
        "batch-0000000000-part-00007.jsonl", "batch-0000000001-part-00007.jsonl",
    ]  # fmt: skip
    found = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert [(each["row"], each["column"]) for each in found] == [
        (1, "label"), (2, "body"), (4, "label"),
    ]  # fmt: skip
    assert found[0]["values"] == {"body": "Mg==", "label": "x" * 300}
    assert found[0]["reason"].startswith("label: ")


def test_columns_that_fit_no_row_are_a_mistake_even_then(
    controlled: ControlledManager, tmp_path: Path
) -> None:
    given = options(controlled, on_reject=COLLECT, reject_path=str(tmp_path / "rejects"))
    with pytest.raises(FalconMQError, match="priority"):
        hand_in(given, [rows("a", priority=["high"])])
    assert not (tmp_path / "rejects").exists()


def test_a_place_for_rejected_rows_that_cannot_be_written_is_named(
    controlled: ControlledManager, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    given = options(controlled, on_reject=COLLECT, reject_path=str(tmp_path / "file"))
    with pytest.raises(FalconMQError, match="rejectPath"):
        hand_in(given, [rows(None, "a")])
    assert staged(controlled) == 0


# Order and identity


def test_rows_can_be_sorted_by_a_column_of_their_own_or_of_messages(
    controlled: ControlledManager,
) -> None:
    batches = [rows("c", "a1", n=[3, 1]), rows("a2", "b", n=[1, 2])]
    write(options(controlled, order_by="n"), *batches)
    assert texts(controlled) == ["a1", "a2", "b", "c"]
    write(options(controlled, LEDGER, order_by="label"), rows("z", "y", label=["2", "1"]), batch=1)
    assert texts(controlled, LEDGER) == ["y", "z"]
    with pytest.raises(FalconMQError, match="n: the column is missing"):
        hand_in(options(controlled, order_by="n"), [rows("a")], 2)
    with pytest.raises(FalconMQError, match="n: is no column"):
        hand_in(options(controlled), batches, 2)  # without the option it is a mistake


def test_archived_rows_may_keep_their_ids_and_times(controlled: ControlledManager) -> None:
    orders = controlled.blocking.queue(ORDERS)
    for text in "ab":
        orders.send(Message(text))
    archived = list(orders)
    table = messages_to_batch(archived)
    orders.purge()
    write(options(controlled, keep_ids=True), table)
    again = list(orders)
    assert [(m.id, m.sent_time, m.text) for m in again] == [
        (m.id, m.sent_time, m.text) for m in archived
    ]
    write(options(controlled), table, batch=1)
    assert [m.id for m in orders][2:] != [m.id for m in archived]
    for without, said in (("message_id", "the column is missing"), ("sent_at", "is no time")):
        with pytest.raises(FalconMQError, match=said):
            hand_in(options(controlled, keep_ids=True), [table.drop_columns([without])], 2)


# Once


def test_a_batch_that_is_done_is_not_even_staged_again(controlled: ControlledManager) -> None:
    given = options(controlled)
    write(given, rows("a"), batch=3)
    again = hand_in(given, [rows("a")], 3)
    assert (again.stage, again.count, staged(controlled)) == (None, 0, 0)
    sink.commit(given, "key", 3, [again])
    assert texts(controlled) == ["a"]


def test_of_two_attempts_of_a_task_the_one_that_is_listed_counts(
    controlled: ControlledManager,
) -> None:
    given = options(controlled)
    hand_in(given, [rows("a")])
    sink.commit(given, "key", 0, [hand_in(given, [rows("a")])])
    assert (texts(controlled), staged(controlled)) == (["a"], 0)


def test_an_aborted_batch_leaves_nothing(controlled: ControlledManager) -> None:
    given = options(controlled)
    writer = sink.FalconMQWriter(given)
    handed = sink.hand_in(iter([rows("a")]), given, writer.key, 0, 0)
    writer.abort([None, handed])  # Spark knows nothing of a task that failed
    assert staged(controlled) == 0


def test_a_task_whose_stage_is_gone_begins_another_one(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = controlled.engine.core.clock
    assert isinstance(clock, VirtualClock)
    given = options(controlled, request_bytes=SMALL, stage_seconds=60)

    def slow() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            yield rows(*[f"{number}".encode() * 40_000] * 3)
            clock.advance(100)  # longer than the queue manager keeps it

    write(given, *[])  # an empty batch is one too
    handed = hand_in(given, slow(), 1)
    assert handed.count == 12
    sink.commit(given, "key", 1, [handed])
    bodies = [message.body[:1] for message in controlled.blocking.queue(ORDERS)]
    assert bodies == [b"%d" % number for number in range(4) for _ in range(3)]
    # but a task that has sent more than it keeps can only run again
    monkeypatch.setattr(sink_stage, "KEPT_BYTES", SMALL)
    with pytest.raises(FalconMQError, match="Spark runs the task again") as caught:
        hand_in(given, slow(), 2)
    assert caught.value.status is MqStatus.STALE_HANDLE


# Options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no queue is named"),
        ({"queue": "q", "quue": "q"}, "quue is no option"),
        ({"queue": " "}, "option queue ' ': it is empty"),
        ({"queue": "q", "onReject": "ignore"}, "write one of fail, collect"),
        ({"queue": "q", "onReject": "collect"}, "needs a place"),
        ({"queue": "q", "rejectPath": "p"}, "onReject is fail"),
        ({"queue": "q", "keepIds": "yes"}, "write one of true, false"),
        ({"queue": "q", "timeout": "soon"}, "write a number"),
        ({"queue": "q", "stageSeconds": "0"}, "it must be 1 to 3600"),
        ({"queue": "q", "requestBytes": "1"}, "it must be 65536 to"),
        ({"queue": "q", "batch": "1"}, "without key"),
        ({"queue": "q", "key": "k" * 201}, "200 are possible"),
    ],
)
def test_wrong_options_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(FalconMQError) as caught:
        SinkOptions.parse(given)
    assert said in str(caught.value)
    assert caught.value.status is MqStatus.INVALID_PARAMETER


def test_options_are_read_in_any_case_and_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCONMQ_URL", "http://elsewhere:1")
    monkeypatch.setenv("FALCONMQ_TOKEN", "secret")
    read = SinkOptions.parse({"QUEUE": "q", "keepids": "TRUE", "checkpointLocation": "/c"})
    assert (read.url, read.token, read.keep_ids) == ("http://elsewhere:1", "secret", True)
    assert "secret" not in repr(read)
    with pytest.raises(FalconMQError) as caught:
        SinkOptions.parse({"queue": "q", "requestbyte": "1"})
    assert caught.value.hint == "did you mean requestBytes?"


def test_a_queue_cannot_be_overwritten_and_a_stream_numbers_its_batches() -> None:
    from pyspark.sql.types import StructType  # noqa: PLC0415

    for make in (sink.writer, sink.stream_writer):
        with pytest.raises(FalconMQError, match="cannot be overwritten"):
            make({"queue": "q"}, StructType(), True)
    with pytest.raises(FalconMQError, match="numbers its own"):
        sink.stream_writer({"queue": "q", "key": "k", "batch": "7"}, StructType(), False)
    with pytest.raises(FalconMQError, match="foreachBatch"):
        sink.stream_writer({"queue": "q"}, StructType(), False).write(iter([]))


# With Spark


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Estate(tmp_path_factory.mktemp("estate")) as estate:
        daemon = estate.manager("A")
        daemon.sections["http"] = {"loopback_role": "manage"}
        yield daemon.start()


@pytest.fixture
def queue(daemon: Daemon) -> str:
    name = f"q-{uuid4()}"
    daemon.create_queue(name, transactional=True)
    return name


def target(daemon: Daemon, queue: str) -> dict[str, str]:
    return {"url": f"http://{daemon.address}:{HTTP_PORT}", "queue": rf".\private$\{queue}"}


def labels(daemon: Daemon, queue: str) -> list[str]:
    return [message["label"] for message in daemon.look(queue)]


@pytest.mark.slow
def test_a_data_frame_arrives_once_and_in_the_order_of_its_partitions(
    spark: SparkSession, daemon: Daemon, queue: str
) -> None:
    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The second partition breaks off when half of it has been handed in."""
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number and context.partitionId() == 1 and context.attemptNumber() == 0:
                raise ValueError("the first attempt fails")
            yield batch

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    try:
        frame = spark.range(0, 2000, 1, 4).selectExpr("cast(id as string) label", "'x' body")
        frame = frame.mapInArrow(fail_once, frame.schema)
        writing = frame.write.format("falconmq").mode("append").options(**target(daemon, queue))
        writing.option("key", queue).option("requestBytes", SMALL).save()
        writing.option("key", queue).save()  # the same job once more
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert labels(daemon, queue) == [str(number) for number in range(2000)]


@pytest.mark.slow
def test_a_replayed_batch_of_a_stream_changes_nothing(
    spark: SparkSession, daemon: Daemon, queue: str, tmp_path: Path
) -> None:
    incoming, checkpoint = tmp_path / "incoming", tmp_path / "checkpoint"
    incoming.mkdir()

    def run() -> None:
        stream = spark.readStream.schema("label string, body string").json(str(incoming))
        query = (
            stream.writeStream.format("falconmq")
            .options(**target(daemon, queue))
            .option("key", "files")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def arrive(label: str) -> None:
        (incoming / f"{label}.json").write_text(json.dumps({"label": label, "body": "x"}))

    arrive("first")
    run()
    arrive("second")
    run()
    # when Spark forgets that the last batch was done, as after a crash between the two commits
    (checkpoint / "commits" / "1").unlink()
    run()
    arrive("third")
    run()
    assert labels(daemon, queue) == ["first", "second", "third"]
    found = daemon.client.request("GET", "/ingests")["ingests"][0]
    assert (found["key"].startswith("files:"), found["last_batch"]) == (True, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "mode", "said"),
    [
        ({"qeue": "x"}, "append", "hint: did you mean queue?"),
        ({}, "overwrite", "a queue cannot be overwritten"),
        ({"queue": r".\private$\nowhere"}, "append", "MQ_ERROR_QUEUE_NOT_FOUND"),
    ],
    ids=["option", "mode", "queue"],
)
def test_spark_shows_what_is_wrong(
    spark: SparkSession, daemon: Daemon, queue: str, option: dict[str, str], mode: str, said: str
) -> None:
    frame: DataFrame = spark.range(1).selectExpr("'x' body")
    writing = frame.write.format("falconmq").options(**target(daemon, queue)).options(**option)
    with pytest.raises(Exception, match=said.replace("?", r"\?").replace("$", r"\$")):
        writing.mode(mode).save()
    assert labels(daemon, queue) == []
