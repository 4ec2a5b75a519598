"""Fields in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.cli.examples import examples, session_frames
from falconmq.wire.annotate import annotate
from falconmq.wire.field_words import FIELD_WORDS
from falconmq.wire.inspection import Kind, inspect
from falconmq.wire.message_class import MessageClass
from falconmq.wire.tracing import Node

GUID = bytes.fromhex("d1587355509195954997b6e611ea26c6")
GUID_TEXT = "557358D1-9150-9595-4997-B6E611EA26C6"
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")
ALL_USER_FLAGS = (
    "RC=29 hops, DM=1 recoverable, JN dead-letter, JP journal, DQ=3 private at destination, "
    "AQ=3 private at destination, RQ=2 private at source, TH transaction, MP properties, "
    "CQ connector type, MQ multiple destinations, HH SOAP"
)
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("field", "value", "size", "written", "meaning"),
    [
        ("BaseHeader.Flags", 0x000B, 2, "0x000B", "PR=3 default, IN internal"),
        (
            "BaseHeader.Flags",
            0x0130,
            2,
            "0x0130",
            "PR=0 lowest, SH session header, DH debug header, TR trace",
        ),
        ("BaseHeader.Flags", 0x8043, 2, "0x8043", "PR=3 default, reserved bits 0x8040"),
        ("BaseHeader.Signature", 0x524F494C, 4, "0x524F494C", '"LIOR"'),
        ("BaseHeader.Signature", 1, 4, "0x00000001", "not MSMQ"),
        ("BaseHeader.TimeToReachQueue", 345600, 4, "345600 s", "4 days"),
        ("BaseHeader.TimeToReachQueue", 0xFFFFFFFF, 4, "0xFFFFFFFF", "infinite"),
        (
            "UserHeader.Flags",
            0x00281C00,
            4,
            "0x00281C00",
            "DM=0 express, DQ=7 direct, SH security, MP properties",
        ),
        (
            "UserHeader.Flags",
            0x10F26F3D,
            4,
            "0x10F26F3D",
            ALL_USER_FLAGS,
        ),
        ("UserHeader.SentTime", 1700000000, 4, "1700000000", "2023-11-14T22:13:20Z"),
        (
            "InternalHeader.Flags",
            0x12,
            2,
            "0x0012",
            "PT=2 EstablishConnection, CS connection refused",
        ),
        ("InternalHeader.Flags", 0x7, 2, "0x0007", "PT=7 unknown"),
        (
            "EstablishConnectionHeader.OperatingSystem",
            0x0310,
            2,
            "0x0310",
            "RE=0x10, SE no ping before, OS server class",
        ),
        (
            "EstablishConnectionHeader.ServerGuid",
            bytes(16),
            16,
            None,
            "null: reached by a direct name",
        ),
        ("ConnectionParametersHeader.RecoverableAckTimeout", 1496, 4, "1496 ms", "1.496 seconds"),
        ("ConnectionParametersHeader.AckTimeout", 120000, 4, "120000 ms", "2 minutes"),
        ("SessionHeader.AckSequenceNumber", 1, 2, "1", "has received 1 message"),
        (
            "TransactionHeader.Flags",
            0x00ABCDEE,
            4,
            "0x00ABCDEE",
            "FA final ack wanted, FM first message, LM last message, ID=0xabcde transaction",
        ),
        (
            "TransactionHeader.TxSequenceID",
            1700000000 << 32 | 7,
            8,
            "0x6553F10000000007",
            "ordinal 7, begun 2023-11-14T22:13:20Z",
        ),
        (
            "SecurityHeader.Flags",
            0x0342,
            2,
            "0x0342",
            "ST=2 queue manager GUID, DE default provider, AS=3 MSMQ 2.0 verified",
        ),
        (
            "MessagePropertiesHeader.Flags",
            0x0F,
            1,
            "0x0F",
            "PA ack arrival, PR ack receipt, NA nack if not delivered, NR nack if not read",
        ),
        ("MessagePropertiesHeader.Flags", 0, 1, "0x00", "none set"),
        (
            "MessagePropertiesHeader.MessageClass",
            0x8005,
            2,
            "0x8005",
            "NACK_HOP_COUNT_EXCEEDED: too many hops",
        ),
        ("MessagePropertiesHeader.MessageClass", 0x0100, 2, "0x0100", "an application's own class"),
        ("MessagePropertiesHeader.MessageClass", 0x0200, 2, "0x0200", "no class: reserved bits"),
        ("MessagePropertiesHeader.BodyType", 8, 4, "0x00000008", "VT_BSTR"),
        ("MessagePropertiesHeader.BodyType", 0x7777, 4, "0x00007777", "unknown type"),
        ("MessagePropertiesHeader.HashAlgorithm", 0x800E, 4, "0x0000800E", "SHA-512"),
        ("MessagePropertiesHeader.EncryptionAlgorithm", 0x6610, 4, "0x00006610", "AES-256"),
        ("MessagePropertiesHeader.PrivacyLevel", 5, 4, "5", "AES"),
        ("MessagePropertiesHeader.CorrelationID", bytes(20), 20, "20 x 00", "none"),
        (
            "Ping.Flags",
            0x7D01,
            2,
            "0x7D01",
            "RC initiator is not server class, bits 2-15=0x1f40 garbage",
        ),
        ("Ping.QMGuid", GUID, 16, GUID_TEXT, "queue manager that sent this"),
        ("DebugHeader.Flags", 1, 2, "0x0001", "QT=1 public queue"),
        ("MQFAddressHeader.HeaderID", 0xC8, 2, "0x00C8", "Administration"),
        ("MQFFormatNameElement.FormatType", 6, 2, "6", "distribution list"),
        ("PrivateQueueFormatName.PrivateQueueIdentifier", 3, 4, "0x3", "notify_queue$"),
        ("NotificationBody.Event", "4\0".encode("utf-16-le"), 4, '"4"', "machine changed"),
        ("DirectoryChange.Command", 3, 1, "3", "synchronize"),
        ("DirectoryChange.SeqNumber", b"\0\0\0\0\0\0\1\2", 8, "258", ""),
        ("SyncRequestMessage.ToSeqNumber", b"\xff" * 8, 8, str(2**64 - 1), "the greatest there is"),
        ("DirectoryChange.PropertyID", 105, 4, "105", "PROPID_Q_QUOTA"),
        ("DirectoryChange.PropertyID", 99, 4, "99", "unknown property"),
        ("DirectoryChange.PropertyValue[PROPID_Q_QUOTA]", 8192, 4, "8192", "KB = 8 MB"),
        ("DirectoryChange.PropertyValue[PROPID_Q_QUOTA]", 0xFFFFFFFF, 4, "4294967295", "no limit"),
        ("DirectoryChange.PropertyValue[PROPID_Q_CREATE_TIME]", 0, 4, "0", "1970-01-01T00:00:00Z"),
        ("DirectoryChange.PropertyValue[PROPID_Q_TRANSACTION]", 1, 1, "1", "transactional"),
        ("DirectoryChange.PropertyValue[PROPID_D_OBJTYPE]", 2, 1, "2", "MQDS_MACHINE"),
        ("DirectoryChange.PropertyValue[PROPID_Q_QMID]", GUID, 16, GUID_TEXT, ""),
        ("DirectoryChange.PropertyValue[PROPID_Q_LABEL]", "tab\t", 10, '"tab\\t"', ""),
        (
            "DirectoryChange.PropertyValue[PROPID_U_SID]",
            SID,
            28,
            None,
            "S-1-5-21-3181267629-1039849782-3663111779-1000",
        ),
        (
            "DirectoryChange.PropertyValue[PROPID_QM_ADDRESS]",
            b"\4\0\1\0\x0a\0\0\7",
            8,
            None,
            "10.0.0.7",
        ),
        ("BaseReplicationHeader.Operation", 5, 1, "5", "already purged"),
        (
            "ChangeReplyMessage.Result",
            0xC00E0025,
            4,
            "0xC00E0025",
            "MQ_ERROR_ACCESS_DENIED: access denied",
        ),
        ("ChangeReplyMessage.Result", 5, 4, "0x00000005", "unknown status"),
        ("ACE.Mask", 0x4, 4, "0x00000004", "send messages"),
        ("SECURITY_DESCRIPTOR.Control", 0x8004, 2, "0x8004", "DP DACL present, SR self-relative"),
        ("Anything.NobodyKnows", 7, 4, "7", ""),
        ("Anything.Bytes", b"\1\2", 2, "01 02", ""),
        (
            "Anything.Bytes",
            bytes(range(40)),
            40,
            "00 01 02 03 04 05 06 07 08 09 ... (40 bytes)",
            "",
        ),
        ("Anything.Bytes", b"", 0, "(no bytes)", ""),
    ],
)
def test_a_field_in_words(
    field: str, value: Any, size: int, written: str | None, meaning: str
) -> None:
    structure, _, name = field.partition(".")
    words = annotate(structure, name, value, size)
    assert words.meaning == meaning
    if written is not None:
        assert words.value == written


@pytest.mark.parametrize(
    ("field", "value", "siblings", "meaning"),
    [
        ("UserHeader.MessageID", 2286, {"SourceQueueManager": GUID}, f"{{{GUID_TEXT}}}\\2286"),
        (
            "UserHeader.DestinationQueue",
            4,
            {"Flags": 3 << 10},
            "private queue on the destination, order_queue$",
        ),
        ("UserHeader.AdminQueue", 0x22, {"Flags": 2 << 13}, "private queue on the source"),
        (
            "UserHeader.ResponseQueue",
            0x22,
            {"Flags": 4 << 16},
            "private queue on the admin queue's host",
        ),
        ("UserHeader.ResponseQueue", GUID, {"Flags": 5 << 16}, "public queue"),
        (
            "SecurityHeader.SecurityID",
            SID,
            {"Flags": 1},
            "S-1-5-21-3181267629-1039849782-3663111779-1000",
        ),
        ("SecurityHeader.SecurityID", GUID, {"Flags": 2}, f"queue manager {GUID_TEXT}"),
        ("SecurityHeader.SecurityID", b"?", {"Flags": 1}, "neither SID nor GUID"),
        (
            "SessionHeader.RecoverableMsgAckFlags",
            0b1011,
            {"RecoverableMsgAckSeqNumber": 5},
            "on disk: 5-6, 8",
        ),
        (
            "SessionHeader.RecoverableMsgAckFlags",
            0b11,
            {"RecoverableMsgAckSeqNumber": 0xFFFF},
            "on disk: 65535-0",
        ),
        ("SessionHeader.RecoverableMsgAckFlags", 0, {}, "none on disk since the last ack"),
        (
            "MessagePropertiesHeader.CorrelationID",
            GUID + b"\5\0\0\0",
            {"MessageClass": 2},
            f"about message {{{GUID_TEXT}}}\\5",
        ),
        ("MessagePropertiesHeader.CorrelationID", GUID + b"\5\0\0\0", {"MessageClass": 0}, ""),
        ("MessagePropertiesHeader.MessageBody", b"plain", {"BodyType": 0}, "UTF-8 text"),
        ("MessagePropertiesHeader.MessageBody", b"w\0i\0d\0e\0", {"BodyType": 8}, "UTF-16 text"),
        ("MessagePropertiesHeader.MessageBody", b"\x80\x00\xff", {"BodyType": 0}, "binary"),
        ("FinalAckBody.MessageID", 3, {"SourceGUID": GUID}, f"{{{GUID_TEXT}}}\\3"),
    ],
)
def test_a_field_whose_meaning_depends_on_its_neighbours(
    field: str, value: Any, siblings: dict[str, Any], meaning: str
) -> None:
    structure, _, name = field.partition(".")
    size = 4 if isinstance(value, int) else len(value)
    assert annotate(structure, name, value, size, siblings).meaning == meaning


@pytest.mark.parametrize("message_class", MessageClass)
def test_every_message_class_is_explained(message_class: MessageClass) -> None:
    words = annotate("MessagePropertiesHeader", "MessageClass", int(message_class), 2)
    assert words.meaning.startswith(f"{message_class.name}: ")


def test_every_flag_of_the_guides_tables_is_spelled() -> None:
    """Set one bit at a time: the words name it as the specification's diagram does."""
    guide = {
        ("BaseHeader", 2): {0x8: "IN", 0x10: "SH", 0x20: "DH", 0x100: "TR"},
        ("UserHeader", 4): {
            0x100: "JN",
            0x200: "JP",
            0x80000: "SH",
            0x100000: "TH",
            0x200000: "MP",
            0x400000: "CQ",
            0x800000: "MQ",
            0x2000000: "AH",
            0x10000000: "HH",
        },
        ("TransactionHeader", 4): {1: "CG", 2: "FA", 4: "FM", 8: "LM"},
        ("SecurityHeader", 2): {0x10: "AU", 0x20: "EB", 0x40: "DE", 0x80: "AI"},
        ("MessagePropertiesHeader", 1): {1: "PA", 2: "PR", 4: "NA", 8: "NR"},
    }
    for (structure, size), bits in guide.items():
        for bit, name in bits.items():
            meaning = annotate(structure, "Flags", bit, size).meaning
            assert re.search(rf"(^|, ){name} ", meaning), (structure, name, meaning)


