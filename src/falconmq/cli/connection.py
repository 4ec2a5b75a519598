"""How commands reach a queue manager, and its refusals in their words.

--url             a service anywhere, over HTTP
--data, --config  the service of that directory, over its control socket; if none runs, the
                  directory is opened in this process
nothing           the user's own service; it must run
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from falconmq.cli.options import Place
from falconmq.cli.problems import CommandError, WrongUsageError

if TYPE_CHECKING:
    from falconmq.client import ControlClient
    from falconmq.errors import FalconMQError

# What the service says to programs, and what it means here.
_HINTS: Final = (
    (re.compile(r"manager\.create_queue\(r'(.*?)'\)"), r"falconmq queue create '\1'"),
    (re.compile(r"delete it without only_if_empty"), "delete it with --force"),
    (re.compile(r"transactional=True"), "--transactional"),
    (re.compile(r"^with manager\.transaction\(\).*"), "send it with --transaction"),
    (re.compile(r"^leave the transaction out"), "leave out --transaction"),
)


class UnreachableServiceError(CommandError):
    """No service answers."""

    exit_code = 3


@contextlib.contextmanager
def service(place: Place, *, makes: bool = False, opens: bool = True) -> Iterator[ControlClient]:
    """The queue manager that the options mean; its errors become those of commands.

    With `makes` a directory that is named and not there becomes a new queue manager. Without
    `opens` it has to be served already.
    """
    # Imported here, so that `falconmq --help` does not wait for it.
    from falconmq.client import UnreachableError  # noqa: PLC0415
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    place = place.with_environment()
    try:
        with _reached(place, makes=makes, opens=opens) as client:
            yield client
    except UnreachableError as error:
        raise UnreachableServiceError(str(error), error.hint) from error
    except FalconMQError as error:
        raise refusal(error) from error


def directory_of(place: Place) -> Path:
    """The data directory that the options mean, whether or not anything is in it."""
    from falconmq.client import data_directory  # noqa: PLC0415
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    place = place.with_environment()
    if place.url is not None:
        raise WrongUsageError("--url is no directory", "name the data directory: --data DIR")
    try:
        return place.data if place.data is not None else data_directory(place.config)
    except FalconMQError as error:
        raise WrongUsageError(str(error), error.hint) from error


@contextlib.contextmanager
def _reached(place: Place, *, makes: bool, opens: bool) -> Iterator[ControlClient]:
    from falconmq.client import CONTROL_SOCKET, ControlClient  # noqa: PLC0415
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    if place.url is not None:
        _say(place, f"the service at {place.url}")
        try:
            client = ControlClient.connect(place.url, place.secret())
        except FalconMQError as error:
            raise WrongUsageError(str(error), error.hint) from error
        with client:
            yield client
        return
    directory = directory_of(place)
    with contextlib.ExitStack() as stack:
        if opens and place.is_named and not is_served(directory):
            socket = stack.enter_context(_opened(place, directory, makes=makes))
        else:
            _say(place, f"the service of {directory}")
            socket = directory / CONTROL_SOCKET
        yield stack.enter_context(ControlClient(socket))


def is_served(directory: Path) -> bool:
    """Whether a service listens there; what it answers is the business of whoever asks it."""
    import socket  # noqa: PLC0415

    from falconmq.client.location import CONTROL_SOCKET, socket_name  # noqa: PLC0415

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            with socket_name(directory / CONTROL_SOCKET) as name:
                probe.connect(name)
        except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # somebody is there, but not for us: the client says what it is
    return True


@contextlib.contextmanager
def _opened(place: Place, directory: Path, *, makes: bool) -> Iterator[Path]:
    """The directory itself, in this process; the socket of its queue manager."""
    from falconmq.client import UnreachableError  # noqa: PLC0415
    from falconmq.errors import FalconMQError, MqStatus  # noqa: PLC0415
    from falconmq.store.data_directory import VERSION_FILE  # noqa: PLC0415

    if not makes and not (directory / VERSION_FILE).exists():
        raise _nothing_there(directory)
    try:
        from falconmq.service.local import LocalManager  # noqa: PLC0415 - it takes half a second
    except ModuleNotFoundError as error:
        raise CommandError(
            f"to open a data directory {error.name} is needed, which is not installed",
            "pip install 'falconmq[server]'",
        ) from error
    try:
        manager = LocalManager.configured(directory, place.config)
    except FalconMQError as error:
        raise WrongUsageError(str(error), error.hint) from error
    stack = contextlib.ExitStack()
    try:
        socket = stack.enter_context(manager)
    except FalconMQError as error:
        if error.status is MqStatus.SHARING_VIOLATION:
            raise UnreachableError(str(error), status=error.status, hint=error.hint) from error
        raise
    _say(place, f"no service runs at {directory}: it is opened here")
    with stack:
        yield socket


def _nothing_there(directory: Path) -> UnreachableServiceError:
    import shlex  # noqa: PLC0415

    return UnreachableServiceError(
        f"no service is running at {directory}",
        f"start it: falconmq serve --data {shlex.quote(str(directory))}",
    )


def _say(place: Place, text: str) -> None:
    if place.verbose:
        sys.stderr.write(f"{text}\n")


def refusal(error: FalconMQError) -> CommandError:
    """The text with the status that people search for, and a hint that can be typed."""
    first, *rest = str(error).split("\n")
    message = "\n".join([f"{first} ({error.status.symbol} 0x{error.status:08X})", *rest])
    hint = error.hint
    for said, meant in _HINTS:
        hint = said.sub(meant, hint)
    return CommandError(message, hint)
