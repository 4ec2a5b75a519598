"""The table of property ids, MQMQ 2.3, against the requirement catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from falconmq.wire.property_ids import (
    DIRECTORY_CLASSES,
    MANAGEMENT_CLASSES,
    PROPERTIES,
    ComputerProperty,
    ConnectedNetworkProperty,
    DeletionProperty,
    EnterpriseProperty,
    MachineProperty,
    ManagementMachineProperty,
    ManagementQueueProperty,
    MQUserProperty,
    ObjectType,
    Property,
    QueueProperty,
    RoutingLinkProperty,
    SettingsProperty,
    SiteProperty,
    UserProperty,
    object_type_of,
)
from falconmq.wire.variant import Value, encode_value
from tests.wire.property_catalogue import requirement, rows, type_number

# by the number of the section of MQMQ 2.3
SECTIONS: dict[str, type[Property]] = {
    "1": QueueProperty,
    "2": MachineProperty,
    "3": SiteProperty,
    "4": ConnectedNetworkProperty,
    "5": EnterpriseProperty,
    "6": UserProperty,
    "7": RoutingLinkProperty,
    "8": SettingsProperty,
    "9": MQUserProperty,
    "10": ComputerProperty,
    "11": ManagementMachineProperty,
    "12": ManagementQueueProperty,
    "13": DeletionProperty,
}
DEFINITION = re.compile(r"(PROPID_\w+) = (\d+) \((0x\w+)\), (\S+) \((0x\w+)\): (.*)")
SINCE = {"MSMQ 2.0 on": 2, "not MSMQ 1.0": 2, "MSMQ 3.0 on": 3, "not MSMQ 1.0 or 2.0": 3}


def _since(section: str, text: str) -> int:
    """The first MSMQ version that a row's text allows; sections 8 to 10 are not valid in 1.0."""
    found = [version for phrase, version in SINCE.items() if phrase in text]
    return max(found, default=2 if section in {"8", "9", "10"} else 1)


def _definitions() -> Iterator[Any]:
    for row, text in rows("mqmq.tsv", "MQ-2.3."):
        match = DEFINITION.match(text)
        if match:
            # a default or a limit that the row also names: test_property_values
            mark = pytest.mark.requirement(row)
            yield pytest.param(row.split(".")[2], *match.groups(), id=match[1], marks=mark)


ALL = [*_definitions()]


@pytest.mark.parametrize(("section", "name", "number", "hexa", "types", "vt", "meaning"), ALL)
def test_a_property_has_the_number_and_type_of_the_specification(
    section: str, name: str, number: str, hexa: str, types: str, vt: str, meaning: str
) -> None:
    prop = SECTIONS[section].find(int(number))
    assert prop is not None
    assert prop.name == name
    assert prop == int(hexa, 16)
    assert prop.vt == type_number(types) == int(vt, 16)
    assert prop.since == _since(section, meaning)
    if SECTIONS[section] in DIRECTORY_CLASSES:
        assert PROPERTIES[int(number)] is prop


def test_there_is_no_property_that_the_specification_does_not_have() -> None:
    expected = {param.values[1] for param in ALL}
    classes = DIRECTORY_CLASSES + MANAGEMENT_CLASSES
    assert {prop.name for group in classes for prop in group} == expected
    assert set(SECTIONS.values()) == set(classes)
    assert len(ALL) == 186


@pytest.mark.requirement("MQ-2.3-04")
def test_management_numbers_overlap_and_are_told_apart_by_class() -> None:
    assert [*ManagementMachineProperty] == [*range(1, 7)]
    assert [*ManagementQueueProperty] == [*range(1, 28)]
    machine, queue = ManagementMachineProperty.find(3), ManagementQueueProperty.find(3)
    assert machine is ManagementMachineProperty.PROPID_MGMT_MSMQ_DSSERVER
    assert queue is ManagementQueueProperty.PROPID_MGMT_QUEUE_TYPE
    assert ManagementMachineProperty.find(7) is None
    assert not any(number in PROPERTIES for number in range(1, 28))
    assert len(PROPERTIES) == sum(len(group) for group in DIRECTORY_CLASSES)


@pytest.mark.requirement("MQ-2.3-03")
def test_a_property_is_valid_in_all_versions_unless_its_section_says_otherwise() -> None:
    silent = [
        param.values[1]
        for param in ALL
        if param.values[0] not in {"8", "9", "10"}
        and not any(phrase in str(param.values[6]) for phrase in SINCE)
    ]
    known = {p.name: p for group in DIRECTORY_CLASSES + MANAGEMENT_CLASSES for p in group}
    assert len(silent) > 100
    assert {known[str(name)].since for name in silent} == {1}


