"""Who may do what with queues and with the queue manager (MS-DTYP 2.5.3.2, MQMQ 2.2.23, 2.2.24).

How to think about it. A queue has a security descriptor, a caller is a set of SIDs, and an access
mask says what is wanted. `grants` goes through the entries of the descriptor in their order: what
an entry allows is no longer asked for, and an entry that denies something still asked for ends it.

Whoever calls the core is the owner of the process and may do everything, unless it says that it
acts for somebody: `with acting_as(principal):`. The word holds for the thread or task it was said
in, and for what these start. What the queue manager does on its own (acknowledgements, timers,
messages on their way) asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from falconmq.errors import MqStatus, QueueError
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.states import AccessType
from falconmq.wire.access_masks import (
    MQSEC_GET_MACHINE_PROPERTIES,
    MQSEC_PEEK_DEADLETTER_MESSAGE,
    MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE,
    MQSEC_PEEK_MESSAGE,
    MQSEC_RECEIVE_DEADLETTER_MESSAGE,
    MQSEC_RECEIVE_JOURNAL_MESSAGE,
    MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE,
    MQSEC_RECEIVE_MESSAGE,
    MQSEC_SET_MACHINE_PROPERTIES,
    MQSEC_WRITE_MESSAGE,
    READ_CONTROL,
    WRITE_DACL,
    ObjectKind,
    map_generic,
    mask_in_words,
)
from falconmq.wire.ace import (
    ACCESS_ALLOWED_ACE_TYPE,
    ACCESS_DENIED_ACE_TYPE,
    ACCESS_DENIED_CALLBACK_ACE_TYPE,
    INHERIT_ONLY_ACE,
    Ace,
    BasicAce,
)
from falconmq.wire.security_descriptor import SecurityDescriptor
from falconmq.wire.sid import ANONYMOUS, AUTHENTICATED_USERS, EVERYONE, OWNER_RIGHTS, Sid

if TYPE_CHECKING:
    from falconmq.manager.core import QueueManagerCore

DOMAIN_ACCOUNT: Final = 21  # the first number of SIDs that a domain or a computer gave out
_SENDING: Final = frozenset({AccessType.SEND})
_PEEKING: Final = frozenset({AccessType.PEEK, AccessType.PEEK_ADMIN})


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody, as a set of SIDs: the user, its groups, and the groups that everybody is in."""

    name: str  # for people
    user: Sid
    groups: frozenset[Sid] = frozenset()
    is_authenticated: bool = True
    is_in_everyone: bool = True
    sids: frozenset[Sid] = field(init=False)

    def __post_init__(self) -> None:
        sids = {self.user, *self.groups}
        if self.is_authenticated:
            sids.add(AUTHENTICATED_USERS)
        if self.is_in_everyone:
            sids.add(EVERYONE)
        object.__setattr__(self, "sids", frozenset(sids))

    @property
    def is_domain_user(self) -> bool:
        """Whether its SID is one of an account: S-1-5-21-..."""
        return self.is_authenticated and self.user.sub_authorities[:1] == (DOMAIN_ACCOUNT,)

    def __str__(self) -> str:
        return self.name if self.name == str(self.user) else f"{self.name} ({self.user})"


NOBODY_KNOWN: Final = Principal("anonymous", ANONYMOUS, is_authenticated=False)  # QB-A18-01
# For administrators who do not count it among everybody, as Windows does since 2003.
STRICTLY_ANONYMOUS: Final = Principal(
    "anonymous", ANONYMOUS, is_authenticated=False, is_in_everyone=False
)

_caller: ContextVar[Principal | None] = ContextVar("falconmq caller", default=None)


@contextmanager
def acting_as(principal: Principal | None) -> Iterator[None]:
    """Call the core for somebody; None: for the owner of the process, who may do everything."""
    token = _caller.set(principal)
    try:
        yield
    finally:
        _caller.reset(token)


def caller_of(core: QueueManagerCore) -> Principal | None:
    """Whom the core works for now; None: nobody has to be asked."""
    if not core.settings.access_control:
        return None
    return _caller.get() or core.principal


def sender_of(core: QueueManagerCore) -> Sid | None:
    """Whose messages are sent now, also where permissions are not obeyed; None: nobody known."""
    principal = _caller.get() or core.principal
    if principal is None:
        return core.settings.owner
    return principal.user if principal.is_authenticated else None


# The access check


