"""Talk to a running queue manager: `connect` for the objects, `ControlClient` for the bare API."""

from falconmq.client.control import ControlClient
from falconmq.client.cursor import Cursor
from falconmq.client.location import CONTROL_SOCKET, data_directory, default_data_directory
from falconmq.client.manager import QueueManager, connect
from falconmq.client.problems import ServiceError
from falconmq.client.queue import Queue
from falconmq.client.transaction import Transaction
from falconmq.errors import UnreachableError

__all__ = [
    "CONTROL_SOCKET",
    "ControlClient",
    "Cursor",
    "Queue",
    "QueueManager",
    "ServiceError",
    "Transaction",
    "UnreachableError",
    "connect",
    "data_directory",
    "default_data_directory",
]
