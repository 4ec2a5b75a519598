"""Property values: what each property may hold, and the names of what it holds (MQMQ 2.3).

Decoders do not ask: a peer's value that nobody applies does no harm. `validate` is for whoever is
about to store or send one. Path names and format names are not looked at here; `names` knows their
grammar.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from falconmq.errors import WireError
from falconmq.wire.property_ids import (
    ComputerProperty,
    ConnectedNetworkProperty,
    DeletionProperty,
    EnterpriseProperty,
    MachineProperty,
    ManagementMachineProperty,
    ManagementQueueProperty,
    ObjectType,
    Property,
    QueueProperty,
    RoutingLinkProperty,
    SettingsProperty,
    SiteProperty,
)
from falconmq.wire.reader import encode_utf16
from falconmq.wire.variant import (
    VT_CLSID,
    VT_I4,
    VT_LPWSTR,
    VT_UI4,
    VT_UI8,
    VT_VECTOR,
    PropVariant,
    Value,
    encode_value,
)


class Journal(IntEnum):
    MQ_JOURNAL_NONE = 0
    MQ_JOURNAL = 1


class Authenticate(IntEnum):
    MQ_AUTHENTICATE_NONE = 0
    MQ_AUTHENTICATE = 1


class PrivLevel(IntEnum):
    MQ_PRIV_LEVEL_NONE = 0  # clear messages only
    MQ_PRIV_LEVEL_OPTIONAL = 1
    MQ_PRIV_LEVEL_BODY = 2  # encrypted messages only


class Transaction(IntEnum):
    MQ_TRANSACTIONAL_NONE = 0
    MQ_TRANSACTIONAL = 1


class Scope(IntEnum):
    MQDS_SITESCOPE = 0
    MQDS_ENTERPRISESCOPE = 1


class Service(IntEnum):
    """Roles of a server. PROPID_QM_SERVICE combines them, PROPID_SET_SERVICE holds one."""

    SERVICE_NONE = 0
    SERVICE_SRV = 0x01  # routing server
    SERVICE_BSC = 0x02
    SERVICE_PSC = 0x04
    SERVICE_PEC = 0x08
    SERVICE_RAS = 0x10


class Foreign(IntEnum):
    MSMQ_MACHINE = 0
    FOREIGN_MACHINE = 1


class OperatingSystem(IntEnum):
    MSMQ_OS_NONE = 0
    MSMQ_OS_FOREIGN = 0x100
    MSMQ_OS_95 = 0x200
    MSMQ_OS_NTW = 0x300
    MSMQ_OS_NTS = 0x400
    MSMQ_OS_NTE = 0x500


class Cluster(IntEnum):
    NOT_IN_CLUSTER = 0
    IN_CLUSTER = 1


class Protocol(IntEnum):
    """Network protocols of a connected network; types of a TA_ADDRESS have the same numbers."""

    IP = 1
    IPX = 3
    FOREIGN = 5


class NameStyle(IntEnum):
    """Weakened security of the enterprise."""

    OFF = 0
    ON = 1
    DEFAULT = 2  # the same as off since Windows 2000


class ConnectionStatus(IntEnum):
    """One entry of PROPID_MGMT_QUEUE_CONNECTION_HISTORY (MQMQ 2.3.12.25)."""

    IN_PROGRESS = 0
    ESTABLISH_PACKET_RECEIVED = 1
    ESTABLISHED = 2
    UNKNOWN_FAILURE = 0x80000000
    PING_FAILURE = 0x80000001
    CREATE_SOCKET_FAILURE = 0x80000002
    BIND_SOCKET_FAILURE = 0x80000003
    CONNECT_SOCKET_FAILURE = 0x80000004
    TCP_NOT_ENABLED = 0x80000005
    SEND_FAILURE = 0x80000006
    NOT_READY = 0x80000007
    DNS_FAILURE = 0x80000008
    HTTPS_CERTIFICATE_FAILURE = 0x80000009
    CONNECTION_LIMIT = 0x8000000A
    REFUSED_BY_PEER = 0x8000000B
    NO_DIRECTORY_FOR_ROUTING = 0x8000000C
    LOW_MEMORY = 0x8000000D


LABEL_LENGTH_MAX: Final = 124
LINK_COST_MIN: Final = 1
LINK_COST_MAX: Final = 999_999
SECURITY_INFORMATION: Final = 0x0000000F  # owner, group, DACL, SACL
USER_ACCOUNT_CONTROL: Final = 0x0FFF3BFB  # every UF_ flag of MS-SAMR 2.2.1.13
SAM_ACCOUNT_LENGTH_MAX: Final = 20  # 19 characters of the computer name and "$"
SETTINGS_NAME: Final = "MSMQ Settings"

QUEUE_TYPES: Final = ("PUBLIC", "PRIVATE", "MACHINE", "CONNECTOR", "MULTICAST")
QUEUE_LOCATIONS: Final = ("LOCAL", "REMOTE")
QUEUE_STATES: Final = (
    "LOCAL CONNECTION",
    "INACTIVE",
    "WAITING",
    "NEED VALIDATION",
    "ONHOLD",
    "CONNECTED",
    "DISCONNECTING",
    "DISCONNECTED",
)
CONNECTED: Final = ("CONNECTED", "DISCONNECTED")
YES_NO: Final = ("UNKNOWN", "YES", "NO")

DEFAULTS: Final[Mapping[Property, Value]] = MappingProxyType(
    {
        QueueProperty.PROPID_Q_JOURNAL: Journal.MQ_JOURNAL_NONE,
        QueueProperty.PROPID_Q_BASEPRIORITY: 0,
        QueueProperty.PROPID_Q_PRIV_LEVEL: PrivLevel.MQ_PRIV_LEVEL_OPTIONAL,
        SiteProperty.PROPID_S_INTERVAL1: 2,
        SiteProperty.PROPID_S_INTERVAL2: 10,
        EnterpriseProperty.PROPID_E_CSP_NAME: (
            "Microsoft Enhanced RSA and AES Cryptographic Provider"
        ),
        RoutingLinkProperty.PROPID_L_COST: 1,
    }
)
"""What a property holds when nobody set it, where MQMQ 2.3 says so."""

# The arrays of variants that stand in parallel, in this order (MQMQ 2.3.12.24, 2.3.12.25).
EOD_SOURCE_INFO: Final = (
    VT_LPWSTR | VT_VECTOR,  # format names
    VT_CLSID | VT_VECTOR,  # senders
    VT_UI8 | VT_VECTOR,  # sequence ids
    VT_UI4 | VT_VECTOR,  # sequence numbers
    VT_I4 | VT_VECTOR,  # last access times
    VT_UI4 | VT_VECTOR,  # reject counts
)
CONNECTION_HISTORY: Final = (
    VT_UI4 | VT_VECTOR,  # ConnectionStatus
    VT_I4 | VT_VECTOR,  # times
    VT_I4 | VT_VECTOR,  # errors, 0 for none
    VT_LPWSTR | VT_VECTOR,  # addresses
)

# distinguishedName of RFC 4514. Each alternative begins with another character, so that matching
# never has to try twice.
_PAIR: Final = r'\\(?:[\\"+,;<> #=]|[0-9A-Fa-f]{2})'
_STRING: Final = (
    rf'(?:[^\x00 "#+,;<>\\]|{_PAIR})(?:(?:[^\x00"+,;<>\\]|{_PAIR})*(?:[^\x00 "+,;<>\\]|{_PAIR}))?'
)
_ATTRIBUTE: Final = (
    r"(?:[A-Za-z][A-Za-z0-9-]*|(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*))+)"
    rf"=(?:#(?:[0-9A-Fa-f]{{2}})+|{_STRING})?"
)
_DISTINGUISHED_NAME: Final = re.compile(rf"(?:{_ATTRIBUTE}(?:[,+]{_ATTRIBUTE})*)?")
_MULTICAST: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}):([0-9]{1,5})")
_DIRECTORY_SERVER: Final = re.compile(r"\\\\[^\x00,]+")
_HISTORY_ADDRESS: Final = re.compile(r"\\\\[A-Za-z]+|[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

Rule: TypeAlias = "Callable[[Value], str | None]"
"""Says what is wrong with a value that has the right type; None if nothing is."""


def validate(prop: Property, value: Value) -> None:
    """WireError if `prop` may not hold `value`; its structure is the property's name.

    Status MQ_ERROR_ILLEGAL_PROPERTY_VT for a value of another type, else ILLEGAL_PROPERTY_VALUE.
    """
    encode_value(prop.vt, value, prop.name)
    rule = _RULES.get((type(prop), prop.value))
    problem = rule(value) if rule else None
    if problem:
        raise WireError(prop.name, "value", problem)


def _one_of(allowed: Iterable[Value]) -> Rule:
    values = [*allowed]

    def check(value: Value) -> str | None:
        return None if value in values else f"{value!r} is none of {[*map(str, values)]}"

    return check


def _bits(mask: int) -> Rule:
    def check(value: Value) -> str | None:
        assert isinstance(value, int)
        return f"{value:#x} has bits outside {mask:#x}" if value & ~mask else None

    return check


def _range(first: int, last: int) -> Rule:
    def check(value: Value) -> str | None:
        assert isinstance(value, int)
        return None if first <= value <= last else f"{value} is not in {first}..{last}"

    return check


def _text(meaning: str, accepts: Callable[[str], object]) -> Rule:
    def check(value: Value) -> str | None:
        assert isinstance(value, str)
        return None if accepts(value) else f"{value[:80]!r} is no {meaning}"

    return check


def _each(rule: Rule) -> Rule:
    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        return next((problem for each in value if (problem := rule(each))), None)

    return check


def _parallel(types: tuple[int, ...], rules: Mapping[int, Rule]) -> Rule:
    """Arrays of these types and of one length; `rules` for the elements of some of them."""

    def check(value: Value) -> str | None:
        arrays = [array for array in _items(value) if isinstance(array, PropVariant)]
        if tuple(array.vt for array in arrays) != types:
            return f"the arrays are not of the types {[f'{vt:#06x}' for vt in types]}"
        if len({len(_items(array.value)) for array in arrays}) > 1:
            return "the arrays differ in length"
        problems = (_each(rule)(arrays[index].value) for index, rule in rules.items())
        return next(filter(None, problems), None)

    return check


def _items(value: Value) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else ()


def _is_multicast(text: str) -> bool:
    match = _MULTICAST.fullmatch(text)
    if match is None or int(match[2]) > 0xFFFF:
        return False
    numbers = [int(number) for number in match[1].split(".")]
    return 224 <= numbers[0] <= 239 and max(numbers) <= 255


def _is_next_hop(text: str) -> bool:
    kind, separator, address = text.partition("=")
    try:
        if kind == "IP":
            return bool(ipaddress.IPv4Address(address))
        if kind == "IPv6":
            return "%" not in address and bool(ipaddress.IPv6Address(address))
    except ValueError:
        return False
    return kind == "FOREIGN" and bool(separator and _GUID.fullmatch(address))


_FLAG: Final = _one_of((0, 1))
_NAME: Final = _text("distinguished name of RFC 4514", _DISTINGUISHED_NAME.fullmatch)
_SECURITY: Final = _bits(SECURITY_INFORMATION)
_SERVICE: Final = _one_of(each for each in Service if each is not Service.SERVICE_RAS)
_COST: Final = _range(LINK_COST_MIN, LINK_COST_MAX)

_RULES: Final[Mapping[tuple[type[Property], int], Rule]] = {
    (type(prop), prop.value): rule
    for prop, rule in (
        (QueueProperty.PROPID_Q_JOURNAL, _one_of(Journal)),
        (
            QueueProperty.PROPID_Q_LABEL,
            _text(
                "label of 124 characters",
                lambda text: len(encode_utf16(text)) <= 2 * LABEL_LENGTH_MAX,
            ),
        ),
        (QueueProperty.PROPID_Q_AUTHENTICATE, _one_of(Authenticate)),
        (QueueProperty.PROPID_Q_PRIV_LEVEL, _one_of(PrivLevel)),
        (QueueProperty.PROPID_Q_TRANSACTION, _one_of(Transaction)),
        (QueueProperty.PROPID_Q_SCOPE, _one_of(Scope)),
        (
            QueueProperty.PROPID_Q_MULTICAST_ADDRESS,
            _text("multicast address with a port", _is_multicast),
        ),
        (QueueProperty.PROPID_Q_SECURITY_INFORMATION, _SECURITY),
        (MachineProperty.PROPID_QM_SERVICE, _bits(sum(Service))),
        (MachineProperty.PROPID_QM_FOREIGN, _one_of(Foreign)),
        (MachineProperty.PROPID_QM_OS, _one_of(OperatingSystem)),
        (MachineProperty.PROPID_QM_FULL_PATH, _NAME),
        (MachineProperty.PROPID_QM_OUTFRS_DN, _each(_NAME)),
        (MachineProperty.PROPID_QM_INFRS_DN, _each(_NAME)),
        (MachineProperty.PROPID_QM_SERVICE_ROUTING, _FLAG),
        (MachineProperty.PROPID_QM_SECURITY_INFORMATION, _SECURITY),
        (MachineProperty.PROPID_QM_GROUP_IN_CLUSTER, _one_of(Cluster)),
        (SiteProperty.PROPID_S_NT4_STUB, _FLAG),
        (SiteProperty.PROPID_S_FOREIGN, _FLAG),
        (SiteProperty.PROPID_S_SECURITY_INFORMATION, _SECURITY),
        (ConnectedNetworkProperty.PROPID_CN_PROTOCOLID, _one_of(Protocol)),
        (EnterpriseProperty.PROPID_E_NAMESTYLE, _one_of(NameStyle)),
        (RoutingLinkProperty.PROPID_L_COST, _COST),
        (RoutingLinkProperty.PROPID_L_ACTUAL_COST, _COST),
        (RoutingLinkProperty.PROPID_L_GATES_DN, _each(_NAME)),
        (RoutingLinkProperty.PROPID_L_NEIGHBOR1_DN, _NAME),
        (RoutingLinkProperty.PROPID_L_NEIGHBOR2_DN, _NAME),
        (RoutingLinkProperty.PROPID_L_FULL_PATH, _NAME),
        (SettingsProperty.PROPID_SET_NAME, _one_of([SETTINGS_NAME])),
        (SettingsProperty.PROPID_SET_SERVICE, _SERVICE),
        (SettingsProperty.PROPID_SET_FULL_PATH, _NAME),
        (SettingsProperty.PROPID_SET_NT4, _FLAG),
        (SettingsProperty.PROPID_SET_SERVICE_ROUTING, _FLAG),
        (SettingsProperty.PROPID_SET_SERVICE_DSSERVER, _FLAG),
        (SettingsProperty.PROPID_SET_SERVICE_DEPCLIENTS, _FLAG),
        (SettingsProperty.PROPID_SET_OLDSERVICE, _SERVICE),
        (ComputerProperty.PROPID_COM_FULL_PATH, _NAME),
        (
            ComputerProperty.PROPID_COM_SAM_ACCOUNT,
            _text(
                'name of 19 characters and "$"',
                lambda text: text.endswith("$") and len(text) <= SAM_ACCOUNT_LENGTH_MAX,
            ),
        ),
        (ComputerProperty.PROPID_COM_ACCOUNT_CONTROL, _bits(USER_ACCOUNT_CONTROL)),
        (
            ManagementMachineProperty.PROPID_MGMT_MSMQ_DSSERVER,
            _text("directory server behind two backslashes", _DIRECTORY_SERVER.fullmatch),
        ),
        (ManagementMachineProperty.PROPID_MGMT_MSMQ_CONNECTED, _one_of(CONNECTED)),
        (ManagementQueueProperty.PROPID_MGMT_QUEUE_TYPE, _one_of(QUEUE_TYPES)),
        (ManagementQueueProperty.PROPID_MGMT_QUEUE_LOCATION, _one_of(QUEUE_LOCATIONS)),
        (ManagementQueueProperty.PROPID_MGMT_QUEUE_XACT, _one_of(YES_NO)),
        (ManagementQueueProperty.PROPID_MGMT_QUEUE_FOREIGN, _one_of(YES_NO)),
        (ManagementQueueProperty.PROPID_MGMT_QUEUE_STATE, _one_of(QUEUE_STATES)),
        (
            ManagementQueueProperty.PROPID_MGMT_QUEUE_NEXTHOPS,
            _each(_text("next hop", _is_next_hop)),
        ),
        (
            ManagementQueueProperty.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO,
            _parallel(EOD_SOURCE_INFO, {}),
        ),
        (
            ManagementQueueProperty.PROPID_MGMT_QUEUE_CONNECTION_HISTORY,
            _parallel(
                CONNECTION_HISTORY,
                {
                    0: _one_of(ConnectionStatus),
                    3: _text("address of a connection", _HISTORY_ADDRESS.fullmatch),
                },
            ),
        ),
        (DeletionProperty.PROPID_D_SCOPE, _one_of(Scope)),
        (DeletionProperty.PROPID_D_OBJTYPE, _one_of(ObjectType)),
    )
}
