"""What a message is made of beside its plain properties."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(slots=True)
class MessageTransaction:
    """A message's place in its transaction and in the sequence to its destination."""

    sequence_id: int  # greater means later, MQ-2.2.18.1.2-03
    sequence_number: int  # from 1
    previous_sequence_number: int = 0  # 0: none went before
    id: int = 0  # 20 bits, the same in all messages of the transaction
    is_first: bool = False
    is_last: bool = False
    final_ack_required: bool = False
    connector_queue_manager: UUID | None = None


@dataclass(frozen=True, slots=True)
class CryptographicProvider:
    """The provider that made a signature, when it is not the default one."""

    name: str
    type: int = 1
