"""The eight messages that directory servers replicate with (MQDSRP 2.2.6).

Each is the body of an MSMQ message to private queue 1 of the other server: a BaseReplicationHeader
whose Operation says which message it is, then its own fields, with no padding anywhere. Bytes
behind the parsed end are ignored, senders may leave some. `decode_replication_message` picks the
class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self, TypeAlias

from falconmq.errors import WireError
from falconmq.wire.base_replication_header import (
    ALREADY_PURGED,
    BSC_ACK,
    CHANGE_PROPAGATION,
    CHANGE_REPLY,
    CHANGE_REQUEST,
    PSC_ACK,
    SYNC_REPLY,
    SYNC_REQUEST,
    BaseReplicationHeader,
)
from falconmq.wire.base_replication_header import SIZE as HEADER_SIZE
from falconmq.wire.directory_change import SIZE_MIN, DirectoryChange
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Buffer, Layout, Reader, Structure, encode_utf16
from falconmq.wire.seq_number_header import SeqNumberHeader
from falconmq.wire.sequence_number import (
    MAX_SEQ_NUMBER,
    decode_sequence_number,
    encode_sequence_number,
)
from falconmq.wire.variant import encode_text

# SyncRequestMessage.Scope
SCOPE_NONE: Final = 0x00
SCOPE_ENTERPRISE: Final = 0x01

# SyncReplyMessage.CompleteSync0
NOT_SYNC0: Final = 0
COMPLETE_SYNC0_SOON: Final = 1  # more is to be fetched
COMPLETE_SYNC0_NOW: Final = 2

_CHANGE_REQUEST: Final = Layout(
    "ChangeRequestHeader", "16sII", "PartitionID", "RequestIdentifier", "PSCNameOffset"
)
_CHANGE_REPLY: Final = Layout("ChangeReplyMessage", "II", "RequestIdentifier", "Result")
_SYNC_REQUEST: Final = Layout(
    "SyncRequestMessage",
    "16s8s8s8sBB",
    "PartitionID",
    "FromSeqNumber",
    "ToSeqNumber",
    "KnownPurgedSeqNumber",
    "IsSync0",
    "Scope",
)
_SYNC_REPLY: Final = Layout(
    "SyncReplyHeader",
    "16s8s8s8sII",
    "PartitionID",
    "FromSeqNumber",
    "ToSeqNumber",
    "PurgedSeqNumber",
    "Count",
    "CompleteSync0",
)
_PSC_ACK: Final = Layout(
    "PSCAckMessage", "16s16s8s", "PSCSiteID", "AckedPartitionID", "AckedSeqNumber"
)
_ALREADY_PURGED: Final = Layout("AlreadyPurgedMessage", "16s8s", "PartitionID", "PurgedSeqNumber")
_CHANGE_PROPAGATION: Final = Layout("ChangePropagationMessage", "BH", "Flush", "Count")


@dataclass(slots=True)
class ChangePropagationMessage(Structure):
    """Changes for a neighbour, and how far the sender's partitions are (MQDSRP 2.2.6.9)."""

    site_id: bytes
    directory_changes: list[DirectoryChange] = field(default_factory=list)
    seq_number_header: SeqNumberHeader = field(default_factory=SeqNumberHeader)
    flush: bool = False  # True: from a PSC to its BSCs, who pass nothing on

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ChangePropagationMessage")
        site_id = BaseReplicationHeader.expect(reader, CHANGE_PROPAGATION)
        flush, count = reader.fixed(_CHANGE_PROPAGATION)
        if flush > 1:  # RP-2.2.6.9-04
            raise reader.refuse(_CHANGE_PROPAGATION, "Flush", f"{flush} is neither 0 nor 1")
        changes = _read_changes(reader, count, _CHANGE_PROPAGATION)
        partitions = SeqNumberHeader.read(reader)
        reader.leave(outer)
        return cls(site_id, changes, partitions, flush == 1)

    def encode(self) -> bytes:
        count = len(self.directory_changes)
        return b"".join(
            [
                BaseReplicationHeader(self.site_id, CHANGE_PROPAGATION).encode(),
                _CHANGE_PROPAGATION.pack(1 if self.flush else 0, count),
                *[change.encode() for change in self.directory_changes],
                self.seq_number_header.encode(),
            ]
        )


