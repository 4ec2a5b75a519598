"""Opening and closing queues (MQDMPR 3.1.7.1.5, 3.1.7.1.6).

A queue of this computer is found by any of its names. A name that leads elsewhere is opened for
sending only: the messages wait in an outgoing queue, one for each destination.
"""

from __future__ import annotations

from typing import Final

from falconmq.errors import FalconMQError, MqStatus, QueueError
from falconmq.manager.access import check_open
from falconmq.manager.core import QueueManagerCore, next_number
from falconmq.manager.creation import new_identifier, open_subqueue
from falconmq.manager.cursors import close_cursor
from falconmq.manager.destinations import check_room
from falconmq.manager.directory_backend import equals
from falconmq.manager.model import OpenQueueDescriptor, OutgoingQueue, Queue, QueueProperties
from falconmq.manager.path_names import is_directory_away, look_up
from falconmq.manager.persistence import store_queue
from falconmq.manager.public_queues import unknown_to_directory
from falconmq.manager.queue_names import (
    direct_path,
    expand_format_name,
    find_queue,
    queue_not_found,
)
from falconmq.manager.registry import is_local_computer, register
from falconmq.manager.states import AccessType, DirectoryResult, OutgoingState, ShareMode
from falconmq.manager.waiting import end_waits_of
from falconmq.names import (
    DirectFormatName,
    FormatName,
    MulticastFormatName,
    MultipleElementFormatName,
    PrivateFormatName,
    PublicFormatName,
    SingleFormatName,
)

_RECEIVING: Final = frozenset({AccessType.RECEIVE, AccessType.RECEIVE_ADMIN})  # DM-A62
_PEEKING: Final = frozenset({AccessType.PEEK, AccessType.PEEK_ADMIN})


def open_queue(
    core: QueueManagerCore,
    format_name: FormatName,
    access: AccessType,
    share: ShareMode = ShareMode.DENY_NONE,
    *,
    internal: bool = False,
) -> OpenQueueDescriptor:
    """Open a queue, or for sending any number of them (Open Queue, MQDMPR 3.1.7.1.5).

    `internal` is for the queue manager's own services: they alone may open the order and the
    notification queue, and nobody's rights are asked for them. Others are refused what the security
    descriptor of the queue does not give them.
    """
    name = expand_format_name(core, format_name)  # DM-3.1.7.1.5-03, -04
    if isinstance(name, MultipleElementFormatName):
        return _open_multiple(core, name, access, share)
    _check_access(name, access)
    queue = _find(core, name, access)
    if queue is None:
        if internal:  # a peer's wish, not a user's
            check_room(core, name)
        queue = _create_outgoing(core, name, access, for_peer=internal)
    if queue.is_internal and not internal:  # DM-3.1.3-44
        raise QueueError(
            f"{queue.path_name} is for the queue manager alone",
            status=MqStatus.ACCESS_DENIED,
            hint="use a queue of your own",
        )
    if not internal:
        check_open(core, queue, access)
    if violates_sharing(queue, access, share):
        raise QueueError(
            f"{queue.path_name} is open in a way that does not go with {access.name} and "
            f"{share.name}",
            status=MqStatus.SHARING_VIOLATION,
            hint="close the other reader, or open both with DENY_NONE",
        )
    descriptor = _describe(core, name, access, share, queue)
    queue.descriptors.append(descriptor)  # DM-3.1.7.1.5-37
    return descriptor


def close_queue(core: QueueManagerCore, descriptor: OpenQueueDescriptor) -> None:
    """Close Queue, MQDMPR 3.1.7.1.6. Closing again, or a queue that was deleted, is no error."""
    core.descriptors.pop(descriptor.handle, None)
    if descriptor.is_multiple:  # before the test for a queue: DM-A06
        for child in descriptor.children:
            close_queue(core, child)
        return
    queue = descriptor.queue
    if queue is None or descriptor not in queue.descriptors:  # DM-3.1.7.1.6-02
        for cursor in list(descriptor.cursors):  # of a queue that was deleted: nobody reads on
            close_cursor(core, cursor)
        return
    end_waits_of(core, descriptor, MqStatus.OPERATION_CANCELLED)  # DM-3.1.7.1.6-04, DM-A61
    for cursor in list(descriptor.cursors):
        close_cursor(core, cursor)  # DM-3.1.7.1.6-05
    queue.descriptors.remove(descriptor)  # DM-3.1.7.1.6-06


def violates_sharing(queue: Queue, access: AccessType, share: ShareMode) -> bool:
    """Whether those who have the queue open keep this request out; the first match decides."""
    deny, none = ShareMode.DENY_RECEIVE, ShareMode.DENY_NONE
    held = {(descriptor.access, descriptor.share) for descriptor in queue.descriptors}
    if any(mode is deny and kind in _RECEIVING for kind, mode in held):
        return share is deny or access in _RECEIVING  # DM-3.1.7.1.5-29, -30
    if any(mode is deny and kind in _PEEKING for kind, mode in held):
        return access in _RECEIVING  # DM-3.1.7.1.5-31
    if any(mode is none and kind in _RECEIVING for kind, mode in held):
        return share is deny  # DM-3.1.7.1.5-32
    return False


