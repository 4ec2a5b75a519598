"""Change Notification Message, MQCN 2.2.4 to 2.2.6."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.change_notification import (
    ChangeNotificationMessage,
    NotificationBody,
    NotificationEvent,
)
from falconmq.wire.directory_change import CREATE, DELETE, UPDATE, NotificationUpdate
from falconmq.wire.reader import decode_utf16
from falconmq.wire.tracing import TracingReader
from tests.strategies.notifications import (
    change_notifications,
    notification_bodies,
    notification_updates,
)
from tests.strategies.wire import u8
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)
from tests.wire.property_catalogue import requirement

GUID_TEXT = "00112233-4455-6677-8899-AABBCCDDEEFF"
GUID = bytes.fromhex("33221100 5544 7766 8899aabbccddeeff")
TEXT = (
    "<Notification><Event>2</Event><ObjectGuid>00112233-4455-6677-8899-AABBCCDDEEFF</ObjectGuid>"
    "<DomainController>dc01.example</DomainController></Notification>"
)
BODY = NotificationBody(NotificationEvent.QUEUE_CHANGED, GUID, "dc01.example")

MASTER = bytes(range(0x40, 0x50))
CHANGE = NotificationUpdate(UPDATE, GUID, MASTER, [(105, 7)], bytes(range(24)))
CHANGE_BYTES = b"\1\1" + GUID + MASTER + bytes(range(24)) + bytes.fromhex("01 69000000 07000000")
CREATION = NotificationUpdate(CREATE, "S\\q", MASTER, [(103, "S\\q"), (104, 1)])
CREATION_BYTES = (
    b"\0\0S\0\\\0q\0\0\0" + MASTER + bytes(24) + bytes.fromhex("02 67000000 68000000")
) + b"S\0\\\0q\0\0\0\1"


def utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def v2(text: str, tail: bytes = b"\0") -> bytes:
    return b"\2\1" + utf16(text) + tail


def with_parts(event: str = "2", guid: str = GUID_TEXT, server: str = "dc01.example") -> str:
    return (
        f"<Notification><Event>{event}</Event><ObjectGuid>{guid}</ObjectGuid>"
        f"<DomainController>{server}</DomainController></Notification>"
    )


@pytest.mark.requirement(
    "CN-2.2.4-02",
    "CN-2.2.4-04",
    "CN-2.2.4-05",
    "CN-2.2.4-07",
    "CN-2.2.4-08",
    "CN-2.2.4-10",
    "CN-2.2.5-09",
    "CN-2.2.5-11",
    "CN-2.2.5-12",
    "CN-2.2.5-13",
    "CN-2.2.5-15",
)
def test_a_queue_manager_sends_version_2_with_one_text() -> None:
    message = ChangeNotificationMessage(BODY)
    assert message.version == 2
    assert message.encode() == b"\x02\x01" + utf16(TEXT) + b"\0"
    assert ChangeNotificationMessage.decode(v2(TEXT)) == message


@pytest.mark.requirement(
    "CN-2.2.4-01",
    "CN-2.2.4-02",
    "CN-2.2.4-03",
    "CN-2.2.4-05",
    "CN-2.2.4-06",
    "CN-2.2.4-08",
    "CN-2.2.4-09",
    "CN-2.2.4-11",
)
def test_a_directory_service_sends_version_1_with_updates_back_to_back() -> None:
    message = ChangeNotificationMessage([CHANGE, CREATION])
    assert message.version == 1
    data = b"\x01\x02" + CHANGE_BYTES + CREATION_BYTES + b"\0"
    assert message.encode() == data
    assert ChangeNotificationMessage.decode(data) == message


@pytest.mark.requirement("CN-2.2-01")
def test_a_trace_shows_the_elements_of_mqcn_and_nothing_else() -> None:
    def names(data: bytes) -> list[list[str]]:
        reader = TracingReader(data)
        ChangeNotificationMessage.read(reader)
        (message,) = reader.root.children
        return [
            [child.name for child in message.children],
            [child.name for node in message.children for child in node.children],
        ]

    assert names(v2(TEXT)) == [
        ["Version", "NumberOfUpdateNotifications", "NotificationBody"],
        ["Markup", "Event", "Markup", "ObjectGuid", "Markup", "DomainController", "Markup"],
    ]
    assert names(b"\1\1" + CHANGE_BYTES + b"\0") == [
        ["Version", "NumberOfUpdateNotifications", "NotificationUpdate", "Trailer"],
        [
            "Command",
            "UseGuid",
            "GuidIdentifier",
            "GuidMasterId",
            "Reserved",
            "NumberOfProperties",
            "PropertyId",
            "PropertyValue[PROPID_Q_QUOTA]",
        ],
    ]


def test_a_trace_finds_the_fields_of_the_text() -> None:
    reader = TracingReader(v2(TEXT))
    ChangeNotificationMessage.read(reader)
    fields = {node.name: node for node in reader.root.children[0].children[2].children}
    assert {
        name: decode_utf16(fields[name].value)
        for name in ("Event", "ObjectGuid", "DomainController")
    } == {"Event": "2", "ObjectGuid": GUID_TEXT, "DomainController": "dc01.example"}
    assert fields["ObjectGuid"].offset == 2 + 2 * TEXT.index(GUID_TEXT)


@pytest.mark.requirement("CN-2.2.4-06", "CN-2.2.4-05")
def test_the_count_says_how_many_updates_there_are() -> None:
    for count in (1, 2, 255):
        message = ChangeNotificationMessage([CHANGE] * count)
        data = message.encode()
        assert data[1] == count
        assert ChangeNotificationMessage.decode(data) == message
    for count in (0, 256):
        with pytest.raises(WireError, match=f"NumberOfUpdateNotifications: {count} is not in"):
            ChangeNotificationMessage([CHANGE] * count).encode()
    # the bytes behind the counted updates are no update, whatever they look like
    one = ChangeNotificationMessage.decode(b"\1\1" + CHANGE_BYTES + CHANGE_BYTES)
    assert one.data == [CHANGE]


@pytest.mark.parametrize(("count", "updates"), [(0, 1), (3, 2), (255, 2)])
def test_a_count_that_the_bytes_do_not_hold_is_refused(count: int, updates: int) -> None:
    with pytest.raises(WireError):
        ChangeNotificationMessage.decode(bytes([1, count]) + CHANGE_BYTES * updates)


def test_an_impossible_count_is_refused_before_an_update_is_read() -> None:
    for count in (0, 255):
        with pytest.raises(WireError, match="NumberOfUpdateNotifications at offset 1"):
            ChangeNotificationMessage.decode(bytes([1, count]) + CHANGE_BYTES * 2)


@pytest.mark.parametrize("version", [0, 3, 255])
def test_another_version_is_refused(version: int) -> None:
    with pytest.raises(WireError) as caught:
        ChangeNotificationMessage.decode(bytes([version]) + v2(TEXT)[1:])
    assert (caught.value.field, caught.value.offset) == ("Version", 0)


@pytest.mark.parametrize("body", [b"", b"\1", b"\2", b"\1\1", b"\2\1"])
def test_a_body_with_nothing_in_it_is_refused(body: bytes) -> None:
    with pytest.raises(WireError):
        ChangeNotificationMessage.decode(body)


@given(u8)
def test_the_count_of_a_text_is_not_looked_at(count: int) -> None:
    data = v2(TEXT)
    assert ChangeNotificationMessage.decode(data[:1] + bytes([count]) + data[2:]).data == BODY


@pytest.mark.parametrize("tail", [b"", b"\0", b"\0\0", b"\0\0\0", b"\xcc", b"\0\0\xcc", bytes(99)])
def test_bytes_behind_the_text_do_not_matter(tail: bytes) -> None:
    assert ChangeNotificationMessage.decode(v2(TEXT, tail)).data == BODY


@pytest.mark.parametrize("tail", [b"", b"\0", b"\xcc", bytes(99)])
def test_bytes_behind_the_updates_do_not_matter(tail: bytes) -> None:
    assert ChangeNotificationMessage.decode(b"\1\1" + CHANGE_BYTES + tail).data == [CHANGE]


def _event(row: str, event: NotificationEvent) -> Any:
    return pytest.param(row, event, marks=pytest.mark.requirement(row), id=event.name)


@pytest.mark.parametrize(
    ("row", "event"),
    [
        _event("CN-2.2.5-05", NotificationEvent.QUEUE_CREATED),
        _event("CN-2.2.5-06", NotificationEvent.QUEUE_CHANGED),
        _event("CN-2.2.5-07", NotificationEvent.QUEUE_DELETED),
        _event("CN-2.2.5-08", NotificationEvent.MACHINE_CHANGED),
    ],
)
def test_an_event_has_the_digit_of_the_specification(row: str, event: NotificationEvent) -> None:
    words = requirement(row).rstrip(".").split()  # Event 1 = a queue object was created
    assert event.name == f"{words[4]}_{words[-1]}".upper()
    assert f"<Event>{words[1]}</Event>" in decode_utf16(NotificationBody(event, GUID, "d").encode())
    assert NotificationBody.decode(utf16(with_parts(event=words[1]))).event is event


@pytest.mark.requirement("CN-2.2.5-04")
@pytest.mark.parametrize("event", ["0", "5", "9", "12", "", " 1", "01", "x", "\u0661", "-1"])
def test_any_other_event_is_refused_as_such(event: str) -> None:
    with pytest.raises(WireError) as caught:
        ChangeNotificationMessage.decode(v2(with_parts(event=event)))
    assert caught.value.field == "Event"
    assert caught.value.offset == 2 + 2 * len("<Notification><Event>")


@pytest.mark.requirement("CN-2.2.5-04")
@pytest.mark.parametrize("event", [0, 5])
def test_any_other_event_is_not_sent(event: Any) -> None:
    with pytest.raises(WireError, match="Event"):
        NotificationBody(event, GUID, "dc").encode()


@pytest.mark.requirement("CN-2.2.5-14")
def test_blanks_in_front_of_a_bracket_are_accepted_and_not_sent() -> None:
    for text in (
        TEXT.replace("</ObjectGuid>", "</ObjectGuid >"),
        TEXT.replace("</ObjectGuid>", "</ObjectGuid   >"),
        TEXT.replace(">", " >"),
    ):
        message = ChangeNotificationMessage.decode(v2(text))
        assert message.data == BODY
        assert message.encode() == v2(TEXT)


@pytest.mark.requirement("CN-2.2.5-15")
def test_a_guid_is_sent_in_capitals_and_accepted_in_both_cases() -> None:
    for text in (GUID_TEXT, GUID_TEXT.lower()):
        body = NotificationBody.decode(utf16(with_parts(guid=text)))
        assert body.object_guid == GUID == UUID(text).bytes_le
        assert GUID_TEXT in decode_utf16(body.encode())


@pytest.mark.requirement("CN-2.2.5-15")
@pytest.mark.parametrize(
    "guid",
    [
        "",
        "{" + GUID_TEXT + "}",
        GUID_TEXT[:-1],
        GUID_TEXT + "0",
        GUID_TEXT.replace("-", ""),
        GUID_TEXT.replace("A", "G"),
        "00112233-4455-6677-8899AABB-CCDDEEFF",
        "0011-2233-4455-6677-8899-AABBCCDDEEFF",
        GUID_TEXT + " ",
        "\u0660" + GUID_TEXT[1:],
        "\U0001d7ce" + GUID_TEXT[2:],
    ],
)
def test_a_malformed_guid_is_refused_as_such(guid: str) -> None:
    with pytest.raises(WireError) as caught:
        ChangeNotificationMessage.decode(v2(with_parts(guid=guid)))
    assert caught.value.field == "ObjectGuid"


@pytest.mark.requirement("CN-2.2.5-16")
def test_a_server_name_has_1_to_256_visible_characters() -> None:
    everything = "".join(chr(code) for code in range(0x21, 0x7F))
    for name in ("a", "a" * 256, everything):
        body = NotificationBody(NotificationEvent.QUEUE_CREATED, GUID, name)
        assert NotificationBody.decode(body.encode()) == body
    for name in ("", "a" * 257, "a b", "\x20", "\x7f", "\x1f", "\xe4", "a\n", "\U0001f600"):
        with pytest.raises(WireError) as caught:
            NotificationBody.decode(utf16(with_parts(server=name)))
        assert caught.value.field == "DomainController"
        with pytest.raises(WireError, match="DomainController"):
            NotificationBody(NotificationEvent.QUEUE_CREATED, GUID, name).encode()


@pytest.mark.requirement("CN-2.2.5-12", "CN-2.2.5-13")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeff" + TEXT,
        '<?xml version="1.0"?>' + TEXT,
        "<!DOCTYPE x>" + TEXT,
        " " + TEXT,
        TEXT + " ",
        TEXT + "x",
        TEXT.replace("><Event>", "> <Event>"),
        TEXT.replace("<Event>2</Event>", ""),
        TEXT.replace("<Event>", "<Event>2</Event><Event>"),
        TEXT.replace("<Event>", "<Event a='1'>"),
        TEXT.replace("Event", "event"),
        TEXT.replace("</Notification>", "<More/></Notification>"),
        TEXT.replace("<Event>2</Event>", "") + "<Event>2</Event>",
        TEXT.replace("<Event>", "< Event>"),
        TEXT[:-1],
        "\0" + TEXT,
    ],
)
def test_another_text_than_the_grammar_allows_is_refused(text: str) -> None:
    with pytest.raises(WireError):
        ChangeNotificationMessage.decode(v2(text))


def test_a_text_of_another_encoding_is_refused() -> None:
    for data in (TEXT.encode(), TEXT.encode("utf-16-be")):
        with pytest.raises(WireError, match="NotificationBody"):
            ChangeNotificationMessage.decode(b"\2\1" + data)


def test_a_text_of_more_than_4_kilobytes_is_refused() -> None:
    size = 4096 - len(utf16(TEXT))
    assert ChangeNotificationMessage.decode(v2(TEXT, bytes(size + 1))).data == BODY
    with pytest.raises(WireError, match="4 KB"):
        ChangeNotificationMessage.decode(v2(TEXT, bytes(size + 2)))


@pytest.mark.parametrize("size", [0, 15, 17])
def test_a_guid_of_another_size_is_not_sent(size: int) -> None:
    with pytest.raises(WireError, match="ObjectGuid"):
        NotificationBody(NotificationEvent.QUEUE_CREATED, bytes(size), "dc").encode()


@given(change_notifications)
def test_messages_round_trip(message: ChangeNotificationMessage) -> None:
    assert_round_trip(message)


@given(notification_bodies)
def test_texts_round_trip(body: NotificationBody) -> None:
    assert_round_trip(body)


@given(notification_updates, st.binary(max_size=3))
def test_one_update_round_trips_with_any_trailer(update: NotificationUpdate, tail: bytes) -> None:
    data = b"\1\1" + update.encode() + tail
    assert ChangeNotificationMessage.decode(data).data == [update]


@given(st.binary(max_size=120))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(ChangeNotificationMessage.decode, data)
    assert_decodes_or_refuses(ChangeNotificationMessage.decode, b"\1\1" + data)
    assert_decodes_or_refuses(ChangeNotificationMessage.decode, b"\2\1" + data)


@given(
    st.sampled_from([v2(TEXT), b"\1\2" + CHANGE_BYTES + CREATION_BYTES]),
    st.integers(0, 300),
    st.binary(max_size=6),
)
def test_damaged_bytes_decode_or_raise_wire_error(data: bytes, at: int, new: bytes) -> None:
    damaged = data[:at] + new + data[at + len(new) :]
    assert_decodes_or_refuses(ChangeNotificationMessage.decode, damaged)


@pytest.mark.parametrize("data", [v2(TEXT, b""), b"\1\2" + CHANGE_BYTES + CREATION_BYTES])
def test_a_cut_message_is_refused(data: bytes) -> None:
    assert_every_cut_is_refused(ChangeNotificationMessage.decode, data)


VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "mqcn-examples.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "example", [pytest.param(e, id=e["name"]) for e in VECTORS if "text" in e["fields"]]
)
def test_pieces_of_the_text_have_the_bytes_of_the_examples(example: dict[str, Any]) -> None:
    piece = bytes.fromhex(example["hex"])
    bodies = [NotificationBody(event, GUID, "dc").encode() for event in NotificationEvent]
    holding = [body for body in bodies if piece in body]
    assert holding
    if example["name"].startswith("v2 body, start"):
        (body,) = holding
        assert body.startswith(piece)
        assert NotificationBody.decode(body).event == int(example["name"].split("event ")[1][0])
    elif example["name"].endswith("end"):
        assert all(body.endswith(piece) for body in bodies)


def test_the_header_of_a_text_has_the_bytes_of_the_example() -> None:
    (example,) = [e for e in VECTORS if e["name"] == "v2 message header"]
    assert ChangeNotificationMessage(BODY).encode()[:2] == bytes.fromhex(example["hex"])


def test_a_queue_deletion_is_one_update_with_two_properties() -> None:
    update = NotificationUpdate(DELETE, GUID, MASTER, [(1403, 1), (1404, 1)])
    data = assert_round_trip(ChangeNotificationMessage([update]))
    assert len(data) == 2 + 58 + 11 + 1
