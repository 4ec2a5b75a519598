"""MultiQueueFormatHeader: all the queues that got a copy of a message (MQMQ 2.2.20.1 to .3).

Three lists of names and a signature, all four always there. The page does not say whether the GUID
of a public queue is aligned to 4 bytes like the other GUIDs; we write it aligned and read a list
unaligned only if it ends at its HeaderSize in no other way (MQ-2.2.18.1.7.1-02).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from falconmq.errors import WireError
from falconmq.wire.counted_text import encode_counted_text
from falconmq.wire.guid import encode_guid
from falconmq.wire.queue_name import PrivateQueueFormatName
from falconmq.wire.reader import Buffer, Layout, Reader, Structure, padding

PUBLIC: Final = 1
PRIVATE: Final = 2
DIRECT: Final = 3
DISTRIBUTION_LIST: Final = 6

DESTINATION_ID: Final = 0x0064
ADMINISTRATION_ID: Final = 0x00C8
RESPONSE_ID: Final = 0x012C
SIGNATURE_ID: Final = 0x015E

_ADDRESS_IDS: Final = frozenset({DESTINATION_ID, ADMINISTRATION_ID, RESPONSE_ID})
_SMALLEST_ELEMENT: Final = 4  # a direct name of nothing but its NUL

_TYPE: Final = Layout("MQFFormatNameElement", "H", "FormatType")
_ADDRESS: Final = Layout(
    "MQFAddressHeader", "IHHI", "HeaderSize", "HeaderID", "Reserved", "ElementCount"
)
_SIGNATURE: Final = Layout("MQFSignatureHeader", "HHI", "ID", "Reserved", "Size")

MQFName = bytes | PrivateQueueFormatName | str


@dataclass(slots=True)
class MQFFormatNameElement(Structure):
    """One name: a GUID (public queue, distribution list), a private or a direct name.

    Alone it counts alignment from its own start, as the first of a list does.
    """

    format_type: int
    name: MQFName  # direct names without "DIRECT="

    @classmethod
    def read(cls, reader: Reader) -> Self:
        return cls.read_aligned(reader, 4)

    @classmethod
    def read_aligned(cls, reader: Reader, public_alignment: int) -> Self:
        """Read one, the GUID of a public queue on a boundary of 4 or of 2."""
        outer = reader.enter("MQFFormatNameElement")
        format_type = reader.u16("FormatType")
        name: MQFName
        if format_type == DIRECT:
            name = reader.text("DirectFormatName")
        elif format_type == PRIVATE:
            reader.align(4)  # MQ-2.2.18.1.7.2-02
            name = PrivateQueueFormatName.read(reader)
        elif format_type == PUBLIC:
            reader.align(public_alignment)
            name = reader.guid("PublicQueueIdentifier")
        elif format_type == DISTRIBUTION_LIST:
            reader.align(4)  # MQ-2.2.18.1.4.2-02
            name = reader.guid("DistributionListIdentifier")
        else:  # MQ-2.2.18.1.4-02
            raise reader.error("FormatType", f"{format_type} is unknown", reader.offset - 2)
        reader.leave(outer)
        return cls(format_type, name)

    def encode(self) -> bytes:
        return self.encode_at(0)

    def encode_at(self, offset: int) -> bytes:
        """The bytes of an element that begins `offset` bytes behind a boundary of 4."""
        name = self.name
        if self.format_type == DIRECT and isinstance(name, str):
            text = encode_counted_text(name, "MQFFormatNameElement", "DirectFormatName")
            return _TYPE.pack(DIRECT) + text
        if self.format_type == PRIVATE and isinstance(name, PrivateQueueFormatName):
            data = name.encode()
        elif self.format_type in (PUBLIC, DISTRIBUTION_LIST) and isinstance(name, bytes):
            data = encode_guid(name, "MQFFormatNameElement", "FormatName")
        else:
            problem = f"{name!r} is no name of type {self.format_type}"
            raise WireError("MQFFormatNameElement", "FormatName", problem)
        return _TYPE.pack(self.format_type) + padding(offset + _TYPE.size) + data


@dataclass(slots=True)
class MQFAddressHeader(Structure):
    """One of the three lists; `header_id` says which."""

    header_id: int
    format_name_list: tuple[MQFFormatNameElement, ...] = ()
    reserved: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MQFAddressHeader")
        size, header_id, reserved, count = reader.fixed(_ADDRESS)
        if size < _ADDRESS.size:  # MQ-2.2.20.2-02
            raise reader.refuse(_ADDRESS, "HeaderSize", f"{size} is below {_ADDRESS.size}")
        if header_id not in _ADDRESS_IDS:  # MQ-2.2.20.2-04
            raise reader.refuse(_ADDRESS, "HeaderID", f"{header_id:#06x} is unknown")
        if count * _SMALLEST_ELEMENT > size - _ADDRESS.size:  # before a list grows
            raise reader.refuse(_ADDRESS, "ElementCount", f"{count} do not fit HeaderSize {size}")
        part = reader.part(size - _ADDRESS.size, "FormatNameList")
        alignment = _public_alignment(part, count)
        elements = _read_elements(part, count, alignment)
        if part.remaining > 3:
            raise part.error("FormatNameList", f"{part.remaining} bytes behind {count} elements")
        reader.align(4)  # MQ-2.2.20.2-12
        reader.leave(outer)
        return cls(header_id, elements, reserved)

    def encode(self) -> bytes:
        if self.header_id not in _ADDRESS_IDS:
            raise WireError("MQFAddressHeader", "HeaderID", f"{self.header_id:#06x} is unknown")
        names = bytearray()
        for element in self.format_name_list:
            names += element.encode_at(len(names))
        names += padding(len(names))
        size, count = _ADDRESS.size + len(names), len(self.format_name_list)
        return _ADDRESS.pack(size, self.header_id, self.reserved, count) + names


@dataclass(slots=True)
class MQFSignatureHeader(Structure):
    """The MSMQ 3.0 signature of a message to several queues; empty if there is none."""

    signature: Buffer = b""
    reserved: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MQFSignatureHeader")
        header_id, reserved, size = reader.fixed(_SIGNATURE)
        if header_id != SIGNATURE_ID:  # MQ-2.2.20.3-02
            raise reader.refuse(
                _SIGNATURE, "ID", f"{header_id:#06x} instead of {SIGNATURE_ID:#06x}"
            )
        signature = reader.take(size, "Signature") if size else b""
        reader.leave(outer)
        return cls(signature, reserved)

    def encode(self) -> bytes:
        fixed = _SIGNATURE.pack(SIGNATURE_ID, self.reserved, len(self.signature))
        return b"".join((fixed, self.signature))


@dataclass(slots=True)
class MultiQueueFormatHeader(Structure):
    """Where the copies went, where answers may go, and the signature over it."""

    destination: MQFAddressHeader
    administration: MQFAddressHeader = field(
        default_factory=lambda: MQFAddressHeader(ADMINISTRATION_ID)
    )
    response: MQFAddressHeader = field(default_factory=lambda: MQFAddressHeader(RESPONSE_ID))
    signature: MQFSignatureHeader = field(default_factory=MQFSignatureHeader)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("MultiQueueFormatHeader")
        destination = _read_address(reader, DESTINATION_ID)
        administration = _read_address(reader, ADMINISTRATION_ID)
        response = _read_address(reader, RESPONSE_ID)
        signature = MQFSignatureHeader.read(reader)
        reader.leave(outer)
        return cls(destination, administration, response, signature)

    def encode(self) -> bytes:
        return b"".join(
            (
                _encode_address(self.destination, DESTINATION_ID),
                _encode_address(self.administration, ADMINISTRATION_ID),
                _encode_address(self.response, RESPONSE_ID),
                self.signature.encode(),
            )
        )


def _read_address(reader: Reader, header_id: int) -> MQFAddressHeader:
    start = reader.offset
    header = MQFAddressHeader.read(reader)
    if header.header_id != header_id:
        problem = f"{header.header_id:#06x} instead of {header_id:#06x}"
        raise reader.error("HeaderID", problem, start + _ADDRESS.offset_of("HeaderID"))
    return header


def _encode_address(header: MQFAddressHeader, header_id: int) -> bytes:
    if header.header_id != header_id:
        problem = f"{header.header_id:#06x} instead of {header_id:#06x}"
        raise WireError("MultiQueueFormatHeader", "HeaderID", problem)
    return header.encode()


def _read_elements(
    reader: Reader, count: int, public_alignment: int
) -> tuple[MQFFormatNameElement, ...]:
    return tuple(
        [MQFFormatNameElement.read_aligned(reader, public_alignment) for _ in range(count)]
    )


def _public_alignment(part: Reader, count: int) -> int:
    """4, or 2 if only that makes the list end where HeaderSize says.

    Tried out with readers of its own, so that a trace shows the reading that counts and no other.
    """
    for alignment in (4, 2):
        trial = Reader(part.buffer, part.position, part.end)
        trial.origin = part.origin
        try:
            _read_elements(trial, count, alignment)
        except WireError:
            continue
        if trial.remaining <= 3:
            return alignment
    return 4
