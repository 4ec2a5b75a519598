"""`falconmq ready`: can the service take messages now? For health checks and scripts."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

import typer

from falconmq.cli.connection import UnreachableServiceError, directory_of
from falconmq.cli.options import Place
from falconmq.cli.problems import CommandError, WrongUsageError

if TYPE_CHECKING:
    from falconmq.client.channel import Channel
    from falconmq.client.doors import Door

EPILOG = """\b
Examples:
  falconmq ready                                        of the user's own service
  falconmq ready --data ./data --wait 30                as soon as it has started
  falconmq ready --url https://sales02:8018             no token is needed
"""
_PAUSE: Final = 0.1  # seconds between two looks


def ready(
    place: Place,
    wait: Annotated[
        float,
        typer.Option(help="Seconds to wait until it is ready.", metavar="SECONDS", min=0),
    ] = 0,
) -> int:
    """Ask whether a service can take messages now: exit code 0 if so, 1 if not, 3 if none runs.

    It never opens a data directory itself.
    """
    from falconmq.client.channel import Channel, tls_context  # noqa: PLC0415

    door = _door(place.with_environment())
    channel = Channel(door, tls=tls_context(None) if door.is_tls else None)
    deadline = time.monotonic() + wait
    try:
        while True:
            problem = _problem(channel)
            if problem is None:
                sys.stdout.write("ready\n")
                return 0
            if time.monotonic() >= deadline:
                raise problem
            time.sleep(_PAUSE)
    finally:
        channel.close()


def _door(place: Place) -> Door:
    """Where the root of the service is: the answer is beside the API, not in it."""
    from falconmq.client.doors import API, Door  # noqa: PLC0415
    from falconmq.client.location import CONTROL_SOCKET  # noqa: PLC0415
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    try:
        if place.url is None:
            door = Door.of_socket(directory_of(place) / CONTROL_SOCKET)
        else:
            door = Door.parse(place.url)
    except FalconMQError as error:
        raise WrongUsageError(str(error), error.hint) from error
    return replace(door, prefix=door.prefix.removesuffix(API))


def _problem(channel: Channel) -> CommandError | None:
    """Why it is not ready; None if it is."""
    from falconmq.client.calls import BrokenError, Call  # noqa: PLC0415

    try:
        answer = channel.exchange(Call("GET", "/readyz", None, {}, 0))
    except BrokenError as error:
        return UnreachableServiceError(str(error.error), error.error.hint)
    if answer.status == HTTPStatus.OK:
        return None
    try:
        reasons = "; ".join(json.loads(answer.content)["reasons"])
    except (ValueError, KeyError, TypeError):
        reasons = f"HTTP status {answer.status}"
    return CommandError(f"not ready: {reasons}")
