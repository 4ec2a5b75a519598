"""How many messages wait in a queue, and how long the oldest has: minute by minute, with np.

Messages are intervals from arrival to departure. At a moment as many wait as have arrived less
those that have left; the oldest is the first, in order of arrival, that leaves later. Its place is
found without a loop: with the arrivals sorted, the largest departure up to each place only grows,
and the first place where it exceeds the moment is the one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from falconmq.client import arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MINUTE: Final = 60_000_000  # microseconds
DAY: Final = 24 * 60 * MINUTE
SCHEMA: Final = "minute timestamp, queue string, depth bigint, oldest_seconds double"
NEVER: Final = (1 << 63) - 1


def at_moments(
    arrived: NDArray[np.int64], left: NDArray[np.int64], moments: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many wait at each moment, and the arrival of the oldest; the moment itself if none.

    `left` is NEVER for those that are still there. Who arrives at a moment is there, who leaves is
    not.
    """
    order = np.argsort(arrived, kind="stable")
    arrived, left = arrived[order], left[order]
    came = np.searchsorted(arrived, moments, side="right")
    gone = np.searchsorted(np.sort(left), moments, side="right")
    depth = came - gone
    first = np.searchsorted(np.maximum.accumulate(left), moments, side="right")
    oldest = np.where(depth > 0, arrived[np.minimum(first, len(arrived) - 1)], moments)
    return depth.astype(np.int64), oldest


def of_day(
    arrived: NDArray[np.int64], left: NDArray[np.int64], day: int, until: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Minutes of a day in which messages waited, came or left; depth and age at their ends."""
    minutes = np.arange(day, min(day + DAY, until), MINUTE, dtype=np.int64)
    ends = np.minimum(minutes + MINUTE - 1, until)
    depth, oldest = at_moments(arrived, left, ends)
    moved = np.zeros(len(minutes), bool)
    for moments in (arrived, left[left != NEVER]):
        index = (moments - day) // MINUTE
        moved[index[(index >= 0) & (index < len(minutes))]] = True
    wanted = (depth > 0) | moved
    return minutes[wanted], depth[wanted], (ends - oldest)[wanted] / 1e6


def backlog_group(rows: pa.Table, until: int) -> pa.Table:
    """One queue on one day, for `applyInArrow`: columns queue, day, arrived, left."""
    pyarrow: Any = arrow.load()
    day = int(rows.column("start")[0].as_py())
    arrived = rows.column("arrived").to_numpy()
    left = rows.column("left").fill_null(NEVER).to_numpy()
    minutes, depth, oldest = of_day(arrived, left.astype(np.int64), day, until)
    queue = rows.column("queue")[0].as_py()
    return pyarrow.table(
        {
            "minute": pyarrow.array(minutes).cast(pyarrow.timestamp("us", "UTC")),
            "queue": pyarrow.array([queue] * len(minutes), pyarrow.string()),
            "depth": pyarrow.array(depth),
            "oldest_seconds": pyarrow.array(oldest),
        }
    )
