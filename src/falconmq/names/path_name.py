"""Path names: computer and queue, as people write them (MQMQ 2.1.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Self

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.names.syntax import (
    COMPUTER,
    COMPUTER_MAX,
    NEWEST,
    MsmqVersion,
    QueueKind,
    QueuePart,
    Source,
    check_parts,
    fold,
    read_queue_part,
)

LOCAL_COMPUTER: Final = "."
KEYWORDS: Final = ("DIRECT", "PUBLIC", "PRIVATE", "MACHINE", "CONNECTOR", "DL", "MULTICAST")
_KEYWORD: Final = re.compile(rf"(?:{'|'.join(KEYWORDS)})=", re.IGNORECASE | re.ASCII)
_STATUS: Final = MqStatus.ILLEGAL_QUEUE_PATHNAME  # MQ-2.1.1-10
_FORM: Final = "computer\\queue, computer\\private$\\queue or computer\\system$;queue"


@dataclass(frozen=True, slots=True, eq=False)
class PathName:
    r"""The name of a queue by its computer: `.\private$\orders`, `sales01\orders;late`.

    Two path names are equal when they differ only in case; each keeps its spelling. "." stands for
    the local computer and equals no other name of it: see `with_computer`.
    """

    computer: str
    kind: QueueKind
    name: str
    subqueue: str | None = None
    journal: bool = False  # the journal of the queue: written q;journal, never a subqueue

    def __post_init__(self) -> None:
        source = Source(self.computer, _STATUS)
        _check_computer(source, 0, len(self.computer))
        check_parts(self._queue_part(), _STATUS)

    @classmethod
    def parse(cls, text: str, *, version: MsmqVersion = NEWEST) -> Self:
        """Read a path name; NameSyntaxError points at what breaks the grammar of that version."""
        source = Source(text, _STATUS)
        backslash = text.find("\\")
        if backslash < 0:
            raise _no_backslash(source)
        computer = _check_computer(source, 0, backslash)
        try:
            part = read_queue_part(source, backslash + 1, len(text), version)
        except NameSyntaxError as error:
            error.hint = _better_hint(text, backslash) or error.hint
            raise
        return cls(computer, part.kind, part.name, part.subqueue, part.journal)

    @property
    def is_local(self) -> bool:
        """Whether the computer is written as "."."""
        return self.computer == LOCAL_COMPUTER

    def with_computer(self, computer: str) -> Self:
        """The same queue name on another computer, or on this one by its real name."""
        return replace(self, computer=computer)

    def __str__(self) -> str:
        behind = ";journal" if self.journal else ""
        if self.subqueue is not None:
            behind = f";{self.subqueue}"
        before = {QueueKind.PUBLIC: "", QueueKind.PRIVATE: "private$\\"}.get(self.kind, "system$;")
        return f"{self.computer}\\{before}{self.name}{behind}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathName) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        subqueue = None if self.subqueue is None else fold(self.subqueue)
        return fold(self.computer), self.kind, fold(self.name), subqueue, self.journal

    def _queue_part(self) -> QueuePart:
        return QueuePart(self.kind, self.name, self.subqueue, self.journal)


def is_format_name(text: str) -> bool:
    """Whether a text begins with one of the keywords of format names, whatever follows."""
    return _KEYWORD.match(text) is not None


def _check_computer(source: Source, start: int, stop: int) -> str:
    if is_format_name(source.text[start : start + 16]):
        raise source.error(start, "this is a format name, not a path name", f"expected {_FORM}")
    hint = "a computer name holds neither blanks nor letters beyond ASCII"
    if start == stop and source.text.startswith("\\\\"):
        hint = f"did you mean {source.text[:80].lstrip(chr(92))}?"
    return source.take(start, stop, COMPUTER, COMPUTER_MAX, "computer name", hint)


def _no_backslash(source: Source) -> NameSyntaxError:
    text = source.text
    if is_format_name(text):
        return source.error(0, "this is a format name, not a path name", f"expected {_FORM}")
    hint = f"expected {_FORM}; in a shell put the name in single quotes"
    if "/" in text[:80] and len(text) <= 80:
        slashes = text.replace("/", "\\")
        hint = f"did you mean {slashes}?"
    return source.error(len(text), "no '\\' divides computer and queue", hint)


def _better_hint(text: str, backslash: int) -> str:
    """What people write when they mean something else."""
    if len(text) > COMPUTER_MAX:
        return ""
    computer, rest = text[:backslash], text[backslash + 1 :]
    lower = fold(rest)
    if lower.startswith(("private\\", "private$/")):
        return (
            f"did you mean {computer}\\private$\\{rest.replace('/', chr(92)).split(chr(92))[-1]}?"
        )
    if lower.startswith("system$\\"):
        return f"did you mean {computer}\\system$;{rest[8:]}?"
    if lower.endswith("\\journal$"):  # how System.Messaging writes a journal
        return f"did you mean {text[: -len('/journal$')]};journal?"
    return ""
