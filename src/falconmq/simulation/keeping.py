"""The copies that queue managers keep for the sender: journals and dead letters.

How to think about it. A message that leaves its sender's outgoing queue was either delivered to the
next queue manager or came to an end there, so the journal of what is sent outside transactions is
known for sure. What a transaction sent stays until the receiver tells how it ended.

Where a dead letter belongs:

    outside transactions    at the queue manager where the message ended: its time ran out or its
                            outgoing queue was purged there, nobody received it in time, its queue
                            was full. Who refuses it for another reason only says so.
    in transactions         at its sender alone, which hears from everybody else
    with a dead-letter      there, if it is the sender that keeps it: the name does not travel
    queue of its own
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from falconmq.manager.model import Queue
from falconmq.message import Journal
from falconmq.simulation.copies import OWN_DEAD_LETTERS, RECEIVED, Copy, Key, Kind, Place
from falconmq.simulation.ledger import Ledger
from falconmq.simulation.node import Node
from falconmq.wire.message_class import MessageClass

DEAD_LETTER: Final = "deadletter"
TRANSACTIONAL_DEAD_LETTER: Final = "deadxact"
_UNREAD: Final = int(MessageClass.NACK_RECEIVE_TIMEOUT)

Where = tuple[str, str]
"""The name of a node, and which of its queues."""


class Kept:
    """What all nodes have in their journals and dead-letter queues, by message."""

    def __init__(self, nodes: list[Node]) -> None:
        self.journals: Counter[Key] = Counter()
        self.dead_letters: defaultdict[Key, Counter[Where]] = defaultdict(Counter)
        for node in nodes:
            life = node.life
            assert life is not None
            core = life.core
            self.journals.update(_keys(core.journal))
            self._add(node, DEAD_LETTER, core.dead_letter)
            self._add(node, TRANSACTIONAL_DEAD_LETTER, core.transactional_dead_letter)
            for queue in core.queues.values():
                if queue.path_name.name in OWN_DEAD_LETTERS and queue.parent is None:
                    self._add(node, queue.path_name.name, queue)

    def _add(self, node: Node, name: str, queue: Queue) -> None:
        for key in _keys(queue):
            self.dead_letters[key][node.name, name] += 1


def _keys(queue: Queue) -> list[Key]:
    return [position_key(queue, lookup_id) for lookup_id in queue.positions.lookup_ids()]


def position_key(queue: Queue, lookup_id: int) -> Key:
    position = queue.positions.find(lookup_id)
    assert position is not None
    user = position.message.packet.user
    return user.source_queue_manager, user.message_id


def check_journal(ledger: Ledger, copy: Copy, found: int) -> None:
    """The sender's journal has one copy of what was delivered, if the sender asked for it."""
    if not copy.journal & Journal.JOURNAL:
        if found:
            raise ledger.fail("a copy is in the journal, and nobody asked for it", copy)
        return
    if copy.kind is Kind.EXPRESS and ledger.is_troubled:
        return
    if found not in _journal_copies(copy):
        raise ledger.fail(f"{found} copies are in the sender's journal", copy)


def _journal_copies(copy: Copy) -> set[int]:
    """How many there may be."""
    if copy.is_local:
        if copy.is_dropped:
            return {0}
        return {0, 1} if copy.may_expire else {1}
    if copy.ended_at_sender:
        return {0}
    if copy.kind is not Kind.TRANSACTIONAL:
        return {1}  # the next queue manager has taken it, whatever became of it there
    if RECEIVED not in copy.left:
        return {0}
    return {0, 1} if _is_ambiguous(copy) else {1}


def check_dead_letters(ledger: Ledger, copy: Copy, found: Counter[Where]) -> None:
    """The dead letters of a message are where they belong, and nowhere else."""
    if not copy.journal & Journal.DEAD_LETTER:
        if found:
            raise ledger.fail("it is a dead letter, and nobody asked for that", copy)
        return
    is_transactional = copy.kind is Kind.TRANSACTIONAL
    least, most = _of_transactional(copy) if is_transactional else (_of_plain(copy),) * 2
    for where in sorted(found | most):
        is_missing = found[where] < least[where]
        if is_missing and copy.kind is Kind.EXPRESS and ledger.is_troubled:
            continue
        if is_missing or found[where] > most[where]:
            node, queue = where
            problem = f"{found[where]} dead letters are in {queue} of {node}"
            raise ledger.fail(f"{problem} instead of {most[where]}", copy)


def _of_plain(copy: Copy) -> Counter[Where]:
    """One for each end that is for the queue manager there to keep."""
    due: Counter[Where] = Counter()
    for end in copy.ends:
        if end.place is Place.WAY or end.reason == MessageClass.NACK_Q_EXCEED_QUOTA:
            due[_belongs(copy, end.node)] += 1
    due[_belongs(copy, copy.target)] += copy.left.count(_UNREAD)
    return due


def _of_transactional(copy: Copy) -> tuple[Counter[Where], Counter[Where]]:
    """The least and the most: if there was more than one end, the first news of it counts."""
    where = _belongs(copy, copy.sender)
    none, one = Counter[Where](), Counter({where: 1})
    if copy.is_local:
        due = one if _UNREAD in copy.left else none
        return due, due
    if copy.ended_at_sender or RECEIVED not in copy.left:
        return one, one
    return none, one if _is_ambiguous(copy) else none


def _is_ambiguous(copy: Copy) -> bool:
    """Whether it had more than one end: then the first news of it counts."""
    return copy.was_refused or len(copy.left) > 1


def _belongs(copy: Copy, node: Node) -> Where:
    if node is copy.sender and copy.own_dead_letter_queue:
        return node.name, copy.own_dead_letter_queue
    is_transactional = copy.kind is Kind.TRANSACTIONAL
    return node.name, TRANSACTIONAL_DEAD_LETTER if is_transactional else DEAD_LETTER
