"""The certificates of users, in `certificates.json`: a directory of files, as for keys of peers.

For a sender it keeps certificates with their private keys: internal ones, which were made here, and
external ones whose key somebody brought along. For a receiver it says which certificates belong to
which user. A user has at most one internal certificate (DM-3.1.1.1-61).
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Final
from uuid import UUID

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.security import rsa
from falconmq.security.certificates import (
    USER_KEY_BITS,
    Certificate,
    create_certificate,
    read_certificate,
    sign_certs,
    to_pem,
)
from falconmq.security.file_names import CERTIFICATES_FILE
from falconmq.security.files import Json, PrivateFile
from falconmq.security.key_store import pair_from_json, pair_to_json
from falconmq.security.private_keys import read_private_key
from falconmq.security.problems import (
    CertificateError,
    CertificateExistsError,
    PrivateKeyError,
    UnknownEntryError,
)
from falconmq.security.rsa import RsaKeyPair
from falconmq.wire.sid import Sid
from falconmq.wire.user_sign_certs import UserSignCerts

DEFAULT_LIFETIME_SECONDS: Final = 5 * 365 * 86_400
_INTERNAL: Final = "internal"
_EXTERNAL: Final = "external"
_SERIAL_BITS: Final = 127  # a positive number of at most 16 bytes


@dataclass(frozen=True, slots=True)
class Registered:
    """A certificate and whose it is; with `pair` messages can be signed with it."""

    identifier: UUID
    owner: Sid
    certificate: Certificate
    pair: RsaKeyPair | None = field(default=None, repr=False)
    is_internal: bool = False  # made here, with its key

    def shown(self, now: float) -> Json:
        """What people see of it: everything but the private key."""
        certificate = self.certificate
        ends = certificate.not_after
        return {
            "id": str(self.identifier),
            "user": str(self.owner),
            "kind": "internal" if self.is_internal else "external",
            "signs": self.pair is not None,
            "subject": certificate.subject,
            "begins": certificate.not_before.isoformat(timespec="seconds"),
            "expires": ends.isoformat(timespec="seconds"),
            "expired": ends <= datetime.fromtimestamp(now, UTC),
            "bits": certificate.public_key.bits,
            "certificate": to_pem(certificate.data),
        }


class CertificateStore:
    """Those of one data directory."""

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.time,
        random: Random | None = None,
    ) -> None:
        self._file = PrivateFile(directory, CERTIFICATES_FILE)
        self._clock = clock
        self._random = random

    def all(self) -> list[Registered]:
        """Every certificate, by user and then by its end."""
        found = [self._registered(*entry) for entry in self._entries().items()]
        return sorted(found, key=lambda each: (str(each.owner), each.certificate.not_after))

    def listing(self) -> list[Json]:
        """`all`, as people see them."""
        now = self._clock()
        return [each.shown(now) for each in self.all()]

    def create(self, owner: Sid, lifetime_seconds: float | None = None) -> Registered:
        """An internal certificate with a new key; CertificateExistsError if the user has one."""
        self._check_internal(owner, self._entries())  # before a key is made: it takes a while
        chance = SystemRandom() if self._random is None else self._random
        lifetime = DEFAULT_LIFETIME_SECONDS if lifetime_seconds is None else lifetime_seconds
        pair = rsa.generate(USER_KEY_BITS, self._random)
        serial = chance.getrandbits(_SERIAL_BITS) | 1
        data = create_certificate(owner, pair, self._clock(), lifetime, serial)
        return self._add(owner, data, pair, is_internal=True)

    def register(self, owner: Sid, data: bytes) -> Registered:
        """A certificate from elsewhere, DER or PEM."""
        return self._add(owner, read_certificate(data).data, None)

    def register_key(self, owner: Sid, data: bytes, key: bytes, password: str = "") -> Registered:
        """A certificate from elsewhere with its private key, so that the user can sign here.

        `data` may be empty if the file of the key has the certificate in it. One that is registered
        already without its key gets the key.
        """
        found = read_private_key(key, password)
        if not data and not found.certificate:
            raise CertificateError(
                "there is no certificate in the file of the key",
                hint="name the file of the certificate as well",
            )
        certificate = read_certificate(data or found.certificate)
        if certificate.public_key != found.pair.public:
            raise PrivateKeyError(
                f"the private key is not that of the certificate {certificate.subject}",
                hint="each certificate has a key of its own: are these the right two files?",
            )
        if certificate.not_after.timestamp() <= self._clock():
            raise CertificateError(
                f"the certificate expired on {certificate.not_after:%Y-%m-%d}: "
                "nothing can be signed with it",
                hint="get a new one from whoever issued it",
            )
        return self._add(owner, certificate.data, found.pair)

    def remove(self, identifier: UUID) -> Registered:
        """Forget a certificate, and its private key."""
        with self._file.changing() as document:
            entry = self._entries_of(document).pop(str(identifier), None)
            if entry is None:
                raise UnknownEntryError(
                    f"there is no certificate {identifier}",
                    status=MqStatus.INVALID_CERTIFICATE,
                    hint="falconmq certificate list shows them",
                )
        return self._registered(str(identifier), entry)

    def internal_of(self, owner: Sid) -> Registered | None:
        """The certificate that messages of a user are signed with."""
        found = (each for each in self.all() if each.owner == owner and each.is_internal)
        return next(found, None)

    def sign_certs(self, owner: Sid) -> UserSignCerts:
        """All certificates of a user, as a directory would give them."""
        own = [each for each in self.all() if each.owner == owner]
        return sign_certs((each.identifier.bytes_le, each.certificate.data) for each in own)

    def _add(
        self, owner: Sid, data: bytes, pair: RsaKeyPair | None, *, is_internal: bool = False
    ) -> Registered:
        chance = SystemRandom() if self._random is None else self._random
        identifier = UUID(int=chance.getrandbits(128), version=4)
        text = base64.b64encode(data).decode("ascii")
        entry: Json = {"user": str(owner), "certificate": text}
        if pair is not None:
            entry["private_key"] = pair_to_json(pair)
            entry["kind"] = _INTERNAL if is_internal else _EXTERNAL
        with self._file.changing() as document:
            entries = self._entries_of(document)
            if is_internal:
                self._check_internal(owner, entries)
            key = self._same(entry, entries) or str(identifier)
            entries[key] = entry
        return self._registered(key, entry)

    def _check_internal(self, owner: Sid, entries: Json) -> None:
        for identifier, entry in entries.items():
            if entry.get("user") == str(owner) and _is_internal(entry):
                raise CertificateExistsError(
                    f"{owner} has an internal certificate already",
                    status=MqStatus.INTERNAL_USER_CERT_EXIST,
                    hint=f"first: falconmq certificate remove {identifier}",
                )

    def _same(self, entry: Json, entries: Json) -> str | None:
        """The entry that is to get its key now; CertificateExistsError if there is no news."""
        for identifier, other in entries.items():
            if any(other.get(name) != entry[name] for name in ("user", "certificate")):
                continue
            if "private_key" in entry and "private_key" not in other:
                return str(identifier)
            raise CertificateExistsError(
                f"this certificate is registered for {entry['user']} already",
                hint="falconmq certificate list shows it",
            )
        return None

    def _entries(self) -> Json:
        return self._entries_of(self._file.read() or {})

    def _entries_of(self, document: Json) -> Json:
        entries = document.setdefault("certificates", {})
        if not isinstance(entries, dict) or not all(isinstance(e, dict) for e in entries.values()):
            raise self._file.damaged("it holds no list of certificates")
        return entries

    def _registered(self, identifier: str, entry: Any) -> Registered:
        try:
            secret = entry.get("private_key")
            return Registered(
                UUID(identifier),
                Sid.parse(entry["user"]),
                read_certificate(base64.b64decode(entry["certificate"])),
                None if secret is None else pair_from_json(secret),
                _is_internal(entry),
            )
        except (KeyError, TypeError, ValueError, CertificateError, NameSyntaxError) as error:
            raise self._file.damaged(f"the entry {identifier} cannot be read") from error


def _is_internal(entry: Any) -> bool:
    """Keys of older files say nothing of their kind: all of them were made here."""
    return "private_key" in entry and entry.get("kind", _INTERNAL) == _INTERNAL
