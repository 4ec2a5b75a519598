"""The state of one queue manager, and what the events of its other modules share.

How to think about it. Nothing here waits, sleeps, draws a lot or touches a disk. An event is a
plain function: it changes the state in memory, adds to `batch` what the store must know, and
returns. Whoever runs the core (the embedded API, the service, the simulator) calls one event at a
time, takes the batch with `take_batch`, commits it, and only then tells anyone that it is done.
Batches commit in the order they were taken: what a reader saw in memory was written by an earlier
batch or by the same, so nothing is ever handed out that a crash could make untrue.

If a commit fails, `lifecycle.restore` brings the memory back to what the store has.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from falconmq.clock import Clock
from falconmq.errors import MqStatus, StoreError, WireError
from falconmq.manager.directory_backend import DirectoryBackend, NoDirectory
from falconmq.manager.directory_objects import (
    INITIALIZATION_RETRY_SECONDS,
    DirectoryObject,
    Enterprise,
    QueueManager,
    Site,
)
from falconmq.manager.events import EventLog
from falconmq.manager.model import (
    NULL_UUID,
    UNLIMITED,
    Cursor,
    OpenQueueDescriptor,
    OutgoingQueue,
    Queue,
    Transaction,
    WaitingRead,
)
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import ChangeOperation, ManagerState
from falconmq.names import ConnectorFormatName, PathName, SingleFormatName
from falconmq.store.interface import StoreReader, WriteBatch
from falconmq.wire.sid import Sid

if TYPE_CHECKING:
    from falconmq.manager.access import Principal
    from falconmq.manager.dispatch import DispatchCollection
    from falconmq.security.keys import ManagerKeys
    from falconmq.security.signing_keys import SigningKeys

KILOBYTE: Final = 1024
ORDINAL_MAX: Final = 0xFFFFFFFF  # a message identifier has 32 bits of the counter
RESERVED_NUMBERS: Final = 4096  # numbers of a counter that one write of the store reserves

MessagePositionAvailable = Callable[[Queue, MessagePosition], None]
MessagePositionDeleted = Callable[[Queue, MessagePosition, int], None]
ChangeNotifier = Callable[[ChangeOperation, Queue | DirectoryObject], None]


class OutgoingAgent(Protocol):
    """Who carries messages to other queue managers, and so knows how far each of them is."""

    def number(self, queue: OutgoingQueue, position: MessagePosition) -> None:
        """A transactional message of ours can be sent: give it its place in the stream."""
        ...

    def has_arrived(self, queue: OutgoingQueue, lookup_id: int) -> bool:
        """Whether the message reached its queue, and waits here for the news of its reading."""
        ...


@dataclass(slots=True)
class Settings:
    """What an administrator may set; the defaults are the safe ones."""

    computer_name: str
    qualified_computer_name: str = ""
    local_names: frozenset[str] = frozenset()  # other names and addresses of this computer
    quota_kilobytes: int = 0x00100000  # 1 GiB for all queues, DM-A04
    journal_quota_kilobytes: int = UNLIMITED
    hardened_security: bool = False
    default_time_to_reach_queue: int = 345600
    # What a Windows host asks its LSA (DM-A52), and what an installer asks its user.
    domain_name: str = ""
    domain_identifier: UUID = NULL_UUID
    site_identifier: UUID | None = None
    owner: Sid | None = None  # of queues that are created without one; None: anonymous
    owner_is_domain_user: bool = False
    srmp_support: bool = False
    access_control: bool = True  # whether security descriptors are obeyed
    everyone_includes_anonymous: bool = True  # QB-A18-01
    weak_algorithms: frozenset[str] = frozenset()  # peers that may get weak signatures; folded
    encrypt_direct: bool = True  # whether private messages to direct names can go out at all
    directory_sites_update_seconds: float = 43_200  # DM-3.1.2.1-02
    directory_site_gates_update_seconds: float = 3_600  # DM-3.1.2.2-02
    directory_server_list_update_seconds: float = 86_400  # no specification says how often


@dataclass(slots=True)
class Counter:
    """A number that never goes back, not even in a crash: a ceiling is stored ahead of its use."""

    name: str
    value: int = 0
    ceiling: int = 0


@dataclass(slots=True)
class Timers:
    """Deadlines in order. `wall` ones follow the calendar, `monotonic` ones the stopwatch."""

    wall: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    monotonic: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    started: int = 0

    def at_time(self, deadline: float, action: Callable[[], None]) -> None:
        self.started += 1
        heapq.heappush(self.wall, (deadline, self.started, action))

    def after(self, now: float, seconds: float, action: Callable[[], None]) -> None:
        self.started += 1
        heapq.heappush(self.monotonic, (now + seconds, self.started, action))


class QueueManagerCore:
    """LocalQueueManager and everything it refers to (MQDMPR 3.1.1.1)."""

    def __init__(
        self,
        identifier: UUID,
        store: StoreReader,
        clock: Clock,
        random: Random,
        settings: Settings,
        directory: DirectoryBackend | None = None,
    ) -> None:
        self.identifier = identifier
        self.store = store
        self.clock = clock
        self.random = random
        self.settings = settings
        self.state = ManagerState.STOPPED
        self.is_throttled = False
        self.principal: Principal | None = None  # whom it works for unless told; None: its owner
        self.is_connection_active = True
        self.queues: dict[int, Queue] = {}  # QueueCollection, by number
        self.paths: dict[PathName, Queue] = {}  # with the computer "."
        self.private_numbers: dict[int, Queue] = {}
        self.public: dict[UUID, Queue] = {}
        self.connectors: dict[ConnectorFormatName, Queue] = {}
        self.outgoing: dict[SingleFormatName, OutgoingQueue] = {}
        self.refused_destinations = 0  # of peers, since the start: see `destinations`
        self.transactions: dict[UUID, Transaction] = {}
        self.descriptors: dict[int, OpenQueueDescriptor] = {}
        self.cursors: dict[int, Cursor] = {}
        self.dead_letter: Queue
        self.transactional_dead_letter: Queue
        self.journal: Queue
        self.local = QueueManager(identifier)  # LocalQueueManager as the directory knows it
        self.directory: DirectoryBackend = NoDirectory() if directory is None else directory
        self.is_directory_offline = False  # always False in a workgroup, DM-3.1.1.1-38
        self.is_directory_online_timer_active = False
        self.change_notifier: ChangeNotifier | None = None
        # Raises an event that asks the directory when the answers are at hand; None: at once.
        self.directory_beside: Callable[[Callable[[QueueManagerCore], None]], None] | None = None
        self.sites: list[Site] = []  # SiteCollection
        self.enterprise: Enterprise | None = None
        self.directory_servers: list[str] = []  # DirectoryServerList
        self.key_source: Callable[[], ManagerKeys] | None = None  # who keeps the private keys
        self.signing_keys: SigningKeys | None = None  # of users, for messages that they send
        self.machine_domain_id = NULL_UUID
        self.last_domain = NULL_UUID
        self.initialization_retry_seconds = INITIALIZATION_RETRY_SECONDS
        self.used_bytes = 0  # of all queues, against the quota
        self.batch = WriteBatch()
        self.unsettled: list[MessagePosition] = []  # in the batch being filled
        self.woken: list[WaitingRead] = []  # reads that ended since take_batch
        self.timers = Timers()
        self.dispatch: DispatchCollection | None = None  # made when the transport asks for it
        self.available_subscribers: list[MessagePositionAvailable] = []
        self.deleted_subscribers: list[MessagePositionDeleted] = []
        self.arrived_subscribers: list[MessagePositionAvailable] = []  # new in a queue of ours
        self.outgoing_agent: OutgoingAgent | None = None  # made known by the transport
        self.events: EventLog | None = None  # kept if somebody wants to know
        self._handles = 0
        self.last_wire_id = random.getrandbits(20)  # of a transaction; volatile, DM-A32
        self.sequential_id = Counter("sequential_id")
        self.message_id = Counter("message_id")
        self.queue_number = Counter("queue_number")

    def take_batch(self) -> tuple[WriteBatch, list[MessagePosition], list[WaitingRead]]:
        """What the events since the last call want stored, what it settles, and who it wakes."""
        taken = self.batch, self.unsettled, self.woken
        self.batch, self.unsettled, self.woken = WriteBatch(), [], []
        return taken

    def next_handle(self) -> int:
        self._handles += 1
        return self._handles

    def next_deadline(self) -> float | None:
        """Seconds until `run_timers` has something to do; None if nothing waits."""
        waits = []
        if self.timers.wall:
            waits.append(self.timers.wall[0][0] - self.clock.time())
        if self.timers.monotonic:
            waits.append(self.timers.monotonic[0][0] - self.clock.monotonic())
        return max(0.0, min(waits)) if waits else None

    def run_timers(self) -> None:
        """Raise the events whose time has come, in order."""
        for heap, now in (
            (self.timers.wall, self.clock.time()),
            (self.timers.monotonic, self.clock.monotonic()),
        ):
            while heap and heap[0][0] <= now:
                _, _, action = heapq.heappop(heap)
                action()

    def fetch(self, queue_number: int, lookup_id: int, decode: bool) -> StoredMessage:
        """The message that the store keeps at a place; StoreError if it cannot be read.

        Without `decode` its packet is left as it is: whoever only passes it on does not look in.
        """
        record = self.store.get("messages", message_key(queue_number, lookup_id))
        assert record is not None, "a place in memory without its message in the store"
        try:
            message = StoredMessage.decode(record)
            if decode:
                message.decode_packet()
            return message
        except WireError as error:
            raise damaged_message(self.queues.get(queue_number), lookup_id, str(error)) from error


def damaged_message(queue: Queue | None, lookup_id: int, problem: str) -> StoreError:
    """The error for a message that the store gives back in another form than it was given."""
    where = "an unknown queue" if queue is None else str(queue.path_name)
    return StoreError(
        f"message {lookup_id:#018x} of {where} cannot be read: {problem}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="nothing was changed; restore the data directory from a backup or export the rest",
    )


def message_key(queue_number: int, lookup_id: int) -> bytes:
    """The key of a message: big-endian, so that a queue's messages sort in its order."""
    return queue_number.to_bytes(8, "big") + lookup_id.to_bytes(8, "big")


def next_number(core: QueueManagerCore, counter: Counter) -> int:
    """The next number of a counter.

    A new ceiling goes into the batch when half of the reserved numbers are used: so it is durable
    long before an express message, which waits for no commit, has a number above the old one.
    """
    counter.value += 1
    if counter.value > counter.ceiling - RESERVED_NUMBERS // 2:
        reserve_numbers(core, counter)
    return counter.value


def reserve_numbers(core: QueueManagerCore, counter: Counter) -> None:
    """Let the store know of the next numbers, before anybody gets one."""
    counter.ceiling = counter.value + RESERVED_NUMBERS
    core.batch.put("meta", counter.name.encode(), counter.ceiling.to_bytes(8, "big"))


def next_message_id(core: QueueManagerCore) -> int:
    """The next ordinal of a message; never 0, which means that there is none (QB-A45)."""
    while True:
        ordinal = next_number(core, core.message_id) & ORDINAL_MAX
        if ordinal:
            return ordinal


def is_source(core: QueueManagerCore, message: StoredMessage) -> bool:
    """Whether a message was sent by an application of this queue manager."""
    return message.packet.user.source_queue_manager == core.identifier.bytes_le
