"""`falconmq key`: public keys go from one queue manager to another, as files.

The private ones are in the data directory, and no command shows them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, YesOption
from falconmq.cli.problems import CommandError, WrongUsageError
from falconmq.cli.tables import print_json, print_table

EXPORT_EPILOG = """\b
Examples:
  falconmq key export > sales01.keys                    to be imported elsewhere
  falconmq key export --data ./data
  falconmq key export --url https://sales02:8018
"""
IMPORT_EPILOG = """\b
Examples:
  falconmq key import sales02.keys                      messages to it can be encrypted
  falconmq key import - < sales02.keys
  falconmq key import sales02.keys --data ./data
"""
LIST_EPILOG = """\b
Examples:
  falconmq key list                                     our own and those of peers
  falconmq key list --json
  falconmq key list --data ./data
"""
RENEW_EPILOG = """\b
Examples:
  falconmq key renew                                    asks first
  falconmq key renew --yes && falconmq key export > sales01.keys
  falconmq key renew --yes --data ./data
"""
REMOVE_EPILOG = """\b
Examples:
  falconmq key remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0
  falconmq key remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0 --data ./data
  falconmq key remove 1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f0 --json
"""
_NOT_PUBLISHED: Final = "the directory does not have these keys yet, it is tried again"
FILE_MAX: Final = 1 << 20  # bytes; a file of keys has a few thousand

Json = dict[str, Any]


def export_keys(place: Place) -> int:
    """Print the public keys of a queue manager, for others to import. Nothing in it is secret."""
    with service(place) as client:
        document: Json = client.request("GET", "/keys/export")
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    return 0


def import_keys(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="What key export printed there; - reads it from standard input."
        ),
    ],
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Keep the public keys of another queue manager, in place of older ones.

    Nothing proves where a file comes from: compare the fingerprints with those that key list shows
    there.
    """
    try:
        document = json.loads(read_file(file))
    except ValueError as error:
        raise CommandError(f"{file} holds no keys", "they are written by: key export") from error
    if not isinstance(document, dict):
        raise CommandError(f"{file} holds no keys", "they are written by: key export")
    with service(place) as client:
        peer: Json = client.request("POST", "/keys/peers", document)
    if as_json:
        print_json(peer)
    else:
        sys.stdout.write(f"imported {len(peer['keys'])} keys of {_title(peer)}\n")
        _print_keys([peer])
    return 0


def list_keys(place: Place, as_json: JsonOption = False) -> int:
    """List the public keys of a queue manager and of those whose keys it has imported."""
    with service(place) as client:
        answer: Json = client.request("GET", "/keys")
    if as_json:
        print_json(answer)
    else:
        _print_keys([answer, *answer["peers"]])
        if answer["published"] is False:
            sys.stderr.write(f"{_NOT_PUBLISHED}: {answer['publishing_problem']}\n")
    return 0


def renew(place: Place, yes: YesOption = False, as_json: JsonOption = False) -> int:
    """Make new keys. The old ones are good for 30 days more.

    Peers find the new ones in the directory; without one, give the public ones to all peers.
    """
    confirm("make new keys, which peers without a directory have to import?", yes=yes)
    with service(place) as client:
        made: Json = client.request("POST", "/keys/renew")
    if as_json:
        print_json(made)
        return 0
    sys.stdout.write(f"made {len(made['keys'])} keys of {_title(made)}\n")
    if made["former"]:
        sys.stdout.write(f"the old ones decrypt until {made['former'][0]}\n")
    if made["published"]:
        sys.stdout.write("the directory has the new ones\n")
    elif made["published"] is False:
        sys.stderr.write(f"{_NOT_PUBLISHED}: {made['publishing_problem']}\n")
    else:
        sys.stdout.write("now: falconmq key export, and key import at every peer\n")
    return 0


def remove(
    queue_manager: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The queue manager; see: falconmq key list.", show_default=False
        ),
    ],
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Forget the keys of another queue manager: nothing can be encrypted for it any more."""
    with service(place) as client:
        client.request("DELETE", f"/keys/peers/{quote(queue_manager, safe='')}")
    if as_json:
        print_json({"removed": queue_manager})
    else:
        sys.stdout.write(f"removed the keys of {queue_manager}\n")
    return 0


def read_file(path: Path) -> bytes:
    """A small file, or standard input for `-`."""
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(FILE_MAX + 1)
        else:
            with path.open("rb") as file:
                data = file.read(FILE_MAX + 1)
    except OSError as error:
        raise WrongUsageError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > FILE_MAX:
        raise WrongUsageError(f"{path} is too large to be what it should be")
    return data


def _title(peer: Json) -> str:
    return f"{peer['name']} ({peer['queue_manager']})"


def _print_keys(managers: list[Json]) -> None:
    print_table(
        ("NAME", "QUEUE MANAGER", "USE", "BITS", "PROVIDER", "FINGERPRINT"),
        [
            (
                manager["name"],
                manager["queue_manager"],
                key["use"],
                str(key["bits"]),
                key["provider"],
                key["fingerprint"],
            )
            for manager in managers
            for key in manager["keys"]
        ],
    )
