"""Questions before something is gone for good."""

from __future__ import annotations

import sys

from falconmq.cli.problems import CommandError


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; CommandError if the answer is no. Scripts are not asked."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was changed", "to do it without a question: --yes")
