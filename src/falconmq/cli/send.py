"""`falconmq send`: every property of a message is an option."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from falconmq.cli.certificate import certificate_named
from falconmq.cli.connection import service
from falconmq.cli.message_options import MessageOptions, as_base64, read_file
from falconmq.cli.options import Place, QueueArgument
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import print_json

EPILOG = """\b
Examples:
  falconmq send '.\\private$\\orders' --body 'hello' --label 'first'
  falconmq send 'sales02\\orders' --file order.xml --sign     a public queue of another computer
  seq 3 | falconmq send '.\\private$\\orders' --count 100 --express --json
"""
BATCH_MESSAGES: Final = 500  # of one request
BATCH_BYTES: Final = 4 * 1024 * 1024


def send(
    queue: QueueArgument,
    body: Annotated[
        str | None,
        typer.Option(
            help="The body as text. Without --body and --file: standard input.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="The body: the bytes of this file; - is standard input.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="Send it so many times.", metavar="NUMBER", min=1)] = 1,
    transaction: Annotated[
        bool,
        typer.Option(
            "--transaction",
            help="In a transaction. For a transactional queue of another computer; a local one "
            "gets it anyway.",
        ),
    ] = False,
    *,
    properties: MessageOptions,
    place: Place,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object with the id for each message.")
    ] = False,
) -> int:
    """Send a message; prints its id when it is safe.

    A local transactional queue gets the message in a transaction. Several queues at once: their
    format names with commas between them.
    """
    message: dict[str, Any] = {**_body(body, file), **properties.as_json()}
    size = len(message.get("body", "") or message.get("text", ""))
    batch = max(1, min(BATCH_MESSAGES, BATCH_BYTES // (size + 1)))
    with service(place) as client:
        if properties.certificate is not None:
            message["sender_certificate"] = certificate_named(client, properties.certificate)
        for start in range(0, count, batch):
            messages = [message] * min(batch, count - start)
            for id in client.send(queue, messages, transaction or None):
                if as_json:
                    print_json({"id": id}, as_line=True)
                else:
                    sys.stdout.write(f"{id}\n")
    return 0


def _body(text: str | None, file: Path | None) -> dict[str, str]:
    if text is not None and file is not None:
        raise WrongUsageError("--body and --file are two bodies", "give one of them")
    if text is not None:
        return {"text": text}
    if file is not None and str(file) != "-":
        return {"body": as_base64(read_file(file))}
    if file is None and sys.stdin.isatty():
        raise WrongUsageError(
            "there is nothing to send", "give --body TEXT, --file FILE, or pipe something in"
        )
    return {"body": as_base64(sys.stdin.buffer.read())}
