"""Directory objects in words: as JSON has them, and as people type them.

choices     by name, `"BODY"`; a number is taken too
GUIDs       with dashes
bytes       base64
moments     ISO 8601 in UTC
permissions SDDL
lists       a list, or one text with commas
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.schema import Attribute, Kind, ObjectTable, refusal
from falconmq.directory.tables import table_of
from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.manager.directory_backend import AttributeFilter, FilterOperator, Filters, equals
from falconmq.manager.directory_objects import Row
from falconmq.wire.sddl import format_sddl, parse_sddl
from falconmq.wire.sid import Sid

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "enterprise": tables.ENTERPRISE,
        "site": tables.SITE,
        "routing-link": tables.ROUTING_LINK,
        "connected-network": tables.CONNECTED_NETWORK,
        "queue-manager": tables.QUEUE_MANAGER,
        "queue": tables.QUEUE,
        "user": tables.USER,
        "distribution-list": tables.DISTRIBUTION_LIST,
        "queue-alias": tables.QUEUE_ALIAS,
    }
)
_NAMES: Final[Mapping[str, str]] = {
    tables.QUEUE: "path_name",
    tables.QUEUE_MANAGER: "computer_name",
    tables.USER: "security_identifier",
}
_EXPRESSION: Final = re.compile(r"(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*)", re.DOTALL)
_YES: Final = frozenset({"yes", "true", "1"})
_NO: Final = frozenset({"no", "false", "0"})


def table_for(word: str) -> ObjectTable:
    """The table of a type by the word for it, `queue-manager`."""
    type_name = WORDS.get(word)
    if type_name is None:
        hint = "there are " + ", ".join(WORDS)
        raise refusal(f"a directory has no {word}", MqStatus.MQDS_WRONG_OBJ_TYPE, hint)
    return table_of(type_name)


def shown(table: ObjectTable, row: Row) -> dict[str, Any]:
    """A row as JSON, its attributes in the order of the table."""
    return {
        attribute.name: _shown(attribute, row[attribute.name])
        for attribute in table.attributes
        if attribute.name in row
    }


def parsed(table: ObjectTable, given: Mapping[str, object]) -> dict[str, object]:
    """A row out of JSON, or out of what somebody typed; DirectoryError says what is wrong."""
    return {name: parse_value(table.find(name), value) for name, value in given.items()}


def parse_filters(table: ObjectTable, texts: list[str]) -> Filters:
    """`label=Orders` and the like, all of which have to hold."""
    return [_parse_filter(table, text) for text in texts]


def in_order(table: ObjectTable, rows: list[Row]) -> list[Row]:
    """By what people call them."""
    name = _NAMES.get(table.type_name, "name")
    return sorted(rows, key=lambda row: str(row.get(name) or "").lower())


def named(table: ObjectTable, name: str) -> Filters:
    """The filter that finds an object by its GUID, or by what people call it."""
    try:
        return equals("identifier", UUID(name))
    except ValueError:
        pass
    if table.type_name == tables.ENTERPRISE:
        return ()  # there is one
    attribute = _NAMES.get(table.type_name, "name")
    if table.type_name == tables.ROUTING_LINK:
        hint = "its GUID stands in: falconmq directory list routing-link"
        raise refusal(f"{name} is no GUID", MqStatus.INVALID_PARAMETER, hint)
    if table.type_name == tables.USER:
        return equals(attribute, Sid.parse(name).encode())
    return equals(attribute, name)


def parse_value(attribute: Attribute, value: object) -> object:
    """One value; what is already of the right kind stays as it is."""
    if attribute.choices is not None and isinstance(value, str):
        found = {item.name: item for item in attribute.choices}.get(value.upper())
        return found if found is not None else _number(attribute, value)
    parse = _PARSE.get(attribute.kind)
    try:
        return value if parse is None or value is None else parse(attribute, value)
    except (ValueError, TypeError, binascii.Error, NameSyntaxError) as error:
        problem = f"{attribute.name}: {value!r} is not {attribute.kind.value}"
        raise refusal(problem, MqStatus.ILLEGAL_PROPERTY_VALUE) from error


def _shown(attribute: Attribute, value: Any) -> Any:
    if value is None:
        return None
    if attribute.choices is not None:
        return attribute.choices(value).name
    show = _SHOW.get(attribute.kind)
    return value if show is None else show(value)


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


_SHOW: Final[Mapping[Kind, Callable[[Any], Any]]] = MappingProxyType(
    {
        Kind.GUID: str,
        Kind.GUIDS: lambda value: [str(item) for item in value],
        Kind.TIME: _moment,
        Kind.BYTES: _base64,
        Kind.DIGESTS: lambda value: [_base64(item) for item in value],
        Kind.SECURITY: format_sddl,
    }
)


def _number(attribute: Attribute, value: object) -> int:
    try:
        return int(value, 0) if isinstance(value, str) else _plain_number(value)
    except (ValueError, TypeError) as error:
        known = "" if attribute.choices is None else ", ".join(i.name for i in attribute.choices)
        hint = f"there are {known}" if known else ""
        problem = f"{attribute.name}: {value!r} is not {attribute.kind.value}"
        raise refusal(problem, MqStatus.ILLEGAL_PROPERTY_VALUE, hint) from error


def _plain_number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _boolean(_: Attribute, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in _YES | _NO:
        raise ValueError(text)
    return text in _YES


def _time(_: Attribute, value: object) -> int:
    if isinstance(value, int):
        return value
    text = str(value)
    return int(text) if text.isdigit() else int(datetime.fromisoformat(text).timestamp())


def _list(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [item.strip() for item in str(value).split(",") if item.strip()]


def _names(_: Attribute, value: object) -> list[str]:
    """Distinguished names have commas of their own, so that one text is one name."""
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value)] if value else []


def _bytes(value: object) -> bytes:
    return base64.b64decode(str(value), validate=True)


_PARSE: Final[Mapping[Kind, Callable[[Attribute, Any], object]]] = MappingProxyType(
    {
        Kind.NUMBER: _number,
        Kind.TIME: _time,
        Kind.BOOLEAN: _boolean,
        Kind.GUID: lambda _, value: UUID(str(value)),
        Kind.GUIDS: lambda _, value: [UUID(str(item)) for item in _list(value)],
        Kind.NAMES: _names,
        Kind.BYTES: lambda _, value: _bytes(value),
        Kind.DIGESTS: lambda _, value: [_bytes(item) for item in _list(value)],
        Kind.SECURITY: lambda _, value: parse_sddl(str(value)) if value else None,
        Kind.OPTIONAL_TEXT: lambda _, value: str(value) if value else None,
    }
)


def _parse_filter(table: ObjectTable, text: str) -> AttributeFilter:
    match = _EXPRESSION.fullmatch(text)
    if match is None:
        problem = f"{text!r} is no condition"
        raise refusal(problem, MqStatus.ILLEGAL_RELATION, "write NAME=VALUE, or with != < > <= >=")
    attribute = table.find(match[1])
    value = parse_value(attribute, match[3])
    is_list = attribute.kind in (Kind.GUIDS, Kind.DIGESTS, Kind.NAMES)
    if is_list and isinstance(value, list) and len(value) == 1:
        value = value[0]  # contains it
    return AttributeFilter(attribute.name, FilterOperator(match[2]), value)
