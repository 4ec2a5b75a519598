"""RabbitMQ for `benchmarks.transport`: a private node, and how programs send and receive with it.

The node is Debian's server with a name, ports, data and logs of its own, on loopback alone; another
RabbitMQ of the computer is not touched. The client is `amqp` (pip install 'falconmq[bench]').

A sender has at most 256 messages on their way that the broker has not confirmed; a confirm of a
durable message comes after the sync. A receiver has up to 256 messages in advance and acknowledges
64 with one frame.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.transport_estate import free_port

SERVER: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one in the path becomes a user
START_SECONDS: Final = 60.0
UNCONFIRMED: Final = 256
PREFETCH: Final = 256
ACKNOWLEDGE: Final = 64
_IDLE: Final = 1.0  # seconds


def missing() -> str:
    """What has to be installed before it can be measured; empty if nothing is."""
    if importlib.util.find_spec("amqp") is None:
        return "pip install 'falconmq[bench]'"
    if not SERVER.exists():
        return "sudo tools/install-rabbitmq.sh"
    return ""


class Node:
    """A RabbitMQ server of our own; `stop` ends it."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port("127.0.0.1")
        self.directory = directory
        directory.mkdir()
        (directory / "rabbitmq.conf").write_text("")  # not the system's
        (directory / "environment").write_text("")
        (directory / "plugins").write_text("[].")
        environment = self._environment()
        # Erlang would start a port mapper that stays for ever; this one is ours and ends with us.
        mapper = ["epmd", "-address", "127.0.0.1", "-port", environment["ERL_EPMD_PORT"]]
        self._mapper = subprocess.Popen(mapper, stdin=subprocess.DEVNULL)
        with (directory / "output").open("wb") as output:
            self._server = subprocess.Popen(
                [SERVER],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    @property
    def pids(self) -> list[int]:
        """The server's script and what it started."""
        return [pid for pid in _processes() if _group(pid) == self._server.pid]

    def version(self) -> str:
        with _connected(self.port) as connection:
            return str(connection.server_properties["version"])

    def declare(self, queue: str, *, is_quorum: bool = False) -> None:
        """A durable queue, classic or quorum."""
        arguments = {"x-queue-type": "quorum" if is_quorum else "classic"}
        with _connected(self.port) as connection:
            connection.channel().queue_declare(
                queue, durable=True, auto_delete=False, arguments=arguments
            )

    def stop(self) -> None:
        self._server.send_signal(signal.SIGTERM)  # the script stops the node in order
        try:
            self._server.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()
        self._mapper.terminate()
        self._mapper.wait()

    def _environment(self) -> dict[str, str]:
        place = self.directory
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(place),  # the cookie
            "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(free_port("127.0.0.1")),
            "RABBITMQ_NODENAME": f"bench{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port("127.0.0.1")),
            "RABBITMQ_MNESIA_BASE": str(place / "mnesia"),
            "RABBITMQ_LOG_BASE": str(place / "log"),
            "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(place / "environment"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), _connected(self.port):
                return
            if self._server.poll() is not None or time.monotonic() > deadline:
                text = (self.directory / "output").read_text(errors="replace")
                raise RuntimeError(f"RabbitMQ did not start: {text[-2000:]}")
            time.sleep(0.25)


class _Sender:
    def __init__(self, port: int, queue: str, *, is_durable: bool) -> None:
        amqp = importlib.import_module("amqp")
        self._message = amqp.Message
        self._mode = 2 if is_durable else 1
        self._queue = queue
        self._connection = _connect(port)
        self._channel = self._connection.channel()

    def close(self) -> None:
        self._connection.close()

    def _publish(self, body: bytes) -> None:
        message = self._message(body, delivery_mode=self._mode)
        self._channel.basic_publish(message, routing_key=self._queue)


class ConfirmedSender(_Sender):
    """Publisher confirms, up to 256 outstanding."""

    def __init__(self, port: int, queue: str, *, is_durable: bool) -> None:
        super().__init__(port, queue, is_durable=is_durable)
        self._sent = 0
        self._confirmed = 0
        self._early: set[int] = set()  # confirmed before an earlier one
        self._channel.confirm_select()
        self._channel.events["basic_ack"].add(self._confirm)

    def send(self, bodies: list[bytes]) -> None:
        for body in bodies:
            self._wait(UNCONFIRMED - 1)
            self._publish(body)
            self._sent += 1

    def flush(self) -> None:
        self._wait(0)

    def _wait(self, most: int) -> None:
        while self._sent - self._confirmed - len(self._early) > most:
            self._connection.drain_events(timeout=30)

    def _confirm(self, tag: int, multiple: bool) -> None:
        if multiple:
            self._confirmed = max(self._confirmed, tag)
            self._early = {each for each in self._early if each > tag}
        else:
            self._early.add(tag)
        while self._confirmed + 1 in self._early:
            self._confirmed += 1
            self._early.remove(self._confirmed)


class TransactionalSender(_Sender):
    """tx.select; each call is a transaction."""

    def __init__(self, port: int, queue: str, *, is_durable: bool) -> None:
        super().__init__(port, queue, is_durable=is_durable)
        self._channel.tx_select()

    def send(self, bodies: list[bytes]) -> None:
        for body in bodies:
            self._publish(body)
        self._channel.tx_commit()

    def flush(self) -> None:
        """Nothing is left: `send` commits."""


class Receiver:
    """A consumer with prefetch."""

    def __init__(self, port: int, queue: str) -> None:
        self._connection = _connect(port)
        self._channel = self._connection.channel()
        self._received: list[bytes] = []
        self._open = 0  # not yet acknowledged
        self._tag = 0
        self._channel.basic_qos(0, PREFETCH, a_global=False)
        self._channel.basic_consume(queue, callback=self._take)

    def receive(self) -> list[bytes]:
        if self._open >= ACKNOWLEDGE:
            self._acknowledge()
        try:
            self._connection.drain_events(timeout=_IDLE)
        except TimeoutError:
            self._acknowledge()
        received, self._received = self._received, []
        return received

    def close(self) -> None:
        self._acknowledge()
        self._connection.close()

    def _take(self, message: Any) -> None:
        self._tag = message.delivery_tag
        self._open += 1
        self._received.append(message.body)

    def _acknowledge(self) -> None:
        if self._open:
            self._channel.basic_ack(self._tag, multiple=True)
            self._open = 0


def _connect(port: int) -> Any:
    amqp = importlib.import_module("amqp")  # no types
    connection = amqp.Connection(f"127.0.0.1:{port}", connect_timeout=5)
    try:
        connection.connect()
    except BaseException:
        connection.collect()
        raise
    return connection


@contextlib.contextmanager
def _connected(port: int) -> Iterator[Any]:
    with contextlib.closing(_connect(port)) as connection:
        yield connection


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0
