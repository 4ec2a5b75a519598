"""Messages as packets: what the client refuses, and answers that are none."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from falconmq import Message, MessageError, MqStatus
from falconmq.client import packets
from falconmq.errors import WireError
from falconmq.message import Acknowledge, MessageId
from falconmq.names import DirectFormatName, PrivateFormatName
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.packet import decode_packet
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.user_message import UserMessage

GUID = UUID("55735802-9150-9595-4997-B6E611EA26C6")
ORDERS = DirectFormatName.from_wire(r"OS:sales02\private$\orders")


def answer(body: bytes, **head: object) -> bytes:
    said = {"count": 1, "lookup_ids": ["7"], "arrived": [5], **head}
    return json.dumps(said).encode() + b"\n" + body


def packet(*bodies: str) -> bytes:
    messages = [Message(body) for body in bodies]
    return packets.to_packets(messages, ORDERS, in_transaction=False)


def test_packets_stand_one_behind_the_other_with_zeros_to_fill_in() -> None:
    splitter = PacketSplitter()
    splitter.feed(packet("a", "b"))
    found = [decode_packet(each) for each in splitter]
    assert splitter.pending == 0
    for each in found:
        assert isinstance(each, UserMessage)
        assert each.user.source_queue_manager == bytes(16)
        assert (each.user.message_id, each.user.sent_time) == (0, 0)
        assert each.transaction is None


def test_a_private_queue_for_answers_is_named_by_its_place() -> None:
    # given a message that is answered in a queue of its own queue manager
    message = Message(
        "a",
        administration_queue=PrivateFormatName(GUID, 9),
        acknowledgements=Acknowledge.FULL_RECEIVE,
    )
    assert packets.names_private_queues([message])
    assert not packets.names_private_queues([Message("b", response_queue=ORDERS)])
    # when its sender is known
    body = packets.to_packets([message], ORDERS, in_transaction=False, source=GUID)
    # then a number is enough, and the name of the sender is still for others to fill in
    decoded = decode_packet(body)
    assert isinstance(decoded, UserMessage)
    assert decoded.user.admin_queue == 9
    assert decoded.user.source_queue_manager == bytes(16)


@pytest.mark.parametrize(
    "message",
    [
        Message("a", dead_letter_queue=r".\private$\dead"),
        Message("a", allow_peek_when_locked=True),
    ],
)
def test_what_no_packet_carries_is_refused(message: Message) -> None:
    with pytest.raises(MessageError, match="does not carry") as raised:
        packets.to_packets([message], ORDERS, in_transaction=False)
    assert "client.send()" in raised.value.hint


def test_a_request_that_would_be_too_large_is_not_sent() -> None:
    large = Message(bytes(3 << 20))
    with pytest.raises(MessageError, match="one request takes") as raised:
        packets.to_packets([large] * 6, ORDERS, in_transaction=False)
    assert raised.value.status is MqStatus.INSUFFICIENT_RESOURCES


def test_a_packet_goes_to_one_queue() -> None:
    with pytest.raises(MessageError, match="several queues"):
        packets.destination_of(r"DIRECT=OS:a\private$\b,DIRECT=OS:c\private$\d")


def test_ids_go_on_behind_the_highest_number_with_one() -> None:
    first = MessageId.of(GUID, 0xFFFFFFFE)
    ids = packets.ids_of({"count": 4, "first_id": str(first)})
    assert [id.ordinal for id in ids] == [0xFFFFFFFE, 0xFFFFFFFF, 1, 2]
    assert {id.queue_manager for id in ids} == {GUID}


def test_an_answer_is_a_line_of_json_and_packets() -> None:
    (message,) = packets.from_packets(
        answer(
            packet("a"),
            abort_counts=[3],
            move_counts=[2],
            authentication_levels=[1],
            allow_peek_when_locked=[True],
            dead_letter_queues=["x"],
        )
    )
    assert (message.text, message.lookup_id, message.arrived_time) == ("a", 7, 5)
    assert (message.abort_count, message.move_count, message.authentication_level) == (3, 2, 1)
    assert (message.allow_peek_when_locked, message.dead_letter_queue) == (True, "x")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"{}",
        answer(b""),
        answer(packet("a", "b")),
        answer(packet("a")[:-1]),
        answer(packet("a") + packet("b")[:BASE_HEADER_SIZE]),
        answer(SessionAck(SessionHeader(0, 0, 0, 0, 0)).encode()),
    ],
)
def test_an_answer_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        packets.from_packets(data)
