"""The certificates of users that are here: those to sign with, whose key is here, and the others.

They are in the file of the certificate store, which commands change while a service runs. So the
file is looked at for every message that is to be signed, and read again only when it is another
one: to read a key takes far longer than to sign with it.
"""

from __future__ import annotations

from pathlib import Path

from falconmq.security.certificate_store import CertificateStore, Registered
from falconmq.security.certificates import read_certificate
from falconmq.security.file_names import CERTIFICATES_FILE
from falconmq.wire.sid import Sid

_Stamp = tuple[int, int, int]


class SigningKeys:
    """Those of one data directory. One thread at a time."""

    def __init__(self, directory: Path) -> None:
        self._store = CertificateStore(directory)
        self._path = directory / CERTIFICATES_FILE
        self._stamp: _Stamp | None = None  # of the file that was read; None: there was none
        self._registered: tuple[Registered, ...] = ()

    def all(self) -> tuple[Registered, ...]:
        """Every certificate with its key, by user."""
        return tuple(each for each in self._read() if each.pair is not None)

    def of(self, owner: Sid) -> Registered | None:
        """The one of a user: the internal one, of which there is at most one (DM-3.1.1.1-61).

        Who has none signs with an external one, of several with the one that is good for longest.
        """
        own = [each for each in self.all() if each.owner == owner]
        return max(
            own, key=lambda each: (each.is_internal, each.certificate.not_after), default=None
        )

    def with_certificate(self, data: bytes) -> Registered | None:
        """The one that somebody shows, DER or PEM."""
        wanted = read_certificate(data).data
        return next((each for each in self.all() if each.certificate.data == wanted), None)

    def is_registered(self, owner: bytes, certificate: bytes) -> bool:
        """Whether this very certificate is one of the user with this SID, key or no key."""
        return any(
            each.owner.encode() == owner and each.certificate.data == certificate
            for each in self._read()
        )

    def _read(self) -> tuple[Registered, ...]:
        stamp = self._look()
        if stamp != self._stamp:
            self._registered = tuple(self._store.all())
            self._stamp = stamp
        return self._registered

    def _look(self) -> _Stamp | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