def grants(
    descriptor: SecurityDescriptor | None, principal: Principal, mask: int, kind: ObjectKind
) -> bool:
    """Whether a descriptor gives somebody all rights of a mask (MS-DTYP 2.5.3.2).

    No list of entries is no rule: everybody may do everything. An empty list lets nobody in. There
    is no tree of objects, so entries about parts of an object say nothing, and no conditions are
    known: an entry with one does not allow, but it denies.
    """
    if descriptor is None or descriptor.dacl is None:
        return True
    remaining = map_generic(mask, kind)
    sids, aces = principal.sids, descriptor.dacl.aces
    if descriptor.owner is not None and descriptor.owner in sids:
        sids = sids | {OWNER_RIGHTS}
        if not any(isinstance(ace, BasicAce) and ace.sid == OWNER_RIGHTS for ace in aces):
            remaining &= ~(READ_CONTROL | WRITE_DACL)
    for ace in aces:
        if not _is_about(ace, sids):
            continue
        assert isinstance(ace, BasicAce)
        rights = map_generic(ace.mask, kind)
        if ace.ace_type == ACCESS_ALLOWED_ACE_TYPE:
            remaining &= ~rights
        elif remaining & rights:
            return False
    return remaining == 0


def _is_about(ace: Ace, sids: frozenset[Sid]) -> bool:
    """Whether an entry allows or denies something to one of these."""
    if not isinstance(ace, BasicAce) or ace.ace_flags & INHERIT_ONLY_ACE:
        return False
    kinds = (ACCESS_ALLOWED_ACE_TYPE, ACCESS_DENIED_ACE_TYPE, ACCESS_DENIED_CALLBACK_ACE_TYPE)
    return ace.ace_type in kinds and ace.sid in sids


# What the events of the core ask


def check_queue(core: QueueManagerCore, queue: Queue, mask: int) -> None:
    """QueueError ACCESS_DENIED unless the caller has these rights to a queue."""
    principal = caller_of(core)
    if principal is None:
        return
    owner = queue.parent or queue  # a subqueue and a journal are guarded like their queue
    if not grants(owner.properties.security, principal, mask, ObjectKind.QUEUE):
        what = mask_in_words(mask, ObjectKind.QUEUE)
        name = owner.path_name.with_computer(".")
        raise denied(
            f"{principal} may not {what}: {queue.path_name}",
            f"falconmq queue permissions show '{name}' tells who may",
        )


def check_manager(core: QueueManagerCore, mask: int) -> None:
    """QueueError ACCESS_DENIED unless the caller has these rights to the queue manager."""
    principal = caller_of(core)
    if principal is None:
        return
    if not grants(core.local.security, principal, mask, ObjectKind.QUEUE_MANAGER):
        what = mask_in_words(mask, ObjectKind.QUEUE_MANAGER)
        raise denied(
            f"{principal} may not {what} on {core.settings.computer_name}",
            "security.manager_permissions of the configuration says who may",
        )


def check_open(core: QueueManagerCore, queue: Queue, access: AccessType) -> None:
    """The rights that opening a queue takes; what is elsewhere is guarded there."""
    if caller_of(core) is None:
        return
    is_peek = access in _PEEKING
    if isinstance(queue, OutgoingQueue):
        if access not in _SENDING:
            rights = MQSEC_GET_MACHINE_PROPERTIES if is_peek else MQSEC_SET_MACHINE_PROPERTIES
            check_manager(core, rights)
    elif queue is core.journal:
        peeking, receiving = MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE, MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE
        check_manager(core, peeking if is_peek else receiving)
    elif queue is core.dead_letter or queue is core.transactional_dead_letter:
        peeking, receiving = MQSEC_PEEK_DEADLETTER_MESSAGE, MQSEC_RECEIVE_DEADLETTER_MESSAGE
        check_manager(core, peeking if is_peek else receiving)
    elif access in _SENDING:
        check_queue(core, queue, MQSEC_WRITE_MESSAGE)
    elif is_peek:
        check_queue(core, queue, MQSEC_PEEK_MESSAGE)
    elif queue.path_name.journal:
        check_queue(core, queue, MQSEC_RECEIVE_JOURNAL_MESSAGE)
    else:
        check_queue(core, queue, MQSEC_RECEIVE_MESSAGE)


def check_move(core: QueueManagerCore, source: Queue, destination: Queue) -> None:
    """Moving a message is receiving it, and sending it if it leaves its queue and subqueues."""
    check_open(core, source, AccessType.RECEIVE)
    if (source.parent or source) is not (destination.parent or destination):
        check_open(core, destination, AccessType.SEND)


def may_anyone_send(core: QueueManagerCore, queue: Queue) -> bool:
    """Whether a queue takes messages of senders whom nobody has verified (QB-A18-01)."""
    settings = core.settings
    if not settings.access_control:
        return True
    anonymous = NOBODY_KNOWN if settings.everyone_includes_anonymous else STRICTLY_ANONYMOUS
    descriptor = (queue.parent or queue).properties.security
    known = queue.anonymous_access  # asked for every message: 9 microseconds otherwise
    if known is not None and known[0] is descriptor and known[1] is anonymous:
        return known[2]
    is_allowed = grants(descriptor, anonymous, MQSEC_WRITE_MESSAGE, ObjectKind.QUEUE)
    queue.anonymous_access = (descriptor, anonymous, is_allowed)
    return is_allowed


def denied(message: str, hint: str) -> QueueError:
    return QueueError(message, status=MqStatus.ACCESS_DENIED, hint=hint)
