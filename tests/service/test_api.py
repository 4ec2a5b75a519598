"""The HTTP API: queues and messages as JSON, refusals as problems."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from falconmq import Message, MqStatus
from falconmq.body import BodyType
from falconmq.client import ControlClient, ServiceError
from falconmq.errors import MessageError, NameSyntaxError
from falconmq.manager.model import OutgoingQueue
from falconmq.message import MessageProperties
from falconmq.service import schemas
from falconmq.service.requests.messages import from_json, to_json
from falconmq.transport.session import Session
from falconmq.transport.situations import Situation, Whereabouts
from tests.embedded.helpers import ORDERS, GatedStore, threaded_engine
from tests.service.asking import UnixConnection
from tests.service.control import ControlledManager
from tests.strategies.messages import messages

LEDGER = r".\private$\ledger"
REMOTE = r"DIRECT=OS:sales02\private$\orders"
GUID = UUID("55735802-9150-9595-4997-B6E611EA26C6")


class Recorder:
    """A transport that remembers what an administrator asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.sessions: list[Session] = []

    def pause(self, queue: OutgoingQueue) -> None:
        self.asked.append(("pause", str(queue.destination)))

    def resume(self, queue: OutgoingQueue) -> None:
        self.asked.append(("resume", str(queue.destination)))

    def situation(self, queue: OutgoingQueue) -> Situation:
        return Situation("connection refused", 4.5)

    def whereabouts(self, queue: OutgoingQueue, lookup_id: int) -> Whereabouts:
        return Whereabouts()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def controlled(tmp_path: Path, recorder: Recorder) -> Iterator[ControlledManager]:
    def status() -> dict[str, Any]:
        return {"sessions": [{"address": "10.0.0.7"}]}

    with ControlledManager(tmp_path, status=status, transport=recorder) as controlled:
        yield controlled


@pytest.fixture
def client(controlled: ControlledManager) -> Iterator[ControlClient]:
    with controlled.client() as client:
        yield client


def refusal(raised: pytest.ExceptionInfo[ServiceError]) -> tuple[int, MqStatus]:
    return raised.value.http_status, raised.value.status


# Queues


def test_a_queue_is_created_found_listed_and_deleted(client: ControlClient) -> None:
    # when a queue is created with every property
    created = client.create_queue(
        LEDGER,
        transactional=True,
        label="the ledger",
        journaling=True,
        quota_kilobytes=1000,
        journal_quota_kilobytes=500,
        authentication=False,
        privacy_level="NONE",
        base_priority=3,
    )
    # then it is as it was asked for, under each of its names
    schemas.QueueOut.model_validate(created)
    expected = {
        "name": LEDGER,
        "transactional": True,
        "label": "the ledger",
        "journaling": True,
        "quota_kilobytes": 1000,
        "journal_quota_kilobytes": 500,
        "privacy_level": "NONE",
        "base_priority": 3,
        "messages": 0,
    }
    assert created.items() >= expected.items()
    assert client.queue(LEDGER) == created
    assert client.queue(created["format_name"]) == created
    assert client.queues() == [created]
    assert [queue["name"] for queue in client.queues(system=True)][1] == r".\system$;deadletter"
    # and it goes
    client.delete_queue(LEDGER)
    assert client.queues() == []


def test_a_queue_without_a_quota_says_null(client: ControlClient) -> None:
    assert client.create_queue(ORDERS)["quota_kilobytes"] is None


def test_a_queue_that_holds_messages_is_kept_if_it_is_asked_for(client: ControlClient) -> None:
    client.create_queue(ORDERS)
    client.send(ORDERS, [{"text": "a"}, {"text": "b"}])
    with pytest.raises(ServiceError, match="holds 2 messages") as raised:
        client.delete_queue(ORDERS, only_if_empty=True)
    assert raised.value.http_status == 409
    assert client.purge_queue(ORDERS) == 2
    client.delete_queue(ORDERS, only_if_empty=True)
    assert client.queues() == []


def test_a_path_name_may_hold_slashes_and_anything_else(client: ControlClient) -> None:
    for name in (r".\private$\a/purge", r".\private$\50%25#?&=", r".\private$\x/messages"):
        client.create_queue(name)
        client.send(name, [{"text": name}])
        assert client.receive(name)[0]["text"] == name
        assert client.queue(name)["name"] == name


# Problems


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        (r".\private$\ordres", 404, MqStatus.QUEUE_NOT_FOUND),
        ("orders", 400, MqStatus.ILLEGAL_QUEUE_PATHNAME),
        ("DIRECT=XX:a\\b", 400, MqStatus.ILLEGAL_FORMATNAME),
        (REMOTE, 400, MqStatus.UNSUPPORTED_FORMATNAME_OPERATION),
    ],
)
def test_a_refusal_is_a_problem_with_the_status_of_msmq(
    client: ControlClient, name: str, code: int, status: MqStatus
) -> None:
    with pytest.raises(ServiceError) as raised:
        client.queue(name)
    assert refusal(raised) == (code, status)
    assert raised.value.hint


