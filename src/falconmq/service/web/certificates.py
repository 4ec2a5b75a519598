"""The certificate of the HTTP port.

One context for the life of the service: a new certificate is loaded into it, so connections that
are open go on with the old one and the next handshake shows the new one.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from falconmq.service.tables import ConfigurationError


class Certificates:
    """A certificate with its key, and who issues those of callers, in files that may change."""

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None = None) -> None:
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self.context = self._loaded()

    def reload(self) -> None:
        """Read the files again. ConfigurationError if they do not fit: the old ones stay."""
        self._loaded()  # into a context of its own first: half of a pair would be worse than none
        self._load_into(self.context)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self._load_into(context)
        if self._client_ca is not None:  # who shows none may still have a token
            context.verify_mode = ssl.CERT_OPTIONAL
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
