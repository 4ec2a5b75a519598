"""Whoever waits for an answer may hang up, and the service may stop: both end the wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from fastapi import Request

from falconmq.errors import MqStatus, ReadError

_ROUNDS: Final = 5  # of the loop, from the end of a connection to the task that waits for it

_T = TypeVar("_T")


class Caller:
    """The one who asked, watched while the answer is made."""

    def __init__(self, request: Request, stopping: asyncio.Event) -> None:
        self._request = request
        self._stopping = stopping
        self._gone: asyncio.Task[None]

    async def has_gone(self) -> bool:
        """Whether it has hung up by now; the loop needs some rounds to tell."""
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        return self._gone.done()

    async def during(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Do something that may take long; it is cancelled if the caller goes away."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({task, self._gone, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await _cancel(task)
            if task.cancelled():
                if self._gone.done():
                    return None
                raise _stopped()
            return task.result()
        finally:
            await _cancel(task, stop)

    async def __aenter__(self) -> Self:
        self._gone = asyncio.ensure_future(self._wait_until_gone())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await _cancel(self._gone)

    async def _wait_until_gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _stopped() -> ReadError:
    return ReadError(
        "the service stops",
        status=MqStatus.OPERATION_CANCELLED,
        hint="no message was taken; ask again when it is back",
    )
