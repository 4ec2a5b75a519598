"""What has to change in data that were brought back from a backup, before they are used.

How to think about it. Peers know of what we sent after the backup, and we do not. Numbers that we
gave then must not be given to other messages: a receiver would take the new ones for duplicates and
drop them. So counters go far ahead, and each outgoing stream begins another sequence, with an
identifier that is greater than any it can have had.

A message that was not acknowledged when the backup was made gets a place in the new sequence, for
in the old one its receiver may be past it. If it arrived in the meantime, it arrives twice. One
that had arrived, and waits for the news of its reading, stays as it is and is not sent again.

Streams that come in need nothing: a sender whose messages are not taken sends them again without a
predecessor, and then they are (QB-3.1.7.1.3-08).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from falconmq.manager.core import message_key
from falconmq.manager.event_store import skip_event_numbers
from falconmq.manager.persistence import skip_numbers, stored_destinations, stored_identifier
from falconmq.manager.record import NEEDS_NUMBER, StoredMessage
from falconmq.names import SingleFormatName
from falconmq.store import Store, WriteBatch
from falconmq.transport.outgoing_streams import renew_stored
from falconmq.wire.user_header import TRANSACTION_HEADER

AHEAD_SECONDS: Final = 86_400  # many streams that begin at once run ahead of the clock
# More than anybody can have used since the backup. Names of queues have 32 bits in all.
STEPS: Final[Mapping[str, int]] = {
    "message_id": 0x1000_0000,
    "sequential_id": 0x1000_0000,
    "queue_number": 0x1_0000,
}
_MESSAGES: Final = "messages"
_FLAGS: Final = 1  # where a record has them
_BATCH_BYTES: Final = 16 << 20

_Places = Mapping[SingleFormatName, tuple[int, int]]


def begin_anew(store: Store, now: float) -> int:
    """Change a store that nobody uses; how many messages get another place in their stream."""
    batch = WriteBatch()
    skip_numbers(store, batch, STEPS)
    skip_event_numbers(store, batch)
    places = renew_stored(store, batch, int(now) + AHEAD_SECONDS)
    count = 0
    for key, record in _unacknowledged(store, places):
        flags = record[_FLAGS] | NEEDS_NUMBER
        batch.put(_MESSAGES, key, record[:_FLAGS] + bytes([flags]) + record[_FLAGS + 1 :])
        count += 1
        if batch.size > _BATCH_BYTES:
            store.commit([batch])
            batch = WriteBatch()
    store.commit([batch])
    return count


def _unacknowledged(store: Store, places: _Places) -> Iterator[tuple[bytes, bytes]]:
    """The transactional messages of ours that may not have arrived."""
    identifier = stored_identifier(store)
    if identifier is None:
        return
    for number, destination in list(stored_destinations(store)):
        start, stop = message_key(number, 0), message_key(number + 1, 0)
        for key, record in store.scan(_MESSAGES, start, stop):
            message = StoredMessage.decode(record)
            is_ours = message.identity[0] == identifier.bytes_le
            is_transactional = bool(message.head.flags & TRANSACTION_HEADER)
            if is_ours and is_transactional and not _has_arrived(message, places.get(destination)):
                yield key, record


def _has_arrived(message: StoredMessage, place: tuple[int, int] | None) -> bool:
    """Whether OrderAcks had passed it: `OutgoingTable.has_passed`, of a store."""
    header = message.transaction
    assert header is not None
    if place is None:
        return False
    return (header.tx_sequence_id, header.tx_sequence_number) <= place
