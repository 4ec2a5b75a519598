"""The eight replication messages, MQDSRP 2.2.6."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.directory_change import DirectoryChange
from falconmq.wire.replication_messages import (
    COMPLETE_SYNC0_NOW,
    COMPLETE_SYNC0_SOON,
    NOT_SYNC0,
    SCOPE_ENTERPRISE,
    SCOPE_NONE,
    AlreadyPurgedMessage,
    BSCAckMessage,
    ChangePropagationMessage,
    ChangeReplyMessage,
    ChangeRequestMessage,
    PSCAckMessage,
    ReplicationMessage,
    SyncReplyMessage,
    SyncRequestMessage,
    decode_replication_message,
    read_replication_message,
)
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from falconmq.wire.tracing import Node, TracingReader
from tests.strategies.replication import replication_messages
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# Bytes by hand, every field another value.
SITE = bytes(range(0x11, 0x21))
PARTITION = bytes(range(0x31, 0x41))
MACHINE = bytes(range(0x51, 0x61))
FROM, TO, PURGED = 0x0102030405060708, 0x1112131415161718, 0x2122232425262728
NUMBERS = bytes.fromhex("0102030405060708 1112131415161718 2122232425262728")

CHANGE = DirectoryChange(1, MACHINE, PARTITION, FROM, TO, PURGED, [(105, 7)])
CHANGE_BYTES = b"\1\1" + MACHINE + PARTITION + NUMBERS + bytes.fromhex("01 69000000 07000000")
CREATION = DirectoryChange(0, "S\\q", PARTITION, 1, 2, 0)
CREATION_BYTES = b"\0\0S\0\\\0q\0\0\0" + PARTITION + bytes(7) + b"\1" + bytes(7) + b"\2" + bytes(9)
NUMBER_HEADER = SeqNumberHeader("PSC", [PartitionSeqNumbers(PARTITION, FROM, PURGED)])
NUMBER_HEADER_BYTES = b"\1\0P\0S\0C\0\0\0" + PARTITION + NUMBERS[:8] + NUMBERS[16:]
NAME = b"R\0e\0q\0\0\0"


def header(operation: int) -> bytes:
    return b"\0" + SITE + bytes([operation])


PROPAGATION = ChangePropagationMessage(SITE, [CHANGE, CREATION], NUMBER_HEADER, flush=True)
PROPAGATION_BYTES = header(0) + b"\1\2\0" + CHANGE_BYTES + CREATION_BYTES + NUMBER_HEADER_BYTES
REQUEST = ChangeRequestMessage(SITE, PARTITION, 0x04030201, "Req", "PSC1", CHANGE)
REQUEST_BYTES = (
    header(1) + PARTITION + bytes.fromhex("01020304 04000000") + NAME + b"P\0S\0C\x001\0\0\0"
) + CHANGE_BYTES
SYNC_REQUEST = SyncRequestMessage(
    SITE, PARTITION, FROM, TO, PURGED, is_sync0=True, scope=1, requester_name="Req"
)
SYNC_REQUEST_BYTES = header(2) + PARTITION + NUMBERS + b"\1\1" + NAME
SYNC_REPLY = SyncReplyMessage(SITE, PARTITION, FROM, TO, PURGED, 2, [CHANGE, CREATION])
SYNC_REPLY_BYTES = (
    (header(3) + PARTITION + NUMBERS + bytes.fromhex("02000000 02000000"))
    + CHANGE_BYTES
    + CREATION_BYTES
)
REPLY = ChangeReplyMessage(SITE, 0x04030201, 0xC00E0025, "Req")
REPLY_BYTES = header(4) + bytes.fromhex("01020304 25000ec0") + NAME
PURGED_MESSAGE = AlreadyPurgedMessage(SITE, PARTITION, PURGED)
PURGED_BYTES = header(5) + PARTITION + NUMBERS[16:]
PSC_ACK = PSCAckMessage(SITE, MACHINE, PARTITION, TO, "Req")
PSC_ACK_BYTES = header(6) + MACHINE + PARTITION + NUMBERS[8:16] + NAME
BSC_ACK = BSCAckMessage(SITE, MACHINE, "Req")
BSC_ACK_BYTES = header(7) + MACHINE + NAME

ALL: list[tuple[ReplicationMessage, bytes]] = [
    (PROPAGATION, PROPAGATION_BYTES),
    (REQUEST, REQUEST_BYTES),
    (SYNC_REQUEST, SYNC_REQUEST_BYTES),
    (SYNC_REPLY, SYNC_REPLY_BYTES),
    (REPLY, REPLY_BYTES),
    (PURGED_MESSAGE, PURGED_BYTES),
    (PSC_ACK, PSC_ACK_BYTES),
    (BSC_ACK, BSC_ACK_BYTES),
]
ROWS = [
    ("RP-2.2.5.1-07", "RP-2.2.6.9-02"),
    ("RP-2.2.5.1-08", "RP-2.2.6.2-02", "RP-2.2.5.2-02"),
    ("RP-2.2.5.1-09", "RP-2.2.6.4-02"),
    ("RP-2.2.5.1-10", "RP-2.2.6.5-02", "RP-2.2.5.3-03"),
    ("RP-2.2.5.1-11", "RP-2.2.6.3-02"),
    ("RP-2.2.5.1-12", "RP-2.2.6.8-03"),
    ("RP-2.2.5.1-13", "RP-2.2.6.7-02"),
    ("RP-2.2.5.1-14", "RP-2.2.6.6-02"),
]


@pytest.mark.parametrize(
    ("operation", "message", "data"),
    [
        pytest.param(
            n, *ALL[n], marks=pytest.mark.requirement(*ROWS[n]), id=type(ALL[n][0]).__name__
        )
        for n in range(8)
    ],
)
def test_a_message_has_its_operation_and_its_bytes(
    operation: int, message: ReplicationMessage, data: bytes
) -> None:
    assert message.encode() == data
    assert data[17] == operation
    assert decode_replication_message(data) == message
    with pytest.raises(WireError, match="Operation at offset 17"):
        type(message).decode(data[:17] + bytes([(operation + 1) % 8]) + data[18:])


def places(data: bytes) -> dict[str, tuple[int, int]]:
    """Offset and size of the fields of a message, nested headers included, changes not."""
    reader = TracingReader(data)
    read_replication_message(reader)
    result: dict[str, tuple[int, int]] = {}

    def walk(node: Node) -> None:
        for child in node.children:
            result.setdefault(child.name, (child.offset, child.size))
            if child.name.endswith("Header"):
                walk(child)

    (message,) = reader.root.children
    assert message.size == len(data)
    walk(message)
    return result


BASE = {
    "BaseReplicationHeader": (0, 18),
    "Version": (0, 1),
    "SiteID": (1, 16),
    "Operation": (17, 1),
}


@pytest.mark.requirement(
    "RP-2.2-01",
    "RP-2.2.5.2-01",
    "RP-2.2.5.2-03",
    "RP-2.2.5.2-04",
    "RP-2.2.5.2-05",
    "RP-2.2.5.2-06",
    "RP-2.2.5.2-07",
    "RP-2.2.6.2-01",
    "RP-2.2.6.2-03",
)
def test_a_change_request_is_laid_out_as_specified() -> None:
    assert decode_replication_message(REQUEST_BYTES) == REQUEST
    assert places(REQUEST_BYTES) == BASE | {
        "ChangeRequestHeader": (0, 60),
        "PartitionID": (18, 16),
        "RequestIdentifier": (34, 4),
        "PSCNameOffset": (38, 4),
        "RequesterName": (42, 8),
        "PSCName": (50, 10),
        "DirectoryChange": (60, len(CHANGE_BYTES)),
    }


@pytest.mark.requirement("RP-2.2.5.2-08", "RP-2.2.5.2-09", "RP-2.2.6.2-03")
def test_only_a_bsc_names_its_psc() -> None:
    request = ChangeRequestMessage(SITE, PARTITION, 0x04030201, "Req", None, CHANGE)
    data = header(1) + PARTITION + bytes.fromhex("01020304 00000000") + NAME + CHANGE_BYTES
    assert request.encode() == data
    assert decode_replication_message(data) == request
    assert "PSCName" not in places(data)
    assert places(data)["DirectoryChange"] == (50, len(CHANGE_BYTES))


@pytest.mark.requirement("RP-2.2.5.2-05")
@pytest.mark.parametrize(("name", "offset"), [("", 1), ("Req", 4), ("R\U0001f600q", 5)])
def test_the_offset_counts_wide_characters_with_the_nul(name: str, offset: int) -> None:
    request = ChangeRequestMessage(SITE, PARTITION, 1, name, "PSC1", CHANGE)
    data = assert_round_trip(request)
    assert int.from_bytes(data[38:42], "little") == offset
    for wrong in (offset - 1, offset + 1, 2 * offset + 1, 0xFFFFFFFF):
        if wrong == 0:
            continue
        with pytest.raises(WireError, match="PSCNameOffset at offset 38"):
            ChangeRequestMessage.decode(data[:38] + wrong.to_bytes(4, "little") + data[42:])


@pytest.mark.requirement("RP-2.2.6.3-01", "RP-2.2.6.3-03", "RP-2.2.6.3-04", "RP-2.2.6.3-05")
def test_a_change_reply_is_laid_out_as_specified() -> None:
    assert decode_replication_message(REPLY_BYTES) == REPLY
    assert places(REPLY_BYTES) == BASE | {
        "RequestIdentifier": (18, 4),
        "Result": (22, 4),
        "RequesterName": (26, 8),
    }


@pytest.mark.requirement(
    "RP-2.2.6.4-01",
    "RP-2.2.6.4-03",
    "RP-2.2.6.4-04",
    "RP-2.2.6.4-05",
    "RP-2.2.6.4-06",
    "RP-2.2.6.4-07",
    "RP-2.2.6.4-09",
    "RP-2.2.6.4-11",
)
def test_a_sync_request_is_laid_out_as_specified() -> None:
    assert decode_replication_message(SYNC_REQUEST_BYTES) == SYNC_REQUEST
    assert places(SYNC_REQUEST_BYTES) == BASE | {
        "PartitionID": (18, 16),
        "FromSeqNumber": (34, 8),
        "ToSeqNumber": (42, 8),
        "KnownPurgedSeqNumber": (50, 8),
        "IsSync0": (58, 1),
        "Scope": (59, 1),
        "RequesterName": (60, 8),
    }


@pytest.mark.requirement("RP-2.2.6.4-05")
def test_a_sync_request_asks_for_everything_unless_told_otherwise() -> None:
    assert SyncRequestMessage(SITE, PARTITION, 0).encode()[42:50] == b"\xff" * 8


@pytest.mark.requirement("RP-2.2.6.4-08")
def test_is_sync0_is_0_or_1() -> None:
    for is_sync0 in (False, True):
        request = SyncRequestMessage(SITE, PARTITION, 0, is_sync0=is_sync0)
        assert assert_round_trip(request)[58] == is_sync0
    for number in (2, 0xFF):
        with pytest.raises(WireError, match="IsSync0 at offset 58"):
            decode_replication_message(
                SYNC_REQUEST_BYTES[:58] + bytes([number]) + SYNC_REQUEST_BYTES[59:]
            )


@pytest.mark.requirement("RP-2.2.6.4-10")
def test_the_scope_is_0_or_1() -> None:
    assert (SCOPE_NONE, SCOPE_ENTERPRISE) == (0, 1)
    for scope in (0, 1):
        assert assert_round_trip(SyncRequestMessage(SITE, PARTITION, 0, scope=scope))[59] == scope
    for scope in (2, 0xFF):
        with pytest.raises(WireError, match="Scope at offset 59"):
            decode_replication_message(
                SYNC_REQUEST_BYTES[:59] + bytes([scope]) + SYNC_REQUEST_BYTES[60:]
            )
        with pytest.raises(WireError, match="Scope"):
            SyncRequestMessage(SITE, PARTITION, 0, scope=scope).encode()


@pytest.mark.requirement(
    "RP-2.2.5.3-01",
    "RP-2.2.5.3-02",
    "RP-2.2.5.3-04",
    "RP-2.2.5.3-05",
    "RP-2.2.5.3-06",
    "RP-2.2.5.3-07",
    "RP-2.2.5.3-08",
    "RP-2.2.5.3-09",
    "RP-2.2.6.5-01",
    "RP-2.2.6.5-03",
)
def test_a_sync_reply_is_laid_out_as_specified() -> None:
    assert decode_replication_message(SYNC_REPLY_BYTES) == SYNC_REPLY
    assert places(SYNC_REPLY_BYTES) == BASE | {
        "SyncReplyHeader": (0, 66),
        "PartitionID": (18, 16),
        "FromSeqNumber": (34, 8),
        "ToSeqNumber": (42, 8),
        "PurgedSeqNumber": (50, 8),
        "Count": (58, 4),
        "CompleteSync0": (62, 4),
        "DirectoryChange": (66, len(CHANGE_BYTES)),
    }


@pytest.mark.requirement("RP-2.2.5.3-10")
def test_complete_sync0_is_0_to_2() -> None:
    assert (NOT_SYNC0, COMPLETE_SYNC0_SOON, COMPLETE_SYNC0_NOW) == (0, 1, 2)
    for number in (0, 1, 2):
        reply = SyncReplyMessage(SITE, PARTITION, FROM, TO, PURGED, number)
        assert assert_round_trip(reply)[62:66] == bytes([number, 0, 0, 0])
    for number in (3, 0xFFFFFFFF):
        data = SYNC_REPLY_BYTES[:62] + number.to_bytes(4, "little") + SYNC_REPLY_BYTES[66:]
        with pytest.raises(WireError, match="CompleteSync0 at offset 62"):
            decode_replication_message(data)
        with pytest.raises(WireError, match="CompleteSync0"):
            SyncReplyMessage(SITE, PARTITION, FROM, TO, PURGED, number).encode()


@pytest.mark.requirement("RP-2.2.6.5-04", "RP-2.2.5.3-08")
def test_a_sync_reply_holds_as_many_changes_as_it_says() -> None:
    for count in (0, 1, 3, 0x0102):
        reply = SyncReplyMessage(SITE, PARTITION, FROM, TO, PURGED, 0, [CREATION] * count)
        data = assert_round_trip(reply)
        assert data[58:62] == count.to_bytes(4, "little")
    one = SYNC_REPLY_BYTES[:58] + b"\1\0\0\0" + SYNC_REPLY_BYTES[62:]
    assert SyncReplyMessage.decode(one).directory_changes == [CHANGE]
    for count in (3, 0xFFFFFFFF):
        data = SYNC_REPLY_BYTES[:58] + count.to_bytes(4, "little") + SYNC_REPLY_BYTES[62:]
        with pytest.raises(WireError):
            decode_replication_message(data)


@pytest.mark.requirement("RP-2.2.6.6-01", "RP-2.2.6.6-03", "RP-2.2.6.6-04")
def test_a_bsc_ack_is_laid_out_as_specified() -> None:
    assert decode_replication_message(BSC_ACK_BYTES) == BSC_ACK
    assert places(BSC_ACK_BYTES) == BASE | {"BSCMachineID": (18, 16), "BSCName": (34, 8)}


@pytest.mark.requirement(
    "RP-2.2.6.7-01", "RP-2.2.6.7-03", "RP-2.2.6.7-04", "RP-2.2.6.7-05", "RP-2.2.6.7-06"
)
def test_a_psc_ack_is_laid_out_as_specified() -> None:
    assert decode_replication_message(PSC_ACK_BYTES) == PSC_ACK
    assert places(PSC_ACK_BYTES) == BASE | {
        "PSCSiteID": (18, 16),
        "AckedPartitionID": (34, 16),
        "AckedSeqNumber": (50, 8),
        "PSCName": (58, 8),
    }


@pytest.mark.requirement("RP-2.2.6.8-01", "RP-2.2.6.8-02", "RP-2.2.6.8-04", "RP-2.2.6.8-05")
def test_an_already_purged_message_is_laid_out_as_specified() -> None:
    assert decode_replication_message(PURGED_BYTES) == PURGED_MESSAGE
    assert len(PURGED_MESSAGE.encode()) == 42
    assert places(PURGED_BYTES) == BASE | {"PartitionID": (18, 16), "PurgedSeqNumber": (34, 8)}


@pytest.mark.requirement(
    "RP-2.2.6.9-01", "RP-2.2.6.9-03", "RP-2.2.6.9-07", "RP-2.2.6.9-08", "RP-2.2.6.9-10"
)
def test_a_change_propagation_is_laid_out_as_specified() -> None:
    assert decode_replication_message(PROPAGATION_BYTES) == PROPAGATION
    end = 21 + len(CHANGE_BYTES) + len(CREATION_BYTES)
    found = places(PROPAGATION_BYTES)
    assert found["BaseReplicationHeader"] == (0, 18)
    assert found["Flush"] == (18, 1)
    assert found["Count"] == (19, 2)
    assert found["DirectoryChange"] == (21, len(CHANGE_BYTES))
    assert found["SeqNumberHeader"] == (end, len(NUMBER_HEADER_BYTES))


@pytest.mark.requirement("RP-2.2.6.9-10")
def test_a_propagation_with_nothing_inside_has_23_bytes() -> None:
    data = assert_round_trip(ChangePropagationMessage(SITE))
    assert data == header(0) + bytes(5)
    with pytest.raises(WireError, match="SeqNumberHeader"):
        decode_replication_message(data[:21])


@pytest.mark.requirement("RP-2.2.6.9-04")
def test_flush_is_0_or_1() -> None:
    for flush in (False, True):
        assert assert_round_trip(ChangePropagationMessage(SITE, flush=flush))[18] == flush
    for number in (2, 0xFF):
        with pytest.raises(WireError, match="Flush at offset 18"):
            decode_replication_message(
                PROPAGATION_BYTES[:18] + bytes([number]) + PROPAGATION_BYTES[19:]
            )


@pytest.mark.requirement("RP-2.2.6.9-07", "RP-2.2.6.9-09")
def test_a_propagation_holds_as_many_changes_as_it_says() -> None:
    for count in (0, 1, 3, 0x0102):
        data = assert_round_trip(ChangePropagationMessage(SITE, [CREATION] * count))
        assert data[19:21] == count.to_bytes(2, "little")
    with pytest.raises(WireError, match="Count: 65536"):
        ChangePropagationMessage(SITE, [CREATION] * 0x10000).encode()
    with pytest.raises(WireError, match="Count at offset 19: 65535 changes"):
        decode_replication_message(PROPAGATION_BYTES[:19] + b"\xff\xff" + PROPAGATION_BYTES[21:])


@pytest.mark.requirement("RP-2.2.6-01", "RP-2.2.6.1-02")
def test_the_operation_selects_one_of_eight_messages() -> None:
    kinds = [type(decode_replication_message(data)) for _, data in ALL]
    assert kinds == [
        ChangePropagationMessage,
        ChangeRequestMessage,
        SyncRequestMessage,
        SyncReplyMessage,
        ChangeReplyMessage,
        AlreadyPurgedMessage,
        PSCAckMessage,
        BSCAckMessage,
    ]
    with pytest.raises(WireError, match="Operation at offset 17: 8"):
        decode_replication_message(header(8) + bytes(100))
    with pytest.raises(WireError, match="Version"):
        decode_replication_message(b"\1" + BSC_ACK_BYTES[1:])
    with pytest.raises(WireError):
        decode_replication_message(b"")


def test_a_trace_of_an_unknown_message_shows_its_header() -> None:
    reader = TracingReader(header(8))
    with pytest.raises(WireError, match="Operation"):
        read_replication_message(reader)
    (node,) = reader.root.children
    assert [(child.name, child.value) for child in node.children] == [
        ("Version", 0),
        ("SiteID", SITE),
        ("Operation", 8),
    ]


@pytest.mark.parametrize(("message", "data"), ALL)
def test_bytes_behind_a_message_do_not_matter(message: ReplicationMessage, data: bytes) -> None:
    for tail in (b"\0", b"\xcc\xcc\xcc"):
        assert decode_replication_message(data + tail) == message


@pytest.mark.parametrize(
    ("message", "field", "value", "name"),
    [
        (REQUEST, "site_id", bytes(15), "SiteID"),
        (REQUEST, "partition_id", bytes(17), "PartitionID"),
        (REQUEST, "request_identifier", 1 << 32, "RequestIdentifier"),
        (REQUEST, "requester_name", "a\0", "RequesterName"),
        (REQUEST, "psc_name", "a\0", "PSCName"),
        (REPLY, "request_identifier", -1, "RequestIdentifier"),
        (REPLY, "result", 1 << 32, "Result"),
        (REPLY, "requester_name", "\0", "RequesterName"),
        (SYNC_REQUEST, "partition_id", b"", "PartitionID"),
        (SYNC_REQUEST, "from_seq_number", 1 << 64, "FromSeqNumber"),
        (SYNC_REQUEST, "to_seq_number", -1, "ToSeqNumber"),
        (SYNC_REQUEST, "known_purged_seq_number", 1 << 64, "KnownPurgedSeqNumber"),
        (SYNC_REQUEST, "requester_name", "\0", "RequesterName"),
        (SYNC_REPLY, "partition_id", b"", "PartitionID"),
        (SYNC_REPLY, "from_seq_number", 1 << 64, "FromSeqNumber"),
        (SYNC_REPLY, "to_seq_number", 1 << 64, "ToSeqNumber"),
        (SYNC_REPLY, "purged_seq_number", 1 << 64, "PurgedSeqNumber"),
        (PURGED_MESSAGE, "partition_id", b"", "PartitionID"),
        (PURGED_MESSAGE, "purged_seq_number", 1 << 64, "PurgedSeqNumber"),
        (PSC_ACK, "psc_site_id", b"", "PSCSiteID"),
        (PSC_ACK, "acked_partition_id", b"", "AckedPartitionID"),
        (PSC_ACK, "acked_seq_number", 1 << 64, "AckedSeqNumber"),
        (PSC_ACK, "psc_name", "\0", "PSCName"),
        (BSC_ACK, "bsc_machine_id", b"", "BSCMachineID"),
        (BSC_ACK, "bsc_name", "\0", "BSCName"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    message: ReplicationMessage, field: str, value: Any, name: str
) -> None:
    copy = type(message).decode(message.encode())
    setattr(copy, field, value)
    with pytest.raises(WireError) as caught:
        copy.encode()
    assert caught.value.field == name


@given(replication_messages)
def test_round_trip(message: ReplicationMessage) -> None:
    data = assert_round_trip(message)
    assert decode_replication_message(data) == message


@given(st.integers(0, 8), st.binary(max_size=120))
def test_any_bytes_decode_or_raise_wire_error(operation: int, data: bytes) -> None:
    assert_decodes_or_refuses(decode_replication_message, data)
    assert_decodes_or_refuses(decode_replication_message, header(operation) + data)


@given(st.sampled_from([data for _, data in ALL]), st.integers(0, 250), st.binary(max_size=6))
def test_damaged_bytes_decode_or_raise_wire_error(data: bytes, at: int, new: bytes) -> None:
    damaged = data[:at] + new + data[at + len(new) :]
    assert_decodes_or_refuses(decode_replication_message, damaged)


@pytest.mark.parametrize("data", [data for _, data in ALL])
def test_a_cut_message_is_refused(data: bytes) -> None:
    assert_every_cut_is_refused(decode_replication_message, data)


def test_more_changes_than_count_can_tell_are_refused() -> None:
    message = ChangePropagationMessage(bytes(16), [CHANGE] * 0x10000)
    with pytest.raises(WireError, match=r"ChangePropagationMessage\.Count: 65536 does not fit"):
        message.encode()
