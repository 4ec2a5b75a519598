"""What path names and format names share: character sets, limits, comparing, pointing at faults.

A name is read by walking spans (start, stop) of the one text that was given, so every fault can be
shown at the very character, however deep it lies. All sets are runs matched by a compiled regular
expression: reading is linear in the length of the text.

Comparing: Windows compares queue names without case. The grammar of MQMQ 2.1 is ASCII, so `fold`
maps A-Z to a-z and leaves everything else alone. `str.casefold` and `str.upper` would be wrong for
the odd names a peer may send: they make one name of "ß" and "ss", Windows never does.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from falconmq.errors import MqStatus, NameSyntaxError


class MsmqVersion(IntEnum):
    """Which version's grammar a name follows: the sets of characters differ (MQMQ 2.1.1)."""

    MSMQ_1_0 = 1
    MSMQ_2_0 = 2
    MSMQ_3_0 = 3
    MSMQ_4_0 = 4
    MSMQ_5_0 = 5
    MSMQ_6_0 = 6


NEWEST: Final = MsmqVersion.MSMQ_6_0
Grammar = MsmqVersion | None
ANY: Final = None  # what some version allows: the characters of 1.0, the subqueues of 4.0


class QueueKind(Enum):
    """Where a queue lives: in the directory, on its computer only, or part of every computer."""

    PUBLIC = "public"
    PRIVATE = "private$"
    SYSTEM = "system$"


class Suffix(Enum):
    """The read-only queue behind a queue or computer: what follows the semicolon (MQMQ 2.2.11)."""

    NONE = ""
    JOURNAL = "JOURNAL"
    DEADLETTER = "DEADLETTER"
    DEADXACT = "DEADXACT"

    def __str__(self) -> str:
        return f";{self.value}" if self.value else ""


COMPUTER_MAX: Final = 256  # MQ-2.1.1-04
QUEUE_NAME_MAX: Final = 124  # MQ-2.1.1-09
SUBQUEUE_MAX: Final = 32  # MQ-2.1.1-08
DOMAIN_MAX: Final = 255  # MQ-2.1.5-02
PORT_MAX: Final = 0xFFFF

COMPUTER: Final = re.compile(r"[!-\[\]-~]*")  # MQ-2.1.1-04; "\" ends it
DOMAIN: Final = re.compile(r"[!-~]*")  # MQ-2.1.5-02
_NAME_1_0: Final = re.compile(r"[!-:<-\[\]-\x7f]*")  # MQ-2.1.1-05
_NAME_2_0: Final = re.compile(r"[!#-*\--:<-\[\]-\x7f]*")  # MQ-2.1.1-06, and subqueues: -08
_DIGITS: Final = re.compile(r"[0-9]*")

