"""TransactionHeader: a message's place in its transaction and its sequence (MQMQ 2.2.20.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure

# Flags. Bits 24 to 31 are reserved: sent as 0, ignored, kept when a packet is passed on.
CONNECTOR_GUID: Final = 0x00000001  # CG
FINAL_ACK_REQUIRED: Final = 0x00000002  # FA
FIRST_MESSAGE: Final = 0x00000004  # FM
LAST_MESSAGE: Final = 0x00000008  # LM
TRANSACTION_ID: Final = 0x00FFFFF0  # ID, 20 bits
TRANSACTION_ID_SHIFT: Final = 4
RESERVED_FLAGS: Final = 0xFF000000  # X1 to X8

_NEVER_PREVIOUS: Final = 0xFFFFFFFF  # no number follows it, so no message has it as its previous

_LAYOUT: Final = Layout(
    "TransactionHeader",
    "IQII",
    "Flags",
    "TxSequenceID",
    "TxSequenceNumber",
    "PreviousTxSequenceNumber",
)


@dataclass(slots=True)
class TransactionHeader(Structure):
    """Its presence makes a message transactional. `encode` sets CG by `connector_qm_guid`."""

    flags: int
    tx_sequence_id: int  # Ordinal low, TimeStamp high: plain numbers compare, MQ-2.2.18.1.2-03
    tx_sequence_number: int
    previous_tx_sequence_number: int
    connector_qm_guid: bytes | None = None  # an application's, never interpreted

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("TransactionHeader")
        flags, sequence, number, previous = reader.fixed(_LAYOUT)
        if not number:  # MQ-2.2.20.5-19
            raise reader.refuse(_LAYOUT, "TxSequenceNumber", "0, but sequences begin with 1")
        if previous == _NEVER_PREVIOUS:  # MQ-2.2.20.5-21
            raise reader.refuse(_LAYOUT, "PreviousTxSequenceNumber", "no number follows 0xFFFFFFFF")
        connector = reader.guid("ConnectorQMGuid") if flags & CONNECTOR_GUID else None
        reader.leave(outer)
        return cls(flags, sequence, number, previous, connector)

    def encode(self) -> bytes:
        number, previous = self.tx_sequence_number, self.previous_tx_sequence_number
        if not number:
            raise WireError("TransactionHeader", "TxSequenceNumber", "0, but sequences begin at 1")
        if previous == _NEVER_PREVIOUS:
            problem = "no number follows 0xFFFFFFFF"
            raise WireError("TransactionHeader", "PreviousTxSequenceNumber", problem)
        connector = self.connector_qm_guid
        flags = self.flags & ~CONNECTOR_GUID
        if connector is None:
            return _LAYOUT.pack(flags, self.tx_sequence_id, number, previous)
        flags |= CONNECTOR_GUID  # MQ-2.2.20.5-06
        fixed = _LAYOUT.pack(flags, self.tx_sequence_id, number, previous)
        return fixed + encode_guid(connector, "TransactionHeader", "ConnectorQMGuid")
