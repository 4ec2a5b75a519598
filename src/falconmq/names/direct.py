"""Direct format names: an address and a queue, no directory needed (MQMQ 2.1.2).

A packet carries the text without "DIRECT=" (`wire_text`). It is kept in the sender's spelling, for
it is what goes out again; the parts are for finding the queue and the computer.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Self

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.names.syntax import (
    ANY,
    COMPUTER,
    COMPUTER_MAX,
    PORT_MAX,
    Grammar,
    QueueKind,
    QueuePart,
    Source,
    Suffix,
    check_parts,
    did_you_mean,
    fold,
    read_queue_part,
)

STATUS: Final = MqStatus.ILLEGAL_FORMATNAME
FORM: Final = "DIRECT=OS:computer\\private$\\queue"
ELEMENT_BOUNDARY: Final = re.compile(r",(?=[A-Za-z]+=)")  # where a multiple-element name divides

_HTTP_HOST: Final = re.compile(r"[!-.0-9;-Z^-~]*")  # a computer name without / : \ [ ]
_NO_SEPARATOR: Final = re.compile(r"[^/\\]*")
_NO_SEPARATOR_OR_PORT: Final = re.compile(r"[^/\\:]*")
_IP_ADDRESS: Final = re.compile(r"[0-9A-Za-z.:%_-]*")  # "%" and a zone may end an IPv6 address
_NETWORK_AND_HOST: Final = re.compile(r"[0-9A-Fa-f]{8}[.:][0-9A-Fa-f]{12}")
_VIRTUAL_DIRECTORY: Final = "msmq"
_URL_SEPARATORS: Final = "/\\"  # MQ-2.1.2-17
_MACHINE_SUFFIXES: Final = (Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT)


class Protocol(Enum):
    """How the computer of a direct name is reached (MQ-2.1.2-02, MQ-2.1.2-18)."""

    TCP = "TCP"
    OS = "OS"
    HTTP = "HTTP"
    HTTPS = "HTTPS"
    IPX = "IPX"
    SPX = "SPX"
    OTHER = ""  # a text of a peer that breaks the grammar: held and passed on, never resolved

    @property
    def is_url(self) -> bool:
        return self in (Protocol.HTTP, Protocol.HTTPS)


_PROTOCOLS: Final = {fold(protocol.value): protocol for protocol in Protocol if protocol.value}
_DEFAULT_PORTS: Final = {Protocol.HTTP: 80, Protocol.HTTPS: 443}  # MQ-2.1.2-11, MQ-2.1.2-12


@dataclass(frozen=True, slots=True, eq=False)
class DirectFormatName:
    r"""DIRECT=OS:sales01\private$\orders and its kin.

    `address` is the computer name, the IP address or the IPX network and host; of HTTP and HTTPS
    the host alone. A queue of the computer itself has kind SYSTEM, no `queue`, and says in `suffix`
    which. Names are equal when they lead to the same queue: case, "/" or "\", a spelt-out default
    port and the notation of an IPv6 address make no difference.

    The constructor takes queue names of every version of MSMQ, `parse_format_name` only those of
    the version it is asked for.

    The protocol OTHER is what `from_wire` makes of a text that breaks the grammar: `address` holds
    the whole text and `queue` is empty, so it matches no queue and no computer.
    """

    protocol: Protocol
    address: str
    kind: QueueKind = QueueKind.PUBLIC
    queue: str = ""
    subqueue: str | None = None
    suffix: Suffix = Suffix.NONE
    port: int | None = None
    wire_text: str = field(init=False, repr=False)  # without "DIRECT=", MQ-2.1.2-16

    def __post_init__(self) -> None:
        if self.protocol is Protocol.OTHER:
            object.__setattr__(self, "wire_text", self.address)
            return
        self._check()
        object.__setattr__(self, "wire_text", self._canonical_text())

    @classmethod
    def from_wire(cls, text: str) -> Self:
        """What a packet carries: never refused, for a receiver must hold whatever a peer names."""
        try:
            return cls.read(Source(text, STATUS), 0, len(text), ANY)
        except NameSyntaxError:
            return cls(Protocol.OTHER, text)

    @classmethod
    def read(cls, source: Source, start: int, stop: int, version: Grammar) -> Self:
        """Read the part behind "DIRECT="; the spelling is kept."""
        text, begin = source.text, start
        colon = text.find(":", start, stop)
        if colon < 0:
            raise source.error(stop, "no ':' ends the protocol", f"a direct name is {FORM}")
        protocol = _PROTOCOLS.get(fold(text[start:colon]))
        if protocol is None:
            hint = did_you_mean(text[start:colon], (p.value for p in _PROTOCOLS.values()))
            raise source.error(start, "unknown protocol of a direct name", hint)
        if protocol.is_url:
            address, port, start = _read_url(source, colon + 1, stop)
            separators = _URL_SEPARATORS
        else:
            address, port, start = _read_address(source, colon + 1, stop, protocol)
            separators = "\\"
        part, suffix = _read_queue(source, start, stop, version, separators)
        name = cls(protocol, address, part.kind, part.name, part.subqueue, suffix, port)
        object.__setattr__(name, "wire_text", text[begin:stop])
        return name

    @property
    def effective_port(self) -> int | None:
        """The port of a URL, named or implied; None for other protocols."""
        return _DEFAULT_PORTS.get(self.protocol) if self.port is None else self.port

    @property
    def is_read_only(self) -> bool:
        """Whether this is a journal or dead-letter queue: only the queue manager writes there."""
        return self.suffix is not Suffix.NONE

    def __str__(self) -> str:
        return f"DIRECT={self.wire_text}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DirectFormatName) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        address = _address_key(self.protocol, fold(self.address))
        subqueue = None if self.subqueue is None else fold(self.subqueue)
        queue, port = fold(self.queue), self.effective_port
        return self.protocol, address, port, self.kind, queue, subqueue, self.suffix

    def _check(self) -> None:
        address = Source(self.address, STATUS)
        _check_address(address, 0, len(self.address), self.protocol)
        if ELEMENT_BOUNDARY.search(self.address):
            raise address.error(0, "an address may not hold what divides a multiple-element name")
        if self.port is not None and not (self.protocol.is_url and 0 <= self.port <= PORT_MAX):
            port = Source(str(self.port), STATUS)
            raise port.error(
                0, f"a port is 0 to {PORT_MAX}, and only HTTP and HTTPS names have one"
            )
        self._check_queue(Source(self.queue, STATUS))

    def _check_queue(self, queue: Source) -> None:
        if self.kind is QueueKind.SYSTEM:
            if self.suffix not in _MACHINE_SUFFIXES or self.queue or self.subqueue is not None:
                raise queue.error(0, "system$ is followed by JOURNAL, DEADLETTER or DEADXACT alone")
            return
        if self.suffix not in (Suffix.NONE, Suffix.JOURNAL):
            raise queue.error(0, f"a queue has a journal, but no {self.suffix.value}")
        journal = self.suffix is Suffix.JOURNAL
        check_parts(QueuePart(self.kind, self.queue, self.subqueue, journal), STATUS)
        public_in_url = self.protocol.is_url and self.kind is QueueKind.PUBLIC
        if public_in_url and queue.starts("private$/", 0, len(self.queue)):
            raise queue.error(0, "in a URL this is a private queue")

    def _canonical_text(self) -> str:
        host = self.address
        separator, private, before = "\\", "PRIVATE$", f"{self.protocol.value}:{host}"
        if self.protocol.is_url:
            separator, private = "/", "private$"
            host = f"[{host}]" if ":" in host else host
            port = "" if self.port is None else f":{self.port}"
            before = f"{self.protocol.value}://{host}{port}/{_VIRTUAL_DIRECTORY}"
        queue = self.queue
        if self.kind is QueueKind.PRIVATE:
            queue = f"{private}{separator}{queue}"
        elif self.kind is QueueKind.SYSTEM:
            queue = "SYSTEM$"
        subqueue = "" if self.subqueue is None else f";{self.subqueue}"
        return f"{before}{separator}{queue}{subqueue}{self.suffix}"


def _read_queue(
    source: Source, start: int, stop: int, version: Grammar, separators: str
) -> tuple[QueuePart, Suffix]:
    if source.starts("system$;", start, stop):  # MQ-2.1.2-05
        keyword = start + len("system$;")
        for suffix in _MACHINE_SUFFIXES:
            if fold(source.text[keyword:stop]) == fold(suffix.value):
                return QueuePart(QueueKind.SYSTEM, ""), suffix
        hint = did_you_mean(source.text[keyword:stop], (s.value for s in _MACHINE_SUFFIXES))
        raise source.error(keyword, "no such queue of a computer", hint)
    part = read_queue_part(source, start, stop, version, separators)
    return part, Suffix.JOURNAL if part.journal else Suffix.NONE


def _read_address(
    source: Source, start: int, stop: int, protocol: Protocol
) -> tuple[str, None, int]:
    """The address up to the first "\\", and where the queue begins."""
    backslash = source.text.find("\\", start, stop)
    if backslash < 0:
        raise source.error(stop, "no '\\' divides address and queue", f"a direct name is {FORM}")
    _check_address(source, start, backslash, protocol)
    return source.text[start:backslash], None, backslash + 1


def _read_url(source: Source, start: int, stop: int) -> tuple[str, int | None, int]:
    """//host[:port]/msmq/ (MQ-2.1.2-09): host, port, where the queue begins."""
    text = source.text
    hint = "an HTTP name is DIRECT=HTTP://host/msmq/private$/queue"
    if not source.starts("//", start, stop):
        raise source.error(start, "no '//' before the host", hint)
    host, position = _read_host(source, start + 2, stop)
    port = None
    if text[position : min(position + 1, stop)] == ":":
        digits = position + 1
        position = source.run(_NO_SEPARATOR, digits, stop)
        port = source.number(digits, position, PORT_MAX, "port", plain=False)
    if position >= stop or text[position] not in _URL_SEPARATORS:
        raise source.error(position, "no '/' behind the host", hint)
    if not source.starts(_VIRTUAL_DIRECTORY, position + 1, stop):
        raise source.error(position + 1, "the host is not followed by /msmq", hint)
    position += 1 + len(_VIRTUAL_DIRECTORY)
    if position >= stop or text[position] not in _URL_SEPARATORS:
        raise source.error(position, "no '/' divides /msmq and queue", hint)
    return host, port, position + 1


