"""Which outgoing message is sent next (MQDMPR 3.1.1.18, 3.1.7.1.28, .29, .34, 3.1.7.3.9).

How to think about it. The transport puts every message that it could send into one collection; the
queue manager hands them out one at a time, the most urgent first. A sender takes a message away
when it has sent it, and that is what brings the next one: a sender that forgets to stops them all.
A sender may be done before it returns, so the next message is the next turn of a loop, never a
call inside a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sortedcontainers import SortedDict

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.states import PositionState

_EMPTY_LINES_MAX: Final = 64

Sender = Callable[[object, MessagePosition], None]
"""Send User Message Wrapper of a protocol: its own data about the message, and the message."""


@dataclass(slots=True, eq=False)
class DispatchEntry:
    """A message that a protocol could send (MQDMPR 3.1.1.18)."""

    position: MessagePosition
    protocol_data: object  # None: for SRMP
    priority: int
    is_sending: bool = False  # SendInProgress


class DispatchCollection:
    """The messages that could be sent, by priority and then as they came (DM-A40)."""

    def __init__(self) -> None:
        self.send_binary: Sender | None = None  # MQQB 3.1.7.16
        self.send_srmp: Sender | None = None  # MC-MQSRM 3.1.7.8
        self.sending: DispatchEntry | None = None
        self._lines: SortedDict[int, dict[MessagePosition, DispatchEntry]] = SortedDict()
        self._by_position: dict[MessagePosition, DispatchEntry] = {}
        self._by_queue: dict[Queue, dict[MessagePosition, DispatchEntry]] = {}
        self.is_running = False

    def __len__(self) -> int:
        return len(self._by_position)

    def entry(self, position: MessagePosition) -> DispatchEntry | None:
        return self._by_position.get(position)

    def add(self, entry: DispatchEntry) -> None:
        self.remove(entry.position)
        self._by_position[entry.position] = entry
        self._by_queue.setdefault(entry.position.queue, {})[entry.position] = entry
        self._lines.setdefault(-entry.priority, {})[entry.position] = entry

    def remove(self, position: MessagePosition) -> None:
        """Take a message out, if it is there."""
        entry = self._by_position.pop(position, None)
        if entry is None:
            return
        of_queue = self._by_queue[position.queue]
        del of_queue[position]
        if not of_queue:
            del self._by_queue[position.queue]
        line = self._lines[-entry.priority]
        del line[position]
        if not line and len(self._lines) > _EMPTY_LINES_MAX:
            del self._lines[-entry.priority]  # mostly it is used again at once
        if entry is self.sending:
            self.sending = None

    def remove_queue(self, queue: Queue) -> None:
        for position in list(self._by_queue.get(queue, ())):
            self.remove(position)

    def next(self) -> DispatchEntry | None:
        """The most urgent message of a queue that is active; those that were deleted leave."""
        while (found := self._first()) is not None:
            if found.position.state is not PositionState.DELETED:
                return found
            self.remove(found.position)
        return None

    def _first(self) -> DispatchEntry | None:
        for line in self._lines.values():
            for entry in line.values():
                if entry.position.state is PositionState.DELETED or entry.position.queue.is_active:
                    return entry
        return None


def dispatch_collection(core: QueueManagerCore) -> DispatchCollection:
    """DispatchCollection of a queue manager; volatile, so a restart begins with an empty one."""
    if core.dispatch is None:
        core.dispatch = DispatchCollection()
    return core.dispatch


def set_senders(
    core: QueueManagerCore, *, binary: Sender | None = None, srmp: Sender | None = None
) -> None:
    """Who sends messages with data of the binary protocol, and who those without."""
    collection = dispatch_collection(core)
    collection.send_binary, collection.send_srmp = binary, srmp


def add_message_to_dispatch_collection(
    core: QueueManagerCore, protocol_data: object, position: MessagePosition
) -> None:
    """Add Message To Dispatch Collection, MQDMPR 3.1.7.1.28."""
    base_priority = position.queue.properties.base_priority
    priority = base_priority + position.message.priority  # DM-3.1.7.1.28-03
    entry = DispatchEntry(position, protocol_data, priority)  # DM-3.1.7.1.28-02
    dispatch_collection(core).add(entry)  # DM-3.1.7.1.28-04
    dispatch_send_message(core)  # DM-3.1.7.1.28-05


@contextmanager
def held_dispatch(core: QueueManagerCore) -> Iterator[None]:
    """Add several messages before the most urgent of them is chosen."""
    collection = dispatch_collection(core)
    if collection.is_running:
        yield
        return
    collection.is_running = True
    try:
        yield
    finally:
        collection.is_running = False
    dispatch_send_message(core)


def remove_message_from_dispatch_collection(
    core: QueueManagerCore, position: MessagePosition
) -> None:
    """Remove Message From Dispatch Collection, MQDMPR 3.1.7.1.29."""
    dispatch_collection(core).remove(position)  # DM-3.1.7.1.29-01
    dispatch_send_message(core)  # DM-3.1.7.1.29-02


def remove_messages_by_queue(core: QueueManagerCore, queue: Queue) -> None:
    """Remove Messages From Dispatch Collection By Queue, MQDMPR 3.1.7.1.34."""
    dispatch_collection(core).remove_queue(queue)  # DM-3.1.7.1.34-01
    dispatch_send_message(core)  # DM-3.1.7.3.9-09


def dispatch_send_message(core: QueueManagerCore) -> None:
    """Hand the most urgent message to its sender, unless one is on its way.

    Dispatch Send Message, MQDMPR 3.1.7.3.9.
    """
    collection = dispatch_collection(core)
    if collection.is_running:
        return  # a sender was done before it returned: the loop below goes on
    collection.is_running = True
    try:
        while collection.sending is None:  # DM-3.1.7.3.9-02
            entry = collection.next()  # DM-3.1.7.3.9-03
            if entry is None:
                return  # DM-3.1.7.3.9-04
            _send(collection, entry)
    finally:
        collection.is_running = False


def _send(collection: DispatchCollection, entry: DispatchEntry) -> None:
    is_binary = entry.protocol_data is not None
    send = collection.send_binary if is_binary else collection.send_srmp
    assert send is not None, "a message to be sent, and nobody who sends it"
    entry.is_sending, collection.sending = True, entry  # DM-3.1.7.3.9-05
    try:
        send(entry.protocol_data, entry.position)  # DM-3.1.7.3.9-06, DM-3.1.7.3.9-07
    except BaseException:
        entry.is_sending, collection.sending = False, None  # so that it can be tried again
        raise
