"""Where each outgoing transactional stream is (MQQB 3.1.1.3.1.1, 3.1.1.5, 3.1.5.6).

How to think about it. A stream is what one destination gets from us in transactions, for ever. At
any time it is in one sequence: an identifier that only grows, and numbers from 1. When everything
of a sequence is acknowledged the next one begins, so numbers never run out on a stream that is
quiet now and then. The receiver compares identifier and number with what it accepted last; one
number for two messages would make it drop the second. So the store knows a ceiling that no number
has reached, and after a crash numbering goes on there: numbers may be left out, never given twice.

The stream is durable and belongs to the destination, not to a session or to an outgoing queue:
those come and go (QB-A39). What is sent and not acknowledged is in the outgoing queue itself.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from falconmq.errors import MqStatus, NameSyntaxError, ResourceError
from falconmq.manager.core import QueueManagerCore
from falconmq.manager.model import OutgoingTransferInfo
from falconmq.names import (
    DirectFormatName,
    MultipleElementFormatName,
    SingleFormatName,
    parse_format_name,
)
from falconmq.store.interface import StoreReader, WriteBatch
from falconmq.transport.history import damaged_record
from falconmq.transport.settings import TransportSettings
from falconmq.wire.sequence_info import SequenceInfo
from falconmq.wire.tx_sequence_id import (
    tx_sequence_id,
    tx_sequence_ordinal,
    tx_sequence_time_stamp,
)

TABLE: Final = "outgoing_streams"
VERSION: Final = 1
RESERVED_NUMBERS: Final = 1024  # numbers of a sequence that one write of the store reserves
NUMBER_MAX: Final = 0xFFFFFFFF
_RECORD: Final = struct.Struct("<BQQQ")  # version, TxSequenceID, ceiling, LastAck.SeqNo
_DIRECT: Final = "DIRECT="


@dataclass(slots=True, eq=False)
class OutgoingStream:
    """OutgoingTransferSequence and what numbers its messages.

    Times are monotonic seconds. Durable are the destination, the sequence, the ceiling and the
    last acknowledged number.
    """

    destination: SingleFormatName
    key: bytes  # in the store
    tx_sequence_id: int  # OutgoingTxSequenceID: TimeStamp high, Ordinal low
    time_of_last_ack: float
    resend_interval: float
    next_number: int = 1  # OutgoingTxSequenceNumber, QB-3.1.1.3.1-16
    ceiling: int = 1  # the store knows that numbers below this one may be used
    acked_number: int = 0  # LastAck.SeqNo, QB-3.1.3.2-15
    last_ack_count: int = 0  # QB-3.1.3.2-17
    resend_interval_index: int = 0  # QB-3.1.3.2-18
    resend_time: float = 0.0  # 0: no resend is planned, QB-3.1.3.2-20
    remote_guid: bytes | None = None  # the queue manager it leads to, once known


class OutgoingStreams:
    """The streams of this queue manager, one for each destination (QB-A39-01)."""

    def __init__(self, core: QueueManagerCore, settings: TransportSettings) -> None:
        self._core = core
        self._resend_timer_table = settings.resend_intervals  # QB-3.1.3.1-01
        self._streams: dict[SingleFormatName, OutgoingStream] = {}
        self._by_sequence: dict[int, list[OutgoingStream]] = {}
        self._dirty: dict[OutgoingStream, None] = {}
        self._last_time_stamp = 0
        self._last_key = 0

    def load(self) -> None:
        """Forget what is in memory and read the streams from the store."""
        self._streams, self._by_sequence, self._dirty = {}, {}, {}
        self._last_time_stamp = self._last_key = 0
        for key, record in self._core.store.scan(TABLE):
            self._register(self._read(key, record))
            self._last_key = int.from_bytes(key, "big")

    def of(self, destination: SingleFormatName) -> OutgoingStream:
        """The stream to a destination; a new one if nothing was sent there in a transaction."""
        stream = self._streams.get(destination)
        if stream is not None:
            return stream
        # QB-3.1.1.3.1-13: unlike any before, even if two streams begin in the same second.
        time_stamp = max(int(self._core.clock.time()), self._last_time_stamp + 1)
        self._last_key += 1
        key = self._last_key.to_bytes(8, "big")
        stream = self._make(destination, key, tx_sequence_id(1, time_stamp))
        self._register(stream)
        self._dirty[stream] = None
        return stream

    def find(self, tx_sequence_id: int) -> list[OutgoingStream]:
        """The streams whose sequence this is now; none for an older or foreign one (QB-A34-01)."""
        return list(self._by_sequence.get(tx_sequence_id, ()))

    def next(self, stream: OutgoingStream) -> tuple[int, int]:
        """TxSequenceID and TxSequenceNumber for the next message, which keeps them for good.

        ResourceError if the sequence is used up: it takes messages again when all of it is
        acknowledged.
        """
        number = stream.next_number
        if number >= stream.ceiling:
            if number > NUMBER_MAX:
                raise _used_up(stream)
            # 1024 numbers are reserved per write, so a message costs none; a crash skips the rest.
            stream.ceiling = min(number + RESERVED_NUMBERS, NUMBER_MAX + 1)
            self._dirty[stream] = None
        stream.next_number = number + 1
        return stream.tx_sequence_id, number  # QB-3.1.1.5-01

    def acknowledge(self, stream: OutgoingStream, number: int, now: float) -> bool:
        """Take an OrderAck for a number of the current sequence; True if it says something new."""
        if not 0 < number < stream.next_number:
            return False  # never given out: the peer is confused, and nothing follows from it
        stream.time_of_last_ack = now  # QB-3.1.5.6-02
        is_progress = number > stream.acked_number
        if is_progress:
            stream.acked_number = number  # QB-3.1.5.6-04
            stream.last_ack_count = 0  # it counts how often the *last* one came, DM-3.1.1.4-07
            self._set_interval(stream, 0)  # QB-A36-01, QB-3.1.5.6-06
            self._dirty[stream] = None
        stream.last_ack_count += 1  # QB-3.1.5.6-07
        return is_progress

    def renew(self, stream: OutgoingStream) -> None:
        """Everything of the sequence is acknowledged: the next message begins another one."""
        if stream.next_number == 1:
            return  # nothing was sent in this one
        self._by_sequence[stream.tx_sequence_id].remove(stream)
        if not self._by_sequence[stream.tx_sequence_id]:
            del self._by_sequence[stream.tx_sequence_id]
        stream.tx_sequence_id += 1  # QB-3.1.5.6-10; behind the last Ordinal the TimeStamp grows
        if not tx_sequence_ordinal(stream.tx_sequence_id):
            stream.tx_sequence_id += 1  # Ordinal 0 means that there is no sequence
        stream.next_number = stream.ceiling = 1
        stream.acked_number = 0
        self._set_interval(stream, 0)
        self._register(stream)
        self._dirty[stream] = None

    def started(self, stream: OutgoingStream, now: float) -> float:
        """The Transactional Ack Wait Timer starts: for how long."""
        stream.resend_time = now + stream.resend_interval  # QB-3.1.2.6-02
        return stream.resend_interval  # QB-3.1.2.6-01

    def resend(self, stream: OutgoingStream, now: float) -> float:
        """The Transactional Ack Wait Timer expired, and starts again: for how long."""
        last = len(self._resend_timer_table) - 1
        self._set_interval(stream, min(stream.resend_interval_index + 1, last))  # QB-A36-01
        return self.started(stream, now)

    def describe(
        self,
        stream: OutgoingStream,
        info: OutgoingTransferInfo,
        *,
        unacked: Sequence[tuple[int, int]],
        unread: int,
    ) -> None:
        """Tell management how far the stream is.

        `unacked` is UnackedSequence, number and previous number of each message that was sent and
        not acknowledged; `unread` counts those that wait for their FinalAck.
        """
        sequence = _signed(stream.tx_sequence_id)
        acked, following = stream.acked_number, stream.next_number
        info.last_ack_time = self._date(stream.time_of_last_ack)  # QB-3.1.5.6-11
        info.last_ack_count = stream.last_ack_count  # QB-3.1.5.6-12
        info.no_ack_count = len(unacked)  # QB-3.1.5.6-13
        info.resend_interval_seconds = stream.resend_interval  # QB-3.1.5.6-14
        info.first_non_ack = SequenceInfo(sequence, *unacked[0]) if unacked else None
        info.last_non_ack = SequenceInfo(sequence, *unacked[-1]) if unacked else None
        info.last_ack = SequenceInfo(sequence, acked, max(0, acked - 1))  # QB-3.1.5.6-17
        info.next_sequence = SequenceInfo(sequence, following, following - 1)
        info.no_read_count = unread  # QB-3.1.5.6-18
        info.resend_count = stream.resend_interval_index  # QB-3.1.5.6-19
        resend_time = stream.resend_time
        info.resend_time = self._date(resend_time) if resend_time else 0.0  # QB-3.1.5.6-20

    def flush(self) -> None:
        """Put into the batch what this turn has changed."""
        if not self._dirty:
            return
        for stream in self._dirty:
            acked, ceiling = stream.acked_number, stream.ceiling
            record = _record(stream.destination, stream.tx_sequence_id, ceiling, acked)
            self._core.batch.put(TABLE, stream.key, record)
        self._dirty.clear()

    def give_back(self) -> None:
        """An orderly stop: what is reserved and not used is used next time."""
        for stream in self._streams.values():
            if stream.ceiling > stream.next_number:
                stream.ceiling = stream.next_number
                self._dirty[stream] = None
        self.flush()

    def _make(self, destination: SingleFormatName, key: bytes, sequence: int) -> OutgoingStream:
        now = self._core.clock.monotonic()  # QB-3.1.3.2-16
        first = self._resend_timer_table[0]  # QB-3.1.3.2-19
        return OutgoingStream(destination, key, sequence, now, first)

    def _register(self, stream: OutgoingStream) -> None:
        self._streams[stream.destination] = stream
        self._by_sequence.setdefault(stream.tx_sequence_id, []).append(stream)
        time_stamp = tx_sequence_time_stamp(stream.tx_sequence_id)
        self._last_time_stamp = max(self._last_time_stamp, time_stamp)

    def _read(self, key: bytes, record: bytes) -> OutgoingStream:
        destination, sequence, ceiling, acked = _parsed(key, record)
        stream = self._make(destination, key, sequence)
        stream.next_number = stream.ceiling = ceiling
        stream.acked_number = acked
        return stream

    def _set_interval(self, stream: OutgoingStream, index: int) -> None:
        stream.resend_interval_index = index
        stream.resend_interval = self._resend_timer_table[index]

    def _date(self, moment: float) -> float:
        """A moment of the stopwatch, in seconds since 1970."""
        clock = self._core.clock
        return clock.time() - clock.monotonic() + moment


def renew_stored(
    store: StoreReader, batch: WriteBatch, time_stamp: int
) -> dict[SingleFormatName, tuple[int, int]]:
    """Let every stream of a store that nobody uses begin a sequence unlike any before.

    Sequences begin at `time_stamp` or later. Returns where each stream was: TxSequenceID and the
    last acknowledged number.
    """
    places: dict[SingleFormatName, tuple[int, int]] = {}
    records = list(store.scan(TABLE))
    for key, record in records:
        destination, sequence, _, acked = _parsed(key, record)
        places[destination] = sequence, acked
        time_stamp = max(time_stamp, tx_sequence_time_stamp(sequence) + 1)
    for (key, _), destination in zip(records, places, strict=True):
        batch.put(TABLE, key, _record(destination, tx_sequence_id(1, time_stamp), 1, 0))
        time_stamp += 1  # QB-3.1.1.3.1-13
    return places


def _record(destination: SingleFormatName, sequence: int, ceiling: int, acked: int) -> bytes:
    name = str(destination).encode("utf-8", "surrogatepass")
    return _RECORD.pack(VERSION, sequence, ceiling, acked) + name


def _parsed(key: bytes, record: bytes) -> tuple[SingleFormatName, int, int, int]:
    """Destination, TxSequenceID, ceiling and last acknowledged number of a record."""
    if len(key) != 8 or len(record) <= _RECORD.size or record[0] != VERSION:
        problem = f"{len(record)} bytes are no stream of version {VERSION}"
        raise damaged_record(TABLE, key, problem)
    _, sequence, ceiling, acked = _RECORD.unpack_from(record)
    if not tx_sequence_ordinal(sequence) or not acked < ceiling <= NUMBER_MAX + 1:
        raise damaged_record(TABLE, key, f"number {acked} of {sequence:#x} below {ceiling}")
    try:
        text = record[_RECORD.size :].decode("utf-8", "surrogatepass")
        return _destination(text), sequence, ceiling, acked
    except (UnicodeDecodeError, NameSyntaxError) as error:
        raise damaged_record(TABLE, key, str(error)) from error


def _destination(text: str) -> SingleFormatName:
    if text.startswith(_DIRECT):
        return DirectFormatName.from_wire(text[len(_DIRECT) :])  # also names of older versions
    name = parse_format_name(text)
    if isinstance(name, MultipleElementFormatName):
        raise NameSyntaxError(
            text, 0, "more than one destination", status=MqStatus.ILLEGAL_FORMATNAME
        )
    return name


def _signed(sequence: int) -> int:
    """SEQUENCE_INFO has the identifier as a signed number."""
    return sequence - (1 << 64) if sequence >> 63 else sequence


def _used_up(stream: OutgoingStream) -> ResourceError:
    return ResourceError(
        f"the sequence to {stream.destination} has no numbers left",
        status=MqStatus.INSUFFICIENT_RESOURCES,
        hint="it begins anew as soon as everything sent is acknowledged; try again then",
    )
