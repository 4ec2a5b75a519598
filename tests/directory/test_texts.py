"""Attributes in words: what is shown can be typed again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from falconmq.directory.tables import TABLES
from falconmq.directory.texts import (
    WORDS,
    named,
    parse_filters,
    parse_value,
    parsed,
    shown,
    table_for,
)
from falconmq.errors import DirectoryError, FalconMQError
from falconmq.manager.directory_backend import FilterOperator
from falconmq.manager.states import QueuePrivacy
from falconmq.wire.sddl import parse_sddl

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")

VALUES: list[tuple[str, str, object, Any]] = [
    ("Queue", "label", "x", "x"),
    ("Queue", "journaling", True, True),
    ("Queue", "quota_kilobytes", 7, 7),
    ("Queue", "privacy_level", QueuePrivacy.BODY, "BODY"),
    ("Queue", "type", GUID, str(GUID)),
    ("Queue", "multicast_address", None, None),
    ("Queue", "security", parse_sddl("D:(A;;0x4;;;WD)"), "D:(A;;0x4;;;WD)"),
    ("Queue", "create_time", 1_700_000_000, "2023-11-14T22:13:20Z"),
    ("QueueManager", "site_identifiers", [GUID], [str(GUID)]),
    ("QueueManager", "public_encryption_keys", b"\0\xff", "AP8="),
    ("User", "certificate_digests", [bytes(16)], ["AAAAAAAAAAAAAAAAAAAAAA=="]),
    ("DistributionList", "members", ["CN=a,DC=b"], ["CN=a,DC=b"]),
]


@pytest.mark.parametrize(("type_name", "name", "value", "text"), VALUES)
def test_what_is_shown_is_read_back(type_name: str, name: str, value: object, text: Any) -> None:
    table = TABLES[type_name]
    assert shown(table, {name: value}) == {name: text}
    assert parsed(table, {name: text}) == {name: value}


@pytest.mark.parametrize(
    ("type_name", "name", "typed", "value"),
    [
        ("Queue", "journaling", "yes", True),
        ("Queue", "journaling", "No", False),
        ("Queue", "quota_kilobytes", "0x10", 16),
        ("Queue", "privacy_level", "2", 2),
        ("Queue", "privacy_level", "none", QueuePrivacy.NONE),
        ("Queue", "multicast_address", "", None),
        ("Queue", "security", "", None),
        ("Queue", "create_time", "1700000000", 1_700_000_000),
        ("QueueManager", "site_identifiers", f"{GUID}, {GUID}", [GUID, GUID]),
        ("QueueManager", "site_identifiers", "", []),
        ("DistributionList", "members", "CN=a,DC=b", ["CN=a,DC=b"]),
        ("DistributionList", "members", "", []),
    ],
)
def test_what_people_type_is_understood(
    type_name: str, name: str, typed: str, value: object
) -> None:
    assert parse_value(TABLES[type_name].find(name), typed) == value


@pytest.mark.parametrize(
    ("type_name", "name", "typed"),
    [
        ("Queue", "journaling", "perhaps"),
        ("Queue", "quota_kilobytes", "many"),
        ("Queue", "quota_kilobytes", 1.5),
        ("Queue", "privacy_level", "secret"),
        ("Queue", "type", "x"),
        ("Queue", "security", "D:(nonsense"),
        ("Queue", "create_time", "yesterday"),
        ("QueueManager", "public_encryption_keys", "%%"),
        ("Queue", "colour", "red"),
    ],
)
def test_what_cannot_be_meant_is_refused(type_name: str, name: str, typed: object) -> None:
    with pytest.raises(DirectoryError) as caught:
        parsed(TABLES[type_name], {name: typed})
    assert name in str(caught.value)


def test_conditions_are_read() -> None:
    found = parse_filters(TABLES["Queue"], ["label=a=b", "quota_kilobytes >= 7", "label!="])
    assert [(f.name, f.operator, f.value) for f in found] == [
        ("label", FilterOperator.EQUALS, "a=b"),
        ("quota_kilobytes", FilterOperator.GREATER_THAN_OR_EQUAL, 7),
        ("label", FilterOperator.NOT_EQUALS, ""),
    ]
    (one,) = parse_filters(TABLES["QueueManager"], [f"site_identifiers={GUID}"])
    assert one.value == GUID
    with pytest.raises(DirectoryError):
        parse_filters(TABLES["Queue"], ["label"])


def test_every_type_has_a_word_and_objects_have_names() -> None:
    assert {table_for(word).type_name for word in WORDS} == set(TABLES)
    assert named(TABLES["Site"], str(GUID))[0].name == "identifier"
    assert named(TABLES["Queue"], r"a\b")[0].name == "path_name"
    assert named(TABLES["User"], "S-1-1-0")[0].name == "security_identifier"
    for table, name in (("RoutingLink", "Berlin"), ("User", "anna")):
        with pytest.raises(FalconMQError):
            named(TABLES[table], name)
    with pytest.raises(DirectoryError):
        table_for("planet")
