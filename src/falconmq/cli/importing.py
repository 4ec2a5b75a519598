"""`falconmq import`: messages of a file into a queue.

Batch after batch is sent; FILE.progress says how far that is, so that an import that was
interrupted goes on with --resume. The batch that was on its way then is sent again under the same
key: the service knows it and does not do it twice. Only if the service was started anew in between,
or had no room for a whole batch in a queue that is not transactional, nobody can know which of its
messages arrived: the command says which ones those are, and leaves it to a person.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote
from uuid import uuid4

import typer

from falconmq.cli.connection import refusal, service
from falconmq.cli.options import Place, complete_queue
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.progress import progress
from falconmq.cli.tables import count_of, print_json
from falconmq.cli.transfer import (
    STREAM,
    FileFormat,
    FormatOption,
    as_sent,
    format_of,
    read_lines,
    read_parquet,
    sync,
)

if TYPE_CHECKING:
    from falconmq.client import ControlClient
    from falconmq.errors import FalconMQError

EPILOG = """\b
Examples:
  falconmq import orders.jsonl '.\\private$\\orders'
  falconmq import orders.parquet '.\\private$\\orders' --resume
  zcat orders.jsonl.gz | falconmq import - '.\\private$\\orders' --transaction
"""
BATCH_MESSAGES: Final = 500
BATCH_BYTES: Final = 4 << 20
TRANSACTION_SECONDS: Final = 3600

Json = dict[str, Any]
Batch = list[tuple[int, Json]]  # with their numbers in the file


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is; what FILE.progress says."""

    queue: str
    key: str  # names this import
    size: int  # of the file, which must be the same one
    done: int = 0  # messages of the file
    sending: int = 0  # up to this one are on their way; 0: none
    run: str = ""  # of the service that they were sent to


def import_messages(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="orders.jsonl, orders.parquet, or - for JSON lines on standard input.",
            show_default=False,
        ),
    ],
    queue: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE",
            help=r"Path name or format name, in single quotes: '.\private$\orders'.",
            show_default=False,
            autocompletion=complete_queue,
        ),
    ],
    file_format: FormatOption = None,
    transaction: Annotated[
        bool,
        typer.Option("--transaction", help="All messages or none, in one transaction."),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an interrupted import stopped.")
    ] = False,
    skip: Annotated[
        int | None,
        typer.Option(
            help="Begin behind so many messages of the file.",
            metavar="NUMBER",
            min=0,
            show_default=False,
        ),
    ] = None,
    *,
    place: Place,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="One JSON object for each message: its old and its new id."),
    ] = False,
) -> int:
    """Send the messages of a file to a queue, with every property they have there.

    They get new ids: a queue manager names its own messages. An import that is interrupted leaves
    FILE.progress and goes on with --resume; with --transaction it leaves nothing at all.
    """
    chosen = format_of(file, file_format)
    if resume and (transaction or file == STREAM):
        what = "a transaction" if transaction else "standard input"
        raise WrongUsageError(f"{what} cannot be resumed", "leave out --resume")
    if resume and skip is not None:
        raise WrongUsageError("--resume knows where to go on", "give --resume or --skip")
    state = _state(file, queue, resume=resume, skip=skip, keeps=not transaction)
    with service(place) as client, _messages(file, chosen) as messages:
        importer = Importer(client, state, file, as_json=as_json)
        if transaction:
            sent = importer.send_all_or_none(messages)
        else:
            sent = importer.send(messages, keeps=file != STREAM)
    sys.stderr.write(f"imported {count_of(sent, 'message')} into {queue}\n")
    return 0


class BatchRefusedError(CommandError):
    """The service did not take a batch."""

    def __init__(self, message: str, hint: str, *, may_be_sent: bool = False) -> None:
        super().__init__(message, hint)
        self.may_be_sent = may_be_sent  # some of its messages


