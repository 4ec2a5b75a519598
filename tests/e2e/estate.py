r"""Queue managers as real processes, for tests: addresses, daemons, links that can be cut.

How to think about it. The port is fixed by the protocol, so every daemon needs an address of its
own. Linux has 16 million of them on the loopback; an estate takes a net of 254 for itself by
listening on the first, which nobody else can do meanwhile.

    with Estate(tmp_path) as estate:
        a, b = estate.manager("A"), estate.manager("B")
        b.create_queue("orders")
        a.start(), b.start()
        a.client.send(b.direct("orders"), [{"text": "hello"}])
        b.take("orders", 1)

A daemon is ready when it says so (NOTIFY_SOCKET); messages are waited for where they arrive. Every
wait has a deadline, and what it then raises shows the log of the daemon.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Self
from uuid import UUID

import falconmq
from falconmq.client import CONTROL_SOCKET, ControlClient
from falconmq.embedded import blocking
from falconmq.manager.creation import create_queue
from falconmq.names import PathName
from falconmq.transport.settings import PORT
from tests.processes import FALCONMQ, Command

PATIENCE: Final = 60.0  # seconds until a test gives up
Json = dict[str, Any]

_FIRST_NET, _LAST_NET = 64, 127  # the second number of the addresses that tests use
_PAGE: Final = 1000  # messages in one answer
_LOG_LINES: Final = 25
# Times are those of a quick line: a test does not wait five seconds for the second try.
_QUICK: Final[Mapping[str, object]] = {
    "try_connect_interval": 0.1,
    "order_ack_timeout": 0.1,
    "maximum_order_ack_delay": 1.0,
    "resend_short": 2.0,
    "resend_medium": 2.0,
    "resend_long": 2.0,
    "resend_final": 2.0,
}


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """For what nobody tells: ask until it is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not after {seconds:.0f} seconds: {what}"
        time.sleep(0.02)


class Net:
    """254 addresses of the loopback that no other test has: `net.address()` gives the next."""

    def __init__(self) -> None:
        self._anchor = socket.socket()
        self._prefix = self._take()
        self._last = 1

    def address(self) -> str:
        self._last += 1
        return f"{self._prefix}.{self._last}"

    def close(self) -> None:
        self._anchor.close()

    def _take(self) -> str:
        start = os.getpid()
        for number in range(start, start + 10_000):
            second = _FIRST_NET + number // 256 % (_LAST_NET - _FIRST_NET)
            prefix = f"127.{second}.{number % 256}"
            with contextlib.suppress(OSError):
                self._anchor.bind((f"{prefix}.1", PORT))
                return prefix
        raise AssertionError("no loopback addresses are free")


