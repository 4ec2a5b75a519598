"""Who may use a queue whose creator did not say (MQDMPR 3.1.7.1.3.1).

The order of the entries is part of the contract: Everyone, anonymous, the computer, the owner.
"""

from __future__ import annotations

from typing import Final

from falconmq.manager.access import caller_of
from falconmq.manager.core import QueueManagerCore
from falconmq.wire.access_masks import (
    MQSEC_GET_QUEUE_PERMISSIONS,
    MQSEC_GET_QUEUE_PROPERTIES,
    MQSEC_QUEUE_GENERIC_ALL,
    MQSEC_WRITE_MESSAGE,
)
from falconmq.wire.ace import access_allowed
from falconmq.wire.acl import Acl
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import ANONYMOUS, EVERYONE, Sid

GUEST_RELATIVE_IDENTIFIER: Final = 501
_LOOK_AT: Final = MQSEC_GET_QUEUE_PROPERTIES | MQSEC_GET_QUEUE_PERMISSIONS


def default_security(
    core: QueueManagerCore, computer_name: str, supplied: SecurityDescriptor | None = None
) -> SecurityDescriptor:
    """The descriptor of a new queue: what its creator gave, and defaults for the rest."""
    machine = None  # DM-3.1.7.1.3.1-01
    if core.directory.is_integrated:
        machine = core.directory.computer_sid(computer_name)  # DM-3.1.7.1.3.1-02, -03
    settings, principal = core.settings, caller_of(core)
    return build_descriptor(
        supplied,
        caller=settings.owner if principal is None else principal.user,
        is_domain_user=(
            settings.owner_is_domain_user if principal is None else principal.is_domain_user
        ),
        machine=machine,
        srmp=settings.srmp_support,
    )


def build_descriptor(
    supplied: SecurityDescriptor | None,
    *,
    caller: Sid | None,
    is_domain_user: bool,
    machine: Sid | None,
    srmp: bool,
) -> SecurityDescriptor:
    """The same, from plain values. `is_domain_user` is said of the owner, whoever that is."""
    given = SecurityDescriptor() if supplied is None else supplied
    owner = given.owner or caller  # DM-3.1.7.1.3.1-05, -08
    if owner is None or not is_domain_user:
        owner = ANONYMOUS  # DM-3.1.7.1.3.1-09
    if given.dacl is not None or given.has_null_dacl:  # DM-3.1.7.1.3.1-06, -10
        return SecurityDescriptor(owner, None, given.dacl, given.sacl, given.control)
    dacl = _default_dacl(owner, machine, is_domain_user=is_domain_user, srmp=srmp)
    return SecurityDescriptor(owner, None, dacl, given.sacl)  # DM-3.1.7.1.3.1-07


def _default_dacl(owner: Sid, machine: Sid | None, *, is_domain_user: bool, srmp: bool) -> Acl:
    is_guest = owner.sub_authorities[-1:] == (GUEST_RELATIVE_IDENTIFIER,)
    if is_guest or not is_domain_user:
        world_access, owner_access = MQSEC_QUEUE_GENERIC_ALL, 0  # DM-3.1.7.1.3.1-12
    else:
        world_access, owner_access = _LOOK_AT, MQSEC_QUEUE_GENERIC_ALL  # DM-3.1.7.1.3.1-13
    if srmp:
        world_access |= MQSEC_WRITE_MESSAGE  # DM-3.1.7.1.3.1-15
    aces = [access_allowed(world_access, EVERYONE)]  # DM-3.1.7.1.3.1-16
    if srmp:
        aces.append(access_allowed(MQSEC_WRITE_MESSAGE, ANONYMOUS))  # DM-3.1.7.1.3.1-17
    if machine is not None:
        aces.append(access_allowed(_LOOK_AT, machine))  # DM-3.1.7.1.3.1-14, -18
    if owner_access:
        aces.append(access_allowed(owner_access, owner))  # DM-3.1.7.1.3.1-19
    return Acl.of(aces)
