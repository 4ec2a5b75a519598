"""Services for tests: each on a loopback address of its own, over a store in memory or on disk."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from falconmq import Message, aio
from falconmq.manager.model import OutgoingQueue
from falconmq.service.configuration import Configuration, ManagerSection
from falconmq.service.daemon import Service
from falconmq.service.engine import start_hosted_engine
from falconmq.store import MemoryStore
from falconmq.transport.settings import PORT, TransportSettings

ORDERS = r".\private$\orders"
PATIENCE = 60.0  # seconds until a test gives up
_T = TypeVar("_T")
_numbers = itertools.count(11)


def loopback() -> str:
    """An address that no other test and no other test run uses at this moment."""
    process = os.getpid()
    while True:
        address = f"127.{next(_numbers) % 240 + 10}.{process >> 8 & 255}.{process & 255}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, PORT))
            return address


def run(main: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(asyncio.wait_for(main, PATIENCE))


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop go on until something is so; the test's own time-out ends it otherwise."""
    while not is_so():
        await asyncio.sleep(0.002)


def configured(bind: str, data: Path = Path("/nowhere"), **settings: Any) -> Configuration:
    chosen = TransportSettings(**{"try_connect_interval": 0.05, **settings})
    return Configuration(ManagerSection("A" + bind.replace(".", "-"), data, bind), chosen)


class Undoored(Service):
    """A service that only speaks the protocol: its store may have no directory."""

    async def open_doors(self) -> None:
        pass


@asynccontextmanager
async def serving(
    store: MemoryStore | None = None,
    bind: str = "",
    configuration: Configuration | None = None,
    **settings: Any,
) -> AsyncIterator[Service]:
    """A service over a store in memory, on an address of its own."""
    chosen = configuration or configured(bind or loopback(), **settings)
    engine = start_hosted_engine(MemoryStore() if store is None else store, chosen)
    service = Undoored(chosen, engine)
    await service.open()
    try:
        yield service
    finally:
        await service.stop()


def direct(service: Service, queue: str = "orders") -> str:
    return rf"DIRECT=TCP:{service.configuration.manager.bind}\private$\{queue}"


async def send(service: Service, name: str, *bodies: str, recoverable: bool = True) -> None:
    queue: aio.Queue = await service.manager.queue(name)
    for body in bodies:
        await queue.send(Message(body, recoverable=recoverable))


def outgoing(service: Service) -> list[OutgoingQueue]:
    return list(service.engine.core.outgoing.values())


def waiting(service: Service) -> int:
    """Messages that have not left for good."""
    return sum(len(queue.positions) for queue in outgoing(service))
