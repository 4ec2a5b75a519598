"""Format names as QUEUE_FORMAT and back (MQMQ 2.2.7; the guide's section 5.3).

`QueueFormat` checks which suffixes go with which type; here the text of a direct name is held
against the suffix beside it, for the two say the same thing twice.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, assert_never
from uuid import UUID

from falconmq.errors import MqStatus, WireError
from falconmq.names.direct import DirectFormatName
from falconmq.names.format_name import (
    ConnectorFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MulticastFormatName,
    MultipleElementFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)
from falconmq.names.syntax import Source, Suffix
from falconmq.wire.queue_format import (
    DlId,
    MulticastId,
    ObjectId,
    QueueFormat,
    QueueFormatType,
    QueueSuffixType,
)

_SUFFIX_TYPES: Final = {
    Suffix.NONE: QueueSuffixType.NONE,
    Suffix.JOURNAL: QueueSuffixType.JOURNAL,
    Suffix.DEADLETTER: QueueSuffixType.DEADLETTER,
    Suffix.DEADXACT: QueueSuffixType.DEADXACT,
}
_SUFFIXES: Final = {suffix_type: suffix for suffix, suffix_type in _SUFFIX_TYPES.items()}


def to_queue_format(name: SingleFormatName) -> QueueFormat:
    """The QUEUE_FORMAT of one name; NameSyntaxError for MACHINE= without a suffix."""
    make, types = QueueFormat.make, QueueFormatType
    match name:
        case PublicFormatName(queue, suffix):
            return make(types.PUBLIC, _SUFFIX_TYPES[suffix], queue.bytes_le)
        case PrivateFormatName(computer, number, suffix):
            return make(types.PRIVATE, _SUFFIX_TYPES[suffix], ObjectId(computer.bytes_le, number))
        case DirectFormatName():
            return make(*_direct_types(name), name.wire_text)
        case MachineFormatName(computer, suffix):
            _check_has_queue(name)
            return make(types.MACHINE, _SUFFIX_TYPES[suffix], computer.bytes_le)
        case ConnectorFormatName(connector, transactional):
            suffix_type = QueueSuffixType.XACTONLY if transactional else QueueSuffixType.NONE
            return make(types.CONNECTOR, suffix_type, connector.bytes_le)
        case DistributionListFormatName(guid, domain):
            return make(types.DL, QueueSuffixType.NONE, DlId(guid.bytes_le, domain or ""))
        case MulticastFormatName(address, port):
            multicast = MulticastId(_in_addr(address), port)
            return make(types.MULTICAST, QueueSuffixType.NONE, multicast)
        case _:
            assert_never(name)


def to_queue_formats(name: FormatName) -> tuple[QueueFormat, ...]:
    """The array of QUEUE_FORMATs that a name with one or many elements stands for."""
    if isinstance(name, MultipleElementFormatName):
        return tuple(to_queue_format(element) for element in name.elements)
    return (to_queue_format(name),)


def from_queue_format(queue_format: QueueFormat) -> SingleFormatName:
    """The name of a QUEUE_FORMAT.

    WireError if it names no queue or contradicts itself, NameSyntaxError if a domain or multicast
    address in it breaks the grammar. Its m_reserved is not looked at.
    """
    suffix = _SUFFIXES.get(queue_format.suffix, Suffix.NONE)
    match queue_format.qft, queue_format.queue:
        case QueueFormatType.PUBLIC, bytes(guid):
            return PublicFormatName(UUID(bytes_le=guid), suffix)
        case QueueFormatType.PRIVATE, ObjectId(lineage, uniquifier):
            return PrivateFormatName(UUID(bytes_le=lineage), uniquifier, suffix)
        case QueueFormatType.DIRECT | QueueFormatType.SUBQUEUE, str(text):
            return _from_direct(queue_format, text)
        case QueueFormatType.MACHINE, bytes(guid):
            return MachineFormatName(UUID(bytes_le=guid), suffix)
        case QueueFormatType.CONNECTOR, bytes(guid):
            transactional = queue_format.suffix is QueueSuffixType.XACTONLY
            return ConnectorFormatName(UUID(bytes_le=guid), transactional)
        case QueueFormatType.DL, DlId(dl_guid, domain):
            return DistributionListFormatName(UUID(bytes_le=dl_guid), domain or None)
        case QueueFormatType.MULTICAST, MulticastId(address, port):
            return MulticastFormatName(_dotted(address), port)
        case _:
            raise WireError("QUEUE_FORMAT", "m_qft", "an unknown queue has no name")


def from_queue_formats(queue_formats: Iterable[QueueFormat]) -> FormatName:
    """The name that an array of QUEUE_FORMATs stands for; one alone is a single name."""
    names = tuple(from_queue_format(queue_format) for queue_format in queue_formats)
    return names[0] if len(names) == 1 else MultipleElementFormatName(names)


def _direct_types(name: DirectFormatName) -> tuple[QueueFormatType, QueueSuffixType]:
    if name.subqueue is not None:
        return QueueFormatType.SUBQUEUE, QueueSuffixType.SUBQUEUE
    return QueueFormatType.DIRECT, _SUFFIX_TYPES[name.suffix]


def _from_direct(queue_format: QueueFormat, text: str) -> DirectFormatName:
    name = DirectFormatName.from_wire(text)
    if _direct_types(name) != (queue_format.qft, queue_format.suffix):  # MQ-2.2.7-20
        problem = f"{text[:80]!r} does not go with suffix {queue_format.suffix.name}"
        raise WireError("QUEUE_FORMAT", queue_format.arm, problem)
    return name


def _check_has_queue(name: MachineFormatName) -> None:
    if name.suffix is Suffix.NONE:  # MQ-2.2.7-05
        text = str(name)
        source = Source(text, MqStatus.UNSUPPORTED_FORMATNAME_OPERATION)
        hint = "add ;JOURNAL, ;DEADLETTER or ;DEADXACT"
        raise source.error(len(text), "a computer alone is no queue", hint)


def _in_addr(address: str) -> int:
    """The ULONG whose four bytes in memory are the address in network order (guide, section 7)."""
    return int.from_bytes(ipaddress.IPv4Address(address).packed, "little")


def _dotted(address: int) -> str:
    return str(ipaddress.IPv4Address(address.to_bytes(4, "little")))
