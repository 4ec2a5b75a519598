"""SeqNumberHeader and PARTITION_SEQ_NUMBERS: how far a replica is (MQDSRP 2.2.3, 2.2.5.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure
from falconmq.wire.sequence_number import decode_sequence_number, encode_sequence_number
from falconmq.wire.variant import encode_text

_COUNT: Final = Layout("SeqNumberHeader", "H", "Count")
_PARTITION: Final = Layout(
    "PARTITION_SEQ_NUMBERS", "16s8s8s", "PartitionID", "LastSeqNumber", "PurgedSeqNumber"
)


@dataclass(slots=True)
class PartitionSeqNumbers(Structure):
    """The last change of a partition, and the last one whose deletions are forgotten."""

    partition_id: bytes
    last_seq_number: int
    purged_seq_number: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("PARTITION_SEQ_NUMBERS")
        partition_id, last, purged = reader.fixed(_PARTITION)
        reader.leave(outer)
        return cls(partition_id, decode_sequence_number(last), decode_sequence_number(purged))

    def encode(self) -> bytes:
        name = "PARTITION_SEQ_NUMBERS"
        return _PARTITION.pack(
            encode_guid(self.partition_id, name, "PartitionID"),
            encode_sequence_number(self.last_seq_number, name, "LastSeqNumber"),
            encode_sequence_number(self.purged_seq_number, name, "PurgedSeqNumber"),
        )


@dataclass(slots=True)
class SeqNumberHeader(Structure):
    """Who speaks and how far each partition is there; two zero bytes when there is nothing to say.

    Without partitions the machine name is not sent, so it comes back empty (RP-2.2.5.4-03).
    """

    machine_name: str = ""
    partition_seq_numbers: list[PartitionSeqNumbers] = field(default_factory=list)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SeqNumberHeader")
        (count,) = reader.fixed(_COUNT)
        if count * _PARTITION.size > reader.remaining:
            problem = f"{count} partitions do not fit the {reader.remaining} bytes that are left"
            raise reader.refuse(_COUNT, "Count", problem)
        machine_name = reader.text("MachineName") if count else ""
        partitions = [PartitionSeqNumbers.read(reader) for _ in range(count)]
        reader.leave(outer)
        return cls(machine_name, partitions)

    def encode(self) -> bytes:
        count = len(self.partition_seq_numbers)
        if count == 0:
            return _COUNT.pack(0)
        name = encode_text(self.machine_name, "SeqNumberHeader", "MachineName")
        partitions = [each.encode() for each in self.partition_seq_numbers]
        return _COUNT.pack(count) + name + b"".join(partitions)
