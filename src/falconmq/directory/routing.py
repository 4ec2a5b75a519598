"""The ways of an enterprise: what the transport asks, answered from the directory (MQBR).

`DirectoryRouter` reads the map of the enterprise when it starts and every hour, and decides by it
alone (`routing_choice`). It answers from memory: a directory that is away changes nothing but that
news comes later. What it has to ask for, the owner of a public queue, it remembers.

Who has a loop to keep going reads the map beside it: `ask_refresh` is told that it is time, and the
answer comes back with `use` or `fail`, in a turn. Without it the map is read at once. In the same
way the owner of a queue is asked for in a thread, and `answered` called when he is known: until
then nobody is.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final
from uuid import UUID

from falconmq.directory.cached import CachedDirectory
from falconmq.directory.routing_choice import (
    DEFAULT_OPTIONS,
    Route,
    RoutingOptions,
    choose_route,
    trace_route,
)
from falconmq.directory.routing_explaining import explain, find_faults
from falconmq.directory.routing_map import RoutingMap
from falconmq.directory.routing_reading import read_routing_map
from falconmq.errors import DirectoryError
from falconmq.manager.connectors import create_connector_queues
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.directory import QUEUE, QUEUE_MANAGER, read_directory
from falconmq.manager.directory_backend import NO_ROW, Filters, equals
from falconmq.manager.directory_objects import Row
from falconmq.manager.next_hops import Destination, NextHopName, direct_destination
from falconmq.manager.states import DirectoryResult
from falconmq.names import (
    ConnectorFormatName,
    DirectFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)

QUERY_TIMER_SECONDS: Final = 3600.0  # QueueManager Query Timer, MQBR 3.1.2.1
RETRY_SECONDS: Final = 60.0  # after a failure, and between looks for somebody unknown
OWNER_SECONDS: Final = 3600.0  # how long the owner of a public queue is not asked for again
_OWNERS_MAX: Final = 10_000
_NOT_YET: Final = DirectoryResult.DIRECTORY_NOT_CONNECTED, NO_ROW

_log = logging.getLogger("falconmq.directory")


class DirectoryRouter:
    """A `Router` of the transport, over the directory of a queue manager.

    `hosts` says where queue managers are whose names in the directory nobody can resolve.
    """

    def __init__(
        self,
        core: QueueManagerCore,
        options: RoutingOptions = DEFAULT_OPTIONS,
        hosts: Mapping[UUID, str] = MappingProxyType({}),
        *,
        query_seconds: float = QUERY_TIMER_SECONDS,
    ) -> None:
        self.core = core
        self.options = options
        self.hosts = hosts
        self.map = RoutingMap()
        self.faults: list[str] = []  # of the map, for an administrator
        self.problem = ""  # why the map could not be read last time
        self.read_at: float | None = None  # when the directory gave this map; seconds since 1970
        self.ask_refresh: Callable[[], None] | None = None  # None: it is read at once
        self.answered: Callable[[], None] | None = None  # in any thread; None: we wait for answers
        self._query_seconds = query_seconds
        self._is_started = False
        self._timer = 0  # the number of the QueueManager Query Timer that counts
        self._looked_at: float | None = None  # for somebody unknown
        self._owners: OrderedDict[UUID, tuple[UUID, float]] = OrderedDict()

    def start(self) -> None:
        """Read the map, and read it again and again (QueueManager Query Timer, MQBR 3.1.6.1)."""
        self._is_started = True
        self._arm(RETRY_SECONDS)  # until the answer to this question sets another time
        self._ask()

    def stop(self) -> None:
        """Ask no more; what is known stays."""
        self._is_started = False
        self._timer += 1

    def refresh(self) -> bool:
        """Read the map now; if that cannot be, the old one stays. Whether it could be read."""
        try:
            found = self.read()
        except DirectoryError as error:
            self.fail(str(error))
            return False
        self.use(found)
        return True

    def read(self) -> RoutingMap:
        """The map as the directory has it now, for a host to read beside its loop."""
        return read_routing_map(self.core.directory, foreign_penalty=self.options.foreign_penalty)

    def use(self, found: RoutingMap, read_at: float | None = None) -> None:
        """Decide by this map from now on; in a turn.

        `read_at` is for one that was kept: it is better than none, and soon asked for again.
        """
        before, self.faults = set(self.faults), find_faults(found)
        for fault in self.faults:
            if fault not in before:  # each once, not every hour
                _log.warning("routing map has a fault: %s", fault)
        self.map = found
        self.read_at = self.core.clock.time() if read_at is None else read_at
        if read_at is None:
            self.problem = ""
            self._arm(self._query_seconds)
        create_connector_queues(self.core, found.connector_sites(self.core.identifier))

    def fail(self, problem: str) -> None:
        """The map could not be read: the old one stays, and is asked for again soon."""
        self.problem = problem
        _log.warning("routing map not read, the old one stays problem=%s", problem)
        self._arm(RETRY_SECONDS)

    def _ask(self) -> None:
        if self.ask_refresh is None:
            self.refresh()
        else:
            self.ask_refresh()

    def _arm(self, seconds: float) -> None:
        if self._is_started:
            self._timer += 1
            self.core.timers.after(self._now, seconds, partial(self._query, self._timer))

    def _query(self, number: int) -> None:
        if number == self._timer:  # else another one counts
            self.start()

    # What the transport asks

    def get_destination_info(self, name: SingleFormatName) -> Destination | None:
        """Get Destination Info, MQQB 3.1.7.4; None if nobody knows."""
        match name:
            case DirectFormatName():
                return direct_destination(name)
            case PrivateFormatName():
                return Destination("", name.computer)
            case PublicFormatName():
                return self._public_destination(name.queue)
            case ConnectorFormatName():
                return self._public_destination(name.connector)
            case _:
                return None

    def get_next_hops(self, queue_manager: UUID) -> Sequence[NextHopName]:
        """Get Next Hops, MQQB 3.1.7.5, the best first; none if there is no way."""
        hops = self.route_to(queue_manager).hops  # QB-3.1.7.5-02
        hosts = [(hop, self._host_of(hop)) for hop in hops]
        return [NextHopName(hop, host) for hop, host in hosts if host]  # QB-3.1.7.5-03

    def connector_site(self, queue_manager: UUID) -> UUID | None:
        """The foreign site whose connector queue here takes messages for a queue manager."""
        return self.route_to(queue_manager).connector

    def is_foreign(self, queue_manager: UUID) -> bool:
        """Whether a connector acknowledges messages for a queue manager in its place."""
        machine = self.map.machines.get(queue_manager)
        return machine is not None and self.map.is_foreign(machine)

    def is_asked(self, name: SingleFormatName) -> bool:
        """Whether the directory is being asked for a public queue that nobody has heard of yet."""
        if not isinstance(name, PublicFormatName) or name.queue in self.core.public:
            return False
        return self._ask_for(QUEUE, equals("identifier", name.queue)) is None

    # What people ask

    def route_to(self, queue_manager: UUID) -> Route:
        """The next step to a queue manager, with its reason."""
        if queue_manager not in self.map.machines:
            self._look_again()
        return choose_route(self.map, self.core.identifier, queue_manager, self.options)

    def explain(self, queue_manager: UUID) -> str:
        """Why messages for a queue manager go where they go, for `falconmq why`."""
        reason = explain(self.map, self.route_to(queue_manager))
        if self.problem:
            return f"{reason} The directory could not be read: {self.problem}."
        return reason

    def name_of(self, queue_manager: UUID) -> str:
        """What people call a queue manager; its GUID if the map does not know it."""
        machine = self.map.machines.get(queue_manager)
        return str(queue_manager) if machine is None else machine.computer_name

    def remembered_owner(self, name: SingleFormatName) -> UUID | None:
        """Which queue manager has a queue, as far as that is known without asking anybody."""
        if isinstance(name, PrivateFormatName):
            return name.computer
        if not isinstance(name, PublicFormatName):
            return None
        if name.queue in self.core.public:
            return self.core.identifier
        known = self._owners.get(name.queue)
        return None if known is None else known[0]

    def trace(self, queue_manager: UUID) -> list[Route]:
        """The whole way, as this map has it."""
        return trace_route(self.map, self.core.identifier, queue_manager, self.options)

    def _public_destination(self, queue: UUID) -> Destination | None:
        """The owner of a queue in the directory, not the queue itself (QB-3.1.7.4-03 to -05)."""
        owner = self._owner_of(queue)
        return None if owner is None else Destination(self._host_of(owner), owner)

    def _look_again(self) -> None:
        """Somebody unknown may be new. Invented names cost the directory one reading a minute."""
        if self._looked_at is None or self._now >= self._looked_at + RETRY_SECONDS:
            self._looked_at = self._now
            self._ask()

    def _host_of(self, queue_manager: UUID) -> str:
        machine = self.map.machines.get(queue_manager)
        return self.hosts.get(queue_manager) or ("" if machine is None else machine.host_name)

    def _owner_of(self, queue: UUID) -> UUID | None:
        """The queue manager that has a public queue: its parent in the directory (guide 8.5)."""
        if queue in self.core.public:
            return self.core.identifier
        known = self._owners.get(queue)
        if known is not None and self._now < known[1] + OWNER_SECONDS:
            return known[0]
        before = None if known is None else known[0]
        answer = self._ask_for(QUEUE, equals("identifier", queue))
        if answer is None:
            return before  # the best we know until there is an answer
        result, row = answer
        if result is not DirectoryResult.SUCCESS:
            if self.core.is_directory_offline and before is not None:
                return before  # or until the directory is back
            self._owners.pop(queue, None)
            return None
        owner = row.get("queue_manager_identifier")
        if not isinstance(owner, UUID):
            owner = self._find_computer(str(row.get("computer_name", "")))
        if owner is not None:
            self._remember(queue, owner)
        return owner

    def _find_computer(self, name: str) -> UUID | None:
        result, row = self._ask_for(QUEUE_MANAGER, equals("computer_name", name)) or _NOT_YET
        found = row.get("identifier") if result is DirectoryResult.SUCCESS else None
        return found if isinstance(found, UUID) else None

    def _ask_for(self, type_name: str, filters: Filters) -> tuple[DirectoryResult, Row] | None:
        """What the directory says; None: a thread asks it now, and nobody waits for it here."""
        core, directory = self.core, self.core.directory
        may_come_again = self.answered is not None and not core.is_directory_offline
        if may_come_again and isinstance(directory, CachedDirectory):
            answer = directory.known(type_name, filters)
            if answer is None:
                directory.ask_beside(type_name, filters, self._tell)
                return None
            if answer[0] is not DirectoryResult.DIRECTORY_NOT_CONNECTED:
                return answer
        return read_directory(core, type_name, filters)

    def _tell(self) -> None:
        """There is an answer, or none to be had; any thread."""
        if self.answered is not None:
            self.answered()

    def _remember(self, queue: UUID, owner: UUID) -> None:
        self._owners[queue] = owner, self._now
        self._owners.move_to_end(queue)
        if len(self._owners) > _OWNERS_MAX:
            self._owners.popitem(last=False)

    @property
    def _now(self) -> float:
        return self.core.clock.monotonic()