@dataclass(slots=True)
class ChangeRequestMessage(Structure):
    """Asks the owner of a partition to make a change (MQDSRP 2.2.6.2, header 2.2.5.2)."""

    site_id: bytes
    partition_id: bytes
    request_identifier: int
    requester_name: str
    psc_name: str | None  # the requester's PSC when the requester is a BSC, else None
    directory_change: DirectoryChange

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ChangeRequestMessage")
        message = reader.enter("ChangeRequestHeader")
        site_id = BaseReplicationHeader.expect(reader, CHANGE_REQUEST)
        partition_id, request_identifier, psc_name_offset = reader.fixed(_CHANGE_REQUEST)
        start = reader.offset
        requester_name = reader.text("RequesterName")
        psc_name = None
        if psc_name_offset:
            # PSCName stands directly behind RequesterName, so only one offset is possible.
            if 2 * psc_name_offset != reader.offset - start:
                problem = f"{psc_name_offset} does not point behind RequesterName"
                raise reader.error("PSCNameOffset", problem, start - 4)
            psc_name = reader.text("PSCName")  # as long as it is, not 8 bytes: A-03
        reader.leave(message)
        change = DirectoryChange.read(reader)
        reader.leave(outer)
        return cls(site_id, partition_id, request_identifier, requester_name, psc_name, change)

    def encode(self) -> bytes:
        name = "ChangeRequestHeader"
        requester_name = encode_text(self.requester_name, name, "RequesterName")
        psc_name, psc_name_offset = b"", 0
        if self.psc_name is not None:
            psc_name = encode_text(self.psc_name, name, "PSCName")
            psc_name_offset = len(encode_utf16(self.requester_name)) // 2 + 1
        return b"".join(
            [
                BaseReplicationHeader(self.site_id, CHANGE_REQUEST).encode(),
                _CHANGE_REQUEST.pack(
                    encode_guid(self.partition_id, name, "PartitionID"),
                    self.request_identifier,
                    psc_name_offset,
                ),
                requester_name,
                psc_name,
                self.directory_change.encode(),
            ]
        )


@dataclass(slots=True)
class ChangeReplyMessage(Structure):
    """What became of a change request (MQDSRP 2.2.6.3)."""

    site_id: bytes
    request_identifier: int
    result: int  # an HRESULT, unsigned like MqStatus
    requester_name: str

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("ChangeReplyMessage")
        site_id = BaseReplicationHeader.expect(reader, CHANGE_REPLY)
        request_identifier, result = reader.fixed(_CHANGE_REPLY)
        requester_name = reader.text("RequesterName")
        reader.leave(outer)
        return cls(site_id, request_identifier, result, requester_name)

    def encode(self) -> bytes:
        return (
            BaseReplicationHeader(self.site_id, CHANGE_REPLY).encode()
            + _CHANGE_REPLY.pack(self.request_identifier, self.result)
            + encode_text(self.requester_name, "ChangeReplyMessage", "RequesterName")
        )


