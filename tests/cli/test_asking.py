"""Questions on a terminal, none in a script; progress bars only where somebody looks."""

from __future__ import annotations

import os
import pty
import select
import signal
from pathlib import Path

import pytest

from falconmq import Message
from tests.embedded.helpers import ORDERS
from tests.processes import Command
from tests.service.control import ControlledManager
from tests.service.services import PATIENCE

QUESTION = f"delete 1 message of {ORDERS}? [y/N] "


@pytest.fixture(autouse=True)
def orders(service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS).send(Message("x"))


def on_a_terminal(
    directory: Path, *arguments: str, typed: bytes = b"", interrupted: bool = False
) -> tuple[int, str]:
    """Run the command with a terminal for everything; its exit code and what is seen."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminals here: {error} (is /dev/pts mounted?)")
    environment = {
        "PATH": os.environ["PATH"],
        "FALCONMQ_DATA": str(directory),
        "TERM": "xterm",
        "COLUMNS": "80",
    }
    process = Command(*arguments, stdin=slave, stdout=slave, stderr=slave, environment=environment)
    os.close(slave)
    os.write(master, typed)
    seen = b""
    try:
        while select.select([master], [], [], PATIENCE)[0] and (piece := os.read(master, 4096)):
            seen += piece
            if interrupted and b"[y/N]" in seen:
                process.send_signal(signal.SIGINT)
    except OSError:
        pass  # the other end is closed: it has ended
    finally:
        os.close(master)
        process.kill() if process.poll() is None and not seen else None
    return process.wait(PATIENCE), seen.decode()


def test_no_keeps_everything(service: ControlledManager) -> None:
    code, seen = on_a_terminal(service.directory, "queue", "purge", ORDERS, typed=b"n\n")
    assert code == 1
    assert QUESTION in seen
    assert "nothing was changed" in seen
    assert service.blocking.queue(ORDERS).count == 1


def test_yes_does_it(service: ControlledManager) -> None:
    code, seen = on_a_terminal(service.directory, "queue", "purge", ORDERS, typed=b"y\n")
    assert code == 0
    assert "purged 1 message" in seen
    assert service.blocking.queue(ORDERS).count == 0


def test_the_option_answers_beforehand(service: ControlledManager) -> None:
    code, seen = on_a_terminal(service.directory, "queue", "delete", ORDERS, "--force", "--yes")
    assert code == 0
    assert "[y/N]" not in seen
    assert service.blocking.queues() == []


def test_ctrl_c_at_the_question_changes_nothing(service: ControlledManager) -> None:
    arguments = ["queue", "delete", ORDERS, "--force"]
    code, seen = on_a_terminal(service.directory, *arguments, interrupted=True)
    assert code == 130
    assert "Traceback" not in seen
    assert service.blocking.queue(ORDERS).count == 1


def test_long_work_shows_how_far_it_is(service: ControlledManager, tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    code, seen = on_a_terminal(service.directory, "export", ORDERS, str(file))
    assert code == 0
    assert "1/1" in seen
    assert f"exported 1 message to {file}" in seen.replace("\r\n", "")
