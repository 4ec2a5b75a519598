"""FalconMQ: an open queue manager that speaks MSMQ's native protocols on Linux.

    import falconmq

    with falconmq.open("./data") as manager:
        orders = manager.create_queue(r".\\private$\\orders")
        orders.send(falconmq.Message("hello"))
        print(orders.receive().text)

`falconmq.aio` has the same for asyncio.
"""

from falconmq.body import BodyType
from falconmq.embedded import (
    Cursor,
    ManagerStatus,
    Queue,
    QueueManager,
    QueueStatus,
    Transaction,
    open,  # noqa: A004
)
from falconmq.errors import (
    DirectoryError,
    FalconMQError,
    MessageError,
    MqStatus,
    NameSyntaxError,
    QueueError,
    ReadError,
    ResourceError,
    StoreError,
    TransactionError,
    WireError,
)
from falconmq.manager.states import QueuePrivacy, SeekAction
from falconmq.message import (
    INFINITE,
    Acknowledge,
    Delivery,
    Journal,
    Message,
    MessageClass,
    MessageId,
)
from falconmq.names import FormatName, PathName, parse_format_name, parse_queue_name
from falconmq.store import Durability

__all__ = [
    "INFINITE",
    "Acknowledge",
    "BodyType",
    "Cursor",
    "Delivery",
    "DirectoryError",
    "Durability",
    "FalconMQError",
    "FormatName",
    "Journal",
    "ManagerStatus",
    "Message",
    "MessageClass",
    "MessageError",
    "MessageId",
    "MqStatus",
    "NameSyntaxError",
    "PathName",
    "Queue",
    "QueueError",
    "QueueManager",
    "QueuePrivacy",
    "QueueStatus",
    "ReadError",
    "ResourceError",
    "SeekAction",
    "StoreError",
    "Transaction",
    "TransactionError",
    "WireError",
    "open",
    "parse_format_name",
    "parse_queue_name",
]
