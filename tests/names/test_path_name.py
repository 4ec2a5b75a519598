"""Path names, MQMQ 2.1.1."""

from __future__ import annotations

import contextlib
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.names import MsmqVersion, PathName, QueueKind, parse_queue_name
from tests.strategies.names import (
    COMPUTER_CHARACTERS,
    QUEUE_NAME_CHARACTERS,
    QUEUE_NAME_CHARACTERS_1_0,
    mutations,
    path_names,
    spelling,
)

OLD_VERSIONS = [version for version in MsmqVersion if version < MsmqVersion.MSMQ_4_0]
SUBQUEUE_VERSIONS = [version for version in MsmqVersion if version >= MsmqVersion.MSMQ_4_0]
# every character of a byte, some beyond, and one that is no character
ALL_CHARACTERS = [
    *map(chr, range(0x100)),
    "\u0100",
    "\u017f",
    "\u212a",
    "\u2003",
    "\ud800",
    "\U0001f600",
]


def refusal(text: str, version: MsmqVersion = MsmqVersion.MSMQ_6_0) -> NameSyntaxError:
    with pytest.raises(NameSyntaxError) as caught:
        PathName.parse(text, version=version)
    assert caught.value.status == MqStatus.ILLEGAL_QUEUE_PATHNAME
    assert caught.value.name == text
    return caught.value


def accepted_characters(before: str, after: str, version: MsmqVersion) -> str:
    accepted = []
    for character in ALL_CHARACTERS:
        text = before + character + after
        with contextlib.suppress(NameSyntaxError):
            PathName.parse(text, version=version)
            accepted.append(character)
    return "".join(accepted)


@pytest.mark.parametrize(
    ("text", "path_name"),
    [
        pytest.param(
            "sales01\\orders",
            ["sales01", QueueKind.PUBLIC, "orders", None, False],
            marks=pytest.mark.requirement("MQ-2.1.1-01", "DM-3.1.1.2-45"),
        ),
        pytest.param(
            "sales01\\private$\\orders",
            ["sales01", QueueKind.PRIVATE, "orders", None, False],
            marks=pytest.mark.requirement("MQ-2.1.1-02", "DM-3.1.1.2-45"),
        ),
        pytest.param(
            "sales01\\system$;deadletter",
            ["sales01", QueueKind.SYSTEM, "deadletter", None, False],
            marks=pytest.mark.requirement("MQ-2.1.1-03", "DM-3.1.1.2-45"),
        ),
        pytest.param(
            ".\\private$\\Orders;Late",
            [".", QueueKind.PRIVATE, "Orders", "Late", False],
            marks=pytest.mark.requirement("MQ-2.1.1-07", "DM-3.1.1.2-47"),
        ),
        (".\\orders;journal", [".", QueueKind.PUBLIC, "orders", None, True]),
        (".\\private$\\orders;journal", [".", QueueKind.PRIVATE, "orders", None, True]),
    ],
)
def test_a_path_name_reads_into_its_parts_and_prints_back(
    text: str, path_name: list[object]
) -> None:
    name = PathName.parse(text)
    assert spelling(name)[1:] == path_name
    assert str(name) == text
    assert parse_queue_name(text) == name


@pytest.mark.requirement("MQ-2.1.1-03")
def test_a_backslash_behind_system_is_refused_with_the_right_spelling() -> None:
    error = refusal(".\\system$\\journal")
    assert error.position == len(".\\system$")
    assert ".\\system$;journal" in error.hint


@pytest.mark.requirement("MQ-2.1.1-11")
@pytest.mark.parametrize("spelled", ["private$", "PRIVATE$", "Private$"])
def test_private_is_recognised_in_any_case(spelled: str) -> None:
    assert PathName.parse(f".\\{spelled}\\q") == PathName(".", QueueKind.PRIVATE, "q")


@pytest.mark.requirement("MQ-2.1.1-11")
@pytest.mark.parametrize("spelled", ["system$", "SYSTEM$", "System$"])
def test_system_is_recognised_in_any_case(spelled: str) -> None:
    assert PathName.parse(f".\\{spelled};q") == PathName(".", QueueKind.SYSTEM, "q")


@pytest.mark.requirement("MQ-2.1.1-04", "DM-3.1.1.2-45")
def test_a_computer_name_takes_every_visible_ascii_character_and_no_other() -> None:
    # "\" ends the computer: "ab\cd" followed by "\q" is then a queue name with a backslash
    assert accepted_characters("ab", "cd\\q", MsmqVersion.MSMQ_6_0) == COMPUTER_CHARACTERS