def walk(node: Node) -> Iterator[tuple[Node, Node]]:
    for child in node.children:
        yield node, child
        yield from walk(child)


def test_the_table_names_only_fields_that_exist() -> None:
    """A renamed field must not silently lose its words."""
    source = "".join(
        path.read_text("utf-8") for path in (ROOT / "src/falconmq/wire").glob("*.py")
        if path.name not in ("annotate.py", "field_words.py")
    )  # fmt: skip
    for structure, field in FIELD_WORDS:
        assert f'"{field}"' in source, field
        assert not structure or f'"{structure}"' in source, structure


def test_every_field_of_the_examples_can_be_annotated() -> None:
    packets = [(each.data, Kind.PING if each.is_ping else Kind.PACKET) for each in session_frames()]
    packets += [(example.message.encode(), Kind.PACKET) for example in examples()]
    for data, kind in packets:
        for parent, child in walk(inspect(data, kind).tree):
            if not child.is_structure:
                assert annotate(parent.name, child.name, child.value, child.size).value


_FIELDS = sorted(FIELD_WORDS)


@given(
    field=st.sampled_from(_FIELDS),
    value=st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=40), st.text(max_size=10)),
)
def test_hostile_values_never_break_the_words(field: tuple[str, str], value: Any) -> None:
    structure, name = field
    numeric = isinstance(value, int)
    expects_bytes = name in {"IdentifierAuthority", "SecurityID", "CorrelationID", "MessageBody"}
    if numeric and expects_bytes:
        return  # the decoders never hand out a number there
    if not numeric and not isinstance(value, bytes) and name != "Event":
        return
    if isinstance(value, bytes) and not expects_bytes:
        return
    words = annotate(structure, name, value, 8)
    assert (words.value + words.meaning).isprintable()
