"""Keys and certificates from the directory: found, renewed, and not known while it is away."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from falconmq.clock import VirtualClock
from falconmq.directory import presence
from falconmq.directory.cached import CachedDirectory
from falconmq.security import rsa
from falconmq.security.certificate_store import CertificateStore
from falconmq.security.certificates import sign_certs
from falconmq.security.keys import ManagerKeys, public_keys
from falconmq.security.peer_store import PeerKeys, PeerStore
from falconmq.security.problems import RegistryAskedError, RegistryAwayError
from falconmq.security.providers import ADVANCED, BASE, ENHANCED
from falconmq.service.directory.registry import (
    STRANGERS_MAX,
    STRANGERS_PER_SECOND,
    DirectoryRegistry,
    use_directory,
)
from falconmq.service.registered import FileRegistry
from falconmq.transport.protection import Protection
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import certificate_digest
from tests.directory.test_cached import PATIENCE, MoodyDirectory
from tests.security import known
from tests.security.users import ANNA, BERT, openssl

MANAGER = UUID("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0")
PAIRS = {BASE: known.PAIR_512, ENHANCED: known.PAIR_1024, ADVANCED: known.PAIR_1024}
KEYS = ManagerKeys(PAIRS, PAIRS)
NEWER = rsa.generate(1024, Random(7))
LIST = public_keys({ADVANCED: NEWER.public})


class Patient:
    """A registry, and somebody who comes again when the directory has answered."""

    def __init__(self, registry: DirectoryRegistry, answered: threading.Event) -> None:
        self._registry, self._answered = registry, answered

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._registry, name)

        def ask(*args: Any, **kwargs: Any) -> Any:
            for _ in range(3):
                try:
                    return method(*args, **kwargs)
                except RegistryAskedError:
                    assert self._answered.wait(PATIENCE)
                    self._answered.clear()
                    kwargs.pop("again", None)  # whoever comes again begins at the beginning
            raise AssertionError("it is asked for ever")

        return ask


class Town:
    """A directory with one queue manager and one user, and the registry of another one."""

    def __init__(self, directory: MoodyDirectory, cache: CachedDirectory, data: Path) -> None:
        self.moody, self.cache, self.data = directory, cache, data
        self.now = 1_000.0
        self.answered = threading.Event()
        self.asked = DirectoryRegistry(
            FileRegistry(data), cache, lambda: self.now, answered=self.answered.set
        )
        self.registry = Patient(self.asked, self.answered)
        directory.create("Enterprise", {"name": "example.com"})
        _, site = directory.create("Site", {"name": "Berlin"})
        machine = {
            "identifier": MANAGER,
            "computer_name": "SALES02",
            "site_identifiers": [site],
            "public_encryption_keys": KEYS.public_encryption_keys.encode(),
            "public_signing_keys": KEYS.public_signing_keys.encode(),
        }
        directory.create("QueueManager", machine)
        _, self.anna = directory.create("User", _user(ANNA, known.CERTIFICATE))

    def change_machine(self, **values: object) -> None:
        """Somebody else does."""
        assert self.moody.write("QueueManager", {"identifier": MANAGER, **values}).value

    def go_away(self) -> None:
        self.moody.is_gone = True
        self.cache.read("Site", (), None)
        assert self.cache.is_away

    def has(self, user: Sid = ANNA, certificate: bytes = known.CERTIFICATE) -> bool:
        return self.registry.find_certificate(user, certificate) is not None


def _user(owner: Sid, *certificates: bytes) -> dict[str, object]:
    entries = sign_certs((bytes(16), each) for each in certificates)
    return {
        "security_identifier": owner.encode(),
        "certificates": entries.encode(),
        "certificate_digests": [certificate_digest(each) for each in certificates],
    }


@pytest.fixture(params=["local", "elsewhere"])
def town(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Town]:
    """Both answer alike, but nobody waits for the one that is elsewhere."""
    monkeypatch.setattr(presence, "FIRST_PROBE_SECONDS", 0.01)
    monkeypatch.setattr(presence, "LONGEST_PROBE_SECONDS", 0.02)
    clock = VirtualClock()
    moody = MoodyDirectory(clock)
    is_local = request.param == "local"
    cache = CachedDirectory(
        moody, clock, cache_seconds=300.0, timeout_seconds=20.0, is_local=is_local
    )
    yield Town(moody, cache, tmp_path)
    cache.close()


@pytest.fixture
def away_town(tmp_path: Path) -> Iterator[Town]:
    """Its directory is elsewhere."""
    clock = VirtualClock()
    moody = MoodyDirectory(clock)
    cache = CachedDirectory(moody, clock, cache_seconds=0.0, timeout_seconds=PATIENCE)
    found = Town(moody, cache, tmp_path)
    yield found
    moody.answers.set()
    cache.close()


@pytest.fixture(scope="module")
def other_certificate(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    at = tmp_path_factory.mktemp("other")
    openssl(
        *("req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj", "/CN=other"),
        *("-keyout", at / "key.pem", "-outform", "DER", "-out", at / "other.cer"),
    )
    return (at / "other.cer").read_bytes()


@pytest.mark.requirement("QB-3.1.7.1.5-03", "QB-3.1.5.8.3-11", "QB-3.1.5.8.3-12")
def test_what_no_file_knows_the_directory_is_asked_for_once(town: Town) -> None:
    asked = town.moody.asked
    for _ in range(3):
        assert town.registry.keys_of(MANAGER) == {p: pair.public for p, pair in PAIRS.items()}
        assert town.registry.signing_keys_of(MANAGER) == KEYS.public_signing_keys
        assert town.registry.name_of(MANAGER) == "SALES02"
        assert town.has()
    assert town.moody.asked == asked + 2
    assert town.registry.principal_of(ANNA).user == ANNA
    # nobody, and somebody without keys
    assert town.registry.keys_of(UUID(int=7)) is None
    assert town.registry.signing_keys_of(UUID(int=7)) is None
    assert town.registry.name_of(UUID(int=7)) == ""
    assert not town.has(BERT)
    town.change_machine(public_encryption_keys=b"", public_signing_keys=b"")
    town.cache.forget()
    assert town.registry.keys_of(MANAGER) is None
    assert town.registry.signing_keys_of(MANAGER) is None


def test_what_an_administrator_imported_counts_more(town: Town, other_certificate: bytes) -> None:
    peer = PeerKeys.of(MANAGER, "IMPORTED", ManagerKeys({**PAIRS, ADVANCED: NEWER}, PAIRS))
    PeerStore(town.data).add(peer)
    CertificateStore(town.data).register(ANNA, other_certificate)
    asked = town.moody.asked
    keys = town.registry.keys_of(MANAGER)
    assert keys is not None
    assert keys[ADVANCED] == NEWER.public
    assert town.registry.name_of(MANAGER) == "IMPORTED"
    assert town.registry.signing_keys_of(MANAGER) == peer.signing
    assert town.registry.signing_keys_of(MANAGER, again=True) is None
    assert town.has(certificate=other_certificate)
    assert town.moody.asked == asked
    assert town.has()  # the directory's counts as well
    assert not town.has(BERT, other_certificate)


def test_versions_change_with_what_the_directory_says(town: Town, other_certificate: bytes) -> None:
    town.registry.keys_of(MANAGER)
    assert town.has()
    peers, users = town.registry.peers_version(), town.registry.users_version()
    town.cache.forget()
    town.registry.keys_of(MANAGER)
    assert town.has()
    assert (peers, users) == (town.registry.peers_version(), town.registry.users_version())
    town.change_machine(public_encryption_keys=LIST.encode())
    town.cache.forget()
    assert town.registry.keys_of(MANAGER) == {ADVANCED: NEWER.public}
    assert town.registry.peers_version() != peers
    assert town.registry.users_version() == users
    town.moody.write("User", {"identifier": town.anna, **_changes(other_certificate)})
    town.cache.forget()
    assert not town.has()
    assert town.registry.users_version() != users


def _changes(*certificates: bytes) -> dict[str, object]:
    row = _user(ANNA, *certificates)
    del row["security_identifier"]
    return row


def test_an_answer_that_does_not_fit_is_asked_for_again(
    town: Town, other_certificate: bytes
) -> None:
    # given answers that are remembered, and what has changed since
    assert town.registry.signing_keys_of(MANAGER) == KEYS.public_signing_keys
    assert town.has()
    town.change_machine(public_signing_keys=LIST.encode())
    town.moody.write("User", {"identifier": town.anna, **_changes(known.CERTIFICATE, NO_ONES)})
    # then the directory is asked anew by whoever finds that they do not fit
    assert town.registry.signing_keys_of(MANAGER) == KEYS.public_signing_keys
    assert town.registry.signing_keys_of(MANAGER, again=True) == LIST
    assert town.has(certificate=NO_ONES)
    assert not town.has(certificate=other_certificate)
    # also about a user of whom it had said that there is none
    assert not town.has(BERT)
    town.moody.create("User", _user(BERT, known.CERTIFICATE))
    assert town.has(BERT)


NO_ONES = b"certificates are compared, not read"


def test_queue_managers_may_publish_certificates_to_sign_with(
    town: Town, other_certificate: bytes
) -> None:
    # guide 3.2: some directories have MQUSERSIGNCERTS there
    entries = sign_certs(
        (bytes(16), each) for each in (known.CERTIFICATE, NO_ONES, other_certificate)
    )
    town.change_machine(public_signing_keys=entries.encode())
    found = town.registry.signing_keys_of(MANAGER)
    assert found is not None
    assert found.keys[0].public_key.modulus == known.PAIR_1024.modulus
    assert len(found.keys) == 2


def test_what_cannot_be_read_is_as_good_as_nothing(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    town.change_machine(public_encryption_keys=b"\1\2\3", public_signing_keys=b"\1\2\3")
    town.moody.write("User", {"identifier": town.anna, "certificates": b"\1\2\3"})
    with caplog.at_level(logging.WARNING, "falconmq.directory"):
        assert town.registry.keys_of(MANAGER) is None
        assert town.registry.signing_keys_of(MANAGER) is None
        assert not town.has()
    assert "public_encryption_keys of CN=msmq,CN=SALES02" in caplog.text


# While it is away


def test_what_was_known_is_known_while_the_directory_is_away(
    town: Town, other_certificate: bytes
) -> None:
    keys, signing = town.registry.keys_of(MANAGER), town.registry.signing_keys_of(MANAGER)
    assert town.has()
    town.go_away()
    assert town.registry.keys_of(MANAGER) == keys
    assert town.registry.signing_keys_of(MANAGER) == signing
    assert town.registry.name_of(MANAGER) == "SALES02"
    assert town.has()
    # but what does not fit may have changed since: nobody can say
    with pytest.raises(RegistryAwayError):
        town.registry.signing_keys_of(MANAGER, again=True)
    with pytest.raises(RegistryAwayError):
        town.has(certificate=other_certificate)
    # and asking for it costs nothing of what is known
    assert town.registry.signing_keys_of(MANAGER) == signing
    assert town.has()


def test_nobody_knows_a_stranger_while_the_directory_is_away(town: Town) -> None:
    town.moody.is_gone = True
    for ask in (town.registry.keys_of, town.registry.signing_keys_of):
        with pytest.raises(RegistryAwayError, match="the directory is away") as refused:
            ask(MANAGER)
    assert refused.value.since == town.cache.away_since
    assert "falconmq directory status" in refused.value.hint
    with pytest.raises(RegistryAwayError, match=str(ANNA)):
        town.has()
    assert town.registry.name_of(MANAGER) == ""


def test_half_of_an_object_is_no_answer(town: Town) -> None:
    # given what a map of ways remembers of a queue manager: no keys
    town.cache.know([("QueueManager", {"identifier": MANAGER, "computer_name": "SALES02"})])
    town.go_away()
    with pytest.raises(RegistryAwayError):
        town.registry.keys_of(MANAGER)


def test_strangers_do_not_make_us_ask_all_day(town: Town) -> None:
    asked = town.moody.asked
    for number in range(STRANGERS_MAX):
        assert town.registry.keys_of(UUID(int=number + 1)) is None
    assert town.moody.asked == asked + STRANGERS_MAX
    with pytest.raises(RegistryAwayError, match="too many"):
        town.registry.keys_of(UUID(int=999))
    assert town.moody.asked == asked + STRANGERS_MAX
    # it goes on with time, and whom we know is not concerned
    town.now += 1 / STRANGERS_PER_SECOND
    assert town.registry.keys_of(MANAGER) is not None
    assert town.registry.keys_of(MANAGER) is not None


def test_a_transport_asks_the_directory_while_it_is_part_of_one(town: Town) -> None:
    files = FileRegistry(town.data)
    protection = Protection(files, lambda: 0.0)
    for _ in range(2):
        use_directory(protection, town.cache)
        registry: object = protection.registry
        assert isinstance(registry, DirectoryRegistry)
        assert (registry.files, registry.directory) == (files, town.cache)
    use_directory(protection, None)
    registry = protection.registry
    assert registry is files
    use_directory(None, town.cache)


# Elsewhere


def test_nobody_waits_for_a_directory_elsewhere(away_town: Town) -> None:
    town = away_town
    town.moody.answers.clear()
    asked = town.moody.asked
    # whoever asks is told at once that it is asked; the same question is asked once
    for _ in range(3):
        with pytest.raises(RegistryAskedError, match=f"queue manager {MANAGER}"):
            town.asked.keys_of(MANAGER)
        with pytest.raises(RegistryAskedError):
            town.asked.name_of(MANAGER)  # "" would be an answer
    with pytest.raises(RegistryAskedError, match=f"user {ANNA}"):
        town.asked.find_certificate(ANNA, known.CERTIFICATE)
    assert not town.answered.is_set()
    # and told again when there is an answer, which is there then, however short it is remembered
    town.moody.answers.set()
    assert town.answered.wait(PATIENCE)
    assert town.has()
    assert town.asked.name_of(MANAGER) == "SALES02"
    assert town.moody.asked == asked + 2


def test_who_comes_again_takes_nothing_of_the_allowance_for_strangers(away_town: Town) -> None:
    town = away_town
    town.moody.answers.clear()
    for _ in range(2 * STRANGERS_MAX):
        with pytest.raises(RegistryAskedError):
            town.asked.keys_of(UUID(int=7))
    town.moody.answers.set()
    assert town.registry.keys_of(UUID(int=7)) is None
    for number in range(STRANGERS_MAX - 1):
        assert town.registry.keys_of(UUID(int=number + 10)) is None
    with pytest.raises(RegistryAwayError, match="too many"):
        town.asked.keys_of(UUID(int=9))


def test_a_message_that_does_not_fit_is_judged_when_it_was_asked_anew_once(
    away_town: Town,
) -> None:
    town = away_town
    town.registry.keys_of(MANAGER)
    asked = town.moody.asked
    for _ in range(2):  # each message is a doubt of its own
        # when what it is signed with does not fit, then the directory is asked, and it waits
        assert town.asked.signing_keys_of(MANAGER) == KEYS.public_signing_keys
        town.answered.clear()
        with pytest.raises(RegistryAskedError):
            town.asked.signing_keys_of(MANAGER, again=True)
        assert town.answered.wait(PATIENCE)
        # when it comes again and still does not fit, then that is the answer
        assert town.asked.signing_keys_of(MANAGER) == KEYS.public_signing_keys
        assert town.asked.signing_keys_of(MANAGER, again=True) == KEYS.public_signing_keys
    assert town.moody.asked == asked + 2
    # when it does fit, the next one that does not is asked for again
    town.answered.clear()
    with pytest.raises(RegistryAskedError):
        town.asked.signing_keys_of(MANAGER, again=True)
    assert town.answered.wait(PATIENCE)
    town.asked.signing_keys_of(MANAGER)
    town.asked.signing_keys_of(MANAGER)
    with pytest.raises(RegistryAskedError):
        town.asked.signing_keys_of(MANAGER, again=True)


def test_a_message_that_comes_before_the_answer_waits_for_it_as_well(away_town: Town) -> None:
    town = away_town
    town.registry.signing_keys_of(MANAGER)
    town.moody.answers.clear()
    asked = town.moody.asked
    for _ in range(3):  # one that is looked at again too early, and others of the same sender
        assert town.asked.signing_keys_of(MANAGER) == KEYS.public_signing_keys
        with pytest.raises(RegistryAskedError):
            town.asked.signing_keys_of(MANAGER, again=True)
    assert town.moody.asked <= asked + 1


def test_a_question_that_nobody_answers_ends_with_the_directory_away(away_town: Town) -> None:
    town = away_town
    town.moody.answers.clear()
    town.cache.timeout_seconds = 0.05
    with pytest.raises(RegistryAskedError):
        town.asked.keys_of(MANAGER)
    assert town.answered.wait(PATIENCE)
    with pytest.raises(RegistryAwayError, match="no answer within") as refused:
        town.asked.keys_of(MANAGER)
    assert not isinstance(refused.value, RegistryAskedError)


def test_who_waits_for_a_directory_that_is_closed_is_told(away_town: Town) -> None:
    town = away_town
    town.moody.answers.clear()
    with pytest.raises(RegistryAskedError):
        town.asked.keys_of(MANAGER)
    town.cache.timeout_seconds = 0.01  # that closing waits for whoever hangs
    town.cache.close()
    assert town.answered.is_set()
    town.answered.clear()
    with pytest.raises(RegistryAwayError, match="is away"):
        town.asked.keys_of(MANAGER)
    town.cache.ask_beside("Site", (), town.answered.set)
    assert town.answered.is_set()
