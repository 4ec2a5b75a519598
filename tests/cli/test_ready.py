"""`falconmq ready`: what a health check asks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from falconmq.client.calls import Answer
from falconmq.client.channel import Channel
from tests.cli.commands import InProcess, start
from tests.embedded.helpers import wait_until
from tests.service.services import loopback


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "URL", "TOKEN"):
        monkeypatch.delenv(f"FALCONMQ_{name}", raising=False)


def test_without_a_service_nothing_is_opened(falconmq: InProcess, tmp_path: Path) -> None:
    done = falconmq("ready", "--data", str(tmp_path / "data"), "--wait", "0.2")
    assert done.code == 3
    assert "no service is running" in done.err
    assert not (tmp_path / "data").exists()


def test_a_url_that_is_none_is_wrong_usage(falconmq: InProcess) -> None:
    assert falconmq("ready", "--url", "nonsense").code == 2


@pytest.mark.slow
def test_it_waits_for_a_service_that_starts(falconmq: InProcess, tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = {"FALCONMQ_HTTP_PORT": "0", "FALCONMQ_MANAGER_BIND": loopback()}
    service = start("serve", "--data", str(data), environment=environment)
    try:
        assert falconmq("ready", "--data", str(data), "--wait", "30") == (0, "ready\n", "")
        url = _url(falconmq, data)
        assert falconmq("ready", "--url", url).code == 0  # without a token
        service.terminate()
        wait_until(lambda: falconmq("ready", "--data", str(data)).code == 3)
    finally:
        _end(service)


def test_reasons_are_told(falconmq: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer(503, b'{"status": "not ready", "reasons": ["the disk is full"]}')
    monkeypatch.setattr(Channel, "exchange", lambda self, call: answer)
    done = falconmq("ready", "--url", "http://127.0.0.1:1")
    assert done.code == 1
    assert "not ready: the disk is full" in done.err


def _url(falconmq: InProcess, data: Path) -> str:
    return str(json.loads(falconmq("status", "--data", str(data), "--json").out)["http"])


def _end(service: subprocess.Popen[bytes]) -> None:
    if service.poll() is None:
        service.kill()
    service.communicate()
