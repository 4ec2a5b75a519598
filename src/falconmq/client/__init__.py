"""Talk to a running queue manager."""

from falconmq.client.control import ControlClient, ServiceError, UnreachableError
from falconmq.client.location import CONTROL_SOCKET, data_directory, default_data_directory

__all__ = [
    "CONTROL_SOCKET",
    "ControlClient",
    "ServiceError",
    "UnreachableError",
    "data_directory",
    "default_data_directory",
]
