"""Who may do what with a queue, or the queue manager: security descriptors, in SDDL and words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Depends
from pydantic import Field

from falconmq.errors import WireError
from falconmq.manager.access import check_manager, check_queue
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.permissions import (
    grant,
    manager_rights_words,
    name_of,
    revoke,
    rights_mask,
    rights_words,
    who,
)
from falconmq.manager.queues import set_queue_properties
from falconmq.service.access import Role, require
from falconmq.service.access.principals import Principals
from falconmq.service.api.context import Control, Given
from falconmq.service.directory.asking_ahead import reach
from falconmq.service.requests.finding import find_local
from falconmq.service.requests.reading import durable
from falconmq.service.schemas import Strict
from falconmq.service.web.audited import note
from falconmq.wire.access_masks import (
    MQSEC_GET_MACHINE_PERMISSIONS,
    MQSEC_GET_QUEUE_PERMISSIONS,
)
from falconmq.wire.ace import (
    ACCESS_ALLOWED_ACE_TYPE,
    ACCESS_DENIED_ACE_TYPE,
    INHERIT_ONLY_ACE,
    Ace,
    BasicAce,
)
from falconmq.wire.sddl import format_sddl, parse_sddl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import Sid

router: Final = APIRouter(dependencies=[Depends(require(Role.MANAGE))])
_ENTRIES_MAX: Final = 100  # of one request
_KINDS: Final = {ACCESS_ALLOWED_ACE_TYPE: "allow", ACCESS_DENIED_ACE_TYPE: "deny"}

Json = dict[str, Any]
Alter = Callable[[SecurityDescriptor], SecurityDescriptor]
Words = Callable[[int], list[str]]  # of a mask


class Change(Strict):
    """Rights for somebody."""

    who: str = Field(
        description="Everyone, Anonymous, Administrators, a principal of the configuration, a SID.",
        examples=["Everyone"],
        max_length=200,
    )
    rights: list[str] = Field(
        description="send, receive, peek, full and the others, or numbers like 0x24.",
        min_length=1,
        max_length=20,
    )


class PermissionsUpdate(Strict):
    """What is granted and then revoked, all of it or nothing."""

    grant: list[Change] = Field([], max_length=_ENTRIES_MAX)
    revoke: list[Change] = Field([], max_length=_ENTRIES_MAX)


class PermissionsRequest(Strict):
    """The whole list, or the owner, or both; what the text leaves out stays."""

    sddl: str = Field(examples=["D:(A;;GA;;;BA)(A;;0x4;;;WD)"], max_length=65_536)


class EntryOut(Strict):
    """One line of the list; the first that fits decides about each right."""

    kind: str = Field(description="allow, deny, or other: it counts for nothing here.")
    sid: str
    name: str = Field(description="What people call it; the SID if it has no name.")
    rights: list[str]
    mask: int


class DescriptorOut(Strict):
    """Who may do what."""

    owner: str
    owner_name: str
    unlimited: bool = Field(description="There is no list: everybody may do everything.")
    entries: list[EntryOut]
    sddl: str | None = Field(description="Null if SDDL cannot say it.")


class PermissionsOut(DescriptorOut):
    """Who may do what with a queue."""

    queue: str


@router.get("/permissions", response_model=DescriptorOut)
async def get_manager_permissions(control: Given) -> Json:
    """Who may do what with the queue manager itself; `security.manager_permissions` sets it."""
    return control.engine.look(_look_at_manager, control.principals)


@router.get("/queues/{name:path}/permissions", response_model=PermissionsOut)
async def get_permissions(control: Given, name: str) -> Json:
    """Who may do what with a queue."""
    return control.engine.look(_look, name, control.principals)


@router.put("/queues/{name:path}/permissions", response_model=PermissionsOut)
async def set_permissions(control: Given, name: str, given: PermissionsRequest) -> Json:
    """Replace the list, and the owner if the text names one."""
    note(details=given.sddl)
    return await _changed(control, name, lambda old: _replaced(old, parse_sddl(given.sddl)))


@router.patch("/queues/{name:path}/permissions", response_model=PermissionsOut)
async def change_permissions(control: Given, name: str, given: PermissionsUpdate) -> Json:
    """Grant and revoke; entries of others stay as they are."""
    names = control.principals.names
    words = [(word, each) for word in ("grant", "revoke") for each in getattr(given, word)]
    note(details="; ".join(f"{word} {e.who}: {', '.join(e.rights)}" for word, e in words))

    def changed(descriptor: SecurityDescriptor) -> SecurityDescriptor:
        for word, each in words:
            change = grant if word == "grant" else revoke
            descriptor = change(descriptor, who(each.who, names), rights_mask(each.rights))
        return descriptor

    return await _changed(control, name, changed)


async def _changed(control: Control, name: str, change: Alter) -> Json:
    await reach(control.engine, name)
    answer, commit = control.engine.run(_change, name, change, control.principals)
    if commit is not None:
        await durable(control.engine, commit)
    return answer


def _change(core: QueueManagerCore, name: str, change: Alter, principals: Principals) -> Json:
    queue = _guarded(core, name)
    old = queue.properties.security or SecurityDescriptor()
    set_queue_properties(core, queue, security=change(old))
    return _shown(queue, principals)


def _look(core: QueueManagerCore, name: str, principals: Principals) -> Json:
    queue = _guarded(core, name)
    check_queue(core, queue, MQSEC_GET_QUEUE_PERMISSIONS)
    return _shown(queue, principals)


def _look_at_manager(core: QueueManagerCore, principals: Principals) -> Json:
    check_manager(core, MQSEC_GET_MACHINE_PERMISSIONS)
    return _described(core.local.security, principals, manager_rights_words)


def _guarded(core: QueueManagerCore, name: str) -> Queue:
    """The queue whose descriptor counts: that of a journal or a subqueue is its queue's."""
    queue = find_local(core, name)
    return queue.parent or queue


