"""Deadlines on the event loop, on a clock that is handed in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from falconmq.clock import SystemClock, VirtualClock
from falconmq.service.requests.expiring import Expiring


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 10))


def test_what_is_due_is_done_in_order_when_somebody_looks() -> None:
    async def main() -> None:
        clock, done = VirtualClock(), list[str]()
        expiring = Expiring(clock)
        expiring.start(20, lambda: done.append("second"))
        expiring.start(10, lambda: done.append("first"))
        expiring.start(30, lambda: done.append("third"))
        clock.advance(20)
        expiring.run()
        assert done == ["first", "second"]
        expiring.run()
        assert done == ["first", "second"]
        expiring.stop()

    on_a_loop(main)


def test_a_deadline_that_is_put_off_or_cancelled_does_not_come() -> None:
    async def main() -> None:
        clock, done = VirtualClock(), list[str]()
        expiring = Expiring(clock)
        later = expiring.start(10, lambda: done.append("later"))
        never = expiring.start(10, lambda: done.append("never"))
        clock.advance(9)
        later.put_off(10)
        never.cancel()
        clock.advance(9)
        expiring.run()
        assert done == []
        clock.advance(1)
        expiring.run()
        assert done == ["later"]
        expiring.stop()

    on_a_loop(main)


def test_a_deadline_can_be_brought_forward_and_put_off_again() -> None:
    async def main() -> None:
        clock, done = VirtualClock(), list[int]()
        expiring = Expiring(clock)
        deadline = expiring.start(100, lambda: done.append(1))
        deadline.put_off(10)
        deadline.put_off(150)
        clock.advance(100)  # both of its old places have come
        expiring.run()
        assert done == []
        deadline.put_off(5)
        clock.advance(5)
        expiring.run()
        clock.advance(1000)
        expiring.run()
        assert done == [1]
        expiring.stop()

    on_a_loop(main)


def test_the_loop_does_it_when_nobody_looks() -> None:
    async def main() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        expiring = Expiring(SystemClock())
        expiring.start(0.02, second.set)
        expiring.start(0.01, first.set)
        await first.wait()
        await second.wait()
        expiring.stop()

    on_a_loop(main)


def test_after_the_stop_nothing_comes() -> None:
    async def main() -> None:
        done = list[int]()
        expiring = Expiring(SystemClock())
        expiring.start(0.001, lambda: done.append(1))
        expiring.stop()
        expiring.start(0.001, lambda: done.append(2))
        await asyncio.sleep(0.02)
        assert done == []

    on_a_loop(main)


def test_cancelled_deadlines_do_not_pile_up() -> None:
    async def main() -> None:
        clock, done = VirtualClock(), list[int]()
        expiring = Expiring(clock)
        kept = [expiring.start(50, lambda: done.append(1)) for _ in range(10)]
        for _ in range(10_000):
            expiring.start(3600, lambda: done.append(2)).cancel()
        assert len(expiring._line) < 500
        clock.advance(50)
        expiring.run()
        assert done == [1] * len(kept)
        expiring.stop()

    on_a_loop(main)


def test_places_in_the_line_that_were_left_do_not_multiply() -> None:
    async def main() -> None:
        clock, done = VirtualClock(), list[int]()
        expiring = Expiring(clock)
        deadline = expiring.start(100, lambda: done.append(1))
        for _ in range(20):
            deadline.put_off(1)
            deadline.put_off(1000)
            clock.advance(1)
            expiring.run()
        deadline.put_off(5000)
        clock.advance(2000)
        expiring.run()
        assert (len(expiring._line), done) == (1, [])
        expiring.stop()

    on_a_loop(main)


def test_a_moment_is_shown_in_the_time_of_the_calendar() -> None:
    async def main() -> None:
        clock = VirtualClock(1_700_000_000)
        expiring = Expiring(clock)
        deadline = expiring.start(60, lambda: None)
        assert deadline.moment == "2023-11-14T22:14:20.000+00:00"
        clock.jump(3600)  # the wall clock is set: it still ends in 60 seconds
        assert deadline.moment == "2023-11-14T23:14:20.000+00:00"
        expiring.stop()

    on_a_loop(main)
