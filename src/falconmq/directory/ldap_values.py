"""Attributes as LDAP keeps them (directory guide 2, 4.3, 5.5).

One table: which LDAP attribute holds which of ours, how its value is spelled there, and what an
entry means that does not have it. Attributes that need a look at other entries, such as the names
of routing servers, are not here but in `ldap_objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.schema import Attribute, Kind
from falconmq.errors import FalconMQError
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.user_sign_certs import UserSignCerts

OLD_DIRECTORY_VERSION: Final = 3
NEW_DIRECTORY_VERSION: Final = 200
_TIME_FORMAT: Final = "%Y%m%d%H%M%S"
_SIGN_BIT: Final = 0x80000000
_UNSIGNED: Final = 0x100000000
_UNSET: Final = object()


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a sort of value is written; `encode` of an empty value gives nothing at all (E9)."""

    encode: Callable[[Any], list[bytes]]
    decode: Callable[[Sequence[bytes]], object]


def _number(value: int) -> list[bytes]:
    signed = value - _UNSIGNED if value >= _SIGN_BIT else value  # 32 bits with a sign: E8
    return [str(signed).encode()]


def encode_time(seconds: int) -> bytes:
    return datetime.fromtimestamp(seconds, UTC).strftime(f"{_TIME_FORMAT}.0Z").encode()


def _decode_time(values: Sequence[bytes]) -> int:
    text = values[0].decode()[: len("20000101000000")]
    return int(datetime.strptime(text, _TIME_FORMAT).replace(tzinfo=UTC).timestamp())


def _is_true(values: Sequence[bytes]) -> bool:
    return values[0].upper() == b"TRUE"


_TEXT: Final = Spelling(
    lambda value: [value.encode()] if value else [], lambda values: values[0].decode()
)
_BYTES: Final = Spelling(lambda value: [value] if value else [], lambda values: values[0])
SPELLINGS: Final[Mapping[Kind, Spelling]] = MappingProxyType(
    {
        Kind.TEXT: _TEXT,
        Kind.OPTIONAL_TEXT: _TEXT,
        Kind.NUMBER: Spelling(_number, lambda values: int(values[0])),
        Kind.TIME: Spelling(lambda value: [encode_time(value)], _decode_time),
        Kind.BOOLEAN: Spelling(lambda value: [b"TRUE" if value else b"FALSE"], _is_true),  # E6
        Kind.GUID: Spelling(
            lambda value: [value.bytes_le], lambda values: UUID(bytes_le=values[0])
        ),
        Kind.GUIDS: Spelling(
            lambda value: [item.bytes_le for item in value],
            lambda values: [UUID(bytes_le=item) for item in values],
        ),
        Kind.NAMES: Spelling(
            lambda value: [item.encode() for item in value],
            lambda values: [item.decode() for item in values],
        ),
        Kind.BYTES: _BYTES,
        Kind.DIGESTS: Spelling(list, list),
        Kind.SECURITY: Spelling(
            lambda value: [] if value is None else [value.encode()],
            lambda values: SecurityDescriptor.decode(values[0]),
        ),
    }
)
# mSMQNt4Stub is a number, mSMQCSPName says Y or N (E12), mSMQVersion tells old from new.
_ONE_OR_ZERO: Final = Spelling(
    lambda value: [b"1" if value else b"0"], lambda values: values[0] != b"0"
)
_Y_OR_N: Final = Spelling(
    lambda value: [b"Y" if value else b"N"], lambda values: values[0].upper() != b"N"
)
_VERSION: Final = Spelling(
    lambda value: _number(OLD_DIRECTORY_VERSION if value else NEW_DIRECTORY_VERSION),
    lambda values: int(values[0]) <= OLD_DIRECTORY_VERSION,
)


@dataclass(frozen=True, slots=True)
class Mapped:
    """The LDAP attribute behind one of ours."""

    ldap_name: str
    spelling: Spelling | None = None  # None: as its kind is spelled
    missing: object = _UNSET  # what an entry without it means; unset: our default

    def encode(self, attribute: Attribute, value: object) -> list[bytes]:
        return (self.spelling or SPELLINGS[attribute.kind]).encode(value)

    def decode(self, attribute: Attribute, values: Sequence[bytes] | None) -> object:
        if not values:
            return self.value_when_missing(attribute)
        value = (self.spelling or SPELLINGS[attribute.kind]).decode(values)
        if isinstance(value, int) and not isinstance(value, bool) and attribute.limits[0] >= 0:
            value %= _UNSIGNED  # E8
        return attribute.restored(value)

    def value_when_missing(self, attribute: Attribute) -> object:
        default = attribute.default if self.missing is _UNSET else self.missing
        return list(default) if isinstance(default, list) else default


