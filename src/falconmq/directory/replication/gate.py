"""Every change of a replicated directory comes through here: decided, or handed to who decides.

The rows are checked already. What is of a partition of this server is done when the call returns;
what is of another's is asked for and waited for, in whatever way the host can wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from falconmq.directory.base import DirectoryRefusedError, already_exists, not_found
from falconmq.directory.replication.deciding import (
    decide_create,
    decide_delete,
    decide_write,
    partition_of,
    with_owner,
)
from falconmq.directory.replication.properties import (
    OBJECT_TABLES,
    PATHS,
    Properties,
    deletion_properties,
    properties_for,
)
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import Partition
from falconmq.directory.replication.write_requests import change_object
from falconmq.directory.replication.writes import PendingWrite, RequestedChange
from falconmq.directory.schema import ObjectTable, refusal
from falconmq.errors import FalconMQError, MqStatus
from falconmq.manager.directory_backend import equals
from falconmq.manager.directory_objects import NULL_UUID, Row
from falconmq.manager.states import DirectoryResult, QueueScope
from falconmq.wire.directory_change import CREATE, DELETE, UPDATE, Identifier

if TYPE_CHECKING:
    from falconmq.directory.replication.engine import ReplicationEngine

Decision = Callable[[Server, Partition], UUID]


class ReplicatedWrites:
    """The changes of an EmbeddedDirectory that has copies (`embedded.Replica`)."""

    def __init__(self, engine: ReplicationEngine) -> None:
        self.wait: Callable[[PendingWrite], None] | None = None
        self._engine = engine

    def create(self, table: ObjectTable, row: dict[str, object]) -> UUID:
        if table.code not in OBJECT_TABLES:
            return self._here(lambda server: server.objects.create(table, row))
        with self._engine.turn() as server:
            partition_id = partition_of(server, table, row)
            is_own = partition_id is not None and _is_own(server, partition_id)
            if not is_own and row["identifier"] == NULL_UUID:
                row["identifier"] = server.objects.new_identifier()
        if partition_id is None:  # a queue of nobody
            computer = str(row.get("path_name", "")).partition("\\")[0]
            raise not_found("QueueManager", equals("computer_name", computer))
        if is_own:
            return self._decided(partition_id, lambda s, p: decide_create(s, p, table, row))
        self._asked(table, CREATE, row, partition_id, None)
        return UUID(str(row["identifier"]))

    def write(self, table: ObjectTable, identifier: UUID, changes: dict[str, object]) -> None:
        if table.code not in OBJECT_TABLES:
            self._here(lambda server: server.objects.write(table, identifier, changes))
            return
        row, partition_id, is_own = self._known(table, identifier)

        def decide(server: Server, partition: Partition) -> UUID:
            decide_write(server, partition, table, identifier, changes)
            return identifier

        if is_own:
            self._decided(partition_id, decide)
        else:
            self._asked(table, UPDATE, {**row, **changes}, partition_id, changes)

    def delete(self, table: ObjectTable, identifier: UUID) -> None:
        if table.code not in OBJECT_TABLES:
            self._here(lambda server: server.objects.delete(table, identifier))
            return
        row, partition_id, is_own = self._known(table, identifier)

        def decide(server: Server, partition: Partition) -> UUID:
            decide_delete(server, partition, table, identifier)
            return identifier

        if is_own:
            self._decided(partition_id, decide)
        else:
            self._asked(table, DELETE, row, partition_id, None)

    def _known(self, table: ObjectTable, identifier: UUID) -> tuple[Row, UUID, bool]:
        """An object, its partition, and whether this server decides about that."""
        with self._engine.turn() as server:
            row = server.objects.get(table, identifier)
            number = server.numbers.of(table.code, identifier)
            if row is None:
                return {}, NULL_UUID, True  # refused there as in any directory
            partition_id = partition_of(server, table, row) if number is None else number[0]
            if partition_id is None:
                partition_id = NULL_UUID
            return with_owner(server, table, row), partition_id, _is_own(server, partition_id)

    def _here(self, change: Callable[[Server], object]) -> UUID:
        """A change of an object that has no copies."""
        result = self._done(change)
        return result if isinstance(result, UUID) else NULL_UUID

    def _decided(self, partition_id: UUID, decide: Decision) -> UUID:
        result = self._done(lambda server: decide(server, server.state.partitions[partition_id]))
        assert isinstance(result, UUID)
        return result

    def _done(self, change: Callable[[Server], object]) -> object:
        """One turn; what is refused leaves nothing behind, and is no reason to begin anew."""
        refused: FalconMQError | None = None
        result: object = None
        with self._engine.turn() as server:
            mark = server.objects.workspace.mark()
            try:
                result = change(server)
            except FalconMQError as error:
                server.objects.workspace.restore(mark)
                refused = error
        if refused is not None:
            raise refused
        self._engine.tell_carrier()
        return result

    def _asked(
        self,
        table: ObjectTable,
        command: int,
        row: Row,
        partition_id: UUID,
        changes: dict[str, object] | None,
    ) -> None:
        """Ask who decides, wait, and raise what he says."""
        if self.wait is None:
            raise refusal(
                f"another server decides about this {table.type_name}",
                MqStatus.NO_DS,
                "make the change there",
            )
        with self._engine.turn() as server:
            later = server.settings.has_later_properties
            write = change_object(
                server, _wanted(table, command, row, partition_id, changes, later=later)
            )
        self._engine.tell_carrier()
        if write.status is None:
            self.wait(write)
        _check(table, row, write.status)


def _is_own(server: Server, partition_id: UUID) -> bool:
    partition = server.state.partitions.get(partition_id)
    return partition is not None and server.owns(partition)


def _wanted(
    table: ObjectTable,
    command: int,
    row: Row,
    partition_id: UUID,
    changes: dict[str, object] | None,
    *,
    later: bool,
) -> RequestedChange:
    properties: Properties
    if command == DELETE:
        scope = row.get("scope", QueueScope.ENTERPRISE)
        assert isinstance(scope, int)
        properties = deletion_properties(int(scope), table.code)
    else:
        properties = properties_for(table, row, later=later, names=changes)
    identifier, path = row["identifier"], PATHS.get(table.code)
    assert isinstance(identifier, UUID)
    name: Identifier = identifier.bytes_le if path is None else str(row[path])
    return RequestedChange(command, name, partition_id, properties)


def _check(table: ObjectTable, row: Row, status: int | None) -> None:
    """The refusal that a status stands for."""
    identifier = row["identifier"]
    match status:
        case 0:
            return
        case MqStatus.MQDS_OBJECT_NOT_FOUND:
            raise not_found(table.type_name, equals("identifier", identifier))
        case MqStatus.QUEUE_EXISTS:
            raise already_exists(table.type_name, identifier)
        case None | MqStatus.MQDS_NO_RSP_FROM_OWNER:
            raise DirectoryRefusedError(
                DirectoryResult.DIRECTORY_NOT_CONNECTED,
                "the server that decides did not answer in time",
                hint="the change may have been made all the same: look before you repeat it",
            )
        case MqStatus.MQDS_OWNER_NOT_REACHED:
            raise DirectoryRefusedError(
                DirectoryResult.DIRECTORY_NOT_CONNECTED,
                "the server that decides cannot be reached",
                hint="look before you repeat it: the request may have come there all the same",
            )
        case _:
            code = int(status)
            known = MqStatus(code) if code in list(MqStatus) else MqStatus.DS_ERROR
            raise refusal(f"the server that decides refused: {code:#010x}", known)
