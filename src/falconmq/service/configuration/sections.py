"""The configuration as the service uses it: one frozen object, a part for each section."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final
from uuid import UUID

from falconmq.embedded.manager import DEFAULT_QUOTA_KILOBYTES
from falconmq.embedded.queue import QueueChanges
from falconmq.manager.access import Principal
from falconmq.manager.event_keeping import DEFAULT_BYTES, DEFAULT_DAYS, Retention
from falconmq.names import PathName
from falconmq.transport.routing import StaticRouter
from falconmq.transport.settings import PORT, TransportSettings

LEVELS: Final = ("debug", "info", "warning", "error")
ROLES: Final = ("", "read", "send", "receive", "directory", "manage")
ALL_INTERFACES: Final = "0.0.0.0"  # noqa: S104  # peers must reach us; the log says so
CONTROL_SOCKET: Final = "control.sock"
NO_DIRECTORY: Final = "none"
DIRECTORY_KINDS: Final = (NO_DIRECTORY, "embedded", "remote", "ldap")
NO_ROLE: Final = "none"
DIRECTORY_ROLES: Final = (NO_ROLE, "pec", "psc", "bsc")
HTTP_PORT: Final = 8018
NO_FILE: Final = "defaults"
AUDIT_BYTES: Final = 16 << 20
YEAR: Final = 365 * 86_400  # seconds
# Administrators: everything. All: look at properties and permissions. Who is known: create queues.
MANAGER_PERMISSIONS: Final = "O:BAD:(A;;GA;;;BA)(A;;0x20020;;;WD)(A;;0x4;;;AU)"


class Source(Enum):
    """Where a value comes from; the later one wins."""

    DEFAULT = "default"
    MEMBERSHIP = "membership"  # what `falconmq directory join` wrote down
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a configuration was read from, to read it again."""

    path: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)  # of [manager]
    environment: Mapping[str, str] | None = None  # None: that of the process


@dataclass(frozen=True, slots=True)
class ManagerSection:
    """`[manager]`"""

    name: str  # ComputerName
    data: Path
    bind: str = ALL_INTERFACES
    port: int = PORT  # ours and our peers'
    quota_kilobytes: int = DEFAULT_QUOTA_KILOBYTES
    local_names: tuple[str, ...] = ()  # other names and addresses under which we are known


@dataclass(frozen=True, slots=True)
class HttpSection:
    """`[http]`: the port of the HTTP API and the web console."""

    enabled: bool = True
    bind: str = ""  # `Configuration.http_address` says which address is meant by ""
    port: int = HTTP_PORT  # 0: any that is free
    certificate: Path | None = None  # with `key`: HTTPS
    key: Path | None = None
    client_ca: Path | None = None  # who issues the certificates that callers may show
    plain: bool = False  # HTTP without TLS for callers from other computers
    loopback_role: str = ""  # what callers from this computer may do without a token; "": nothing
    strict_transport_seconds: int = 0  # how long browsers insist on HTTPS
    request_bytes: int = 16 << 20  # that the body of one request may have
    staged_bytes: int = 1 << 30  # of messages that wait in memory for the commit of their batch


@dataclass(frozen=True, slots=True)
class HistorySection:
    """`[history]`: what is remembered of messages that are gone."""

    events: int = 100_000  # the last ones are kept in memory


@dataclass(frozen=True, slots=True)
class EventsSection:
    """`[events]`: the log of what happens to messages, in the store."""

    keep: bool = True
    max_age_days: int = DEFAULT_DAYS
    max_bytes: int = DEFAULT_BYTES
    bodies: tuple[str, ...] = ()  # patterns of queues whose messages are kept whole

    @property
    def retention(self) -> Retention:
        return Retention(self.max_age_days, self.max_bytes, self.bodies)


@dataclass(frozen=True, slots=True)
class TelemetrySection:
    """`[telemetry]`: spans for OpenTelemetry."""

    enabled: bool = False
    endpoint: str = ""  # OTLP over HTTP; "": as OpenTelemetry's own variables say


@dataclass(frozen=True, slots=True)
class SecuritySection:
    """`[security]`: whether permissions are obeyed, and what is written down of administration."""

    access_control: bool = True
    everyone_includes_anonymous: bool = True
    manager_permissions: str = MANAGER_PERMISSIONS  # SDDL
    audit_bytes: int = AUDIT_BYTES
    hardened: bool = False  # no message comes or goes over the MSMQ port
    weak_algorithms: tuple[str, ...] = ()  # queues, and peers by name or identifier
    encrypt_direct: bool = False