def _open_multiple(
    core: QueueManagerCore, name: MultipleElementFormatName, access: AccessType, share: ShareMode
) -> OpenQueueDescriptor:
    if access is not AccessType.SEND:  # DM-3.1.7.1.5-05
        raise _unsupported(name, "several queues can be opened for sending only")
    if share is not ShareMode.DENY_NONE:  # DM-3.1.7.1.5-06
        raise QueueError(
            f"{name} is opened for sending: nobody can be denied to receive",
            status=MqStatus.UNSUPPORTED_ACCESS_MODE,
            hint="open with DENY_NONE",
        )
    parent = _describe(core, name, AccessType.SEND, ShareMode.DENY_NONE, None)
    parent.is_multiple = True
    try:
        for element in name.elements:  # DM-3.1.7.1.5-10
            parent.children.append(open_queue(core, element, AccessType.SEND))
    except FalconMQError:
        close_queue(core, parent)  # DM-3.1.7.1.5-11
        raise
    return parent


def _check_access(name: SingleFormatName, access: AccessType) -> None:
    """What a kind of name allows, wherever its queue may be."""
    is_send = access is AccessType.SEND
    if isinstance(name, DirectFormatName) and name.protocol.is_url and not is_send:
        raise _unsupported(name, "over HTTP a queue can be opened for sending only")  # -13
    if isinstance(name, MulticastFormatName) and not is_send:  # DM-3.1.7.1.5-15
        raise _unsupported(name, "a multicast address can be opened for sending only")
    if name.is_read_only and is_send:  # journals and dead letters, MACHINE=: DM-3.1.7.1.5-14
        raise _unsupported(name, "only the queue manager writes there")
    if isinstance(name, DirectFormatName) and name.subqueue is not None and is_send:
        raise _unsupported(name, "messages are moved into a subqueue, not sent")


def _find(core: QueueManagerCore, name: SingleFormatName, access: AccessType) -> Queue | None:
    queue = find_queue(core, name)
    if queue is None and isinstance(name, DirectFormatName) and name.subqueue is not None:
        return _find_subqueue(core, name)
    if queue is None and access is AccessType.SEND:
        return core.outgoing.get(name)  # DM-3.1.7.1.5-16
    return queue


def _find_subqueue(core: QueueManagerCore, name: DirectFormatName) -> Queue | None:
    """A subqueue comes to be when it is opened, if its queue is here."""
    assert name.subqueue is not None
    path = direct_path(name)
    if path is None or not is_local_computer(core, name.address):
        return None
    parent = DirectFormatName(name.protocol, name.address, name.kind, name.queue, port=name.port)
    queue = find_queue(core, parent)
    return None if queue is None else open_subqueue(core, queue, name.subqueue)


def _create_outgoing(
    core: QueueManagerCore, name: SingleFormatName, access: AccessType, *, for_peer: bool
) -> OutgoingQueue:
    """The queue that holds messages until their destination takes them."""
    if access is not AccessType.SEND:  # DM-3.1.7.1.5-17
        raise _cannot_read(core, name)
    base_priority = 0
    match name:
        case DirectFormatName() if is_local_computer(core, name.address):  # DM-3.1.7.1.5-18
            raise queue_not_found(core, name)
        case PrivateFormatName() if name.computer == core.identifier:  # DM-3.1.7.1.5-21
            raise queue_not_found(core, name)
        case PublicFormatName():
            base_priority = _read_base_priority(core, name, for_peer=for_peer)
    number = next_number(core, core.queue_number)
    properties = QueueProperties(label=str(name), base_priority=base_priority)  # -23, -25
    queue = OutgoingQueue(number, name, properties, core.fetch)
    queue.identifier = new_identifier(core)  # DM-3.1.7.1.5-22
    queue.create_time = queue.modify_time = int(core.clock.time())
    if core.settings.hardened_security and not queue.is_http:  # DM-3.1.7.1.5-26
        queue.state = OutgoingState.LOCKED
    register(core, queue)  # DM-3.1.7.1.5-28
    store_queue(core, queue)
    return queue


def _read_base_priority(core: QueueManagerCore, name: PublicFormatName, *, for_peer: bool) -> int:
    result, row = look_up(core, "Queue", equals("identifier", name.queue))
    if result is not DirectoryResult.SUCCESS:  # DM-3.1.7.1.5-19, DM-A09
        if for_peer and is_directory_away(core):
            return 0  # somebody knew the queue: to refuse its message would lose it for good
        raise unknown_to_directory(core, name, result)
    if is_local_computer(core, str(row["computer_name"])):  # DM-3.1.7.1.5-20
        raise queue_not_found(core, name)
    base_priority = row["base_priority"]
    assert isinstance(base_priority, int)
    return base_priority


def _cannot_read(core: QueueManagerCore, name: SingleFormatName) -> QueueError:
    if isinstance(name, DirectFormatName) and not is_local_computer(core, name.address):
        return QueueError(
            f"no queue {name} on {core.settings.computer_name}",
            status=MqStatus.QUEUE_NOT_FOUND,
            hint=f"messages are read where they are: on {name.address}",
        )
    return queue_not_found(core, name)


def _describe(
    core: QueueManagerCore,
    name: FormatName,
    access: AccessType,
    share: ShareMode,
    queue: Queue | None,
) -> OpenQueueDescriptor:
    handle, context_value = core.next_handle(), core.next_handle()  # DM-3.1.7.1.5-09, -35
    descriptor = OpenQueueDescriptor(handle, context_value, access, share, name, queue)
    core.descriptors[handle] = descriptor
    return descriptor


def _unsupported(name: FormatName, problem: str) -> QueueError:
    return QueueError(f"{name}: {problem}", status=MqStatus.UNSUPPORTED_FORMATNAME_OPERATION)
