"""What `falconmq decode` is given: hexadecimal text, files of packets, captures; to packets.

Everything a user can get wrong here becomes a `WrongUsageError` that says what was looked for.
"""

from __future__ import annotations

import contextlib
import mmap
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol, Self

from falconmq.capture.packets import (
    PING_PORT,
    SESSION_PORT,
    CapturedPacket,
    CaptureReader,
    Totals,
    looks_like_packet,
)
from falconmq.capture.pcap import ByteStream, is_capture
from falconmq.cli.problems import WrongUsageError
from falconmq.errors import WireError
from falconmq.wire.base_header import SIZE as BASE_HEADER_SIZE
from falconmq.wire.base_header import BaseHeader
from falconmq.wire.framing import packet_length
from falconmq.wire.inspection import Inspection, Kind, inspect
from falconmq.wire.ping import SIZE as PING_SIZE
from falconmq.wire.reader import Buffer

_HEX_HINT: Final = "give hexadecimal digits, a file, or - for standard input"


@dataclass(slots=True)
class Decoded:
    """One packet of the input."""

    number: int
    data: Buffer
    inspection: Inspection | None  # None for bytes that are no packet
    offset: int | None = None  # in the input; None in a capture
    captured: CapturedPacket | None = None

    @property
    def size(self) -> int:
        """Bytes it has on the wire; a capture may have fewer."""
        return len(self.data) if self.captured is None else self.captured.size


class PacketPrinter(Protocol):
    """Writes packets as they come, then what they add up to."""

    def packet(self, decoded: Decoded) -> None: ...

    def finish(self, totals: Totals | None) -> None: ...


class Source:
    """Where packets come from; a context manager that closes the file behind it."""

    is_capture = False
    totals: Totals | None = None

    def packets(self) -> Iterator[Decoded]:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the file, if there is one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BytesSource(Source):
    """Packets back to back, or one structure of another kind."""

    def __init__(self, data: Buffer, kind: Kind) -> None:
        self._data = memoryview(data)
        self._kind = kind

    def packets(self) -> Iterator[Decoded]:
        data = self._data
        if self._kind is not Kind.PACKET:
            yield Decoded(1, data, inspect(data, self._kind), 0)
            return
        if _is_ping(data):
            yield Decoded(1, data, inspect(data, Kind.PING), 0)
            return
        position, number = 0, 0
        while position < len(data):
            number += 1
            size = _length_at(data, position)
            packet = data[position : position + size] if size else data[position:]
            yield Decoded(number, packet, inspect(packet), position)
            if not size:
                return  # nobody can tell where the next packet would begin
            position += size


class CaptureSource(Source):
    """The MSMQ packets of a pcap or pcapng file."""

    is_capture = True

    def __init__(
        self, file: ByteStream, ports: frozenset[int], closing: BinaryIO | None = None
    ) -> None:
        self._closing = closing
        self._reader = CaptureReader(file, session_ports=ports | {SESSION_PORT})
        self.totals = self._reader.totals

    def packets(self) -> Iterator[Decoded]:
        for number, captured in enumerate(self._reader.packets(), 1):
            yield Decoded(number, captured.data, _inspect_captured(captured), captured=captured)

    def close(self) -> None:
        if self._closing is not None:
            self._closing.close()


def open_source(argument: str, kind: Kind, ports: frozenset[int] = frozenset()) -> Source:
    """Find out what the argument is."""
    if argument == "-":
        return _from_stdin(kind, ports)
    path = Path(argument or "\0")
    try:
        is_directory, exists = path.is_dir(), path.exists()
    except (OSError, ValueError):  # too long for a name, or a NUL: no file in any case
        is_directory = exists = False
    if is_directory:
        raise WrongUsageError(f"{argument} is a directory", "give a file inside it")
    if exists:
        return _from_file(path, kind, ports)
    return BytesSource(_bytes_of_argument(argument), kind)


def _from_stdin(kind: Kind, ports: frozenset[int]) -> Source:
    stream = sys.stdin.buffer
    head = stream.read(BASE_HEADER_SIZE)
    if not head:
        raise WrongUsageError("standard input is empty", "try: xxd -p FILE | falconmq decode -")
    if is_capture(head):
        return CaptureSource(_Joined(head, stream), ports)
    return _from_content(head + stream.read(), kind, "standard input")


def _from_file(path: Path, kind: Kind, ports: frozenset[int]) -> Source:
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            head = file.read(BASE_HEADER_SIZE)
            if is_capture(head):
                stack.pop_all()  # stays open until the source is closed
                return CaptureSource(_Joined(head, file), ports, closing=file)
            content = _mapped(file, head) if looks_like_packet(head) else head + file.read()
        except OSError as error:
            problem = f"cannot read {path}: {error.strerror or error}"
            raise WrongUsageError(problem, "check the name and its permissions") from error
    return _from_content(content, kind, str(path))


def _mapped(file: BinaryIO, head: bytes) -> Buffer:
    """The content of a file without holding it in memory; what cannot be mapped is read."""
    try:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        return head + file.read()


