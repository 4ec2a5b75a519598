"""Directory objects as properties of a change, and back (MQDSRP 3.2.7.8; guide 7).

The lists say which properties a synchronisation carries, in which order. Most are attributes as
they are; a few are made of several, and some nobody here has: those go out as zero and are not
looked at when they come in (A-36). Properties that MSMQ 1.0 does not know follow the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.ldap_values import NEW_DIRECTORY_VERSION, OLD_DIRECTORY_VERSION
from falconmq.directory.notification_values import ATTRIBUTES
from falconmq.directory.schema import Attribute, Kind, ObjectTable
from falconmq.errors import WireError
from falconmq.manager.directory_objects import Row
from falconmq.wire.property_ids import PROPERTIES, DeletionProperty, ObjectType
from falconmq.wire.property_values import Service
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.variant import VT_CLSID, VT_LPWSTR, VT_VECTOR, Value

Properties = list[tuple[int, Value]]
Values = dict[str, object]

S_PSC: Final = 304
QM_SERVICE: Final = 210
E_PECNAME: Final = 604

OBJECT_TABLES: Final[Mapping[int, ObjectTable]] = MappingProxyType(
    {table.code: table for table in tables.TABLES.values() if table.code in list(ObjectType)}
)
ENTERPRISE_TYPES: Final = frozenset(
    {
        ObjectType.MQDS_SITE,
        ObjectType.MQDS_CN,
        ObjectType.MQDS_ENTERPRISE,
        ObjectType.MQDS_USER,
        ObjectType.MQDS_ROUTINGLINK,
    }
)
# RP-3.1.7.2.8-04
IDENTIFIERS: Final[Mapping[int, int]] = MappingProxyType(
    {1: 101, 2: 202, 3: 302, 5: 503, 6: 609, 7: 706, 8: 806}
)
# The attribute that is the path name of an object; users and routing links have none.
PATHS: Final[Mapping[int, str]] = MappingProxyType(
    {1: "path_name", 2: "computer_name", 3: "name", 5: "name", 6: "name"}
)
# fmt: off
_QUEUE: Final = (
    114, 115, 102, 106, 104, 105, 107, 109, 110, 103, 108, 111, 112, 113, 1101, 118, 119,
)
_MACHINE: Final = (
    219, 214, 215, 207, 216, 220, 206, 217, 1203, 209, 218, 208, 203, 210, 1202, 201, 1201, 212,
)
# fmt: on
# RP-3.2.7.8-04, -06, -08, -10, -12, -14, -16
SYNC_LISTS: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        1: _QUEUE,
        2: _MACHINE,
        3: (303, 305, 306, 301, 304, 1302, 1301),
        5: (502, 501, 1501),
        6: (601, 602, 603, 604, 616, 617, 1601, 605, 606, 610, 611, 612, 613, 614, 615),
        7: (701, 705, 702),
        8: (803, 801, 802),
    }
)
_LATER: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        1: (121, 125),
        2: (221, 222, 228, 229, 233, 242),
        3: (309, 310, 311),
        5: (),
        6: (),
        7: (),
        8: (810, 811, 813),
    }
)
# Attributes that MSMQ 1.0 keeps under another number than its successors.
_OTHER_NUMBERS: Final = {
    1101: "security",
    1201: "security",
    1202: "public_signing_keys",
    1203: "public_encryption_keys",
    803: "actual_cost",
}
_SERVICES: Final = ("server_type", "routing_server", "remote_access_server")


@dataclass(frozen=True, slots=True)
class _Carried:
    """How a property is made of attributes, and what it says of them."""

    names: tuple[str, ...]
    write: Callable[[Row], Value]
    read: Callable[[Any], Values]


def properties_for(
    table: ObjectTable, row: Row, *, later: bool, names: Collection[str] | None = None
) -> Properties:
    """The properties of an object, its GUID first; of those in `names` only, if they are given."""
    numbers = [*SYNC_LISTS[table.code], *(_LATER[table.code] if later else ())]
    chosen: Properties = []
    if names is None:
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        chosen.append((IDENTIFIERS[table.code], identifier.bytes_le))
    for number in numbers:
        carried = _CARRIED.get(number)
        if carried is not None and (names is None or not set(names).isdisjoint(carried.names)):
            chosen.append((number, carried.write(row)))
    return chosen


def sync_properties(table: ObjectTable, row: Row, *, later: bool, pec_name: str) -> Properties:
    """What a synchronisation says of an object (RP-3.2.7.8-25 to -27)."""
    numbers = [*SYNC_LISTS[table.code], *(_LATER[table.code] if later else ())]
    properties: Properties = []
    for number in numbers:
        carried = _CARRIED.get(number)
        if number == E_PECNAME:
            properties.append((number, pec_name))
        else:
            properties.append((number, _nothing(number) if carried is None else carried.write(row)))
    return properties


def values_of(properties: Iterable[tuple[int, Value]]) -> Values:
    """The attributes that properties set; what cannot be understood changes nothing."""
    values: Values = {}
    for number, value in properties:
        if number in _IDENTIFYING:
            assert isinstance(value, bytes)
            values["identifier"] = UUID(bytes_le=value)
        carried = _CARRIED.get(number)
        if carried is not None:
            try:
                values.update(carried.read(value))
            except (ValueError, WireError):
                continue
    return values


def deletion_properties(scope: int, object_type: int) -> Properties:
    """RP-3.2.7.3-11"""
    return [
        (int(DeletionProperty.PROPID_D_SCOPE), scope),
        (int(DeletionProperty.PROPID_D_OBJTYPE), object_type),
    ]


def is_bsc(service: object) -> bool:
    """Whether PROPID_QM_SERVICE says that a machine is a BSC."""
    primary = Service.SERVICE_PSC | Service.SERVICE_PEC
    return (
        isinstance(service, int) and bool(service & Service.SERVICE_BSC) and not service & primary
    )


def _nothing(number: int) -> Value:
    vt = PROPERTIES[number].vt
    if vt & VT_VECTOR:
        return ()
    if vt == VT_LPWSTR:
        return ""
    return bytes(16) if vt == VT_CLSID else (b"" if number == 610 else 0)


def _write(attribute: Attribute, vt: int) -> Callable[[Any], Value]:
    match attribute.kind:
        case Kind.GUID:
            return lambda value: value.bytes_le
        case Kind.GUIDS:
            return lambda value: tuple(item.bytes_le for item in value)
        case Kind.DIGESTS:
            return tuple
        case Kind.SECURITY:
            return lambda value: b"" if value is None else value.encode()
        case Kind.BOOLEAN if vt == VT_LPWSTR:
            return lambda value: "Y" if value else "N"
        case Kind.OPTIONAL_TEXT:
            return lambda value: value or ""
        case Kind.NUMBER | Kind.TIME | Kind.BOOLEAN:
            return int
        case _:
            return lambda value: value


def _read(attribute: Attribute, vt: int) -> Callable[[Any], object]:
    match attribute.kind:
        case Kind.GUID:
            return lambda value: UUID(bytes_le=value)
        case Kind.GUIDS:
            return lambda value: [UUID(bytes_le=item) for item in value]
        case Kind.DIGESTS:
            return list
        case Kind.SECURITY:
            return lambda value: SecurityDescriptor.decode(value) if value else None
        case Kind.BOOLEAN if vt == VT_LPWSTR:
            return lambda value: value != "N"
        case Kind.BOOLEAN:
            return lambda value: value == 1
        case Kind.OPTIONAL_TEXT:
            return lambda value: value or None
        case _:
            return attribute.restored


def _attribute(number: int, attribute: Attribute) -> _Carried:
    name = attribute.name
    shared = ATTRIBUTES.get(PROPERTIES[number])
    if shared is not None and attribute.kind is not Kind.SECURITY:
        write, read = shared.write, shared.read
        return _Carried((name,), lambda row: write(row[name]), lambda value: {name: read(value)})
    vt = PROPERTIES[number].vt
    make, take = _write(attribute, vt), _read(attribute, vt)
    return _Carried((name,), lambda row: make(row[name]), lambda value: {name: take(value)})


def _write_service(row: Row) -> Value:
    server_type = row["server_type"]
    assert isinstance(server_type, int)
    service = int(server_type)
    service |= Service.SERVICE_SRV if row["routing_server"] else 0
    return service | (Service.SERVICE_RAS if row["remote_access_server"] else 0)


def _read_service(value: Any) -> Values:
    types = tables.table_of(tables.QUEUE_MANAGER).find("server_type")
    highest = next((bit for bit in (8, 4, 2) if value & bit), 0)
    return {
        "server_type": types.restored(highest),
        "routing_server": bool(value & Service.SERVICE_SRV),
        "remote_access_server": bool(value & Service.SERVICE_RAS),
    }


def _first_site(row: Row) -> Value:
    sites = row["site_identifiers"]
    assert isinstance(sites, list)
    return sites[0].bytes_le if sites else bytes(16)


def _version(row: Row) -> Value:
    return OLD_DIRECTORY_VERSION if row["old_directory"] else NEW_DIRECTORY_VERSION


_MADE: Final[Mapping[int, _Carried]] = MappingProxyType(
    {
        115: _Carried((), lambda row: row["queue_manager_identifier"].bytes_le, lambda _: {}),  # type: ignore[attr-defined]
        201: _Carried(
            ("site_identifiers",),
            _first_site,
            lambda value: {"site_identifiers": [UUID(bytes_le=value)]},
        ),
        QM_SERVICE: _Carried(_SERVICES, _write_service, _read_service),
        617: _Carried(
            ("old_directory",),
            _version,
            lambda value: {"old_directory": value == OLD_DIRECTORY_VERSION},
        ),
    }
)


def _carried() -> dict[int, _Carried]:
    found: dict[int, _Carried] = {}
    for code, table in OBJECT_TABLES.items():
        for number in (*SYNC_LISTS[code], *_LATER[code]):
            name = _OTHER_NUMBERS.get(number)
            for attribute in table.attributes:
                if attribute.name == name or (name is None and attribute.property_id == number):
                    found[number] = _attribute(number, attribute)
    return found | dict(_MADE)


_CARRIED: Final[Mapping[int, _Carried]] = MappingProxyType(_carried())
_IDENTIFYING: Final = frozenset(IDENTIFIERS.values())


def carried_names(table: ObjectTable, *, later: bool) -> frozenset[str]:
    """The attributes of a type that copies have too."""
    numbers = [*SYNC_LISTS[table.code], *(_LATER[table.code] if later else ())]
    return frozenset(
        name for number in numbers if number in _CARRIED for name in _CARRIED[number].names
    )
