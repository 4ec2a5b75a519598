"""FalconMQ: an open queue manager that speaks MSMQ's native protocols on Linux.

    import falconmq

    with falconmq.open("./data") as manager:
        orders = manager.create_queue(r".\\private$\\orders")
        orders.send(falconmq.Message("hello"))
        print(orders.receive().text)

`falconmq.connect("http://host:8018", token=...)` gives the same objects of a running service.
`falconmq.aio` has both for asyncio; `falconmq.interface` has types that fit both.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

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
    UnreachableError,
    WireError,
)
from falconmq.manager.states import QueuePrivacy, SeekAction
from falconmq.message import (
    INFINITE,
    Acknowledge,
    AuthenticationLevel,
    Delivery,
    HashAlgorithm,
    Journal,
    Message,
    MessageClass,
    MessageId,
    PrivacyLevel,
    SenderIdType,
)
from falconmq.names import FormatName, PathName, parse_format_name, parse_queue_name
from falconmq.store import Durability

if TYPE_CHECKING:
    from falconmq import client

__all__ = [
    "INFINITE",
    "Acknowledge",
    "AuthenticationLevel",
    "BodyType",
    "Cursor",
    "Delivery",
    "DirectoryError",
    "Durability",
    "FalconMQError",
    "FormatName",
    "HashAlgorithm",
    "Journal",
    "ManagerStatus",
    "Message",
    "MessageClass",
    "MessageError",
    "MessageId",
    "MqStatus",
    "NameSyntaxError",
    "PathName",
    "PrivacyLevel",
    "Queue",
    "QueueError",
    "QueueManager",
    "QueuePrivacy",
    "QueueStatus",
    "ReadError",
    "ResourceError",
    "SeekAction",
    "SenderIdType",
    "StoreError",
    "Transaction",
    "TransactionError",
    "UnreachableError",
    "WireError",
    "connect",
    "open",
    "parse_format_name",
    "parse_queue_name",
]


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    timeout: float = 30.0,
    ca_file: str | os.PathLike[str] | None = None,
    certificate_file: str | os.PathLike[str] | None = None,
    key_file: str | os.PathLike[str] | None = None,
    retry_seconds: float = 30.0,
    transaction_timeout: float = 60.0,
) -> client.QueueManager:
    """Use the queue manager of a service: the same objects as `open` gives, over HTTP.

    `url` is `http://host:8018`, `https://host:8018` or `unix:/path/to/data`; without one the
    environment is asked, FALCONMQ_URL and FALCONMQ_TOKEN. UnreachableError if nobody answers.

    `timeout` is how long an answer may take, beside what a read waits. After a broken connection
    it is tried again for `retry_seconds`. A transaction that is not used for `transaction_timeout`
    seconds is aborted. `ca_file` has the certificate of the authority that is trusted.

    `certificate_file` is shown to a service that knows callers by certificates, instead of a token.
    Its private key is in `key_file`, or in the same file. All are PEM. Without one the environment
    is asked: FALCONMQ_CERTIFICATE.
    """
    from falconmq import client  # noqa: PLC0415 - embedded programs need none of it

    return client.connect(
        url,
        token,
        timeout=timeout,
        ca_file=ca_file,
        certificate_file=certificate_file,
        key_file=key_file,
        retry_seconds=retry_seconds,
        transaction_timeout=transaction_timeout,
    )
