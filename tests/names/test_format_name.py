"""Format names, MQMQ 2.1.3 to 2.1.7; direct names have a test module of their own."""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.names import (
    ConnectorFormatName,
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MsmqVersion,
    MulticastFormatName,
    MultipleElementFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
    Suffix,
    parse_format_name,
    parse_queue_name,
)
from tests.strategies.names import (
    DOMAIN_CHARACTERS,
    format_names,
    mutations,
    path_names,
    spelling,
)

G = "AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE"
GUID = UUID(G)


def requires(*rows: str) -> pytest.MarkDecorator:
    return pytest.mark.requirement(*rows)


def refusal(
    text: str,
    version: MsmqVersion = MsmqVersion.MSMQ_6_0,
    status: MqStatus = MqStatus.ILLEGAL_FORMATNAME,
) -> NameSyntaxError:
    with pytest.raises(NameSyntaxError) as caught:
        parse_format_name(text, version=version)
    assert caught.value.status == status
    assert caught.value.name == text
    return caught.value


CANONICAL: list[tuple[str, SingleFormatName]] = [
    (f"PUBLIC={G}", PublicFormatName(GUID)),
    (f"PUBLIC={G};JOURNAL", PublicFormatName(GUID, Suffix.JOURNAL)),
    (f"PRIVATE={G}\\0000001a", PrivateFormatName(GUID, 0x1A)),
    (f"PRIVATE={G}\\ffffffff;JOURNAL", PrivateFormatName(GUID, 0xFFFFFFFF, Suffix.JOURNAL)),
    (f"DL={G}", DistributionListFormatName(GUID)),
    (f"DL={G}@example.com", DistributionListFormatName(GUID, "example.com")),
    (f"MACHINE={G}", MachineFormatName(GUID)),
    (f"MACHINE={G};JOURNAL", MachineFormatName(GUID, Suffix.JOURNAL)),
    (f"MACHINE={G};DEADLETTER", MachineFormatName(GUID, Suffix.DEADLETTER)),
    (f"MACHINE={G};DEADXACT", MachineFormatName(GUID, Suffix.DEADXACT)),
    (f"CONNECTOR={G}", ConnectorFormatName(GUID)),
    (f"CONNECTOR={G};XACTONLY", ConnectorFormatName(GUID, transactional=True)),
    ("MULTICAST=224.0.0.1:8001", MulticastFormatName("224.0.0.1", 8001)),
]
ROWS = [
    ("MQ-2.1.3-01", "DM-3.1.7.3.8-12"),
    ("MQ-2.1.3-06",),
    ("MQ-2.1.4-01", "MQ-2.1.4-02", "DM-3.1.7.3.8-12"),
    ("MQ-2.1.4-01", "DM-3.1.7.3.8-12"),
    ("MQ-2.1.5-01", "DM-3.1.7.3.8-13"),
    ("MQ-2.1.5-01", "DM-3.1.7.3.8-13"),
    ("MQ-2.1.6-01", "DM-3.1.7.3.8-14"),
    ("MQ-2.1.6-07",),
    ("MQ-2.1.6-07",),
    ("MQ-2.1.6-07",),
    ("MQ-2.1.6-02", "DM-3.1.7.3.8-14"),
    ("MQ-2.1.6-08",),
    ("MQ-2.1.6-03", "DM-3.1.7.3.8-14"),
]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param(*case, marks=requires(*rows))
        for case, rows in zip(CANONICAL, ROWS, strict=True)
    ],
)
def test_a_format_name_reads_and_prints(text: str, name: SingleFormatName) -> None:
    assert parse_format_name(text) == name
    assert parse_queue_name(text) == name
    assert str(name) == text
    # keywords, digits and suffixes have no case
    assert parse_format_name(text.lower()) == name
    assert parse_format_name(text.swapcase()) == name
    assert hash(parse_format_name(text.lower())) == hash(name)


@pytest.mark.requirement("MQ-2.1.3-03")
def test_the_digits_of_a_guid_have_no_case() -> None:
    assert parse_format_name("public=AbCdEf01-aB23-Cd45-eF67-89aBcDeF0123") == PublicFormatName(
        UUID("abcdef01-ab23-cd45-ef67-89abcdef0123")
    )


