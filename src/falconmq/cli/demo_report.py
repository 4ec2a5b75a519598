"""The last act of `falconmq demo --report`: Spark reads what happened, and draws it.

It is the command that anybody would type, run as a process of its own: Spark's Java and its
handlers of signals stay out of the demo.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

from falconmq.cli.demo_managers import Manager
from falconmq.cli.problems import CommandError


def write_report(managers: list[Manager], lake: Path, target: Path) -> list[dict[str, Any]]:
    """Archive, ledger, metrics and report over all three; what each job did."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "falconmq", "pipeline", "run", "--json"]
    for manager in managers:
        command += ["--manager", f"unix:{manager.data}"]
    # Every manager tells its whole story, so what nobody has seen by now is lost.
    command += ["--lake", str(lake), "--output", str(target), "--grace", "5"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # ours
    if run.returncode:
        raise CommandError(
            _said(run.stderr, "error:") or "the pipeline ended without a word",
            _said(run.stderr, "hint:") or f"try it by hand: {shlex.join(command)}",
        )
    done: list[dict[str, Any]] = json.loads(run.stdout)
    return done


def _said(output: str, word: str) -> str:
    """What stands behind a word at the beginning of a line."""
    found = (line.removeprefix(word) for line in output.splitlines() if line.startswith(word))
    return next(found, "").strip()


def show(target: Path) -> bool:
    """Open the page in a browser, if there is a screen to show it on."""
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return has_screen and webbrowser.open(target.absolute().as_uri())
