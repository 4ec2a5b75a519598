"""`falconmq send`: every property of a message is an option."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from falconmq.cli.connection import ConfigOption, DataOption, QueueArgument, service
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import print_json

EPILOG = """\b
Examples:
  falconmq send '.\\private$\\orders' --body 'hello' --label 'first'
  falconmq send 'DIRECT=OS:sales02\\private$\\orders' --file order.xml --priority 5
  seq 3 | falconmq send '.\\private$\\orders' --count 100 --express --json
"""
BATCH_MESSAGES: Final = 500  # of one request
BATCH_BYTES: Final = 4 * 1024 * 1024

_BYTES: Final = (
    "extension",
    "sender_id",
    "sender_certificate",
    "signature",
    "multiple_destination_signature",
    "symmetric_key",
)
_QUEUES: Final = ("administration_queue", "response_queue")
_SECONDS: Final = ("time_to_reach_queue", "time_to_be_received")
_PLAIN: Final = (
    "body_type",
    "label",
    "priority",
    "recoverable",
    "correlation_id",
    "application_tag",
    "message_class",
    "dead_letter_queue",
    "allow_peek_when_locked",
    "trace",
    "report_queue",
    "connector_type",
    "privacy_level",
    "encryption_algorithm",
    "hash_algorithm",
    "sender_id_type",
    "soap_header",
    "soap_body",
)
_HEX_HELP: Final = "Hexadecimal digits, or @FILE."


def _text(help: str, metavar: str = "TEXT", name: str | None = None) -> Any:  # noqa: A002
    return typer.Option(*([name] if name else []), help=help, metavar=metavar, show_default=False)


def send(
    queue: QueueArgument,
    body: Annotated[
        str | None, _text("The body as text. Without --body and --file: standard input.")
    ] = None,
    file: Annotated[
        Path | None, _text("The body: the bytes of this file; - is standard input.", "FILE")
    ] = None,
    body_type: Annotated[
        str | None,
        _text("What readers take the body for: VT_BSTR (--body), VT_EMPTY (bytes), ...", "TYPE"),
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
    label: Annotated[str | None, _text("Up to 249 characters that people see.")] = None,
    priority: Annotated[
        int | None,
        typer.Option(
            help="The highest is received first; 3 if left out.",
            metavar="NUMBER",
            min=0,
            max=7,
            show_default=False,
        ),
    ] = None,
    recoverable: Annotated[
        bool | None,
        typer.Option(
            "--recoverable/--express",
            help="It survives a restart (if left out, too), or lives in memory alone.",
            show_default=False,
        ),
    ] = None,
    time_to_reach_queue: Annotated[
        str | None,
        _text("Until it must be in its queue, or 'infinite'; four days if left out.", "SECONDS"),
    ] = None,
    time_to_be_received: Annotated[
        str | None,
        _text("Until it must have been received, or 'infinite', as if left out.", "SECONDS"),
    ] = None,
    acknowledge: Annotated[
        list[str] | None,
        _text(
            "Which acknowledgements are wanted: positive-arrival, positive-receive, "
            "negative-arrival, negative-receive, full-reach-queue, full-receive, "
            "nack-reach-queue, nack-receive. May be repeated.",
            "KIND",
        ),
    ] = None,
    administration_queue: Annotated[
        list[str] | None,
        _text("Format name: acknowledgements go there. May be repeated.", "QUEUE"),
    ] = None,
    response_queue: Annotated[
        list[str] | None, _text("Format name: answers go there. May be repeated.", "QUEUE")
    ] = None,
    journal: Annotated[
        list[str] | None,
        _text("Copies this computer keeps: dead-letter, journal. May be repeated.", "KIND"),
    ] = None,
    dead_letter_queue: Annotated[
        str | None, _text("Path name of the application's own dead-letter queue.", "QUEUE")
    ] = None,
    correlation_id: Annotated[
        str | None, _text(r"The id of the message it answers: '{GUID}\number'.", "ID")
    ] = None,
    application_tag: Annotated[
        int | None,
        typer.Option(
            help="A number of the application, AppSpecific in Windows.",
            metavar="NUMBER",
            min=0,
            show_default=False,
        ),
    ] = None,
    extension: Annotated[str | None, _text(f"Bytes beside the body. {_HEX_HELP}", "HEX")] = None,
    message_class: Annotated[
        str | None, _text("NORMAL, or what an acknowledgement says.", "CLASS")
    ] = None,
    allow_peek_when_locked: Annotated[
        bool | None,
        typer.Option(
            "--allow-peek-when-locked", help="Others may peek while it is being received."
        ),
    ] = None,
    trace: Annotated[
        bool | None, typer.Option("--trace", help="Report every hop; needs --report-queue.")
    ] = None,
    report_queue: Annotated[
        str | None, _text("The public queue that reports go to.", "GUID")
    ] = None,
    connector_type: Annotated[
        str | None, _text("The connector that a foreign system's application set.", "GUID")
    ] = None,
    privacy_level: Annotated[
        str | None, _text("Encryption on its way: none, base, enhanced, advanced.", "LEVEL")
    ] = None,
    encryption_algorithm: Annotated[
        str | None, _text("RC2, RC4, AES128, AES192, AES256.", "CIPHER")
    ] = None,
    symmetric_key: Annotated[
        str | None, _text(f"The key of an encrypted body. {_HEX_HELP}", "HEX")
    ] = None,
    hash_algorithm: Annotated[
        str | None, _text("Of the signature: SHA-512 if left out.", "HASH")
    ] = None,
    signature: Annotated[str | None, _text(f"The signature. {_HEX_HELP}", "HEX")] = None,
    multiple_destination_signature: Annotated[
        str | None, _text(f"The signature for several destinations. {_HEX_HELP}", "HEX")
    ] = None,
    provider: Annotated[
        str | None, _text("The cryptographic provider that made the signature.", "NAME")
    ] = None,
    provider_type: Annotated[
        int, typer.Option(help="The type of --provider.", metavar="NUMBER")
    ] = 1,
    sender_id: Annotated[str | None, _text(f"Who sends it: a SID. {_HEX_HELP}", "HEX")] = None,
    sender_id_type: Annotated[
        str | None, _text("What --sender-id is: none, sid, queue-manager.", "TYPE")
    ] = None,
    sender_certificate: Annotated[
        str | None, _text(f"The certificate of the sender. {_HEX_HELP}", "HEX")
    ] = None,
    soap_header: Annotated[str | None, _text("XML for the SOAP header.", "XML")] = None,
    soap_body: Annotated[str | None, _text("XML for the SOAP body.", "XML")] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object with the id for each message.")
    ] = False,
) -> int:
    """Send a message; prints its id when it is safe.

    A local transactional queue gets the message in a transaction. Several queues at once: their
    format names with commas between them.
    """
    options = {name: value for name, value in locals().items() if value is not None}
    message = {**_body(body, file), **_properties(options)}
    size = len(message.get("body", "") or message.get("text", ""))
    batch = max(1, min(BATCH_MESSAGES, BATCH_BYTES // (size + 1)))
    with service(data, config) as client:
        left = count
        while left:
            number = min(left, batch)
            for id in client.send(queue, [message] * number, transaction or None):
                if as_json:
                    print_json({"id": id}, as_line=True)
                else:
                    sys.stdout.write(f"{id}\n")
            left -= number
    return 0


def _body(text: str | None, file: Path | None) -> dict[str, str]:
    if text is not None and file is not None:
        raise WrongUsageError("--body and --file are two bodies", "give one of them")
    if text is not None:
        return {"text": text}
    if file is not None and str(file) != "-":
        return {"body": _base64(_read(file))}
    if file is None and sys.stdin.isatty():
        raise WrongUsageError(
            "there is nothing to send", "give --body TEXT, --file FILE, or pipe something in"
        )
    return {"body": _base64(sys.stdin.buffer.read())}


def _properties(options: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that were given, as the service takes them."""
    given = {name: options[name] for name in _PLAIN if name in options}
    for name in _BYTES:
        if name in options:
            given[name] = _base64(_bytes(name, options[name]))
    for name in _SECONDS:
        if name in options:
            given[name] = _seconds(name, options[name])
    for name in _QUEUES:
        if queues := options.get(name):
            given |= {name: queues[0]} if len(queues) == 1 else {f"{name}s": queues}
    if options.get("acknowledge"):
        given["acknowledgements"] = options["acknowledge"]
    if options.get("journal"):
        given["journal"] = options["journal"]
    if "provider" in options:
        given["provider"] = {"name": options["provider"], "type": options["provider_type"]}
    return given


def _seconds(name: str, text: str) -> int | str:
    if text.lower() == "infinite":
        return "infinite"
    if not text.isascii() or not text.isdigit():
        option = name.replace("_", "-")
        raise WrongUsageError(f"--{option} {text}: no time", "give seconds, or 'infinite'")
    return int(text)


def _bytes(name: str, text: str) -> bytes:
    if text.startswith("@"):
        return _read(Path(text[1:]))
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        option = name.replace("_", "-")
        raise WrongUsageError(f"--{option}: no hexadecimal digits", "or name a file: @FILE") from (
            error
        )


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise WrongUsageError(f"cannot read {file}: {error.strerror}") from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
