"""Properties of an update and attributes of an object: which is which (MQCN 3.1.1.2, 3.1.1.3).

One table says how each property is read and written; three lists say which of them count when. A
security descriptor that is none changes nothing: the old one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.directory.notification import Refusal, Refused
from falconmq.errors import QueueError, WireError
from falconmq.manager.directory_objects import Row, check_rights
from falconmq.manager.states import QueuePrivacy, QueueScope
from falconmq.wire.access_masks import ObjectKind
from falconmq.wire.directory_change import NotificationUpdate
from falconmq.wire.property_ids import MachineProperty as M
from falconmq.wire.property_ids import Property
from falconmq.wire.property_ids import QueueProperty as Q
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.variant import Value

Reading = Callable[[Value], object]
Writing = Callable[[object], Value]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an object and how it travels."""

    name: str
    read: Reading
    write: Writing


def _plain(value: Value) -> object:
    return value


def _as_value(value: object) -> Value:
    assert isinstance(value, int | str | bytes)
    return value


def _read_flag(value: Value) -> object:
    if value not in (0, 1):
        raise ValueError(f"{value!r} is neither 0 nor 1")
    return value == 1


def _read_guid(value: Value) -> object:
    assert isinstance(value, bytes)
    return UUID(bytes_le=value)


def _write_guid(value: object) -> Value:
    assert isinstance(value, UUID)
    return value.bytes_le


def _write_number(value: object) -> Value:
    assert isinstance(value, int)
    return int(value)


def _read_security(kind: ObjectKind) -> Reading:
    def read(value: Value) -> object:
        assert isinstance(value, bytes)
        try:
            descriptor = SecurityDescriptor.decode(value)
            check_rights(descriptor, kind)
        except (WireError, QueueError):
            return None
        return descriptor

    return read


def _write_security(value: object) -> Value:
    return value.encode() if isinstance(value, SecurityDescriptor) else b""


def _plainly(name: str) -> Attribute:
    return Attribute(name, _plain, _as_value)


def _guid(name: str) -> Attribute:
    return Attribute(name, _read_guid, _write_guid)


def _flag(name: str) -> Attribute:
    return Attribute(name, _read_flag, _write_number)


def _enumeration(name: str, kind: type[QueuePrivacy | QueueScope]) -> Attribute:
    def read(value: Value) -> object:
        assert isinstance(value, int)
        return kind(value)

    return Attribute(name, read, _write_number)


ATTRIBUTES: Final[Mapping[Property, Attribute]] = MappingProxyType(
    {
        Q.PROPID_Q_INSTANCE: _guid("identifier"),
        Q.PROPID_Q_TYPE: _guid("type"),
        Q.PROPID_Q_PATHNAME: _plainly("path_name"),
        Q.PROPID_Q_JOURNAL: _flag("journaling"),
        Q.PROPID_Q_QUOTA: _plainly("quota_kilobytes"),
        Q.PROPID_Q_BASEPRIORITY: _plainly("base_priority"),
        Q.PROPID_Q_JOURNAL_QUOTA: _plainly("journal_quota_kilobytes"),
        Q.PROPID_Q_LABEL: _plainly("label"),
        Q.PROPID_Q_CREATE_TIME: _plainly("create_time"),
        Q.PROPID_Q_MODIFY_TIME: _plainly("modify_time"),
        Q.PROPID_Q_AUTHENTICATE: _flag("authentication"),
        Q.PROPID_Q_PRIV_LEVEL: _enumeration("privacy_level", QueuePrivacy),
        Q.PROPID_Q_TRANSACTION: _flag("transactional"),
        Q.PROPID_Q_SCOPE: _enumeration("scope", QueueScope),
        Q.PROPID_Q_SECURITY: Attribute(
            "security", _read_security(ObjectKind.QUEUE), _write_security
        ),
        M.PROPID_QM_MACHINE_ID: _guid("identifier"),
        M.PROPID_QM_FOREIGN: _flag("foreign_system"),
        M.PROPID_QM_QUOTA: _plainly("quota_kilobytes"),
        M.PROPID_QM_JOURNAL_QUOTA: _plainly("journal_quota_kilobytes"),
        M.PROPID_QM_SECURITY: Attribute(
            "security", _read_security(ObjectKind.QUEUE_MANAGER), _write_security
        ),
    }
)
# What a new queue is made of (CN-3.2.5.1-10 to -24, CN-3.3.5.2-14 to -28); Q_INSTANCE first: A16.
QUEUE_CREATION: Final = tuple(prop for prop in ATTRIBUTES if isinstance(prop, Q))
# What of a queue can change (CN-3.2.5.1-29 to -35). Not the label, though one would think so.
QUEUE_CHANGES: Final = (
    Q.PROPID_Q_JOURNAL,
    Q.PROPID_Q_QUOTA,
    Q.PROPID_Q_BASEPRIORITY,
    Q.PROPID_Q_JOURNAL_QUOTA,
    Q.PROPID_Q_AUTHENTICATE,
    Q.PROPID_Q_PRIV_LEVEL,
    Q.PROPID_Q_SECURITY,
)
# What of a queue manager can change (CN-3.2.5.1-38 to -40).
MACHINE_CHANGES: Final = (M.PROPID_QM_QUOTA, M.PROPID_QM_JOURNAL_QUOTA, M.PROPID_QM_SECURITY)


def values_of(
    update: NotificationUpdate, wanted: Iterable[Property]
) -> dict[str, object] | Refused:
    """The attributes that an update sets, of those that count; all others are ignored."""
    given = dict(reversed(update.properties))  # of one given twice, the first counts
    values: dict[str, object] = {}
    for prop in wanted:
        if prop not in given:
            continue
        attribute = ATTRIBUTES[prop]
        try:
            value = attribute.read(given[prop])
        except ValueError as error:
            return Refused(Refusal.BAD_VALUE, f"{prop.name}: {error}")
        if value is not None:
            values[attribute.name] = value
    return values


def properties_of(row: Row, wanted: Iterable[Property]) -> list[tuple[int, Value]]:
    """Properties of an update, from the attributes of an object."""
    return [(int(prop), ATTRIBUTES[prop].write(row[ATTRIBUTES[prop].name])) for prop in wanted]
