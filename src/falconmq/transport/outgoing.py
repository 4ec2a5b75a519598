"""The messages of one outgoing queue on their way (OutgoingMessageTable, MQQB 3.1.1.3.1).

How to think about it. A message to be sent is a number in `unsent`; a million of them are a sorted
list of numbers. One that was sent on the present session is an `Entry`, until its peer has it for
good:

    express           until the session acknowledgment counts it
    recoverable       until the session acknowledgment has its bit: it is on the peer's disk
    transactional     until the OrderAck; then, if a journal or dead letter may come of it, until
                      the FinalAck tells its end (AwaitingFinalACKTable: `arrived`)

When the session ends, everything sent and not acknowledged is unsent again. Transactional messages
have their numbers in the stored packet, so a second sending is the same message (QB-A38).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from falconmq.manager.model import OutgoingQueue
from falconmq.manager.positions import LookupIds, MessagePosition
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_header import JOURNAL_NEGATIVE, JOURNAL_POSITIVE

if TYPE_CHECKING:
    from falconmq.transport.outgoing_streams import OutgoingStream, OutgoingStreams
    from falconmq.transport.peers import Peer

JOURNALED: Final = JOURNAL_NEGATIVE | JOURNAL_POSITIVE
_KEPT_MAX: Final = 4096  # new messages kept in memory so that sending need not fetch them
_KEPT_BYTES_MAX: Final = 4 << 20


@dataclass(slots=True, eq=False)
class Entry:
    """A message that was sent (OutgoingMessagePosition, MQQB 3.1.1.3.1.2)."""

    table: OutgoingTable
    lookup_id: int
    size: int
    flags: int  # of the UserHeader
    message_id: int
    is_recoverable: bool  # the store has it
    source: bytes  # SourceQueueManager
    has_bit: bool = False  # the session acknowledges it as recoverable: DM 1, not 2 or 3
    tx_sequence_id: int = 0
    tx_sequence_number: int = 0  # 0: not transactional, or only passed on by us
    previous_number: int = 0
    received_session_ack: bool = False
    received_order_ack: bool = False
    is_over: bool = False  # its acknowledgments mean nothing any more

    @property
    def is_journaled(self) -> bool:
        return bool(self.flags & JOURNALED)


class OutgoingTable:
    """What is to be sent to one destination, what was sent, what waits for the end of its story."""

    def __init__(self, queue: OutgoingQueue, peer: Peer) -> None:
        self.queue = queue
        self.peer = peer
        self.stream: OutgoingStream | None = None  # until the first transactional message
        self.unsent = LookupIds()
        self.kept: dict[int, MessagePosition] = {}
        self._kept_bytes = 0
        self.offered: MessagePosition | None = None  # in the dispatch collection
        self.sent: dict[int, Entry] = {}  # by lookup identifier
        self.transactional: deque[Entry] = deque()  # sent, no OrderAck yet, in order
        self.arrived: dict[int, Entry] = {}  # AwaitingFinalACKTable, by lookup identifier
        self.latest = (0, 0)  # sequence and number of the newest that was ever sent
        self.pending = 0  # transactional messages of ours without OrderAck, sent or not
        self.resend_timer = 0  # the number of the Transactional Ack Wait Timer that counts; 0: none
        self.unanswered_since: float | None = None  # an OrderAck is due; of the monotonic clock
        self.sent_in_vain: dict[int, int] = {}  # by lookup identifier: sent, and had to be again
        self.encryption_problem = ""  # why the last message that was to be encrypted was not sent
        self.is_held = False  # its next message waits for keys of its receiver

    @property
    def has_work(self) -> bool:
        """Whether a session is needed: something is to be sent, or sent and not acknowledged."""
        return bool(self.unsent) or bool(self.sent)

    def add(self, position: MessagePosition) -> bool:
        """Take a message that can be sent; False if it is here already."""
        lookup_id = position.lookup_id
        if lookup_id in self.sent or lookup_id in self.arrived or lookup_id in self.unsent:
            return False
        self.unsent.add(lookup_id)
        if len(self.kept) < _KEPT_MAX and self._kept_bytes < _KEPT_BYTES_MAX:
            self.kept[lookup_id] = position
            self._kept_bytes += position.size
        return True

    def head(self) -> MessagePosition | None:
        """The next message to send; those that were deleted meanwhile leave."""
        while (lookup_id := self.unsent.after(-1)) is not None:
            position = self._take_kept(lookup_id)
            if position is None:
                position = self.queue.positions.find(lookup_id, decode=False)
            if position is not None:
                return position
            self.unsent.remove(lookup_id)
        return None

    def _take_kept(self, lookup_id: int) -> MessagePosition | None:
        position = self.kept.pop(lookup_id, None)
        if position is not None:
            self._kept_bytes -= position.size
        return position

    def record(self, entry: Entry) -> None:
        """A message was sent."""
        self.unsent.remove(entry.lookup_id)
        self.sent[entry.lookup_id] = entry
        if entry.tx_sequence_number:
            self.transactional.append(entry)
            self.latest = max(self.latest, (entry.tx_sequence_id, entry.tx_sequence_number))

    def previous_number(self, tx_sequence_id: int, number: int) -> int:
        """PreviousTxSequenceNumber: bridges the gaps of messages that are gone (QB-A38).

        The one before it in the table. If there is none: at the first sending the one before it in
        the stream, which was acknowledged (QB-3.1.7.1.3-03); at another none, for the receiver may
        have lost its state (QB-3.1.7.1.3-08).
        """
        if self.transactional:
            before = self.transactional[-1]
            if before.tx_sequence_id == tx_sequence_id and before.tx_sequence_number < number:
                return before.tx_sequence_number
        stream, first = self.stream, (tx_sequence_id, number) > self.latest
        if first and stream is not None and number - 1 <= stream.acked_number:
            return number - 1
        return 0

    def has_passed(self, header: TransactionHeader) -> bool:
        """Whether OrderAcks have passed a message of the stream, so that it must have arrived."""
        stream = self.stream
        if stream is None or header.tx_sequence_id > stream.tx_sequence_id:
            return False
        is_older = header.tx_sequence_id < stream.tx_sequence_id
        return is_older or header.tx_sequence_number <= stream.acked_number

    def describe(self, streams: OutgoingStreams) -> None:
        """Keep what operators read about a stream (QB-3.1.5.6-11 to -20)."""
        if self.stream is not None:
            unacked = [(e.tx_sequence_number, e.previous_number) for e in self.transactional]
            info, unread = self.queue.transfer_info, len(self.arrived)
            streams.describe(self.stream, info, unacked=unacked, unread=unread)

    def requeue(self) -> None:
        """The session is over: send again what its peer may not have."""
        for entry in self.sent.values():
            entry.is_over = True
            self._send_again(entry.lookup_id)
        self.sent.clear()
        self.transactional.clear()
        self.offered = None

    def requeue_transactional(self) -> None:
        """No OrderAck came in time: send the transactional messages again (QB-3.1.6.5-01)."""
        for entry in self.transactional:
            if self.sent.get(entry.lookup_id) is entry:
                entry.is_over = True
                del self.sent[entry.lookup_id]
                self._send_again(entry.lookup_id)
        self.transactional.clear()

    def _send_again(self, lookup_id: int) -> None:
        self.unsent.add(lookup_id)
        self.sent_in_vain[lookup_id] = self.sent_in_vain.get(lookup_id, 0) + 1

    def drop(self, lookup_id: int) -> Entry | None:
        """A message left the queue: forget it, whatever state it is in."""
        self._take_kept(lookup_id)
        self.sent_in_vain.pop(lookup_id, None)
        entry = self.sent.pop(lookup_id, None) or self.arrived.pop(lookup_id, None)
        if entry is None:
            if lookup_id in self.unsent:
                self.unsent.remove(lookup_id)
            return None
        entry.is_over = True
        if entry.tx_sequence_number and entry in self.transactional:
            self.transactional.remove(entry)
        return entry
