"""The properties of a message as options of `falconmq send`, and as the JSON of the service."""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from falconmq.cli.problems import WrongUsageError

_HEX: Final = "Hexadecimal digits, or @FILE."
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
_OTHERS: Final = ("acknowledge", "provider", "provider_type", "sign", "certificate")
_CHANGED: Final = {*_BYTES, *_QUEUES, *_SECONDS, *_OTHERS}
_SIGNATURE: Final = "SIG20"  # what every MSMQ since Windows 2000 verifies

Json = dict[str, Any]


def _option(help: str, metavar: str = "TEXT", *names: str, **more: Any) -> Any:  # noqa: A002 - as typer says it
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **more)


def _flag(name: str, help: str) -> Any:  # noqa: A002 - as typer says it
    return typer.Option(name, help=help, show_default=False)


Text = str | None
Number = int | None
Flag = bool | None
Texts = list[str] | None


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Every property beside the body; None: as the queue manager has it."""

    body_type: Annotated[
        Text,
        _option("What readers take the body for: VT_BSTR (--body), VT_EMPTY (bytes), ...", "TYPE"),
    ] = None
    label: Annotated[Text, _option("Up to 249 characters that people see.")] = None
    priority: Annotated[
        Number,
        _option("The highest is received first; 3 if left out.", "NUMBER", min=0, max=7),
    ] = None
    recoverable: Annotated[
        Flag,
        _flag(
            "--recoverable/--express",
            "It survives a restart (if left out, too), or lives in memory alone.",
        ),
    ] = None
    time_to_reach_queue: Annotated[
        Text,
        _option("Until it must be in its queue, or 'infinite'; four days if left out.", "SECONDS"),
    ] = None
    time_to_be_received: Annotated[
        Text,
        _option("Until it must have been received, or 'infinite', as if left out.", "SECONDS"),
    ] = None
    acknowledge: Annotated[
        Texts,
        _option(
            "Which acknowledgements are wanted: positive-arrival, positive-receive, "
            "negative-arrival, negative-receive, full-reach-queue, full-receive, "
            "nack-reach-queue, nack-receive. May be repeated.",
            "KIND",
        ),
    ] = None
    administration_queue: Annotated[
        Texts, _option("Format name: acknowledgements go there. May be repeated.", "QUEUE")
    ] = None
    response_queue: Annotated[
        Texts, _option("Format name: answers go there. May be repeated.", "QUEUE")
    ] = None
    journal: Annotated[
        Texts,
        _option("Copies this computer keeps: dead-letter, journal. May be repeated.", "KIND"),
    ] = None
    dead_letter_queue: Annotated[
        Text, _option("Path name of the application's own dead-letter queue.", "QUEUE")
    ] = None
    correlation_id: Annotated[
        Text, _option(r"The id of the message it answers: '{GUID}\number'.", "ID")
    ] = None
    application_tag: Annotated[
        Number, _option("A number of the application, AppSpecific in Windows.", "NUMBER", min=0)
    ] = None
    extension: Annotated[Text, _option(f"Bytes beside the body. {_HEX}", "HEX")] = None
    message_class: Annotated[Text, _option("NORMAL, or what an acknowledgement says.", "CLASS")] = (
        None
    )
    allow_peek_when_locked: Annotated[
        Flag, _flag("--allow-peek-when-locked", "Others may peek while it is being received.")
    ] = None
    trace: Annotated[Flag, _flag("--trace", "Report every hop; needs --report-queue.")] = None
    report_queue: Annotated[Text, _option("The public queue that reports go to.", "GUID")] = None
    connector_type: Annotated[
        Text, _option("The connector that a foreign system's application set.", "GUID")
    ] = None
    sign: Annotated[Flag, _flag("--sign", "Sign it, with the certificate of whoever sends it.")] = (
        None
    )
    certificate: Annotated[
        Text,
        _option(
            "Sign it with this one: its id, fingerprint or subject, or whose it is; "
            "see: falconmq certificate list.",
            "WHICH",
        ),
    ] = None
    authentication_level: Annotated[
        Text,
        _option(
            "Which signature: sig10, sig20 (as --sign has it), sig30. Several queues have sig30.",
            "LEVEL",
        ),
    ] = None
    privacy_level: Annotated[
        Text,
        _option(
            "Encryption on its way: none, base, enhanced, advanced.",
            "LEVEL",
            "--privacy-level",
            "--encrypt",
        ),
    ] = None
    encryption_algorithm: Annotated[
        Text, _option("RC2, RC4, AES128, AES192, AES256.", "CIPHER")
    ] = None
    symmetric_key: Annotated[Text, _option(f"The key of an encrypted body. {_HEX}", "HEX")] = None
    hash_algorithm: Annotated[
        Text,
        _option(
            "Of the signature: SHA-512 if left out, SHA-256.", "HASH", "--hash-algorithm", "--hash"
        ),
    ] = None
    signature: Annotated[Text, _option(f"The signature. {_HEX}", "HEX")] = None
    multiple_destination_signature: Annotated[
        Text, _option(f"The signature for several destinations. {_HEX}", "HEX")
    ] = None
    provider: Annotated[
        Text, _option("The cryptographic provider that made the signature.", "NAME")
    ] = None
    provider_type: Annotated[
        int, typer.Option(help="The type of --provider.", metavar="NUMBER")
    ] = 1
    sender_id: Annotated[Text, _option(f"Who sends it: a SID. {_HEX}", "HEX")] = None
    sender_id_type: Annotated[
        Text, _option("What --sender-id is: none, sid, queue-manager.", "TYPE")
    ] = None
    sender_certificate: Annotated[
        Text, _option(f"The certificate of the sender. {_HEX}", "HEX")
    ] = None
    soap_header: Annotated[Text, _option("XML for the SOAP header.", "XML")] = None
    soap_body: Annotated[Text, _option("XML for the SOAP body.", "XML")] = None

    def as_json(self) -> Json:
        """The properties that were given, as the service takes them."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in given.items() if value not in (None, [])}
        found = {name: value for name, value in given.items() if name not in _CHANGED}
        found |= {name: as_base64(_bytes(name, given[name])) for name in _BYTES if name in given}
        found |= {name: _seconds(name, given[name]) for name in _SECONDS if name in given}
        for name in _QUEUES:
            if queues := given.get(name):
                found |= {name: queues[0]} if len(queues) == 1 else {f"{name}s": queues}
        if "sign" in given or "certificate" in given:
            found.setdefault("authentication_level", _SIGNATURE)
        if "acknowledge" in given:
            found["acknowledgements"] = given["acknowledge"]
        if "provider" in given:
            found["provider"] = {"name": given["provider"], "type": self.provider_type}
        return found


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def read_file(file: Path) -> bytes:
    """What is in a file that an option names."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise WrongUsageError(f"cannot read {file}: {error.strerror}") from error


def _seconds(name: str, text: str) -> int | str:
    if text.lower() == "infinite":
        return "infinite"
    if not text.isascii() or not text.isdigit():
        option = name.replace("_", "-")
        raise WrongUsageError(f"--{option} {text}: no time", "give seconds, or 'infinite'")
    return int(text)


def _bytes(name: str, text: str) -> bytes:
    if text.startswith("@"):
        return read_file(Path(text[1:]))
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        option = name.replace("_", "-")
        raise WrongUsageError(f"--{option}: no hexadecimal digits", "or name a file: @FILE") from (
            error
        )
