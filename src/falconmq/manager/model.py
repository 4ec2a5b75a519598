"""The things a queue manager knows (MQDMPR 3.1.1, 3.2.1): queues, transactions, descriptors.

Entities have identity, not equality. What survives a restart is written by `persistence`; the rest
is volatile, as the tables of the specification say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from falconmq.errors import MqStatus
from falconmq.manager.directory_objects import NULL_UUID as NULL_UUID  # noqa: PLC0414
from falconmq.manager.directory_objects import UNLIMITED as UNLIMITED  # noqa: PLC0414
from falconmq.manager.directory_objects import check_identifier
from falconmq.manager.positions import START, Fetch, MessagePosition, PositionList
from falconmq.manager.states import (
    AccessType,
    ConnectionStatus,
    CursorState,
    OperationType,
    OutgoingState,
    QueuePrivacy,
    QueueScope,
    QueueType,
    RemoteReadState,
    ShareMode,
)
from falconmq.names import (
    DirectFormatName,
    FormatName,
    MulticastFormatName,
    PathName,
    SingleFormatName,
)
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sequence_info import SequenceInfo


@dataclass(slots=True, eq=False)
class QueueProperties:
    """What a creator chooses and an administrator may change."""

    label: str = ""
    type: UUID = NULL_UUID
    journaling: bool = False
    quota_kilobytes: int = UNLIMITED
    journal_quota_kilobytes: int = UNLIMITED
    authentication: bool = False
    privacy_level: QueuePrivacy = QueuePrivacy.OPTIONAL
    transactional: bool = False  # the creator's choice alone
    multicast_address: str | None = None
    security: SecurityDescriptor | None = None  # None until the defaults are filled in
    base_priority: int = 0


class Queue:
    """A queue of this queue manager (MQDMPR 3.1.1.2).

    `number` is ours: the key of the queue in the store, never given again.
    """

    keeps_arrivals = True  # its messages can be found by their arrival numbers

    def __init__(
        self,
        number: int,
        path_name: PathName,
        queue_type: QueueType,
        properties: QueueProperties,
        fetch: Fetch,
    ) -> None:
        self.number = number
        self.path_name = path_name
        self.queue_type = queue_type
        self.properties = properties
        self._identifier = NULL_UUID
        self.private_queue_number = 0
        self.create_time = 0
        self.modify_time = 0
        self.qualified_path_name = ""
        self.scope = QueueScope.ENTERPRISE
        self.full_path = ""
        self.directory_path = ""
        self.journal: Queue | None = None
        self.parent: Queue | None = None  # of a subqueue, or of a journal
        self.subqueues: dict[str, Queue] = {}  # by name in capitals
        self.is_deleted = False
        self.is_internal = False  # applications may not open it, DM-3.1.3-44
        self.expired: set[int] = set()  # their time ran out while somebody held them, DM-A31
        self.arrival_number = 0  # of the message that became readable last
        self.arrival_watchers: list[Callable[[], None]] = []  # called inside the turn: be short
        self.moved_in = 0  # messages that came from a relative, with their lookup identifiers
        # What `access` found last for senders that nobody knows: of which descriptor, for whom.
        self.anonymous_access: tuple[SecurityDescriptor | None, object, bool] | None = None
        self.positions = PositionList(self, fetch)
        self.descriptors: list[OpenQueueDescriptor] = []
        self.waiting: deque[WaitingRead] = deque()  # over all descriptors, first come first served
        self.incoming_transfers: list[IncomingTransactionalTransferInfo] = []

    @property
    def identifier(self) -> UUID:
        """The GUID of the queue, given once (DM-3.1.1-07)."""
        return self._identifier

    @identifier.setter
    def identifier(self, identifier: UUID) -> None:
        self._identifier = check_identifier(self._identifier, identifier)

    def begin_anew(self, identifier: UUID) -> None:
        """Be another object, of the next directory: that of the former one is no more."""
        self._identifier = identifier

    @property
    def is_active(self) -> bool:
        """Somebody has it open, or messages wait for transfer (MQDMPR 3.1.1.2)."""
        return bool(self.descriptors)

    @property
    def total_bytes(self) -> int:
        return self.positions.total_bytes


class OutgoingQueue(Queue):
    """Messages on their way to a queue of another queue manager (MQDMPR 3.1.1.3)."""

    keeps_arrivals = False

    def __init__(
        self, number: int, destination: SingleFormatName, properties: QueueProperties, fetch: Fetch
    ) -> None:
        path_name = PathName.parse(f".\\outgoing{number}")
        super().__init__(number, path_name, QueueType.SYSTEM, properties, fetch)
        self.destination = destination
        self.next_hops: list[str] | None = None
        self.is_multicast = isinstance(destination, MulticastFormatName)
        # Whether its messages go over HTTP, the one way that hardened mode leaves open.
        self.is_http = isinstance(destination, DirectFormatName) and destination.protocol.is_url
        self.transfer_info = OutgoingTransferInfo()
        self.state = OutgoingState.INACTIVE
        self.connection_history: list[ConnectionAttempt] = []
        self.connection_failures = 0  # since the start; the history forgets

    @property
    def is_active(self) -> bool:
        return bool(self.descriptors) or len(self.positions) > 0


@dataclass(frozen=True, slots=True)
class ConnectionAttempt:
    """One line of what operators read when a queue does not move."""

    status: ConnectionStatus
    time: float
    error: MqStatus
    addresses: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class OutgoingTransferInfo:
    """How far a transactional stream to one destination is; the transport's (MQDMPR 3.1.1.4)."""

    first_non_ack: SequenceInfo | None = None
    last_ack: SequenceInfo | None = None
    last_ack_count: int = 0
    last_ack_time: float = 0.0
    last_non_ack: SequenceInfo | None = None
    next_sequence: SequenceInfo | None = None
    no_ack_count: int = 0
    no_read_count: int = 0
    resend_count: int = 0
    resend_interval_seconds: float = 0.0
    resend_time: float = 0.0


