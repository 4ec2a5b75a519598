"""Sites and queue managers by name, where an object of the directory has their GUIDs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.directory.base import DirectoryBase
from falconmq.directory.queries import find_one
from falconmq.directory.schema import refusal
from falconmq.directory.tables import CONNECTED_NETWORK, QUEUE_MANAGER, SITE
from falconmq.errors import MqStatus
from falconmq.manager.directory_backend import equals

_ONE: Final[Mapping[str, str]] = MappingProxyType(
    {"site1_identifier": SITE, "site2_identifier": SITE}
)
_MANY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "site_identifiers": SITE,
        "site_gate_identifiers": QUEUE_MANAGER,
        "out_routing_server_identifiers": QUEUE_MANAGER,
        "in_routing_server_identifiers": QUEUE_MANAGER,
        "connected_network_identifiers": CONNECTED_NETWORK,
    }
)
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {SITE: "site", QUEUE_MANAGER: "queue-manager", CONNECTED_NETWORK: "connected-network"}
)


def with_identifiers(directory: DirectoryBase, given: Mapping[str, object]) -> dict[str, object]:
    """What somebody typed, with a GUID for every name; DirectoryError if nobody is called so."""
    return {name: _resolved(directory, name, value) for name, value in given.items()}


def _resolved(directory: DirectoryBase, name: str, value: object) -> object:
    if name in _ONE:
        return _identifier(directory, _ONE[name], value)
    if name not in _MANY:
        return value
    items = value.split(",") if isinstance(value, str) and value else value
    if not isinstance(items, list):
        return value
    return [_identifier(directory, _MANY[name], item) for item in items]


def _identifier(directory: DirectoryBase, type_name: str, value: object) -> object:
    """The GUID of a name; what is no name stays as it is, for others to judge."""
    text = value.strip() if isinstance(value, str) else ""
    if not text or _is_guid(text):
        return value
    key = "computer_name" if type_name == QUEUE_MANAGER else "name"
    row = find_one(directory, type_name, equals(key, text), ("identifier",))
    if row is None:
        word = _WORDS[type_name]
        problem = f"the directory has no {word} {text}"
        hint = f"those that it has: falconmq directory list {word}"
        raise refusal(problem, MqStatus.MQDS_OBJECT_NOT_FOUND, hint)
    return str(row["identifier"])


def _is_guid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
