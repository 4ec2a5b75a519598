"""The published packets of MQQB 4.1, field by field and byte by byte (tests/vectors)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from falconmq.errors import WireError
from falconmq.wire import base_header, establish_connection, internal_header, ping, user_header
from falconmq.wire import message_properties_header as properties_header
from falconmq.wire import security_header as security
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.guid import guid_text
from falconmq.wire.packet import decode_packet, read_packet
from falconmq.wire.ping import Ping
from falconmq.wire.reader import Structure, decode_utf16
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.tracing import Node, TracingReader
from falconmq.wire.user_message import UserMessage

VECTORS = Path(__file__).parents[1] / "vectors" / "mqqb-frames.json"
FRAMES: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))["frames"]
WHOLE = [frame for frame in FRAMES if frame["complete"]]
PINGS, PACKETS = WHOLE[:2], WHOLE[2:]
USER_MESSAGE = next(frame for frame in FRAMES if not frame["complete"])

# The bits that the vectors name, at the masks by which the code knows them.
MASKS: dict[str, dict[str, int]] = {
    "Ping.Flags": {
        "RC": ping.NOT_SERVER_CLASS,
        "RF": ping.REFUSED,
        "X2..X15": ping.UNUSED_FLAGS,
    },
    "BaseHeader.Flags": {
        "PR": base_header.PRIORITY,
        "IN": base_header.INTERNAL,
        "SH": base_header.SESSION_HEADER,
        "DH": base_header.DEBUG_HEADER,
        "X9": base_header.RESERVED_FLAGS & 0x0040,
        "X8": base_header.RESERVED_FLAGS & 0x0080,
        "TR": base_header.TRACE,
        "X6..X0": base_header.RESERVED_FLAGS & 0xFE00,
    },
    "InternalHeader.Flags": {
        "PT": internal_header.PACKET_TYPE,
        "CS": internal_header.CONNECTION_REFUSED,
        "X5..X15": internal_header.RESERVED_FLAGS,
    },
    "EstablishConnectionHeader.OperatingSystem": {
        "RE": establish_connection.RELEASE,
        "SE": establish_connection.SESSION_NOT_PINGED,
        "OS": establish_connection.SERVER_CLASS,
        "QS": establish_connection.QUALITY_OF_SERVICE,
        "X11..X15": establish_connection.RESERVED_OPERATING_SYSTEM,
    },
    "UserHeader.Flags": {
        "RC": user_header.HOP_COUNT,
        "DM": user_header.DELIVERY_MODE,
        "X1": user_header.RESERVED_FLAGS & 0x00000080,
        "JN": user_header.JOURNAL_NEGATIVE,
        "JP": user_header.JOURNAL_POSITIVE,
        "DQ": user_header.DESTINATION_QUEUE_TYPE,
        "AQ": user_header.ADMIN_QUEUE_TYPE,
        "RQ": user_header.RESPONSE_QUEUE_TYPE,
        "SH": user_header.SECURITY_HEADER,
        "TH": user_header.TRANSACTION_HEADER,
        "MP": user_header.MESSAGE_PROPERTIES_HEADER,
        "CQ": user_header.CONNECTOR_TYPE,
        "MQ": user_header.MULTI_QUEUE_FORMAT_HEADER,
        "X2": user_header.RESERVED_FLAGS & 0x01000000,
        "AH": user_header.HTTP,
        "X3": user_header.RESERVED_FLAGS & 0x0C000000,
        "HH": user_header.SOAP_HEADER,
        "X4": user_header.RESERVED_FLAGS & 0xE0000000,
    },
    "SecurityHeader.Flags": {
        "ST": security.SENDER_ID_TYPE,
        "AU": security.AUTHENTICATED,
        "EB": security.ENCRYPTED_BODY,
        "DE": security.DEFAULT_PROVIDER,
        "AI": security.SECURITY_DATA,
        "AS": security.AUTHENTICATION_SIGNATURE,
        "X12..X15": security.RESERVED_FLAGS,
    },
    "MessagePropertiesHeader.Flags": {
        "PA": properties_header.POSITIVE_ARRIVAL,
        "PR": properties_header.POSITIVE_RECEIVE,
        "NA": properties_header.NEGATIVE_ARRIVAL,
        "NR": properties_header.NEGATIVE_RECEIVE,
        "X": properties_header.RESERVED_FLAGS,
    },
}


def number(frame: dict[str, Any]) -> str:
    return str(frame["name"]).partition(":")[0]


def frame_bytes(name: str) -> bytes:
    return bytes.fromhex(next(frame["hex"] for frame in FRAMES if number(frame) == name))


def leaves(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """All fields of a tree, each with the names from the root down to it."""
    path = (*path, node.name)
    if not node.is_structure:
        yield path, node
    for child in node.children:
        yield from leaves(child, path)


def find(root: Node, name: str, row: dict[str, Any]) -> Node:
    """The field of this dotted name at its offset: all parts of the name lie on its path."""
    first, *_, last = name.split(".")
    for path, node in leaves(root):
        if (node.name, node.offset, node.size) == (last, row["offset"], row["size"]):
            assert first in path, f"{name} was read in {path}"
            return node
    raise AssertionError(f"{name} was not read at offset {row['offset']}")


def assert_value(name: str, node: Node, row: dict[str, Any]) -> None:
    """The value that was read is the one the vectors give."""
    value, expected = node.value, row.get("value")
    if isinstance(value, int):
        assert value == expected
    elif isinstance(expected, str) and expected.startswith("{"):
        assert guid_text(bytes(value)) == expected[1:-1]
    elif isinstance(expected, str):
        text = value if isinstance(value, str) else decode_utf16(value).removesuffix("\0")
        assert text == expected
    else:
        assert expected is None
        assert bytes(value).hex() == row["bytes"]
    for bit, setting in row.get("bits", {}).items():
        mask = MASKS[name][bit]
        assert (node.value & mask) // (mask & -mask) == setting, f"{name} {bit}"


def assert_fields(root: Node, data: bytes, fields: dict[str, dict[str, Any]]) -> None:
    """Every field of the vectors is in the tree, at its place and with its value."""
    for name, row in fields.items():
        node = find(root, name, row)
        assert data[node.offset : node.offset + node.size].hex() == row["bytes"], name
        assert_value(name, node, row)


def traced(data: bytes, *kinds: type[Structure]) -> Node:
    """The tree of these structures one behind the other, or of a packet."""
    reader = TracingReader(data)
    if not kinds:
        read_packet(reader)
    for kind in kinds:
        kind.read(reader)
    assert reader.remaining == 0
    return reader.root


@pytest.mark.requirement("QB-4.1-01", "QB-A48-01", "QB-2.2-01")
@pytest.mark.parametrize("frame", PACKETS, ids=number)
def test_every_field_of_a_packet_is_where_the_vectors_say(frame: dict[str, Any]) -> None:
    data = bytes.fromhex(frame["hex"])
    root = traced(data)
    assert_fields(root, data, frame["fields"])
    assert sum(node.size for _, node in leaves(root)) == len(data) == frame["length"]


@pytest.mark.requirement("QB-4.1-01")
@pytest.mark.parametrize("frame", PINGS, ids=number)
def test_every_field_of_a_ping_is_where_the_vectors_say(frame: dict[str, Any]) -> None:
    data = bytes.fromhex(frame["hex"])
    assert_fields(traced(data, Ping), data, frame["fields"])
    assert len(frame["fields"]) == 4


def test_the_masks_of_each_field_cover_it_once() -> None:
    for name, masks in MASKS.items():
        total = 0
        for mask in masks.values():
            assert mask, name
            assert not total & mask, name
            total |= mask
        assert total in (0xFF, 0xFFFF, 0xFFFFFFFF), name


@pytest.mark.requirement("QB-4.1-02")
@pytest.mark.parametrize("frame", PACKETS, ids=number)
def test_a_packet_encodes_to_the_bytes_it_came_from(frame: dict[str, Any]) -> None:
    data = bytes.fromhex(frame["hex"])
    assert decode_packet(data).encode() == data


@pytest.mark.parametrize("frame", PINGS, ids=number)
def test_a_ping_encodes_to_the_bytes_it_came_from(frame: dict[str, Any]) -> None:
    data = bytes.fromhex(frame["hex"])
    assert Ping.decode(data).encode() == data


@pytest.mark.requirement("QB-4.1-02")
def test_values_alone_make_the_published_packets() -> None:
    client = bytes.fromhex("d1587355509195954997b6e611ea26c6")
    server = bytes.fromhex("0789cd434c39118f44459078909ea0fc")
    request = EstablishConnection.request(client, server, uptime_ms=501140046)
    request.base.reserved = 0xC0
    assert request.encode() == frame_bytes("FRAME 3")

    parameters = ConnectionParameters(1496, 120_000)
    parameters.base.reserved = 0xC0
    assert parameters.encode() == frame_bytes("FRAME 5")
    answer = parameters.response()
    answer.base.reserved = 0xC0
    assert answer.encode() == frame_bytes("FRAME 6")

    ack = SessionAck(SessionHeader(1, 0, 0, 0, 0))
    ack.base.reserved = 0xCD
    assert ack.encode() == frame_bytes("FRAME 8")


def test_the_published_answers_fit_their_requests() -> None:
    asked, answered = Ping.decode(frame_bytes("FRAME 1")), Ping.decode(frame_bytes("FRAME 2"))
    ours = asked.response(answered.qm_guid, refused=False)
    assert replace(answered, flags=answered.flags & 0x0003) == ours

    # FRAME 4 was captured in another run than FRAME 3: only its GUIDs differ
    request = EstablishConnection.decode(frame_bytes("FRAME 3"))
    response = EstablishConnection.decode(frame_bytes("FRAME 4"))
    request.client_guid = response.client_guid
    request.server_guid = response.server_guid
    ours_too = request.response(response.server_guid)
    ours_too.base.reserved = 0x5A
    assert ours_too.encode() == frame_bytes("FRAME 4")


@pytest.mark.requirement("QB-A48-01")
def test_the_bytes_decide_where_the_text_differs() -> None:
    assert frame_bytes("FRAME 3")[4:8] == bytes.fromhex("4c494f52")
    assert BaseHeader(0, 20).encode()[4:8] == bytes.fromhex("4c494f52")
    response = EstablishConnection.decode(frame_bytes("FRAME 4"))
    # version 4 GUIDs, as Windows makes them, only in the order of MS-DTYP
    assert guid_text(response.client_guid) == "1F742305-BE5E-4177-BC77-C4DD7719E474"
    assert guid_text(response.server_guid) == "3C3A6AEB-F567-4143-87D3-85CF4D68CEB4"
    parameters = ConnectionParameters.decode(frame_bytes("FRAME 6"))
    assert parameters.window_size == 64  # the text says 32
    assert response.operating_system == 0x0310  # the text has it in Reserved
    assert response.reserved == 0


@pytest.mark.requirement("QB-4.1-01")
def test_the_user_message_decodes_as_far_as_it_is_published() -> None:
    data = bytes.fromhex(USER_MESSAGE["hex"])
    reader = TracingReader(data)
    with pytest.raises(WireError, match="needs 2000 bytes, 1428 are left") as caught:
        read_packet(reader)
    assert (caught.value.field, caught.value.offset) == ("MessageBody", 222)
    fields = dict(USER_MESSAGE["fields"])
    body = fields.pop("MessagePropertiesHeader.MessageBody")
    assert_fields(reader.root, data, fields)
    assert (body["offset"], body["bytes_present"]) == (222, 1428)
    assert data[222:] == b"a\0" * 714


@pytest.fixture
def user_message() -> bytes:
    """FRAME 7 with the bytes that nobody published: the rest of the body and the padding."""
    data = bytes.fromhex(USER_MESSAGE["hex"])
    return data + b"a\0" * 286 + bytes(2)


@pytest.mark.requirement("QB-4.1-01", "QB-A48-01")
def test_the_completed_user_message_decodes_wholly(user_message: bytes) -> None:
    assert len(user_message) == USER_MESSAGE["packet_size"] == 2224
    root = traced(user_message)
    fields = dict(USER_MESSAGE["fields"])
    row = dict(fields["MessagePropertiesHeader.MessageBody"], bytes=(b"a\0" * 1000).hex())
    fields["MessagePropertiesHeader.MessageBody"] = row
    assert_fields(root, user_message, fields)
    # where each header ends: mqmq-guide, section 19
    (packet,) = root.children
    assert [(child.name, child.offset, child.offset + child.size) for child in packet.children] == [
        ("BaseHeader", 0, 16),
        ("UserHeader", 16, 92),
        ("SecurityHeader", 92, 136),
        ("MessagePropertiesHeader", 136, 2224),
    ]
    assert sum(node.size for _, node in leaves(root)) == 2224


def test_the_completed_user_message_encodes_to_its_bytes(user_message: bytes) -> None:
    message = decode_packet(user_message)
    assert isinstance(message, UserMessage)
    assert message.encode() == user_message
    # padding is garbage in Windows: it changes nothing
    assert decode_packet(user_message[:-2] + b"\xff\xff") == message


def test_the_published_session_splits_into_its_packets(user_message: bytes) -> None:
    names = ["FRAME 3", "FRAME 4", "FRAME 5", "FRAME 6", "FRAME 8"]
    frames = [*(frame_bytes(name) for name in names), user_message]
    splitter = PacketSplitter()
    splitter.feed(b"".join(frames))
    assert [bytes(packet) for packet in splitter] == frames
    assert splitter.pending == 0
