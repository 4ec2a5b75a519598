"""SECURITY_DESCRIPTOR, MS-DTYP 2.4.6, and SECURITY_INFORMATION, MQMQ 2.2.3."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import security_descriptor as module
from falconmq.wire.ace import BasicAce, access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.reader import Reader
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import (
    ADMINISTRATORS,
    ANONYMOUS,
    CREATOR_OWNER,
    EVERYONE,
    LOCAL_SYSTEM,
    USERS,
)
from falconmq.wire.tracing import TracingReader
from tests.strategies.security import damaged, security_descriptors
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

CATALOGUE = Path(__file__).parents[2] / "conformance" / "mqmq.tsv"

# MS-DTYP 2.5.1.4: Windows writes SACL, DACL, owner, group
SPECIFICATION = bytes.fromhex(
    "010014b0 90000000 a0000000 14000000 30000000"
    "02001c00 01000000 02801400 00000080 0101000000000001 00000000"
    "02006000 04000000"
    "00031800 000000a0 0102000000000005 20000000 21020000"
    "00031800 00000010 0102000000000005 20000000 20020000"
    "00031400 00000010 0101000000000005 12000000"
    "00031400 00000010 0101000000000003 00000000"
    "0102000000000005 20000000 20020000"
    "0102000000000005 20000000 20020000"
)
SPECIFICATION_VALUE = SecurityDescriptor(
    owner=ADMINISTRATORS,
    group=ADMINISTRATORS,
    dacl=Acl.of(
        [
            access_allowed(0xA0000000, USERS, 0x03),
            access_allowed(0x10000000, ADMINISTRATORS, 0x03),
            access_allowed(0x10000000, LOCAL_SYSTEM, 0x03),
            access_allowed(0x10000000, CREATOR_OWNER, 0x03),
        ]
    ),
    sacl=Acl.of([BasicAce(2, 0x80000000, EVERYONE, 0x80)]),
    control=0xB014,
)

OWNER = "0101000000000005 12000000"  # S-1-5-18
GROUP = "0101000000000005 07000000"  # S-1-5-7
SACL = "0200 1c00 0100 0000 02c0 1400 05000000 0101000000000001 00000000"
DACL = "0200 1c00 0100 0000 0000 1400 2b000200 0101000000000001 00000000"
# the order of the document; every field at another value
BYTES = bytes.fromhex(
    "01 a1 1c84 14000000 20000000 2c000000 48000000" + OWNER + GROUP + SACL + DACL
)
VALUE = SecurityDescriptor(
    owner=LOCAL_SYSTEM,
    group=ANONYMOUS,
    dacl=Acl.of([access_allowed(0x0002002B, EVERYONE)]),
    sacl=Acl.of([BasicAce(2, 5, EVERYONE, 0xC0)]),
    control=0x841C,
    sbz1=0xA1,
)

Offsets = tuple[int, int, int, int]


def descriptor(control: int, offsets: Offsets, body: bytes | str) -> bytes:
    """A descriptor with owner, group, SACL and DACL offsets, each counted from its start."""
    parts = body if isinstance(body, bytes) else bytes.fromhex(body)
    return struct.pack("<BBH4I", 1, 0, control, *offsets) + parts


def test_the_descriptor_of_the_specification() -> None:
    reader = Reader(SPECIFICATION)
    assert SecurityDescriptor.read(reader) == SPECIFICATION_VALUE
    assert reader.remaining == 0


def test_every_field_stands_at_its_offset() -> None:
    assert SecurityDescriptor.decode(BYTES) == VALUE
    assert VALUE.encode() == BYTES


def test_parts_in_any_order_with_gaps_give_the_same_value() -> None:
    ours = SPECIFICATION_VALUE.encode()
    assert len(ours) == len(SPECIFICATION)
    assert struct.unpack_from("<4I", ours, 4) == (20, 36, 52, 80)
    assert SecurityDescriptor.decode(ours) == SPECIFICATION_VALUE
    scattered = descriptor(
        0x8004, (60, 104, 0, 24), "eeeeeeee" + DACL + "eeeeeeeeeeeeeeee" + OWNER + "ee" * 32 + GROUP
    )
    expected = SecurityDescriptor(LOCAL_SYSTEM, ANONYMOUS, VALUE.dacl)
    assert SecurityDescriptor.decode(scattered) == expected


def test_owner_and_group_may_share_one_sid() -> None:
    shared = descriptor(0x8000, (20, 20, 0, 0), OWNER)
    assert SecurityDescriptor.decode(shared) == SecurityDescriptor(LOCAL_SYSTEM, LOCAL_SYSTEM)


def test_an_empty_descriptor_is_twenty_bytes() -> None:
    assert SecurityDescriptor().encode() == bytes.fromhex("01000080" + "00" * 16)


def test_a_null_dacl_an_empty_one_and_none_are_three_things() -> None:
    null = SecurityDescriptor.decode(descriptor(0x8004, (0, 0, 0, 0), ""))
    empty = SecurityDescriptor.decode(descriptor(0x8004, (0, 0, 0, 20), "0200080000000000"))
    absent = SecurityDescriptor.decode(descriptor(0x8000, (0, 0, 0, 0), ""))
    assert null == SecurityDescriptor(control=module.SE_DACL_PRESENT)
    assert (null.dacl, null.has_null_dacl) == (None, True)
    assert (empty.dacl, empty.has_null_dacl) == (Acl(), False)
    assert (absent.dacl, absent.has_null_dacl) == (None, False)
    assert len({null.encode(), empty.encode(), absent.encode()}) == 3


def test_present_bits_follow_from_the_lists() -> None:
    assert SecurityDescriptor(dacl=Acl()).control == 0x8004
    assert SecurityDescriptor(sacl=Acl()).control == 0x8010


def test_a_descriptor_inside_other_bytes_counts_offsets_from_its_own_start() -> None:
    surrounded = b"\xee" * 7 + SPECIFICATION + b"\xee" * 5
    assert SecurityDescriptor.decode(surrounded, 7) == SPECIFICATION_VALUE
    reader = Reader(surrounded)
    reader.skip(7, "Before")
    assert SecurityDescriptor.read(reader) == SPECIFICATION_VALUE
    assert reader.remaining == 5


@given(security_descriptors)
def test_round_trip(value: SecurityDescriptor) -> None:
    assert_round_trip(value)


@given(st.one_of(st.binary(max_size=120), damaged(security_descriptors.map(lambda d: d.encode()))))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SecurityDescriptor.decode, data)


@given(damaged(st.sampled_from([SPECIFICATION, BYTES])))
def test_damaged_descriptors_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(SecurityDescriptor.decode, data)


@pytest.mark.parametrize("data", [SPECIFICATION, BYTES])
def test_a_cut_descriptor_is_refused(data: bytes) -> None:
    assert_every_cut_is_refused(SecurityDescriptor.decode, data)


@pytest.mark.parametrize("revision", [0, 2, 255])
def test_another_revision_is_refused(revision: int) -> None:
    with pytest.raises(WireError, match="Revision at offset 0"):
        SecurityDescriptor.decode(bytes([revision]) + BYTES[1:])


def test_the_absolute_form_is_refused() -> None:
    with pytest.raises(WireError, match="Control at offset 2: 0x0004 lacks SR"):
        SecurityDescriptor.decode(descriptor(0x0004, (0, 0, 0, 0), ""))


FIELDS = ("OffsetOwner", "OffsetGroup", "OffsetSacl", "OffsetDacl")


def test_a_part_that_reads_well_but_begins_in_the_header_is_refused() -> None:
    # OffsetDacl 0x101 at offset 16 is at the same time the head of a SID with one sub-authority
    body = bytes.fromhex("00000005 12000000").ljust(0x101 - 20) + bytes.fromhex(DACL)
    fine = SecurityDescriptor.decode(descriptor(0x8004, (0, 0, 0, 0x101), body))
    assert fine == SecurityDescriptor(dacl=VALUE.dacl)
    with pytest.raises(WireError, match="OffsetOwner at offset 4: 16 points into another part"):
        SecurityDescriptor.decode(descriptor(0x8004, (16, 0, 0, 0x101), body))


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("beyond", [1, 1000, 0xFFFFFFFF - 104])
def test_an_offset_behind_the_end_is_refused_by_name(which: int, beyond: int) -> None:
    data = bytearray(BYTES)
    struct.pack_into("<I", data, 4 + 4 * which, len(BYTES) + beyond)
    with pytest.raises(WireError, match="points behind") as caught:
        SecurityDescriptor.decode(bytes(data))
    assert caught.value.field == FIELDS[which]
    assert caught.value.offset == 4 + 4 * which


def test_parts_that_overlap_are_refused() -> None:
    # a second SID begins inside the sub-authorities of the first
    body = "0103000000000005 01010000 00000005 12000000"
    with pytest.raises(WireError, match=r"OffsetGroup at offset 8: 28 points into another part"):
        SecurityDescriptor.decode(descriptor(0x8000, (20, 28, 0, 0), body))
    alone = SecurityDescriptor.decode(descriptor(0x8000, (0, 28, 0, 0), body))
    assert alone == SecurityDescriptor(group=LOCAL_SYSTEM)


def test_a_sid_inside_an_acl_is_refused() -> None:
    with pytest.raises(WireError, match="OffsetOwner at offset 4: 36 points into another part"):
        SecurityDescriptor.decode(descriptor(0x8004, (36, 0, 0, 20), DACL))


@pytest.mark.parametrize(("which", "control"), [(2, 0x8004), (3, 0x8010)])
def test_a_list_whose_present_bit_is_clear_is_refused(which: int, control: int) -> None:
    offsets = (0, 0, 20, 0) if which == 2 else (0, 0, 0, 20)
    with pytest.raises(WireError, match="must be 0") as caught:
        SecurityDescriptor.decode(descriptor(control, offsets, DACL))
    assert caught.value.field == FIELDS[which]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (SecurityDescriptor(control=0x10000), "Control"),
        (SecurityDescriptor(sbz1=0x100), "Sbz1"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    value: SecurityDescriptor, field: str
) -> None:
    with pytest.raises(WireError) as caught:
        value.encode()
    assert caught.value.field == field


def test_the_tree_names_the_parts() -> None:
    reader = TracingReader(SPECIFICATION)
    SecurityDescriptor.read(reader)
    (node,) = reader.root.children
    parts = {child.name: child.offset for child in node.children if child.is_structure}
    assert parts == {"OwnerSid": 0x90, "GroupSid": 0xA0, "Sacl": 0x14, "Dacl": 0x30}
    assert node.size == len(SPECIFICATION)


# MS-DTYP 2.4.6 draws the bits of Control from the most significant one down
CONTROL_BITS = [
    "SE_SELF_RELATIVE",
    "SE_RM_CONTROL_VALID",
    "SE_SACL_PROTECTED",
    "SE_DACL_PROTECTED",
    "SE_SACL_AUTO_INHERITED",
    "SE_DACL_AUTO_INHERITED",
    "SE_SACL_AUTO_INHERIT_REQ",
    "SE_DACL_AUTO_INHERIT_REQ",
    "SE_SERVER_SECURITY",
    "SE_DACL_TRUSTED",
    "SE_SACL_DEFAULTED",
    "SE_SACL_PRESENT",
    "SE_DACL_DEFAULTED",
    "SE_DACL_PRESENT",
    "SE_GROUP_DEFAULTED",
    "SE_OWNER_DEFAULTED",
]


@pytest.mark.parametrize("name", CONTROL_BITS)
def test_control_bits(name: str) -> None:
    assert getattr(module, name) == 0x8000 >> CONTROL_BITS.index(name)


def security_information_rows() -> Iterator[object]:
    for line in CATALOGUE.read_text().splitlines():
        if match := re.match(r"(MQ-2\.2\.3-\d+)\t.*\t(\w+) = (0x[0-9A-F]{8})\.", line):
            row, name, value = match.groups()
            mark = pytest.mark.requirement(row)
            yield pytest.param(name, int(value, 16), marks=mark, id=name)


@pytest.mark.parametrize(("name", "value"), list(security_information_rows()))
def test_security_information_values(name: str, value: int) -> None:
    assert getattr(module, name) == value


@pytest.mark.requirement("MQ-2.2.3-01")
@pytest.mark.parametrize("others", [0, 0xFFFFFFF0])
@pytest.mark.parametrize("mask", range(16))
def test_security_information_selects_parts_of_a_descriptor(mask: int, others: int) -> None:
    whole = SecurityDescriptor(
        VALUE.owner, VALUE.group, VALUE.dacl, VALUE.sacl, control=0xFFFF, sbz1=7
    )
    selected = whole.select(mask | others)
    assert selected.owner == (VALUE.owner if mask & 1 else None)
    assert selected.group == (VALUE.group if mask & 2 else None)
    assert selected.dacl == (VALUE.dacl if mask & 4 else None)
    assert selected.sacl == (VALUE.sacl if mask & 8 else None)
    # each part takes its control bits with it; SS, RM and SR belong to none
    expected = 0x8000 | 0x4000 | 0x0080
    expected |= 0x0001 if mask & 1 else 0
    expected |= 0x0002 if mask & 2 else 0
    expected |= 0x154C if mask & 4 else 0
    expected |= 0x2A30 if mask & 8 else 0
    assert selected.control == expected
    assert_round_trip(selected)


def test_a_null_dacl_that_is_not_selected_leaves_nothing_behind() -> None:
    null = SecurityDescriptor(control=module.SE_DACL_PRESENT)
    assert null.select(module.DACL_SECURITY_INFORMATION) == null
    assert null.select(module.OWNER_SECURITY_INFORMATION) == SecurityDescriptor()
