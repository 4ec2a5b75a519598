"""When notifications are looked at (scenarios T21 to T23)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falconmq.directory.notification import ReceivingSettings
from falconmq.directory.notification_throttle import Throttle

DEFAULTS = ReceivingSettings()


def throttle_after_a_run(at: float) -> Throttle[int]:
    throttle: Throttle[int] = Throttle(DEFAULTS)
    throttle.arrived(0, at)
    throttle.run(at)
    return throttle


@pytest.mark.requirement("CN-1.6-07")
def test_after_a_long_quiet_a_minute_is_waited() -> None:
    first: Throttle[int] = Throttle(DEFAULTS)
    first.arrived(1, now=5.0)
    assert first.deadline == 65.0
    later = throttle_after_a_run(at=100.0)
    later.arrived(1, now=100.0 + 841)
    assert later.deadline == 100.0 + 841 + 60


@pytest.mark.requirement("CN-1.6-06", "CN-1.6-08")
@pytest.mark.parametrize(("age", "delay"), [(840, 60), (839, 61), (10, 890), (0, 900)])
def test_soon_after_a_run_the_rest_of_fifteen_minutes_is_waited(age: float, delay: float) -> None:
    throttle = throttle_after_a_run(at=100.0)
    throttle.arrived(1, now=100.0 + age)
    assert throttle.deadline == 100.0 + age + delay


@pytest.mark.requirement("CN-1.6-09", "CN-1.6-10")
def test_all_that_came_are_handled_together_in_their_order() -> None:
    throttle: Throttle[int] = Throttle(DEFAULTS)
    for number in range(99):
        throttle.arrived(number, now=float(number) / 10)
        assert throttle.deadline == 60.0  # that of the first
    run = throttle.run(60.0)
    assert (run.items, run.is_reload) == (list(range(99)), False)
    # and then it begins anew
    assert throttle.pending == 0
    assert throttle.deadline is None
    assert throttle.run(61.0).items == []


@pytest.mark.requirement("CN-1.6-11")
def test_a_flood_is_not_kept_but_remembered() -> None:
    throttle: Throttle[int] = Throttle(DEFAULTS)
    for number in range(250):
        throttle.arrived(number, now=1.0)
    assert throttle.pending == 250
    run = throttle.run(61.0)
    assert (run.items, run.is_reload) == ([], True)
    throttle.arrived(1, now=2000.0)
    assert throttle.run(2060.0).items == [1]


@pytest.mark.requirement("CN-1.6-11")
@pytest.mark.parametrize(("number", "is_reload"), [(99, False), (100, True), (101, True)])
def test_a_hundred_are_a_flood(number: int, is_reload: bool) -> None:
    throttle: Throttle[int] = Throttle(DEFAULTS)
    for item in range(number):
        throttle.arrived(item, now=1.0)
    run = throttle.run(61.0)
    assert run.is_reload is is_reload
    assert len(run.items) == (0 if is_reload else number)


@settings(max_examples=60, deadline=None)
@given(gaps=st.lists(st.floats(0, 2000), max_size=30))
def test_nothing_waits_longer_than_the_longest_and_runs_are_never_close(gaps: list[float]) -> None:
    throttle: Throttle[float] = Throttle(DEFAULTS)
    now, runs = 0.0, [-10_000.0]
    for gap in gaps:
        now += gap
        if throttle.deadline is not None and throttle.deadline <= now:
            runs.append(throttle.deadline)
            throttle.run(throttle.deadline)
            assert runs[-1] - runs[-2] >= 900 - 1e-6
        throttle.arrived(now, now)
        assert throttle.deadline is not None
        assert throttle.deadline - now <= 900 + 1e-6
