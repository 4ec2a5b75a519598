"""Strategies for queue names: path names and every kind of format name."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import fields

from hypothesis import strategies as st

from falconmq.names import (
    ConnectorFormatName,
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    MachineFormatName,
    MulticastFormatName,
    MultipleElementFormatName,
    PathName,
    PrivateFormatName,
    Protocol,
    PublicFormatName,
    QueueKind,
    SingleFormatName,
    Suffix,
)
from tests.strategies.wire import u16, u32


def _characters(*ranges: tuple[int, int]) -> str:
    return "".join(chr(code) for first, last in ranges for code in range(first, last + 1))


# spelt from MQMQ 2.1.1, not taken from the code
QUEUE_NAME_CHARACTERS = _characters(
    (0x21, 0x21), (0x23, 0x2A), (0x2D, 0x3A), (0x3C, 0x5B), (0x5D, 0x7F)
)
QUEUE_NAME_CHARACTERS_1_0 = _characters((0x21, 0x3A), (0x3C, 0x5B), (0x5D, 0x7F))
COMPUTER_CHARACTERS = _characters((0x21, 0x5B), (0x5D, 0x7E))
DOMAIN_CHARACTERS = _characters((0x21, 0x7E))

_KEYWORD = re.compile(r"(direct|public|private|machine|connector|dl|multicast)=", re.IGNORECASE)
_BOUNDARY = re.compile(r",[A-Za-z]+=")


def _names(alphabet: str, maximum: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=1, max_size=maximum) | st.sampled_from(
        ["q", "Orders", "a" * maximum]
    )


def _is_free(name: str) -> bool:
    """Neither a reserved word nor, in a URL, a private queue."""
    return name.lower() not in ("private$", "system$") and not name.lower().startswith("private$/")


uuids = st.uuids()
queue_names = _names(QUEUE_NAME_CHARACTERS, 124).filter(_is_free)
queue_names_1_0 = _names(QUEUE_NAME_CHARACTERS_1_0, 124).filter(_is_free)
subqueues = _names(QUEUE_NAME_CHARACTERS, 32).filter(lambda name: name.lower() != "journal")
computers = (_names(COMPUTER_CHARACTERS, 256) | st.just(".")).filter(
    lambda name: not _KEYWORD.match(name) and not _BOUNDARY.search(name)
)
_queues = st.sampled_from([QueueKind.PUBLIC, QueueKind.PRIVATE])

path_names = st.one_of(
    st.builds(PathName, computers, st.sampled_from(QueueKind), queue_names, st.none() | subqueues),
    st.builds(PathName, computers, _queues, queue_names, st.none(), st.just(True)),
)

_ipv4 = st.ip_addresses(v=4).map(str)
_ipv6 = st.ip_addresses(v=6)
_ipv6_texts = _ipv6.map(str) | _ipv6.map(lambda ip: ip.exploded.upper())
_hex = "0123456789abcdefABCDEF"
_ipx = st.builds(
    "{}{}{}".format,
    st.text(_hex, min_size=8, max_size=8),
    st.sampled_from(":."),
    st.text(_hex, min_size=12, max_size=12),
)
_hosts = _names("".join(c for c in COMPUTER_CHARACTERS if c not in "/:[]"), 256).filter(
    lambda name: not _BOUNDARY.search(name)
)
_ADDRESSES = {
    Protocol.TCP: _ipv4 | _ipv6_texts,
    Protocol.OS: computers,
    Protocol.HTTP: _hosts | _ipv4 | _ipv6_texts,
    Protocol.HTTPS: _hosts | _ipv4 | _ipv6_texts,
    Protocol.IPX: _ipx,
    Protocol.SPX: _ipx,
}
_MACHINE_SUFFIXES = [Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT]


@st.composite
def _direct_names(draw: st.DrawFn) -> DirectFormatName:
    protocol = draw(st.sampled_from(list(_ADDRESSES)))
    address = draw(_ADDRESSES[protocol])
    is_url = protocol in (Protocol.HTTP, Protocol.HTTPS)
    port = draw(st.none() | u16) if is_url else None
    kind = draw(st.sampled_from(QueueKind))
    if kind is QueueKind.SYSTEM:
        suffix = draw(st.sampled_from(_MACHINE_SUFFIXES))
        return DirectFormatName(protocol, address, kind, "", None, suffix, port)
    queue = draw(queue_names)
    subqueue = draw(st.none() | subqueues)
    suffixes = [Suffix.NONE, Suffix.JOURNAL] if subqueue is None else [Suffix.NONE]
    suffix = draw(st.sampled_from(suffixes))
    return DirectFormatName(protocol, address, kind, queue, subqueue, suffix, port)


direct_names: st.SearchStrategy[DirectFormatName] = _direct_names()
_journals = st.sampled_from([Suffix.NONE, Suffix.JOURNAL])
public_names = st.builds(PublicFormatName, uuids, _journals)
private_names = st.builds(PrivateFormatName, uuids, u32, _journals)
machine_names = st.builds(MachineFormatName, uuids, st.sampled_from(Suffix))
connector_names = st.builds(ConnectorFormatName, uuids, st.booleans())
domains = _names(DOMAIN_CHARACTERS, 255).filter(lambda name: not _BOUNDARY.search(name))
distribution_list_names = st.builds(DistributionListFormatName, uuids, st.none() | domains)
multicast_names = st.builds(
    MulticastFormatName,
    st.integers(0xE0000000, 0xEFFFFFFF).map(lambda address: str(ipaddress.IPv4Address(address))),
    u16,
)
single_format_names: st.SearchStrategy[SingleFormatName] = st.one_of(
    direct_names,
    public_names,
    private_names,
    machine_names,
    connector_names,
    distribution_list_names,
    multicast_names,
)
elements = single_format_names.filter(lambda name: not name.is_read_only)
multiple_element_names = st.builds(
    MultipleElementFormatName, st.lists(elements, min_size=2, max_size=4).map(tuple)
)
format_names: st.SearchStrategy[FormatName] = single_format_names | multiple_element_names


@st.composite
def mutations(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A valid text with a character or two replaced, left out or put in."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 2))):
        position = draw(st.integers(0, len(text)))
        inserted = draw(st.sampled_from([*'\\/;,:=$@.-+" \0\n{}%[]', "é", "\ud800", "a", "0", ""]))
        dropped = draw(st.integers(0, 2))
        text = text[:position] + inserted + text[position + dropped :]
    return text


def spelling(name: object) -> list[object]:
    """Every field of a name as it is spelt; names themselves compare without case."""
    if isinstance(name, MultipleElementFormatName):
        return [spelling(element) for element in name.elements]
    assert hasattr(type(name), "__dataclass_fields__")
    return [type(name), *(getattr(name, field.name) for field in fields(type(name)))]  # type: ignore[arg-type] # narrowed by the line above
