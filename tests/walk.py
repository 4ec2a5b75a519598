"""Walk through a page of the docs as a reader does: its commands in order, in an empty folder.

A block marked `console` holds commands behind `$ ` and, below each, what it prints; `...` stands
for anything, over lines too. A block marked `python` is run as it is. A command that ends with `&`
runs on in the background until `kill %1 %2`, and the walk goes on when its queue manager answers.
Who reads is slower than a test: a command that only looks is asked again until it prints what the
page says.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PATIENCE: Final = 60.0
_BLOCK: Final = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LOOKING: Final = ("status", "why", "peek", "list", "show", "trace")


@dataclass(frozen=True)
class Step:
    """One command, or a piece of Python, and what the page says it prints."""

    kind: str
    text: str
    expected: str


def steps(page: str) -> Iterator[Step]:
    for kind, block in _BLOCK.findall(page):
        if kind == "python":
            yield Step(kind, block, "...")
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command = command[:-1] + more.strip()
            yield Step("command", command, expected.strip("\n"))


def fits(printed: str, expected: str) -> bool:
    """Whether a text is what a page says; `...` stands for anything."""
    pattern = re.escape(expected).replace(r"\.\.\.", ".*?")
    return re.fullmatch(pattern, printed.strip("\n"), re.DOTALL) is not None


class Walk:
    """A reader with a shell in an empty folder; at the end nothing of it runs on."""

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        self._folder = folder
        self._patience = patience  # seconds that one step may take
        self._running: list[subprocess.Popen[bytes]] = []
        tools = Path(sys.executable).parent
        self._environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        for name in [name for name in self._environment if name.startswith("FALCONMQ_")]:
            del self._environment[name]

    def take(self, step: Step) -> None:
        if step.kind == "python":
            self._run_python(step)
        elif step.text.rstrip().endswith("&"):
            self._start(step.text.rstrip().removesuffix("&"))
        elif step.text.startswith("kill %"):
            self._end(signal.SIGTERM)
        else:
            self._run(step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGKILL)

    def _run_python(self, step: Step) -> None:
        done = self._call([sys.executable, "-c", step.text])
        assert done.returncode == 0, f"{step.text}\n{done.stderr}"

    def _run(self, step: Step) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            done = self._call(["/bin/sh", "-c", step.text])
            if fits(done.stdout, step.expected):
                return
            is_late = time.monotonic() > deadline
            if is_late or not set(_LOOKING) & set(shlex.split(step.text)):
                said = f"{done.stdout}{done.stderr}"
                raise AssertionError(f"$ {step.text}\n{said}\ninstead of\n{step.expected}")
            time.sleep(0.1)

    def _start(self, command: str) -> None:
        words = shlex.split(command)
        with (self._folder / f"log{len(self._running)}").open("wb") as log:
            process = subprocess.Popen(
                words, cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )
        self._running.append(process)
        place = words[words.index("--data") + 1]
        deadline = time.monotonic() + PATIENCE
        while not (self._folder / place / "control.sock").exists():
            assert process.poll() is None, f"{command} ended"
            assert time.monotonic() < deadline, f"{command} is not ready"
            time.sleep(0.05)

    def _end(self, number: signal.Signals) -> None:
        running, self._running = self._running, []
        for process in running:
            process.send_signal(number)
        for process in running:
            process.wait(PATIENCE)

    def _call(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=self._patience,
        )
