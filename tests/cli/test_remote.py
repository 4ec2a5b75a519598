"""Commands for a service anywhere: --url and a token."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from falconmq.client import CONTROL_SOCKET, ControlClient, UnreachableError
from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.processes import Command
from tests.service.services import PATIENCE, loopback


class Remote(NamedTuple):
    url: str
    token: str


def started(data: Path, deadline: float) -> str:
    """The address of the HTTP port, when it is open."""
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(UnreachableError),
            ControlClient(data / CONTROL_SOCKET) as client,
        ):
            if url := client.status().get("http"):
                return str(url)
        time.sleep(0.05)
    raise AssertionError("the service does not start")


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """A real service with its HTTP port, and a token that may do everything."""
    place = tmp_path_factory.mktemp("remote")
    config = place / "falconmq.toml"
    config.write_text(f'[manager]\ndata = "data"\nbind = "{loopback()}"\n[http]\nport = 0\n')
    process = Command("serve", "--config", str(config), stderr=subprocess.DEVNULL)
    try:
        url = started(place / "data", time.monotonic() + PATIENCE)
        with ControlClient(place / "data" / CONTROL_SOCKET) as client:
            made = client.request("POST", "/tokens", {"name": "tester", "roles": ["manage"]})
            client.create_queue(ORDERS)
        yield Remote(url, made["token"])
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.mark.slow
def test_a_message_goes_there_and_back(
    falconmq: InProcess, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ["--url", remote.url, "--token", remote.token]
    assert falconmq("send", ORDERS, "--body", "hello", *place).code == 0
    (tmp_path / "token").write_text(f"{remote.token}\n")
    place = ["--url", remote.url, "--token-file", str(tmp_path / "token")]
    assert falconmq("tail", ORDERS, "--from-start", "--count", "1", "--bodies", *place).out == (
        "hello\n"
    )
    monkeypatch.setenv("FALCONMQ_URL", remote.url)
    monkeypatch.setenv("FALCONMQ_TOKEN", remote.token)
    file = tmp_path / "orders.jsonl"
    assert falconmq("export", ORDERS, str(file), "--consume").code == 0
    assert json.loads(file.read_text())["text"] == "hello"
    assert falconmq("import", str(file), ORDERS).code == 0
    assert falconmq("receive", ORDERS).out == "hello\n"


@pytest.mark.slow
def test_a_wrong_token_is_refused_and_nobody_there_is_exit_code_3(
    falconmq: InProcess, remote: Remote
) -> None:
    done = falconmq("status", "--url", remote.url, "--token", "fmq_wrong")
    assert done.code == 1
    assert "MQ_ERROR_ACCESS_DENIED" in done.err
    done = falconmq("status", "--url", "http://127.0.0.1:9")
    assert done.code == 3
    done = falconmq("status", "--url", "ftp://127.0.0.1")
    assert done.code == 2
