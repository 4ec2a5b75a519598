"""Packets that lie in one buffer, and what shapes of them have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from falconmq.spark.capture.tables import array
from falconmq.spark.capture.views import Ints, Numbers, numbers_at

Columns = Mapping[str, pa.Array]


class Shape(NamedTuple):
    """Packets of one shape: which they are, and their columns."""

    rows: Ints
    columns: Columns


class PackedPackets:
    """Packets in a buffer, with numbers at any place of it."""

    def __init__(self, data: bytes, starts: Ints, lengths: Ints) -> None:
        self.data, self.starts, self.lengths = data, starts, lengths
        view = memoryview(data)
        self.u1 = np.frombuffer(data, np.uint8)
        self._u2, self._u4 = numbers_at(view, "<u2"), numbers_at(view, "<u4")
        self._u8 = numbers_at(view, "<u8")

    def byte(self, places: Ints) -> Ints:
        return self.u1[places].astype(np.int64)

    def word(self, places: Ints) -> Ints:
        return self._u2[places].astype(np.int64)

    def double(self, places: Ints) -> Ints:
        return self._u4[places].astype(np.int64)

    def quad(self, places: Ints) -> Numbers:
        return self._u8[places]


def session_columns(packets: PackedPackets, places: Ints) -> dict[str, pa.Array]:
    """The columns of SessionHeaders."""
    return {
        "ack_sequence_number": array("ack_sequence_number", packets.word(places)),
        "stored_sequence_number": array("stored_sequence_number", packets.word(places + 2)),
        "stored_flags": array("stored_flags", packets.double(places + 4)),
        "user_sequence_number": array("user_sequence_number", packets.word(places + 8)),
        "recoverable_sequence_number": array(
            "recoverable_sequence_number", packets.word(places + 10)
        ),
        "window_size": array("window_size", packets.word(places + 12)),
    }
