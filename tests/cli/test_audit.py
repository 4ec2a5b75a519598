"""`falconmq audit`: who administered what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import InProcess
from tests.service.control import ControlledManager

ORDERS = r".\private$\orders"


def test_entries_are_listed_the_oldest_first(
    falconmq: InProcess, service: ControlledManager
) -> None:
    assert falconmq("audit").err == "no entries\n"
    falconmq("queue", "create", ORDERS)
    falconmq("queue", "permissions", "grant", ORDERS, "Anonymous", "send")
    falconmq("queue", "delete", r".\private$\none", "--yes")
    falconmq("queue", "delete", ORDERS, "--yes")
    done = falconmq("audit")
    assert done.code == 0
    head, *lines = done.out.splitlines()
    assert head.split() == ["TIME", "WHO", "FROM", "ACTION", "TARGET", "RESULT"]
    assert [line.split("  ")[3].strip() for line in lines] == [
        "queue create",
        "permissions change",
        "queue delete",
    ]
    assert lines[1].endswith("done: grant Anonymous: send")


def test_entries_can_be_chosen_and_are_json(
    falconmq: InProcess, service: ControlledManager
) -> None:
    for name in ("a", "b", "c"):
        falconmq("queue", "create", rf".\private$\{name}")
    falconmq("queue", "create", r".\private$\a")
    last = [
        json.loads(line) for line in falconmq("audit", "--last", "2", "--json").out.split("\n")[:-1]
    ]
    assert [entry["number"] for entry in last] == [3, 4]
    assert falconmq("audit", "--target", r"$\b").out.count("\n") == 2
    assert "failed: there is a queue" in falconmq("audit", "--result", "failed").out
    assert falconmq("audit", "--who", "token x").err == "no entries\n"
    assert falconmq("audit", "--since", "2999-01-01").err == "no entries\n"


def test_what_is_no_result_is_refused(falconmq: InProcess) -> None:
    done = falconmq("audit", "--result", "good")
    assert done.code == 2
    assert "choose from done, refused, failed" in done.err


def test_a_directory_that_nobody_serves_keeps_it_too(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FALCONMQ_URL", raising=False)
    data = str(tmp_path / "data")
    falconmq("queue", "create", ORDERS, "--data", data)
    done = falconmq("audit", "--data", data, "--json")
    assert json.loads(done.out)["target"] == ORDERS
