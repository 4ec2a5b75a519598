"""Objects as properties and back."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest

from falconmq.directory.replication.properties import (
    IDENTIFIERS,
    OBJECT_TABLES,
    carried_names,
    is_bsc,
    properties_for,
    sync_properties,
    values_of,
)
from falconmq.directory.schema import Kind, ObjectTable
from falconmq.manager.directory_objects import NULL_UUID
from falconmq.wire.directory_change import CREATE, DirectoryChange
from falconmq.wire.property_ids import MachineProperty, ObjectType
from falconmq.wire.reader import Reader
from falconmq.wire.sddl import parse_sddl
from tests.wire.property_catalogue import requirement, rows

GUID = UUID(int=0x1234)
SAMPLES: dict[Kind, Any] = {
    Kind.TEXT: "täxt",
    Kind.OPTIONAL_TEXT: "234.1.1.1:8001",
    Kind.NUMBER: 7,
    Kind.TIME: 1_700_000_001,
    Kind.BOOLEAN: True,
    Kind.GUID: GUID,
    Kind.GUIDS: [GUID, UUID(int=9)],
    Kind.BYTES: b"bytes",
    Kind.DIGESTS: [b"d" * 16],
    Kind.SECURITY: parse_sddl("O:S-1-1-0"),
}


def sample(table: ObjectTable) -> dict[str, Any]:
    """An object that has a value of its own for everything."""
    row: dict[str, Any] = {}
    for attribute in table.attributes:
        value = SAMPLES[attribute.kind]
        if attribute.choices is not None:
            value = list(attribute.choices)[-1]
        row[attribute.name] = value
    if "non_ldap_capable_queue_manager_notification" in row:
        row["non_ldap_capable_queue_manager_notification"] = False
    return row


@pytest.mark.parametrize("code", OBJECT_TABLES)
def test_what_is_carried_arrives_as_it_was(code: int) -> None:
    table = OBJECT_TABLES[code]
    row = sample(table)
    for properties in (
        properties_for(table, row, later=True),
        sync_properties(table, row, later=True, pec_name="PEC0"),
    ):
        change = DirectoryChange(CREATE, "x", bytes(16), properties=properties)
        decoded = DirectoryChange.read(Reader(change.encode()))
        values = values_of(decoded.properties)
        for name in carried_names(table, later=True):
            assert values[name] == row[name], name
    assert values_of(properties_for(table, row, later=True))["identifier"] == GUID


@pytest.mark.parametrize("code", OBJECT_TABLES)
def test_what_is_usual_is_carried_too(code: int) -> None:
    """An attribute that was reset must arrive: nothing at all is a value."""
    table = OBJECT_TABLES[code]
    row: dict[str, Any] = {a.name: a.default for a in table.attributes} | {"identifier": GUID}
    if "actual_cost" in row:
        row["actual_cost"] = 1
    row.update({name: NULL_UUID for name, value in row.items() if value is None and "guid" in name})
    values = values_of(sync_properties(table, row, later=True, pec_name=""))
    for name in carried_names(table, later=True) - {"site_identifiers"}:
        assert values[name] == row[name], name


def test_only_what_was_changed_is_told() -> None:
    table = OBJECT_TABLES[2]
    row = sample(table)
    names = {"routing_server", "modify_time", "operating_system_version"}
    told = properties_for(table, row, later=True, names=names)
    assert [number for number, _ in told] == [218, 210]
    assert properties_for(table, row, later=True, names={"operating_system_version"}) == []


def test_values_that_mean_nothing_are_left_out() -> None:
    assert values_of([(112, 99), (1101, b"nonsense"), (111, 7), (212, 5), (108, "fine")]) == {
        "label": "fine"
    }


@pytest.mark.parametrize(
    ("service", "expected"), [(0, False), (1, False), (2, True), (3, True), (4, False), (8, False)]
)
def test_which_services_make_a_bsc(service: int, expected: bool) -> None:
    assert is_bsc(service) is expected


@pytest.mark.requirement("MQ-2.3.2.39-03")
@pytest.mark.parametrize("blob", [b"", b"?", parse_sddl("O:S-1-1-0D:(A;;GA;;;WD)").encode()])
def test_who_asks_for_a_new_dacl_decides_nothing_about_it(blob: bytes) -> None:
    upgrade = MachineProperty.PROPID_QM_UPGRADE_DACL
    assert values_of([(upgrade.value, blob), (214, 7)]) == {"quota_kilobytes": 7}


SYNCHRONISED = [
    pytest.param(row, marks=pytest.mark.requirement(row), id=row)
    for row, text in rows("mqdsrp.tsv", "RP-3.2.7.8-")
    if "sync-change PROPIDs in order" in text
]


def test_every_kind_of_object_has_a_list_of_the_specification() -> None:
    assert len(SYNCHRONISED) == len(OBJECT_TABLES) == 7


@pytest.mark.parametrize("row", SYNCHRONISED)
def test_a_synchronisation_carries_the_properties_of_the_list_in_its_order(row: str) -> None:
    kind, _, listed = requirement(row).partition(" sync-change PROPIDs in order: ")
    table = OBJECT_TABLES[ObjectType[kind]]
    carried = sync_properties(table, sample(table), later=False, pec_name="PEC0")
    numbers = listed.partition(" ")[0].removesuffix(".").split(",")
    assert [number for number, _ in carried] == [int(number) for number in numbers]


@pytest.mark.requirement("RP-3.1.7.2.8-04")
@pytest.mark.parametrize("code", OBJECT_TABLES)
def test_the_identifier_of_an_object_has_the_number_of_its_kind(code: int) -> None:
    kind = ObjectType(code).name.removeprefix("MQDS_")
    number = re.search(rf"\b{kind} \w+ (\d+)", requirement("RP-3.1.7.2.8-04"))
    assert number
    table = OBJECT_TABLES[code]
    assert IDENTIFIERS[code] == int(number[1])
    first, *_ = properties_for(table, sample(table), later=False)
    assert first == (int(number[1]), GUID.bytes_le)
