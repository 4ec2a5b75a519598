"""OrderAck and FinalAck, MQQB 2.2.4 and 2.2.5."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.message_class import MessageClass
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.ordering_acks import (
    FinalAck,
    FinalAckBody,
    OrderAck,
    OrderAckBody,
    from_user_message,
    needs_final_ack,
    order_queue_name,
)
from falconmq.wire.transaction_header import FINAL_ACK_REQUIRED, TransactionHeader
from falconmq.wire.tx_sequence_id import tx_sequence_id
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE, UserHeader
from falconmq.wire.user_message import UserMessage
from tests.strategies.packets import final_ack_bodies, order_ack_bodies
from tests.strategies.user_message import user_messages
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

SOURCE = bytes(range(0x20, 0x30))
OTHER = bytes(range(0x30, 0x40))
ADDRESS = "10.0.0.7"
DIRECT_NAME = r"TCP:10.0.0.7\PRIVATE$\order_queue$"
CATALOGUE = Path(__file__).parents[2] / "conformance" / "mqqb.tsv"

ORDER_BYTES = bytes.fromhex("01020304 05060708 0a0b0c0d 090b0c0d") + bytes(20)
ORDER = OrderAck(OrderAckBody.up_to(tx_sequence_id(0x04030201, 0x08070605), 0x0D0C0B0A))
FINAL_BYTES = (
    bytes.fromhex("01020304 05060708 090a0b0c 0d0e0f10") + SOURCE + bytes.fromhex("11121314")
)
FINAL_BODY = FinalAckBody(
    tx_sequence_id(0x04030201, 0x08070605), 0x0C0B0A09, 0x100F0E0D, SOURCE, 0x14131211
)
FINAL = FinalAck(FINAL_BODY)
ACKS = [ORDER, FINAL]
DESTINATIONS: list[bytes | str] = [OTHER, ADDRESS]


def sent(ack: OrderAck | FinalAck, destination: bytes | str = OTHER) -> bytes:
    message = ack.to_user_message(
        source_queue_manager=SOURCE, destination=destination, sent_time=0x11223344, message_id=7
    )
    return message.encode()


def received(ack: OrderAck | FinalAck, destination: bytes | str = OTHER) -> UserMessage:
    return UserMessage.decode(sent(ack, destination))


def row_text(row: str) -> str:
    found = re.search(rf"^{re.escape(row)}\t.*$", CATALOGUE.read_text(), re.MULTILINE)
    assert found is not None
    return found.group()


@pytest.mark.requirement("QB-2.2.4.1-01", "QB-2.2.4.1-02", "QB-2.2.4.1-03", "QB-2.2.4.1-04")
def test_every_field_of_an_order_ack_stands_at_its_offset() -> None:
    assert OrderAckBody.decode(ORDER_BYTES) == ORDER.body
    assert ORDER.body.encode() == ORDER_BYTES
    assert len(ORDER_BYTES) == 36


@pytest.mark.requirement("QB-2.2.4.1-05")
def test_the_reserved_bytes_of_an_order_ack_are_sent_as_0() -> None:
    assert OrderAckBody.up_to(1, 1).encode()[16:] == bytes(20)


@pytest.mark.requirement("QB-2.2.4.1-06")
@given(st.binary(min_size=20, max_size=20))
def test_garbage_in_the_reserved_bytes_changes_nothing(garbage: bytes) -> None:
    message = received(ORDER)
    message.properties.message_body = ORDER_BYTES[:16] + garbage
    found = from_user_message(message)
    assert isinstance(found, OrderAck)
    assert replace(found.body, reserved=bytes(20)) == ORDER.body


@pytest.mark.requirement("QB-2.2.4.1-03", "QB-2.2.4.1-04")
@pytest.mark.parametrize("number", [1, 2, 0xFFFFFFFF])
def test_an_order_ack_names_a_number_and_the_one_before_it(number: int) -> None:
    data = OrderAckBody.up_to(5, number).encode()
    assert data[8:12] == number.to_bytes(4, "little")
    assert data[12:16] == (number - 1).to_bytes(4, "little")


@pytest.mark.requirement(
    "QB-2.2.5.1-01",
    "QB-2.2.5.1-02",
    "QB-2.2.5.1-03",
    "QB-2.2.5.1-04",
    "QB-2.2.5.1-05",
    "QB-2.2.5.1-06",
)
def test_every_field_of_a_final_ack_stands_at_its_offset() -> None:
    assert FinalAckBody.decode(FINAL_BYTES) == FINAL_BODY
    assert FINAL_BODY.encode() == FINAL_BYTES
    assert len(FINAL_BYTES) == 36


@pytest.mark.requirement(
    "QB-2.2.5.1-02", "QB-2.2.5.1-03", "QB-2.2.5.1-04", "QB-2.2.5.1-05", "QB-2.2.5.1-06"
)
def test_a_final_ack_names_the_message_it_is_about() -> None:
    message = UserMessage(
        BaseHeader(0, 20),
        UserHeader(SOURCE, OTHER, 0xFFFFFFFF, 0, 0x14131211, 0x00310C20, destination_queue=9),
        MessagePropertiesHeader(),
        transaction=TransactionHeader(0, 0x0807060504030201, 0x0C0B0A09, 0x100F0E0D),
    )
    assert FinalAckBody.about(message).encode() == FINAL_BYTES
    message.transaction = None
    with pytest.raises(WireError, match="not transactional"):
        FinalAckBody.about(message)


@pytest.mark.requirement("QB-2.2.4.1-03", "QB-2.2.4.1-04", "QB-2.2.5.1-03", "QB-2.2.5.1-04")
@pytest.mark.parametrize("kind", [OrderAckBody, FinalAckBody])
@pytest.mark.parametrize(
    ("offset", "data", "field"),
    [(8, bytes(4), "TxSequenceNumber"), (12, b"\xff" * 4, "TxPreviousSequenceNumber")],
)
def test_a_number_outside_its_range_is_refused(
    kind: type[OrderAckBody | FinalAckBody], offset: int, data: bytes, field: str
) -> None:
    good = ORDER_BYTES if kind is OrderAckBody else FINAL_BYTES
    with pytest.raises(WireError) as caught:
        kind.decode(good[:offset] + data + good[offset + 4 :])
    assert (caught.value.field, caught.value.offset) == (field, offset)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (OrderAckBody.up_to(1, 0), "TxSequenceNumber"),
        (OrderAckBody.up_to(1, 1 << 32), "TxPreviousSequenceNumber"),
        (OrderAckBody(1, 5, 5), "TxPreviousSequenceNumber"),
        (OrderAckBody(1, 5, 3), "TxPreviousSequenceNumber"),
        (OrderAckBody(1 << 64, 5, 4), "TxSequenceID"),
        (OrderAckBody(1, 5, 4, bytes(19)), "Reserved"),
        (replace(FINAL_BODY, tx_sequence_number=0), "TxSequenceNumber"),
        (replace(FINAL_BODY, tx_sequence_number=1 << 32), "TxSequenceNumber"),
        (replace(FINAL_BODY, tx_previous_sequence_number=0xFFFFFFFF), "TxPreviousSequenceNumber"),
        (replace(FINAL_BODY, source_guid=bytes(15)), "SourceGUID"),
        (replace(FINAL_BODY, message_id=1 << 32), "MessageID"),
    ],
)
def test_impossible_values_are_refused_by_name(
    body: OrderAckBody | FinalAckBody, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        body.encode()
    assert (caught.value.field, caught.value.offset) == (field, None)


@pytest.mark.parametrize(
    ("ack", "destination", "flags"),
    [
        pytest.param(
            ORDER,
            OTHER,
            0x00200C00,
            marks=pytest.mark.requirement("QB-2.2.4-04", "QB-2.2.4-05", "QB-2.2.4-06", "QB-A35-01"),
        ),
        pytest.param(
            ORDER, ADDRESS, 0x00201C00, marks=pytest.mark.requirement("QB-2.2.4-05", "QB-2.2.4-06")
        ),
        pytest.param(
            FINAL,
            OTHER,
            0x00200C20,
            marks=pytest.mark.requirement(
                "QB-2.2.5-04", "QB-2.2.5-05", "QB-2.2.5-06", "QB-2.2.5-07", "QB-A35-01"
            ),
        ),
        pytest.param(
            FINAL, ADDRESS, 0x00201C20, marks=pytest.mark.requirement("QB-2.2.5-06", "QB-2.2.5-07")
        ),
    ],
)
def test_the_user_header_has_no_flags_but_its_own(
    ack: OrderAck | FinalAck, destination: bytes | str, flags: int
) -> None:
    assert sent(ack, destination)[60:64] == flags.to_bytes(4, "little")


@pytest.mark.parametrize(
    "ack",
    [
        pytest.param(ORDER, marks=pytest.mark.requirement("QB-2.2.4-01", "QB-2.2.4-03")),
        pytest.param(FINAL, marks=pytest.mark.requirement("QB-2.2.5-01", "QB-2.2.5-03")),
    ],
)
def test_base_user_and_properties_header_are_all_there_is(ack: OrderAck | FinalAck) -> None:
    data = sent(ack)
    # 16 BaseHeader, 48 + 4 UserHeader, 56 + 32 label + 36 body MessagePropertiesHeader
    assert data[:16] == bytes.fromhex("10000000 4c494f52 c0000000 ffffffff")
    assert len(data) == 16 + 52 + 124 == 0xC0
    message = UserMessage.decode(data)
    assert message.user.source_queue_manager == SOURCE
    assert (message.user.sent_time, message.user.message_id) == (0x11223344, 7)
    optional = (message.transaction, message.security, message.debug, message.soap)
    assert optional == (None, None, None, None)
    assert (message.multi_queue_format, message.session, message.extra) == (None, None, b"")


@pytest.mark.parametrize(
    "ack",
    [
        pytest.param(ORDER, marks=pytest.mark.requirement("QB-2.2.4-07")),
        pytest.param(FINAL, marks=pytest.mark.requirement("QB-2.2.5-08")),
    ],
)
def test_a_private_destination_is_queue_4_of_the_sender(ack: OrderAck | FinalAck) -> None:
    data = sent(ack, OTHER)
    assert data[32:48] == OTHER
    assert data[64:68] == bytes.fromhex("04000000")


@pytest.mark.parametrize(
    "ack",
    [
        pytest.param(
            ORDER, marks=pytest.mark.requirement("QB-2.2.4-08", "QB-2.2.4-09", "QB-2.2.4-06")
        ),
        pytest.param(
            FINAL, marks=pytest.mark.requirement("QB-2.2.5-09", "QB-2.2.5-10", "QB-2.2.5-07")
        ),
    ],
)
@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("10.0.0.7", r"TCP:10.0.0.7\PRIVATE$\order_queue$"),
        ("2001:db8::7", r"TCP:2001:db8::7\PRIVATE$\order_queue$"),
        ("0000000a.0002a5f1b3c4", r"SPX:0000000a.0002a5f1b3c4\PRIVATE$\order_queue$"),
    ],
)
def test_a_direct_destination_is_the_order_queue_at_the_address(
    ack: OrderAck | FinalAck, address: str, name: str
) -> None:
    data = sent(ack, address)
    text = (name + "\0").encode("utf-16-le")
    assert data[32:48] == bytes(16)
    assert data[64:66] == len(text).to_bytes(2, "little")
    assert data[66 : 66 + len(text)] == text


@pytest.mark.parametrize(
    "address",
    [
        "",
        "host",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.7:1801",
        "TCP:10.0.0.7",
        "fe80::1%eth0",
        "0000000a",
        "0000000a.0002a5f1b3c",
        "0000000g.0002a5f1b3c4",
        "0000000a.0002a5f1b3c4\n",
    ],
)
def test_anything_else_is_no_address(address: str) -> None:
    with pytest.raises(WireError, match="DestinationQueue"):
        order_queue_name(address)


@pytest.mark.parametrize(
    ("ack", "message_class", "body"),
    [
        pytest.param(
            ORDER,
            0x00FF,
            ORDER_BYTES,
            marks=pytest.mark.requirement(
                "QB-2.2.4-10",
                "QB-2.2.4-11",
                "QB-2.2.4-12",
                "QB-2.2.4-13",
                "QB-2.2.4-14",
                "QB-2.2.4-15",
            ),
        ),
        pytest.param(
            FINAL,
            0x4000,
            FINAL_BYTES,
            marks=pytest.mark.requirement(
                "QB-2.2.5-11",
                "QB-2.2.5-12",
                "QB-2.2.5-13",
                "QB-2.2.5-14",
                "QB-2.2.5-16",
                "QB-2.2.5-17",
            ),
        ),
    ],
)
def test_the_properties_are_those_of_an_ordering_ack(
    ack: OrderAck | FinalAck, message_class: int, body: bytes
) -> None:
    properties = sent(ack)[68:]
    assert properties[0] == 0  # Flags
    assert properties[1] == 16  # LabelLength, the NUL counted
    assert properties[2:4] == message_class.to_bytes(2, "little")
    assert properties[24:28] == bytes(4)  # BodyType
    assert properties[32:36] == bytes.fromhex("24000000")  # MessageSize
    assert properties[56:88] == "QM Ordering Ack\0".encode("utf-16-le")
    assert properties[88:] == body


@pytest.mark.requirement("QB-2.2.5-15")
def test_a_negative_final_ack_says_why() -> None:
    classes = {int(value, 16) for value in re.findall(r"0x([0-9A-F]{4})", row_text("QB-2.2.5-15"))}
    assert len(classes) == 10
    for message_class in classes:
        data = sent(FinalAck(FINAL_BODY, message_class))
        assert data[70:72] == message_class.to_bytes(2, "little")
        assert from_user_message(UserMessage.decode(data)) == FinalAck(FINAL_BODY, message_class)


@pytest.mark.requirement("QB-A35-01")
@given(st.integers(0x4000, 0xFFFF))
def test_a_final_ack_of_any_class_from_0x4000_is_understood(message_class: int) -> None:
    message = received(FINAL)
    message.properties.message_class = message_class
    assert from_user_message(message) == FinalAck(FINAL_BODY, message_class)


@pytest.mark.parametrize("message_class", [0, 1, 2, 0x00FF, 0x3FFF])
def test_a_final_ack_of_a_lower_class_is_not_sent(message_class: int) -> None:
    with pytest.raises(WireError, match="no class of a FinalAck"):
        sent(FinalAck(FINAL_BODY, message_class))


@pytest.mark.requirement("QB-A10-01")
@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("ack", ACKS)
def test_an_ack_is_known_when_it_comes_back(
    ack: OrderAck | FinalAck, destination: bytes | str
) -> None:
    assert from_user_message(received(ack, destination)) == ack


@pytest.mark.requirement("QB-A10-01")
@pytest.mark.parametrize("ack", ACKS)
def test_other_flags_do_not_hide_an_ack(ack: OrderAck | FinalAck) -> None:
    message = received(ack)
    message.base.flags |= 0x0003
    message.user.flags |= 0x0000_0361
    assert from_user_message(message) == ack


@pytest.mark.parametrize("name", [DIRECT_NAME.lower(), DIRECT_NAME.upper(), DIRECT_NAME])
def test_a_queue_name_is_known_in_any_case_of_letters(name: str) -> None:
    message = received(ORDER, ADDRESS)
    message.user.destination_queue = name
    assert from_user_message(message) == ORDER


@pytest.mark.requirement("QB-A10-01")
@pytest.mark.parametrize("ack", ACKS)
@pytest.mark.parametrize(
    "change",
    [
        {"label": "QM Ordering Ac"},
        {"label": ""},
        {"message_body": bytes(35)},
        {"message_body": bytes(37)},
        {"message_class": 0x0000},
        {"message_class": 0x0002},
        {"message_class": 0x3FFF},
    ],
)
def test_other_properties_make_an_ordinary_message(
    ack: OrderAck | FinalAck, change: dict[str, object]
) -> None:
    message = received(ack)
    for name, value in change.items():
        setattr(message.properties, name, value)
    assert from_user_message(message) is None


@pytest.mark.requirement("QB-A10-01")
@pytest.mark.parametrize("ack", ACKS)
@pytest.mark.parametrize(
    ("queue_type", "name"),
    [
        (3, 5),
        (0, None),
        (5, bytes(16)),
        (7, r"TCP:10.0.0.7\PRIVATE$\orders"),
        (7, r"TCP:10.0.0.7\order_queue$"),
    ],
)
def test_another_destination_makes_an_ordinary_message(
    ack: OrderAck | FinalAck, queue_type: int, name: int | bytes | str | None
) -> None:
    message = received(ack)
    message.user.flags = message.user.flags & ~0x1C00 | queue_type << 10
    message.user.destination_queue = name
    assert from_user_message(message) is None


def test_a_malformed_ack_is_refused() -> None:
    message = received(ORDER)
    message.properties.message_body = bytes(36)
    with pytest.raises(WireError, match="TxSequenceNumber"):
        from_user_message(message)


@given(user_messages())
def test_ordinary_messages_are_no_acks(message: UserMessage) -> None:
    assert from_user_message(message) is None


@given(order_ack_bodies)
def test_an_order_ack_makes_a_round_trip(body: OrderAckBody) -> None:
    assert len(assert_round_trip(body)) == 36
    assert from_user_message(received(OrderAck(body))) == OrderAck(body)


@given(final_ack_bodies, st.sampled_from([c for c in MessageClass if c >= 0x4000]))
def test_a_final_ack_makes_a_round_trip(body: FinalAckBody, message_class: int) -> None:
    assert len(assert_round_trip(body)) == 36
    ack = FinalAck(body, message_class)
    assert from_user_message(received(ack, ADDRESS)) == ack


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(OrderAckBody.decode, data)
    assert_decodes_or_refuses(FinalAckBody.decode, data)


def test_a_cut_body_is_refused() -> None:
    assert_every_cut_is_refused(OrderAckBody.decode, ORDER_BYTES)
    assert_every_cut_is_refused(FinalAckBody.decode, FINAL_BYTES)


@pytest.mark.requirement("QB-2.2.4-02")
@pytest.mark.parametrize(
    ("sequence", "number", "covered"),
    [
        pytest.param(7, 1, True, id="an earlier message"),
        pytest.param(7, 5, True, id="the last message"),
        pytest.param(7, 6, False, id="a later message"),
        pytest.param(6, 1, False, id="an older sequence"),
        pytest.param(8, 1, False, id="a newer sequence"),
    ],
)
def test_an_order_ack_tells_which_messages_arrived(
    sequence: int, number: int, covered: bool
) -> None:
    transaction = TransactionHeader(0, sequence, number, number - 1)
    assert OrderAckBody.up_to(7, 5).covers(transaction) is covered


@pytest.mark.requirement("QB-2.2.5-02")
@pytest.mark.parametrize(
    ("journal", "rejected", "due"),
    [
        pytest.param(0, True, True, id="rejected"),
        pytest.param(0, False, False, id="left its queue, nobody waits"),
        pytest.param(JOURNAL_NEGATIVE, False, True, id="left its queue, JN"),
        pytest.param(JOURNAL_POSITIVE, False, True, id="left its queue, JP"),
    ],
)
def test_a_final_ack_answers_a_rejection_or_a_journaled_message(
    journal: int, rejected: bool, due: bool
) -> None:
    message = UserMessage(
        BaseHeader(0, 20),
        UserHeader(SOURCE, OTHER, 0, 0, 1, journal),
        MessagePropertiesHeader(),
        TransactionHeader(0, 7, 1, 0),
    )
    assert needs_final_ack(message, rejected=rejected) is due
    message.transaction = None
    assert not needs_final_ack(message, rejected=rejected), "for transactional messages only"


def test_a_final_ack_is_due_when_the_transaction_header_asks_for_it() -> None:
    message = UserMessage(
        BaseHeader(0, 20),
        UserHeader(SOURCE, OTHER, 0, 0, 1, 0),
        MessagePropertiesHeader(),
        TransactionHeader(FINAL_ACK_REQUIRED, 7, 1, 0),
    )
    assert needs_final_ack(message, rejected=False)
