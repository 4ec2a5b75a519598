r"""`falconmq directory`: on a data directory, and at a service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import InProcess


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "URL", "CONFIG"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


@pytest.mark.usefixtures("service")
def test_a_directory_from_its_beginning_to_a_query(falconmq: InProcess) -> None:
    # given a directory with a site
    done = falconmq("directory", "init", "example.com", "--site", "Berlin")
    assert (done.code, done.err) == (0, "")
    assert done.out == "created enterprise example.com\ncreated site Berlin\n"
    found = json.loads(falconmq("directory", "list", "site", "--json").out)
    site = found[0]["identifier"]
    # when a queue manager and queues come in
    made = falconmq("directory", "create", "queue-manager", "alpha", f"site_identifiers={site}")
    assert (made.code, made.err) == (0, "")
    for name, label in (("a", "Orders"), ("b", "Bills")):
        done = falconmq(
            "directory", "create", "queue", f"alpha\\{name}", f"label={label}", "journaling=yes"
        )
        assert done.code == 0
    # then they are listed, shown and found
    listed = falconmq("directory", "list", "queue").out.splitlines()
    assert listed[0].split()[:3] == ["PATH", "NAME", "LABEL"]
    assert sorted(line.split()[0] for line in listed[1:]) == [r"alpha\a", r"alpha\b"]
    shown = falconmq("directory", "show", "queue", r"ALPHA\A").out
    assert "label" in shown
    assert "Orders" in shown
    query = ("directory", "query", "queue", "label!=Orders", "journaling=yes")
    columns = ("--columns", "path_name,label")
    assert falconmq(*query, *columns).out.splitlines()[1].split() == [r"alpha\b", "Bills"]
    assert json.loads(falconmq(*query, *columns, "--json").out) == [
        {"path_name": r"alpha\b", "label": "Bills"}
    ]
    # and changed and deleted
    changed = falconmq("directory", "set", "queue", r"alpha\a", "label=New", "--json")
    assert json.loads(changed.out)["attributes"]["label"] == "New"
    done = falconmq("directory", "delete", "queue", r"alpha\a", "--yes")
    assert done.out == "deleted queue alpha\\a\n"
    gone = falconmq("directory", "show", "queue", r"alpha\a")
    assert (gone.code, gone.out) == (1, "")
    assert r"path_name = alpha\a" in gone.err
    # a link has no name of its own, only two sites
    ends = (f"site1_identifier={site}", f"site2_identifier={site}")
    short = falconmq("directory", "create", "routing-link", "-", ends[0], "actual_cost=1")
    assert (short.code, "site2_identifier" in short.err) == (1, True)
    link = falconmq("directory", "create", "routing-link", "-", *ends, "actual_cost=1", "--json")
    assert json.loads(link.out)["attributes"]["actual_cost"] == 1


def test_it_works_on_a_directory_that_nobody_serves(falconmq: InProcess, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    assert falconmq("queue", "create", r".\private$\x", *data).code == 0
    early = falconmq("directory", "create", "site", "Berlin", *data)
    assert early.code == 1
    assert "enterprise" in early.err
    assert falconmq("directory", "init", "example.com", *data).code == 0
    assert falconmq("directory", "create", "site", "Berlin", *data).code == 0
    again = falconmq("directory", "list", "site", "--json", *data)
    assert [site["name"] for site in json.loads(again.out)] == ["Berlin"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("list", "planet"), "planet"),
        (("create", "site", "x", "colour"), "ATTRIBUTE=VALUE"),
        (("query", "enterprise", "old_directory=no", "--columns", "colour"), "colour"),
    ],
)
@pytest.mark.usefixtures("service")
def test_what_is_typed_wrong_is_said(
    falconmq: InProcess, arguments: tuple[str, ...], words: str
) -> None:
    falconmq("directory", "init", "example.com")
    done = falconmq("directory", *arguments)
    assert (done.code, words in done.err) == (2, True), done