def test_a_misspelt_name_is_answered_with_the_right_one(client: ControlClient) -> None:
    client.create_queue(ORDERS)
    with pytest.raises(ServiceError) as raised:
        client.receive(r".\private$\ordres")
    assert raised.value.hint.startswith(rf"did you mean {ORDERS}?")


def test_a_problem_looks_as_rfc_9457_says(controlled: ControlledManager) -> None:
    connection = UnixConnection(controlled.path)
    connection.request("GET", "/api/v1/queues/.%5Cprivate$%5Cx")
    response = connection.getresponse()
    assert response.status == 404
    assert response.headers["content-type"] == "application/problem+json"
    problem = schemas.Problem.model_validate_json(response.read())
    assert (problem.status, problem.error, problem.hresult) == (
        404,
        "MQ_ERROR_QUEUE_NOT_FOUND",
        "0xC00E0003",
    )
    connection.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "detail"),
    [
        ("GET", "/api/v1/nothing", b"", 404, "Not Found"),
        ("PUT", "/api/v1/queues", b"", 405, "Method Not Allowed"),
        ("POST", "/api/v1/queues", b"{", 422, "JSON"),
        ("POST", "/api/v1/queues", b'{"nam": 1}', 422, "name"),
        ("POST", "/api/v1/queues/x/receive", b'{"count": 0}', 422, "count"),
        ("POST", "/api/v1/queues/x/receive", b'{"lookup_id": "x"}', 422, "lookup_id"),
        ("POST", "/api/v1/queues/x/messages", b'{"messages": []}', 422, "messages"),
        ("POST", "/api/v1/queues/x/messages", b'{"messages": [{"labl": "x"}]}', 422, "labl"),
        ("POST", "/api/v1/outgoing/x/pause", b"", 422, "number"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(
    controlled: ControlledManager, method: str, path: str, body: bytes, code: int, detail: str
) -> None:
    connection = UnixConnection(controlled.path)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    problem = json.loads(response.read())
    connection.close()
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status, problem["status"]) == (code, code)
    assert detail in problem["detail"]


def test_a_bug_is_a_problem_too_and_the_log_has_the_details(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def status() -> dict[str, Any]:
        raise ZeroDivisionError

    with ControlledManager(tmp_path, status=status) as controlled, controlled.client() as client:
        with pytest.raises(ServiceError, match="bug") as raised:
            client.status()
        assert refusal(raised) == (500, MqStatus.ERROR)
        assert client.queues() == []
    assert "ZeroDivisionError" in caplog.text


def test_the_api_describes_itself(controlled: ControlledManager) -> None:
    connection = UnixConnection(controlled.path)
    connection.request("GET", "/api/v1/openapi.json")
    described = json.loads(connection.getresponse().read())
    connection.close()
    assert described["openapi"].startswith("3.")
    assert "/api/v1/queues/{name}/receive" in described["paths"]
    properties = described["components"]["schemas"]["MessageIn"]["properties"]
    assert "json" in properties
    missing = set(MessageProperties.__annotations__) - set(properties)
    assert missing == {"delivery", "destination", "destinations"}  # recoverable and the queue say


# Status and outgoing queues


def test_the_status_has_queues_outgoing_queues_and_what_the_service_adds(
    client: ControlClient,
) -> None:
    client.create_queue(ORDERS)
    client.send(ORDERS, [{"text": "a"}])
    client.send(REMOTE, [{"text": "b"}])
    status = client.status()
    assert status["computer_name"] == "SALES01"
    assert status["messages"] == 2
    assert (status["queues"][0]["name"], status["queues"][0]["messages"]) == (ORDERS, 1)
    assert status["outgoing"] == client.outgoing()
    assert status["sessions"] == [{"address": "10.0.0.7"}]
    (outgoing,) = status["outgoing"]
    schemas.OutgoingOut.model_validate(outgoing)
    assert (outgoing["destination"], outgoing["messages"]) == (REMOTE, 1)
    assert (outgoing["problem"], outgoing["next_try_seconds"]) == ("connection refused", 4.5)


def test_an_outgoing_queue_is_paused_and_resumed(client: ControlClient, recorder: Recorder) -> None:
    client.send(REMOTE, [{"text": "b"}])
    number = client.outgoing()[0]["number"]
    client.pause(number)
    client.resume(number)
    assert recorder.asked == [("pause", REMOTE), ("resume", REMOTE)]
    with pytest.raises(ServiceError) as raised:
        client.pause(4711)
    assert refusal(raised) == (404, MqStatus.QUEUE_NOT_FOUND)


def test_without_a_transport_nothing_can_be_paused(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as controlled, controlled.client() as client:
        with pytest.raises(ServiceError) as raised:
            client.pause(1)
        assert refusal(raised) == (503, MqStatus.SERVICE_NOT_AVAILABLE)


# Sending


def test_messages_are_sent_in_order_and_their_ids_come_back(client: ControlClient) -> None:
    client.create_queue(ORDERS)
    ids = client.send(ORDERS, [{"text": str(number)} for number in range(5)])
    received = client.receive(ORDERS, count=10)
    assert [message["id"] for message in received] == ids
    assert [message["text"] for message in received] == list("01234")


def test_a_transactional_queue_gets_all_or_nothing(client: ControlClient) -> None:
    client.create_queue(LEDGER, transactional=True, quota_kilobytes=1)
    with pytest.raises(ServiceError) as raised:
        client.send(LEDGER, [{"text": "small"}, {"text": "x" * 2000}])
    assert refusal(raised) == (507, MqStatus.INSUFFICIENT_RESOURCES)
    assert client.queue(LEDGER)["messages"] == 0
    client.send(LEDGER, [{"text": "a"}, {"text": "b"}])
    messages = client.receive(LEDGER, count=2)
    assert [message["transaction"]["sequence_number"] for message in messages] == [1, 2]


@pytest.mark.parametrize(
    ("transactional", "transaction"), [(True, False), (False, True)], ids=["missing", "too many"]
)
def test_the_wrong_kind_of_sending_is_refused(
    client: ControlClient, transactional: bool, transaction: bool
) -> None:
    client.create_queue(ORDERS, transactional=transactional)
    with pytest.raises(ServiceError) as raised:
        client.send(ORDERS, [{"text": "a"}], transaction=transaction)
    assert refusal(raised) == (409, MqStatus.TRANSACTION_USAGE)
    assert client.queue(ORDERS)["messages"] == 0


def test_a_queue_of_another_computer_is_sent_to_in_a_transaction(
    controlled: ControlledManager, client: ControlClient
) -> None:
    client.send(REMOTE, [{"text": "a"}], transaction=True)
    (queue,) = (q for q in controlled.engine.core.queues.values() if isinstance(q, OutgoingQueue))
    (lookup_id,) = queue.positions.lookup_ids()
    position = queue.positions.find(lookup_id)
    assert position is not None
    assert position.message.packet.transaction is not None


def test_a_wrong_message_among_many_is_named_and_none_is_sent(client: ControlClient) -> None:
    client.create_queue(ORDERS)
    with pytest.raises(ServiceError, match=r"messages\[1\].priority: 9") as raised:
        client.send(ORDERS, [{"text": "a"}, {"text": "b", "priority": 9}])
    assert refusal(raised) == (400, MqStatus.ILLEGAL_PROPERTY_VALUE)
    assert client.queue(ORDERS)["messages"] == 0


def test_a_full_disk_is_a_problem_and_nothing_was_sent(tmp_path: Path) -> None:
    store = GatedStore()
    with ControlledManager(tmp_path, threaded_engine(store)) as controlled:
        client = controlled.client()
        client.create_queue(ORDERS)
        store.is_full = True
        with pytest.raises(ServiceError) as raised:
            client.send(ORDERS, [{"text": "a"}])
        assert raised.value.http_status == 507
        store.is_full = False
        assert client.receive(ORDERS) == []
        client.close()


# Messages as JSON


FULL: dict[str, Any] = {
    "text": "hello",
    "label": "first",
    "priority": 5,
    "recoverable": False,
    "time_to_reach_queue": 60,
    "time_to_be_received": "infinite",
    "acknowledgements": ["POSITIVE_ARRIVAL", "NEGATIVE_ARRIVAL"],
    "journal": ["DEAD_LETTER", "JOURNAL"],
    "administration_queue": r"DIRECT=OS:web\private$\admin",
    "response_queue": r"DIRECT=OS:web\private$\replies",
    "correlation_id": f"{{{str(GUID).upper()}}}\\7",
    "application_tag": 42,
    "extension": base64.b64encode(b"beside").decode(),
    "dead_letter_queue": r".\private$\dead",
    "allow_peek_when_locked": True,
    "trace": True,
    "report_queue": str(GUID),
    "connector_type": str(GUID),
    "privacy_level": "ADVANCED",
    "encryption_algorithm": "AES128",
    "hash_algorithm": "SHA_256",
    "sender_id": base64.b64encode(GUID.bytes_le).decode(),
    "sender_id_type": "QUEUE_MANAGER",
    "sender_certificate": base64.b64encode(b"certificate").decode(),
    "symmetric_key": base64.b64encode(b"key").decode(),
    "signature": base64.b64encode(b"signature").decode(),
    "provider": {"name": "Microsoft Base", "type": 1},
}


def test_every_property_that_goes_in_comes_out(client: ControlClient) -> None:
    client.create_queue(r".\private$\dead")
    client.create_queue(ORDERS)
    client.send(ORDERS, [FULL])
    (message,) = client.receive(ORDERS)
    schemas.MessageOut.model_validate(message)
    expected = {key: value for key, value in FULL.items() if key != "recoverable"}
    different = {key: message[key] for key in expected if message[key] != expected[key]}
    assert different == {}
    assert message["delivery"] == "EXPRESS"
    assert (message["body_type"], message["summary"]) == ("VT_BSTR", "10 bytes of VT_BSTR")


def test_several_administration_and_response_queues() -> None:
    names = [r"DIRECT=OS:a\x", r"DIRECT=OS:b\x"]
    given = {"administration_queues": names, "response_queues": names}
    message = from_json(schemas.MessageIn.model_validate(given))
    shown = to_json(message)
    assert (shown["administration_queues"], shown["response_queues"]) == (names, names)
    with pytest.raises(MessageError, match="several queues"):
        from_json(schemas.MessageIn.model_validate({"response_queues": [",".join(names)]}))


@pytest.mark.parametrize(
    ("given", "body", "body_type"),
    [
        ({}, b"", BodyType.VT_EMPTY),
        ({"text": "é"}, "é".encode("utf-16-le"), BodyType.VT_BSTR),
        ({"text": "é", "body_type": "VT_EMPTY"}, "é".encode(), BodyType.VT_EMPTY),
        ({"text": "e", "body_type": "vt-lpstr"}, b"e", BodyType.VT_LPSTR),
        ({"json": {"a": [1, None]}}, b'{"a":[1,null]}', BodyType.VT_EMPTY),
        ({"json": None}, b"null", BodyType.VT_EMPTY),
        ({"body": "AQI=", "body_type": 0x1011}, b"\1\2", BodyType.VT_VECTOR_UI1),
        ({"body": "AQI=", "body_type": "0x7777"}, b"\1\2", 0x7777),
    ],
)
def test_bodies(given: dict[str, Any], body: bytes, body_type: int) -> None:
    message = from_json(schemas.MessageIn.model_validate(given))
    assert (message.body, message.body_type) == (body, body_type)


@pytest.mark.parametrize(
    ("given", "field", "hint"),
    [
        ({"text": "a", "body": "AQI="}, "body", "one body"),
        ({"body": "not base64"}, "body", "base64"),
        ({"text": "\ud800"}, "text", ""),
        ({"body_type": "VT_BTSR"}, "body_type", "VT_BSTR"),
        ({"acknowledgements": ["POSITIVE_ARIVAL"]}, "acknowledgements", "POSITIVE_ARRIVAL"),
        ({"privacy_level": "advancd"}, "privacy_level", "ADVANCED"),
        ({"extension": "?"}, "extension", "base64"),
        ({"text": "x" * 10, "label": "x" * 300}, "label", "shorten"),
    ],
)
def test_a_wrong_property_is_named(given: dict[str, Any], field: str, hint: str) -> None:
    with pytest.raises(MessageError) as raised:
        from_json(schemas.MessageIn.model_validate(given))
    assert raised.value.field == field
    assert hint in raised.value.hint


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises(ValidationError, match="lable"):
        schemas.MessageIn.model_validate({"lable": "x"})


def test_numbers_without_a_name_come_out_as_numbers() -> None:
    message = Message(b"x", body_type=0x7777)
    message.message_class = 0x4711
    shown = to_json(message)
    assert (shown["body_type"], shown["message_class"]) == (0x7777, 0x4711)
    assert shown["text"] is None


@given(message=messages())
def test_any_message_becomes_json_that_the_schema_describes(message: Message) -> None:
    shown = json.loads(json.dumps(to_json(message)))
    schemas.MessageOut.model_validate(shown)
    assert base64.b64decode(shown["body"]) == message.body


@given(data=st.dictionaries(st.sampled_from(sorted(FULL)), st.text() | st.integers() | st.none()))
def test_any_json_is_a_message_or_refused(data: dict[str, Any]) -> None:
    try:
        message = schemas.MessageIn.model_validate(data)
    except ValidationError:
        return
    with contextlib.suppress(MessageError, NameSyntaxError):
        assert from_json(message).body is not None
