"""ACCESS_MASK and the rights MSMQ puts into it (MS-DTYP 2.4.3, MQMQ 2.2.23 to 2.2.27).

The low 16 bits mean something else for each kind of object; the standard rights above them and the
generic ones at the top are the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

# Rights every kind of object has, MS-DTYP 2.4.3.
DELETE: Final = 0x00010000
READ_CONTROL: Final = 0x00020000
WRITE_DACL: Final = 0x00040000
WRITE_OWNER: Final = 0x00080000
SYNCHRONIZE: Final = 0x00100000
ACCESS_SYSTEM_SECURITY: Final = 0x01000000
MAXIMUM_ALLOWED: Final = 0x02000000
GENERIC_ALL: Final = 0x10000000
GENERIC_EXECUTE: Final = 0x20000000
GENERIC_WRITE: Final = 0x40000000
GENERIC_READ: Final = 0x80000000

# MQQMACCESSMASK, MQMQ 2.2.23.
MQSEC_DELETE_DEADLETTER_MESSAGE: Final = 0x00000001
MQSEC_PEEK_DEADLETTER_MESSAGE: Final = 0x00000002
MQSEC_CREATE_QUEUE: Final = 0x00000004
MQSEC_SET_MACHINE_PROPERTIES: Final = 0x00000010
MQSEC_GET_MACHINE_PROPERTIES: Final = 0x00000020
MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE: Final = 0x00000040
MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE: Final = 0x00000080
MQSEC_DELETE_MACHINE: Final = 0x00010000
MQSEC_GET_MACHINE_PERMISSIONS: Final = 0x00020000
MQSEC_CHANGE_MACHINE_PERMISSIONS: Final = 0x00040000
MQSEC_TAKE_MACHINE_OWNERSHIP: Final = 0x00080000
MQSEC_RECEIVE_DEADLETTER_MESSAGE: Final = 0x00000003
MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE: Final = 0x000000C0
MQSEC_MACHINE_GENERIC_READ: Final = 0x000200E3
MQSEC_MACHINE_GENERIC_WRITE: Final = 0x00020024
MQSEC_MACHINE_GENERIC_ALL: Final = 0x000F00F7
MQSEC_MACHINE_WORLD_RIGHTS: Final = 0x00020020

# MQQUEUEACCESSMASK, MQMQ 2.2.24.
MQSEC_DELETE_MESSAGE: Final = 0x00000001
MQSEC_PEEK_MESSAGE: Final = 0x00000002
MQSEC_WRITE_MESSAGE: Final = 0x00000004
MQSEC_DELETE_JOURNAL_MESSAGE: Final = 0x00000008
MQSEC_SET_QUEUE_PROPERTIES: Final = 0x00000010
MQSEC_GET_QUEUE_PROPERTIES: Final = 0x00000020
MQSEC_DELETE_QUEUE: Final = 0x00010000
MQSEC_GET_QUEUE_PERMISSIONS: Final = 0x00020000
MQSEC_CHANGE_QUEUE_PERMISSIONS: Final = 0x00040000
MQSEC_TAKE_QUEUE_OWNERSHIP: Final = 0x00080000
MQSEC_RECEIVE_MESSAGE: Final = 0x00000003
MQSEC_RECEIVE_JOURNAL_MESSAGE: Final = 0x0000000A  # no peek right of its own: it shares the queue's
MQSEC_QUEUE_GENERIC_READ: Final = 0x0002002B
MQSEC_QUEUE_GENERIC_WRITE: Final = 0x00020024
MQSEC_QUEUE_GENERIC_ALL: Final = 0x000F003F

# MQSITEACCESSMASK, MQMQ 2.2.25.
MQSEC_CREATE_FRS: Final = 0x00000001
MQSEC_CREATE_BSC: Final = 0x00000002
MQSEC_CREATE_MACHINE: Final = 0x00000004
MQSEC_SET_SITE_PROPERTIES: Final = 0x00000010
MQSEC_GET_SITE_PROPERTIES: Final = 0x00000020
MQSEC_DELETE_SITE: Final = 0x00010000
MQSEC_GET_SITE_PERMISSIONS: Final = 0x00020000
MQSEC_CHANGE_SITE_PERMISSIONS: Final = 0x00040000
MQSEC_TAKE_SITE_OWNERSHIP: Final = 0x00080000
MQSEC_SITE_GENERIC_READ: Final = 0x00020020
MQSEC_SITE_GENERIC_WRITE: Final = 0x00020024
MQSEC_SITE_GENERIC_ALL: Final = 0x000F0037

# MQENTACCESSMASK, MQMQ 2.2.26.
MQSEC_CREATE_USER: Final = 0x00000001
MQSEC_CREATE_SITE: Final = 0x00000002
MQSEC_CREATE_CN: Final = 0x00000004
MQSEC_SET_ENTERPRISE_PROPERTIES: Final = 0x00000010
MQSEC_GET_ENTERPRISE_PROPERTIES: Final = 0x00000020
MQSEC_DELETE_ENTERPRISE: Final = 0x00010000
MQSEC_GET_ENTERPRISE_PERMISSIONS: Final = 0x00020000
MQSEC_CHANGE_ENTERPRISE_PERMISSIONS: Final = 0x00040000
MQSEC_TAKE_ENTERPRISE_OWNERSHIP: Final = 0x00080000
MQSEC_ENTERPRISE_GENERIC_READ: Final = 0x00020021
MQSEC_ENTERPRISE_GENERIC_WRITE: Final = 0x00020027
MQSEC_ENTERPRISE_GENERIC_ALL: Final = 0x000F0037

# MQCNACCESSMASK, MQMQ 2.2.27. It has no generic write, and its last name lacks the prefix.
MQSEC_CN_OPEN_CONNECTOR: Final = 0x00000001
MQSEC_SET_CN_PROPERTIES: Final = 0x00000010
MQSEC_GET_CN_PROPERTIES: Final = 0x00000020
MQSEC_DELETE_CN: Final = 0x00010000
MQSEC_GET_CN_PERMISSIONS: Final = 0x00020000
MQSEC_CHANGE_CN_PERMISSIONS: Final = 0x00040000
MQSEC_TAKE_CN_OWNERSHIP: Final = 0x00080000
MQSEC_CN_GENERIC_READ: Final = 0x00020020
SEC_CN_GENERIC_ALL: Final = 0x000F0031


class ObjectKind(Enum):
    """What an access mask is about; the value is what people call it."""

    QUEUE_MANAGER = "queue manager"
    QUEUE = "queue"
    SITE = "site"
    ENTERPRISE = "enterprise"
    CONNECTED_NETWORK = "connected network"


class GenericMapping(NamedTuple):
    """What the generic rights stand for."""

    read: int
    write: int
    all: int
    execute: int = 0  # nothing of MSMQ is executed


GENERIC_MAPPINGS: Final[Mapping[ObjectKind, GenericMapping]] = MappingProxyType(
    {
        ObjectKind.QUEUE_MANAGER: GenericMapping(
            MQSEC_MACHINE_GENERIC_READ, MQSEC_MACHINE_GENERIC_WRITE, MQSEC_MACHINE_GENERIC_ALL
        ),
        ObjectKind.QUEUE: GenericMapping(
            MQSEC_QUEUE_GENERIC_READ, MQSEC_QUEUE_GENERIC_WRITE, MQSEC_QUEUE_GENERIC_ALL
        ),
        ObjectKind.SITE: GenericMapping(
            MQSEC_SITE_GENERIC_READ, MQSEC_SITE_GENERIC_WRITE, MQSEC_SITE_GENERIC_ALL
        ),
        ObjectKind.ENTERPRISE: GenericMapping(
            MQSEC_ENTERPRISE_GENERIC_READ,
            MQSEC_ENTERPRISE_GENERIC_WRITE,
            MQSEC_ENTERPRISE_GENERIC_ALL,
        ),
        ObjectKind.CONNECTED_NETWORK: GenericMapping(MQSEC_CN_GENERIC_READ, 0, SEC_CN_GENERIC_ALL),
    }
)

# What a mask may be made of, in words; the rights that are two others together come first.
_COMMON_WORDS: Final = (
    (0x00000010, "change properties"),
    (0x00000020, "read properties"),
    (DELETE, "delete"),
    (READ_CONTROL, "read permissions"),
    (WRITE_DACL, "change permissions"),
    (WRITE_OWNER, "take ownership"),
    (SYNCHRONIZE, "synchronize"),
    (ACCESS_SYSTEM_SECURITY, "access system security"),
    (MAXIMUM_ALLOWED, "maximum allowed"),
    (GENERIC_ALL, "generic all"),
    (GENERIC_EXECUTE, "generic execute"),
    (GENERIC_WRITE, "generic write"),
    (GENERIC_READ, "generic read"),
)
_WORDS: Final[Mapping[ObjectKind, tuple[tuple[int, str], ...]]] = MappingProxyType(
    {
        ObjectKind.QUEUE_MANAGER: (
            (MQSEC_RECEIVE_DEADLETTER_MESSAGE, "receive dead letters"),
            (MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE, "receive from the journal"),
            (MQSEC_DELETE_DEADLETTER_MESSAGE, "delete dead letters"),
            (MQSEC_PEEK_DEADLETTER_MESSAGE, "peek dead letters"),
            (MQSEC_CREATE_QUEUE, "create queues"),
            (MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE, "delete from the journal"),
            (MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE, "peek the journal"),
        ),
        ObjectKind.QUEUE: (
            (MQSEC_RECEIVE_MESSAGE, "receive messages"),
            (MQSEC_RECEIVE_JOURNAL_MESSAGE, "receive journal messages"),
            (MQSEC_DELETE_MESSAGE, "delete messages"),
            (MQSEC_PEEK_MESSAGE, "peek messages"),
            (MQSEC_WRITE_MESSAGE, "send messages"),
            (MQSEC_DELETE_JOURNAL_MESSAGE, "delete journal messages"),
        ),
        ObjectKind.SITE: (
            (MQSEC_CREATE_FRS, "add routing servers"),
            (MQSEC_CREATE_BSC, "add backup site controllers"),
            (MQSEC_CREATE_MACHINE, "add queue managers"),
        ),
        ObjectKind.ENTERPRISE: (
            (MQSEC_CREATE_USER, "add users"),
            (MQSEC_CREATE_SITE, "add sites"),
            (MQSEC_CREATE_CN, "add connected networks"),
        ),
        ObjectKind.CONNECTED_NETWORK: ((MQSEC_CN_OPEN_CONNECTOR, "open connector queues"),),
    }
)


def map_generic(mask: int, kind: ObjectKind) -> int:
    """Replace the generic rights of a mask by what they stand for; other bits stay."""
    mapping = GENERIC_MAPPINGS[kind]
    mapped = mask & ~(GENERIC_READ | GENERIC_WRITE | GENERIC_EXECUTE | GENERIC_ALL)
    for generic, rights in (
        (GENERIC_READ, mapping.read),
        (GENERIC_WRITE, mapping.write),
        (GENERIC_EXECUTE, mapping.execute),
        (GENERIC_ALL, mapping.all),
    ):
        if mask & generic:
            mapped |= rights
    return mapped


def mask_in_words(mask: int, kind: ObjectKind) -> str:
    """Spell a mask for people: "receive messages, read properties"; bits without a name in hex."""
    if mask == 0:
        return "nothing"
    if mask == GENERIC_MAPPINGS[kind].all:
        return "full control"
    words = []
    spelled = 0
    for rights, word in _WORDS[kind] + _COMMON_WORDS:
        # A right is left out only when all of it was said: peek counts for both receive rights.
        if mask & rights == rights and rights & ~spelled:
            words.append(word)
            spelled |= rights
    if unknown := mask & ~spelled:
        words.append(f"{unknown:#x}")
    return ", ".join(words)
