"""SessionHeader: the session acknowledgement, alone or behind a user message (MQMQ 2.2.20.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.wire.reader import Layout, Reader, Structure

SIZE: Final = 16
DEFAULT_WINDOW_SIZE: Final = 64

_LAYOUT: Final = Layout(
    "SessionHeader",
    "HHIHHHH",
    "AckSequenceNumber",
    "RecoverableMsgAckSeqNumber",
    "RecoverableMsgAckFlags",
    "UserMsgSequenceNumber",
    "RecoverableMsgSeqNumber",
    "WindowSize",
    "Reserved",
)


@dataclass(slots=True)
class SessionHeader(Structure):
    """Counts of one direction of a session; 16-bit, they wrap from 0xFFFF to 0."""

    ack_sequence_number: int
    recoverable_msg_ack_seq_number: int
    recoverable_msg_ack_flags: int  # bit k: number recoverable_msg_ack_seq_number + k is on disk
    user_msg_sequence_number: int
    recoverable_msg_seq_number: int
    window_size: int = DEFAULT_WINDOW_SIZE
    reserved: int = 0  # any value on the wire, MQ-2.2.20.4-21

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SessionHeader")
        fields = reader.fixed(_LAYOUT)
        reader.leave(outer)
        return cls(*fields)

    def encode(self) -> bytes:
        return _LAYOUT.pack(
            self.ack_sequence_number,
            self.recoverable_msg_ack_seq_number,
            self.recoverable_msg_ack_flags,
            self.user_msg_sequence_number,
            self.recoverable_msg_seq_number,
            self.window_size,
            self.reserved,
        )
