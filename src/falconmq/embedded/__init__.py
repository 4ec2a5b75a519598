"""A queue manager inside a Python program: `falconmq.open("./data")`."""

from falconmq.embedded.cursor import Cursor
from falconmq.embedded.manager import (
    ManagerStatus,
    QueueManager,
    QueueStatus,
    open,  # noqa: A004
)
from falconmq.embedded.queue import Queue
from falconmq.embedded.transaction import Transaction

__all__ = [
    "Cursor",
    "ManagerStatus",
    "Queue",
    "QueueManager",
    "QueueStatus",
    "Transaction",
    "open",
]