@pytest.mark.requirement("MQ-2.1.1-04", "DM-3.1.1.2-45")
@pytest.mark.parametrize("length", [1, 255, 256])
def test_a_computer_name_of_1_to_256_characters_is_accepted(length: int) -> None:
    assert PathName.parse("c" * length + "\\q").computer == "c" * length


@pytest.mark.requirement("MQ-2.1.1-04", "DM-3.1.1.2-45")
def test_an_empty_or_too_long_computer_name_is_refused_at_the_right_place() -> None:
    assert refusal("\\q").position == 0
    assert refusal("c" * 257 + "\\q").position == 256


@pytest.mark.requirement("MQ-2.1.1-05", "DM-3.1.1.2-46")
def test_msmq_1_0_queue_names_take_exactly_the_characters_of_that_version() -> None:
    accepted = accepted_characters(".\\ab", "cd", MsmqVersion.MSMQ_1_0)
    assert accepted == QUEUE_NAME_CHARACTERS_1_0
    assert set('"+,') <= set(accepted)
    assert not set(";\\") & set(accepted)


@pytest.mark.requirement("MQ-2.1.1-06", "DM-3.1.1.2-46")
@pytest.mark.parametrize("version", [MsmqVersion.MSMQ_2_0, MsmqVersion.MSMQ_3_0])
def test_msmq_2_0_and_3_0_queue_names_take_exactly_the_characters_of_that_version(
    version: MsmqVersion,
) -> None:
    accepted = accepted_characters(".\\ab", "cd", version)
    assert accepted == QUEUE_NAME_CHARACTERS
    assert not set('"+,;\\') & set(accepted)


@pytest.mark.requirement("MQ-2.1.1-07", "DM-3.1.1.2-46")
@pytest.mark.parametrize("version", SUBQUEUE_VERSIONS)
def test_from_msmq_4_0_on_only_the_semicolon_of_a_subqueue_is_added(version: MsmqVersion) -> None:
    accepted = accepted_characters(".\\ab", "cd", version)
    assert sorted(accepted) == sorted(QUEUE_NAME_CHARACTERS + ";")
    assert PathName.parse(".\\ab;cd", version=version).subqueue == "cd"


@pytest.mark.requirement("MQ-2.1.1-07", "DM-3.1.1.2-47")
@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_before_msmq_4_0_there_are_no_subqueues(version: MsmqVersion) -> None:
    assert refusal(".\\ab;cd", version).position == len(".\\ab")
    assert PathName.parse(".\\ab;journal", version=version).journal


@pytest.mark.requirement("MQ-2.1.1-08", "DM-3.1.1.2-47")
def test_a_subqueue_takes_exactly_the_characters_of_its_set() -> None:
    accepted = accepted_characters(".\\q;ab", "cd", MsmqVersion.MSMQ_6_0)
    assert accepted == QUEUE_NAME_CHARACTERS


# guide, section 20, scenario 19
@pytest.mark.requirement("MQ-2.1.1-05", "MQ-2.1.1-06", "MQ-2.1.1-07", "MQ-2.1.1-09")
@pytest.mark.parametrize("version", MsmqVersion)
@pytest.mark.parametrize("before", [".\\", ".\\private$\\", ".\\system$;"])
def test_a_queue_name_has_1_to_124_characters(before: str, version: MsmqVersion) -> None:
    for length in (1, 123, 124):
        name = PathName.parse(before + "q" * length, version=version)
        assert name.name == "q" * length
    assert refusal(before + "q" * 125, version).position == len(before) + 124
    assert refusal(before, version).position == len(before)


@pytest.mark.requirement("MQ-2.1.1-08", "MQ-2.1.1-09", "DM-3.1.1.2-47")
def test_a_subqueue_has_1_to_32_characters() -> None:
    for length in (1, 31, 32):
        assert PathName.parse(".\\q;" + "s" * length).subqueue == "s" * length
    assert refusal(".\\q;" + "s" * 33).position == 4 + 32
    assert refusal(".\\q;").position == 4


@pytest.mark.requirement("MQ-2.1.1-10")
@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("orders", 6),
        (".\\a b", 3),
        (".\\a\\b", 3),
        (".\\private$\\a\\b", 12),
        (".\\a;b;c", 5),
        (".\\a+b", 3),
        ("my computer\\q", 2),
        (".\\grün", 4),
        (".\\private$", 10),
        (".\\system$", 9),
        (".\\system$;q;journal", 11),
        ("DIRECT=OS:h\\q", 0),
        ("public=aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", 0),
    ],
)
def test_a_bad_path_name_is_refused_at_the_offending_character(text: str, position: int) -> None:
    error = refusal(text)
    assert error.status == 0xC00E0014
    assert error.position == position
    problem, shown, caret = str(error).split("\n")
    assert problem
    assert shown == "  " + text
    assert caret.index("^") == position + 2


