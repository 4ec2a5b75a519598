"""Who has which keys and certificates, as the files and the directory say it together.

How to think about it. An administrator's word counts first: keys that were imported, certificates
that were registered here. What the files do not know the directory is asked for: the object of a
queue manager has its public keys, that of a user its certificates. `CachedDirectory` remembers
the answers, so that a message costs no question.

Nobody else waits for a directory elsewhere: it is asked in a thread, and the message waits
(RegistryAskedError) until `answered` is called; then it comes again, and finds the answer.

An answer may be out of date when it does not fit: somebody has renewed his keys, or registered
another certificate, a moment ago. Then it is asked again, once: the message that came back to an
answer which is younger than the doubt about it is judged by that. Strangers must not make us ask
all day, so there is an allowance for questions about whom nobody has heard of.

A directory that is away is no answer: RegistryAwayError, and the message waits as well.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.cached import CachedDirectory
from falconmq.errors import WireError
from falconmq.manager.access import Principal
from falconmq.manager.directory_backend import Filters, equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult
from falconmq.security import published
from falconmq.security.certificates import registered_as
from falconmq.security.problems import RegistryAskedError, RegistryAwayError
from falconmq.security.providers import Provider
from falconmq.security.rsa import RsaPublicKey
from falconmq.service.registered import FileRegistry
from falconmq.transport.protection import Allowance
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts

if TYPE_CHECKING:
    from falconmq.transport.protection import Protection

STRANGERS_MAX: Final = 64  # questions at once about whom nobody has heard of
STRANGERS_PER_SECOND: Final = 4.0
_KNOWN_MAX: Final = 10_000
_ENCRYPTION: Final = "public_encryption_keys"
_SIGNING: Final = "public_signing_keys"
_CERTIFICATES: Final = "certificates"
_WORDS: Final = {tables.QUEUE_MANAGER: "queue manager", tables.USER: "user"}
_Found = TypeVar("_Found")

_log = logging.getLogger("falconmq.directory")


class DirectoryRegistry:
    """The registry of a queue manager that is part of a directory (`protection.Registry`)."""

    def __init__(
        self,
        files: FileRegistry,
        directory: CachedDirectory,
        clock: Callable[[], float] = time.monotonic,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        self.files = files
        self.directory = directory
        self._answered = answered  # in any thread: whoever waits may come again
        self._clock = clock
        self._strangers = Allowance(STRANGERS_MAX, STRANGERS_PER_SECOND, clock(), STRANGERS_MAX)
        self._known: dict[object, bytes] = {}  # by UUID or Sid: what its object said last
        self._doubts: dict[object, int] = {}  # whose answer did not fit, and the number of that one
        self._settled: object = None  # whose answer is younger than the doubt about it
        self._changes = {tables.QUEUE_MANAGER: 0, tables.USER: 0}

    def keys_of(self, queue_manager: UUID) -> Mapping[Provider, RsaPublicKey] | None:
        imported = self.files.keys_of(queue_manager)
        if imported is not None:
            return imported
        row = self._machine(queue_manager)
        return _read(row, _ENCRYPTION, published.encryption_keys) or None

    def signing_keys_of(self, queue_manager: UUID, *, again: bool = False) -> PublicKeys | None:
        imported = self.files.signing_keys_of(queue_manager)
        if imported is not None:
            return None if again else imported
        if again:
            self._doubt(tables.QUEUE_MANAGER, queue_manager)
        else:
            self._begin(tables.QUEUE_MANAGER, queue_manager)
        return _read(self._machine(queue_manager), _SIGNING, published.signing_keys)

    def name_of(self, queue_manager: UUID) -> str:
        name = self.files.name_of(queue_manager)
        if name:
            return name
        try:
            row = self._machine(queue_manager)
        except RegistryAskedError:
            raise
        except RegistryAwayError:
            return ""
        return "" if row is None else str(row.get("computer_name", ""))

    def find_certificate(self, user: Sid, certificate: bytes) -> UserSignCert | None:
        registered = self.files.find_certificate(user, certificate)
        if registered is not None:
            return registered
        self._begin(tables.USER, user)
        registered = registered_as(certificate, self._certificates(user))
        if registered is None:
            self._doubt(tables.USER, user)
            registered = registered_as(certificate, self._certificates(user))
        return registered

    def principal_of(self, user: Sid) -> Principal:
        return self.files.principal_of(user)

    def peers_version(self) -> object:
        return self.files.peers_version(), self._changes[tables.QUEUE_MANAGER]

    def users_version(self) -> object:
        return self.files.users_version(), self._changes[tables.USER]

    def _machine(self, queue_manager: UUID) -> Row | None:
        return self._object(tables.QUEUE_MANAGER, queue_manager, (_ENCRYPTION, _SIGNING))

    def _certificates(self, user: Sid) -> UserSignCerts:
        """What the directory has; while it is away, what is remembered may lack the newest."""
        row = self._object(tables.USER, user, (_CERTIFICATES,))
        return _read(row, _CERTIFICATES, published.user_certificates) or UserSignCerts([])

    # Asking

    def _object(
        self, type_name: str, subject: UUID | Sid, attributes: tuple[str, ...]
    ) -> Row | None:
        """The object of a queue manager or a user; None if the directory has none."""
        if subject not in self._known and self.directory.is_local:
            self._limit_strangers()
        filters = _filters(subject)
        answer = self.directory.known(type_name, filters)
        if answer is None:
            raise self._asked(type_name, subject, is_limited=subject not in self._known)
        result, row = answer
        if result is DirectoryResult.DIRECTORY_NOT_CONNECTED:
            remembered = self.directory.remembered(type_name, filters)
            if remembered is None or any(name not in remembered for name in attributes):
                raise self._away(type_name, subject)
            row = remembered
        elif result is not DirectoryResult.SUCCESS:
            self._learn(type_name, subject, None)
            return None
        self._learn(type_name, subject, b"".join(_bytes(row, name) for name in attributes))
        return row

    def _asked(
        self, type_name: str, subject: UUID | Sid, *, is_limited: bool
    ) -> RegistryAskedError:
        """Let somebody be asked for in a thread; until then the message waits."""
        filters = _filters(subject)
        if is_limited and not self.directory.is_asked(type_name, filters):
            self._limit_strangers()
        self.directory.ask_beside(type_name, filters, self._answered)
        problem = f"the directory is asked for {_WORDS[type_name]} {subject}"
        return RegistryAskedError(problem, since=time.time(), hint="it goes on with the answer")

    # Answers that do not fit

    def _begin(self, type_name: str, subject: UUID | Sid) -> None:
        """A message is judged now: by an answer that was asked for because of a doubt, or not."""
        number = self.directory.answer_number(type_name, _filters(subject))
        doubted = self._doubts.get(subject)
        self._settled = None
        if doubted is not None and number != doubted:
            del self._doubts[subject]
            self._settled = subject

    def _doubt(self, type_name: str, subject: UUID | Sid) -> None:
        """What the directory said of somebody does not fit: let it be asked anew, but once.

        RegistryAwayError if it cannot be: what is remembered may just be out of date.
        """
        directory, filters = self.directory, _filters(subject)
        if self._settled == subject:
            self._settled = None
            return
        if directory.is_away:
            raise self._away(type_name, subject)
        if directory.is_local:
            self._limit_strangers()
            known = directory.remembered(type_name, filters)
            identifier = None if known is None else known.get("identifier")
            directory.forget(type_name, identifier if isinstance(identifier, UUID) else NULL_UUID)
            return
        asked = self._asked(type_name, subject, is_limited=True)
        if len(self._doubts) >= _KNOWN_MAX:
            self._doubts.pop(next(iter(self._doubts)))
        self._doubts.setdefault(subject, directory.answer_number(type_name, filters))
        raise asked

    def _limit_strangers(self) -> None:
        if not self._strangers.take(self._clock()):
            raise RegistryAwayError(
                "too many are asked for whom nobody knows", since=time.time(), hint="try it later"
            )

    def _learn(self, type_name: str, subject: UUID | Sid, said: bytes | None) -> None:
        """Notice whether an object says something else than before."""
        before = self._known.get(subject)
        if before is not None and before != said:
            self._changes[type_name] += 1
        if said is None:
            self._known.pop(subject, None)
            return
        if subject not in self._known and len(self._known) >= _KNOWN_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[subject] = said

    def _away(self, type_name: str, subject: UUID | Sid) -> RegistryAwayError:
        directory = self.directory
        since = directory.away_since
        return RegistryAwayError(
            f"the directory is away ({directory.problem}), and nobody else knows "
            f"{_WORDS[type_name]} {subject}",
            since=time.time() if since is None else since,
            hint="falconmq directory status says more; it is asked again and again",
        )


def use_directory(
    protection: Protection | None,
    directory: CachedDirectory | None,
    answered: Callable[[], None] = lambda: None,
) -> None:
    """Let a transport ask a directory from now on, or the files alone again.

    `answered` is called, in any thread, when there is an answer that messages wait for.
    """
    if protection is None:
        return
    registry = protection.registry
    files = registry.files if isinstance(registry, DirectoryRegistry) else registry
    if not isinstance(files, FileRegistry):
        return
    protection.registry = files
    if directory is not None:
        protection.registry = DirectoryRegistry(files, directory, answered=answered)


def _filters(subject: UUID | Sid) -> Filters:
    if isinstance(subject, UUID):
        return equals("identifier", subject)
    return equals("security_identifier", subject.encode())


def _bytes(row: Row, name: str) -> bytes:
    value = row.get(name)
    return value if isinstance(value, bytes) else b""


def _read(row: Row | None, name: str, decode: Callable[[bytes], _Found]) -> _Found | None:
    """What an attribute says; None if it says nothing, or nothing that can be read."""
    data = b"" if row is None else _bytes(row, name)
    if not data:
        return None
    try:
        return decode(data)
    except WireError as error:
        assert row is not None
        _log.warning("%s of %s cannot be read: %s", name, row.get("full_path"), error)
        return None
