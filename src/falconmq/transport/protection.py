"""What the transport needs to open protected messages and to protect its own (MQQB 3.1.1.3).

How to think about it. Private keys, caches and limits are here; what somebody has to look up is
asked of a `Registry`: the public keys of another queue manager, the certificates of a user. It is
made of files, and of a directory where there is one. What it said is remembered in the caches,
until they are too old or the registry has changed. A directory may be away, and the registry not
know: then messages wait, on the side where they are (`may_wait`).

    unsealing   a message in: decrypted, its signature verified, its sender known
    sealing     a message out: encrypted for the queue manager that it goes to

An RSA operation takes milliseconds, so each key of a sender is opened once. Who shows more new keys
than anybody needs has to come again later, see `may_open`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol
from uuid import UUID

from falconmq.manager.access import Principal
from falconmq.manager.model import Queue
from falconmq.names.syntax import fold
from falconmq.security.body_encryption import Receiver, Sender
from falconmq.security.caches import (
    Cache,
    ReceiveSymmetricKeyCache,
    SendSymmetricKeyCache,
    Time,
    UserCertCache,
)
from falconmq.security.keys import ManagerKeys
from falconmq.security.problems import RegistryAwayError
from falconmq.security.providers import Provider
from falconmq.security.rsa import RsaPublicKey
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCert

NEW_KEYS_MAX: Final = 32  # of one address at once; a sender makes one in ten minutes
NEW_KEYS_PER_SECOND: Final = 1.0
AWAY_PATIENCE_SECONDS: Final = 600.0  # that a signed message is sent again for, and not refused
_ADDRESSES_MAX: Final = 4096
_TOLD_MAX: Final = 256
_LINES_MAX: Final = 30  # of the log, about refused messages, at once
_LINES_PER_SECOND: Final = 0.1

After = Callable[[float, Callable[[], None]], None]
"""Start a timer: seconds, and what to do then."""


class Registry(Protocol):
    """Who has which public keys and certificates. RegistryAwayError if nobody can say so now."""

    def keys_of(self, queue_manager: UUID) -> Mapping[Provider, RsaPublicKey] | None:
        """What others encrypt with for a queue manager; None if nobody has told us."""

    def signing_keys_of(self, queue_manager: UUID, *, again: bool = False) -> PublicKeys | None:
        """What a queue manager signs with; None if nobody has told us.

        `again`: what was said before did not fit, so ask anew if that can help; else None.
        """

    def name_of(self, queue_manager: UUID) -> str:
        """What people call a queue manager; "" if nobody has told us."""

    def find_certificate(self, user: Sid, certificate: bytes) -> UserSignCert | None:
        """The entry of this very certificate, if it is registered for a user."""

    def principal_of(self, user: Sid) -> Principal:
        """A user with its groups."""

    def peers_version(self) -> object:
        """Another value after every change of the keys of queue managers."""

    def users_version(self) -> object:
        """Another value after every change of the certificates of users."""


@dataclass(frozen=True, slots=True)
class ProtectionSettings:
    """What an administrator may choose."""

    weak: frozenset[str] = frozenset()  # queues, peers by name or identifier; folded
    encrypt_direct: bool = False  # for whoever answers at the address of a direct name


@dataclass(slots=True)
class Allowance:
    """So many of something at once, and after that as many as come back with time."""

    most: float
    per_second: float
    at: float
    left: float

    def take(self, now: float) -> bool:
        self.left = min(self.most, self.left + max(0.0, now - self.at) * self.per_second)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Protection:
    """The keys and caches of one queue manager. All times are handed in."""

    def __init__(
        self, registry: Registry, time: Time, settings: ProtectionSettings | None = None
    ) -> None:
        self.registry = registry
        self.settings = settings or ProtectionSettings()
        self.always_weak: set[str] = set()  # queues whose protocol knows nothing better; folded
        self.receiver = Receiver(ReceiveSymmetricKeyCache(time), {})
        self.sender = Sender(SendSymmetricKeyCache(time))
        self.user_certs = UserCertCache(time)
        self._time = time
        self._armed: set[int] = set()  # caches whose cleanup timer runs
        self._peers_version: object = None
        self._users_version: object = None
        self._allowances: dict[str, Allowance] = {}
        self._told: set[tuple[object, str]] = set()
        self._lines = Allowance(_LINES_MAX, _LINES_PER_SECOND, time(), _LINES_MAX)

    @property
    def caches(self) -> tuple[Cache[Any], ...]:
        return (self.receiver.cache, self.sender.cache, self.user_certs)

    def use_keys(self, keys: ManagerKeys) -> None:
        """Take these private keys, and the former ones that peers may still encrypt for."""
        self.receiver.keys, self.receiver.former = keys.encryption, keys.former
        self.receiver.hopeless.clear()

    # Weak algorithms

    def allows_weak(self, queue_manager: bytes, queue: Queue | None = None) -> bool:
        """Whether an administrator lets this peer, or this queue, use what can be broken."""
        weak = self.settings.weak | self.always_weak
        if not weak:
            return False
        identifier = UUID(bytes_le=queue_manager)
        names = {str(identifier), fold(self.registry.name_of(identifier))} - {""}
        if queue is not None:
            names.add(fold(str((queue.parent or queue).path_name.with_computer("."))))
        return not weak.isdisjoint(names)

    # What has changed outside

    def look_at_peers(self) -> None:
        """Forget the keys that we made for peers if any of these has other public keys now."""
        version = self.registry.peers_version()
        if version != self._peers_version:
            self._peers_version = version
            self.sender.cache.clear()

    def look_at_users(self) -> None:
        """Forget whose certificates are whose if any was registered or removed."""
        version = self.registry.users_version()
        if version != self._users_version:
            self._users_version = version
            self.user_certs.clear()

    def may_wait(self, error: RegistryAwayError) -> bool:
        """Whether a message that nobody can judge now may come again.

        A restart of a directory, or of the network before it, must not cost a message. One that is
        gone for longer counts as the failure that MQQB 3.1.5.8.3 means: whoever passes messages on
        to us would have to hold up all the others for the one that cannot be verified.
        """
        return self._time() - error.since < AWAY_PATIENCE_SECONDS

    # Limits

    def may_open(self, address: str, now: float) -> bool:
        """Whether a peer may show one more new key: 32 at once, and then one in a second."""
        allowance = self._allowances.get(address)
        if allowance is None:
            if len(self._allowances) >= _ADDRESSES_MAX:
                self._allowances.pop(next(iter(self._allowances)))  # the one seen first
            allowance = Allowance(NEW_KEYS_MAX, NEW_KEYS_PER_SECOND, now, NEW_KEYS_MAX)
            self._allowances[address] = allowance
        return allowance.take(now)

    def is_news(self, about: object, problem: str) -> bool:
        """Whether a problem was not told yet: a line for each message would fill the log.

        Strangers choose what a problem is about, so there is a limit to all lines together.
        """
        if (about, problem) in self._told or not self._lines.take(self._time()):
            return False
        if len(self._told) >= _TOLD_MAX:
            self._told.clear()
        self._told.add((about, problem))
        return True

    # Timers

    def arm(self, after: After) -> None:
        """Start the cleanup timers of the caches that have entries (MQQB 3.1.2.10 to .13)."""
        for cache in self.caches:
            if cache.deadline is not None and id(cache) not in self._armed:
                self._armed.add(id(cache))
                seconds = max(0.0, cache.deadline - self._time())
                after(seconds, partial(self._clean_up, cache, after))

    def _clean_up(self, cache: Cache[Any], after: After) -> None:
        self._armed.discard(id(cache))
        cache.clean_up()
        self.arm(after)