@pytest.mark.parametrize(
    ("group", "first", "last"),
    [
        pytest.param(
            SettingsProperty, 5101, 5112, marks=pytest.mark.requirement("MQ-2.3.8-01"), id="set"
        ),
        pytest.param(
            MQUserProperty, 5401, 5407, marks=pytest.mark.requirement("MQ-2.3.9-01"), id="mqu"
        ),
        pytest.param(
            ComputerProperty, 5201, 5209, marks=pytest.mark.requirement("MQ-2.3.10-01"), id="com"
        ),
    ],
)
def test_properties_of_active_directory_objects_do_not_exist_in_msmq_1(
    group: type[Property], first: int, last: int
) -> None:
    assert min(group) == first
    assert max(group) == last
    assert min(prop.since for prop in group) == 2


FIXED_SIZES: dict[str, Value] = {"16 bytes": bytes(16), "1 byte": 0, "2 bytes": 0, "4 bytes": 0}


def _notified() -> Iterator[Any]:
    pattern = re.compile(
        r"(PROPID_\w+) = (\d+), wire bytes ([0-9a-f ]{11}); value type (\S+) \((.*?)\)"
    )
    for row, text in rows("mqcn.tsv", "CN-2.2.2.1-"):
        match = pattern.match(text)
        assert match, text
        yield pytest.param(*match.groups(), id=match[1], marks=pytest.mark.requirement(row))


@pytest.mark.parametrize(("name", "number", "wire", "types", "form"), [*_notified()])
def test_a_notified_property_has_the_number_and_the_form_of_mqcn(
    name: str, number: str, wire: str, types: str, form: str
) -> None:
    prop = PROPERTIES[int.from_bytes(bytes.fromhex(wire), "little")]
    assert (prop.name, prop.value) == (name, int(number))
    assert prop.vt == type_number(types)
    _assert_form(prop, form)


def _replicated() -> Iterator[Any]:
    pattern = re.compile(
        r"(PROPID_\w+) = (\d+); belongs to (.*?); value type (\S+): (.*?)(?: \(type|\.$)"
    )
    for row, text in rows("mqdsrp.tsv", "RP-2.2.1-"):
        match = pattern.match(text)
        if match:
            yield pytest.param(*match.groups(), id=match[1], marks=pytest.mark.requirement(row))


@pytest.mark.parametrize(("name", "number", "owner", "types", "form"), [*_replicated()])
def test_a_replicated_property_has_the_number_the_object_and_the_form_of_mqdsrp(
    name: str, number: str, owner: str, types: str, form: str
) -> None:
    prop = PROPERTIES[int(number)]
    assert prop.name == name
    assert prop.vt == type_number(types)
    expected = "MQDS_DELETEDOBJECT" if owner == "deleted object (D)" else owner
    assert ObjectType(prop.object_type).name == expected
    _assert_form(prop, form)


def _assert_form(prop: Property, form: str) -> None:
    """The bytes of a value are as many, and as arranged, as the words of the row say."""
    if form in FIXED_SIZES:
        data = encode_value(prop.vt, FIXED_SIZES[form])
        assert len(data) == int(form.split(maxsplit=1)[0])
    elif form in {"UTF-16LE + 2-byte null", "NUL-terminated UTF-16LE"}:
        assert encode_value(prop.vt, "ab") == b"a\0b\0\0\0"
    elif form in {"u32 length + bytes", "4-byte size + bytes"}:
        assert encode_value(prop.vt, b"abc") == b"\3\0\0\0abc"
    else:
        assert form in {"u32 count + count*16 bytes", "4-byte count + 16 bytes each"}
        assert encode_value(prop.vt, (b"a" * 16, b"b" * 16)) == b"\2\0\0\0" + b"a" * 16 + b"b" * 16


def test_every_property_row_of_mqdsrp_is_read() -> None:
    assert len([*_replicated()]) == 92
    assert len([*_notified()]) == 31


@pytest.mark.parametrize(
    ("number", "expected"),
    [(101, 1), (199, 1), (200, 2), (1000, 10), (1101, 1), (1201, 2), (1405, 4), (601, 6), (27, 0)],
)
def test_the_object_type_is_read_off_the_number(number: int, expected: int) -> None:
    assert object_type_of(number) == expected


def test_object_types_are_numbered_as_deletions_tell_them() -> None:
    words = re.findall(r"(\d) ([A-Z]+)", requirement("MQ-2.3.13.4-02"))
    assert {f"MQDS_{name}": int(number) for number, name in words} == {
        kind.name: kind.value for kind in ObjectType
    }
