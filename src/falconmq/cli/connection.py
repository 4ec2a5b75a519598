"""How commands reach the service: the options that find it, and its refusals in their words."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from falconmq.cli.problems import CommandError, WrongUsageError

if TYPE_CHECKING:
    from falconmq.client import ControlClient
    from falconmq.errors import FalconMQError

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Data directory of the service; the user's own if left out.",
        metavar="DIR",
        envvar="FALCONMQ_DATA",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Configuration file of the service, which names its data directory.",
        metavar="FILE",
        envvar="FALCONMQ_CONFIG",
        show_default=False,
    ),
]
QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"Path name or format name, in single quotes: '.\private$\orders'.",
        show_default=False,
    ),
]

# What the service says to programs, and what it means here.
_HINTS: Final = (
    (re.compile(r"manager\.create_queue\(r'(.*?)'\)"), r"falconmq queue create '\1'"),
    (re.compile(r"delete it without only_if_empty"), "delete it with --force"),
    (re.compile(r"transactional=True"), "--transactional"),
    (re.compile(r"^with manager\.transaction\(\).*"), "send it with --transaction"),
    (re.compile(r"^leave the transaction out"), "leave out --transaction"),
)


class UnreachableServiceError(CommandError):
    """No service answers."""

    exit_code = 3


@contextlib.contextmanager
def service(data: Path | None, config: Path | None) -> Iterator[ControlClient]:
    """The service that the options mean; its errors become those of commands."""
    # Imported here, so that `falconmq --help` does not wait for it.
    from falconmq.client import (  # noqa: PLC0415
        CONTROL_SOCKET,
        ControlClient,
        UnreachableError,
        data_directory,
    )
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    try:
        directory = data if data is not None else data_directory(config)
    except FalconMQError as error:
        raise WrongUsageError(str(error), error.hint) from error
    try:
        with ControlClient(directory / CONTROL_SOCKET) as client:
            yield client
    except UnreachableError as error:
        raise UnreachableServiceError(str(error), error.hint) from error
    except FalconMQError as error:
        raise refusal(error) from error


def refusal(error: FalconMQError) -> CommandError:
    """The text with the status that people search for, and a hint that can be typed."""
    first, *rest = str(error).split("\n")
    message = "\n".join([f"{first} ({error.status.symbol} 0x{error.status:08X})", *rest])
    hint = error.hint
    for said, meant in _HINTS:
        hint = said.sub(meant, hint)
    return CommandError(message, hint)
