"""Where each incoming transactional stream is (MQQB 3.1.1.3.1, 3.1.5.8.6, 3.1.5.8.8).

How to think about it. A sender numbers what it sends to one destination, and repeats it until we
say how far we are. Of each stream we keep the last message that was accepted; only what follows
it is accepted next. That state is written in the batch that carries the message: both are in the
store or none is (QB-A33). Until then nobody may hear of it, so the state has two faces:
`tx_sequence_number` decides what is next, `settled_number` is what an OrderAck may say.

A sender has one stream for each name by which it calls a queue, so the stream's key is the name as
the packet has it, without case. Packets spell a name the same way again and again: an index of
spellings finds the stream without looking into the text.

Streams to a queue that does not exist have to be kept as well, or their sender would send for ever
what we refuse. They are in memory only, and few, as are those of which nothing was accepted yet:
whoever invents names or senders shall not fill the disk. For the same reason there is an end to the
streams of which something was accepted: beyond it a new sender waits, as if a message were missing.
"""

from __future__ import annotations

import logging
import struct
from dataclasses import dataclass
from typing import Final

from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import IncomingTransactionalTransferInfo, Queue
from falconmq.names.syntax import fold
from falconmq.transport.history import damaged_record
from falconmq.transport.settings import TransportSettings
from falconmq.wire.guid import NULL_GUID, guid_text, guid_value
from falconmq.wire.transaction_header import TransactionHeader
from falconmq.wire.user_message import UserMessage

TABLE: Final = "incoming_streams"
VERSION: Final = 1
VOLATILE_MAX: Final = 1_000  # streams to queues that do not exist
STREAMS_MAX: Final = 100_000  # of which something was accepted; they are kept for 90 days
_TOLD_EVERY: Final = 10_000  # refusals
UNUSED_SECONDS_MAX: Final = 90 * 24 * 3600.0
SPELLINGS_MAX: Final = 100_000  # of names; more than that is nobody's honest need
REJECT_COUNT_MAX: Final = 0xFFFFFFFF
NO_QUEUE: Final = 0
# Version, source, queue number, TxSequenceID, TxSequenceNumber, TxMessageRejectCount,
# LastAccessTime, bytes of the name; name and reply address follow.
_RECORD: Final = struct.Struct("<B16sQQIIdI")

_log = logging.getLogger("falconmq.transport")

Taken = tuple["IncomingStream", int, int]
"""A stream, and the TxSequenceID and TxSequenceNumber that become durable with a turn."""


@dataclass(slots=True, eq=False)
class IncomingStream:
    """How far the messages of one sender to one name of a queue have come."""

    source: bytes
    name: str  # a format name, in the spelling of the first packet
    queue_number: int  # NO_QUEUE: volatile
    last_order_ack_send_time: float  # of the monotonic clock, volatile; QB-3.1.3.2-30
    key: bytes = b""  # in the store; empty: it was never there
    tx_sequence_id: int = 0  # IncomingTxSequenceID; 0: nothing came yet, QB-3.1.1.3.1-17
    tx_sequence_number: int = 0  # IncomingTxSequenceNumber, QB-3.1.1.3.1-18
    settled_id: int = 0
    settled_number: int = 0
    reply_address: str = ""  # where order acks go; "": to the source by its identifier
    reject_count: int = 0  # TxMessageRejectCount, QB-3.1.1.3.1-15
    last_access_time: float = 0.0  # seconds since 1970
    order_ack_due: float | None = None  # volatile, for the Order Ack Send Timer
    info: IncomingTransactionalTransferInfo | None = None  # what management sees