_IDENTIFIER: Final = Mapped("objectGUID")
_SECURITY: Final = Mapped("nTSecurityDescriptor")
_CREATED: Final = Mapped("whenCreated", missing=None)
_CHANGED: Final = Mapped("whenChanged", missing=None)

MAPPED: Final[Mapping[str, Mapping[str, Mapped]]] = MappingProxyType(
    {
        tables.QUEUE: {
            "identifier": _IDENTIFIER,
            "type": Mapped("mSMQQueueType"),
            "journaling": Mapped("mSMQJournal"),
            "quota_kilobytes": Mapped("mSMQQueueQuota"),
            "base_priority": Mapped("mSMQBasePriority"),
            "journal_quota_kilobytes": Mapped("mSMQQueueJournalQuota"),
            "label": Mapped("mSMQLabelEx"),
            "create_time": _CREATED,
            "modify_time": _CHANGED,
            "authentication": Mapped("mSMQAuthenticate"),
            "privacy_level": Mapped("mSMQPrivacyLevel"),
            "transactional": Mapped("mSMQTransactional"),
            "multicast_address": Mapped("MSMQ-MulticastAddress"),
            "security": _SECURITY,
        },
        tables.QUEUE_MANAGER: {
            "identifier": _IDENTIFIER,
            "quota_kilobytes": Mapped("mSMQQuota"),
            "journal_quota_kilobytes": Mapped("mSMQJournalQuota"),
            "queue_manager_version": Mapped("mSMQComputerTypeEx"),
            "create_time": _CREATED,
            "modify_time": _CHANGED,
            "foreign_system": Mapped("mSMQForeign"),
            "operating_system_type": Mapped("mSMQOSType"),
            "site_identifiers": Mapped("mSMQSites"),
            "routing_server": Mapped("mSMQRoutingServices"),
            "directory_server": Mapped("mSMQDsServices"),
            "supporting_server": Mapped("mSMQDependentClientServices"),
            "security": _SECURITY,
            "public_encryption_keys": Mapped("mSMQEncryptKey"),
        },
        tables.SITE: {
            "identifier": _IDENTIFIER,
            "intra_site_replication_interval": Mapped("mSMQInterval1"),
            "inter_site_replication_interval": Mapped("mSMQInterval2"),
            "migrated_from_msmq10": Mapped("mSMQNt4Stub", _ONE_OR_ZERO),
            "foreign_site": Mapped("mSMQSiteForeign"),
            "security": _SECURITY,
        },
        tables.ROUTING_LINK: {
            "identifier": _IDENTIFIER,
            "description": Mapped("description"),
            "actual_cost": Mapped("mSMQCost"),
        },
        tables.ENTERPRISE: {
            "identifier": _IDENTIFIER,
            "weakened_security": Mapped("mSMQNameStyle"),
            "non_ldap_capable_queue_manager_notification": Mapped("mSMQCSPName", _Y_OR_N),
            "default_time_to_live": Mapped("mSMQLongLived"),
            "old_directory": Mapped("mSMQVersion", _VERSION, missing=True),
            "security": _SECURITY,
        },
        tables.USER: {
            "identifier": _IDENTIFIER,
            "security_identifier": Mapped("objectSid"),
            "certificates": Mapped("mSMQSignCertificates"),
            "certificate_digests": Mapped("mSMQDigests"),
        },
        tables.DISTRIBUTION_LIST: {"identifier": _IDENTIFIER, "members": Mapped("member")},
        tables.QUEUE_ALIAS: {
            "identifier": _IDENTIFIER,
            "format_name": Mapped("msMQ-Recipient-FormatName"),
        },
    }
)

CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        tables.QUEUE: "mSMQQueue",
        tables.QUEUE_MANAGER: "mSMQConfiguration",
        tables.SITE: "site",
        tables.ROUTING_LINK: "mSMQSiteLink",
        tables.ENTERPRISE: "mSMQEnterpriseSettings",
        tables.USER: "user",
        tables.DISTRIBUTION_LIST: "group",
        tables.QUEUE_ALIAS: "msMQ-Custom-Recipient",
    }
)


def in_order_of(certificates: bytes, digests: list[bytes]) -> list[bytes]:
    """Digests as their certificates come: a set of values has no order of its own (guide 3.2)."""
    try:
        known = [item.digest for item in UserSignCerts.decode(certificates).certificates]
    except FalconMQError:
        known = []
    return sorted(digests, key=lambda item: (known.index(item) if item in known else 1 << 31, item))
