"""Reading the configuration, and finding everything that is wrong with it at once."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from falconmq.errors import FalconMQError, NameSyntaxError
from falconmq.service.configuration import environment as variables
from falconmq.service.configuration.lists import (
    read_computers,
    read_hosts,
    read_queues,
    read_routes,
)
from falconmq.service.configuration.membership import directory_problems, read_membership
from falconmq.service.configuration.principals import read_principals, sddl, weak_name
from falconmq.service.configuration.sections import (
    NO_FILE,
    Configuration,
    DirectorySection,
    EventsSection,
    HistorySection,
    HttpSection,
    ManagerSection,
    Origin,
    SecuritySection,
    Source,
    TelemetrySection,
)
from falconmq.service.configuration.settings import SECTIONS, Kind, Setting, settings_of
from falconmq.service.tables import ConfigurationError, Override, Table, shown, suggestion
from falconmq.transport.settings import TransportSettings

_DATA_VARIABLE = "FALCONMQ_DATA"  # what commands know the directory by


def load(
    path: Path | str | None = None,
    *,
    data: Path | str | None = None,
    bind: str | None = None,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Configuration:
    """Read a file, or take the defaults; what is given beside it wins. ConfigurationError."""
    place = None if data is None else str(Path(data).absolute())
    given = {"data": place, "bind": bind, "name": name}
    options = {key: value for key, value in given.items() if value is not None}
    return load_again(Origin(None if path is None else Path(path), options, environment))


def load_again(origin: Origin) -> Configuration:
    """The configuration as file and environment say it now."""
    configuration, problems = _Reader(origin).read()
    if problems:
        first, more = problems[0], len(problems) - 1
        if more and origin.path is not None:
            hint = f"{more} more: falconmq config check {origin.path}"
            first.hint = f"{first.hint}; {hint}" if first.hint else hint
        raise first
    return configuration


def check(
    path: Path | str | None = None, environment: Mapping[str, str] | None = None
) -> list[ConfigurationError]:
    """All that is wrong with a file and the environment."""
    origin = Origin(None if path is None else Path(path), {}, environment)
    try:
        return _Reader(origin).read()[1]
    except ConfigurationError as error:
        return [error]


class _Reader:
    """One reading; `problems` collects what is wrong, so that one look shows all of it."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._file = NO_FILE if origin.path is None else str(origin.path)
        self._document: dict[str, object] = {} if origin.path is None else _read(origin.path)
        self._problems: list[ConfigurationError] = []
        self._sources: dict[str, Source] = {}
        self._joined: set[str] = set()  # keys of [directory] that a command wrote down
        self._overrides = variables.overrides(origin.environment, self._problems)
        self._options: dict[str, Override] = {
            key: Override(value, f"--{key}") for key, value in origin.options.items()
        }

    def read(self) -> tuple[Configuration, list[ConfigurationError]]:
        for section in self._document:
            if section not in SECTIONS:
                text = f"{self._file}: {section} is no section"
                self._problems.append(ConfigurationError(text, hint=suggestion(section, SECTIONS)))
        manager = self._section("manager")
        advertised = manager.pop("advertised_address")
        transport = TransportSettings(**self._section("transport"), advertised_address=advertised)
        http = self._section("http")
        self._check_http(http)
        computers = read_computers(self._tables("computers"), self._problems)
        configuration = Configuration(
            ManagerSection(**manager),
            transport,
            read_hosts(self._table("hosts"), self._problems),
            computers,
            read_routes(self._tables("routes"), computers, self._problems),
            self._section("log")["level"],
            HttpSection(**http),
            HistorySection(**self._section("history")),
            self._file,
            TelemetrySection(**self._section("telemetry")),
            read_queues(self._tables("queues"), manager["name"], self._problems),
            self._sources,
            self._origin,
            EventsSection(**self._section("events")),
            self._security(),
            read_principals(self._tables("principals"), self._problems),
            self._directory(manager["data"]),
        )
        self._check_router(configuration)
        return configuration, self._problems

    def _security(self) -> SecuritySection:
        section = SecuritySection(**self._section("security"))
        table = Table(self._file, "security", {})
        for text in section.weak_algorithms:
            try:
                is_named = bool(weak_name(text))
            except NameSyntaxError:
                is_named = False
            if not is_named:
                allowed = "names of queues and of peers"
                self._problems.append(table.refuse("weak_algorithms", text, allowed))
        return section

    def _directory(self, data: Path) -> DirectorySection:
        """`[directory]`; what it leaves out is as `falconmq directory join` wrote it down."""
        try:
            joined = read_membership(data)
        except ConfigurationError as error:
            self._problems.append(error)
            joined = {}
        written = self._document.get("directory", {})
        if isinstance(written, dict):
            self._joined = {key for key in joined if key not in written}
            self._document = {**self._document, "directory": {**joined, **written}}
        values = self._section("directory")
        section = DirectorySection(**values)
        self._problems += directory_problems(Table(self._file, "directory", {}), section)
        return section

    def _section(self, section: str) -> dict[str, Any]:
        """The values of a section; the default stands in for one that is wrong."""
        table = self._table(section)
        values = {}
        for setting in settings_of(section):
            try:
                values[setting.key] = self._value(table, setting)
            except ConfigurationError as error:
                self._problems.append(error)
                values[setting.key] = setting.default_value()
        self._problems += table.strangers()
        return values

    def _value(self, table: Table, setting: Setting) -> object:
        if not table.has(setting.key):
            return setting.default_value()
        self._sources[setting.name] = self._source(setting)
        key, least, most = setting.key, setting.least, setting.most
        match setting.kind:
            case Kind.BOOLEAN:
                return table.boolean(key, default=False)
            case Kind.INTEGER:
                return table.integer(key, 0, least=int(least), most=int(most))
            case Kind.SECONDS:
                return table.seconds(key, 0, least=least, most=most)
            case Kind.CHOICE:
                return table.choice(key, "", setting.choices)
            case Kind.TEXTS:
                return table.texts(key)
            case Kind.ADDRESS:
                return table.address(key)
            case Kind.NAME:
                return table.computer_name(key)
            case Kind.URL:
                return table.url(key)
            case Kind.SDDL:
                return sddl(table, key)
            case Kind.PATH:
                return self._path(table, setting)
            case _:
                return table.text(key)

    def _path(self, table: Table, setting: Setting) -> Path:
        """A path of the file is beside the file, any other from where the command runs."""
        path = Path(table.text(setting.key)).expanduser()
        if self._sources[setting.name] is Source.FILE and self._origin.path is not None:
            return self._origin.path.absolute().parent / path
        return path.absolute()

    def _source(self, setting: Setting) -> Source:
        if setting.section == "manager" and setting.key in self._options:
            given = os.environ if self._origin.environment is None else self._origin.environment
            variable = given.get(_DATA_VARIABLE, "")
            is_variable = setting.key == "data" and variable
            if is_variable and str(Path(variable).absolute()) == self._origin.options["data"]:
                return Source.ENVIRONMENT
            return Source.OPTION
        if setting.key in self._overrides[setting.section]:
            return Source.ENVIRONMENT
        is_joined = setting.section == "directory" and setting.key in self._joined
        return Source.MEMBERSHIP if is_joined else Source.FILE

    def _table(self, name: str) -> Table:
        value = self._document.get(name, {})
        if not isinstance(value, dict):
            text = f"{self._file}: {name} is {shown(value)}; it must be a section"
            self._problems.append(ConfigurationError(text, hint=f"write [{name}]"))
            value = {}
        given = {**self._overrides[name], **(self._options if name == "manager" else {})}
        return Table(self._file, name, value, given)

    def _tables(self, name: str) -> list[Table]:
        value = self._document.get(name, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            text = f"{self._file}: {name} is {shown(value)}; it must be a list of sections"
            hint = f"write [[{name}]] above each entry"
            self._problems.append(ConfigurationError(text, hint=hint))
            return []
        return [Table(self._file, f"{name}[{n}]", entry) for n, entry in enumerate(value, 1)]

    def _check_http(self, http: Mapping[str, object]) -> None:
        if bool(http["certificate"]) != bool(http["key"]):
            missing = "key" if http["certificate"] else "certificate"
            table = Table(self._file, "http", {})
            self._problems.append(table.refuse(missing, None, "given too: HTTPS needs both"))
        elif http["client_ca"] and not http["certificate"]:
            table = Table(self._file, "http", {})
            problem = "given too: only over HTTPS do callers show certificates"
            self._problems.append(table.refuse("certificate", None, problem))

    def _check_router(self, configuration: Configuration) -> None:
        try:
            configuration.router()
        except FalconMQError as error:
            text = f"{self._file}: computers or routes: {error}"
            self._problems.append(ConfigurationError(text, hint=error.hint))


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
