"""Caches: limits, ages, and when the timer wants to be called (MQQB 3.1.1.3, 3.1.6.10 to .13)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.security.caches import (
    Cache,
    CachedSymmetricKey,
    CachedUserCert,
    ReceiveSymmetricKeyCache,
    SendSymmetricKeyCache,
    UserCertCache,
)
from falconmq.security.providers import ADVANCED, ENHANCED
from falconmq.wire.simple_blob import CALG_AES_128, CALG_AES_256
from falconmq.wire.user_sign_certs import UserSignCert
from tests.security.packets import REMOTE, SOURCE

LIFETIME = 600.0


class Clock:
    """A time that the test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def key(time: float, name: bytes = b"blob") -> CachedSymmetricKey:
    return CachedSymmetricKey(REMOTE, ADVANCED, CALG_AES_256, name, b"secret", time)


def certificate(time: float, data: bytes = b"certificate") -> CachedUserCert:
    return CachedUserCert(UserSignCert.registered(bytes(16), data), b"sid", time)


@pytest.mark.requirement(
    "QB-3.1.3.1-05",
    "QB-3.1.3.1-06",
    "QB-3.1.3.1-08",
    "QB-3.1.3.1-10",
    "QB-3.1.3.1-11",
)
def test_caches_begin_empty_with_the_limits_of_the_specification(clock: Clock) -> None:
    caches: list[tuple[Cache[CachedSymmetricKey] | Cache[CachedUserCert], int, float]] = [
        (UserCertCache(clock), 53, 1200.0),
        (ReceiveSymmetricKeyCache(clock), 127, 600.0),
        (SendSymmetricKeyCache(clock), 53, 600.0),
    ]
    for cache, size, lifetime in caches:
        assert (len(cache), cache.size, cache.lifetime_seconds) == (0, size, lifetime)
        assert cache.deadline is None


@pytest.mark.requirement("QB-3.1.7.1.5-14")
def test_a_key_to_send_with_is_that_of_receiver_provider_and_algorithm(clock: Clock) -> None:
    cache = SendSymmetricKeyCache(clock)
    cache.add(key(clock.now))
    assert cache.find(REMOTE, ADVANCED, CALG_AES_256) == key(clock.now)
    assert cache.find(SOURCE, ADVANCED, CALG_AES_256) is None
    assert cache.find(REMOTE, ENHANCED, CALG_AES_256) is None
    assert cache.find(REMOTE, ADVANCED, CALG_AES_128) is None


@pytest.mark.requirement("QB-3.1.5.8.3-24")
def test_a_key_that_was_received_is_also_that_of_its_blob(clock: Clock) -> None:
    cache = ReceiveSymmetricKeyCache(clock)
    cache.add(key(clock.now, b"one"))
    cache.add(key(clock.now, b"two"))
    assert cache.find(REMOTE, ADVANCED, CALG_AES_256, b"two") == key(clock.now, b"two")
    assert cache.find(REMOTE, ADVANCED, CALG_AES_256, b"three") is None
    assert cache.find(SOURCE, ADVANCED, CALG_AES_256, b"two") is None
    assert cache.find(REMOTE, ENHANCED, CALG_AES_256, b"two") is None
    assert cache.find(REMOTE, ADVANCED, CALG_AES_128, b"two") is None


def test_a_certificate_is_found_by_its_bytes_and_its_user(clock: Clock) -> None:
    cache = UserCertCache(clock)
    cache.add(certificate(clock.now))
    assert cache.find(b"certificate", b"sid") == certificate(clock.now)
    assert cache.find(b"certificate", b"another") is None
    assert cache.find(b"another", b"sid") is None