def _replaced(old: SecurityDescriptor, new: SecurityDescriptor) -> SecurityDescriptor:
    """What the text does not say stays as it was."""
    is_said = new.dacl is not None or new.has_null_dacl
    return SecurityDescriptor(
        new.owner or old.owner,
        new.group or old.group,
        new.dacl if is_said else old.dacl,
        new.sacl or old.sacl,
        new.control if is_said else old.control,
    )


def _shown(queue: Queue, principals: Principals) -> Json:
    name = str(queue.path_name.with_computer("."))
    return {"queue": name, **_described(queue.properties.security, principals, rights_words)}


def _described(given: SecurityDescriptor | None, principals: Principals, words: Words) -> Json:
    descriptor = given or SecurityDescriptor()
    owner = descriptor.owner
    return {
        "owner": "" if owner is None else str(owner),
        "owner_name": "" if owner is None else name_of(owner, principals.names),
        "unlimited": descriptor.dacl is None,
        "entries": []
        if descriptor.dacl is None
        else [_entry(ace, principals, words) for ace in descriptor.dacl.aces],
        "sddl": _sddl(descriptor),
    }


def _entry(ace: Ace, principals: Principals, words: Words) -> Json:
    sid: Sid | None = getattr(ace, "sid", None)
    mask: int = getattr(ace, "mask", 0)
    counts = isinstance(ace, BasicAce) and not ace.ace_flags & INHERIT_ONLY_ACE
    return {
        "kind": _KINDS.get(ace.ace_type, "other") if counts else "other",
        "sid": "" if sid is None else str(sid),
        "name": "" if sid is None else name_of(sid, principals.names),
        "rights": words(mask),
        "mask": mask,
    }


def _sddl(descriptor: SecurityDescriptor) -> str | None:
    try:
        return format_sddl(descriptor)
    except WireError:
        return None
