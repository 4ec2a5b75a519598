"""`falconmq certificate`: who signs messages with what, and whose signatures are believed."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from falconmq.cli.connection import service
from falconmq.cli.key import read_file
from falconmq.cli.options import JsonOption, Place
from falconmq.cli.problems import CommandError
from falconmq.cli.tables import local_time, print_json, print_table
from falconmq.cli.token import seconds

CREATE_EPILOG = """\b
Examples:
  falconmq certificate create S-1-5-21-7-8-9-1001 > anna.pem
  falconmq certificate create S-1-5-21-7-8-9-1001 --expires 1y
  falconmq certificate create S-1-5-21-7-8-9-1001 --data ./data
"""
REGISTER_EPILOG = """\b
Examples:
  falconmq certificate register S-1-5-21-7-8-9-1001 anna.pem
  falconmq certificate register S-1-5-21-7-8-9-1001 anna.cer
  falconmq certificate register S-1-5-21-7-8-9-1001 - < anna.pem
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
  falconmq certificate remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0 --data ./data
  falconmq certificate remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0 --json
"""

Json = dict[str, Any]
UserArgument = Annotated[
    str,
    typer.Argument(metavar="SID", help="Whose it is: S-1-5-21-7-8-9-1001.", show_default=False),
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
    sys.stderr.write(f"made {made['id']} for {made['user']} until {local_time(made['expires'])}\n")
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
    as_json: JsonOption = False,
) -> int:
    """Believe signatures that are made with the key of this certificate to be those of a user."""
    text = _as_text(file, read_file(file))
    with service(place) as client:
        asked: Json = {"user": user, "certificate": text}
        made: Json = client.request("POST", "/certificates/register", asked)
    if as_json:
        print_json(made)
    else:
        sys.stdout.write(f"registered {made['id']} ({made['subject']}) for {made['user']}\n")
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
                    each["user"],
                    each["kind"],
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
            metavar="ID", help="Which; see: falconmq certificate list.", show_default=False
        ),
    ],
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Forget a certificate, and the key of one that was made here."""
    with service(place) as client:
        client.request("DELETE", f"/certificates/{quote(identifier, safe='')}")
    if as_json:
        print_json({"removed": identifier})
    else:
        sys.stdout.write(f"removed {identifier}\n")
    return 0


def _as_text(file: Path, data: bytes) -> str:
    """PEM goes as it is; DER, the other form, becomes PEM."""
    if data.startswith(b"0"):  # 0x30: a sequence, as every certificate in DER begins
        return ssl.DER_cert_to_PEM_cert(data)
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is no certificate", "PEM and DER are read") from error
