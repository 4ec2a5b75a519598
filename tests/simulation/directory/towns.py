"""Small enterprises in which nothing goes wrong by itself."""

from __future__ import annotations

from falconmq.directory.replication.settings import ReplicationSettings
from falconmq.simulation.directory.enterprise import Enterprise
from falconmq.simulation.directory.server import DirectoryServer
from falconmq.simulation.world import World


def town(*bsc_counts: int) -> Enterprise:
    """One site for each number of BSCs, all in step."""
    enterprise = Enterprise(
        World(1, keep_all=True),
        ReplicationSettings(hello_seconds=100.0, sync_resend_seconds=60.0),
    )
    enterprise.begin(list(bsc_counts))
    wait(enterprise, 300.0)
    return enterprise


def wait(enterprise: Enterprise, seconds: float) -> None:
    enterprise.world.run_until(enterprise.world.now + seconds)


def bsc_of(enterprise: Enterprise, psc: DirectoryServer) -> DirectoryServer:
    return enterprise.bscs(psc.site)[0]
