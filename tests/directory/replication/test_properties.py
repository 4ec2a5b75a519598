"""Objects as properties and back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from falconmq.directory.replication.properties import (
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
from falconmq.wire.reader import Reader
from falconmq.wire.sddl import parse_sddl

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
