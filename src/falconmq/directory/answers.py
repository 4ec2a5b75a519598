"""What a directory has answered, to answer it again.

An answer is used again while it is fresh. One that is old is still remembered: while the directory
is away it is the best there is. Each row is found by the question that brought it, by its
identifier, and by the name that people know it by.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final
from uuid import UUID

from falconmq.directory import tables
from falconmq.directory.schema import folded_value
from falconmq.manager.directory_backend import FilterOperator, Filters, equals
from falconmq.manager.directory_objects import Row

ANSWERS_MAX: Final = 30_000
NOT_THERE_SECONDS: Final = 5.0  # an object that is not there may come at any time
_NAMES: Final = {tables.QUEUE: "path_name", tables.QUEUE_MANAGER: "computer_name"}

Key = tuple[str, tuple[tuple[str, FilterOperator, object], ...]]


@dataclass(slots=True)
class _Answer:
    row: Row | None  # None: there is no such object
    at: float
    age: int  # how often everything had become old before
    number: int  # of all answers


class Answers:
    """The last answers of a directory. Any thread may ask."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._mutex = threading.Lock()
        self._known: OrderedDict[Key, _Answer] = OrderedDict()
        self._age = 0
        self._numbers = count(1)

    def fresh(
        self, type_name: str, filters: Filters, now: float, least_seconds: float = 0.0
    ) -> tuple[bool, Row | None]:
        """Whether a question needs not be asked, and its answer; None: there is no such object.

        For `least_seconds` an answer counts as fresh, however short its time is.
        """
        key = key_of(type_name, filters)
        with self._mutex:
            answer = None if key is None else self._known.get(key)
            if answer is None or answer.age != self._age:
                return False, None
            seconds = self._seconds
            if answer.row is None:
                seconds = min(seconds, NOT_THERE_SECONDS)
            return now < answer.at + max(seconds, least_seconds), _copied(answer.row)

    def remembered(self, type_name: str, filters: Filters) -> Row | None:
        """The last row that answered a question, however old."""
        key = key_of(type_name, filters)
        with self._mutex:
            answer = None if key is None else self._known.get(key)
            return None if answer is None else _copied(answer.row)

    def number(self, type_name: str, filters: Filters) -> int:
        """Which answer it is that a question has: another number for each; 0: none."""
        key = key_of(type_name, filters)
        with self._mutex:
            answer = None if key is None else self._known.get(key)
            return 0 if answer is None else answer.number

    def remember(self, type_name: str, filters: Filters, row: Row | None, now: float) -> None:
        """An answer came."""
        with self._mutex:
            answer = _Answer(_copied(row), now, self._age, next(self._numbers))
            for key in _keys(type_name, filters, row):
                self._known[key] = answer
                self._known.move_to_end(key)
            while len(self._known) > ANSWERS_MAX:
                self._known.popitem(last=False)

    def age(self) -> None:
        """Everything is to be asked again; until then it is remembered."""
        with self._mutex:
            self._age += 1

    def forget(self, type_name: str | None, identifier: UUID | None) -> None:
        """Let go of one object, of a type, or of everything. "Not there" is forgotten with it."""
        with self._mutex:
            for key, answer in list(self._known.items()):
                is_type = type_name is None or key[0] == type_name
                is_object = (
                    identifier is None
                    or answer.row is None
                    or answer.row.get("identifier") == identifier
                )
                if is_type and is_object:
                    del self._known[key]


def _copied(row: Row | None) -> Row | None:
    """Whoever gets a row may take its lists over; ours stay as they were answered."""
    if row is None:
        return None
    return {name: list(value) if isinstance(value, list) else value for name, value in row.items()}


def _keys(type_name: str, filters: Filters, row: Row | None) -> Iterator[Key]:
    questions = [filters]
    if row is not None:
        questions.append(equals("identifier", row["identifier"]))
        name = _NAMES.get(type_name)
        if name is not None and row.get(name):
            questions.append(equals(name, row[name]))
    for question in questions:
        key = key_of(type_name, question)
        if key is not None:
            yield key


def key_of(type_name: str, filters: Filters) -> Key | None:
    """One spelling of a question; None for one that cannot be kept."""
    parts = tuple((f.name, f.operator, folded_value(f.name, f.value)) for f in filters)
    try:
        hash(parts)
    except TypeError:  # it asks for a whole list
        return None
    return type_name, parts