@pytest.mark.requirement("MQ-2.1.3-01", "MQ-2.1.3-02")
@pytest.mark.parametrize("keyword", ["PUBLIC", "PRIVATE", "DL", "MACHINE", "CONNECTOR"])
@pytest.mark.parametrize(
    ("guid", "fault"),
    [
        ("", 0),
        (f"{{{G}}}", 0),
        (G.replace("-", ""), 8),
        (G[:-1], 35),
        (G[:7] + G[8:], 7),
        ("G" + G[1:], 0),
        (G[:-1] + "G", 35),
        (G[:13] + "0" + G[14:], 13),
        (G[:4] + "\u0661" + G[5:], 4),
        (" " + G, 0),
    ],
)
def test_a_guid_that_is_not_8_4_4_4_12_digits_is_refused_where_it_breaks(
    keyword: str, guid: str, fault: int
) -> None:
    error = refusal(f"{keyword}={guid}")
    assert error.position == len(keyword) + 1 + fault
    assert ("braces" in error.hint) == guid.startswith("{")


@pytest.mark.requirement("MQ-2.1.3-02")
def test_a_guid_with_a_digit_too_many_is_refused() -> None:
    assert refusal(f"PUBLIC={G}0").position == len(f"PUBLIC={G}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"PUBLIC={G};DEADLETTER", ";"),
        (f"PUBLIC={G};DEADXACT", ";"),
        (f"PUBLIC={G};XACTONLY", ";"),
        (f"PUBLIC={G};", ";"),
        (f"PUBLIC={G}\\1", "\\"),
        pytest.param(f"PRIVATE={G}\\1;DEADLETTER", ";", marks=requires("MQ-2.1.4-01")),
        (f"MACHINE={G};XACTONLY", ";"),
        (f"MACHINE={G};q", ";"),
        (f"CONNECTOR={G};JOURNAL", ";"),
        (f"DL={G};JOURNAL", ";"),
        (f"DL={G} ", " "),
    ],
)
def test_a_suffix_that_does_not_belong_is_refused(text: str, fault: str) -> None:
    assert refusal(text).position == text.index(fault)


@pytest.mark.requirement("MQ-2.1.4-01", "DM-3.1.7.3.8-12")
@pytest.mark.parametrize(
    ("number", "fault"), [("", 0), ("123456789", 8), ("12g", 2), ("0x1", 1), ("-1", 0)]
)
def test_a_private_queue_number_has_1_to_8_hexadecimal_digits(number: str, fault: int) -> None:
    before = f"PRIVATE={G}\\"
    assert refusal(before + number).position == len(before) + fault


@pytest.mark.requirement("MQ-2.1.4-01")
def test_a_private_name_without_a_number_is_refused() -> None:
    assert refusal(f"PRIVATE={G}").position == len(f"PRIVATE={G}")
    assert refusal(f"PRIVATE={G};JOURNAL").position == len(f"PRIVATE={G}")


@pytest.mark.requirement("MQ-2.1.4-02")
def test_leading_zeros_of_a_private_queue_number_may_be_dropped() -> None:
    short, padded = (
        parse_format_name(f"PRIVATE={G}\\1A"),
        parse_format_name(f"PRIVATE={G}\\0000001a"),
    )
    assert short == padded == PrivateFormatName(GUID, 26)
    assert parse_format_name(f"PRIVATE={G}\\FFFFFFFF") == PrivateFormatName(GUID, 0xFFFFFFFF)


@pytest.mark.requirement("MQ-2.1.5-02", "DM-3.1.7.3.8-13")
def test_a_domain_has_1_to_255_visible_ascii_characters() -> None:
    before = f"DL={G}@"
    for length in (1, 254, 255):
        name = parse_format_name(before + "d" * length)
        assert name == DistributionListFormatName(GUID, "d" * length)
    assert refusal(before + "d" * 256).position == len(before) + 255
    assert refusal(before).position == len(before)
    accepted = ""
    for character in map(chr, range(0x100)):
        with contextlib.suppress(NameSyntaxError):
            parse_format_name(before + f"a{character}b")
            accepted += character
    assert accepted == DOMAIN_CHARACTERS


def test_the_domain_of_a_list_has_no_case() -> None:
    one, other = parse_format_name(f"DL={G}@A.example"), parse_format_name(f"DL={G}@a.EXAMPLE")
    assert one == other
    assert hash(one) == hash(other)
    assert one != parse_format_name(f"DL={G}")
    assert str(one) == f"DL={G}@A.example"


