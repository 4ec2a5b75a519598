"""Direct format names, MQMQ 2.1.2."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.names import (
    DirectFormatName,
    MsmqVersion,
    Protocol,
    QueueKind,
    Suffix,
    parse_format_name,
)
from tests.strategies.names import (
    QUEUE_NAME_CHARACTERS,
    QUEUE_NAME_CHARACTERS_1_0,
    direct_names,
    mutations,
    queue_names_1_0,
    spelling,
)

PUBLIC, PRIVATE, SYSTEM = QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.SYSTEM


def direct(text: str, version: MsmqVersion = MsmqVersion.MSMQ_6_0) -> DirectFormatName:
    name = parse_format_name(text, version=version)
    assert isinstance(name, DirectFormatName)
    return name


def refusal(text: str, version: MsmqVersion = MsmqVersion.MSMQ_6_0) -> NameSyntaxError:
    with pytest.raises(NameSyntaxError) as caught:
        parse_format_name(text, version=version)
    assert caught.value.status == MqStatus.ILLEGAL_FORMATNAME
    assert caught.value.name == text
    return caught.value


def requires(*rows: str) -> pytest.MarkDecorator:
    return pytest.mark.requirement(*rows)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param(
            "DIRECT=OS:h\\PRIVATE$\\q",
            DirectFormatName(Protocol.OS, "h", PRIVATE, "q"),
            marks=requires("MQ-2.1.2-01", "MQ-2.1.2-03", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=OS:h\\PRIVATE$\\q;JOURNAL",
            DirectFormatName(Protocol.OS, "h", PRIVATE, "q", None, Suffix.JOURNAL),
            marks=requires("MQ-2.1.2-03", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=OS:h\\q",
            DirectFormatName(Protocol.OS, "h", PUBLIC, "q"),
            marks=requires("MQ-2.1.2-01", "MQ-2.1.2-04", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=OS:h\\q;JOURNAL",
            DirectFormatName(Protocol.OS, "h", PUBLIC, "q", None, Suffix.JOURNAL),
            marks=requires("MQ-2.1.2-04", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=OS:h\\SYSTEM$;JOURNAL",
            DirectFormatName(Protocol.OS, "h", SYSTEM, "", None, Suffix.JOURNAL),
            marks=requires("MQ-2.1.2-01", "MQ-2.1.2-05", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=OS:h\\SYSTEM$;DEADLETTER",
            DirectFormatName(Protocol.OS, "h", SYSTEM, "", None, Suffix.DEADLETTER),
            marks=requires("MQ-2.1.2-05", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=OS:h\\SYSTEM$;DEADXACT",
            DirectFormatName(Protocol.OS, "h", SYSTEM, "", None, Suffix.DEADXACT),
            marks=requires("MQ-2.1.2-05", "DM-3.1.7.3.8-10"),
        ),
        pytest.param(
            "DIRECT=TCP:10.0.0.7\\PRIVATE$\\orders",
            DirectFormatName(Protocol.TCP, "10.0.0.7", PRIVATE, "orders"),
            marks=requires("MQ-2.1.2-06"),
        ),
        pytest.param(
            "DIRECT=TCP:fe80::1%eth0\\PRIVATE$\\order_queue$",
            DirectFormatName(Protocol.TCP, "fe80::1%eth0", PRIVATE, "order_queue$"),
            marks=requires("MQ-2.1.2-06"),
        ),
        pytest.param(
            "DIRECT=IPX:00000012:00a0234f7500\\q",
            DirectFormatName(Protocol.IPX, "00000012:00a0234f7500", PUBLIC, "q"),
            marks=requires("MQ-2.1.2-07"),
        ),
        pytest.param(
            "DIRECT=SPX:00000012.00a0234f7500\\PRIVATE$\\order_queue$",
            DirectFormatName(Protocol.SPX, "00000012.00a0234f7500", PRIVATE, "order_queue$"),
            marks=requires("MQ-2.1.2-18"),
        ),
        pytest.param(
            "DIRECT=OS:sales01.example.com\\q",
            DirectFormatName(Protocol.OS, "sales01.example.com", PUBLIC, "q"),
            marks=requires("MQ-2.1.2-08"),
        ),
        pytest.param(
            "DIRECT=HTTP://h:8080/msmq/q",
            DirectFormatName(Protocol.HTTP, "h", PUBLIC, "q", port=8080),
            marks=requires("MQ-2.1.2-09", "DM-3.1.7.3.8-11"),
        ),
        pytest.param(
            "DIRECT=HTTP://10.0.0.7/msmq/private$/q;late",
            DirectFormatName(Protocol.HTTP, "10.0.0.7", PRIVATE, "q", "late"),
            marks=requires("MQ-2.1.2-09", "DM-3.1.7.3.8-11"),
        ),
        pytest.param(
            "DIRECT=HTTPS://[2001:db8::7]:8443/msmq/q",
            DirectFormatName(Protocol.HTTPS, "2001:db8::7", PUBLIC, "q", port=8443),
            marks=requires("MQ-2.1.2-10", "DM-3.1.7.3.8-11"),
        ),
        pytest.param(
            "DIRECT=HTTPS://h/msmq/SYSTEM$;DEADXACT",
            DirectFormatName(Protocol.HTTPS, "h", SYSTEM, "", None, Suffix.DEADXACT),
            marks=requires("MQ-2.1.2-10", "DM-3.1.7.3.8-11"),
        ),
        ("DIRECT=OS:h\\q;sub", DirectFormatName(Protocol.OS, "h", PUBLIC, "q", "sub")),
    ],
)
def test_a_direct_name_reads_into_its_parts_and_prints_back(
    text: str, name: DirectFormatName
) -> None:
    assert spelling(direct(text))[:-1] == spelling(name)[:-1]
    assert str(direct(text)) == text
    assert str(name) == text
    assert "DIRECT=" + name.wire_text == text


@pytest.mark.requirement("MQ-2.1.2-02", "MQ-2.1.2-18", "DM-3.1.7.3.8-10")
def test_the_protocols_are_tcp_os_http_https_ipx_and_spx_in_any_case() -> None:
    rest = {
        "TCP": "1.2.3.4\\q",
        "OS": "h\\q",
        "HTTP": "//h/msmq/q",
        "HTTPS": "//h/msmq/q",
        "IPX": "00000012:00a0234f7500\\q",
        "SPX": "00000012:00a0234f7500\\q",
    }
    for keyword, behind in rest.items():
        for spelled in (keyword, keyword.lower(), keyword.capitalize()):
            assert direct(f"DIRECT={spelled}:{behind}").protocol.value == keyword
    for unknown in ("UDP", "FTP", "", "OSX", "TC", "O\u017f"):
        assert refusal(f"DIRECT={unknown}:h\\q").position == len("DIRECT=")


@pytest.mark.requirement("MQ-2.1.2-01")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("DIRECT=", 7),
        ("DIRECT=OS", 9),
        ("DIRECT=OS:h", 11),
        ("DIRECT=OS:\\q", 10),
        ("DIRECT=OS:h\\", 12),
        ("DIRECT=OS:h\\PRIVATE$\\", 21),
        ("DIRECT=OS:h\\PRIVATE$", 20),
        ("DIRECT=OS:h\\a\\b", 13),
        ("DIRECT=OS:a b\\q", 11),
        ("DIRECT=OS:h\\q;JOURNAL;JOURNAL", 21),
        ("DIRECT=OS:h\\q;", 14),
    ],
)
def test_a_missing_or_wrong_part_is_refused_where_it_should_stand(text: str, position: int) -> None:
    assert refusal(text).position == position


@pytest.mark.requirement("MQ-2.1.2-05")
@pytest.mark.parametrize("behind", ["", "q", "JOURNAL;x", "XACTONLY", "DEADLETTER "])
def test_system_is_followed_by_one_of_three_words(behind: str) -> None:
    assert refusal(f"DIRECT=OS:h\\SYSTEM$;{behind}").position == len("DIRECT=OS:h\\SYSTEM$;")


@pytest.mark.requirement("MQ-2.1.2-06")
@pytest.mark.parametrize(
    "address",
    ["host", "1.2.3", "1.2.3.256", "1.2.3.4.5", "01.2.3.4", "[::1]", "::1::", "1.2.3.4:5"],
)
def test_behind_tcp_only_an_ip_address_is_accepted(address: str) -> None:
    error = refusal(f"DIRECT=TCP:{address}\\q")
    assert error.position == len("DIRECT=TCP:")
    assert "DIRECT=OS:" in error.hint


@pytest.mark.requirement("MQ-2.1.2-07")
@pytest.mark.parametrize(
    "address", ["h", "0000012:00a0234f7500", "00000012:00a0234f750", "0000001g:00a0234f7500"]
)
def test_behind_ipx_only_a_network_and_host_number_are_accepted(address: str) -> None:
    assert refusal(f"DIRECT=IPX:{address}\\q").position == len("DIRECT=IPX:")


@pytest.mark.requirement("MQ-2.1.2-09", "MQ-2.1.2-10", "DM-3.1.7.3.8-11")
@pytest.mark.parametrize("keyword", ["HTTP", "HTTPS"])
@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("h/msmq/q", 0),
        ("/h/msmq/q", 0),
        ("///msmq/q", 2),
        ("//h", 3),
        ("//h/q", 4),
        ("//h/msm/q", 4),
        ("//h/msmq", 8),
        ("//h/msmqueue/q", 8),
        ("//h/msmq/", 9),
        ("//h:/msmq/q", 4),
        ("//h:8o/msmq/q", 5),
        ("//h:65536/msmq/q", 4),
        ("//h:-1/msmq/q", 4),
        ("//a b/msmq/q", 3),
        ("//[::1/msmq/q", 13),
        ("//[1.2.3.4]/msmq/q", 2),
        ("//[::g]/msmq/q", 3),
        ("//[::1]x/msmq/q", 7),
    ],
)
def test_a_bad_url_is_refused_at_the_offending_character(
    keyword: str, url: str, fault: int
) -> None:
    before = f"DIRECT={keyword}:"
    assert refusal(before + url).position == len(before) + fault


@pytest.mark.requirement("MQ-2.1.2-11", "DM-3.1.7.3.8-11")
def test_the_port_of_an_http_name_is_80_when_left_out() -> None:
    assert direct("DIRECT=HTTP://h/msmq/q").port is None
    assert direct("DIRECT=HTTP://h/msmq/q").effective_port == 80
    assert direct("DIRECT=HTTP://h:8080/msmq/q").effective_port == 8080
    assert direct("DIRECT=HTTP://h/msmq/q") == direct("DIRECT=HTTP://h:80/msmq/q")
    assert direct("DIRECT=HTTP://h/msmq/q") != direct("DIRECT=HTTP://h:443/msmq/q")


@pytest.mark.requirement("MQ-2.1.2-12", "DM-3.1.7.3.8-11")
def test_the_port_of_an_https_name_is_443_when_left_out() -> None:
    assert direct("DIRECT=HTTPS://h/msmq/q").effective_port == 443
    assert direct("DIRECT=HTTPS://h/msmq/q") == direct("DIRECT=HTTPS://h:443/msmq/q")
    assert direct("DIRECT=OS:h\\q").effective_port is None


@pytest.mark.requirement("MQ-2.1.2-13")
def test_a_subqueue_has_1_to_32_characters_of_its_set() -> None:
    accepted = ""
    for character in map(chr, range(0x100)):
        with contextlib.suppress(NameSyntaxError):
            assert direct(f"DIRECT=OS:h\\q;a{character}b").subqueue == f"a{character}b"
            accepted += character
    assert accepted == QUEUE_NAME_CHARACTERS
    assert direct("DIRECT=OS:h\\q;" + "s" * 32).subqueue == "s" * 32
    assert refusal("DIRECT=OS:h\\q;" + "s" * 33).position == 14 + 32
    assert refusal("DIRECT=OS:h\\q;").position == 14


@pytest.mark.requirement("MQ-2.1.2-14")
@pytest.mark.parametrize("version", MsmqVersion)
def test_a_queue_name_follows_the_rule_of_its_version(version: MsmqVersion) -> None:
    accepted = ""
    for character in map(chr, range(0x100)):
        with contextlib.suppress(NameSyntaxError):
            if direct(f"DIRECT=OS:h\\a{character}b", version).queue == f"a{character}b":
                accepted += character
    if version == MsmqVersion.MSMQ_1_0:
        assert accepted == QUEUE_NAME_CHARACTERS_1_0
    else:
        assert accepted == QUEUE_NAME_CHARACTERS
    assert direct("DIRECT=OS:h\\" + "q" * 124, version).queue == "q" * 124
    assert refusal("DIRECT=OS:h\\" + "q" * 125, version).position == 12 + 124
    if version < MsmqVersion.MSMQ_4_0:
        assert refusal("DIRECT=OS:h\\q;sub", version).position == 13
    else:
        assert direct("DIRECT=OS:h\\q;sub", version).subqueue == "sub"


@pytest.mark.requirement("MQ-2.1.2-16")
def test_the_text_on_the_wire_leaves_out_the_keyword_and_keeps_the_spelling() -> None:
    name = direct("direct=os:A04bm02\\Private$\\Q")
    assert name.wire_text == "os:A04bm02\\Private$\\Q"
    assert str(name) == "DIRECT=os:A04bm02\\Private$\\Q"
    assert DirectFormatName.from_wire("os:A04bm02\\Private$\\Q") == name
    assert DirectFormatName.from_wire("os:A04bm02\\Private$\\Q").wire_text == name.wire_text


@pytest.mark.requirement("MQ-2.1.2-17")
@pytest.mark.parametrize(
    "text",
    [
        "http://h/msmq/private$/q",
        "http://h/msmq/private$\\q",
        "HTTP://H/MSMQ\\PRIVATE$\\Q",
        "http://h\\msmq\\private$/q",
    ],
)
def test_both_separators_are_accepted_in_urls(text: str) -> None:
    name = DirectFormatName.from_wire(text)
    assert name == DirectFormatName(Protocol.HTTP, "h", PRIVATE, "q")
    assert name.wire_text == text


def test_a_slash_divides_nothing_outside_urls() -> None:
    name = direct("DIRECT=OS:h\\private$/q")
    assert (name.kind, name.queue) == (PUBLIC, "private$/q")
    assert direct("DIRECT=HTTP://h/msmq/a/b").queue == "a/b"


def test_journal_behind_the_semicolon_is_the_journal_not_a_subqueue() -> None:
    for spelled in ("JOURNAL", "journal", "Journal"):
        name = direct(f"DIRECT=OS:h\\q;{spelled}")
        assert (name.suffix, name.subqueue) == (Suffix.JOURNAL, None)
    assert direct("DIRECT=OS:h\\q;journals").subqueue == "journals"


def test_only_journals_and_dead_letter_queues_are_read_only() -> None:
    assert direct("DIRECT=OS:h\\q;JOURNAL").is_read_only
    assert direct("DIRECT=OS:h\\SYSTEM$;DEADXACT").is_read_only
    assert not direct("DIRECT=OS:h\\q;sub").is_read_only


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OS:Host\\Q;Sub", "os:hOST\\q;sUB"),
        ("TCP:::1\\q", "tcp:0:0:0:0:0:0:0:1\\q"),
        ("HTTP://[2001:DB8::7]/msmq/q", "http://[2001:db8:0::7]:80/MSMQ/q"),
        ("SPX:00000012.00A0234F7500\\q", "SPX:00000012:00a0234f7500\\q"),
        ("carrier pigeon", "Carrier Pigeon"),
    ],
)
def test_names_that_lead_to_the_same_queue_are_equal(one: str, other: str) -> None:
    first, second = DirectFormatName.from_wire(one), DirectFormatName.from_wire(other)
    assert first == second
    assert hash(first) == hash(second)
    assert first.wire_text == one


@pytest.mark.parametrize(
    "other",
    [
        "TCP:1.2.3.4\\q",
        "OS:i\\q",
        "OS:h\\p",
        "OS:h\\private$\\q",
        "OS:h\\q;sub",
        "OS:h\\q;journal",
        "OS:h\\system$;journal",
        "HTTP://h/msmq/q",
        "OS:h\\q\\",
    ],
)
def test_names_that_lead_to_different_queues_differ(other: str) -> None:
    assert DirectFormatName.from_wire("OS:h\\q") != DirectFormatName.from_wire(other)


def test_letters_beyond_ascii_are_never_folded_together() -> None:
    sharp, double = DirectFormatName.from_wire("OS:h\\ß"), DirectFormatName.from_wire("OS:h\\ss")
    assert sharp.protocol is Protocol.OTHER
    assert sharp != DirectFormatName.from_wire("OS:h\\SS")
    assert double == DirectFormatName.from_wire("OS:h\\SS")
    kelvin = DirectFormatName.from_wire("OS:h\\\u212a")
    assert kelvin != DirectFormatName.from_wire("OS:h\\k")


def test_a_text_that_breaks_the_grammar_is_held_but_leads_nowhere() -> None:
    name = DirectFormatName.from_wire("OS:grün\\private$\\bestellungen")
    assert name.protocol is Protocol.OTHER
    assert (name.queue, name.subqueue, name.suffix) == ("", None, Suffix.NONE)
    assert name.wire_text == "OS:grün\\private$\\bestellungen"
    assert str(name) == "DIRECT=OS:grün\\private$\\bestellungen"


def test_queue_names_of_msmq_1_0_are_understood_on_the_wire() -> None:
    name = DirectFormatName.from_wire('OS:h\\a+b,"c"')
    assert (name.protocol, name.queue) == (Protocol.OS, 'a+b,"c"')


def test_a_changed_copy_is_spelled_anew() -> None:
    name = DirectFormatName.from_wire("os:h\\Private$\\q")
    assert replace(name, queue="p").wire_text == "OS:h\\PRIVATE$\\p"


@pytest.mark.parametrize(
    "change",
    [
        {"address": ""},
        {"address": "a\\b"},
        {"address": "a,PUBLIC=x"},
        {"port": 80},
        {"protocol": Protocol.HTTP, "port": 65536},
        {"protocol": Protocol.HTTP, "port": -1},
        {"protocol": Protocol.HTTP, "address": "a/b"},
        {"protocol": Protocol.HTTP, "address": "[a"},
        {"protocol": Protocol.HTTP, "address": "::1%]"},
        {"protocol": Protocol.HTTP, "queue": "Private$/q"},
        {"protocol": Protocol.TCP},
        {"protocol": Protocol.IPX},
        {"queue": ""},
        {"queue": "a\\b"},
        {"queue": "SYSTEM$"},
        {"queue": "q" * 125},
        {"subqueue": "s" * 33},
        {"subqueue": "Journal"},
        {"subqueue": "s", "suffix": Suffix.JOURNAL},
        {"suffix": Suffix.DEADLETTER},
        {"suffix": Suffix.DEADXACT},
        {"kind": SYSTEM},
        {"kind": SYSTEM, "suffix": Suffix.JOURNAL},
        {"kind": SYSTEM, "queue": ""},
        {"kind": SYSTEM, "queue": "", "suffix": Suffix.JOURNAL, "subqueue": "s"},
    ],
)
def test_values_that_no_text_stands_for_are_refused(change: dict[str, object]) -> None:
    values: dict[str, object] = {"protocol": Protocol.OS, "address": "h", "queue": "q"}
    with pytest.raises(NameSyntaxError) as caught:
        DirectFormatName(**(values | change))  # type: ignore[arg-type] # a table of keywords
    assert caught.value.status == MqStatus.ILLEGAL_FORMATNAME


@given(direct_names)
def test_round_trip_on_the_wire(name: DirectFormatName) -> None:
    again = DirectFormatName.from_wire(name.wire_text)
    assert again == name
    assert spelling(again) == spelling(name)


@given(direct_names, queue_names_1_0)
def test_round_trip_with_queue_names_of_msmq_1_0(name: DirectFormatName, queue: str) -> None:
    if name.kind is not SYSTEM and name.subqueue is None:
        old = replace(name, queue=queue)
        assert direct(str(old), MsmqVersion.MSMQ_1_0) == old


@given(st.text() | mutations(direct_names.map(lambda name: name.wire_text)))
@example("")
@example(":")
@example("HTTP://[")
@example("HTTP://h:")
@example("OS:h\\system$;")
def test_any_text_of_a_peer_is_held_as_it_came(text: str) -> None:
    name = DirectFormatName.from_wire(text)
    assert name.wire_text == text
    assert str(name) == "DIRECT=" + text
    assert name == DirectFormatName.from_wire(text)
    assert hash(name) == hash(DirectFormatName.from_wire(text))
    assert (name.protocol is Protocol.OTHER) == (not name.queue and name.kind is not SYSTEM)
