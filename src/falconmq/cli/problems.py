"""Errors of commands: what `main` turns into `error:`, `hint:` and an exit code."""

from __future__ import annotations


class CommandError(Exception):
    """A command refuses. The message says what happened and to what, the hint what to do now."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class WrongUsageError(CommandError):
    """The command was given something it cannot work with."""

    exit_code = 2
