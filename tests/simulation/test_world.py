from __future__ import annotations

import pytest

from falconmq.simulation.world import NodeClock, SimulationError, World


def test_actions_run_in_the_order_of_their_times_and_then_as_they_came() -> None:
    # given a world with four actions, two of them at the same time
    world, done = World(1), list[str]()
    world.at(2.0, lambda: done.append("late"))
    world.at(1.0, lambda: done.append("first"))
    world.at(1.0, lambda: done.append("second"))
    world.at(9.0, lambda: done.append("never"))
    # when time passes up to 5 seconds
    world.run_until(5.0)
    # then those that were due ran in order, and it is 5 o'clock
    assert done == ["first", "second", "late"]
    assert world.now == 5.0


def test_an_action_of_the_past_runs_now() -> None:
    world, times = World(1), list[float]()
    world.run_until(3.0)
    world.at(1.0, lambda: times.append(world.now))
    world.run_until(4.0)
    assert times == [3.0]


def test_a_world_that_goes_in_circles_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falconmq.simulation.world._EVENTS_MAX", 100)
    world = World(1)

    def again() -> None:
        world.after(0.0, again)

    world.after(0.0, again)
    with pytest.raises(SimulationError, match="goes in circles"):
        world.run_until(1.0)


def test_a_clock_jumps_only_in_its_wall_time() -> None:
    # given a clock in a world
    world = World(1)
    clock = NodeClock(world)
    wall, stopwatch = clock.time(), clock.monotonic()
    # when ten seconds pass and an administrator sets it back by an hour
    world.run_until(10.0)
    clock.jump(-3600.0)
    # then the stopwatch has not noticed
    assert clock.time() == pytest.approx(wall - 3590.0)
    assert clock.monotonic() == pytest.approx(stopwatch + 10.0)


def test_the_stopwatch_of_a_computer_that_was_started_again_begins_at_zero() -> None:
    world = World(1)
    clock = NodeClock(world)
    world.run_until(5.0)
    clock.reboot()
    assert clock.monotonic() == pytest.approx(1.0)


def test_the_story_tells_what_happened_last_or_what_is_about_something() -> None:
    world = World(1)
    for number in range(5):
        world.note("NODE0", "sent #%d", number)
    assert [line.split()[-1] for line in world.story(last=2)] == ["#3", "#4"]
    assert [line.split()[-1] for line in world.story(about="#1")] == ["#1"]
