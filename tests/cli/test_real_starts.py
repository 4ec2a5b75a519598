"""One command of every group, started as a user starts it: with nothing imported before.

Other tests of commands run in this process or come out of the fork server, where an import that a
command forgot may have been done by another. The tutorials (`tests/e2e/test_tutorial.py`) really
start serve, status, send, receive and the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.cli.app import GROUPS
from tests.cli.commands import run
from tests.e2e.estate import Estate
from tests.embedded.helpers import ORDERS

ASKING = {
    "queue": ("queue", "show", ORDERS),
    "queue permissions": ("queue", "permissions", "show", ORDERS),
    "outgoing": ("outgoing", "list"),
    "session": ("session", "list"),
    "dead-letter": ("dead-letter", "list"),
    "consumer": ("consumer", "list"),
    "token": ("token", "list"),
    "key": ("key", "list"),
    "certificate": ("certificate", "list"),
    "directory": ("directory", "list", "site"),
}
ASKING_NOBODY = {
    "config": ("config", "example"),
    "directory replication": ("directory", "replication", "--help"),
    "pipeline": ("pipeline", "--help"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a queue manager that runs."""
    with Estate(tmp_path_factory.mktemp("estate")) as estate:
        daemon = estate.manager("A").start()
        daemon.create_queue("orders")
        yield daemon.data


@pytest.mark.slow
@pytest.mark.parametrize("words", ASKING.values(), ids=" ".join)
def test_a_command_that_asks_a_service_really_starts(data: Path, words: tuple[str, ...]) -> None:
    done = run(*words, "--data", str(data), is_real_start=True)
    assert done.code == 0, done.err


@pytest.mark.slow
@pytest.mark.parametrize("words", ASKING_NOBODY.values(), ids=" ".join)
def test_a_command_that_asks_nobody_really_starts(words: tuple[str, ...]) -> None:
    done = run(*words, is_real_start=True)
    assert done.code == 0, done.err


def test_no_group_is_forgotten() -> None:
    assert {*ASKING, *ASKING_NOBODY} == set(GROUPS)
