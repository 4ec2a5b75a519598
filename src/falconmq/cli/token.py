"""`falconmq token`: who may use the HTTP port.

Tokens are in the data directory, so they can be made before the service ever ran. A service that
runs there, or at --url, is asked to make them itself, so that its audit log knows who did.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.tables import local_time, print_json, print_table

if TYPE_CHECKING:
    from falconmq.service.access import TokenStore

CREATE_EPILOG = """\b
Examples:
  falconmq token create web-shop --role send            it is printed once
  falconmq token create admin --role manage --data ./data
  falconmq token create audit --role read --expires 30d
"""
LIST_EPILOG = """\b
Examples:
  falconmq token list                                   of the user's own service
  falconmq token list --data ./data
  falconmq token list --json
"""
REVOKE_EPILOG = """\b
Examples:
  falconmq token revoke web-shop                        at once, and for good
  falconmq token revoke web-shop --data ./data
  falconmq token revoke web-shop --url https://sales02:8018
"""
ROLES: Final = ("read", "send", "receive", "directory", "manage")

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_TIME: Final = re.compile(r"([0-9]{1,9})([smhdwy])")
_LONGEST: Final = 100 * 365 * 86_400

NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Who uses it: web-shop, audit.", show_default=False),
]
Json = dict[str, Any]


def create(
    name: NameArgument,
    place: Place,
    role: Annotated[
        list[str],
        typer.Option(
            "--role",
            help="What it may do: read (look, messages included), send, receive, directory (for "
            "queue managers that use the directory here), or manage (everything). More than one: "
            "--role read --role send.",
            metavar="ROLE",
            show_default=False,
        ),
    ],
    expires: Annotated[
        str | None,
        typer.Option(
            help="How long it is good: 12h, 30d, 1y. For good if left out.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Make a token for the HTTP port. It is printed once and kept nowhere."""
    unknown = [word for word in role if word not in ROLES]
    if unknown:
        raise WrongUsageError(f"unknown role {unknown[0]!r}", f"choose from {', '.join(ROLES)}")
    lifetime = None if expires is None else seconds(expires)
    made = _create(place.with_environment(), name, role, lifetime)
    if as_json:
        print_json(made)
        return 0
    sys.stdout.write(made["token"] + "\n")
    until = f" until {local_time(made['expires'])}" if made["expires"] else ""
    sys.stderr.write(f"made {name} ({', '.join(made['roles'])}){until}; it is not shown again\n")
    return 0


def list_tokens(place: Place, as_json: JsonOption = False) -> int:
    """List the tokens; nobody can see their secrets."""
    tokens = _list(place.with_environment())
    if as_json:
        print_json({"tokens": tokens})
    elif tokens:
        print_table(
            ("NAME", "ROLES", "ENDS WITH", "CREATED", "EXPIRES"),
            [
                (
                    token["name"],
                    " ".join(token["roles"]),
                    token["hint"],
                    local_time(token["created"]),
                    "expired" if token["expired"] else local_time(token["expires"]) or "never",
                )
                for token in tokens
            ],
        )
    else:
        sys.stderr.write("no tokens yet\n")
    return 0


def revoke(name: NameArgument, place: Place) -> int:
    """Take a token away. Whoever has it, or has logged in with it, is out at once."""
    place = place.with_environment()
    if _is_served(place):
        with _service(place) as client:
            client.request("DELETE", f"/tokens/{quote(name, safe='')}")
    else:
        with _tokens(place) as tokens:
            tokens.revoke(name)
    sys.stdout.write(f"revoked {name}\n")
    return 0


def seconds(text: str) -> int:
    """`30d` as seconds."""
    match = _TIME.fullmatch(text.strip().lower())
    found = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < found <= _LONGEST:
        raise WrongUsageError(
            f"{text!r} is no time", "a number with its unit: 90m, 12h, 30d, 8w, 1y"
        )
    return found


def _create(place: Place, name: str, roles: list[str], lifetime: int | None) -> Json:
    if _is_served(place):
        with _service(place) as client:
            given = {"name": name, "roles": sorted(set(roles)), "lifetime": lifetime}
            made: Json = client.request("POST", "/tokens", given)
            return made
    with _tokens(place, makes=True) as tokens:
        from falconmq.service.access import Role  # noqa: PLC0415 - it takes half a second

        text, token = tokens.create(name, map(Role, roles), lifetime)
        return {**token.shown(token.created), "token": text}


def _list(place: Place) -> list[Json]:
    if place.url is not None:
        with _service(place) as client:
            found: list[Json] = client.request("GET", "/tokens")["tokens"]
            return found
    with _tokens(place) as tokens:
        return tokens.listing()


def _is_served(place: Place) -> bool:
    """Whether a service can be asked, here or elsewhere."""
    from falconmq.cli.connection import directory_of, is_served  # noqa: PLC0415

    return place.url is not None or is_served(directory_of(place))


def _service(place: Place) -> contextlib.AbstractContextManager[Any]:
    from falconmq.cli.connection import service  # noqa: PLC0415

    return service(place)


@contextlib.contextmanager
def _tokens(place: Place, *, makes: bool = False) -> Iterator[TokenStore]:
    """Those of the data directory that the options mean; refusals in the words of commands."""
    from falconmq.cli.connection import directory_of  # noqa: PLC0415

    try:
        from falconmq.service.access import TokenError, TokenStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(
            f"tokens are for the HTTP port, which needs {error.name}; it is not installed",
            "pip install 'falconmq[server]'",
        ) from error
    directory = directory_of(place)
    if not directory.is_dir() and not makes:
        raise CommandError(
            f"there is no data directory {directory}", "name it: --data DIR, or --config FILE"
        )
    try:
        if makes:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield TokenStore(directory)
    except TokenError as error:
        raise CommandError(str(error), error.hint) from error
    except OSError as error:
        raise CommandError(
            f"cannot use {directory}: {error.strerror}", "name the data directory: --data DIR"
        ) from error
