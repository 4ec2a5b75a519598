"""`[[principals]]`: who callers are, and the permissions of the queue manager itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from falconmq.errors import FalconMQError
from falconmq.manager.access import Principal
from falconmq.manager.directory_objects import check_rights
from falconmq.manager.permissions import who
from falconmq.service.configuration.lists import Problems, collected
from falconmq.service.configuration.sections import ConfiguredPrincipal
from falconmq.service.tables import Table
from falconmq.wire.access_masks import ObjectKind
from falconmq.wire.sddl import parse_sddl
from falconmq.wire.sid import ANONYMOUS, EVERYONE, Sid

_SID: Final = "a SID, like 'S-1-5-21-1004336348-1177238915-682003330-1601'"
_NOBODY: Final = (ANONYMOUS, EVERYONE)  # whoever has a token is known, and is one, not all


def read_principals(tables: Iterable[Table], problems: Problems) -> tuple[ConfiguredPrincipal, ...]:
    found: list[ConfiguredPrincipal] = []
    for table in tables:
        with collected(problems):
            found.append(_principal(table, found))
            problems += table.strangers()
    return tuple(found)


def sddl(table: Table, key: str) -> str:
    """The text of a descriptor for the queue manager that can be used."""
    text = table.text(key)
    try:
        check_rights(parse_sddl(text), ObjectKind.QUEUE_MANAGER)
    except FalconMQError as error:
        first_line = str(error).partition("\n")[0]
        raise table.refuse(
            key, text, f"a security descriptor of a queue manager: {first_line}", hint=error.hint
        ) from error
    return text


def _principal(table: Table, others: list[ConfiguredPrincipal]) -> ConfiguredPrincipal:
    name = table.text("name")
    if not name:
        raise table.refuse("name", None, "a text: how people call it")
    if any(name.casefold() == other.principal.name.casefold() for other in others):
        raise table.refuse("name", name, "named once: another principal has it already")
    user = _sid(table, "sid", table.text("sid"))
    if user in _NOBODY:
        raise table.refuse("sid", str(user), f"{_SID}: this one is nobody in particular")
    groups = frozenset(_sid(table, "groups", text) for text in table.texts("groups"))
    tokens, socket = table.texts("tokens"), table.boolean("socket", default=False)
    for other in others:
        if shared := set(tokens) & set(other.tokens):
            taken = f"named once: it is {other.principal.name} already"
            raise table.refuse("tokens", sorted(shared), taken)
        if socket and other.socket:
            raise table.refuse("socket", socket, f"given once: it is {other.principal.name}")
    return ConfiguredPrincipal(Principal(name, user, groups), tokens, socket)


def _sid(table: Table, key: str, text: str) -> Sid:
    try:
        return who(text)
    except FalconMQError as error:
        raise table.refuse(key, text, _SID, hint=error.hint) from error
