"""Which number each object and each deletion has within its partition (MQDSRP 3.1.1.2).

Objects stay as they are; their numbers are kept beside them, so that a directory without copies has
none, and one that gets copies later can be opened as it is. Two tables by number, one for objects
and one for deletions, answer "what happened between these two"; a third finds the number of one
object. Everything goes into the workspace of the change that it belongs to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from typing import Final
from uuid import UUID

from falconmq.directory.workspace import Workspace
from falconmq.store.interface import StoreReader
from falconmq.wire.property_ids import ObjectType
from falconmq.wire.sequence_number import MIN_SEQ_NUMBER

NUMBERS: Final = "directory_numbers"  # partition, number, type, GUID -> nothing
DELETED: Final = "directory_deleted"  # partition, number, GUID -> type, scope
NUMBERED: Final = "directory_numbered"  # type, GUID -> partition, number; see _grave for deletions

_PLACE: Final = struct.Struct(">16sQ")
_OBJECT: Final = struct.Struct(">16sQB16s")
_DELETION: Final = struct.Struct(">16sQ16s")
_DELETED: Final = struct.Struct(">BB")


@dataclass(frozen=True, slots=True)
class Entry:
    """An object, or a deletion, and its number."""

    number: int
    object_type: int
    identifier: UUID
    is_deleted: bool = False
    scope: int = 0  # of a deletion


class NumberReader:
    """Looks numbers up."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def of(self, object_type: int, identifier: UUID) -> tuple[UUID, int] | None:
        """Partition and number of an object."""
        record = self._reader.get(NUMBERED, bytes((object_type,)) + identifier.bytes)
        return None if record is None else _unpack_place(record)

    def deletion(self, partition: UUID, identifier: UUID) -> int | None:
        """The number of a deletion that is remembered."""
        record = self._reader.get(NUMBERED, _grave(partition, identifier))
        return None if record is None else _unpack_place(record)[1]

    def objects(self, partition: UUID, first: int, last: int) -> Iterator[Entry]:
        """Objects with a number in `first..last`, ascending."""
        start = _PLACE.pack(partition.bytes, first)
        for key, _ in self._reader.scan(NUMBERS, start, _end(partition, last)):
            _, number, object_type, identifier = _OBJECT.unpack(key)
            yield Entry(number, object_type, UUID(bytes=identifier))

    def deletions(self, partition: UUID, first: int, last: int) -> Iterator[Entry]:
        """Remembered deletions with a number in `first..last`, ascending."""
        start = _PLACE.pack(partition.bytes, first)
        for key, record in self._reader.scan(DELETED, start, _end(partition, last)):
            _, number, identifier = _DELETION.unpack(key)
            object_type, scope = _DELETED.unpack(record)
            yield Entry(number, object_type, UUID(bytes=identifier), is_deleted=True, scope=scope)

    def both(self, partition: UUID, first: int, last: int) -> Iterator[Entry]:
        return merge(
            self.objects(partition, first, last),
            self.deletions(partition, first, last),
            key=lambda entry: entry.number,
        )

    def numbered(self) -> Iterator[tuple[int, UUID, UUID, int]]:
        """Type, GUID, partition and number of all objects that have one."""
        for key, record in self._reader.scan(NUMBERED):
            if key[0] != ObjectType.MQDS_DELETEDOBJECT:
                yield key[0], UUID(bytes=key[1:]), *_unpack_place(record)


class NumberBook(NumberReader):
    """Gives numbers."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace

    def give(self, object_type: int, identifier: UUID, partition: UUID, number: int) -> None:
        """An object was made or changed; had it been deleted before, that is forgotten."""
        self.take_away(object_type, identifier)
        key = _OBJECT.pack(partition.bytes, number, object_type, identifier.bytes)
        self._workspace.put(NUMBERS, key, b"")
        place = _PLACE.pack(partition.bytes, number)
        self._workspace.put(NUMBERED, bytes((object_type,)) + identifier.bytes, place)
        self._forget(partition, identifier)

    def take_away(self, object_type: int, identifier: UUID) -> None:
        known = self.of(object_type, identifier)
        if known is not None:
            key = _OBJECT.pack(known[0].bytes, known[1], object_type, identifier.bytes)
            self._workspace.delete(NUMBERS, key)
            self._workspace.delete(NUMBERED, bytes((object_type,)) + identifier.bytes)

    def bury(self, partition: UUID, deletion: Entry) -> None:
        """Remember a deletion; one for each object of a partition (A-16)."""
        self._forget(partition, deletion.identifier)
        key = _DELETION.pack(partition.bytes, deletion.number, deletion.identifier.bytes)
        self._workspace.put(DELETED, key, _DELETED.pack(deletion.object_type, deletion.scope))
        place = _PLACE.pack(partition.bytes, deletion.number)
        self._workspace.put(NUMBERED, _grave(partition, deletion.identifier), place)

    def forget_deletions(self, partition: UUID, first: int, last: int) -> int:
        """Forget the deletions with a number in `first..last`; how many there were."""
        found = list(self.deletions(partition, first, last))
        for deletion in found:
            self._forget(partition, deletion.identifier)
        return len(found)

    def reset(self, partition: UUID, last: int) -> None:
        """Everything of a partition gets the smallest number: Reset Directory Partition 1."""
        for entry in list(self.both(partition, MIN_SEQ_NUMBER + 1, last)):
            if entry.is_deleted:
                marked = Entry(
                    MIN_SEQ_NUMBER, entry.object_type, entry.identifier, True, entry.scope
                )
                self.bury(partition, marked)
            else:
                self.give(entry.object_type, entry.identifier, partition, MIN_SEQ_NUMBER)

    def _forget(self, partition: UUID, identifier: UUID) -> None:
        number = self.deletion(partition, identifier)
        if number is not None:
            key = _DELETION.pack(partition.bytes, number, identifier.bytes)
            self._workspace.delete(DELETED, key)
            self._workspace.delete(NUMBERED, _grave(partition, identifier))


def _grave(partition: UUID, identifier: UUID) -> bytes:
    return bytes((ObjectType.MQDS_DELETEDOBJECT,)) + partition.bytes + identifier.bytes


def _end(partition: UUID, last: int) -> bytes:
    """Behind everything that has the number `last`."""
    return _PLACE.pack(partition.bytes, last) + b"\xff" * 18


def _unpack_place(record: bytes) -> tuple[UUID, int]:
    partition, number = _PLACE.unpack(record)
    return UUID(bytes=partition), number
