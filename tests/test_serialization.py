"""Message to packet and back, MQDMPR 3.1.7.1.30 to .32, with the packets written by hand."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.errors import MessageError, MqStatus, WireError
from falconmq.message import (
    INFINITE,
    Acknowledge,
    AuthenticationLevel,
    CryptographicProvider,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    MessageId,
    MessageTransaction,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.names import (
    DirectFormatName,
    DistributionListFormatName,
    MachineFormatName,
    MultipleElementFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
    Suffix,
    parse_format_name,
)
from falconmq.serialization import from_user_message, to_user_message
from falconmq.wire.security_header import ENCRYPTED_BODY, SENDER_ID_NONE, SENDER_ID_TYPE
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.user_message import UserMessage
from tests.strategies.messages import Sending, messages, sendings
from tests.strategies.user_message import user_messages

SOURCE = UUID("11111111-2222-3333-4444-555555555555")
HOST = UUID("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
OTHER = UUID("99999999-8888-7777-6666-555555555555")
QUEUE = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
SOURCE_BYTES = "11111111 2222 3333 4444 555555555555"
HOST_BYTES = "aaaaaaaa bbbb cccc dddd eeeeeeeeeeee"
OTHER_BYTES = "99999999 8888 7777 6666 555555555555"
QUEUE_BYTES = "04030201 0605 0807 090a 0b0c0d0e0f10"
SENDING = Sending(SOURCE, HOST, 0x1234, 0x65000001)


def packet_bytes(base_flags: str, time_to_reach_queue: str, *headers: str) -> bytes:
    """A BaseHeader and the hexadecimal text of the headers behind it."""
    rest = bytes.fromhex("".join(headers))
    base = bytes.fromhex(f"10 00 {base_flags} 4c494f52")
    return base + struct.pack("<I", 16 + len(rest)) + bytes.fromhex(time_to_reach_queue) + rest


# Everything a packet can hold, each field at another value.
FULL_BYTES = packet_bytes(
    "2001",  # TR, DH, priority 0
    "100e0000",
    # UserHeader
    SOURCE_BYTES,
    HOST_BYTES,
    "84030000",  # TimeToBeReceived 900
    "01000065",  # SentTime
    "34120000",  # MessageID
    "22cdfc10",  # RC 2, DM 1, JN, DQ 3, AQ 6, RQ 4, SH, TH, MP, CQ, MQ, HH
    "11000000",  # DestinationQueue
    OTHER_BYTES + "22000000",  # AdminQueue
    "33000000",  # ResponseQueue
    "70" * 16,  # ConnectorType
    # TransactionHeader
    "ebcdab00",  # ID ABCDE, CG, FA, LM
    "07000000 02000065",  # TxSequenceID
    "09000000",
    "08000000",
    "71" * 16,  # ConnectorQMGuid
    # SecurityHeader
    "a100",  # ST 1, EB, AI
    "0c00 0500 0600 07000000 08000000",
    "01 01 000000000005 12000000",  # S-1-5-18
    "a1a2a3a4a5 000000",
    "b1b2b3b4b5b6 0000",
    "c1c2c3c4c5c6c7 00",
    "18000000 5000 0000",  # ProviderInfo: type 24, name "P"
    # MessagePropertiesHeader
    "05 03 0040",  # PA and NA, label of 2 characters and NUL, ACK_RECEIVE
    "d0d1d2d3d4d5d6d7d8d9dadbdcdddedf e0e1e2e3",
    "11000000",  # VT_UI1
    "feca0000",
    "03000000 03000000",
    "05000000",
    "03800000",  # MD5
    "0f660000",  # AES-192
    "02000000",
    "6800 6900 0000",
    "f1f2",
    "010203",
    "00",
    # DebugHeader
    "0100 0000" + "72" * 16,
    # SoapHeader
    "2003 0000 02000000 6800 0000",
    "8403 0000 02000000 6200 0000",
    # MultiQueueFormatHeader
    "34000000 6400 0000 02000000",
    "0200 0000" + HOST_BYTES + "11000000",
    "0300 4f00 5300 3a00 6800 5c00 6100 0000",
    "20000000 c800 0000 01000000",
    "0100 0000" + QUEUE_BYTES,
    "20000000 2c01 0000 01000000",
    "0600 0000" + "73" * 16,
    "5e01 0000 04000000 91929394",
)

# Nothing that need not be there; JP in place of JN.
PLAIN_BYTES = packet_bytes(
    "0300",
    "00460500",
    SOURCE_BYTES,
    "00" * 16,
    "ffffffff",
    "01000065",
    "34120000",
    "001e2000",  # JP, DQ 7, MP
    "0e00 4f00 5300 3a00 6800 5c00 7100 0000",
    "00 00 0000",
    "00" * 20,
    "00000000 00000000",
    "04000000 04000000",
    "00000000",
    "0e800000",
    "01680000",
    "00000000",
    "64617461",
)


def full_message() -> Message:
    message = Message(
        b"\x01\x02\x03",
        body_type=17,
        label="hi",
        priority=6,  # not sent with a transactional message
        time_to_reach_queue=3600,
        time_to_be_received=900,
        acknowledgements=Acknowledge.FULL_REACH_QUEUE,
        journal=Journal.DEAD_LETTER,
        administration_queue=PrivateFormatName(OTHER, 0x22),
        response_queue=PrivateFormatName(OTHER, 0x33),
        correlation_id=bytes(range(0xD0, 0xE4)),
        application_tag=0xCAFE,
        extension=b"\xf1\xf2",
        message_class=MessageClass.ACK_RECEIVE,
        destination=PrivateFormatName(HOST, 0x11),
        destinations=(
            PrivateFormatName(HOST, 0x11),
            DirectFormatName.from_wire(r"OS:h\a"),
        ),
        administration_queues=(PublicFormatName(QUEUE),),
        response_queues=(DistributionListFormatName(UUID(bytes=b"\x73" * 16)),),
        trace=True,
        report_queue=UUID(bytes=b"\x72" * 16),
        connector_type=UUID(bytes=b"\x70" * 16),
        privacy_level=PrivacyLevel.ADVANCED,
        encryption_algorithm=EncryptionAlgorithm.AES192,
        hash_algorithm=HashAlgorithm.MD5,
        sender_id=bytes.fromhex("01 01 000000000005 12000000"),
        sender_certificate=bytes.fromhex("c1c2c3c4c5c6c7"),
        signature=bytes.fromhex("b1b2b3b4b5b6"),
        multiple_destination_signature=bytes.fromhex("91929394"),
        symmetric_key=bytes.fromhex("a1a2a3a4a5"),
        provider=CryptographicProvider("P", 24),
        soap_header="h",
        soap_body="b",
    )
    message.hop_count = 2
    message.transaction = MessageTransaction(
        sequence_id=0x65000002_00000007,
        sequence_number=9,
        previous_sequence_number=8,
        id=0xABCDE,
        is_last=True,
        final_ack_required=True,
        connector_queue_manager=UUID(bytes=b"\x71" * 16),
    )
    return message


def plain_message() -> Message:
    return Message(b"data", destination=r"DIRECT=OS:h\q", journal=Journal.JOURNAL)


def send(message: Message, sending: Sending = SENDING) -> UserMessage:
    return to_user_message(
        message,
        source_queue_manager=sending.source_queue_manager,
        destination_queue_manager=sending.destination_queue_manager,
        message_id=sending.message_id,
        sent_time=sending.sent_time,
    )


def receive(data: bytes) -> Message:
    return from_user_message(UserMessage.decode(data))


def resent(message: Message, sending: Sending = SENDING) -> Message:
    return receive(send(message, sending).encode())


# What is sent


@pytest.mark.requirement(
    "MQ-2.2.19.2-03",
    "MQ-2.2.19.2-11",
    "MQ-2.2.20.1-03",
    "MQ-2.2.20.1-04",
    "DM-3.1.7.1.30-01",
    "DM-3.1.7.1.30-02",
    "DM-3.1.7.1.30-03",
    "DM-3.1.7.1.30-04",
    "DM-3.1.7.1.30-05",
    "DM-3.1.7.1.30-06",
    "DM-3.1.7.1.30-07",
    *(f"DM-3.1.7.1.32-{number:02}" for number in range(1, 4)),
    *(f"DM-3.1.7.1.32-{number:02}" for number in range(5, 27)),
    *(f"DM-3.1.7.1.32-{number:02}" for number in range(28, 65)),
    "DM-3.1.7.1.32-66",
)
@pytest.mark.parametrize(
    ("make", "data"),
    [(full_message, FULL_BYTES), (plain_message, PLAIN_BYTES)],
    ids=["with everything", "with nothing"],
)
def test_a_message_is_written_to_the_byte(make: Callable[[], Message], data: bytes) -> None:
    assert send(make()).encode() == data


@pytest.mark.requirement(
    "MQ-2.2.19.1-08", "DM-3.1.1.12-50", "DM-3.1.1.12-85", "DM-3.1.1.12-92", "DM-3.1.1.12-45"
)
def test_what_a_sender_does_not_choose_has_the_specified_default() -> None:
    packet = UserMessage.decode(PLAIN_BYTES)
    assert packet.encode() == send(plain_message()).encode()
    assert packet.base.flags & 0x0007 == 3
    assert packet.base.time_to_reach_queue == 0x54600
    assert packet.properties.encryption_algorithm == 0x6801
    assert packet.user.flags & 0x60 == 0
    with pytest.raises(MessageError):
        Message(priority=8)


def test_a_queue_manager_may_have_another_default_time() -> None:
    packet = to_user_message(
        plain_message(),
        source_queue_manager=SOURCE,
        message_id=1,
        sent_time=0,
        default_time_to_reach_queue=60,
    )
    assert packet.base.time_to_reach_queue == 60
    forever = plain_message()
    forever.time_to_reach_queue = INFINITE
    assert send(forever).base.time_to_reach_queue == 0xFFFFFFFF


@pytest.mark.requirement("MQ-2.2.19.1-10", "MQ-2.2.19.2-21", "MQ-2.2.19.2-65", "DM-3.1.7.1.32-03")
@pytest.mark.parametrize("delivery", Delivery)
def test_a_transactional_message_is_recoverable_and_has_priority_0(delivery: Delivery) -> None:
    message = plain_message()
    message.priority, message.delivery = 7, delivery
    message.transaction = MessageTransaction(1, 1)
    packet = UserMessage.decode(send(message).encode())
    assert packet.base.flags & 0x0007 == 0
    assert packet.user.flags & 0x00100060 == 0x00100020
    assert from_user_message(packet).delivery is Delivery.RECOVERABLE


@pytest.mark.parametrize(
    ("field", "flag"),
    [
        pytest.param(
            "final_ack_required",
            0x2,
            marks=pytest.mark.requirement("DM-3.1.7.1.32-36", "DM-3.1.7.1.31-23"),
        ),
        pytest.param(
            "is_first",
            0x4,
            marks=pytest.mark.requirement(
                "DM-3.1.7.1.32-42", "DM-3.1.7.1.31-28", "DM-3.1.7.1.30-20"
            ),
        ),
        pytest.param(
            "is_last", 0x8, marks=pytest.mark.requirement("DM-3.1.7.1.32-43", "DM-3.1.7.1.31-29")
        ),
    ],
)
def test_each_mark_of_a_transaction_is_a_bit_of_its_own(field: str, flag: int) -> None:
    message = plain_message()
    message.transaction = MessageTransaction(1, 1)
    assert send(message).encode()[80:84] == bytes(4)
    setattr(message.transaction, field, True)
    data = send(message).encode()
    assert int.from_bytes(data[80:84], "little") == flag
    assert receive(data).transaction == message.transaction


@pytest.mark.requirement(
    "MQ-2.2.19.1-19",
    "MQ-2.2.19.1-24",
    "MQ-2.2.19.2-22",
    "MQ-2.2.19.2-72",
    "MQ-2.2.19.2-75",
    "MQ-2.2.19.2-76",
    "MQ-2.2.19.2-80",
    "MQ-2.2.19.3-07",
    "MQ-2.2.20.2-06",
    "MQ-2.2.20.3-04",
    "MQ-2.2.20.5-04",
    "MQ-2.2.20.5-16",
    "MQ-2.2.20.6-09",
    "MQ-2.2.20.6-19",
    "MQ-2.2.20.6-20",
    "MQ-2.2.20.7-04",
    "MQ-2.2.20.7-12",
    "MQ-2.2.20.8-04",
    "MQ-2.2.20.8-07",
    "DM-3.1.7.1.32-22",
    "DM-3.1.7.1.32-23",
)
@given(messages(), sendings)
def test_no_reserved_bit_is_ever_sent(message: Message, sending: Sending) -> None:
    data = send(message, sending).encode()
    assert data[1] == 0
    assert int.from_bytes(data[2:4], "little") & (0xFEC0 | 0x0018) == 0
    assert int.from_bytes(data[60:64], "little") & (0xED000080 | 0x02000000) == 0
    packet = UserMessage.decode(data)
    assert packet.properties.flags & 0xF0 == 0
    if packet.transaction is not None:
        assert packet.transaction.flags & 0xFF000000 == 0
    if packet.security is not None:
        assert packet.security.flags & (0x0010 | 0x0F00 | 0xF000) == 0
    if packet.debug is not None:
        assert (packet.debug.flags & 0xFFFC, packet.debug.reserved) == (0, 0)
    if packet.soap is not None:
        assert (packet.soap.reserved, packet.soap.reserved1) == (0, 0)
    if packet.multi_queue_format is not None:
        lists = packet.multi_queue_format
        parts = (lists.destination, lists.administration, lists.response, lists.signature)
        assert [part.reserved for part in parts] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "queue_type", "address"),
    [
        pytest.param(
            PrivateFormatName(OTHER, 5),
            3,
            OTHER.bytes_le,
            marks=pytest.mark.requirement("MQ-2.2.19.2-05", "MQ-2.2.19.2-35"),
        ),
        pytest.param(
            PublicFormatName(QUEUE),
            5,
            HOST.bytes_le,
            marks=pytest.mark.requirement("MQ-2.2.19.2-05", "MQ-2.2.19.2-35"),
        ),
        pytest.param(
            DirectFormatName.from_wire(r"TCP:10.0.0.7\private$\q"),
            7,
            bytes(16),
            marks=pytest.mark.requirement("MQ-2.2.19.2-06", "DM-3.1.7.1.32-44"),
        ),
    ],
)
@pytest.mark.requirement("DM-3.1.7.1.32-73", "DM-3.1.7.1.31-32", "DM-3.1.7.1.31-58")
def test_the_destination_says_which_queue_manager_it_goes_to(
    name: SingleFormatName, queue_type: int, address: bytes
) -> None:
    message = plain_message()
    message.destination = name
    data = send(message).encode()
    assert data[32:48] == address
    assert int.from_bytes(data[60:64], "little") >> 10 & 7 == queue_type
    received = receive(data)
    assert received.destination == name
    assert (received.destination_queue_manager or UUID(int=0)).bytes_le == address


# Guide to MQMQ, 5.2: what the name is, and how it is then written with an administration queue
# on a third host, on the source, on the destination; "-" where it is the administration queue.
SOURCE_QUEUE = PrivateFormatName(SOURCE, 1)
HOST_QUEUE = PrivateFormatName(HOST, 2)
OTHER_QUEUE = PrivateFormatName(OTHER, 3)
THIRD_QUEUE = PrivateFormatName(UUID(int=77), 4)
PUBLIC_QUEUE = PublicFormatName(QUEUE)
DIRECT_QUEUE = DirectFormatName.from_wire(r"OS:Web\private$\Q")
ADMIN_TYPES: list[tuple[SingleFormatName | None, int]] = [
    (None, 0),
    (SOURCE_QUEUE, 2),
    (HOST_QUEUE, 3),
    (PUBLIC_QUEUE, 5),
    (OTHER_QUEUE, 6),
    (DIRECT_QUEUE, 7),
]
RESPONSE_NAMES: list[SingleFormatName | None] = [
    None,
    SOURCE_QUEUE,
    HOST_QUEUE,
    PUBLIC_QUEUE,
    OTHER_QUEUE,
    PrivateFormatName(SOURCE, 9),
    PrivateFormatName(HOST, 9),
    PrivateFormatName(OTHER, 9),
    THIRD_QUEUE,
    DIRECT_QUEUE,
]


def expected_response_type(name: SingleFormatName | None, admin: SingleFormatName | None) -> int:
    if name is None:
        return 0
    if name == admin:
        return 1
    if isinstance(name, PublicFormatName):
        return 5
    if isinstance(name, DirectFormatName):
        return 7
    assert isinstance(name, PrivateFormatName)
    hosts = {SOURCE: 2, HOST: 3}
    if name.computer in hosts:
        return hosts[name.computer]
    if isinstance(admin, PrivateFormatName) and admin.computer == name.computer:
        return 4
    return 6


@pytest.mark.requirement(
    "MQ-2.2.19.2-38",
    "MQ-2.2.19.2-46",
    "MQ-2.2.19.2-56",
    "DM-3.1.1.12-98",
    "DM-3.1.7.1.32-74",
    "DM-3.1.7.1.32-75",
    "DM-3.1.7.1.31-33",
    "DM-3.1.7.1.31-34",
    "DM-3.1.7.1.31-38",
    "DM-3.1.7.1.31-43",
    "DM-3.1.7.1.31-59",
    "DM-3.1.7.1.31-60",
)
@pytest.mark.parametrize("response", RESPONSE_NAMES, ids=str)
@pytest.mark.parametrize(("admin", "admin_type"), ADMIN_TYPES, ids=str)
def test_administration_and_response_queue_are_named_by_their_hosts(
    admin: SingleFormatName | None, admin_type: int, response: SingleFormatName | None
) -> None:
    # given a message to a private queue, with every pair of names
    message = plain_message()
    message.destination = PrivateFormatName(HOST, 8)
    message.administration_queue = admin
    message.acknowledgements = Acknowledge.FULL_RECEIVE if admin else Acknowledge.NONE
    message.response_queue = response
    # when it is sent
    data = send(message).encode()
    # then AQ and RQ follow the table, and reading gives the names back
    flags = int.from_bytes(data[60:64], "little")
    assert flags >> 13 & 7 == admin_type
    assert flags >> 16 & 7 == expected_response_type(response, admin)
    received = receive(data)
    assert (received.administration_queue, received.response_queue) == (admin, response)


def test_with_a_direct_destination_no_name_leans_on_the_destination() -> None:
    message = plain_message()
    message.response_queue = PrivateFormatName(UUID(int=0), 5)
    flags = int.from_bytes(send(message).encode()[60:64], "little")
    assert flags >> 16 & 7 == 6


def test_another_spelling_of_the_administration_queue_is_sent_as_it_is() -> None:
    message = plain_message()
    message.acknowledgements = Acknowledge.POSITIVE_ARRIVAL
    message.administration_queue = parse_format_name(r"DIRECT=OS:WEB\PRIVATE$\q")  # type: ignore[assignment]  # a single name
    message.response_queue = DIRECT_QUEUE
    assert message.administration_queue == DIRECT_QUEUE
    assert str(resent(message).response_queue) == str(DIRECT_QUEUE)


@pytest.mark.requirement("MQ-2.2.19.2-47")
def test_an_administration_queue_goes_with_acknowledgements_and_not_without() -> None:
    message = plain_message()
    message.administration_queue = SOURCE_QUEUE
    message.response_queue = SOURCE_QUEUE
    received = resent(message)
    assert received.administration_queue is None
    assert received.response_queue == SOURCE_QUEUE
    for bit in (1, 2, 4, 8):
        message.acknowledgements = Acknowledge(bit)
        assert resent(message).administration_queue == SOURCE_QUEUE
    message.administration_queue = None
    with pytest.raises(MessageError, match="administration queue") as caught:
        send(message)
    assert caught.value.status is MqStatus.INSUFFICIENT_PROPERTIES
    assert "administration_queue" in caught.value.hint


@pytest.mark.requirement("MQ-2.2.19.1-22", "DM-3.1.7.1.32-05", "DM-3.1.7.1.32-06")
@pytest.mark.parametrize(
    ("trace", "report_queue", "flags"), [(False, None, 3), (False, QUEUE, 3), (True, None, 0x123)]
)
def test_tracing_sets_tr_and_brings_a_debug_header(
    trace: bool, report_queue: UUID | None, flags: int
) -> None:
    message = plain_message()
    message.trace, message.report_queue = trace, report_queue
    packet = UserMessage.decode(send(message).encode())
    assert packet.base.flags == flags
    assert (packet.debug is not None) is trace


@pytest.mark.requirement("DM-3.1.7.1.32-63", "DM-3.1.7.1.32-64", "DM-3.1.7.1.31-48")
def test_a_report_queue_sets_qt() -> None:
    message = plain_message()
    message.trace = True
    assert send(message).encode().endswith(b"data" + bytes(4))
    message.report_queue = QUEUE
    data = send(message).encode()
    assert data.endswith(b"data\x01\0\0\0" + QUEUE.bytes_le)
    assert receive(data).report_queue == QUEUE


# Security


@pytest.mark.requirement("DM-3.1.7.1.30-03", "DM-3.1.7.1.30-46")
@pytest.mark.parametrize(
    "properties",
    [
        {"sender_id": bytes((1, 0, 0, 0, 0, 0, 0, 5))},
        {"sender_certificate": b"c"},
        {"signature": b"s"},
        {"symmetric_key": b"k", "privacy_level": PrivacyLevel.BASE},
    ],
    ids=lambda properties: next(iter(properties)),
)
def test_whatever_concerns_security_brings_the_security_header(
    properties: dict[str, bytes],
) -> None:
    assert send(plain_message()).security is None
    message = plain_message()
    for name, value in properties.items():
        setattr(message, name, value)
    if message.sender_id:
        message.sender_id_type = SenderIdType.SID
    data = send(message).encode()
    assert int.from_bytes(data[60:64], "little") & 0x00080000
    received = receive(data)
    assert {name: getattr(received, name) for name in properties} == properties


@pytest.mark.requirement("MQ-2.2.20.6-16")
def test_ai_is_set_when_there_is_more_than_the_sender() -> None:
    message = plain_message()
    message.sender_id, message.sender_id_type = bytes(16), SenderIdType.QUEUE_MANAGER
    assert send(message).encode()[80:82] == b"\x02\x00"
    message.sender_certificate = b"cert"
    assert send(message).encode()[80:82] == b"\x82\x00"


@pytest.mark.requirement(
    "DM-3.1.7.1.32-27", "DM-3.1.7.1.30-23", "DM-3.1.7.1.30-30", "MQ-2.2.20.6-13", "MQ-2.2.20.6-51"
)
def test_de_tells_whether_the_default_provider_signed() -> None:
    message = plain_message()
    message.signature = b"sign"
    default = send(message)
    message.provider = CryptographicProvider("Mine", 24)
    other = send(message)
    assert default.encode()[80:82] == b"\xc0\x00"
    assert default.encode()[92:96] == bytes(4)  # no ProviderInfo
    assert other.encode()[80:82] == b"\x80\x00"
    assert receive(other.encode()).provider == CryptographicProvider("Mine", 24)


@pytest.mark.requirement("DM-3.1.7.1.32-24", "DM-3.1.7.1.32-70", "DM-3.1.7.1.31-55")
@pytest.mark.parametrize(
    ("level", "number", "name"),
    [(level, number, level.name) for level, number in zip(PrivacyLevel, (0, 1, 3, 5), strict=True)],
)
def test_a_private_body_sets_eb(level: PrivacyLevel, number: int, name: str) -> None:
    assert name == {0: "NONE", 1: "BASE", 3: "ENHANCED", 5: "ADVANCED"}[number]
    message = Message(b"", destination=r"DIRECT=OS:h\q", privacy_level=level, symmetric_key=b"key!")
    packet = UserMessage.decode(send(message).encode())
    assert packet.properties.privacy_level == number
    assert packet.security is not None
    assert bool(packet.security.flags & 0x20) is bool(number)
    assert from_user_message(packet).privacy_level is level


def test_a_body_without_a_key_says_that_it_is_to_be_encrypted() -> None:
    message = plain_message()
    message.privacy_level = PrivacyLevel.BASE
    packet = send(message)
    assert packet.properties.privacy_level == PrivacyLevel.BASE
    assert packet.security is None
    message.sender_certificate = b"certificate"
    packet = send(message)
    assert packet.security is not None
    assert not packet.security.flags & ENCRYPTED_BODY


def test_a_sender_that_is_still_to_be_named_is_not_in_a_packet() -> None:
    message = plain_message()
    assert message.sender_id_type is SenderIdType.SID
    assert send(message).security is None
    message.sender_certificate = b"certificate"
    packet = UserMessage.decode(send(message).encode())
    assert packet.security is not None
    assert packet.security.flags & SENDER_ID_TYPE == SENDER_ID_NONE


@pytest.mark.requirement("DM-3.1.7.1.31-49")
@pytest.mark.parametrize(
    ("signature_type", "level"), [(0, "NONE"), (1, "SIG10"), (3, "SIG20"), (5, "SIG30")]
)
def test_the_verified_signature_is_read_from_our_own_copy_only(
    signature_type: int, level: str
) -> None:
    packet = UserMessage.decode(FULL_BYTES)
    assert packet.security is not None
    packet.security.flags |= signature_type << 8 | 0x10
    assert from_user_message(packet).authentication_level is AuthenticationLevel.NONE
    assert not from_user_message(packet).is_authenticated
    own = from_user_message(packet, is_verified_copy=True)
    assert own.authentication_level is AuthenticationLevel[level]


@pytest.mark.requirement("DM-3.1.7.1.32-76", "DM-3.1.7.1.32-30", "DM-3.1.7.1.31-61")
@pytest.mark.parametrize(
    ("name", "number", "sender_id"),
    [
        ("NONE", 0, b""),
        ("SID", 1, bytes.fromhex("01 01 000000000005 12000000")),
        ("QUEUE_MANAGER", 2, SOURCE.bytes_le),
    ],
)
def test_the_kind_of_sender_id_is_st(name: str, number: int, sender_id: bytes) -> None:
    message = plain_message()
    message.sender_certificate = b"cert"
    message.sender_id, message.sender_id_type = sender_id, SenderIdType[name]
    data = send(message).encode()
    assert data[80] & 0x0F == number
    assert receive(data).sender_id_type is SenderIdType[name]
    assert receive(data).sender_id == sender_id


@pytest.mark.parametrize("field", ["sender_certificate", "signature", "symmetric_key"])
def test_a_security_item_that_no_packet_holds_is_refused(field: str) -> None:
    message = plain_message()
    setattr(message, field, bytes(0x10000))
    with pytest.raises(MessageError, match="65536 bytes") as caught:
        send(message)
    assert caught.value.field == field
    setattr(message, field, bytes(0xFFFF))
    assert getattr(resent(message), field) == bytes(0xFFFF)


# Numbers of the tables

HASHES = {
    0x8001: "MD2",
    0x8002: "MD4",
    0x8003: "MD5",
    0x8004: "SHA1",
    0x800C: "SHA_256",
    0x800E: "SHA_512",
}
CIPHERS = {0x6602: "RC2", 0x6801: "RC4", 0x6610: "AES256", 0x660E: "AES128", 0x660F: "AES192"}
CLASSES = {
    0x0000: "NORMAL",
    0x0001: "REPORT",
    0x0002: "ACK_REACH_QUEUE",
    0x4000: "ACK_RECEIVE",
    0x8000: "NACK_BAD_DST_Q",
    0x8001: "NACK_DELETED",
    0x8002: "NACK_REACH_QUEUE_TIMEOUT",
    0x8003: "NACK_Q_EXCEED_QUOTA",
    0x8004: "NACK_ACCESS_DENIED",
    0x8005: "NACK_HOP_COUNT_EXCEEDED",
    0x8006: "NACK_BAD_SIGNATURE",
    0x8007: "NACK_BAD_ENCRYPTION",
    0x8009: "NACK_NOT_TRANSACTIONAL_Q",
    0x800A: "NACK_NOT_TRANSACTIONAL_MSG",
    0x800B: "NACK_UNSUPPORTED_CRYPTO_PROVIDER",
    0xC000: "NACK_Q_DELETED",
    0xC001: "NACK_Q_PURGED",
    0xC002: "NACK_RECEIVE_TIMEOUT",
    0xC004: "NACK_RECEIVE_REJECTED",
    0x00FF: "ORDER_ACK",
    0x8008: "NACK_COULD_NOT_ENCRYPT",
    0x800C: "NACK_SOURCE_COMPUTER_GUID_CHANGED",
    0xC003: "NACK_RECEIVE_TIMEOUT_AT_SENDER",
}


@pytest.mark.requirement("DM-3.1.7.1.32-72", "DM-3.1.7.1.31-57", "DM-3.1.1.12-88")
@pytest.mark.parametrize(("number", "name"), HASHES.items())
def test_a_hash_algorithm_has_its_number(number: int, name: str) -> None:
    message = plain_message()
    message.hash_algorithm = HashAlgorithm[name]
    data = send(message).encode()
    assert int.from_bytes(data[124:128], "little") == number
    assert receive(data).hash_algorithm is HashAlgorithm[name]
    assert HashAlgorithm["SHA"] is HashAlgorithm["SHA1"]
    assert len(HashAlgorithm) == len(HASHES)


@pytest.mark.requirement("DM-3.1.7.1.32-71", "DM-3.1.7.1.31-56")
@pytest.mark.parametrize(("number", "name"), CIPHERS.items())
def test_an_encryption_algorithm_has_its_number(number: int, name: str) -> None:
    message = plain_message()
    message.encryption_algorithm = EncryptionAlgorithm[name]
    data = send(message).encode()
    assert int.from_bytes(data[128:132], "little") == number
    assert receive(data).encryption_algorithm is EncryptionAlgorithm[name]


@pytest.mark.requirement(
    "DM-3.1.7.1.31-12",
    "DM-3.1.7.1.31-50",
    "DM-3.1.7.1.31-51",
    "DM-3.1.7.1.31-52",
    "DM-3.1.7.1.31-53",
    "DM-3.1.7.1.32-65",
    "DM-3.1.7.1.32-67",
    "DM-3.1.7.1.32-68",
    "DM-3.1.7.1.32-69",
)
@pytest.mark.parametrize(("number", "name"), CLASSES.items())
def test_a_message_class_has_its_number(number: int, name: str) -> None:
    message = plain_message()
    message.message_class = MessageClass[name]
    data = send(message).encode()
    assert data[82:84] == number.to_bytes(2, "little")
    assert receive(data).message_class is MessageClass[name]


@pytest.mark.requirement("DM-3.1.7.1.31-54", "DM-3.1.7.1.32-69")
@pytest.mark.parametrize("number", [0x0021, 0xE1FF, 0x2000])
def test_a_class_of_the_application_keeps_its_number(number: int) -> None:
    message = plain_message()
    message.message_class = number
    assert send(message).encode()[82:84] == number.to_bytes(2, "little")
    assert resent(message).message_class == number


@pytest.mark.requirement("MQ-2.2.18.1.6-22", "DM-3.1.1.12-32")
@pytest.mark.parametrize("bit", [0x0200, 0x0400, 0x0800, 0x1000])
def test_a_class_outside_the_mask_is_refused_on_send_and_taken_on_receipt(bit: int) -> None:
    message = plain_message()
    message.message_class = bit
    with pytest.raises(MessageError, match="0xE1FF"):
        send(message)
    data = bytearray(PLAIN_BYTES)
    data[82:84] = bit.to_bytes(2, "little")
    assert receive(bytes(data)).message_class == bit


def test_numbers_nobody_knows_are_kept() -> None:
    data = bytearray(PLAIN_BYTES)
    data[120:124] = b"\x09\0\0\0"
    data[124:128] = b"\x01\x02\0\0"
    data[128:132] = b"\x03\x04\0\0"
    data[60] |= 0x60  # a delivery mode that means nothing is taken for the safer one
    message = receive(bytes(data))
    assert (message.privacy_level, message.hash_algorithm) == (9, 0x0201)
    assert message.encryption_algorithm == 0x0403
    assert message.delivery is Delivery.RECOVERABLE


# Labels, bodies, sizes


@pytest.mark.requirement(
    "MQ-2.4-03", "MQ-2.2.19.3-10", "MQ-2.2.19.3-11", "DM-3.1.7.1.32-08", "DM-3.1.7.1.32-19"
)
@pytest.mark.parametrize(("size", "length"), [(0, 0), (1, 2), (2, 3), (249, 250)])
def test_label_length_counts_the_nul(size: int, length: int) -> None:
    message = Message(b"B", label="x" * size, destination=r"DIRECT=OS:h\q")
    data = send(message).encode()
    assert data[81] == length
    assert data[80 + 56 + 2 * length] == ord("B")
    assert receive(data).label == "x" * size
    message.label = "x" * 250
    with pytest.raises(MessageError) as caught:
        send(message)
    assert caught.value.status == 0xC00E005D


def test_a_message_too_large_for_a_packet_is_refused_with_advice() -> None:
    message = plain_message()
    message.body = bytes(0x400000 - 136)
    assert len(send(message).encode()) == 0x400000
    message.body = bytes(0x400000 - 135)
    with pytest.raises(MessageError, match="a packet holds 4194304") as caught:
        send(message)
    assert caught.value.status is MqStatus.INSUFFICIENT_RESOURCES
    assert caught.value.hint


# What must not be sent


@pytest.mark.parametrize(
    ("field", "name"),
    [
        (field, name)
        for field in ("destination", "response_queue", "administration_queue")
        for name in (
            PrivateFormatName(HOST, 1, Suffix.JOURNAL),
            DirectFormatName.from_wire(r"OS:h\q;sub"),
            MachineFormatName(HOST, Suffix.DEADLETTER),
            DistributionListFormatName(QUEUE),
        )
    ],
    ids=str,
)
def test_a_queue_that_nobody_can_send_to_is_refused(field: str, name: SingleFormatName) -> None:
    message = plain_message()
    message.acknowledgements = Acknowledge.FULL_RECEIVE
    message.administration_queue = SOURCE_QUEUE
    setattr(message, field, name)
    with pytest.raises(MessageError) as caught:
        send(message)
    assert caught.value.field == field
    assert caught.value.status is MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    assert caught.value.hint


def test_a_message_without_destination_is_refused() -> None:
    with pytest.raises(MessageError, match="destination") as caught:
        send(Message("lost"))
    assert caught.value.status is MqStatus.INSUFFICIENT_PROPERTIES


def test_a_public_destination_needs_its_host() -> None:
    message = Message("hello", destination=PublicFormatName(QUEUE))
    with pytest.raises(MessageError, match="which queue manager hosts"):
        to_user_message(message, source_queue_manager=SOURCE, message_id=1, sent_time=0)


def test_a_property_spoilt_after_the_message_was_made_is_refused_on_send() -> None:
    message = plain_message()
    message.priority = 8  # would set IN
    with pytest.raises(MessageError, match="priority"):
        send(message)


# Several destinations


@pytest.mark.requirement("DM-3.1.1.12-61", "DM-3.1.1.12-63")
@pytest.mark.parametrize(
    "field", ["destination", "response_queue", "destinations", "administration_queues"]
)
def test_a_multiple_element_name_is_no_single_name(field: str) -> None:
    several = MultipleElementFormatName((HOST_QUEUE, OTHER_QUEUE))
    message = plain_message()
    is_list = field.endswith("s")
    own = (DIRECT_QUEUE,) if field == "destinations" else ()
    message.destination = DIRECT_QUEUE
    setattr(message, field, (*own, several) if is_list else several)
    with pytest.raises(MessageError, match=rf"^{field}: a packet cannot name"):
        send(message)


@pytest.mark.requirement("DM-3.1.1.12-62")
def test_the_destination_is_one_of_the_destinations() -> None:
    message = plain_message()
    message.destinations = (HOST_QUEUE, OTHER_QUEUE)
    with pytest.raises(MessageError, match="none of the destinations"):
        send(message)
    message.destination = OTHER_QUEUE
    assert resent(message).destinations == (HOST_QUEUE, OTHER_QUEUE)


def test_a_member_of_a_distribution_list_is_a_fitting_destination() -> None:
    message = plain_message()
    message.destinations = (HOST_QUEUE, DistributionListFormatName(QUEUE))
    assert resent(message).destinations == message.destinations


def test_a_list_names_no_queue_that_has_no_binary_form() -> None:
    message = plain_message()
    message.response_queues = (MachineFormatName(HOST, Suffix.JOURNAL),)
    with pytest.raises(MessageError, match="response_queues"):
        send(message)


# What is received

FULL = receive(FULL_BYTES)
PLAIN = receive(PLAIN_BYTES)
READ_ROWS: list[tuple[int, str, object, object]] = [
    (4, "trace", True, False),
    (5, "time_to_reach_queue", 3600, 345600),
    (6, "body_type", 17, 0),
    (7, "encryption_algorithm", 0x660F, 0x6801),
    (8, "hash_algorithm", 0x8003, 0x800E),
    (9, "application_tag", 0xCAFE, 0),
    (10, "correlation_id", bytes(range(0xD0, 0xE4)), bytes(20)),
    (11, "acknowledgements", 5, 0),
    (12, "message_class", 0x4000, 0),
    (13, "extension", b"\xf1\xf2", b""),
    (14, "label", "hi", ""),
    (15, "body", b"\x01\x02\x03", b"data"),
    (16, "privacy_level", 5, 0),
    (17, "provider", CryptographicProvider("P", 24), None),
    (18, "provider", CryptographicProvider("P", 24), None),
    (19, "sender_id_type", 1, 0),
    (20, "symmetric_key", bytes.fromhex("a1a2a3a4a5"), b""),
    (21, "sender_id", bytes.fromhex("010100000000000512000000"), b""),
    (22, "sender_certificate", bytes.fromhex("c1c2c3c4c5c6c7"), b""),
    (30, "destination_queue_manager", HOST, None),
    (31, "sent_time", 0x65000001, 0x65000001),
    (35, "time_to_be_received", 900, 0xFFFFFFFF),
    (36, "id", SOURCE.bytes_le + b"\x34\x12\0\0", SOURCE.bytes_le + b"\x34\x12\0\0"),
    (37, "source_queue_manager", SOURCE, SOURCE),
    (38, "administration_queue", PrivateFormatName(OTHER, 0x22), None),
    (39, "destination", PrivateFormatName(HOST, 0x11), parse_format_name(r"DIRECT=OS:h\q")),
    (40, "delivery", 1, 0),
    (41, "journal", 1, 2),
    (42, "journal", 1, 2),
    (43, "response_queue", PrivateFormatName(OTHER, 0x33), None),
    (44, "destinations", full_message().destinations, ()),
    (45, "administration_queues", (PublicFormatName(QUEUE),), ()),
    (46, "response_queues", full_message().response_queues, ()),
    (47, "multiple_destination_signature", bytes.fromhex("91929394"), b""),
    (48, "report_queue", UUID(bytes=b"\x72" * 16), None),
    (62, "signature", bytes.fromhex("b1b2b3b4b5b6"), b""),
    (62, "connector_type", UUID(bytes=b"\x70" * 16), None),
]


@pytest.mark.parametrize(
    ("field", "full", "plain"),
    [
        pytest.param(
            field,
            full,
            plain,
            marks=pytest.mark.requirement(f"DM-3.1.7.1.31-{number:02}"),
            id=f"{number}-{field}",
        )
        for number, field, full, plain in READ_ROWS
    ],
)
def test_a_property_is_read_from_its_field(field: str, full: object, plain: object) -> None:
    assert getattr(FULL, field) == full
    assert getattr(PLAIN, field) == plain


@pytest.mark.requirement(
    *(f"DM-3.1.7.1.31-{number}" for number in (23, 24, 25, 26, 27, 28, 29, 62))
)
def test_the_transaction_is_read_from_its_header() -> None:
    assert FULL.transaction == full_message().transaction
    assert PLAIN.transaction is None
    flipped = FULL_BYTES.replace(bytes.fromhex("ebcdab00"), bytes.fromhex("e4cdabff"), 1)
    without_connector = flipped.replace(b"\x71" * 16, b"", 1)
    size = struct.pack("<I", len(without_connector))
    transaction = receive(without_connector[:8] + size + without_connector[12:]).transaction
    assert transaction == MessageTransaction(0x65000002_00000007, 9, 8, id=0xABCDE, is_first=True)


@pytest.mark.requirement("DM-3.1.7.1.31-03")
@pytest.mark.parametrize("priority", range(8))
def test_the_priority_is_read_from_pr(priority: int) -> None:
    data = bytearray(PLAIN_BYTES)
    data[2] = priority
    assert receive(bytes(data)).priority == priority


@pytest.mark.requirement("DM-3.1.7.1.32-04")
def test_the_priority_of_a_transactional_message_is_0_whatever_pr_says() -> None:
    data = bytearray(FULL_BYTES)
    data[2] |= 7
    assert receive(bytes(data)).priority == 0


@pytest.mark.requirement("DM-3.1.7.1.31-01", "DM-3.1.7.1.31-02")
def test_a_missing_header_leaves_the_defaults() -> None:
    expected = plain_message()
    expected.id = MessageId.of(SOURCE, 0x1234)
    expected.sent_time = 0x65000001
    expected.time_to_reach_queue = 345600
    expected.sender_id_type = SenderIdType.NONE  # nobody is named: DM-3.1.1.12-102
    assert expected == PLAIN


@pytest.mark.requirement("DM-3.1.7.1.31-11")
def test_unknown_acknowledgement_bits_are_ignored() -> None:
    data = bytearray(PLAIN_BYTES)
    data[80] = 0xF4
    assert receive(bytes(data)).acknowledgements is Acknowledge.NEGATIVE_ARRIVAL


@pytest.mark.requirement("MQ-2.2.19.2-48")
def test_acknowledgements_without_administration_queue_are_taken_on_receipt() -> None:
    data = bytearray(PLAIN_BYTES)
    data[80] = 0x0F
    message = receive(bytes(data))
    assert message.acknowledgements == 0x0F
    assert message.administration_queue is None


@pytest.mark.parametrize("response_type", [3, 4])
def test_a_private_name_whose_host_the_packet_does_not_tell_has_the_null_guid(
    response_type: int,
) -> None:
    head = bytearray(PLAIN_BYTES[:80])
    head[60:64] = (0x00201C00 | response_type << 16).to_bytes(4, "little")
    data = bytes(head) + b"\x05\0\0\0" + PLAIN_BYTES[80:]
    data = data[:8] + struct.pack("<I", len(data)) + data[12:]
    assert receive(data).response_queue == PrivateFormatName(UUID(int=0), 5)


@pytest.mark.parametrize(("admin_type", "host"), [(2, SOURCE), (3, HOST)])
def test_a_response_queue_beside_the_administration_queue_is_on_its_host(
    admin_type: int, host: UUID
) -> None:
    message = plain_message()
    message.destination = PrivateFormatName(HOST, 8)
    message.acknowledgements = Acknowledge.FULL_RECEIVE
    message.administration_queue = PrivateFormatName(host, 1)
    message.response_queue = PrivateFormatName(host, 2)
    data = bytearray(send(message).encode())
    assert int.from_bytes(data[60:64], "little") >> 13 & 7 == admin_type
    data[62] = data[62] & 0xF8 | 4  # RQ 4, as another sender may put it
    assert receive(bytes(data)).response_queue == PrivateFormatName(host, 2)


def test_a_very_long_direct_name_is_read_too() -> None:
    long_name = DirectFormatName.from_wire("OS:h\\" + "q" * 600)
    message = plain_message()
    message.response_queue = long_name
    assert resent(message).response_queue == long_name


def test_the_body_of_a_message_does_not_hold_on_to_the_packet() -> None:
    buffer = bytearray(PLAIN_BYTES)
    message = from_user_message(UserMessage.decode(buffer))
    buffer[-4:] = b"gone"
    assert message.body == b"data"
    assert isinstance(message.body, bytes)


# Where each field stands: header, offset in it and bytes, spelt from the rows of MQDMPR 3.1.7.1.30.
BASE, USER, TRANSACTION, SECURITY, PROPERTIES = 0, 16, 108, 144, 204
DEBUG, SOAP, MULTI_QUEUE_FORMAT = 272, 292, 316
FIELD_ROWS: list[tuple[int, int, str]] = [
    (9, BASE + 8, "bc010000"),
    (10, BASE + 12, "100e0000"),
    (11, USER, SOURCE_BYTES),
    (12, USER + 16, HOST_BYTES),
    (13, USER + 32, "84030000"),
    (14, USER + 36, "01000065"),
    (17, USER + 48, "11000000" + OTHER_BYTES + "22000000 33000000" + "70" * 16),
    (20, TRANSACTION, "ebcdab00"),
    (21, TRANSACTION + 4, "07000000 02000065 09000000 08000000"),
    (22, TRANSACTION + 20, "71" * 16),
    (23, SECURITY, "a100"),
    (24, SECURITY + 2, "0c00"),
    (25, SECURITY + 4, "0500"),
    (26, SECURITY + 6, "0600"),
    (27, SECURITY + 8, "07000000"),
    (28, SECURITY + 12, "08000000"),
    (29, SECURITY + 16, "010100000000000512000000 a1a2a3a4a5000000 b1b2b3b4b5b60000 c1c2c3c4"),
    (30, SECURITY + 52, "18000000 5000 0000"),
    (32, PROPERTIES + 1, "03"),
    (33, PROPERTIES + 2, "0040"),
    (34, PROPERTIES + 4, "d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3"),
    (35, PROPERTIES + 24, "11000000 feca0000"),
    (36, PROPERTIES + 32, "03000000 03000000"),
    (37, PROPERTIES + 40, "05000000 03800000 0f660000"),
    (38, PROPERTIES + 52, "02000000 680069000000 f1f2 010203 00"),
    (39, DEBUG, "0100 0000" + "72" * 16),
    (40, SOAP, "2003 0000 02000000 68000000 8403 0000 02000000 62000000"),
    (41, MULTI_QUEUE_FORMAT + 52, "20000000 c800"),
    (42, MULTI_QUEUE_FORMAT, "34000000 6400 0000 02000000 0200"),
    (43, MULTI_QUEUE_FORMAT + 12, "02000000" + HOST_BYTES + "11000000 0300 4f00"),
    (44, MULTI_QUEUE_FORMAT + 116, "5e01 0000 04000000 91929394"),
]


@pytest.mark.parametrize(
    ("offset", "field"),
    [
        pytest.param(
            offset,
            field,
            marks=pytest.mark.requirement(f"DM-3.1.7.1.30-{number:02}"),
            id=f"{number}-{offset}",
        )
        for number, offset, field in FIELD_ROWS
    ],
)
def test_a_field_stands_at_its_offset(offset: int, field: str) -> None:
    expected = bytes.fromhex(field)
    assert send(full_message()).encode()[offset : offset + len(expected)] == expected


@pytest.mark.requirement("DM-3.1.7.1.30-09")
def test_the_size_of_a_packet_leaves_out_the_session_header() -> None:
    packet = send(full_message())
    packet.session = SessionHeader(1, 2, 3, 4, 5)
    data = packet.encode()
    assert (len(data), data[8:12].hex()) == (444 + 16, "bc010000")
    assert receive(data) == FULL


@pytest.mark.requirement("DM-3.1.7.1.30-08")
def test_the_bits_of_the_base_header() -> None:
    message = plain_message()
    for priority in range(8):
        message.priority = priority
        assert send(message).encode()[2:4] == bytes((priority, 0))
    message.priority, message.trace = 0, True
    packet = send(message)
    assert packet.encode()[2:4].hex() == "2001"
    packet.session = SessionHeader(1, 2, 3, 4, 5)
    assert packet.encode()[2:4].hex() == "3001"
    data = bytearray(PLAIN_BYTES)
    data[2:4] = (0x0003 | 0xFEC0).to_bytes(2, "little")
    assert receive(bytes(data)) == PLAIN
    data[2] |= 0x08
    with pytest.raises(WireError, match="IN is set"):
        receive(bytes(data))


@pytest.mark.requirement("DM-3.1.7.1.30-16")
@pytest.mark.parametrize(
    ("change", "flags"),
    [
        ({"hop_count": 0x1D}, 0x0000001D),
        ({"delivery": Delivery.RECOVERABLE}, 0x00000020),
        ({"journal": Journal.DEAD_LETTER}, 0x00000100),
        ({"journal": Journal.JOURNAL}, 0x00000200),
        ({"acknowledgements": 1, "administration_queue": DIRECT_QUEUE}, 0x0000E000),
        ({"response_queue": DIRECT_QUEUE}, 0x00070000),
        ({"sender_certificate": b"cert"}, 0x00080000),
        ({"transaction": MessageTransaction(1, 1)}, 0x00100020),
        ({"connector_type": QUEUE}, 0x00400000),
        ({"response_queues": (DIRECT_QUEUE,)}, 0x00800000),
        ({"soap_body": "b"}, 0x10000000),
    ],
    ids=str,
)
def test_the_bits_of_the_user_header(change: dict[str, object], flags: int) -> None:
    message = plain_message()
    message.journal = Journal.NONE
    for field, value in change.items():
        setattr(message, field, value)
    data = send(message).encode()
    assert int.from_bytes(data[60:64], "little") == 0x00201C00 | flags
    received = receive(data)
    assert {field: getattr(received, field) for field in change} == change
    marked = bytearray(data)
    marked[63] |= 0x02  # AH says nothing to us
    assert receive(bytes(marked)) == received


@pytest.mark.requirement("DM-3.1.7.1.30-18")
@pytest.mark.parametrize(
    ("response", "field"),
    [
        (None, ""),
        (PrivateFormatName(SOURCE, 0x51), "51000000"),
        (PrivateFormatName(HOST, 0x52), "52000000"),
        (PublicFormatName(QUEUE), QUEUE_BYTES),
        (PrivateFormatName(QUEUE, 0x53), QUEUE_BYTES + "53000000"),
        (DirectFormatName.from_wire(r"OS:h\q"), "0e00 4f0053003a0068005c0071000000"),
        (PrivateFormatName(OTHER, 0x54), "54000000"),  # beside the administration queue
        (PrivateFormatName(OTHER, 0x22), ""),  # the administration queue
    ],
    ids=str,
)
def test_the_bytes_of_a_queue_name_follow_its_type(
    response: SingleFormatName | None, field: str
) -> None:
    message = plain_message()
    message.destination = PrivateFormatName(HOST, 0x11)
    message.acknowledgements = Acknowledge.POSITIVE_ARRIVAL
    message.administration_queue = PrivateFormatName(OTHER, 0x22)
    message.response_queue = response
    names = bytes.fromhex("11000000" + OTHER_BYTES + "22000000" + field)
    properties = bytes.fromhex("01 00 0000")
    assert send(message).encode()[64 : 64 + len(names) + 4] == names + properties


@pytest.mark.requirement("DM-3.1.7.1.30-19")
@pytest.mark.parametrize(
    ("name", "field"),
    [
        (r"DIRECT=OS:h\q", "0e00 4f0053003a0068005c0071000000"),
        (r"DIRECT=OS:h\qr", "1000 4f0053003a0068005c00710072000000 0000"),
    ],
)
def test_a_direct_name_is_counted_ended_and_padded(name: str, field: str) -> None:
    message = Message(b"", destination=name)
    expected = bytes.fromhex(field) + bytes(4)
    assert send(message).encode()[64 : 64 + len(expected)] == expected


@pytest.mark.requirement("DM-3.1.7.1.30-31", "DM-3.1.7.1.32-16", "DM-3.1.7.1.31-11")
@pytest.mark.parametrize(
    ("name", "bit"),
    [
        ("POSITIVE_ARRIVAL", 0x01),
        ("POSITIVE_RECEIVE", 0x02),
        ("NEGATIVE_ARRIVAL", 0x04),
        ("NEGATIVE_RECEIVE", 0x08),
    ],
)
def test_each_acknowledgement_is_a_bit_of_its_own(name: str, bit: int) -> None:
    message = plain_message()
    message.acknowledgements = Acknowledge[name]
    message.administration_queue = SOURCE_QUEUE
    data = send(message).encode()
    assert data[84] == bit  # behind the 4 bytes of the administration queue
    assert receive(data).acknowledgements is Acknowledge[name]


@pytest.mark.requirement("DM-3.1.7.1.30-45")
def test_numbers_are_little_endian_and_padding_may_hold_anything() -> None:
    data = bytearray(FULL_BYTES)
    assert data[USER + 40 : USER + 44] == (0x1234).to_bytes(4, "little")
    for start, stop in ((177, 180), (186, 188), (195, 196), (271, 272)):
        assert not any(data[start:stop])
        data[start:stop] = b"\xff" * (stop - start)
    assert receive(bytes(data)) == FULL


# Both ways


def as_received(message: Message, sending: Sending) -> Message:
    """The message with what the packet adds to it."""
    expected = copy.copy(message)
    expected.id = MessageId.of(sending.source_queue_manager, sending.message_id)
    expected.sent_time = sending.sent_time
    destination = message.destination
    if isinstance(destination, PrivateFormatName):
        expected.destination_queue_manager = destination.computer
    elif isinstance(destination, PublicFormatName):
        expected.destination_queue_manager = sending.destination_queue_manager
    return expected


@pytest.mark.requirement("DM-3.1.7.1.31-62")
@settings(max_examples=200)
@given(messages(), sendings)
def test_what_was_sent_is_what_is_received(message: Message, sending: Sending) -> None:
    expected = as_received(message, sending)
    packet = send(message, sending)
    assert from_user_message(packet) == expected
    received = receive(packet.encode())
    assert received == expected
    assert str(received.response_queue) == str(message.response_queue)


@given(user_messages())
def test_any_packet_that_can_be_read_is_a_message(packet: UserMessage) -> None:
    message = from_user_message(packet)
    assert message == from_user_message(packet)
    assert len(repr(message)) < 1000


@given(st.data())
def test_a_received_message_can_be_sent_again_or_is_refused_by_name(data: st.DataObject) -> None:
    message = from_user_message(data.draw(user_messages()))
    try:
        packet = send(message)
    except MessageError as error:
        assert error.field
        return
    assert from_user_message(packet).body == message.body
