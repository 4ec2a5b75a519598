"""SEQUENCE_INFO: a place in a transactional sequence, as management shows it (MQMQ 2.2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.wire.reader import Layout, Reader, Structure

SIZE: Final = 16
_LAYOUT: Final = Layout("SEQUENCE_INFO", "qII", "SeqID", "SeqNo", "PrevNo")


@dataclass(slots=True)
class SequenceInfo(Structure):
    """Sequence, number of a message in it, number of the message before that one."""

    seq_id: int  # signed, 64 bits
    seq_no: int
    prev_no: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SEQUENCE_INFO")
        seq_id, seq_no, prev_no = reader.fixed(_LAYOUT)
        reader.leave(outer)
        return cls(seq_id, seq_no, prev_no)

    def encode(self) -> bytes:
        return _LAYOUT.pack(self.seq_id, self.seq_no, self.prev_no)
