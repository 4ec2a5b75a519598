"""The keys of a queue manager, and what the directory gets of them."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from uuid import UUID

import pytest

from falconmq.errors import MqStatus
from falconmq.manager.lifecycle import initialize
from falconmq.security.file_names import KEYS_FILE, SECURITY_FILES
from falconmq.security.key_store import FORMER_MAX, KeyStore
from falconmq.security.keys import ManagerKeys, fingerprint, keys_by_provider, public_keys
from falconmq.security.peer_store import PeerKeys, PeerStore
from falconmq.security.problems import KeyFileError, PeerKeysError, UnknownEntryError
from falconmq.security.providers import ADVANCED, BASE, ENHANCED, PROVIDERS
from falconmq.store.data_directory import SIDE_FILES, open_data_directory
from falconmq.wire.public_key_blob import CALG_RSA_KEYX
from falconmq.wire.public_keys import PublicKey, PublicKeys
from tests.manager.directories import SITE, build_core, make_directory
from tests.manager.helpers import commit
from tests.security import known

BITS = {BASE: 512, ENHANCED: 1024, ADVANCED: 1024}
PEER = UUID("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0")


@pytest.fixture(scope="module")
def keys() -> ManagerKeys:
    return ManagerKeys.generate()


def test_every_provider_has_two_pairs_of_its_own(keys: ManagerKeys) -> None:
    pairs = [*keys.encryption.values(), *keys.signing.values()]
    assert len({pair.modulus for pair in pairs}) == 6
    assert all(pair.is_valid for pair in pairs)
    assert "modulus" not in repr(keys)


@pytest.mark.requirement("QB-3.1.7.1.5-05")
@pytest.mark.requirement(
    "DM-3.1.3-17",
    "DM-3.1.3-18",
    "DM-3.1.3-20",
    "DM-3.1.3-21",
    "DM-3.1.3-22",
    "DM-3.1.3-23",
)
def test_provisioning_publishes_a_key_for_each_of_three_providers() -> None:
    """Scenario 76 of MQDMPR: keys, the time between tries, and the servers of the directory."""
    # given a directory that does not know us, and servers in our domain
    directory = make_directory()
    directory.rows["QueueManager"].clear()
    directory.servers = ["DC1", "DC2"]
    core = build_core(directory, domain_name="example.com", site_identifier=SITE)
    core.initialization_retry_seconds = 7
    # when we are set up there
    initialize(core, provisioning=True)
    commit(core)
    # then both lists hold a key for each provider, under its name
    assert core.initialization_retry_seconds == 120
    assert core.directory_servers == ["DC1", "DC2"]
    moduli = set()
    for data in (core.local.public_encryption_keys, core.local.public_signing_keys):
        published = PublicKeys.decode(data)
        assert [key.provider_name for key in published.keys] == [p.name for p in PROVIDERS]
        for provider in PROVIDERS:
            assert data.count(provider.name.encode("utf-16-le") + b"\0\0") == 1
        for provider, key in keys_by_provider(published).items():
            # and it is an RSA key as PKCS #1 wants it: an odd product, an exponent that fits
            assert (key.bits, key.is_valid) == (BITS[provider], True)
            moduli.add(key.modulus)
        assert {key.public_key.key_algorithm for key in published.keys} == {CALG_RSA_KEYX}
    assert len(moduli) == 6
    # and what goes to the directory has them
    assert core.local.row()["public_encryption_keys"] == core.local.public_encryption_keys


def test_provisioning_takes_the_keys_that_somebody_keeps(keys: ManagerKeys) -> None:
    # given a directory that still has keys of an earlier life
    directory = make_directory(public_encryption_keys=b"old", public_signing_keys=b"old")
    core = build_core(directory)
    core.key_source = lambda: keys
    initialize(core, provisioning=True)
    assert core.local.public_encryption_keys == keys.public_encryption_keys.encode()
    assert core.local.public_signing_keys == keys.public_signing_keys.encode()


def test_a_start_that_is_no_provisioning_makes_no_keys() -> None:
    directory = make_directory(public_encryption_keys=b"as it was")
    core = build_core(directory)
    core.key_source = lambda: pytest.fail("nobody asked for keys")
    initialize(core)
    assert core.local.public_encryption_keys == b"as it was"


@pytest.mark.requirement("QB-3.1.7.1.5.2-01")
def test_a_published_key_is_the_key_again(keys: ManagerKeys) -> None:
    published = PublicKeys.decode(keys.public_encryption_keys.encode())
    found = keys_by_provider(published)
    assert found == {provider: pair.public for provider, pair in keys.encryption.items()}
    # keys of strangers are left out, and of two keys for one provider the first counts
    stranger = PublicKey("Acme Provider", 1, published.keys[0].key_blob)
    again = PublicKey(BASE.name, 1, published.keys[1].key_blob)
    assert keys_by_provider(PublicKeys([stranger, *published.keys, again])) == found


def test_fingerprints_tell_keys_apart() -> None:
    one, other = known.PAIR_512.public, known.PAIR_1024.public
    assert fingerprint(one) == "".join(fingerprint(one))
    assert fingerprint(one) != fingerprint(other)
    assert len(fingerprint(one)) == 39


def test_keys_are_made_once_and_kept_for_their_owner(tmp_path: Path) -> None:
    store = KeyStore(tmp_path)
    assert store.find() is None
    made = store.keys()
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert store.path == tmp_path / "keys.json"
    assert KeyStore(tmp_path).keys() == made == KeyStore(tmp_path).find()
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]  # nothing half-written


def test_two_who_ask_at_once_get_the_same_keys(tmp_path: Path) -> None:
    found: list[ManagerKeys] = []
    barrier = threading.Barrier(3)

    def ask() -> None:
        barrier.wait()
        found.append(KeyStore(tmp_path).keys())

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_keys_that_others_may_have_read_are_not_used(tmp_path: Path, mode: int) -> None:
    KeyStore(tmp_path).keys()
    (tmp_path / KEYS_FILE).chmod(mode)
    with pytest.raises(KeyFileError, match=f"has mode 0{mode:o}") as refused:
        KeyStore(tmp_path).keys()
    assert "chmod 600" in refused.value.hint
    assert refused.value.status is MqStatus.CANNOT_OPEN_CERT_STORE


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"format": 1, "encryption": {}}'])
def test_a_damaged_file_is_not_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / KEYS_FILE
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(KeyFileError, match="is damaged"):
        KeyStore(tmp_path).keys()
    assert path.read_text() == text


def test_numbers_that_were_changed_are_noticed(tmp_path: Path) -> None:
    store = KeyStore(tmp_path)
    pair = store.keys().signing[BASE]
    text = store.path.read_text()
    store.path.write_text(text.replace(f"{pair.prime1:x}", f"{pair.prime1 + 2:x}"))
    with pytest.raises(KeyFileError, match="is damaged"):
        store.find()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot use"):
        KeyStore(tmp_path / "nowhere").keys()


def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("falconmq.security.files.os.fsync", full)
        with pytest.raises(KeyFileError, match="No space left"):
            KeyStore(tmp_path).keys()
    assert list(tmp_path.iterdir()) == []


def test_a_new_data_directory_may_hold_keys_already(tmp_path: Path) -> None:
    KeyStore(tmp_path).keys()
    open_data_directory(tmp_path).close()
    assert set(SECURITY_FILES) < set(SIDE_FILES)


def test_keys_of_a_peer_are_kept_until_they_are_removed(tmp_path: Path, keys: ManagerKeys) -> None:
    store = PeerStore(tmp_path)
    peer = PeerKeys.of(PEER, "SALES02", keys)
    assert store.find(PEER) is None
    assert store.add(peer)
    other = PeerKeys(UUID(int=7), "ALPHA", peer.signing, peer.encryption)
    store.add(other)
    assert PeerStore(tmp_path).all() == [other, peer]
    assert PeerStore(tmp_path).find(PEER) == peer
    # newer ones replace them
    newer = PeerKeys(PEER, "SALES02", peer.signing, peer.encryption)
    assert not store.add(newer)
    assert store.find(PEER) == newer
    assert store.remove(PEER) == newer
    with pytest.raises(UnknownEntryError):
        store.remove(PEER)
    assert store.all() == [other]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"falconmq_keys": 2}, "falconmq_keys is not 1"),
        ({"queue_manager": "abc"}, "a part of it cannot be read"),
        ({"queue_manager": None}, "a part of it cannot be read"),
        ({"name": ""}, "no name of a computer"),
        ({"name": "a\nb"}, "no name of a computer"),
        ({"name": 7}, "no name of a computer"),
        ({"encryption": "###"}, "a part of it cannot be read"),
        ({"encryption": "AAAA"}, "a part of it cannot be read"),
        ({"signing": None}, "a part of it cannot be read"),
        ({"signing": "CAAAAAAAAAA="}, "a part of it cannot be read"),  # a list without keys
    ],
)
def test_what_are_no_keys_is_refused(
    keys: ManagerKeys, change: dict[str, object], problem: str
) -> None:
    document = PeerKeys.of(PEER, "SALES02", keys).to_document()
    with pytest.raises(PeerKeysError, match=problem):
        PeerKeys.from_document({**document, **change})
    missing = next(iter(change))
    with pytest.raises(PeerKeysError):
        PeerKeys.from_document({name: document[name] for name in document if name != missing})


def test_a_key_that_cannot_be_one_is_refused(keys: ManagerKeys) -> None:
    even = public_keys({ADVANCED: known.PAIR_1024.public})
    blob = bytearray(even.keys[0].key_blob)
    blob[20] &= 0xFE  # the lowest byte of the modulus
    even.keys[0].key_blob = bytes(blob)
    peer = PeerKeys(PEER, "SALES02", even, keys.public_signing_keys)
    with pytest.raises(PeerKeysError):
        PeerKeys.from_document(peer.to_document())
    with pytest.raises(PeerKeysError):
        PeerKeys.from_document([])


def test_renewed_keys_are_others_and_the_old_ones_stay_for_a_while(tmp_path: Path) -> None:
    store, day = KeyStore(tmp_path), 86_400.0
    first = store.keys()
    second = store.renew(now=1000.0)
    assert second == store.find() == store.keys()
    assert second.encryption != first.encryption
    assert second.signing != first.signing
    (former,) = second.former
    assert former.encryption == first.encryption
    assert former.until == 1000.0 + 30 * day
    third = store.renew(now=1000.0 + 10 * day)
    assert [each.encryption for each in third.former] == [second.encryption, first.encryption]
    # what is too old is not kept, nor are more than a few
    fourth = store.renew(now=1000.0 + 30 * day)
    assert [each.encryption for each in fourth.former] == [third.encryption, second.encryption]
    for _ in range(5):
        last = store.renew(now=1000.0 + 31 * day)
    assert len(last.former) == FORMER_MAX
    assert stat.S_IMODE((tmp_path / KEYS_FILE).stat().st_mode) == 0o600


def test_renewing_makes_the_first_keys_where_there_are_none(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path).renew(now=0.0)
    assert keys.former == ()
    assert KeyStore(tmp_path).find() == keys


def test_a_damaged_file_is_not_renewed(tmp_path: Path) -> None:
    store = KeyStore(tmp_path)
    store.keys()
    path = tmp_path / KEYS_FILE
    damaged = path.read_text().replace('"encryption"', '"encryption": {}, "other"', 1)
    path.write_text(damaged)
    with pytest.raises(KeyFileError):
        store.renew(now=0.0)
    assert path.read_text() == damaged
