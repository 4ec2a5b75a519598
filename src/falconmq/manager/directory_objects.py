"""What a directory holds of queue managers and their enterprise (MQDMPR 3.1.1.1, .6 to .9, .15).

An object is a plain value with an identifier that is given once. A row is the same as names and
values: the form in which attributes go to a directory and come back. All fields are directory
attributes, except those marked OURS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from uuid import UUID

from falconmq.errors import DirectoryError, MqStatus, QueueError
from falconmq.manager.states import DirectoryServerType, OperatingSystemType
from falconmq.wire.access_masks import GENERIC_MAPPINGS, ObjectKind, map_generic
from falconmq.wire.ace import BasicAce, ObjectAce
from falconmq.wire.security_descriptor import SecurityDescriptor

Row = Mapping[str, object]
"""Attributes of one object by name; `identifier` is always among them."""

NULL_UUID: Final = UUID(int=0)
UNLIMITED: Final = 0xFFFFFFFF
DEFAULT_QUOTA_KILOBYTES: Final = 0x00100000  # 1 GiB for all queues, DM-A04
INITIALIZATION_RETRY_SECONDS: Final = 120  # DM-3.1.3-12
COST_MIN, COST_MAX = 1, 999_999
OURS: Final = {"ours": True}  # volatile, never published
_DIGEST_SIZE: Final = 16


def check_identifier(old: UUID, new: UUID) -> UUID:
    """An identifier is given once and never changes (DM-3.1.1-07)."""
    if old not in (NULL_UUID, new):
        raise DirectoryError(
            f"the identifier {old} cannot become {new}", status=MqStatus.PROPERTY_NOTALLOWED
        )
    return new


def check_rights(descriptor: SecurityDescriptor, kind: ObjectKind) -> None:
    """Refuse rights that mean nothing for an object of this kind."""
    for ace in descriptor.dacl.aces if descriptor.dacl is not None else ():
        if not isinstance(ace, BasicAce | ObjectAce):
            continue
        unknown = map_generic(ace.mask, kind) & ~GENERIC_MAPPINGS[kind].all
        if unknown:
            raise QueueError(
                f"security: {unknown:#x}, given to {ace.sid}, is no right of a {kind.value}",
                status=MqStatus.ILLEGAL_SECURITY_DESCRIPTOR,
            )


@dataclass(eq=False)
class DirectoryObject:
    """Base of everything a directory can hold (MQDMPR 3.1.1)."""

    identifier: UUID = NULL_UUID
    type_name: ClassVar[str] = ""
    kind: ClassVar[ObjectKind | None] = None  # whose rights its descriptor may grant

    def __setattr__(self, name: str, value: object) -> None:
        if name == "identifier" and isinstance(value, UUID):
            check_identifier(getattr(self, "identifier", NULL_UUID), value)
        if isinstance(value, SecurityDescriptor) and self.kind is not None:
            check_rights(value, self.kind)
        object.__setattr__(self, name, value)

    def row(self) -> dict[str, object]:
        """The directory attributes, as they are now."""
        values = {f.name: getattr(self, f.name) for f in _published_fields(self)}
        return {"identifier": self.identifier, **values}

    def update(self, row: Row) -> None:
        """Take over the directory attributes that a row has; the identifier stays."""
        for attribute in _published_fields(self):
            if attribute.name in row:
                setattr(self, attribute.name, row[attribute.name])


def _published_fields(item: DirectoryObject) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(item) if not f.metadata and f.name != "identifier"]


@dataclass(eq=False)
class QueueManager(DirectoryObject):
    """A queue manager as the directory knows it; one is the local one (MQDMPR 3.1.1.1)."""

    type_name: ClassVar[str] = "QueueManager"
    kind: ClassVar[ObjectKind | None] = ObjectKind.QUEUE_MANAGER  # DM-3.1.1.1-29
    computer_name: str = ""
    queue_manager_version: str = ""
    operating_system_version: str = ""
    operating_system_type: OperatingSystemType = OperatingSystemType.OTHER
    qualified_computer_name: str = ""
    create_time: int = 0
    modify_time: int = 0
    quota_kilobytes: int = DEFAULT_QUOTA_KILOBYTES
    journal_quota_kilobytes: int = UNLIMITED
    foreign_system: bool = False
    full_path: str = ""
    site_identifiers: list[UUID] = field(default_factory=list)
    connected_network_identifiers: list[UUID] = field(default_factory=list)  # of MSMQ 1.0 and 2.0
    network_addresses: bytes = b""  # TA_ADDRESS one behind the other, of MSMQ 1.0
    out_routing_server_identifiers: list[UUID] = field(default_factory=list)
    in_routing_server_identifiers: list[UUID] = field(default_factory=list)
    directory_server: bool = False
    remote_access_server: bool = False
    routing_server: bool = False
    supporting_server: bool = False
    server_type: DirectoryServerType = DirectoryServerType.STANDALONE
    public_encryption_keys: bytes = b""
    public_signing_keys: bytes = b""
    security: SecurityDescriptor | None = None
    clustered: bool = False
    out_routing_servers: list[QueueManager] = field(default_factory=list, metadata=OURS)
    in_routing_servers: list[QueueManager] = field(default_factory=list, metadata=OURS)

    def connect(self, out_servers: list[QueueManager], in_servers: list[QueueManager]) -> None:
        """Refer to the routing servers that the identifiers name, and to no others."""
        for server in out_servers:
            if server.identifier not in self.out_routing_server_identifiers:  # DM-3.1.1.1-55
                raise _mismatch(
                    "OutRoutingServerIdentifierList", self.identifier, server.identifier
                )
        for server in in_servers:
            if server.identifier not in self.in_routing_server_identifiers:  # DM-3.1.1.1-56
                raise _mismatch("InRoutingServerIdentifierList", self.identifier, server.identifier)
        self.out_routing_servers, self.in_routing_servers = out_servers, in_servers

    @property
    def directory_server_type(self) -> DirectoryServerType | None:
        """Its role; undefined while it serves no directory (DM-3.1.1.1-25)."""
        return self.server_type if self.directory_server else None


@dataclass(eq=False)
class Enterprise(DirectoryObject):
    """All queue managers of one directory (MQDMPR 3.1.1.6)."""

    type_name: ClassVar[str] = "Enterprise"
    kind: ClassVar[ObjectKind | None] = ObjectKind.ENTERPRISE  # DM-3.1.1.6-06
    name: str = ""
    weakened_security: bool = False
    non_ldap_capable_queue_manager_notification: bool = True  # DM-3.1.3-40
    default_time_to_live: int = 0x54600
    old_directory: bool = False
    security: SecurityDescriptor | None = None


@dataclass(eq=False)
class Site(DirectoryObject):
    """Queue managers that reach each other cheaply (MQDMPR 3.1.1.7)."""

    type_name: ClassVar[str] = "Site"
    kind: ClassVar[ObjectKind | None] = ObjectKind.SITE  # DM-3.1.1.7-09
    name: str = ""
    primary_site_controller: str = ""
    intra_site_replication_interval: int = 2
    inter_site_replication_interval: int = 10
    full_path: str = ""
    foreign_site: bool = False
    public_signing_keys: bytes = b""
    migrated_from_msmq10: bool = False
    security: SecurityDescriptor | None = None
    site_gates: list[QueueManager] = field(default_factory=list, metadata=OURS)


@dataclass(eq=False)
class RoutingLink(DirectoryObject):
    """A way between two sites and its cost (MQDMPR 3.1.1.8)."""

    type_name: ClassVar[str] = "RoutingLink"
    description: str = ""
    full_path: str = ""
    actual_cost: int = COST_MIN
    site1_identifier: UUID = NULL_UUID
    site2_identifier: UUID = NULL_UUID
    site_gate_identifiers: list[UUID] = field(default_factory=list)
    site1: Site | None = field(default=None, metadata=OURS)
    site2: Site | None = field(default=None, metadata=OURS)
    site_gates: list[QueueManager] = field(default_factory=list, metadata=OURS)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "actual_cost":
            _check_cost(value)
        super().__setattr__(name, value)

    def connect(self, site1: Site, site2: Site, site_gates: list[QueueManager]) -> None:
        """Refer to the objects that the identifiers name, and to no others."""
        if site1.identifier != self.site1_identifier:  # DM-3.1.1.8-07
            raise _mismatch("Site1Identifier", self.site1_identifier, site1.identifier)
        if site2.identifier != self.site2_identifier:  # DM-3.1.1.8-08
            raise _mismatch("Site2Identifier", self.site2_identifier, site2.identifier)
        for gate in site_gates:
            if gate.identifier not in self.site_gate_identifiers:  # DM-3.1.1.8-09
                raise _mismatch("SiteGateIdentifierList", self.identifier, gate.identifier)
        self.site1, self.site2, self.site_gates = site1, site2, site_gates


@dataclass(eq=False)
class ConnectedNetwork(DirectoryObject):
    """A network of MSMQ 1.0 and 2.0, kept so that such objects can pass (MQDMPR 3.1.1.9)."""

    type_name: ClassVar[str] = "ConnectedNetwork"
    kind: ClassVar[ObjectKind | None] = ObjectKind.CONNECTED_NETWORK  # DM-3.1.1.9-02
    name: str = ""
    network_protocol: int = 1  # 1 IP, 3 IPX, 5 foreign
    security: SecurityDescriptor | None = None


@dataclass(eq=False)
class User(DirectoryObject):
    """A sender and its certificates (MQDMPR 3.1.1.15)."""

    type_name: ClassVar[str] = "User"
    security_identifier: bytes = b""
    certificate_digests: list[bytes] = field(default_factory=list)
    certificates: bytes = b""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "certificate_digests" and isinstance(value, list):
            for digest in value:
                if len(digest) != _DIGEST_SIZE:  # DM-3.1.1.15-02
                    problem = f"a certificate digest has {_DIGEST_SIZE} bytes, not {len(digest)}"
                    raise DirectoryError(problem, status=MqStatus.ILLEGAL_PROPERTY_VALUE)
        super().__setattr__(name, value)


def _check_cost(value: object) -> None:
    if not isinstance(value, int) or not COST_MIN <= value <= COST_MAX:  # DM-3.1.1.8-03
        problem = f"a routing link costs {COST_MIN} to {COST_MAX}, not {value}"
        raise DirectoryError(problem, status=MqStatus.ILLEGAL_PROPERTY_VALUE)


def _mismatch(attribute: str, wanted: UUID, given: UUID) -> DirectoryError:
    problem = f"{attribute}: {wanted} does not name {given}"
    return DirectoryError(problem, status=MqStatus.ILLEGAL_PROPERTY_VALUE)
