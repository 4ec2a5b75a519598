"""Long streams of messages and events: how their pieces are made.

Each piece is made in a thread, and the next one while somebody takes this one. One thread does it
for all streams: several would only fight for the interpreter, which the store lets go of and takes
again with every record. Two streams at once cost a third more when each had a thread of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ONE: Final = ThreadPoolExecutor(1, "falconmq streams")  # begins with the first piece


async def in_one_thread(make: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Make a piece, when those that were asked for before are made."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_ONE, partial(make, *args, **kwargs))


async def ahead(source: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """What `source` gives, one piece ahead and never more; its error comes in its place.

    Whoever stops early ends the piece that is being made, and the source.
    """
    making = asyncio.ensure_future(anext(source, None))
    try:
        while (piece := await making) is not None:
            making = asyncio.ensure_future(anext(source, None))
            yield piece
    finally:
        making.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await making  # a generator that is at work cannot be closed
        await source.aclose()
