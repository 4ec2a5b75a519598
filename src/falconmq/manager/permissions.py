"""Security descriptors in the words of administrators, and changes to them.

Who: Everyone, Anonymous, Administrators and their like, the two letters of SDDL, a SID, or a name
that the caller knows. What: send, receive, peek, full and the other words of `RIGHTS`, or a number.
Everything here is a function of plain values; who may change a descriptor is asked elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from falconmq.errors import MqStatus, NameSyntaxError, QueueError
from falconmq.wire import access_masks as masks
from falconmq.wire.access_masks import ObjectKind, map_generic
from falconmq.wire.ace import (
    ACCESS_ALLOWED_ACE_TYPE,
    ACCESS_DENIED_ACE_TYPE,
    INHERIT_ONLY_ACE,
    Ace,
    BasicAce,
    access_allowed,
)
from falconmq.wire.acl import Acl
from falconmq.wire.sddl import parse_sid
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import (
    ADMINISTRATORS,
    ANONYMOUS,
    AUTHENTICATED_USERS,
    EVERYONE,
    GUESTS,
    LOCAL_SERVICE,
    LOCAL_SYSTEM,
    NETWORK_SERVICE,
    OWNER_RIGHTS,
    USERS,
    Sid,
)

WELL_KNOWN: Final[Mapping[str, Sid]] = MappingProxyType(
    {
        "Everyone": EVERYONE,
        "Anonymous": ANONYMOUS,
        "Authenticated Users": AUTHENTICATED_USERS,
        "Administrators": ADMINISTRATORS,
        "Users": USERS,
        "Guests": GUESTS,
        "System": LOCAL_SYSTEM,
        "Local Service": LOCAL_SERVICE,
        "Network Service": NETWORK_SERVICE,
        "Owner Rights": OWNER_RIGHTS,
    }
)
# The words for rights to a queue; those that are others together stand last.
RIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "send": masks.MQSEC_WRITE_MESSAGE,
        "receive": masks.MQSEC_RECEIVE_MESSAGE,
        "peek": masks.MQSEC_PEEK_MESSAGE,
        "receive-journal": masks.MQSEC_RECEIVE_JOURNAL_MESSAGE,
        "get-properties": masks.MQSEC_GET_QUEUE_PROPERTIES,
        "set-properties": masks.MQSEC_SET_QUEUE_PROPERTIES,
        "get-permissions": masks.MQSEC_GET_QUEUE_PERMISSIONS,
        "set-permissions": masks.MQSEC_CHANGE_QUEUE_PERMISSIONS,
        "delete": masks.MQSEC_DELETE_QUEUE,
        "take-ownership": masks.MQSEC_TAKE_QUEUE_OWNERSHIP,
        "properties": masks.MQSEC_GET_QUEUE_PROPERTIES | masks.MQSEC_SET_QUEUE_PROPERTIES,
        "permissions": masks.MQSEC_GET_QUEUE_PERMISSIONS | masks.MQSEC_CHANGE_QUEUE_PERMISSIONS,
        "full": masks.MQSEC_QUEUE_GENERIC_ALL,
    }
)
# The same for rights to the queue manager itself.
MANAGER_RIGHTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "create-queue": masks.MQSEC_CREATE_QUEUE,
        "receive-dead-letters": masks.MQSEC_RECEIVE_DEADLETTER_MESSAGE,
        "peek-dead-letters": masks.MQSEC_PEEK_DEADLETTER_MESSAGE,
        "receive-journal": masks.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE,
        "peek-journal": masks.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE,
        "get-properties": masks.MQSEC_GET_MACHINE_PROPERTIES,
        "set-properties": masks.MQSEC_SET_MACHINE_PROPERTIES,
        "get-permissions": masks.MQSEC_GET_MACHINE_PERMISSIONS,
        "set-permissions": masks.MQSEC_CHANGE_MACHINE_PERMISSIONS,
        "delete": masks.MQSEC_DELETE_MACHINE,
        "take-ownership": masks.MQSEC_TAKE_MACHINE_OWNERSHIP,
        "full": masks.MQSEC_MACHINE_GENERIC_ALL,
    }
)
_NUMBER: Final = re.compile(r"0x[0-9a-f]{1,8}", re.IGNORECASE)
_FOLDED: Final = {name.casefold(): sid for name, sid in WELL_KNOWN.items()}
_KIND: Final = ObjectKind.QUEUE


def who(text: str, known: Mapping[str, Sid] | None = None) -> Sid:
    """The SID that somebody means; `known` has the names of this queue manager's own principals."""
    name = text.strip()
    own = {other.casefold(): sid for other, sid in (known or {}).items()}
    found = own.get(name.casefold()) or _FOLDED.get(name.casefold())
    if found is not None:
        return found
    try:
        return parse_sid(name)
    except NameSyntaxError as error:
        names = [*(known or {}), *WELL_KNOWN]
        raise _wrong(
            f"nobody is called {text!r} here",
            f"a SID (S-1-...), or one of {', '.join(names)}",
        ) from error


