"""The directory that a `[directory]` means: ours, another FalconMQ's, or one in LDAP."""

from __future__ import annotations

import stat
from pathlib import Path
from random import Random
from typing import Final

from falconmq.clock import Clock
from falconmq.directory.base import DirectoryBase
from falconmq.errors import DirectoryError, MqStatus
from falconmq.security.files import OTHERS
from falconmq.service.configuration import DirectorySection

OPERATION_SECONDS: Final = 30.0  # for one question, in a thread; the queue manager waits less


def open_back_end(
    section: DirectorySection, own: DirectoryBase, clock: Clock, random: Random
) -> DirectoryBase:
    """The back end; nobody is asked anything yet. DirectoryError if it cannot be used at all."""
    match section.kind:
        case "embedded":
            return own
        case "remote":
            from falconmq.client.remote_directory import RemoteDirectory  # noqa: PLC0415 - few need it

            token = _secret(section.token_file, "token")
            return RemoteDirectory(section.servers, token, ca_file=_text(section.ca_file))
        case "ldap":
            return open_ldap(section, clock, random)
        case kind:
            raise DirectoryError(
                f"a directory of kind {kind} cannot be joined",
                status=MqStatus.INVALID_PARAMETER,
                hint="it is embedded, remote or ldap",
            )


def open_ldap(section: DirectorySection, clock: Clock, random: Random) -> DirectoryBase:
    """A directory in LDAP; DirectoryError if it cannot be used at all."""
    try:
        from falconmq.directory.ldap_directory import LdapDirectory  # noqa: PLC0415 - optional package
        from falconmq.directory.ldap_settings import LdapSettings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise DirectoryError(
            f"for LDAP {error.name} is needed, which is not installed",
            status=MqStatus.SERVICE_NOT_AVAILABLE,
            hint="pip install 'falconmq[ldap]'",
        ) from error
    settings = LdapSettings(
        section.servers,
        section.bind_name,
        _secret(section.password_file, "password") if section.bind_name else "",
        start_tls=section.start_tls,
        ca_file=_text(section.ca_file),
        root=section.root,
        operation_timeout_seconds=OPERATION_SECONDS,
    )
    return LdapDirectory(settings, clock, random)


def _secret(path: Path | None, what: str) -> str:
    """The first line of a file that only its owner may read; "" without a file."""
    if path is None:
        return ""
    try:
        with path.open("r", encoding="utf-8") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            text = file.readline().strip()
    except (OSError, ValueError) as error:
        raise DirectoryError(
            f"the {what} of the directory cannot be read from {path}: {error}",
            status=MqStatus.INVALID_PARAMETER,
            hint="the service must be able to read the file",
        ) from error
    if mode & OTHERS:
        raise DirectoryError(
            f"{path} has mode {mode:04o}: others may have read the {what}",
            status=MqStatus.ACCESS_DENIED,
            hint=f"get another {what} if they could; else: chmod 600 {path}",
        )
    return text


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)
