"""Reading the configuration again: what is safe is applied, the rest is named."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest

from falconmq import Message
from falconmq.client import ControlClient
from falconmq.errors import FalconMQError, ResourceError
from falconmq.service.configuration import load
from falconmq.service.daemon import Service
from falconmq.service.process import serve
from falconmq.service.tables import ConfigurationError
from tests.service.services import ORDERS, PATIENCE, loopback, run, until
from tests.service.test_daemon import notifications, process
from tests.service.test_http_tls import anybody, shown_name, write_pair

BERLIN = UUID("6b29fc40-ca47-1067-b31d-00dd010662da")


@pytest.fixture(autouse=True)
def log_level() -> Iterator[None]:
    """Reloads set the level of the whole process."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


class Configured:
    """A configuration file that tests change."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "falconmq.toml"
        self.data = directory / "data"
        self.bind = loopback()

    def write(self, text: str = "", *, manager: str = "") -> None:
        self.path.write_text(
            f'[manager]\ndata = "data"\nbind = "{self.bind}"\n{manager}\n{text}', "utf-8"
        )


@pytest.fixture
def file(tmp_path: Path) -> Configured:
    return Configured(tmp_path)


@asynccontextmanager
async def served(file: Configured) -> AsyncIterator[Service]:
    service = await Service.start(load(file.path, environment={}))
    try:
        yield service
    finally:
        await service.stop()


def test_what_can_be_applied_is_and_the_rest_waits_for_a_restart(file: Configured) -> None:
    file.write("[http]\nport = 0\n")

    async def main() -> None:
        async with served(file) as service:
            transport = service.configuration.transport
            file.write(
                '[http]\nport = 0\nloopback_role = "read"\nrequest_bytes = 70000\n'
                '[log]\nlevel = "debug"\n[transport]\ntry_connect_interval = 7\nping_port = 9\n'
                '[hosts]\nSALES02 = "10.9.8.7"\n'
                f'[[computers]]\nid = "{BERLIN}"\nname = "BERLIN"\naddress = "10.1.0.4"\n',
                manager="quota_kilobytes = 5\nport = 1802",
            )
            report = (await service.reload()).to_json()
            outcomes = {change["name"]: change["outcome"] for change in report["changes"]}
            assert outcomes == {
                "manager.port": "needs restart",
                "manager.quota_kilobytes": "applied",
                "transport.try_connect_interval": "applied",
                "transport.ping_port": "needs restart",
                "http.loopback_role": "applied",
                "http.request_bytes": "applied",
                "log.level": "applied",
                "hosts": "applied",
                "computers": "applied",
            }
            assert report["changes"][0]["old"] == 1801
            assert report["changes"][0]["new"] == 1802
            json.dumps(report)
            # what is applied is in effect
            assert service.engine.core.settings.quota_kilobytes == 5
            assert transport.try_connect_interval == 7
            assert service.transport.settings is transport
            assert logging.getLogger().level == logging.DEBUG
            assert service.network.resolver.hosts == {"sales02": ("10.9.8.7",)}
            assert service.transport.router.get_next_hops(BERLIN)[0].host_name == "10.1.0.4"
            # and what is not is still what it was
            assert transport.ping_port == 3527
            assert service.configuration.manager.port == 1801
            assert "manager.port" not in service.configuration.sources
            # a second reload has only that to say
            again = (await service.reload()).to_json()
            assert [change["name"] for change in again["changes"]] == [
                "manager.port",
                "transport.ping_port",
            ]

    run(main())


def test_the_quota_of_a_reload_counts(file: Configured) -> None:
    file.write("[http]\nenabled = false\n")

    async def main() -> None:
        async with served(file) as service:
            queue = await service.manager.create_queue(ORDERS)
            await queue.send(Message("x" * 2000))
            file.write("[http]\nenabled = false\n", manager="quota_kilobytes = 1")
            await service.reload()
            with pytest.raises(ResourceError):
                await queue.send(Message("x" * 2000))

    run(main())


def test_a_new_name_of_a_host_leads_to_it(file: Configured) -> None:
    """Messages that wait for a name nobody knows go on when the file names it."""
    file.write("[http]\nenabled = false\n[transport]\ntry_connect_interval = 0.05\n")
    other = Configured(file.path.parent / "other")
    other.path.parent.mkdir()
    other.write(f"[http]\nenabled = false\n[[queues]]\nname = '{ORDERS}'\n",
                manager='local_names = ["nowhere.invalid"]')  # fmt: skip

    async def main() -> None:
        async with served(file) as sender, served(other) as receiver:
            queue = await sender.manager.queue(r"DIRECT=OS:nowhere.invalid\private$\orders")
            await queue.send(Message("hello"))
            (outgoing,) = sender.engine.core.outgoing.values()
            await until(lambda: bool(outgoing.connection_history))
            file.write(
                "[http]\nenabled = false\n[transport]\ntry_connect_interval = 0.05\n"
                f'[hosts]\n"nowhere.invalid" = "{other.bind}"\n'
            )
            await sender.reload()
            inbox = await receiver.manager.queue(ORDERS)
            assert (await inbox.receive(timeout=PATIENCE)).text == "hello"

    run(main())


@pytest.mark.parametrize(
    "text",
    [
        "[http]\nport = 'x'\n[log]\nlevel = 'debug'\n",
        "[log",
        f"[[queues]]\nname = '{ORDERS}'\ntransactional = true\n[log]\nlevel = 'debug'\n",
    ],
)
def test_a_mistake_changes_nothing(file: Configured, text: str) -> None:
    file.write(f"[http]\nenabled = false\n[[queues]]\nname = '{ORDERS}'\n")

    async def main() -> None:
        async with served(file) as service:
            before, level = service.configuration, logging.getLogger().level
            file.write(text, manager="quota_kilobytes = 5")
            with pytest.raises(ConfigurationError):
                await service.reload()
            assert service.configuration is before
            assert logging.getLogger().level == level
            assert service.engine.core.settings.quota_kilobytes != 5

    run(main())


def test_a_new_certificate_is_shown_unless_something_is_wrong(
    file: Configured, tmp_path: Path
) -> None:
    tls = '[http]\nport = 0\ncertificate = "server.pem"\nkey = "server.key"\n'
    file.write(f"{tls}[[queues]]\nname = '{ORDERS}'\n")
    write_pair(tmp_path, "first")

    async def main() -> None:
        async with served(file) as service:
            write_pair(tmp_path, "second")
            # a mistake, here in the kind of a queue, leaves the certificate alone
            file.write(f"{tls}[[queues]]\nname = '{ORDERS}'\ntransactional = true\n")
            with pytest.raises(ConfigurationError):
                await service.reload()
            assert await asyncio.to_thread(_shown, service) == "first"
            file.write(f"{tls}[[queues]]\nname = '{ORDERS}'\n")
            await service.reload()
            assert await asyncio.to_thread(_shown, service) == "second"
            # and a certificate that is none leaves everything else alone
            (tmp_path / "server.pem").write_text("nonsense")
            file.write(tls, manager="quota_kilobytes = 5")
            with pytest.raises(ConfigurationError):
                await service.reload()
            assert service.engine.core.settings.quota_kilobytes != 5

    run(main())


def _shown(service: Service) -> str:
    assert service.http is not None
    address = urlsplit(service.http.url)
    place = (str(address.hostname), int(address.port or 0))
    with (
        socket.create_connection(place, timeout=PATIENCE) as plain,
        anybody().wrap_socket(plain) as connection,
    ):
        return shown_name(connection)


def test_queues_are_declared_by_a_reload_too(file: Configured) -> None:
    file.write("[http]\nenabled = false\n")

    async def main() -> None:
        async with served(file) as service:
            file.write(f"[http]\nenabled = false\n[[queues]]\nname = '{ORDERS}'\nlabel = 'x'\n")
            report = await service.reload()
            assert [queue.to_json() for queue in report.queues] == [
                {"name": ORDERS, "outcome": "created", "changes": []}
            ]
            assert (await service.manager.queue(ORDERS)).label == "x"

    run(main())


def test_a_configuration_that_was_given_without_a_file_can_be_reloaded(tmp_path: Path) -> None:
    async def main() -> None:
        chosen = load(
            data=tmp_path / "data",
            bind=loopback(),
            name="SALES01",
            environment={"FALCONMQ_HTTP_ENABLED": "false"},
        )
        service = await Service.start(chosen)
        report = await service.reload()
        await service.stop()
        assert report.changes == ()

    run(main())


def test_the_api_shows_and_reloads_the_configuration(file: Configured) -> None:
    file.write('[http]\nport = 0\nloopback_role = "manage"\n')

    async def main() -> None:
        async with served(file) as service:
            assert service.http is not None
            async with httpx.AsyncClient(base_url=f"{service.http.url}/api/v1") as client:
                shown = (await client.get("/configuration")).json()
                by_name = {setting["name"]: setting for setting in shown["settings"]}
                assert shown["source"] == str(file.path)
                assert by_name["manager.bind"]["value"] == file.bind
                assert by_name["manager.bind"]["source"] == "file"
                assert by_name["manager.local_names"]["value"] == []
                assert by_name["http.port"]["reloads"] is False
                file.write(
                    '[http]\nport = 0\nloopback_role = "read"\n'
                    f'[[computers]]\nid = "{BERLIN}"\n[hosts]\nA = "10.0.0.1"\n'
                )
                done = await client.post("/configuration/reload")
                assert done.status_code == 200, done.text
                changes = {change["name"]: change for change in done.json()["changes"]}
                assert changes["http.loopback_role"] == {
                    "name": "http.loopback_role",
                    "outcome": "applied",
                    "old": "manage",
                    "new": "read",
                }
                assert changes["hosts"]["new"] == {"a": ["10.0.0.1"]}
                assert changes["computers"]["new"][0]["id"] == str(BERLIN)
                # the caller has lost the role with it, and still sees the new configuration
                assert (await client.post("/configuration/reload")).status_code == 403
                shown = (await client.get("/configuration")).json()
                by_name = {setting["name"]: setting for setting in shown["settings"]}
                assert by_name["http.loopback_role"]["value"] == "read"

    run(main())


def test_the_api_says_what_is_wrong_with_a_configuration(file: Configured) -> None:
    file.write("[http]\nenabled = false\n")

    async def main() -> None:
        async with served(file):
            file.write("[transport]\nwindow_sise = 1\n")
            with (
                ControlClient(file.data / "control.sock") as client,
                pytest.raises(FalconMQError) as caught,
            ):
                await asyncio.to_thread(client._post, "/configuration/reload")
            assert "transport.window_sise is no setting" in str(caught.value)
            assert caught.value.hint == "did you mean window_size?"

    run(main())


def test_sighup_reloads_and_tells_systemd(tmp_path: Path) -> None:
    notify, data, bind = tmp_path / "notify", tmp_path / "data", loopback()
    environment = {"NOTIFY_SOCKET": str(notify), "FALCONMQ_HTTP_ENABLED": "false"}
    with notifications(notify) as receiver, process(data, bind, **environment) as own:
        assert receiver.recv(1000).startswith(b"READY=1")
        own.send_signal(signal.SIGHUP)
        first = receiver.recv(1000).decode().splitlines()
        assert first[0] == "RELOADING=1"
        assert first[1].startswith("MONOTONIC_USEC=")
        assert receiver.recv(1000).decode() == f"READY=1\nSTATUS=listening on {bind}:1801"
        own.send_signal(signal.SIGTERM)
        _, log = own.communicate(timeout=PATIENCE)
    assert own.returncode == 0
    assert "configuration reloaded applied=0 needs_restart=0" in log


def test_a_broken_file_at_sighup_is_reported_and_the_service_goes_on(
    file: Configured, caplog: pytest.LogCaptureFixture
) -> None:
    file.write("[http]\nenabled = false\n")

    async def main() -> None:
        ready = asyncio.Event()
        chosen = load(file.path, environment={})
        task = asyncio.create_task(serve(chosen, ready=lambda _: ready.set()))
        await ready.wait()
        file.write("[log\n")
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: "configuration not reloaded" in caplog.text)
        file.write("[http]\nenabled = false\n")
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: "configuration reloaded" in caplog.text)
        os.kill(os.getpid(), signal.SIGTERM)
        assert await task == 0

    with caplog.at_level(logging.INFO):
        run(main())
    assert "nothing was changed" in caplog.text
