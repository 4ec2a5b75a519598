"""Where in LDAP an object can be, and what LDAP has no place for (directory guide 4.1, 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from falconmq.directory import tables
from falconmq.directory.ldap_connection import BASE, ONE_LEVEL, SUBTREE
from falconmq.directory.ldap_values import CLASSES
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.tree import Tree, public_path
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_backend import FilterOperator, Filters
from falconmq.manager.directory_objects import Row
from falconmq.manager.states import QueueScope

_ONLY_ELSEWHERE: Final[Mapping[str, Mapping[str, object]]] = {
    tables.QUEUE: {"scope": QueueScope.ENTERPRISE},
    tables.QUEUE_MANAGER: {"connected_network_identifiers": [], "network_addresses": b""},
    tables.SITE: {"primary_site_controller": "", "public_signing_keys": b""},
}
"""What Active Directory's schema has no place for, and the value that says nothing."""


def search_place(tree: Tree, table: ObjectTable, filters: Filters) -> tuple[str, str] | None:
    """Where to look, and how deep; None when a name cannot be that of any object (E1, E4)."""
    for expression in filters:
        if expression.operator is FilterOperator.EQUALS and isinstance(expression.value, str):
            try:
                found = _named_place(tree, table.type_name, expression.name, expression.value)
            except FalconMQError:
                return None
            if found is not None:
                return found
    match table.type_name:
        case tables.SITE:
            return tree.sites, ONE_LEVEL
        case tables.ROUTING_LINK:
            return tree.enterprise, ONE_LEVEL
        case tables.ENTERPRISE:
            return tree.enterprise, BASE
    return tree.root, SUBTREE


def _named_place(tree: Tree, type_name: str, name: str, value: str) -> tuple[str, str] | None:
    match type_name, name:
        case _, "full_path":
            return value, BASE
        case tables.QUEUE, "path_name":
            return tree.queue(public_path(value)), BASE
        case tables.QUEUE, "computer_name":
            return tree.queue_manager(value), ONE_LEVEL
        case tables.QUEUE_MANAGER, "computer_name":
            return tree.queue_manager(value), BASE
        case tables.SITE, "name":
            return tree.site(value), BASE
        case ((tables.DISTRIBUTION_LIST | tables.QUEUE_ALIAS), "name"):
            return tree.recipient(value), BASE
    return None


def check_possible(table: ObjectTable, row: Row) -> None:
    """Refuse what Active Directory's schema cannot hold (guide 5.1, 5.3)."""
    if table.type_name not in CLASSES:
        problem = f"LDAP holds no {table.type_name}"
        raise refusal(problem, MqStatus.UNSUPPORTED_CLASS, "the embedded directory does")
    for name, nothing in _ONLY_ELSEWHERE.get(table.type_name, {}).items():
        if row.get(name, nothing) != nothing:
            problem = f"LDAP has no attribute for {table.type_name}.{name}"
            raise refusal(problem, MqStatus.PROPERTY_NOTALLOWED, "the embedded directory has")
