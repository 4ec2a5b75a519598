"""The channel for asyncio: carries calls over httpx, any number at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from typing import Final, TypeVar

import httpx

from falconmq.client.calls import Answer, BrokenError, Call, Later, Operation, Pause, Step
from falconmq.client.connections import IDLE_SECONDS
from falconmq.client.doors import Door
from falconmq.client.location import socket_name

_T = TypeVar("_T")
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class AsyncChannel:
    """Asks one service, from the tasks of one event loop."""

    def __init__(
        self,
        door: Door,
        token: str | None = None,
        *,
        answer_seconds: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.door = door
        self._answer_seconds = answer_seconds
        self._active: dict[asyncio.Task[Answer], object] = {}  # and the queue that each is for
        self._stopped: set[asyncio.Task[Answer]] = set()
        self._stack = contextlib.ExitStack()  # keeps the directory of a long socket path open
        self._client = httpx.AsyncClient(
            transport=self._transport(tls),
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            base_url="http://localhost" if door.socket is not None else _base(door),
            trust_env=False,
        )

    def _transport(self, tls: ssl.SSLContext | None) -> httpx.AsyncHTTPTransport:
        limits = httpx.Limits(
            max_connections=None,  # each read that waits has one
            max_keepalive_connections=100,
            keepalive_expiry=IDLE_SECONDS,
        )
        socket: str | None = None
        if self.door.socket is not None:
            # One that is not there is told when it is asked.
            with contextlib.suppress(OSError):
                socket = self._stack.enter_context(socket_name(self.door.socket))
            socket = socket or os.fspath(self.door.socket)
        return httpx.AsyncHTTPTransport(uds=socket, limits=limits, verify=tls or False)

    async def run(self, operation: Operation[_T]) -> _T:
        """Do what an operation asks for until it ends."""
        try:
            step = next(operation)
            while True:
                try:
                    answer = await self._do(step)
                except BaseException as error:  # noqa: BLE001  # the operation decides
                    step = operation.throw(error)
                else:
                    step = operation.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    def stop(self, owner: object) -> None:
        """End the requests that wait for a queue."""
        self._stop([task for task, queue in self._active.items() if queue is owner])

    async def close(self) -> None:
        """Requests that wait end; no message is lost with them."""
        self._stop(list(self._active))
        await self._client.aclose()
        self._stack.close()

    def _stop(self, tasks: list[asyncio.Task[Answer]]) -> None:
        for task in tasks:
            self._stopped.add(task)
            task.cancel()

    async def _do(self, step: Step) -> Answer:
        if isinstance(step, Call):
            return await self._watched(step)
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Later):
            _cancel_later()
        return Answer()

    async def _watched(self, call: Call) -> Answer:
        """A call that `stop` can end."""
        task = asyncio.ensure_future(self._exchange(call))
        self._active[task] = call.owner
        try:
            return await task
        except asyncio.CancelledError:
            if task not in self._stopped:
                raise
            error = self.door.no_answer("it was not waited for any longer")
            raise BrokenError(error, was_sent=True) from None
        finally:
            del self._active[task]
            self._stopped.discard(task)

    async def _exchange(self, call: Call) -> Answer:
        seconds = call.answer_seconds or self._answer_seconds
        timeout = httpx.Timeout(seconds, read=seconds + call.wait_seconds, pool=None)
        url = httpx.URL(self._client.base_url).copy_with(
            raw_path=(self.door.prefix + call.path).encode("ascii")
        )
        try:
            response = await self._client.request(
                call.method, url, content=call.content, headers=dict(call.headers), timeout=timeout
            )
        except _NOT_SENT as error:
            raise _not_connected(self.door, error) from error
        except (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError) as error:
            said = str(error) or type(error).__name__
            raise BrokenError(self.door.no_answer(said), was_sent=True) from error
        return Answer(response.status_code, response.content)


def _base(door: Door) -> str:
    scheme = "https" if door.is_tls else "http"
    host = f"[{door.host}]" if ":" in door.host else door.host
    return f"{scheme}://{host}:{door.port}"


def _not_connected(door: Door, error: Exception) -> BrokenError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return BrokenError(door.untrusted(cause), was_sent=False, is_hopeless=True)
        if isinstance(cause, OSError):
            return BrokenError(door.unreachable(cause), was_sent=False)
        cause = cause.__cause__ or cause.__context__
    return BrokenError(door.unreachable(error), was_sent=False)


def _cancel_later() -> None:
    """A cancellation came when a message was received already: the caller gets that first.

    It is cancelled at its next await, unless it took its cancellation back until then, as a
    time-out does whose block has ended.
    """
    task = asyncio.current_task()
    assert task is not None

    def cancel() -> None:
        if not task.done() and task.cancelling():
            task.uncancel()
            task.cancel()

    asyncio.get_running_loop().call_soon(cancel)
