"""Streams that are made one piece ahead."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from falconmq.service.requests.streaming import ahead


class Source:
    """Gives numbers, and says what it is doing."""

    def __init__(self, count: int, breaks_at: int | None = None) -> None:
        self.made: list[int] = []
        self.is_closed = False
        self.waits = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self._count = count
        self._breaks_at = breaks_at

    async def pieces(self) -> AsyncGenerator[bytes]:
        try:
            for number in range(self._count):
                if number == self._breaks_at:
                    raise OSError("broken")
                self.waits.set()
                await self.may_go_on.wait()
                self.made.append(number)
                yield b"%d" % number
        finally:
            self.is_closed = True


async def others_work() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_next_piece_is_made_while_this_one_is_taken_and_no_other() -> None:
    async def main() -> None:
        source = Source(5)
        stream = aiter(ahead(source.pieces()))
        assert await anext(stream) == b"0"
        await others_work()
        assert source.made == [0, 1]
        assert [piece async for piece in stream] == [b"1", b"2", b"3", b"4"]
        assert source.is_closed

    asyncio.run(main())


def test_an_error_comes_behind_the_pieces_before_it() -> None:
    async def main() -> None:
        source = Source(5, breaks_at=2)
        stream = ahead(source.pieces())
        for taken in (b"0", b"1"):
            assert await anext(stream) == taken
            await others_work()
        with pytest.raises(OSError, match="broken"):
            await anext(stream)
        assert source.is_closed

    asyncio.run(main())


@pytest.mark.parametrize("is_at_work", [False, True])
def test_who_stops_early_ends_the_source(is_at_work: bool) -> None:
    async def main() -> None:
        source = Source(5)

        async def take() -> None:
            async with contextlib.aclosing(ahead(source.pieces())) as stream:
                async for _ in stream:
                    if is_at_work:
                        source.waits.clear()
                        source.may_go_on.clear()
                    await asyncio.Event().wait()

        taking = asyncio.ensure_future(take())
        await others_work()
        await source.waits.wait()
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert source.is_closed
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
