"""All ways that the service knows: those of the configuration first, then those of the directory.

What an administrator wrote into [[computers]] and [[routes]] holds, whatever the directory says;
everything else the directory answers. Its queue managers are at the hosts that it publishes for
them, unless the configuration knows a better address.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from falconmq.directory.routing import DirectoryRouter
from falconmq.names import SingleFormatName
from falconmq.transport.routing import Destination, NextHopName, StaticRouter


class Ways:
    """A `Router` of the transport."""

    def __init__(self, table: StaticRouter, directory: DirectoryRouter | None) -> None:
        self.table = table
        self.directory = directory
        if directory is not None:
            directory.hosts = table.hosts

    def get_destination_info(self, name: SingleFormatName) -> Destination | None:
        """Get Destination Info, MQQB 3.1.7.4; None if nobody knows."""
        found = self.table.get_destination_info(name)
        if found is not None or self.directory is None:
            return found
        return self.directory.get_destination_info(name)

    def get_next_hops(self, queue_manager: UUID) -> Sequence[NextHopName]:
        """Get Next Hops, MQQB 3.1.7.5, the best first; none if there is no way."""
        hops = self.table.get_next_hops(queue_manager)
        if hops or self.directory is None:
            return hops
        return self.directory.get_next_hops(queue_manager)

    def connector_site(self, queue_manager: UUID) -> UUID | None:
        """The foreign site whose connector queue here takes messages for a queue manager."""
        if self.directory is None or self.table.get_next_hops(queue_manager):
            return None
        return self.directory.connector_site(queue_manager)

    def is_foreign(self, queue_manager: UUID) -> bool:
        """Whether a connector acknowledges messages for a queue manager in its place."""
        return self.directory is not None and self.directory.is_foreign(queue_manager)

    def is_asked(self, name: SingleFormatName) -> bool:
        """Whether the directory is being asked for a queue."""
        return self.directory is not None and self.directory.is_asked(name)
