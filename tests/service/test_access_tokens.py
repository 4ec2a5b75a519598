"""Tokens: made once, kept as a hash, seen by a service that runs."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from falconmq.service.access import (
    Role,
    TokenError,
    TokenExistsError,
    TokenNotFoundError,
    TokenStore,
)
from falconmq.store import open_data_directory

NOW = 1_700_000_000.0


class Clock:
    """A time that the test sets."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(tmp_path: Path, clock: Clock) -> TokenStore:
    return TokenStore(tmp_path, clock)


def test_a_token_that_was_made_is_found_with_its_roles(tokens: TokenStore) -> None:
    text, made = tokens.create("web-shop", [Role.SEND, Role.READ])
    found = tokens.find(text)
    assert found == made
    assert found.principal.name == "web-shop"
    assert found.principal.may(Role.SEND)
    assert not found.principal.may(Role.RECEIVE)


def test_the_text_of_a_token_has_its_id_and_256_random_bits(tokens: TokenStore) -> None:
    text, made = tokens.create("web-shop", [Role.SEND])
    prefix, identifier, secret = text.split("_", 2)
    assert (prefix, identifier, len(secret)) == ("fmq", made.id, 43)
    assert made.hint == text[-4:]
    assert tokens.create("another", [Role.SEND])[0].split("_", 2)[2] != secret


def test_the_file_has_no_secret_and_is_for_its_owner_alone(tokens: TokenStore) -> None:
    text, _ = tokens.create("web-shop", [Role.SEND])
    secret = text.split("_", 2)[2]
    written = tokens.path.read_text()
    assert secret not in written
    assert hashlib.sha256(secret.encode()).hexdigest() in written
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    assert [entry.name for entry in tokens.path.parent.iterdir()] == ["tokens.json"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda text: text[:-1] + ("A" if text[-1] != "A" else "B"),
        lambda text: "fmq_000000000000_" + text.split("_", 2)[2],
        lambda text: text.split("_", 2)[2],
        lambda text: text + "x",
        lambda text: text.upper(),
        lambda text: "",
        lambda text: "fmq__",
        lambda text: "\udcff\u1234",
    ],
)
def test_another_text_is_no_token(tokens: TokenStore, wrong: object) -> None:
    text, _ = tokens.create("web-shop", [Role.SEND])
    assert callable(wrong)
    assert tokens.find(wrong(text)) is None


def test_a_token_ends_when_it_expires(tokens: TokenStore, clock: Clock) -> None:
    text, made = tokens.create("audit", [Role.READ], 60)
    clock.now = NOW + 59
    assert tokens.find(text) == made
    assert tokens.valid(made.id) == made
    clock.now = NOW + 60
    assert tokens.find(text) is None
    assert tokens.valid(made.id) is None
    assert tokens.is_empty
    assert [token["expired"] for token in tokens.listing()] == [True]


def test_a_change_by_another_process_is_seen(tmp_path: Path, tokens: TokenStore) -> None:
    # given a service that has looked at its tokens
    assert [tokens.find("fmq_x"), tokens.is_empty] == [None, True]
    # when a command makes one and takes it away, then the service sees it at once
    command = TokenStore(tmp_path, Clock())
    text, _ = command.create("web-shop", [Role.SEND])
    assert tokens.find(text) is not None
    assert not tokens.is_empty
    command.revoke("web-shop")
    assert tokens.find(text) is None


def test_a_change_within_the_same_tick_of_the_clock_is_seen(tokens: TokenStore) -> None:
    # given a file that is as young as the next ones will be: the clock stands still
    first, _ = tokens.create("a", [Role.SEND])
    still = tokens.path.stat().st_mtime_ns + 10_000_000_000
    os.utime(tokens.path, ns=(still, still))
    assert tokens.find(first) is not None
    # when others change it twice, so that the number of its inode may be the same again
    second, _ = TokenStore(tokens.path.parent).create("b", [Role.SEND])
    TokenStore(tokens.path.parent).revoke("a")
    # then that is seen
    assert tokens.path.stat().st_mtime_ns == still + 2
    assert tokens.find(first) is None
    assert tokens.find(second) is not None


