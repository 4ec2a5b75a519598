"""Records of the store read all at once say what `from_position` says of each message."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq import Message, WireError
from falconmq.client.arrow import messages_to_batch, schema
from falconmq.client.columns import COLUMNS
from falconmq.embedded.messages import from_position
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.message import AuthenticationLevel, MessageClass
from falconmq.names import PrivateFormatName
from falconmq.serialization import to_user_message
from falconmq.service.requests.record_columns import records_to_batch
from falconmq.service.requests.records import Rows
from falconmq.wire.user_message import UserMessage
from tests.strategies.user_message import user_messages
from tests.strategies.wire import u8, u16

QUEUE = ".\\private$\\orders"
NAMES = [column.name for column in COLUMNS]
HEAD = 26  # bytes before the path


def stored(message: Message, **properties: Any) -> StoredMessage:
    message.destination = PrivateFormatName(UUID(int=1), 2)
    packet = to_user_message(
        message, source_queue_manager=UUID(int=7), message_id=8, sent_time=1_700_000_000
    )
    found = StoredMessage.of(packet)
    for name, value in properties.items():
        setattr(found, name, value)
    return found


@st.composite
def stored_messages(draw: st.DrawFn) -> StoredMessage:
    packet = draw(user_messages())
    if draw(st.booleans()):
        packet.soap = packet.multi_queue_format = None
    found = StoredMessage(UserMessage.encode(packet))
    found.arrival_time = draw(st.integers(0, 2**42)) / 1000
    found.arrival_number = draw(st.integers(0, 2**63 - 1))
    found.allow_peek_when_locked = draw(st.booleans())
    found.authentication_level = draw(st.sampled_from(AuthenticationLevel) | u8)
    found.dead_letter_queue = draw(st.just("") | st.text(st.characters(codec="utf-8"), max_size=9))
    found.abort_count, found.move_count = draw(u16), draw(u16)
    found.is_dead_letter = draw(st.booleans())
    found.dead_letter_reason = draw(st.sampled_from([0, 0, *MessageClass, 0x803F]))
    found.needs_number = draw(st.booleans())
    return found


def expected(
    records: Sequence[bytes],
    lookup_ids: Sequence[int],
    locked: Sequence[bool] | None = None,
    columns: Sequence[str] | None = None,
) -> pa.RecordBatch:
    """One after the other, as the queue manager shows a message to its readers."""
    found = [StoredMessage.decode(record) for record in records]
    messages = [
        from_position(MessagePosition(None, lookup_id, message))  # type: ignore[arg-type]
        for lookup_id, message in zip(lookup_ids, found, strict=True)
    ]
    beside: dict[str, Sequence[Any]] = {
        "arrival_number": [message.arrival_number for message in found],
        "arrived_at": [round(message.arrival_time * 1000) * 1000 for message in found],
        "size": [message.size for message in found],
    }
    if locked is not None:
        beside["locked"] = locked
    return messages_to_batch(messages, QUEUE, beside=beside, columns=columns)


def assert_same(made: pa.RecordBatch, wanted: pa.RecordBatch) -> None:
    made.validate(full=True)
    for name, one, other in zip(made.schema.names, made.columns, wanted.columns, strict=True):
        assert one.equals(other), (name, one.to_pylist(), other.to_pylist())
    assert made.equals(wanted, check_metadata=True)


rows = st.lists(st.tuples(stored_messages(), st.integers(0, 2**63 - 1), st.booleans()), max_size=5)


@given(rows, st.none() | st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
def test_records_say_what_their_messages_say(
    given: list[tuple[StoredMessage, int, bool]], columns: list[str] | None
) -> None:
    records = [message.encode() for message, _, _ in given]
    lookup_ids = [lookup_id for _, lookup_id, _ in given]
    locked = [is_locked for _, _, is_locked in given]
    made = records_to_batch(Rows.of(records, lookup_ids), QUEUE, locked=locked, columns=columns)
    assert_same(made, expected(records, lookup_ids, locked, columns))


def test_a_dead_letter_shows_why_it_died() -> None:
    records = [
        stored(Message(b"a")).encode(),
        stored(
            Message(b"b"), is_dead_letter=True, dead_letter_reason=MessageClass.NACK_Q_PURGED
        ).encode(),
        stored(Message(b"c", message_class=2)).encode(),
    ]
    batch = records_to_batch(Rows.of(records, [1, 2, 3]), QUEUE, columns=["message_class", "body"])
    assert batch.column("message_class").to_pylist() == [
        "NORMAL",
        "NACK_Q_PURGED",
        "ACK_REACH_QUEUE",
    ]
    assert_same(batch, expected(records, [1, 2, 3], columns=["message_class", "body"]))


def test_arrival_is_told_to_the_millisecond() -> None:
    record = stored(Message(b"x"), arrival_time=1_700_000_000.123).encode()
    rows = Rows.of([record], [1])
    [row] = records_to_batch(rows, QUEUE, columns=["arrived_at", "queue"]).to_pylist()
    assert (row["arrived_at"].timestamp(), row["arrived_at"].microsecond) == (
        1_700_000_000.123,
        123_000,
    )
    assert row["queue"] == QUEUE


def test_a_lock_that_was_not_asked_for_is_not_known() -> None:
    record = stored(Message(b"x")).encode()
    batch = records_to_batch(Rows.of([record], [1]), QUEUE, columns=["locked"])
    assert batch.column("locked").to_pylist() == [None]


def test_a_path_that_is_no_text_is_shown_as_it_can_be() -> None:
    record = stored(Message(b"x"), dead_letter_queue="dead").encode()
    broken = record[:HEAD] + b"d\xffad" + record[HEAD + 4 :]
    batch = records_to_batch(Rows.of([broken, record], [1, 2]), QUEUE)
    assert batch.column("dead_letter_queue").to_pylist() == ["d\ufffdad", "dead"]
    assert_same(batch, expected([broken, record], [1, 2]))


def test_no_records_are_no_rows() -> None:
    assert records_to_batch(Rows.of([], []), QUEUE).schema.equals(schema(), check_metadata=True)
    assert records_to_batch(Rows.of([], []), QUEUE, columns=["body"]).num_rows == 0


GOOD = stored(Message(b"good"), dead_letter_queue="dead").encode()
PACKET = HEAD + len("dead")


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        GOOD[: HEAD - 1],
        b"\x02" + GOOD[1:],
        GOOD[: HEAD + 2],
        GOOD[: PACKET + 63],
        GOOD[:PACKET] + b"\x11" + GOOD[PACKET + 1 :],
        GOOD[: PACKET + 2] + b"\x08" + GOOD[PACKET + 3 :],
        GOOD[: PACKET + 4] + b"NONE" + GOOD[PACKET + 8 :],
        GOOD[:-1],
    ],
    ids=["empty", "head", "version", "path", "packet", "its version", "internal", "mark", "end"],
)
def test_a_damaged_record_is_refused_as_its_decoder_refuses_it(damaged: bytes) -> None:
    with pytest.raises(WireError) as told:
        StoredMessage.decode(damaged).decode_packet()
    with pytest.raises(WireError) as caught:
        records_to_batch(Rows.of([GOOD, damaged, GOOD], [1, 2, 3]), QUEUE)
    assert str(caught.value) == f"row 1: {told.value}"


def test_a_daemon_that_nobody_asks_for_columns_loads_neither_numpy_nor_pyarrow() -> None:
    code = (
        "import sys, falconmq.service.requests.record_columns\n"
        "sys.exit(bool({'numpy', 'pyarrow'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_numpy_the_error_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from falconmq.errors import FalconMQError\n"
        "from falconmq.service.requests.record_columns import records_to_batch\n"
        "from falconmq.service.requests.records import Rows\n"
        "try:\n    records_to_batch(Rows.of([], []), '')\n"
        "except FalconMQError as error:\n    print(error, error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "numpy" in done.stdout
    assert "falconmq[arrow]" in done.stdout
