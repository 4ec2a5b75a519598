"""`falconmq config`: check, show, example, reload."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from falconmq.client import CONTROL_SOCKET
from tests.cli.commands import InProcess, run, start
from tests.embedded.helpers import wait_until
from tests.service.services import loopback


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "URL", "TOKEN"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "falconmq.toml"


def test_a_good_file_is_said_to_be_good(falconmq: InProcess, file: Path) -> None:
    file.write_text('[manager]\nname = "SALES01"\ndata = "data"\n')
    assert falconmq("config", "check", str(file)) == (0, f"{file}: no mistakes\n", "")


def test_every_mistake_is_shown_with_its_hint(falconmq: InProcess, file: Path) -> None:
    file.write_text("[manager]\nport = 0\n[transport]\nwindow_sise = 1\n")
    done = falconmq("config", "check", str(file))
    assert done.code == 1
    assert done.out == ""
    text = " ".join(done.err.split())
    assert text.count("error: ") == 2
    assert "manager.port is 0; it must be a whole number from 1 to 65535" in text
    assert "window_sise is no setting hint: did you mean window_size?" in text


def test_check_looks_at_the_environment(
    falconmq: InProcess, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("")
    monkeypatch.setenv("FALCONMQ_CONFIG", str(file))
    monkeypatch.setenv("FALCONMQ_HTTP_PORT", "x")
    done = falconmq("config", "check", "--json")
    assert done.code == 1
    (problem,) = json.loads(done.out)["problems"]
    assert problem["text"].startswith("FALCONMQ_HTTP_PORT is 'x'; it must be")


def test_show_says_where_each_value_comes_from(
    falconmq: InProcess, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(
        '[manager]\nname = "SALES01"\nlocal_names = ["a", "b"]\n[hosts]\nA = "10.0.0.1"\n'
    )
    monkeypatch.setenv("FALCONMQ_HTTP_PORT", "9000")
    done = falconmq("config", "show", "--config", str(file))
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == ["SETTING", "VALUE", "FROM"]
    assert ["manager.name", "SALES01", "file"] in rows
    assert ["manager.local_names", "a,", "b", "file"] in rows
    assert ["http.port", "9000", "environment"] in rows
    assert ["http.enabled", "true", "default"] in rows
    assert ["transport.order_ack_timeout", "0.5", "default"] in rows
    assert ["hosts", "1", "of", "them", "file"] in rows


def test_show_changed_leaves_the_defaults_out(falconmq: InProcess, file: Path) -> None:
    file.write_text('[manager]\nname = "SALES01"\n')
    done = falconmq("config", "show", "--config", str(file), "--changed", "--json")
    assert [setting["name"] for setting in json.loads(done.out)["settings"]] == ["manager.name"]


def test_show_of_a_wrong_file_says_what_is_wrong(falconmq: InProcess, file: Path) -> None:
    file.write_text("[manager]\nport = 0\n")
    done = falconmq("config", "show", "--config", str(file))
    assert done.code == 2
    assert "manager.port is 0" in done.err


def test_the_example_is_a_good_file(falconmq: InProcess, file: Path) -> None:
    file.write_text(falconmq("config", "example").out)
    assert falconmq("config", "check", str(file)).code == 0


def test_a_service_that_does_not_run_cannot_reload(falconmq: InProcess, tmp_path: Path) -> None:
    assert falconmq("config", "reload", "--data", str(tmp_path / "nowhere")).code == 3


@pytest.mark.slow
def test_a_running_service_reloads_and_shows_what_it_uses(file: Path) -> None:
    manager = f'[manager]\ndata = "data"\nbind = "{loopback()}"\nname = "SALES01"\n'
    file.write_text(f"{manager}[http]\nport = 0\n")
    service = start("serve", "--config", str(file))
    try:
        wait_until((file.parent / "data" / CONTROL_SOCKET).is_socket)
        # given a file that has changed, some of it for the next start
        file.write_text(
            f"{manager}[http]\nport = 1\n[log]\nlevel = 'debug'\n"
            "[[queues]]\nname = '.\\private$\\orders'\n"
        )
        done = run("config", "reload", "--config", str(file))
        rows = [line.split() for line in done.out.splitlines()]
        assert rows == [
            ["SETTING", "OUTCOME", "OLD", "NEW"],
            ["http.port", "needs", "restart", "0", "1"],
            ["log.level", "applied", "info", "debug"],
            [".\\private$\\orders", "queue", "created"],
        ]
        assert done.err.endswith("settings unchanged\n")
        # then the service uses the one and not the other
        shown = json.loads(run("config", "show", "--running", "--json", "--config", str(file)).out)
        used = {setting["name"]: setting["value"] for setting in shown["settings"]}
        assert (used["log.level"], used["http.port"]) == ("debug", 0)
        # and a file with a mistake changes nothing
        file.write_text("[log]\nlevel = 'loud'\n" + manager)
        done = run("config", "reload", "--data", str(file.parent / "data"))
        assert done.code == 1
        assert "log.level is 'loud'; it must be one of" in " ".join(done.err.split())
        service.send_signal(signal.SIGHUP)
        service.send_signal(signal.SIGTERM)
        assert service.wait(30) == 0
    finally:
        _end(service)


@pytest.mark.slow
def test_a_service_can_be_configured_by_the_environment_alone(tmp_path: Path) -> None:
    """As in a container: no file, no option."""
    environment = {
        "FALCONMQ_DATA": str(tmp_path / "data"),
        "FALCONMQ_MANAGER_NAME": "SALES01",
        "FALCONMQ_MANAGER_BIND": loopback(),
        "FALCONMQ_HTTP_PORT": "0",
        "FALCONMQ_LOG_LEVEL": "debug",
    }
    service = start("serve", environment=environment)
    try:
        wait_until((tmp_path / "data" / CONTROL_SOCKET).is_socket)
        shown = run("status", "--json", environment=environment)
        status = json.loads(shown.out)
        assert status["computer_name"] == "SALES01"
        assert status["listening"] == [f"{environment['FALCONMQ_MANAGER_BIND']}:1801"]
    finally:
        _end(service)


def _end(service: subprocess.Popen[bytes]) -> None:
    if service.poll() is None:
        service.kill()
    service.communicate()
