"""`falconmq ping`."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from falconmq.transport.settings import PORT
from tests.cli.commands import InProcess
from tests.service.control import ControlledManager
from tests.service.services import loopback


def test_a_computer_that_can_be_reached(falconmq: InProcess, service: ControlledManager) -> None:
    address = loopback()
    with socket.create_server((address, PORT)):
        done = falconmq("ping", address, "--timeout", "2")
    assert done.code == 0
    assert done.out.startswith(f"{address} ({address}): TCP 1801 connected in ")
    assert done.out.endswith("; ping (UDP 3527) no answer\n")


def test_a_computer_that_cannot_be_reached(falconmq: InProcess, service: ControlledManager) -> None:
    address = loopback()
    done = falconmq("ping", address, "--timeout", "2", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert found["is_reachable"] is False
    assert found["addresses"][0]["tcp"] == "connection refused"


def test_a_name_that_nobody_knows(falconmq: InProcess, service: ControlledManager) -> None:
    done = falconmq("ping", "no-such-host.invalid")
    assert done.code == 1
    assert "cannot be resolved" in done.out


def test_without_a_service_the_command_asks_itself(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path / "nothing"))
    address = loopback()
    done = falconmq("ping", address, "--timeout", "2")
    assert done.code == 1
    assert f"{address} ({address}): TCP 1801 connection refused" in done.out
    elsewhere = falconmq("ping", address, "--url", "http://127.0.0.1:9")
    assert elsewhere.code == 3
