"""One record, two readings: DirectoryChange and Notification Update (MQDSRP 2.2.4, MQCN 2.2.6).

A directory server tells its neighbours and the owning queue manager of a change with the same
bytes. Where replication has PartitionID and three sequence numbers, notification has GuidMasterId
and 24 reserved bytes. Everything else is one codec: the object is named by path or by GUID, then
come all property ids, then all values. There is no length anywhere, so the end is found only by
decoding every value; an unknown property id makes the rest undecodable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self, TypeAlias

from falconmq.errors import WireError
from falconmq.wire.guid import encode_guid
from falconmq.wire.property_ids import PROPERTIES, Property
from falconmq.wire.reader import Layout, Reader, Structure
from falconmq.wire.sequence_number import (
    MIN_SEQ_NUMBER,
    decode_sequence_number,
    encode_sequence_number,
)
from falconmq.wire.variant import Value, encode_text, encode_value, read_value

CREATE: Final = 0x00
UPDATE: Final = 0x01  # MQCN calls it change
DELETE: Final = 0x02
SYNCHRONIZE: Final = 0x03  # in replication only

SIZE_MIN: Final = 45  # an empty path name and no properties
RESERVED_SIZE: Final = 24

Identifier: TypeAlias = str | bytes
"""Which object: its path name (UseGuid 0) or the 16 bytes of its GUID (UseGuid 1)."""

_HEAD: Final = Layout("DirectoryChange", "BB", "Command", "UseGuid")
_COUNT: Final = Layout("DirectoryChange", "B", "NumberOfProperties")
_PROPID: Final = Layout("DirectoryChange", "I", "PropertyID")
_REPLICATION: Final = Layout(
    "DirectoryChange",
    "16s8s8s8s",
    "PartitionID",
    "PreviousSeqNumber",
    "SeqNumber",
    "PurgedSeqNumber",
)
_NOTIFICATION: Final = Layout("NotificationUpdate", "16s24s", "GuidMasterId", "Reserved")


@dataclass(slots=True)
class _Record(Structure):
    """What both readings share."""

    command: int
    identifier: Identifier

    @property
    def use_guid(self) -> bool:
        return isinstance(self.identifier, bytes)

    @property
    def path_name(self) -> str | None:
        return self.identifier if isinstance(self.identifier, str) else None

    @property
    def guid_identifier(self) -> bytes | None:
        return self.identifier if isinstance(self.identifier, bytes) else None


@dataclass(slots=True)
class DirectoryChange(_Record):
    """A change of one directory object, numbered within its partition (MQDSRP 2.2.4)."""

    partition_id: bytes
    previous_seq_number: int = MIN_SEQ_NUMBER
    seq_number: int = MIN_SEQ_NUMBER
    purged_seq_number: int = MIN_SEQ_NUMBER
    properties: list[tuple[int, Value]] = field(default_factory=list)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("DirectoryChange")
        command, identifier = _read_object(reader, SYNCHRONIZE)
        partition_id, previous, number, purged = reader.fixed(_REPLICATION)
        properties = _read_properties(reader, "PropertyID")
        reader.leave(outer)
        return cls(
            command,
            identifier,
            partition_id,
            decode_sequence_number(previous),
            decode_sequence_number(number),
            decode_sequence_number(purged),
            properties,
        )

    def encode(self) -> bytes:
        name = "DirectoryChange"
        middle = _REPLICATION.pack(
            encode_guid(self.partition_id, name, "PartitionID"),
            encode_sequence_number(self.previous_seq_number, name, "PreviousSeqNumber"),
            encode_sequence_number(self.seq_number, name, "SeqNumber"),
            encode_sequence_number(self.purged_seq_number, name, "PurgedSeqNumber"),
        )
        head = _encode_object(self.command, self.identifier, SYNCHRONIZE, name)
        return head + middle + _encode_properties(self.properties, name)


@dataclass(slots=True)
class NotificationUpdate(_Record):
    """A change of one queue or machine object, told by a directory service (MQCN 2.2.6)."""

    guid_master_id: bytes
    properties: list[tuple[int, Value]]
    # A real directory server may leave its sequence numbers here: kept, never looked at.
    reserved: bytes = bytes(RESERVED_SIZE)  # CN-2.2.6-17, CN-2.2.6-18

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("NotificationUpdate")
        command, identifier = _read_object(reader, DELETE)
        guid_master_id, reserved = reader.fixed(_NOTIFICATION)
        start = reader.offset
        properties = _read_properties(reader, "PropertyId")
        if len(properties) < _fewest_properties(command):
            problem = f"{len(properties)} are too few for Command {command}"
            raise reader.error("NumberOfProperties", problem, start)
        reader.leave(outer)
        return cls(command, identifier, guid_master_id, properties, reserved)

    def encode(self) -> bytes:
        name = "NotificationUpdate"
        if len(self.reserved) != RESERVED_SIZE:
            raise WireError(name, "Reserved", f"has 24 bytes, not {len(self.reserved)}")
        if len(self.properties) < _fewest_properties(self.command):
            problem = f"{len(self.properties)} are too few for Command {self.command}"
            raise WireError(name, "NumberOfProperties", problem)
        head = _encode_object(self.command, self.identifier, DELETE, name)
        master = encode_guid(self.guid_master_id, name, "GuidMasterId")
        return head + master + self.reserved + _encode_properties(self.properties, name)


def _fewest_properties(command: int) -> int:
    """The type of the object is read off the first property, that of a deleted one off the second.

    An update that has none of them cannot be obeyed (MQCN guide, section 11).
    """
    return 2 if command == DELETE else 1


def _read_object(reader: Reader, highest_command: int) -> tuple[int, Identifier]:
    command, use_guid = reader.fixed(_HEAD)
    if command > highest_command:  # CN-2.2.6-03, RP-2.2.4-02
        raise reader.refuse(_HEAD, "Command", f"{command} is not in 0..{highest_command}")
    if use_guid > 1:  # RP-2.2.4-04
        raise reader.refuse(_HEAD, "UseGuid", f"{use_guid} is neither 0 nor 1")
    identifier = reader.guid("GuidIdentifier") if use_guid else reader.text("PathName")
    return command, identifier


def _encode_object(
    command: int, identifier: Identifier, highest_command: int, structure: str
) -> bytes:
    if not 0 <= command <= highest_command:
        raise WireError(structure, "Command", f"{command} is not in 0..{highest_command}")
    if isinstance(identifier, bytes):
        return _HEAD.pack(command, 1) + encode_guid(identifier, structure, "GuidIdentifier")
    return _HEAD.pack(command, 0) + encode_text(identifier, structure, "PathName")


def _read_properties(reader: Reader, id_field: str) -> list[tuple[int, Value]]:
    count = reader.u8("NumberOfProperties")
    if count * _PROPID.size > reader.remaining:
        problem = f"{count} properties do not fit the {reader.remaining} bytes that are left"
        raise reader.error("NumberOfProperties", problem, reader.offset - 1)
    known = [_read_property_id(reader, id_field) for _ in range(count)]
    return [
        (prop.value, read_value(reader, prop.vt, f"PropertyValue[{prop.name}]")) for prop in known
    ]


def _read_property_id(reader: Reader, field: str) -> Property:
    number = reader.u32(field)
    prop = PROPERTIES.get(number)
    if prop is None:  # its type is unknown, hence also where the next value begins
        raise reader.error(field, f"{number} is no property of MQMQ 2.3", reader.offset - 4)
    return prop


def _encode_properties(properties: list[tuple[int, Value]], structure: str) -> bytes:
    if len(properties) > 0xFF:
        raise WireError(structure, "NumberOfProperties", f"{len(properties)} is more than 255")
    ids, values = [_COUNT.pack(len(properties))], []
    for number, value in properties:
        prop = PROPERTIES.get(number)
        if prop is None:  # CN-2.2.2-02
            raise WireError(structure, "PropertyID", f"{number} is no property of MQMQ 2.3")
        ids.append(_PROPID.pack(number))
        values.append(encode_value(prop.vt, value, f"PropertyValue[{prop.name}]"))
    return b"".join(ids + values)
