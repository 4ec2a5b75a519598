"""`falconmq token`: on a data directory, whether or not a service runs there."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import httpx
import pytest

from falconmq.cli.problems import WrongUsageError
from falconmq.cli.token import seconds
from falconmq.service.access import Role, TokenStore
from tests.cli.commands import InProcess, run
from tests.service.ports import HttpManager


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("FALCONMQ_URL", raising=False)
    monkeypatch.setenv("TZ", "UTC")


def test_a_token_is_printed_once_and_alone(falconmq: InProcess, tmp_path: Path) -> None:
    done = falconmq("token", "create", "shop", "--role", "send", "--role", "read")
    assert done.code == 0
    token = TokenStore(tmp_path / "data").find(done.out.strip())
    assert token is not None
    assert (token.name, token.roles) == ("shop", frozenset({Role.SEND, Role.READ}))
    assert done.out == done.out.strip() + "\n"
    assert done.err == "made shop (read, send); it is not shown again\n"
    assert done.out.strip() not in falconmq("token", "list").out


def test_the_directory_need_not_be_there(falconmq: InProcess, tmp_path: Path) -> None:
    assert falconmq("token", "create", "shop", "--role", "send").code == 0
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    # and a queue manager starts in it afterwards
    assert (
        falconmq("queue", "create", r".\private$\orders", "--data", str(tmp_path / "data"))[0] == 0
    )


def test_tokens_are_listed_by_name(falconmq: InProcess) -> None:
    made = falconmq("token", "create", "web", "--role", "send", "--expires", "30d").out.strip()
    falconmq("token", "create", "audit", "--role", "read")
    done = falconmq("token", "list")
    assert done.code == 0
    head, first, second = done.out.splitlines()
    assert head.split() == ["NAME", "ROLES", "ENDS", "WITH", "CREATED", "EXPIRES"]
    assert first.split()[:2] == ["audit", "read"]
    assert first.endswith("never")
    assert second.split()[:3] == ["web", "send", made[-4:]]


def test_json_has_the_same(falconmq: InProcess) -> None:
    done = falconmq("token", "create", "web", "--role", "send", "--expires", "1h", "--json")
    made = json.loads(done.out)
    assert made["token"].startswith("fmq_")
    assert made["roles"] == ["send"]
    listed = json.loads(falconmq("token", "list", "--json").out)["tokens"]
    assert listed == [{key: value for key, value in made.items() if key != "token"}]


def test_an_expired_token_says_so(falconmq: InProcess, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    TokenStore(tmp_path / "data", lambda: 1000.0).create("old", [Role.READ], 60)
    assert falconmq("token", "list").out.splitlines()[1].endswith("expired")


def test_a_token_is_revoked(falconmq: InProcess, tmp_path: Path) -> None:
    text = falconmq("token", "create", "web", "--role", "send").out.strip()
    assert falconmq("token", "revoke", "web") == (0, "revoked web\n", "")
    assert TokenStore(tmp_path / "data").find(text) is None
    assert falconmq("token", "list") == (0, "", "no tokens yet\n")
    done = falconmq("token", "revoke", "web")
    assert done.code == 1
    assert done.err.startswith("error: there is no token web\nhint:  falconmq token list")


def test_two_tokens_of_one_name_are_refused(falconmq: InProcess) -> None:
    falconmq("token", "create", "web", "--role", "send")
    done = falconmq("token", "create", "web", "--role", "read")
    assert (done.code, done.out) == (1, "")
    assert "there is a token web already" in done.err
    assert "falconmq token revoke web" in done.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["create", "web"], "--role"),
        (["create", "web", "--role", "king"], "unknown role 'king'"),
        (["create", "web", "--role", "read", "--expires", "30"], "'30' is no time"),
    ],
)
def test_wrong_usage(falconmq: InProcess, arguments: list[str], expected: str) -> None:
    done = falconmq("token", *arguments)
    assert (done.code, done.out) == (2, "")
    assert expected in done.err


def test_a_directory_that_is_not_there_has_no_tokens(falconmq: InProcess, tmp_path: Path) -> None:
    for command in (["list"], ["revoke", "web"]):
        done = falconmq("token", *command)
        assert done.code == 1
        assert f"there is no data directory {tmp_path / 'data'}" in done.err
    assert not (tmp_path / "data").exists()


def test_a_directory_that_cannot_be_made_is_refused(falconmq: InProcess, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    done = falconmq("token", "create", "web", "--role", "read")
    assert done.code == 1
    assert f"cannot use {tmp_path / 'data'}: File exists" in done.err


def test_the_configuration_names_the_directory(falconmq: InProcess, tmp_path: Path) -> None:
    config = tmp_path / "falconmq.toml"
    config.write_text('[manager]\ndata = "elsewhere"\n')
    done = falconmq("token", "create", "web", "--role", "read", "--config", str(config))
    assert done.code == 0
    assert TokenStore(tmp_path / "elsewhere").find(done.out.strip()) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("5m", 300), ("12h", 43_200), ("30d", 2_592_000), ("2W", 1_209_600)],
)
def test_times(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "30", "d", "0d", "-1d", "1.5d", "1d2h", "999y", "٣d"])
def test_no_times(text: str) -> None:
    with pytest.raises(WrongUsageError):
        seconds(text)


def test_a_service_that_runs_sees_the_change(falconmq: InProcess, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with HttpManager(tmp_path / "data") as port:
        port.clock.now = 1e12  # far later than the token's beginning
        text = falconmq("token", "create", "web", "--role", "read").out.strip()
        headers = {"Authorization": f"Bearer {text}"}
        assert httpx.get(f"{port.url}/api/v1/queues", headers=headers).status_code == 200
        falconmq("token", "revoke", "web")
        assert httpx.get(f"{port.url}/api/v1/queues", headers=headers).status_code == 401


def test_a_service_elsewhere_is_asked(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpManager(tmp_path) as port:
        monkeypatch.setenv("FALCONMQ_TOKEN", port.token(name="admin"))
        there = ("--url", port.url)
        done = falconmq("token", "create", "web", "--role", "read", "--expires", "1h", *there)
        assert done.code == 0
        assert port.tokens.find(done.out.strip()) is not None
        assert [line.split()[0] for line in falconmq("token", "list", *there).out.splitlines()] == [
            "NAME",
            "admin",
            "web",
        ]
        assert falconmq("token", "revoke", "web", *there).code == 0
        assert falconmq("token", "revoke", "web", *there).code == 1
        assert [token.name for token in port.tokens.all()] == ["admin"]


@pytest.mark.slow
def test_the_installed_command(tmp_path: Path) -> None:
    done = run("token", "create", "web", "--role", "read", "--data", str(tmp_path / "x"))
    assert done.code == 0
    assert done.out.startswith("fmq_")
    shown = run("token", "create", "--help").out
    assert "falconmq token create web-shop --role send" in shown
