"""UserMessage packets, MQMQ 2.2.20, with the packets of MQMQ guide section 19."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.framing import packet_length
from falconmq.wire.guid import guid_value
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import (
    MQFAddressHeader,
    MQFFormatNameElement,
    MultiQueueFormatHeader,
)
from falconmq.wire.reader import Reader
from falconmq.wire.security_header import SecurityHeader
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.soap_header import SoapHeader
from falconmq.wire.tracing import Node, TracingReader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.tx_sequence_id import tx_sequence_id
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage
from tests.strategies.user_message import mutated, user_messages
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "mqqb-frames.json"
FRAMES = {frame["name"][:7]: frame for frame in json.loads(VECTORS.read_text())["frames"]}
BODY = b"a\0" * 1000
# printed are 1650 of 2224 bytes; the guide completes the body and its two bytes of padding
FRAME_7 = bytes.fromhex(FRAMES["FRAME 7"]["hex"])[:222] + BODY + b"\0\0"
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")
NULL = bytes(16)
SOURCE = bytes.fromhex("11111111222233334444555555555555")
ADDRESS = bytes.fromhex("aaaaaaaabbbbccccddddeeeeeeeeeeee")
GUID = bytes(range(0x50, 0x60))
# the derived packet of the guide: transactional, with journaling, acks, private queues
DERIVED = bytes.fromhex(
    "10000000 4c494f52 a0000000 00460500"
    "11111111222233334444555555555555 aaaaaaaabbbbccccddddeeeeeeeeeeee"
    "ffffffff 00000065 34120000 204d3100 11000000 22000000"
    "eecdab00 0700000000000065 01000000 00000000"
    "0503 0000 0000000000000000000000000000000000000000 11000000 feca0000"
    "03000000 03000000 00000000 0e800000 10660000 00000000 680069000000 010203 000000"
)
PARTS: dict[str, Any] = {
    "transaction": TransactionHeader(0, 1, 1, 0),
    "security": SecurityHeader(1, SID),
    "debug": DebugHeader(1, GUID),
    "soap": SoapHeader("h", "b"),
    "multi_queue_format": MultiQueueFormatHeader(
        MQFAddressHeader(0x64, (MQFFormatNameElement(3, "OS:a"),))
    ),
    "session": SessionHeader(1, 0, 0, 1, 0),
}


def a_message(**parts: Any) -> UserMessage:
    """A small message to a direct name; recoverable and of priority 0, as every part allows."""
    return UserMessage(
        base=BaseHeader(parts.pop("base_flags", 0), 0),
        user=UserHeader(
            SOURCE, NULL, 60, 0x65000000, 7, parts.pop("user_flags", 0) | 0x1C20, "OS:host\\q"
        ),
        properties=MessagePropertiesHeader(label="label", message_body=b"body!"),
        **{name: copy.deepcopy(part) for name, part in parts.items()},
    )


def flags_of(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[2:4], "little"), int.from_bytes(data[60:64], "little")


def paddings(node: Node) -> list[Node]:
    found = [node] if node.name == "Padding" else []
    return found + [each for child in node.children for each in paddings(child)]


class TestPacketsOfTheGuide:
    """Section 19: the real packet of the MQQB example, and one derived from the tables."""

    def test_the_printed_part_of_the_frame_is_what_was_completed(self) -> None:
        printed = bytes.fromhex(FRAMES["FRAME 7"]["hex"])
        assert len(printed) == 1650
        assert FRAME_7[:1650] == printed
        assert len(FRAME_7) == 2224

    @pytest.mark.requirement("MQ-2.2.19.2-48", "MQ-2.2.19.3-20", "MQ-2.2.20.6-17")
    def test_the_example_decodes_as_its_bytes_say(self) -> None:
        reader = Reader(FRAME_7)
        message = UserMessage.read(reader)
        assert reader.offset == 2224
        assert message == UserMessage(
            base=BaseHeader(flags=3, packet_size=2224, time_to_reach_queue=345600, reserved=0),
            user=UserHeader(
                source_queue_manager=bytes.fromhex("d1587355509195954997b6e611ea26c6"),
                queue_manager_address=NULL,
                time_to_be_received=0xFFFFFFFF,
                sent_time=0x524F494C,
                message_id=0x8EE,
                flags=0x00281C00,
                destination_queue="OS:a04bm02\\q",
            ),
            security=SecurityHeader(flags=1, security_id=SID),
            properties=MessagePropertiesHeader(
                flags=0x0F,
                message_class=0,
                correlation_id=bytes(20),
                body_type=8,
                application_tag=0,
                privacy_level=0,
                hash_algorithm=0x8004,
                encryption_algorithm=0x6801,
                label="mqsender label",
                extension_data=b"",
                message_body=BODY,
                allocation_body_size=2000,
            ),
        )
        source = guid_value(message.user.source_queue_manager)
        assert source == UUID("557358D1-9150-9595-4997-B6E611EA26C6")

    def test_the_example_encodes_to_the_same_bytes(self) -> None:
        garbage = FRAME_7[:-2] + b"\xcd\xcd"
        assert UserMessage.decode(garbage).encode() == FRAME_7

    def test_the_trace_of_the_example_has_the_fields_of_the_vector(self) -> None:
        reader = TracingReader(FRAME_7)
        UserMessage.read(reader)
        found: dict[tuple[int, int], str] = {}
        pending = [*reader.root.children]
        while pending:
            node = pending.pop()
            pending += node.children
            if not node.is_structure:
                found[node.offset, node.size] = node.name
        for name, field in FRAMES["FRAME 7"]["fields"].items():
            assert found[field["offset"], field["size"]] == name.rpartition(".")[2]

    @pytest.mark.requirement("MQ-2.2.18-01", "MQ-2.2.19.2-21")
    def test_the_derived_packet_decodes_to_its_fields(self) -> None:
        assert len(DERIVED) == 160
        message = UserMessage.decode(DERIVED)
        assert message == UserMessage(
            base=BaseHeader(flags=0, packet_size=160, time_to_reach_queue=345600),
            user=UserHeader(
                source_queue_manager=SOURCE,
                queue_manager_address=ADDRESS,
                time_to_be_received=0xFFFFFFFF,
                sent_time=0x65000000,
                message_id=0x1234,
                flags=0x00314D20,
                destination_queue=0x11,
                admin_queue=0x22,
            ),
            transaction=TransactionHeader(
                flags=0x0E | 0xABCDE << 4,
                tx_sequence_id=tx_sequence_id(ordinal=7, time_stamp=0x65000000),
                tx_sequence_number=1,
                previous_tx_sequence_number=0,
            ),
            properties=MessagePropertiesHeader(
                flags=5,
                body_type=0x11,
                application_tag=0xCAFE,
                hash_algorithm=0x800E,
                encryption_algorithm=0x6610,
                label="hi",
                message_body=b"\x01\x02\x03",
                allocation_body_size=3,
            ),
        )
        assert message.user.resolved_response_queue() == (2, 0x22)
        assert message.user.delivery_mode == 1
        assert message.is_transactional
        assert message.encode() == DERIVED


class TestOrderAndPresence:
    """Which headers there are, where they stand, and which bits say so."""

    @pytest.mark.requirement("MQ-2.2.20-03", "MQ-2.2.20-02", "QB-MQMQ2.2.20-01")
    def test_all_headers_come_in_their_order(self) -> None:
        data = a_message(**PARTS).encode()
        reader = TracingReader(data)
        UserMessage.read(reader)
        (packet,) = reader.root.children
        assert [node.name for node in packet.children] == [
            "BaseHeader",
            "UserHeader",
            "TransactionHeader",
            "SecurityHeader",
            "MessagePropertiesHeader",
            "DebugHeader",
            "SoapHeader",
            "MultiQueueFormatHeader",
            "SessionHeader",
        ]
        # by hand too, as the trace comes from the code under test
        before = PARTS["transaction"].encode() + PARTS["security"].encode()
        properties = a_message().properties.encode()
        behind = [PARTS[name].encode() for name in ("debug", "soap", "multi_queue_format")]
        session = PARTS["session"].encode()
        assert data[88:] == before + properties + b"".join(behind) + session

    @pytest.mark.parametrize(
        ("part", "in_base", "in_user"),
        [
            pytest.param(
                "transaction",
                0,
                0x00100000,
                marks=pytest.mark.requirement("MQ-2.2.19.2-64", "MQ-2.2.20-05"),
            ),
            pytest.param(
                "security",
                0,
                0x00080000,
                marks=pytest.mark.requirement("MQ-2.2.19.2-62", "MQ-2.2.20-06", "MQ-2.2.20-11"),
            ),
            pytest.param(
                "debug",
                0x0020,
                0,
                marks=pytest.mark.requirement("MQ-2.2.19.1-18", "MQ-2.2.20-07"),
            ),
            pytest.param(
                "soap",
                0,
                0x10000000,
                marks=pytest.mark.requirement("MQ-2.2.19.2-79", "MQ-2.2.20-08"),
            ),
            pytest.param(
                "multi_queue_format",
                0,
                0x00800000,
                marks=pytest.mark.requirement("MQ-2.2.19.2-71", "MQ-2.2.20-09"),
            ),
            pytest.param(
                "session",
                0x0010,
                0,
                marks=pytest.mark.requirement("MQ-2.2.20-10", "MQ-2.2.20-11"),
            ),
        ],
    )
    @pytest.mark.requirement("QB-MQMQ2.2.19.2-06", "QB-MQMQ2.2.19.1-03")
    def test_a_bit_is_set_if_and_only_if_its_header_is_there(
        self, part: str, in_base: int, in_user: int
    ) -> None:
        with_part = a_message(**{part: PARTS[part]})
        assert flags_of(with_part.encode()) == (in_base, 0x00201C20 | in_user)
        back = UserMessage.decode(with_part.encode())
        assert [name for name in PARTS if getattr(back, name) is not None] == [part]
        assert getattr(back, part) == PARTS[part]
        # a bit left over from elsewhere does not count
        stale = a_message(base_flags=in_base, user_flags=in_user)
        assert flags_of(stale.encode()) == (0, 0x00201C20)
        back = UserMessage.decode(stale.encode())
        assert all(getattr(back, name) is None for name in PARTS)

    @given(user_messages())
    def test_encoding_leaves_the_headers_alone(self, message: UserMessage) -> None:
        message.base.packet_size = 0
        message.base.flags &= ~0x30
        message.user.flags &= ~0x10D80000
        before = copy.deepcopy(message)
        message.encode()
        assert message == before

    @pytest.mark.requirement("MQ-2.2.20-12")
    @given(user_messages())
    def test_every_header_starts_on_a_boundary_of_four(self, message: UserMessage) -> None:
        message.extra = b""
        if message.multi_queue_format is not None:
            message.multi_queue_format.signature.signature = b""
        reader = TracingReader(message.encode())
        UserMessage.read(reader)
        (packet,) = reader.root.children
        assert [node.offset % 4 for node in packet.children] == [0] * len(packet.children)

    @pytest.mark.requirement(
        "MQ-2.2.19.1-19",
        "MQ-2.2.19.1-24",
        "MQ-2.2.19.2-22",
        "MQ-2.2.19.2-72",
        "MQ-2.2.19.2-76",
        "MQ-2.2.19.2-80",
        "MQ-2.2.20.5-04",
        "MQ-2.2.20.5-16",
        "QB-MQMQ2.2.19.2-11",
    )
    def test_no_reserved_bit_is_set_by_us(self) -> None:
        data = a_message(**PARTS).encode()
        base_flags, user_flags = flags_of(data)
        assert base_flags & 0xFEC0 == 0
        assert user_flags & 0xED000080 == 0
        assert data[88:92] == bytes(4)  # TransactionHeader.Flags

    @pytest.mark.parametrize(
        "bit",
        [
            pytest.param(0x0040, marks=pytest.mark.requirement("MQ-2.2.19.1-20")),
            pytest.param(0x0080, marks=pytest.mark.requirement("MQ-2.2.19.1-20")),
            *(
                pytest.param(1 << bit, marks=pytest.mark.requirement("MQ-2.2.19.1-25"))
                for bit in (9, 10, 11, 13, 14, 15)
            ),
            pytest.param(0x1000, marks=pytest.mark.requirement("MQ-2.2.19.1-25", "MQ-2.2.19.1-26")),
        ],
    )
    def test_reserved_bits_of_the_base_header_are_kept_and_change_nothing(self, bit: int) -> None:
        data = DERIVED[:2] + bit.to_bytes(2, "little") + DERIVED[4:]
        message = UserMessage.decode(data)
        assert message.encode() == data
        message.base.flags = 0
        assert message == UserMessage.decode(DERIVED)

    @pytest.mark.requirement("MQ-2.2.19.2-77")
    @pytest.mark.parametrize("bit", [7, 24, 26, 27, 29, 30, 31])
    def test_reserved_bits_of_the_user_header_announce_nothing(self, bit: int) -> None:
        data = DERIVED[:60] + (0x00314D20 | 1 << bit).to_bytes(4, "little") + DERIVED[64:]
        message = UserMessage.decode(data)
        assert message.encode() == data
        message.user.flags = 0x00314D20
        assert message == UserMessage.decode(DERIVED)


class TestSize:
    """PacketSize, the SessionHeader beyond it, and unknown bytes before its end."""

    @pytest.mark.requirement(
        "MQ-2.2.19.1-30", "MQ-2.2.19.1-31", "QB-MQMQ2.2.19.1-05", "MQ-2.2.20-10"
    )
    def test_the_packet_size_leaves_out_the_session_header(self) -> None:
        alone = a_message().encode()
        assert int.from_bytes(alone[8:12], "little") == len(alone)
        assert len(alone) == 16 + 48 + 24 + 56 + 12 + 8  # padding behind "body!" too
        data = a_message(session=PARTS["session"]).encode()
        assert int.from_bytes(data[8:12], "little") == len(data) - 16 == len(alone)
        assert data[-16:] == PARTS["session"].encode()

    @pytest.mark.requirement("MQ-2.2.19.1-31", "QB-MQMQ2.2.19.1-05")
    def test_the_next_packet_of_a_stream_is_found(self) -> None:
        first = a_message(session=PARTS["session"]).encode()
        session_ack = bytes.fromhex(FRAMES["FRAME 8"]["hex"])
        stream = first + session_ack + DERIVED
        offset = packet_length(BaseHeader.decode(stream))
        assert offset == len(first)
        offset += packet_length(BaseHeader.decode(stream, offset))
        assert offset == len(first) + 36
        assert UserMessage.decode(stream, offset) == UserMessage.decode(DERIVED)

    def test_a_message_is_read_at_any_offset(self) -> None:
        data = a_message(**PARTS).encode()
        for offset in range(1, 5):
            moved = UserMessage.decode(b"x" * offset + data + b"next", offset)
            assert moved == UserMessage.decode(data)

    @pytest.mark.parametrize("session", [None, PARTS["session"]])
    @pytest.mark.parametrize("extra", [b"?", b"unknown header"])
    def test_unknown_bytes_before_the_end_are_kept(
        self, extra: bytes, session: SessionHeader | None
    ) -> None:
        parts = {} if session is None else {"session": session}
        plain = a_message(**parts).encode()
        tail = b"" if session is None else plain[-16:]
        body = plain[: len(plain) - len(tail)]
        size = (len(body) + len(extra)).to_bytes(4, "little")
        data = body[:8] + size + body[12:] + extra + tail
        message = UserMessage.decode(data)
        assert bytes(message.extra) == extra
        assert message.session == session
        assert message.encode() == data

    @pytest.mark.requirement("MQ-2.2.19.1-33", "MQ-2.2.19.1-34", "QB-MQMQ2.2.19.1-05")
    def test_four_megabytes_are_the_largest_packet(self) -> None:
        message = a_message()
        room = 0x00400000 - 16 - 48 - 24 - 56 - 12
        message.properties.message_body = bytes(room)
        data = message.encode()
        assert len(data) == 0x00400000
        assert len(UserMessage.decode(data).properties.message_body) == room
        message.properties.message_body = bytes(room + 1)
        with pytest.raises(WireError, match="PacketSize: 4194308"):
            message.encode()
        with pytest.raises(WireError, match="PacketSize at offset 8: 4194305"):
            UserMessage.decode(data[:8] + b"\x01\x00\x40\x00" + data[12:])

    @pytest.mark.requirement("MQ-2.2.19.1-34")
    @pytest.mark.parametrize("size", [*range(20, 160), 0, 15, 16, 19])
    def test_a_size_too_small_for_the_promised_headers_is_refused(self, size: int) -> None:
        with pytest.raises(WireError):
            UserMessage.decode(DERIVED[:8] + size.to_bytes(4, "little") + DERIVED[12:])

    @pytest.mark.requirement("MQ-2.2.19.1-34", "MQ-2.2.19.3-56")
    @pytest.mark.parametrize("size", [0xFFFFFFFF, 0xFFFFFF00, 0x00400000, 7])
    def test_a_body_past_the_packet_size_is_refused_even_if_bytes_are_there(
        self, size: int
    ) -> None:
        data = DERIVED[:124] + size.to_bytes(4, "little") + DERIVED[128:] + bytes(64)
        with pytest.raises(
            WireError, match=f"MessageBody at offset 154: needs {size} bytes, 6 are left"
        ):
            UserMessage.decode(data)

    def test_a_size_beyond_the_bytes_is_refused(self) -> None:
        with pytest.raises(WireError, match="PacketSize at offset 8: 161 bytes announced, 160"):
            UserMessage.decode(DERIVED[:8] + b"\xa1" + DERIVED[9:])

    @pytest.mark.requirement("MQ-2.2.20-01")
    def test_a_message_is_never_taken_in_pieces(self) -> None:
        assert_every_cut_is_refused(UserMessage.decode, DERIVED)
        assert_every_cut_is_refused(UserMessage.decode, a_message(**PARTS).encode())


class TestWhatIsNotSent:
    """Rules for senders; a receiver takes these packets, as long as it can read them."""

    @pytest.mark.requirement("MQ-2.2.19.1-13", "MQ-2.2.20-04")
    def test_an_internal_packet_is_no_user_message(self) -> None:
        with pytest.raises(WireError, match="IN is for internal packets"):
            a_message(base_flags=0x0008).encode()
        with pytest.raises(WireError, match="Flags at offset 2: IN is set"):
            UserMessage.decode(DERIVED[:2] + b"\x08\x00" + DERIVED[4:])

    @pytest.mark.requirement("MQ-2.2.19.1-23")
    def test_tracing_needs_a_debug_header(self) -> None:
        with pytest.raises(WireError, match="TR needs a DebugHeader"):
            a_message(base_flags=0x0120).encode()
        data = a_message(base_flags=0x0100, debug=PARTS["debug"]).encode()
        assert flags_of(data)[0] == 0x0120
        received = UserMessage.decode(DERIVED[:2] + b"\x00\x01" + DERIVED[4:])
        assert received.debug is None

    @pytest.mark.requirement("MQ-2.2.19.1-10", "QB-MQMQ2.2.19.1-03")
    @pytest.mark.parametrize("priority", range(1, 8))
    def test_a_transactional_message_has_no_priority(self, priority: int) -> None:
        message = a_message(base_flags=priority, transaction=PARTS["transaction"])
        with pytest.raises(WireError, match="priority 0"):
            message.encode()
        data = DERIVED[:2] + bytes([priority, 0]) + DERIVED[4:]
        assert UserMessage.decode(data).priority == 0
        message.transaction = None
        assert message.priority == UserMessage.decode(message.encode()).priority == priority

    @pytest.mark.requirement("MQ-2.2.19.2-65", "QB-MQMQ2.2.19.2-11")
    def test_a_transactional_message_is_recoverable(self) -> None:
        message = a_message(transaction=PARTS["transaction"])
        assert flags_of(message.encode())[1] & 0x60 == 0x20
        message.user.flags &= ~0x60
        with pytest.raises(WireError, match="is recoverable"):
            message.encode()
        express = DERIVED[:60] + (0x00314D00).to_bytes(4, "little") + DERIVED[64:]
        assert UserMessage.decode(express).is_transactional

    @pytest.mark.requirement("MQ-2.2.20-02", "MQ-2.2.19.2-67")
    def test_a_message_always_has_its_properties(self) -> None:
        flags = 0x00314D20 & ~0x00200000
        with pytest.raises(WireError, match=r"UserHeader\.Flags at offset 60: MP is 0"):
            UserMessage.decode(DERIVED[:60] + flags.to_bytes(4, "little") + DERIVED[64:])
        assert flags_of(a_message().encode())[1] & 0x00200000

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (lambda m: setattr(m.user, "flags", 0x1C00 | 0x1E), "RC 30"),
            (lambda m: setattr(m.user, "flags", 0x1C00 | 0x40), "DM"),
            (lambda m: setattr(m.user, "flags", 0x1C00 | 0x02000000), "AH"),
            (lambda m: setattr(m.user, "flags", 0x0800), "DQ 2"),
            (lambda m: setattr(m.user, "flags", 0x1C00 | 0x8000), "AQ 4"),
            (lambda m: setattr(m.user, "queue_manager_address", GUID), "null GUID"),
            (lambda m: setattr(m, "security", SecurityHeader(0)), "without any data"),
            (lambda m: setattr(m, "security", SecurityHeader(0x11, SID)), "AU"),
            (lambda m: setattr(m.properties, "message_class", 0x1E03), "MessageClass"),
            (lambda m: setattr(m.properties, "label", "x" * 250), "LabelLength"),
            (lambda m: setattr(m, "debug", DebugHeader(2)), "QT 2"),
        ],
    )
    def test_what_a_header_refuses_the_message_refuses(self, change: Any, problem: str) -> None:
        message = a_message()
        change(message)
        with pytest.raises(WireError, match=problem) as caught:
            message.encode()
        assert caught.value.offset is None

    @pytest.mark.parametrize(
        "message_class", [pytest.param(member, id=member.name) for member in MessageClass]
    )
    def test_every_class_comes_back(self, message_class: MessageClass) -> None:
        message = a_message()
        message.properties.message_class = message_class
        back = UserMessage.decode(message.encode())
        assert back.properties.message_class == message_class


class TestMemory:
    """Bodies travel as views of the bytes that came."""

    @pytest.mark.parametrize("kind", [bytes, bytearray])
    def test_nothing_large_is_copied(self, kind: type[bytes | bytearray]) -> None:
        message = a_message(security=SecurityHeader(1, SID), extra=b"unknown")
        message.properties.extension_data = b"extension"
        data = kind(message.encode())
        back = UserMessage.decode(data)
        assert back.security is not None
        views = (
            back.properties.message_body,
            back.properties.extension_data,
            back.security.security_id,
            back.extra,
        )
        for view in views:
            assert isinstance(view, memoryview)
            assert view.obj is data

    def test_a_body_may_be_any_buffer(self) -> None:
        message = a_message()
        expected = message.encode()
        for body in (bytearray(b"body!"), memoryview(b"a body!")[2:]):
            message.properties.message_body = body
            assert message.encode() == expected


@given(user_messages())
def test_round_trip(message: UserMessage) -> None:
    assert_round_trip(message)


@pytest.mark.requirement("MQ-2.2.18.1.5.2-04", "MQ-2.2.19.3-55", "MQ-2.2.20.1-06")
@given(user_messages())
def test_garbage_in_padding_changes_nothing(message: UserMessage) -> None:
    data = bytearray(message.encode())
    reader = TracingReader(bytes(data))
    UserMessage.read(reader)
    for node in paddings(reader.root):
        assert data[node.offset : node.offset + node.size] == bytes(node.size)
        data[node.offset : node.offset + node.size] = b"\xff" * node.size
    assert UserMessage.decode(data) == message


@settings(max_examples=300)
@given(
    st.binary(max_size=200)
    | mutated(user_messages().map(UserMessage.encode))
    | mutated(st.sampled_from([DERIVED, FRAME_7]))
)
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(UserMessage.decode, data)
