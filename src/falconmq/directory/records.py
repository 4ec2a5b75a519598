"""A directory object as bytes in a store, and the keys under which it is found again.

Its values have one exact form in JSON, for records and for machines that ask over HTTP: GUIDs and
bytes in hexadecimal, choices as numbers, times as seconds, a security descriptor as its own bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.schema import Attribute, Kind, ObjectTable, folded_value, refusal
from falconmq.errors import FalconMQError, MqStatus, StoreError
from falconmq.manager.directory_objects import Row
from falconmq.wire.security_descriptor import SecurityDescriptor

VERSION: Final = 1
OBJECTS: Final = "directory"
INDEX: Final = "directory_index"
PLACES: Final = "directory_places"

INDEXED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        tables.QUEUE: ("path_name", "computer_name"),
        tables.QUEUE_MANAGER: ("computer_name", "site_identifiers"),
        tables.SITE: ("name",),
        tables.ROUTING_LINK: ("site1_identifier", "site2_identifier"),
        tables.CONNECTED_NETWORK: ("name",),
        tables.USER: ("security_identifier", "certificate_digests"),
        tables.ENTERPRISE: (),
        tables.DISTRIBUTION_LIST: ("name",),
        tables.QUEUE_ALIAS: ("name",),
    }
)
"""What each type can be found by without looking at every object."""

_TO_JSON: Final[Mapping[Kind, Callable[[Any], Any]]] = MappingProxyType(
    {
        Kind.GUID: lambda value: value.hex,
        Kind.GUIDS: lambda value: [item.hex for item in value],
        Kind.BYTES: lambda value: value.hex(),
        Kind.DIGESTS: lambda value: [item.hex() for item in value],
        Kind.SECURITY: lambda value: None if value is None else value.encode().hex(),
    }
)
_LISTS: Final = frozenset({Kind.GUIDS, Kind.DIGESTS, Kind.NAMES})
_FROM_JSON: Final[Mapping[Kind, Callable[[Any], Any]]] = MappingProxyType(
    {
        Kind.GUID: UUID,
        Kind.GUIDS: lambda value: [UUID(item) for item in value],
        Kind.BYTES: bytes.fromhex,
        Kind.DIGESTS: lambda value: [bytes.fromhex(item) for item in value],
        Kind.SECURITY: lambda value: (
            None if value is None else SecurityDescriptor.decode(bytes.fromhex(value))
        ),
    }
)


def to_exact(attribute: Attribute, value: Any) -> Any:
    """A value as JSON that loses nothing; of a list, the whole or one element."""
    if value is None:
        return None
    if attribute.kind in _LISTS and not isinstance(value, list):
        return to_exact(attribute, [value])[0]
    convert = _TO_JSON.get(attribute.kind)
    return value if convert is None else convert(value)


def from_exact(attribute: Attribute, value: Any) -> Any:
    """The value for its JSON; DirectoryError if it cannot be one."""
    if value is None:
        return None
    if attribute.kind in _LISTS and not isinstance(value, list):
        return from_exact(attribute, [value])[0]
    try:
        return _FROM_JSON.get(attribute.kind, attribute.restored)(value)
    except (FalconMQError, ValueError, TypeError, AttributeError) as error:
        problem = f"{attribute.name}: {value!r:.80} is not {attribute.kind.value}"
        raise refusal(problem, MqStatus.ILLEGAL_PROPERTY_VALUE) from error


def exact_row(table: ObjectTable, row: Row) -> dict[str, Any]:
    """The attributes that a row has, as JSON."""
    return {
        attribute.name: to_exact(attribute, row[attribute.name])
        for attribute in table.attributes
        if attribute.name in row
    }


def row_of_exact(table: ObjectTable, fields: Mapping[str, Any]) -> dict[str, object]:
    """A row out of its JSON; DirectoryError says what is wrong."""
    return {name: from_exact(table.find(name), value) for name, value in fields.items()}


def encode_row(table: ObjectTable, row: Row) -> bytes:
    record: dict[str, object] = {"version": VERSION}
    for attribute in table.attributes:
        value = row[attribute.name]
        if value != attribute.default:  # what is usual takes no room
            record[attribute.name] = to_exact(attribute, value)
    return json.dumps(record, separators=(",", ":")).encode()


def decode_row(table: ObjectTable, key: bytes, record: bytes) -> dict[str, object]:
    """The row of a record; StoreError names one that cannot be read."""
    try:
        fields = json.loads(record)
        if fields["version"] != VERSION:
            raise ValueError(f"version {fields['version']}, this FalconMQ writes {VERSION}")
        row: dict[str, object] = {}
        for attribute in table.attributes:
            value = fields.get(attribute.name, attribute.default)
            if attribute.name in fields:
                convert = _FROM_JSON.get(attribute.kind, attribute.restored)
                value = convert(value)
            row[attribute.name] = list(value) if isinstance(value, list) else value
        return row
    except (FalconMQError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"the record of {table.type_name} {key[1:].hex()} cannot be read: {error}",
            status=MqStatus.MESSAGE_STORAGE_FAILED,
            hint="nothing was changed; restore the data directory from a backup",
        ) from error


def object_key(table: ObjectTable, identifier: UUID) -> bytes:
    return bytes((table.code,)) + identifier.bytes


def type_range(table: ObjectTable) -> tuple[bytes, bytes]:
    """Where the records of a type begin and end."""
    return bytes((table.code,)), bytes((table.code + 1,))


def index_prefix(table: ObjectTable, name: str, value: object) -> bytes:
    """What the keys begin with of all objects that have a value; names count in any case."""
    number = INDEXED[table.type_name].index(name)
    return bytes((table.code, number)) + digest(name, value)


def index_prefixes(table: ObjectTable, row: Row) -> Iterator[bytes]:
    for name in INDEXED[table.type_name]:
        value = row[name]
        for item in value if isinstance(value, list) else [value]:
            yield index_prefix(table, name, item)


def digest(name: str, value: object) -> bytes:
    """Sixteen bytes for any value; keys of a store are short."""
    value = folded_value(name, value)
    data = value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()
