"""`falconmq serve`: the whole way, from the command to the disk and back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from falconmq.client import CONTROL_SOCKET
from tests.cli.commands import InProcess, Result, run, start
from tests.embedded.helpers import ORDERS, wait_until
from tests.service.services import loopback


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "falconmq.toml"
    path.write_text(
        f'[manager]\nname = "SALES01"\ndata = "data"\nbind = "{loopback()}"\n[http]\nport = 0\n'
    )
    return path


def serving(config: Path) -> subprocess.Popen[bytes]:
    process = start("serve", "--config", str(config), is_real_start=True)
    wait_until((config.parent / "data" / CONTROL_SOCKET).is_socket)
    return process


def ended(process: subprocess.Popen[bytes]) -> Result:
    out, err = process.communicate(timeout=120)
    return Result(process.returncode, out.decode(), err.decode())


@pytest.fixture
def service(config: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = serving(config)
    yield process
    process.kill()
    process.communicate()


def ask(config: Path, *arguments: str) -> Result:
    return run(*arguments, "--config", str(config))


@pytest.mark.slow
def test_a_message_survives_the_end_of_the_service(
    config: Path, service: subprocess.Popen[bytes]
) -> None:
    # given a message in a queue
    assert ask(config, "queue", "create", ORDERS).code == 0
    assert ask(config, "send", ORDERS, "--body", "hello").code == 0
    # when the service is killed and another one started
    service.kill()
    service.wait(120)
    assert (config.parent / "data" / CONTROL_SOCKET).is_socket()  # nobody removed it
    stopped = ask(config, "status", "--verbose")
    assert "no service runs at" in stopped.err  # the directory itself was looked at
    (config.parent / "data" / CONTROL_SOCKET).unlink()
    second = serving(config)
    # then the message is there
    assert ask(config, "receive", ORDERS) == (0, "hello\n", "")
    second.send_signal(signal.SIGTERM)
    assert ended(second).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(
    config: Path, service: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    # given a command that waits
    ask(config, "queue", "create", ORDERS)
    waiting = start("receive", ORDERS, "--wait", "--config", str(config))
    while json.loads(ask(config, "queue", "show", ORDERS, "--json").out)["waiting_readers"] == 0:
        assert waiting.poll() is None
    # when the service is told to stop
    service.send_signal(number)
    # then it answers the command, removes its socket and ends well
    done = ended(service)
    assert (done.code, done.out) == (0, "")
    assert "Traceback" not in done.err
    assert ended(waiting).code in (1, 3)
    assert not (config.parent / "data" / CONTROL_SOCKET).exists()


@pytest.mark.slow
def test_a_second_service_on_the_same_data_is_refused(
    config: Path, service: subprocess.Popen[bytes]
) -> None:
    done = run("serve", "--config", str(config))
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "data" in done.err
    assert ask(config, "status").code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[manager]\nbnd = 1\n", "bnd"),
        ("[manager", "falconmq.toml"),
    ],
)
def test_a_wrong_configuration_is_wrong_usage(
    falconmq: InProcess, tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "falconmq.toml"
    path.write_text(text)
    done = falconmq("serve", "--config", str(path))
    assert done.code == 2
    assert expected in done.err


def test_without_the_server_packages_it_says_what_to_install(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = falconmq("serve", "--data", str(tmp_path))
    assert done.code == 1
    assert "fastapi and uvicorn" in done.err
    assert "falconmq[server]" in done.err


def test_help_does_not_wait_for_the_service() -> None:
    code = "import sys, falconmq.cli; print({'fastapi', 'uvicorn', 'asyncio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