@dataclass(slots=True)
class SyncRequestMessage(Structure):
    """Asks for the changes of a partition between two numbers (MQDSRP 2.2.6.4)."""

    site_id: bytes
    partition_id: bytes
    from_seq_number: int
    to_seq_number: int = MAX_SEQ_NUMBER  # everything
    known_purged_seq_number: int = 0
    is_sync0: bool = False
    scope: int = SCOPE_NONE
    requester_name: str = ""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SyncRequestMessage")
        site_id = BaseReplicationHeader.expect(reader, SYNC_REQUEST)
        partition_id, first, last, purged, is_sync0, scope = reader.fixed(_SYNC_REQUEST)
        if is_sync0 > 1:  # RP-2.2.6.4-08
            raise reader.refuse(_SYNC_REQUEST, "IsSync0", f"{is_sync0} is neither 0 nor 1")
        if scope > SCOPE_ENTERPRISE:  # RP-2.2.6.4-10
            raise reader.refuse(_SYNC_REQUEST, "Scope", f"{scope} is neither 0 nor 1")
        requester_name = reader.text("RequesterName")
        reader.leave(outer)
        return cls(
            site_id,
            partition_id,
            decode_sequence_number(first),
            decode_sequence_number(last),
            decode_sequence_number(purged),
            is_sync0 == 1,
            scope,
            requester_name,
        )

    def encode(self) -> bytes:
        name = "SyncRequestMessage"
        if self.scope not in (SCOPE_NONE, SCOPE_ENTERPRISE):
            raise WireError(name, "Scope", f"{self.scope} is neither 0 nor 1")
        fields = _SYNC_REQUEST.pack(
            encode_guid(self.partition_id, name, "PartitionID"),
            encode_sequence_number(self.from_seq_number, name, "FromSeqNumber"),
            encode_sequence_number(self.to_seq_number, name, "ToSeqNumber"),
            encode_sequence_number(self.known_purged_seq_number, name, "KnownPurgedSeqNumber"),
            1 if self.is_sync0 else 0,
            self.scope,
        )
        header = BaseReplicationHeader(self.site_id, SYNC_REQUEST).encode()
        return header + fields + encode_text(self.requester_name, name, "RequesterName")


@dataclass(slots=True)
class SyncReplyMessage(Structure):
    """The changes that a sync request asked for (MQDSRP 2.2.6.5, header 2.2.5.3)."""

    site_id: bytes
    partition_id: bytes
    from_seq_number: int
    to_seq_number: int
    purged_seq_number: int
    complete_sync0: int = NOT_SYNC0
    directory_changes: list[DirectoryChange] = field(default_factory=list)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SyncReplyMessage")
        message = reader.enter("SyncReplyHeader")
        site_id = BaseReplicationHeader.expect(reader, SYNC_REPLY)
        partition_id, first, last, purged, count, complete = reader.fixed(_SYNC_REPLY)
        if complete > COMPLETE_SYNC0_NOW:  # RP-2.2.5.3-10
            raise reader.refuse(_SYNC_REPLY, "CompleteSync0", f"{complete} is not in 0..2")
        reader.leave(message)
        changes = _read_changes(reader, count, _SYNC_REPLY)
        reader.leave(outer)
        return cls(
            site_id,
            partition_id,
            decode_sequence_number(first),
            decode_sequence_number(last),
            decode_sequence_number(purged),
            complete,
            changes,
        )

    def encode(self) -> bytes:
        name = "SyncReplyHeader"
        if not NOT_SYNC0 <= self.complete_sync0 <= COMPLETE_SYNC0_NOW:
            raise WireError(name, "CompleteSync0", f"{self.complete_sync0} is not in 0..2")
        fields = _SYNC_REPLY.pack(
            encode_guid(self.partition_id, name, "PartitionID"),
            encode_sequence_number(self.from_seq_number, name, "FromSeqNumber"),
            encode_sequence_number(self.to_seq_number, name, "ToSeqNumber"),
            encode_sequence_number(self.purged_seq_number, name, "PurgedSeqNumber"),
            len(self.directory_changes),
            self.complete_sync0,
        )
        header = BaseReplicationHeader(self.site_id, SYNC_REPLY).encode()
        return header + fields + b"".join([change.encode() for change in self.directory_changes])


@dataclass(slots=True)
class AlreadyPurgedMessage(Structure):
    """Answers a sync request whose deletions are forgotten: fetch everything (MQDSRP 2.2.6.8)."""

    site_id: bytes
    partition_id: bytes
    purged_seq_number: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("AlreadyPurgedMessage")
        site_id = BaseReplicationHeader.expect(reader, ALREADY_PURGED)
        partition_id, purged = reader.fixed(_ALREADY_PURGED)
        reader.leave(outer)
        return cls(site_id, partition_id, decode_sequence_number(purged))

    def encode(self) -> bytes:
        name = "AlreadyPurgedMessage"
        return BaseReplicationHeader(self.site_id, ALREADY_PURGED).encode() + _ALREADY_PURGED.pack(
            encode_guid(self.partition_id, name, "PartitionID"),
            encode_sequence_number(self.purged_seq_number, name, "PurgedSeqNumber"),
        )


