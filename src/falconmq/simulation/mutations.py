"""Deliberate mistakes in the protocol, to show that the checkers bite.

Each mutation is one that a programmer could make, and that breaks a promise. `mutated` applies one
for the length of a `with` block by replacing a function of the transport or the manager; the tests
run seeds until the checkers notice it. A mutation nobody notices means that a promise is not
checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from falconmq.manager import core as manager_core
from falconmq.manager import (
    distributing,
    expiry,
    journaling,
    lifecycle,
    persistence,
    recovery,
    storing,
)
from falconmq.manager.core import RESERVED_NUMBERS, QueueManagerCore
from falconmq.manager.core import Counter as Numbers
from falconmq.manager.model import OpenQueueDescriptor, OutgoingQueue, Queue
from falconmq.manager.positions import MessagePosition
from falconmq.manager.record import StoredMessage
from falconmq.message import Message
from falconmq.names import SingleFormatName
from falconmq.transport import (
    leaving,
    listening,
    loading,
    numbering,
    ordering,
    peers,
    receiving,
    sending,
)
from falconmq.transport.history import MessageIdHistory
from falconmq.transport.incoming_streams import IncomingStream, IncomingStreams
from falconmq.transport.outgoing import Entry, OutgoingTable
from falconmq.transport.outgoing_streams import OutgoingStreams
from falconmq.transport.session import Session
from falconmq.transport.tables import table_of
from falconmq.transport.transactional_acks import send_order_ack
from falconmq.transport.transport import Transport
from falconmq.transport.turns import Turn
from falconmq.wire.message_class import MessageClass
from falconmq.wire.transaction_header import TransactionHeader

Replacement = tuple[object, str, Any]
"""Where, which attribute, and what stands there instead."""

_end_turn = Transport.end_turn
_finish = sending.finish
_add = MessageIdHistory.add
_requeue = OutgoingTable.requeue
_changed = IncomingStreams._changed  # noqa: SLF001
_number = storing._number  # noqa: SLF001
_addressed = distributing._addressed  # noqa: SLF001
_insert = receiving._insert  # noqa: SLF001
_asked_by = leaving._ASKED_BY  # noqa: SLF001


@contextmanager
def mutated(
    name: str, mutations: Mapping[str, tuple[Replacement, ...]] | None = None
) -> Iterator[None]:
    """Run with one mistake in the protocol."""
    with ExitStack() as stack:
        for place, attribute, replacement in (mutations or MUTATIONS)[name]:
            stack.callback(setattr, place, attribute, getattr(place, attribute))
            setattr(place, attribute, replacement)
        yield


def _acknowledge_before_sync(transport: Transport) -> Turn | None:
    turn = _end_turn(transport)
    if turn is not None:
        for session, count in turn.received.items():
            session.settle(count, transport.now)
            session.acknowledge_now(transport.now)
            transport.connections.write(session)
        turn.received = {}
    return turn


def _send_before_sync(transport: Transport) -> Turn | None:
    turn = _end_turn(transport)
    if turn is not None:
        fresh, turn.fresh = turn.fresh, []
        for table, position in fresh:
            session = table.peer.session
            if table.add(position) and session is not None:
                sending.pump(transport, session)
                transport.connections.write(session)
            elif session is None:
                peers.wake(transport, table.peer)
    return turn


def _number_again(
    table: OutgoingTable,
    entry: Entry,
    message: Any,
    header: TransactionHeader,  # noqa: ARG001
) -> Any:
    """The place in the stream is given at every sending, not once for all."""
    stream = table.stream
    assert stream is not None
    entry.tx_sequence_id, entry.tx_sequence_number = stream.tx_sequence_id, stream.next_number
    stream.next_number += 1
    stream.ceiling = max(stream.ceiling, stream.next_number)
    message.number_in_sequence(entry.tx_sequence_id, entry.tx_sequence_number)
    return (message.data,)


def _never(*_: object, **__: object) -> bool:
    return False


def _nothing(*_: object, **__: object) -> None:
    return None


def _forget_on_restart(
    history: MessageIdHistory,
    source: bytes,
    message_id: int,
    *,
    durable: bool,  # noqa: ARG001
) -> None:
    _add(history, source, message_id, durable=False)


def _keep_its_place(transport: Transport, queue: OutgoingQueue, position: MessagePosition) -> None:
    """The stream has the order of the commits, but the queue still has that of the sends."""
    table = table_of(transport, queue)
    stream = table.stream = table.stream or transport.outgoing_streams.of(queue.destination)
    position.message.number_in_sequence(*transport.outgoing_streams.next(stream))
    table.pending += 1


def _accept_doubles(_: IncomingStreams, stream: IncomingStream, header: TransactionHeader) -> bool:
    return header.tx_sequence_id >= stream.tx_sequence_id


def _drop_unacknowledged(table: OutgoingTable) -> None:
    """A session ended: what it had sent is taken for delivered."""
    sent = list(table.sent)
    _requeue(table)
    for lookup_id in sent:
        table.unsent.remove(lookup_id)


def _journal_too_early(transport: Transport, entry: Entry) -> None:
    """A transactional message is journaled when it has arrived, not when it was read."""
    if entry.tx_sequence_number and entry.is_journaled and not entry.is_over:
        sending._journal(transport, entry)  # noqa: SLF001
    _finish(transport, entry)


def _no_bridge(_: OutgoingTable, tx_sequence_id: int, number: int) -> int:  # noqa: ARG001
    """The previous number is always one less, also if that message expired and is gone."""
    return number - 1


def _settle_before_sync(streams: IncomingStreams, stream: IncomingStream) -> None:
    _changed(streams, stream)
    stream.settled_id, stream.settled_number = stream.tx_sequence_id, stream.tx_sequence_number


def _take_without_passing_on(*_: object) -> bool:
    return True


def _order_ack_of_what_did_not_come(transport: Transport, stream: IncomingStream) -> None:
    stream.settled_id, stream.settled_number = stream.tx_sequence_id, stream.tx_sequence_number
    send_order_ack(
        transport.core,
        source=stream.source,
        reply_address=stream.reply_address,
        tx_sequence_id=stream.tx_sequence_id,
        tx_sequence_number=stream.tx_sequence_number + 1,
    )
    stream.order_ack_due = None


def _number_one_phase_only(
    core: QueueManagerCore, queue: OutgoingQueue, position: MessagePosition
) -> None:
    transaction = position.transaction
    if transaction is None or transaction.single_phase:
        _number(core, queue, position)


def _same_hops(message: StoredMessage, hops: int) -> StoredMessage:  # noqa: ARG001
    return message


def _reserve_in_memory(core: QueueManagerCore, counter: Numbers) -> None:  # noqa: ARG001
    counter.ceiling = counter.value + RESERVED_NUMBERS


def _address_alone(
    message: Message, target: OpenQueueDescriptor, destinations: tuple[SingleFormatName, ...]
) -> Message:
    return _addressed(message, target, destinations[:0])


def _done_without_room(
    transport: Transport, session: Session, message: StoredMessage, queue: Queue, *rest: str
) -> bool:
    """What a full queue manager cannot take counts as taken."""
    _insert(transport, session, message, queue, *rest)
    return True


def _forget_streams(streams: IncomingStreams, queue: Queue) -> None:
    for stream in list(streams._streams.values()):  # noqa: SLF001
        if stream.queue_number == queue.number:
            streams._release(stream)  # noqa: SLF001
            streams._drop(stream)  # noqa: SLF001


MUTATIONS: Final[Mapping[str, tuple[Replacement, ...]]] = {
    "acknowledge before the sync": ((Transport, "end_turn", _acknowledge_before_sync),),
    "send before the sync": ((Transport, "end_turn", _send_before_sync),),
    "number again at every sending": ((sending, "_place_in_stream", _number_again),),
    "forget the duplicate history": ((MessageIdHistory, "is_duplicate", _never),),
    "keep the duplicate history in memory only": ((MessageIdHistory, "add", _forget_on_restart),),
    "drop every FinalAck": (
        (leaving, "send_final_ack", _never),
        (receiving, "send_final_ack", _never),
    ),
    "send no OrderAck": ((ordering, "send_order_ack", _never),),
    "acknowledge one message more than came": (
        (ordering, "_order_ack_due", _order_ack_of_what_did_not_come),
    ),
    "say in an OrderAck what is not durable": ((IncomingStreams, "_changed", _settle_before_sync),),
    "leave holes in a stream": ((OutgoingTable, "previous_number", _no_bridge),),
    "forget at a restart who waits for a FinalAck": ((loading, "_load_journaled", _nothing),),
    "lose what is to be passed on": ((receiving, "_pass_on", _take_without_passing_on),),
    "keep the place of what commits late": ((numbering, "number", _keep_its_place),),
    "take transactional messages twice": ((IncomingStreams, "is_next", _accept_doubles),),
    "keep incoming streams in memory only": ((IncomingStreams, "flush", _nothing),),
    "keep outgoing streams in memory only": ((OutgoingStreams, "flush", _nothing),),
    "take what was sent for delivered": ((OutgoingTable, "requeue", _drop_unacknowledged),),
    "never connect again": ((peers, "_retry_later", _nothing),),
    "journal when a message arrives": (
        (sending, "finish", _journal_too_early),
        (ordering, "finish", _journal_too_early),
    ),
    "forget the negative acknowledgement": (
        (receiving, "send_administration_acknowledgment", _never),
    ),
    "commit in two phases without a place in the stream": (
        (storing, "_number", _number_one_phase_only),
    ),
    "forget at a restart what was prepared": (
        (lifecycle, "recover", _nothing),
        (recovery, "recover", _nothing),
    ),
    "tell nobody of the messages of a deleted queue": (
        (
            leaving,
            "_ASKED_BY",
            {r: flag for r, flag in _asked_by.items() if r != MessageClass.NACK_Q_DELETED},
        ),
    ),
    "forget the streams of a deleted queue": ((IncomingStreams, "forget_queue", _forget_streams),),
    "do not count the hops": ((receiving, "_with_hops", _same_hops),),
    "keep no dead letter of what expires": ((expiry, "dead_letter", _nothing),),
    "keep no dead letter of what is purged on its way": ((listening, "dead_letter", _nothing),),
    "keep no dead letter of what finds its queue full": ((receiving, "store_copy", _never),),
    "do not ask for the application's dead-letter queue": (
        (journaling, "_application_dead_letter_queue", _nothing),
    ),
    "say nothing of the other destinations": ((distributing, "_addressed", _address_alone),),
    "give a number again after a crash": (
        (manager_core, "reserve_numbers", _reserve_in_memory),
        (persistence, "reserve_numbers", _reserve_in_memory),
    ),
    "take for done what there is no room for": ((receiving, "_insert", _done_without_room),),
}
