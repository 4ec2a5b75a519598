"""Strategies for what goes into a store: few tables, keys that meet each other, odd sizes."""

from __future__ import annotations

from hypothesis import strategies as st

from falconmq.store.interface import KEY_BYTES_MAX, WriteBatch

TABLES = ("meta", "messages", "queues")

tables = st.sampled_from(TABLES)
keys = st.one_of(
    st.binary(min_size=1, max_size=2),
    st.integers(0, 300).map(lambda number: number.to_bytes(8, "big")),
    st.sampled_from([b"\xff" * KEY_BYTES_MAX, b"\0" * KEY_BYTES_MAX, b"k" * KEY_BYTES_MAX]),
)
bounds = st.one_of(keys, st.binary(max_size=2), st.just(b"k" * (KEY_BYTES_MAX + 5)))
values = st.one_of(
    st.binary(max_size=40),
    st.integers(0, 20_000).map(lambda size: bytes([size & 255]) * size),
    st.binary(max_size=40).map(lambda value: memoryview(value)[len(value) // 2 :]),
    st.binary(max_size=40).map(bytearray),
)
operations = st.one_of(st.tuples(tables, keys, values), st.tuples(tables, keys, st.none()))


@st.composite
def write_batches(draw: st.DrawFn) -> WriteBatch:
    batch = WriteBatch()
    for table, key, value in draw(st.lists(operations, max_size=12)):
        if value is None:
            batch.delete(table, key)
        else:
            batch.put(table, key, value)
    return batch
