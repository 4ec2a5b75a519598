"""The table of attributes agrees with the numbers and types that MSMQ gives its properties."""

from __future__ import annotations

import re

import pytest

from falconmq.directory.notification_values import ATTRIBUTES
from falconmq.directory.schema import Attribute, Kind
from falconmq.directory.tables import TABLES
from falconmq.manager.directory_objects import (
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    QueueManager,
    RoutingLink,
    Site,
    User,
)
from falconmq.wire.property_ids import PROPERTIES, object_type_of
from falconmq.wire.variant import (
    VT_BLOB,
    VT_CLSID,
    VT_I2,
    VT_I4,
    VT_LPWSTR,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_VECTOR,
)
from tests.wire.property_catalogue import requirement

VARIANTS = {
    Kind.TEXT: {VT_LPWSTR},
    Kind.OPTIONAL_TEXT: {VT_LPWSTR},
    Kind.NUMBER: {VT_UI1, VT_UI2, VT_UI4, VT_I2},
    Kind.TIME: {VT_I4},
    Kind.BOOLEAN: {
        VT_UI1,
        VT_UI2,
        VT_UI4,
        VT_LPWSTR,
    },  # 210 in bits, 310 and 617 wider, 603 as text
    Kind.GUID: {VT_CLSID},
    Kind.GUIDS: {VT_CLSID | VT_VECTOR},
    Kind.BYTES: {VT_BLOB},
    Kind.DIGESTS: {VT_CLSID | VT_VECTOR},
    Kind.SECURITY: {VT_BLOB},
}
NUMBERED = [
    (table.code, attribute)
    for table in TABLES.values()
    for attribute in table.attributes
    if attribute.property_id is not None
]


@pytest.mark.parametrize(
    ("code", "attribute"), NUMBERED, ids=[f"{a.property_id}-{a.name}" for _, a in NUMBERED]
)
def test_an_attribute_has_the_type_of_its_property(code: int, attribute: Attribute) -> None:
    assert attribute.property_id is not None
    assert object_type_of(attribute.property_id) == code
    assert PROPERTIES[attribute.property_id].vt in VARIANTS[attribute.kind]


@pytest.mark.parametrize(
    "kind", [QueueManager, Site, RoutingLink, Enterprise, ConnectedNetwork, User]
)
def test_a_directory_holds_all_that_an_object_publishes(kind: type[DirectoryObject]) -> None:
    names = {attribute.name for attribute in TABLES[kind.type_name].attributes}
    assert kind().row().keys() <= names


# What MS-MQCN calls attributes of queue managers and queues, in the order of its rows.
SHARED = {
    "CN-3.1.1.2.1": (
        "identifier",
        "foreign_system",
        "quota_kilobytes",
        "journal_quota_kilobytes",
        "security",
        "connected_network_identifiers",
        "queue_manager_version",
        "operating_system_type",
    ),
    "CN-3.1.1.3": (
        "identifier",
        "type",
        "base_priority",
        "journaling",
        "quota_kilobytes",
        "journal_quota_kilobytes",
        "create_time",
        "modify_time",
        "security",
        "path_name",
        "label",
        "authentication",
        "privacy_level",
        "transactional",
        "multicast_address",
        "directory_path",
        "scope",
    ),
}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        pytest.param(row, name, marks=pytest.mark.requirement(row), id=row)
        for section, names in SHARED.items()
        for row, name in ((f"{section}-{n:02}", name) for n, name in enumerate(names, 1))
    ],
)
def test_an_attribute_has_the_number_that_notifications_give_it(row: str, name: str) -> None:
    number = re.search(r"\((\d+)\)", requirement(row))
    assert number
    prop = PROPERTIES[int(number[1])]
    told = {ATTRIBUTES[prop].name} if prop in ATTRIBUTES else set()
    kept = {a.name for _, a in NUMBERED if a.property_id == prop.value}
    assert told | kept == {name}
