"""Which number each object and each deletion has within its partition (MQDSRP 3.1.1.2).

Objects stay as they are; their numbers are kept beside them, so that a directory without copies has
none, and one that gets copies later can be opened as it is. Two tables by number, one for objects
and one for deletions, answer "what happened between these two"; a third finds the number of one
object. A fourth keeps what a partition says of an object that is shown as another one has it (see
`claims`). Everything goes into the workspace of the change that it belongs to.
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
HIDDEN: Final = "directory_hidden"  # type, GUID, partition -> number, row

_PLACE: Final = struct.Struct(">16sQ")
_OBJECT: Final = struct.Struct(">16sQB16s")
_DELETION: Final = struct.Struct(">16sQ16s")
_DELETED: Final = struct.Struct(">BB")
_NUMBER: Final = struct.Struct(">Q")
_OBJECT_KEY_BYTES: Final = 17  # type and GUID


@dataclass(frozen=True, slots=True)
class Entry:
    """An object, or a deletion, and its number."""

    number: int
    object_type: int
    identifier: UUID
    is_deleted: bool = False
    scope: int = 0  # of a deletion


@dataclass(frozen=True, slots=True)
class Hidden:
    """An object as a partition has it that is not the one whose word is shown."""

    partition: UUID
    number: int
    record: bytes  # the row


class NumberReader:
    """Looks numbers up."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._has_hidden: bool | None = None  # looked up once: nearly always nothing is hidden

    def of(self, object_type: int, identifier: UUID) -> tuple[UUID, int] | None:
        """Partition and number of an object as it is shown."""
        record = self._reader.get(NUMBERED, _object_key(object_type, identifier))
        return None if record is None else _unpack_place(record)

    def number_in(self, partition: UUID, object_type: int, identifier: UUID) -> int | None:
        """The number of an object in a partition, whether it is shown so or not."""
        shown = self.of(object_type, identifier)
        if shown is not None and shown[0] == partition:
            return shown[1]
        hidden = self.hidden_in(partition, object_type, identifier)
        return None if hidden is None else hidden.number

    def hidden(self, object_type: int, identifier: UUID) -> list[Hidden]:
        """What other partitions say of an object than the one that is shown."""
        if not self._is_any_hidden():
            return []
        start = _object_key(object_type, identifier)
        found = self._reader.scan(HIDDEN, start, start + b"\xff" * 17)
        return [_unpack_hidden(key, record) for key, record in found]

    def hidden_in(self, partition: UUID, object_type: int, identifier: UUID) -> Hidden | None:
        if not self._is_any_hidden():
            return None
        key = _object_key(object_type, identifier) + partition.bytes
        record = self._reader.get(HIDDEN, key)
        return None if record is None else _unpack_hidden(key, record)

    def _is_any_hidden(self) -> bool:
        if self._has_hidden is None:
            self._has_hidden = next(iter(self._reader.scan(HIDDEN)), None) is not None
        return self._has_hidden

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
            yield _unpack_deletion(key, record)

    def both(self, partition: UUID, first: int, last: int) -> Iterator[Entry]:
        return merge(
            self.objects(partition, first, last),
            self.deletions(partition, first, last),
            key=lambda entry: entry.number,
        )

    def numbered(self) -> Iterator[tuple[int, UUID, UUID, int]]:
        """Type, GUID, partition and number of all objects that have one, as they are shown."""
        for key, record in self._reader.scan(NUMBERED):
            if key[0] != ObjectType.MQDS_DELETEDOBJECT:
                yield key[0], UUID(bytes=key[1:]), *_unpack_place(record)

    def all_hidden(self) -> Iterator[tuple[int, UUID, Hidden]]:
        """Type and GUID of all objects that are not shown as a partition has them."""
        for key, record in self._reader.scan(HIDDEN):
            identifier = UUID(bytes=key[1:_OBJECT_KEY_BYTES])
            yield key[0], identifier, _unpack_hidden(key, record)

    def all_deletions(self) -> Iterator[tuple[UUID, Entry]]:
        """All partitions' remembered deletions."""
        for key, record in self._reader.scan(DELETED):
            yield UUID(bytes=key[:16]), _unpack_deletion(key, record)