@pytest.mark.requirement("QB-3.1.5.8.3-29", "QB-3.1.7.1.5-20")
@pytest.mark.parametrize("kind", [ReceiveSymmetricKeyCache, SendSymmetricKeyCache])
def test_a_key_too_many_makes_the_older_half_go(
    clock: Clock, kind: type[ReceiveSymmetricKeyCache | SendSymmetricKeyCache]
) -> None:
    # given a full cache, its entries in another order than their times
    cache = kind(clock)
    times = [clock.now + number * 7 % cache.size for number in range(cache.size)]
    for time in times:
        cache.add(key(time))
    assert len(cache) == cache.size
    # when one more comes
    cache.add(key(clock.now + 500))
    # then half of them are gone, the oldest
    kept = sorted(entry.cached_time for entry in cache._entries)
    assert kept == [*sorted(times)[cache.size // 2 :], clock.now + 500]


@pytest.mark.requirement("QB-3.1.5.8.3-14")
def test_a_certificate_too_many_makes_the_older_half_go(clock: Clock) -> None:
    cache = UserCertCache(clock)
    for number in range(53):
        cache.add(certificate(clock.now + number, b"%d" % number))
    cache.add(certificate(clock.now + 100, b"new"))
    assert len(cache) == 53 - 26 + 1
    assert cache.find(b"25", b"sid") is None
    assert cache.find(b"26", b"sid") is not None
    assert cache.find(b"new", b"sid") is not None


@pytest.mark.requirement("QB-3.1.7.1.5-21")
def test_the_first_entry_starts_the_timer_and_others_leave_it(clock: Clock) -> None:
    cache = SendSymmetricKeyCache(clock)
    cache.add(key(clock.now))
    assert cache.deadline == 1_000_600.0
    clock.now += 300
    cache.add(key(clock.now))
    assert cache.deadline == 1_000_600.0


def test_the_timer_of_certificates_runs_for_their_lifetime(clock: Clock) -> None:
    cache = UserCertCache(clock)
    cache.add(certificate(clock.now))
    assert cache.deadline == 1_001_200.0


@pytest.mark.requirement("QB-A51-01")
@pytest.mark.requirement(
    "QB-3.1.6.10-01",
    "QB-3.1.6.10-02",
    "QB-3.1.6.10-03",
    "QB-3.1.6.11-01",
    "QB-3.1.6.11-02",
    "QB-3.1.6.11-03",
)
@pytest.mark.parametrize("kind", [ReceiveSymmetricKeyCache, SendSymmetricKeyCache])
def test_keys_that_are_too_old_go_and_the_timer_waits_for_the_next(
    clock: Clock, kind: type[ReceiveSymmetricKeyCache | SendSymmetricKeyCache]
) -> None:
    # given keys of 601, of exactly 600 and of 100 seconds
    cache = kind(clock)
    for age in (100.0, 601.0, 600.0):
        cache.add(key(clock.now - age))
    # when the timer fires
    cache.clean_up()
    # then the first is gone, and the timer fires a minute behind the end of the oldest
    assert sorted(entry.cached_time for entry in cache._entries) == [
        clock.now - 600.0,
        clock.now - 100.0,
    ]
    assert cache.deadline == clock.now + 60.0
    clock.now += 60.0
    cache.clean_up()
    assert len(cache) == 1
    assert cache.deadline == clock.now + 600 + 60 - 160
    # and when nothing is left, it stays stopped until another key comes
    clock.now += 1000.0
    cache.clean_up()
    assert len(cache) == 0
    deadline: float | None = cache.deadline
    assert deadline is None
    cache.add(key(clock.now))
    assert cache.deadline == clock.now + 600


@pytest.mark.requirement("QB-3.1.6.13-01", "QB-3.1.6.13-02", "QB-3.1.6.13-03")
def test_certificates_that_are_too_old_go(clock: Clock) -> None:
    cache = UserCertCache(clock)
    for age in (1201.0, 1200.0, 5.0):
        cache.add(certificate(clock.now - age))
    cache.clean_up()
    assert len(cache) == 2
    assert cache.deadline == clock.now + 60.0
    clock.now += 60.0
    cache.clean_up()
    assert len(cache) == 1
    assert cache.deadline == clock.now + 1200 + 60 - 65


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.floats(0, 400), max_size=300), size=st.integers(1, 9))
def test_a_cache_never_outgrows_its_limit_or_keeps_what_is_too_old(
    steps: list[float], size: int
) -> None:
    clock = Clock()
    cache = SendSymmetricKeyCache(clock, size)
    for step in steps:
        clock.now += step
        if cache.deadline is not None and clock.now >= cache.deadline:
            cache.clean_up()
        cache.add(key(clock.now))
        assert len(cache) <= size
        assert cache.deadline is not None
        oldest = min(entry.cached_time for entry in cache._entries)
        assert clock.now - oldest <= LIFETIME + 60 + 400


def test_no_text_of_an_entry_has_the_key() -> None:
    assert "secret" not in repr(key(0.0))
