"""`falconmq serve`: run a queue manager until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from falconmq.cli.problems import CommandError, WrongUsageError

EPILOG = """\b
Examples:
  falconmq serve                                   the user's own, on all addresses
  falconmq serve --data ./data --bind 127.0.0.2    to try things out
  falconmq serve --config /etc/falconmq.toml       as a service of the computer
"""


def serve(
    config: Annotated[
        Path | None,
        typer.Option(
            help="Configuration file (TOML). Everything in it has a default.",
            metavar="FILE",
            envvar="FALCONMQ_CONFIG",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Directory for queues and messages; made if it is not there.",
            metavar="DIR",
            envvar="FALCONMQ_DATA",
            show_default=False,
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on and to connect from; all if left out.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of this computer, as messages say it; the host name if left out.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Run a queue manager: speak MSMQ on port 1801, keep messages, obey the other commands.

    Without any option: all addresses, and data in ~/.local/share/falconmq (root:
    /var/lib/falconmq). It logs to standard error. SIGTERM or Ctrl-C stops it in order; nothing that
    was acknowledged is lost, not even by a kill.
    """
    # Imported here, so that `falconmq --help` does not wait for the service.
    from falconmq.cli.connection import refusal  # noqa: PLC0415
    from falconmq.errors import FalconMQError  # noqa: PLC0415
    from falconmq.service.configuration import load  # noqa: PLC0415

    try:
        configuration = load(config, data=data, bind=bind, name=name)
    except FalconMQError as error:
        raise WrongUsageError(str(error), error.hint) from error
    _require_server_packages()
    from falconmq.service.process import run  # noqa: PLC0415

    try:
        return run(configuration)
    except FalconMQError as error:
        raise refusal(error) from error


def _require_server_packages() -> None:
    """Without them nobody could create a queue; better to say so than to serve half."""
    from importlib.util import find_spec  # noqa: PLC0415

    missing = [package for package in ("fastapi", "uvicorn") if find_spec(package) is None]
    if missing:
        raise CommandError(
            f"a service needs {' and '.join(missing)}, which are not installed",
            "pip install 'falconmq[server]'",
        )
