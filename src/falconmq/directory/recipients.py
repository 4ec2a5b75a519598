"""Names that stand for other queues: distribution lists and aliases (directory guide 5.1)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from falconmq.directory.distinguished_names import folded
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.directory.tables import DISTRIBUTION_LIST, QUEUE, QUEUE_ALIAS
from falconmq.errors import MqStatus
from falconmq.manager.directory_objects import Row
from falconmq.names import (
    MultipleElementFormatName,
    PublicFormatName,
    SingleFormatName,
    parse_format_name,
)

Finder = Callable[[str], tuple[ObjectTable, Row]]
"""The object at a place in the tree."""


def members_of(root: Row, find: Finder) -> list[SingleFormatName]:
    """All destinations of a list, those of the lists inside it too; each once, and no circles."""
    found: dict[SingleFormatName, None] = {}
    seen = {folded(str(root["full_path"]))}
    waiting = [root]
    while waiting:
        members = waiting.pop(0)["members"]
        assert isinstance(members, list)
        for member in members:
            place = folded(member)
            if place in seen:
                continue
            seen.add(place)
            table, row = find(member)
            if table.type_name == DISTRIBUTION_LIST:
                waiting.append(row)
            else:
                found[_destination(member, table, row)] = None
    return list(found)


def alias_of(table: ObjectTable, row: Row) -> SingleFormatName:
    """The format name that an alias stands for."""
    if table.type_name != QUEUE_ALIAS:
        raise _wrong_class(str(row.get("full_path", "")), table, "alias")
    text = str(row["format_name"])
    name = parse_format_name(text)
    if isinstance(name, MultipleElementFormatName):
        raise refusal(f"{text} is more than one destination", MqStatus.ILLEGAL_FORMATNAME)
    return name


def _destination(place: str, table: ObjectTable, row: Row) -> SingleFormatName:
    if table.type_name == QUEUE:
        return PublicFormatName(UUID(str(row["identifier"])))
    if table.type_name == QUEUE_ALIAS:
        return alias_of(table, row)
    raise _wrong_class(place, table, "destination")


def _wrong_class(place: str, table: ObjectTable, wanted: str) -> Exception:
    problem = f"{place} is a {table.type_name}, and no {wanted}"
    return refusal(problem, MqStatus.NOT_A_CORRECT_OBJECT_CLASS)