# guide, section 20, scenario 21
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("224.0.0.0:0", marks=requires("MQ-2.1.6-04", "MQ-2.1.6-06")),
        pytest.param(
            "239.255.255.255:65535", marks=requires("MQ-2.1.6-04", "MQ-2.1.6-05", "MQ-2.1.6-06")
        ),
        pytest.param("230.10.100.9:20", marks=requires("MQ-2.1.6-06")),
        pytest.param("230.10.100.9:345", marks=requires("MQ-2.1.6-06")),
        pytest.param("230.10.100.9:9999", marks=requires("MQ-2.1.6-06")),
    ],
)
def test_a_multicast_name_is_accepted(text: str) -> None:
    name = parse_format_name("MULTICAST=" + text)
    address, port = text.split(":")
    assert name == MulticastFormatName(address, int(port))
    assert str(name) == "MULTICAST=" + text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("223.1.1.1:5", 0, marks=requires("MQ-2.1.6-04", "DM-3.1.7.3.8-14")),
        pytest.param("240.0.0.1:5", 0, marks=requires("MQ-2.1.6-04", "DM-3.1.7.3.8-14")),
        pytest.param("224.0.0.1:65536", 10, marks=requires("MQ-2.1.6-06", "DM-3.1.7.3.8-14")),
        pytest.param("224.0.0.256:1", 8, marks=requires("MQ-2.1.6-05")),
        pytest.param("224.256.0.1:1", 4, marks=requires("MQ-2.1.6-05")),
        pytest.param("224.0.00.1:1", 6, marks=requires("MQ-2.1.6-05")),
        pytest.param("224.0.0.01:1", 8, marks=requires("MQ-2.1.6-05")),
        pytest.param("224.0.0.-1:1", 8, marks=requires("MQ-2.1.6-05")),
        pytest.param("224.0.0.1", 9, marks=requires("MQ-2.1.6-03")),
        pytest.param("224.0.0.1:", 10, marks=requires("MQ-2.1.6-03")),
        pytest.param("224.0.0:1", 7, marks=requires("MQ-2.1.6-03")),
        pytest.param("224.0.0.1.1:1", 9, marks=requires("MQ-2.1.6-03")),
        pytest.param("224.0.0.1:01", 10, marks=requires("MQ-2.1.6-03")),
        pytest.param("224.0.0.1:1;JOURNAL", 11, marks=requires("MQ-2.1.6-03")),
        pytest.param("ff02::1:1", 4, marks=requires("MQ-2.1.6-09")),
        ("", 0),
        ("224.0.0.1:\u0661", 10),
    ],
)
def test_a_bad_multicast_name_is_refused_at_the_offending_character(text: str, fault: int) -> None:
    assert refusal("MULTICAST=" + text).position == len("MULTICAST=") + fault


@pytest.mark.requirement("MQ-2.1.6-09")
def test_multicast_names_exist_from_msmq_3_0_on() -> None:
    for version in MsmqVersion:
        if version >= MsmqVersion.MSMQ_3_0:
            parse_format_name("MULTICAST=224.0.0.1:1", version=version)
        else:
            unsupported = MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
            assert refusal("MULTICAST=224.0.0.1:1", version, unsupported).position == 0


ELEMENTS = [
    "DIRECT=OS:h\\private$\\q",
    f"PUBLIC={G}",
    f"PRIVATE={G}\\0000001a",
    f"DL={G}@example.com",
    f"CONNECTOR={G}",
    f"CONNECTOR={G};XACTONLY",
    "MULTICAST=224.0.0.1:8001",
    "DIRECT=HTTP://h/msmq/q",
]


@pytest.mark.requirement("MQ-2.1.7-01", "MQ-2.1.7-02", "DM-3.1.7.3.8-15")
def test_every_kind_that_can_be_sent_to_may_be_an_element() -> None:
    text = ",".join(ELEMENTS)
    name = parse_format_name(text)
    assert isinstance(name, MultipleElementFormatName)
    assert name.elements == tuple(parse_format_name(element) for element in ELEMENTS)
    assert str(name) == text
    assert not name.is_read_only
    assert name == parse_format_name(text.swapcase())
    for count in range(1, 4):
        joined = parse_format_name(",".join(ELEMENTS[:count]))
        assert isinstance(joined, MultipleElementFormatName) == (count > 1)


