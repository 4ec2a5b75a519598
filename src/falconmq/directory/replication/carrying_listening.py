"""The dequeue loop of the replication queue (MQDSRP 3.1.3.3, 3.1.5.1).

Messages are taken as they come, for the whole life of the queue manager; what is done with one must
not wait for another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from falconmq.directory.replication.replication_queue import (
    create_replication_queue,
    replication_queue,
)
from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor, ReadResult, WaitingRead
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, ShareMode

_TAG: Final = "directory replication"


class ReplicationListener:
    """Calls `arrived` for each message of the replication queue. The core's timers drive it."""

    def __init__(self, core: QueueManagerCore, arrived: Callable[[StoredMessage], None]) -> None:
        self.core = core
        self._arrived = arrived
        self._descriptor: OpenQueueDescriptor | None = None
        self._waiting: WaitingRead | None = None

    @property
    def is_running(self) -> bool:
        return self._descriptor is not None

    def start(self) -> None:
        """Open the queue, create it before if need be; without it nothing works (RP-3.1.3.3-02)."""
        queue = create_replication_queue(self.core)
        self._descriptor = open_queue(
            self.core,
            replication_queue(self.core.identifier),  # RP-3.1.3.3-01
            AccessType.RECEIVE,
            ShareMode.DENY_NONE,
            internal=True,
        )
        queue.arrival_watchers.append(self._ring)
        self._receive()  # RP-3.1.3.3-03

    def stop(self) -> None:
        """Let go of the queue. What peers send from now on, they hear nothing of."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if descriptor.queue is not None:
            descriptor.queue.arrival_watchers.remove(self._ring)
        close_queue(self.core, descriptor)
        self._waiting = None  # closing has ended it

    def _receive(self) -> None:
        """Take what is in the queue; the last Dequeue Message waits for the next."""
        while self._descriptor is not None:
            found = self._dequeue(self._descriptor)
            if isinstance(found, WaitingRead):
                self._waiting = found
                return
            if found.status is not MqStatus.OK or found.position is None:
                return  # the queue is gone
            self._arrived(found.position.message)  # RP-3.1.5.1-17

    def _dequeue(self, descriptor: OpenQueueDescriptor) -> ReadResult | WaitingRead:
        """How the last wait ended, or a new one, for as long as it takes."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return dequeue_message(self.core, descriptor, tag=_TAG)
        return waiting if waiting.result is None else waiting.result

    def _ring(self) -> None:
        """A message comes. It is there when the event that brought it has ended."""
        self.core.timers.after(self.core.clock.monotonic(), 0, self._receive)
