"""`falconmq status`, and how commands find the service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from falconmq import Message
from falconmq.cli.outgoing import print_outgoing
from falconmq.errors import MqStatus
from falconmq.manager.model import ConnectionAttempt, OutgoingQueue
from falconmq.manager.states import ConnectionStatus, OutgoingState
from tests.cli.commands import InProcess
from tests.embedded.helpers import ORDERS
from tests.service.control import ControlledManager

REMOTE = r"DIRECT=OS:sales02\private$\orders"


def given_traffic(service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS).send(Message("a"))
    service.blocking.queue(REMOTE).send(Message("b"))
    (queue,) = (q for q in service.engine.core.queues.values() if isinstance(q, OutgoingQueue))
    queue.state = OutgoingState.WAITING
    queue.next_hops = ["10.0.0.7"]
    for status in (ConnectionStatus.DNS_FAILURE, ConnectionStatus.CONNECTION_REFUSED):
        attempt = ConnectionAttempt(status, 1_800_000_000.0, MqStatus.OK, ("10.0.0.7",))
        queue.connection_history.append(attempt)


def test_the_status_shows_queues_and_where_messages_wait(
    falconmq: InProcess, service: ControlledManager
) -> None:
    given_traffic(service)
    done = falconmq("status")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("SALES01  {")
    (orders,) = (line.split() for line in lines if line.startswith(ORDERS))
    assert orders[1] == "1"
    (remote,) = (line for line in lines if line.startswith(REMOTE))
    assert remote.split()[1:4] == ["waiting", "10.0.0.7", "1"]
    assert remote.endswith("connection refused (10.0.0.7)")


def test_the_status_says_why_messages_wait_and_until_when(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = {
        "destination": REMOTE,
        "state": "disconnected",
        "next_hops": ["IP=10.0.0.7"],
        "messages": 3,
        "connection_history": [],
        "problem": "connection refused",
        "next_try_seconds": 3.2,
    }
    print_outgoing([queue, {**queue, "messages": 0}])
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"{REMOTE}: connection refused; next try in 3 s"
    )


def test_the_status_shows_sessions(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = {"listening": ["127.0.0.2:1801"], "sessions": [{"address": "10.0.0.7", "sent": 3}]}
    monkeypatch.setenv("FALCONMQ_DATA", str(tmp_path))
    with ControlledManager(tmp_path, status=lambda: sessions):
        lines = falconmq("status").out.splitlines()
    assert "listens   127.0.0.2:1801" in lines
    assert [line.split() for line in lines[-2:]] == [["ADDRESS", "SENT"], ["10.0.0.7", "3"]]


def test_the_status_as_json(falconmq: InProcess, service: ControlledManager) -> None:
    given_traffic(service)
    status = json.loads(falconmq("status", "--json").out)
    assert status["outgoing"][0]["connection_history"][-1]["status"] == "connection refused"


def test_no_service_is_exit_code_3_with_what_to_type(falconmq: InProcess, tmp_path: Path) -> None:
    done = falconmq("status", "--data", str(tmp_path / "my data"))
    assert done.code == 3
    assert done.err.splitlines() == [
        f"error: no service is running at {tmp_path / 'my data'}",
        f"hint:  start it: falconmq serve --data '{tmp_path / 'my data'}'",
    ]


def test_the_configuration_file_leads_to_the_service(
    falconmq: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FALCONMQ_DATA", raising=False)
    (tmp_path / "data").mkdir()
    config = tmp_path / "falconmq.toml"
    config.write_text('[manager]\ndata = "data"\n')
    with ControlledManager(tmp_path / "data"):
        assert falconmq("status", "--config", str(config)).code == 0


def test_a_configuration_file_that_cannot_be_read_is_wrong_usage(
    falconmq: InProcess, tmp_path: Path
) -> None:
    done = falconmq("status", "--config", str(tmp_path / "nothing.toml"))
    assert done.code == 2
    assert "cannot read" in done.err
