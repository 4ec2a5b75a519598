"""Encrypted and signed messages between two services, over sockets and with files on the disk."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from falconmq import AuthenticationLevel, Message, PrivacyLevel
from falconmq.manager.access import Principal, acting_as
from falconmq.manager.model import Queue
from falconmq.manager.queues import set_queue_properties
from falconmq.manager.states import QueuePrivacy
from falconmq.names import PrivateFormatName
from falconmq.security.certificate_store import CertificateStore
from falconmq.security.key_store import KeyStore
from falconmq.security.peer_store import PeerKeys, PeerStore
from falconmq.service.configuration import Computer, ConfiguredPrincipal, SecuritySection, load
from falconmq.service.daemon import Service
from falconmq.service.registered import FileRegistry
from falconmq.service.tables import ConfigurationError
from falconmq.transport.protection import Protection
from falconmq.wire.message_class import MessageClass
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.sid import Sid
from tests.security.known import CERTIFICATE
from tests.service.services import ORDERS, PATIENCE, configured, loopback, run, until
from tests.service.why.situations import codes, until_because, why
from tests.transport.protected import KEYS, PUBLIC

ANNA = Sid.parse("S-1-5-21-7-8-9-1001")
STAFF = Sid.parse("S-1-5-21-7-8-9-513")
PEER = UUID("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0")
SECRET: dict[str, Any] = {"privacy_level": PrivacyLevel.ADVANCED, "recoverable": True}
BAD_SIGNATURE = MessageClass.NACK_BAD_SIGNATURE


class Quiet(Service):
    """Without control socket and HTTP port."""

    async def open_doors(self) -> None:
        pass


@dataclass
class Two:
    """Two services, and a queue at the second."""

    here: Service
    there: Service
    queue: Queue

    @property
    def name(self) -> str:
        core = self.there.engine.core
        return str(PrivateFormatName(core.identifier, self.queue.private_queue_number))

    async def send(self, body: str, **properties: Any) -> str:
        queue = await self.here.manager.queue(self.name)
        with acting_as(Principal("anna", ANNA)):
            return str(await queue.send(Message(body, **properties)))

    async def received(self) -> Message:
        queue = await self.there.manager.queue(ORDERS)
        return await queue.receive(timeout=PATIENCE)

    def import_keys(self) -> None:
        """What `falconmq key export` there and `falconmq key import` here do."""
        keys = KeyStore(directory(self.there)).keys()
        identifier = self.there.engine.core.identifier
        PeerStore(directory(self.here)).add(PeerKeys.of(identifier, "THERE", keys))

    def let(self, **properties: Any) -> None:
        core = self.there.engine.core
        self.there.host.run(lambda: set_queue_properties(core, self.queue, **properties))


def directory(service: Service) -> Path:
    return service.configuration.manager.data


def protection(service: Service) -> Protection:
    assert service.transport.protection is not None
    return service.transport.protection


@asynccontextmanager
async def two(tmp_path: Path, **security: Any) -> AsyncIterator[Two]:
    for name in ("here", "there"):
        (tmp_path / name).mkdir(mode=0o700)
        KeyStore(tmp_path / name).keys()
    staff = ConfiguredPrincipal(Principal("anna", ANNA, frozenset({STAFF})))
    settings = replace(
        configured(loopback(), tmp_path / "there"),
        principals=(staff,),
        security=SecuritySection(**security),
    )
    there = await Quiet.start(settings)
    try:
        await there.manager.create_queue(ORDERS)
        core = there.engine.core
        (queue,) = [q for q in core.private_numbers.values() if q.path_name.name == "orders"]
        known = Computer(core.identifier, "THERE", settings.manager.bind)
        chosen = replace(configured(loopback(), tmp_path / "here"), computers=(known,))
        here = await Quiet.start(chosen)
        try:
            yield Two(here, there, queue)
        finally:
            await here.stop()
    finally:
        await there.stop()


def test_an_encrypted_message_arrives_in_the_clear_where_only_such_are_taken(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with two(tmp_path) as on:
            on.import_keys()
            on.let(privacy_level=QueuePrivacy.BODY)
            await on.send("secret", **SECRET)
            message = await on.received()
            assert message.text == "secret"
            assert message.privacy_level is PrivacyLevel.ADVANCED
            assert on.here.transport.counters["messages encrypted"] == 1
            # clear ones are not taken
            await on.send("open")
            refusals = on.there.transport.refusals
            await until(lambda: refusals[MessageClass.NACK_BAD_ENCRYPTION] == 1)

    run(main())


def test_without_the_keys_of_the_other_side_it_is_said_why(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as on:
            id = await on.send("secret", **SECRET)
            found = await until_because(on.here, on.name, "not-encrypted")
            cause = next(each for each in found.causes if each.code == "not-encrypted")
            assert "are not known" in cause.text
            assert "falconmq key import" in cause.hint
            assert "NACK_COULD_NOT_ENCRYPT" in (await why(on.here, id)).summary
            # the file is looked at again when it changes
            on.import_keys()
            await on.send("secret", **SECRET)
            assert (await on.received()).text == "secret"
            assert "not-encrypted" not in codes(await why(on.here, on.name))

    run(main())


def test_a_signed_message_is_taken_from_who_may_send(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as on:
            on.import_keys()
            store = CertificateStore(directory(on.here))
            made = store.create(ANNA)
            signing: dict[str, Any] = {"authentication_level": AuthenticationLevel.SIG20}
            on.let(authentication=True, security=parse_sddl(f"D:(A;;0x4;;;{STAFF})"))
            # nobody there knows the certificate
            await on.send("1", **signing)
            refusals = on.there.transport.refusals
            await until(lambda: refusals[BAD_SIGNATURE] == 1)
            # it is registered: the sender is known, and its groups are
            users = CertificateStore(directory(on.there))
            registered = users.register(ANNA, made.certificate.data)
            await on.send("2", **signing)
            message = await on.received()
            assert (message.text, message.is_authenticated) == ("2", True)
            assert message.sender_id == ANNA.encode()
            await on.send("3", **signing, **SECRET)
            message = await on.received()
            assert (message.text, message.is_authenticated) == ("3", True)
            # it is removed: that counts at once
            users.remove(registered.identifier)
            await on.send("4", **signing)
            await until(lambda: refusals[BAD_SIGNATURE] == 2)

    run(main())


def test_new_keys_are_used_at_once_and_old_ones_still_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as on:
            on.import_keys()
            await on.send("1", **SECRET)
            assert (await on.received()).text == "1"
            now = on.there.engine.core.clock.time()
            protection(on.there).use_keys(KeyStore(directory(on.there)).renew(now))
            protection(on.here).sender.cache.clear()  # as after ten minutes
            await on.send("2", **SECRET)
            assert (await on.received()).text == "2"
            on.import_keys()
            await on.send("3", **SECRET)
            assert (await on.received()).text == "3"
            assert len(protection(on.there).receiver.cache) == 3

    run(main())


def test_keys_are_there_before_anybody_is_let_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with two(tmp_path) as on:
            assert protection(on.there).receiver.keys

    run(main())


def test_keys_that_others_may_read_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with two(tmp_path) as on:
            on.import_keys()
            (directory(on.here) / "peer-keys.json").chmod(0o644)
            with caplog.at_level(logging.ERROR, "falconmq.service"):
                await on.send("secret", **SECRET)
                await until_because(on.here, on.name, "not-encrypted")
            assert any("peer-keys.json has mode 0644" in text for text in caplog.messages)

    run(main())


# The configuration


def test_what_may_be_weak_is_read_and_applied_by_a_reload(tmp_path: Path) -> None:
    path = tmp_path / "falconmq.toml"
    head = f"[manager]\nname = 'A'\nbind = '{loopback()}'\ndata = 'data'\n[http]\nenabled = false\n"
    weak = (
        f"[security]\nencrypt_direct = true\nweak_algorithms = "
        f"['OldPC', '{{{PEER}}}', '.\\private$\\Orders', 'SALES01\\private$\\bills']\n"
        f"[[principals]]\nname = 'anna'\nsid = '{ANNA}'\ngroups = ['{STAFF}']\n"
        f"[[computers]]\nid = '{PEER}'\nname = 'berlin'\naddress = '10.0.0.1'\n"
    )

    async def main() -> None:
        path.write_text(head)
        service = await Quiet.start(load(path, environment={}))
        try:
            settings = protection(service).settings
            assert (settings.weak, settings.encrypt_direct) == (frozenset(), False)
            path.write_text(head + weak)
            await service.reload()
            settings = protection(service).settings
            queues = {r".\private$\orders", r".\private$\bills"}
            assert settings.weak == {"oldpc", str(PEER), *queues}
            assert settings.encrypt_direct
            registry = protection(service).registry
            assert registry.principal_of(ANNA).groups == {STAFF}
            assert registry.name_of(PEER) == "berlin"
        finally:
            await service.stop()

    run(main())


@pytest.mark.parametrize("text", [" ", "{}", r"a\b\c\d", ".\\private$\\"])
def test_what_names_no_queue_and_no_peer_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "falconmq.toml"
    path.write_text(f"[security]\nweak_algorithms = ['ok', '{text}']\n")
    with pytest.raises(ConfigurationError, match="names of queues and of peers"):
        load(path, environment={})


# The files


def test_a_registry_reads_its_files_again_when_they_have_changed(tmp_path: Path) -> None:
    registry = FileRegistry(tmp_path)
    before = registry.peers_version(), registry.users_version()
    assert registry.keys_of(PEER) is None
    assert registry.signing_keys_of(PEER) is None
    assert registry.name_of(PEER) == ""
    assert registry.certificates_of(ANNA).certificates == []
    peer = PeerKeys.of(PEER, "BERLIN", KEYS)
    PeerStore(tmp_path).add(peer)
    made = CertificateStore(tmp_path).register(ANNA, CERTIFICATE)
    after = registry.peers_version(), registry.users_version()
    assert (before[0] != after[0], before[1] != after[1]) == (True, True)
    assert registry.keys_of(PEER) == PUBLIC
    assert registry.signing_keys_of(PEER) == peer.signing
    assert registry.name_of(PEER) == "BERLIN"
    (found,) = registry.certificates_of(ANNA).certificates
    assert found.certificate == CERTIFICATE
    assert registry.principal_of(ANNA) == Principal(str(ANNA), ANNA)
    PeerStore(tmp_path).remove(PEER)
    CertificateStore(tmp_path).remove(made.identifier)
    assert registry.keys_of(PEER) is None
    assert registry.certificates_of(ANNA).certificates == []
