"""Packets built all at once are, byte for byte, those that each row's message becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from falconmq import FalconMQError, Message, MessageError
from falconmq.client.arrow import messages_to_batch, schema, table_to_messages
from falconmq.client.packet_building import _Build, arrow_to_packets
from falconmq.client.packet_templates import Unusual
from falconmq.client.packets import destination_of, to_packet
from falconmq.message import MessageId
from falconmq.names import SingleFormatName
from tests.strategies.messages import message_ids, messages, queue_names
from tests.strategies.wire import u32

ORDERS = destination_of("DIRECT=OS:shop\\private$\\orders")
SOURCE = UUID(int=2)
GUID = "{55735802-9150-9595-4997-B6E611EA26C6}"


def one_by_one(
    batch: pa.RecordBatch,
    destination: SingleFormatName = ORDERS,
    *,
    in_transaction: bool = False,
    source: UUID = SOURCE,
) -> list[bytes]:
    return [
        to_packet(message, destination, in_transaction=in_transaction, source=source)
        for message in table_to_messages(batch)
    ]


def at_once(batch: pa.RecordBatch, *, in_transaction: bool = False) -> list[bytes]:
    """Only the fast way; Unusual if it does not take the batch."""

    def build(message: Message) -> bytes:
        return to_packet(message, ORDERS, in_transaction=in_transaction, source=SOURCE)

    return _Build(batch, in_transaction=in_transaction).packets(build)


def batch_of(**columns: Sequence[Any]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            name: values
            if name == "body" or isinstance(values, pa.Array)
            else pa.array(values, schema().field(name).type)
            for name, values in columns.items()
        }
    )


whole_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
free: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "body": st.binary(max_size=9),
        "label": st.none() | whole_texts,
        "extension": st.none() | st.binary(max_size=9),
        "correlation_id": st.none() | message_ids.map(str),
        "body_type": st.none() | u32,
        "application_tag": st.none() | u32,
        "priority": st.none() | st.integers(0, 7),
        "time_to_reach_queue": st.none() | u32,
        "time_to_be_received": st.none() | u32,
    }
)
# Some of it cannot be sent, or is written otherwise than most do.
ODD: list[dict[str, Any]] = [
    {"label": "x" * 250},
    {"label": "🦅" * 125},
    {"label": "a\0b"},
    {"priority": 8},
    {"priority": -1},
    {"application_tag": 1 << 32},
    {"time_to_be_received": -1},
    {"correlation_id": "nonsense"},
    {"correlation_id": f"{GUID}\\4294967296"},
    {"correlation_id": f"{GUID}\\00000000001"},
    {"correlation_id": f"{GUID}\\"},
    {"correlation_id": f"{GUID}\\ 1"},
    {"correlation_id": f"{GUID}\\１"},
    {"correlation_id": f"{GUID[1:-1]}\\7"},  # without braces, as .NET prints it
    {"body": None},
]
odd = st.sampled_from(ODD)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows of which many are built alike, and some columns of theirs."""
    alike = messages_to_batch(draw(st.lists(messages(), min_size=1, max_size=2)))
    rows = draw(st.lists(free, min_size=8, max_size=9))
    if draw(st.integers(0, 3)) == 0:
        rows[draw(st.integers(0, 7))] |= draw(odd)
    names = draw(st.lists(st.sampled_from(alike.schema.names), unique=True))
    taken = alike.take(pa.array([row % alike.num_rows for row in range(len(rows))]))
    columns = {name: taken.column(name) for name in [*names, "body"]}
    for name in draw(st.lists(st.sampled_from(sorted(rows[0])), unique=True)):
        columns[name] = pa.array([row[name] for row in rows], schema().field(name).type)
    return pa.record_batch(columns)


def assert_same(batch: pa.RecordBatch, destination: SingleFormatName, in_transaction: bool) -> None:
    try:
        expected = one_by_one(batch, destination, in_transaction=in_transaction)
    except FalconMQError as error:
        with pytest.raises(type(error)) as caught:
            arrow_to_packets(batch, destination, in_transaction=in_transaction, source=SOURCE)
        assert str(caught.value) == str(error)
    else:
        made = arrow_to_packets(batch, destination, in_transaction=in_transaction, source=SOURCE)
        assert made == expected


@given(batches(), queue_names, st.booleans())
@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_packets_are_those_of_the_messages(
    batch: pa.RecordBatch, destination: SingleFormatName, in_transaction: bool
) -> None:
    assert_same(batch, destination, in_transaction)


@given(st.lists(free, min_size=1, max_size=5), st.booleans())
def test_what_differs_from_row_to_row_is_built_at_once(
    rows: list[dict[str, Any]], in_transaction: bool
) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(map(schema().field, rows[0])))
    expected = one_by_one(batch, in_transaction=in_transaction)
    assert at_once(batch, in_transaction=in_transaction) == expected


