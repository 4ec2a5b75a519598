"""Waiting as threads do: the caller sleeps until the commit that covers its turn is durable."""

from __future__ import annotations

import threading
from typing import Final, ParamSpec, TypeVar

from falconmq.embedded.actions import Opened
from falconmq.embedded.engine import Engine, Event, Wait
from falconmq.embedded.messages import from_position
from falconmq.embedded.refusals import read_error
from falconmq.manager.model import ReadResult, Transaction, WaitingRead
from falconmq.message import Message
from falconmq.store import Commit

_LOOK_SECONDS: Final = 0.5  # between two looks for Ctrl-C
_P = ParamSpec("_P")
_T = TypeVar("_T")


def call(engine: Engine, event: Event[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """One turn, and the wait until what it did is durable."""
    result, commit = engine.run(event, *args, **kwargs)
    if commit is not None:
        finish(engine, commit)
    return result


def finish(engine: Engine, commit: Commit) -> None:
    """Sleep until a commit is durable; raise why it is not."""
    if not commit.is_done:
        signal = threading.Lock()  # half the price of the Event in Commit.wait
        signal.acquire()
        commit.add_done_callback(lambda _: signal.release())
        _sleep(signal)
    if commit.error is not None:
        raise engine.failure(commit) from None


def _sleep(signal: threading.Lock) -> None:
    """Until somebody releases it, or Ctrl-C comes.

    One that came in the last moment before the sleep would not end it: Python looks for it when it
    wakes up.
    """
    while not signal.acquire(timeout=_LOOK_SECONDS):
        pass


class Read:
    """One read of a thread: it may wait for a message, and for the commit that covers it.

    Ctrl-C may come at any moment: whatever the read had by then goes back.
    """

    __slots__ = ("_engine", "_peek", "_signal", "_timeout", "_transaction", "opened", "wait")

    def __init__(
        self,
        engine: Engine,
        opened: Opened,
        *,
        timeout: float | None = None,
        transaction: Transaction | None = None,
        peek: bool = False,
    ) -> None:
        self._engine = engine
        self.opened = opened
        self._timeout = timeout
        self._transaction = transaction
        self._peek = peek
        self._signal = threading.Lock()
        self._signal.acquire()
        self.wait = Wait(self._signal.release)

    def run(
        self,
        event: Event[_P, ReadResult | WaitingRead],
        /,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> Message:
        engine, wait = self._engine, self.wait
        outcome, commit = engine.begin_read(wait, event, *args, **kwargs)
        try:
            result = outcome
            if isinstance(result, WaitingRead):
                _sleep(self._signal)
                result, commit = engine.result_of(wait, result)
            if commit is not None:
                finish(engine, commit)
            if result.position is None:
                raise read_error(self.opened, result.status, self._timeout)
            return from_position(result.position)
        except Exception:
            raise
        except BaseException:
            engine.give_up(outcome, self._transaction, peek=self._peek)
            raise
        finally:
            engine.end_read(wait)
