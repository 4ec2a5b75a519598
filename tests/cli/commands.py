"""How tests run the falconmq command: as a process of its own, or quickly in this one."""

from __future__ import annotations

import os
import subprocess
from typing import IO, NamedTuple

import pytest

from falconmq.cli import main
from tests.processes import FALCONMQ, Command

PATIENCE = 120.0  # seconds


class Result(NamedTuple):
    code: int
    out: str
    err: str


def run(
    *arguments: str,
    stdin: bytes | None = None,
    stdout: IO[bytes] | int = subprocess.PIPE,
    environment: dict[str, str] | None = None,
    is_real_start: bool = False,
) -> Result:
    """The command, as a user runs it; 80 columns unless told otherwise."""
    started = _started(
        arguments,
        subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout,
        environment,
        is_real_start=is_real_start,
    )
    with started as process:
        try:
            out, err = process.communicate(stdin, timeout=PATIENCE)
        except BaseException:
            process.kill()
            raise
    return Result(process.returncode, (out or b"").decode("utf-8"), err.decode("utf-8"))


def start(
    *arguments: str, environment: dict[str, str] | None = None, is_real_start: bool = False
) -> subprocess.Popen[bytes]:
    return _started(
        arguments, subprocess.PIPE, subprocess.PIPE, environment, is_real_start=is_real_start
    )


def _started(
    arguments: tuple[str, ...],
    stdin: int,
    stdout: IO[bytes] | int,
    extra: dict[str, str] | None,
    *,
    is_real_start: bool,
) -> subprocess.Popen[bytes]:
    """From the fork server, or from the installed script with all its imports."""
    environment, stderr = _environment(extra or {}), subprocess.PIPE
    if is_real_start:
        words = [str(FALCONMQ), *arguments]
        return subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=stderr, env=environment)
    return Command(*arguments, stdin=stdin, stdout=stdout, stderr=stderr, environment=environment)


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
