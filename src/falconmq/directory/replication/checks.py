"""Who may say what (A-33): a server believes what its authority signed, and nobody about itself.

The carrier verifies the signature and tells the GUID of the queue manager that made it; here that
becomes a computer name, by the directory, or by what setup vouched for before there was one.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from falconmq.directory.replication.properties import OBJECT_TABLES
from falconmq.directory.replication.server import Server
from falconmq.directory.replication.state import Partition
from falconmq.manager.states import DirectoryServerType
from falconmq.wire.property_ids import ObjectType


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who sent a message. `is_anybody`: nobody verified it, and the settings believe it anyway."""

    name: str = ""
    is_server: bool = False
    is_anybody: bool = False

    def is_named(self, machine_name: str) -> bool:
        if self.is_anybody:
            return True
        return bool(self.name) and self.name.lower() == machine_name.lower()


def speaker_of(server: Server, sender: UUID | None) -> Speaker:
    """The server behind a verified GUID; one without a name where nobody knows it."""
    if sender is None:
        return Speaker(is_anybody=not server.settings.requires_sender)
    row = server.objects.get(OBJECT_TABLES[ObjectType.MQDS_MACHINE], sender)
    if row is None:
        name = server.identity.trusted.get(sender, "")
        return Speaker(name, is_server=bool(name))
    name = str(row["computer_name"])
    is_server = row["server_type"] != DirectoryServerType.STANDALONE
    return Speaker(name, is_server or sender in server.identity.trusted)


def may_tell(server: Server, partition: Partition, speaker: Speaker) -> bool:
    """Whether a partition follows what a server says: not an own one, and only its source.

    Or somebody who was asked for what a dead source may have told him (`taking_over`).
    """
    if server.owns(partition):
        return False
    asked = server.asked_around.get(partition.partition_id)
    if asked is not None and asked.has(speaker.name):
        return True
    return speaker.is_named(server.source_of(partition))


def may_request(server: Server, speaker: Speaker) -> bool:
    """Whether a server may ask for changes: it must be one of us, since it checked for whom."""
    if speaker.is_anybody or speaker.is_server:
        return True
    if server.state.neighbour_named(speaker.name) is not None:
        return True
    return any(speaker.is_named(known.authority_name) for known in server.state.partitions.values())
