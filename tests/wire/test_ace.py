"""ACEs of every type, MS-DTYP 2.4.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire import ace as ace_module
from falconmq.wire.ace import (
    Ace,
    BasicAce,
    ObjectAce,
    OpaqueAce,
    access_allowed,
    access_denied,
    read_ace,
)
from falconmq.wire.reader import Reader
from falconmq.wire.sid import EVERYONE, LOCAL_SYSTEM, USERS, Sid
from falconmq.wire.tracing import TracingReader
from tests.strategies.security import aces, basic_aces, damaged, object_aces, opaque_aces
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# (A;CIOI;GRGX;;;BU), taken apart in MS-DTYP 2.5.1.4
SPECIFICATION_ACE = bytes.fromhex("00 03 1800 000000a0 0102000000000005 20000000 21020000")

# every field at another value; S-1-1-0 behind them
SID = "0101000000000001 00000000"
BASIC = bytes.fromhex("0912 1c00 01020304" + SID + "61727478 05060708")
OBJECT_TYPE = bytes(range(0x10, 0x20))
INHERITED_OBJECT_TYPE = bytes(range(0x20, 0x30))

# MS-DTYP 2.4.4.1: AceType and which shape its structure has
SHAPES = [
    ("ACCESS_ALLOWED_ACE_TYPE", 0x00, BasicAce),
    ("ACCESS_DENIED_ACE_TYPE", 0x01, BasicAce),
    ("SYSTEM_AUDIT_ACE_TYPE", 0x02, BasicAce),
    ("SYSTEM_ALARM_ACE_TYPE", 0x03, BasicAce),
    ("ACCESS_ALLOWED_COMPOUND_ACE_TYPE", 0x04, OpaqueAce),
    ("ACCESS_ALLOWED_OBJECT_ACE_TYPE", 0x05, ObjectAce),
    ("ACCESS_DENIED_OBJECT_ACE_TYPE", 0x06, ObjectAce),
    ("SYSTEM_AUDIT_OBJECT_ACE_TYPE", 0x07, ObjectAce),
    ("SYSTEM_ALARM_OBJECT_ACE_TYPE", 0x08, ObjectAce),
    ("ACCESS_ALLOWED_CALLBACK_ACE_TYPE", 0x09, BasicAce),
    ("ACCESS_DENIED_CALLBACK_ACE_TYPE", 0x0A, BasicAce),
    ("ACCESS_ALLOWED_CALLBACK_OBJECT_ACE_TYPE", 0x0B, ObjectAce),
    ("ACCESS_DENIED_CALLBACK_OBJECT_ACE_TYPE", 0x0C, ObjectAce),
    ("SYSTEM_AUDIT_CALLBACK_ACE_TYPE", 0x0D, BasicAce),
    ("SYSTEM_ALARM_CALLBACK_ACE_TYPE", 0x0E, BasicAce),
    ("SYSTEM_AUDIT_CALLBACK_OBJECT_ACE_TYPE", 0x0F, ObjectAce),
    ("SYSTEM_ALARM_CALLBACK_OBJECT_ACE_TYPE", 0x10, ObjectAce),
    ("SYSTEM_MANDATORY_LABEL_ACE_TYPE", 0x11, BasicAce),
    ("SYSTEM_RESOURCE_ATTRIBUTE_ACE_TYPE", 0x12, BasicAce),
    ("SYSTEM_SCOPED_POLICY_ID_ACE_TYPE", 0x13, BasicAce),
]
# the callback types and the resource attribute
WITH_DATA = {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x12}


def decode_ace(data: bytes) -> Ace:
    return read_ace(Reader(data))


def test_the_ace_of_the_specification() -> None:
    ace = BasicAce(0, 0xA0000000, USERS, ace_flags=0x03)
    assert decode_ace(SPECIFICATION_ACE) == ace
    assert ace.encode() == SPECIFICATION_ACE


def test_every_field_of_a_basic_ace_stands_at_its_offset() -> None:
    data = b"artx\x05\x06\x07\x08"
    ace = BasicAce(0x09, 0x04030201, EVERYONE, ace_flags=0x12, application_data=data)
    assert len(ace.encode()) == 28
    assert ace.encode() == BASIC
    assert BasicAce.decode(BASIC) == ace


@pytest.mark.parametrize(
    ("flags", "object_type", "inherited_object_type"),
    [
        (0, None, None),
        (1, OBJECT_TYPE, None),
        (2, None, INHERITED_OBJECT_TYPE),
        (3, OBJECT_TYPE, INHERITED_OBJECT_TYPE),
    ],
)
def test_an_object_ace_has_the_guids_its_flags_announce(
    flags: int, object_type: bytes | None, inherited_object_type: bytes | None
) -> None:
    guids = (object_type or b"") + (inherited_object_type or b"")
    size = (24 + len(guids)).to_bytes(2, "little")
    data = b"\x05\x34" + size + b"\x01\x02\x03\x04" + bytes([flags, 0, 0, 0xC0])
    data += guids + bytes.fromhex(SID)
    ace = decode_ace(data)
    assert ace == ObjectAce(
        5,
        0x04030201,
        EVERYONE,
        object_type,
        inherited_object_type,
        ace_flags=0x34,
        reserved_flags=0xC0000000,
    )
    assert isinstance(ace, ObjectAce)
    assert ace.flags == 0xC0000000 | flags
    assert ace.encode() == data


@pytest.mark.parametrize(("name", "ace_type", "shape"), SHAPES)
def test_every_type_has_its_shape(name: str, ace_type: int, shape: type[Ace]) -> None:
    assert getattr(ace_module, name) == ace_type
    flags = "00000000" if shape is ObjectAce else ""
    body = bytes.fromhex("01000000" + flags + SID) + b"data"
    data = bytes([ace_type, 0, 4 + len(body), 0]) + body
    ace = decode_ace(data)
    assert type(ace) is shape
    if isinstance(ace, OpaqueAce):
        assert ace.data == body
    else:
        assert (ace.mask, ace.sid) == (1, EVERYONE)
        assert ace.application_data == (b"data" if ace_type in WITH_DATA else b"")


def test_bytes_behind_the_sid_are_ignored_where_they_mean_nothing() -> None:
    longer = bytearray(SPECIFICATION_ACE + b"junkjunk")
    longer[2] += 8
    assert decode_ace(bytes(longer)) == decode_ace(SPECIFICATION_ACE)


def test_an_ace_of_unknown_type_travels_on() -> None:
    data = bytes.fromhex("77 01 0c00 0102030405060708")
    assert decode_ace(data) == OpaqueAce(0x77, bytes(range(1, 9)), ace_flags=1)
    assert decode_ace(data).encode() == data


def test_the_cursor_ends_behind_the_ace() -> None:
    reader = Reader(SPECIFICATION_ACE + SPECIFICATION_ACE)
    assert read_ace(reader) == read_ace(reader)
    assert reader.remaining == 0


def test_helpers_for_the_two_aces_of_every_day() -> None:
    assert access_allowed(0x3, LOCAL_SYSTEM).encode()[:8] == bytes.fromhex("00001400 03000000")
    assert access_denied(0x3, LOCAL_SYSTEM, 0x10).encode()[:8] == bytes.fromhex("01101400 03000000")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OBJECT_INHERIT_ACE", 0x01),
        ("CONTAINER_INHERIT_ACE", 0x02),
        ("NO_PROPAGATE_INHERIT_ACE", 0x04),
        ("INHERIT_ONLY_ACE", 0x08),
        ("INHERITED_ACE", 0x10),
        ("SUCCESSFUL_ACCESS_ACE_FLAG", 0x40),
        ("FAILED_ACCESS_ACE_FLAG", 0x80),
        ("ACE_OBJECT_TYPE_PRESENT", 1),
        ("ACE_INHERITED_OBJECT_TYPE_PRESENT", 2),
        ("SYSTEM_MANDATORY_LABEL_NO_WRITE_UP", 1),
        ("SYSTEM_MANDATORY_LABEL_NO_READ_UP", 2),
        ("SYSTEM_MANDATORY_LABEL_NO_EXECUTE_UP", 4),
    ],
)
def test_flag_values(name: str, value: int) -> None:
    assert getattr(ace_module, name) == value


@given(st.one_of(basic_aces, object_aces, opaque_aces))
def test_round_trip(ace: Ace) -> None:
    data = assert_round_trip(ace)
    assert decode_ace(data) == ace
    assert int.from_bytes(data[2:4], "little") == len(data)


@given(st.one_of(st.binary(max_size=80), damaged(aces.map(lambda ace: ace.encode()))))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(decode_ace, data)
    for shape in (BasicAce, ObjectAce, OpaqueAce):
        assert_decodes_or_refuses(shape.decode, data)


@pytest.mark.parametrize("data", [SPECIFICATION_ACE, BASIC])
def test_a_cut_ace_is_refused(data: bytes) -> None:
    assert_every_cut_is_refused(decode_ace, data)


@pytest.mark.parametrize(
    ("size", "field"),
    [
        (0, "AceSize"),
        (3, "AceSize"),
        (4, "Mask"),
        (8, "Revision"),
        (12, "IdentifierAuthority"),
        (20, "SubAuthority"),
        (22, "AceSize"),
        (23, "AceSize"),
        (28, "AceSize"),
        (0xFFFC, "AceSize"),
        (0xFFFF, "AceSize"),
    ],
)
def test_a_wrong_ace_size_is_refused(size: int, field: str) -> None:
    data = SPECIFICATION_ACE[:2] + size.to_bytes(2, "little") + SPECIFICATION_ACE[4:]
    with pytest.raises(WireError) as caught:
        decode_ace(data)
    assert caught.value.field == field


def test_the_sid_cannot_reach_into_the_next_ace() -> None:
    data = bytearray(SPECIFICATION_ACE + SPECIFICATION_ACE)
    data[9] = 3  # one sub-authority more than the ACE has room for
    with pytest.raises(WireError, match="SubAuthority"):
        decode_ace(bytes(data))


@pytest.mark.parametrize("shape", [ObjectAce, OpaqueAce])
def test_a_class_refuses_an_ace_of_another_shape(shape: type[Ace]) -> None:
    with pytest.raises(WireError, match="another layout"):
        shape.decode(SPECIFICATION_ACE)


@pytest.mark.parametrize(
    ("ace", "field"),
    [
        (BasicAce(0x05, 1, EVERYONE), "AceType"),
        (BasicAce(0x100, 1, EVERYONE), "AceType"),
        (BasicAce(0, 1 << 32, EVERYONE), "Mask"),
        (BasicAce(0, 1, EVERYONE, ace_flags=0x100), "AceFlags"),
        (BasicAce(0, 1, EVERYONE, application_data=b"data"), "ApplicationData"),
        (BasicAce(9, 1, EVERYONE, application_data=b"dat"), "ApplicationData"),
        (BasicAce(9, 1, EVERYONE, application_data=bytes(0xFFF0)), "AceSize"),
        (BasicAce(0, 1, Sid(5, (1,) * 16)), "SubAuthorityCount"),
        (ObjectAce(0, 1, EVERYONE), "AceType"),
        (ObjectAce(5, 1, EVERYONE, object_type=b"short"), "ObjectType"),
        (ObjectAce(5, 1, EVERYONE, inherited_object_type=bytes(17)), "InheritedObjectType"),
        (ObjectAce(5, 1, EVERYONE, reserved_flags=1), "Flags"),
        (ObjectAce(5, 1, EVERYONE, reserved_flags=1 << 32), "Flags"),
        (OpaqueAce(0, b""), "AceType"),
        (OpaqueAce(0x10, b""), "AceType"),
        (OpaqueAce(0x100, b""), "AceType"),
        (OpaqueAce(0x20, b"abc"), "Data"),
        (OpaqueAce(0x20, bytes(0xFFFC)), "AceSize"),
    ],
)
def test_a_value_that_cannot_be_sent_is_refused_by_name(ace: Ace, field: str) -> None:
    with pytest.raises(WireError) as caught:
        ace.encode()
    assert caught.value.field == field


def test_the_largest_ace_has_65532_bytes() -> None:
    data = assert_round_trip(OpaqueAce(0x20, bytes(0xFFF8)))
    assert len(data) == 0xFFFC


def test_the_tree_of_an_ace_shows_its_fields() -> None:
    reader = TracingReader(SPECIFICATION_ACE)
    read_ace(reader)
    (node,) = reader.root.children
    names = [child.name for child in node.children]
    assert (node.name, node.size) == ("ACE", 24)
    assert names == ["AceType", "AceFlags", "AceSize", "Mask", "SID"]
