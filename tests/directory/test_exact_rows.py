"""Rows in their exact form: through JSON and back, every value is what it was."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.directory.records import exact_row, from_exact, row_of_exact, to_exact
from falconmq.directory.schema import Attribute, Kind
from falconmq.directory.tables import TABLES
from falconmq.errors import DirectoryError
from falconmq.manager.states import QueuePrivacy
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import EVERYONE, Sid

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
DESCRIPTOR = SecurityDescriptor(
    ALICE, Sid.parse("S-1-5-32-544"), Acl.of([access_allowed(0x40_0004, EVERYONE)]), Acl.of([])
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
GUIDS = st.uuids()
OF_KIND: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.TEXT: TEXTS,
    Kind.OPTIONAL_TEXT: st.none() | TEXTS,
    Kind.NUMBER: st.integers(-(1 << 40), 1 << 40),
    Kind.TIME: st.integers(0, 0xFFFFFFFF),
    Kind.BOOLEAN: st.booleans(),
    Kind.GUID: GUIDS,
    Kind.GUIDS: st.lists(GUIDS, max_size=3),
    Kind.NAMES: st.lists(TEXTS, max_size=3),
    Kind.BYTES: st.binary(max_size=20),
    Kind.DIGESTS: st.lists(st.binary(min_size=16, max_size=16), max_size=3),
    Kind.SECURITY: st.sampled_from([None, DESCRIPTOR, SecurityDescriptor(dacl=Acl.of([]))]),
}


def values(attribute: Attribute) -> st.SearchStrategy[Any]:
    if attribute.choices is not None:
        return st.sampled_from(list(attribute.choices))
    return OF_KIND[attribute.kind]


def rows(type_name: str) -> st.SearchStrategy[dict[str, Any]]:
    attributes = {each.name: values(each) for each in TABLES[type_name].attributes}
    return st.fixed_dictionaries({}, optional=attributes)


@pytest.mark.parametrize("type_name", TABLES)
@given(data=st.data())
def test_what_goes_over_comes_back(type_name: str, data: st.DataObject) -> None:
    table, row = TABLES[type_name], data.draw(rows(type_name))
    over = json.loads(json.dumps(exact_row(table, row)))
    back = row_of_exact(table, over)
    assert back == row
    assert {name: type(value) for name, value in back.items()} == {
        name: type(value) for name, value in row.items()
    }


@pytest.mark.parametrize(
    ("type_name", "name", "value"),
    [
        ("QueueManager", "site_identifiers", UUID(int=7)),
        ("User", "certificate_digests", b"\xff" * 16),
        ("DistributionList", "members", "CN=a,DC=b"),
    ],
)
def test_one_element_of_a_list_goes_over_too(type_name: str, name: str, value: object) -> None:
    attribute = TABLES[type_name].find(name)
    over = to_exact(attribute, value)
    assert isinstance(over, str)
    assert from_exact(attribute, over) == value


@pytest.mark.parametrize(
    ("type_name", "fields"),
    [
        ("Queue", {"colour": "red"}),
        ("Queue", {"type": 7}),
        ("Queue", {"type": "no GUID"}),
        ("Queue", {"security": "00"}),
        ("Queue", {"security": {}}),
        ("Queue", {"privacy_level": 77}),
        ("QueueManager", {"site_identifiers": {"a": 1}}),
        ("QueueManager", {"site_identifiers": [1]}),
        ("QueueManager", {"public_encryption_keys": "xyz"}),
        ("QueueManager", {"public_encryption_keys": 12}),
        ("User", {"certificate_digests": [None]}),
    ],
)
def test_what_is_no_value_is_refused(type_name: str, fields: dict[str, Any]) -> None:
    with pytest.raises(DirectoryError):
        row_of_exact(TABLES[type_name], fields)


def test_numbers_that_mean_something_come_back_as_what_they_mean() -> None:
    back = row_of_exact(TABLES["Queue"], {"privacy_level": 2})
    assert back["privacy_level"] is QueuePrivacy.BODY
