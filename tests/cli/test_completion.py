"""`falconmq completion`: what shells are told."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import InProcess, run
from tests.embedded.helpers import ORDERS
from tests.processes import FALCONMQ
from tests.service.control import ControlledManager


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(falconmq: InProcess, shell: str) -> None:
    done = falconmq("completion", shell)
    assert done.code == 0
    assert f"_FALCONMQ_COMPLETE=complete_{shell}" in done.out
    if path := shutil.which(shell):
        subprocess.run([path, "-n"], input=done.out.encode(), check=True)


def test_another_shell_is_wrong_usage(falconmq: InProcess) -> None:
    assert falconmq("completion", "cmd").code == 2


def completed(line: str, directory: Path) -> list[str]:
    words = line.split(" ")
    environment = {
        "_FALCONMQ_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "FALCONMQ_DATA": str(directory),
    }
    done = run(environment=environment)
    assert (done.code, done.err) == (0, "")
    return done.out.split()


def test_commands_and_options_are_completed(tmp_path: Path) -> None:
    assert completed("falconmq que", tmp_path) == ["queue"]
    assert "--transactional" in completed("falconmq queue create --tr", tmp_path)


def test_queue_names_are_completed_from_a_running_service(service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    service.blocking.create_queue(r".\private$\ledger")
    place = service.directory
    # quotes are added for the shell, unless they are there
    assert completed("falconmq peek ", place) == [r"'.\private$\ledger'", f"'{ORDERS}'"]
    assert completed(r"falconmq peek '.\private$\or", place) == [ORDERS]
    assert completed(f"falconmq peek --data {place} '.\\private$\\l", Path("/nowhere")) == [
        r".\private$\ledger"
    ]


def test_no_service_means_no_names_and_no_noise(tmp_path: Path) -> None:
    assert completed("falconmq peek ", tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not there")
def test_bash_itself_asks_and_is_answered(service: ControlledManager) -> None:
    service.blocking.create_queue(ORDERS)
    script = run("completion", "bash").out + (
        '\nCOMP_WORDS=(falconmq peek); COMP_WORDS+=("\'.\\\\private\\$\\\\o"); COMP_CWORD=2\n'
        '_falconmq_completion falconmq; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        check=True,
        env={"PATH": f"{FALCONMQ.parent}:/usr/bin:/bin", "FALCONMQ_DATA": str(service.directory)},
    )
    assert done.stdout.decode().splitlines() == [ORDERS]
