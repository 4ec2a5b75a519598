"""Messages as other servers send them, in few words."""

from __future__ import annotations

from uuid import UUID

from falconmq.wire.directory_change import CREATE, DELETE, DirectoryChange
from falconmq.wire.replication_messages import (
    AlreadyPurgedMessage,
    ChangePropagationMessage,
    PSCAckMessage,
    SyncReplyMessage,
    SyncRequestMessage,
)
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from falconmq.wire.sequence_number import MAX_SEQ_NUMBER
from tests.directory.replication.estates import ENTERPRISE, SITES, Estate, Node, begin_enterprise

SITE = SITES[0].bytes_le


def network(number: int) -> UUID:
    return UUID(int=0xC0000 + number)


def made(number: int, previous: int | None = None, purged: int | None = None) -> DirectoryChange:
    """A connected network was made at the PEC: the change with this number."""
    return DirectoryChange(
        CREATE,
        f"net{number}",
        ENTERPRISE.bytes_le,
        number - 1 if previous is None else previous,
        number,
        number if purged is None else purged,
        [(503, network(number).bytes_le), (502, f"net{number}"), (501, 1), (1501, b"")],
    )


def deleted(number: int, which: int, partition: UUID = ENTERPRISE) -> DirectoryChange:
    """The network that a change made is deleted by another one."""
    return DirectoryChange(
        DELETE,
        network(which).bytes_le,
        partition.bytes_le,
        number - 1,
        number,
        number,
        [(1403, 1), (1404, 5)],
    )


def propagation(
    *changes: DirectoryChange, hello: SeqNumberHeader | None = None, flush: bool = False
) -> ChangePropagationMessage:
    return ChangePropagationMessage(SITE, list(changes), hello or SeqNumberHeader(), flush)


def hello(
    last: int, purged: int = 0, *, of: UUID = ENTERPRISE, name: str = "PEC0"
) -> ChangePropagationMessage:
    numbers = PartitionSeqNumbers(of.bytes_le, last, purged)
    return propagation(hello=SeqNumberHeader(name, [numbers]))


def reply(
    first: int,
    last: int,
    *changes: DirectoryChange,
    purged: int = 0,
    complete: int = 0,
    of: UUID = ENTERPRISE,
) -> SyncReplyMessage:
    return SyncReplyMessage(SITE, of.bytes_le, first, last, purged, complete, list(changes))


def asked(
    first: int,
    last: int = MAX_SEQ_NUMBER,
    *,
    of: UUID = ENTERPRISE,
    purged: int = 0,
    is_sync0: bool = False,
    scope: int = 1,
    name: str = "PSC1",
) -> SyncRequestMessage:
    return SyncRequestMessage(
        SITES[1].bytes_le, of.bytes_le, first, last, purged, is_sync0, scope, name
    )


def already_purged(purged: int, of: UUID = ENTERPRISE) -> AlreadyPurgedMessage:
    return AlreadyPurgedMessage(SITE, of.bytes_le, purged)


def acked(number: int, *, by: str = "PSC1", of: UUID = ENTERPRISE) -> PSCAckMessage:
    site = SITES[int(by[3])].bytes_le
    return PSCAckMessage(site, site, of.bytes_le, number, by)


def replica(last: int = 7, name: str = "PSC1") -> Node:
    """A PSC whose copy of the enterprise is at a number and in step; nobody else is there."""
    estate = Estate("PEC0", name)
    begin_enterprise(estate["PEC0"].start(), 0, int(name[3]))
    node = estate[name].start()
    estate.settle()
    estate.off.add("PEC0")
    estate.nodes = {name: node}
    put_last(node, ENTERPRISE, last)
    node.sent.clear()
    return node


def backup(last: int = 7) -> Node:
    """A BSC of site 0 that has everything up to a number; nobody else is there."""
    estate = Estate("PEC0", "BSC01")
    begin_enterprise(estate["PEC0"].start(), 0, 1)
    node = estate["BSC01"].start()
    estate.settle()
    estate.nodes = {"BSC01": node}
    put_last(node, ENTERPRISE, last)
    node.sent.clear()
    return node


def authority() -> Node:
    """A PEC with its own site and that of PSC1; nobody else is there."""
    node = Estate("PEC0")["PEC0"].start()
    begin_enterprise(node, 0, 1)
    node.sent.clear()
    return node


def put_last(node: Node, partition: UUID, last: int, **more: int) -> None:
    """Let a partition be at a number, as if all that happened."""
    with node.engine.turn() as server:
        known = server.state.partitions[partition]
        known.last = last
        for name, value in more.items():
            setattr(known, name, value)
