r"""Options that many commands have, written once.

A command that talks to a queue manager has a parameter `place: Place`. `with_groups` replaces it by
the options that find the queue manager, in the same words for every command:

    def show(queue: QueueArgument, place: Place, as_json: JsonOption = False) -> int:
        with service(place) as client:
            print_json(client.queue(queue))
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import typer

from falconmq.cli.problems import WrongUsageError


def complete_queue(context: typer.Context, incomplete: str) -> list[str]:
    """Queue names for the shell; nothing if no service answers quickly."""
    from falconmq.cli.completion import queue_names  # noqa: PLC0415 - only shells need it

    given = context.params
    place = Place(given.get("data"), given.get("config"), given.get("url"), given.get("token"))
    return queue_names(place, incomplete)


QueueArgument = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"Path name or format name, in single quotes: '.\private$\orders'.",
        show_default=False,
        autocompletion=complete_queue,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the queue manager is that a command talks to, as the options say it."""

    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Data directory of the queue manager; the user's own if left out. If no service "
            "runs there, the directory is opened. [env: FALCONMQ_DATA]",
            metavar="DIR",
            show_default=False,
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="Configuration file of the service, which names its data directory. "
            "[env: FALCONMQ_CONFIG]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="A service anywhere: http://sales02:8018. [env: FALCONMQ_URL]",
            metavar="URL",
            show_default=False,
        ),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            help="Who asks at --url. Better in the environment or a file: others can see the "
            "options of a command. [env: FALCONMQ_TOKEN]",
            metavar="TOKEN",
            show_default=False,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help="A file with the token.", metavar="FILE", show_default=False
        ),
    ] = None
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say on standard error how it is reached.")
    ] = False

    @property
    def is_named(self) -> bool:
        """Whether somebody said where; else it is the user's own."""
        return any((self.data, self.config, self.url))

    def with_environment(self) -> Self:
        """What the options leave open is in the environment. A place that is named is not moved."""
        if self.url and (self.data or self.config):
            other = "--data" if self.data else "--config"
            raise WrongUsageError(f"--url and {other} are two places", "give one of them")
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.is_named:
            url, data, config = (
                os.environ.get(f"FALCONMQ_{name}") or None for name in ("URL", "DATA", "CONFIG")
            )
            if url:
                values["url"] = url
            else:
                values["data"] = Path(data) if data else None
                values["config"] = Path(config) if config else None
        return type(self)(**values)

    def secret(self) -> str | None:
        """The token: of the option, of the file, of the environment."""
        if self.token and self.token_file:
            raise WrongUsageError("--token and --token-file are two tokens", "give one of them")
        if self.token_file is not None:
            try:
                return self.token_file.read_text("utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise WrongUsageError(f"cannot read {self.token_file}: {error}") from error
        return self.token or os.environ.get("FALCONMQ_TOKEN") or None


def with_groups(function: Callable[..., int]) -> Callable[..., int]:
    """The command with the options of each group of options, `Place` for one, in its place.

    A group is a parameter whose type is a dataclass; its fields are the options.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, type[Any]] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)
    }

    @functools.wraps(function)
    def run(**options: Any) -> int:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return function(**options, **made)

    shown: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        group = groups.get(name)
        shown += [parameter] if group is None else _options_of(group)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=keyword) for parameter in shown]
    signature = signature.replace(parameters=parameters)
    run.__signature__ = signature  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
