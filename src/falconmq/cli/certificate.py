"""`falconmq certificate`: who signs messages with what, and whose signatures are believed."""

from __future__ import annotations

import base64
import re
import ssl
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from falconmq.cli.connection import service
from falconmq.cli.key import read_file
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.tables import local_time, print_json, print_table
from falconmq.cli.token import seconds
from falconmq.client.control import ControlClient

CREATE_EPILOG = """\b
Examples:
  falconmq certificate create S-1-5-21-7-8-9-1001 > anna.pem
  falconmq certificate create anna --expires 1y         a principal of the configuration
  falconmq certificate create S-1-5-21-7-8-9-1001 --data ./data
"""
REGISTER_EPILOG = """\b
Examples:
  falconmq certificate register S-1-5-21-7-8-9-1001 anna.pem
  falconmq certificate register S-1-5-21-7-8-9-1001 anna.cer --key anna.key
  falconmq certificate register S-1-5-21-7-8-9-1001 anna.p12 --key anna.p12 --password-file secret
"""
LIST_EPILOG = """\b
Examples:
  falconmq certificate list                             of the user's own service
  falconmq certificate list --json
  falconmq certificate list --data ./data
"""
REMOVE_EPILOG = """\b
Examples:
  falconmq certificate remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0
  falconmq certificate remove 1f2e --data ./data
  falconmq certificate remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0 --json
"""

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)

Json = dict[str, Any]
UserArgument = Annotated[
    str,
    typer.Argument(
        metavar="USER",
        help="Whose it is: a SID, or the name of a principal of the configuration.",
        show_default=False,
    ),
]


