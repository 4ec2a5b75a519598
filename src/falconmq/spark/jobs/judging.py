"""One row for each message: how its life went, as far as its places tell.

How to think about it. `merging` has collected what is known of a message at every place it passed.
This module looks at all places of a message together and says in which state it is, where it is,
how long it took, and what is wrong with it, for thousands of messages at once. It is a function of
the facts and of the `View` alone, so a row is simply made again whenever new facts come.

States: under way (in an outgoing queue), delivered (handed over to a manager whose log is not here,
or not yet), waiting (in its queue), received, dead-lettered, expired, purged, queue deleted,
rejected, refused, reached (its receiver told so), moved, seen (by others only), lost, and unknown
(a gap in the archive hides what happened).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from falconmq.spark.grouped import NONE, TIME, Groups, as_times, taken
from falconmq.spark.jobs.flat_places import Flat, flatten
from falconmq.spark.jobs.merging import PLACE, unpacked
from falconmq.spark.jobs.naming import name_all
from falconmq.spark.jobs.view import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

FINAL: Final = (
    *("received", "dead-lettered", "expired", "purged", "queue deleted", "rejected", "refused"),
    *("reached", "delivered"),
)
MISSING: Final = ("lost", "unknown")
SECOND: Final = 1_000_000
LIFE: Final = pa.schema(
    [
        ("message_id", pa.string()),
        *((n, TIME) for n in ("sent_at", "begun_at", "arrived_at", "received_at", "left_at")),
        *((n, pa.string()) for n in ("state", "reason", "queue", "route")),
        ("size", pa.int64()),
        *((n, pa.float64()) for n in ("latency_seconds", "waiting_seconds")),
        *((n, pa.string()) for n in ("sender", "source_computer", "destination")),
        *((n, pa.string()) for n in ("arrived_manager", "arrived_computer")),
        *((n, pa.int64()) for n in ("arrivals", "receipts", "duplicates", "returns")),
        ("told", pa.list_(pa.string())),
        ("told_at", TIME),
        ("sequence_id", pa.string()),
        *((n, pa.int64()) for n in ("sequence_number", "previous_number")),
        ("is_traced", pa.bool_()),
        *((n, TIME) for n in ("first_at", "last_at")),
        ("events", pa.int64()),
        ("places", pa.list_(PLACE)),
        ("findings", pa.list_(pa.string())),
        *((n, pa.string()) for n in ("lost_from", "lost_to")),
        ("updated_batch", pa.int64()),
        ("day", pa.date32()),
        ("is_over", pa.bool_()),
    ]
)


def judging(view: View) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`, over packed facts (`links.gather_batches`)."""
    return partial(_judge_batches, view)


