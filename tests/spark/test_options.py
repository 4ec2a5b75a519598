"""The options of the source: what each means, what goes together, and what is refused."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from falconmq.errors import FalconMQError
from falconmq.spark.option_table import BROWSE, DEFAULT_URL, EVENTS, OPTIONS
from falconmq.spark.options import Place, SourceOptions
from falconmq.spark.schema import project, source_schema
from falconmq.spark.source import FalconMQDataSource

ORDERS = r".\private$\orders"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "TOKEN", "DATA"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


def parsed(**given: str) -> SourceOptions:
    """As Spark hands them over."""
    options = CaseInsensitiveDict()
    options.update({"queue": ORDERS} | given)
    return SourceOptions.parse(options)


def struct(text: str) -> StructType:
    """Spark reads such texts in Java; these are few."""
    kinds = {
        "string": StringType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "binary": BinaryType(),
    }
    fields = [field.split() for field in text.split(",")]
    return StructType([StructField(name, kinds[kind], not rest) for name, kind, *rest in fields])


def test_a_queue_is_enough() -> None:
    options = parsed()
    assert options.places == (Place(DEFAULT_URL),)
    assert options.queues == (ORDERS,)
    assert options.mode == BROWSE
    assert not options.fail_on_data_loss
    assert pickle.loads(pickle.dumps(options)) == options


def test_every_option_is_read() -> None:
    options = parsed(
        url="http://a:8018, unix:/b",
        token="one,two",
        caFile="/ca.pem",
        queue=rf"{ORDERS}, .\private$\bills",
        mode="Consume",
        consumer="me",
        maxMessagesPerTrigger="5",
        maxBytesPerTrigger="6",
        minPartitions="7",
        maxMessagesPerPartition="8",
        columns="label, body",
        includeBody="false",
        bodyFormat="json",
        pollTimeoutMs="250",
        acknowledgeLag="1",
        leaseSeconds="30",
        timeout="9",
    )
    assert options == SourceOptions(
        places=(Place("http://a:8018", "one", "/ca.pem"), Place("unix:/b", "two", "/ca.pem")),
        queues=(ORDERS, r".\private$\bills"),
        mode="consume",
        consumer="me",
        messages_per_trigger=5,
        bytes_per_trigger=6,
        min_partitions=7,
        messages_per_partition=8,
        fail_on_data_loss=True,
        columns=("label", "body"),
        include_body=False,
        body_format="json",
        poll_seconds=0.25,
        acknowledge_lag=1,
        lease_seconds=30,
        timeout=9.0,
    )


def test_other_names_and_other_sources() -> None:
    assert SourceOptions.parse({"queues": ORDERS, "body": "xml"}).body_format == "xml"
    assert SourceOptions.parse({"queuepattern": "*"}).pattern == "*"
    events = SourceOptions.parse({"source": "events", "packets": "true"})
    assert (events.source, events.packets, events.fail_on_data_loss) == (EVENTS, True, True)
    assert SourceOptions.parse({"source": "deadletter"}).fail_on_data_loss
    assert not SourceOptions.parse(
        {"source": "journal", "failOnDataLoss": "FALSE"}
    ).fail_on_data_loss
    assert parsed(startingOffsets='{"a": 4}', endingOffsets="Latest").starting == {"a": 4}
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    for text in ("2026-11-16T12:00:00Z", "2026-11-16 12:00", str(int(noon.timestamp()) * 1000)):
        assert parsed(startingTimestamp=text).starting_time == noon


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCONMQ_DATA", "/d")
    assert parsed().places == (Place("unix:/d"),)
    assert parsed(url="unix:e").places == (Place(f"unix:{Path.cwd()}/e"),)
    monkeypatch.setenv("FALCONMQ_URL", "http://a")
    monkeypatch.setenv("FALCONMQ_TOKEN", "secret")
    assert parsed().places == (Place("http://a", "secret"),)
    assert parsed(url="http://b", token="other").places == (Place("http://b", "other"),)
    assert parsed(url="http://b,http://c").places == (
        Place("http://b", "secret"),
        Place("http://c", "secret"),
    )


@pytest.mark.parametrize(
    ("given", "problem", "hint"),
    [
        ({"maxMessagePerTrigger": "5"}, "is no option", "did you mean maxMessagesPerTrigger?"),
        ({"zzz": "5"}, "zzz is no option", "startingOffsets"),
        ({"queues": ORDERS}, "queue and queues are one option", "one of them"),
        ({"queuePattern": "*"}, "both given", "one of them"),
        ({"mode": "steal"}, "option mode 'steal'", ""),
        ({"minPartitions": "many"}, "write a number", ""),
        ({"minPartitions": "0"}, "at least 1", ""),
        ({"failOnDataLoss": "maybe"}, "true or false", ""),
        ({"startingOffsets": "soon"}, "earliest, latest or JSON", ""),
        ({"startingOffsets": "[1]"}, "earliest, latest or JSON", ""),
        ({"startingTimestamp": "noon"}, "write 2026-", ""),
        ({"startingOffsets": "latest", "startingTimestamp": "0"}, "both given", ""),
        ({"endingOffsets": "latest", "endingTimestamp": "0"}, "both given", ""),
        ({"mode": "consume"}, "needs a name", "consumer"),
        ({"consumer": "me"}, "mode is browse", "consume"),
        (
            {"mode": "consume", "consumer": "me", "startingOffsets": "latest"},
            "removed unread",
            "purge",
        ),
        ({"source": "events"}, "whole queue manager", "leave the queue out"),
        ({"packets": "true"}, "belongs to source events", ""),
        ({"url": "http://a,http://b,http://c", "token": "1,2"}, "3 urls and 2 tokens", ""),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_wrong_is_refused_by_name(given: dict[str, str], problem: str, hint: str) -> None:
    with pytest.raises(FalconMQError, match=problem) as refused:
        parsed(**given)
    assert hint in refused.value.hint


def test_refusals_without_a_queue() -> None:
    with pytest.raises(FalconMQError, match="no queue is named"):
        SourceOptions.parse({})
    consume = {"source": "events", "mode": "consume", "consumer": "me"}
    with pytest.raises(FalconMQError, match="cannot be consumed"):
        SourceOptions.parse(consume)


def test_a_wrong_token_is_not_shown() -> None:
    with pytest.raises(FalconMQError) as refused:
        parsed(url="http://a,http://b,http://c", token="secret,secret")
    assert "secret" not in str(refused.value)


def test_the_table_is_complete() -> None:
    names = [name for option in OPTIONS for name in option.names]
    assert len(names) == len(set(map(str.lower, names)))
    assert all(option.description for option in OPTIONS)


def schema_of(**given: str) -> StructType:
    return source_schema(parsed(**given))


def test_columns_and_schemas_choose_what_is_read() -> None:
    assert schema_of(columns="label,priority").simpleString() == "struct<label:string,priority:int>"
    assert "body" not in schema_of(includeBody="false").names
    assert schema_of()["body"].dataType.simpleString() == "binary"
    assert schema_of(bodyFormat="auto")["body"].dataType.simpleString() == "string"
    assert schema_of()["acknowledgements"].dataType.simpleString() == "array<string>"
    events = SourceOptions.parse({"source": "events"})
    assert "packet" not in source_schema(events).names
    assert (
        "packet"
        in source_schema(SourceOptions.parse({"source": "events", "packets": "true"})).names
    )
    own = project(parsed(), struct("body string, label string"))
    assert (own.asked, own.body_format) == (["body", "label", "body_type"], "string")
    assert project(parsed(), struct("body binary")).asked == ["body"]


@pytest.mark.parametrize(
    ("schema", "given", "problem"),
    [
        ("lable string", {}, "lable is no column"),
        ("label int", {}, "column label is string, not int"),
        ("priority bigint", {}, "column priority is int, not bigint"),
        ("label string not null", {}, "may be null"),
        ("label string, label string", {}, "twice"),
        ("label string", {"columns": "body"}, "columns and the schema"),
        ("body binary", {"bodyFormat": "json"}, "column body is string, not binary"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    schema: str, given: dict[str, str], problem: str
) -> None:
    options = CaseInsensitiveDict()
    options.update({"queue": ORDERS} | given)
    source = FalconMQDataSource(options)
    for read in (source.reader, source.streamReader):
        with pytest.raises(FalconMQError, match=problem):
            read(struct(schema))


def test_a_wrong_column_is_told_with_the_right_one() -> None:
    options = CaseInsensitiveDict()
    options.update({"queue": ORDERS, "columns": "lable"})
    with pytest.raises(FalconMQError, match=r"no column here.*\nhint: did you mean label"):
        FalconMQDataSource(options).schema()


def test_nothing_is_pushed_down_and_batches_do_not_consume() -> None:
    options = CaseInsensitiveDict()
    options.update({"queue": ORDERS})
    reader = FalconMQDataSource(options).reader(struct("label string"))
    assert "pushFilters" not in vars(type(reader))
    options.update({"mode": "consume", "consumer": "me"})
    with pytest.raises(FalconMQError, match="readStream with trigger"):
        FalconMQDataSource(options).reader(struct("label string"))
    options = CaseInsensitiveDict()
    options.update({"queue": ORDERS, "endingOffsets": '{"a": 1}'})
    with pytest.raises(FalconMQError, match="a stream has no end"):
        FalconMQDataSource(options).streamReader(struct("label string"))
