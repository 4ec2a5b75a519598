"""The last hour in samples, for charts: how much came, went and waited, every few seconds."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from falconmq.embedded.engine import Engine
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.events import EventKind
from falconmq.manager.model import OutgoingQueue
from falconmq.manager.states import OutgoingState, QueueType
from falconmq.transport.session import SessionState
from falconmq.transport.transport import Transport

INTERVAL_SECONDS: Final = 5.0
SAMPLES_MAX: Final = 720  # an hour
_CREATED: Final = (QueueType.PRIVATE, QueueType.PUBLIC, QueueType.CONNECTOR)


@dataclass(frozen=True, slots=True)
class Totals:
    """A queue manager at one moment."""

    time: float  # seconds of the calendar
    arrived: int  # messages that became readable in queues of ours, since the start
    received: int  # messages that readers took, since the start
    queued: int  # messages put into outgoing queues, since the start
    delivered: int  # messages that other queue managers have got, since the start
    expired: int
    dead_lettered: int
    queues: int  # that applications created
    messages: int  # in queues of ours, without journals and dead letters
    message_bytes: int  # of all queues, against the quota
    backlog: int  # messages in outgoing queues
    stuck: int  # outgoing queues with messages and without a session
    dead_letters: int  # messages in the dead-letter queues
    sessions: int  # open ones
    transactions: int  # not ended yet


def totals(engine: Engine, transport: object) -> Totals:
    """How things stand now; a look at every queue, about a microsecond each."""
    return engine.look(_totals, transport)


def _totals(core: QueueManagerCore, transport: object) -> Totals:
    counts = {} if core.events is None else core.events.counts
    queues = messages = backlog = stuck = 0
    for queue in core.queues.values():
        waiting = len(queue.positions)
        if isinstance(queue, OutgoingQueue):
            backlog += waiting
            stuck += bool(waiting) and queue.state is not OutgoingState.CONNECTED
        elif queue.queue_type in _CREATED:
            queues += queue.parent is None
            messages += waiting
    return Totals(
        core.clock.time(),
        counts.get(EventKind.ARRIVED, 0),
        counts.get(EventKind.RECEIVED, 0),
        counts.get(EventKind.QUEUED, 0),
        counts.get(EventKind.DELIVERED, 0),
        counts.get(EventKind.EXPIRED, 0),
        counts.get(EventKind.DEAD_LETTERED, 0),
        queues,
        messages,
        core.used_bytes,
        backlog,
        stuck,
        len(core.dead_letter.positions) + len(core.transactional_dead_letter.positions),
        open_sessions(transport),
        len(core.transactions),
    )


def open_sessions(transport: object) -> int:
    if not isinstance(transport, Transport):
        return 0
    return sum(session.state is SessionState.OPEN for session in transport.sessions)


class Sampler:
    """Keeps the samples of the last hour; somebody calls `take` every INTERVAL_SECONDS."""

    def __init__(self, engine: Engine, transport: object) -> None:
        self._engine = engine
        self._transport = transport
        self._samples: deque[Totals] = deque(maxlen=SAMPLES_MAX + 1)

    def take(self) -> None:
        self._samples.append(totals(self._engine, self._transport))

    def latest(self) -> dict[str, Any]:
        """How things stand now, with the rates since the last sample but one."""
        now = totals(self._engine, self._transport)
        before = [sample for sample in self._samples if sample.time < now.time][-2:]
        return sample_json(before[0] if before else now, now)

    def since(self, seconds: float) -> list[dict[str, Any]]:
        """The samples of the last seconds, the oldest first, each with the rates up to it."""
        samples = list(self._samples)
        pairs = pairwise(samples)
        oldest = (samples[-1].time if samples else 0.0) - seconds
        return [sample_json(old, new) for old, new in pairs if new.time > oldest]


def sample_json(old: Totals, new: Totals) -> dict[str, Any]:
    """What charts show of one sample: the totals, and rates a second since the one before."""
    elapsed = new.time - old.time
    came = new.arrived - old.arrived + new.queued - old.queued
    went = new.received - old.received + new.delivered - old.delivered
    return {
        **asdict(new),
        "time": datetime.fromtimestamp(new.time, UTC).isoformat(),
        "in_per_second": round(came / elapsed, 3) if elapsed > 0 else 0.0,
        "out_per_second": round(went / elapsed, 3) if elapsed > 0 else 0.0,
        "arrived_per_second": _rate(old.arrived, new.arrived, elapsed),
        "received_per_second": _rate(old.received, new.received, elapsed),
        "queued_per_second": _rate(old.queued, new.queued, elapsed),
        "delivered_per_second": _rate(old.delivered, new.delivered, elapsed),
    }


def _rate(old: int, new: int, elapsed: float) -> float:
    return round((new - old) / elapsed, 3) if elapsed > 0 else 0.0
