"""ACL, MS-DTYP 2.4.5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import WireError
from falconmq.wire.ace import ObjectAce, OpaqueAce, access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.reader import Reader
from falconmq.wire.sid import ADMINISTRATORS, CREATOR_OWNER, EVERYONE, LOCAL_SYSTEM, USERS
from tests.strategies.security import acls, damaged
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

# the DACL that MS-DTYP 2.5.1.4 takes apart
SPECIFICATION_ACL = bytes.fromhex(
    "02006000 04000000"
    "00031800 000000a0 0102000000000005 20000000 21020000"
    "00031800 00000010 0102000000000005 20000000 20020000"
    "00031400 00000010 0101000000000005 12000000"
    "00031400 00000010 0101000000000003 00000000"
)
# every field of the header at another value, one ACE, 4 bytes of slack
ACE = bytes.fromhex("0000 1400 01000000 0101000000000001 00000000")
BYTES = bytes.fromhex("04 a1 2000 0100 b1b2") + ACE + b"\xee\xee\xee\xee"


def test_the_acl_of_the_specification() -> None:
    acl = Acl.of(
        [
            access_allowed(0xA0000000, USERS, 0x03),
            access_allowed(0x10000000, ADMINISTRATORS, 0x03),
            access_allowed(0x10000000, LOCAL_SYSTEM, 0x03),
            access_allowed(0x10000000, CREATOR_OWNER, 0x03),
        ]
    )
    assert Acl.decode(SPECIFICATION_ACL) == acl
    assert acl.encode() == SPECIFICATION_ACL


def test_every_field_stands_at_its_offset_and_slack_is_skipped() -> None:
    reader = Reader(BYTES)
    acl = Acl.read(reader)
    assert acl == Acl((access_allowed(1, EVERYONE),), acl_revision=4, sbz1=0xA1, sbz2=0xB2B1)
    assert reader.remaining == 0
    assert acl.encode() == bytes.fromhex("04 a1 1c00 0100 b1b2") + ACE


def test_an_empty_acl_is_eight_bytes() -> None:
    assert Acl().encode() == bytes.fromhex("0200080000000000")
    assert Acl.decode(bytes.fromhex("0200080000000000")) == Acl()


def test_object_aces_ask_for_the_revision_of_the_directory() -> None:
    assert Acl.of([access_allowed(1, EVERYONE)]).acl_revision == 2
    assert Acl.of([access_allowed(1, EVERYONE), ObjectAce(5, 1, EVERYONE)]).acl_revision == 4


@given(acls)
def test_round_trip(acl: Acl) -> None:
    data = assert_round_trip(acl)
    assert int.from_bytes(data[2:4], "little") == len(data)
    assert int.from_bytes(data[4:6], "little") == len(acl.aces)


@given(st.one_of(st.binary(max_size=80), damaged(acls.map(Acl.encode))))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(Acl.decode, data)


@pytest.mark.parametrize("data", [SPECIFICATION_ACL, BYTES])
def test_a_cut_acl_is_refused(data: bytes) -> None:
    assert_every_cut_is_refused(Acl.decode, data)


@pytest.mark.parametrize("revision", [0, 1, 3, 5, 255])
def test_revisions_but_2_and_4_are_refused(revision: int) -> None:
    with pytest.raises(WireError, match="AclRevision at offset 0"):
        Acl.decode(bytes([revision]) + BYTES[1:])
    with pytest.raises(WireError, match="AclRevision"):
        Acl((), revision).encode()


@pytest.mark.parametrize("size", [0, 7, len(BYTES) + 1, 0xFFFF])
def test_a_size_below_the_header_or_beyond_the_bytes_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="AclSize at offset 2"):
        Acl.decode(BYTES[:2] + size.to_bytes(2, "little") + BYTES[4:])


@pytest.mark.parametrize("count", [7, 0xFFFF])
def test_a_count_that_cannot_fit_is_refused_before_any_ace_is_read(count: int) -> None:
    with pytest.raises(WireError, match=r"AceCount at offset 4: .* do not fit"):
        Acl.decode(BYTES[:4] + count.to_bytes(2, "little") + BYTES[6:])


def test_a_count_beyond_the_aces_is_refused() -> None:
    with pytest.raises(WireError, match=r"ACE\.AceSize at offset 30"):
        Acl.decode(BYTES[:4] + b"\x02\x00" + BYTES[6:])


def test_an_ace_cannot_reach_beyond_its_acl() -> None:
    data = BYTES[:2] + b"\x18\x00" + BYTES[4:]  # the ACL ends 4 bytes before its ACE
    with pytest.raises(WireError, match=r"ACE\.AceSize at offset 10"):
        Acl.decode(data)


def test_the_largest_acl_has_65532_bytes() -> None:
    ace = OpaqueAce(0x20, bytes(0xFFF0))
    assert len(assert_round_trip(Acl((ace,)))) == 0xFFFC
    with pytest.raises(WireError, match="AclSize"):
        Acl((ace, OpaqueAce(0x20, b""))).encode()


@pytest.mark.parametrize(("acl", "field"), [(Acl(sbz1=0x100), "Sbz1"), (Acl(sbz2=0x10000), "Sbz2")])
def test_a_value_that_does_not_fit_is_refused_by_name(acl: Acl, field: str) -> None:
    with pytest.raises(WireError) as caught:
        acl.encode()
    assert caught.value.field == field


def test_as_many_aces_as_fit_are_read() -> None:
    count = (0xFFFC - 8) // 4
    header = bytes([2, 0, 0xFC, 0xFF]) + count.to_bytes(2, "little") + b"\0\0"
    acl = Acl.decode(header + bytes.fromhex("20000400") * count)
    assert len(acl.aces) == count
