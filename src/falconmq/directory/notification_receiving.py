"""The server's side of change notification: the owner hears that it should look again (MQCN 3.2).

    start       open the notification queue, read all own public queues once: what was told while
                nobody listened is lost, for notifications are express
    a message   dequeued at once, handled when the throttle says so
    a run       one message after the other; what needs a directory that is away is tried again

One bad message never ends the loop: it is counted by its reason, logged, and gone. Senders hear
nothing; that is the protocol.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from falconmq.directory.dequeuing import DequeueLoop
from falconmq.directory.notification import ReceivingSettings, notify_queue
from falconmq.directory.notification_handling import DirectoryAwayError, Handler
from falconmq.directory.notification_throttle import Throttle
from falconmq.errors import FalconMQError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import raise_beside
from falconmq.manager.directory_backend import DirectoryBackend
from falconmq.manager.record import StoredMessage

RETRY_SECONDS: Final = 60.0  # of a directory that was away, as the Directory Online Timer
_TAG: Final = "change notifications"

_log = logging.getLogger("falconmq.directory")


class ChangeNotificationServer:
    """Receives notifications for one queue manager. The core's timers drive it.

    `directories`: those that a notification may name by their servers (`Handler`).
    """

    def __init__(
        self,
        core: QueueManagerCore,
        settings: ReceivingSettings | None = None,
        directories: Mapping[str, DirectoryBackend] = MappingProxyType({}),
    ) -> None:
        self.core = core
        self.settings = ReceivingSettings() if settings is None else settings
        self._handler = Handler(core, self.settings, directories)
        self._throttle: Throttle[StoredMessage] = Throttle(self.settings)
        name = notify_queue(core.identifier)  # CN-3.2.3-03
        self._loop = DequeueLoop(core, name, self._arrived, tag=_TAG)
        self._postponed: list[StoredMessage] = []
        self._must_reload = False
        self._is_retrying = False

    @property
    def counters(self) -> Counter[str]:
        """What came of the notifications: what was done, and each reason of a refusal."""
        return self._handler.counters

    @property
    def is_running(self) -> bool:
        return self._loop.is_open

    @property
    def pending(self) -> int:
        """Notifications that came and wait for the next run."""
        return self._throttle.pending

    def start(self) -> None:
        """Open the notification queue and listen; without a directory there is nothing to hear."""
        if not self.core.directory.is_integrated:  # CN-3.2.3-02
            return
        try:
            self._loop.open()
        except FalconMQError as error:  # CN-3.2.3-07
            _log.error("change notifications are off problem=%s", error)
            return
        self._reload()
        self._loop.receive()

    def stop(self) -> None:
        """Let go of the queue. What waits for a run is lost; the next start reads everything."""
        self._loop.close()

    def _arrived(self, message: StoredMessage) -> None:
        self.counters["received"] += 1
        if self.settings.is_immediate:  # CN-1.6-05
            self._handle(message)
            return
        now = self.core.clock.monotonic()
        is_first = self._throttle.deadline is None
        self._throttle.arrived(message, now)
        if is_first and self._throttle.deadline is not None:
            self.core.timers.after(now, self._throttle.deadline - now, self._run)

    def _run(self) -> None:
        run = self._throttle.run(self.core.clock.monotonic())
        self.counters["runs"] += 1
        if run.is_reload:
            _log.warning("change notifications came as a flood: all public queues are read again")
            self._reload()
        for message in run.items:
            self._handle(message)

    def _handle(self, message: StoredMessage) -> None:
        """Handle a message, or keep it until the directory is back (A15)."""
        try:
            self._handler.handle(message)
        except DirectoryAwayError:
            self.counters["postponed"] += 1
            self._postponed.append(message)
            if len(self._postponed) >= self.settings.flood:  # remember only that there were many
                self._postponed.clear()
                self._must_reload = True
            self._retry_later()

    def _reload(self) -> None:
        """Read all own public queues; a host may have asked for them first."""
        raise_beside(self.core, self._reload_now)

    def _reload_now(self, _: QueueManagerCore) -> None:
        if not self.is_running:  # it was stopped meanwhile
            return
        try:
            self._handler.reload()
        except DirectoryAwayError:
            self._must_reload = True
            self._retry_later()

    def _retry_later(self) -> None:
        if not self._is_retrying:
            self._is_retrying = True
            self.core.timers.after(self.core.clock.monotonic(), RETRY_SECONDS, self._retry)

    def _retry(self) -> None:
        self._is_retrying = False
        messages, self._postponed = self._postponed, []
        must_reload, self._must_reload = self._must_reload, False
        if must_reload:
            self._reload()
        for message in messages:
            self._handle(message)
