"""What the daemon is told: one TOML file, or nothing at all.

    [manager]      who we are, where the data lives, which address and port we use
    [transport]    the settings of the protocol, `falconmq.transport.settings`
    [hosts]        names that need no DNS: SALES02 = "10.0.0.7"
    [[computers]]  other queue managers: id, name, address
    [[routes]]     over which of them a queue manager is reached
    [log]          how much is told
    [http]         the port of the HTTP API and the web console
    [history]      what is remembered of messages that are gone

Without a file everything has a default that works: the name of this computer, all its addresses,
data under the user's data directory.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final
from uuid import UUID

from falconmq.embedded.actions import default_computer_name
from falconmq.embedded.manager import DEFAULT_QUOTA_KILOBYTES
from falconmq.service.tables import ConfigurationError, Table, as_guid, shown, suggestion
from falconmq.transport.routing import StaticRouter
from falconmq.transport.settings import PORT, TransportSettings

LEVELS: Final = ("debug", "info", "warning", "error")
ALL_INTERFACES: Final = "0.0.0.0"  # noqa: S104  # peers must reach us; the log says so
CONTROL_SOCKET: Final = "control.sock"
_NO_FILE: Final = "defaults"
_SECTIONS: Final = (
    "manager",
    "transport",
    "hosts",
    "computers",
    "routes",
    "log",
    "http",
    "history",
)
_ROLES: Final = ("", "read", "send", "receive", "manage")
_LONGEST: Final = 30 * 86_400.0  # seconds; a longer time is a mistake of units
_KILOBYTES_MAX: Final = 0xFFFFFFFF
_NAME_MAX: Final = 256  # MQ-2.1.1-04

# The whole numbers of [transport]: least and most. Times are 0 to 30 days, but not 0 for these.
_LIMITS: Final[Mapping[str, tuple[int, int]]] = {
    "direct_ack_wait_factor": (1, 100),
    "window_size": (1, 0xFFFF),  # the field has 16 bits
    "history_size": (1, 10_000_000),
    "ping_port": (1, 0xFFFF),
    "sessions_max": (1, 1_000_000),
}
_MAY_BE_ZERO: Final = frozenset({"round_trip_delay", "maximum_order_ack_delay"})


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
    port: int = 8018  # 0: any that is free
    certificate: Path | None = None  # with `key`: HTTPS
    key: Path | None = None
    plain: bool = False  # HTTP without TLS for callers from other computers
    loopback_role: str = ""  # what callers from this computer may do without a token; "": nothing
    request_bytes: int = 16 << 20  # that the body of one request may have


@dataclass(frozen=True, slots=True)
class HistorySection:
    """`[history]`: what is remembered of messages that are gone."""

    events: int = 100_000  # the last ones are kept in memory


@dataclass(frozen=True, slots=True)
class Computer:
    """One of `[[computers]]`: a queue manager that is known by its identifier."""

    id: UUID
    name: str
    address: str  # or a host name


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
    source: str = _NO_FILE  # for the log: where this was read

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


def load(
    path: Path | str | None = None,
    *,
    data: Path | str | None = None,
    bind: str | None = None,
    name: str | None = None,
) -> Configuration:
    """Read a file, or take the defaults; what is given beside it wins. ConfigurationError."""
    document, file, directory = {}, _NO_FILE, Path()
    if path is not None:
        document, file, directory = _read(Path(path)), str(path), Path(path).absolute().parent
    place = None if data is None else str(Path(data).absolute())
    given = {"data": place, "bind": bind, "name": name}
    options = {key: value for key, value in given.items() if value is not None}
    for section in document:
        if section not in _SECTIONS:
            raise ConfigurationError(
                f"{file}: {section} is no section", hint=suggestion(section, _SECTIONS)
            )
    manager_table = Table(file, "manager", _table(file, document, "manager"), options)
    transport = _transport(Table(file, "transport", _table(file, document, "transport")))
    transport.advertised_address = manager_table.address("advertised_address")
    computers = _computers(file, document)
    return Configuration(
        _manager(manager_table, directory),
        transport,
        _hosts(Table(file, "hosts", _table(file, document, "hosts"))),
        computers,
        _routes(file, document, computers),
        _log_level(Table(file, "log", _table(file, document, "log"))),
        _http(Table(file, "http", _table(file, document, "http")), directory),
        _history(Table(file, "history", _table(file, document, "history"))),
        file,
    )


def _read(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror}", hint="check the path, or leave --config out"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: not a text in UTF-8 ({error.reason})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"{path}: {error}", hint='texts need quotes: name = "SALES01"'
        ) from error


def _table(file: str, document: Mapping[str, object], name: str) -> dict[str, object]:
    value = document.get(name, {})
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{file}: {name} is {shown(value)}; it must be a section", hint=f"write [{name}]"
        )
    return value


def _tables(file: str, document: Mapping[str, object], name: str) -> list[Table]:
    value = document.get(name, [])
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ConfigurationError(
            f"{file}: {name} is {shown(value)}; it must be a list of sections",
            hint=f"write [[{name}]] above each entry",
        )
    return [Table(file, f"{name}[{n}]", entry) for n, entry in enumerate(value, 1)]


def _manager(table: Table, directory: Path) -> ManagerSection:
    name = table.text("name") or default_computer_name()
    if (
        len(name) > _NAME_MAX
        or not name.isascii()
        or not name.isprintable()
        or set(name) & set("\\ ")
    ):
        allowed = f"the name of a computer: up to {_NAME_MAX} letters, digits, signs"
        raise table.refuse("name", name, allowed)
    data = table.text("data")
    section = ManagerSection(
        name=name,
        data=directory / Path(data).expanduser() if data else default_data_directory(),
        bind=table.address("bind", ALL_INTERFACES),
        port=table.integer("port", PORT, least=1, most=0xFFFF),
        quota_kilobytes=table.integer(
            "quota_kilobytes", DEFAULT_QUOTA_KILOBYTES, least=1, most=_KILOBYTES_MAX
        ),
        local_names=table.texts("local_names"),
    )
    table.finish()
    return section


def _transport(table: Table) -> TransportSettings:
    settings = TransportSettings()
    for setting in fields(TransportSettings):
        key = setting.name
        if key == "advertised_address":
            continue  # it says who we are: [manager] has it
        default = getattr(settings, key)
        value: object
        if isinstance(default, bool):
            value = table.boolean(key, default=default)
        elif isinstance(default, int):
            least, most = _LIMITS[key]
            value = table.integer(key, default, least=least, most=most)
        else:
            shortest = 0.0 if key in _MAY_BE_ZERO else 0.001
            value = table.seconds(key, default, least=shortest, most=_LONGEST)
        setattr(settings, key, value)
    table.finish()
    return settings


def _hosts(table: Table) -> dict[str, tuple[str, ...]]:
    return {name.lower(): table.addresses(name) for name in table.keys()}  # noqa: SIM118  # a Table


def _computers(file: str, document: Mapping[str, object]) -> tuple[Computer, ...]:
    computers: list[Computer] = []
    for table in _tables(file, document, "computers"):
        identifier = table.guid("id")
        name = table.text("name", str(identifier))
        computer = Computer(identifier, name, table.text("address", name))
        if any(computer.id == other.id for other in computers):
            raise table.refuse("id", str(identifier), "named once: another computer has it already")
        if any(name.lower() == other.name.lower() for other in computers):
            raise table.refuse("name", name, "named once: another computer has it already")
        table.finish()
        computers.append(computer)
    return tuple(computers)


def _routes(
    file: str, document: Mapping[str, object], computers: tuple[Computer, ...]
) -> dict[UUID, tuple[UUID, ...]]:
    routes: dict[UUID, tuple[UUID, ...]] = {}
    for table in _tables(file, document, "routes"):
        to = table.text("to")
        destination = as_guid(to) or _identifier(table, "to", to, computers)
        hops = table.texts("via")
        if not hops:
            raise table.refuse("via", list(hops), "a list of computers, the best first")
        table.finish()
        if destination in routes:
            raise table.refuse("to", to, "named once: there is a route already")
        routes[destination] = tuple(_identifier(table, "via", hop, computers) for hop in hops)
    return routes


def _identifier(table: Table, key: str, text: str, computers: tuple[Computer, ...]) -> UUID:
    """A computer by its GUID or name; a hop must be known, or nobody could reach it."""
    guid = as_guid(text)
    for computer in computers:
        if computer.id == guid or computer.name.lower() == text.lower():
            return computer.id
    raise table.refuse(
        key,
        text,
        "the id or the name of one of [[computers]]",
        hint=suggestion(text, [computer.name for computer in computers]),
    )


def _http(table: Table, directory: Path) -> HttpSection:
    certificate, key = table.text("certificate"), table.text("key")
    if bool(certificate) != bool(key):
        missing = "key" if certificate else "certificate"
        raise table.refuse(missing, None, "given too: HTTPS needs both")
    section = HttpSection(
        enabled=table.boolean("enabled", default=True),
        bind=table.address("bind"),
        port=table.integer("port", 8018, least=0, most=0xFFFF),
        certificate=directory / Path(certificate).expanduser() if certificate else None,
        key=directory / Path(key).expanduser() if key else None,
        plain=table.boolean("plain", default=False),
        loopback_role=table.choice("loopback_role", "", _ROLES),
        request_bytes=table.integer("request_bytes", 16 << 20, least=1 << 16, most=1 << 30),
    )
    table.finish()
    return section


def _history(table: Table) -> HistorySection:
    section = HistorySection(table.integer("events", 100_000, least=0, most=10_000_000))
    table.finish()
    return section


def _log_level(table: Table) -> str:
    level = table.choice("level", "info", LEVELS)
    table.finish()
    return level