class Daemon:
    """One `falconmq serve` with a data directory of its own; it can be killed and started again."""

    def __init__(self, name: str, address: str, directory: Path, prefix: Sequence[str]) -> None:
        self.name = name
        self.address = address
        self.data = directory / name
        self.config = directory / f"{name}.toml"
        self.log = directory / f"{name}.log"
        self.sections: dict[str, dict[str, object]] = {
            "manager": {"name": name, "data": str(self.data), "bind": address},
            "transport": dict(_QUICK),
        }
        self.computers: list[Daemon] = []
        self.routes: dict[Daemon, Daemon] = {}
        self.ghosts: dict[UUID, Daemon] = {}  # routes to queue managers that do not exist
        self.process: subprocess.Popen[bytes] | None = None
        self.client = ControlClient(self.data / CONTROL_SOCKET)
        self._prefix = prefix  # of the command: `ip netns exec`
        with falconmq.open(self.data, computer_name=name) as manager:
            self.id: UUID = manager.id

    def create_queue(self, name: str, **properties: object) -> None:
        """Create a private queue; the daemon must run."""
        self.client.create_queue(path(name), **properties)

    def publish(self, name: str, identifier: UUID) -> None:
        """Give it a public queue, as a directory would have; before it starts."""
        with falconmq.open(self.data, computer_name=self.name) as manager:
            blocking.call(
                manager._engine,
                create_queue,
                PathName.parse(rf".\{name}"),
                skip_directory=True,
                identifier=identifier,
            )

    def direct(self, queue: str, address: str = "") -> str:
        """The name under which others send to a queue, without asking anybody for the way."""
        return rf"DIRECT=TCP:{address or self.address}\private$\{queue}"

    def private(self, queue: str) -> str:
        """The name that goes over the routes."""
        name: str = self.client.queue(path(queue))["format_name"]
        return name

    def take(self, queue: str, count: int, seconds: float = PATIENCE) -> list[Json]:
        """Receive exactly this many messages, as they come."""
        found: list[Json] = []
        deadline = time.monotonic() + seconds
        while len(found) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise AssertionError(f"{len(found)} of {count} messages came\n{self.story()}")
            wanted = min(_PAGE, count - len(found))
            found += self.client.receive(path(queue), count=wanted, timeout=left)
        return found

    def look(self, queue: str) -> list[Json]:
        """What is in a queue now; it stays there."""
        found: list[Json] = []
        page = self.client.receive(path(queue), count=_PAGE, peek=True)
        while page:
            found += page
            after = found[-1]["lookup_id"]
            page = self.client.receive(path(queue), count=_PAGE, peek=True, after=after)
        return found

    def count(self, queue: str) -> int:
        number: int = self.client.queue(path(queue))["messages"]
        return number

    def waiting(self, destination: str = "") -> int:
        """Messages that are on their way, to one queue or to all."""
        outgoing = self.client.outgoing()
        found = [q for q in outgoing if destination in ("", q["destination"])]
        return sum(queue["messages"] for queue in found)

    def start(self, *, environment: Mapping[str, str] | None = None) -> Self:
        """Start it, and wait until it says that it is ready."""
        assert self.process is None, f"{self.name} runs already"
        self._write_config()
        with (
            tempfile.TemporaryDirectory(prefix="falconmq-") as place,
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
            self.log.open("ab") as log,
        ):
            line = f"{place}/ready"  # the name of a socket is short, that of a test's place is not
            ready.bind(line)
            given = {**os.environ, "NOTIFY_SOCKET": line, **(environment or {})}
            self.process = self._started(log, given)
            self._wait_until_ready(ready)
        return self

    def kill(self) -> None:
        """As if the power had gone, for this process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE)
            self.process = None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, and wait until it has; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not stop\n{self.story()}") from None
        finally:
            self.kill()

    def restart(self) -> None:
        self.kill()
        self.start()

    def said(self) -> str:
        """Its log, of all its lives."""
        return self.log.read_text(errors="replace")

    def story(self) -> str:
        """The end of its log, for whoever has to find out."""
        return f"{self.name} said last:\n" + "\n".join(self.said().splitlines()[-_LOG_LINES:])

    def _started(self, log: BinaryIO, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        words = ("serve", "--config", str(self.config))
        nothing = subprocess.DEVNULL
        if not self._prefix:
            return Command(
                *words,
                stdin=nothing,
                stdout=log,
                stderr=log,
                environment=environment,
                new_session=True,
            )
        return subprocess.Popen(
            [*self._prefix, str(FALCONMQ), *words],
            stdin=nothing,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )

    def _wait_until_ready(self, ready: socket.socket) -> None:
        assert self.process is not None
        deadline = time.monotonic() + PATIENCE
        ready.settimeout(0.1)
        while time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                if ready.recv(4096).startswith(b"READY=1"):
                    return
            if self.process.poll() is not None:
                break
        self.kill()
        raise AssertionError(f"{self.name} is not ready\n{self.story()}")

    def _write_config(self) -> None:
        lines: list[str] = []
        for name, section in self.sections.items():
            lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in section.items())]
        for other in self.computers:
            lines += ["[[computers]]", f'id = "{other.id}"', f'name = "{other.name}"']
            lines += [f'address = "{other.address}"']
        for goal, hop in self.routes.items():
            lines += ["[[routes]]", f'to = "{goal.name}"', f'via = ["{hop.name}"]']
        for ghost, hop in self.ghosts.items():
            lines += ["[[computers]]", f'id = "{ghost}"', 'name = "ghost"']
            lines += ["[[routes]]", 'to = "ghost"', f'via = ["{hop.name}"]']
        self.config.write_text("\n".join(lines) + "\n")


class Link:
    """A line between two daemons that can be cut: each sees the other at the link's own address.

    `to_b` is where A reaches B, `to_a` where B reaches A; either end sees the other come from
    there, as it would without a link between them.
    """

    def __init__(self, net: Net, a: Daemon, b: Daemon) -> None:
        self.to_a, self.to_b = net.address(), net.address()
        self._ways = {self.to_b: (self.to_a, b.address), self.to_a: (self.to_b, a.address)}
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._is_open = False
        self.heal()

    def heal(self) -> None:
        self._is_open = True
        for address, (source, goal) in self._ways.items():
            listener = socket.create_server((address, PORT))
            self._keep(listener)
            _thread(self._accept, listener, source, goal)

    def cut(self) -> None:
        """Everything that is on its way is lost, and nothing connects any more."""
        with self._lock:
            self._is_open = False
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _keep(self, *sockets: socket.socket) -> bool:
        with self._lock:
            if self._is_open:
                self._sockets.update(sockets)
        if not self._is_open:
            for each in sockets:
                each.close()
        return self._is_open

    def _accept(self, listener: socket.socket, source: str, goal: str) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                _thread(self._join, near, source, goal)

    def _join(self, near: socket.socket, source: str, goal: str) -> None:
        try:
            far = socket.create_connection((goal, PORT), PATIENCE, (source, 0))
            far.settimeout(None)
        except OSError:
            near.close()
            return
        if self._keep(near, far):
            _thread(_pour, near, far)
            _thread(_pour, far, near)


class Estate:
    """Daemons that belong together; at the end of the block all are gone."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.net = Net()
        self.daemons: list[Daemon] = []
        self.links: list[Link] = []

    def manager(self, name: str, **transport: object) -> Daemon:
        """A queue manager with these settings of the transport; not started yet."""
        return self.add(Daemon(name, self.net.address(), self.directory, ()), transport)

    def add(self, daemon: Daemon, transport: Mapping[str, object]) -> Daemon:
        daemon.sections["transport"] |= transport
        self.daemons.append(daemon)
        return daemon

    def link(self, a: Daemon, b: Daemon) -> Link:
        link = Link(self.net, a, b)
        self.links.append(link)
        return link

    def introduce(self, daemons: Iterable[Daemon]) -> None:
        """Everybody knows where everybody else is; before they start."""
        everybody = list(daemons)
        for daemon in everybody:
            daemon.computers = [other for other in everybody if other is not daemon]

    def start(self) -> None:
        for daemon in self.daemons:
            daemon.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self.daemons:
            daemon.kill()
            daemon.client.close()
        for link in self.links:
            link.cut()
        self.net.close()


def path(queue: str) -> str:
    """The path name of a private queue; names with signs of their own stay as they are."""
    return queue if set(queue) & set(r"\=;") else rf".\private$\{queue}"


def _pour(source: socket.socket, goal: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            goal.sendall(data)
    for each in (source, goal):  # the other way ends with this one, as TCP's reset does
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _thread(work: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
