"""`falconmq completion`: the script with which a shell completes commands and queue names."""

from __future__ import annotations

import os
import signal
import sys
from enum import StrEnum
from typing import Annotated, Final

import typer

from falconmq.cli.options import Place

EPILOG = """\b
Examples:
  eval "$(falconmq completion bash)"
  falconmq completion zsh > ~/.zfunc/_falconmq
  falconmq completion fish > ~/.config/fish/completions/falconmq.fish
"""
VARIABLE: Final = "_FALCONMQ_COMPLETE"
_SECONDS: Final = 1.0  # that a shell may wait for queue names
_COUNT: Final = 100


class Shell(StrEnum):
    """Shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[
        Shell, typer.Argument(help="For which shell.", metavar="bash|zsh|fish", show_default=False)
    ],
) -> int:
    """Print a script for a shell: it completes commands, options and the names of queues.

    Names come from the service that the options or the environment name, if it answers at once.
    """
    from typer._completion_shared import get_completion_script  # noqa: PLC0415 - only needed here

    script = get_completion_script(prog_name="falconmq", complete_var=VARIABLE, shell=shell.value)
    sys.stdout.write(script + "\n")
    return 0


def prepare() -> None:
    """A shell asks, if it says so in the environment: typer has to know how to answer."""
    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415 - only needed here

        completion_init()


def queue_names(place: Place, incomplete: str) -> list[str]:
    """Names that begin like this; nothing if no service runs, for a shell does not want to know."""
    from urllib.parse import urlencode  # noqa: PLC0415

    from falconmq.cli.connection import service  # noqa: PLC0415
    from falconmq.cli.problems import CommandError  # noqa: PLC0415

    place = place.with_environment()
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)  # ends the process, which only a shell sees
    query = urlencode({"count": _COUNT, "contains": incomplete.removeprefix(".\\")})
    try:
        with service(place, opens=False) as client:
            found = client.request("GET", f"/queues?{query}")["queues"]
    except CommandError:
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    names = [str(queue["name"]) for queue in found]
    return [_quoted(name) for name in names if name.lower().startswith(incomplete.lower())]


def _quoted(name: str) -> str:
    """In bash a name needs quotes, unless the word that is being completed has one already."""
    if os.environ.get(VARIABLE) != "complete_bash":
        return name
    words = os.environ.get("COMP_WORDS", "")
    has_quote = (words.count("'") % 2 or words.count('"') % 2) != 0
    return name if has_quote else f"'{name}'"
