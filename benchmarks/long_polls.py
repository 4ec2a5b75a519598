r"""A thousand readers who wait over HTTP, while messages flow: memory and latency.

`python -m benchmarks.long_polls` starts a daemon, lets 1,000 connections wait for messages of 100
queues with long polls, sends messages at a steady rate, and measures the time from the beginning of
each send to the moment when a reader has the message. Every message must reach exactly one reader.

Client and daemon share the cores of this machine, so the figures contain the work of both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from falconmq.client import ControlClient
from tests.e2e.estate import Estate

HTTP_PORT: Final = 8018
WAIT_SECONDS: Final = 30
_MEBIBYTE: Final = 1 << 20


@dataclass
class Outcome:
    """What the readers saw, and what the daemon needed for it."""

    readers: int
    expected: int
    sent: int = 0
    latencies: list[float] = field(default_factory=list)  # seconds
    seen: dict[str, int] = field(default_factory=dict)
    idle_bytes: int = 0  # of memory, when all readers wait
    busy_bytes: int = 0  # of memory, at the end

    @property
    def is_exact(self) -> bool:
        """Each message reached one reader."""
        return len(self.seen) == self.sent and set(self.seen.values()) <= {1}

    def percentile(self, part: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))]

    def __str__(self) -> str:
        return (
            f"{self.readers} readers, {self.sent} messages, "
            f"{'each exactly once' if self.is_exact else 'NOT each exactly once'}\n"
            f"memory of the daemon: {self.idle_bytes / _MEBIBYTE:.0f} MiB when all wait, "
            f"{self.busy_bytes / _MEBIBYTE:.0f} MiB at the end\n"
            f"latency ms: median {statistics.median(self.latencies) * 1000:.1f}, "
            f"p99 {self.percentile(0.99) * 1000:.1f}, worst {max(self.latencies) * 1000:.1f}"
        )


class Connection:
    """Just enough HTTP for one request after the other."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, HTTP_PORT)

    async def post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps(content).encode()
        head = (
            f"POST /api/v1{path} HTTP/1.1\r\nHost: {self._host}:{HTTP_PORT}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(
            line.lower().split(": ", 1) for line in answer.decode().split("\r\n")[1:] if line
        )
        data = await self._reader.readexactly(int(fields["content-length"]))
        if not answer.startswith(b"HTTP/1.1 2"):
            raise AssertionError(answer.decode() + data.decode())
        found: dict[str, Any] = json.loads(data)
        return found

    def close(self) -> None:
        self._writer.close()


def _queue(number: int) -> str:
    return rf".\private$\poll{number}"


def _path(number: int, action: str) -> str:
    return f"/queues/{quote(_queue(number), safe='')}/{action}"


def _resident(process_id: int) -> int:
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


async def _read(connection: Connection, queue: int, outcome: Outcome, done: asyncio.Event) -> None:
    while not done.is_set():
        answer = await connection.post(
            _path(queue, "receive"), {"count": 1, "timeout": WAIT_SECONDS}
        )
        now = time.monotonic()
        for message in answer["messages"]:
            text = message["text"]
            outcome.seen[text] = outcome.seen.get(text, 0) + 1
            outcome.latencies.append(now - float(text.split()[1]))
        if len(outcome.seen) == outcome.sent and outcome.sent == outcome.expected:
            done.set()


async def _send(
    connection: Connection, outcome: Outcome, queues: int, rate: float, messages: int
) -> None:
    start = time.monotonic()
    for number in range(messages):
        await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
        text = f"{number} {time.monotonic():.6f}"
        outcome.sent += 1
        await connection.post(_path(number % queues, "messages"), {"messages": [{"text": text}]})


async def _run(
    client: ControlClient,
    host: str,
    process_id: int,
    *,
    readers: int,
    queues: int,
    rate: float,
    messages: int,
) -> Outcome:
    outcome, done = Outcome(readers, messages), asyncio.Event()
    connections = [Connection(host) for _ in range(readers + 1)]
    for some in range(0, len(connections), 50):  # not all in one moment
        await asyncio.gather(*(each.open() for each in connections[some : some + 50]))
    sender, *others = connections
    reading = [
        asyncio.create_task(_read(each, number % queues, outcome, done))
        for number, each in enumerate(others)
    ]
    await _until_all_wait(client, readers)
    outcome.idle_bytes = _resident(process_id)
    try:
        await _send(sender, outcome, queues, rate, messages)
        await asyncio.wait_for(done.wait(), WAIT_SECONDS)
    finally:
        outcome.busy_bytes = _resident(process_id)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        for each in connections:
            each.close()
    return outcome


async def _until_all_wait(client: ControlClient, readers: int) -> None:
    while sum(queue["waiting_readers"] for queue in client.queues()) < readers:
        await asyncio.sleep(0.1)


def measure(
    directory: Path,
    *,
    readers: int = 1000,
    queues: int = 100,
    rate: float = 100.0,
    messages: int = 2000,
) -> Outcome:
    """Start a daemon, let the readers wait, let messages flow."""
    with Estate(directory) as estate:
        daemon = estate.manager("POLLED")
        daemon.sections["http"] = {"loopback_role": "manage", "port": HTTP_PORT}
        daemon.start()
        for number in range(queues):
            daemon.client.create_queue(_queue(number))
        assert daemon.process is not None
        return asyncio.run(
            _run(
                daemon.client,
                daemon.address,
                daemon.process.pid,
                readers=readers,
                queues=queues,
                rate=rate,
                messages=messages,
            )
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100.0, help="messages a second")
    parser.add_argument("--messages", type=int, default=2000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outcome = measure(
            Path(directory), readers=chosen.readers, rate=chosen.rate, messages=chosen.messages
        )
    sys.stdout.write(f"{outcome}\n")
    return 0 if outcome.is_exact else 1


if __name__ == "__main__":
    sys.exit(main())