@pytest.mark.requirement("MQ-2.1.7-01", "DM-3.1.7.3.8-15")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        (f"PUBLIC={G}, PUBLIC={G}", 44),
        (f"PUBLIC={G} ,PUBLIC={G}", 43),
        (f"PUBLIC={G},", 44),
        (f",PUBLIC={G}", 0),
        (f"PUBLIC={G},,PUBLIC={G}", 44),
        (f"PUBLIC={G};PUBLIC={G}", 43),
        (f"PUBLIC={G},h\\q", 44),
        (f"PUBLIC={G},PUBLC={G}", 44),
        (f"PUBLIC={G},PUBLIC=x", 51),
        (f"DIRECT=OS:h\\q, PUBLIC={G}", 13),
        (f" PUBLIC={G},PUBLIC={G}", 0),
    ],
)
def test_blanks_and_gaps_between_elements_are_refused(text: str, position: int) -> None:
    assert refusal(text).position == position


# guide, section 20, scenario 22
@pytest.mark.requirement("MQ-2.1.7-02")
@pytest.mark.parametrize("suffix", ["", ";JOURNAL", ";DEADLETTER", ";DEADXACT"])
def test_a_machine_name_is_refused_as_an_element(suffix: str) -> None:
    error = refusal(f"PUBLIC={G},MACHINE={G}{suffix},PUBLIC={G}")
    assert error.position == len(f"PUBLIC={G},")


READ_ONLY = [
    f"PUBLIC={G};JOURNAL",
    f"PRIVATE={G}\\0000001a;JOURNAL",
    "DIRECT=OS:h\\q;JOURNAL",
    "DIRECT=OS:h\\SYSTEM$;JOURNAL",
    "DIRECT=OS:h\\SYSTEM$;DEADLETTER",
    "DIRECT=HTTP://h/msmq/SYSTEM$;DEADXACT",
]


@pytest.mark.requirement("MQ-2.1.7-03", "DM-3.1.7.3.8-15")
@pytest.mark.parametrize("element", READ_ONLY)
def test_a_read_only_queue_is_refused_as_an_element(element: str) -> None:
    parse_format_name(element)
    status = MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
    first = refusal(f"{element},PUBLIC={G}", status=status)
    assert first.position == element.index(";")
    last = refusal(f"PUBLIC={G},{element}", status=status)
    assert last.position == len(f"PUBLIC={G},") + element.index(";")


@pytest.mark.requirement("MQ-2.1.7-02", "MQ-2.1.7-03")
@pytest.mark.parametrize("element", [*READ_ONLY, f"MACHINE={G};JOURNAL"])
def test_a_read_only_queue_is_refused_as_an_element_of_the_constructor(element: str) -> None:
    name = parse_format_name(element)
    assert not isinstance(name, MultipleElementFormatName)
    with pytest.raises(NameSyntaxError):
        MultipleElementFormatName((PublicFormatName(GUID), name))


def test_a_multiple_element_name_has_two_elements_or_more() -> None:
    for elements in ((), (PublicFormatName(GUID),)):
        with pytest.raises(NameSyntaxError, match="two elements"):
            MultipleElementFormatName(elements)


@pytest.mark.requirement("MQ-2.1.7-05")
def test_a_comma_divides_names_but_may_stand_in_a_queue_name_of_msmq_1_0() -> None:
    text = f"DIRECT=OS:h\\a,DL={G}"
    name = parse_format_name(text, version=MsmqVersion.MSMQ_1_0)
    assert isinstance(name, DirectFormatName)
    assert name.queue == f"a,DL={G}"
    for version in MsmqVersion:
        if version > MsmqVersion.MSMQ_1_0:
            divided = parse_format_name(text, version=version)
            assert isinstance(divided, MultipleElementFormatName)
            assert refusal("DIRECT=OS:h\\a,b", version).position == 13


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("", 0, "DIRECT="),
        ("orders", 0, "DIRECT="),
        (".\\private$\\orders", 0, "DIRECT="),
        ("=x", 0, "DIRECT="),
        ("DIRCT=OS:h\\q", 0, "did you mean DIRECT=?"),
        ("DIRECT=TPC:1.2.3.4\\q", 7, "did you mean TCP?"),
        ("DIRECT=OS:h\\SYSTEM$;DEADLETER", 20, "did you mean DEADLETTER?"),
    ],
)
def test_a_text_that_is_no_format_name_is_refused_with_help(
    text: str, position: int, hint: str
) -> None:
    error = refusal(text)
    assert error.position == position
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("DIRCT=OS:h\\q", "did you mean DIRECT=?"),
        ("OS:h\\private$\\q", "write DIRECT=OS:h\\private$\\q"),
        ("http://h/msmq/q", "write DIRECT=http://h/msmq/q"),
        ("FormatName:DIRECT=OS:h\\q", "write DIRECT=OS:h\\q"),
    ],
)
def test_what_is_meant_as_a_format_name_is_not_taken_as_a_path_name(text: str, hint: str) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        parse_queue_name(text)
    assert caught.value.status == MqStatus.ILLEGAL_FORMATNAME
    assert caught.value.hint == hint


