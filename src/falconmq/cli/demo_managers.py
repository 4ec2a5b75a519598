"""The queue managers of `falconmq demo`: processes with addresses of their own on the loopback.

The port is fixed by the protocol, so each needs an address. Linux has all of 127.0.0.0/8; the demo
takes a net that nobody uses on this port, and holds it while it runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self
from uuid import UUID

import falconmq
from falconmq.cli.problems import CommandError
from falconmq.client import CONTROL_SOCKET, ControlClient

PORT: Final = 1801
HTTP_PORT: Final = 8018
DOMAIN: Final = "demo.example"
READY_SECONDS: Final = 30.0
_NETS: Final = 16  # 127.0.0.x, 127.0.1.x and so on are tried
_STOP_SECONDS: Final = 10.0


class Net:
    """Addresses that are free on the port of the protocol; `with Net(3) as addresses`."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._anchor: socket.socket  # on the first address of the net, which we need not

    def __enter__(self) -> list[str]:
        for number in range(_NETS):
            first, *others = [f"127.0.{number}.{last}" for last in range(1, self._count + 2)]
            self._anchor = socket.socket()
            try:
                self._anchor.bind((first, PORT))
                if all(map(_is_free, others)):
                    return others
            except OSError:
                pass  # somebody has it; the next net may be free
            self._anchor.close()
        raise _nothing_free()

    def __exit__(self, *_: object) -> None:
        self._anchor.close()


def _is_free(address: str, port: int = PORT) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def _free_port(address: str) -> int:
    """Another port, for when somebody has ours."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def _nothing_free() -> CommandError:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                return CommandError(
                    "this computer has no address 127.0.0.2",
                    "the demo needs Linux, where all of 127.0.0.0/8 is on the loopback",
                )
    return CommandError(
        f"port {PORT} is taken on all addresses of the loopback",
        f"a queue manager listens on every address; find it with: ss -ltnp 'sport = :{PORT}', "
        "stop it or give it one address (falconmq serve --bind ADDRESS), and try again",
    )


class Manager:
    """One `falconmq serve`; it can be killed and started again."""

    def __init__(self, name: str, address: str, directory: Path) -> None:
        self.name = name
        self.address = address
        self.data = directory / name
        self.config = directory / f"{name}.toml"
        self.log = directory / f"{name}.log"
        self.queues: dict[str, str] = {}  # where others send to: format names, or path names
        self.port = HTTP_PORT
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._line: socket.socket  # on which it says that it is ready
        with falconmq.open(self.data, computer_name=name) as manager:
            self.id: UUID = manager.id

    def create_queues(self, queues: Mapping[str, bool]) -> None:
        """Before it starts: names of private queues, and whether they are transactional."""
        with falconmq.open(self.data, computer_name=self.name) as manager:
            for name, transactional in queues.items():
                queue = manager.create_queue(path(name), transactional=transactional)
                self.queues[name] = queue.format_name

    def configure(self, site: str, keeper: Self, *, is_router: bool = False) -> None:
        """In which site it is, and who keeps the directory; everything else is in that."""
        lines = ["[manager]", f'name = "{self.name}"', f'data = "{self.data.name}"']
        lines += [f'bind = "{self.address}"', "", "[transport]", "try_connect_interval = 0.5"]
        # Nobody else can reach the loopback, so whoever is on this computer may look and act.
        self.port = HTTP_PORT if _is_free(self.address, HTTP_PORT) else _free_port(self.address)
        lines += ["", "[http]", f"port = {self.port}", 'loopback_role = "manage"']
        lines += ["", "[directory]", f'site = "{site}"', f'host_name = "{self.address}"']
        lines += [f"routing_server = {str(is_router).lower()}"]
        if keeper is self:
            lines += ['kind = "embedded"', f'domain = "{DOMAIN}"']
        else:
            lines += ['kind = "remote"', f'servers = ["http://{keeper.address}:{keeper.port}"]']
        self.config.write_text("\n".join(lines) + "\n")

    def client(self) -> ControlClient:
        return ControlClient(self.data / CONTROL_SOCKET)

    def console(self) -> str:
        """The address of its web console; empty if it has none."""
        with self.client() as client:
            return str(client.status().get("http") or "")

    def start(self) -> None:
        """Start it; `wait` until it is ready."""
        line = f"falconmq-demo-{os.getpid()}-{self.name}-{self.starts}"
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._line.bind(f"\0{line}")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603  # our own command
                [sys.executable, "-P", "-m", "falconmq", "serve", "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": f"@{line}"},
                start_new_session=True,  # Ctrl-C is for the demo, which stops them in order
            )
        self.starts += 1

    def wait(self) -> None:
        """Until it says that it is ready; CommandError with its last words if it ends instead."""
        assert self.process is not None
        deadline = time.monotonic() + READY_SECONDS
        with self._line as line:
            line.settimeout(0.1)
            while self.process.poll() is None and time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    if line.recv(4096).startswith(b"READY=1"):
                        return
        lines = self.log.read_text(errors="replace").splitlines()
        raise CommandError(f"the {self.name} does not start: {lines[-1] if lines else 'no log'}")

    def kill(self) -> int:
        """Like a power cut, for this process; its number."""
        assert self.process is not None
        number = self.process.pid
        self.process.kill()
        self.process.wait(_STOP_SECONDS)
        return number

    def stop(self) -> None:
        """In order if it can, else at once."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_STOP_SECONDS)


def path(queue: str) -> str:
    return rf".\private$\{queue}"
