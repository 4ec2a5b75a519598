r"""`falconmq directory join`, `leave` and `status`, and what other commands show of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from falconmq.cli.directory_membership import membership_line
from falconmq.cli.tables import local_time
from falconmq.service.configuration import Source, load
from tests.cli.commands import InProcess
from tests.service.services import loopback


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "URL", "CONFIG"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


@pytest.fixture
def data(tmp_path: Path, falconmq: InProcess) -> str:
    place = str(tmp_path / "data")
    made = falconmq("queue", "create", r".\private$\orders", "--data", place)
    assert (made.code, made.err) == (0, "")
    return place


def test_from_a_workgroup_into_a_directory_and_out_again(falconmq: InProcess, data: str) -> None:
    alone = falconmq("directory", "status", "--data", data)
    assert alone.out == "this queue manager is in no directory: a workgroup\n"
    joined = falconmq(
        "directory", "join", "--domain", "example.com", "--site", "Berlin",
        "--host-name", "sales01.example.com", "--data", data,
    )  # fmt: skip
    assert (joined.code, joined.err) == (0, "")
    lines = dict(line.split(None, 1) for line in joined.out.splitlines())
    assert lines["kind"] == "embedded"
    assert lines["servers"] == "this queue manager"
    assert lines["directory"] == "there"
    assert lines["sites"] == "Berlin"
    assert lines["registered"] == "yes"
    assert lines["map"].startswith("1 site, 0 links, 1 queue manager; read 20")
    # the next process knows it, and the configuration shows where it is from
    found = json.loads(falconmq("directory", "status", "--json", "--data", data).out)
    assert found["is_joined"] is True
    # `falconmq status` has a line of it
    line = "directory embedded, in its own store; 0 public queues"
    assert membership_line(found) == line
    gone = {"is_away": True, "away_since": "2026-01-01T00:00:00+00:00", "problem": "no answer"}
    since = local_time("2026-01-01T00:00:00+00:00")
    assert membership_line(found | gone) == f"{line}; away since {since}: no answer"
    assert membership_line(found | {"is_joined": False}) == ""
    assert found["domain"] == "example.com"
    assert load(data=data).directory.host_name == "sales01.example.com"
    assert load(data=data).sources["directory.host_name"] is Source.MEMBERSHIP
    # public queues
    made = falconmq("queue", "create", r".\bills", "--data", data)
    assert (made.code, made.err) == (0, "")
    refused = falconmq("directory", "leave", "--yes", "--data", data)
    assert refused.code == 1
    assert "1 public queue" in refused.err
    assert "--force" in refused.err
    left = falconmq("directory", "leave", "--force", "--yes", "--data", data)
    assert (left.code, left.err) == (0, "")
    assert left.out == "this queue manager is in no directory: a workgroup\n"
    assert not (Path(data) / "membership.toml").exists()


def test_what_cannot_be_joined(falconmq: InProcess, data: str, tmp_path: Path) -> None:
    join = ("directory", "join", "--data", data)
    mixed = falconmq(*join, "https://hq:8018", "ldap://dc1")
    assert (mixed.code, "not servers of one directory" in mixed.err) == (2, True)
    assert "https://host:8018" in mixed.err
    without = falconmq(*join, "ldap://dc1", "--bind-name", "CN=mq")
    assert (without.code, "password_file" in without.err) == (1, True)
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    address = f"http://{loopback()}:1"
    readable = falconmq(*join, address, "--directory-token-file", str(token))
    assert (readable.code, "mode 0644" in readable.err, "chmod 600" in readable.err) == (
        1,
        True,
        True,
    )
    token.chmod(0o600)
    nobody = falconmq(*join, address, "--directory-token-file", str(token))
    assert nobody.code == 1
    assert nobody.err
    assert (
        json.loads(falconmq("directory", "status", "--json", "--data", data).out)["kind"] == "none"
    )
    assert not (Path(data) / "membership.toml").exists()


def test_a_membership_that_cannot_be_read_is_said(falconmq: InProcess, data: str) -> None:
    file = Path(data) / "membership.toml"
    file.touch(0o600)
    file.write_text("kind = embedded\n")
    broken = falconmq("directory", "status", "--data", data)
    assert broken.code == 2
    assert str(file) in broken.err
    file.write_text('kind = "embedded"\ncolour = "red"\n')
    wrong = falconmq("directory", "status", "--data", data)
    assert (wrong.code, "colour" in wrong.err) == (2, True)


def test_commands_on_a_data_directory_do_without_a_directory_that_is_away(
    falconmq: InProcess, data: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = Path(data) / "membership.toml"
    file.touch(0o600)
    file.write_text(f'kind = "remote"\nservers = ["http://{loopback()}:1"]\n')
    listed = falconmq("queue", "list", "--data", data)
    assert listed.code == 0
    assert r".\private$\orders" in listed.out
    assert "never registered" in caplog.text