def name_of(sid: Sid, known: Mapping[str, Sid] | None = None) -> str:
    """What people call a SID; the SID itself if it has no name here."""
    for name, other in (*(known or {}).items(), *WELL_KNOWN.items()):
        if other == sid:
            return name
    return str(sid)


def rights_mask(words: Iterable[str]) -> int:
    """The access mask that words, or numbers like 0x24, stand for together."""
    mask = 0
    for word in words:
        found = RIGHTS.get(word.strip().lower())
        if found is None and _NUMBER.fullmatch(word.strip()):
            found = map_generic(int(word, 16), _KIND)
        if not found or found & ~masks.MQSEC_QUEUE_GENERIC_ALL:
            raise _wrong(f"{word!r} is no right to a queue", f"choose from {', '.join(RIGHTS)}")
        mask |= found
    if not mask:
        raise _wrong("no right is named", f"choose from {', '.join(RIGHTS)}")
    return mask


def rights_words(mask: int) -> list[str]:
    """A mask in the same words; what has none as a number."""
    return _words(map_generic(mask, _KIND), RIGHTS)


def manager_rights_words(mask: int) -> list[str]:
    """Rights to the queue manager itself, in words."""
    return _words(map_generic(mask, ObjectKind.QUEUE_MANAGER), MANAGER_RIGHTS)


def _words(mask: int, known: Mapping[str, int]) -> list[str]:
    if mask == known["full"]:
        return ["full"]
    words, spelled = [], 0
    for word, rights in known.items():
        if mask & rights == rights and rights & ~spelled:
            words.append(word)
            spelled |= rights
    rest = mask & ~spelled
    return [*words, f"{rest:#x}"] if rest else words


def grant(descriptor: SecurityDescriptor, sid: Sid, mask: int) -> SecurityDescriptor:
    """The same descriptor, which gives these rights; what denied them to that SID is gone."""
    if descriptor.dacl is None:
        return descriptor  # everybody may do everything
    aces: list[Ace] = []
    is_given = False
    for ace in descriptor.dacl.aces:
        if _is_plain(ace, sid, ACCESS_DENIED_ACE_TYPE):
            aces += _without(ace, mask)
        elif _is_plain(ace, sid, ACCESS_ALLOWED_ACE_TYPE) and not is_given:
            assert isinstance(ace, BasicAce)
            aces.append(replace(ace, mask=map_generic(ace.mask, _KIND) | mask))
            is_given = True
        else:
            aces.append(ace)
    if not is_given:
        aces.append(access_allowed(mask, sid))
    return replace(descriptor, dacl=Acl.of(aces))


def revoke(descriptor: SecurityDescriptor, sid: Sid, mask: int) -> SecurityDescriptor:
    """The same descriptor, in which no entry gives these rights to that SID.

    It may still have them as a member of a group.
    """
    if descriptor.dacl is None:
        raise QueueError(
            "the queue has no list of permissions: everybody may do everything",
            status=MqStatus.ILLEGAL_SECURITY_DESCRIPTOR,
            hint="make one first: falconmq queue permissions set QUEUE 'D:(A;;GA;;;WD)'",
        )
    aces: list[Ace] = []
    for ace in descriptor.dacl.aces:
        if _is_plain(ace, sid, ACCESS_ALLOWED_ACE_TYPE):
            aces += _without(ace, mask)
        else:
            aces.append(ace)
    return replace(descriptor, dacl=Acl.of(aces))


def _is_plain(ace: Ace, sid: Sid, ace_type: int) -> bool:
    """Whether an entry says this about that SID here, and not only to what inherits from here."""
    return (
        isinstance(ace, BasicAce)
        and ace.ace_type == ace_type
        and ace.sid == sid
        and not ace.ace_flags & INHERIT_ONLY_ACE
    )


def _without(ace: Ace, mask: int) -> list[Ace]:
    assert isinstance(ace, BasicAce)
    left = map_generic(ace.mask, _KIND) & ~mask
    return [replace(ace, mask=left)] if left else []


def _wrong(message: str, hint: str) -> QueueError:
    return QueueError(message, status=MqStatus.INVALID_PARAMETER, hint=hint)
