"""Telling packets apart, MQQB 3.1.5.1.1."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.framing import packet_length
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import (
    ADMINISTRATION_ID,
    DESTINATION_ID,
    RESPONSE_ID,
    MQFAddressHeader,
    MQFFormatNameElement,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from falconmq.wire.ordering_acks import FinalAckBody
from falconmq.wire.packet import InternalPacket, Packet, decode_packet, read_packet
from falconmq.wire.reader import Reader
from falconmq.wire.security_header import SecurityHeader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.splitter import PacketSplitter
from falconmq.wire.tracing import Node, TracingReader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.tx_sequence_id import message_identifier, tx_sequence_id
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage
from tests.strategies.packets import packets
from tests.strategies.user_message import mutated
from tests.wire.codec_checks import assert_decodes_or_refuses, assert_every_cut_is_refused

GUID = bytes(range(0x20, 0x30))
CATALOGUE = Path(__file__).parents[2] / "conformance" / "mqqb.tsv"
SESSION = SessionHeader(1, 2, 3, 4, 5)


def user_message(message_class: int = 0, session: SessionHeader | None = None) -> UserMessage:
    return UserMessage(
        BaseHeader(3, 20),
        UserHeader(GUID, bytes(16), 0xFFFFFFFF, 0, 1, 0x00201C00, destination_queue=r"OS:h\q"),
        MessagePropertiesHeader(message_class=message_class, label="label", message_body=b"body"),
        session=session,
    )


def trace(data: bytes) -> Node:
    reader = TracingReader(data)
    read_packet(reader)
    (root,) = reader.root.children
    return root


def names(node: Node) -> list[str]:
    return [child.name for child in node.children]


def structures(node: Node) -> set[str]:
    """The names of all structures in a tree."""
    found = {node.name} if node.is_structure else set()
    return found.union(*(structures(child) for child in node.children))


def row_text(row: str) -> str:
    found = re.search(rf"^{re.escape(row)}\t.*$", CATALOGUE.read_text(), re.MULTILINE)
    assert found is not None
    return found.group()


@pytest.mark.parametrize(
    ("packet", "structure"),
    [
        pytest.param(
            EstablishConnection.request(GUID, uptime_ms=1),
            "EstablishConnectionHeader",
            marks=pytest.mark.requirement("QB-3.1.5.1.1-01"),
        ),
        pytest.param(
            ConnectionParameters(500, 20_000),
            "ConnectionParametersHeader",
            marks=pytest.mark.requirement("QB-3.1.5.1.1-02"),
        ),
        pytest.param(
            SessionAck(SESSION),
            "SessionHeader",
            marks=pytest.mark.requirement("QB-3.1.5.1.1-03"),
        ),
    ],
)
def test_an_internal_packet_is_known_by_its_type(packet: Packet, structure: str) -> None:
    data = packet.encode()
    assert decode_packet(data) == packet
    root = trace(data)
    assert root.name == type(packet).__name__
    assert names(root) == ["BaseHeader", "InternalHeader", structure]
    assert (root.offset, root.size) == (0, len(data))


@pytest.mark.requirement("QB-3.1.5.1.1-03")
def test_a_session_ack_without_a_session_header_is_refused() -> None:
    data = bytearray(SessionAck(SESSION).encode())
    data[2] &= ~0x10
    with pytest.raises(WireError, match=r"SessionAck\.Flags"):
        decode_packet(data)


@pytest.mark.requirement("QB-3.1.5.1.1-06")
@pytest.mark.parametrize("message_class", [0x0000, 0x0001, 0x0002, 0x00FF, 0x4000, 0x8000, 0xC004])
def test_a_packet_that_is_not_internal_is_a_user_message_of_any_class(message_class: int) -> None:
    message = decode_packet(user_message(message_class).encode())
    assert isinstance(message, UserMessage)
    assert message.properties.message_class == message_class


@pytest.mark.requirement("QB-2.1.1-02", "QB-2.2.1-06")
@pytest.mark.parametrize("packet_type", range(16))
@pytest.mark.parametrize("size", [20, 32, 36, 572])
def test_no_other_packet_is_legal(packet_type: int, size: int) -> None:
    data = BaseHeader(0x001B, size).encode() + bytes([0, 0, packet_type, 0]) + bytes(size - 20)
    sizes = {1: 36, 2: 572, 3: 32}
    if sizes.get(packet_type) == size:
        assert decode_packet(data).encode() == data
        return
    with pytest.raises(WireError) as caught:
        decode_packet(data)
    wrong = ("PacketSize", 8) if packet_type in sizes else ("Flags", 18)
    assert (caught.value.field, caught.value.offset) == wrong


@pytest.mark.requirement("QB-2.2.6-04")
def test_a_session_ack_can_ride_on_a_user_message() -> None:
    data = user_message(session=SESSION).encode()
    message = decode_packet(data)
    assert isinstance(message, UserMessage)
    assert message.session == SESSION
    assert data[-16:] == SESSION.encode()
    assert len(data) == message.base.packet_size + 16


@pytest.mark.requirement("QB-2.1.1-01")
@given(packets)
def test_every_packet_begins_with_its_base_header(packet: Packet) -> None:
    data = packet.encode()
    assert data[:16] == packet.base.encode()
    assert BaseHeader.decode(data) == packet.base
    assert packet_length(packet.base) == len(data)


@pytest.mark.requirement("QB-2.1.1-01")
@pytest.mark.parametrize("index", [0, 4, 5, 6, 7])
def test_bytes_that_begin_otherwise_are_refused(index: int) -> None:
    for packet in (user_message(), SessionAck(SESSION)):
        data = bytearray(packet.encode())
        data[index] ^= 0x01
        with pytest.raises(WireError, match=r"^BaseHeader\."):
            decode_packet(data)


@pytest.mark.requirement("QB-2.2-03")
def test_the_headers_of_a_message_are_those_of_mqmq() -> None:
    message = user_message(session=SESSION)
    message.base.flags = 0  # a transactional message has priority 0
    message.user.flags |= 0x20
    message.transaction = TransactionHeader(0, 1, 1, 0)
    message.security = SecurityHeader(1, b"\1\1\0\0\0\0\0\5\7\0\0\0")
    message.debug = DebugHeader(0)
    message.multi_queue_format = MultiQueueFormatHeader(
        MQFAddressHeader(DESTINATION_ID, (MQFFormatNameElement(1, GUID),)),
        MQFAddressHeader(ADMINISTRATION_ID, ()),
        MQFAddressHeader(RESPONSE_ID, ()),
        MQFSignatureHeader(b""),
    )
    named = set(re.findall(r"\b\w+Header\b", row_text("QB-2.2-03")))
    assert len(named) == 10
    assert named | {"UserMessage"} <= structures(trace(message.encode()))


@pytest.mark.requirement("QB-2.2-02")
def test_the_data_types_are_those_of_mqmq() -> None:
    # TxSequenceID, GUID and, over both of the last fields, MessageIdentifier in a FinalAck
    sequence = tx_sequence_id(0x11, 0x22)
    body = FinalAckBody(sequence, 1, 0, GUID, 0x33).encode()
    assert body[:8] == bytes.fromhex("11000000 22000000")
    assert body[16:] == message_identifier(GUID, 0x33)
    # MQFFormatNameElement: FormatType, then the GUID on a boundary of 4
    element = MQFAddressHeader(DESTINATION_ID, (MQFFormatNameElement(1, GUID),)).encode()
    assert element[12:] == bytes.fromhex("0100 0000") + GUID


@given(packets)
def test_any_packet_comes_back(packet: Packet) -> None:
    data = packet.encode()
    assert decode_packet(data) == packet
    assert decode_packet(b"before" + data + b"behind", 6) == packet
    reader = Reader(data + b"behind")
    assert read_packet(reader) == packet
    assert reader.remaining == 6
    assert trace(data).name == type(packet).__name__


@given(st.lists(packets, max_size=4), st.integers(1, 700))
def test_a_stream_comes_back_packet_by_packet(sent: list[Packet], step: int) -> None:
    stream = b"".join(packet.encode() for packet in sent)
    splitter = PacketSplitter()
    for start in range(0, len(stream), step):
        splitter.feed(stream[start : start + step])
    assert [decode_packet(packet) for packet in splitter] == sent


@given(st.binary(max_size=64) | mutated(packets.map(lambda packet: packet.encode())))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(decode_packet, data)


@given(st.binary(max_size=48))
def test_anything_behind_a_good_internal_header_decodes_or_raises_wire_error(rest: bytes) -> None:
    data = BaseHeader(0x001B, 36).encode() + rest
    assert_decodes_or_refuses(decode_packet, data)


@pytest.mark.parametrize(
    "packet",
    [
        EstablishConnection.request(GUID, uptime_ms=1),
        ConnectionParameters(500, 20_000),
        SessionAck(SESSION),
        user_message(session=SESSION),
    ],
)
def test_a_cut_packet_is_refused(packet: Packet) -> None:
    assert_every_cut_is_refused(decode_packet, packet.encode())


def test_the_tree_of_a_malformed_packet_holds_what_was_read() -> None:
    data = BaseHeader(0x000B, 20).encode() + bytes.fromhex("0000 0700")
    reader = TracingReader(data)
    with pytest.raises(WireError, match="PT 7 is none of"):
        read_packet(reader)
    (root,) = reader.root.children
    assert names(root) == ["BaseHeader", "InternalHeader"]
    assert names(root.children[1]) == ["Reserved", "Flags"]


INTERNAL_PACKETS = [
    EstablishConnection(GUID, GUID, 1),
    ConnectionParameters(500, 20000),
    SessionAck(SESSION),
]


@pytest.mark.requirement("MQ-2.2.19.1-12")
@pytest.mark.parametrize("packet", INTERNAL_PACKETS)
def test_internal_packets_have_in_set_and_are_refused_without(packet: InternalPacket) -> None:
    assert packet.encode()[2] & 0x08
    packet = decode_packet(packet.encode())  # type: ignore[assignment]  # a copy to change
    packet.base.flags &= ~0x08
    with pytest.raises(WireError):
        packet.encode()


@pytest.mark.requirement("MQ-2.2.19.1-41", "QB-MQMQ2.2.19.1-06")
@pytest.mark.parametrize("packet", INTERNAL_PACKETS)
def test_internal_packets_never_expire(packet: InternalPacket) -> None:
    assert packet.encode()[12:16] == b"\xff\xff\xff\xff"


@pytest.mark.requirement("MQ-2.2.19.1-17", "QB-MQMQ2.2.19.1-08")
@pytest.mark.parametrize("packet", INTERNAL_PACKETS)
def test_only_user_messages_announce_a_debug_header(packet: InternalPacket) -> None:
    assert not packet.encode()[2] & 0x20
    traced = user_message()
    traced.base.flags |= 0x0100  # TR
    with pytest.raises(WireError, match="TR needs a DebugHeader"):
        traced.encode()
    traced.debug = DebugHeader(1, GUID)
    assert traced.encode()[2] & 0x20


@pytest.mark.requirement("MQ-2.2.19.1-15", "MQ-2.2.20.4-01")
@pytest.mark.parametrize(
    ("packet", "session"),
    [
        (INTERNAL_PACKETS[0], b""),
        (INTERNAL_PACKETS[1], b""),
        (INTERNAL_PACKETS[2], SESSION.encode()),
        (user_message(), b""),
        (user_message(session=SESSION), SESSION.encode()),
    ],
)
def test_sh_is_set_exactly_when_16_bytes_of_session_header_end_the_packet(
    packet: Packet, session: bytes
) -> None:
    data = packet.encode()
    assert bool(data[2] & 0x10) is bool(session)
    assert len(session) in (0, 16)
    assert data.endswith(session)
    assert decode_packet(data) == decode_packet(packet.encode())


@pytest.mark.requirement("MQ-2.2.19.1-32")
def test_a_session_ack_counts_its_session_header_and_a_user_message_does_not() -> None:
    ack = SessionAck(SESSION).encode()
    assert int.from_bytes(ack[8:12], "little") == len(ack) == 36
    message = user_message(session=SESSION).encode()
    assert int.from_bytes(message[8:12], "little") == len(message) - 16
