"""The process of the daemon: its log, its signals, its loop, and systemd that waits for it.

SIGTERM, SIGINT   stop in order; again: at once
SIGHUP            the configuration is read again
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from falconmq.errors import FalconMQError
from falconmq.security.key_store import KeyStore
from falconmq.service import securing
from falconmq.service.configuration import ALL_INTERFACES, Configuration
from falconmq.service.daemon import STOP_SECONDS, Service
from falconmq.service.readiness import Readiness
from falconmq.transport.protection import Protection

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_log = logging.getLogger("falconmq.service")


async def serve(
    configuration: Configuration, *, ready: Callable[[Service], None] | None = None
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 0 when asked to stop, 1 if it cannot start.

    A second signal ends the process at once. SIGHUP reads the configuration again.
    """
    readiness = Readiness()
    stopping, reloading = asyncio.Event(), asyncio.Event()
    with _signals(stopping, reloading):
        try:
            service = await Service.start(configuration)
        except FalconMQError as error:
            _log.error("cannot start: %s", error)
            if error.hint:
                _log.error("hint: %s", error.hint)
            return 1
        watchdog = asyncio.create_task(_be_alive(readiness))
        keys = asyncio.create_task(_make_keys(configuration, service.transport.protection))
        reloads = asyncio.create_task(_reload_when_asked(service, readiness, reloading))
        try:
            _tell(service)
            readiness.ready(_listening(service))
            if ready is not None:
                ready(service)
            await stopping.wait()
        finally:
            readiness.stopping("stopping")
            watchdog.cancel()
            await asyncio.wait({keys}, timeout=STOP_SECONDS)  # so that a short start makes them
            keys.cancel()
            reloads.cancel()
            await service.stop()
    _log.info("stopped")
    return 0


def run(configuration: Configuration) -> int:
    """`serve` for a command: its own log, its own event loop, the faster one if it is there."""
    configure_log(configuration.log_level)
    allow_many_files()
    # Messages are many small objects without cycles: looking for cycles every 700 of them took a
    # tenth of the time of recoverable messages, a fifth of express ones.
    gc.set_threshold(100_000, 50, 100)
    try:
        uvloop = importlib.import_module("uvloop")  # optional
    except ModuleNotFoundError:
        return asyncio.run(serve(configuration))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return int(runner.run(serve(configuration)))


def configure_log(level: str) -> None:
    """To stderr; the journal adds the time itself."""
    time = "" if "JOURNAL_STREAM" in os.environ else "%(asctime)s "
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format=f"{time}%(levelname)s %(name)s %(message)s"
    )


def allow_many_files() -> None:
    """As many sockets as the system lets us have: the usual 1024 are few for a server."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _make_keys(configuration: Configuration, protection: Protection | None) -> None:
    """At the first start the keys of the queue manager are made, beside what is more urgent.

    At every other one it is looked whether they can be used: nobody else may read them.
    """
    store = KeyStore(configuration.manager.data)
    is_new = not store.path.exists()
    try:
        await asyncio.to_thread(store.keys)
    except FalconMQError as error:
        _log.error("no keys, nothing can be signed or encrypted: %s; %s", error, error.hint)
    else:
        if is_new:
            _log.info("keys made path=%s", store.path)
            securing.use_keys(protection, configuration)


def _tell(service: Service) -> None:
    core, configuration = service.engine.core, service.configuration
    _log.info(
        "listening addresses=%s name=%s queue_manager=%s data=%s configuration=%s",
        ",".join(service.network.addresses),
        core.settings.computer_name,
        core.identifier,
        configuration.manager.data,
        configuration.source,
    )
    if service.http is not None:
        service.http.tell()
    if configuration.security.hardened:
        _log.warning(
            "hardened mode: no message comes or goes over the MSMQ port; "
            "security.hardened = false and a restart end it"
        )
    elif configuration.manager.bind == ALL_INTERFACES:
        _log.info("every interface of this computer is open to peers; manager.bind narrows it")


async def _be_alive(readiness: Readiness) -> None:
    interval = readiness.watchdog_interval
    while interval is not None:
        readiness.alive()
        await asyncio.sleep(interval)


def _listening(service: Service) -> str:
    if service.configuration.security.hardened:
        return "hardened mode: the MSMQ port is closed"
    return f"listening on {', '.join(service.network.addresses)}"


async def _reload_when_asked(
    service: Service, readiness: Readiness, reloading: asyncio.Event
) -> None:
    while True:
        await reloading.wait()
        reloading.clear()
        readiness.reloading("reading the configuration")
        problem = ""
        try:
            report = await service.reload()
        except FalconMQError as error:
            _log.error("configuration not reloaded, nothing was changed: %s", error)
            if error.hint:
                _log.error("hint: %s", error.hint)
            problem = str(error)
        except Exception as error:  # noqa: BLE001  # a bug; the service goes on as it was
            _log.exception("configuration not reloaded")
            problem = repr(error)
        else:
            waiting = sum(not change.is_applied for change in report.changes)
            applied = len(report.changes) - waiting
            _log.info("configuration reloaded applied=%d needs_restart=%d", applied, waiting)
        await service.write_down("SIGHUP", "config reload", problem)
        readiness.ready(_listening(service))


@contextmanager
def _signals(stopping: asyncio.Event, reloading: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # the store survives that; as shells count
        _log.info("stopping signal=%s; again to stop at once", number.name)
        stopping.set()

    handled = []
    for number in _SIGNALS:
        with suppress(RuntimeError, ValueError):  # only the main thread gets signals
            loop.add_signal_handler(number, ask, number)
            handled.append(number)
    with suppress(RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGHUP, reloading.set)
        handled.append(signal.SIGHUP)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
