"""The names of all queues in their order, so that a page of ten thousand costs only itself."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import islice

from falconmq.embedded import actions
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind
from falconmq.manager.model import Queue
from falconmq.manager.states import QueueType
from falconmq.names.syntax import fold

_CREATED = (QueueType.PRIVATE, QueueType.PUBLIC, QueueType.CONNECTOR)


@dataclass(slots=True)
class _Index:
    names: list[str] = field(default_factory=list)
    folded: list[str] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)


class QueueNames:
    """Sorted when it is asked for, and again when queues came or went."""

    def __init__(self) -> None:
        self._state: object = None
        self._created = _Index()
        self._all = _Index()

    def page(
        self,
        core: QueueManagerCore,
        system: bool,
        contains: str,
        after: str | None,
        count: int | None,
    ) -> tuple[list[actions.Opened], bool]:
        """Queues behind a name, and whether there are more; with `system` our own ones too."""
        self._refresh(core)
        index = self._all if system else self._created
        wanted = fold(contains)
        start = 0 if after is None else bisect_right(index.names, after)
        numbers = (
            number for number in range(start, len(index.names)) if wanted in index.folded[number]
        )
        chosen = list(islice(numbers, None if count is None else count + 1))
        is_more = count is not None and len(chosen) > count
        queues = [index.queues[number] for number in chosen[:count]]
        return [actions.opened_queue(core, queue) for queue in queues], is_more

    def _refresh(self, core: QueueManagerCore) -> None:
        # A new queue takes a number, a deleted one leaves a smaller collection; only a failed write
        # may bring both back to what they were.
        restored = 0 if core.events is None else core.events.counts[EventKind.RESTORED]
        state = core.queue_number.value, len(core.queues), restored
        if state != self._state:
            self._created = _index(core, system=False)
            self._all = _index(core, system=True)
            self._state = state


def _index(core: QueueManagerCore, *, system: bool) -> _Index:
    found = [
        queue
        for queue in core.queues.values()
        if queue.parent is None and queue.queue_type in _CREATED
    ]
    if system:
        found += core.dead_letter, core.transactional_dead_letter, core.journal
    named = sorted(((actions.path_of(queue), queue) for queue in found), key=lambda pair: pair[0])
    names = [name for name, _ in named]
    return _Index(names, [fold(name) for name in names], [queue for _, queue in named])
