"""Who has which keys and certificates, as far as the files of the data directory say it.

A file is read again when it has changed: commands change it, and so may another process. Looking at
its status costs two microseconds, reading it some milliseconds. A file that must not be used is as
good as none, and the log says so: nothing is verified or encrypted with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar
from uuid import UUID

from falconmq.errors import FalconMQError
from falconmq.manager.access import Principal
from falconmq.security.certificate_store import CertificateStore
from falconmq.security.certificates import registered_as, sign_certs
from falconmq.security.file_names import CERTIFICATES_FILE, PEER_KEYS_FILE
from falconmq.security.keys import keys_by_provider
from falconmq.security.peer_store import PeerKeys, PeerStore
from falconmq.security.providers import Provider
from falconmq.security.rsa import RsaPublicKey
from falconmq.service.configuration import Computer, ConfiguredPrincipal
from falconmq.wire.public_keys import PublicKeys
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCert, UserSignCerts

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_MISSING: Final = object()

_log = logging.getLogger("falconmq.service")


class FileRegistry:
    """The registry of a queue manager without a directory (`transport.protection.Registry`)."""

    def __init__(
        self,
        directory: Path,
        principals: Iterable[ConfiguredPrincipal] = (),
        computers: Iterable[Computer] = (),
    ) -> None:
        self._peers = _Watched(directory / PEER_KEYS_FILE, partial(_peers, directory))
        self._users = _Watched(directory / CERTIFICATES_FILE, partial(_users, directory))
        self._principals = {each.principal.user: each.principal for each in principals}
        self._names = {computer.id: computer.name for computer in computers}

    def configure(
        self, principals: Iterable[ConfiguredPrincipal], computers: Iterable[Computer]
    ) -> None:
        """Another configuration is in effect."""
        self._principals = {each.principal.user: each.principal for each in principals}
        self._names = {computer.id: computer.name for computer in computers}

    def keys_of(self, queue_manager: UUID) -> Mapping[Provider, RsaPublicKey] | None:
        peer = self._peers.content().get(queue_manager)
        return None if peer is None else keys_by_provider(peer.encryption)

    def signing_keys_of(self, queue_manager: UUID, *, again: bool = False) -> PublicKeys | None:
        if again:  # the file is looked at each time
            return None
        peer = self._peers.content().get(queue_manager)
        return None if peer is None else peer.signing

    def name_of(self, queue_manager: UUID) -> str:
        name = self._names.get(queue_manager)
        if name is not None:
            return name
        peer = self._peers.content().get(queue_manager)
        return "" if peer is None else peer.name

    def certificates_of(self, user: Sid) -> UserSignCerts:
        """The certificates that are registered for a user."""
        return self._users.content().get(user) or UserSignCerts([])

    def find_certificate(self, user: Sid, certificate: bytes) -> UserSignCert | None:
        return registered_as(certificate, self.certificates_of(user))

    def principal_of(self, user: Sid) -> Principal:
        """With the groups that `[[principals]]` gives it; without any if it is not there."""
        return self._principals.get(user) or Principal(str(user), user)

    def peers_version(self) -> object:
        return self._peers.version()

    def users_version(self) -> object:
        return self._users.version()


class _Watched(Generic[_Key, _Value]):
    """What a file says, read again when it is another one."""

    def __init__(self, path: Path, read: Callable[[], dict[_Key, _Value]]) -> None:
        self._path = path
        self._read = read
        self._seen: object = _MISSING
        self._content: dict[_Key, _Value] = {}

    def version(self) -> object:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode

    def content(self) -> dict[_Key, _Value]:
        version = self.version()
        if version != self._seen:
            self._seen = version
            try:
                self._content = self._read()
            except FalconMQError as error:
                _log.error("%s; %s", error, error.hint)
                self._content = {}
        return self._content


def _peers(directory: Path) -> dict[UUID, PeerKeys]:
    return {peer.queue_manager: peer for peer in PeerStore(directory).all()}


def _users(directory: Path) -> dict[Sid, UserSignCerts]:
    owned: dict[Sid, list[tuple[bytes, bytes]]] = {}
    for each in CertificateStore(directory).all():
        entry = each.identifier.bytes_le, each.certificate.data
        owned.setdefault(each.owner, []).append(entry)
    return {owner: sign_certs(entries) for owner, entries in owned.items()}
