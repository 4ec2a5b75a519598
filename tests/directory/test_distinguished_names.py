"""Names in the tree: escaping, splitting, and the components of queues and links."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.directory.distinguished_names import (
    child,
    domain_components,
    domain_of,
    folded,
    link_component,
    name_hash,
    parent_of,
    queue_component,
    queue_name,
    split_name,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
QUEUE_NAMES = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=124
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", 0x3F590A6E),
        ("A", 0x3F590A6E),
        ("queue", 0x71185BCE),
        ("q" * 64, 0xA3A15B81),
        ("q" * 80, 0x6E29C24C),
    ],
)
def test_the_check_sum_is_that_of_windows(name: str, value: int) -> None:
    assert name_hash(name) == value


@given(components=st.lists(TEXT, min_size=1, max_size=4))
def test_any_text_can_be_a_component(components: list[str]) -> None:
    name = "DC=com"
    for component in components:
        name = child(component, name)
    assert [value for _, value in split_name(name)] == [*reversed(components), "com"]
    assert parent_of(child("x", name)) == name


@given(name=QUEUE_NAMES)
def test_a_queue_name_survives_its_component(name: str) -> None:
    component, extension = queue_component(name)
    assert len(component) <= 64
    assert queue_name(component, extension) == name.replace("\\", "").lower()


def test_components_as_windows_writes_them_are_read() -> None:
    assert queue_name("a\\=b", "") == "a=b"


def test_spelling_does_not_count() -> None:
    assert folded(r"cn=A\3Db,DC=Com") == folded(r"CN=a\=B, dc=com")
    assert folded("CN=a,DC=com") != folded("CN=b,DC=com")


def test_domains_and_links() -> None:
    assert domain_components("example.com") == "DC=example,DC=com"
    assert domain_of("dc=example,dc=com") == "example.com"
    assert link_component(UUID(int=1), UUID(int=0xAB)) == f"{1:032x}{0xAB:032x}"
