"""The turns of a commit: all messages of its stages become true together, or none of them does.

One transaction of the queue manager holds them, also those for queues that are not transactional:
for these it is only a way to put messages where nobody sees them yet, and to take them back. It is
begun, filled a few hundred messages in a turn, and ended with the record of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from falconmq.embedded import actions
from falconmq.embedded.messages import Sequence
from falconmq.embedded.refusals import deleted, refused
from falconmq.embedded.signing import meet_demands, name_sender
from falconmq.errors import MqStatus, StoreError
from falconmq.manager import transactions
from falconmq.manager.core import QueueManagerCore, next_message_id
from falconmq.manager.model import OpenQueueDescriptor, Transaction
from falconmq.manager.record import StoredMessage
from falconmq.manager.states import AccessType, EnqueueStatus, ShareMode
from falconmq.manager.storing import enqueue_message
from falconmq.service.requests.bulk_targets import (
    WireForm,
    check_room,
    fill_in,
    fill_in_kept,
    fill_in_place,
    several,
)
from falconmq.service.requests.ingest_records import Record, Records
from falconmq.service.requests.ingest_stages import Stage, Target
from falconmq.service.requests.sending import needs_transaction


@dataclass(slots=True, eq=False)
class Part:
    """The messages of one stage on their way into its queue."""

    stage: Stage
    opened: actions.Opened
    access: OpenQueueDescriptor
    sequence: Sequence | None = None  # of a transactional queue
    sent: int = 0


@dataclass(slots=True, eq=False)
class Sending:
    """A commit that is going on."""

    transaction: Transaction
    parts: list[Part] = field(default_factory=list)

    def part_of(self, stage: Stage) -> Part:
        return next(part for part in self.parts if part.stage is stage)


def find_target(core: QueueManagerCore, name: str) -> Target:
    """The queue of a stage, as it is now."""
    opened, access = _open(core, name)
    try:
        form = WireForm.of(core, access.format_name)
        is_ours = opened.queue is not None
        return Target(name, form, needs_transaction(opened) if is_ours else None)
    finally:
        actions.close(core, opened)


def _open(core: QueueManagerCore, name: str) -> tuple[actions.Opened, OpenQueueDescriptor]:
    opened = actions.find(core, name, ShareMode.DENY_NONE)
    access = actions.descriptor(core, opened, AccessType.SEND)
    if access.is_multiple:
        actions.close(core, opened)
        raise several(name)
    return opened, access


def begin(core: QueueManagerCore, stages: list[Stage]) -> Sending:
    """Open the queues of all stages and see that everything fits."""
    sending = Sending(transactions.create_transaction(core))
    try:
        wanted: dict[int, int] = {}  # bytes, by number of the queue
        for stage in stages:
            part = _begin_part(core, stage)
            sending.parts.append(part)
            queue = part.access.queue
            assert queue is not None
            wanted[queue.number] = wanted.get(queue.number, 0) + stage.bytes
            check_room(core, part.opened, part.access, wanted[queue.number])
    except BaseException:
        give_up(core, sending)
        raise
    return sending


def _begin_part(core: QueueManagerCore, stage: Stage) -> Part:
    target = stage.target
    opened, access = _open(core, target.name)
    is_same = WireForm.of(core, access.format_name) == target.form
    if not is_same or (opened.queue is not None) == (target.is_transactional is None):
        actions.close(core, opened)
        raise deleted(target.name)  # and made anew: its packets name the old one
    return Part(stage, opened, access)


def put(
    core: QueueManagerCore, sending: Sending, part: Part, messages: list[StoredMessage]
) -> None:
    """Some messages of a stage, where nobody sees them yet."""
    _check_alive(core, sending)
    queue, transaction, stage = part.access.queue, sending.transaction, part.stage
    assert queue is not None
    source, now = core.identifier.bytes_le, int(core.clock.time())
    address = stage.target.form.address
    for message in messages:
        if stage.keep_ids:
            fill_in_kept(message, address)
        else:
            name_sender(core, message)
            meet_demands(core, queue, message)
            fill_in(message, source, address, now, next_message_id(core))
        if stage.in_transaction:
            if part.sequence is None:
                part.sequence = Sequence(now << 32 | next_message_id(core))
            fill_in_place(message, part.sequence, transaction)
        status = enqueue_message(core, queue, message, transaction)
        if status is not EnqueueStatus.OK:
            error = refused(core, part.opened, [part.access], message.size, status)
            where = f"message {part.sent} of stage {stage.id}"
            error.args = (f"{where}: {error}",)
            raise error
        part.sent += 1


def finish(core: QueueManagerCore, sending: Sending, records: Records, record: Record) -> None:
    """Everything becomes true, in one batch of the store."""
    _check_alive(core, sending)
    records.put(core, record)
    transactions.commit_transaction(core, sending.transaction.identifier)
    _close(core, sending)


def give_up(core: QueueManagerCore, sending: Sending) -> None:
    """Take back what was put; nobody has seen it."""
    if core.transactions.get(sending.transaction.identifier) is sending.transaction:
        transactions.abort_transaction(core, sending.transaction.identifier)
    _close(core, sending)


def _close(core: QueueManagerCore, sending: Sending) -> None:
    for part in sending.parts:
        actions.close(core, part.opened)


def _check_alive(core: QueueManagerCore, sending: Sending) -> None:
    """Refuse to go on without a queue, or after the memory was read from the store again."""
    if core.transactions.get(sending.transaction.identifier) is not sending.transaction:
        raise StoreError(
            "the store could not write, and everything that was not durable is undone",
            status=MqStatus.MESSAGE_STORAGE_FAILED,
            hint="nothing of this batch was sent; commit it again",
        )
    for part in sending.parts:
        if part.access.queue is None:
            raise deleted(part.opened)
