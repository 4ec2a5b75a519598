"""Options of the commands that name the servers of a directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How the servers of a directory are spoken to."""

    root: Annotated[str, typer.Option("--root", help="LDAP: DC=example,DC=com.")] = ""
    bind_name: Annotated[str, typer.Option("--bind-name", help="LDAP: as whom to log in.")] = ""
    password_file: Annotated[
        Path | None, typer.Option("--password-file", help="LDAP: file with the password.")
    ] = None
    start_tls: Annotated[bool, typer.Option("--start-tls", help="LDAP: TLS on ldap://.")] = False
    ca_file: Annotated[
        Path | None, typer.Option("--ca-file", help="Whose certificates are trusted (PEM).")
    ] = None