def test_anything_else_is_a_path_name() -> None:
    assert parse_queue_name(".\\private$\\q") == PathName.parse(".\\private$\\q")
    assert parse_queue_name("a=b\\q") == PathName.parse("a=b\\q")
    with pytest.raises(NameSyntaxError) as caught:
        parse_queue_name("orders")
    assert caught.value.status == MqStatus.ILLEGAL_QUEUE_PATHNAME


@pytest.mark.parametrize("number", [-1, 1 << 32])
def test_a_private_queue_number_of_more_than_32_bits_is_refused(number: int) -> None:
    with pytest.raises(NameSyntaxError):
        PrivateFormatName(GUID, number)


@pytest.mark.parametrize("suffix", [Suffix.DEADLETTER, Suffix.DEADXACT])
def test_a_queue_has_no_dead_letter_queue_of_its_own(suffix: Suffix) -> None:
    with pytest.raises(NameSyntaxError):
        PublicFormatName(GUID, suffix)
    with pytest.raises(NameSyntaxError):
        PrivateFormatName(GUID, 1, suffix)


@pytest.mark.parametrize("domain", ["", "a b", "d" * 256, "a,DL=b"])
def test_a_domain_that_no_text_stands_for_is_refused(domain: str) -> None:
    with pytest.raises(NameSyntaxError):
        DistributionListFormatName(GUID, domain)


@pytest.mark.parametrize(
    ("address", "port"), [("223.0.0.1", 1), ("224.0.0.1", -1), ("224.0.0.1", 65536), ("x", 1)]
)
def test_a_multicast_address_that_no_text_stands_for_is_refused(address: str, port: int) -> None:
    with pytest.raises(NameSyntaxError):
        MulticastFormatName(address, port)


def test_names_of_different_kinds_differ() -> None:
    names = [name for _, name in CANONICAL]
    assert len(set(names)) == len(names)


@given(format_names)
def test_round_trip(name: FormatName) -> None:
    again = parse_format_name(str(name))
    assert again == name
    assert hash(again) == hash(name)
    assert spelling(again) == spelling(name)
    assert str(again) == str(name)
    assert parse_queue_name(str(name)) == name


@given(
    st.text() | mutations(format_names.map(str)) | mutations(path_names.map(str)),
    st.sampled_from(MsmqVersion),
)
@example("DIRECT=", MsmqVersion.MSMQ_6_0)
@example("DIRECT=HTTP://[", MsmqVersion.MSMQ_6_0)
@example("PRIVATE=" + G + "\\;", MsmqVersion.MSMQ_6_0)
@example("MULTICAST=224...:", MsmqVersion.MSMQ_6_0)
def test_any_text_parses_or_raises_name_syntax_error(text: str, version: MsmqVersion) -> None:
    for parse in (parse_format_name, parse_queue_name):
        try:
            name = parse(text, version=version)
        except NameSyntaxError as error:
            assert 0 <= error.position <= len(text)
            assert error.problem
        else:
            assert parse(str(name), version=version) == name


def test_a_long_text_costs_no_more_than_its_length() -> None:
    many = ",".join([f"PUBLIC={G}"] * 1000)
    name = parse_format_name(many)
    assert isinstance(name, MultipleElementFormatName)
    assert len(name.elements) == 1000
    error = refusal("DIRECT=OS:" + "a,b=" * 100_000)
    assert error.position == 0x10000
    assert len(str(error)) < 300
