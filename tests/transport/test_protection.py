"""Caches of keys and certificates: empty at a start, limited, cleaned in time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falconmq.security.caches import (
    RECEIVE_SYMMETRIC_KEY_CACHE_SIZE,
    SEND_SYMMETRIC_KEY_CACHE_SIZE,
    SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS,
    USER_CERT_CACHE_SIZE,
    USER_CERT_LIFETIME_SECONDS,
    CachedSymmetricKey,
    CachedUserCert,
)
from falconmq.security.providers import ADVANCED
from falconmq.transport.protection import NEW_KEYS_MAX, Protection, ProtectionSettings
from falconmq.wire.simple_blob import CALG_AES_256
from falconmq.wire.user_sign_certs import UserSignCert
from tests.transport.estate import Node
from tests.transport.protected import KEYS, Registered, encrypted, protect, scene, signed
from tests.transport.raw_peer import routed_estate

MINUTE = 60.0


def given() -> tuple[Node, Protection]:
    node = routed_estate().node("B", 2)
    protect(node)
    assert node.transport.protection is not None
    return node, node.transport.protection


def key(number: int, time: float = 0.0) -> CachedSymmetricKey:
    name = number.to_bytes(16, "big")
    return CachedSymmetricKey(name, ADVANCED, CALG_AES_256, name, name, time)


@pytest.mark.requirement(
    "QB-3.1.1.3-02",
    "QB-3.1.1.3-03",
    "QB-3.1.1.3-04",
    "QB-3.1.1.3-06",
    "QB-3.1.1.3-08",
    "QB-3.1.3.1-04",
    "QB-3.1.3.1-07",
    "QB-3.1.3.1-09",
)
def test_a_transport_starts_with_empty_caches_of_limited_size_and_age() -> None:
    _, protection = given()
    receiving, sending, users = protection.caches
    assert [len(cache) for cache in protection.caches] == [0, 0, 0]
    assert (receiving.size, sending.size, users.size) == (127, 53, 53)
    assert receiving.size == RECEIVE_SYMMETRIC_KEY_CACHE_SIZE
    assert sending.size == SEND_SYMMETRIC_KEY_CACHE_SIZE
    assert users.size == USER_CERT_CACHE_SIZE
    assert receiving.lifetime_seconds == sending.lifetime_seconds == 10 * MINUTE
    assert users.lifetime_seconds == 20 * MINUTE
    for number in range(200):
        receiving.add(key(number, number))
        sending.add(key(number, number))
        users.add(CachedUserCert(UserSignCert.registered(bytes(16), b""), b"", number))
        assert len(receiving) <= 127
        assert len(sending) <= 53
        assert len(users) <= 53


@pytest.mark.requirement(
    "QB-3.1.2.10-01", "QB-3.1.2.13-01", "QB-3.1.5.8.3-15", "QB-3.1.5.8.3-30", "QB-3.1.6.10-03"
)
def test_what_came_with_a_message_is_forgotten_in_time_and_the_timer_stops() -> None:
    on = scene()
    on.send(lambda packet: encrypted(signed(packet)))
    protection = on.node.transport.protection
    assert protection is not None
    keys, users = protection.receiver.cache, protection.user_certs
    assert (len(keys), len(users)) == (1, 1)
    # a second key, halfway: it must outlive the first one
    on.node.estate.advance(SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS / 2)
    on.peer = type(on.peer)(on.node).open()
    on.send(lambda packet: encrypted(packet, seed=6), message_id=100)
    assert len(keys) == 2
    on.node.estate.advance(SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS / 2 + 2 * MINUTE)
    assert len(keys) == 1
    on.node.estate.advance(SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS / 2)
    assert (len(keys), keys.deadline) == (0, None)
    on.node.estate.advance(USER_CERT_LIFETIME_SECONDS)
    assert (len(users), users.deadline) == (0, None)


def test_each_cache_has_one_timer() -> None:
    _, protection = given()
    started: list[float] = []
    protection.receiver.cache.add(key(1, protection.receiver.cache.time()))
    for _ in range(3):
        protection.arm(lambda seconds, _: started.append(seconds))
    assert started == [10 * MINUTE]
    protection.sender.cache.add(key(1, protection.sender.cache.time()))
    protection.arm(lambda seconds, _: started.append(seconds))
    assert started == [10 * MINUTE] * 2


def test_new_keys_of_an_address_are_counted_and_forgiven_with_time() -> None:
    _, protection = given()
    assert all(protection.may_open("10.0.0.1", 0.0) for _ in range(NEW_KEYS_MAX))
    assert not protection.may_open("10.0.0.1", 0.5)
    assert protection.may_open("10.0.0.1", 1.6)
    assert not protection.may_open("10.0.0.1", 1.7)
    assert protection.may_open("10.0.0.2", 1.7)
    # no more than the first time, however long it was quiet
    assert all(protection.may_open("10.0.0.1", 9999.0) for _ in range(NEW_KEYS_MAX))
    assert not protection.may_open("10.0.0.1", 9999.0)


def test_addresses_and_problems_without_end_do_not_fill_the_memory() -> None:
    _, protection = given()
    for number in range(10_000):
        protection.may_open(str(number), 0.0)
        protection.is_news(number, "problem")
    assert len(protection._allowances) <= 4096
    assert len(protection._told) <= 256


def test_problems_are_told_once_and_strangers_do_not_fill_the_log() -> None:
    node, protection = given()
    assert protection.is_news(1, "problem")
    assert not protection.is_news(1, "problem")
    told = sum(protection.is_news(number, "problem") for number in range(2, 10_000))
    assert told == 29
    node.estate.advance(60)
    assert sum(protection.is_news(number, "later") for number in range(100)) == 6


def test_keys_are_in_no_text_of_python() -> None:
    _, protection = given()
    protection.use_keys(KEYS)
    pair = KEYS.encryption[ADVANCED]
    shown = repr(protection.receiver) + repr(KEYS) + repr(protection.sender)
    assert str(pair.private_exponent) not in shown
    assert str(pair.prime1) not in shown
    assert repr(replace(KEYS)) == repr(KEYS)


def test_nothing_is_weak_by_itself() -> None:
    node, protection = given()
    queue = node.queue("orders")
    assert not protection.allows_weak(bytes(16), queue)
    protection.settings = ProtectionSettings(weak=frozenset({"", "b"}))
    registry = protection.registry
    assert isinstance(registry, Registered)
    assert not protection.allows_weak(bytes(16), queue)  # a peer without a name is none of these
