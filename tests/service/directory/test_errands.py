"""Work beside the loop begins when it is asked for, and not any more once it was stopped."""

from __future__ import annotations

import asyncio

from falconmq.embedded.manager import start_engine
from falconmq.manager.core import Settings
from falconmq.service.directory.errands import Errands
from falconmq.store import MemoryStore
from tests.service.services import run


def test_nothing_begins_after_the_end() -> None:
    engine = start_engine(MemoryStore(), Settings(computer_name="SALES01"), is_threaded=False)

    async def main() -> None:
        errands, begun = Errands(engine), list[str]()
        at_work, for_ever = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            begun.append("first")
            at_work.set()
            await for_ever.wait()

        async def late() -> None:
            begun.append("late")

        errands.spawn(first)
        await at_work.wait()
        await errands.stop()  # which breaks off what goes on
        errands.spawn(late)  # as a thread does that has not heard of it
        loop_went_on = asyncio.Event()
        asyncio.get_running_loop().call_soon_threadsafe(loop_went_on.set)
        await loop_went_on.wait()
        await asyncio.sleep(0)
        assert begun == ["first"]

    run(main())
    engine.close()
