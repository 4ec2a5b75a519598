"""Messages as tables and back: every property is kept, and mistakes are named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given

from falconmq import FalconMQError, Message, MessageError
from falconmq.body import BodyType
from falconmq.client.arrow import messages_to_table, schema, table_to_messages
from falconmq.client.columns import COLUMNS
from falconmq.message import INFINITE, Acknowledge, Delivery, Journal, MessageId
from falconmq.names import DirectFormatName
from tests.strategies.messages import messages

_SENT = [column.name for column in COLUMNS if column.is_sent and "provider" not in column.name]


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def refused(given: pa.Table) -> MessageError:
    with pytest.raises(MessageError) as caught:
        table_to_messages(given)
    return caught.value


def is_whole(message: Message) -> bool:
    """Whether its texts are texts: UTF-16 may be cut in the middle of a character."""
    name = "" if message.provider is None else message.provider.name
    texts = message.label, message.soap_header or "", message.soap_body or "", name
    return not any("\ud800" <= character <= "\udfff" for text in texts for character in text)


@given(messages().filter(is_whole))
def test_every_property_that_a_sender_sets_comes_back(message: Message) -> None:
    [back] = table_to_messages(messages_to_table([message]))
    for name in [*_SENT, "provider"]:
        assert getattr(back, name) == getattr(message, name), name


@given(messages())
def test_what_a_queue_manager_filled_in_can_be_read(message: Message) -> None:
    message.id = MessageId.of(UUID(int=7), 8)
    message.lookup_id, message.sent_time, message.arrived_time = 1 << 58, 0xFFFFFFFF, 1
    [row] = messages_to_table([message], "the queue").to_pylist()
    assert row["message_id"] == str(message.id)
    assert row["lookup_id"] == 1 << 58
    assert row["sent_at"].timestamp() == 0xFFFFFFFF
    assert row["queue"] == "the queue"
    assert row["source_queue_manager"] == str(UUID(int=7))
    assert row["hop_count"] == message.hop_count
    assert row["transactional"] is (message.transaction is not None)
    if message.transaction is not None:
        assert row["transaction_sequence_id"] == str(message.transaction.sequence_id)
        assert row["transaction_sequence_number"] == message.transaction.sequence_number
    assert row["destination"] == str(message.destination)


def test_a_table_of_nothing_has_the_columns() -> None:
    empty = messages_to_table([])
    assert empty.schema == schema()
    assert empty.num_rows == 0
    assert table_to_messages(empty) == []


def test_every_column_is_described() -> None:
    for field in schema():
        assert field.metadata[b"description"], field.name


def test_only_the_body_is_needed() -> None:
    first, second = table_to_messages(table(body=[b"\0\1", b""]))
    assert (first.body, first.body_type) == (b"\0\1", BodyType.VT_EMPTY)
    assert second.body == b""
    assert (first.label, first.priority, first.recoverable) == ("", 3, None)
    assert (first.time_to_reach_queue, first.time_to_be_received) == (None, INFINITE)


def test_a_null_is_as_if_the_column_were_not_there() -> None:
    [message] = table_to_messages(
        table(
            body=[b"x"],
            priority=pa.array([None], pa.int32()),
            delivery=pa.array([None], pa.string()),
            response_queue=pa.array([None]),
        )
    )
    assert (message.priority, message.recoverable, message.response_queue) == (3, None, None)


def test_a_text_is_a_body_too() -> None:
    [text] = table_to_messages(table(body=["grün"]))
    assert (text.text, text.body_type) == ("grün", BodyType.VT_BSTR)
    [plain] = table_to_messages(table(body=["grün"], body_type=[0]))
    assert plain.body == "grün".encode()
    once = pa.array(["grün"]).dictionary_encode()
    assert table_to_messages(table(body=once, body_type=[0])) == [plain]


def test_types_of_the_same_kind_will_do() -> None:
    given = table(
        body=pa.array([b"x"], pa.large_binary()),
        label=pa.array(["urgent"]).dictionary_encode(),
        priority=pa.array([7], pa.uint8()),
        journal=pa.array([["dead-letter"]], pa.large_list(pa.string())),
        acknowledgements=pa.array([[]], pa.list_(pa.null())),
        delivery=pa.array(["express"], pa.string_view()),
    )
    [message] = table_to_messages(given)
    assert (message.label, message.priority) == ("urgent", 7)
    assert message.journal == Journal.DEAD_LETTER
    assert message.acknowledgements == Acknowledge.NONE
    assert message.delivery is Delivery.EXPRESS


def test_columns_that_queue_managers_fill_in_are_ignored() -> None:
    [message] = table_to_messages(table(body=[b"x"], message_id=["mine"], size=["large"]))
    assert message.id is None


def test_an_unknown_column_is_refused_by_name() -> None:
    error = refused(table(body=[b"x"], prioritty=[1]))
    assert error.field == "prioritty"
    assert "priority" in error.hint


def test_a_table_without_bodies_is_refused() -> None:
    assert "missing" in str(refused(table(label=["x"])))
    assert "row 1: body: is null" in str(refused(table(body=[b"x", None])))


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([b"x"]), pa.array([b"y"])], names=["body", "body"])
    assert "twice" in str(refused(twice))


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("priority", ["high"], "the column is string, it must be int32"),
        ("priority", [1.5], "the column is double, it must be int32"),
        ("priority", [1 << 40], "does not fit into int32"),
        ("priority", [8], "row 0: priority"),
        ("label", [7], "the column is int64, it must be string"),
        ("trace", [1], "the column is int64, it must be bool"),
        ("journal", ["JOURNAL"], "the column is string, it must be list<"),
        ("journal", [["JOURNL"]], "row 0: journal: 'JOURNL' is not known"),
        ("journal", [[None]], "row 0: journal: None is not known"),
        ("message_class", ["NORMALL"], "row 0: message_class: 'NORMALL' is not known"),
        ("delivery", ["2"], "neither EXPRESS nor RECOVERABLE"),
        ("report_queue", ["x"], "'x' is no GUID"),
        ("correlation_id", ["x"], "no message id"),
        ("extension", ["text"], "the column is string, it must be binary"),
    ],
)
def test_what_a_column_cannot_hold_is_refused(column: str, values: list[Any], problem: str) -> None:
    assert problem in str(refused(table(body=[b"x"], **{column: values})))


def test_an_error_says_which_row_it_is_about() -> None:
    with pytest.raises(FalconMQError, match="row 12: "):
        table_to_messages(table(body=[b"x"] * 3, response_queue=["DIRECT=OS:a\\b"] * 2 + ["?"]), 10)


def test_half_a_character_is_replaced() -> None:
    """A label comes from peers as UTF-16, which may be cut anywhere; Arrow has UTF-8 alone."""
    message = Message("x")
    message.label = "cut \ud83d"
    message.response_queues = (DirectFormatName.from_wire("OS:cut \ud83d"),)
    [row] = messages_to_table([message]).to_pylist()
    assert row["label"] == "cut \ufffd"
    assert row["response_queues"] == ["DIRECT=OS:cut \ufffd"]


def test_without_pyarrow_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
from falconmq.client import arrow
try:
    arrow.schema()
except arrow.FalconMQError as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "falconmq[arrow]" in done.stdout
