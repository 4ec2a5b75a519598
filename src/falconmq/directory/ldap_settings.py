"""Where an LDAP directory is, and how to get in."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from falconmq.errors import DirectoryError, MqStatus

ANY_HOST = "*"


@dataclass(frozen=True)
class LdapSettings:
    """One directory, on one server or on several that know the same."""

    urls: tuple[str, ...]  # ldap://host:389, ldaps://host:636 or ldapi://%2Fpath; tried in order
    bind_name: str = ""  # empty: nobody in particular
    password: str = field(default="", repr=False)
    start_tls: bool = False  # turn ldap:// into TLS before anything is said
    ca_file: str = ""  # who signs the server's certificate; empty: whom the system trusts
    root: str = ""  # such as DC=example,DC=com; empty: what the server says
    connect_timeout_seconds: float = 10.0
    operation_timeout_seconds: float = 120.0  # what MSMQ gives a search, guide 5.2
    page_size: int = 500
    referral_hosts: tuple[str, ...] = ()  # others that may get our password when referred to

    def __post_init__(self) -> None:
        if not self.urls:
            raise _wrong("no server is named", "give at least one url, such as ldap://host")
        if self.bind_name and not self.password:
            raise _wrong(f"{self.bind_name} has no password", "give bind_name and password")
        for url in self.urls:
            if urlsplit(url).scheme not in ("ldap", "ldaps", "ldapi"):
                raise _wrong(
                    f"{url} is no address of a server", "write ldap://host or ldaps://host"
                )

    @property
    def hosts(self) -> list[str]:
        return [urlsplit(url).hostname or "localhost" for url in self.urls]

    def tls_context(self) -> ssl.SSLContext:
        """Certificates are always checked, and that they name the host."""
        if self.ca_file and not Path(self.ca_file).is_file():
            raise _wrong(f"there is no file {self.ca_file}", "name the file with the certificates")
        return ssl.create_default_context(cafile=self.ca_file or None)


def wrap_socket(context: ssl.SSLContext, connection: Any) -> None:
    """Put TLS around the socket of a connection."""
    host = connection.server.host
    connection.socket = context.wrap_socket(connection.socket, server_hostname=host)


def _wrong(problem: str, hint: str) -> DirectoryError:
    return DirectoryError(f"LDAP: {problem}", status=MqStatus.INVALID_PARAMETER, hint=hint)
