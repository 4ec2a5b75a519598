"""SDDL, MS-DTYP 2.5.1."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, NameSyntaxError, WireError
from falconmq.wire import sddl
from falconmq.wire.ace import BasicAce, ObjectAce, OpaqueAce, access_allowed, access_denied
from falconmq.wire.acl import Acl
from falconmq.wire.guid import NULL_GUID
from falconmq.wire.sddl import format_sddl, format_sid, parse_sddl, parse_sid
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import ADMINISTRATORS, EVERYONE, LOCAL_SYSTEM, ML_LOW, Sid
from tests.strategies.security import (
    security_descriptors,
    sids,
    spellable_security_descriptors,
)
from tests.wire.test_security_descriptor import SPECIFICATION, SPECIFICATION_VALUE

SPECIFICATION_TEXT = (
    "O:BAG:BAD:P(A;CIOI;GRGX;;;BU)(A;CIOI;GA;;;BA)(A;CIOI;GA;;;SY)(A;CIOI;GA;;;CO)"
    "S:P(AU;FA;GR;;;WD)"
)
DOMAIN = Sid.parse("S-1-5-21-1-2-3")
ROOT = Sid.parse("S-1-5-21-7-8-9")
GUID_TEXT = "13121110-1514-1716-1819-1A1B1C1D1E1F"
GUID = bytes(range(0x10, 0x20))


def test_the_example_of_the_specification_in_text_and_bytes() -> None:
    assert parse_sddl(SPECIFICATION_TEXT) == SPECIFICATION_VALUE
    assert parse_sddl(SPECIFICATION_TEXT) == SecurityDescriptor.decode(SPECIFICATION)
    assert format_sddl(SecurityDescriptor.decode(SPECIFICATION)) == SPECIFICATION_TEXT


def dacl(*aces: BasicAce | ObjectAce, control: int = 0) -> SecurityDescriptor:
    return SecurityDescriptor(dacl=Acl.of(aces), control=control)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", SecurityDescriptor()),
        ("O:SY", SecurityDescriptor(owner=LOCAL_SYSTEM)),
        ("G:S-1-5-21-1-2-3-513", SecurityDescriptor(group=DOMAIN.child(513))),
        ("D:", dacl()),
        ("S:", SecurityDescriptor(sacl=Acl())),
        ("D:P", dacl(control=0x1000)),
        ("D:AR", dacl(control=0x0100)),
        ("D:AI", dacl(control=0x0400)),
        ("S:P", SecurityDescriptor(sacl=Acl(), control=0x2000)),
        ("S:AR", SecurityDescriptor(sacl=Acl(), control=0x0200)),
        ("S:AI", SecurityDescriptor(sacl=Acl(), control=0x0800)),
        ("D:PARAI", dacl(control=0x1500)),
        ("D:NO_ACCESS_CONTROL", SecurityDescriptor(control=0x0004)),
        ("D:PNO_ACCESS_CONTROL", SecurityDescriptor(control=0x1004)),
        ("S:NO_ACCESS_CONTROL", SecurityDescriptor(control=0x0010)),
        ("D:(A;;0x2002b;;;WD)", dacl(access_allowed(0x2002B, EVERYONE))),
        ("D:(D;;GAGRGWGX;;;WD)", dacl(access_denied(0xF0000000, EVERYONE))),
        ("D:(A;;RCSDWDWO;;;WD)", dacl(access_allowed(0xF0000, EVERYONE))),
        ("D:(A;;0x0;;;WD)", dacl(access_allowed(0, EVERYONE))),
        ("D:(A;CIOINPIOIDSAFA;0x1;;;WD)", dacl(access_allowed(1, EVERYONE, 0xDF))),
        ("D:(OA;;0x1;;;WD)", dacl(ObjectAce(5, 1, EVERYONE))),
        (f"D:(OD;;0x1;{GUID_TEXT};;WD)", dacl(ObjectAce(6, 1, EVERYONE, GUID))),
        (f"D:(OA;;0x1;;{GUID_TEXT};WD)", dacl(ObjectAce(5, 1, EVERYONE, None, GUID))),
        (
            f"D:(OU;;0x1;{GUID_TEXT};00000000-0000-0000-0000-000000000000;WD)",
            dacl(ObjectAce(7, 1, EVERYONE, GUID, NULL_GUID)),
        ),
        ("S:(AL;;0x1;;;WD)", SecurityDescriptor(sacl=Acl((BasicAce(3, 1, EVERYONE),)))),
        ("S:(ML;;NWNRNX;;;LW)", SecurityDescriptor(sacl=Acl((BasicAce(0x11, 7, ML_LOW),)))),
        (
            "S:(SP;;;;;S-1-17-5)",
            SecurityDescriptor(sacl=Acl((BasicAce(0x13, 0, Sid(17, (5,))),))),
        ),
        (
            "O:S-1-0x0000ABCDEF01-5D:AI",
            SecurityDescriptor(Sid(0xABCDEF01, (5,)), dacl=Acl(), control=0x0400),
        ),
    ],
)
def test_text_and_value(text: str, value: SecurityDescriptor) -> None:
    assert parse_sddl(text) == value
    canonical = text.replace("0x0000ABCDEF01", str(0xABCDEF01))
    assert format_sddl(value) == canonical


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("o:bag:syd:p(a;ci;0X2B;;;wd)", "O:BAG:SYD:P(A;CI;0x2b;;;WD)"),
        ("S:D:G:SYO:BA", "O:BAG:SYD:S:"),
        ("D:(A;;43;;;WD)", "D:(A;;0x2b;;;WD)"),
        ("D:(A;;053;;;WD)", "D:(A;;0x2b;;;WD)"),
        ("D:(A;;0;;;WD)", "D:(A;;0x0;;;WD)"),
        ("D:(A;;;;;WD)", "D:(A;;0x0;;;WD)"),
        ("D:(A;;0xFFFFFFFF;;;WD)", "D:(A;;4294967295;;;WD)"),
        ("D:(A;;GAGA;;;S-1-1-0)", "D:(A;;GA;;;WD)"),
        ("D:(A;OICI;GA;;;WD)", "D:(A;CIOI;GA;;;WD)"),
        ("D:(A;;FA;;;WD)", "D:(A;;0x1f01ff;;;WD)"),
        ("D:(A;;FX;;;WD)", "D:(A;;0x1200a0;;;WD)"),
        ("D:(A;;FW;;;WD)", "D:(A;;0x120116;;;WD)"),
        ("D:(A;;FR;;;WD)", "D:(A;;0x120089;;;WD)"),
        ("D:(A;;KA;;;WD)", "D:(A;;0xf003f;;;WD)"),
        ("D:(A;;KR;;;WD)", "D:(A;;0x20019;;;WD)"),
        ("D:(A;;KX;;;WD)", "D:(A;;0x20019;;;WD)"),
        ("D:(A;;KW;;;WD)", "D:(A;;0x20006;;;WD)"),
        ("D:(A;;CR;;;WD)", "D:(A;;0x100;;;WD)"),
        ("D:(A;;LO;;;WD)", "D:(A;;0x80;;;WD)"),
        ("D:(A;;DT;;;WD)", "D:(A;;0x40;;;WD)"),
        ("D:(A;;WP;;;WD)", "D:(A;;0x20;;;WD)"),
        ("D:(A;;RP;;;WD)", "D:(A;;0x10;;;WD)"),
        ("D:(A;;SW;;;WD)", "D:(A;;0x8;;;WD)"),
        ("D:(A;;LC;;;WD)", "D:(A;;0x4;;;WD)"),
        ("D:(A;;DC;;;WD)", "D:(A;;0x2;;;WD)"),
        ("D:(A;;CC;;;WD)", "D:(A;;0x1;;;WD)"),
        ("D:(A;;GR;;;WD)", "D:(A;;0x80000000;;;WD)"),
        ("D:(A;;GW;;;WD)", "D:(A;;0x40000000;;;WD)"),
        ("D:(A;;GX;;;WD)", "D:(A;;0x20000000;;;WD)"),
        ("D:(A;;GA;;;WD)", "D:(A;;0x10000000;;;WD)"),
        ("D:(A;;WO;;;WD)", "D:(A;;0x80000;;;WD)"),
        ("D:(A;;WD;;;WD)", "D:(A;;0x40000;;;WD)"),
        ("D:(A;;RC;;;WD)", "D:(A;;0x20000;;;WD)"),
        ("D:(A;;SD;;;WD)", "D:(A;;0x10000;;;WD)"),
        ("S:(ML;;NW;;;LW)", "S:(ML;;0x1;;;LW)"),
        ("S:(ML;;NR;;;LW)", "S:(ML;;0x2;;;LW)"),
        ("S:(ML;;NX;;;LW)", "S:(ML;;0x4;;;LW)"),
    ],
)
def test_two_spellings_of_one_descriptor(text: str, same: str) -> None:
    assert parse_sddl(text) == parse_sddl(same)


@pytest.mark.parametrize(
    ("name", "bit"),
    [("OI", 1), ("CI", 2), ("NP", 4), ("IO", 8), ("ID", 0x10), ("SA", 0x40), ("FA", 0x80)],
)
def test_each_ace_flag_is_its_bit(name: str, bit: int) -> None:
    assert parse_sddl(f"D:(A;{name};0x1;;;WD)") == dacl(access_allowed(1, EVERYONE, bit))


@given(spellable_security_descriptors)
def test_what_is_printed_parses_to_the_same_value(value: SecurityDescriptor) -> None:
    assert parse_sddl(format_sddl(value)) == value


@given(security_descriptors)
def test_printing_says_it_all_or_refuses(value: SecurityDescriptor) -> None:
    try:
        text = format_sddl(value)
    except WireError:
        return
    again = parse_sddl(text)
    assert (again.owner, again.group) == (value.owner, value.group)
    assert again.dacl == (None if value.dacl is None else Acl.of(value.dacl.aces))
    assert again.sacl == (None if value.sacl is None else Acl.of(value.sacl.aces))
    assert again.has_null_dacl == value.has_null_dacl


@given(sids)
def test_sids_print_and_parse(sid: Sid) -> None:
    assert parse_sid(format_sid(sid)) == sid


def test_well_known_sids_are_printed_by_name() -> None:
    assert format_sid(Sid.parse("S-1-5-32-544")) == "BA"
    assert format_sid(Sid.parse("S-1-5-32-999")) == "S-1-5-32-999"
    assert parse_sid("ba") == ADMINISTRATORS


@pytest.mark.parametrize(
    ("name", "relative_identifier"),
    [
        ("DA", 512),
        ("DU", 513),
        ("DG", 514),
        ("DC", 515),
        ("DD", 516),
        ("CA", 517),
        ("PA", 520),
        ("CN", 522),
        ("RS", 553),
        ("LA", 500),
        ("LG", 501),
    ],
)
def test_names_of_domain_accounts_need_a_domain(name: str, relative_identifier: int) -> None:
    expected = SecurityDescriptor(owner=DOMAIN.child(relative_identifier))
    assert parse_sddl(f"O:{name}", domain=DOMAIN, root_domain=ROOT) == expected
    assert parse_sid(name, domain=DOMAIN) == expected.owner
    with pytest.raises(NameSyntaxError, match="none is known") as caught:
        parse_sddl(f"O:{name}")
    assert caught.value.position == 2
    assert str(relative_identifier) in caught.value.hint


@pytest.mark.parametrize(("name", "relative_identifier"), [("RO", 498), ("SA", 518), ("EA", 519)])
def test_names_of_forest_accounts_mean_the_first_domain(
    name: str, relative_identifier: int
) -> None:
    root_account, account = ROOT.child(relative_identifier), DOMAIN.child(relative_identifier)
    assert parse_sid(name, domain=DOMAIN, root_domain=ROOT) == root_account
    whole = parse_sddl(f"O:{name}", domain=DOMAIN, root_domain=ROOT)
    assert whole == SecurityDescriptor(owner=root_account)
    assert parse_sid(name, domain=DOMAIN) == account
    with pytest.raises(NameSyntaxError, match="none is known"):
        parse_sid(name)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("X", 0, "O:, G:, D:, S:"),
        ("O", 0, "O:, G:, D:, S:"),
        (" O:BA", 0, "O:, G:, D:, S:"),
        ("O:BA ", 4, "O:, G:, D:, S:"),
        ("O:BAO:BA", 4, "second time"),
        ("D:D:", 2, "second time"),
        ("O:", 2, "neither a SID"),
        ("O:QQ", 2, "neither a SID"),
        ("O:S-2-5", 4, "revision"),
        ("O:S-1-5-4294967296", 8, "32 bits"),
        ("G:B", 2, "neither a SID"),
        ("D:X", 2, "O:, G:, D:, S:"),
        ("D:(A;;GA;;;WD", 2, "closing parenthesis"),
        ("D:(", 3, "begins with one of"),
        ("D:()", 3, "begins with one of"),
        ("D:(A)", 4, "six fields"),
        ("D:(A;;GA;;WD)", 12, "six fields"),
        ("D:(ZZ;;GA;;;WD)", 3, "begins with one of"),
        ("D:(AA;;GA;;;WD)", 3, "begins with one of"),
        ("D:(A;;GA;;;WD;x)", 13, "the ACE goes on"),
        ("D:(A;;GA;;;WDx)", 13, "the ACE goes on"),
        ("D:(A;;GA;;;)", 11, "neither a SID"),
        ("D:(A;;GA;;;DA)", 11, "none is known"),
        ("D:(A;XX;GA;;;WD)", 5, "ACE flags are"),
        ("D:(A;CIO;GA;;;WD)", 7, "ACE flags are"),
        ("D:(A;;GAQQ;;;WD)", 8, "rights are"),
        ("D:(A;;G;;;WD)", 6, "rights are"),
        ("D:(A;;NW;;;WD)", 6, "rights are"),
        ("S:(ML;;GA;;;LW)", 7, "rights are"),
        ("D:(A;;0x;;;WD)", 6, "no hexadecimal"),
        ("D:(A;;0x100000000;;;WD)", 6, "no hexadecimal"),
        ("D:(A;;08;;;WD)", 6, "no hexadecimal"),
        ("D:(A;;12x;;;WD)", 6, "no hexadecimal"),
        ("D:(A;;4294967296;;;WD)", 6, "32 bits"),
        ("D:(A;;" + "9" * 5000 + ";;;WD)", 6, "no hexadecimal"),
        ("D:(A;;-1;;;WD)", 6, "rights are"),
        ("D:(OA;;GA;1234;;WD)", 10, "8-4-4-4-12"),
        (f"D:(OA;;GA;;{{{GUID_TEXT}}};WD)", 11, "8-4-4-4-12"),
        (f"D:(A;;GA;{GUID_TEXT};;WD)", 9, "have GUIDs"),
        (f"D:(A;;GA;;{GUID_TEXT};WD)", 10, "have GUIDs"),
        ("D:NO_ACCESS_CONTROL(A;;GA;;;WD)", 19, "no ACE may follow"),
        ('D:(XA;;GA;;;WD;(Title=="VP"))', 3, "conditional ACEs"),
        ('D:(xd;;GA;;;WD;(Title=="VP"))', 3, "conditional ACEs"),
        ("S:(XU;;GA;;;WD;(Exists a))", 3, "conditional ACEs"),
        ("D:(ZA;;GA;;;WD;(Exists a))", 3, "conditional ACEs"),
        ('S:(RA;;;;;WD;("Secrecy",TU,0,3))', 3, "resource attributes"),
        ("D:(A;;GA;;;\N{LATIN SMALL LETTER DOTLESS I}U)", 11, "only ASCII"),
        ("\N{LATIN SMALL LETTER LONG S}:", 0, "only ASCII"),
    ],
)
def test_errors_point_at_the_place(text: str, position: int, problem: str) -> None:
    with pytest.raises(NameSyntaxError, match=problem) as caught:
        parse_sddl(text)
    assert caught.value.position == position
    assert caught.value.status == MqStatus.ILLEGAL_SECURITY_DESCRIPTOR


def test_a_sid_with_more_behind_it_is_refused() -> None:
    with pytest.raises(NameSyntaxError, match="more follows") as caught:
        parse_sid("BAx")
    assert caught.value.position == 2


def test_a_list_that_no_acl_can_hold_is_refused_where_it_grows_too_long() -> None:
    ace = "(A;;GA;;;WD)"  # 20 bytes each
    fits = (0xFFFF - 8) // 20
    assert len(parse_sddl("D:" + ace * fits).encode()) == 20 + 8 + 20 * fits
    with pytest.raises(NameSyntaxError, match="longer than 65535 bytes") as caught:
        parse_sddl("D:" + ace * (fits + 5))
    assert caught.value.position == 2 + len(ace) * fits


@pytest.mark.parametrize(
    ("ace", "field"),
    [
        (OpaqueAce(0x20, b""), "ace-type"),
        (OpaqueAce(0x00, b""), "ace-type"),
        (BasicAce(0x09, 1, EVERYONE, application_data=b"artx"), "ace-type"),
        (BasicAce(0x12, 0, EVERYONE), "ace-type"),
        (ObjectAce(0x0B, 1, EVERYONE), "ace-type"),
        (BasicAce(0, 1, EVERYONE, ace_flags=0x20), "ace-flag-string"),
        (ObjectAce(5, 1, EVERYONE, reserved_flags=4), "object-guid"),
    ],
)
def test_what_sddl_cannot_say_is_refused(ace: BasicAce | ObjectAce | OpaqueAce, field: str) -> None:
    with pytest.raises(WireError) as caught:
        format_sddl(SecurityDescriptor(dacl=Acl((ace,))))
    assert (caught.value.structure, caught.value.field) == ("SDDL", field)


def test_bits_without_words_are_left_out() -> None:
    silent = 0x8000 | 0x4000 | 0x00C0 | 0x002B  # RM, SS, DT and the defaulted bits
    assert format_sddl(SecurityDescriptor(LOCAL_SYSTEM, control=silent, sbz1=5)) == "O:SY"
    assert format_sddl(SecurityDescriptor(control=0x3F00)) == ""  # flags of lists not there
    assert format_sddl(SecurityDescriptor(dacl=Acl((), acl_revision=4, sbz1=1))) == "D:"


TOKENS = [
    *["O:", "G:", "D:", "S:", "(", ")", ";", "A", "OA", "P", "AI", "AR", "GA", "0x1f", "7", "CI"],
    *["BA", "DA", "WD", "S-1-5-18", "S-1-", "-", "XA", "RA", "ML", "NW", "NO_ACCESS_CONTROL"],
    *[GUID_TEXT, "(A;;GA;;;WD)", " ", "\N{LATIN SMALL LETTER DOTLESS I}"],
]


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from(TOKENS), max_size=20).map("".join),
        st.text("OGDS:();-0123456789xABCDEFPI", max_size=60),
    )
)
def test_any_text_parses_or_raises_name_syntax_error(text: str) -> None:
    with contextlib.suppress(NameSyntaxError):
        value = parse_sddl(text, domain=DOMAIN)
        assert SecurityDescriptor.decode(value.encode()) == value
        assert parse_sddl(format_sddl(value)) == value


@given(
    spellable_security_descriptors.map(format_sddl),
    st.integers(0, 10_000),
    st.sampled_from(TOKENS),
)
def test_damaged_text_parses_or_raises_name_syntax_error(text: str, at: int, token: str) -> None:
    at %= len(text) + 1
    with contextlib.suppress(NameSyntaxError):
        value = parse_sddl(text[:at] + token + text[at + len(token) :])
        assert parse_sddl(format_sddl(value)) == value


def test_the_tables_have_no_more_than_tested() -> None:
    assert " ".join(sddl.ACE_TYPES) == "A D AU AL OA OD OU OL ML SP"
    assert len(sddl.ACE_FLAGS) == 7
    assert len(sddl.RIGHTS) == 25
    assert len(sddl.LABEL_RIGHTS) == 3
