"""Who keeps the directory: the servers by their sites, and how each stands as seen from here.

The directory names the servers; how far they are is what this server has heard and sent. Of the
backup controllers of other sites it knows no more than that they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.queries import find_all
from falconmq.directory.replication.state import ENTERPRISE_PARTITION
from falconmq.manager.directory_backend import DirectoryBackend
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import DirectoryServerType
from falconmq.service.why.words import age

_NORMAL: Final = "NORMAL"
_PATIENCE: Final = 90.0  # seconds after which an answer is late: it was asked for twice
_OF_SITES: Final = ("identifier", "name", "foreign_site", "primary_site_controller")
_OF_MACHINES: Final = ("identifier", "computer_name", "server_type", "site_identifiers")
_LOOKS: Final = ("", "good", "warn", "bad")  # from unknown to the worst


@dataclass(frozen=True, slots=True)
class Standing:
    """How something stands: a look of `_LOOKS`, and a few words."""

    look: str
    words: str


@dataclass(frozen=True, slots=True)
class DirectoryServer:
    """One server."""

    name: str  # "": a site that has no server of its own yet
    role: str  # PEC, PSC or BSC
    identifier: UUID | None  # None: it is not registered yet
    is_here: bool
    standing: Standing  # how far this server is with what that one decides
    sending: Standing  # what this server still has to tell it


@dataclass(frozen=True, slots=True)
class DirectorySite:
    """A site: the server that decides about it, and those that stand by."""

    identifier: UUID
    name: str
    primary: DirectoryServer
    backups: tuple[DirectoryServer, ...]


def directory_sites(kept: DirectoryBackend, status: Mapping[str, Any]) -> list[DirectorySite]:
    """All sites by name, that of the PEC first; `status` is what `status_json` says."""
    sites = find_all(kept, tables.SITE, (), _OF_SITES)
    machines = find_all(kept, tables.QUEUE_MANAGER, (), _OF_MACHINES)
    servers = [row for row in machines if row["server_type"] != DirectoryServerType.STANDALONE]
    teller = _Teller(status, servers)
    found = [teller.site(row) for row in sites if not row["foreign_site"]]
    return sorted(found, key=lambda site: (site.primary.role != "PEC", site.name.lower()))


class _Teller:
    def __init__(self, status: Mapping[str, Any], machines: list[Row]) -> None:
        self._here = str(status["machine"]).lower()
        self._partitions = {each["id"]: each for each in status["partitions"]}
        self._neighbours = {each["machine"].lower(): each for each in status["neighbours"]}
        self._machines = {str(row["computer_name"]).lower(): row for row in machines}
        enterprise = self._partitions.get(str(ENTERPRISE_PARTITION), {})
        self._pec = str(enterprise.get("authority", "")).lower()

    def site(self, row: Row) -> DirectorySite:
        identifier = row["identifier"]
        assert isinstance(identifier, UUID)
        own = self._partitions.get(str(identifier), {})
        name = str(own.get("authority") or row["primary_site_controller"] or "")
        is_pec = bool(name) and name.lower() == self._pec
        decided = [own] if own else []
        if is_pec:
            decided.append(self._partitions[str(ENTERPRISE_PARTITION)])
        primary = self._server(name, "PEC" if is_pec else "PSC", _behind(decided))
        backups = [
            self._server(str(machine["computer_name"]), "BSC", Standing("", ""))
            for machine in self._machines.values()
            if machine["server_type"] == DirectoryServerType.BACKUP_SITE_CONTROLLER
            and _is_in(machine, identifier)
            and str(machine["computer_name"]).lower() != name.lower()
        ]
        backups.sort(key=lambda server: server.name.lower())
        return DirectorySite(identifier, str(row["name"]), primary, tuple(backups))

    def _server(self, name: str, role: str, standing: Standing) -> DirectoryServer:
        known = self._machines.get(name.lower())
        identifier = None if known is None else known["identifier"]
        is_here = name.lower() == self._here
        if is_here:
            standing = self._own(role)
        elif not name:
            standing = Standing("warn", "nobody decides yet")
        neighbour = None if is_here else self._neighbours.get(name.lower())
        return DirectoryServer(
            name,
            role,
            identifier if isinstance(identifier, UUID) else None,
            is_here,
            standing,
            Standing("", "") if neighbour is None else _sending(neighbour),
        )

    def _own(self, role: str) -> Standing:
        """This server: what it decides has the numbers that it gives; a backup decides nothing."""
        own = [each for each in self._partitions.values() if each["own"]]
        if role == "BSC" or not own:
            return Standing("good", "this server")
        return Standing("good", "this server, change " + _numbers(own))


def _is_in(machine: Row, site: UUID) -> bool:
    sites = machine["site_identifiers"]
    return isinstance(sites, Iterable) and site in sites


def _behind(partitions: list[dict[str, Any]]) -> Standing:
    """How far this server is with the partitions that another one decides about: the worst."""
    found = [_standing(each) for each in partitions]
    if not found:
        return Standing("", "not heard of yet")
    worst = max(found, key=lambda standing: _LOOKS.index(standing.look))
    if worst.look == "good":
        return Standing("good", f"in step, change {_numbers(partitions)}")
    return worst


def _numbers(partitions: list[dict[str, Any]]) -> str:
    """12, or 12 and 5 of the enterprise."""
    enterprise = str(ENTERPRISE_PARTITION)
    sites = [f"{each['number']:,}" for each in partitions if each["id"] != enterprise]
    above = [f"E{each['number']:,}" for each in partitions if each["id"] == enterprise]
    return ", ".join(sites + above)


def _standing(partition: dict[str, Any]) -> Standing:
    asked = partition["asked_seconds"]
    if asked is not None and asked >= _PATIENCE:
        return Standing("bad", f"no answer for {age(asked)}")
    if partition["state"] != _NORMAL:
        return Standing("warn", "fetched anew")
    if partition["lag"]:
        return Standing("warn", f"{partition['lag']:,} not here yet")
    if partition["waiting"]:
        return Standing("warn", "asked for changes")
    return Standing("good", "in step")


def _sending(neighbour: dict[str, Any]) -> Standing:
    if neighbour["silent"]:
        return Standing("bad", "silent")
    if neighbour["waiting_changes"]:
        return Standing("warn", f"{neighbour['waiting_changes']:,} to send")
    hello = neighbour["last_hello_seconds"]
    return Standing(
        "good", "nothing to send" + ("" if hello is None else f", told {age(hello)} ago")
    )