def _from_content(content: Buffer, kind: Kind, name: str) -> Source:
    if not len(content):
        raise WrongUsageError(f"{name} is empty", "there is nothing to decode")
    if not looks_like_packet(bytes(content[:8])) and not _is_ping(content):
        text = _as_text(bytes(content))
        if text is not None:
            return BytesSource(parse_hex(text), kind)
    return BytesSource(content, kind)


def _as_text(content: bytes) -> str | None:
    """The content if it is a text that begins like a hexadecimal dump."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    first = next((line for line in text.splitlines() if line.strip()), "")
    return text if _HEX_LINE.match(first) else None


def _bytes_of_argument(argument: str) -> bytes:
    if not argument.strip():
        raise WrongUsageError("there is nothing to decode", _HEX_HINT)
    try:
        return parse_hex(argument)
    except WrongUsageError as error:
        if re.fullmatch(r"(?:[\s0-9A-Fa-f:,_-]|0[xX])+", argument):
            raise
        problem = f"there is no file {argument!r}, and it is not hexadecimal: {error}"
        raise WrongUsageError(problem, _HEX_HINT) from error


def _is_ping(data: Buffer) -> bool:
    return len(data) == PING_SIZE and bytes(data[2:4]) == b"\x48\x55"


def _length_at(data: memoryview, position: int) -> int:
    """Length of the packet that begins there; 0 if none does or it is cut short."""
    try:
        size = packet_length(BaseHeader.decode(data, position))
    except WireError:
        return 0
    return size if size <= len(data) - position else 0


def _inspect_captured(captured: CapturedPacket) -> Inspection | None:
    if captured.conversation is None:
        is_response = captured.source.port == PING_PORT
        return inspect(captured.data, Kind.PING, is_response=is_response)
    if not looks_like_packet(captured.data):
        return None
    return inspect(captured.data, is_response=not captured.from_client)


class _Joined:
    """A stream with the bytes put back that were read to see what it is."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        if len(data) < size:
            data += self._rest.read(size - len(data))
        return data


# Hexadecimal text

_HEX_LINE: Final = re.compile(r"\s*(?:[0-9A-Fa-f]{2}|0[xX][0-9A-Fa-f]|\\x|[{\[(\"'])")
_OFFSET: Final = re.compile(r"\s*(?:0[xX])?([0-9A-Fa-f]{4,8})(:?)\s+(?=[0-9A-Fa-f]{2})")
_LAST_OFFSET: Final = re.compile(r"\s*([0-9A-Fa-f]{4,8})(:?)\s*$")  # od and hexdump end with one
_REPEATED_MAX: Final = 0x1000000  # a dump says "and so on" up to here, not for gigabytes
_NOISE: Final = re.compile(r"0[xX]|\\x|[\s:,;_{}\[\]()\"'-]")


def parse_hex(text: str) -> bytes:
    """Bytes of hexadecimal digits as people paste them.

    Blanks, colons, 0x, \\x and commas are passed over; so are the offsets and the text column of
    xxd, hexdump -C, od and Wireshark. A line with nothing but * stands for repeated rows.
    """
    data = bytearray()
    row = b""
    is_dump = is_repeated = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == "*" and is_dump:
            is_repeated = True
            continue
        offset = _OFFSET.match(line) or (_LAST_OFFSET.match(line) if is_dump else None)
        if offset and is_repeated and row:
            rows = max(int(offset[1], 16) - len(data), 0) // len(row)
            data += row * min(rows, _REPEATED_MAX // len(row))
            is_repeated = False
        is_dump = bool(offset and (offset[2] or int(offset[1], 16) == len(data)))
        row = _dump_line(line[offset.end() :], number) if offset and is_dump else b""
        data += row if is_dump else _plain_line(line, number)
    if not data:
        raise WrongUsageError("there are no hexadecimal digits in it", _HEX_HINT)
    return bytes(data)


def _dump_line(line: str, number: int) -> bytes:
    """A line of a dump behind its offset: digits, then perhaps the text they stand for."""
    if line.rstrip().endswith("|") and "|" in line.rstrip()[:-1]:
        digits = line[: line.index("|")]  # hexdump -C; it has two blanks in the middle
    else:
        digits = re.split(r"\s{2,}|\t", line.strip(), maxsplit=1)[0]
    return _plain_line(digits, number)


def _plain_line(line: str, number: int) -> bytes:
    kept = []
    place = 0
    while place < len(line):
        noise = _NOISE.match(line, place)
        if noise:
            place = noise.end()
            continue
        if line[place] not in "0123456789abcdefABCDEF":
            where = f"{line[place]!r} in line {number}, column {place + 1}"
            raise WrongUsageError(f"{where} is no hexadecimal digit", _HEX_HINT)
        kept.append(line[place])
        place += 1
    if len(kept) % 2:
        raise WrongUsageError(
            f"an odd number of hexadecimal digits: {len(kept)} in line {number}",
            f"one is missing or too much; the last one is {kept[-1]!r}",
        )
    return bytes.fromhex("".join(kept))
