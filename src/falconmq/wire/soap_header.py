"""SoapHeader: the SOAP envelope of a message that came or goes over HTTP (MQMQ 2.2.20.7).

The page says nothing about padding. We write each string padded to 4 bytes, and read both forms:
where the padded place does not begin the body section but the unpadded one does, nothing is padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from falconmq.wire.counted_text import encode_counted_text, read_counted_text
from falconmq.wire.reader import Layout, Reader, Structure, padding

HEADER_SECTION_ID: Final = 0x0320
BODY_SECTION_ID: Final = 0x0384

_HEADER: Final = Layout("SoapHeader", "HHI", "HeaderSectionID", "Reserved", "HeaderDataLength")
_BODY: Final = Layout("SoapHeader", "HHI", "BodySectionID", "Reserved1", "BodyDataLength")


@dataclass(slots=True)
class SoapHeader(Structure):
    """Two strings of the application; None is a length of 0, "" a string of just its NUL."""

    header: str | None
    body: str | None
    reserved: int = 0
    reserved1: int = 0

    @classmethod
    def read(cls, reader: Reader) -> Self:
        outer = reader.enter("SoapHeader")
        reserved, header = _read_section(reader, _HEADER, HEADER_SECTION_ID, "Header")
        is_padded = not _is_unpadded(reader)
        if is_padded:
            reader.align(4)
        reserved1, body = _read_section(reader, _BODY, BODY_SECTION_ID, "Body")
        if is_padded and reader.remaining:  # a packet may also end with the string
            reader.align(4)
        reader.leave(outer)
        return cls(header, body, reserved, reserved1)

    def encode(self) -> bytes:
        return _encode_section(
            _HEADER, HEADER_SECTION_ID, self.reserved, self.header, "Header"
        ) + _encode_section(_BODY, BODY_SECTION_ID, self.reserved1, self.body, "Body")


def _read_section(
    reader: Reader, layout: Layout, section_id: int, field: str
) -> tuple[int, str | None]:
    found, reserved, length = reader.fixed(layout)
    if found != section_id:
        problem = f"{found:#06x} instead of {section_id:#06x}"
        raise reader.refuse(layout, f"{field}SectionID", problem)
    if not length:
        return reserved, None
    return reserved, read_counted_text(reader, 2 * length, field)  # MQ-2.2.20.7-18


def _is_unpadded(reader: Reader) -> bool:
    """Whether the body section begins right here although this is no boundary of 4."""
    position = reader.position
    padded = position + -reader.offset % 4
    return (
        padded != position and not _begins_body(reader, padded) and _begins_body(reader, position)
    )


def _begins_body(reader: Reader, position: int) -> bool:
    if position + 2 > reader.end:
        return False
    return reader.buffer[position] | reader.buffer[position + 1] << 8 == BODY_SECTION_ID


def _encode_section(
    layout: Layout, section_id: int, reserved: int, text: str | None, field: str
) -> bytes:
    data = b"" if text is None else encode_counted_text(text, "SoapHeader", field)
    return layout.pack(section_id, reserved, len(data) // 2) + data + padding(len(data))