def test_names_are_given_once(tokens: TokenStore) -> None:
    tokens.create("web-shop", [Role.SEND])
    with pytest.raises(TokenExistsError, match="there is a token web-shop already"):
        tokens.create("web-shop", [Role.READ])
    assert len(tokens.all()) == 1


def test_a_token_that_is_not_there_cannot_be_revoked(tokens: TokenStore) -> None:
    tokens.create("web-shop", [Role.SEND])
    with pytest.raises(TokenNotFoundError, match="there is no token shop"):
        tokens.revoke("shop")
    assert len(tokens.all()) == 1


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 65, "ä", "a\n"])
def test_a_name_is_a_word(tokens: TokenStore, name: str) -> None:
    with pytest.raises(TokenError, match="is no name for a token"):
        tokens.create(name, [Role.READ])


def test_a_token_has_a_role_and_a_time_that_ends_later(tokens: TokenStore) -> None:
    with pytest.raises(TokenError, match="needs a role"):
        tokens.create("web-shop", [])
    with pytest.raises(TokenError, match="more than 0 seconds"):
        tokens.create("web-shop", [Role.READ], 0)
    assert not tokens.path.exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"tokens": [{}]}', '{"tokens": [{"id": 1, "roles": ["king"]}]}']
)
def test_a_damaged_file_lets_nobody_in_and_is_not_overwritten(
    tokens: TokenStore, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    text, _ = tokens.create("web-shop", [Role.SEND])
    tokens.path.write_text(content)
    assert tokens.find(text) is None
    assert tokens.find(text) is None
    assert caplog.text.count("is damaged") == 1  # once, not with every request
    with pytest.raises(TokenError, match="is damaged"):
        tokens.create("another", [Role.SEND])
    with pytest.raises(TokenError, match="is damaged"):
        tokens.all()
    assert tokens.path.read_text() == content


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    tokens = TokenStore(tmp_path / "nowhere")
    assert tokens.find("fmq_x") is None
    assert tokens.all() == []
    with pytest.raises(TokenError, match="cannot use"):
        tokens.create("web-shop", [Role.SEND])


def test_a_write_that_fails_leaves_the_old_file(
    tokens: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = tokens.create("web-shop", [Role.SEND])

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(TokenError, match="No space left"):
        tokens.create("another", [Role.SEND])
    assert [entry.name for entry in tokens.path.parent.iterdir()] == ["tokens.json"]
    assert tokens.find(text) is not None


def test_two_writers_take_turns(tmp_path: Path) -> None:
    def make(start: int) -> None:
        for number in range(start, start + 20):
            TokenStore(tmp_path).create(f"t{number}", [Role.READ])

    threads = [threading.Thread(target=make, args=(start,)) for start in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(TokenStore(tmp_path).all()) == 40


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_makes_tokens_that_the_owner_of_the_data_can_read(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12346)
    TokenStore(tmp_path).create("web-shop", [Role.SEND])
    status = (tmp_path / "tokens.json").stat()
    assert (status.st_uid, status.st_gid) == (12345, 12346)


def test_tokens_may_be_there_before_the_data(tmp_path: Path) -> None:
    text, _ = TokenStore(tmp_path).create("admin", [Role.MANAGE])
    open_data_directory(tmp_path).close()
    assert TokenStore(tmp_path).find(text) is not None


def test_the_file_can_be_read_by_people(tokens: TokenStore) -> None:
    tokens.create("web-shop", [Role.SEND, Role.READ], 86_400)
    entry = json.loads(tokens.path.read_text())["tokens"][0]
    assert entry["name"] == "web-shop"
    assert entry["roles"] == ["read", "send"]
    assert entry["created"] == "2023-11-14T22:13:20+00:00"
    assert entry["expires"] == "2023-11-15T22:13:20+00:00"
