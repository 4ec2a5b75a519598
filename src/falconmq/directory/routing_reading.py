"""Reading the map of an enterprise from the directory (GetDirectoryData, MQBR 3.1.5.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

from falconmq.directory.queries import find_all
from falconmq.directory.routing_map import Link, Machine, MapSite, RoutingMap
from falconmq.manager.directory_backend import DirectoryBackend
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult

_MACHINE_ATTRIBUTES: Final = (
    "computer_name",
    "qualified_computer_name",
    "site_identifiers",
    "routing_server",
    "in_routing_server_identifiers",
    "out_routing_server_identifiers",
    "foreign_system",
)
_SITE_ATTRIBUTES: Final = ("name", "foreign_site")
_LINK_ATTRIBUTES: Final = (
    "actual_cost",
    "site1_identifier",
    "site2_identifier",
    "site_gate_identifiers",
)


class MapRows(NamedTuple):
    """What a map is made of, as the directory has it."""

    sites: list[Row]
    links: list[Row]
    machines: list[Row]

    def to_map(self, *, foreign_penalty: bool = False) -> RoutingMap:
        machines = map(_machine, self.machines)
        links, sites = map(_link, self.links), map(_site, self.sites)
        return RoutingMap(machines, sites, links, foreign_penalty=foreign_penalty)


def read_routing_map(directory: DirectoryBackend, *, foreign_penalty: bool = False) -> RoutingMap:
    """The map as the directory has it now; DirectoryError if it cannot be read as a whole."""
    return read_map_rows(directory).to_map(foreign_penalty=foreign_penalty)


def read_map_rows(directory: DirectoryBackend) -> MapRows:
    """Everything that the map needs, and no more; DirectoryError."""
    sites = find_all(directory, "Site", (), _SITE_ATTRIBUTES)
    links = find_all(directory, "RoutingLink", (), _LINK_ATTRIBUTES)
    # LDAP has no connected networks, nor an attribute for them: so it is not asked for them.
    wanted = None if _has_networks(directory) else _MACHINE_ATTRIBUTES
    return MapRows(sites, links, find_all(directory, "QueueManager", (), wanted))


def _has_networks(directory: DirectoryBackend) -> bool:
    result, handle = directory.begin("ConnectedNetwork", (), None, None)
    if result is not DirectoryResult.SUCCESS:
        return False
    result, _ = directory.next(handle)
    directory.end(handle)
    return result is DirectoryResult.SUCCESS


def _machine(row: Row) -> Machine:
    """A queue manager's part of the map, from its row."""
    name = str(row.get("computer_name", ""))
    return Machine(
        _identifier(row.get("identifier")),
        name,
        str(row.get("qualified_computer_name") or name),
        frozenset(_identifiers(row, "site_identifiers")),
        bool(row.get("routing_server", False)),
        tuple(_identifiers(row, "in_routing_server_identifiers")),
        tuple(_identifiers(row, "out_routing_server_identifiers")),
        bool(row.get("foreign_system", False)),
        frozenset(_identifiers(row, "connected_network_identifiers")),
    )


def _site(row: Row) -> MapSite:
    identifier, name = _identifier(row.get("identifier")), str(row.get("name", ""))
    return MapSite(identifier, name, bool(row.get("foreign_site", False)))


def _link(row: Row) -> Link:
    cost = row.get("actual_cost")
    return Link(
        _identifier(row.get("site1_identifier")),
        _identifier(row.get("site2_identifier")),
        cost if isinstance(cost, int) else 0,  # 0 is no cost: such a link is not used
        tuple(_identifiers(row, "site_gate_identifiers")),
    )


def _identifier(value: object) -> UUID:
    return value if isinstance(value, UUID) else NULL_UUID


def _identifiers(row: Row, name: str) -> Iterator[UUID]:
    values: Any = row.get(name) or ()
    return (value for value in values if isinstance(value, UUID))
