"""Sending for a request: open the queue, put its messages in, close it, in one turn."""

from __future__ import annotations

from falconmq.embedded import actions
from falconmq.manager import transactions
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import Transaction
from falconmq.manager.removing import remove_position
from falconmq.manager.states import ShareMode
from falconmq.message import Message, MessageId

Wanted = bool | Transaction | None
"""Whether to send in a transaction of its own, or in which one; None: as the queue needs it."""


def send_messages(
    core: QueueManagerCore,
    name: str,
    messages: list[Message],
    wanted: Wanted,
    sent: list[MessageId],
) -> None:
    """Send to the queue or queues of a name; `sent` gets the ids, one after the other.

    In a transaction all are sent or none. Outside one, those before a refused message are sent.
    """
    opened = actions.find(core, name, ShareMode.DENY_NONE)
    try:
        if wanted is None:
            wanted = needs_transaction(opened)
        if wanted is False:
            for message in messages:
                sent.append(actions.send(core, opened, message, None))  # noqa: PERF401  # one by one
            return
        is_ours = wanted is True
        transaction = transactions.create_transaction(core) if wanted is True else wanted
        try:
            sent += send_together(core, opened, messages, transaction)
        except BaseException:
            if is_ours:
                transactions.abort_transaction(core, transaction.identifier)
            raise
        if is_ours:
            transactions.commit_transaction(core, transaction.identifier)
    finally:
        actions.close(core, opened)


def send_together(
    core: QueueManagerCore, opened: actions.Opened, messages: list[Message], owner: Transaction
) -> list[MessageId]:
    """All of them in a transaction that may have sent others before, or none."""
    before = len(owner.operations)
    try:
        return actions.send_many(core, opened, messages, owner)
    except BaseException:
        take_back(core, owner, before)
        raise


def take_back(core: QueueManagerCore, owner: Transaction, keep: int) -> None:
    """Undo the last messages that were sent in a transaction, in the turn that sent them."""
    while len(owner.operations) > keep:
        remove_position(core, owner.operations.pop().position)


def needs_transaction(opened: actions.Opened) -> bool:
    """Whether a queue is one of ours and transactional; of others nobody here knows it."""
    queue = opened.queue
    return queue is not None and (queue.parent or queue).properties.transactional