class Importer:
    """Sends batches, and remembers how far it is."""

    def __init__(
        self, client: ControlClient, state: Progress, file: Path, *, as_json: bool
    ) -> None:
        self._client = client
        self._state = state
        self._file = file
        self._as_json = as_json
        self._path = f"/queues/{quote(state.queue, safe='')}/messages"
        self._run: str = client.request("GET", "/manager")["run_id"]

    def send(self, messages: Iterator[Json], *, keeps: bool) -> int:
        """Batch after batch; with `keeps` the file of the progress is kept as well."""
        state, sent = self._state, 0
        numbered = islice(enumerate(messages, 1), state.done, None)
        first = state.sending  # a batch that was on its way is sent again as it was
        with progress("import") as advance:
            for batch in _batches(numbered, first):
                last = batch[-1][0]
                run = state.run if last == first else self._run
                state = replace(state, sending=last, run=run)
                self._keep(state, keeps=keeps)
                try:
                    self._send(batch, {**self._headers(state, batch), "X-FalconMQ-Run": run}, None)
                except BatchRefusedError as error:
                    if not error.may_be_sent:
                        self._keep(replace(state, sending=0), keeps=keeps)
                    raise
                state = replace(state, done=last, sending=0)
                self._keep(state, keeps=keeps)
                sent += len(batch)
                advance(len(batch))
        if keeps:
            progress_of(self._file).unlink(missing_ok=True)
        return sent

    def send_all_or_none(self, messages: Iterator[Json]) -> int:
        """All in one transaction; whatever goes wrong, nothing was sent."""
        opened = self._client.request("POST", "/transactions", {"timeout": TRANSACTION_SECONDS})
        id, sent = opened["id"], 0
        try:
            numbered = islice(enumerate(messages, 1), self._state.done, None)
            with progress("import") as advance:
                for batch in _batches(numbered, 0):
                    self._send(batch, self._headers(self._state, batch), id)
                    self._client.request("POST", f"/transactions/{id}/extend")
                    sent += len(batch)
                    advance(len(batch))
        except BaseException:
            self._abort(id)
            raise
        self._client.request("POST", f"/transactions/{id}/commit")
        return sent

    def _keep(self, state: Progress, *, keeps: bool) -> None:
        if keeps:
            _write(self._file, state)

    def _headers(self, state: Progress, batch: Batch) -> dict[str, str]:
        return {"Idempotency-Key": f"import-{state.key}-{batch[0][0]}-{batch[-1][0]}"}

    def _send(self, batch: Batch, headers: Mapping[str, str], transaction: str | None) -> None:
        from falconmq.errors import FalconMQError  # noqa: PLC0415

        body = {"messages": [as_sent(message) for _, message in batch], "transaction": transaction}
        try:
            ids = self._client.request("POST", self._path, body, headers=headers)["ids"]
        except FalconMQError as error:
            raise self._refused(error, batch) from error
        if self._as_json:
            for (number, message), id in zip(batch, ids, strict=True):
                old = message.get("id")
                print_json({"line": number, "old_id": old, "id": id}, as_line=True)

    def _refused(self, error: FalconMQError, batch: Batch) -> Exception:
        """The error with the messages it is about."""
        if getattr(error, "http_status", None) is None:
            return error  # no answer: --resume finds out
        first, last, told = batch[0][0], batch[-1][0], refusal(error)
        # What is wrong with a message is found before any is sent; a transaction is all or none.
        may_be_sent = len(batch) > 1 and not str(error).startswith("messages[")
        may_be_sent = may_be_sent and not self._is_transactional()
        where = f"{self._file}, messages {first} to {last}"
        if not may_be_sent:
            return BatchRefusedError(f"{where}: {told}", told.hint)
        hint = f"{told.hint}; some of them may have been sent: look, then go on with --skip NUMBER"
        return BatchRefusedError(f"{where}: {told}", hint, may_be_sent=True)

    def _is_transactional(self) -> bool:
        from falconmq.errors import FalconMQError  # noqa: PLC0415

        try:
            return bool(self._client.queue(self._state.queue)["transactional"])
        except FalconMQError:  # of another computer: it is sent without a transaction
            return False

    def _abort(self, id: str) -> None:
        from falconmq.errors import FalconMQError  # noqa: PLC0415

        with contextlib.suppress(FalconMQError):  # then it ends by itself
            self._client.request("POST", f"/transactions/{id}/abort")


def _batches(numbered: Iterator[tuple[int, Json]], first: int) -> Iterator[Batch]:
    """As many messages as one request takes; the first batch ends where it ended before."""
    batch: Batch = []
    size = 0
    for number, message in numbered:
        length = len(message.get("body") or message.get("text") or "")
        is_full = len(batch) == BATCH_MESSAGES or size + length > BATCH_BYTES
        if batch and (is_full if number > first else False):
            yield batch
            batch, size = [], 0
        batch.append((number, message))
        size += length
        if number == first:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextlib.contextmanager
def _messages(file: Path, chosen: FileFormat) -> Iterator[Iterator[Json]]:
    if file == STREAM:
        yield read_lines(sys.stdin.buffer, "standard input")
        return
    if chosen is FileFormat.PARQUET:
        yield read_parquet(file)
        return
    with file.open("rb") as lines:
        yield read_lines(lines, str(file))


def progress_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.progress")


def _state(file: Path, queue: str, *, resume: bool, skip: int | None, keeps: bool) -> Progress:
    """A new import, or the one that was interrupted."""
    if file == STREAM:
        return Progress(queue, uuid4().hex, 0, skip or 0)
    try:
        size = file.stat().st_size
    except OSError as error:
        raise WrongUsageError(f"cannot read {file}: {error.strerror}") from error
    kept = progress_of(file)
    if not resume:
        if keeps and skip is None and kept.exists():
            raise CommandError(
                f"{kept} is left of an import that was interrupted",
                "--resume goes on; remove it to send everything again",
            )
        return Progress(queue, uuid4().hex, size, skip or 0)
    return _read(kept, queue, size)


def _read(kept: Path, queue: str, size: int) -> Progress:
    try:
        found = Progress(**json.loads(kept.read_bytes()))
    except FileNotFoundError as error:
        raise CommandError(f"there is no {kept} to go on with", "leave out --resume") from error
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(f"cannot read {kept}: {error}", "--skip NUMBER goes on as well") from (
            error
        )
    if found.queue.lower() != queue.lower():
        raise CommandError(f"{kept} is about {found.queue}", "name the same queue")
    if found.size != size:
        raise CommandError(f"{kept} is about a file of {found.size} bytes, this one has {size}")
    return found


def _write(file: Path, state: Progress) -> None:
    """So that it is there after a crash: the old one or the new one, never half of it."""
    kept = progress_of(file)
    new = kept.with_name(f"{kept.name}.new")
    with new.open("wb") as out:
        out.write(json.dumps(asdict(state)).encode())
        sync(out)
    new.replace(kept)
