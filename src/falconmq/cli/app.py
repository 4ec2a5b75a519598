"""The `falconmq` command: its subcommands, and what happens when something goes wrong."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final, ParamSpec

import typer

from falconmq.cli import decode, demo, messages, queue, send, serve, status
from falconmq.cli.problems import CommandError

EXIT_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count
EXIT_BROKEN_PIPE: Final = 141  # 128 + SIGPIPE
EXIT_USAGE: Final = 2

# typer has a click of its own inside; every usage error, wherever it comes from, has this base.
_UsageError: Final = typer.BadParameter.__mro__[1]

_Parameters = ParamSpec("_Parameters")

EPILOG: Final = """\b
Examples:
  falconmq serve --data ./data                      run a queue manager
  falconmq send '.\\private$\\orders' --body hello    send a message to it
  falconmq decode capture.pcapng                    what is in a packet capture
"""

app = typer.Typer(
    name="falconmq",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
)


class _ReaderGoneError(Exception):
    """Whoever read our output went away. typer would turn a BrokenPipeError into exit code 1."""


def _command(function: Callable[_Parameters, int]) -> Callable[_Parameters, int]:
    @functools.wraps(function)
    def run(*args: _Parameters.args, **options: _Parameters.kwargs) -> int:
        try:
            code = function(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _ReaderGoneError from error
        return code

    return run


def _add(
    group: typer.Typer, name: str, function: Callable[..., int], summary: str, epilog: str
) -> None:
    group.command(name, epilog=epilog, short_help=summary)(_command(function))


queues: Final = typer.Typer(rich_markup_mode=None, epilog=queue.EPILOG)


@queues.callback(invoke_without_command=True)
def manage_queues(context: typer.Context) -> None:
    """Create, list, delete and purge queues."""
    _show_help_if_alone(context)


_add(queues, "create", queue.create, "Create a queue.", queue.EPILOG)
_add(queues, "list", queue.list_queues, "List the queues.", queue.EPILOG)
_add(queues, "delete", queue.delete, "Delete a queue.", queue.EPILOG)
_add(queues, "purge", queue.purge, "Delete all messages of a queue.", queue.EPILOG)

_add(app, "serve", serve.serve, "Run a queue manager.", serve.EPILOG)
_add(app, "status", status.status, "Show what a running queue manager does.", status.EPILOG)
app.add_typer(queues, name="queue", help="Create, list, delete and purge queues.")
_add(app, "send", send.send, "Send messages.", send.EPILOG)
_add(app, "receive", messages.receive, "Take messages out of a queue.", messages.RECEIVE_EPILOG)
_add(app, "peek", messages.peek, "Look at messages; they stay.", messages.PEEK_EPILOG)
_add(app, "decode", decode.decode, "Show what is in MSMQ packets.", decode.EPILOG)
_add(app, "demo", demo.demo, "See three queue managers at work.", demo.EPILOG)


@app.callback(invoke_without_command=True)
def falconmq(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """FalconMQ: an open queue manager that speaks Microsoft Message Queuing on Linux."""
    if version:
        sys.stdout.write(f"falconmq {metadata.version('falconmq')}\n")
        raise typer.Exit
    _show_help_if_alone(context)


def _show_help_if_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code and never lets a user see a traceback."""
    _make_streams_safe()
    try:
        result = app(arguments, prog_name="falconmq", standalone_mode=False)
        sys.stdout.flush()
    except CommandError as error:
        return _refuse(str(error), error.hint, error.exit_code)
    except (BrokenPipeError, _ReaderGoneError):
        return _broken_pipe()
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except OSError as error:
        _give_up_output()
        return _refuse(f"cannot write the output: {error.strerror or error}", "", 1)
    except Exception as error:
        if isinstance(error, _UsageError):
            return _refuse_usage(error)
        raise
    return result if isinstance(result, int) else 0


def _make_streams_safe() -> None:
    """Whatever a packet holds can be printed: what a terminal cannot show becomes an escape."""
    if sys.stdout is None:  # closed by the shell: `>&-`
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _refuse(message: str, hint: str, exit_code: int) -> int:
    """error: and hint: on stderr, after what was already printed."""
    from falconmq.cli.printing import Screen  # noqa: PLC0415

    try:
        sys.stdout.flush()
        screen = Screen(sys.stderr)
        screen.line(("error: ", "bold red"), message)
        if hint:
            screen.line(("hint:  ", "bold"), hint)
    except BrokenPipeError:
        return _broken_pipe()
    except OSError:
        pass  # nowhere left to complain
    return exit_code


def _refuse_usage(error: Exception) -> int:
    message = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "falconmq"
    return _refuse(message.rstrip("."), f"see: {command} --help", EXIT_USAGE)


def _broken_pipe() -> int:
    """The reader went away (`| head`): end quietly."""
    _give_up_output()
    return EXIT_BROKEN_PIPE


def _give_up_output() -> None:
    """Send what is still buffered nowhere, so that Python does not complain when it exits."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
