"""Rows of an Arrow table become packets: the way into queues for those who send in bulk.

Most rows of a batch differ in a few things only: body, label, extension, and some numbers. All that
is left decides how a packet is built, and few rows differ in it. So one packet is built for each
such combination, by the same code that builds every packet; it is the template of its rows. Copies
of the templates get their numbers, and Arrow joins them with labels, extensions and bodies. There
is no loop over the rows.

A batch with anything in it that this does not understand, or that must be refused, is sent row by
row instead: both ways give the same bytes and the same errors.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.body import BodyType
from falconmq.client.arrow import (
    check_columns,
    has_text_bodies,
    sent_column,
    table_to_messages,
)
from falconmq.client.columns import BODY, BY_NAME
from falconmq.client.packet_columns.buffers import BYTES_MAX, Int64s
from falconmq.client.packet_columns.texts import to_utf16
from falconmq.client.packet_templates import Unusual, correlations, make_templates
from falconmq.client.packets import NOBODY, to_packet
from falconmq.errors import FalconMQError
from falconmq.message import DEFAULT_TIME_TO_REACH_QUEUE, INFINITE, LABEL_MAX, Message
from falconmq.names import SingleFormatName
from falconmq.wire.base_header import DEFAULT_PRIORITY, PACKET_SIZE_MAX, PRIORITY
from falconmq.wire.message_properties_header import FIXED_SIZE as PROPERTIES_SIZE

Columns = dict[str, Any]
"""Columns of a batch by name, in the types of the schema."""

_U32_MAX: Final = 0xFFFFFFFF
# What a template does not say; places count from the packet's beginning or from its properties.
_FREE: Final = (
    BODY,
    "label",
    "extension",
    "correlation_id",
    "body_type",
    "application_tag",
    "priority",
    "time_to_reach_queue",
    "time_to_be_received",
)
_BASE_FLAGS: Final = 2
_PACKET_SIZE: Final = 8
_TIME_TO_REACH_QUEUE: Final = 12
_TIME_TO_BE_RECEIVED: Final = 48
_LABEL_LENGTH: Final = 1
_CORRELATION_ID: Final = 4
_BODY_TYPE: Final = 24
_APPLICATION_TAG: Final = 28
_MESSAGE_SIZE: Final = 32
_ALLOCATION_BODY_SIZE: Final = 36
_EXTENSION_SIZE: Final = 52


def arrow_to_packets(
    batch: pa.RecordBatch,
    destination: SingleFormatName,
    *,
    in_transaction: bool,
    source: UUID = NOBODY,
) -> list[bytes]:
    """One packet a row, each as `to_packet` makes it of the message that the row describes."""

    def build(message: Message) -> bytes:
        return to_packet(message, destination, in_transaction=in_transaction, source=source)

    check_columns(batch.schema)
    if batch.num_rows:
        try:
            return _Build(batch, in_transaction=in_transaction).packets(build)
        except (Unusual, FalconMQError):
            pass  # what is wrong, and in which row, is told below
    return [build(message) for message in table_to_messages(batch)]


class _Build:
    """The packets of one batch."""

    def __init__(self, batch: pa.RecordBatch, *, in_transaction: bool) -> None:
        self.count = batch.num_rows
        self.in_transaction = in_transaction
        self.has_texts = has_text_bodies(batch.schema)
        sent = [name for name in batch.schema.names if BY_NAME[name].is_sent]
        columns = {name: sent_column(batch, name) for name in sent}
        # A column of nulls says nothing.
        columns = {
            name: column
            for name, column in columns.items()
            if name == BODY or column.null_count < self.count
        }
        self.free: Columns = {name: columns.pop(name) for name in _FREE if name in columns}
        self.rest: Columns = columns

    def packets(self, build: Callable[[Message], bytes]) -> list[bytes]:
        """All packets; Unusual if they are not for this way."""
        labels, label_units = self._labels()
        bodies, body_types = self._bodies()
        extensions = self._extensions()
        templates = make_templates(self.rest, self.count, build)
        texts = np.where(label_units > 0, 2 * label_units + 2, 0)
        body_sizes, extension_sizes = _sizes(bodies), _sizes(extensions)
        filled = -(texts + extension_sizes + body_sizes) % 4
        sizes = texts + extension_sizes + body_sizes + filled
        sizes += _sizes(templates.heads) + _sizes(templates.tails)
        if sizes.max() > PACKET_SIZE_MAX or sizes.sum() > BYTES_MAX:
            raise Unusual
        heads = _Heads(templates.heads)
        if not self.in_transaction:
            priorities = self._numbers("priority", DEFAULT_PRIORITY, PRIORITY)
            heads.set_bits(_BASE_FLAGS, PRIORITY, priorities)
        else:
            self._numbers("priority", DEFAULT_PRIORITY, PRIORITY)  # checked, and 0 all the same
        ttrq = self._numbers("time_to_reach_queue", DEFAULT_TIME_TO_REACH_QUEUE)
        heads.put(_PACKET_SIZE, "<u4", sizes)
        heads.put(_TIME_TO_REACH_QUEUE, "<u4", ttrq)
        heads.put(_TIME_TO_BE_RECEIVED, "<u4", self._numbers("time_to_be_received", INFINITE))
        heads.put_property(_LABEL_LENGTH, "u1", texts // 2)
        heads.put_property(_BODY_TYPE, "<u4", body_types)
        heads.put_property(_APPLICATION_TAG, "<u4", self._numbers("application_tag", 0))
        heads.put_property(_MESSAGE_SIZE, "<u4", body_sizes)
        heads.put_property(_ALLOCATION_BODY_SIZE, "<u4", body_sizes)
        heads.put_property(_EXTENSION_SIZE, "<u4", extension_sizes)
        if "correlation_id" in self.free:
            heads.put_property(_CORRELATION_ID, "V20", correlations(self.free["correlation_id"]))
        ends = _zeros(np.where(label_units > 0, 2, 0))
        parts = heads.array(), labels, ends, extensions, bodies, _zeros(filled), templates.tails
        return _split(pc.binary_join_element_wise(*parts, b""))

    def _numbers(self, name: str, default: int, highest: int = _U32_MAX) -> Int64s:
        column = self.free.get(name)
        if column is None:
            return np.full(self.count, default, np.int64)
        numbers: Int64s = column.fill_null(default).to_numpy(zero_copy_only=False).astype(np.int64)
        if numbers.min() < 0 or numbers.max() > highest:
            raise Unusual
        return numbers

    def _labels(self) -> tuple[pa.BinaryArray, Int64s]:
        """Labels in UTF-16, and how many units each has."""
        column = self.free.get("label")
        if column is None:
            return pa.repeat(pa.scalar(b""), self.count), np.zeros(self.count, np.int64)
        labels = to_utf16(column.fill_null(""))
        units = _sizes(labels) // 2
        if units.max() > LABEL_MAX or pc.any(pc.match_substring(column, "\0")).as_py():
            raise Unusual
        return labels, units

    def _bodies(self) -> tuple[pa.BinaryArray, Int64s]:
        """Bodies, and what readers are told they are."""
        body = self.free[BODY]
        if body.null_count:
            raise Unusual
        if not self.has_texts:
            return body, self._numbers("body_type", BodyType.VT_EMPTY)
        if "body_type" not in self.free:
            return to_utf16(body), np.full(self.count, BodyType.VT_BSTR, np.int64)
        types = self._numbers("body_type", BodyType.VT_BSTR)
        if (types != BodyType.VT_EMPTY).any():
            raise Unusual
        return body.cast(pa.binary()), types

    def _extensions(self) -> pa.BinaryArray:
        column = self.free.get("extension")
        return pa.repeat(pa.scalar(b""), self.count) if column is None else column.fill_null(b"")


class _Heads:
    """Copies of the templates up to where labels begin: numbers can be put into all at once."""

    def __init__(self, heads: pa.BinaryArray) -> None:
        _, offsets, data = heads.buffers()
        self._offsets = np.frombuffer(offsets, np.int32)[: len(heads) + 1]
        self._data = np.frombuffer(data, np.uint8)[: self._offsets[-1]].copy()

    def put(self, place: int, type_: str, values: npt.NDArray[Any]) -> None:
        self._everywhere(type_)[self._offsets[:-1] + place] = values

    def put_property(self, place: int, type_: str, values: npt.NDArray[Any]) -> None:
        self._everywhere(type_)[self._offsets[1:] - PROPERTIES_SIZE + place] = values

    def set_bits(self, place: int, mask: int, values: Int64s) -> None:
        at, numbers = self._offsets[:-1] + place, self._everywhere("<u2")
        numbers[at] = numbers[at] & ~np.uint16(mask) | values.astype(np.uint16)

    def array(self) -> pa.BinaryArray:
        buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
        return pa.Array.from_buffers(pa.binary(), len(self._offsets) - 1, buffers)

    def _everywhere(self, type_: str) -> npt.NDArray[Any]:
        """A number at every place; they overlap."""
        size = np.dtype(type_).itemsize
        return np.ndarray((len(self._data) - size + 1,), type_, buffer=self._data, strides=(1,))


def _sizes(pieces: pa.BinaryArray) -> Int64s:
    sizes: Int64s = pc.binary_length(pieces).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _zeros(sizes: Int64s) -> pa.BinaryArray:
    """Up to three zero bytes."""
    return pa.array([bytes(size) for size in range(4)], pa.binary()).take(pa.array(sizes))


def _split(packets: pa.BinaryArray) -> list[bytes]:
    _, offsets, data = packets.buffers()
    whole = data.to_pybytes()
    ends = np.frombuffer(offsets, np.int32)[: len(packets) + 1].tolist()
    return [whole[start:end] for start, end in pairwise(ends)]
