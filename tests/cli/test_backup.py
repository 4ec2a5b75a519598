"""`falconmq backup` and `falconmq restore`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import falconmq as package
from falconmq import Message
from falconmq.service.restore import BackupError
from tests.cli.commands import InProcess, run
from tests.service.services import ORDERS


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a queue manager that does not run."""
    for name in ("CONFIG", "DATA", "URL", "TOKEN"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    directory = tmp_path / "data"
    with package.open(directory) as manager:
        queue = manager.create_queue(ORDERS)
        queue.send(Message("hello", recoverable=True))
    return directory


def texts(directory: Path) -> list[str | None]:
    with package.open(directory) as manager:
        return [message.text for message in manager.queue(ORDERS)]


def test_a_directory_that_is_not_served_goes_into_a_file_and_back(
    falconmq: InProcess, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "sales01.tar"
    done = falconmq("backup", str(file), "--data", str(data))
    assert done.code == 0, done.err
    assert done.out.startswith(f"{file}: ")
    assert ", 1 message, " in done.out
    assert file.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "sales01.tar.part").exists()
    done = falconmq("restore", str(file), "--data", str(tmp_path / "restored"))
    assert done.code == 0, done.err
    assert done.out.startswith(f"{tmp_path / 'restored'}: ")
    assert texts(tmp_path / "restored") == ["hello"]


def test_json_is_the_manifest(falconmq: InProcess, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    made = json.loads(falconmq("backup", str(file), "--data", str(data), "--json").out)
    assert made["records"]["messages"] == 1
    found = json.loads(falconmq("restore", str(file), "--check", "--json").out)
    assert found == {**made, "sent_again": 0}


def test_a_file_that_is_there_is_kept(falconmq: InProcess, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    file.write_text("precious")
    done = falconmq("backup", str(file), "--data", str(data))
    assert done.code == 1
    assert "is there already" in done.err
    assert file.read_text() == "precious"
    assert falconmq("backup", str(file), "--data", str(data), "--force").code == 0
    assert falconmq("restore", str(file), "--check").code == 0


def test_a_backup_that_fails_leaves_nothing(
    falconmq: InProcess, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar"
    assert falconmq("backup", str(file), "--data", str(tmp_path / "nowhere")).code == 3
    done = falconmq("backup", str(tmp_path / "no" / "b.tar"), "--data", str(data))
    assert done.code == 1
    assert "cannot write" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_what_is_there_is_not_replaced_without_force(
    falconmq: InProcess, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.tar"
    falconmq("backup", str(file), "--data", str(data))
    with package.open(data) as manager:
        manager.queue(ORDERS).send(Message("later", recoverable=True))
    done = falconmq("restore", str(file), "--data", str(data))
    assert done.code == 1
    assert "holds the data of a queue manager" in done.err
    assert "--force" in done.err
    assert texts(data) == ["hello", "later"]
    assert falconmq("restore", str(file), "--data", str(data), "--force").code == 0
    assert texts(data) == ["hello"]


def test_a_damaged_file_is_refused(falconmq: InProcess, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    falconmq("backup", str(file), "--data", str(data))
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    done = falconmq("restore", str(file), "--data", str(tmp_path / "new"))
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "hint:" in done.err
    assert falconmq("restore", str(tmp_path / "none.tar"), "--check").code == 1


def test_restore_wants_to_know_where(falconmq: InProcess, data: Path, tmp_path: Path) -> None:
    done = falconmq("restore", str(tmp_path / "b.tar"))
    assert done.code == 1
    assert "--data DIR" in done.err


def test_messages_under_way_are_counted(falconmq: InProcess, data: Path, tmp_path: Path) -> None:
    with package.open(data) as manager, manager.transaction() as transaction:
        away = manager.queue(r"DIRECT=TCP:127.0.0.9\private$\orders")
        away.send(Message("x"), transaction)
    file = tmp_path / "b.tar"
    falconmq("backup", str(file), "--data", str(data))
    done = falconmq("restore", str(file), "--data", str(tmp_path / "new"))
    assert done.err == "1 transactional message under way at the backup may arrive twice\n"


@pytest.mark.slow
def test_a_backup_goes_through_pipes(data: Path, tmp_path: Path) -> None:
    with (tmp_path / "b.tar").open("wb") as target:
        assert run("backup", "-", "--data", str(data), stdout=target).code == 0
    content = (tmp_path / "b.tar").read_bytes()
    assert run("restore", "-", "--data", str(tmp_path / "new"), stdin=content).code == 0
    assert texts(tmp_path / "new") == ["hello"]


def test_what_does_not_compare_gets_no_name(
    falconmq: InProcess, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bad(source: object) -> object:
        raise BackupError("the disk gave back something else")

    monkeypatch.setattr("falconmq.service.restore.verify", bad)
    file = tmp_path / "b.tar"
    file.write_text("the one of yesterday")
    done = falconmq("backup", str(file), "--data", str(data), "--force")
    assert done.code == 1
    assert "something else" in done.err
    assert file.read_text() == "the one of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar", "data"]
