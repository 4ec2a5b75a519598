"""One queue manager behind every interface that programs have, all used the same way.

`opened(kind, directory)` gives a manager; those for asyncio are wrapped, so that one text of a test
does for all. What is wrapped runs in an event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

import falconmq
from falconmq import QueueManager, aio
from falconmq.client import aio as client_aio
from falconmq.embedded.engine import Engine
from falconmq.manager.queues import purge_queue
from falconmq.manager.transactions import abort_transaction
from tests.embedded.helpers import PATIENCE, threaded_engine
from tests.service.control import ControlledManager
from tests.service.ports import HttpManager

KINDS: Final = ("embedded", "unix", "http", "aio", "aio-unix", "aio-http")
REMOTE: Final = ("unix", "http", "aio-unix", "aio-http")
_OBJECTS: Final = (
    aio.QueueManager,
    aio.Queue,
    aio.Transaction,
    aio.Cursor,
    client_aio.QueueManager,
    client_aio.Queue,
    client_aio.Transaction,
    client_aio.Cursor,
)
_FRESH: Final = (
    "count",
    "size_bytes",
    "label",
    "journaling",
    "is_transactional",
    "quota_kilobytes",
    "journal_quota_kilobytes",
    "authentication",
    "privacy_level",
    "base_priority",
    "created_at",
    "modified_at",
)


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], Any]) -> Any:
        """The value of a call made in the loop, awaited if it can be."""

        async def value() -> Any:
            found = call()
            return await found if inspect.isawaitable(found) else found

        return asyncio.run_coroutine_threadsafe(value(), self.loop).result()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()


class Awaited:
    """An object for asyncio, used as one for threads."""

    def __init__(self, inner: Any, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        inner, loop = self._inner, self._loop
        if name in _FRESH and hasattr(inner, "refresh"):
            loop.run(inner.refresh)
        value = loop.run(lambda: _not_awaited(getattr(inner, name)))
        if not isinstance(value, _Held):
            return self._wrapped(value)
        method = value.value

        def call(*args: Any, **options: Any) -> Any:
            given = [_unwrapped(each) for each in args]
            named = {key: _unwrapped(each) for key, each in options.items()}
            return self._wrapped(loop.run(lambda: method(*given, **named)))

        return call

    def __iter__(self) -> Iterator[Any]:
        walk = self._loop.run(lambda: _Held(self._inner.__aiter__())).value
        try:
            while True:
                try:
                    yield self._loop.run(walk.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run(walk.aclose)

    def __enter__(self) -> Self:
        self._loop.run(self._inner.__aenter__)
        return self

    def __exit__(self, *ended: object) -> None:
        self._loop.run(lambda: self._inner.__aexit__(*ended))

    def __repr__(self) -> str:
        return repr(self._inner)

    def _wrapped(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._wrapped(each) for each in value]
        return Awaited(value, self._loop) if isinstance(value, _OBJECTS) else value


class _Held:
    """A value that must not be awaited: a method, or an iterator."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _not_awaited(value: Any) -> Any:
    return _Held(value) if callable(value) else value


def _unwrapped(value: Any) -> Any:
    return value._inner if isinstance(value, Awaited) else value


@contextmanager
def opened(
    kind: str, directory: Path, engine: Engine | None = None, **options: Any
) -> Iterator[Any]:
    """A new queue manager, seen through one interface."""
    core = threaded_engine() if engine is None else engine
    with ExitStack() as stack:
        if kind == "embedded":
            yield stack.enter_context(QueueManager(core))
        elif kind == "aio":
            loop = Loop()
            stack.callback(loop.close)
            yield stack.enter_context(Awaited(aio.QueueManager(core), loop))
        else:
            url, token = _served(kind, stack, directory, core)
            yield stack.enter_context(reached(kind, url, token, **options))


@contextmanager
def reached(kind: str, url: str, token: str | None, **options: Any) -> Iterator[Any]:
    """The queue manager of a service, through one interface."""
    with ExitStack() as stack:
        if not kind.startswith("aio-"):
            yield stack.enter_context(falconmq.connect(url, token, **options))
            return
        loop = Loop()
        stack.callback(loop.close)
        manager = loop.run(lambda: aio.connect(url, token, **options))
        yield stack.enter_context(Awaited(manager, loop))


def _served(kind: str, stack: ExitStack, directory: Path, engine: Engine) -> tuple[str, str | None]:
    if kind.endswith("unix"):
        stack.enter_context(ControlledManager(directory, engine))
        return f"unix:{directory}", None
    port = stack.enter_context(HttpManager(directory, engine=engine))
    return port.url, port.token()


class Doors:
    """Services that many tests use one after the other: one behind each kind of door."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self._known: dict[str, tuple[Engine, str, str | None]] = {}

    @contextmanager
    def reached(self, kind: str, **options: Any) -> Iterator[Any]:
        """A manager without queues; what the test leaves is cleared away."""
        door = kind.removeprefix("aio-")
        if door not in self._known:
            directory, engine = self._directory / door, threaded_engine()
            directory.mkdir()
            self._known[door] = (engine, *_served(door, self._stack, directory, engine))
        engine, url, token = self._known[door]
        with reached(kind, url, token, **options) as manager:
            yield manager
        blocking = QueueManager(engine)
        for id in list(engine.core.transactions):
            engine.run(abort_transaction, id)
        for outgoing in list(engine.core.outgoing.values()):
            engine.run(purge_queue, outgoing)
        for queue in blocking.queues():
            blocking.delete_queue(queue)
        for system in (blocking.dead_letter, blocking.transactional_dead_letter, blocking.journal):
            system.purge()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def awaited(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run a test that is written for asyncio."""

    async def bounded() -> Any:
        return await asyncio.wait_for(main(), PATIENCE)

    return asyncio.run(bounded())