def create(
    user: UserArgument,
    place: Place,
    expires: Annotated[
        str | None,
        typer.Option(
            help="How long it is good: 30d, 1y. Five years if left out.",
            metavar="TIME",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Make a certificate for a user, and the key to sign with, which stays in the data directory.

    The certificate is printed: whoever receives messages of this user registers it.
    """
    asked: Json = {"user": user, "lifetime": None if expires is None else seconds(expires)}
    with service(place) as client:
        made: Json = client.request("POST", "/certificates", asked)
    if as_json:
        print_json(made)
        return 0
    sys.stdout.write(made["certificate"])
    until = local_time(made["expires"])
    sys.stderr.write(f"made {made['id']} for {_user(made)} until {until}\n")
    return 0


def register(
    user: UserArgument,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="An X.509 certificate, PEM or DER; - is standard input."
        ),
    ],
    place: Place,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="KEYFILE",
            help="Its private key, to sign with here: PEM, DER or PKCS#12. It goes into the data "
            "directory of this computer, and never to another.",
            show_default=False,
        ),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file whose first line is the password of the key.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Believe signatures that are made with the key of this certificate to be those of a user.

    With --key the user can sign messages with it here: falconmq send --certificate.
    """
    if password_file is not None and key is None:
        raise WrongUsageError("--password-file without a key", "the key is named with --key")
    asked: Json = {"user": user}
    if key is None:
        asked["certificate"] = _as_text(file, read_file(file))
    else:
        asked.update(_with_key(place, file, key, password_file))
    with service(place) as client:
        made: Json = client.request("POST", "/certificates/register", asked)
    if as_json:
        print_json(made)
    else:
        with_key = " with its key" if made["signs"] else ""
        name = f"{made['id']} ({made['subject']})"
        sys.stdout.write(f"registered {name}{with_key} for {_user(made)}\n")
    return 0


def list_certificates(place: Place, as_json: JsonOption = False) -> int:
    """List the certificates of users. Internal ones were made here, external ones registered."""
    with service(place) as client:
        answer: Json = client.request("GET", "/certificates")
    if as_json:
        print_json(answer)
    elif answer["certificates"]:
        print_table(
            ("ID", "USER", "KIND", "BITS", "EXPIRES", "SUBJECT"),
            [
                (
                    each["id"],
                    _user(each),
                    _kind(each),
                    str(each["bits"]),
                    "expired" if each["expired"] else local_time(each["expires"]),
                    each["subject"],
                )
                for each in answer["certificates"]
            ],
        )
    else:
        sys.stderr.write("no certificates yet\n")
    return 0


def remove(
    identifier: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Which, or the beginning of it; see: falconmq certificate list.",
            show_default=False,
        ),
    ],
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Forget a certificate, and its private key if that is here."""
    with service(place) as client:
        listed: list[Json] = client.request("GET", "/certificates")["certificates"]
        wanted = identifier.lower() or "?"  # nothing is the beginning of everything
        found = [each["id"] for each in listed if each["id"].startswith(wanted)]
        if len(found) != 1:
            what = f"{len(found)} certificates begin with" if found else "there is no certificate"
            raise CommandError(f"{what} {identifier}", "falconmq certificate list shows them")
        identifier = found[0]
        client.request("DELETE", f"/certificates/{identifier}")
    if as_json:
        print_json({"removed": identifier})
    else:
        sys.stdout.write(f"removed {identifier}\n")
    return 0


def certificate_named(client: ControlClient, which: str) -> str:
    """The certificate to sign with that somebody means, as the API takes it: base64 of its DER."""
    listed: list[Json] = client.request("GET", "/certificates")["certificates"]
    found = [each for each in listed if each["signs"] and _is_named(each, which)]
    if not found:
        raise CommandError(
            f"there is no certificate {which} to sign with",
            "falconmq certificate list shows them: those that sign have their key here",
        )
    internal = [each for each in found if each["kind"] == "internal"]  # a user has one at most
    if len(found) > 1 and len(internal) != 1:
        raise CommandError(
            f"{len(found)} certificates are called {which}",
            "name one by its id or its fingerprint; see: falconmq certificate list --json",
        )
    data = ssl.PEM_cert_to_DER_cert((internal or found)[0]["certificate"])
    return base64.b64encode(data).decode("ascii")


def _is_named(certificate: Json, which: str) -> bool:
    """By its id, its user, the user's name, its subject or its fingerprint, with or without `:`."""
    names = [certificate[name] for name in ("id", "user", "name", "subject")]
    return which in names or which.replace(":", "").lower() == certificate["fingerprint"]


def _with_key(place: Place, file: Path, key: Path, password_file: Path | None) -> Json:
    """What is asked for with a private key, which is read only if it stays on this computer."""
    if place.with_environment().url is not None:
        raise WrongUsageError(
            "a private key does not travel: --key and --url do not go together",
            "on the computer of the service: falconmq certificate register --key FILE --data DIR",
        )
    data, secret = read_file(file), read_file(key)
    password = b"" if password_file is None else read_file(password_file).split(b"\n")[0]
    try:
        text = password.rstrip(b"\r").decode()
    except UnicodeDecodeError as error:
        raise WrongUsageError(f"{password_file} is no text", "a password is UTF-8") from error
    return {
        "certificate": "" if data == secret and data.startswith(b"0") else _as_text(file, data),
        "key": base64.b64encode(secret).decode("ascii"),
        "password": text,
    }


def _kind(shown: Json) -> str:
    return "external with key" if shown["signs"] and shown["kind"] == "external" else shown["kind"]


def _user(shown: Json) -> str:
    """Whose it is, with the name that the configuration has for it."""
    user, name = shown["user"], shown["name"]
    return user if name == user else f"{name} ({user})"


def _as_text(file: Path, data: bytes) -> str:
    """The certificate in a file as PEM, and nothing else that may be in it: keys stay at home."""
    if data.startswith(b"0"):  # 0x30: a sequence, as every certificate in DER begins
        return ssl.DER_cert_to_PEM_cert(data)
    found = _PEM.search(data)
    if found is not None:
        return found[0].decode("ascii", "replace")
    if b"PRIVATE KEY-----" in data:
        raise CommandError(
            f"{file} has a private key and no certificate",
            "the key stays with whoever signs; register the certificate that belongs to it",
        )
    raise CommandError(f"{file} is no certificate", "PEM and DER are read")
