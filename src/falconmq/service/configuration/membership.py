"""What `falconmq directory join` wrote down, and what is wrong with a `[directory]`.

`membership.toml` in the data directory has the keys of `[directory]`. The file of the configuration
and the environment win over it, key by key; so a computer that is set up by a file stays as that
file says, and any other one remembers what it was told.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from falconmq.service.configuration.sections import DirectorySection
from falconmq.service.tables import ConfigurationError, Table
from falconmq.store.data_directory import MEMBERSHIP_FILE

_SCHEMES: Final = {"remote": ("http", "https"), "ldap": ("ldap", "ldaps", "ldapi")}
_SAMPLES: Final = {"remote": "https://hq.example.com:8018", "ldap": "ldap://host"}


def read_membership(data: Path) -> Mapping[str, object]:
    """The keys that were written down; none if no directory was joined. ConfigurationError."""
    path = data / MEMBERSHIP_FILE
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot read {path}: {error}",
            hint="delete the file and join again: falconmq directory join",
        ) from error


def directory_problems(table: Table, section: DirectorySection) -> Iterator[ConfigurationError]:
    """What does not go together."""
    yield from _role_problems(table, section)
    schemes = _SCHEMES.get(section.kind)
    if schemes is None:
        return
    sample = _SAMPLES[section.kind]
    if not section.servers:
        allowed = f"given too: kind {section.kind} needs one, such as {sample}"
        yield table.refuse("servers", None, allowed)
    for server in section.servers:
        if urlsplit(server).scheme not in schemes:
            yield table.refuse("servers", server, f"URLs such as {sample}")
    if section.bind_name and section.password_file is None:
        yield table.refuse("password_file", None, "given too: bind_name needs a password")


def _role_problems(table: Table, section: DirectorySection) -> Iterator[ConfigurationError]:
    if not section.has_role:
        return
    if section.kind != "embedded":
        yield table.refuse("kind", section.kind, "embedded: a directory server keeps it itself")
    if section.role != "pec" and not section.pec:
        yield table.refuse("pec", None, f"given too: role {section.role} needs it")
