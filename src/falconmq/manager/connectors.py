"""Connector queues: where messages for a foreign system wait for the program that takes them there.

A foreign site stands for another messaging system. A queue manager that belongs to such a site is a
connector: what is sent to the foreign queue managers of the site ends in one of two queues here,
CONNECTOR=site or, for transactional messages, CONNECTOR=site;XACTONLY. Each message keeps its
destination, so that the program that reads it knows where it is to go.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.creation import create_connector_queue
from falconmq.manager.model import Queue
from falconmq.names import ConnectorFormatName


def connector_queue(core: QueueManagerCore, site: UUID, *, transactional: bool) -> Queue:
    """The queue of a foreign site for messages of this kind; it is made if it is not there."""
    name = ConnectorFormatName(site, transactional)
    return core.connectors.get(name) or create_connector_queue(core, name)


def create_connector_queues(core: QueueManagerCore, sites: Iterable[UUID]) -> None:
    """Have both queues of each foreign site, so that a connector can wait for the first message.

    Those of sites that we have left stay: there may be messages in them.
    """
    for site in sites:
        for transactional in (False, True):
            connector_queue(core, site, transactional=transactional)
