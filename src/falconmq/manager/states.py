"""Enumerations of the data model (MQDMPR 3.1.1, 3.2.1); numbers where the documents give them."""

from __future__ import annotations

from enum import Enum, IntEnum


class QueueType(Enum):
    PRIVATE = "private"
    PUBLIC = "public"
    SYSTEM = "system"
    CONNECTOR = "connector"


class QueuePrivacy(IntEnum):
    """Which bodies a queue takes; not the levels of a message, which have other numbers."""

    NONE = 0
    OPTIONAL = 1
    BODY = 2


class QueueScope(IntEnum):
    SITE = 0
    ENTERPRISE = 1


class AccessType(IntEnum):
    RECEIVE = 0x01
    SEND = 0x02
    MOVE = 0x04
    PEEK = 0x20
    RECEIVE_ADMIN = 0x81
    PEEK_ADMIN = 0xA0


class ShareMode(IntEnum):
    DENY_NONE = 0
    DENY_RECEIVE = 1


class RemoteReadState(Enum):
    NONE = "none"
    OPENED = "opened"
    READY_FOR_READ = "ready for read"


class PositionState(Enum):
    AVAILABLE = "available"
    LOCKED = "locked"
    DELETED = "deleted"
    PURGE_PENDING = "purge pending"


class SeekAction(Enum):
    FIRST = "first"
    PREVIOUS = "previous"
    CURRENT = "current"
    NEXT = "next"
    LAST = "last"


class CursorState(Enum):
    UNREAD = "unread"
    READ = "read"
    WAIT_PEEK = "waits to peek"
    WAIT_RECEIVE = "waits to receive"


class EnqueueStatus(IntEnum):
    """How Enqueue Message ended (MQDMPR 3.1.7.1.9)."""

    OK = 0
    QUEUE_QUOTA = 1
    MANAGER_QUOTA = 2  # or throttled
    TIMED_OUT = 3  # its time to reach the queue ran out


class OperationType(Enum):
    ENQUEUE = "enqueue"
    DEQUEUE = "dequeue"
    MOVE = "move"


class OutgoingState(Enum):
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    DISCONNECTING = "disconnecting"
    INACTIVE = "inactive"
    LOCKED = "locked"
    NEED_VALIDATION = "need validation"
    WAITING = "waiting"
    ON_HOLD = "on hold"


class ConnectionStatus(Enum):
    """One entry of an outgoing queue's connection history."""

    IN_PROCESS = "in process"
    ESTABLISH_PACKET_RECEIVED = "establish packet received"
    ESTABLISHED = "established"
    UNKNOWN_FAILURE = "unknown failure"
    PING_FAILURE = "ping failure"
    SOCKET_CREATE_FAILURE = "socket create failure"
    SOCKET_BIND_FAILURE = "socket bind failure"
    SOCKET_CONNECT_FAILURE = "socket connect failure"
    TCP_NOT_ENABLED = "TCP not enabled"
    SOCKET_SEND_FAILURE = "socket send failure"
    CONNECTION_NOT_READY = "connection not ready"
    DNS_FAILURE = "DNS failure"
    CERTIFICATE_VALIDATION_FAILURE = "certificate validation failure"
    CONNECTION_LIMIT_REACHED = "connection limit reached"
    CONNECTION_REFUSED = "connection refused"
    ROUTING_DATA_NOT_AVAILABLE = "routing data not available"
    LOW_RESOURCE = "low resource"


class ManagerState(Enum):
    STOPPED = "stopped"
    INITIALIZING = "initializing"
    READY = "ready"
    STOPPING = "stopping"


class DirectoryResult(Enum):
    """How a directory operation ended (DirectoryOperationResult, MQDMPR 3.1.1.17)."""

    SUCCESS = "success"
    GENERIC_ERROR = "generic error"
    DIRECTORY_NOT_CONNECTED = "directory not connected"
    OBJECT_NOT_FOUND = "object not found"
    ATTRIBUTE_NOT_FOUND = "attribute not found"
    END_OF_DATA = "end of data"
    OBJECT_ALREADY_EXISTS = "object already exists"


class ChangeOperation(Enum):
    """What a change notification tells the other queue managers (MQCN 3.3.4.1)."""

    QUEUE_CREATION = "queue creation"
    QUEUE_UPDATE = "queue update"
    QUEUE_DELETION = "queue deletion"
    QUEUE_MANAGER_UPDATE = "queue manager update"


class OperatingSystemType(IntEnum):
    OTHER = 0x000
    FOREIGN = 0x100
    WIN95 = 0x200
    WIN_CLIENT = 0x300
    WIN_SERVER = 0x400
    WIN_ENT = 0x500


class DirectoryServerType(IntEnum):
    STANDALONE = 0
    BACKUP_SITE_CONTROLLER = 2
    PRIMARY_SITE_CONTROLLER = 4
    PRIMARY_ENTERPRISE_CONTROLLER = 8
