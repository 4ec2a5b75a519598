"""Two queue managers of one directory: signed and private messages, and nobody carried a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from falconmq import AuthenticationLevel, Message, PrivacyLevel, aio
from falconmq.client.control import ControlClient
from falconmq.client.problems import ServiceError
from falconmq.clock import VirtualClock
from falconmq.directory import presence
from falconmq.directory.base import DirectoryRefusedError
from falconmq.directory.schema import ObjectTable
from falconmq.errors import FalconMQError
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.path_names import path_question
from falconmq.manager.states import DirectoryResult, QueuePrivacy
from falconmq.names import PathName, PublicFormatName
from falconmq.security.key_store import KeyStore
from falconmq.service.configuration import (
    Configuration,
    DirectorySection,
    HttpSection,
    ManagerSection,
)
from falconmq.service.daemon import Service
from falconmq.service.directory import hub, publishing
from falconmq.transport import sealing
from falconmq.transport.settings import TransportSettings
from falconmq.wire.user_sign_certs import UserSignCerts
from tests.directory.test_cached import MoodyDirectory
from tests.security.users import ANNA
from tests.service.asking import queue_path
from tests.service.services import loopback, until
from tests.service.why.situations import until_because

SECRET = "for your eyes only"
WAITED = "messages that waited for the directory"
PATIENCE = 60.0  # keys are made, and the computer may be busy


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 2 * PATIENCE))


class Shared(MoodyDirectory):
    """One directory for both: in memory, and gone when the test says so."""

    def __init__(self) -> None:
        super().__init__(VirtualClock())
        self.create("Enterprise", {"name": "shop.test"})
        self.create("Site", {"name": "Berlin"})

    def _write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        if self.is_gone:
            result = DirectoryResult.DIRECTORY_NOT_CONNECTED
            raise DirectoryRefusedError(result, "the server is gone")
        super()._write(table, identifier, changes)


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> Shared:
    """What every service finds behind its `[directory]`."""
    monkeypatch.setattr("falconmq.security.certificate_store.USER_KEY_BITS", 1024)
    directory = Shared()
    monkeypatch.setattr(hub, "open_back_end", lambda *_: directory)
    return directory


def configuration(name: str, data: Path) -> Configuration:
    """A queue manager on an address of its own, under which the directory knows it."""
    address = loopback()
    data.mkdir(mode=0o700)
    section = DirectorySection("remote", ("http://shared",), host_name=address, timeout_seconds=20)
    return Configuration(
        ManagerSection(name, data, address),
        TransportSettings(try_connect_interval=0.05),
        http=HttpSection(enabled=False),
        directory=section,
    )


@asynccontextmanager
async def two_services(at: Path) -> AsyncIterator[tuple[Service, Service]]:
    """North sends, south has the queue."""
    north = await Service.start(configuration("NORTH", at / "north"))
    try:
        south = await Service.start(configuration("SOUTH", at / "south"))
        try:
            await north.hub.refresh()  # it has not heard of the other yet
            yield north, south
        finally:
            await south.stop()
    finally:
        await north.stop()


async def asked(service: Service, method: str, path: str, body: Any = None) -> Any:
    """A request over the control socket of a service that runs in this very loop."""

    def ask() -> Any:
        with ControlClient(service.configuration.control_socket) as client:
            return client.request(method, path, body)

    return await asyncio.to_thread(ask)


def user_certificates(shared: Shared) -> list[bytes]:
    _, row = shared.read("User", equals("security_identifier", ANNA.encode()), None)
    data = row.get("certificates") or bytes(4)
    assert isinstance(data, bytes)
    return [each.certificate for each in UserSignCerts.decode(data).certificates]


def machine_keys(shared: Shared, service: Service) -> object:
    question = equals("identifier", service.engine.core.identifier)
    return shared.read("QueueManager", question, None)[1]["public_encryption_keys"]


def problem_of(service: Service, there: aio.Queue) -> str:
    """Why the next message to a queue is not encrypted yet."""
    (queue,) = (
        each
        for each in service.engine.core.outgoing.values()
        if str(each.destination) == str(there.format_name)
    )
    return service.transport.situation(queue).encryption_problem


def private(body: str = SECRET) -> Message:
    return Message(
        body,
        privacy_level=PrivacyLevel.ADVANCED,
        authentication_level=AuthenticationLevel.SIG20,
    )


def test_a_message_to_a_public_queue_is_signed_and_encrypted_without_any_import(
    tmp_path: Path, shared: Shared
) -> None:
    async def main() -> None:
        async with two_services(tmp_path) as (north, south):
            # given a public queue that takes signed and private messages only
            queue = await south.manager.create_queue(
                r"SOUTH\orders", authentication=True, privacy_level=QueuePrivacy.BODY
            )
            # and a certificate of a user, made in the north
            made = await asked(north, "POST", "/certificates", {"user": str(ANNA)})
            assert len(user_certificates(shared)) == 1
            # when a message goes to it, by its public name
            there: aio.Queue = await north.manager.queue(queue.format_name)
            await there.send(private())
            message = await queue.receive(timeout=PATIENCE)
            # then it was encrypted on its way, verified, and is whose it says
            assert message.text == SECRET
            assert message.authentication_level == AuthenticationLevel.SIG20
            assert message.sender_id == ANNA.encode()
            assert north.transport.counters["messages encrypted"] == 1
            # when the south renews its keys, the directory has the new ones at once
            before = machine_keys(shared, south)
            renewed = await asked(south, "POST", "/keys/renew")
            assert (renewed["published"], renewed["publishing_problem"]) == (True, "")
            kept = KeyStore(tmp_path / "south").find()
            assert kept is not None
            assert machine_keys(shared, south) == kept.public_encryption_keys.encode() != before
            assert (await asked(south, "GET", "/keys"))["published"] is True
            await there.send(private("again"))  # for the key that is remembered: it still decrypts
            assert (await queue.receive(timeout=PATIENCE)).text == "again"
            # when the certificate is removed, nobody has it any more
            await asked(north, "DELETE", f"/certificates/{made['id']}")
            assert user_certificates(shared) == []

    run(main())


def test_messages_wait_while_the_directory_is_away_and_nothing_is_done_by_halves(
    tmp_path: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.02)
    monkeypatch.setattr(sealing, "HOLD_SECONDS", 0.02)

    async def main() -> None:
        async with two_services(tmp_path) as (north, south):
            queue = await south.manager.create_queue(r"SOUTH\orders")
            made = await asked(north, "POST", "/certificates", {"user": str(ANNA)})
            there: aio.Queue = await north.manager.queue(queue.format_name)
            assert north.hub.directory is not None
            north.hub.directory.forget("QueueManager", south.engine.core.identifier)
            shared.is_gone = True
            # while it is away, a private message to whom nobody knows the keys of waits
            await there.send(private())
            waits = "the directory is away (the server is gone)"
            await until(lambda: waits in problem_of(north, there))
            found = await until_because(north, str(queue.format_name), "waits-for-keys")
            (cause,) = (each for each in found.causes if each.code == "waits-for-keys")
            assert waits in cause.text
            # certificates neither come nor go
            for method, path, body in (
                ("POST", "/certificates", {"user": f"{ANNA}7"}),
                ("DELETE", f"/certificates/{made['id']}", None),
            ):
                with pytest.raises(FalconMQError):
                    await asked(north, method, path, body)
            listed = (await asked(north, "GET", "/certificates"))["certificates"]
            assert [each["id"] for each in listed] == [made["id"]]
            # keys may be renewed, and say that the directory does not have them yet
            renewed = await asked(south, "POST", "/keys/renew")
            assert renewed["published"] is False
            assert renewed["publishing_problem"]
            # when it is back, the message goes
            shared.is_gone = False
            message = await queue.receive(timeout=PATIENCE)
            assert message.authentication_level == AuthenticationLevel.SIG20
            assert north.transport.counters["messages encrypted"] == 1

    run(main())


def test_keys_that_were_renewed_while_the_directory_was_away_are_published_after_a_restart(
    tmp_path: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.02)
    monkeypatch.setattr(publishing, "RETRY_SECONDS", 0.05)

    async def main() -> None:
        chosen = configuration("SOUTH", tmp_path / "south")
        south = await Service.start(chosen)
        before = machine_keys(shared, south)
        shared.is_gone = True
        await asked(south, "POST", "/keys/renew")
        await south.stop()
        # given a start from what is remembered
        south = await Service.start(chosen)
        try:
            assert (await asked(south, "GET", "/keys"))["published"] is False
            shared.is_gone = False
            kept = KeyStore(tmp_path / "south").keys().public_encryption_keys.encode()
            assert kept != before
            await until(lambda: machine_keys(shared, south) == kept)
            while not (await asked(south, "GET", "/keys"))["published"]:  # a refresh was faster
                assert machine_keys(shared, south) == kept
        finally:
            await south.stop()

    run(main())


def test_nobody_waits_for_a_directory_that_does_not_answer(tmp_path: Path, shared: Shared) -> None:
    async def main() -> None:
        async with two_services(tmp_path) as (north, south):
            queue = await south.manager.create_queue(r"SOUTH\orders")
            others = await south.manager.create_queue(r".\private$\others")
            await asked(north, "POST", "/certificates", {"user": str(ANNA)})
            there: aio.Queue = await north.manager.queue(queue.format_name)
            other: aio.Queue = await north.manager.queue(others.format_name)
            directories = north.hub.directory, south.hub.directory
            for directory in directories:
                assert directory is not None
                directory.forget("QueueManager")
                directory.forget("User")
            # given a directory that takes every question and answers none
            shared.answers.clear()
            try:
                # when a private message waits for the keys of its receiver
                await there.send(private())
                await until(lambda: "is asked" in problem_of(north, there))
                # then everything else goes on: requests, queues, messages to the same computer
                await asked(north, "GET", "/status")
                await asked(north, "POST", "/queues", {"name": r".\private$\new"})
                await other.send(Message("clear"))
                assert (await others.receive(timeout=PATIENCE)).text == "clear"
                # a queue of which nobody has heard is nowhere, until somebody has
                assert north.hub.router is not None
                assert north.hub.router.get_destination_info(PublicFormatName(uuid4())) is None
                # and when a signed one waits at the other side for its sender's certificate
                signed = Message("signed", authentication_level=AuthenticationLevel.SIG20)
                await other.send(signed)
                await until(lambda: south.transport.counters[WAITED] > 0)
                await asked(south, "GET", "/status")
                assert others.count == queue.count == 0
                assert all(each is not None and not each.is_away for each in directories)
            finally:
                shared.answers.set()
            # when it answers, both go on; no session was closed for it
            assert (await queue.receive(timeout=PATIENCE)).text == SECRET
            message = await others.receive(timeout=PATIENCE)
            assert (message.text, message.sender_id) == ("signed", ANNA.encode())
            assert south.transport.counters["sessions closed"] == 0

    run(main())


def test_whoever_changes_something_in_the_directory_finds_out_first_whether_it_answers(
    tmp_path: Path, shared: Shared
) -> None:
    orders, far = queue_path(r".\orders"), PathName.parse(r"south\orders")
    enterprise: tuple[str, Filters] = ("Enterprise", ())
    queue = "Queue", path_question(far)
    grant = {"grant": [{"who": "everyone", "rights": ["receive"]}]}
    requests = [
        ("POST", "/queues", {"name": r".\orders"}, enterprise),
        ("PATCH", orders, {"label": "new"}, enterprise),
        ("PATCH", f"{orders}/permissions", grant, enterprise),
        ("POST", "/keys/renew", None, enterprise),
        ("DELETE", orders, None, enterprise),
        ("GET", f"/why?subject={quote(str(far))}", None, queue),
    ]

    async def main() -> None:
        north = await Service.start(configuration("NORTH", tmp_path / "north"))
        directory = north.hub.directory
        assert directory is not None
        try:
            for method, path, body, question in requests:
                shared.answers.clear()
                asking = asyncio.create_task(asked(north, method, path, body))
                await until(lambda question=question: directory.is_asked(*question))  # type: ignore[misc]
                shared.answers.set()
                if method == "GET":
                    with pytest.raises(ServiceError, match="knows no queue"):
                        await asking
                else:
                    await asking
        finally:
            shared.answers.set()
            await north.stop()

    run(main())
