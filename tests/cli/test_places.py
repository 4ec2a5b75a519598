"""How commands find a queue manager: options, environment, or a directory that nobody serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import falconmq as fmq
from falconmq.cli.options import Place
from falconmq.cli.problems import WrongUsageError
from falconmq.client import CONTROL_SOCKET
from tests.cli.commands import InProcess, run
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No service of this user is in the way."""
    for name in ("DATA", "CONFIG", "URL", "TOKEN"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a message in it."""
    with fmq.open(tmp_path / "data") as manager:
        manager.create_queue(ORDERS).send(fmq.Message("hello"))
    return tmp_path / "data"


def test_a_directory_that_nobody_serves_is_opened(falconmq: InProcess, data: Path) -> None:
    assert falconmq("receive", ORDERS, "--data", str(data)) == (0, "hello\n", "")
    # and what was done stays done
    with fmq.open(data) as manager:
        assert manager.queue(ORDERS).count == 0


def test_the_environment_names_a_directory_too(
    falconmq: InProcess, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FALCONMQ_DATA", str(data))
    assert falconmq("peek", ORDERS).out == "hello\n"


def test_the_configuration_gives_the_opened_manager_its_name(
    falconmq: InProcess, data: Path, tmp_path: Path
) -> None:
    config = tmp_path / "falconmq.toml"
    config.write_text('[manager]\nname = "SALES77"\ndata = "data"\nquota_kilobytes = 4711\n')
    found = json.loads(falconmq("status", "--config", str(config), "--json").out)
    assert (found["computer_name"], found["quota_kilobytes"]) == ("SALES77", 4711)


def test_a_configuration_that_is_wrong_is_wrong_usage(
    falconmq: InProcess, data: Path, tmp_path: Path
) -> None:
    config = tmp_path / "falconmq.toml"
    config.write_text('[manager]\ndata = "data"\nquota_kilobytes = "much"\n')
    done = falconmq("status", "--config", str(config))
    assert done.code == 2
    assert "quota_kilobytes" in done.err


def test_nothing_is_left_of_an_opened_directory(
    falconmq: InProcess, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    falconmq("status", "--data", str(data))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (data / CONTROL_SOCKET).exists()


def test_a_socket_that_a_crash_left_is_no_service(falconmq: InProcess, data: Path) -> None:
    leave = "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", leave, str(data / CONTROL_SOCKET)], check=True)
    assert falconmq("peek", ORDERS, "--data", str(data)).out == "hello\n"


def test_a_directory_in_use_is_named_with_its_user(falconmq: InProcess, data: Path) -> None:
    with fmq.open(data):
        done = run("status", "--data", str(data))
    assert done.code == 3
    assert f"{data} is in use by process {os.getpid()}" in done.err


def test_a_running_service_is_asked_before_the_directory_is_opened(
    falconmq: InProcess, tmp_path: Path
) -> None:
    with ControlledManager(tmp_path) as service:
        service.blocking.create_queue(ORDERS)
        done = falconmq("status", "--data", str(tmp_path), "--verbose")
    assert ORDERS in done.out
    assert done.err == f"the service of {tmp_path}\n"


def test_verbose_says_that_the_directory_was_opened(falconmq: InProcess, data: Path) -> None:
    done = falconmq("status", "--data", str(data), "--verbose")
    assert done.err == f"no service runs at {data}: it is opened here\n"


@pytest.mark.parametrize("command", [["status"], ["queue", "show", ORDERS], ["peek", ORDERS]])
def test_looking_makes_no_data_directory(
    falconmq: InProcess, tmp_path: Path, command: list[str]
) -> None:
    place = tmp_path / "new"
    done = falconmq(*command, "--data", str(place))
    assert done.code == 3
    assert done.err.splitlines() == [
        f"error: no service is running at {place}",
        f"hint:  start it: falconmq serve --data {place}",
    ]
    assert not place.exists()


def test_to_create_a_queue_makes_a_data_directory(falconmq: InProcess, tmp_path: Path) -> None:
    place = tmp_path / "new"
    assert falconmq("queue", "create", ORDERS, "--data", str(place)).code == 0
    with fmq.open(place) as manager:
        assert [queue.name for queue in manager.queues()] == [ORDERS]


def test_the_users_own_service_must_run(falconmq: InProcess, tmp_path: Path) -> None:
    with fmq.open(tmp_path / "home" / "falconmq") as manager:
        manager.create_queue(ORDERS)
    done = falconmq("status")
    assert done.code == 3
    assert "no service is running" in done.err


def test_what_goes_elsewhere_waits_until_the_directory_is_served(
    falconmq: InProcess, data: Path
) -> None:
    name = r"DIRECT=OS:sales02\private$\orders"
    assert falconmq("send", name, "--body", "x", "--data", str(data)).code == 0
    (queue,) = json.loads(falconmq("status", "--data", str(data), "--json").out)["outgoing"]
    assert (queue["destination"], queue["messages"]) == (name, 1)


def test_two_places_are_wrong_usage(falconmq: InProcess) -> None:
    done = falconmq("status", "--data", "x", "--url", "http://localhost:1")
    assert (done.code, done.out) == (2, "")
    assert "--url and --data are two places" in done.err


def test_an_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCONMQ_URL", "http://other:1")
    monkeypatch.setenv("FALCONMQ_CONFIG", "/other.toml")
    chosen = Place(data=Path("mine")).with_environment()
    assert (chosen.data, chosen.url, chosen.config) == (Path("mine"), None, None)
    assert Place().with_environment().url == "http://other:1"
    monkeypatch.delenv("FALCONMQ_URL")
    monkeypatch.setenv("FALCONMQ_DATA", "there")
    chosen = Place().with_environment()
    assert (chosen.data, chosen.config) == (Path("there"), Path("/other.toml"))


def test_the_token_comes_from_option_file_or_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text("of the file\n")
    monkeypatch.setenv("FALCONMQ_TOKEN", "of the environment")
    assert Place().secret() == "of the environment"
    assert Place(token_file=file).secret() == "of the file"
    assert Place(token="of the option").secret() == "of the option"
    with pytest.raises(WrongUsageError):
        Place(token="x", token_file=file).secret()
    with pytest.raises(WrongUsageError):
        Place(token_file=tmp_path / "nothing").secret()
