"""Room for messages: quotas, and the flow control of a queue manager (MQDMPR 3.1.7.2.5, .6)."""

from __future__ import annotations

from falconmq.manager.core import KILOBYTE, QueueManagerCore
from falconmq.manager.directory_objects import UNLIMITED
from falconmq.manager.model import Queue
from falconmq.manager.record import StoredMessage


def exceeds(size: int, quota_kilobytes: int) -> bool:
    """Whether so many bytes are more than a quota allows."""
    return quota_kilobytes != UNLIMITED and size > quota_kilobytes * KILOBYTE  # DM-3.1.7.1.9-19


def has_room(queue: Queue, message: StoredMessage) -> bool:
    """Whether the quota of a queue has room for one more message."""
    return not exceeds(queue.total_bytes + message.size, queue.properties.quota_kilobytes)


def begin_flow_control(core: QueueManagerCore) -> None:
    """Refuse new messages as if the quota were used up (MQDMPR 3.1.7.2.5)."""
    core.is_throttled = True


def end_flow_control(core: QueueManagerCore) -> None:
    """Take messages again (MQDMPR 3.1.7.2.6)."""
    core.is_throttled = False
