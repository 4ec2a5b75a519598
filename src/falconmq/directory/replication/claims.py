"""Objects that two partitions have at a time: each keeps its own word, and one of them is shown.

How to think about it. A queue manager that moves to another site is deleted in one partition and
made in the other, under the GUID that it has had from its first day. Partitions are told apart from
each other, so a third server may hear of the new one long before it hears that the old one is
gone; and if a take-over lost the deletion, both are there until somebody deletes one. No clock can
say which of the two words is the later one. So none of them is thrown away: what each partition has
is its claim, with its own number and its own deletion. The directory shows one claim, the youngest
by its creation; when that is deleted, the next one. The choice depends on the claims alone,
so servers that have heard the same show the same, in whatever order they heard it.

Nearly all objects have one claim, which is the object itself; only further ones are kept apart.
"""

from __future__ import annotations

from uuid import UUID

from falconmq.directory.records import decode_row, encode_row, object_key
from falconmq.directory.replication.numbers import Hidden
from falconmq.directory.replication.server import Server
from falconmq.directory.schema import ObjectTable
from falconmq.manager.directory_objects import Row


def claimed(
    server: Server, table: ObjectTable, partition: UUID, identifier: UUID
) -> dict[str, object] | None:
    """An object as a partition has it; what nobody has numbered yet is of any."""
    shown = server.numbers.of(table.code, identifier)
    if shown is None or shown[0] == partition:
        return server.objects.get(table, identifier)
    hidden = server.numbers.hidden_in(partition, table.code, identifier)
    return None if hidden is None else _row_of(table, identifier, hidden)


def claim(
    server: Server, table: ObjectTable, partition: UUID, number: int, row: dict[str, object]
) -> None:
    """A partition has an object now, like this."""
    server.objects.place(table, row)
    identifier = _guid(row)
    shown = server.numbers.of(table.code, identifier)
    if shown is None or shown[0] == partition:
        _show(server, table, partition, number, row)
    else:
        said = Hidden(partition, number, encode_row(table, row))
        server.numbers.hide(table.code, identifier, said)
    _show_youngest(server, table, identifier)


def disclaim(
    server: Server, table: ObjectTable, partition: UUID, identifier: UUID
) -> dict[str, object] | None:
    """A partition has an object no more; as it was there. What another one says may show again."""
    shown = server.numbers.of(table.code, identifier)
    if shown is not None and shown[0] != partition:
        hidden = server.numbers.uncover(table.code, identifier, partition)
        return None if hidden is None else _row_of(table, identifier, hidden)
    row = server.objects.get(table, identifier)
    if row is not None:
        server.objects.drop(table, row)
    server.numbers.take_away(table.code, identifier)
    _show_youngest(server, table, identifier)
    return row


def _show_youngest(server: Server, table: ObjectTable, identifier: UUID) -> None:
    hidden = server.numbers.hidden(table.code, identifier)
    if not hidden:
        return
    rows = {said.partition: _row_of(table, identifier, said) for said in hidden}
    numbers = {said.partition: said.number for said in hidden}
    youngest = max(rows, key=lambda partition: _age(partition, rows[partition]))
    shown, row = server.numbers.of(table.code, identifier), server.objects.get(table, identifier)
    if shown is not None and row is not None:
        if _age(shown[0], row) >= _age(youngest, rows[youngest]):
            return
        said = Hidden(shown[0], shown[1], encode_row(table, row))
        server.numbers.take_away(table.code, identifier)
        server.numbers.hide(table.code, identifier, said)
    server.numbers.uncover(table.code, identifier, youngest)
    _show(server, table, youngest, numbers[youngest], rows[youngest])


def _show(
    server: Server, table: ObjectTable, partition: UUID, number: int, row: dict[str, object]
) -> None:
    server.objects.keep(table, row)
    server.numbers.give(table.code, _guid(row), partition, number)


def _age(partition: UUID, row: Row) -> tuple[int, bytes]:
    """Greater is younger; of two that were made in the same second, always the same one."""
    made = row.get("create_time", 0)
    assert isinstance(made, int)
    return made, partition.bytes


def _row_of(table: ObjectTable, identifier: UUID, said: Hidden) -> dict[str, object]:
    return decode_row(table, object_key(table, identifier), said.record)


def _guid(row: Row) -> UUID:
    identifier = row["identifier"]
    assert isinstance(identifier, UUID)
    return identifier
