"""What is expensive to find out is remembered for a while (MQQB 3.1.1.3, 3.1.6.10 to .13).

    SendSymmetricKeyCache      keys that we made, each for one receiver: 53, ten minutes
    ReceiveSymmetricKeyCache   keys that senders made and we have decrypted: 127, ten minutes
    UserCertCache              certificates that the directory has confirmed: 53, twenty minutes

All three are one thing: a list with a limit. An entry that would not fit makes the older half go
first. A timer starts with the first entry and runs `clean_up`, which drops what is too old and
says when it wants to be called next, a minute behind the time of the oldest: so many entries of
about the same age go in one step. Whoever owns a cache arms a timer for `deadline`.

The lists for the Base provider that Windows 2000 to 2003 keep beside these are not kept: nothing
depends on them (QB-3.1.1.3-05, -07).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from falconmq.security.providers import Provider
from falconmq.wire.user_sign_certs import UserSignCert

USER_CERT_CACHE_SIZE: Final = 53  # QB-3.1.3.1-05
USER_CERT_LIFETIME_SECONDS: Final = 1_200.0  # QB-3.1.3.1-06
RECEIVE_SYMMETRIC_KEY_CACHE_SIZE: Final = 127  # QB-3.1.3.1-08
SEND_SYMMETRIC_KEY_CACHE_SIZE: Final = 53  # QB-3.1.3.1-10
SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS: Final = 600.0  # QB-3.1.3.1-11
SLACK_SECONDS: Final = 60.0  # QB-3.1.6.10-03, -11-03, -12-03, -13-03

Time = Callable[[], float]
"""Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class CachedSymmetricKey:
    """A key that two queue managers share (MQQB 3.1.1.3.3)."""

    remote_qm_guid: bytes
    crypto_service_provider: Provider
    crypto_algorithm: int
    encrypted_symmetric_key: bytes  # a SIMPLEBLOB
    symmetric_key: bytes = field(repr=False)
    cached_time: float = 0.0


@dataclass(frozen=True, slots=True)
class CachedUserCert:
    """A certificate that the directory has for a user (MQQB 3.1.1.3.4)."""

    user_cert: UserSignCert
    security_id: bytes
    cached_time: float = 0.0


class _Timed(Protocol):
    @property
    def cached_time(self) -> float: ...


_Entry = TypeVar("_Entry", bound=_Timed)


class Cache(Generic[_Entry]):
    """Entries that grow old, and no more of them than a limit."""

    def __init__(self, size: int, lifetime_seconds: float, time: Time) -> None:
        self.size = size
        self.lifetime_seconds = lifetime_seconds
        self.deadline: float | None = None  # of the cleanup timer; None: it does not run
        self.time = time
        self._entries: list[_Entry] = []  # empty at a start: QB-3.1.3.1-04, -07, -09

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: _Entry) -> None:
        """Remember an entry; the older half of a full cache goes first."""
        if len(self._entries) + 1 > self.size:
            self._entries.sort(key=_age)
            del self._entries[: max(1, self.size // 2)]  # QB-3.1.5.8.3-14, -29, QB-3.1.7.1.5-20
        self._entries.append(entry)
        if self.deadline is None:
            self.deadline = self.time() + self.lifetime_seconds  # QB-3.1.5.8.3-15, -30

    def clear(self) -> None:
        """Forget everything: what it was found out from has changed."""
        self._entries = []
        self.deadline = None

    def clean_up(self) -> None:
        """The event of the cleanup timer: forget what is too old, and set the timer again."""
        now = self.time()
        oldest_allowed = now - self.lifetime_seconds
        self._entries = [entry for entry in self._entries if entry.cached_time >= oldest_allowed]
        if not self._entries:
            self.deadline = None
            return
        oldest = min(entry.cached_time for entry in self._entries)
        self.deadline = now + self.lifetime_seconds + SLACK_SECONDS - (now - oldest)

    def _first(self, fits: Callable[[_Entry], bool]) -> _Entry | None:
        return next(filter(fits, self._entries), None)


def _age(entry: _Timed) -> float:
    return entry.cached_time


class SendSymmetricKeyCache(Cache[CachedSymmetricKey]):
    """Keys for encrypting: one for each receiver, provider and algorithm."""

    def __init__(
        self,
        time: Time,
        size: int = SEND_SYMMETRIC_KEY_CACHE_SIZE,
        lifetime_seconds: float = SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS,
    ) -> None:
        super().__init__(size, lifetime_seconds, time)

    def find(self, remote: bytes, provider: Provider, algorithm: int) -> CachedSymmetricKey | None:
        """The key that is in use with a receiver (QB-3.1.7.1.5-14)."""
        return self._first(
            lambda key: (
                key.remote_qm_guid == remote
                and key.crypto_service_provider == provider
                and key.crypto_algorithm == algorithm
            )
        )


class ReceiveSymmetricKeyCache(Cache[CachedSymmetricKey]):
    """Keys for decrypting; a sender may have several on their way, so the blob tells them apart."""

    def __init__(
        self,
        time: Time,
        size: int = RECEIVE_SYMMETRIC_KEY_CACHE_SIZE,
        lifetime_seconds: float = SYMMETRIC_KEY_SHORT_LIFETIME_SECONDS,
    ) -> None:
        super().__init__(size, lifetime_seconds, time)

    def find(
        self, remote: bytes, provider: Provider, algorithm: int, encrypted_key: bytes
    ) -> CachedSymmetricKey | None:
        """The key inside a blob that has come before (QB-3.1.5.8.3-24)."""
        return self._first(
            lambda key: (
                key.encrypted_symmetric_key == encrypted_key
                and key.remote_qm_guid == remote
                and key.crypto_service_provider == provider
                and key.crypto_algorithm == algorithm
            )
        )


class UserCertCache(Cache[CachedUserCert]):
    """Certificates of senders that need not be looked up again."""

    def __init__(
        self,
        time: Time,
        size: int = USER_CERT_CACHE_SIZE,
        lifetime_seconds: float = USER_CERT_LIFETIME_SECONDS,
    ) -> None:
        super().__init__(size, lifetime_seconds, time)

    def find(self, certificate: bytes, security_id: bytes) -> CachedUserCert | None:
        """The entry with exactly these bytes, for exactly this user (QB-3.1.5.8.3-10)."""
        return self._first(
            lambda entry: (
                entry.user_cert.certificate == certificate and entry.security_id == security_id
            )
        )
