"""What came of a seed, and how it is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from falconmq.simulation.world import SimulationError, World


@dataclass(slots=True)
class Result:
    """What came of a seed."""

    seed: int
    problem: str = ""  # "": all promises were kept
    story: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)  # everything, if it was kept
    virtual_seconds: float = 0.0
    messages: int = 0
    changes: int = 0  # of directory objects, acknowledged
    counts: Counter[str] = field(default_factory=Counter)
    digest: str = ""


def run_world(world: World, run: Callable[[], None]) -> Result:
    """Let a world run; whatever breaks is told in the result."""
    result = Result(world.seed)
    try:
        run()
    except Exception as error:  # noqa: BLE001  # a mistake of ours is a finding like any other
        result.problem = _describe(error)
        result.story = _story(world, error)
    result.virtual_seconds = world.now
    result.counts = world.counts
    if world.keeps_all:
        result.digest, result.trace = world.digest(), world.story(last=0)
    return result


def _describe(error: Exception) -> str:
    if isinstance(error, SimulationError):
        return str(error)
    place = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}: {error}"


def _story(world: World, error: Exception) -> list[str]:
    about = "".join(getattr(error, "__notes__", []))
    lines = world.story(last=40)
    if about:
        lines = [*world.story(about=about.rstrip(), last=20), "...", *lines]
    return lines
