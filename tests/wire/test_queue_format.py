"""QUEUE_FORMAT and what it holds, MQMQ 2.2.6 to 2.2.11."""

from __future__ import annotations

import csv
import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.queue_format import (
    FLAG_NOT_SYSTEM,
    FLAG_SYSTEM,
    Arm,
    DlId,
    MulticastId,
    ObjectId,
    QueueFormat,
    QueueFormatType,
    QueueSuffixType,
)
from falconmq.wire.reader import Structure
from tests.strategies.queue_format import dl_ids, multicast_ids, object_ids
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

GUID = bytes.fromhex("0102030405060708090a0b0c0d0e0f10")
CATALOGUE = Path(__file__).parents[2] / "conformance" / "mqmq.tsv"
ARMS: dict[int, Arm] = {
    0: None,
    1: GUID,
    2: ObjectId(GUID, 5),
    3: "OS:h\\q",
    4: GUID,
    5: GUID,
    6: DlId(GUID, "example.com"),
    7: MulticastId(0x010000E0, 8001),
    8: "OS:h\\q;sub",
}


def constants(prefix: str) -> list[object]:
    """Rows of the catalogue that say NAME = value: one case each."""
    cases: list[object] = []
    with CATALOGUE.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
            if match := re.match(rf"{prefix}_(\w+) = (\d+):", row["requirement"]):
                mark = pytest.mark.requirement(row["id"])
                cases.append(pytest.param(match[1], int(match[2]), marks=mark))
    return cases


def refusal(qft: int, suffix_and_flags: int, queue: Arm) -> WireError:
    with pytest.raises(WireError) as caught:
        QueueFormat(qft, suffix_and_flags, queue)  # type: ignore[arg-type] # a number of a peer
    assert caught.value.structure == "QUEUE_FORMAT"
    return caught.value


@pytest.mark.parametrize(("name", "value"), constants("QUEUE_FORMAT_TYPE"))
def test_queue_format_types_have_the_values_of_the_catalogue(name: str, value: int) -> None:
    assert QueueFormatType[name] == value


@pytest.mark.parametrize(("name", "value"), constants("QUEUE_SUFFIX_TYPE"))
def test_queue_suffix_types_have_the_values_of_the_catalogue(name: str, value: int) -> None:
    assert QueueSuffixType[name] == value


def test_there_are_no_other_types_and_suffixes() -> None:
    assert sorted(QueueFormatType) == list(range(9))
    assert sorted(QueueSuffixType) == list(range(6))
    assert len(constants("QUEUE_FORMAT_TYPE")) == 9
    assert len(constants("QUEUE_SUFFIX_TYPE")) == 6


# guide, section 7: suffix, flags, types
LEGAL = {
    0: ({0x00}, {0, 1, 2, 3, 5, 6, 7}),
    1: ({0x80}, {1, 2, 3, 4}),
    2: ({0x80}, {3, 4}),
    3: ({0x80}, {3, 4}),
    4: ({0x00, 0x80}, {5}),
    5: ({0x00}, {8}),
}
SUFFIX_ROWS = {
    0: "MQ-2.2.7-05",
    1: "MQ-2.2.7-06",
    2: "MQ-2.2.7-07",
    3: "MQ-2.2.7-08",
    4: "MQ-2.2.7-09",
    5: "MQ-2.2.7-10",
}


@pytest.mark.parametrize(
    "suffix", [pytest.param(n, marks=pytest.mark.requirement(SUFFIX_ROWS[n])) for n in LEGAL]
)
def test_a_suffix_goes_with_its_flags_and_types_only(suffix: int) -> None:
    flags, types = LEGAL[suffix]
    for flag, qft in product(range(0, 0x100, 0x10), range(9)):
        if flag in flags and qft in types:
            made = QueueFormat(QueueFormatType(qft), flag | suffix, ARMS[qft])
            assert (made.suffix, made.flags) == (suffix, flag)
        else:
            assert refusal(qft, flag | suffix, ARMS[qft]).field == "m_SuffixAndFlags"


@pytest.mark.requirement("MQ-2.2.7-03")
def test_the_suffix_is_the_low_and_the_flags_are_the_high_nibble() -> None:
    queue_format = QueueFormat(QueueFormatType.MACHINE, 0x83, GUID)
    assert queue_format.suffix is QueueSuffixType.DEADXACT
    assert queue_format.flags == 0x80


@pytest.mark.parametrize("suffix_and_flags", [*range(6, 16), -1, 0x100, 0x86])
def test_a_suffix_byte_that_does_not_exist_is_refused(suffix_and_flags: int) -> None:
    assert refusal(3, suffix_and_flags, "OS:h\\q").field == "m_SuffixAndFlags"


@pytest.mark.requirement("MQ-2.2.7-04")
def test_the_flags_have_their_values_and_follow_the_suffix() -> None:
    assert (FLAG_NOT_SYSTEM, FLAG_SYSTEM) == (0x00, 0x80)
    types = {0: 3, 1: 3, 2: 3, 3: 3, 4: 5, 5: 8}
    made = [
        QueueFormat.make(QueueFormatType(qft), QueueSuffixType(suffix), ARMS[qft]).suffix_and_flags
        for suffix, qft in types.items()
    ]
    assert made == [0x00, 0x81, 0x82, 0x83, 0x04, 0x05]


