"""The attributes of every type of directory object (directory guide 2.1 to 2.4, 2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from falconmq.directory.schema import Attribute, Giver, Kind, ObjectTable, refusal
from falconmq.errors import MqStatus
from falconmq.manager.directory_objects import (
    COST_MAX,
    COST_MIN,
    DEFAULT_QUOTA_KILOBYTES,
    NULL_UUID,
    UNLIMITED,
)
from falconmq.manager.states import (
    DirectoryServerType,
    OperatingSystemType,
    QueuePrivacy,
    QueueScope,
)
from falconmq.wire.access_masks import ObjectKind
from falconmq.wire.property_ids import ObjectType

ENTERPRISE: Final = "Enterprise"
SITE: Final = "Site"
ROUTING_LINK: Final = "RoutingLink"
CONNECTED_NETWORK: Final = "ConnectedNetwork"
QUEUE_MANAGER: Final = "QueueManager"
QUEUE: Final = "Queue"
USER: Final = "User"
DISTRIBUTION_LIST: Final = "DistributionList"
QUEUE_ALIAS: Final = "QueueAlias"

_GIVEN, _ONCE, _ANY = Giver.DIRECTORY, Giver.CREATOR, Giver.ADMINISTRATOR
_NUMBER, _TEXT, _YES_NO = Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN
_LABEL: Final = (0, 124)
_NOT_EMPTY: Final = (1, 0xFFFFFFFF)
_TIME_TO_LIVE: Final = 0x54600  # four days, in seconds

_QUEUE: Final = (
    Attribute("identifier", Kind.GUID, _GIVEN, 101, NULL_UUID),
    Attribute("type", Kind.GUID, _ANY, 102, NULL_UUID),
    Attribute("path_name", _TEXT, _ONCE, 103, "", is_name=True),
    Attribute("journaling", _YES_NO, _ANY, 104, False),
    Attribute("quota_kilobytes", _NUMBER, _ANY, 105, UNLIMITED),
    Attribute("base_priority", _NUMBER, _ANY, 106, 0, (-0x8000, 0x7FFF)),
    Attribute("journal_quota_kilobytes", _NUMBER, _ANY, 107, UNLIMITED),
    Attribute("label", _TEXT, _ANY, 108, "", _LABEL),
    Attribute("create_time", Kind.TIME, _GIVEN, 109, 0),
    Attribute("modify_time", Kind.TIME, _GIVEN, 110, 0),
    Attribute("authentication", _YES_NO, _ANY, 111, False),
    Attribute("privacy_level", _NUMBER, _ANY, 112, QueuePrivacy.OPTIONAL, choices=QueuePrivacy),
    Attribute("transactional", _YES_NO, _ONCE, 113, False),
    Attribute("scope", _NUMBER, _ANY, 114, QueueScope.ENTERPRISE, (0, 1), QueueScope, False),
    Attribute("queue_manager_identifier", Kind.GUID, _GIVEN, 115, NULL_UUID, is_filter=False),
    Attribute("full_path", _TEXT, _GIVEN, 121, "", is_name=True),
    Attribute("qualified_path_name", _TEXT, _GIVEN, 124, "", is_filter=False),
    Attribute("multicast_address", Kind.OPTIONAL_TEXT, _ANY, 125, None),
    Attribute("directory_path", _TEXT, _GIVEN, 126, "", is_filter=False),
    Attribute("security", Kind.SECURITY, _ANY, 1102, None),
    Attribute("computer_name", _TEXT, _GIVEN, None, "", is_name=True),
)

_QUEUE_MANAGER: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, 202, NULL_UUID),
    Attribute("computer_name", _TEXT, _ONCE, 203, "", is_name=True),
    Attribute("network_addresses", Kind.BYTES, _ANY, 206, b"", is_filter=False),
    Attribute("connected_network_identifiers", Kind.GUIDS, _ANY, 207, [], is_filter=False),
    Attribute("out_routing_server_identifiers", Kind.GUIDS, _ANY, 208, [], is_filter=False),
    Attribute("in_routing_server_identifiers", Kind.GUIDS, _ANY, 209, [], is_filter=False),
    Attribute("remote_access_server", _YES_NO, _ANY, 210, False, is_filter=False),
    Attribute(
        "server_type",
        _NUMBER,
        _ANY,
        210,
        DirectoryServerType.STANDALONE,
        choices=DirectoryServerType,
        is_filter=False,
    ),
    Attribute("quota_kilobytes", _NUMBER, _ANY, 214, DEFAULT_QUOTA_KILOBYTES),
    Attribute("journal_quota_kilobytes", _NUMBER, _ANY, 215, UNLIMITED),
    Attribute("queue_manager_version", _TEXT, _ANY, 216, ""),
    Attribute("create_time", Kind.TIME, _GIVEN, 217, 0),
    Attribute("modify_time", Kind.TIME, _GIVEN, 218, 0),
    Attribute("foreign_system", _YES_NO, _ANY, 219, False),
    Attribute(
        "operating_system_type",
        _NUMBER,
        _ANY,
        220,
        OperatingSystemType.OTHER,
        choices=OperatingSystemType,
    ),
    Attribute("operating_system_version", _TEXT, _ANY, None, "", is_filter=False),
    Attribute("full_path", _TEXT, _GIVEN, 221, "", is_name=True),
    Attribute("site_identifiers", Kind.GUIDS, _ANY, 222, [], _NOT_EMPTY),
    Attribute("routing_server", _YES_NO, _ANY, 227, False),
    Attribute("directory_server", _YES_NO, _ANY, 228, False),
    Attribute("supporting_server", _YES_NO, _ANY, 229, False),
    Attribute("qualified_computer_name", _TEXT, _ANY, 233, "", is_filter=False),
    Attribute("security", Kind.SECURITY, _ANY, 234, None),
    Attribute("public_encryption_keys", Kind.BYTES, _ANY, 238, b""),
    Attribute("public_signing_keys", Kind.BYTES, _ANY, 239, b"", is_filter=False),
    Attribute("clustered", _YES_NO, _ONCE, 242, False, is_filter=False),
)

_SITE: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, 302, NULL_UUID),
    Attribute("name", _TEXT, _ONCE, 301, "", (1, 64), is_name=True),
    Attribute("primary_site_controller", _TEXT, _ANY, 304, "", is_filter=False),
    Attribute("intra_site_replication_interval", _NUMBER, _ANY, 305, 2, (0, 0xFFFF)),
    Attribute("inter_site_replication_interval", _NUMBER, _ANY, 306, 10, (0, 0xFFFF)),
    Attribute("full_path", _TEXT, _GIVEN, 309, "", is_name=True),
    Attribute("migrated_from_msmq10", _YES_NO, _ANY, 310, False),
    Attribute("foreign_site", _YES_NO, _ANY, 311, False),
    Attribute("security", Kind.SECURITY, _ANY, 1301, None),
    Attribute("public_signing_keys", Kind.BYTES, _ANY, 1302, b"", is_filter=False),
)

_ROUTING_LINK: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, 806, NULL_UUID),
    Attribute("site1_identifier", Kind.GUID, _ONCE, 801, NULL_UUID),
    Attribute("site2_identifier", Kind.GUID, _ONCE, 802, NULL_UUID),
    Attribute("description", _TEXT, _ANY, 810, ""),
    Attribute("full_path", _TEXT, _GIVEN, 811, "", is_name=True),
    Attribute("actual_cost", _NUMBER, _ANY, 812, None, (COST_MIN, COST_MAX)),
    Attribute("site_gate_identifiers", Kind.GUIDS, _ANY, 813, [], is_filter=False),
)

_CONNECTED_NETWORK: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, 503, NULL_UUID),
    Attribute("name", _TEXT, _ONCE, 502, "", (1, 64), is_name=True),
    Attribute("network_protocol", _NUMBER, _ANY, 501, 1, (0, 0xFF)),
    Attribute("security", Kind.SECURITY, _ANY, 1501, None),
)

_ENTERPRISE: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, 609, NULL_UUID),
    Attribute("name", _TEXT, _ONCE, 601, "", is_filter=False, is_name=True),
    Attribute("weakened_security", _YES_NO, _ANY, 602, False),
    Attribute("non_ldap_capable_queue_manager_notification", _YES_NO, _ANY, 603, True),
    Attribute("default_time_to_live", _NUMBER, _ANY, 616, _TIME_TO_LIVE),
    Attribute("old_directory", _YES_NO, _ANY, 617, False),
    Attribute("security", Kind.SECURITY, _ANY, 1601, None),
)

_USER: Final = (
    Attribute("identifier", Kind.GUID, _GIVEN, 706, NULL_UUID),
    Attribute("security_identifier", Kind.BYTES, _ONCE, 701, b"", _NOT_EMPTY),
    Attribute("certificates", Kind.BYTES, _ANY, 702, b""),
    Attribute("certificate_digests", Kind.DIGESTS, _ANY, 705, []),
    Attribute("full_path", _TEXT, _GIVEN, None, "", is_name=True),
)

_DISTRIBUTION_LIST: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, None, NULL_UUID),
    Attribute("name", _TEXT, _ONCE, None, "", (1, 64), is_name=True),
    Attribute("full_path", _TEXT, _GIVEN, None, "", is_name=True),
    Attribute("members", Kind.NAMES, _ANY, None, [], is_filter=False),
)

_QUEUE_ALIAS: Final = (
    Attribute("identifier", Kind.GUID, _ONCE, None, NULL_UUID),
    Attribute("name", _TEXT, _ONCE, None, "", (1, 64), is_name=True),
    Attribute("full_path", _TEXT, _GIVEN, None, "", is_name=True),
    Attribute("format_name", _TEXT, _ANY, None, "", (1, 255)),
)


def _table(
    type_name: str,
    code: int,
    attributes: tuple[Attribute, ...],
    *required: str,
    kind: ObjectKind | None = None,
) -> ObjectTable:
    return ObjectTable(type_name, code, attributes, frozenset(required), kind)


_ALL: Final = (
    _table(QUEUE, ObjectType.MQDS_QUEUE, _QUEUE, "path_name", kind=ObjectKind.QUEUE),
    _table(
        QUEUE_MANAGER,
        ObjectType.MQDS_MACHINE,
        _QUEUE_MANAGER,
        "computer_name",
        "site_identifiers",
        kind=ObjectKind.QUEUE_MANAGER,
    ),
    _table(SITE, ObjectType.MQDS_SITE, _SITE, "name", kind=ObjectKind.SITE),
    _table(
        CONNECTED_NETWORK,
        ObjectType.MQDS_CN,
        _CONNECTED_NETWORK,
        "name",
        kind=ObjectKind.CONNECTED_NETWORK,
    ),
    _table(ENTERPRISE, ObjectType.MQDS_ENTERPRISE, _ENTERPRISE, "name", kind=ObjectKind.ENTERPRISE),
    _table(
        USER,
        ObjectType.MQDS_USER,
        _USER,
        "security_identifier",
        "certificates",
        "certificate_digests",
    ),
    _table(
        ROUTING_LINK,
        ObjectType.MQDS_ROUTINGLINK,
        _ROUTING_LINK,
        "site1_identifier",
        "site2_identifier",
        "actual_cost",
    ),
    _table(DISTRIBUTION_LIST, 64, _DISTRIBUTION_LIST, "name"),
    _table(QUEUE_ALIAS, 65, _QUEUE_ALIAS, "name", "format_name"),
)

TABLES: Final[Mapping[str, ObjectTable]] = MappingProxyType(
    {table.type_name: table for table in _ALL}
)


def table_of(type_name: str) -> ObjectTable:
    """The table of a type; DirectoryError for a type that no directory has."""
    table = TABLES.get(type_name)
    if table is None:
        hint = "there are " + ", ".join(TABLES)
        raise refusal(f"a directory has no {type_name}", MqStatus.MQDS_WRONG_OBJ_TYPE, hint)
    return table
