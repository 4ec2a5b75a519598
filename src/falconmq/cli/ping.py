"""`falconmq ping`: can another queue manager be reached from here?"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from falconmq.cli.connection import UnreachableServiceError, service
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import CommandError
from falconmq.cli.tables import print_json, printable

EPILOG = """\b
Examples:
  falconmq ping SALES02
  falconmq ping 10.0.0.7 --timeout 5
  falconmq ping SALES02 --url http://sales01:8018     from there, not from here
"""

Json = dict[str, Any]


def ping(
    host: Annotated[str, typer.Argument(metavar="HOST", help="A computer, by name or address.")],
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for an answer.", min=0.1, max=30.0)
    ] = 2.0,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Send an MSMQ ping to a computer and connect to its queue manager; exit code 1 if in vain.

    The service asks, with the names and addresses that it knows. If none runs, this command does.
    """
    found = _ask(host, timeout, place)
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0 if found["is_reachable"] else 1


def _ask(host: str, timeout: float, place: Place) -> Json:
    body = {"address": host, "timeout": timeout}
    try:
        with service(place) as client:
            return client.request("POST", "/ping", body, timeout=timeout)
    except UnreachableServiceError:
        if place.with_environment().url is not None:
            raise  # somebody else was to ask
    return _ask_from_here(host, timeout)


def _ask_from_here(host: str, timeout: float) -> Json:
    import asyncio  # noqa: PLC0415
    from uuid import uuid4  # noqa: PLC0415

    try:
        from falconmq.service.operating.reaching import Where, answer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed", "pip install 'falconmq[server]'"
        ) from error
    return asyncio.run(answer(host, Where(uuid4()), timeout))


def _print(found: Json) -> None:
    host = printable(found["host"])
    if found["problem"]:
        sys.stdout.write(f"{host}: {printable(found['problem'])}\n")
    for address in found["addresses"]:
        tcp = _with_time(address["tcp"], address["tcp_seconds"])
        ping = _with_time(address["ping"], address["ping_seconds"])
        sys.stdout.write(
            f"{host} ({address['address']}): TCP {found['port']} {tcp}; "
            f"ping (UDP {found['ping_port']}) {ping}\n"
        )


def _with_time(text: str, seconds: float | None) -> str:
    return printable(text) if seconds is None else f"{printable(text)} in {seconds * 1000:.1f} ms"
