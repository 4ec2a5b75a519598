"""The sections with entries of their own: hosts, computers, routes, queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast
from uuid import UUID

from falconmq.embedded.queue import QueueChanges
from falconmq.errors import NameSyntaxError
from falconmq.manager.creation import QUEUE_LABEL_MAX
from falconmq.manager.path_names import in_full
from falconmq.manager.states import QueuePrivacy
from falconmq.names import PathName, QueueKind
from falconmq.names.path_name import LOCAL_COMPUTER
from falconmq.service.configuration.sections import Computer, DeclaredQueue
from falconmq.service.configuration.settings import KILOBYTES_MAX
from falconmq.service.tables import ConfigurationError, Table, as_guid, suggestion

Problems = list[ConfigurationError]


def read_hosts(table: Table, problems: Problems) -> dict[str, tuple[str, ...]]:
    hosts = {}
    for name in table.keys():  # noqa: SIM118  # a Table
        with collected(problems):
            hosts[name.lower()] = table.addresses(name)
    return hosts


def read_computers(tables: Iterable[Table], problems: Problems) -> tuple[Computer, ...]:
    computers: list[Computer] = []
    for table in tables:
        with collected(problems):
            computers.append(_computer(table, computers))
            problems += table.strangers()
    return tuple(computers)


def _computer(table: Table, others: list[Computer]) -> Computer:
    identifier = table.guid("id")
    name = table.text("name", str(identifier))
    computer = Computer(identifier, name, table.text("address", name))
    if any(computer.id == other.id for other in others):
        raise table.refuse("id", str(identifier), "named once: another computer has it already")
    if any(name.lower() == other.name.lower() for other in others):
        raise table.refuse("name", name, "named once: another computer has it already")
    return computer


def read_routes(
    tables: Iterable[Table], computers: tuple[Computer, ...], problems: Problems
) -> dict[UUID, tuple[UUID, ...]]:
    routes: dict[UUID, tuple[UUID, ...]] = {}
    for table in tables:
        with collected(problems):
            to = table.text("to")
            destination = as_guid(to) or _identifier(table, "to", to, computers)
            hops = table.texts("via")
            problems += table.strangers()
            if not hops:
                raise table.refuse("via", list(hops), "a list of computers, the best first")
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


def read_queues(
    tables: Iterable[Table], computer: str, problems: Problems
) -> tuple[DeclaredQueue, ...]:
    queues: list[DeclaredQueue] = []
    for table in tables:
        with collected(problems):
            queue = _queue(table, computer, problems)
            problems += table.strangers()
            if any(queue.name == other.name for other in queues):
                raise table.refuse("name", str(queue.name), "named once: it is declared already")
            queues.append(queue)
    return tuple(queues)


def _label(table: Table, key: str) -> str:
    label = table.text(key, may_be_empty=True)
    if len(label) > QUEUE_LABEL_MAX:
        raise table.refuse(key, label, f"a text of up to {QUEUE_LABEL_MAX} characters")
    return label


def _privacy(table: Table, key: str) -> QueuePrivacy:
    words = [level.name.lower() for level in QueuePrivacy]
    return QueuePrivacy[table.choice(key, words[0], words).upper()]


# What a queue may be declared to have: how it is read, and what it is for.
QUEUE_PROPERTIES: Final[dict[str, tuple[Callable[[Table, str], object], str, str]]] = {
    "label": (_label, "text", "What people call it."),
    "journaling": (
        lambda table, key: table.boolean(key, default=False),
        "true or false",
        "Keep a copy of every message that is received.",
    ),
    "quota_kilobytes": (
        lambda table, key: table.integer(key, 0, least=0, most=KILOBYTES_MAX),
        "whole number, KiB",
        "What its messages may take; 4294967295 is no limit.",
    ),
    "journal_quota_kilobytes": (
        lambda table, key: table.integer(key, 0, least=0, most=KILOBYTES_MAX),
        "whole number, KiB",
        "What its journal may take.",
    ),
    "authentication": (
        lambda table, key: table.boolean(key, default=False),
        "true or false",
        "Take signed messages only.",
    ),
    "privacy_level": (
        _privacy,
        "one of none, optional, body",
        "Whether encrypted messages are refused, taken, or needed.",
    ),
    "base_priority": (
        lambda table, key: table.integer(key, 0, least=-32768, most=32767),
        "whole number",
        "Its rank among the queues of a computer, for routing.",
    ),
}


def _queue(table: Table, computer: str, problems: Problems) -> DeclaredQueue:
    name = _path_name(table, computer)
    transactional = False
    with collected(problems):
        transactional = table.boolean("transactional", default=False)
    properties: dict[str, Any] = {}
    for key, (read, _, _) in QUEUE_PROPERTIES.items():
        with collected(problems):
            is_given, value = table.has(key), read(table, key)
            if is_given:
                properties[key] = value
    return DeclaredQueue(name, transactional, cast("QueueChanges", properties))


def _path_name(table: Table, computer: str) -> PathName:
    text = table.text("name")
    allowed = r"the path name of a queue of ours: '.\private$\orders', or orders for a public one"
    if not text:
        raise table.refuse("name", None, allowed)
    try:
        name = PathName.parse(in_full(text))
    except NameSyntaxError as error:
        first_line = str(error).partition("\n")[0]
        raise table.refuse("name", text, f"{allowed}: {first_line}", hint=error.hint) from error
    is_ours = name.is_local or name.computer.lower() == computer.lower()
    is_plain = name.kind is not QueueKind.SYSTEM and not name.subqueue and not name.journal
    if not (is_ours and is_plain):
        raise table.refuse("name", text, allowed)
    return name.with_computer(LOCAL_COMPUTER)


@contextmanager
def collected(problems: Problems) -> Iterator[None]:
    """What is refused inside is one of the problems; the rest is still looked at."""
    try:
        yield
    except ConfigurationError as error:
        problems.append(error)
