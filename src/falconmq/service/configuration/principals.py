"""`[[principals]]`: who callers are, and the permissions of the queue manager itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from falconmq.errors import FalconMQError
from falconmq.manager.access import Principal
from falconmq.manager.directory_objects import check_rights
from falconmq.manager.permissions import who
from falconmq.names import PathName
from falconmq.names.path_name import LOCAL_COMPUTER
from falconmq.names.syntax import fold
from falconmq.security.fingerprints import parse_fingerprint
from falconmq.service.configuration.lists import Problems, collected
from falconmq.service.configuration.sections import ROLES, ConfiguredPrincipal
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


def weak_name(text: str) -> str:
    """An entry of `weak_algorithms` as it is compared: a queue of ours, or a peer.

    NameSyntaxError if it has a backslash, and yet is no name of a queue.
    """
    if "\\" not in text:
        return fold(text.strip().strip("{}"))
    return fold(str(PathName.parse(text).with_computer(LOCAL_COMPUTER)))


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
    certificates, roles = _certificates(table), table.texts("roles")
    for other in others:
        if set(certificates) & set(other.certificates):
            taken = f"named once: it is {other.principal.name} already"
            raise table.refuse("certificates", list(certificates), taken)
        if shared := set(tokens) & set(other.tokens):
            taken = f"named once: it is {other.principal.name} already"
            raise table.refuse("tokens", sorted(shared), taken)
        if socket and other.socket:
            raise table.refuse("socket", socket, f"given once: it is {other.principal.name}")
    if unknown := set(roles) - set(ROLES):
        raise table.refuse("roles", sorted(unknown), f"some of {', '.join(filter(None, ROLES))}")
    if bool(roles) != bool(certificates):
        needed = "given together with `certificates`: what whoever shows one may do"
        raise table.refuse("roles", list(roles) or None, needed)
    principal = Principal(name, user, groups)
    return ConfiguredPrincipal(principal, tokens, socket, certificates, roles)


def _certificates(table: Table) -> tuple[str, ...]:
    found = []
    for text in table.texts("certificates"):
        plain = parse_fingerprint(text)
        if plain is None:
            hint = "openssl x509 -in FILE -noout -fingerprint -sha256 shows it"
            raise table.refuse("certificates", text, "a SHA-256 fingerprint, AB:CD:...", hint=hint)
        found.append(plain)
    return tuple(found)


def _sid(table: Table, key: str, text: str) -> Sid:
    try:
        return who(text)
    except FalconMQError as error:
        raise table.refuse(key, text, _SID, hint=error.hint) from error
