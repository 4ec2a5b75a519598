r"""`falconmq directory`: the objects that all queue managers of an enterprise know.

    falconmq directory create queue-manager sales01 site_identifiers=Berlin
    falconmq directory query queue 'label=Orders'

A directory begins with its enterprise; sites come next, then queue managers, then their public
queues. These are entries: the queues themselves are made with `queue create`.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import typer

from falconmq.cli.asking import confirm
from falconmq.cli.connection import service
from falconmq.cli.options import JsonOption, Place, YesOption
from falconmq.cli.problems import WrongUsageError
from falconmq.cli.tables import print_json, print_pairs, print_table

LIST_EPILOG = """\b
Examples:
  falconmq directory list site
  falconmq directory list queue --json
  falconmq directory list queue-manager --data ./data
"""
SHOW_EPILOG = """\b
Examples:
  falconmq directory show site Berlin
  falconmq directory show queue 'sales01\\orders'
  falconmq directory show enterprise example.com --json
"""
CREATE_EPILOG = """\b
Examples:
  falconmq directory create site Paris
  falconmq directory create queue 'sales01\\orders' label=Orders journaling=yes
  falconmq directory create queue-manager sales01 site_identifiers=Berlin,Paris
"""
SET_EPILOG = """\b
Examples:
  falconmq directory set queue 'sales01\\orders' label=Orders quota_kilobytes=1024
  falconmq directory set site Paris foreign_site=yes
  falconmq directory set queue-manager sales01 routing_server=yes --json
"""
DELETE_EPILOG = """\b
Examples:
  falconmq directory delete queue 'sales01\\orders'      asks first
  falconmq directory delete site Paris --yes
  falconmq directory delete routing-link GUID --yes --json
"""
QUERY_EPILOG = """\b
Examples:
  falconmq directory query queue 'label=Orders' journaling=no
  falconmq directory query queue 'create_time>=2026-01-01T00:00:00Z' --columns path_name,label
  falconmq directory query queue-manager routing_server=yes --json
"""
PAGE: Final = 1000

# What a table shows of each type, and the attribute that NAME stands for in `create`.
_COLUMNS: Final = {
    "enterprise": ("name", "default_time_to_live", "old_directory", "identifier"),
    "site": ("name", "foreign_site", "identifier"),
    "routing-link": ("site1_identifier", "site2_identifier", "actual_cost", "identifier"),
    "connected-network": ("name", "network_protocol", "identifier"),
    "queue-manager": ("computer_name", "routing_server", "foreign_system", "identifier"),
    "queue": ("path_name", "label", "transactional", "identifier"),
    "user": ("full_path", "certificate_digests", "identifier"),
    "distribution-list": ("name", "members", "identifier"),
    "queue-alias": ("name", "format_name", "identifier"),
}
_NAMES: Final = {"queue": "path_name", "queue-manager": "computer_name"}

Json = dict[str, Any]

TypeArgument = Annotated[
    str, typer.Argument(metavar="TYPE", help=", ".join(_COLUMNS) + ".", show_default=False)
]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name or its GUID.", show_default=False)
]
ValuesArgument = Annotated[
    list[str],
    typer.Argument(metavar="ATTRIBUTE=VALUE...", help="See: directory show.", show_default=False),
]


def list_objects(kind: TypeArgument, *, place: Place, as_json: JsonOption = False) -> int:
    """List the objects of one type."""
    return _print_list(place, kind, [], None, as_json=as_json)


def query(
    kind: TypeArgument,
    conditions: Annotated[
        list[str],
        typer.Argument(
            metavar="CONDITION...",
            help="NAME=VALUE, or with != < > <= >=; all have to hold.",
            show_default=False,
        ),
    ],
    columns: Annotated[
        str | None, typer.Option("--columns", help="What to show, with commas.")
    ] = None,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Find the objects of a type that meet all conditions."""
    return _print_list(place, kind, conditions, columns, as_json=as_json)


def show(
    kind: TypeArgument, name: NameArgument, *, place: Place, as_json: JsonOption = False
) -> int:
    """Show one object with all its attributes."""
    with service(place) as client:
        found: Json = client.request("GET", _path(kind, name))
    _print_object(found, as_json=as_json)
    return 0


def create(
    kind: TypeArgument,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Its name; - where it has none, as a link.", show_default=False
        ),
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ATTRIBUTE=VALUE...]", help="See: directory show."),
    ] = None,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Create an object."""
    attributes = _attributes(values or [])
    if name != "-":
        attributes = {_NAMES.get(kind, "name"): name, **attributes}
    with service(place) as client:
        made: Json = client.request("POST", _path(kind), _body(attributes))
    _print_object(made, as_json=as_json)
    return 0


def set_attributes(
    kind: TypeArgument,
    name: NameArgument,
    values: ValuesArgument,
    *,
    place: Place,
    as_json: JsonOption = False,
) -> int:
    """Change attributes of an object."""
    with service(place) as client:
        changed: Json = client.request("PATCH", _path(kind, name), _body(_attributes(values)))
    _print_object(changed, as_json=as_json)
    return 0


def delete(
    kind: TypeArgument,
    name: NameArgument,
    *,
    place: Place,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> int:
    """Delete an object; nothing may stand below it."""
    confirm(f"delete {kind} {name} from the directory?", yes=yes)
    with service(place) as client:
        client.request("DELETE", _path(kind, name))
    if as_json:
        print_json({"deleted": name})
    else:
        sys.stdout.write(f"deleted {kind} {name}\n")
    return 0


def _print_list(
    place: Place, kind: str, conditions: list[str], columns: str | None, *, as_json: bool
) -> int:
    objects: list[Json] = []
    with service(place) as client:
        while True:
            asked = [("where", text) for text in conditions]
            asked += [("skip", str(len(objects))), ("limit", str(PAGE))]
            page: Json = client.request("GET", f"{_path(kind)}?{urlencode(asked)}")
            objects += page["objects"]
            if len(page["objects"]) < PAGE:
                break
    shown = _COLUMNS[kind] if columns is None else tuple(columns.split(","))
    if as_json:
        print_json(objects if columns is None else [_only(row, shown) for row in objects])
        return 0
    headings = [name.upper().replace("_", " ") for name in shown]
    print_table(headings, [[_text(_only(row, shown)[name]) for name in shown] for row in objects])
    return 0


def _only(row: Json, names: tuple[str, ...]) -> Json:
    for name in names:
        if name not in row:
            raise WrongUsageError(f"there is no attribute {name}", "it has " + ", ".join(row))
    return {name: row[name] for name in names}


def _print_object(found: Json, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_pairs({name: _text(value) for name, value in found["attributes"].items()})


def _text(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else value


def _attributes(values: list[str]) -> Json:
    attributes: Json = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise WrongUsageError(f"{text!r} says no value", "write ATTRIBUTE=VALUE")
        attributes[name] = value
    return attributes


def _body(attributes: Json) -> Json:
    return {"attributes": attributes}


def _path(kind: str, name: str | None = None) -> str:
    if kind not in _COLUMNS:
        raise WrongUsageError(f"a directory has no {kind}", "there are " + ", ".join(_COLUMNS))
    return f"/directory/{kind}" if name is None else f"/directory/{kind}/{quote(name, safe='')}"
