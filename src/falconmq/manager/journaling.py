"""Copies that are kept: journals and dead letters (MQDMPR 3.1.1.12, MC-MQAC 3.1.6.1.1).

A copy gets a place of its own, in a queue that waits for ever: nothing here expires. Nobody is told
of it as of a message that came, for it is none.
"""

from __future__ import annotations

from dataclasses import replace

from falconmq.errors import NameSyntaxError
from falconmq.manager.core import QueueManagerCore, is_source
from falconmq.manager.events import EventKind
from falconmq.manager.model import OutgoingQueue, Queue
from falconmq.manager.placing import link_message, make_readable
from falconmq.manager.positions import MessagePosition
from falconmq.manager.quotas import has_room
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import QueueType
from falconmq.manager.waiting import feed_waiting_reads
from falconmq.names import PathName
from falconmq.wire.user_header import JOURNAL_POSITIVE


def store_copy(core: QueueManagerCore, target: Queue, message: StoredMessage) -> bool:
    """Keep a copy in a journal or dead-letter queue; False if its quota has no room for it."""
    if not has_room(target, message):
        return False
    position = link_message(core, target, replace(message))
    if core.events is not None:
        is_dead = message.is_dead_letter
        kind = EventKind.DEAD_LETTERED if is_dead else EventKind.JOURNALED
        core.events.record_position(kind, position, reason=message.dead_letter_reason)
    deliver_unnoticed(core, position)
    return True


def deliver_unnoticed(core: QueueManagerCore, position: MessagePosition) -> None:
    """Make a message readable without telling the subscribers (DM-3.1.7.1.16-06).

    Who waits for one gets it all the same (DM-A63).
    """
    make_readable(core, position)
    feed_waiting_reads(core, position.queue, position)


# Journals


def journal_sent_message(core: QueueManagerCore, message: StoredMessage) -> bool:
    """Keep the copy that the sender of a delivered message asked for; False if there is none."""
    if not message.packet.user.flags & JOURNAL_POSITIVE:  # DM-3.1.1.12-54
        return False
    return store_copy(core, core.journal, message)  # DM-3.1.1.12-52, DM-3.1.1.12-53


def journal_local_delivery(core: QueueManagerCore, message: StoredMessage) -> None:
    """A message to a queue of its own computer is delivered when it can be read."""
    packet = message.decoded
    flags = message.head.flags if packet is None else packet.user.flags
    if not flags & JOURNAL_POSITIVE:
        return
    if not message.move_count and is_source(core, message):
        journal_sent_message(core, message)


def target_journal(queue: Queue) -> Queue | None:
    """Where a copy of a message goes that was read; a subqueue shares its queue's journal."""
    if queue.queue_type is QueueType.SYSTEM:
        return None
    main = queue.parent or queue
    return main.journal if main.properties.journaling else None


# Dead letters


def dead_letter(core: QueueManagerCore, queue: Queue, message: StoredMessage, reason: int) -> None:
    """Keep a copy of an undelivered message, if it is for us to keep (MC-MQAC 3.1.6.1.1).

    The application's own dead-letter queue never travels, so whoever knows it is the sender.
    """
    letter = replace(message, is_dead_letter=True, dead_letter_reason=reason)
    own = _application_dead_letter_queue(core, message)
    if own is not None:  # DM-3.1.1.12-05
        store_copy(core, own, letter)
    elif not _takes_transactions(queue, message):
        store_copy(core, core.dead_letter, letter)  # DM-3.1.1.12-56
    elif is_source(core, message):
        store_copy(core, core.transactional_dead_letter, letter)  # DM-A55


def _takes_transactions(queue: Queue, message: StoredMessage) -> bool:
    """Whether the message is for a transactional queue; on its way the message itself tells."""
    if isinstance(queue, OutgoingQueue):
        return message.transaction is not None
    return queue.properties.transactional


def _application_dead_letter_queue(core: QueueManagerCore, message: StoredMessage) -> Queue | None:
    """The application's own dead-letter queue, if it is a queue of ours that takes the message."""
    if not message.dead_letter_queue:
        return None
    try:
        path_name = PathName.parse(message.dead_letter_queue)
    except NameSyntaxError:
        return None
    if not _is_this_computer(core, path_name.computer):
        return None
    queue = core.paths.get(path_name.with_computer("."))
    if queue is None or queue.properties.transactional != (message.transaction is not None):
        return None
    return queue


def _is_this_computer(core: QueueManagerCore, computer: str) -> bool:
    settings = core.settings
    names = {".", settings.computer_name, settings.qualified_computer_name, *settings.local_names}
    return computer.lower() in {name.lower() for name in names}