@dataclass(slots=True)
class PSCAckMessage(Structure):
    """A PSC tells the owner of a partition how far it is (MQDSRP 2.2.6.7)."""

    site_id: bytes
    psc_site_id: bytes
    acked_partition_id: bytes
    acked_seq_number: int
    psc_name: str

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("PSCAckMessage")
        site_id = BaseReplicationHeader.expect(reader, PSC_ACK)
        psc_site_id, acked_partition_id, acked = reader.fixed(_PSC_ACK)
        psc_name = reader.text("PSCName")
        reader.leave(outer)
        return cls(
            site_id, psc_site_id, acked_partition_id, decode_sequence_number(acked), psc_name
        )

    def encode(self) -> bytes:
        name = "PSCAckMessage"
        fields = _PSC_ACK.pack(
            encode_guid(self.psc_site_id, name, "PSCSiteID"),
            encode_guid(self.acked_partition_id, name, "AckedPartitionID"),
            encode_sequence_number(self.acked_seq_number, name, "AckedSeqNumber"),
        )
        header = BaseReplicationHeader(self.site_id, PSC_ACK).encode()
        return header + fields + encode_text(self.psc_name, name, "PSCName")


@dataclass(slots=True)
class BSCAckMessage(Structure):
    """A BSC tells its PSC that it lives (MQDSRP 2.2.6.6)."""

    site_id: bytes
    bsc_machine_id: bytes
    bsc_name: str

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("BSCAckMessage")
        site_id = BaseReplicationHeader.expect(reader, BSC_ACK)
        bsc_machine_id = reader.guid("BSCMachineID")
        bsc_name = reader.text("BSCName")
        reader.leave(outer)
        return cls(site_id, bsc_machine_id, bsc_name)

    def encode(self) -> bytes:
        return (
            BaseReplicationHeader(self.site_id, BSC_ACK).encode()
            + encode_guid(self.bsc_machine_id, "BSCAckMessage", "BSCMachineID")
            + encode_text(self.bsc_name, "BSCAckMessage", "BSCName")
        )


ReplicationMessage: TypeAlias = (
    ChangePropagationMessage
    | ChangeRequestMessage
    | SyncRequestMessage
    | SyncReplyMessage
    | ChangeReplyMessage
    | AlreadyPurgedMessage
    | PSCAckMessage
    | BSCAckMessage
)

_BY_OPERATION: Final[dict[int, type[ReplicationMessage]]] = {
    CHANGE_PROPAGATION: ChangePropagationMessage,
    CHANGE_REQUEST: ChangeRequestMessage,
    SYNC_REQUEST: SyncRequestMessage,
    SYNC_REPLY: SyncReplyMessage,
    CHANGE_REPLY: ChangeReplyMessage,
    ALREADY_PURGED: AlreadyPurgedMessage,
    PSC_ACK: PSCAckMessage,
    BSC_ACK: BSCAckMessage,
}


def read_replication_message(reader: Reader) -> ReplicationMessage:
    """Read whichever of the eight messages the header announces."""
    operation = reader.position + HEADER_SIZE - 1  # the last byte of the header
    kind = _BY_OPERATION.get(reader.buffer[operation]) if operation < reader.end else None
    if kind is not None:
        return kind.read(reader)
    header = BaseReplicationHeader.read(reader)  # refuses it, and a trace shows what was there
    raise reader.error("Operation", f"{header.operation} is no replication message")


def decode_replication_message(buffer: Buffer) -> ReplicationMessage:
    """The replication message in the body of an MSMQ message; WireError if it is none."""
    return read_replication_message(Reader(buffer))


def _read_changes(reader: Reader, count: int, layout: Layout) -> list[DirectoryChange]:
    if count * SIZE_MIN > reader.remaining:
        problem = f"{count} changes do not fit the {reader.remaining} bytes that are left"
        raise reader.refuse(layout, "Count", problem)
    return [DirectoryChange.read(reader) for _ in range(count)]
