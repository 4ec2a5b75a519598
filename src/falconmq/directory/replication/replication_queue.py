r"""The queue that directory servers replicate over: private queue 1, mqis_queue$ (MQDSRP 1.9).

Only a directory server has one. It belongs to the queue manager: applications can neither open it
nor send to it, and it takes messages of peers only while somebody listens.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.creation import RESERVED_PRIVATE_NUMBERS, create_system_queue
from falconmq.manager.model import Queue
from falconmq.names import (
    DirectFormatName,
    PrivateFormatName,
    Protocol,
    QueueKind,
    SingleFormatName,
)
from falconmq.names.syntax import fold

QUEUE_NAME: Final = "mqis_queue$"
QUEUE_PATH: Final = rf".\private$\{QUEUE_NAME}"
REPLICATION_QUEUE_NUMBER: Final = RESERVED_PRIVATE_NUMBERS[QUEUE_NAME]


def replication_queue(queue_manager: UUID) -> PrivateFormatName:
    r"""REPLICATION_QUEUE_PRIVATE, PRIVATE=<guid>\1: our own queue, and where nacks go to."""
    return PrivateFormatName(queue_manager, REPLICATION_QUEUE_NUMBER)  # RP-1.9-02


def replication_queue_of(machine: str) -> DirectFormatName:
    r"""REPLICATION_QUEUE_DIRECT: the only name that replication messages are sent to (RP-1.9-03).

    NameSyntaxError if `machine` can be no name of a computer.
    """
    return DirectFormatName(Protocol.OS, machine, QueueKind.PRIVATE, QUEUE_NAME)


def machine_of(name: SingleFormatName | None) -> str | None:
    """The machine whose replication queue a direct name leads to; None if it leads elsewhere."""
    if not isinstance(name, DirectFormatName) or name.protocol is not Protocol.OS:
        return None
    is_ours = name.kind is QueueKind.PRIVATE and fold(name.queue) == QUEUE_NAME
    return name.address if is_ours and name.subqueue is None else None


def create_replication_queue(core: QueueManagerCore) -> Queue:
    """The replication queue of this queue manager, made when it is first needed (RP-2.1-02)."""
    taken = core.private_numbers.get(REPLICATION_QUEUE_NUMBER)
    if taken is not None and taken.number != REPLICATION_QUEUE_NUMBER:
        raise QueueError(
            f"{taken.path_name} is a queue of an application; a directory server needs the name",
            status=MqStatus.QUEUE_EXISTS,
            hint=f"read what is in it, then: falconmq queue delete '{QUEUE_PATH}'",
        )
    return create_system_queue(core, REPLICATION_QUEUE_NUMBER, QUEUE_PATH, is_internal=True)