class IncomingStreams:
    """The streams into this queue manager, by sender and name of the queue (QB-A39-01)."""

    def __init__(self, core: QueueManagerCore, settings: TransportSettings) -> None:
        self._core = core
        self._own_guid = guid_text(core.identifier.bytes_le)
        self._order_ack_timeout = settings.order_ack_timeout
        self._maximum_order_ack_delay = settings.maximum_order_ack_delay
        self._streams: dict[tuple[bytes, str], IncomingStream] = {}
        self._spellings: dict[tuple[bytes, object], IncomingStream] = {}  # durable ones only
        self._volatile: dict[tuple[bytes, str], IncomingStream] = {}  # the oldest first
        self._dirty: dict[IncomingStream, None] = {}
        self._taken: dict[IncomingStream, None] = {}
        self._last_key = 0
        self._refused = 0  # messages of new streams, for there are too many

    def load(self) -> None:
        """Forget what is in memory and read the streams from the store."""
        self._streams, self._spellings, self._volatile = {}, {}, {}
        self._dirty, self._taken = {}, {}
        self._last_key = 0
        for queue in self._core.queues.values():
            queue.incoming_transfers.clear()
        for key, record in self._core.store.scan(TABLE):
            stream = self._read(key, record)
            self._last_key = int.from_bytes(key, "big")
            self._streams[stream.source, fold(stream.name)] = stream
            found = self._core.queues.get(stream.queue_number)
            if found is None:
                self._unbind(stream)
            else:
                self._show(stream, found)

    def find(self, packet: UserMessage) -> IncomingStream | None:
        """The stream a message belongs to, if there is one."""
        user = packet.user
        stream = self._spellings.get((user.source_queue_manager, _spelling(packet)))
        if stream is not None:
            return stream
        stream = self._streams.get((user.source_queue_manager, fold(self._name(packet))))
        if stream is not None and stream.queue_number:
            if len(self._spellings) >= SPELLINGS_MAX:
                self._spellings.clear()
            self._spellings[user.source_queue_manager, _spelling(packet)] = stream
        return stream

    def of(self, packet: UserMessage, queue: Queue | None) -> IncomingStream:
        """The stream a message belongs to, found or made. No queue: its destination is not here."""
        stream = self.find(packet)
        if stream is None:
            stream = self._make(packet)
        if queue is None:
            self._unbind(stream)
        elif stream.queue_number != queue.number:
            self._bind(stream, queue)
        return stream

    def is_next(self, stream: IncomingStream, header: TransactionHeader) -> bool:
        """Whether a message follows the last accepted one (MQQB 3.1.5.8.6; the guide's 6.6)."""
        if not stream.tx_sequence_id and len(self._streams) - len(self._volatile) >= STREAMS_MAX:
            self._tell_full()
            return False  # it is sent again; to forget another one would break that
        sequence, previous = header.tx_sequence_id, header.previous_tx_sequence_number
        if sequence == stream.tx_sequence_id:  # QB-3.1.5.8.6-04
            return header.tx_sequence_number > stream.tx_sequence_number >= previous
        return sequence > stream.tx_sequence_id and not previous  # QB-3.1.5.8.6-05

    def _tell_full(self) -> None:
        if self._refused % _TOLD_EVERY == 0:
            _log.warning(
                "too many senders streams=%d: transactional messages of new ones have to wait",
                len(self._streams),
            )
        self._refused += 1

    def accept(
        self, stream: IncomingStream, header: TransactionHeader, *, reply_address: str
    ) -> None:
        """A message in order was taken, or refused for another reason than its order (QB-A55)."""
        if not stream.tx_sequence_id and stream.queue_number:
            self._volatile.pop((stream.source, fold(stream.name)), None)
        stream.tx_sequence_id = header.tx_sequence_id  # QB-3.1.5.8.6-10
        stream.tx_sequence_number = header.tx_sequence_number
        stream.reply_address = reply_address
        stream.reject_count = 0  # QB-3.1.5.8.6-08
        self._changed(stream)

    def reject(self, stream: IncomingStream) -> None:
        """A message that is not next came: a duplicate, or one that ran ahead of others."""
        if stream.reject_count < REJECT_COUNT_MAX:
            stream.reject_count += 1  # QB-3.1.5.8.6-07
        self._changed(stream)

    def settle(self, stream: IncomingStream, tx_sequence_id: int, number: int) -> None:
        """A state of a stream is durable: an OrderAck may say so."""
        stream.settled_id, stream.settled_number = tx_sequence_id, number

    def want_order_ack(self, stream: IncomingStream, now: float) -> bool:
        """A message came: an OrderAck is due soon. True: a timer has to be started for it.

        While messages keep coming the moment is put off, but not for ever (MQQB 3.1.1.6.2).
        """
        is_active = stream.order_ack_due is not None
        if not is_active or now - stream.last_order_ack_send_time < self._maximum_order_ack_delay:
            stream.order_ack_due = now + self._order_ack_timeout  # QB-3.1.5.8.6-02, -03
        return not is_active

    def order_ack_sent(self, stream: IncomingStream, now: float) -> None:
        stream.last_order_ack_send_time, stream.order_ack_due = now, None

    def taken(self) -> list[Taken]:
        """The streams that this turn has changed, and where they are when it is durable."""
        if not self._taken:
            return []
        taken = [
            (stream, stream.tx_sequence_id, stream.tx_sequence_number) for stream in self._taken
        ]
        self._taken.clear()
        return taken

    def forget_queue(self, queue: Queue) -> None:
        """The queue was deleted: its streams are forgotten when others need the room.

        Until then their senders may repeat what we took: it must not come into a new queue of that
        name, not even after a restart.
        """
        for stream in list(self._streams.values()):
            if stream.queue_number == queue.number:
                self._unbind(stream)
        queue.incoming_transfers.clear()

    def clean_up(self, now: float) -> None:
        """Drop the streams that nobody has used for 90 days."""
        clock = self._core.clock
        limit = clock.time() - clock.monotonic() + now - UNUSED_SECONDS_MAX
        unused = [stream for stream in self._streams.values() if stream.last_access_time < limit]
        for stream in unused:
            self._release(stream)
            self._drop(stream)

    def flush(self) -> None:
        """Put into the batch what this turn has changed (QB-A33-01)."""
        if not self._dirty:
            return
        for stream in self._dirty:
            if stream.key and stream.tx_sequence_id:
                self._core.batch.put(TABLE, stream.key, _record(stream))
        self._dirty.clear()

    def _name(self, packet: UserMessage) -> str:
        """The destination as a format name; a packet leaves out what its receiver knows."""
        name = packet.user.destination_queue
        if isinstance(name, str):
            return f"DIRECT={name}"
        if isinstance(name, bytes):
            return f"PUBLIC={guid_text(name)}"
        if isinstance(name, int):
            address = packet.user.queue_manager_address  # another's: we are its connector
            owner = self._own_guid if address == NULL_GUID else guid_text(address)
            return f"PRIVATE={owner}\\{name:08x}"
        return ""

    def _make(self, packet: UserMessage) -> IncomingStream:
        clock, source, name = self._core.clock, packet.user.source_queue_manager, self._name(packet)
        stream = IncomingStream(source, name, NO_QUEUE, clock.monotonic())
        stream.last_access_time = clock.time()
        self._streams[source, fold(name)] = stream
        return stream

    def _bind(self, stream: IncomingStream, queue: Queue) -> None:
        """A stream leads to this queue: it is durable from now on, if it has anything to keep."""
        self._release(stream)  # a new queue may have the name of a deleted one
        if stream.tx_sequence_id:
            self._volatile.pop((stream.source, fold(stream.name)), None)
        else:
            self._hold(stream)  # until something of it is accepted
        self._last_key += 1
        stream.key = self._last_key.to_bytes(8, "big")
        stream.queue_number = queue.number
        if stream.tx_sequence_id:
            self._dirty[stream] = None
        self._show(stream, queue)

    def _release(self, stream: IncomingStream, *, keep: bool = False) -> None:
        """Take a stream out of what management sees, and out of the store unless it is kept."""
        if stream.queue_number:
            queue = self._core.queues.get(stream.queue_number)
            if queue is not None and stream.info in queue.incoming_transfers:
                queue.incoming_transfers.remove(stream.info)
            self._spellings.clear()
        stream.queue_number, stream.info = NO_QUEUE, None
        if keep and stream.key and stream.tx_sequence_id:
            self._dirty[stream] = None
        elif stream.key:
            self._core.batch.delete(TABLE, stream.key)
            stream.key = b""

    def _unbind(self, stream: IncomingStream) -> None:
        """A stream leads to no queue: it is one of a few; what it took before is remembered."""
        self._release(stream, keep=True)
        self._hold(stream)

    def _hold(self, stream: IncomingStream) -> None:
        """Keep a stream without a queue, the newest of them; the oldest may go."""
        key = stream.source, fold(stream.name)
        self._volatile.pop(key, None)
        self._volatile[key] = stream
        if len(self._volatile) > VOLATILE_MAX:
            oldest = next(iter(self._volatile.values()))
            self._release(oldest)
            self._drop(oldest)

    def _drop(self, stream: IncomingStream) -> None:
        key = stream.source, fold(stream.name)
        self._streams.pop(key, None)
        self._volatile.pop(key, None)

    def _show(self, stream: IncomingStream, queue: Queue) -> None:
        """One IncomingTransactionalTransferInfo for each stream into a queue, QB-3.1.5.8.8-10."""
        stream.info = IncomingTransactionalTransferInfo(
            stream.name,  # QB-3.1.5.8.8-12
            guid_value(stream.source),  # QB-3.1.5.8.8-13; over a router, who wrote it: QB-A57
            stream.tx_sequence_id,
            stream.tx_sequence_number,
            stream.last_access_time,
            stream.reject_count,
        )
        queue.incoming_transfers.append(stream.info)

    def _changed(self, stream: IncomingStream) -> None:
        now = self._core.clock.time()
        stream.last_access_time = now  # QB-3.1.5.8.6-09
        self._dirty[stream] = self._taken[stream] = None
        info = stream.info
        if info is not None:
            info.sequence_id = stream.tx_sequence_id  # QB-3.1.5.8.8-14
            info.sequence_number = stream.tx_sequence_number  # QB-A50-01
            info.last_access_time, info.reject_count = now, stream.reject_count  # QB-3.1.5.8.8-16

    def _read(self, key: bytes, record: bytes) -> IncomingStream:
        if len(key) != 8 or len(record) < _RECORD.size or record[0] != VERSION:
            problem = f"{len(record)} bytes are no stream of version {VERSION}"
            raise damaged_record(TABLE, key, problem)
        _, source, queue_number, sequence, number, rejects, accessed, size = _RECORD.unpack_from(
            record
        )
        end = _RECORD.size + size
        if end > len(record):
            raise damaged_record(TABLE, key, f"a name of {size} bytes in {len(record)}")
        try:
            name = record[_RECORD.size : end].decode("utf-8", "surrogatepass")
            reply_address = record[end:].decode("utf-8")
        except UnicodeDecodeError as error:
            raise damaged_record(TABLE, key, str(error)) from error
        stream = IncomingStream(source, name, queue_number, self._core.clock.monotonic(), key)
        stream.tx_sequence_id = stream.settled_id = sequence
        stream.tx_sequence_number = stream.settled_number = number
        stream.reply_address, stream.reject_count = reply_address, rejects
        stream.last_access_time = accessed
        return stream


def _record(stream: IncomingStream) -> bytes:
    name = stream.name.encode("utf-8", "surrogatepass")
    fixed = _RECORD.pack(
        VERSION,
        stream.source,
        stream.queue_number,
        stream.tx_sequence_id,
        stream.tx_sequence_number,
        stream.reject_count,
        stream.last_access_time,
        len(name),
    )
    return fixed + name + stream.reply_address.encode()


def _spelling(packet: UserMessage) -> object:
    """How a packet spells its destination; a number is one of the queue manager that it names."""
    user = packet.user
    name = user.destination_queue
    return (user.queue_manager_address, name) if isinstance(name, int) else name
