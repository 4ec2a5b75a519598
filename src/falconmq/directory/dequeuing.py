"""The dequeue loop of a queue of the queue manager's own (MQCN 3.2.3, MQDSRP 3.1.3.3).

Messages are taken as they come, for as long as the loop is open. The last Dequeue Message waits for
the next message: a queue of its own takes messages of peers only while somebody listens.
"""

from __future__ import annotations

from collections.abc import Callable

from falconmq.errors import MqStatus
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OpenQueueDescriptor, ReadResult, WaitingRead
from falconmq.manager.opening import close_queue, open_queue
from falconmq.manager.reading import dequeue_message
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, ShareMode
from falconmq.names import SingleFormatName


class DequeueLoop:
    """Calls `arrived` for each message of a queue. The core's timers drive it.

    `tag` says to operators who it is that waits at the queue.
    """

    def __init__(
        self,
        core: QueueManagerCore,
        name: SingleFormatName,
        arrived: Callable[[StoredMessage], None],
        *,
        tag: str,
    ) -> None:
        self._core = core
        self._name = name
        self._arrived = arrived
        self._tag = tag
        self._descriptor: OpenQueueDescriptor | None = None
        self._waiting: WaitingRead | None = None

    @property
    def is_open(self) -> bool:
        return self._descriptor is not None

    def open(self) -> None:
        """Open the queue; FalconMQError says why it cannot be. `receive` what it has next."""
        descriptor = open_queue(
            self._core,
            self._name,  # CN-3.2.3-03, RP-3.1.3.3-01
            AccessType.RECEIVE,  # CN-3.2.3-04
            ShareMode.DENY_NONE,  # CN-3.2.3-05
            internal=True,
        )
        assert descriptor.queue is not None, "a single name was opened"
        self._descriptor = descriptor
        descriptor.queue.arrival_watchers.append(self._ring)

    def close(self) -> None:
        """Let go of the queue. What peers send from now on, they hear nothing of."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if descriptor.queue is not None:
            descriptor.queue.arrival_watchers.remove(self._ring)
        close_queue(self._core, descriptor)
        self._waiting = None  # closing has ended it

    def receive(self) -> None:
        """Take what is in the queue; the last Dequeue Message waits for the next (CN-3.2.5-07)."""
        while self._descriptor is not None:
            found = self._dequeue(self._descriptor)
            if isinstance(found, WaitingRead):
                self._waiting = found
                return
            if found.status is not MqStatus.OK or found.position is None:
                return  # the queue is gone
            self._arrived(found.position.message)  # RP-3.1.5.1-17

    def _dequeue(self, descriptor: OpenQueueDescriptor) -> ReadResult | WaitingRead:
        """How the last wait ended, or a new one, for as long as it takes (CN-3.2.3-09)."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return dequeue_message(self._core, descriptor, tag=self._tag)
        return waiting if waiting.result is None else waiting.result

    def _ring(self) -> None:
        """A message comes. It is there when the event that brought it has ended."""
        self._core.timers.after(self._core.clock.monotonic(), 0, self.receive)