def _judge_batches(view: View, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for facts in batch.column("facts"):
            yield judge(unpacked(facts.as_buffer()), view)


def judge(rows: pa.RecordBatch, view: View) -> pa.RecordBatch:
    """Rows of `merging.MERGED` become rows of `LIFE`."""
    flat = flatten(rows)
    life = _Life(flat, view)
    names = name_all(flat, life.came, view)
    made = life.columns(rows)
    made |= names.columns(flat, life)
    made |= {
        "state": pa.array(life.state),
        "findings": life.findings(),
        "is_over": pa.array(life.is_over()),
        "lost_from": flat.texts.column(np.where(life.is_lost, names.computers[life.lost_from], -1)),
        "lost_to": flat.texts.column(np.where(life.is_lost, names.computers[life.lost_to], -1)),
    }
    arrays = [made[f.name] if f.name in made else rows.column(f.name) for f in LIFE]
    return pa.RecordBatch.from_arrays(arrays, schema=LIFE)


class _Life:
    """What follows from the places of messages."""

    def __init__(self, flat: Flat, view: View) -> None:
        self.flat, self.view = flat, view
        self.groups = groups = Groups(flat.message, flat.count)
        place, total = flat.place, groups.total
        self._real = real = ~flat.is_copy
        self._stays = stays = real & (place["arrivals"] > 0)
        here = place["arrivals"] - place["receipts"] - place["moves"] - place["endings"]
        leaving = (place["queued"] > 0) & (
            place["queued"] - place["delivered"] - place["endings"] > 0
        )
        self.is_here = groups.any(stays & (here > 0))
        self.is_leaving = groups.any(leaving)
        self.came = groups.row_of(np.where(stays, place["arrived_at"], NONE), last=False)
        self.leaving = groups.row_of(np.where(leaving, place["queued_at"], NONE), last=False)
        self.arrived_at = taken(place["arrived_at"], self.came)
        self.received_at = groups.minimum(np.where(real, place["received_at"], NONE))
        self.left_at = self._left_at(here)
        self.arrivals = groups.maximum(np.where(stays, place["arrivals"], 0))
        self.receipts = groups.maximum(np.where(real, place["receipts"], 0))
        self.moves = total(place["moves"])
        self.endings = total(np.where(stays, place["endings"], 0))
        self.begun_at = self._begun_at()
        self._judge()

    def _left_at(self, here: NDArray[np.int64]) -> NDArray[np.int64]:
        """When it left the place where it arrived first."""
        place = self.flat.place
        times = [taken(place[n], self.came) for n in ("received_at", "ended_at", "moved_at")]
        latest = np.iinfo(np.int64).max
        first = np.minimum.reduce([np.where(time == NONE, latest, time) for time in times])
        is_gone = taken(here, self.came, 1) <= 0
        return np.where(is_gone & (first != latest), first, NONE)

    def _begun_at(self) -> NDArray[np.int64]:
        """When its sender had it first."""
        place = self.flat.place
        at = np.where(place["queued_at"] != NONE, place["queued_at"], place["arrived_at"])
        is_sender = place["manager"] == self.flat.sender[self.flat.message]
        return self.groups.minimum(np.where(is_sender & self._real, at, NONE))

    def _judge(self) -> None:
        flat, groups, place = self.flat, self.groups, self.flat.place
        text = flat.texts
        is_dead = (place["kept_at"] != NONE) & (flat.is_dead | (place["reason"] >= 0))
        dead = groups.row_of(np.where(is_dead, place["kept_at"], NONE), last=True)
        ended = groups.row_of(place["ended_at"], last=True)
        refused = groups.row_of(place["refused_at"], last=True)
        ending = taken(place["ending"], ended, -1)
        words = np.array([value.replace("_", " ") for value in text.values] + [""])
        states: list[tuple[Any, Any]] = [
            (self.receipts > 0, "received"),
            (self.is_here, "waiting"),
            (dead >= 0, "dead-lettered"),
            ((self.came >= 0) & (ending >= 0), words[ending]),
            (flat.told_received, "received"),
            (ending >= 0, words[ending]),
            ((refused >= 0) | (flat.told_negative >= 0), "refused"),
            (flat.is_told, "reached"),
            (self.is_leaving, "under way"),
            (self.came >= 0, "moved"),
            (groups.any(place["delivered"] > 0), "delivered"),
        ]
        conditions, values = zip(*states, strict=True)
        self.state = np.select(conditions, values, "seen")
        self._judge_missing()
        reasons = [taken(place["reason"], row, -1) for row in (dead, ended, refused)]
        reason = np.where(self.state == "dead-lettered", reasons[0], -1)
        for other in (reasons[1], reasons[2], flat.told_negative):
            reason = np.where(reason >= 0, reason, other)
        self.reason = np.where(np.isin(self.state, ("received", "waiting")), -1, reason)

    def _judge_missing(self) -> None:
        """Messages that were handed over and never seen again, or that a gap may hide."""
        flat, place, view = self.flat, self.flat.place, self.view
        goes_to = flat.texts.mapped(view.addresses.get)[place["address"]]
        width = len(flat.texts.values) + 1
        seen = flat.message * width + place["manager"]
        is_unseen = (place["delivered_at"] != NONE) & (goes_to >= 0)
        is_unseen &= ~np.isin(flat.message * width + goes_to, seen)
        row = self.groups.row_of(np.where(is_unseen, place["delivered_at"], NONE), last=False)
        at = taken(place["delivered_at"], row)
        self.lost_from, self.lost_to = taken(place["manager"], row, -1), taken(goes_to, row, -1)
        limits = view.limits
        since = self._by_manager({m: c.since for m, c in view.covers.items()}, self.lost_to)
        through = self._by_manager({m: c.through for m, c in view.covers.items()}, self.lost_to)
        patience = round((limits.grace + limits.tolerance) * SECOND)
        slack = round(limits.tolerance * SECOND)
        covered = (row >= 0) & (since != NONE) & (at >= since + slack) & (at + patience <= through)
        is_missing = (self.state == "delivered") & covered
        never = np.full(flat.count, np.iinfo(np.int64).max)
        came = taken(place["manager"], self.came, -1)
        leaves = taken(place["manager"], self.leaving, -1)
        queued_at = taken(place["queued_at"], self.leaving)
        is_hidden = is_missing & self._hidden(self.lost_to, at, at)
        is_hidden |= (self.state == "waiting") & self._hidden(came, self.arrived_at, never)
        is_hidden |= (self.state == "under way") & self._hidden(leaves, queued_at, never)
        self.state = np.select([is_hidden, is_missing], ["unknown", "lost"], self.state)
        self.is_lost = self.state == "lost"
        end = self._by_manager({m: c.through for m, c in view.covers.items()}, leaves)
        stuck = (queued_at != NONE) & (end != NONE) & (end - queued_at > limits.stuck * SECOND)
        self.is_stuck = (self.state == "under way") & stuck

    def _by_manager(self, times: dict[str, Any], managers: NDArray[np.int64]) -> Any:
        codes = {self.flat.texts.code(name): micros(time) for name, time in times.items()}
        table = np.full(len(self.flat.texts.values) + 1, NONE)
        for code, time in codes.items():
            table[code] = time
        return table[managers]

    def _hidden(self, managers: Any, begin: Any, end: Any) -> NDArray[np.bool_]:
        """Whether a gap in the manager's log touches a time."""
        found = np.zeros(self.flat.count, bool)
        slack = round(self.view.limits.tolerance * SECOND)
        for cover in self.view.covers.values():
            for gap in cover.gaps:
                low, high = micros(gap.after) - slack, micros(gap.before) + slack
                is_it = managers == self.flat.texts.code(cover.manager)
                found |= is_it & (begin < high) & (end > low)
        return found

    # Columns

    def columns(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """Those of numbers and times."""
        flat = self.flat
        self.latency = self._latency()
        waited = np.where(self.left_at != NONE, (self.left_at - self.arrived_at) / SECOND, np.nan)
        day = pc.coalesce(rows.column("sent_at"), rows.column("first_at"))
        return {
            "begun_at": as_times(self.begun_at),
            "arrived_at": as_times(self.arrived_at),
            "received_at": as_times(self.received_at),
            "left_at": as_times(self.left_at),
            "latency_seconds": pa.array(self.latency, mask=np.isnan(self.latency)),
            "waiting_seconds": pa.array(waited, mask=np.isnan(waited)),
            "arrivals": pa.array(self.arrivals),
            "receipts": pa.array(self.receipts),
            "is_traced": pc.equal(rows.column("is_traced"), 1),
            "day": day.cast(pa.timestamp("us")).cast(pa.date32()),
            "reason": flat.texts.column(self.reason),
        }

    def _latency(self) -> NDArray[np.float64]:
        """By one clock: what messages show of the others is taken off."""
        flat = self.flat
        ahead = {flat.texts.code(m): seconds for m, seconds in self.view.clocks.items()}
        clocks = np.zeros(len(flat.texts.values) + 1)
        clocks[list(ahead)] = list(ahead.values())
        arrived = taken(flat.place["manager"], self.came, -1)
        begun = np.where(self.begun_at != NONE, self.begun_at, flat.sent_at)
        took = (self.arrived_at - begun) / SECOND - clocks[arrived] + clocks[flat.sender]
        is_known = (self.arrived_at != NONE) & (begun != NONE)
        return np.where(is_known, np.maximum(took, 0.0), np.nan)

    def findings(self) -> pa.Array:
        """The kinds of what is wrong with each message; most have none."""
        limits = self.view.limits
        twice = (self.receipts > 1 + self.moves) | (self.arrivals > 1 + self.moves + self.endings)
        with np.errstate(invalid="ignore"):
            is_late = self.latency > limits.late + limits.tolerance
        wrong = {
            "lost": self.is_lost,
            "unknown_fate": self.state == "unknown",
            "doubled": twice,
            "repeated": ~twice & (self.flat.duplicates > 0),
            "late": is_late,
            "dead_letter": self.state == "dead-lettered",
            "stuck": self.is_stuck,
        }
        kinds = list(wrong)
        masks = np.stack(list(wrong.values()), axis=1)
        offsets = np.concatenate(([0], np.cumsum(masks.sum(axis=1)))).astype(np.int32)
        values = pa.array(kinds).take(pa.array(np.nonzero(masks)[1]))
        return pa.ListArray.from_arrays(pa.array(offsets), values)

    def is_over(self) -> NDArray[np.bool_]:
        """Whether it ended, and nothing more is to be expected."""
        watermark = self.view.watermark
        if watermark is None:
            return np.zeros(self.flat.count, bool)
        age = (micros(watermark) - self.flat.last_at) / SECOND
        limits = self.view.limits
        ended = np.isin(self.state, FINAL) & (age >= limits.settle)
        # Whether it was lost is known only after the time of grace.
        ended &= (self.state != "delivered") | (age >= limits.grace + limits.tolerance)
        return ended | (np.isin(self.state, MISSING) & (age >= limits.forget))


def micros(time: datetime) -> int:
    return round(time.timestamp() * SECOND)
