"""The `falconmq` command: its subcommands, and what happens when something goes wrong."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import os
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final, NamedTuple, ParamSpec

import typer

from falconmq.cli import (
    audit,
    backup,
    certificate,
    completion,
    config,
    consumer,
    dead_letter,
    decode,
    demo,
    directory,
    directory_beginning,
    directory_membership,
    directory_replication,
    directory_roles,
    directory_route,
    events,
    exporting,
    importing,
    key,
    messages,
    outgoing,
    permissions,
    ping,
    pipeline,
    pipeline_replay,
    pipeline_report,
    pipeline_status,
    queue,
    queue_messages,
    ready,
    send,
    serve,
    status,
    tail,
    token,
    trace,
    why,
)
from falconmq.cli.options import with_groups
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


class Command(NamedTuple):
    """One command: the words that call it, and what `--help` says."""

    words: str  # "send", or a group and a verb: "queue create"
    function: Callable[..., int]
    summary: str
    epilog: str  # three worked examples


# What the groups are for. `falconmq --help` shows groups and commands in the order of `COMMANDS`.
GROUPS: Final = {
    "queue": "Create, list, show, change, empty and delete queues.",
    "queue permissions": "Who may do what with a queue.",
    "outgoing": "Messages on their way to other queue managers.",
    "session": "Connections with other queue managers.",
    "dead-letter": "What could not be delivered: look, send again, delete.",
    "consumer": "Who reads queues by arrival numbers, and how far behind.",
    "token": "Who may use the HTTP port.",
    "key": "Keys of queue managers: give ours, take theirs.",
    "certificate": "Who signs messages with what.",
    "directory": "What all queue managers of an enterprise know.",
    "directory replication": "The copies of it on other servers.",
    "config": "What a service is told: check, show, reload.",
    "pipeline": "Archive, follow, measure and replay messages with Spark.",
}
COMMANDS: Final = (
    Command("serve", serve.serve, "Run a queue manager.", serve.EPILOG),
    Command("ready", ready.ready, "Can it take messages now?", ready.EPILOG),
    Command("status", status.status, "Show what a queue manager does.", status.EPILOG),
    Command("queue create", queue.create, "Create a queue.", queue.CREATE_EPILOG),
    Command("queue list", queue.list_queues, "List the queues.", queue.LIST_EPILOG),
    Command("queue show", queue.show, "Show a queue.", queue.SHOW_EPILOG),
    Command("queue set", queue.set_properties, "Change a queue.", queue.SET_EPILOG),
    Command("queue delete", queue.delete, "Delete a queue.", queue.DELETE_EPILOG),
    Command("queue purge", queue_messages.purge, "Empty a queue.", queue_messages.PURGE_EPILOG),
    Command("queue move", queue_messages.move, "Move messages.", queue_messages.MOVE_EPILOG),
    Command("queue permissions show", permissions.show, "Show them.", permissions.SHOW_EPILOG),
    Command("queue permissions grant", permissions.grant, "Give.", permissions.GRANT_EPILOG),
    Command("queue permissions revoke", permissions.revoke, "Take.", permissions.REVOKE_EPILOG),
    Command(
        "queue permissions set", permissions.set_permissions, "Replace.", permissions.SET_EPILOG
    ),
    Command("send", send.send, "Send messages.", send.EPILOG),
    Command("receive", messages.receive, "Take messages out of a queue.", messages.RECEIVE_EPILOG),
    Command("peek", messages.peek, "Look at messages; they stay.", messages.PEEK_EPILOG),
    Command("tail", tail.tail, "Follow a queue: messages as they arrive.", tail.EPILOG),
    Command("events", events.events, "List what happened to messages.", events.EPILOG),
    Command("export", exporting.export, "Write messages into a file.", exporting.EPILOG),
    Command("import", importing.import_messages, "Send what is in a file.", importing.EPILOG),
    Command("why", why.why, "Explain where messages are, and why.", why.EPILOG),
    Command("outgoing list", outgoing.list_outgoing, "List what waits.", outgoing.LIST_EPILOG),
    Command("outgoing pause", outgoing.pause, "Send nothing more.", outgoing.PAUSE_EPILOG),
    Command("outgoing resume", outgoing.resume, "Send again.", outgoing.RESUME_EPILOG),
    Command("outgoing purge", outgoing.purge, "Delete what waits.", outgoing.PURGE_EPILOG),
    Command("session list", outgoing.list_sessions, "List sessions.", outgoing.SESSION_EPILOG),
    Command("ping", ping.ping, "Ask whether a computer can be reached.", ping.EPILOG),
    Command("trace", trace.trace, "Show the route of a message.", trace.EPILOG),
    Command("dead-letter list", dead_letter.list_letters, "List them.", dead_letter.LIST_EPILOG),
    Command("dead-letter show", dead_letter.show, "Show one of them.", dead_letter.SHOW_EPILOG),
    Command("dead-letter redrive", dead_letter.redrive, "Send again.", dead_letter.REDRIVE_EPILOG),
    Command("dead-letter delete", dead_letter.delete, "Delete them.", dead_letter.DELETE_EPILOG),
    Command("consumer list", consumer.list_consumers, "List them.", consumer.LIST_EPILOG),
    Command("consumer delete", consumer.delete, "Forget one of them.", consumer.DELETE_EPILOG),
    Command("token create", token.create, "Make a token.", token.CREATE_EPILOG),
    Command("token list", token.list_tokens, "List the tokens.", token.LIST_EPILOG),
    Command("token revoke", token.revoke, "Take a token away.", token.REVOKE_EPILOG),
    Command("key list", key.list_keys, "List public keys.", key.LIST_EPILOG),
    Command("key export", key.export_keys, "Print our public keys.", key.EXPORT_EPILOG),
    Command("key import", key.import_keys, "Keep the keys of a peer.", key.IMPORT_EPILOG),
    Command("key renew", key.renew, "Make new keys of ours.", key.RENEW_EPILOG),
    Command("key remove", key.remove, "Forget the keys of a peer.", key.REMOVE_EPILOG),
    Command("certificate create", certificate.create, "Make one.", certificate.CREATE_EPILOG),
    Command("certificate register", certificate.register, "Take one.", certificate.REGISTER_EPILOG),
    Command("certificate list", certificate.list_certificates, "List.", certificate.LIST_EPILOG),
    Command("certificate remove", certificate.remove, "Forget one.", certificate.REMOVE_EPILOG),
    Command(
        "directory init",
        directory_beginning.init,
        "Begin one.",
        directory_beginning.INIT_EPILOG,
    ),
    Command("directory list", directory.list_objects, "List objects.", directory.LIST_EPILOG),
    Command("directory show", directory.show, "Show an object.", directory.SHOW_EPILOG),
    Command("directory create", directory.create, "Add an object.", directory.CREATE_EPILOG),
    Command("directory set", directory.set_attributes, "Change one.", directory.SET_EPILOG),
    Command("directory delete", directory.delete, "Delete one.", directory.DELETE_EPILOG),
    Command("directory query", directory.query, "Find objects.", directory.QUERY_EPILOG),
    Command(
        "directory join", directory_membership.join, "Join one.", directory_membership.JOIN_EPILOG
    ),
    Command(
        "directory leave",
        directory_membership.leave,
        "Leave it.",
        directory_membership.LEAVE_EPILOG,
    ),
    Command(
        "directory status",
        directory_membership.status,
        "Is it there?",
        directory_membership.STATUS_EPILOG,
    ),
    Command("directory route", directory_route.route, "Show a way.", directory_route.EPILOG),
    Command(
        "directory replication status",
        directory_replication.status,
        "How far it is.",
        directory_replication.STATUS_EPILOG,
    ),
    Command(
        "directory replication compare",
        directory_replication.compare,
        "With another.",
        directory_replication.COMPARE_EPILOG,
    ),
    Command(
        "directory replication why",
        directory_replication.why,
        "Why a change is not here.",
        directory_replication.WHY_EPILOG,
    ),
    Command(
        "directory replication move",
        directory_roles.move,
        "Let another server decide.",
        directory_roles.MOVE_EPILOG,
    ),
    Command(
        "directory replication take-over",
        directory_roles.take_over,
        "From a dead server.",
        directory_roles.TAKE_OVER_EPILOG,
    ),
    Command(
        "directory replication remove-site",
        directory_roles.remove_site,
        "With all that is in it.",
        directory_roles.REMOVE_SITE_EPILOG,
    ),
    Command(
        "directory replication remove-claim",
        directory_roles.remove_claim,
        "Of what is in two sites.",
        directory_roles.REMOVE_CLAIM_EPILOG,
    ),
    Command("audit", audit.audit, "List who administered what.", audit.EPILOG),
    Command("config check", config.check, "Find mistakes in it.", config.CHECK_EPILOG),
    Command("config show", config.show, "Show what is in effect.", config.SHOW_EPILOG),
    Command("config example", config.example, "Print a file to start with.", config.EXAMPLE_EPILOG),
    Command("config reload", config.reload, "Let a service read it again.", config.RELOAD_EPILOG),
    Command("backup", backup.backup, "Copy a queue manager.", backup.BACKUP_EPILOG),
    Command("restore", backup.restore, "Bring a backup back.", backup.RESTORE_EPILOG),
    Command("decode", decode.decode, "Show what is in MSMQ packets.", decode.EPILOG),
    Command("pipeline run", pipeline.run, "All of it, for cron.", pipeline.RUN_EPILOG),
    Command("pipeline archive", pipeline.archive, "Keep events.", pipeline.ARCHIVE_EPILOG),
    Command("pipeline ledger", pipeline.ledger, "Follow messages.", pipeline.LEDGER_EPILOG),
    Command("pipeline metrics", pipeline.metrics, "Measure.", pipeline.METRICS_EPILOG),
    Command("pipeline report", pipeline_report.report, "Draw a page.", pipeline_report.EPILOG),
    Command("pipeline status", pipeline_status.status, "Show a lake.", pipeline_status.EPILOG),
    Command("pipeline replay", pipeline_replay.replay, "Send again.", pipeline_replay.EPILOG),
    Command("pipeline capture", pipeline.capture, "Read captures.", pipeline.CAPTURE_EPILOG),
    Command("pipeline directory", pipeline.directory, "Compare.", pipeline.DIRECTORY_EPILOG),
    Command("pipeline warm-up", pipeline.warm_up, "Start faster.", pipeline.WARM_UP_EPILOG),
    Command("demo", demo.demo, "See three queue managers at work.", demo.EPILOG),
    Command("completion", completion.completion, "Let a shell complete.", completion.EPILOG),
)


def _group(name: str, parent: typer.Typer) -> typer.Typer:
    group = typer.Typer(rich_markup_mode=None, epilog=_examples(name))

    def show_help(context: typer.Context) -> None:
        _show_help_if_alone(context)

    show_help.__doc__ = GROUPS[name]
    group.callback(invoke_without_command=True)(show_help)
    parent.add_typer(group, name=name.rpartition(" ")[2], help=GROUPS[name])
    return group


def _examples(name: str) -> str:
    """The first examples of the commands in a group; three in all."""
    lines = [c.epilog.splitlines()[2:] for c in COMMANDS if c.words.startswith(f"{name} ")]
    mixed = [line for row in itertools.zip_longest(*lines) for line in row if line]
    return "\n".join(["\b", "Examples:", *mixed[:3], ""])


def _register() -> None:
    groups: dict[str, typer.Typer] = {}
    for words, function, summary, epilog in COMMANDS:
        first, _, verb = words.rpartition(" ")
        if first and first not in groups:
            groups[first] = _group(first, groups.get(first.rpartition(" ")[0], app))
        group = groups.get(first, app)
        run = _command(with_groups(function))
        group.command(verb, epilog=epilog, short_help=summary)(run)


_register()


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
    completion.prepare()
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
    from falconmq.cli.screen import Screen  # noqa: PLC0415

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
