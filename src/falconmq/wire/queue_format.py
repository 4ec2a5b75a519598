"""QUEUE_FORMAT: how remote procedure calls name a queue (MQMQ 2.2.6 to 2.2.11).

The values and the rules between them, and the flat forms of OBJECTID, DL_ID and MULTICAST_ID; not
the marshalling of calls (NDR), which FalconMQ does not speak. `falconmq.names` turns format names
into QUEUE_FORMATs and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.guid import encode_guid
from falconmq.wire.reader import Layout, Reader, Structure, encode_utf16

FLAG_NOT_SYSTEM: Final = 0x00  # MQ-2.2.7-04
FLAG_SYSTEM: Final = 0x80
_SUFFIX_BITS: Final = 0x0F  # MQ-2.2.7-03
_FLAG_BITS: Final = 0xF0


class QueueFormatType(IntEnum):
    """QUEUE_FORMAT_TYPE (MQMQ 2.2.6)."""

    UNKNOWN = 0
    PUBLIC = 1
    PRIVATE = 2
    DIRECT = 3
    MACHINE = 4
    CONNECTOR = 5
    DL = 6
    MULTICAST = 7
    SUBQUEUE = 8


class QueueSuffixType(IntEnum):
    """QUEUE_SUFFIX_TYPE (MQMQ 2.2.11)."""

    NONE = 0
    JOURNAL = 1
    DEADLETTER = 2
    DEADXACT = 3
    XACTONLY = 4
    SUBQUEUE = 5


_OBJECTID: Final = Layout("OBJECTID", "16sI", "Lineage", "Uniquifier")
_DL_GUID: Final = Layout("DL_ID", "16s", "m_DlGuid")
_MULTICAST_ID: Final = Layout("MULTICAST_ID", "II", "m_address", "m_port")


@dataclass(slots=True)
class ObjectId(Structure):
    """OBJECTID: an object by its group and its number there (MQMQ 2.2.8); 20 bytes."""

    lineage: bytes
    uniquifier: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("OBJECTID")
        lineage, uniquifier = reader.fixed(_OBJECTID)
        reader.leave(outer)
        return cls(lineage, uniquifier)

    def encode(self) -> bytes:
        encode_guid(self.lineage, "OBJECTID", "Lineage")
        return _OBJECTID.pack(self.lineage, self.uniquifier)


@dataclass(slots=True)
class DlId(Structure):
    """DL_ID: a distribution list and its directory domain (MQMQ 2.2.9), "" for none.

    Flat, the string follows the GUID with its NUL; the specification has a pointer there.
    """

    dl_guid: bytes
    domain: str = ""

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("DL_ID")
        dl_guid = reader.guid("m_DlGuid")
        domain = reader.text("m_pwzDomain")
        reader.leave(outer)
        return cls(dl_guid, domain)

    def encode(self) -> bytes:
        encode_guid(self.dl_guid, "DL_ID", "m_DlGuid")
        _check_text("DL_ID", "m_pwzDomain", self.domain)
        return _DL_GUID.pack(self.dl_guid) + encode_utf16(self.domain) + bytes(2)


@dataclass(slots=True)
class MulticastId(Structure):
    """MULTICAST_ID: an IPv4 multicast address and a port, each a ULONG (MQMQ 2.2.10).

    The order of the address is not stated; FalconMQ takes it as an in_addr, that is the four
    bytes in memory are a, b, c, d of a.b.c.d.
    """

    address: int
    port: int

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MULTICAST_ID")
        address, port = reader.fixed(_MULTICAST_ID)
        reader.leave(outer)
        return cls(address, port)

    def encode(self) -> bytes:
        return _MULTICAST_ID.pack(self.address, self.port)


Arm = bytes | ObjectId | str | DlId | MulticastId | None

_T: Final = QueueFormatType
_ARMS: Final[dict[QueueFormatType, tuple[str, type]]] = {
    _T.UNKNOWN: ("m_qft", type(None)),  # MQ-2.2.7-21
    _T.PUBLIC: ("m_gPublicID", bytes),
    _T.PRIVATE: ("m_oPrivateID", ObjectId),
    _T.DIRECT: ("m_pDirectID", str),
    _T.MACHINE: ("m_gMachineID", bytes),
    _T.CONNECTOR: ("m_GConnectorID", bytes),
    _T.DL: ("m_DlID", DlId),
    _T.MULTICAST: ("m_MulticastID", MulticastId),
    _T.SUBQUEUE: ("m_pDirectSubqueueID", str),
}
# Which flags and types a suffix goes with. Journals of UNKNOWN and SUBQUEUE, and SUBQUEUE without
# its suffix, are not ruled out by the text but mean nothing: the guide's section 7.
_NOT_A_MACHINE: Final = frozenset(_T) - {_T.MACHINE, _T.SUBQUEUE}
_LEGAL: Final[dict[QueueSuffixType, tuple[frozenset[int], frozenset[QueueFormatType]]]] = {
    QueueSuffixType.NONE: (frozenset({FLAG_NOT_SYSTEM}), _NOT_A_MACHINE),  # MQ-2.2.7-05
    QueueSuffixType.JOURNAL: (  # MQ-2.2.7-06
        frozenset({FLAG_SYSTEM}),
        frozenset({_T.PUBLIC, _T.PRIVATE, _T.DIRECT, _T.MACHINE}),
    ),
    QueueSuffixType.DEADLETTER: (  # MQ-2.2.7-07
        frozenset({FLAG_SYSTEM}),
        frozenset({_T.DIRECT, _T.MACHINE}),
    ),
    QueueSuffixType.DEADXACT: (  # MQ-2.2.7-08
        frozenset({FLAG_SYSTEM}),
        frozenset({_T.DIRECT, _T.MACHINE}),
    ),
    QueueSuffixType.XACTONLY: (  # MQ-2.2.7-09: the flags are not stated
        frozenset({FLAG_NOT_SYSTEM, FLAG_SYSTEM}),
        frozenset({_T.CONNECTOR}),
    ),
    QueueSuffixType.SUBQUEUE: (  # MQ-2.2.7-10
        frozenset({FLAG_NOT_SYSTEM}),
        frozenset({_T.SUBQUEUE}),
    ),
}
_SYSTEM_SUFFIXES: Final = frozenset(
    {QueueSuffixType.JOURNAL, QueueSuffixType.DEADLETTER, QueueSuffixType.DEADXACT}
)


@dataclass(frozen=True, slots=True)
class QueueFormat:
    """QUEUE_FORMAT (MQMQ 2.2.7); an illegal one cannot be made: WireError names the field.

    `queue` is the arm of the union that `qft` selects: a GUID, an OBJECTID, the text of a direct
    name without "DIRECT=", a DL_ID, a MULTICAST_ID, or None for UNKNOWN.
    """

    qft: QueueFormatType
    suffix_and_flags: int
    queue: Arm
    reserved: int = 0  # sent as 0, never looked at: MQ-2.2.7-11, MQ-2.2.7-12

    @classmethod
    def make(cls, qft: QueueFormatType, suffix: QueueSuffixType, queue: Arm) -> Self:
        """Build one with the flags that belong to the suffix."""
        flags = FLAG_SYSTEM if suffix in _SYSTEM_SUFFIXES else FLAG_NOT_SYSTEM
        return cls(qft, suffix | flags, queue)

    def __post_init__(self) -> None:
        if self.qft not in _ARMS:  # MQ-2.2.7-02
            raise WireError("QUEUE_FORMAT", "m_qft", f"{self.qft} is not in 0..8")
        object.__setattr__(self, "qft", QueueFormatType(self.qft))
        self._check_suffix_and_flags()
        self._check_arm()

    @property
    def suffix(self) -> QueueSuffixType:
        return QueueSuffixType(self.suffix_and_flags & _SUFFIX_BITS)

    @property
    def flags(self) -> int:
        return self.suffix_and_flags & _FLAG_BITS

    @property
    def arm(self) -> str:
        """The specification's name of the union member in use."""
        return _ARMS[self.qft][0]

    def _check_suffix_and_flags(self) -> None:
        value = self.suffix_and_flags
        if not 0 <= value <= 0xFF:
            raise WireError("QUEUE_FORMAT", "m_SuffixAndFlags", f"{value} does not fit a byte")
        if value & _SUFFIX_BITS not in _LEGAL:
            raise WireError("QUEUE_FORMAT", "m_SuffixAndFlags", f"no suffix {value & _SUFFIX_BITS}")
        flags, types = _LEGAL[self.suffix]
        if self.flags not in flags:
            problem = f"flags {self.flags:#04x} do not go with suffix {self.suffix.name}"
            raise WireError("QUEUE_FORMAT", "m_SuffixAndFlags", problem)
        if self.qft not in types:
            problem = f"suffix {self.suffix.name} does not go with type {self.qft.name}"
            raise WireError("QUEUE_FORMAT", "m_SuffixAndFlags", problem)

    def _check_arm(self) -> None:
        arm, kind = _ARMS[self.qft]
        if not isinstance(self.queue, kind):
            problem = f"type {self.qft.name} does not hold a {type(self.queue).__name__}"
            raise WireError("QUEUE_FORMAT", arm, problem)
        if isinstance(self.queue, bytes):
            encode_guid(self.queue, "QUEUE_FORMAT", arm)
        elif isinstance(self.queue, str):
            _check_text("QUEUE_FORMAT", arm, self.queue)


def _check_text(structure: str, field: str, text: str) -> None:
    if "\0" in text:
        raise WireError(structure, field, "a NUL would end the text early")
