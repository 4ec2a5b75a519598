"""A service that is the primary enterprise controller; of Paris it has heard, PSC1 is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from falconmq.service.directory.replicating import Replication
from falconmq.wire.directory_change import CREATE, DirectoryChange
from falconmq.wire.replication_messages import ChangePropagationMessage
from falconmq.wire.seq_number_header import PartitionSeqNumbers, SeqNumberHeader
from tests.console.site import Site
from tests.directory.enterprises import guid
from tests.service.directory.enterprise import Directory
from tests.service.services import loopback

PARIS, PSC1, BACKUP = guid("Paris"), guid("PSC1"), guid("a backup")
_LAST_MOMENT = (1 << 31) - 1  # that a time of the directory can be
_SERVER = f"""
[directory]
kind = "embedded"
role = "pec"
domain = "example"
site = "Berlin"

[[computers]]
id = "{PSC1}"
name = "PSC1"
address = "127.9.9.9"

[hosts]
PSC1 = "{{nobody}}"
"""


@contextmanager
def given_directory_server(place: Path) -> Iterator[Directory]:
    """Berlin is ours, with a backup that never started; PSC1 has not answered about Paris."""
    more = _SERVER.format(nobody=loopback())
    with Site(place, name="PEC0", loopback_role="manage", more=more) as site:
        directory = Directory(site)
        with directory.http:
            directory.create(
                "site", name="Paris", identifier=str(PARIS), primary_site_controller="PSC1"
            )
            berlin = directory.find("site", "Berlin")["identifier"]
            directory.create(
                "queue-manager",
                computer_name="BSC01",
                identifier=str(BACKUP),
                site_identifiers=[berlin],
                server_type="BACKUP_SITE_CONTROLLER",
            )
            yield directory


def replication_of(directory: Directory) -> Replication:
    found = directory.site.service.hub.replication
    assert found is not None
    return found


def hear(directory: Directory, last: int, partition: UUID = PARIS) -> None:
    """PSC1 says how far it is; as if its message had come."""
    numbers = PartitionSeqNumbers(partition.bytes_le, last, 0)
    hello = SeqNumberHeader("PSC1", [numbers])
    message = ChangePropagationMessage(PARIS.bytes_le, [], hello)
    replication = replication_of(directory)
    replication.carrier.notes.received(message, PSC1)
    replication.replicator.receive(message, PSC1)


def given_double(directory: Directory, name: str, *, is_shown: bool, service: int = 0) -> str:
    """A queue manager of Berlin that PSC1 says is in Paris; `is_shown`: as Berlin has it.

    `service` is what PSC1 says that it is, PROPID_QM_SERVICE.
    """
    berlin = directory.find("site", "Berlin")["identifier"]
    made = directory.create("queue-manager", computer_name=name, site_identifiers=[berlin])
    time = 1 if is_shown else _LAST_MOMENT
    replicator = replication_of(directory).replicator
    known = replicator.status().partitions
    number = next(each.last for each in known if each.partition_id == PARIS) + 1
    change = DirectoryChange(
        CREATE,
        name,
        PARIS.bytes_le,
        number - 1,
        number,
        number,
        [
            (203, name),
            (201, PARIS.bytes_le),
            (202, UUID(made).bytes_le),
            (217, time),
            (210, service),
        ],
    )
    message = ChangePropagationMessage(PARIS.bytes_le, [change])
    replicator.receive(message, PSC1)
    return made