@pytest.mark.parametrize("journal", ["journal", "JOURNAL", "Journal"])
def test_journal_behind_the_semicolon_is_the_journal_not_a_subqueue(journal: str) -> None:
    name = PathName.parse(f".\\private$\\q;{journal}")
    assert (name.journal, name.subqueue) == (True, None)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (".\\private\\orders", ".\\private$\\orders"),
        ("./private$/orders", ".\\private$\\orders"),
        (".\\orders\\journal$", ".\\orders;journal"),
        ("\\\\sales01\\orders", "sales01\\orders"),
    ],
)
def test_a_usual_slip_is_answered_with_the_right_spelling(text: str, meant: str) -> None:
    assert f"did you mean {meant}?" in refusal(text).hint
    PathName.parse(meant)


def test_a_name_without_backslashes_hints_at_the_quotes_of_the_shell() -> None:
    assert "single quotes" in refusal(".private$orders").hint


def test_path_names_compare_without_case_and_keep_their_spelling() -> None:
    one, other = PathName.parse("Sales\\Private$\\Q;Sub"), PathName.parse("sALES\\PRIVATE$\\q;sUB")
    assert one == other
    assert hash(one) == hash(other)
    assert (one.computer, one.name, one.subqueue) == ("Sales", "Q", "Sub")


@pytest.mark.parametrize(
    "other", [".\\q", "x\\q", "c\\p", "c\\private$\\q", "c\\system$;q", "c\\q;s", "c\\q;journal"]
)
def test_path_names_of_different_queues_differ(other: str) -> None:
    assert PathName.parse("c\\q") != PathName.parse(other)


def test_the_local_computer_is_kept_as_a_dot_until_someone_names_it() -> None:
    name = PathName.parse(".\\private$\\Orders;late")
    assert name.is_local
    named = name.with_computer("sales01")
    assert str(named) == "sales01\\private$\\Orders;late"
    assert not named.is_local


def test_a_path_name_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PathName.parse(".\\q").name = "p"  # type: ignore[misc] # that is the point


@pytest.mark.parametrize(
    ("computer", "kind", "name", "subqueue", "journal"),
    [
        ("", QueueKind.PUBLIC, "q", None, False),
        ("a\\b", QueueKind.PUBLIC, "q", None, False),
        ("DL=x", QueueKind.PUBLIC, "q", None, False),
        ("c", QueueKind.PUBLIC, "", None, False),
        ("c", QueueKind.PUBLIC, "a;b", None, False),
        ("c", QueueKind.PUBLIC, "Private$", None, False),
        ("c", QueueKind.PUBLIC, "q", "", False),
        ("c", QueueKind.PUBLIC, "q", "Journal", False),
        ("c", QueueKind.PUBLIC, "q", "s", True),
        ("c", QueueKind.SYSTEM, "q", None, True),
    ],
)
def test_values_that_no_text_stands_for_are_refused(
    computer: str, kind: QueueKind, name: str, subqueue: str | None, journal: bool
) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        PathName(computer, kind, name, subqueue, journal)
    assert caught.value.status == MqStatus.ILLEGAL_QUEUE_PATHNAME


@given(path_names)
def test_round_trip(name: PathName) -> None:
    again = PathName.parse(str(name))
    assert again == name
    assert spelling(again) == spelling(name)
    assert hash(again) == hash(name)


@given(st.text() | mutations(path_names.map(str)), st.sampled_from(MsmqVersion))
@example("\\", MsmqVersion.MSMQ_6_0)
@example(";", MsmqVersion.MSMQ_6_0)
@example("a\\private$\\;", MsmqVersion.MSMQ_6_0)
def test_any_text_parses_or_raises_name_syntax_error(text: str, version: MsmqVersion) -> None:
    try:
        name = PathName.parse(text, version=version)
    except NameSyntaxError as error:
        assert 0 <= error.position <= len(text)
        assert len(str(error).split("\n")) == 3
    else:
        assert PathName.parse(str(name), version=version) == name


def test_the_error_of_a_long_or_unprintable_text_stays_readable() -> None:
    shown = str(refusal(".\\" + "q" * 100_000)).split("\n")
    assert max(map(len, shown)) < 200
    problem, name, caret = str(refusal(".\\q\nr\0" + "s" * 500)).split("\n")
    assert name[caret.index("^")] == "\N{REPLACEMENT CHARACTER}"
    assert "'\\n'" in problem
