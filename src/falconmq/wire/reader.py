"""The one way bytes are read: a cursor that cannot run past its part.

Every structure of the wire reads itself from a `Reader`. The reader checks each length before it
slices, so a hostile size can neither read beyond the packet nor allocate memory, and every fault
becomes a `WireError` that names structure, field and offset. `TracingReader` (tracing.py) overrides
the same few methods to record what was read where; `falconmq decode` is built on that, so the tree
it shows is drawn by the decoders themselves.
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final, Self

from falconmq.errors import WireError

Buffer = bytes | bytearray | memoryview

_FORMAT_TOKEN: Final = re.compile(r"\d*[a-zA-Z]")
_TEXT_WINDOW: Final = 512  # bytes searched at a time for the end of a string


class Layout:
    """A run of fixed-size fields: little-endian struct codes and the specification's field names.

    One code per field ("B", "H", "I", "16s" ...). Compile it once, at module level.
    """

    __slots__ = ("_blobs", "_codes", "_pack", "fields", "size", "sizes", "structure", "unpack_from")

    def __init__(self, structure: str, codes: str, *fields: str) -> None:
        tokens = _FORMAT_TOKEN.findall(codes)
        assert len(tokens) == len(fields), f"{len(tokens)} codes, {len(fields)} names"
        compiled = struct.Struct("<" + codes)
        self.structure: str = structure
        self.fields: tuple[str, ...] = fields
        self.sizes: tuple[int, ...] = tuple(struct.calcsize("<" + token) for token in tokens)
        self.size: int = compiled.size
        self.unpack_from = compiled.unpack_from
        self._pack = compiled.pack
        self._codes = tuple("<" + token for token in tokens)
        # struct cuts or fills a byte string of the wrong length without a word.
        self._blobs = tuple((i, self.sizes[i]) for i, t in enumerate(tokens) if t.endswith("s"))

    def pack(self, *values: int | bytes) -> bytes:
        """The bytes of all fields; WireError that names the field whose value does not fit."""
        for index, size in self._blobs:
            if len(values[index]) != size:  # type: ignore[arg-type]  # an "s" field holds bytes
                raise self._misfit(values)
        try:
            return self._pack(*values)
        except struct.error as error:
            raise self._misfit(values) from error

    def offset_of(self, field: str) -> int:
        return sum(self.sizes[: self.fields.index(field)])

    def field_at(self, available: int) -> str:
        """Name the field that a buffer of `available` bytes cuts off."""
        for field, size in zip(self.fields, self.sizes, strict=True):
            if available < size:
                return field
            available -= size
        return self.fields[-1]

    def _misfit(self, values: tuple[int | bytes, ...]) -> WireError:
        rows = zip(self.fields, self.sizes, self._codes, values, strict=True)
        for field, size, code, value in rows:
            if isinstance(value, int):
                try:
                    struct.pack(code, value)
                except struct.error:
                    return WireError(self.structure, field, f"{value} does not fit {size} bytes")
            elif len(value) != size:
                return WireError(self.structure, field, f"{len(value)} bytes instead of {size}")
        return WireError(self.structure, self.fields[0], "a value does not fit its field")


_U8: Final = struct.Struct("<B")
_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")


class Reader:
    """Cursor over `buffer` from `offset` up to `end`.

    `position` counts from the start of the buffer; alignment and the offsets in errors count from
    where this reader began, that is from the start of the packet.
    """

    __slots__ = ("buffer", "end", "origin", "position", "structure")

    def __init__(self, buffer: Buffer, offset: int = 0, end: int | None = None) -> None:
        self.buffer = memoryview(buffer)
        self.origin = offset
        self.position = offset
        self.end = len(self.buffer) if end is None else min(end, len(self.buffer))
        self.structure = ""

    @property
    def offset(self) -> int:
        """Where the cursor stands, counted from the start of the packet."""
        return self.position - self.origin

    @property
    def remaining(self) -> int:
        return self.end - self.position

    def enter(self, structure: str) -> str:
        """Begin a structure; hand the result to `leave` at its end."""
        outer, self.structure = self.structure, structure
        return outer

    def leave(self, outer: str) -> None:
        self.structure = outer

    def fixed(self, layout: Layout) -> tuple[Any, ...]:
        """Read all fields of a layout."""
        start = self.position
        stop = start + layout.size
        if stop > self.end:
            raise self._cut(layout)
        self.position = stop
        return layout.unpack_from(self.buffer, start)

    def u8(self, field: str) -> int:
        return self._number(_U8, field)

    def u16(self, field: str) -> int:
        return self._number(_U16, field)

    def u32(self, field: str) -> int:
        return self._number(_U32, field)

    def u64(self, field: str) -> int:
        return self._number(_U64, field)

    def guid(self, field: str) -> bytes:
        """Read a GUID as its 16 wire bytes (MS-DTYP 2.3.4.2)."""
        return bytes(self.take(16, field))

    def take(self, size: int, field: str) -> memoryview:
        """Cut `size` bytes out of the buffer without copying them."""
        start = self.position
        stop = start + size
        if stop > self.end:
            raise self._short(field, size)
        self.position = stop
        return self.buffer[start:stop]

    def text(self, field: str) -> str:
        """Read UTF-16LE up to and with its NUL; there is no length field (MQCN 2.2.3.10)."""
        start = self.position
        length = self._text_length()
        if length is None:
            raise self.error(field, "no NUL ends this string")
        self.position = start + length + 2
        return decode_utf16(self.buffer[start : start + length])

    def align(self, boundary: int, field: str = "Padding") -> None:
        """Skip to the next boundary. Padding holds old memory in Windows: never looked at."""
        padding = -(self.position - self.origin) % boundary
        if padding:
            self.skip(padding, field)

    def skip(self, size: int, field: str) -> None:
        self.take(size, field)

    def part(self, size: int, field: str) -> Self:
        """Hand the next `size` bytes to a reader of their own and step over them."""
        start = self.position
        if size > self.end - start:
            raise self._short(field, size)
        inner = self._nested(start + size)
        self.position = start + size
        return inner

    def finish(self, field: str) -> None:
        """Refuse bytes that the part holds but nobody read."""
        if self.position != self.end:
            raise self.error(field, f"{self.end - self.position} bytes too many")

    def error(self, field: str, problem: str, offset: int | None = None) -> WireError:
        """Build the error for `field`; `offset` from the packet start, else where the cursor is."""
        where = self.offset if offset is None else offset
        return WireError(self.structure, field, problem, offset=where)

    def refuse(self, layout: Layout, field: str, problem: str) -> WireError:
        """Build the error for a field of the layout that `fixed` read last."""
        return self.error(field, problem, self.offset - layout.size + layout.offset_of(field))

    def _number(self, layout: struct.Struct, field: str) -> int:
        start = self.position
        stop = start + layout.size
        if stop > self.end:
            raise self._short(field, layout.size)
        self.position = stop
        number: int = layout.unpack_from(self.buffer, start)[0]
        return number

    def _nested(self, end: int) -> Self:
        inner = type(self)(self.buffer, self.position, end)
        inner.origin = self.origin
        inner.structure = self.structure
        return inner

    def _text_length(self) -> int | None:
        """Bytes before the NUL; searched window by window, so that no large copy is ever made."""
        start = self.position
        while start < self.end - 1:
            stop = min(start + _TEXT_WINDOW, self.end)
            window = bytes(self.buffer[start:stop])
            found = window.find(b"\0\0")
            while (
                found % 2 == 1
            ):  # the two zero bytes of two neighbouring characters; -1 is odd too
                if found < 0:
                    break
                found = window.find(b"\0\0", found + 1)
            if found >= 0:
                return start + found - self.position
            start += _TEXT_WINDOW
        return None

    def _cut(self, layout: Layout) -> WireError:
        """The error for the field of a layout that the end cuts off, reported where it stands."""
        field = layout.field_at(max(self.remaining, 0))
        at = layout.offset_of(field)
        needed, left = layout.sizes[layout.fields.index(field)], max(self.remaining - at, 0)
        return self.error(field, f"needs {needed} bytes, {left} are left", self.offset + at)

    def _short(self, field: str, needed: int) -> WireError:
        return self.error(field, f"needs {needed} bytes, {max(self.remaining, 0)} are left")


class Structure:
    """What every structure of the wire can do; `read` and `encode` are its own."""

    __slots__ = ()

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read one from the cursor and leave the cursor behind it."""
        raise NotImplementedError

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> Self:
        """Read one from `buffer`; WireError if the bytes break its layout."""
        return cls.read(Reader(buffer, offset))

    def encode(self) -> bytes:
        """The bytes of this structure; WireError if a value does not fit its field."""
        raise NotImplementedError


def decode_utf16(data: Buffer) -> str:
    """Text of UTF-16LE bytes. A lone surrogate is kept, so that any text encodes back unchanged."""
    return str(data, "utf-16-le", "surrogatepass")


def encode_utf16(text: str) -> bytes:
    """UTF-16LE bytes of a text, with no NUL."""
    return text.encode("utf-16-le", "surrogatepass")


def padding(size: int, boundary: int = 4) -> bytes:
    """The zero bytes that bring `size` up to a boundary. Windows sends garbage; we send zeros."""
    return bytes(-size % boundary)
