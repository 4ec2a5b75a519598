"""DirectoryChange and Notification Update, MQDSRP 2.2.4 and MQCN 2.2.6."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.directory_change import (
    CREATE,
    DELETE,
    SYNCHRONIZE,
    UPDATE,
    DirectoryChange,
    NotificationUpdate,
)
from falconmq.wire.guid import guid_bytes
from falconmq.wire.tracing import Node, TracingReader
from tests.strategies.notifications import notification_updates
from tests.strategies.replication import directory_changes
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# Bytes by hand, every field another value. The GUIDs are spelled as text in UUIDS.
OBJECT = bytes.fromhex("33221100 5544 7766 8899aabbccddeeff")
PARTITION = bytes.fromhex("c3c2c1c0 c5c4 c7c6 c8c9cacbcccdcecf")
UUIDS = {
    "00112233-4455-6677-8899-aabbccddeeff": OBJECT,
    "c0c1c2c3-c4c5-c6c7-c8c9-cacbcccdcecf": PARTITION,
}
NUMBERS = bytes.fromhex("0102030405060708 1112131415161718 2122232425262728")
# Q_QUOTA 105 UI4, Q_LABEL 108 LPWSTR, Q_BASEPRIORITY 106 I2: ids first, then the values in order
PROPERTIES_HEX = "03 69000000 6c000000 6a000000  00100000 4f00 7200 0000 feff"
PROPERTIES: list[Any] = [(105, 0x1000), (108, "Or"), (106, -2)]

BY_GUID = b"\x01\x01" + OBJECT + PARTITION + NUMBERS + bytes.fromhex(PROPERTIES_HEX)
BY_PATH = b"\x00\x00" + b"S\0\\\0q\0\0\0" + PARTITION + NUMBERS + bytes.fromhex(PROPERTIES_HEX)


def fields_of(node: Node) -> dict[str, tuple[int, int]]:
    """Offset and size of every field by name; the first one of several with one name."""
    result: dict[str, tuple[int, int]] = {}
    for child in node.children:
        result.setdefault(child.name, (child.offset, child.size))
    return result


def trace(structure: type[DirectoryChange | NotificationUpdate], data: bytes) -> Node:
    reader = TracingReader(data)
    structure.read(reader)
    (node,) = reader.root.children
    return node


@pytest.mark.requirement(
    "RP-2.2-02",
    "RP-2.2.4-01",
    "RP-2.2.4-03",
    "RP-2.2.4-07",
    "RP-2.2.4-09",
    "RP-2.2.4-10",
    "RP-2.2.4-11",
    "RP-2.2.4-12",
    "RP-2.2.4-13",
    "RP-2.2.4-14",
    "RP-2.2.4-15",
    "RP-2.2.4-16",
    "RP-2.2.4-17",
    "RP-2.2.4-18",
    "RP-2.2.1-02",
    "MQ-2.3-01",
    "MQ-2.3-02",
)
def test_a_change_by_guid_has_every_field_at_its_place() -> None:
    change = DirectoryChange.decode(BY_GUID)
    assert change == DirectoryChange(
        command=UPDATE,
        identifier=OBJECT,
        partition_id=PARTITION,
        previous_seq_number=0x0102030405060708,
        seq_number=0x1112131415161718,
        purged_seq_number=0x2122232425262728,
        properties=PROPERTIES,
    )
    assert change.encode() == BY_GUID
    assert fields_of(trace(DirectoryChange, BY_GUID)) == {
        "Command": (0, 1),
        "UseGuid": (1, 1),
        "GuidIdentifier": (2, 16),
        "PartitionID": (18, 16),
        "PreviousSeqNumber": (34, 8),
        "SeqNumber": (42, 8),
        "PurgedSeqNumber": (50, 8),
        "NumberOfProperties": (58, 1),
        "PropertyID": (59, 4),
        "PropertyValue[PROPID_Q_QUOTA]": (71, 4),
        "PropertyValue[PROPID_Q_LABEL]": (75, 6),
        "PropertyValue[PROPID_Q_BASEPRIORITY]": (81, 2),
    }


@pytest.mark.requirement("RP-2.2.4-04", "RP-2.2.4-05", "RP-2.2.4-06", "RP-2.2.4-08")
def test_an_object_is_named_by_path_or_by_guid_and_never_by_both() -> None:
    by_path, by_guid = DirectoryChange.decode(BY_PATH), DirectoryChange.decode(BY_GUID)
    assert (by_path.path_name, by_path.guid_identifier) == ("S\\q", None)
    assert (by_guid.path_name, by_guid.guid_identifier) == (None, OBJECT)
    assert (by_path.use_guid, by_guid.use_guid) == (False, True)
    by_guid.identifier = "S\\q"
    by_guid.command = CREATE
    assert by_guid.encode() == by_path.encode() == BY_PATH
    by_path.identifier, by_path.command = OBJECT, UPDATE
    assert by_path.encode() == BY_GUID
    assert fields_of(trace(DirectoryChange, BY_PATH))["PathName"] == (2, 8)


@pytest.mark.requirement(
    "CN-2.2.6-02",
    "CN-2.2.6-05",
    "CN-2.2.6-07",
    "CN-2.2.6-08",
    "CN-2.2.6-12",
    "CN-2.2.6-13",
    "CN-2.2.6-15",
    "CN-2.2.6-16",
    "CN-2.2.6-19",
    "CN-2.2.6-20",
    "CN-2.2.6-21",
    "CN-2.2.6-22",
    "CN-2.2.6-23",
    "CN-2.2.6-24",
    "CN-2.2.2-01",
    "CN-2.2.2-03",
    "CN-2.2.3-01",
)
def test_an_update_by_guid_has_every_field_at_its_place() -> None:
    update = NotificationUpdate.decode(BY_GUID)
    assert update == NotificationUpdate(UPDATE, OBJECT, PARTITION, PROPERTIES, NUMBERS)
    assert update.path_name is None
    assert update.encode() == BY_GUID
    assert fields_of(trace(NotificationUpdate, BY_GUID)) == {
        "Command": (0, 1),
        "UseGuid": (1, 1),
        "GuidIdentifier": (2, 16),
        "GuidMasterId": (18, 16),
        "Reserved": (34, 24),
        "NumberOfProperties": (58, 1),
        "PropertyId": (59, 4),
        "PropertyValue[PROPID_Q_QUOTA]": (71, 4),
        "PropertyValue[PROPID_Q_LABEL]": (75, 6),
        "PropertyValue[PROPID_Q_BASEPRIORITY]": (81, 2),
    }


@pytest.mark.requirement("CN-2.2.6-09", "CN-2.2.6-10", "CN-2.2.6-14", "CN-2.2.6-04")
def test_an_update_by_path_has_no_guid() -> None:
    update = NotificationUpdate.decode(BY_PATH)
    assert (update.command, update.path_name, update.guid_identifier) == (CREATE, "S\\q", None)
    assert update.encode() == BY_PATH
    places = fields_of(trace(NotificationUpdate, BY_PATH))
    assert "GuidIdentifier" not in places
    assert places["PathName"] == (2, 8)
    assert places["GuidMasterId"] == (10, 16)


@pytest.mark.requirement("RP-2.2.4-22")
@given(notification_updates)
def test_replication_and_notification_share_one_record(update: NotificationUpdate) -> None:
    data = update.encode()
    change = DirectoryChange.decode(data)
    assert change.encode() == data
    assert change.partition_id == update.guid_master_id
    numbers = (change.previous_seq_number, change.seq_number, change.purged_seq_number)
    assert b"".join(number.to_bytes(8, "big") for number in numbers) == update.reserved


@pytest.mark.requirement("CN-2.2.1-01")
def test_guids_are_little_endian_in_their_first_three_parts() -> None:
    assert {text: guid_bytes(UUID(text)) for text in UUIDS} == UUIDS
    assert DirectoryChange.decode(BY_GUID).identifier == guid_bytes(UUID(next(iter(UUIDS))))


@pytest.mark.requirement("RP-2.2.4-21")
def test_a_change_by_guid_without_properties_has_59_bytes() -> None:
    change = DirectoryChange(UPDATE, OBJECT, PARTITION)
    assert len(assert_round_trip(change)) == 59


@pytest.mark.requirement("RP-2.2.4-02")
def test_a_change_creates_updates_deletes_or_synchronizes() -> None:
    assert (CREATE, UPDATE, DELETE, SYNCHRONIZE) == (0, 1, 2, 3)
    for command in range(4):
        data = DirectoryChange(command, OBJECT, PARTITION).encode()
        assert data[0] == command
        assert DirectoryChange.decode(data).command == command
    for command in (4, 0xFF):
        with pytest.raises(WireError, match="Command at offset 0"):
            DirectoryChange.decode(bytes([command]) + BY_GUID[1:])
        with pytest.raises(WireError, match="Command"):
            DirectoryChange(command, OBJECT, PARTITION).encode()
    with pytest.raises(WireError, match="Command"):
        DirectoryChange(-1, OBJECT, PARTITION).encode()


@pytest.mark.requirement("CN-2.2.6-03", "CN-2.2.6-04", "CN-2.2.6-05", "CN-2.2.6-06")
def test_an_update_creates_changes_or_deletes() -> None:
    assert (CREATE, UPDATE, DELETE) == (0, 1, 2)
    for command in range(3):
        data = NotificationUpdate(command, OBJECT, PARTITION, PROPERTIES).encode()
        assert data[0] == command
        assert NotificationUpdate.decode(data).command == command
    for command in (3, 0xFF):
        with pytest.raises(WireError, match="Command at offset 0"):
            NotificationUpdate.decode(bytes([command]) + BY_GUID[1:])
        with pytest.raises(WireError, match="Command"):
            NotificationUpdate(command, OBJECT, PARTITION, PROPERTIES).encode()


@pytest.mark.requirement("RP-2.2.4-04")
@pytest.mark.parametrize("structure", [DirectoryChange, NotificationUpdate])
@pytest.mark.parametrize("use_guid", [2, 0xFF])
def test_use_guid_is_0_or_1(
    structure: type[DirectoryChange | NotificationUpdate], use_guid: int
) -> None:
    with pytest.raises(WireError, match="UseGuid at offset 1"):
        structure.decode(BY_GUID[:1] + bytes([use_guid]) + BY_GUID[2:])


@pytest.mark.requirement("CN-2.2.6-17")
def test_we_send_24_zero_bytes_as_reserved() -> None:
    data = NotificationUpdate(UPDATE, OBJECT, PARTITION, PROPERTIES).encode()
    assert data[34:58] == bytes(24)


@pytest.mark.requirement("CN-2.2.6-18")
@given(st.binary(min_size=24, max_size=24))
def test_reserved_bytes_change_nothing_else(reserved: bytes) -> None:
    update = NotificationUpdate.decode(BY_GUID[:34] + reserved + BY_GUID[58:])
    assert update.properties == PROPERTIES
    assert (update.identifier, update.guid_master_id) == (OBJECT, PARTITION)


@pytest.mark.parametrize("size", [0, 23, 25])
def test_reserved_bytes_of_another_number_are_refused(size: int) -> None:
    with pytest.raises(WireError, match="Reserved"):
        NotificationUpdate(UPDATE, OBJECT, PARTITION, PROPERTIES, bytes(size)).encode()


@pytest.mark.parametrize(("command", "fewest"), [(CREATE, 1), (UPDATE, 1), (DELETE, 2)])
def test_an_update_has_the_properties_that_tell_the_object_type(command: int, fewest: int) -> None:
    properties: list[Any] = [(1403, 1), (1404, 1)]
    assert_round_trip(NotificationUpdate(command, OBJECT, PARTITION, properties[:fewest]))
    short = NotificationUpdate(command, OBJECT, PARTITION, properties[: fewest - 1])
    with pytest.raises(WireError, match=r"NumberOfProperties: \d are too few"):
        short.encode()
    ids = b"".join(number.to_bytes(4, "little") for number, _ in short.properties)
    data = bytes([command]) + BY_GUID[1:58] + bytes([fewest - 1]) + ids + b"\1" * (fewest - 1)
    with pytest.raises(WireError, match=r"NumberOfProperties at offset 58: \d are too few"):
        NotificationUpdate.decode(data)


@pytest.mark.requirement("CN-2.2.2-02")
@pytest.mark.parametrize("number", [0, 1, 27, 100, 120, 122, 204, 1000, 1204, 5104, 0xFFFFFFFF])
def test_a_property_that_the_specification_does_not_know_is_refused_by_number(number: int) -> None:
    unknown: list[Any] = [(105, 1), (number, 1)]
    for structure in (
        DirectoryChange(UPDATE, OBJECT, PARTITION, properties=unknown),
        NotificationUpdate(UPDATE, OBJECT, PARTITION, unknown),
    ):
        with pytest.raises(WireError, match=f"{number} is no property"):
            structure.encode()
    data = BY_GUID[:58] + b"\2\x69\0\0\0" + number.to_bytes(4, "little") + bytes(40)
    for read in (DirectoryChange.decode, NotificationUpdate.decode):
        with pytest.raises(WireError, match=f"at offset 63: {number} is no property"):
            read(data)


@pytest.mark.requirement("RP-2.2.4-13")
def test_a_change_has_at_most_255_properties() -> None:
    properties: list[Any] = [(104, number) for number in range(255)]
    assert_round_trip(DirectoryChange(UPDATE, OBJECT, PARTITION, properties=properties))
    assert_round_trip(NotificationUpdate(UPDATE, OBJECT, PARTITION, properties))
    properties.append((104, 0))
    with pytest.raises(WireError, match="256 is more than 255"):
        DirectoryChange(UPDATE, OBJECT, PARTITION, properties=properties).encode()
    with pytest.raises(WireError, match="256 is more than 255"):
        NotificationUpdate(UPDATE, OBJECT, PARTITION, properties).encode()


def test_more_properties_than_bytes_are_refused_at_once() -> None:
    with pytest.raises(WireError, match="NumberOfProperties at offset 58: 255 properties"):
        DirectoryChange.decode(BY_GUID[:58] + b"\xff" + BY_GUID[59:])


@pytest.mark.requirement("RP-2.2.4-15", "RP-2.2.4-17", "CN-2.2.6-21", "CN-2.2.6-23")
@pytest.mark.parametrize("structure", [DirectoryChange, NotificationUpdate])
def test_the_number_of_properties_counts_ids_and_values(
    structure: type[DirectoryChange | NotificationUpdate],
) -> None:
    ids = bytes.fromhex("69000000 6b000000 d6000000")  # three of VT_UI4
    for count in (1, 2, 3):
        data = BY_GUID[:58] + bytes([count]) + ids[: 4 * count] + bytes(range(4 * count))
        decoded = structure.decode(data)
        assert len(decoded.properties) == count
        assert decoded.encode() == data
        with pytest.raises(WireError):
            structure.decode(data[:-1])


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("partition_id", bytes(15), "PartitionID"),
        ("identifier", bytes(17), "GuidIdentifier"),
        ("identifier", "a\0b", "PathName"),
        ("previous_seq_number", 1 << 64, "PreviousSeqNumber"),
        ("seq_number", -1, "SeqNumber"),
        ("purged_seq_number", 1 << 64, "PurgedSeqNumber"),
        ("properties", [(105, 1 << 32)], "PropertyValue[PROPID_Q_QUOTA]"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(field: str, value: Any, name: str) -> None:
    change = DirectoryChange.decode(BY_GUID)
    setattr(change, field, value)
    with pytest.raises(WireError) as caught:
        change.encode()
    assert caught.value.field == name


@given(directory_changes)
def test_changes_round_trip(change: DirectoryChange) -> None:
    assert_round_trip(change)


@given(notification_updates)
def test_updates_round_trip(update: NotificationUpdate) -> None:
    assert_round_trip(update)


@given(st.sampled_from([BY_GUID, BY_PATH]), st.integers(0, 90), st.binary(max_size=6))
def test_damaged_bytes_decode_or_raise_wire_error(data: bytes, at: int, new: bytes) -> None:
    damaged = data[:at] + new + data[at + len(new) :]
    assert_decodes_or_refuses(DirectoryChange.decode, damaged)
    assert_decodes_or_refuses(NotificationUpdate.decode, damaged)


@given(st.binary(max_size=120))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(DirectoryChange.decode, data)
    assert_decodes_or_refuses(NotificationUpdate.decode, data)


@pytest.mark.parametrize("data", [BY_GUID, BY_PATH])
def test_a_cut_record_is_refused(data: bytes) -> None:
    assert_every_cut_is_refused(DirectoryChange.decode, data)
    assert_every_cut_is_refused(NotificationUpdate.decode, data)


VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "mqcn-examples.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(
    "example", [pytest.param(e, id=e["name"]) for e in VECTORS if "PROPID" in e["fields"]]
)
def test_property_ids_have_the_bytes_of_the_examples(example: dict[str, Any]) -> None:
    number, wire = example["fields"]["PROPID"], bytes.fromhex(example["hex"])
    for data in (wire + bytes(16), wire + bytes(4)):  # values of zeros, of any type
        change = DirectoryChange.decode(BY_GUID[:58] + b"\1" + data + bytes(16))
        assert change.properties[0][0] == number
        assert change.encode()[59:63] == wire


def test_a_queue_deletion_has_the_bytes_of_the_example() -> None:
    (example,) = [e for e in VECTORS if "NumberOfProperties" in e["fields"]]
    fields = example["fields"]
    values = [value["value"] for value in fields["PropertyValue"]]
    properties: list[Any] = [*zip(fields["PropertyId"], values, strict=True)]
    update = NotificationUpdate(DELETE, OBJECT, PARTITION, properties)
    data = update.encode()
    assert data[58:] == bytes.fromhex(example["hex"])
    assert NotificationUpdate.decode(data) == update