@pytest.mark.requirement("MQ-2.2.7-02")
def test_a_type_outside_0_to_8_is_refused() -> None:
    for qft in (-1, *range(9, 0x100)):
        assert refusal(qft, 0, None).field == "m_qft"
    for legal in range(9):
        suffix = {4: 0x81, 8: 0x05}.get(legal, 0)
        assert QueueFormat(QueueFormatType(legal), suffix, ARMS[legal]).qft == legal


ARM_NAMES = {
    1: ("m_gPublicID", "MQ-2.2.7-13"),
    2: ("m_oPrivateID", "MQ-2.2.7-14"),
    3: ("m_pDirectID", "MQ-2.2.7-15"),
    4: ("m_gMachineID", "MQ-2.2.7-16"),
    5: ("m_GConnectorID", "MQ-2.2.7-17"),
    6: ("m_DlID", "MQ-2.2.7-18"),
    7: ("m_MulticastID", "MQ-2.2.7-19"),
    8: ("m_pDirectSubqueueID", "MQ-2.2.7-20"),
}


@pytest.mark.parametrize(
    "qft",
    [
        pytest.param(n, marks=pytest.mark.requirement(row, "MQ-2.2.7-01"))
        for n, (_, row) in ARM_NAMES.items()
    ],
)
def test_the_type_selects_what_the_union_holds(qft: int) -> None:
    suffix = {4: 0x81, 8: 0x05}.get(qft, 0)
    arm = ARM_NAMES[qft][0]
    assert QueueFormat(QueueFormatType(qft), suffix, ARMS[qft]).arm == arm
    for other in ARMS.values():
        if type(other) is not type(ARMS[qft]):
            assert refusal(qft, suffix, other).field == arm


@pytest.mark.requirement("MQ-2.2.7-21")
def test_an_unknown_queue_holds_nothing() -> None:
    assert QueueFormat(QueueFormatType.UNKNOWN, 0, None).queue is None
    for other in ARMS.values():
        if other is not None:
            refusal(0, 0, other)


@pytest.mark.requirement("MQ-2.2.7-15")
def test_a_nul_inside_a_direct_name_is_refused() -> None:
    assert refusal(3, 0, "OS:h\\q\0r").field == "m_pDirectID"


@pytest.mark.parametrize("guid", [b"", bytes(15), bytes(17)])
def test_a_guid_of_the_wrong_size_is_refused(guid: bytes) -> None:
    assert refusal(1, 0, guid).field == "m_gPublicID"
    for value, field in (
        (ObjectId(guid, 1), "Lineage"),
        (DlId(guid, "d"), "m_DlGuid"),
    ):
        with pytest.raises(WireError) as caught:
            value.encode()
        assert caught.value.field == field


@pytest.mark.requirement("MQ-2.2.7-11")
def test_the_reserved_field_is_0_unless_a_peer_filled_it() -> None:
    assert QueueFormat(QueueFormatType.PUBLIC, 0, GUID).reserved == 0
    assert QueueFormat(QueueFormatType.PUBLIC, 0, GUID, 7).reserved == 7


FLAT: list[tuple[Structure, str]] = [
    (ObjectId(GUID, 0x14131211), "0102030405060708090a0b0c0d0e0f10 11121314"),
    (DlId(GUID, "a.b"), "0102030405060708090a0b0c0d0e0f10 6100 2e00 6200 0000"),
    (DlId(GUID), "0102030405060708090a0b0c0d0e0f10 0000"),
    (MulticastId(0x04030201, 0x08070605), "01020304 05060708"),
]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        pytest.param(*FLAT[0], marks=pytest.mark.requirement("MQ-2.2.8-01", "MQ-2.2.8-02")),
        pytest.param(*FLAT[1], marks=pytest.mark.requirement("MQ-2.2.9-01", "MQ-2.2.9-02")),
        pytest.param(*FLAT[2], marks=pytest.mark.requirement("MQ-2.2.9-02")),
        pytest.param(*FLAT[3], marks=pytest.mark.requirement("MQ-2.2.10-01", "MQ-2.2.10-02")),
    ],
)
def test_every_field_stands_at_its_offset(value: Structure, data: str) -> None:
    assert value.encode() == bytes.fromhex(data)
    assert type(value).decode(bytes.fromhex(data)) == value
    assert_every_cut_is_refused(type(value).decode, bytes.fromhex(data))


@given(object_ids | dl_ids | multicast_ids)
def test_round_trip(value: Structure) -> None:
    assert_round_trip(value)


@given(st.binary(max_size=40))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    for structure in (ObjectId, DlId, MulticastId):
        assert_decodes_or_refuses(structure.decode, data)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (ObjectId(GUID, 1 << 32), "Uniquifier"),
        (MulticastId(1 << 32, 1), "m_address"),
        (MulticastId(1, 1 << 32), "m_port"),
        (DlId(GUID, "a\0b"), "m_pwzDomain"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(value: Structure, field: str) -> None:
    with pytest.raises(WireError) as caught:
        value.encode()
    assert caught.value.structure
    assert caught.value.offset is None
    assert caught.value.field == field


@pytest.mark.requirement("MQ-2.2.8-02")
def test_the_number_of_an_object_has_32_bits() -> None:
    assert ObjectId(GUID, 0xFFFFFFFF).encode()[16:] == b"\xff\xff\xff\xff"
    assert ObjectId(GUID, 0).encode()[16:] == bytes(4)
    assert len(ObjectId(GUID, 0).encode()) == 20
    with pytest.raises(WireError):
        ObjectId(GUID, -1).encode()
