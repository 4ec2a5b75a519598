"""Messages out of the store: after a restart, and after a commit that failed.

How to think about it. The store is the truth about recoverable messages; memory holds their
numbers. A restart builds the numbers by one walk through the messages, reading a few bytes at fixed
places of each record and decoding nothing: a million messages take a second or two.

When a commit fails (the disk is full), memory is ahead of the truth: it has messages that were
never stored, and misses some that were never deleted. `rebuild` takes the numbers from the store
again. What never was in the store stays as it is: express messages, the reads that wait, the
places that a two-phase read holds. Transactions cannot be saved: they are over, as if aborted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from falconmq.errors import MqStatus
from falconmq.manager.arrivals import SEQUENCE, note_arrival
from falconmq.manager.core import QueueManagerCore, damaged_message, message_key
from falconmq.manager.expiry import TIMED, arm_expiry, expire, time_to_be_received_expired
from falconmq.manager.model import OutgoingQueue, Queue, ReadResult, Transaction
from falconmq.manager.persistence import (
    FIRST_QUEUE_NUMBER,
    attach,
    cover_counters,
    read_queue,
    store_queue,
)
from falconmq.manager.positions import MessagePosition, PositionList
from falconmq.manager.prepared import recover
from falconmq.manager.record import VERSION
from falconmq.manager.registry import register, unregister
from falconmq.manager.removing import message_position_deleted
from falconmq.manager.states import OperationType, PositionState
from falconmq.manager.waiting import (
    end_waiting_read,
    end_waits_of_transaction,
    feed_waiting_reads,
)
from falconmq.store.interface import WriteBatch
from falconmq.wire import base_header
from falconmq.wire.message_class import MessageClass

# A record (record.py): version, arrival number, size of the dead-letter queue's path. The packet
# behind the path: version, signature, size, TimeToReachQueue; TimeToBeReceived and SentTime.
_KEY: Final = struct.Struct(">QQ")
_RECORD: Final = struct.Struct("<B15xQH")
_PACKET: Final = struct.Struct("<B3xIII32xII")

Found = tuple[Queue, int, int, int, int | None]
"""Queue, lookup identifier, size, arrival number, and when it expires."""


class _Expiries:
    """One timer for all messages of a queue that were there at the start, and may expire.

    A timer for each would double the time that a million of them take to load, and their memory.
    """

    def __init__(self, core: QueueManagerCore, queue: Queue) -> None:
        self._core = core
        self._queue = queue
        self.deadlines: list[tuple[int, int]] = []  # with lookup identifiers, the first one last

    def start(self) -> None:
        self.deadlines.sort(reverse=True)
        self._arm()

    def __call__(self) -> None:
        now, queue = self._core.clock.time(), self._queue
        while self.deadlines and self.deadlines[-1][0] <= now and not queue.is_deleted:
            _, lookup_id = self.deadlines.pop()
            position = queue.positions.find(lookup_id)
            if position is not None:
                time_to_be_received_expired(self._core, position)
        self._arm()

    def _arm(self) -> None:
        if self.deadlines and not self._queue.is_deleted:
            self._core.timers.at_time(self.deadlines[-1][0], self)


def load_messages(core: QueueManagerCore) -> None:
    """Give all queues the messages that the store has for them.

    StoreError names the queue and the message of a record that cannot be read: nothing is skipped.
    """
    current, restore, expiries = None, None, []
    for queue, lookup_id, size, arrival_number, deadline in _stored_messages(core):
        if queue is not current:
            current, restore = queue, queue.positions.restore
            expiries.append(_Expiries(core, queue))
        assert restore is not None
        restore(lookup_id, size)
        if arrival_number > queue.arrival_number:
            queue.arrival_number = arrival_number
        if arrival_number != lookup_id & SEQUENCE:
            _note(queue, arrival_number, lookup_id)
        if deadline is not None:
            expiries[-1].deadlines.append((deadline, lookup_id))
    core.used_bytes = sum(queue.total_bytes for queue in core.queues.values())
    for expiry in expiries:
        expiry.start()


def _note(queue: Queue, arrival_number: int, lookup_id: int) -> None:
    """Remember an arrival number that a place does not tell."""
    if arrival_number != lookup_id & SEQUENCE and queue.keeps_arrivals:
        note_arrival(queue.positions, arrival_number, lookup_id)


def _stored_messages(core: QueueManagerCore) -> Iterator[Found]:
    number, queue, is_timed, is_outgoing = -1, None, False, False
    for key, record in core.store.scan("messages"):
        key_number, lookup_id = _KEY.unpack(key)
        if key_number != number:
            number, queue = key_number, core.queues.get(key_number)
            is_outgoing = isinstance(queue, OutgoingQueue)
            is_timed = is_outgoing or (queue is not None and queue.queue_type in TIMED)
        if queue is None:
            raise damaged_message(None, lookup_id, f"there is no queue {number}")
        try:
            version, arrival_number, path_size = _RECORD.unpack_from(record)
            start = _RECORD.size + path_size
            packet = _PACKET.unpack_from(record, start)
        except struct.error as error:
            problem = f"{len(record)} bytes are too few"
            raise damaged_message(queue, lookup_id, problem) from error
        packet_version, signature, packet_size, ttrq, limit, sent = packet
        size = len(record) - start
        if version != VERSION:
            problem = f"version {version}, this FalconMQ writes {VERSION}"
            raise damaged_message(queue, lookup_id, problem)
        if (
            packet_version != base_header.VERSION
            or signature != base_header.SIGNATURE
            or packet_size > size
        ):
            raise damaged_message(queue, lookup_id, "it holds no MSMQ packet")
        if is_outgoing:
            limit = min(limit, ttrq) + 1  # QB-A44
        is_limited = is_timed and limit < base_header.INFINITE  # DM-3.1.2.4-02
        yield queue, lookup_id, size, arrival_number, sent + limit if is_limited else None


def rebuild(core: QueueManagerCore) -> None:
    """Bring the memory back to what the store has, after a commit that failed."""
    core.batch, core.unsettled = WriteBatch(), []
    cover_counters(core)  # values stay ahead, ceilings go back to what is stored
    transactions = list(core.transactions.values())
    undone = {op.position: op.kind for tx in transactions for op in tx.operations}
    core.transactions.clear()
    _rebuild_queues(core)
    purged = [p for p in undone if p.state is PositionState.PURGE_PENDING]
    returned = _rebuild_positions(core, undone)
    for transaction in transactions:
        _give_up(core, transaction)
    recover(core)  # what was prepared and stored is still in doubt
    _fail_woken_reads(core)
    for position in purged:
        if position.transaction is None and position.lookup_id in position.queue.positions:
            queue, reason = position.queue, MessageClass.NACK_Q_PURGED
            message_position_deleted(core, queue, position, reason)
    for queue, lookup_ids in returned.items():
        _announce(core, queue, sorted(lookup_ids))


def _give_up(core: QueueManagerCore, transaction: Transaction) -> None:
    """Whoever still uses the transaction hears that it is over: TRANSACTION_SEQUENCE."""
    transaction.operations.clear()
    end_waits_of_transaction(core, transaction)


def _rebuild_queues(core: QueueManagerCore) -> None:
    """The queues of the store: those that were not deleted come back, those not created go."""
    records = {int.from_bytes(key, "big"): record for key, record in core.store.scan("queues")}
    for queue in list(core.queues.values()):  # first: their names may belong to others again
        if queue.number in records:
            continue
        if isinstance(queue, OutgoingQueue) or queue.number < FIRST_QUEUE_NUMBER:
            store_queue(core, queue)  # it may hold express messages: the next batch has it
        else:
            _forget(core, queue)
    for number, record in records.items():
        _rebuild_queue(core, number, record)


def _rebuild_queue(core: QueueManagerCore, number: int, record: bytes) -> None:
    queue, parent = read_queue(core, number, record)
    known = core.queues.get(number)
    if known is None:  # its deletion failed; its parent has a lower number and is there again
        register(core, queue) if parent is None else attach(core, queue, parent)
        return
    known.modify_time = queue.modify_time
    if known.path_name.subqueue is None:
        known.properties = queue.properties
        for subqueue in known.subqueues.values():
            subqueue.properties = queue.properties


def _forget(core: QueueManagerCore, queue: Queue) -> None:
    for read in list(queue.waiting):
        end_waiting_read(core, read, MqStatus.QUEUE_NOT_AVAILABLE)
    for descriptor in queue.descriptors:
        descriptor.queue = None
    queue.descriptors.clear()
    unregister(core, queue)
    if queue.parent is not None and queue.path_name.subqueue is not None:
        queue.parent.subqueues = {
            name: other for name, other in queue.parent.subqueues.items() if other is not queue
        }


def _rebuild_positions(
    core: QueueManagerCore, undone: dict[MessagePosition, OperationType]
) -> dict[Queue, list[int]]:
    """New lists of places; returns which messages are readable that were not before."""
    before = {queue: queue.positions for queue in core.queues.values()}
    returned: dict[Queue, list[int]] = {}
    for queue, old in before.items():
        queue.positions = PositionList(queue, core.fetch)
        returned[queue] = []
        for position in old.resident():
            if _is_kept(core, position, undone.get(position)):
                queue.positions.link(position)
                _note(queue, position.message.arrival_number, position.lookup_id)
                if position in undone and position.state is PositionState.AVAILABLE:
                    returned[queue].append(position.lookup_id)
    for queue, lookup_id, size, arrival_number, deadline in _stored_messages(core):
        if lookup_id in queue.positions:
            continue
        queue.positions.restore(lookup_id, size)
        _note(queue, arrival_number, lookup_id)
        if lookup_id not in before[queue].available:
            returned[queue].append(lookup_id)
            if deadline is not None:
                arm_expiry(core, queue, lookup_id, deadline)
    core.used_bytes = sum(queue.total_bytes for queue in core.queues.values())
    return returned


def _is_kept(
    core: QueueManagerCore, position: MessagePosition, operation: OperationType | None
) -> bool:
    """Whether memory knows a place better than the store does; the others come from there."""
    is_express = not position.message.is_recoverable
    if operation is OperationType.ENQUEUE or position.message.arrival_number == 0:
        return False  # sent in a transaction that is over, or by an event torn in the middle
    if operation is not None:
        position.transaction = None
        if position.state is PositionState.LOCKED:
            position.state = PositionState.AVAILABLE
    key = message_key(position.queue.number, position.lookup_id)
    is_stored = not is_express and core.store.get("messages", key) is not None
    position.is_written = position.is_stored = is_stored
    position.pending_writes = 0
    return is_express or (is_stored and position.state is not PositionState.AVAILABLE)


def _announce(core: QueueManagerCore, queue: Queue, lookup_ids: list[int]) -> None:
    """Messages that are readable again: expire them, tell the subscribers, feed those who wait."""
    for lookup_id in lookup_ids:
        if not (queue.waiting or queue.expired or core.available_subscribers):
            return
        position = _readable(queue, lookup_id)
        if position is None:
            continue
        if lookup_id in queue.expired:
            expire(core, position)
            continue
        for subscriber in core.available_subscribers:
            subscriber(queue, position)
        feed_waiting_reads(core, queue, position)


def _readable(queue: Queue, lookup_id: int) -> MessagePosition | None:
    position = queue.positions.find(lookup_id)
    is_available = position is not None and position.state is PositionState.AVAILABLE
    return position if is_available else None


def _fail_woken_reads(core: QueueManagerCore) -> None:
    """Reads that ended in the batch that is lost did not end with a message after all."""
    for read in core.woken:
        position = None if read.result is None else read.result.position
        if position is not None and position.message.is_recoverable:
            read.result = ReadResult(MqStatus.MESSAGE_STORAGE_FAILED)
