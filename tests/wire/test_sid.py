"""SID as bytes and as text, MS-DTYP 2.4.2."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, NameSyntaxError, WireError
from falconmq.wire import sid as sid_module
from falconmq.wire.sid import DOMAIN_ALIASES, ROOT_DOMAIN_ALIASES, SDDL_ALIASES, Sid
from tests.strategies.security import damaged, sids
from tests.wire.codec_checks import (
    assert_decodes_or_refuses,
    assert_every_cut_is_refused,
    assert_round_trip,
)

FRAMES = Path(__file__).parents[1] / "vectors" / "mqqb-frames.json"

# SecurityID of MS-MQQB's FRAME 7
FRAME_7_BYTES = bytes.fromhex("0105000000000005 15000000 ad4a9ebd 36d9fa3d 63a656da e8030000")
FRAME_7_TEXT = "S-1-5-21-3181267629-1039849782-3663111779-1000"

# every byte another one
BYTES = bytes.fromhex("01 02 a1a2a3a4a5a6 b1b2b3b4 c1c2c3c4")
TEXT = "S-1-0xA1A2A3A4A5A6-3031675569-3301163713"


def test_every_field_stands_at_its_offset() -> None:
    sid = Sid.decode(BYTES)
    assert sid.revision == 1
    assert sid.identifier_authority == 0xA1A2A3A4A5A6  # big-endian
    assert sid.sub_authorities == (0xB4B3B2B1, 0xC4C3C2C1)  # little-endian
    assert sid.encode() == BYTES


@pytest.mark.requirement("MQ-2.2.20.6-06", "DM-2-02")
def test_the_security_id_of_a_captured_message_is_the_senders_sid() -> None:
    frames = json.loads(FRAMES.read_text())["frames"]
    packet = bytes.fromhex(next(f["hex"] for f in frames if f["name"].startswith("FRAME 7:")))
    security_header, security_id = packet[92:108], packet[108:136]
    assert security_header[0] & 0x0F == 1  # ST: a SID
    assert security_header[2:4] == len(security_id).to_bytes(2, "little")
    assert security_id == FRAME_7_BYTES
    assert str(Sid.decode(security_id)) == FRAME_7_TEXT
    assert Sid.parse(FRAME_7_TEXT).encode() == security_id
    assert Sid(5, (21, 3181267629, 1039849782, 3663111779, 1000)).encode() == security_id


@given(sids)
def test_round_trip(sid: Sid) -> None:
    assert len(assert_round_trip(sid)) == 8 + 4 * len(sid.sub_authorities)


@given(st.one_of(st.binary(max_size=80), damaged(sids.map(Sid.encode))))
def test_any_bytes_decode_or_raise_wire_error(data: bytes) -> None:
    assert_decodes_or_refuses(Sid.decode, data)


def test_a_cut_sid_is_refused() -> None:
    assert_every_cut_is_refused(Sid.decode, BYTES)


@pytest.mark.parametrize("count", [0, 1, 15])
def test_up_to_15_sub_authorities_are_read(count: int) -> None:
    data = bytes([1, count, 0, 0, 0, 0, 0, 5]) + bytes(range(4 * count))
    assert len(Sid.decode(data).sub_authorities) == count
    assert Sid.decode(data).encode() == data


@pytest.mark.parametrize("count", [16, 255])
def test_more_sub_authorities_are_refused(count: int) -> None:
    with pytest.raises(WireError, match="more than 15") as caught:
        Sid.decode(bytes([1, count, 0, 0, 0, 0, 0, 5]) + bytes(4 * count))
    assert (caught.value.field, caught.value.offset) == ("SubAuthorityCount", 1)
    with pytest.raises(WireError, match="more than 15"):
        Sid(5, (1,) * count).encode()


@pytest.mark.parametrize("revision", [0, 2, 255])
def test_another_revision_is_refused(revision: int) -> None:
    with pytest.raises(WireError, match="Revision at offset 0"):
        Sid.decode(bytes([revision]) + BYTES[1:])
    with pytest.raises(WireError, match="Revision"):
        Sid(5, (1,), revision).encode()


@pytest.mark.parametrize(
    ("sid", "field"),
    [
        (Sid(1 << 48, (1,)), "IdentifierAuthority"),
        (Sid(-1, (1,)), "IdentifierAuthority"),
        (Sid(5, (1, 1 << 32)), "SubAuthority"),
        (Sid(5, (-1,)), "SubAuthority"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(sid: Sid, field: str) -> None:
    with pytest.raises(WireError) as caught:
        sid.encode()
    assert caught.value.field == field


def test_sids_are_keys() -> None:
    assert {Sid(5, (18,)): "system"}[Sid.parse("S-1-5-18")] == "system"


@pytest.mark.parametrize(
    ("text", "sid"),
    [
        (FRAME_7_TEXT, Sid(5, (21, 3181267629, 1039849782, 3663111779, 1000))),
        (TEXT, Sid(0xA1A2A3A4A5A6, (0xB4B3B2B1, 0xC4C3C2C1))),
        ("S-1-4294967295-4294967295", Sid(0xFFFFFFFF, (0xFFFFFFFF,))),
        ("S-1-0x000100000000-0", Sid(1 << 32, (0,))),
        ("S-1-5", Sid(5)),
        ("S-1-0-0", Sid(0, (0,))),
    ],
)
def test_text_form(text: str, sid: Sid) -> None:
    assert Sid.parse(text) == sid
    assert str(sid) == text


def test_letters_count_in_either_case() -> None:
    assert Sid.parse("s-1-0Xa1a2a3a4a5a6-7") == Sid(0xA1A2A3A4A5A6, (7,))


@given(sids)
def test_printed_text_parses_to_the_same_sid(sid: Sid) -> None:
    assert Sid.parse(str(sid)) == sid


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "begins with S-1-"),
        ("BA", 0, "begins with S-1-"),
        ("S-", 2, "revision"),
        ("S-2-5-18", 2, "revision"),
        ("S-1-", 4, "identifier authority"),
        ("S-1--18", 4, "identifier authority"),
        ("S-1-0x5-18", 4, "12 digits"),
        ("S-1-0x0000000000000-18", 18, "more follows"),
        ("S-1-05-18", 4, "begin with 0"),
        ("S-1-4294967296-18", 4, "32 bits"),
        ("S-1-5-", 6, "sub-authority"),
        ("S-1-5-x", 6, "sub-authority"),
        ("S-1-5-018", 6, "begin with 0"),
        ("S-1-5-4294967296", 6, "32 bits"),
        ("S-1-5-" + "9" * 5000, 6, "32 bits"),
        ("S-1-5-\N{ARABIC-INDIC DIGIT ONE}", 6, "sub-authority"),
        ("S-1-5-18 ", 8, "more follows"),
        ("S-1-5" + "-1" * 16, 5 + 30, "more than 15"),
    ],
)
def test_errors_point_at_the_place(text: str, position: int, problem: str) -> None:
    with pytest.raises(NameSyntaxError, match=problem) as caught:
        Sid.parse(text)
    assert caught.value.position == position
    assert caught.value.status == MqStatus.ILLEGAL_SECURITY_DESCRIPTOR


@given(st.one_of(st.text(), st.text("S-105x2", max_size=30), sids.map(str)))
def test_any_text_parses_or_raises_name_syntax_error(text: str) -> None:
    with contextlib.suppress(NameSyntaxError):
        Sid.parse(text).encode()


def test_a_child_of_a_domain_has_one_number_more() -> None:
    assert str(Sid.parse("S-1-5-21-1-2-3").child(513)) == "S-1-5-21-1-2-3-513"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("NULL_SID", "S-1-0-0"),
        ("EVERYONE", "S-1-1-0"),
        ("LOCAL", "S-1-2-0"),
        ("CONSOLE_LOGON", "S-1-2-1"),
        ("CREATOR_OWNER", "S-1-3-0"),
        ("CREATOR_GROUP", "S-1-3-1"),
        ("OWNER_RIGHTS", "S-1-3-4"),
        ("DIALUP", "S-1-5-1"),
        ("NETWORK", "S-1-5-2"),
        ("BATCH", "S-1-5-3"),
        ("INTERACTIVE", "S-1-5-4"),
        ("SERVICE", "S-1-5-6"),
        ("ANONYMOUS", "S-1-5-7"),
        ("PROXY", "S-1-5-8"),
        ("ENTERPRISE_DOMAIN_CONTROLLERS", "S-1-5-9"),
        ("PRINCIPAL_SELF", "S-1-5-10"),
        ("AUTHENTICATED_USERS", "S-1-5-11"),
        ("RESTRICTED_CODE", "S-1-5-12"),
        ("TERMINAL_SERVER_USER", "S-1-5-13"),
        ("REMOTE_INTERACTIVE_LOGON", "S-1-5-14"),
        ("THIS_ORGANIZATION", "S-1-5-15"),
        ("LOCAL_SYSTEM", "S-1-5-18"),
        ("LOCAL_SERVICE", "S-1-5-19"),
        ("NETWORK_SERVICE", "S-1-5-20"),
        ("ADMINISTRATORS", "S-1-5-32-544"),
        ("USERS", "S-1-5-32-545"),
        ("GUESTS", "S-1-5-32-546"),
        ("POWER_USERS", "S-1-5-32-547"),
        ("WRITE_RESTRICTED_CODE", "S-1-5-33"),
        ("ALL_APP_PACKAGES", "S-1-15-2-1"),
        ("ML_UNTRUSTED", "S-1-16-0"),
        ("ML_LOW", "S-1-16-4096"),
        ("ML_MEDIUM", "S-1-16-8192"),
        ("ML_MEDIUM_PLUS", "S-1-16-8448"),
        ("ML_HIGH", "S-1-16-12288"),
        ("ML_SYSTEM", "S-1-16-16384"),
        ("ML_PROTECTED_PROCESS", "S-1-16-20480"),
    ],
)
def test_well_known_sids(name: str, text: str) -> None:
    assert str(getattr(sid_module, name)) == text


# MS-DTYP 2.5.1.1: the sid-tokens in the order of its grammar; a number is relative to a domain
TOKENS = """
DA=512 DG=514 DU=513 ED=S-1-5-9 DD=516 DC=515 BA=S-1-5-32-544 BG=S-1-5-32-546 BU=S-1-5-32-545
LA=500 LG=501 AO=S-1-5-32-548 BO=S-1-5-32-551 PO=S-1-5-32-550 SO=S-1-5-32-549 AU=S-1-5-11
PS=S-1-5-10 CO=S-1-3-0 CG=S-1-3-1 SY=S-1-5-18 PU=S-1-5-32-547 WD=S-1-1-0 RE=S-1-5-32-552
IU=S-1-5-4 NU=S-1-5-2 SU=S-1-5-6 RC=S-1-5-12 WR=S-1-5-33 AN=S-1-5-7 SA=root-518 CA=517 RS=553
EA=root-519 PA=520 RU=S-1-5-32-554 LS=S-1-5-19 NS=S-1-5-20 RD=S-1-5-32-555 NO=S-1-5-32-556
MU=S-1-5-32-558 LU=S-1-5-32-559 IS=S-1-5-32-568 CY=S-1-5-32-569 OW=S-1-3-4 ER=S-1-5-32-573
RO=root-498 CD=S-1-5-32-574 AC=S-1-15-2-1 RA=S-1-5-32-575 ES=S-1-5-32-576 MS=S-1-5-32-577
UD=S-1-5-84-0-0-0-0-0 HA=S-1-5-32-578 CN=522 AA=S-1-5-32-579 RM=S-1-5-32-580 LW=S-1-16-4096
ME=S-1-16-8192 MP=S-1-16-8448 HI=S-1-16-12288 SI=S-1-16-16384
"""


def test_every_name_sddl_has_for_a_sid() -> None:
    expected = dict(token.split("=") for token in TOKENS.split())
    ours = {name: str(sid) for name, sid in SDDL_ALIASES.items()}
    ours |= {name: str(number) for name, number in DOMAIN_ALIASES.items()}
    ours |= {name: f"root-{number}" for name, number in ROOT_DOMAIN_ALIASES.items()}
    assert ours == expected
