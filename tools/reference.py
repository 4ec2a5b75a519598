"""Write docs/reference/ from the code; `--check` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer.main import get_command
from typer.testing import CliRunner

from falconmq.cli.app import app
from falconmq.errors import MqStatus

_TERMINAL: Final = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
FOLDER: Final = Path(__file__).parent.parent / "docs" / "reference"


def status_codes() -> str:
    """Every status code with number, name and meaning."""
    lines = [
        "# Status codes\n\nMade by `make reference`; do not edit. Every error FalconMQ raises",
        "carries one of these in `.status`; the command line prints number and name.\n",
        "| HRESULT | name | `MqStatus` | meaning |",
        "|---|---|---|---|",
    ]
    lines += [f"| 0x{s:08X} | {s.symbol} | {s.name} | {s.meaning} |" for s in MqStatus]
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The help of every command, as the terminal shows it at 100 columns."""
    parts = ["# Commands\n\nMade by `make reference` from `--help`; do not edit.\n"]
    for path in walk((), get_command(app)):
        shown = CliRunner().invoke(app, [*path, "--help"], prog_name="falconmq", env=_TERMINAL)
        name = " ".join(("falconmq", *path))
        parts.append(f"\n## {name}\n\n```\n{shown.output.rstrip()}\n```\n")
    return "".join(parts)


def walk(path: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups before what is in them."""
    yield path
    children: dict[str, object] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from walk((*path, name), child)


PAGES: Final = {"status-codes.md": status_codes, "cli.md": commands}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a page is out of date")
    options = parser.parse_args(arguments)
    stale = False
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        path, text = FOLDER / name, make()
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(
                f"error: docs/reference/{name} is out of date: run make reference", file=sys.stderr
            )
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