@dataclass(slots=True, eq=False)
class IncomingTransactionalTransferInfo:
    """How far a transactional stream into one queue is; the transport's (MQDMPR 3.1.1.5)."""

    format_name: str
    sender: UUID
    sequence_id: int = 0
    sequence_number: int = 0
    last_access_time: float = 0.0
    reject_count: int = 0


@dataclass(slots=True, eq=False)
class TransactionalOperation:
    """One step of a transaction, done for good by its commit (MQDMPR 3.1.1.14)."""

    kind: OperationType
    position: MessagePosition
    target: Queue | None = None  # of a move
    reason: int = 0  # message class, of a dequeue


@dataclass(slots=True, eq=False)
class Transaction:
    """Operations that become true together (MQDMPR 3.1.1.13)."""

    identifier: UUID
    single_phase: bool = True  # False: an external coordinator decides (DM-A30)
    operations: deque[TransactionalOperation] = field(default_factory=deque)
    is_prepared: bool = False
    wire_id: int = 0  # the 20 bits of the packet, DM-A32


@dataclass(slots=True, eq=False)
class OpenQueueDescriptor:
    """A queue as somebody opened it (MQDMPR 3.1.1.16)."""

    handle: int
    context_value: int
    access: AccessType
    share: ShareMode
    format_name: FormatName
    queue: Queue | None  # None: Multiple, or the queue was deleted
    is_multiple: bool = False
    children: list[OpenQueueDescriptor] = field(default_factory=list)
    remote_read_state: RemoteReadState = RemoteReadState.NONE
    cursors: list[Cursor] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Cursor:
    """A place in a queue that a reader walks along (MQDMPR 3.1.1.17, 3.2.1)."""

    handle: int
    descriptor: OpenQueueDescriptor
    position: int = START  # a lookup identifier, START or END
    state: CursorState = CursorState.UNREAD


@dataclass(slots=True, eq=False)
class ReadResult:
    """How a read ended. The message may be handed out when the event's batch is durable."""

    status: MqStatus
    position: MessagePosition | None = None


@dataclass(slots=True, eq=False)
class WaitingRead:
    """A read that waits for a message (WaitingMessageReadOperation, MQDMPR 3.1.1.16).

    The core sets `result` when it ends; whoever waits for it is told by the `Woken` list of the
    core, so that it can wait for the batch that covers the end.
    """

    descriptor: OpenQueueDescriptor
    is_destructive: bool
    complete: Callable[[MessagePosition], ReadResult]  # what to do with the message that came
    failed: Callable[[], None]  # what to do with a cursor when the wait ends without one
    deadline: float | None = None  # of the monotonic clock; None: for ever
    tag: object = None
    cursor: Cursor | None = None
    result: ReadResult | None = None
