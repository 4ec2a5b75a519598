"""Message, its enums and its checks, MQDMPR 3.1.1.12."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given

from falconmq.body import BodyType
from falconmq.errors import MessageError, MqStatus, NameSyntaxError
from falconmq.message import (
    INFINITE,
    NO_MESSAGE_ID,
    Acknowledge,
    AuthenticationLevel,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    MessageId,
    MessageProperties,
    MessageTransaction,
    PrivacyLevel,
    SenderIdType,
    is_expired,
)
from falconmq.names import PrivateFormatName, PublicFormatName
from tests.strategies.messages import message_ids, messages

QUEUE_MANAGER = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
CATALOGUE = Path(__file__).parents[1] / "conformance" / "mqdmpr.tsv"

# What a message is before anybody changes it, spelt from the rows of MQDMPR 3.1.1.12.
DEFAULTS: list[tuple[str, object, list[str]]] = [
    ("body", b"", []),
    ("body_type", 0, []),
    ("label", "", []),
    ("application_tag", 0, []),
    ("extension", b"", []),
    ("correlation_id", bytes(20), []),
    ("dead_letter_queue", "", ["DM-3.1.1.12-04"]),
    ("message_class", 0, ["DM-3.1.1.12-08"]),
    ("privacy_level", PrivacyLevel.NONE, ["DM-3.1.1.12-33"]),
    ("authentication_level", AuthenticationLevel.NONE, ["DM-3.1.1.12-38"]),
    ("delivery", Delivery.EXPRESS, ["DM-3.1.1.12-45"]),
    ("report_queue", None, ["DM-3.1.1.12-49"]),
    ("trace", False, []),
    ("priority", 3, ["DM-3.1.1.12-50"]),
    ("journal", Journal.NONE, ["DM-3.1.1.12-51", "DM-3.1.1.12-55"]),
    ("response_queue", None, ["DM-3.1.1.12-59"]),
    ("response_queues", (), ["DM-3.1.1.12-60"]),
    ("administration_queue", None, ["DM-3.1.1.12-64"]),
    ("administration_queues", (), ["DM-3.1.1.12-65"]),
    ("acknowledgements", Acknowledge.NONE, ["DM-3.1.1.12-73"]),
    ("time_to_be_received", 0xFFFFFFFF, []),
    ("time_to_reach_queue", None, []),
    ("hash_algorithm", HashAlgorithm.SHA_512, []),
    ("encryption_algorithm", EncryptionAlgorithm.RC4, ["DM-3.1.1.12-92"]),
    ("allow_peek_when_locked", False, []),
    ("connector_type", None, []),
    ("destination", None, []),
    ("destinations", (), []),
    ("id", None, []),
    ("sent_time", None, []),
    ("transaction", None, []),
    ("lookup_id", None, []),
    ("abort_count", 0, []),
    ("move_count", 0, []),
    ("sender_id_type", SenderIdType.SID, ["DM-3.1.1.12-101"]),
]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, marks=[pytest.mark.requirement(*rows)] if rows else [], id=field)
        for field, value, rows in DEFAULTS
    ],
)
def test_a_new_message_has_the_specified_default(field: str, value: object) -> None:
    assert getattr(Message(), field) == value


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        pytest.param(
            PrivacyLevel,
            {"NONE": 0, "BASE": 1, "ENHANCED": 3, "ADVANCED": 5},
            marks=pytest.mark.requirement("DM-3.1.1.12-33"),
        ),
        pytest.param(
            AuthenticationLevel,
            {"NONE": 0, "SIG10": 1, "SIG20": 3, "SIG30": 5, "XML_SIG": 9},
            marks=pytest.mark.requirement("DM-3.1.1.12-38"),
        ),
        pytest.param(
            Delivery,
            {"EXPRESS": 0, "RECOVERABLE": 1},
            marks=pytest.mark.requirement("DM-3.1.1.12-45"),
        ),
        (Journal, {"NONE": 0, "DEAD_LETTER": 1, "JOURNAL": 2}),
        (SenderIdType, {"NONE": 0, "SID": 1, "QUEUE_MANAGER": 2}),
        (
            Acknowledge,
            {
                "NONE": 0,
                "POSITIVE_ARRIVAL": 1,
                "POSITIVE_RECEIVE": 2,
                "NEGATIVE_ARRIVAL": 4,
                "NEGATIVE_RECEIVE": 8,
                "NACK_REACH_QUEUE": 4,
                "FULL_REACH_QUEUE": 5,
                "NACK_RECEIVE": 0xC,
                "FULL_RECEIVE": 0xE,
            },
        ),
    ],
)
def test_a_choice_has_these_names_and_numbers(kind: Any, numbers: dict[str, int]) -> None:
    assert {name: int(member) for name, member in kind.__members__.items()} == numbers


# MQDMPR calls the classes by other names than MQMQ does.
CLASS_NAMES = {
    "Normal": "NORMAL",
    "Report": "REPORT",
    "AckReachQueue": "ACK_REACH_QUEUE",
    "OrderAck": "ORDER_ACK",
    "AckReceive": "ACK_RECEIVE",
    "NackBadDestQueue": "NACK_BAD_DST_Q",
    "NackPurged": "NACK_DELETED",
    "NackReachQueueTimeout": "NACK_REACH_QUEUE_TIMEOUT",
    "NackQueueExceedQuota": "NACK_Q_EXCEED_QUOTA",
    "NackAccessDenied": "NACK_ACCESS_DENIED",
    "NackHopCountExceeded": "NACK_HOP_COUNT_EXCEEDED",
    "NackBadSignature": "NACK_BAD_SIGNATURE",
    "NackBadEncryption": "NACK_BAD_ENCRYPTION",
    "NackCouldNotEncrypt": "NACK_COULD_NOT_ENCRYPT",
    "NackNotTransactionalQueue": "NACK_NOT_TRANSACTIONAL_Q",
    "NackNotTransactionalMessage": "NACK_NOT_TRANSACTIONAL_MSG",
    "NackUnsupportedCryptoProvider": "NACK_UNSUPPORTED_CRYPTO_PROVIDER",
    "NackSourceComputerGuidChanged": "NACK_SOURCE_COMPUTER_GUID_CHANGED",
    "NackQueueDeleted": "NACK_Q_DELETED",
    "NackQueuePurged": "NACK_Q_PURGED",
    "NackReceiveTimeout": "NACK_RECEIVE_TIMEOUT",
    "NackReceiveTimeoutAtSender": "NACK_RECEIVE_TIMEOUT_AT_SENDER",
    "NackReceiveRejected": "NACK_RECEIVE_REJECTED",
}


def class_rows() -> Iterator[tuple[str, str, int]]:
    for line in CATALOGUE.read_text(encoding="utf-8").splitlines():
        row, section, _, _, text = line.split("\t")
        found = re.match(r"Class (\w+) (0x[0-9A-F]{4})\b", text)
        if section == "3.1.1.12" and found:
            yield row, found[1], int(found[2], 16)


CLASS_ROWS = list(class_rows())


def test_the_catalogue_lists_23_classes() -> None:
    assert {name for _, name, _ in CLASS_ROWS} == set(CLASS_NAMES)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=pytest.mark.requirement(row), id=name)
        for row, name, number in CLASS_ROWS
    ],
)
def test_a_message_class_has_its_number(name: str, number: int) -> None:
    assert MessageClass[CLASS_NAMES[name]] == number
    assert Message(message_class=number).message_class == number


# Bodies


def test_text_becomes_a_bstr_and_bytes_stay_bytes() -> None:
    text = Message("hé")
    assert (text.body, text.body_type, text.text, text.value) == (b"h\0\xe9\0", 8, "hé", "hé")
    data = Message(b"\x01\x02")
    assert (data.body, data.body_type, data.value) == (b"\x01\x02", 0, b"\x01\x02")
    assert Message(memoryview(b"ab")).body == Message(bytearray(b"ab")).body == b"ab"
    assert isinstance(Message(bytearray(b"ab")).body, bytes)


def test_text_can_be_written_as_another_string_type() -> None:
    message = Message("hi", body_type=BodyType.VT_LPSTR)
    assert (message.body, message.text) == (b"hi", "hi")
    assert Message(b"hi", body_type=0x4003).body_type == 0x4003


@pytest.mark.parametrize("body", [5, None, {"a": 1}, ["x"]])
def test_a_body_of_another_kind_is_sent_to_its_helper(body: Any) -> None:
    with pytest.raises(MessageError, match="text or bytes") as caught:
        Message(body)
    assert "Message.json" in caught.value.hint


def test_a_json_body_comes_back() -> None:
    value = {"order": 7, "items": ["grüße", None, 1.5]}
    message = Message.json(value, label="order", priority=5)
    assert message.body == '{"order":7,"items":["grüße",null,1.5]}'.encode()
    assert (message.body_type, message.label, message.priority) == (0, "order", 5)
    assert message.as_json() == value
    assert Message('{"a": 1}').as_json() == {"a": 1}


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}, "\ud800"])
def test_a_value_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="JSON cannot hold"):
        Message.json(value)


def test_a_body_that_is_no_json_says_what_it_is() -> None:
    with pytest.raises(MessageError, match="no JSON: it is an XML document <string>"):
        Message.xml("hello").as_json()
    with pytest.raises(MessageError, match="no JSON"):
        Message(b"[" * 100_000).as_json()


def test_an_xml_body_comes_back() -> None:
    message = Message.xml("hello", label="greeting")
    assert message.body == b'<?xml version="1.0"?>\r\n<string>hello</string>'
    assert (message.body_type, message.label, message.as_xml()) == (0, "greeting", "hello")
    assert Message.xml(5, "short").as_xml() == 5
    assert isinstance(Message("<Order/>").as_xml(), Element)


def test_a_body_that_is_no_xml_says_what_it_is() -> None:
    with pytest.raises(MessageError, match=r"JSON text of 7 bytes") as caught:
        Message.json({"a": 1}).as_xml()
    assert caught.value.status is MqStatus.BAD_XML_FORMAT
    with pytest.raises(MessageError, match="VT_I4"):
        Message.variant(5).as_xml()


def test_a_typed_value_comes_back() -> None:
    assert Message.variant(5).body_type == BodyType.VT_I4
    assert Message.variant(5, BodyType.VT_UI1).body == b"\x05"
    assert Message.variant(Decimal("1.5"), label="price").value == Decimal("1.5")


# Checks


@pytest.mark.requirement("MQ-2.4-03", "MQ-2.4-88")
def test_a_label_has_at_most_249_characters() -> None:
    assert Message(label="x" * 249).label == "x" * 249
    assert Message(label="\U0001f600" * 124).label
    for label in ("x" * 250, "\U0001f600" * 125):  # a smiley takes two units
        with pytest.raises(MessageError, match="250 characters, 249 are allowed") as caught:
            Message(label=label)
        assert caught.value.field == "label"
        assert caught.value.status == 0xC00E005D
        assert caught.value.hint


@pytest.mark.parametrize(
    ("field", "bad", "status"),
    [
        ("label", "a\0b", MqStatus.ILLEGAL_PROPERTY_VALUE),
        pytest.param(
            "priority",
            8,
            MqStatus.ILLEGAL_PROPERTY_VALUE,
            marks=pytest.mark.requirement("DM-3.1.1.12-50"),
        ),
        pytest.param(
            "priority",
            -1,
            MqStatus.ILLEGAL_PROPERTY_VALUE,
            marks=pytest.mark.requirement("DM-3.1.1.12-50"),
        ),
        ("priority", "3", MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("delivery", 2, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("journal", 4, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("acknowledgements", 16, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("application_tag", 1 << 32, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("body_type", -1, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("time_to_be_received", 1 << 32, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("time_to_reach_queue", -1, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("correlation_id", bytes(19), MqStatus.ILLEGAL_PROPERTY_SIZE),
        ("message_class", 0x10000, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("message_class", 0x0200, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("privacy_level", 2, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("encryption_algorithm", 0x6601, MqStatus.PROPERTIES_CONFLICT),
        ("hash_algorithm", 1 << 32, MqStatus.ILLEGAL_PROPERTY_VALUE),
        ("sender_id_type", 3, MqStatus.ILLEGAL_PROPERTY_VALUE),
    ],
)
def test_what_msmq_does_not_allow_is_refused_by_name(
    field: str, bad: Any, status: MqStatus
) -> None:
    with pytest.raises(MessageError, match=rf"^{field}: ") as caught:
        Message(**{field: bad})
    assert (caught.value.field, caught.value.status) == (field, status)
    message = Message()
    setattr(message, field, bad)
    with pytest.raises(MessageError, match=rf"^{field}: "):
        message.check()


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("priority", 7),
        ("acknowledgements", 15),
        ("journal", 3),
        ("application_tag", 0xFFFFFFFF),
        ("body_type", 0xFFFFFFFF),
        ("time_to_be_received", 0xFFFFFFFF),
        ("time_to_reach_queue", 0xFFFFFFFF),
        ("message_class", 0xE1FF),
        ("hash_algorithm", 0xFFFFFFFF),
    ],
)
def test_a_property_may_stand_at_its_limits(field: str, limit: Any) -> None:
    assert getattr(Message(**{field: limit}), field) == limit
    lowest: Any = 0
    assert getattr(Message(**{field: lowest}), field) == 0


@pytest.mark.parametrize(
    ("level", "names"),
    [
        pytest.param(
            1, {"RC2", "RC4"}, marks=pytest.mark.requirement("MQ-2.2.19.3-40", "MQ-2.2.19.3-38")
        ),
        pytest.param(3, {"RC2", "RC4"}, marks=pytest.mark.requirement("MQ-2.2.19.3-41")),
        pytest.param(
            5, {"AES128", "AES192", "AES256"}, marks=pytest.mark.requirement("MQ-2.2.19.3-42")
        ),
    ],
)
def test_a_privacy_level_goes_with_its_ciphers(level: int, names: set[str]) -> None:
    fitting = set()
    for cipher in EncryptionAlgorithm:
        try:
            Message(privacy_level=level, encryption_algorithm=cipher)
        except MessageError as error:
            assert error.status is MqStatus.PROPERTIES_CONFLICT
            assert set(error.hint.removeprefix("choose one of ").split(", ")) == names
        else:
            fitting.add(cipher.name)
    assert fitting == names
    assert EncryptionAlgorithm(Message(privacy_level=level).encryption_algorithm).name in names


def test_a_signature_needs_a_known_hash() -> None:
    Message(hash_algorithm=0x9999)
    with pytest.raises(MessageError, match="hash_algorithm"):
        Message(hash_algorithm=0x9999, signature=b"s")
    with pytest.raises(MessageError, match="hash_algorithm"):
        Message(hash_algorithm=0x9999, authentication_level=AuthenticationLevel.SIG20)


@pytest.mark.parametrize(
    ("sender_id", "sender_id_type", "fits"),
    [
        (b"", SenderIdType.NONE, True),
        pytest.param(
            b"x", SenderIdType.NONE, False, marks=pytest.mark.requirement("MQ-2.2.20.6-05")
        ),
        (bytes.fromhex("010100000000000512000000"), SenderIdType.SID, True),
        (bytes.fromhex("010100000000000512000000"), None, True),
        pytest.param(
            bytes.fromhex("0101000000000005120000"),
            SenderIdType.SID,
            False,
            marks=pytest.mark.requirement("MQ-2.2.20.6-06"),
        ),
        (bytes.fromhex("020100000000000512000000"), SenderIdType.SID, False),
        (b"", SenderIdType.SID, True),  # that of whoever sends it
        (bytes(16), SenderIdType.QUEUE_MANAGER, True),
        pytest.param(
            bytes(15),
            SenderIdType.QUEUE_MANAGER,
            False,
            marks=pytest.mark.requirement("MQ-2.2.20.6-07"),
        ),
    ],
)
def test_a_sender_id_fits_its_type(
    sender_id: bytes, sender_id_type: int | None, fits: bool
) -> None:
    try:
        Message(sender_id=sender_id, sender_id_type=sender_id_type)
    except MessageError as error:
        assert not fits
        assert error.field == "sender_id"
    else:
        assert fits


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("sequence_id", 1 << 64),
        ("sequence_number", 0),
        ("sequence_number", 1 << 32),
        ("previous_sequence_number", 0xFFFFFFFF),
        ("id", 1 << 20),
    ],
)
def test_a_place_in_a_transaction_is_checked(field: str, bad: int) -> None:
    message = Message()
    message.transaction = MessageTransaction(0xFFFFFFFFFFFFFFFF, 1, 0xFFFFFFFE, 0xFFFFF)
    message.check()
    setattr(message.transaction, field, bad)
    with pytest.raises(MessageError, match=f"transaction.{field}"):
        message.check()


def test_a_body_larger_than_any_packet_is_refused() -> None:
    with pytest.raises(MessageError, match="4194305 bytes") as caught:
        Message(bytes(0x400001))
    assert caught.value.status is MqStatus.INSUFFICIENT_RESOURCES
    assert "in parts" in caught.value.hint


# Names


def test_queues_may_be_given_as_text() -> None:
    message = Message(
        response_queue=f"PUBLIC={QUEUE_MANAGER}",
        administration_queue=f"PRIVATE={QUEUE_MANAGER}\\1a",
        destination=r"DIRECT=OS:sales01\private$\orders",
    )
    assert message.response_queue == PublicFormatName(QUEUE_MANAGER)
    assert message.administration_queue == PrivateFormatName(QUEUE_MANAGER, 0x1A)
    assert str(message.destination) == r"DIRECT=OS:sales01\private$\orders"


@pytest.mark.requirement("DM-3.1.1.12-61")
@pytest.mark.parametrize("field", ["destination", "response_queue", "administration_queue"])
def test_one_queue_is_not_several(field: str) -> None:
    name = f"PUBLIC={QUEUE_MANAGER},PUBLIC={QUEUE_MANAGER}"
    with pytest.raises(MessageError, match=rf"^{field}: ") as caught:
        Message(**{field: name})  # type: ignore[arg-type]  # the field is a variable here
    assert caught.value.hint.endswith("s")


def test_a_misspelt_queue_name_shows_where() -> None:
    with pytest.raises(NameSyntaxError):
        Message(response_queue="DIRECT=OS:x")


# Ids


def test_a_message_id_prints_as_msmq_prints_it() -> None:
    message_id = MessageId.of(QUEUE_MANAGER, 2286)
    assert str(message_id) == r"{557358D1-9150-9595-4997-B6E611EA26C6}\2286"
    assert message_id == bytes.fromhex(
        "d158735550919595499 7b6e611ea26c6 ee080000".replace(" ", "")
    )
    assert (message_id.queue_manager, message_id.ordinal) == (QUEUE_MANAGER, 2286)
    assert repr(message_id) == r"MessageId.parse('{557358D1-9150-9595-4997-B6E611EA26C6}\\2286')"


@given(message_ids)
def test_a_message_id_comes_back_from_its_text(message_id: MessageId) -> None:
    assert MessageId.parse(str(message_id)) == message_id
    assert MessageId.parse(str(message_id).replace("{", "").replace("}", "").lower()) == message_id
    assert pickle.loads(pickle.dumps(message_id)) == message_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "557358D1-9150-9595-4997-B6E611EA26C6",
        r"{557358D1-9150-9595-4997-B6E611EA26C6\1",
        r"557358D1-9150-9595-4997-B6E611EA26C6}\1",
        r"{557358D1-9150-9595-4997-B6E611EA26C6}\4294967296",
        r"{557358D1-9150-9595-4997-B6E611EA26C6}\-1",
        r"{557358D1-9150-9595-4997-B6E611EA26C6}\1 ",
        "{557358D1-9150-9595-4997-B6E611EA26C6}\\\u0661",
        r"{557358D1-9150-9595-4997-B6E611EA26CG}\1",
    ],
)
def test_a_text_that_is_no_message_id_is_refused(text: str) -> None:
    with pytest.raises(MessageError, match="is no message id") as caught:
        MessageId.parse(text)
    assert "{" in caught.value.hint


def test_a_message_id_has_20_bytes() -> None:
    with pytest.raises(MessageError, match="21 bytes instead of 20"):
        MessageId(bytes(21))


def test_an_answer_names_its_question() -> None:
    question = Message("?")
    question.id = MessageId.of(QUEUE_MANAGER, 7)
    assert Message("!", correlation_id=question.id).correlation_id == question.id
    assert Message("!", correlation_id=bytes(question.id)).correlation_id == question.id
    assert Message("!", correlation_id=str(question.id)).correlation_id == question.id
    assert not Message().correlation_id
    assert Message().correlation_id == NO_MESSAGE_ID
    assert Message("!", correlation_id=question.id).correlation_id


def test_sender_and_transaction_follow_from_the_id() -> None:
    new, sent, transactional = Message(), Message(), Message()
    sent.id = transactional.id = MessageId.of(QUEUE_MANAGER, 7)
    transactional.transaction = MessageTransaction(1, 1, id=0xABCDE)
    assert (new.source_queue_manager, new.transaction_id) == (None, None)
    assert (sent.source_queue_manager, sent.transaction_id) == (QUEUE_MANAGER, None)
    assert transactional.transaction_id == MessageId.of(QUEUE_MANAGER, 0xABCDE)
    assert [each.is_transactional for each in (new, sent, transactional)] == [False, False, True]


def test_times_are_shown_in_utc() -> None:
    message = Message()
    assert message.sent_at is None
    message.sent_time, message.arrived_time = 0, 0xFFFFFFFF
    assert message.sent_at == datetime(1970, 1, 1, tzinfo=UTC)
    assert message.arrived_at == datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)


@pytest.mark.requirement("MQ-2.2.19.1-36", "MQ-2.2.19.1-37", "MQ-2.2.19.1-40")
@pytest.mark.parametrize(
    ("now", "expired"), [(1000, False), (1010, False), (1011, True), (990, False)]
)
def test_a_message_expires_when_more_than_its_time_has_passed(now: int, expired: bool) -> None:
    assert is_expired(now, sent_time=1000, time_to_reach_queue=10) is expired
    assert not is_expired(now + (1 << 33), sent_time=1000, time_to_reach_queue=INFINITE)
    assert is_expired(1000 + 0xFFFFFFFF, sent_time=1000, time_to_reach_queue=0xFFFFFFFE)


# The object itself


def test_a_message_shows_what_matters_and_never_its_body() -> None:
    message = Message("secret " * 1000, label="orders", priority=5)
    assert repr(message) == "<Message: 14000 bytes of VT_BSTR, label 'orders', priority 5>"
    message.delivery = Delivery.RECOVERABLE
    message.message_class = MessageClass.NACK_Q_PURGED
    message.id = MessageId.of(QUEUE_MANAGER, 7)
    text = repr(message)
    assert "NACK_Q_PURGED, recoverable, priority 5, id {557358D1" in text
    message.transaction = MessageTransaction(1, 1)
    assert "transactional" in repr(message)
    assert "priority" not in repr(message)
    message.message_class = 0x21
    assert "class 0x0021" in repr(message)


@given(messages())
def test_a_copy_is_equal_until_it_is_changed(message: Message) -> None:
    duplicate = copy.copy(message)
    assert duplicate == message == pickle.loads(pickle.dumps(message))
    duplicate.label += "x"
    assert duplicate != message


def test_the_keywords_are_the_same_everywhere() -> None:
    signature = inspect.signature(Message.__init__)
    keywords = set(signature.parameters) - {"self", "body", "body_type"}
    assert keywords == set(MessageProperties.__annotations__)
    assert keywords < set(Message.__slots__)
