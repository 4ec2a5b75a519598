"""ACCESS_MASK, MS-DTYP 2.4.3, and MSMQ's rights, MQMQ 2.2.23 to 2.2.27."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.wire import access_masks
from falconmq.wire.access_masks import ObjectKind, map_generic, mask_in_words
from tests.strategies.wire import u32

CATALOGUE = Path(__file__).parents[2] / "conformance" / "mqmq.tsv"
KINDS = {
    "MQQMACCESSMASK": ObjectKind.QUEUE_MANAGER,
    "MQQUEUEACCESSMASK": ObjectKind.QUEUE,
    "MQSITEACCESSMASK": ObjectKind.SITE,
    "MQENTACCESSMASK": ObjectKind.ENTERPRISE,
    "MQCNACCESSMASK": ObjectKind.CONNECTED_NETWORK,
}
ROW = re.compile(r"(MQ-2\.2\.2[3-7]-\d+)\t.*\t(MQ\w+)\.(\w+) = (0x[0-9A-F]{8}): ")
ROWS = [match.groups() for line in CATALOGUE.read_text().splitlines() if (match := ROW.match(line))]
kinds = st.sampled_from(ObjectKind)


def test_the_catalogue_has_all_rights() -> None:
    assert len(ROWS) == 65
    assert len({name for _, _, name, _ in ROWS}) == 65


def rights() -> Iterator[object]:
    for row, _, name, value in ROWS:
        yield pytest.param(name, int(value, 16), marks=pytest.mark.requirement(row), id=name)


@pytest.mark.parametrize(("name", "value"), list(rights()))
def test_rights_have_the_values_of_the_specification(name: str, value: int) -> None:
    assert getattr(access_masks, name) == value


def shared_masks() -> Iterator[object]:
    """The rows of MS-MQDMPR that list the rights of a kind, without the generic ones."""
    for line in CATALOGUE.with_name("mqdmpr.tsv").read_text().splitlines():
        row, *_, text = line.split("\t")
        structure, colon, listed = text.partition(": ")
        if colon and structure in KINDS:
            values = {int(value, 16) for value in re.findall(r" (0x[0-9A-F]+)\b", listed)}
            yield pytest.param(structure, values, marks=pytest.mark.requirement(row), id=structure)


@pytest.mark.parametrize(("structure", "values"), list(shared_masks()))
def test_both_documents_have_the_same_rights(structure: str, values: set[int]) -> None:
    names = [name for _, owner, name, _ in ROWS if owner == structure and "GENERIC" not in name]
    assert {getattr(access_masks, name) for name in names} == values


def generic_rights() -> Iterator[object]:
    for row, structure, name, value in ROWS:
        if match := re.search("GENERIC_(READ|WRITE|ALL)$", name):
            mark = pytest.mark.requirement(row)
            generic = {"READ": 1 << 31, "WRITE": 1 << 30, "ALL": 1 << 28}[match[1]]
            yield pytest.param(KINDS[structure], generic, int(value, 16), marks=mark, id=name)


@pytest.mark.parametrize(("kind", "generic", "expected"), list(generic_rights()))
def test_generic_rights_stand_for_those_of_the_kind(
    kind: ObjectKind, generic: int, expected: int
) -> None:
    assert map_generic(generic, kind) == expected
    assert map_generic(generic | 0x00100001, kind) == expected | 0x00100001


def test_a_connected_network_has_no_generic_write() -> None:
    assert map_generic(access_masks.GENERIC_WRITE, ObjectKind.CONNECTED_NETWORK) == 0


@pytest.mark.parametrize("kind", ObjectKind)
def test_nothing_of_msmq_is_executed(kind: ObjectKind) -> None:
    assert map_generic(access_masks.GENERIC_EXECUTE, kind) == 0


@given(u32, kinds)
def test_mapping_leaves_no_generic_right_and_takes_nothing_away(
    mask: int, kind: ObjectKind
) -> None:
    mapped = map_generic(mask, kind)
    assert mapped & 0xF0000000 == 0
    assert mapped & (mask & 0x0FFFFFFF) == mask & 0x0FFFFFFF
    assert map_generic(mapped, kind) == mapped


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GENERIC_READ", 0x80000000),
        ("GENERIC_WRITE", 0x40000000),
        ("GENERIC_EXECUTE", 0x20000000),
        ("GENERIC_ALL", 0x10000000),
        ("MAXIMUM_ALLOWED", 0x02000000),
        ("ACCESS_SYSTEM_SECURITY", 0x01000000),
        ("SYNCHRONIZE", 0x00100000),
        ("WRITE_OWNER", 0x00080000),
        ("WRITE_DACL", 0x00040000),
        ("READ_CONTROL", 0x00020000),
        ("DELETE", 0x00010000),
    ],
)
def test_rights_every_object_has(name: str, value: int) -> None:
    assert getattr(access_masks, name) == value


@pytest.mark.parametrize(
    ("mask", "kind", "words"),
    [
        (0, ObjectKind.QUEUE, "nothing"),
        (0xF003F, ObjectKind.QUEUE, "full control"),
        (0x3, ObjectKind.QUEUE, "receive messages"),
        (0x1, ObjectKind.QUEUE, "delete messages"),
        (0x2, ObjectKind.QUEUE, "peek messages"),
        (0xA, ObjectKind.QUEUE, "receive journal messages"),
        (0x9, ObjectKind.QUEUE, "delete messages, delete journal messages"),
        (
            0x2002B,
            ObjectKind.QUEUE,
            "receive messages, receive journal messages, read properties, read permissions",
        ),
        (0x20024, ObjectKind.QUEUE, "send messages, read properties, read permissions"),
        (0x20024, ObjectKind.QUEUE_MANAGER, "create queues, read properties, read permissions"),
        (0x20024, ObjectKind.SITE, "add queue managers, read properties, read permissions"),
        (0xC3, ObjectKind.QUEUE_MANAGER, "receive dead letters, receive from the journal"),
        (0x7, ObjectKind.ENTERPRISE, "add users, add sites, add connected networks"),
        (0x1, ObjectKind.CONNECTED_NETWORK, "open connector queues"),
        (0xF0031, ObjectKind.CONNECTED_NETWORK, "full control"),
        (0x80000000, ObjectKind.QUEUE, "generic read"),
        (0xD0100, ObjectKind.SITE, "delete, change permissions, take ownership, 0x100"),
        (0x40, ObjectKind.QUEUE, "0x40"),
    ],
)
def test_masks_in_words(mask: int, kind: ObjectKind, words: str) -> None:
    assert mask_in_words(mask, kind) == words


@given(u32, kinds)
def test_the_words_say_every_bit_and_no_other(mask: int, kind: ObjectKind) -> None:
    meanings = {mask_in_words(1 << bit, kind): 1 << bit for bit in range(32)}
    meanings |= {
        "nothing": 0,
        "receive messages": 0x3,
        "receive journal messages": 0xA,
        "receive dead letters": 0x3,
        "receive from the journal": 0xC0,
        "full control": {
            ObjectKind.QUEUE_MANAGER: 0xF00F7,
            ObjectKind.QUEUE: 0xF003F,
            ObjectKind.SITE: 0xF0037,
            ObjectKind.ENTERPRISE: 0xF0037,
            ObjectKind.CONNECTED_NETWORK: 0xF0031,
        }[kind],
    }
    said = 0
    for word in mask_in_words(mask, kind).split(", "):
        said |= int(word, 16) if word.startswith("0x") else meanings[word]
    assert said == mask


@pytest.mark.parametrize("kind", ObjectKind)
def test_every_right_of_the_kind_has_words(kind: ObjectKind) -> None:
    everything = map_generic(access_masks.GENERIC_ALL, kind)
    for bit in range(32):
        if everything >> bit & 1:
            assert not mask_in_words(1 << bit, kind).startswith("0x")
