"""`falconmq backup` and `falconmq restore`: a copy of a queue manager, and the way back."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer

from falconmq.cli.connection import refusal, service
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import CommandError
from falconmq.cli.progress import progress
from falconmq.cli.tables import count_of, local_time, print_json, size_text

BACKUP_EPILOG = """\b
Examples:
  falconmq backup sales01.tar                           of the user's own service, as it runs
  falconmq backup sales01.tar --data ./data             of a directory, served or not
  falconmq backup - --url https://sales02:8018 | gzip > sales02.tar.gz
"""
RESTORE_EPILOG = """\b
Examples:
  falconmq restore sales01.tar --data ./restored        into a new directory
  falconmq restore sales01.tar --check                  is it whole? nothing is restored
  gunzip -c sales02.tar.gz | falconmq restore - --data ./restored
"""
STREAM: Final = "-"
_MEGABYTE: Final = 1 << 20

Json = dict[str, Any]
Advance = Callable[[int], None]


def backup(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Where it goes; - is standard output.", show_default=False
        ),
    ],
    place: Place,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Copy all queues, messages and tokens of a queue manager into one file, while it runs.

    The copy is of one moment. It is written beside FILE first, read again and compared, and then
    takes its name: a FILE that is there is whole. Who can read it can read every message.
    """
    if str(file) == STREAM:
        with _pieces(place) as pieces:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        return 0
    if file.exists() and not force:
        raise CommandError(f"{file} is there already", "name another file, or give --force")
    manifest = _write(file, place)
    if as_json:
        print_json(manifest)
    else:
        sys.stdout.write(f"{file}: {_described(manifest)}\n")
    return 0


def restore(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A backup; - is standard input.", show_default=False),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Directory to restore to; a new or an empty one.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the data that are there, for good.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only read and compare it; nothing is restored.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Make a data directory of a backup; `falconmq serve --data DIR` runs it afterwards.

    It is the same queue manager, with the same identifier, as it was then: the first one must not
    run any more. What was received since the backup is there again, what came since is not, and
    messages that were under way may arrive a second time.
    """
    from falconmq.service import restore as restoring  # noqa: PLC0415

    if data is None and not check:
        raise CommandError("where to is not said", "name a directory: --data DIR; or give --check")
    with _opened(file) as source, _refusals(), _counted("restore", file) as advance:
        if data is None or check:
            manifest, again = restoring.verify(source, advance), 0
        else:
            found = restoring.restore(source, data, _now(), force=force, advance=advance)
            manifest, again = found.manifest, found.sent_again
    if as_json:
        print_json({**manifest, "sent_again": again})
        return 0
    where = file if data is None or check else data
    sys.stdout.write(f"{where}: {_described(manifest)}\n")
    if again:
        text = (
            f"{count_of(again, 'transactional message')} under way at the backup may arrive twice"
        )
        sys.stderr.write(f"{text}\n")
    return 0


def _write(file: Path, place: Place) -> Json:
    """Write beside the file, compare, sync, and give it its name."""
    from falconmq.service.restore import verify  # noqa: PLC0415

    part = file.with_name(f"{file.name}.part")
    try:
        with _pieces(place) as pieces, _new(part) as target:
            for piece in pieces:
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
        with part.open("rb") as source, _refusals():
            manifest = verify(source)
        part.replace(file)
        _sync(file.absolute().parent)
    except OSError as error:
        raise CommandError(f"cannot write {part}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


@contextlib.contextmanager
def _pieces(place: Place) -> Iterator[Iterator[bytes]]:
    with service(place) as client:
        total = int(client.status()["used_bytes"]) // _MEGABYTE
        with (
            progress("backup, MiB", total) as advance,
            client.stream("GET", "/backup") as pieces,
        ):
            yield _counting(pieces, advance)


def _counting(pieces: Iterator[bytes], advance: Advance) -> Iterator[bytes]:
    add = _megabytes(advance)
    for piece in pieces:
        yield piece
        add(len(piece))


def _megabytes(advance: Advance) -> Advance:
    """Bars in MiB, told in bytes."""
    rest = 0

    def add(count: int) -> None:
        nonlocal rest
        whole, rest = divmod(rest + count, _MEGABYTE)
        advance(whole)

    return add


@contextlib.contextmanager
def _counted(what: str, file: Path) -> Iterator[Advance]:
    total = None if str(file) == STREAM else file.stat().st_size // _MEGABYTE
    with progress(f"{what}, MiB", total) as advance:
        yield _megabytes(advance)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if str(file) == STREAM:
        yield sys.stdin.buffer
        return
    try:
        source = file.open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from error
    with source:
        yield source


def _new(path: Path) -> BinaryIO:
    """Only its owner can read it: it has every message."""
    flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
    return os.fdopen(os.open(path, flags, 0o600), "wb")


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    from falconmq.errors import FalconMQError  # noqa: PLC0415

    try:
        yield
    except FalconMQError as error:
        raise refusal(error) from error


def _described(manifest: Json) -> str:
    records, size = manifest["records"], manifest["files"]["data.mdb"]["size"]
    messages = count_of(records.get("messages", 0), "message")
    return f"{manifest['name']} of {local_time(manifest['time'])}, {messages}, {size_text(size)}"


def _now() -> float:
    import time  # noqa: PLC0415

    return time.time()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
