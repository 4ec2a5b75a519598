"""A queue manager meets its directory: both know each other, or it goes by what it knew.

In a thread, for it may take as long as the directory does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.memory import DirectoryMemory
from falconmq.directory.worker import TookTooLongError, Worker
from falconmq.errors import DirectoryError, MqStatus
from falconmq.service.directory.registering import (
    Candidate,
    Knowledge,
    known_from_memory,
    register,
)
from falconmq.service.directory.republishing import republish

MEETING_SECONDS: Final = 30.0  # for all that is asked; then the directory is away


def meet(
    directory: CachedDirectory,
    candidate: Candidate,
    memory: DirectoryMemory,
    *,
    may_remember: bool,
) -> Knowledge:
    """Be registered, and keep what was learned; DirectoryError if that cannot be.

    At the first meeting the public queues that are here are published. With `may_remember` a
    directory that is away is no error, if it was there once.
    """
    try:
        with directory.noticing():
            knowledge = _in_time(partial(register, directory, candidate, memory.said()))
        if knowledge.is_new:
            memory.clear()  # of another directory; the next try is the first, too
        if not memory.kept_at():
            published = republish(directory, candidate.queues)
            knowledge = replace(knowledge, published=published)
    except DirectoryError as error:
        if error.status is not MqStatus.NO_DS or not may_remember:
            raise
        rows = memory.rows()
        known = known_from_memory(rows, candidate.identifier, memory.kept_at())
        if known is None:
            raise _never_registered(error) from error
        directory.know(rows, are_fresh=False)
        return known
    memory.keep(knowledge.rows(), knowledge.read_at)
    memory.say(candidate.said())
    return knowledge


def _in_time(work: Callable[[], Knowledge]) -> Knowledge:
    worker = Worker("falconmq directory registration")
    try:
        return worker.do(work, MEETING_SECONDS)
    except TookTooLongError:
        raise DirectoryError(
            f"the directory did not answer within {MEETING_SECONDS:g} seconds",
            status=MqStatus.NO_DS,
        ) from None
    finally:
        worker.close()


def _never_registered(error: DirectoryError) -> DirectoryError:
    return DirectoryError(
        f"this queue manager was never registered in its directory, which is away: {error}",
        status=MqStatus.NO_DS,
        hint="start it when the directory is there, or set directory.kind to none",
    )
