"""TxSequenceID and MessageIdentifier: the two names a message carries (MQMQ 2.2.18.1.2, .3).

A TxSequenceID is 8 bytes, Ordinal and then TimeStamp. Read as one little-endian 64-bit number, the
TimeStamp is the high half, which is the order the specification asks for: plain integers compare.
"""

from __future__ import annotations

from typing import Final

from falconmq.errors import WireError
from falconmq.wire.reader import Layout

MESSAGE_IDENTIFIER_SIZE: Final = 20

_TX_SEQUENCE_ID: Final = Layout("TxSequenceID", "II", "Ordinal", "TimeStamp")
_MESSAGE_IDENTIFIER: Final = Layout("MessageIdentifier", "16sI", "QueueManagerGuid", "Ordinal")


def tx_sequence_id(ordinal: int, time_stamp: int) -> int:
    """The number of a sequence; greater means later (MQ-2.2.18.1.2-03)."""
    return int.from_bytes(_TX_SEQUENCE_ID.pack(ordinal, time_stamp), "little")


def tx_sequence_ordinal(sequence: int) -> int:
    return sequence & 0xFFFFFFFF


def tx_sequence_time_stamp(sequence: int) -> int:
    return sequence >> 32


def message_identifier(queue_manager_guid: bytes, ordinal: int) -> bytes:
    """The 20 bytes that name one message for ever, as an acknowledgment's CorrelationID has it."""
    return _MESSAGE_IDENTIFIER.pack(queue_manager_guid, ordinal)


def split_message_identifier(identifier: bytes) -> tuple[bytes, int]:
    """QueueManagerGuid and Ordinal of a 20-byte MessageIdentifier."""
    if len(identifier) != MESSAGE_IDENTIFIER_SIZE:
        problem = f"has {MESSAGE_IDENTIFIER_SIZE} bytes, not {len(identifier)}"
        raise WireError("MessageIdentifier", "QueueManagerGuid", problem)
    guid, ordinal = _MESSAGE_IDENTIFIER.unpack_from(identifier)
    return guid, ordinal
