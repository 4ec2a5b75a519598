"""`falconmq export`: the messages of a queue into a file.

The file grows as FILE.part, in JSON lines, and gets its name when it is whole and on the disk. With
--consume messages are held under a lease while their lines are written; when those are on the disk,
the lease is committed and the messages are gone. Whatever ends the command in between, the messages
are in their queue again or in FILE.part, and `--resume` goes on: what is in both is written once.
FILE.part.lease names the lease meanwhile, so that whoever goes on need not wait for its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, QueueArgument
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.progress import Advance, progress
from falconmq.cli.tables import count_of, print_json
from falconmq.cli.transfer import (
    STREAM,
    FileFormat,
    FormatOption,
    format_of,
    sync,
    write_parquet,
)

if TYPE_CHECKING:
    from falconmq.client import ControlClient

EPILOG = """\b
Examples:
  falconmq export '.\\private$\\orders' orders.jsonl
  falconmq export '.\\private$\\orders' orders.parquet --consume
  falconmq export '.\\system$;deadletter' - | jq --raw-output .label
"""
PAGE_MESSAGES: Final = 500  # of one request
PAGE_BYTES: Final = 8 << 20
LEASE_SECONDS: Final = 60  # to write one page; then the messages are back in their queue

Json = dict[str, Any]


def export(
    queue: QueueArgument,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="orders.jsonl, orders.parquet, or - for JSON lines on standard output.",
            show_default=False,
        ),
    ],
    file_format: FormatOption = None,
    count: Annotated[
        int | None,
        typer.Option(help="At most so many messages.", metavar="NUMBER", min=1, show_default=False),
    ] = None,
    consume: Annotated[
        bool,
        typer.Option("--consume", help="Receive the messages: those in the file leave the queue."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with FILE.part of an earlier --consume.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Write the messages of a queue into a file, with every property, byte for byte.

    The messages stay in the queue unless --consume. An export that is interrupted leaves FILE.part.
    """
    chosen = format_of(file, file_format)
    _check(file, consume=consume, resume=resume, force=force)
    with service(place) as client:
        found = client.queue(queue)
        total = found["messages"] if count is None else min(count, found["messages"])
        exporter = Exporter(client, queue, _page_size(found), count, _lease_of(file))
        with _opened(file, resume=resume) as out, progress("export", total) as advance:
            written = exporter.consume(out, advance) if consume else exporter.copy(out, advance)
        held = exporter.held()
        _finish(file, chosen, found["name"])
    if as_json and file != STREAM:
        print_json({"exported": written, "consumed": consume, "file": str(file)})
    else:
        where = "to standard output" if file == STREAM else f"to {file}"
        sys.stderr.write(f"exported {count_of(written, 'message')} {where}\n")
    if held:
        sys.stderr.write(f"others hold {count_of(held, 'message')}, which no export can see\n")
    return 0


