"""How tests run the falconmq command: as a process of its own, or quickly in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from falconmq.cli import main

FALCONMQ = Path(sys.executable).parent / "falconmq"


class Result(NamedTuple):
    code: int
    out: str
    err: str


def run(
    *arguments: str,
    stdin: bytes | None = None,
    stdout: IO[bytes] | int = subprocess.PIPE,
    environment: dict[str, str] | None = None,
    command: str = str(FALCONMQ),
) -> Result:
    """The installed command, as a user runs it; 80 columns unless told otherwise."""
    done = subprocess.run(
        [command, *arguments],
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=_environment(environment or {}),
        timeout=60,
        check=False,
    )
    return Result(
        done.returncode, (done.stdout or b"").decode("utf-8"), done.stderr.decode("utf-8")
    )


def start(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(FALCONMQ), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(environment or {}),
    )


def _environment(extra: dict[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8", **extra}


class InProcess:
    """The same command inside the test's own process: no start-up time."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        monkeypatch.setenv("COLUMNS", "80")

    def __call__(self, *arguments: str) -> Result:
        code = main(list(arguments))
        captured = self._capsys.readouterr()
        return Result(code, captured.out, captured.err)
