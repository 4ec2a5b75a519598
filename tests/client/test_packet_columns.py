"""Packets read all at once say what they say when each is decoded: every column, every packet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq import Message, MessageError, WireError
from falconmq.client.arrow import messages_to_batch, schema
from falconmq.client.columns import COLUMNS
from falconmq.client.packet_columns import Packed, packed, packed_of, packets_to_batch
from falconmq.client.packet_columns.shape import read_shape
from falconmq.client.packets import destination_of
from falconmq.errors import ResourceError
from falconmq.message import Acknowledge, MessageId, MessageTransaction
from falconmq.names import PrivateFormatName, PublicFormatName, SingleFormatName
from falconmq.serialization import from_user_message, to_user_message
from falconmq.wire.packet import decode_packet
from falconmq.wire.security_header import DEFAULT_PROVIDER, SecurityHeader
from falconmq.wire.user_message import UserMessage
from tests.strategies.messages import Sending, messages, sendings
from tests.strategies.user_message import mutated, user_messages
from tests.strategies.wire import u8

VECTORS = Path(__file__).parents[1] / "vectors" / "mqqb-frames.json"
NAMES = [column.name for column in COLUMNS]
SOURCE, HOST, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)
ORDERS = destination_of("DIRECT=OS:shop\\orders")
DIRECT = destination_of("DIRECT=TCP:10.0.0.1\\private$\\a")
SENDER = bytes.fromhex("010500000000000515000000") + bytes(16)  # a SID
FLAGS = 60  # offset of UserHeader.Flags


# Packets of every kind


def plain(packet: UserMessage) -> UserMessage:
    """The same without the seldom headers, which are left to the decoders."""
    security = packet.security
    if security is not None and security.provider_info is not None:
        flags = security.flags | DEFAULT_PROVIDER
        security = replace(security, flags=flags, provider_info=None)
        items = security.security_id, security.encryption_key, security.signature
        if not any(map(len, (*items, security.sender_cert))):
            security = SecurityHeader(1, b"somebody")
    return replace(packet, security=security, soap=None, multi_queue_format=None)


def sent(message: Message, sending: Sending) -> bytes:
    return to_user_message(
        message,
        source_queue_manager=sending.source_queue_manager,
        message_id=sending.message_id,
        sent_time=sending.sent_time,
        destination_queue_manager=sending.destination_queue_manager,
    ).encode()


def with_odd_flags(packet: bytes, flags: int) -> bytes:
    """Hops and delivery modes that nobody may send, but that are read."""
    return packet[:FLAGS] + bytes([flags]) + packet[FLAGS + 1 :]


plain_packets = user_messages().map(plain).map(UserMessage.encode)
packets = (
    plain_packets
    | st.builds(with_odd_flags, plain_packets, u8)
    | user_messages().map(UserMessage.encode)
    | st.builds(sent, messages(), sendings)
)


def packet_of(message: Message, *, source: UUID = SOURCE, number: int = 7) -> bytes:
    message.destination = message.destination or ORDERS
    return sent(message, Sending(source, HOST, number, 1_700_000_000))


# Both ways


def decoded(given: Sequence[bytes], columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """What the decoders make of the packets, one after the other."""
    found = []
    for row, packet in enumerate(given):
        try:
            user_message = decode_packet(packet)
            if not isinstance(user_message, UserMessage):
                raise WireError("Packets", "Packet", "no user message")
        except WireError as error:
            error.args = (f"row {row}: {error}",)
            raise
        found.append(from_user_message(user_message))
    sizes = [len(packet) for packet in given]
    return messages_to_batch(found, beside={"size": sizes}, columns=columns)


def assert_same(made: pa.RecordBatch, expected: pa.RecordBatch) -> None:
    made.validate(full=True)
    for name, one, other in zip(made.schema.names, made.columns, expected.columns, strict=True):
        assert one.equals(other), (name, one.to_pylist(), other.to_pylist())
    assert made.equals(expected, check_metadata=True)


@given(st.lists(packets, max_size=6))
def test_packets_say_what_their_messages_say(given: list[bytes]) -> None:
    assert_same(packets_to_batch(packed(given), {}), decoded(given))


@given(st.lists(packets, max_size=4), st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
def test_some_columns_are_those_of_the_whole(given: list[bytes], columns: list[str]) -> None:
    assert_same(packets_to_batch(packed(given), {}, columns), decoded(given, columns))


@given(st.lists(packets | mutated(packets), min_size=1, max_size=3))
def test_damaged_packets_are_refused_as_the_decoders_refuse_them(given: list[bytes]) -> None:
    try:
        expected = decoded(given)
    except WireError as error:
        with pytest.raises(WireError) as caught:
            packets_to_batch(packed(given), {})
        assert (str(caught.value), caught.value.offset) == (str(error), error.offset)
    else:
        assert_same(packets_to_batch(packed(given), {}), expected)


def every_header() -> bytes:
    """A packet with all that is read at once; behind its label enough zeros to run into."""
    message = Message(
        bytes(600),
        label="label",
        extension=b"more",
        acknowledgements=Acknowledge.FULL_RECEIVE,
        administration_queue=DIRECT,
        response_queue=PrivateFormatName(THIRD, 9),
        sender_id=SENDER,
        signature=b"signature",
        connector_type=THIRD,
        trace=True,
        report_queue=HOST,
    )
    message.transaction = MessageTransaction(5, 3, 2, 7, connector_queue_manager=THIRD)
    return packet_of(message)


def decodes(packet: bytes) -> bool:
    try:
        return isinstance(decode_packet(packet), UserMessage)
    except WireError:
        return False


def changed(packet: bytes) -> list[bytes]:
    """The packet with one byte changed, at every place but in the middle of a large body."""
    return [
        packet[:place] + bytes([value]) + packet[place + 1 :]
        for place in range(len(packet))
        if place < 400 or place > len(packet) - 40
        for value in sorted({0, 0xFF, *(packet[place] ^ 1 << bit for bit in range(8))})
    ]


def assert_only_what_decodes_is_understood(given: list[bytes]) -> list[bool]:
    understood: list[bool] = read_shape(packed(given)).understood.tolist()
    right = [decodes(packet) for packet in given]
    rows = zip(understood, right, strict=True)
    assert [row for row, (seen, is_right) in enumerate(rows) if seen and not is_right] == []
    good = [packet for packet, is_right in zip(given, right, strict=True) if is_right]
    assert_same(packets_to_batch(packed(good), {}), decoded(good))
    return understood


def test_whatever_byte_is_changed_only_what_decodes_is_understood() -> None:
    small = packet_of(Message(b"small", destination=PrivateFormatName(HOST, 9), label="label"))
    given = changed(every_header()) + changed(small)
    assert sum(assert_only_what_decodes_is_understood(given)) > len(given) / 2


def test_texts_have_the_lengths_that_they_may_have() -> None:
    """Nothing else is wrong with these packets: only the length tells."""
    packet = packet_of(Message(b"x", label="label"))
    name = packet.index("OS:shop".encode("utf-16-le")) - 2  # where its count stands
    label_length = packet.index("label".encode("utf-16-le")) - 56 + 1
    longer = resized(packet + bytes(600))
    given = [longer[:label_length] + bytes([n]) + longer[label_length + 1 :] for n in (250, 251)]
    end = name + 2 + int.from_bytes(packet[name : name + 2], "little")
    rest = packet[end + -end % 4 :]
    given += [resized(packet[:name] + bytes([count, 0, 0, 0]) + rest) for count in (2, 0)]
    assert assert_only_what_decodes_is_understood(given) == [True, False, True, False]


def resized(packet: bytes) -> bytes:
    return packet[:8] + len(packet).to_bytes(4, "little") + packet[12:]


def test_a_response_queue_on_the_host_of_the_administration_queue() -> None:
    """Not all packets that say so come from us: any administration queue may stand there."""
    given = []
    for admin in (*(PrivateFormatName(host, 9) for host in (SOURCE, HOST, THIRD)), DIRECT):
        message = Message(
            b"asks",
            destination=PrivateFormatName(HOST, 8),
            acknowledgements=Acknowledge.FULL_RECEIVE,
            administration_queue=admin,
            response_queue=PrivateFormatName(SOURCE, 10),  # a number at the source, type 2
        )
        packet = packet_of(message)
        given.append(packet[: FLAGS + 2] + bytes([packet[FLAGS + 2] ^ 0x06]) + packet[FLAGS + 3 :])
    assert assert_only_what_decodes_is_understood(given) == [True] * 4
    names = packets_to_batch(packed(given), {}, ["response_queue"]).column(0).to_pylist()
    assert names == [
        str(PrivateFormatName(host, 10)) for host in (SOURCE, HOST, THIRD, UUID(int=0))
    ]


def test_the_end_of_a_packet_is_where_it_says() -> None:
    packet = every_header()
    given = []
    for size in range(20, len(packet) + 1):
        for behind in (0, 15, 16):  # a SessionHeader has 16 bytes
            for flags in (packet[2], packet[2] | 0x10):
                head = packet[:2] + bytes([flags]) + packet[3:8] + size.to_bytes(4, "little")
                given.append((head + packet[12:])[:size].ljust(size + behind, b"\0"))
    given = [packet for packet in given if len(packet) >= 64]
    understood = read_shape(packed(given)).understood.tolist()
    assert understood == [decodes(packet) for packet in given]
    assert 0 < sum(understood) < len(given)


def test_a_packet_is_no_larger_than_it_may_be() -> None:
    largest = packet_of(Message(bytes((4 << 20) - 152)))
    assert len(largest) == 4 << 20
    larger = largest[:8] + (len(largest) + 4).to_bytes(4, "little") + largest[12:] + bytes(4)
    assert read_shape(packed([largest, larger])).understood.tolist() == [True, False]


def test_a_packet_of_a_session_alone_is_refused() -> None:
    frame = bytes.fromhex(json.loads(VECTORS.read_text("utf-8"))["frames"][7]["hex"])
    with pytest.raises(WireError, match=r"row 0: .*no user message"):
        packets_to_batch(packed([frame]), {})


def test_the_message_that_the_specification_prints() -> None:
    frame = json.loads(VECTORS.read_text("utf-8"))["frames"][6]
    printed = bytes.fromhex(frame["hex"]).ljust(frame["packet_size"], b"\0")  # its end is missing
    assert read_shape(packed([printed])).understood.all()
    assert_same(packets_to_batch(packed([printed, printed]), {}), decoded([printed, printed]))


# Labels, bodies, names


@pytest.mark.parametrize(
    "labels",
    [
        ["", "order 1", "order 22"],
        ["", "", ""],
        ["Grün", "a", "\x7f\x80"],
        ["注文", "Grün", "\u07ff\u0800"],
        ["x" * 249, "é" * 249, "\ufeffmark"],
        ["🦅 flies", "falcon", "🦅"],
        ["cut \ud83e", "\udd85", "whole 🦅", "\ufeff\ud800"],
    ],
    ids=["ascii", "empty", "latin", "of the plane", "long", "pairs", "halves"],
)
def test_labels_of_all_writing_systems(labels: list[str]) -> None:
    given = [packet_of(Message(b"x", label=label)) for label in labels]
    batch = packets_to_batch(packed(given), {}, ["label"])
    assert read_shape(packed(given)).understood.all()
    assert_same(batch, decoded(given, ["label"]))
    if not any("\ud800" <= character <= "\udfff" for label in labels for character in label):
        assert batch.column("label").to_pylist() == labels


def test_bodies_of_every_size() -> None:
    sizes = [0, 1, 4, 11, 12, 13, 16, 200, (4 << 20) - 400]
    bodies = [bytes(range(1, 252)) * (size // 251 + 1) for size in sizes]
    given = [
        packet_of(Message(body[:size], extension=body[: size % 50], label="label"[: size % 6]))
        for size, body in zip(sizes, bodies, strict=True)
    ]
    batch = packets_to_batch(packed(given), {})
    assert [len(body) for body in batch.column("body").to_pylist()] == sizes
    assert_same(batch, decoded(given))


def common_messages() -> list[Message]:
    """What applications and queue managers really send: none of it may need the decoders."""
    private = [PrivateFormatName(computer, 9) for computer in (SOURCE, HOST, THIRD)]
    public = PublicFormatName(UUID(int=5))
    names: list[SingleFormatName] = [*private, public, DIRECT]
    found = [
        Message(b"plain"),
        Message("text", label="with a label", recoverable=True, priority=7),
        Message(b"", correlation_id=MessageId.of(SOURCE, 4), application_tag=1, extension=b"more"),
        Message(b"signed", sender_id=SENDER, signature=b"s" * 128, sender_certificate=b"c" * 501),
        Message(b"secret", sender_id=SENDER, privacy_level=1, symmetric_key=b"k" * 77),
        Message(b"traced", trace=True, report_queue=THIRD),
        Message(b"traced", trace=True),
        Message(b"foreign", connector_type=THIRD),
    ]
    found += [Message(b"to it", destination=name) for name in names]
    for admin in names:
        for response in (None, PrivateFormatName(THIRD, 10), *names):
            found.append(
                Message(
                    b"asks",
                    destination=private[1],
                    acknowledgements=Acknowledge.FULL_RECEIVE,
                    administration_queue=admin,
                    response_queue=response,
                )
            )
    for connector in (None, THIRD):
        message = Message(b"in a transaction")
        message.transaction = MessageTransaction(
            2**64 - 1, 3, 2, 0xFFFFF, is_first=True, connector_queue_manager=connector
        )
        found.append(message)
    return found


def test_what_is_common_is_read_at_once() -> None:
    given = [packet_of(message, number=n) for n, message in enumerate(common_messages())]
    assert read_shape(packed(given)).understood.tolist() == [True] * len(given)
    assert_same(packets_to_batch(packed(given), {}), decoded(given))


def test_what_is_seldom_keeps_its_place_among_the_others() -> None:
    seldom = packet_of(Message(b"3", soap_body="<order/>", label="three"))
    common = [packet_of(Message(b"%d" % n, label="other"), number=n) for n in range(6)]
    given = [*common[:3], seldom, *common[3:], seldom]
    assert read_shape(packed(given)).understood.tolist() == [packet != seldom for packet in given]
    batch = packets_to_batch(packed(given), {})
    assert batch.column("body").to_pylist() == [b"0", b"1", b"2", b"3", b"3", b"4", b"5", b"3"]
    assert_same(batch, decoded(given))


# Where packets come from, and what stands beside them


def test_packets_of_a_column_are_read_where_they_are() -> None:
    given = [packet_of(message, number=n) for n, message in enumerate(common_messages())]
    array = pa.array([b"before", *given, b"behind"], pa.binary())[1:-1]
    found = packed_of(array)
    where = np.frombuffer(found.data, np.uint8).__array_interface__["data"][0]
    assert where == array.buffers()[2].address
    assert_same(packets_to_batch(found, {}), decoded(given))


def test_packets_may_stand_anywhere_in_a_buffer() -> None:
    given = [packet_of(message, number=n) for n, message in enumerate(common_messages())]
    data, starts = b"", []
    for number, packet in enumerate(reversed(given)):
        data += b"?" * number  # so that no boundary of the buffer is one of a packet
        starts.append(len(data))
        data += packet
    lengths = [len(packet) for packet in given]
    found = Packed(memoryview(data), np.array(starts[::-1]), np.array(lengths))
    assert_same(packets_to_batch(found, {}), decoded(given))


def test_no_packets_are_no_rows() -> None:
    for none in (packed([]), packed_of(pa.array([], pa.binary()))):
        assert_same(packets_to_batch(none, {}), decoded([]))
        assert_same(packets_to_batch(none, {}, ["size"]), decoded([], ["size"]))


def test_all_types_are_those_that_spark_takes() -> None:
    batch = packets_to_batch(packed([packet_of(Message(b"x"))]), {})
    assert batch.schema.equals(schema(), check_metadata=True)


def test_what_packets_do_not_know_is_given_beside() -> None:
    given = [packet_of(Message(b"x")), packet_of(Message(b"y", soap_body="seldom"))]
    beside: dict[str, Any] = {
        "lookup_id": [3, 4],
        "arrival_number": np.array([30, 40]),
        "queue": pa.array(["here", "there"]),
        "arrived_at": np.array([1_000_000, 2_000_000]),
        "locked": [True, False],
        "dead_letter_queue": ["cut \ud800", ""],
        "size": np.array([1, 2]),
    }
    rows = packets_to_batch(packed(given), beside, list(beside)).to_pylist()
    assert [row["lookup_id"] for row in rows] == [3, 4]
    assert [row["arrival_number"] for row in rows] == [30, 40]
    assert [row["queue"] for row in rows] == ["here", "there"]
    assert [row["arrived_at"].timestamp() for row in rows] == [1, 2]
    assert [row["locked"] for row in rows] == [True, False]
    assert [row["dead_letter_queue"] for row in rows] == ["cut \ufffd", ""]
    assert [row["size"] for row in rows] == [1, 2]


def test_a_class_beside_goes_before_that_of_the_packet() -> None:
    given = [packet_of(Message(b"x", message_class=2)), packet_of(Message(b"y"))]
    beside = {"message_class": [None, "NACK_Q_PURGED"]}
    batch = packets_to_batch(packed(given), beside, ["body", "message_class"])
    assert batch.column("message_class").to_pylist() == ["ACK_REACH_QUEUE", "NACK_Q_PURGED"]


def test_columns_that_do_not_exist_are_refused() -> None:
    with pytest.raises(MessageError, match="lable: is no column") as caught:
        packets_to_batch(packed([]), {}, ["lable"])
    assert "label" in caught.value.hint
    with pytest.raises(MessageError, match="label: is there twice"):
        messages_to_batch([], columns=["label", "body", "label"])


def test_more_bytes_than_offsets_reach_are_refused_with_a_word() -> None:
    packet = packet_of(Message(b"x" * 20))
    data = np.zeros(2**31, np.uint8)  # the system gives these bytes only when they are written
    data[: len(packet)] = np.frombuffer(packet, np.uint8)
    one = Packed(data.data, np.array([0]), np.array([len(packet)]))
    with pytest.raises(ResourceError) as caught:
        packets_to_batch(one, {}, ["body"])
    assert caught.value.hint == "make batches of fewer messages"