class NumberBook(NumberReader):
    """Gives numbers."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace

    def give(self, object_type: int, identifier: UUID, partition: UUID, number: int) -> None:
        """An object was made or changed; had it been deleted before, that is forgotten.

        It is shown as this partition has it from now on.
        """
        self.take_away(object_type, identifier)
        key = _OBJECT.pack(partition.bytes, number, object_type, identifier.bytes)
        self._workspace.put(NUMBERS, key, b"")
        place = _PLACE.pack(partition.bytes, number)
        self._workspace.put(NUMBERED, _object_key(object_type, identifier), place)
        self._forget(partition, identifier)

    def take_away(self, object_type: int, identifier: UUID) -> None:
        """The partition whose word is shown has the object no more."""
        known = self.of(object_type, identifier)
        if known is not None:
            key = _OBJECT.pack(known[0].bytes, known[1], object_type, identifier.bytes)
            self._workspace.delete(NUMBERS, key)
            self._workspace.delete(NUMBERED, _object_key(object_type, identifier))

    def hide(self, object_type: int, identifier: UUID, said: Hidden) -> None:
        """A partition has an object that is shown as another one has it."""
        self.uncover(object_type, identifier, said.partition)
        self._has_hidden = True
        partition = said.partition.bytes
        key = _OBJECT.pack(partition, said.number, object_type, identifier.bytes)
        self._workspace.put(NUMBERS, key, b"")
        record = _NUMBER.pack(said.number) + said.record
        self._workspace.put(HIDDEN, _object_key(object_type, identifier) + partition, record)
        self._forget(said.partition, identifier)

    def uncover(self, object_type: int, identifier: UUID, partition: UUID) -> Hidden | None:
        """Take away what a partition said of an object that is shown as another one has it."""
        said = self.hidden_in(partition, object_type, identifier)
        if said is not None:
            number = _OBJECT.pack(partition.bytes, said.number, object_type, identifier.bytes)
            self._workspace.delete(NUMBERS, number)
            key = _object_key(object_type, identifier) + partition.bytes
            self._workspace.delete(HIDDEN, key)
        return said

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
                continue
            said = self.hidden_in(partition, entry.object_type, entry.identifier)
            if said is None:
                self.give(entry.object_type, entry.identifier, partition, MIN_SEQ_NUMBER)
            else:
                smallest = Hidden(partition, MIN_SEQ_NUMBER, said.record)
                self.hide(entry.object_type, entry.identifier, smallest)

    def _forget(self, partition: UUID, identifier: UUID) -> None:
        number = self.deletion(partition, identifier)
        if number is not None:
            key = _DELETION.pack(partition.bytes, number, identifier.bytes)
            self._workspace.delete(DELETED, key)
            self._workspace.delete(NUMBERED, _grave(partition, identifier))


def _object_key(object_type: int, identifier: UUID) -> bytes:
    return bytes((object_type,)) + identifier.bytes


def _grave(partition: UUID, identifier: UUID) -> bytes:
    return bytes((ObjectType.MQDS_DELETEDOBJECT,)) + partition.bytes + identifier.bytes


def _end(partition: UUID, last: int) -> bytes:
    """Behind everything that has the number `last`."""
    return _PLACE.pack(partition.bytes, last) + b"\xff" * 18


def _unpack_place(record: bytes) -> tuple[UUID, int]:
    partition, number = _PLACE.unpack(record)
    return UUID(bytes=partition), number


def _unpack_hidden(key: bytes, record: bytes) -> Hidden:
    (number,) = _NUMBER.unpack_from(record)
    return Hidden(UUID(bytes=key[_OBJECT_KEY_BYTES:]), number, record[_NUMBER.size :])


def _unpack_deletion(key: bytes, record: bytes) -> Entry:
    _, number, identifier = _DELETION.unpack(key)
    object_type, scope = _DELETED.unpack(record)
    return Entry(number, object_type, UUID(bytes=identifier), is_deleted=True, scope=scope)