def _read_host(source: Source, start: int, stop: int) -> tuple[str, int]:
    """The host without the brackets of an IPv6 address, and the position behind it."""
    if source.starts("[", start, stop):
        bracket = source.text.find("]", start, stop)
        if bracket < 0:
            raise source.error(stop, "no ']' ends the IPv6 address")
        if ":" not in source.text[start:bracket]:
            raise source.error(start, "brackets are for IPv6 addresses")
        _check_ip_address(source, start + 1, bracket)
        return source.text[start + 1 : bracket], bracket + 1
    end = source.run(_NO_SEPARATOR_OR_PORT, start, stop)
    _check_address(source, start, end, Protocol.HTTP)
    return source.text[start:end], end


def _check_address(source: Source, start: int, stop: int, protocol: Protocol) -> None:
    text = source.text
    if protocol is Protocol.TCP:  # MQ-2.1.2-06
        _check_ip_address(source, start, stop)
    elif protocol is Protocol.OS:  # MQ-2.1.2-08
        hint = "a computer name holds neither blanks nor letters beyond ASCII"
        source.take(start, stop, COMPUTER, COMPUTER_MAX, "computer name", hint)
    elif protocol.is_url:
        if text.find(":", start, stop) >= 0:
            _check_ip_address(source, start, stop)
            return
        hint = "a host is a computer name or an IP address"
        source.take(start, stop, _HTTP_HOST, COMPUTER_MAX, "host", hint)
    elif _NETWORK_AND_HOST.fullmatch(text, start, stop) is None:  # MQ-2.1.2-07, QB-2.2.4-08
        hint = "8 hexadecimal digits of the network, ':', 12 of the host"
        raise source.error(start, "no IPX address", hint)


def _check_ip_address(source: Source, start: int, stop: int) -> None:
    text = source.text[start:stop]
    hint = "" if len(text) > COMPUTER_MAX else f"for a computer name write DIRECT=OS:{text}\\..."
    source.take(start, stop, _IP_ADDRESS, COMPUTER_MAX, "IP address", hint)
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise source.error(start, "no IP address", hint) from error


def _address_key(protocol: Protocol, address: str) -> str:
    """One form for all notations of an address; it was checked when the name was made."""
    if ":" in address and (protocol.is_url or protocol is Protocol.TCP):
        return str(ipaddress.ip_address(address))
    if protocol in (Protocol.IPX, Protocol.SPX):
        return address.replace(".", ":")
    return address
