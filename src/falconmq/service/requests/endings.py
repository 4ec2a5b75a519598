"""Work that a caller leaves open between requests, and that ends once: commit or abort.

How to think about it. A caller may send its commit twice because the first answer got lost, two
callers may end the same work at once, and its time may run out in the same moment. So an end is one
task that all of them wait for, and how it went is remembered: whoever asks again for what was done
is told that it is done, whoever asks for the opposite is told that it is too late, and why.
"""

from __future__ import annotations

import asyncio
import copy
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from falconmq.errors import FalconMQError, MqStatus, ResourceError, TransactionError
from falconmq.service.requests.expiring import Deadline, Expiring
from falconmq.service.state_schemas import State
from falconmq.service.web.problems import NotKnownError

OPEN_MAX: Final = 10_000  # of each kind
REMEMBERED: Final = 10_000  # ends

Json = dict[str, Any]


@dataclass(slots=True, eq=False)
class Work:
    """Something that is open."""

    id: UUID
    timeout: float | None
    deadline: Deadline | None = None
    ending: asyncio.Task[None] | None = None
    wanted: State | None = None  # how it is being ended


@dataclass(frozen=True, slots=True)
class End:
    """How something ended."""

    state: State
    view: Json  # what is shown of it
    refusal: FalconMQError | None = None  # why it could not end as its caller wanted


_Work = TypeVar("_Work", bound=Work)


class UnknownWorkError(NotKnownError, TransactionError):
    """No such transaction or lease."""


class Registry(ABC, Generic[_Work]):
    """The open work of one kind, and how the last of it ended."""

    kind = ""  # as people call it
    unknown = MqStatus.TRANSACTION_SEQUENCE

    def __init__(self, expiring: Expiring) -> None:
        self._expiring = expiring
        self._open: dict[UUID, _Work] = {}
        self._ended: OrderedDict[UUID, End] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, id: UUID) -> Json:
        """What is shown of it, open or ended."""
        work = self._find(id)
        return self._ended[id].view if work is None else self.view(work)

    def all(self) -> list[Json]:
        """Everything that is open, in the order it came."""
        self._expiring.run()
        return [self.view(work) for work in list(self._open.values()) if self._is_open(work)]

    async def end(self, id: UUID, wanted: State) -> Json:
        """Commit or abort; what was done before is done. TransactionError if it is too late."""
        work = self._find(id)
        if work is not None:
            if work.ending is None:
                self._begin_end(work, wanted)
            assert work.ending is not None
            try:
                await asyncio.shield(work.ending)
            except FalconMQError:
                if work.wanted in (None, wanted):
                    raise
        return self._as_wanted(id, wanted)

    def extend(self, id: UUID, timeout: float | None) -> Json:
        """Give it so many seconds from now on; None: as many as at first."""
        work = self._usable(id)
        if work.deadline is not None:
            work.timeout = timeout if timeout is not None else work.timeout
            assert work.timeout is not None
            work.deadline.put_off(work.timeout)
        return self.view(work)

    @abstractmethod
    def view(self, work: _Work) -> Json:
        """What is shown of it while it is open."""

    @abstractmethod
    async def _finish(self, work: _Work, wanted: State) -> End:
        """Do it, and say how it ended. If it raises, it has ended with an abort."""

    def _is_open_again(self, work: _Work) -> bool:  # noqa: ARG002
        """Whether it can be ended once more, after that has failed."""
        return False

    def _is_open(self, work: _Work) -> bool:  # noqa: ARG002  # not all kinds can end by themselves
        """Whether it is still what it was when it was opened; an end that nobody saw is noted."""
        return True

    def _unknown_hint(self) -> str:
        return f"it ended more than {REMEMBERED} ends ago, or the service was restarted"

    def _add(self, work: _Work, timeout: float | None) -> None:
        if timeout is not None:
            work.deadline = self._expiring.start(timeout, lambda: self._expire(work))
        self._open[work.id] = work

    def _check_room(self) -> None:
        self._expiring.run()
        if len(self._open) >= OPEN_MAX:
            raise ResourceError(
                f"{OPEN_MAX} {self.kind}s are open",
                status=MqStatus.INSUFFICIENT_RESOURCES,
                hint="commit or abort some, or wait until their time is over",
            )

    def _find(self, id: UUID) -> _Work | None:
        """The work if it is open, None if it has ended; UnknownWorkError if nobody knows it."""
        self._expiring.run()
        work = self._open.get(id)
        if work is not None and self._is_open(work):
            return work
        if id not in self._ended:
            raise UnknownWorkError(
                f"there is no {self.kind} {id}", status=self.unknown, hint=self._unknown_hint()
            )
        return None

    def _usable(self, id: UUID) -> _Work:
        """The work for one more operation."""
        work = self._find(id)
        if work is None:
            raise self._too_late(id)
        if work.ending is not None:
            raise TransactionError(
                f"the {self.kind} {id} is being {work.wanted}",
                status=MqStatus.TRANSACTION_SEQUENCE,
                hint=f"begin another {self.kind}",
            )
        return work

    def _begin_end(self, work: _Work, wanted: State, reason: str = "") -> None:
        work.wanted = wanted
        work.ending = asyncio.ensure_future(self._end(work, wanted, reason))
        work.ending.add_done_callback(_look_at)

    async def _end(self, work: _Work, wanted: State, reason: str) -> None:
        try:
            end = await self._finish(work, wanted)
        except BaseException as error:
            if self._is_open_again(work):
                work.ending = work.wanted = None
            else:
                refusal = error if isinstance(error, FalconMQError) else None
                reason = str(error) or type(error).__name__
                self._note(work, State.ABORTED, reason, End(State.ABORTED, {}, refusal))
            raise
        self._note(work, end.state, reason, end)

    def _note(self, work: _Work, state: State, reason: str, end: End | None = None) -> None:
        """It has ended, so and for that reason."""
        if self._open.pop(work.id, None) is None:
            return
        if work.deadline is not None:
            work.deadline.cancel()
        view = {} if end is None else end.view
        view = {**self.view(work), "state": state, "expires_at": None, "reason": reason, **view}
        refusal = None if end is None else end.refusal
        self._ended[work.id] = End(state, view, refusal)
        while len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)

    def _expire(self, work: _Work) -> None:
        if work.ending is None and work.id in self._open and self._may_expire(work):
            reason = f"nobody ended it within {work.timeout:g} seconds"
            self._begin_end(work, State.ABORTED, reason)

    def _may_expire(self, work: _Work) -> bool:  # noqa: ARG002
        return True

    def _as_wanted(self, id: UUID, wanted: State) -> Json:
        end = self._ended.get(id)
        if end is None:  # it is open again: its end could not be written
            raise self._too_late(id)
        if end.refusal is not None and wanted is State.COMMITTED:
            raise copy.copy(end.refusal)
        if end.state is not wanted:
            raise self._too_late(id)
        return end.view

    def _too_late(self, id: UUID) -> TransactionError:
        end = self._ended.get(id)
        state = "not ended" if end is None else end.state
        reason = "" if end is None else end.view["reason"]
        return TransactionError(
            f"the {self.kind} {id} was {state}" + (f": {reason}" if reason else ""),
            status=MqStatus.TRANSACTION_SEQUENCE,
            hint=f"begin another {self.kind}; what was aborted is in its queues again",
        )


def _look_at(task: asyncio.Task[None]) -> None:
    """Those who waited for it have seen its error; if nobody did, nobody asked."""
    if not task.cancelled():
        task.exception()