class Exporter:
    """Pages of messages of one queue, into an open file."""

    def __init__(
        self, client: ControlClient, queue: str, page: int, count: int | None, kept: Path | None
    ) -> None:
        self._client = client
        self._queue = queue
        self._page = page
        self._left = count
        self._kept = kept  # the file that names the lease
        self._path = f"/queues/{quote(queue, safe='')}/receive"

    def copy(self, out: IO[bytes], advance: Advance) -> int:
        """Peek; the messages stay."""
        written, after = 0, None
        while page := self._next(peek=True, after=after)["messages"]:
            out.writelines(map(_line, page))
            written += len(page)
            after = page[-1]["lookup_id"]
            self._took(page)
            advance(len(page))
        sync(out)
        return written

    def consume(self, out: IO[bytes], advance: Advance) -> int:
        """Receive: hold a page, write it, sync it, and only then let go of it for good."""
        written = 0
        known = _last_ids(out)
        self._end_old_lease()
        while True:
            answer = self._next(peek=False, lease=LEASE_SECONDS)
            page, lease = answer["messages"], answer["lease"]
            if not page:
                self._forget_lease()
                return written
            new = [message for message in page if message["id"] not in known]
            self._write(out, new, lease)
            self._client.request("POST", f"/leases/{lease}/commit")
            written += len(new)
            self._took(page)
            advance(len(page))

    def held(self) -> int:
        """Messages that others hold: no export can see them."""
        path = self._path.replace("/receive", "/messages?count=1&body=none")
        held: int = self._client.request("GET", path)["held"]
        return held

    def _write(self, out: IO[bytes], messages: list[Json], lease: str) -> None:
        end = out.tell() if out.seekable() else None
        try:
            if self._kept is not None:
                self._kept.write_text(lease)
            out.writelines(map(_line, messages))
            sync(out)
        except BaseException:
            self._give_back(lease)
            _cut(out, end)
            raise

    def _end_old_lease(self) -> None:
        """The messages that an export held when it was killed are back at once."""
        if self._kept is not None and self._kept.exists():
            self._give_back(self._kept.read_text())
            self._forget_lease()

    def _forget_lease(self) -> None:
        if self._kept is not None:
            self._kept.unlink(missing_ok=True)

    def _next(self, **wanted: Any) -> Json:
        """The next page; an empty one when enough was taken."""
        size = self._page if self._left is None else min(self._page, self._left)
        if size == 0:
            return {"messages": [], "lease": None}
        body = {"count": size, **{key: v for key, v in wanted.items() if v is not None}}
        return self._client.request("POST", self._path, body)

    def _took(self, page: list[Json]) -> None:
        if self._left is not None:
            self._left -= len(page)

    def _give_back(self, lease: str) -> None:
        """At once, not when the lease has run out."""
        from falconmq.errors import FalconMQError  # noqa: PLC0415

        with contextlib.suppress(FalconMQError):  # it has ended already
            self._client.request("POST", f"/leases/{quote(lease, safe='')}/abort")


def _check(file: Path, *, consume: bool, resume: bool, force: bool) -> None:
    if resume and not consume:
        raise WrongUsageError("--resume goes on with --consume", "without it just export again")
    if file == STREAM:
        if resume:
            raise WrongUsageError("standard output cannot be resumed", "name a file")
        return
    if file.exists() and not force:
        raise CommandError(f"{file} is there already", "to replace it: --force")
    part = part_of(file)
    if part.exists() and not resume:
        raise CommandError(
            f"{part} is left of an export that was interrupted",
            "if that was one with --consume, its messages are only there: --consume --resume goes "
            "on; else remove it",
        )
    if resume and not part.exists():
        raise CommandError(f"there is no {part} to go on with", "leave out --resume")


def part_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.part")


def _lease_of(file: Path) -> Path | None:
    return None if file == STREAM else file.with_name(f"{file.name}.part.lease")


@contextlib.contextmanager
def _opened(file: Path, *, resume: bool) -> Iterator[IO[bytes]]:
    if file == STREAM:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    part = part_of(file)
    try:
        with part.open("r+b" if resume else "xb") as out:
            if resume:
                _cut_torn_line(out)
            yield out
    except OSError as error:
        raise CommandError(f"cannot write {part}: {error.strerror or error}") from error


def _finish(file: Path, chosen: FileFormat, queue: str) -> None:
    """The file is whole: it gets its name, and both are on the disk."""
    if file == STREAM:
        return
    part = whole = part_of(file)
    if chosen is FileFormat.PARQUET:
        whole = file.with_name(f"{file.name}.making")
        write_parquet(part, whole, queue)
        with whole.open("rb") as made:
            sync(made)
    whole.replace(file)
    directory = os.open(file.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    part.unlink(missing_ok=True)


def _page_size(queue: Json) -> int:
    """As many messages as make an answer of a few megabytes."""
    average: int = queue["size_bytes"] // max(1, queue["messages"])
    return max(1, min(PAGE_MESSAGES, PAGE_BYTES // max(1, average)))


def _line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _cut_torn_line(out: IO[bytes]) -> None:
    """A crash may have left the beginning of a line."""
    content_end = 0
    out.seek(0)
    for line in out:
        if line.endswith(b"\n"):
            content_end += len(line)
    _cut(out, content_end)


def _cut(out: IO[bytes], end: int | None) -> None:
    if end is not None:
        out.seek(end)
        out.truncate()


def _last_ids(out: IO[bytes]) -> set[str]:
    """The ids of the lines that may be in the queue still: their commit may not have happened."""
    if not out.seekable() or not out.readable():
        return set()
    out.seek(0)
    lines = deque(out, maxlen=PAGE_MESSAGES)
    out.seek(0, os.SEEK_END)
    return {json.loads(line)["id"] for line in lines}