@dataclass(frozen=True, slots=True)
class DirectorySection:
    """`[directory]`: what this queue manager shares with the others of its enterprise, and where.

    `kind` says who keeps the directory: `none` (a workgroup), `embedded` (we do, in our own store),
    `remote` (another FalconMQ, over its HTTP API), `ldap` (slapd or Active Directory).
    """

    kind: str = "none"
    servers: tuple[str, ...] = ()  # URLs, tried in order
    site: str = ""  # by its name; "": the only one there is
    domain: str = ""
    root: str = ""  # of LDAP, DC=example,DC=com; "": what the server says
    bind_name: str = ""
    password_file: Path | None = None
    token_file: Path | None = None
    start_tls: bool = False
    ca_file: Path | None = None
    routing_server: bool = False
    host_name: str = ""  # under which others reach us; "": the computer name
    cache_seconds: float = 300.0
    timeout_seconds: float = 2.0  # that anybody waits for the directory
    sites_update_seconds: float = 43_200.0
    site_gates_update_seconds: float = 3_600.0
    routing_update_seconds: float = 3_600.0
    foreign_penalty: bool = False
    is_directory_service: bool = False
    notification_seconds: float = 60.0
    role: str = NO_ROLE  # of a directory server, one of DIRECTORY_ROLES
    pec: str = ""  # computer name of the primary enterprise controller
    psc: str = ""  # computer name of the primary controller of the own site
    intersite_seconds: float = 10.0
    intrasite_seconds: float = 2.0
    hello_seconds: float = 1_200.0
    checks_servers: bool = True  # only what a known server has signed is believed

    @property
    def is_joined(self) -> bool:
        return self.kind != NO_DIRECTORY

    @property
    def has_role(self) -> bool:
        """Whether this is one of several directory servers."""
        return self.role != NO_ROLE


@dataclass(frozen=True, slots=True)
class ConfiguredPrincipal:
    """One of `[[principals]]`: somebody with SIDs, and how callers are known to be that one."""

    principal: Principal
    tokens: tuple[str, ...] = ()  # whoever shows one of these
    socket: bool = False  # whoever uses the control socket
    certificates: tuple[str, ...] = ()  # fingerprints: whoever shows one of these
    roles: tuple[str, ...] = ()  # of those who show a certificate; tokens have their own


@dataclass(frozen=True, slots=True)
class Computer:
    """One of `[[computers]]`: a queue manager that is known by its identifier."""

    id: UUID
    name: str
    address: str  # or a host name


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """One of `[[queues]]`: it is there after the start, with these properties.

    What is left out of `properties` is as the one who creates the queue, or a command, has it.
    """

    name: PathName
    transactional: bool = False
    properties: QueueChanges = field(default_factory=QueueChanges)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything the daemon is told; `load` makes it."""

    manager: ManagerSection
    transport: TransportSettings = field(default_factory=TransportSettings)
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names in lower case
    computers: tuple[Computer, ...] = ()
    routes: Mapping[UUID, tuple[UUID, ...]] = field(default_factory=dict)
    log_level: str = "info"
    http: HttpSection = field(default_factory=HttpSection)
    history: HistorySection = field(default_factory=HistorySection)
    source: str = NO_FILE  # for the log: where this was read
    telemetry: TelemetrySection = field(default_factory=TelemetrySection)
    queues: tuple[DeclaredQueue, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)  # "http.port"; left out: default
    origin: Origin = field(default_factory=Origin)
    events: EventsSection = field(default_factory=EventsSection)
    security: SecuritySection = field(default_factory=SecuritySection)
    principals: tuple[ConfiguredPrincipal, ...] = ()
    directory: DirectorySection = field(default_factory=DirectorySection)

    @property
    def control_socket(self) -> Path:
        return self.manager.data / CONTROL_SOCKET

    @property
    def http_address(self) -> str:
        """Where HTTP listens: a manager with a loopback address of its own uses that one."""
        if self.http.bind:
            return self.http.bind
        bind = ipaddress.ip_address(self.manager.bind)
        return str(bind) if bind.is_loopback else "127.0.0.1"

    def router(self) -> StaticRouter:
        return StaticRouter({c.id: c.address for c in self.computers}, self.routes)


def default_data_directory() -> Path:
    """Where data goes that nobody found a place for."""
    if os.geteuid() == 0:
        return Path("/var/lib/falconmq")
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "share") / "falconmq"
