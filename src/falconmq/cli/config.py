"""`falconmq config`: check a configuration, show what is in effect, read it again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import count_of, print_json, print_table

if TYPE_CHECKING:
    from falconmq.service.tables import ConfigurationError

CHECK_EPILOG = """\b
Examples:
  falconmq config check /etc/falconmq/falconmq.toml     every mistake in it
  falconmq config check                                 of $FALCONMQ_CONFIG and the environment
  falconmq config check falconmq.toml --json
"""
SHOW_EPILOG = """\b
Examples:
  falconmq config show --config falconmq.toml           what a start with this file would use
  falconmq config show --running                        what the service uses now
  falconmq config show --changed --json                 only what is no default
"""
EXAMPLE_EPILOG = """\b
Examples:
  falconmq config example > falconmq.toml               every setting, to be changed
  falconmq config example | less                        to read it first
  falconmq config example | grep -A 20 '\\[http\\]'      one section of it
"""
RELOAD_EPILOG = """\b
Examples:
  falconmq config reload                                of the user's own service
  falconmq config reload --data ./data
  falconmq config reload --url https://sales02:8018 --token-file token
"""

Json = dict[str, Any]


def check(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Configuration file; $FALCONMQ_CONFIG if left out.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Find every mistake in a configuration file and in the variables of the environment.

    Files that it names are looked at too: what others may read or change, and should not.

    Exit code 0 if a service would start with it, 1 if not. Nothing is changed.
    """
    from falconmq.service.configuration import check as find_problems  # noqa: PLC0415

    path = file or _file_of_environment()
    problems = find_problems(path)
    files = [] if problems else _file_findings(path)
    is_good = not problems and all(found["severity"] != "refused" for found in files)
    if as_json:
        found = [{"text": str(p), "hint": p.hint} for p in problems]
        print_json({"problems": found, "files": files})
    else:
        _print_problems(problems)
        print_findings(files)
        if is_good:
            sys.stdout.write(f"{path or 'the environment'}: no mistakes\n")
    return 0 if is_good else 1


def show(
    place: Place,
    running: Annotated[
        bool, typer.Option("--running", help="Ask the service what it uses now.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what is not at its default.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Show every setting with its value and where that comes from: default, file, environment.

    Without --running it is what a service would use that is started now with these options.
    """
    if running or place.url:
        with service(place) as client:
            found = client.request("GET", "/configuration")
    else:
        found = _loaded(place)
    if changed:
        found["settings"] = [s for s in found["settings"] if s["source"] != "default"]
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0


def example() -> int:
    """Print a configuration file with every setting at its default, and what each is for."""
    from falconmq.service.configuration.examples import example as text  # noqa: PLC0415

    sys.stdout.write(text())
    return 0


def reload(place: Place, as_json: JsonOption = False) -> int:
    """Let a running service read its configuration again, and say what came of each change.

    A file with a mistake changes nothing. SIGHUP does the same.
    """
    with service(place) as client:
        report = client.request("POST", "/configuration/reload")
    if as_json:
        print_json(report)
        return 0
    rows = [(c["name"], c["outcome"], _text(c["old"]), _text(c["new"])) for c in report["changes"]]
    rows += [
        (queue["name"], f"queue {queue['outcome']}", "", ", ".join(queue["changes"]))
        for queue in report["queues"]
        if queue["outcome"] != "unchanged"
    ]
    if rows:
        print_table(("SETTING", "OUTCOME", "OLD", "NEW"), rows)
    sys.stderr.write(f"{count_of(report['unchanged'], 'setting')} unchanged\n")
    return 0


def _file_findings(path: Path | None) -> list[Json]:
    from falconmq.service.configuration import load  # noqa: PLC0415
    from falconmq.service.file_modes import find  # noqa: PLC0415

    data = _path_of_environment("FALCONMQ_DATA")
    return [found.to_json() for found in find(load(path, data=data))]


def _loaded(place: Place) -> Json:
    from falconmq.errors import FalconMQError  # noqa: PLC0415
    from falconmq.service.configuration import load  # noqa: PLC0415
    from falconmq.service.configuration.showing import effective  # noqa: PLC0415

    data = place.data or _path_of_environment("FALCONMQ_DATA")
    try:
        return effective(load(place.config or _file_of_environment(), data=data))
    except FalconMQError as error:
        raise WrongUsageError(str(error), error.hint) from error


def _file_of_environment() -> Path | None:
    return _path_of_environment("FALCONMQ_CONFIG")


def _path_of_environment(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value) if value else None


def _print(found: Json) -> None:
    rows = [(s["name"], _text(s["value"]), s["source"]) for s in found["settings"]]
    lists = ("hosts", "computers", "routes", "queues", "principals")
    rows += [(name, f"{len(found[name])} of them", "file") for name in lists if found[name]]
    print_table(("SETTING", "VALUE", "FROM"), rows)


def _text(value: object) -> str:
    match value:
        case None | "" | []:
            return "-"
        case bool():
            return "true" if value else "false"
        case list() if all(isinstance(entry, str) for entry in value):
            return ", ".join(value)
        case list() | dict():
            return f"{len(value)} of them"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def print_findings(files: list[Json]) -> None:
    """What others may do with the files of a service, each with the command that mends it."""
    from falconmq.cli.screen import Screen  # noqa: PLC0415

    screen = Screen(sys.stderr)
    for found in files:
        is_refused = found["severity"] == "refused"
        head = ("error: ", "bold red") if is_refused else ("warning: ", "bold yellow")
        screen.line(head, found["text"])
        screen.line(("hint:  ", "bold"), found["hint"])


def _print_problems(problems: list[ConfigurationError]) -> None:
    from falconmq.cli.screen import Screen  # noqa: PLC0415

    screen = Screen(sys.stderr)
    for problem in problems:
        screen.line(("error: ", "bold red"), str(problem))
        if problem.hint:
            screen.line(("hint:  ", "bold"), problem.hint)
