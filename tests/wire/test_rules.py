"""Rules that decoders let pass: each is found, and a packet that breaks none is clean."""

from __future__ import annotations

import csv
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import rules
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.connection_parameters import ConnectionParameters
from falconmq.wire.debug_header import DebugHeader
from falconmq.wire.establish_connection import EstablishConnection
from falconmq.wire.message_properties_header import MessagePropertiesHeader
from falconmq.wire.multi_queue_format_header import (
    DESTINATION_ID,
    MQFAddressHeader,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from falconmq.wire.ordering_acks import FinalAck, FinalAckBody, OrderAck, OrderAckBody
from falconmq.wire.packet import decode_packet
from falconmq.wire.ping import Ping
from falconmq.wire.rules import Finding, check
from falconmq.wire.security_header import ProviderInfo, SecurityHeader
from falconmq.wire.session_ack import SessionAck
from falconmq.wire.session_header import SessionHeader
from falconmq.wire.sid import EVERYONE
from falconmq.wire.soap_header import SoapHeader
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import UserHeader
from falconmq.wire.user_message import UserMessage

ROOT = Path(__file__).parents[2]
SOURCE, DESTINATION = bytes(range(16)), bytes(range(16, 32))
DIRECT = 7 << 10
RECOVERABLE = 1 << 5
ADMIN_ON_SOURCE = 2 << 13
MP = 1 << 21


def message() -> UserMessage:
    """A message that breaks no rule."""
    user = UserHeader(SOURCE, bytes(16), 0xFFFFFFFF, 1700000000, 1, DIRECT | MP, "OS:h\\q")
    properties = MessagePropertiesHeader(label="hi", message_body=b"body")
    return UserMessage(BaseHeader(3, 20), user, properties)


def transactional() -> UserMessage:
    sent = message()
    sent.base.flags = 0
    sent.user.flags |= RECOVERABLE
    sent.transaction = TransactionHeader(0, 5, 2, 1)
    return sent


def secured() -> UserMessage:
    sent = message()
    sent.security = SecurityHeader(1, security_id=EVERYONE.encode())
    return sent


def order_ack() -> UserMessage:
    return OrderAck(OrderAckBody.up_to(5, 2)).to_user_message(
        source_queue_manager=SOURCE, destination=DESTINATION, sent_time=1, message_id=2
    )


def final_ack() -> UserMessage:
    return FinalAck(FinalAckBody(5, 2, 1, SOURCE, 3)).to_user_message(
        source_queue_manager=SOURCE, destination="10.0.0.7", sent_time=1, message_id=2
    )


def establish() -> EstablishConnection:
    return EstablishConnection.request(SOURCE, DESTINATION, uptime_ms=5)


def parameters() -> ConnectionParameters:
    return ConnectionParameters(500, 20000)


def session_ack() -> SessionAck:
    return SessionAck(SessionHeader(1, 1, 1, 1, 0))


ORDER_ACK_BODY = OrderAckBody.up_to(5, 2).encode()
CLEAN = [message, transactional, secured, order_ack, final_ack, establish, parameters, session_ack]


@pytest.mark.parametrize("make", CLEAN)
def test_a_packet_that_breaks_no_rule_has_no_findings(make: Callable[[], object]) -> None:
    assert check(make(), is_response=True) == []


# How to break each rule: a clean packet, the fields to spoil (with | bits are set, with &~ they are
# cleared), the row that is found.
BROKEN: list[tuple[Callable[[], object], dict[str, object], str]] = [
    (message, {"base.flags |": 0x40}, "MQ-2.2.19.1-19"),
    (message, {"base.flags |": 0x80}, "MQ-2.2.19.1-19"),
    (message, {"base.flags |": 0x200}, "MQ-2.2.19.1-24"),
    (message, {"base.flags |": 0x8000}, "MQ-2.2.19.1-24"),
    (message, {"base.flags |": 0x100}, "MQ-2.2.19.1-23"),
    (establish, {"base.flags |": 0x40}, "MQ-2.2.19.1-19"),
    (establish, {"base.flags |": 0x20}, "MQ-2.2.19.1-17"),
    (establish, {"base.flags |": 0x100}, "MQ-2.2.19.1-23"),
    (establish, {"base.flags |": 0x10}, "MQ-2.2.19.1-15"),
    (parameters, {"base.flags |": 0x10}, "MQ-2.2.19.1-15"),
    (establish, {"base.time_to_reach_queue": 5}, "MQ-2.2.19.1-41"),
    (session_ack, {"base.time_to_reach_queue": 5}, "MQ-2.2.19.1-41"),
    (parameters, {"internal.reserved": 1}, "QB-2.2.1-02"),
    (parameters, {"internal.flags |": 0x20}, "QB-2.2.1-11"),
    (establish, {"operating_system": 0x311}, "QB-2.2.3.1-09"),
    (establish, {"operating_system |": 0x800}, "QB-2.2.3.1-15"),
    (establish, {"reserved": 1}, "QB-2.2.3.1-17"),
    (establish, {"padding": bytes(512)}, "QB-2.2.3.1-19"),
    (parameters, {"recoverable_ack_timeout": 499}, "QB-2.2.2.1-01"),
    (parameters, {"recoverable_ack_timeout": 120001}, "QB-2.2.2.1-01"),
    (parameters, {"ack_timeout": 19999}, "QB-2.2.2.1-02"),
    (parameters, {"ack_timeout": 120001}, "QB-2.2.2.1-02"),
    (parameters, {"reserved": 1}, "QB-2.2.2.1-03"),
    (session_ack, {"session.window_size": 0}, "MQ-2.2.20.4-17"),
    (session_ack, {"session.recoverable_msg_ack_flags": 2}, "MQ-2.2.20.4-08"),
    (session_ack, {"session.recoverable_msg_ack_flags": 0}, "MQ-2.2.20.4-09"),
    (message, {"session": SessionHeader(1, 0, 0, 1, 0, window_size=0)}, "MQ-2.2.20.4-17"),
    (message, {"user.flags |": 0x80}, "MQ-2.2.19.2-22"),
    (message, {"user.flags |": 0x1000000}, "MQ-2.2.19.2-72"),
    (message, {"user.flags |": 0x4000000}, "MQ-2.2.19.2-76"),
    (message, {"user.flags |": 0x80000000}, "MQ-2.2.19.2-80"),
    (message, {"user.flags |": 0x2000000}, "MQ-2.2.19.2-75"),
    (message, {"user.flags |": 0x1E}, "MQ-2.2.19.2-16"),
    (message, {"user.flags |": 0x40}, "MQ-2.2.19.2-18"),
    (message, {"user.queue_manager_address": DESTINATION}, "MQ-2.2.19.2-06"),
    (message, {"user.flags": 3 << 10 | MP, "user.destination_queue": 9}, "MQ-2.2.19.2-05"),
    (message, {"user.flags |": 1 << 16}, "MQ-2.2.19.2-52"),
    (message, {"user.flags |": 4 << 16, "user.response_queue": 9}, "MQ-2.2.19.2-56"),
    (message, {"user.destination_queue": "OS:h\\q\0x"}, "MQ-2.2.18.1.5.2-02"),
    (message, {"properties.flags": 1}, "MQ-2.2.19.2-47"),
    (message, {"user.flags |": ADMIN_ON_SOURCE, "user.admin_queue": 5}, "MQ-2.2.19.2-47"),
    (transactional, {"base.flags": 3}, "MQ-2.2.19.1-10"),
    (transactional, {"user.flags &~": RECOVERABLE}, "MQ-2.2.19.2-65"),
    (transactional, {"transaction.flags |": 0x1000000}, "MQ-2.2.20.5-16"),
    (transactional, {"transaction.previous_tx_sequence_number": 2}, "MQ-2.2.20.5-22"),
    (secured, {"security.flags": 0}, "MQ-2.2.20.6-05"),
    (secured, {"security.security_id": b"not a SID"}, "MQ-2.2.20.6-06"),
    (secured, {"security.security_id": EVERYONE.encode() + b"more"}, "MQ-2.2.20.6-06"),
    (secured, {"security.flags": 2}, "MQ-2.2.20.6-07"),
    (secured, {"security.flags": 3}, "MQ-2.2.20.6-04"),
    (secured, {"security.flags |": 0x10}, "MQ-2.2.20.6-09"),
    (secured, {"security.flags |": 0x300}, "MQ-2.2.20.6-19"),
    (secured, {"security.flags |": 0x1000}, "MQ-2.2.20.6-20"),
    (secured, {"security": SecurityHeader(0)}, "MQ-2.2.20.6-32"),
    (secured, {"security": SecurityHeader(0x80)}, "MQ-2.2.20.6-16"),
    (secured, {"security.signature": b"1234"}, "MQ-2.2.20.6-13"),
    (
        secured,
        {"security.flags |": 0x40, "security.provider_info": ProviderInfo(1, "x")},
        "MQ-2.2.20.6-51",
    ),
    (
        secured,
        {"security.flags |": 0x40, "security.signature": b"1", "properties.hash_algorithm": 1},
        "MQ-2.2.19.3-33",
    ),
    (message, {"properties.flags": 0x10}, "MQ-2.2.19.3-07"),
    (message, {"properties.message_class": 0x0200}, "MQ-2.2.18.1.6-22"),
    (message, {"properties.label": "a\0b"}, "MQ-2.2.19.3-48"),
    (message, {"properties.body_type": 0x7777}, "MQ-2.2.19.3-19"),
    (message, {"properties.allocation_body_size": 3}, "MQ-2.2.19.3-26"),
    (message, {"properties.privacy_level": 2}, "MQ-2.2.19.3-28"),
    (message, {"properties.encryption_algorithm": 0x6601}, "MQ-2.2.19.3-38"),
    (
        message,
        {"properties.privacy_level": 1, "properties.encryption_algorithm": 0x660E},
        "MQ-2.2.19.3-40",
    ),
    (
        message,
        {"properties.privacy_level": 3, "properties.encryption_algorithm": 0x660E},
        "MQ-2.2.19.3-41",
    ),
    (message, {"properties.privacy_level": 5}, "MQ-2.2.19.3-42"),
    (message, {"debug": DebugHeader(2)}, "MQ-2.2.20.8-03"),
    (message, {"debug": DebugHeader(4)}, "MQ-2.2.20.8-04"),
    (message, {"debug": DebugHeader(0, None, 1)}, "MQ-2.2.20.8-07"),
    (message, {"soap": SoapHeader("a", "b", 1)}, "MQ-2.2.20.7-04"),
    (message, {"soap": SoapHeader("a", "b", 0, 1)}, "MQ-2.2.20.7-12"),
    (
        message,
        {"multi_queue_format": MultiQueueFormatHeader(MQFAddressHeader(DESTINATION_ID, (), 1))},
        "MQ-2.2.20.2-06",
    ),
    (
        message,
        {
            "multi_queue_format": MultiQueueFormatHeader(
                MQFAddressHeader(DESTINATION_ID), signature=MQFSignatureHeader(b"", 1)
            )
        },
        "MQ-2.2.20.3-04",
    ),
    (order_ack, {"base.flags": 3}, "QB-2.2.4-03"),
    (order_ack, {"user.flags |": RECOVERABLE}, "QB-2.2.4-05"),
    (order_ack, {"properties.flags": 0x10}, "QB-2.2.4-12"),
    (order_ack, {"properties.body_type": 8}, "QB-2.2.4-14"),
    (order_ack, {"properties.message_body": bytes(36)}, "QB-2.2.4.1-03"),
    (
        order_ack,
        {"properties.message_body": bytes(8) + b"\5\0\0\0\1\0\0\0" + bytes(20)},
        "QB-2.2.4.1-04",
    ),
    (order_ack, {"properties.message_body": ORDER_ACK_BODY[:35] + b"x"}, "QB-2.2.4.1-05"),
    (final_ack, {"base.flags": 3}, "QB-2.2.5-03"),
    (final_ack, {"user.flags &~": RECOVERABLE}, "QB-2.2.5-05"),
    (final_ack, {"user.flags |": 0x100}, "QB-2.2.5-06"),
    (final_ack, {"properties.flags": 0x10}, "QB-2.2.5-13"),
    (final_ack, {"properties.body_type": 8}, "QB-2.2.5-16"),
    (final_ack, {"properties.message_class": 0x8001}, "QB-2.2.5-15"),
    (final_ack, {"properties.message_body": bytes(36)}, "QB-2.2.5.1-03"),
]


def spoil(packet: object, changes: dict[str, object]) -> None:
    for path, value in changes.items():
        name, _, operator = path.partition(" ")
        *owners, field = name.split(".")
        owner = functools.reduce(getattr, owners, packet)
        if isinstance(value, int) and operator:
            old = getattr(owner, field)
            value = old | value if operator == "|" else old & ~value
        setattr(owner, field, value)


@pytest.mark.parametrize(("make", "changes", "row"), BROKEN)
def test_a_broken_rule_is_found_by_its_row(
    make: Callable[[], object], changes: dict[str, object], row: str
) -> None:
    packet = make()
    spoil(packet, changes)
    found = check(packet, is_response=True)
    assert row in {finding.row for finding in found}, found
    assert all(finding.problem and "." in finding.field for finding in found)


def test_a_ping_request_that_refuses_is_found_when_the_direction_is_known() -> None:
    ping = Ping(2, 4, SOURCE)
    assert [finding.row for finding in check(ping, is_response=False)] == ["QB-2.2.7-06"]
    assert check(ping, is_response=True) == []
    assert check(ping) == []


def test_the_padding_of_a_request_may_be_anything() -> None:
    request = establish()
    request.padding = bytes(512)
    assert check(request, is_response=False) == []
    assert check(request) == []


def test_every_row_exists_in_the_catalogue() -> None:
    known = set()
    for table in (ROOT / "conformance").glob("*.tsv"):
        with table.open(encoding="utf-8", newline="") as file:
            known |= {row[0] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}
    source = Path(rules.__file__).read_text("utf-8")
    named = set(re.findall(r'"((?:MQ|QB)-[0-9A-Z.]+-\d\d)"', source))
    assert named
    assert named <= known
    assert {row for *_, row in BROKEN} <= known


def test_every_row_that_the_rules_name_is_broken_by_a_test() -> None:
    source = Path(rules.__file__).read_text("utf-8")
    named = set(re.findall(r'"((?:MQ|QB)-[0-9A-Z.]+-\d\d)"', source))
    assert named - {"QB-2.2.7-06"} <= {row for *_, row in BROKEN}


def test_the_published_message_asks_for_acks_without_an_admin_queue() -> None:
    frames = json.loads((ROOT / "tests/vectors/mqqb-frames.json").read_text("utf-8"))["frames"]
    published = bytes.fromhex(frames[6]["hex"])
    packet = decode_packet(published + b"a\0" * 286 + bytes(2))
    assert [finding.row for finding in check(packet)] == ["MQ-2.2.19.2-47"]


def test_a_finding_reads_well() -> None:
    finding = Finding("MQ-2.2.19.1-23", "BaseHeader.Flags", "TR is set without DH")
    assert str(finding) == "BaseHeader.Flags: TR is set without DH (MQ-2.2.19.1-23)"


@given(place=st.integers(0, 255), byte=st.integers(0, 255))
def test_whatever_decodes_can_be_checked(place: int, byte: int) -> None:
    for make in (transactional, secured, order_ack, final_ack):
        data = bytearray(make().encode())
        data[place % len(data)] = byte
        try:
            packet = decode_packet(data)
        except WireError:
            continue
        check(packet)
