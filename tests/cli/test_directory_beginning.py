"""`falconmq directory init` in LDAP: what nobody could join before begins with a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import InProcess
from tests.directory.slapd import ADMINISTRATOR, PASSWORD, Slapd, find_slapd


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "URL", "CONFIG"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


@pytest.fixture
def slapd(tmp_path: Path) -> Iterator[Slapd]:
    if find_slapd() is None:
        pytest.skip("no slapd: tools/install-slapd.sh installs one")
    place = tmp_path / "slapd"
    place.mkdir()
    server = Slapd(place).start()
    yield server
    server.stop()


def test_a_directory_begins_in_ldap_and_is_joined(
    falconmq: InProcess, slapd: Slapd, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text(f"{PASSWORD}\n")
    login = ("--bind-name", ADMINISTRATOR, "--password-file", str(password))
    data = ("--data", str(tmp_path / "data"))
    assert falconmq("queue", "create", r".\private$\x", *data).code == 0
    # given an empty server, then who wants to join is told how to begin
    early = falconmq("directory", "join", slapd.url, *login, *data)
    assert early.code == 1
    assert "no site yet" in early.err
    assert "directory init DOMAIN ldap://HOST" in early.err
    # when it begins
    other = falconmq("directory", "init", "example.org", slapd.url, *login)
    assert (other.code, "not of example.org" in other.err) == (1, True)
    begin = ("directory", "init", "example.com", slapd.url, *login, "--site", "Berlin")
    made = falconmq(*begin)
    assert (made.code, made.err) == (0, "")
    assert made.out == "created enterprise example.com\ncreated site Berlin\n"
    # then it is joined, and does not begin twice
    joined = falconmq("directory", "join", slapd.url, *login, *data)
    assert (joined.code, joined.err) == (0, "")
    assert ["sites", "Berlin"] in [line.split() for line in joined.out.splitlines()]
    again = falconmq(*begin)
    assert (again.code, "example.com already" in again.err) == (1, True)
    assert "Traceback" not in again.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("http://hq:8018",), "begins there"),
        (("ldap://a", "--bind-name", "CN=mq"), "--password-file"),
    ],
)
def test_what_cannot_begin_is_refused(
    falconmq: InProcess, arguments: tuple[str, ...], words: str
) -> None:
    done = falconmq("directory", "init", "example.com", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
