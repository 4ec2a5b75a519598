"""Two daemons for `benchmarks.transport`: ALPHA on 127.0.0.2 sends, BRAVO on 127.0.0.3 receives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from falconmq.client import CONTROL_SOCKET, ControlClient
from falconmq.errors import FalconMQError

SENDER: Final = "127.0.0.2"
RECEIVER: Final = "127.0.0.3"
START_SECONDS: Final = 30.0
_NO_LIMIT: Final = 0xFFFFFFFF
_CONFIGURATION: Final = """\
[manager]
name = "{name}"
data = "data"
bind = "{address}"
port = {port}
quota_kilobytes = {quota}

[log]
level = "warning"
"""


class Daemon:
    """One `falconmq serve`, with a data directory of its own; under cProfile if asked to."""

    def __init__(self, directory: Path, name: str, address: str, port: int) -> None:
        directory.mkdir()
        self.directory = directory
        self.name = name
        self.address = address
        self.socket = directory / "data" / CONTROL_SOCKET
        self._process: subprocess.Popen[bytes] | None = None
        text = _CONFIGURATION.format(name=name, address=address, port=port, quota=_NO_LIMIT)
        (directory / "falconmq.toml").write_text(text)

    @property
    def pids(self) -> list[int]:
        return [] if self._process is None else [self._process.pid]

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def start(self, profile: Path | None = None) -> None:
        profiled = [] if profile is None else ["-m", "cProfile", "-o", str(profile)]
        serve = ["-m", "falconmq", "serve", "--config", str(self.directory / "falconmq.toml")]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *profiled, *serve], stdin=subprocess.DEVNULL, stderr=log
            )
        try:
            wait_until(self._answers, START_SECONDS)
        except TimeoutError as error:
            self.stop()
            raise RuntimeError(f"{self.name} did not start: {self.log}") from error

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def client(self) -> ControlClient:
        return ControlClient(self.socket)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended at its start: {self.log}")
        try:
            with self.client() as client:
                client.status()
        except FalconMQError:
            return False
        return True


class Estate:
    """Both daemons, running: `with Estate(directory) as estate`."""

    def __init__(self, directory: Path, profiles: Path | None = None) -> None:
        port = free_port(SENDER, RECEIVER)
        directory.mkdir()
        self.alpha = Daemon(directory / "alpha", "ALPHA", SENDER, port)
        self.bravo = Daemon(directory / "bravo", "BRAVO", RECEIVER, port)
        self._profiles = profiles

    def start(self) -> None:
        for daemon in (self.bravo, self.alpha):
            name = f"{daemon.name.lower()}.prof"
            daemon.start(None if self._profiles is None else self._profiles / name)

    def declare(self, queue: str, *, transactional: bool = False) -> None:
        with self.bravo.client() as client:
            client.create_queue(rf".\private$\{queue}", transactional=transactional)

    def destination(self, queue: str) -> str:
        return rf"DIRECT=TCP:{RECEIVER}\private$\{queue}"

    def stop(self) -> None:
        self.alpha.stop()
        self.bravo.stop()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def free_port(*addresses: str) -> int:
    """A TCP port that is free at this moment on all of these addresses."""
    while True:
        with socket.socket() as first:
            first.bind((addresses[0], 0))
            port = int(first.getsockname()[1])
            if all(_is_free(address, port) for address in addresses[1:]):
                return port


def processor_seconds(pids: Iterable[int]) -> float:
    """What the processes have used until now, all their threads."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            continue
        ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until(is_so: Callable[[], bool], seconds: float, pause: float = 0.02) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so after {seconds:.0f} seconds")
        time.sleep(pause)


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
