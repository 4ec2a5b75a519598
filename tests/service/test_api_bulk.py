"""The fast door: messages as MSMQ packets, in and out."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from falconmq import FalconMQError, Message, MqStatus
from falconmq.client import ControlClient, ServiceError
from falconmq.client.packets import MEDIA_TYPE as PACKETS
from falconmq.client.packets import to_packets
from falconmq.embedded.engine import Engine
from falconmq.manager import record
from falconmq.message import (
    Acknowledge,
    Delivery,
    Journal,
    MessageClass,
    MessageId,
)
from falconmq.names import DirectFormatName, PrivateFormatName, SingleFormatName
from falconmq.serialization import to_user_message
from falconmq.service.requests import bulk
from falconmq.wire.message_class import is_custom
from falconmq.wire.multi_queue_format_header import (
    ADMINISTRATION_ID,
    DESTINATION_ID,
    DIRECT,
    RESPONSE_ID,
    MQFAddressHeader,
    MQFFormatNameElement,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage
from tests.embedded.helpers import (
    ORDERS,
    Background,
    GatedStore,
    threaded,
    threaded_engine,
    wait_until,
    waiting_reads,
)
from tests.service.asking import UnixConnection
from tests.service.control import ControlledManager
from tests.strategies.messages import messages

LEDGER = r".\private$\ledger"
REMOTE = r"DIRECT=OS:sales02\private$\orders"
NOBODY = UUID(int=0)
GUID = UUID("55735802-9150-9595-4997-B6E611EA26C6")


@pytest.fixture
def controlled(tmp_path: Path) -> Iterator[ControlledManager]:
    with ControlledManager(tmp_path) as controlled:
        controlled.blocking.create_queue(ORDERS)
        controlled.blocking.create_queue(LEDGER, transactional=True)
        yield controlled


@pytest.fixture
def client(controlled: ControlledManager) -> Iterator[ControlClient]:
    with controlled.client() as client:
        yield client


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def post(
    controlled: ControlledManager,
    body: bytes,
    *,
    query: str = "",
    queue: str = ORDERS,
    content_type: str = PACKETS,
) -> tuple[int, dict[str, Any]]:
    connection = UnixConnection(controlled.path)
    path = f"/api/v1/queues/{quote(queue, safe='')}/packets{query}"
    connection.request("POST", path, body, {"Content-Type": content_type})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def packet_to(name: SingleFormatName, message: Message | None = None) -> UserMessage:
    """A packet as a client makes it."""
    message = Message("hello", recoverable=True) if message is None else message
    message.destination = name
    return to_user_message(
        message,
        source_queue_manager=NOBODY,
        message_id=0,
        sent_time=0,
        destination_queue_manager=NOBODY,
    )


def orders(controlled: ControlledManager) -> SingleFormatName:
    name = controlled.blocking.queue(ORDERS).opened.format_name
    assert isinstance(name, PrivateFormatName)
    return name


# Sending


def test_messages_go_in_and_out_as_packets(
    controlled: ControlledManager, client: ControlClient
) -> None:
    # when messages are sent and received through the fast door
    sent = [
        Message("a", label="first", priority=5, correlation_id=MessageId.of(GUID, 7)),
        Message(b"b", extension=b"xyz", application_tag=9, recoverable=False),
    ]
    ids = client.send_packets(ORDERS, sent)
    received = client.receive_packets(ORDERS, count=5)
    # then they are what they were, with what a queue manager knows of them
    assert [message.id for message in received] == ids == [message.id for message in sent]
    assert [id.queue_manager for id in ids] == [controlled.engine.core.identifier] * 2
    assert ids[1].ordinal == ids[0].ordinal + 1
    first, second = received
    assert (first.text, first.label, first.priority) == ("a", "first", 5)
    assert first.correlation_id == MessageId.of(GUID, 7)
    assert first.delivery is Delivery.RECOVERABLE
    assert (second.body, second.extension, second.application_tag) == (b"b", b"xyz", 9)
    assert second.delivery is Delivery.EXPRESS
    now = controlled.engine.core.clock.time()
    for message in received:
        assert message.destination == orders(controlled)
        assert message.destination_queue_manager == controlled.engine.core.identifier
        assert message.sent_time is not None
        assert message.arrived_time is not None
        assert abs(now - message.sent_time) < 60
        assert abs(now - message.arrived_time) < 60
    assert client.receive_packets(ORDERS) == []


def test_both_doors_lead_to_the_same_queue(client: ControlClient) -> None:
    # given messages from both
    client.send(ORDERS, [{"text": "json", "label": "x"}])
    (id,) = client.send_packets(ORDERS, [Message("packet", label="y")])
    # then each door shows both alike
    as_json = client.receive(ORDERS, count=2, peek=True)
    as_packets = client.receive_packets(ORDERS, count=2, peek=True)
    assert [each["text"] for each in as_json] == texts(as_packets) == ["json", "packet"]
    assert [each["id"] for each in as_json] == [str(each.id) for each in as_packets]
    assert as_json[1]["id"] == str(id)
    assert [each["lookup_id"] for each in as_json] == [str(each.lookup_id) for each in as_packets]


def test_what_was_sent_survives_a_crash(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        with controlled.client() as client:
            client.receive_packets(ORDERS)  # the name is known
            client.send_packets(ORDERS, [Message("first")])
            store.gate.clear()
            sending = Background(lambda: client.send_packets(ORDERS, [Message("second")]))
            wait_until(lambda: controlled.blocking.queue(ORDERS).count == 2)
            assert not sending.is_done  # the answer waits for the disk
            store.gate.set()
            sending.result()
    store.crash()
    with threaded(store) as again:
        assert [message.text for message in again.queue(ORDERS)] == ["first", "second"]


def test_a_transactional_queue_gets_them_in_one_transaction(client: ControlClient) -> None:
    client.send_packets(LEDGER, [Message("a", priority=7), Message("b"), Message("c")])
    places = []
    for message in client.receive_packets(LEDGER, count=3):
        assert message.transaction is not None
        places.append(message.transaction)
    assert [place.sequence_number for place in places] == [1, 2, 3]
    assert [place.previous_sequence_number for place in places] == [0, 1, 2]
    assert [(place.is_first, place.is_last) for place in places] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert len({place.id for place in places}) == 1
    assert places[0].id != 0


@pytest.mark.parametrize(("queue", "transaction"), [(LEDGER, False), (ORDERS, True)])
def test_a_queue_of_the_other_kind_refuses_them(
    controlled: ControlledManager, client: ControlClient, queue: str, transaction: bool
) -> None:
    with pytest.raises(ServiceError) as raised:
        client.send_packets(queue, [Message("a")], transaction=transaction)
    assert raised.value.status is MqStatus.TRANSACTION_USAGE
    assert controlled.blocking.queue(queue).count == 0
    assert not controlled.engine.core.transactions


@pytest.mark.parametrize("transaction", [None, True])
def test_packets_to_another_computer_wait_in_the_outgoing_queue(
    controlled: ControlledManager, client: ControlClient, transaction: bool | None
) -> None:
    client.send_packets(REMOTE, [Message("a"), Message("b")], transaction=transaction)
    (queue,) = controlled.engine.core.outgoing.values()
    packets = [
        position.message.packet
        for lookup_id in queue.positions.lookup_ids()
        if (position := queue.positions.find(lookup_id)) is not None
    ]
    assert [packet.user.destination_queue for packet in packets] == [
        r"OS:sales02\private$\orders"
    ] * 2
    assert [packet.transaction is not None for packet in packets] == [bool(transaction)] * 2
    assert {packet.user.source_queue_manager for packet in packets} == {
        controlled.engine.core.identifier.bytes_le
    }


def test_a_direct_name_may_be_spelt_as_one_likes(controlled: ControlledManager) -> None:
    name = DirectFormatName.from_wire(r"os:SALES02\PRIVATE$\Orders")
    status, answer = post(controlled, packet_to(name).encode(), queue=REMOTE)
    assert (status, answer["count"]) == (201, 1)


def test_a_waiting_reader_gets_a_packet(
    controlled: ControlledManager, client: ControlClient
) -> None:
    waiting = Background(lambda: client.receive_packets(ORDERS, count=9, timeout=30))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    with controlled.client() as sender:
        sender.send_packets(ORDERS, [Message("a"), Message("b"), Message("c")])
    assert texts(waiting.result()) == ["a", "b", "c"]


def test_a_queue_that_was_made_anew_is_found_under_its_new_name(
    controlled: ControlledManager, client: ControlClient
) -> None:
    client.send_packets(ORDERS, [Message("a")])
    controlled.blocking.delete_queue(ORDERS)
    controlled.blocking.create_queue(ORDERS, transactional=True)
    client.send_packets(ORDERS, [Message("b")])
    assert texts(client.receive_packets(ORDERS, count=5)) == ["b"]
    controlled.blocking.delete_queue(ORDERS)
    with pytest.raises(ServiceError) as raised:
        client.send_packets(ORDERS, [Message("c")])
    assert raised.value.status is MqStatus.QUEUE_NOT_FOUND


def test_nothing_to_send_needs_no_request(tmp_path: Path) -> None:
    assert ControlClient(tmp_path / "nowhere").send_packets(ORDERS, []) == []


# Refusals, of all or none


def _with_session(packet: UserMessage) -> None:
    packet.session = SessionHeader(0, 0, 0, 0, 0)


def _change_user(**changes: Any) -> Callable[[UserMessage], None]:
    def change(packet: UserMessage) -> None:
        packet.user = replace(packet.user, **changes)

    return change


def _set_flags(bits: int) -> Callable[[UserMessage], None]:
    def change(packet: UserMessage) -> None:
        packet.user.flags |= bits

    return change


def _change_properties(**changes: Any) -> Callable[[UserMessage], None]:
    def change(packet: UserMessage) -> None:
        packet.properties = replace(packet.properties, **changes)

    return change


def _transactional(**changes: Any) -> Callable[[UserMessage], None]:
    def change(packet: UserMessage) -> None:
        header = TransactionHeader(0, 1, 1, 0)
        packet.transaction = replace(header, **changes)
        packet.base.flags = 0

    return change


def _with_destinations(packet: UserMessage) -> None:
    element = MQFFormatNameElement(DIRECT, r"OS:x\private$\y")
    packet.multi_queue_format = MultiQueueFormatHeader(
        MQFAddressHeader(DESTINATION_ID, (element,)),
        MQFAddressHeader(ADMINISTRATION_ID, ()),
        MQFAddressHeader(RESPONSE_ID, ()),
        MQFSignatureHeader(b""),
    )


def _extra(packet: UserMessage) -> None:
    packet.extra = b"more"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_with_session, "BaseHeader.Flags"),
        (_extra, "headers or flags"),
        (_change_user(source_queue_manager=GUID.bytes_le), "SourceQueueManager"),
        (_change_user(message_id=7), "MessageID"),
        (_change_user(sent_time=7), "SentTime"),
        (_change_user(queue_manager_address=GUID.bytes_le), "elsewhere"),
        (_change_user(destination_queue=99), "elsewhere"),
        (_set_flags(0x1), "hop"),
        (_change_properties(message_class=MessageClass.ORDER_ACK), "message_class"),
        (_change_properties(message_class=MessageClass.NACK_Q_PURGED), "message_class"),
        (_change_properties(flags=1), "administration_queue"),
        (_with_destinations, "one queue"),
        (_transactional(), "TransactionHeader"),
        (_transactional(connector_qm_guid=GUID.bytes_le), "connector"),
    ],
)
def test_a_packet_that_no_sender_sends_is_refused_with_all_others(
    controlled: ControlledManager, spoil: Callable[[UserMessage], None], said: str
) -> None:
    # given a bad packet between two good ones
    good = packet_to(orders(controlled)).encode()
    packet = packet_to(orders(controlled))
    spoil(packet)
    # when they are sent
    status, problem = post(controlled, good + packet.encode() + good)
    # then the answer names the bad one, and none was sent
    assert status in (400, 409)
    assert problem["detail"].startswith("packets[1]: ")
    assert said in problem["detail"]
    assert controlled.blocking.queue(ORDERS).count == 0


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [
        (2, 0x40, "BaseHeader.Flags"),  # a reserved bit
        (3, 0x01, "trace"),  # TR without a DebugHeader
        (60, 0x43, "delivery"),  # DM 2
        (63, 0x02, "headers or flags"),  # AH
        (63, 0x01, "headers or flags"),  # a reserved bit
    ],
)
def test_flags_that_our_own_encoder_never_sets_are_refused(
    controlled: ControlledManager, offset: int, value: int, said: str
) -> None:
    data = bytearray(packet_to(orders(controlled), Message("x", recoverable=False)).encode())
    data[offset] |= value
    status, problem = post(controlled, bytes(data))
    assert status == 400
    assert said in problem["detail"]


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [(2, 0x03, "priority 0"), (60, 0x00, "recoverable")],
)
def test_a_transactional_packet_has_no_priority_and_is_recoverable(
    controlled: ControlledManager, offset: int, value: int, said: str
) -> None:
    name = controlled.blocking.queue(LEDGER).opened.format_name
    assert isinstance(name, PrivateFormatName)
    data = bytearray(to_packets([Message("x")], name, in_transaction=True))
    data[offset] = value
    status, problem = post(controlled, bytes(data), queue=LEDGER)
    assert status == 400
    assert said in problem["detail"]


def test_a_transaction_without_transaction_headers_is_refused(
    controlled: ControlledManager,
) -> None:
    name = DirectFormatName.from_wire(r"OS:sales02\private$\orders")
    body = to_packets([Message("x")], name, in_transaction=False)
    status, problem = post(controlled, body, queue=REMOTE, query="?transaction=true")
    assert (status, problem["error"]) == (409, "MQ_ERROR_TRANSACTION_USAGE")
    assert "has no TransactionHeader" in problem["detail"]


def test_bytes_that_are_no_packets_are_refused(controlled: ControlledManager) -> None:
    good = packet_to(orders(controlled)).encode()
    internal = SessionAck(SessionHeader(0, 0, 0, 0, 0)).encode()
    for body, said in [
        (b"", "there are none"),
        (b"nonsense" * 8, "packets[0]: BaseHeader.VersionNumber"),
        (good + internal, "packets[1]: packet: SessionAck is no message"),
        (good + good[:-1], "packets[1]: packet: "),
        (good + good[:9], "packets[1]: packet: 9 bytes"),
        (good[:8] + b"\xff\xff\xff\x7f" + good[12:], "packets[0]: BaseHeader.PacketSize"),
    ]:
        status, problem = post(controlled, body)
        assert status == 400
        assert said in problem["detail"]
    assert controlled.blocking.queue(ORDERS).count == 0


def test_a_request_is_bounded_in_packets_and_bytes(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = packet_to(orders(controlled)).encode()
    monkeypatch.setattr(bulk, "MESSAGES_MAX", 2)
    status, problem = post(controlled, good * 3)
    assert status == 400
    assert problem["detail"].startswith("packets[2]: packet: one request takes 2")
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 2 * len(good))
    assert post(controlled, good * 2)[0] == 201
    status, problem = post(controlled, good * 2 + b"x")
    assert status == 413
    assert f"takes {2 * len(good)} bytes" in problem["detail"]
    assert controlled.blocking.queue(ORDERS).count == 2


def test_a_request_that_does_not_say_its_size_is_bounded_too(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 1000)
    connection = UnixConnection(controlled.path)
    path = f"/api/v1/queues/{quote(ORDERS, safe='')}/packets"
    with contextlib.suppress(BrokenPipeError):  # the answer may come before all is sent
        connection.request(
            "POST", path, iter([bytes(600)] * 9), {"Content-Type": PACKETS}, encode_chunked=True
        )
    assert connection.getresponse().status == 413
    connection.close()


def test_another_content_type_is_refused(controlled: ControlledManager) -> None:
    status, problem = post(controlled, b"{}", content_type="application/json")
    assert status == 415
    assert PACKETS in problem["detail"]


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (r".\private$\nothing", 404),
        (REMOTE + "," + REMOTE.replace("02", "03"), 400),
        (ORDERS + ";journal", 400),
        (f"PUBLIC={GUID}", 400),
    ],
)
def test_names_that_take_no_packets_are_refused(
    controlled: ControlledManager, name: str, status: int
) -> None:
    code, problem = post(controlled, packet_to(orders(controlled)).encode(), queue=name)
    assert (code, problem["status"]) == (status, status)


def test_packets_that_do_not_all_fit_are_refused_all(
    controlled: ControlledManager, client: ControlClient
) -> None:
    controlled.blocking.queue(ORDERS).update(quota_kilobytes=3)
    with pytest.raises(ServiceError, match="is full") as raised:
        client.send_packets(ORDERS, [Message(bytes(1000)) for _ in range(3)])
    assert raised.value.http_status == 507
    assert controlled.blocking.queue(ORDERS).count == 0
    client.send_packets(ORDERS, [Message(bytes(1000)) for _ in range(2)])


def test_a_full_queue_manager_refuses_them_all(tmp_path: Path) -> None:
    with ControlledManager(tmp_path, threaded_engine(quota_kilobytes=3)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        with controlled.client() as client:
            with pytest.raises(ServiceError, match="queue manager is full"):
                client.send_packets(ORDERS, [Message(bytes(1000)) for _ in range(3)])
            assert controlled.blocking.queue(ORDERS).count == 0


def test_journal_copies_that_take_the_room_stop_a_request(tmp_path: Path) -> None:
    # given room for two messages and a copy in the journal of the sender
    with ControlledManager(tmp_path, threaded_engine(quota_kilobytes=4)) as controlled:
        controlled.blocking.create_queue(ORDERS)
        with controlled.client() as client:
            journaled = [Message(bytes(900), journal=Journal.JOURNAL) for _ in range(3)]
            with pytest.raises(ServiceError, match=r"packets\[2\]: the queue manager is full"):
                client.send_packets(ORDERS, journaled)


# Answers


def test_what_never_travels_comes_beside_the_packets(
    controlled: ControlledManager, client: ControlClient
) -> None:
    # given a message that was read in an aborted transaction, and one that moved
    ledger = controlled.blocking.queue(LEDGER)
    with controlled.blocking.transaction() as sending:
        ledger.send(Message("a", dead_letter_queue=r".\private$\dead"), sending)
        ledger.send(Message("b", allow_peek_when_locked=True), sending)
    transaction = controlled.blocking.transaction()
    ledger.receive(transaction, timeout=0)
    transaction.abort()
    # when they are received as packets
    first, second = client.receive_packets(LEDGER, count=2)
    # then all of that is known
    assert (first.abort_count, second.abort_count) == (1, 0)
    assert (first.dead_letter_queue, second.dead_letter_queue) == (r".\private$\dead", "")
    assert (first.allow_peek_when_locked, second.allow_peek_when_locked) == (False, True)
    assert isinstance(first.lookup_id, int)
    assert isinstance(second.lookup_id, int)
    assert first.lookup_id < second.lookup_id


def test_a_line_of_json_says_only_what_is_not_usual(
    controlled: ControlledManager, client: ControlClient
) -> None:
    client.send_packets(ORDERS, [Message("a")])
    connection = UnixConnection(controlled.path)
    connection.request(
        "POST",
        f"/api/v1/queues/{quote(ORDERS, safe='')}/receive",
        b"{}",
        {"Content-Type": "application/json", "Accept": PACKETS},
    )
    response = connection.getresponse()
    assert response.headers["content-type"] == PACKETS
    head, _, packet = response.read().partition(b"\n")
    connection.close()
    assert set(json.loads(head)) == {"count", "lookup_ids", "arrived"}
    assert packet.startswith(b"\x10")


def test_a_receive_takes_all_that_is_there_in_one_turn(
    controlled: ControlledManager, client: ControlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.send_packets(ORDERS, [Message(str(number)) for number in range(40)])
    turns: list[object] = []
    begin_read = Engine.begin_read

    def counted(self: Engine, *args: Any, **kwargs: Any) -> Any:
        turns.append(args[1])
        return begin_read(self, *args, **kwargs)

    monkeypatch.setattr(Engine, "begin_read", counted)
    assert len(client.receive_packets(ORDERS, count=30)) == 30
    assert len(client.receive(ORDERS, count=30)) == 10
    assert len(turns) == 2


def test_what_only_passes_through_is_not_decoded(
    controlled: ControlledManager, client: ControlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given stored messages of which nothing is in memory
    client.send_packets(ORDERS, [Message("a"), Message("b")])
    queue = controlled.blocking.queue(ORDERS).opened.queue
    assert queue is not None
    controlled.engine.look(lambda _: None)  # settles what is durable
    assert list(queue.positions.resident()) == []

    # when the service cannot decode a packet
    def refuse(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(record, "decode_packet", refuse)
    # then it still hands them out
    assert texts(client.receive_packets(ORDERS, count=2)) == ["a", "b"]


def test_messages_are_deleted_for_good_before_the_answer_goes_out(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        queue = controlled.blocking.create_queue(ORDERS)
        with controlled.client() as client:
            client.send_packets(ORDERS, [Message("a"), Message("b")])
            store.gate.clear()
            answer = Background(lambda: client.receive_packets(ORDERS, count=2))
            wait_until(lambda: queue.count == 0)
            assert not answer.is_done
            store.gate.set()
            assert texts(answer.result()) == ["a", "b"]


@pytest.mark.parametrize("peek", [False, True])
def test_messages_that_are_still_being_written_are_not_shown(tmp_path: Path, peek: bool) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        queue = controlled.blocking.create_queue(ORDERS)
        with controlled.client() as client, controlled.client() as other:
            client.send_packets(ORDERS, [Message("a")])
            store.gate.clear()
            sending = Background(lambda: client.send_packets(ORDERS, [Message("b")]))
            wait_until(lambda: queue.count == 2)
            answer = Background(lambda: other.receive_packets(ORDERS, count=2, peek=peek))
            answer._thread.join(0.2)
            assert not answer.is_done
            store.gate.set()
            assert texts(answer.result()) == ["a", "b"]
            sending.result()


def test_a_caller_that_hangs_up_takes_no_packets(
    controlled: ControlledManager, client: ControlClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a caller who hangs up while its answer is made
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    to_answer = bulk.to_answer
    made: list[bytes] = []

    def hang_up(*args: Any) -> bytes:
        caller.close()
        made.append(to_answer(*args))
        return made[0]

    client.send_packets(ORDERS, [Message("a"), Message("b")])
    monkeypatch.setattr(bulk, "to_answer", hang_up)
    caller.connect(str(controlled.path))
    caller.sendall(
        f"POST /api/v1/queues/{quote(ORDERS, safe='')}/receive HTTP/1.1\r\nHost: x\r\n"
        f"Accept: {PACKETS}\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
        '{"count":2}'.encode()
    )
    wait_until(lambda: bool(made))
    monkeypatch.undo()
    # then the messages are available again, in their old places
    wait_until(lambda: not _held(controlled))
    assert texts(client.receive_packets(ORDERS, count=5)) == ["a", "b"]


def _held(controlled: ControlledManager) -> bool:
    queue = controlled.blocking.queue(ORDERS).opened.queue
    assert queue is not None
    return bool(queue.positions.held)


def test_a_queue_is_peeked_page_by_page(client: ControlClient) -> None:
    client.send_packets(ORDERS, [Message(text) for text in "abcde"])
    first = client.receive_packets(ORDERS, peek=True, count=2)
    second = client.receive_packets(ORDERS, peek=True, count=9, after=first[-1].lookup_id)
    assert (texts(first), texts(second)) == (["a", "b"], ["c", "d", "e"])
    third = second[0].lookup_id
    assert texts(client.receive_packets(ORDERS, peek=True, lookup_id=third)) == ["c"]
    assert texts(client.receive_packets(ORDERS, lookup_id=third)) == ["c"]
    for peek in (True, False):
        with pytest.raises(ServiceError) as raised:
            client.receive_packets(ORDERS, lookup_id=third, peek=peek)
        assert raised.value.status is MqStatus.MESSAGE_NOT_FOUND
    assert texts(client.receive_packets(ORDERS, peek=True, count=9, after=third)) == ["d", "e"]


def test_a_peek_waits_for_a_message(controlled: ControlledManager, client: ControlClient) -> None:
    assert client.receive_packets(ORDERS, peek=True, timeout=0.01) == []
    waiting = Background(lambda: client.receive_packets(ORDERS, peek=True, timeout=30))
    wait_until(lambda: waiting_reads(controlled.blocking) == 1)
    with controlled.client() as sender:
        sender.send_packets(ORDERS, [Message("a")])
    assert texts(waiting.result()) == ["a"]


def test_answers_in_a_private_queue_are_named_by_its_host(
    controlled: ControlledManager, client: ControlClient
) -> None:
    admin = orders(controlled)
    client.send_packets(
        REMOTE,
        [Message("a", administration_queue=admin, acknowledgements=Acknowledge.FULL_RECEIVE)],
    )
    (queue,) = controlled.engine.core.outgoing.values()
    (lookup_id,) = queue.positions.lookup_ids()
    position = queue.positions.find(lookup_id)
    assert position is not None
    assert isinstance(admin, PrivateFormatName)
    assert position.message.packet.user.admin_queue == admin.number  # on the source: MQ-2.2.19.2-40


# The shorter way


def receive_raw(
    controlled: ControlledManager, body: bytes, accept: str
) -> tuple[int, str | None, bytes]:
    connection = UnixConnection(controlled.path)
    path = f"/api/v1/queues/{quote(ORDERS, safe='')}/receive"
    headers = {"Content-Type": "application/json", "Accept": accept}
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    answer = response.status, response.headers["content-type"], response.read()
    connection.close()
    return answer


def test_requests_that_are_written_a_little_differently_get_the_same(
    controlled: ControlledManager,
) -> None:
    body = packet_to(orders(controlled)).encode()
    for query in ("", "?transaction=false", "?transaction=0", "?transaction=no&x=y"):
        assert post(controlled, body, query=query)[0] == 201
    bad = [post(controlled, b"x", query=query) for query in ("", "?transaction=0")]
    assert bad[0] == bad[1]
    for accept in (PACKETS, f"{PACKETS}, */*"):
        status, content_type, answer = receive_raw(controlled, b'{"count": 2}', accept)
        assert (status, content_type) == (200, PACKETS)
        assert json.loads(answer.partition(b"\n")[0])["count"] == 2


@pytest.mark.parametrize("body", [b"", b"{", b'{"count": 0}', b'{"nonsense": 1}'])
def test_a_bad_request_to_receive_is_refused_as_ever(
    controlled: ControlledManager, body: bytes
) -> None:
    short = receive_raw(controlled, body, PACKETS)
    long = receive_raw(controlled, body, f"{PACKETS}, */*")
    assert short[:2] == long[:2] == (422, "application/problem+json")


def test_a_bug_behind_the_fast_door_is_a_problem_too(
    controlled: ControlledManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: bytes) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bulk, "take_packets", broken)
    status, problem = post(controlled, b"x")
    assert (status, problem["error"]) == (500, "MQ_ERROR")
    assert "bug" in problem["detail"]


# Any message, any bytes


@given(message=messages(), in_transaction=st.booleans())
def test_whatever_a_client_may_send_comes_out_as_it_went_in(
    message: Message, in_transaction: bool
) -> None:
    assume(not message.message_class or is_custom(message.message_class))
    message.hop_count = 0
    name = PrivateFormatName(UUID(int=3), 7)
    (stored,) = bulk.take_packets(to_packets([message], name, in_transaction=in_transaction))
    again = bytes(stored.packet.encode())
    assert again == bytes(stored.data)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_packets_or_refused(data: bytes) -> None:
    packet = packet_to(PrivateFormatName(UUID(int=3), 7)).encode()
    for body in (data, packet[:16] + data + packet[16 + len(data) :], packet + data):
        with contextlib.suppress(FalconMQError):
            bulk.take_packets(body)
