"""The control socket: who gets in, and what was left by others."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
from pathlib import Path

import pytest
import uvloop

from falconmq import StoreError, aio
from falconmq.client import CONTROL_SOCKET, ControlClient, UnreachableError
from falconmq.service.api import create_app
from falconmq.service.web.control import ControlServer
from tests.embedded.helpers import threaded_engine
from tests.service.control import ControlledManager


def test_only_the_owner_may_connect(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with ControlledManager(tmp_path) as controlled:
            assert stat.S_IMODE(controlled.path.stat().st_mode) == 0o600
    finally:
        os.umask(old)


def test_the_socket_goes_with_the_service(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as controlled:
        assert controlled.path.is_socket()
    assert not controlled.path.exists()


def test_a_socket_that_a_crash_left_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / CONTROL_SOCKET))
    left.close()
    with ControlledManager(tmp_path) as controlled, controlled.client() as client:
        assert client.queues() == []


def test_a_socket_that_somebody_listens_on_is_left_alone(tmp_path: Path) -> None:
    with ControlledManager(tmp_path) as first, first.client() as client:
        second = ControlledManager(tmp_path)
        with pytest.raises(StoreError, match="another service listens"), second:
            pass
        assert client.queues() == []


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / CONTROL_SOCKET).write_text("mine")
    second = ControlledManager(tmp_path)
    with pytest.raises(StoreError, match="no socket"), second:
        pass
    assert (tmp_path / CONTROL_SOCKET).read_text() == "mine"


def test_the_path_may_be_longer_than_a_socket_name(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir()
    with ControlledManager(directory) as controlled, controlled.client() as client:
        assert client.queues() == []


def test_a_directory_that_is_not_there_is_a_named_error(tmp_path: Path) -> None:
    server = ControlledManager(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="cannot listen"), server:
        pass


def test_a_server_that_never_started_can_be_stopped() -> None:
    asyncio.run(ControlServer().stop())


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_signals_stay_with_the_service(tmp_path: Path, factory: object) -> None:
    # given a service that handles a signal of its own
    caught: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, caught.append, signal.SIGTERM)
        manager, server = aio.QueueManager(threaded_engine()), ControlServer()
        await server.start(tmp_path / CONTROL_SOCKET, create_app(manager))
        # when the signal comes
        os.kill(os.getpid(), signal.SIGTERM)
        while not caught:
            await asyncio.sleep(0.001)
        # then the server goes on
        client = ControlClient(tmp_path / CONTROL_SOCKET)
        assert await asyncio.to_thread(client.queues) == []
        client.close()
        await server.stop()
        await manager.close()

    with asyncio.Runner(loop_factory=factory) as runner:  # type: ignore[arg-type]  # either
        runner.run(main())
    with pytest.raises(UnreachableError):
        ControlClient(tmp_path / CONTROL_SOCKET).status()
