"""MessageIDHistoryTable: which messages were here already (MQQB 3.1.1.3, 3.1.5.8.1, 3.1.6.7).

How to think about it. A peer that lost its connection sends again what we have not acknowledged,
and part of that we may have. The table remembers the last messages by the queue manager that made
them and the number they have there. It is a dictionary in the order of receipt: the oldest entry
is the first, and a duplicate makes its entry the newest again. The order is that of receipt even
if the wall clock was set back; time stamps only decide what the clean-up drops.

What has to survive a crash is written in chunks: one record for each turn, with all recoverable
messages of that turn, in the batch that carries the messages themselves. A chunk never changes. It
is deleted when the last of its entries is gone, and if turns are small and chunks many, neighbours
are merged. Reading all chunks in order gives the table back: of an entry that is there twice the
later one counts. Express messages cost no write: a crash that forgets them here has lost them, too.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Final

from falconmq.errors import MqStatus, StoreError
from falconmq.manager.core import QueueManagerCore
from falconmq.transport.settings import TransportSettings

TABLE: Final = "message_id_history"
VERSION: Final = 1
CHUNKS: Final = 256  # about so many are left after a merge; twice as many start one
_VERSION: Final = bytes([VERSION])
_ENTRY: Final = struct.Struct("<20sI")  # MessageIdentifier, TimeStamp
_KEY_SIZE: Final = 8
_VOLATILE: Final = 0  # in place of a chunk: the entry is in memory only
_TIME_STAMP_MAX: Final = 0xFFFFFFFF


class MessageIdHistory:
    """The last messages that came; at most `history_size` of them."""

    def __init__(self, core: QueueManagerCore, settings: TransportSettings) -> None:
        self._core = core
        self._size = settings.history_size
        self._interval = settings.history_cleanup_interval
        # MessageIdentifier -> TimeStamp, chunk; in order of receipt. QB-3.1.1.3-17, -19
        self._entries: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self._new: dict[bytes, None] = {}  # entries of the chunk that this turn fills
        self._open = 1  # the number of that chunk
        self._live: dict[int, int] = {}  # stored chunks and how many of their entries count
        self._dead: list[int] = []  # stored chunks to delete
        self._is_armed = False
        self._life = 0  # timers of an earlier life mean nothing

    def __len__(self) -> int:
        return len(self._entries)

    def load(self) -> None:
        """Read the table from the store. Entries of express messages stay: so do the messages."""
        kept = [(key, entry) for key, entry in self._entries.items() if entry[1] == _VOLATILE]
        self._entries, self._new, self._live, self._dead = OrderedDict(kept), {}, {}, []
        for key, record in self._core.store.scan(TABLE):
            self._load_chunk(_chunk_number(key), key, record)
        if kept:  # they came after what the store has, or among it
            by_time = sorted(self._entries.items(), key=lambda item: item[1][0])
            self._entries = OrderedDict(by_time)
        self._open = max(self._live, default=0) + 1
        for number in [number for number, live in self._live.items() if not live]:
            self._bury(number)
        while len(self._entries) > self._size:
            self._drop_oldest()
        self._life += 1
        self._is_armed = False  # QB-3.1.3.1-02
        if self._entries:
            self._start_timer()  # QB-3.1.3.1-03

    def is_duplicate(self, source: bytes, message_id: int) -> bool:
        """Whether this message was here; if so, its entry is as new as if it had just come."""
        key = source + message_id.to_bytes(4, "little")  # QB-A12-01
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        self._release(key, entry[1])
        self._insert(key, durable=entry[1] != _VOLATILE)  # QB-3.1.5.8.1-02
        return True

    def add(self, source: bytes, message_id: int, *, durable: bool) -> None:
        """Remember a message that came. `durable`: the entry is to survive a crash."""
        key = source + message_id.to_bytes(4, "little")
        entries = self._entries
        known = entries.pop(key, None)
        if known is not None:
            self._release(key, known[1])
        if len(entries) >= self._size:
            if not self._size:
                return
            self._drop_oldest()  # QB-3.1.1.3-16, QB-3.1.5.8.2-06
        self._insert(key, durable=durable)  # QB-3.1.5.8.2-05, -07
        if not self._is_armed:
            self._start_timer()  # QB-3.1.5.8.2-08

    def clean_up(self, now: float) -> None:
        """Drop the entries that are older than the clean-up interval (MQQB 3.1.6.7)."""
        clock = self._core.clock
        limit = clock.time() - clock.monotonic() + now - self._interval
        old = [key for key, (time_stamp, _) in self._entries.items() if time_stamp < limit]
        for key in old:  # QB-3.1.6.7-01
            self._release(key, self._entries.pop(key)[1])

    def flush(self) -> None:
        """Put into the batch what this turn has changed."""
        if not self._new and not self._dead:
            return
        batch = self._core.batch
        for number in self._dead:
            batch.delete(TABLE, _chunk_key(number))
        self._dead.clear()
        if self._new:
            self._put_chunk(self._open, list(self._new))  # QB-3.1.1.3-18
            self._new.clear()
            self._open += 1
            if len(self._live) > 2 * CHUNKS:
                self._merge()

    def _insert(self, key: bytes, *, durable: bool) -> None:
        time_stamp = int(self._core.clock.time()) & _TIME_STAMP_MAX
        if durable:
            self._new[key] = None
            self._entries[key] = time_stamp, self._open
        else:
            self._entries[key] = time_stamp, _VOLATILE

    def _drop_oldest(self) -> None:
        key, (_, chunk) = self._entries.popitem(last=False)  # a dict walks over what it deleted
        self._release(key, chunk)

    def _release(self, key: bytes, chunk: int) -> None:
        """An entry of a chunk does not count any more."""
        if chunk == self._open:
            del self._new[key]
        elif chunk != _VOLATILE:
            self._live[chunk] -= 1
            if not self._live[chunk]:
                self._bury(chunk)

    def _bury(self, chunk: int) -> None:
        del self._live[chunk]
        self._dead.append(chunk)

    def _put_chunk(self, number: int, keys: list[bytes]) -> None:
        entries = self._entries
        record = b"".join([_VERSION, *(_ENTRY.pack(key, entries[key][0]) for key in keys)])
        self._core.batch.put(TABLE, _chunk_key(number), record)
        self._live[number] = len(keys)

    def _load_chunk(self, number: int, key: bytes, record: bytes) -> None:
        if len(key) != _KEY_SIZE or not number:
            raise damaged_record(TABLE, key, "the key is no number of a chunk")
        if record[:1] != _VERSION:
            raise damaged_record(TABLE, key, f"it does not begin with version {VERSION}")
        if len(record) % _ENTRY.size != 1:
            raise damaged_record(TABLE, key, f"{len(record)} bytes are no whole entries")
        entries = self._entries
        self._live[number] = 0
        for identifier, time_stamp in _ENTRY.iter_unpack(memoryview(record)[1:]):
            earlier = entries.pop(identifier, None)
            if earlier is not None and earlier[1] != _VOLATILE:
                self._live[earlier[1]] -= 1
            entries[identifier] = time_stamp, number
            self._live[number] += 1

    def _merge(self) -> None:
        """Make one chunk of neighbours, until each has its share of all entries.

        A merged chunk takes the place of its last part, so the order of the entries stays.
        """
        share = max(1, self._size // CHUNKS)
        keys_of: dict[int, list[bytes]] = {number: [] for number in self._live}
        for key, (_, number) in self._entries.items():
            if number in keys_of:
                keys_of[number].append(key)
        group: list[int] = []
        keys: list[bytes] = []
        last = max(keys_of)
        for number in sorted(keys_of):
            group.append(number)
            keys += keys_of[number]
            if len(keys) >= share or number == last:
                self._join(group, keys)
                group, keys = [], []

    def _join(self, group: list[int], keys: list[bytes]) -> None:
        if len(group) == 1:
            return
        for number in group[:-1]:
            del self._live[number]
            self._core.batch.delete(TABLE, _chunk_key(number))
        target = group[-1]
        for key in keys:
            self._entries[key] = self._entries[key][0], target
        self._put_chunk(target, keys)

    def _start_timer(self) -> None:
        """Start the MessageIDHistory Cleanup Timer (MQQB 3.1.2.8)."""
        self._is_armed = True
        timers, life = self._core.timers, self._life
        # QB-3.1.2.8-01
        timers.after(self._core.clock.monotonic(), self._interval, lambda: self._expired(life))

    def _expired(self, life: int) -> None:
        if life != self._life:
            return
        self._is_armed = False
        self.clean_up(self._core.clock.monotonic())
        if self._entries:
            self._start_timer()  # QB-3.1.6.7-02


def damaged_record(table: str, key: bytes, problem: str) -> StoreError:
    """The error for a record of the transport that cannot be what was written."""
    return StoreError(
        f"record {key.hex()} of table {table} cannot be read: {problem}",
        status=MqStatus.MESSAGE_STORAGE_FAILED,
        hint="nothing was changed; restore the data directory from a backup",
    )


def _chunk_key(number: int) -> bytes:
    return number.to_bytes(_KEY_SIZE, "big")


def _chunk_number(key: bytes) -> int:
    return int.from_bytes(key, "big")
