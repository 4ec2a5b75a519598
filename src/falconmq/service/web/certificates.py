"""The certificate of the HTTP port.

The port has one context for the life of the service, and that only says which one counts: every
handshake goes on with the context that the files made last. So connections that are open stay as
they are, and the next one sees the new certificate and the new authorities, and none of the old.

A session that is taken up again shows no certificate a second time, so tickets are not given out.
What TLS 1.2 remembers without tickets counts for nothing if it is older than the files:
`certificate_shown`.
"""

from __future__ import annotations

import ssl
import time
from pathlib import Path

from falconmq.service.tables import ConfigurationError


class Certificates:
    """A certificate with its key, and who issues those of callers, in files that may change."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._current = self._loaded()
        self._read_at = 0.0
        self.context = self._loaded()
        self.context.sni_callback = self._choose  # also asked by callers that name no server

    def reload(self) -> None:
        """Read the files again. ConfigurationError if they do not fit: the old ones stay."""
        self._current = self._loaded()
        self._read_at = time.time()

    def certificate_shown(self, connection: ssl.SSLObject) -> bytes | None:
        """The certificate of a caller, in DER; None if it has none that counts now."""
        session = connection.session
        if connection.session_reused and session is not None and session.time <= self._read_at:
            return None
        return connection.getpeercert(binary_form=True)

    def _choose(self, connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self._load_into(context)
        if self._client_ca is not None:  # who shows none may still have a token
            context.verify_mode = ssl.CERT_OPTIONAL
            context.options |= ssl.OP_NO_TICKET
            context.num_tickets = 0
        return context

    def _load_into(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"http.certificate {self._certificate} and http.key {self._key} cannot be used: "
                f"{error.reason or error}",
                hint="both are PEM files, they belong together, and the key has no password",
            ) from error
        except OSError as error:
            raise ConfigurationError(
                f"cannot read http.certificate {self._certificate} or http.key {self._key}: "
                f"{error.strerror}",
                hint="the user that the service runs as must be able to read them",
            ) from error
        if self._client_ca is not None:
            _trust(context, self._client_ca)


def _trust(context: ssl.SSLContext, client_ca: Path) -> None:
    try:
        context.load_verify_locations(cafile=client_ca)
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"http.client_ca {client_ca} cannot be used: {error.reason or error}",
            hint="it is a PEM file with one certificate or more",
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"cannot read http.client_ca {client_ca}: {error.strerror}",
            hint="the user that the service runs as must be able to read it",
        ) from error


def _no_password() -> str:
    """OpenSSL would ask at the terminal."""
    return ""
