"""What the directory says of the way to a destination: read here, judged in `route_judging`."""

from __future__ import annotations

from dataclasses import dataclass

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.routing import DirectoryRouter
from falconmq.directory.routing_choice import Rule
from falconmq.directory.routing_explaining import explain
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingQueue
from falconmq.names import PrivateFormatName, PublicFormatName


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """The way at one moment, as far as it is known here: nobody is asked."""

    rule: Rule | None = None  # None: nobody knows which queue manager has the queue
    reason: str = ""  # why the next step is what it is, in sentences
    way: tuple[str, ...] = ()  # queue managers, this one first
    owner: str = ""  # the queue manager that has the queue, as people call it
    is_possible: bool = False  # the map has a next step
    away_seconds: float | None = None  # since the directory was there; None: it is
    away_problem: str = ""
    map_seconds: float | None = None  # how old the map is; None: it was never read
    map_problem: str = ""  # why it is old

    @property
    def is_away(self) -> bool:
        return self.away_seconds is not None


def route_facts(
    core: QueueManagerCore, transport: object, queue: OutgoingQueue
) -> RouteFacts | None:
    """Read it, inside a turn; None if no directory has a say in the way of this queue."""
    router = getattr(getattr(transport, "router", None), "directory", None)  # of `Ways`
    if not isinstance(router, DirectoryRouter):
        return None
    if not isinstance(queue.destination, PublicFormatName | PrivateFormatName):
        return None
    now, directory, read_at = core.clock.time(), core.directory, router.read_at
    away_since, problem = None, ""
    if isinstance(directory, CachedDirectory):
        away_since, problem = directory.away_since, directory.problem
    owner = router.remembered_owner(queue.destination)
    steps = [] if owner is None else router.trace(owner)
    return RouteFacts(
        rule=steps[0].rule if steps else None,
        reason=explain(router.map, steps[0]) if steps else "",
        way=tuple(router.name_of(step.source) for step in steps),
        owner="" if owner is None else router.name_of(owner),
        is_possible=bool(steps) and steps[0].is_possible,
        away_seconds=None if away_since is None else max(0.0, now - away_since),
        away_problem=problem,
        map_seconds=None if read_at is None else max(0.0, now - read_at),
        map_problem=router.problem,
    )
