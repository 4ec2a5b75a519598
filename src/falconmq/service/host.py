"""The host of a queue manager that has a transport: one event loop runs both.

How to think about it. Whatever happens (bytes from a peer, a call of the API, a timer) is a turn of
the engine. At its end the transport says what waits for the commit of this turn, a `Turn`; the
engine submits the batch; the two go together to the end of a line. When the commit at the head of
the line is durable, the transport is told in a turn of its own, and only then acknowledges or
sends. A turn without a commit goes through the line as well: what it saw may be in an earlier
batch.

    turn: event -> transport.end_turn -> batch -> commit ... durable -> turn: transport.turn_done

If a commit fails, the engine reads the store again, and the line is empty: whoever was in it is
told nothing. The transport closes its sessions, and the peers send again.

All turns run on the thread of the loop; only the news that a commit is done comes from elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from falconmq.embedded.engine import Engine
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.store import Commit

if TYPE_CHECKING:
    from falconmq.transport.transport import Transport
    from falconmq.transport.turns import Turn

CONGESTED_BYTES: Final = 16 << 20  # not yet durable: nothing more is read from peers
RELIEVED_BYTES: Final = 8 << 20  # reading goes on; the committer itself blocks at 64 MiB
_LONGEST_SLEEP: Final = 60.0  # seconds; the wall clock may jump while the loop sleeps
_SECONDS_AFTER_FAILURE: Final = 1.0
_EARLIER: Final = 0.001  # seconds; a timer is not armed again for less
_P = ParamSpec("_P")
_T = TypeVar("_T")

_log = logging.getLogger("falconmq.service")


@dataclass(slots=True)
class _Flight:
    """A turn that waits for its commit."""

    turn: Turn | None
    commit: Commit | None  # None: it changed nothing that is stored
    size: int


class Host:
    """Runs an engine and a transport on the running event loop.

    The engine is one without a housekeeper: the host arms its timers.
    """

    def __init__(self, engine: Engine, transport: Transport) -> None:
        self.engine = engine
        self.transport = transport
        self.relieved: Callable[[], None] = _nobody  # called when `is_congested` ends
        self.failures = 0  # events that broke off, and commits that failed
        self._loop = asyncio.get_running_loop()
        self._line: deque[_Flight] = deque()
        self._bytes = 0  # of the batches in the line
        self._turn: Turn | None = None  # of the turn that is ending
        self._is_congested = False
        self._is_woken = False
        self._is_stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = 0.0
        self._timers_seen = -1
        self._idle: list[asyncio.Future[None]] = []
        engine.before_batch = self._end_turn
        engine.turn_listener = self._turn_ended
        engine.restore_listener = self._restored

    @property
    def is_congested(self) -> bool:
        """Whether so much waits for the disk that peers should wait as well."""
        return self._is_congested

    def run(self, event: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """One turn. What the event raises is raised here."""

        def in_turn(_: QueueManagerCore) -> _T:
            return event(*args, **kwargs)

        return self.engine.run(in_turn)[0]

    def handle(self, event: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        """One turn for somebody who cannot handle errors; None if the event broke off."""
        if self._is_stopped:
            return None
        try:
            return self.run(event, *args, **kwargs)
        except FalconMQError as error:
            _log.error("event refused event=%s: %s", _name(event), error)
        except Exception:  # noqa: BLE001  # memory is torn: the next turn restores it
            _log.exception("event failed event=%s", _name(event))
        self.failures += 1
        self._loop.call_later(_SECONDS_AFTER_FAILURE, self._try_again)
        return None

    async def settled(self) -> None:
        """Return when nothing waits for a commit any more."""
        while self._line and not self._is_stopped:
            future = self._loop.create_future()
            self._idle.append(future)
            await future

    def stop(self) -> None:
        """Let go of the engine: no turn, no timer comes from here any more."""
        self._is_stopped = True
        self.engine.before_batch = None
        self.engine.turn_listener = None
        self.engine.restore_listener = None
        if self._timer is not None:
            self._timer.cancel()
        self._tell_idle()

    # Called by the engine, inside a turn.

    def _end_turn(self) -> None:
        self._turn = self.transport.end_turn()

    def _turn_ended(self, commit: Commit | None) -> None:
        turn, self._turn = self._turn, None
        if commit is not None:
            size = self.engine.submitted_bytes
            self._line.append(_Flight(turn, commit, size))
            self._bytes += size
            self._is_congested = self._is_congested or self._bytes > CONGESTED_BYTES
            commit.add_done_callback(self._wake)
        elif turn is not None:
            self._line.append(_Flight(turn, None, 0))
            self._wake()
        if self.engine.core.timers.started != self._timers_seen:
            self._arm()

    def _restored(self) -> None:
        """A commit failed, or an event was torn: the store has what is true."""
        self._turn = None
        self._empty_line()
        self.transport.restored()

    # Called by the loop.

    def _wake(self, _: Commit | None = None) -> None:
        """Something at the head of the line may be done. Any thread; one call for many commits."""
        if not self._is_woken and not self._is_stopped:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        self._is_woken = False  # first: whoever is done from now on wakes us again
        if self._is_stopped:
            return
        turns = self._take_done()
        if turns:
            self.handle(self._turns_done, turns)
        if self._line and (commit := self._line[0].commit) is not None and commit.error is not None:
            self.failures += 1
            _log.error("commit failed, sessions are closed: %s", commit.error)
            self.handle(_nothing)  # its beginning restores
        if self._is_congested and self._bytes <= RELIEVED_BYTES:
            self._is_congested = False
            self.relieved()
        self._tell_idle()

    def _take_done(self) -> list[Turn]:
        """The turns at the head of the line whose commits are durable, in their order."""
        turns = []
        line = self._line
        while line:
            commit = line[0].commit
            if commit is not None and (not commit.is_done or commit.error is not None):
                break
            flight = line.popleft()
            self._bytes -= flight.size
            if flight.turn is not None:
                turns.append(flight.turn)
        return turns

    def _turns_done(self, turns: list[Turn]) -> None:
        for turn in turns:
            self.transport.turn_done(turn)

    def _try_again(self) -> None:
        """After a failure: the next turn restores what is torn."""
        self.handle(_nothing)
        self._go_on()

    def _arm(self) -> None:
        core = self.engine.core
        self._timers_seen = core.timers.started
        seconds = core.next_deadline()
        wait = _LONGEST_SLEEP if seconds is None else min(_LONGEST_SLEEP, seconds)
        deadline = self._loop.time() + wait
        if self._timer is not None:
            if deadline > self._armed_for - _EARLIER:
                return
            self._timer.cancel()
        self._armed_for = deadline
        self._timer = self._loop.call_at(deadline, self._run_timers)

    def _run_timers(self) -> None:
        self._timer = None
        self.handle(self.engine.core.run_timers)
        if not self._is_stopped:
            self._arm()

    def _empty_line(self) -> None:
        self._line.clear()
        self._bytes = 0
        self._wake()

    def _tell_idle(self) -> None:
        if self._line and not self._is_stopped:
            return
        waiting, self._idle = self._idle, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _nothing() -> None:
    """A turn for the sake of its beginning and its end."""


def _nobody() -> None:
    """Nobody waits for relief."""


def _name(event: Callable[..., object]) -> str:
    return getattr(event, "__name__", repr(event))