_PRIVATE: Final = "private$"
_SYSTEM_SEMICOLON: Final = "system$;"
_RESERVED: Final = frozenset({"private$", "system$"})
_JOURNAL: Final = "journal"
_ASCII_LOWER: Final = {ord(c): ord(c.lower()) for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_SHOWN: Final = 60  # characters shown on either side of a fault in a long text


def fold(text: str) -> str:
    """The form in which two spellings of one name are equal."""
    return text.translate(_ASCII_LOWER)


@dataclass(frozen=True, slots=True)
class Source:
    """The text a name is read from, and the status a fault in it has."""

    text: str
    status: MqStatus

    def error(
        self, position: int, problem: str, hint: str = "", *, status: MqStatus | None = None
    ) -> NameSyntaxError:
        """Build the error at `position`; a long text is shown in part, control characters as �."""
        first = max(0, position - _SHOWN)
        shown = self.text[first : position + _SHOWN]
        before = "..." if first else ""
        after = "..." if position + _SHOWN < len(self.text) else ""
        printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
        error = NameSyntaxError(
            before + printable + after,
            len(before) + position - first,
            problem,
            status=self.status if status is None else status,
            hint=hint,
        )
        error.name, error.position = self.text, position
        return error

    def run(self, allowed: re.Pattern[str], start: int, stop: int) -> int:
        """Where the run of a set's characters that begins at `start` ends."""
        match = allowed.match(self.text, start, stop)
        return start if match is None else match.end()

    def take(
        self, start: int, stop: int, allowed: re.Pattern[str], maximum: int, what: str, hint: str
    ) -> str:
        """The text from `start` to `stop`: 1 to `maximum` characters of a set."""
        legal = self.run(allowed, start, stop)
        if start >= stop:
            raise self.error(start, f"the {what} is missing", hint)
        if legal < stop and legal - start < maximum:
            raise self.error(legal, f"a {what} may not hold {_quoted(self.text[legal])}", hint)
        if stop - start > maximum:
            problem = f"a {what} has at most {maximum} characters, this one has {stop - start}"
            raise self.error(start + maximum, problem)
        return self.text[start:stop]

    def starts(self, word: str, start: int, stop: int) -> bool:
        """Whether the folded `word` stands at `start`."""
        end = start + len(word)
        return end <= stop and fold(self.text[start:end]) == word

    def number(self, start: int, stop: int, maximum: int, what: str, *, plain: bool) -> int:
        """A decimal number; `plain` forbids leading zeros."""
        digits = len(str(maximum))
        self.take(start, stop, _DIGITS, digits, what, f"decimal digits, 0 to {maximum}")
        number = int(self.text[start:stop])
        if number > maximum:
            raise self.error(start, f"a {what} is at most {maximum}, this one is {number}")
        if plain and stop - start > 1 and self.text[start] == "0":
            raise self.error(start, f"a {what} has no leading zeros", f"write {number}")
        return number


@dataclass(frozen=True, slots=True)
class QueuePart:
    """What follows the computer or address: kind, name and what the semicolon adds."""

    kind: QueueKind
    name: str
    subqueue: str | None = None
    journal: bool = False


def read_queue_part(
    source: Source, start: int, stop: int, version: Grammar, separators: str = "\\"
) -> QueuePart:
    """Read "[private$\\]name[;journal or ;subqueue]" or "system$;name" behind the computer."""
    if source.starts(_SYSTEM_SEMICOLON, start, stop):  # MQ-2.1.1-03, MQ-2.1.1-11
        return _read_name(source, start + len(_SYSTEM_SEMICOLON), stop, version, QueueKind.SYSTEM)
    name = start + len(_PRIVATE)
    if source.starts(_PRIVATE, start, stop) and name < stop and source.text[name] in separators:
        return _read_name(source, name + 1, stop, version, QueueKind.PRIVATE)
    part = _read_name(source, start, stop, version, QueueKind.PUBLIC)
    check_not_reserved(source, start, part.name)
    return part


def _read_name(
    source: Source, start: int, stop: int, version: Grammar, kind: QueueKind
) -> QueuePart:
    semicolon = source.text.find(";", start, stop)
    name = check_queue_name(source, start, stop if semicolon < 0 else semicolon, version)
    if semicolon < 0:
        return QueuePart(kind, name)
    behind = semicolon + 1
    if fold(source.text[behind:stop]) == _JOURNAL:  # before subqueue "journal": guide, section 6
        if kind is QueueKind.SYSTEM:
            raise source.error(semicolon, "a system queue has no journal")
        return QueuePart(kind, name, journal=True)
    if version is not None and version < MsmqVersion.MSMQ_4_0:  # MQ-2.1.1-07
        raise source.error(
            semicolon,
            f"a queue name of MSMQ {version.value}.0 may not hold ';'",
            "subqueues exist from MSMQ 4.0 on",
        )
    return QueuePart(kind, name, check_subqueue(source, behind, stop))


def check_queue_name(source: Source, start: int, stop: int, version: Grammar) -> str:
    if version is None or version < MsmqVersion.MSMQ_2_0:
        hint = "a queue name may not hold blanks, \\ or ;"
        return source.take(start, stop, _NAME_1_0, QUEUE_NAME_MAX, "queue name", hint)
    hint = 'a queue name may not hold blanks, \\ ; + , or "'
    return source.take(start, stop, _NAME_2_0, QUEUE_NAME_MAX, "queue name", hint)


def check_subqueue(source: Source, start: int, stop: int) -> str:
    hint = 'a subqueue may not hold blanks, \\ ; + , or "'
    return source.take(start, stop, _NAME_2_0, SUBQUEUE_MAX, "subqueue", hint)


def check_not_reserved(source: Source, start: int, name: str) -> None:
    """Refuse a public queue called private$ or system$: its text would read as something else."""
    if fold(name) in _RESERVED:
        joint = "\\" if fold(name) == _PRIVATE else ";"
        problem = f"{name} is not a queue: its name is missing"
        raise source.error(start + len(name), problem, f"write {name}{joint} and a name")


def check_parts(part: QueuePart, status: MqStatus) -> None:
    """Check values given to a constructor; `parse` may be stricter, by its version."""
    name = Source(part.name, status)
    check_queue_name(name, 0, len(part.name), ANY)
    if part.kind is QueueKind.PUBLIC:
        check_not_reserved(name, 0, part.name)
    if part.journal and part.kind is QueueKind.SYSTEM:
        raise name.error(0, "a system queue has no journal")
    if part.subqueue is None:
        return
    subqueue = Source(part.subqueue, status)
    check_subqueue(subqueue, 0, len(part.subqueue))
    if part.journal:
        raise subqueue.error(0, "a subqueue has no journal")
    if fold(part.subqueue) == _JOURNAL:
        raise subqueue.error(0, "a subqueue cannot be called journal: it reads as the journal")


def _quoted(character: str) -> str:
    return "'\\'" if character == "\\" else repr(character)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the closest of the known words, else all of them."""
    words = list(known)
    close = difflib.get_close_matches(word[:_SHOWN].upper(), words, 1)
    return f"did you mean {close[0]}?" if close else f"one of {', '.join(words)}"
