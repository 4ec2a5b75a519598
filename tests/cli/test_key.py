"""`falconmq key`: from one queue manager to another."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.manager.memory_directory import MemoryDirectory
from falconmq.security.key_store import KeyStore
from falconmq.security.peer_store import PeerKeys, PeerStore
from tests.cli.commands import InProcess
from tests.service.ports import HttpManager


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "URL", "CONFIG"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[HttpManager]:
    (tmp_path / "here").mkdir()
    with HttpManager(tmp_path / "here") as port:
        yield port


def at(port: HttpManager) -> tuple[str, ...]:
    """The options that mean a service, with a new token each time."""
    name = f"admin-{len(port.tokens.all())}"
    return ("--url", port.url, "--token", port.token(name=name))


def test_keys_go_from_one_queue_manager_to_another(
    falconmq: InProcess, tmp_path: Path, here: HttpManager
) -> None:
    (tmp_path / "there").mkdir()
    with HttpManager(tmp_path / "there") as there:
        # when one exports and the other imports
        exported = falconmq("key", "export", *at(here))
        assert (exported.code, exported.err) == (0, "")
        file = tmp_path / "here.keys"
        file.write_text(exported.out)
        imported = falconmq("key", "import", str(file), *at(there))
        assert imported.code == 0
        # then it has the public keys, and shows the fingerprints that the first shows
        identifier = json.loads(exported.out)["queue_manager"]
        assert imported.out.startswith("imported 6 keys of SALES01 (")
        (peer,) = PeerStore(tmp_path / "there").all()
        keys = KeyStore(tmp_path / "here").find()
        assert keys is not None
        assert peer.encryption == keys.public_encryption_keys
        ours = json.loads(falconmq("key", "list", "--json", *at(here)).out)
        theirs = json.loads(falconmq("key", "list", "--json", *at(there)).out)
        assert theirs["peers"] == [{name: ours[name] for name in ("queue_manager", "name", "keys")}]
        table = falconmq("key", "list", *at(there)).out
        assert table.splitlines()[0].split()[:3] == ["NAME", "QUEUE", "MANAGER"]
        assert len(table.splitlines()) == 1 + 6 + 6
        for key in ours["keys"]:
            assert key["fingerprint"] in table
            assert key["fingerprint"] in imported.out
        # and nothing that is secret is ever printed
        pair = next(iter(keys.signing.values()))
        assert f"{pair.prime1:x}" not in exported.out + table + json.dumps(ours)
        # and it can be taken back
        removed = falconmq("key", "remove", identifier, *at(there))
        assert removed == (0, f"removed the keys of {identifier}\n", "")
        again = falconmq("key", "remove", identifier, *at(there))
        assert again.code == 1
        assert "hint:  falconmq key list shows them" in again.err


def test_keys_come_from_standard_input(
    falconmq: InProcess, here: HttpManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = json.loads(falconmq("key", "export", *at(here)).out)
    exported["queue_manager"] = "1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0"  # of somebody else
    text = json.dumps(exported).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    done = falconmq("key", "import", "-", "--json", *at(here))
    assert done.code == 0
    assert json.loads(done.out)["queue_manager"] == exported["queue_manager"]


def test_a_directory_that_nobody_serves_has_keys_too(falconmq: InProcess, tmp_path: Path) -> None:
    place = ("--data", str(tmp_path / "data"))
    assert falconmq("queue", "create", r".\private$\orders", *place).code == 0
    exported = json.loads(falconmq("key", "export", *place).out)
    keys = KeyStore(tmp_path / "data").find()
    assert keys is not None
    assert PeerKeys.from_document(exported).signing == keys.public_signing_keys


def test_a_file_without_keys_is_refused(
    falconmq: InProcess, tmp_path: Path, here: HttpManager
) -> None:
    file = tmp_path / "x.keys"
    for text in ("", "nothing", "[]", "{}", '{"falconmq_keys": 1}'):
        file.write_text(text)
        done = falconmq("key", "import", str(file), *at(here))
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: ")
    assert PeerStore(tmp_path / "here").all() == []


def test_a_file_that_cannot_be_read_is_wrong_usage(falconmq: InProcess, tmp_path: Path) -> None:
    done = falconmq("key", "import", str(tmp_path / "nothing"), "--data", str(tmp_path))
    assert done.code == 2
    assert "No such file" in done.err
    large = tmp_path / "large"
    large.write_bytes(bytes((1 << 20) + 1))
    assert "too large" in falconmq("key", "import", str(large), "--data", str(tmp_path)).err


def test_keys_are_renewed(falconmq: InProcess, tmp_path: Path, here: HttpManager) -> None:
    before = json.loads(falconmq("key", "list", "--json", *at(here)).out)
    done = falconmq("key", "renew", "--yes", *at(here))
    assert (done.code, done.err) == (0, "")
    first, second, third = done.out.splitlines()
    assert first.startswith("made 6 keys of SALES01 (")
    assert second.startswith("the old ones decrypt until 20")
    assert "falconmq key export" in third
    after = json.loads(falconmq("key", "list", "--json", *at(here)).out)
    assert after["keys"] != before["keys"]
    assert len(json.loads(falconmq("key", "renew", "--json", *at(here)).out)["former"]) == 2
    keys = KeyStore(tmp_path / "here").find()
    assert keys is not None
    assert len(keys.former) == 2


def test_keys_of_a_directory_need_no_import(
    falconmq: InProcess, tmp_path: Path, here: HttpManager
) -> None:
    # given a queue manager that its directory knows
    core, directory = here.app.state.control.engine.core, MemoryDirectory()
    directory.create("QueueManager", {**core.local.row(), "identifier": core.identifier})
    core.directory = directory
    done = falconmq("key", "renew", "--yes", *at(here))
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("the directory has the new ones\n")
    keys = KeyStore(tmp_path / "here").find()
    assert keys is not None
    row = directory.rows["QueueManager"][core.identifier]
    assert row["public_encryption_keys"] == keys.public_encryption_keys.encode()
    assert falconmq("key", "list", *at(here)).err == ""
    # when it is away, that is told
    directory.is_connected = False
    for command in (("key", "renew", "--yes"), ("key", "list")):
        done = falconmq(*command, *at(here))
        assert done.code == 0
        assert done.err.startswith("the directory does not have these keys yet, it is tried again:")
        assert "key import" not in done.out
