"""What an operation of the remote client asks for, without a socket: calls, pauses and answers.

How to think about it. Each operation (send, receive, commit ...) is a generator that yields what it
wants done next and is sent the answer. It never touches a socket or a clock's sleep, so there is
one text of it, with its repetitions and its cleaning up, for threads and for asyncio: `channel` and
`aio_channel` drive it.

A broken connection is thrown into the generator as `BrokenError`, Ctrl-C and cancellation as
themselves: so an operation can give back what it was handed before it ends.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from falconmq.errors import UnreachableError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request."""

    method: str
    path: str  # below the prefix of the API
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_seconds: float = 0  # that the service may let pass before it answers
    owner: object = None  # the queue that is read: closing it ends the request
    answer_seconds: float | None = None  # beside the wait; None: as for all


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass before the next try."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Later:
    """Ctrl-C or a cancellation that came too late to take anything back: raise it a bit later."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; for a pause, nothing."""

    status: int = 0
    content: bytes = b""


class BrokenError(Exception):
    """The connection could not be had or broke; `error` is what a caller is told in the end."""

    def __init__(
        self, error: UnreachableError, *, was_sent: bool, is_hopeless: bool = False
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.was_sent = was_sent  # then it may have been carried out
        self.is_hopeless = is_hopeless  # no use in trying again


Step: TypeAlias = Call | Pause | Later
Operation: TypeAlias = Generator[Step, Answer, _T]
