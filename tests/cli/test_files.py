"""What a file of messages keeps: everything that a sender can set."""

from __future__ import annotations

import json

from hypothesis import given

from falconmq.cli.transfer import as_message, as_sent
from falconmq.client.arrow import messages_to_table, table_to_messages
from falconmq.client.columns import COLUMNS
from falconmq.message import Message
from falconmq.service import schemas
from falconmq.service.requests.messages import from_json, to_json
from tests.client.test_arrow import is_whole
from tests.strategies.messages import messages

_SENT = [column.name for column in COLUMNS if column.is_sent and "provider" not in column.name]


@given(message=messages())
def test_a_line_of_json_keeps_every_property_that_a_sender_sets(message: Message) -> None:
    line = json.dumps(to_json(message))
    back = from_json(schemas.MessageIn.model_validate(as_sent(json.loads(line))))
    for name in [*_SENT, "provider"]:
        assert getattr(back, name) == getattr(message, name), name


@given(message=messages().filter(is_whole))
def test_a_row_of_parquet_keeps_it_too(message: Message) -> None:
    kept = as_message(json.loads(json.dumps(to_json(message))))
    [back] = table_to_messages(messages_to_table([kept], "the queue"))
    for name in [*_SENT, "provider"]:
        assert getattr(back, name) == getattr(message, name), name