@pytest.mark.parametrize(
    "columns",
    [
        {"body": [b"x", b"", b"longer than twelve bytes"]},
        {"body": ["text", "Grün 注文 🦅", ""]},
        {"body": ["text", "Grün 注文 🦅", ""], "body_type": [0, 0, 0]},
        {"body": pa.array(["text", "a", "text"]).dictionary_encode()},
        {"body": pa.array([b"x", b"y", b"z"], pa.large_binary())},
        {"body": [b"x"] * 12, "delivery": ["EXPRESS", "RECOVERABLE", None] * 4},
        {"body": [b"x"] * 8, "journal": [["JOURNAL"], ["DEAD_LETTER", "JOURNAL"]] * 4},
        {"body": [b"x"] * 8, "journal": [["JOURNAL"], ["DEAD_LETTER"]] * 4},
        {"body": [b"x"] * 8, "response_queue": ["DIRECT=OS:a\\b", None] * 4},
        {"body": [b"x"] * 8, "trace": [True, False] * 4, "soap_body": ["<a/>"] * 8},
        {"body": [b"x"] * 8, "sender_id": [bytes.fromhex("0100000000000005")] * 8},
        {"body": [b"x"], "response_queues": [["DIRECT=OS:a\\b", "DIRECT=OS:c\\d"]]},
        {"body": [b"x"] * 3, "message_id": ["ignored"] * 3, "locked": [True] * 3},
    ],
)
def test_what_is_common_is_built_at_once(columns: dict[str, Any]) -> None:
    batch = batch_of(**columns)
    assert at_once(batch) == one_by_one(batch)


@pytest.mark.parametrize("row", ODD)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_odd_row_among_others(row: dict[str, Any], in_transaction: bool) -> None:
    usual = {"body": b"x", "label": "a", "priority": 1, "application_tag": 2}
    usual |= {"time_to_be_received": 3, "correlation_id": f"{GUID}\\4294967295"}
    rows = [usual, usual, usual | row, usual]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(map(schema().field, usual)))
    with pytest.raises((Unusual, FalconMQError)):
        at_once(batch, in_transaction=in_transaction)
    assert_same(batch, ORDERS, in_transaction)


def test_a_part_of_a_batch_is_built_from_its_own_rows() -> None:
    rows = batch_of(
        body=["a", "bé", "cc", "d"],
        label=["1", "22é", "333", None],
        correlation_id=[None, f"{GUID}\\1", f"{GUID}\\2", None],
    )
    for start, count in ((1, 2), (2, 1), (3, 1), (0, 3)):
        part = rows.slice(start, count)
        assert at_once(part) == one_by_one(part)


@pytest.mark.parametrize(
    "columns",
    [
        {"body": ["1", "2"], "body_type": [30, 8]},
        {"body": ["1", "2"], "body_type": [0, None]},
        {"body": [b"x", b"y"], "correlation_id": [f"{GUID[1:-1]}\\7", None]},
        {"body": [b"x"] * 4, "signature": [b"1", b"2", b"3", b"4"], "sender_id": [SOURCE.bytes] * 4}
        | {"sender_id_type": ["QUEUE_MANAGER"] * 4},
    ],
    ids=["types of text", "a type or none", "ids of .NET", "signatures"],
)
def test_what_is_unusual_goes_row_by_row(columns: dict[str, Any]) -> None:
    batch = batch_of(**columns)
    with pytest.raises(Unusual):
        at_once(batch)
    assert arrow_to_packets(batch, ORDERS, in_transaction=True) == one_by_one(
        batch, in_transaction=True
    )


def test_a_body_that_no_packet_holds_is_refused() -> None:
    sizes = [1, (4 << 20) - 60]
    batch = batch_of(body=[bytes(size) for size in sizes])
    with pytest.raises(MessageError, match="body: the message needs"):
        arrow_to_packets(batch, ORDERS, in_transaction=False)
    largest = batch_of(body=[bytes((4 << 20) - 400)])
    assert at_once(largest) == one_by_one(largest)


def test_a_refused_row_is_named() -> None:
    batch = batch_of(body=[b"x"] * 3, priority=[1, 2, 9])
    with pytest.raises(MessageError, match="row 2: priority"):
        arrow_to_packets(batch, ORDERS, in_transaction=False)
    with pytest.raises(MessageError, match="lable: is no column"):
        arrow_to_packets(pa.record_batch({"lable": []}), ORDERS, in_transaction=False)


def test_no_rows_are_no_packets() -> None:
    assert arrow_to_packets(batch_of(body=[]), ORDERS, in_transaction=False) == []


def test_what_was_read_can_be_sent() -> None:
    given = [Message(b"%d" % n, label=f"order {n}", priority=n % 8) for n in range(20)]
    for number, message in enumerate(given):
        message.destination, message.id = ORDERS, MessageId.of(SOURCE, number)
    batch = messages_to_batch(given, "the queue")
    assert at_once(batch) == one_by_one(batch)
