"""What every command has in common: examples, options, speed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from falconmq.cli.app import COMMANDS, GROUPS, Command
from tests.cli.commands import InProcess

LISTINGS = [command for command in COMMANDS if command.words.endswith((" list", " show", "status"))]


def words(command: Command) -> str:
    return command.words


@pytest.mark.parametrize("command", COMMANDS, ids=words)
def test_help_ends_with_three_examples_of_this_command(
    falconmq: InProcess, command: Command
) -> None:
    done = falconmq(*command.words.split(), "--help")
    assert done.code == 0
    examples = done.out.partition("Examples:\n")[2].splitlines()
    assert len(examples) == 3
    assert all(f"falconmq {command.words}" in line for line in examples)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_alone_shows_its_help_with_three_examples(falconmq: InProcess, group: str) -> None:
    done = falconmq(*group.split())
    assert (done.code, done.err) == (0, "")
    assert GROUPS[group] in done.out.replace("\n  ", " ")
    assert len(done.out.partition("Examples:\n")[2].splitlines()) == 3


@pytest.mark.parametrize("command", LISTINGS, ids=words)
def test_every_listing_has_json(falconmq: InProcess, command: Command) -> None:
    assert "--json" in falconmq(*command.words.split(), "--help").out


def test_no_word_is_taken_twice() -> None:
    found = [command.words for command in COMMANDS]
    assert len(found) == len(set(found))
    assert {word.rpartition(" ")[0] for word in found if " " in word} == set(GROUPS)


def test_help_imports_no_server() -> None:
    code = (
        "import sys, falconmq.cli.app; heavy = {'fastapi', 'pydantic', 'httpx', 'pyarrow', "
        "'uvicorn', 'prometheus_client', 'opentelemetry', 'rich', 'jinja2'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
