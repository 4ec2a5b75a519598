r"""`falconmq directory init`: a directory begins, in the store of a queue manager or in LDAP.

    falconmq directory init example.com --site Berlin
    falconmq directory init example.com ldap://ldap1 --bind-name CN=admin,DC=example,DC=com \
        --password-file ldap.password --site Berlin

An LDAP server is spoken to from here: nobody has joined it yet, for there was nothing to join.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from random import SystemRandom
from typing import TYPE_CHECKING, Annotated, Any

import typer

from falconmq.cli.connection import refusal, service
from falconmq.cli.directory_options import ServerOptions
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import print_json
from falconmq.clock import SystemClock

if TYPE_CHECKING:
    from falconmq.directory.base import DirectoryBase

INIT_EPILOG = """\b
Examples:
  falconmq directory init example.com --site Berlin     in its store, with a first site
  falconmq directory init example.com --data ./data     an enterprise, and nothing in it
  falconmq directory init example.com ldap://dc1 --bind-name CN=mq,DC=example,DC=com --password-file mq.password
"""  # noqa: E501 - what people copy stands in one line
Json = dict[str, Any]


def init(
    domain: Annotated[
        str,
        typer.Argument(
            metavar="DOMAIN", help="What the enterprise is called, example.com.", show_default=False
        ),
    ],
    servers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL...]",
            help="LDAP servers; none: in the store of a queue manager.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[str | None, typer.Option("--site", help="Create a first site too.")] = None,
    *,
    speaking: ServerOptions,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Begin a directory: its enterprise, and a first site."""
    wanted = [("enterprise", domain), *([] if site is None else [("site", site)])]
    if servers:
        made = _in_ldap(wanted, tuple(servers), speaking)
    else:
        with service(place) as client:
            made = [
                client.request("POST", f"/directory/{kind}", {"attributes": {"name": name}})
                for kind, name in wanted
            ]
    if as_json:
        print_json(made)
    else:
        for each in made:
            sys.stdout.write(f"created {each['type']} {each['attributes']['name']}\n")
    return 0


def _in_ldap(
    wanted: list[tuple[str, str]], servers: tuple[str, ...], speaking: ServerOptions
) -> list[Json]:
    from falconmq.errors import FalconMQError  # noqa: PLC0415 - not for --help
    from falconmq.service.configuration import DirectorySection  # noqa: PLC0415
    from falconmq.service.directory.back_ends import open_ldap  # noqa: PLC0415

    if not all(server.startswith(("ldap://", "ldaps://", "ldapi://")) for server in servers):
        raise WrongUsageError(
            f"{' '.join(servers)}: these are no LDAP servers",
            "write ldap://host; the directory of another FalconMQ begins there",
        )
    if speaking.bind_name and speaking.password_file is None:
        raise WrongUsageError("--bind-name needs a password", "name its file: --password-file")
    section = DirectorySection(kind="ldap", servers=servers, **asdict(speaking))
    try:
        directory = open_ldap(section, SystemClock(), SystemRandom())
        try:
            return [_create(directory, kind, name) for kind, name in wanted]
        finally:
            directory.close()
    except FalconMQError as error:
        raise refusal(error) from error


def _create(directory: DirectoryBase, kind: str, name: str) -> Json:
    from falconmq.directory.queries import query_error  # noqa: PLC0415 - not for --help
    from falconmq.manager.states import DirectoryResult  # noqa: PLC0415

    result, identifier = directory.create(kind.capitalize(), {"name": name})
    if result is not DirectoryResult.SUCCESS:
        raise query_error(directory, kind, result)
    return {"type": kind, "attributes": {"name": name, "identifier": str(identifier)}}
