"""Format names: KEYWORD= and what identifies the queue (MQMQ 2.1.2 to 2.1.7).

Each kind is a small frozen value; `FormatName` is their union. `str` gives the canonical text:
keywords and GUIDs in capitals, private queue numbers as eight small hexadecimal digits, the way
MSMQ prints them. Direct names (direct.py) keep the spelling of their sender.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from falconmq.errors import MqStatus, NameSyntaxError
from falconmq.names.direct import ELEMENT_BOUNDARY, STATUS, DirectFormatName, Protocol
from falconmq.names.path_name import KEYWORDS, PathName, is_format_name
from falconmq.names.syntax import (
    DOMAIN,
    DOMAIN_MAX,
    NEWEST,
    PORT_MAX,
    MsmqVersion,
    Source,
    Suffix,
    did_you_mean,
    fold,
)

TEXT_MAX: Final = 0x10000  # characters of a whole (multiple-element) name; our limit, not MSMQ's
QUEUE_NUMBER_MAX: Final = 0xFFFFFFFF

_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_GUID_SHAPE: Final = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
_HEX: Final = re.compile(r"[0-9A-Fa-f]*")
_LETTERS: Final = re.compile(r"[A-Za-z]*")
_KEYWORDS: Final = tuple(f"{keyword}=" for keyword in KEYWORDS)
_XACTONLY: Final = "XACTONLY"
_QUEUE_SUFFIXES: Final = (Suffix.JOURNAL,)
_MACHINE_SUFFIXES: Final = (Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT)


@dataclass(frozen=True, slots=True)
class PublicFormatName:
    """PUBLIC=guid: a queue by its object in the directory (MQMQ 2.1.3)."""

    queue: UUID
    suffix: Suffix = Suffix.NONE

    def __post_init__(self) -> None:
        _check_suffix(self.suffix, (Suffix.NONE, *_QUEUE_SUFFIXES), "public queue")

    @property
    def is_read_only(self) -> bool:
        return self.suffix is not Suffix.NONE

    def __str__(self) -> str:
        return f"PUBLIC={_guid_text(self.queue)}{self.suffix}"


@dataclass(frozen=True, slots=True)
class PrivateFormatName:
    r"""PRIVATE=guid\number: a private queue by its computer and number there (MQMQ 2.1.4)."""

    computer: UUID
    number: int
    suffix: Suffix = Suffix.NONE

    def __post_init__(self) -> None:
        if not 0 <= self.number <= QUEUE_NUMBER_MAX:
            raise _misfit(f"{self.number:x}", "a private queue number has 32 bits")
        _check_suffix(self.suffix, (Suffix.NONE, *_QUEUE_SUFFIXES), "private queue")

    @property
    def is_read_only(self) -> bool:
        return self.suffix is not Suffix.NONE

    def __str__(self) -> str:
        return f"PRIVATE={_guid_text(self.computer)}\\{self.number:08x}{self.suffix}"


@dataclass(frozen=True, slots=True)
class MachineFormatName:
    """MACHINE=guid;JOURNAL: a queue that every computer has (MQMQ 2.1.6).

    The grammar of the specification has no suffix, though without one the name leads to no queue.
    """

    computer: UUID
    suffix: Suffix = Suffix.NONE

    @property
    def is_read_only(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"MACHINE={_guid_text(self.computer)}{self.suffix}"


@dataclass(frozen=True, slots=True)
class ConnectorFormatName:
    """CONNECTOR=guid: the queue to a foreign system, for plain or for transactional messages."""

    connector: UUID
    transactional: bool = False

    @property
    def is_read_only(self) -> bool:
        return False

    def __str__(self) -> str:
        suffix = f";{_XACTONLY}" if self.transactional else ""
        return f"CONNECTOR={_guid_text(self.connector)}{suffix}"


@dataclass(frozen=True, slots=True, eq=False)
class DistributionListFormatName:
    """DL=guid@domain: a list of queues in the directory (MQMQ 2.1.5). The domain has no case."""

    guid: UUID
    domain: str | None = None

    def __post_init__(self) -> None:
        if self.domain is not None:
            source = Source(self.domain, STATUS)
            _take_domain(source, 0, len(self.domain))
            if boundary := ELEMENT_BOUNDARY.search(self.domain):
                raise source.error(boundary.start(), "this would divide a multiple-element name")

    @property
    def is_read_only(self) -> bool:
        return False

    def __str__(self) -> str:
        domain = "" if self.domain is None else f"@{self.domain}"
        return f"DL={_guid_text(self.guid)}{domain}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DistributionListFormatName) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[UUID, str | None]:
        return self.guid, None if self.domain is None else fold(self.domain)


@dataclass(frozen=True, slots=True)
class MulticastFormatName:
    """MULTICAST=address:port: all queues that listen there; IPv4 only (MQMQ 2.1.6)."""

    address: str
    port: int

    def __post_init__(self) -> None:
        text = f"{self.address}:{self.port}"
        _read_multicast_address(Source(text, STATUS), 0, len(text))

    @property
    def is_read_only(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"MULTICAST={self.address}:{self.port}"


SingleFormatName = (
    DirectFormatName
    | PublicFormatName
    | PrivateFormatName
    | MachineFormatName
    | ConnectorFormatName
    | DistributionListFormatName
    | MulticastFormatName
)


@dataclass(frozen=True, slots=True)
class MultipleElementFormatName:
    """Several format names, joined by commas: a message goes to each (MQMQ 2.1.7).

    Has two elements or more: one alone is simply that name. Nothing in it is read-only.
    """

    elements: tuple[SingleFormatName, ...]

    def __post_init__(self) -> None:
        if len(self.elements) < 2:
            raise _misfit(str(self), "a multiple-element name has two elements or more")
        source, position = Source(str(self), STATUS), 0
        for element in self.elements:
            stop = position + len(str(element))
            _check_element(source, position, stop, element)
            position = stop + 1

    @property
    def is_read_only(self) -> bool:
        return False

    def __str__(self) -> str:
        return ",".join(str(element) for element in self.elements)


FormatName = SingleFormatName | MultipleElementFormatName


def parse_format_name(text: str, *, version: MsmqVersion = NEWEST) -> FormatName:
    """Read a format name; NameSyntaxError points at what breaks the grammar of that version."""
    source = Source(text, STATUS)
    if len(text) > TEXT_MAX:
        raise source.error(TEXT_MAX, f"a format name has at most {TEXT_MAX} characters")
    spans = _element_spans(text, version)
    if len(spans) == 1:
        return _read_single(source, 0, len(text), version)
    elements = []
    for start, stop in spans:
        element = _read_single(source, start, stop, version)
        _check_element(source, start, stop, element)
        elements.append(element)
    return MultipleElementFormatName(tuple(elements))


def parse_queue_name(text: str, *, version: MsmqVersion = NEWEST) -> PathName | FormatName:
    """Read what a person may give as the name of a queue: a path name or a format name.

    A text that begins with a keyword and "=" is a format name. Some texts are path names by the
    letter but never meant as such (a misspelt keyword, a direct name without "DIRECT="); they are
    refused with the right spelling.
    """
    if is_format_name(text):
        return parse_format_name(text, version=version)
    source = Source(text, STATUS)
    word, sign, rest = _leading_word(text)
    if sign == ":" and word == "FORMATNAME":
        raise source.error(0, "'FormatName:' is no part of the name", f"write {rest[:80]}")
    if sign == ":" and word in (protocol.value for protocol in Protocol):
        raise source.error(0, "a direct name begins with DIRECT=", f"write DIRECT={text[:80]}")
    if sign == "=" and "did you mean" in (hint := did_you_mean(word, _KEYWORDS)):
        raise source.error(0, f"{word}= is no keyword of a format name", hint)
    return PathName.parse(text, version=version)


def _leading_word(text: str) -> tuple[str, str, str]:
    match = _LETTERS.match(text)
    end = 0 if match is None else match.end()
    return text[:end].upper(), text[end : end + 1], text[end + 1 :]


def _element_spans(text: str, version: MsmqVersion) -> list[tuple[int, int]]:
    """Where the elements stand. A queue name of MSMQ 1.0 may hold ",": no division there."""
    if version < MsmqVersion.MSMQ_2_0:  # MQ-2.1.7-05
        return [(0, len(text))]
    commas = [match.start() for match in ELEMENT_BOUNDARY.finditer(text)]
    return list(zip([0, *(comma + 1 for comma in commas)], [*commas, len(text)], strict=True))


def _check_element(source: Source, start: int, stop: int, element: SingleFormatName) -> None:
    """Refuse what cannot be sent to (MQ-2.1.7-02, MQ-2.1.7-03)."""
    if isinstance(element, MachineFormatName):
        raise source.error(start, "MACHINE= cannot be part of a multiple-element name")
    if element.is_read_only:
        raise source.error(
            source.text.rfind(";", start, stop),
            "a journal or dead-letter queue cannot be part of a multiple-element name",
            "only the queue manager writes to it",
            status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION,
        )


def _read_single(source: Source, start: int, stop: int, version: MsmqVersion) -> SingleFormatName:
    equals = source.run(_LETTERS, start, stop)
    if equals >= stop or source.text[equals] != "=":
        hint = f"one of {', '.join(_KEYWORDS)}"
        raise source.error(start, "a format name begins with a keyword and '='", hint)
    word = fold(source.text[start:equals])
    reader = _READERS.get(word)
    if reader is not None:
        return reader(source, equals + 1, stop)
    if word == "direct":
        return DirectFormatName.read(source, equals + 1, stop, version)
    if word == "multicast":
        if version < MsmqVersion.MSMQ_3_0:  # MQ-2.1.6-09
            problem = "multicast names exist from MSMQ 3.0 on"
            unsupported = MqStatus.UNSUPPORTED_FORMATNAME_OPERATION
            raise source.error(start, problem, status=unsupported)
        return MulticastFormatName(*_read_multicast_address(source, equals + 1, stop))
    hint = did_you_mean(source.text[start:equals], _KEYWORDS)
    raise source.error(start, "unknown keyword of a format name", hint)


def _read_public(source: Source, start: int, stop: int) -> PublicFormatName:
    queue, position = _take_guid(source, start, stop)
    return PublicFormatName(queue, _take_suffix(source, position, stop, _QUEUE_SUFFIXES))


def _read_private(source: Source, start: int, stop: int) -> PrivateFormatName:
    computer, position = _take_guid(source, start, stop)
    if position >= stop or source.text[position] != "\\":
        hint = "a private name is PRIVATE=computer-guid\\number"
        raise source.error(position, "no '\\' divides computer and queue number", hint)
    semicolon = source.text.find(";", position, stop)
    end = stop if semicolon < 0 else semicolon
    hint = "1 to 8 hexadecimal digits"
    number = source.take(position + 1, end, _HEX, 8, "private queue number", hint)
    suffix = _take_suffix(source, end, stop, _QUEUE_SUFFIXES)
    return PrivateFormatName(computer, int(number, 16), suffix)


def _read_machine(source: Source, start: int, stop: int) -> MachineFormatName:
    computer, position = _take_guid(source, start, stop)
    return MachineFormatName(computer, _take_suffix(source, position, stop, _MACHINE_SUFFIXES))


def _read_connector(source: Source, start: int, stop: int) -> ConnectorFormatName:
    connector, position = _take_guid(source, start, stop)
    if position >= stop:
        return ConnectorFormatName(connector)
    if fold(source.text[position:stop]) != fold(f";{_XACTONLY}"):
        raise source.error(position, "behind a connector stands nothing or ;XACTONLY")
    return ConnectorFormatName(connector, transactional=True)


def _read_distribution_list(source: Source, start: int, stop: int) -> DistributionListFormatName:
    guid, position = _take_guid(source, start, stop)
    if position >= stop:
        return DistributionListFormatName(guid)
    if source.text[position] != "@":
        raise source.error(position, "behind a distribution list stands nothing or @domain")
    return DistributionListFormatName(guid, _take_domain(source, position + 1, stop))


_READERS: Final[dict[str, Callable[[Source, int, int], SingleFormatName]]] = {
    "public": _read_public,
    "private": _read_private,
    "machine": _read_machine,
    "connector": _read_connector,
    "dl": _read_distribution_list,
}


def _take_guid(source: Source, start: int, stop: int) -> tuple[UUID, int]:
    """The GUID at `start` and the position behind it (MQ-2.1.3-02)."""
    match = _GUID.match(source.text, start, stop)
    if match is not None:
        return UUID(match[0]), match.end()
    hint = "write the GUID without braces" if source.starts("{", start, stop) else ""
    position = start
    for shape in _GUID_SHAPE:
        here = source.text[position : min(position + 1, stop)]
        if not here or (here != "-" if shape == "-" else _HEX.fullmatch(here) is None):
            break
        position += 1
    raise source.error(position, f"no GUID of the form {_GUID_SHAPE}", hint)


def _take_suffix(source: Source, start: int, stop: int, allowed: Iterable[Suffix]) -> Suffix:
    if start >= stop:
        return Suffix.NONE
    keyword = fold(source.text[start:stop])
    for suffix in allowed:
        if keyword == fold(str(suffix)):
            return suffix
    if source.starts(",", start, stop):  # MQ-2.1.7-01
        hint = f"one of {', '.join(_KEYWORDS)}"
        raise source.error(start + 1, "',' is followed by a keyword and '=', with no blank", hint)
    problem = f"expected the end of the name or {', '.join(str(suffix) for suffix in allowed)}"
    raise source.error(start, problem)


def _take_domain(source: Source, start: int, stop: int) -> str:
    hint = "a domain holds neither blanks nor letters beyond ASCII"
    return source.take(start, stop, DOMAIN, DOMAIN_MAX, "domain", hint)


def _read_multicast_address(source: Source, start: int, stop: int) -> tuple[str, int]:
    """a.b.c.d:port with a from 224 to 239 (MQ-2.1.6-03 to -06)."""
    colon = source.text.find(":", start, stop)
    if colon < 0:
        raise source.error(stop, "no ':' and port", "a multicast name is MULTICAST=224.0.0.1:8001")
    position = start
    for index in range(4):
        end = colon if index == 3 else source.text.find(".", position, colon)
        if end < 0:
            raise source.error(colon, "an IPv4 address has four numbers with dots between")
        octet = source.number(position, end, 255, "number of an IPv4 address", plain=True)
        if index == 0 and not 224 <= octet <= 239:
            hint = "the first number is 224 to 239"
            raise source.error(position, f"{octet} begins no multicast address", hint)
        position = end + 1
    return source.text[start:colon], source.number(colon + 1, stop, PORT_MAX, "port", plain=True)


def _guid_text(guid: UUID) -> str:
    return str(guid).upper()


def _check_suffix(suffix: Suffix, allowed: tuple[Suffix, ...], what: str) -> None:
    if suffix not in allowed:
        raise _misfit(str(suffix), f"a {what} has a journal, but no {suffix.value}")


def _misfit(text: str, problem: str) -> NameSyntaxError:
    """Build the error for a value that a constructor cannot take."""
    return Source(text, STATUS).error(0, problem)
