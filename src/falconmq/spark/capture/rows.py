"""What a reader found, as batches of rows of packets, sessions and anomalies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from falconmq.capture.frames import Endpoint, Undissected
from falconmq.capture.packets import NO_BEGINNING, NO_PACKET
from falconmq.spark.capture.facts import MALFORMED, packet_facts, ping_facts
from falconmq.spark.capture.files import NO_TIME
from falconmq.spark.capture.gather import gather
from falconmq.spark.capture.headers import address_text
from falconmq.spark.capture.numbering import UNKNOWN, number_messages
from falconmq.spark.capture.packed import Columns
from falconmq.spark.capture.reading import Datagrams, FileCounts, SetReader, Stretch
from falconmq.spark.capture.shapes import recognise
from falconmq.spark.capture.streams import Direction, Ended, Found, Gap, Single, Whole
from falconmq.spark.capture.tables import array, batch_of, batch_of_rows
from falconmq.spark.capture.views import Flags, Ints, ints

ROWS_MAX: Final = 20_000  # of a batch
_HEAD: Final = 64  # bytes of an anomaly that are shown
_LEFT_OUT: Final = {
    Undissected.FRAGMENT: "fragment",
    Undissected.CUT_SHORT: "damaged_frame",
    Undissected.UNKNOWN_LINK: "unknown_link",
}
Row = dict[str, Any]


class RowMaker:
    """Makes batches of what one reader finds."""

    def __init__(self, name: str, reader: SetReader, *, keep_packets: bool = False) -> None:
        self._name = name  # of the set
        self._reader = reader
        self._keep_packets = keep_packets

    def batches(self, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        anomalies: list[Row] = []
        yield from self._packets(_Packed(stretch.found), anomalies)
        anomalies += [self._trouble(found) for found in stretch.found if _is_trouble(found)]
        if stretch.pings is not None:
            yield self._pings(stretch.pings, anomalies)
        if stretch.file is not None:
            anomalies += self._file(stretch.file)
        for begin in range(0, len(anomalies), ROWS_MAX):
            yield batch_of_rows("anomaly", anomalies[begin : begin + ROWS_MAX])
        if stretch.ended:
            yield batch_of_rows("session", [self._session(ended) for ended in stretch.ended])

    # Packets

    def _packets(self, packed: _Packed, anomalies: list[Row]) -> Iterator[pa.RecordBatch]:
        if not len(packed.starts):
            return
        numbers, acks = number_messages(
            packed.data,
            packed.starts,
            packed.lengths,
            packed.owners,
            packed.directions,
            packed.behind_trouble,
        )
        is_left = np.ones(len(packed.starts), np.bool_)
        for rows, columns in recognise(packed.data, packed.starts, packed.lengths):
            is_left[rows] = False
            if "server_manager" in columns:
                packed.introduce(rows, columns)
            yield from self._in_batches(packed, rows, numbers, acks, columns)
        left = np.flatnonzero(is_left)
        if len(left):
            facts = [self._slowly(packed, row, anomalies) for row in left.tolist()]
            names = {name for row in facts for name in row}
            slow = {name: array(name, [row.get(name) for row in facts]) for name in names}
            yield from self._in_batches(packed, left, numbers, acks, slow)

    def _in_batches(
        self, packed: _Packed, rows: Ints, numbers: Ints, acks: Ints, columns: Columns
    ) -> Iterator[pa.RecordBatch]:
        for begin in range(0, len(rows), ROWS_MAX):
            chosen = rows[begin : begin + ROWS_MAX]
            place = self._places(packed.frames[chosen], packed.times[chosen])
            facts = {name: column.slice(begin, ROWS_MAX) for name, column in columns.items()}
            yield batch_of(
                "packet",
                {
                    **place,
                    **packed.columns(chosen),
                    "message_number": _numbers("message_number", numbers[chosen]),
                    "acknowledged_number": _numbers("acknowledged_number", acks[chosen]),
                    **facts,
                    **(packed.bytes_of(chosen) if self._keep_packets else {}),
                },
            )

    def _slowly(self, packed: _Packed, row: int, anomalies: list[Row]) -> Row:
        data = packed.packet(row)
        facts = packet_facts(data)
        if facts["kind"] == MALFORMED:
            direction = packed.directions[int(packed.owners[row])]
            anomalies.append(
                self._place(int(packed.frames[row]), int(packed.times[row]))
                | _on(direction)
                | {
                    "kind": MALFORMED,
                    "reason": facts["problem"],
                    "size": len(data),
                    "first_bytes": data[:_HEAD],
                }
            )
        return facts

    def _pings(self, pings: Datagrams, anomalies: list[Row]) -> pa.RecordBatch:
        rows = []
        segments, addresses = pings.segments, self._reader.addresses
        for number, payload in enumerate(pings.payloads):
            source = addresses.endpoint(int(segments.sources[number]))
            destination = addresses.endpoint(int(segments.destinations[number]))
            missing = int(segments.missing[number])
            place = self._place(int(pings.frames[number]), int(pings.times[number]))
            facts = ping_facts(payload)
            if missing:
                facts = {"kind": MALFORMED, "problem": "the capture cut it short"}
            if facts["kind"] == MALFORMED:
                anomalies.append(
                    place
                    | {
                        "kind": MALFORMED,
                        "reason": facts["problem"],
                        "size": len(payload),
                        "first_bytes": payload[:_HEAD],
                    }
                )
            kept = {"packet": payload} if self._keep_packets else {}
            size = {"size": len(payload) + missing, "lost": 0}
            rows.append(place | _ends(source, destination) | size | facts | kept)
        return batch_of_rows("packet", rows)

    # Places

    def _places(self, frames: Ints, times: Ints) -> dict[str, pa.Array]:
        files, numbers = self._reader.place_of(frames)
        paths = pa.array(self._reader.paths, pa.string())
        return {
            "capture_set": pa.repeat(self._name, len(frames)),
            "capture": paths.take(pa.array(files)),
            "frame": pa.array(numbers),
            "at": pa.array(times // 1000, pa.timestamp("us", tz="UTC"), mask=times == NO_TIME),
        }

    def _place(self, frame: int, time_ns: int) -> Row:
        files, numbers = self._reader.place_of(ints([frame]))
        path = self._reader.paths[int(files[0])]
        return {
            "capture_set": self._name,
            "capture": path,
            "frame": int(numbers[0]),
            "at": _microseconds(time_ns),
        }

    # The others

    def _trouble(self, found: Found) -> Row:
        assert not isinstance(found, Whole)
        row = self._place(found.frame, found.time_ns) | _on(found.direction)
        if isinstance(found, Gap):
            reason = "bytes are missing in the capture"
            return row | {"kind": "gap", "reason": reason, "size": found.size}
        cut = found.cut
        is_skipped = cut.problem in (NO_PACKET, NO_BEGINNING)
        return row | {
            "kind": "skipped" if is_skipped else "incomplete",
            "reason": cut.problem,
            "size": cut.size,
            "first_bytes": cut.data[:_HEAD],
        }

    def _file(self, counts: FileCounts) -> list[Row]:
        """What is wrong with a file as such; told by the reader of the first lane only."""
        if not self._reader.is_first_lane:
            return []
        rows: list[Row] = []
        here: Row = {"capture_set": self._name, "capture": counts.path}
        for why, (count, first) in counts.left_out.items():
            if why in _LEFT_OUT:
                frame = {"frame": first - counts.first_frame + 1, "count": count}
                rows.append(here | frame | {"kind": _LEFT_OUT[why], "reason": why.value})
        if counts.damage is not None:
            damage = {"kind": "damaged_file", "reason": str(counts.damage)}
            rows.append(here | {"frame": counts.frames} | damage)
        return rows

    def _session(self, ended: Ended) -> Row:
        flow, conversation = ended.flow, ended.flow.conversation
        row: Row = {
            "capture_set": self._name,
            "flow": flow.name,
            "client": address_text(conversation.client),
            "client_port": conversation.client.port,
            "server": address_text(conversation.server),
            "server_port": conversation.server.port,
            "client_manager": flow.managers[0],
            "server_manager": flow.managers[1],
            "started_at": _microseconds(conversation.started_ns),
            "ended_at": _microseconds(flow.tally.last_ns),
            "end_reason": ended.reason,
            "is_whole": conversation.is_whole,
            "is_refused": flow.is_refused,
            "segments": flow.tally.segments,
            "repeated_segments": flow.tally.repeated,
            "missing_bytes": 0,
        }
        for side, from_client in (("client", True), ("server", False)):
            direction = flow.directions.get(from_client)
            row[f"{side}_packets"] = 0 if direction is None else direction.packets
            row[f"{side}_bytes"] = 0 if direction is None else direction.size
            row["missing_bytes"] += 0 if direction is None else direction.missing
        return row


class _Packed:
    """All whole packets of a stretch, one behind the other in one buffer."""

    def __init__(self, found: Sequence[Found]) -> None:
        wholes = [whole for whole in map(_as_whole, found) if whole is not None]
        self.directions = list({whole.direction: None for whole in wholes})
        places = {direction: place for place, direction in enumerate(self.directions)}
        begins = np.cumsum([0, *(len(whole.data) for whole in wholes)]).tolist()
        self.data = b"".join(whole.data for whole in wholes)
        self.starts = _joined([ints(w.starts) + b for w, b in zip(wholes, begins, strict=False)])
        self.lengths = _joined([ints(whole.lengths) for whole in wholes])
        self.frames = _joined([whole.frames for whole in wholes])
        self.times = _joined([whole.times for whole in wholes])
        counts = [len(whole.starts) for whole in wholes]
        self.owners = np.repeat(ints([places[whole.direction] for whole in wholes]), counts)
        self.indexes = _joined([w.first + np.arange(len(w.starts)) for w in wholes])
        told = [_on(direction) | _ends(*_from_to(direction)) for direction in self.directions]
        names = told[0] if told else ()
        self._told = {name: array(name, [row[name] for row in told]) for name in names}
        self.lost, self.behind_trouble = self._trouble(found)

    def _trouble(self, found: Sequence[Found]) -> tuple[Ints, Flags]:
        """How many bytes are lost before each packet, and before which there is any trouble."""
        lost = np.zeros(len(self.starts), np.int64)
        behind = np.zeros(len(self.starts), np.bool_)
        row = 0
        for item in found:
            if _is_trouble(item):
                item.direction.is_behind_trouble = True
                continue
            behind[row] = item.direction.is_behind_trouble
            item.direction.is_behind_trouble = False
            if isinstance(item, Single):
                lost[row] = item.cut.lost
            row += len(item.starts) if isinstance(item, Whole) else 1
        return lost, behind

    def introduce(self, rows: Ints, columns: Columns) -> None:
        """Tell connections who their ends are, from EstablishConnection packets."""
        names = ("client_manager", "server_manager", "is_refused")
        told = zip(*(columns[name].to_pylist() for name in names), strict=True)
        for owner, (client, server, is_refused) in zip(self.owners[rows], told, strict=True):
            flow = self.directions[owner].flow
            flow.managers = client or flow.managers[0], server or flow.managers[1]
            flow.is_refused |= is_refused

    def packet(self, row: int) -> bytes:
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])]

    def bytes_of(self, rows: Ints) -> dict[str, pa.Array]:
        return {"packet": gather(self.data, self.starts[rows], self.lengths[rows])}

    def columns(self, rows: Ints) -> dict[str, pa.Array]:
        """What a packet has from its connection, and its size."""
        owners = pa.array(self.owners[rows])
        told = [_on(direction) | _ends(*_from_to(direction)) for direction in self.directions]
        columns = {name: array(name, [row[name] for row in told]).take(owners) for name in told[0]}
        return columns | {
            "index": pa.array(self.indexes[rows]),
            "size": pa.array(self.lengths[rows]),
            "lost": pa.array(self.lost[rows]),
        }


def _is_trouble(found: Found) -> bool:
    return isinstance(found, Gap) or (isinstance(found, Single) and bool(found.cut.problem))


def _as_whole(found: Found) -> Whole | None:
    if isinstance(found, Whole):
        return found
    if isinstance(found, Gap) or found.cut.problem:
        return None
    cut = found.cut
    frames, times = ints([found.frame]), ints([found.time_ns])
    return Whole(found.direction, found.first, cut.data, [0], [cut.size], frames, times)


def _joined(arrays: list[Ints]) -> Ints:
    return np.concatenate(arrays) if arrays else ints([])


def _numbers(column: str, values: Ints) -> pa.Array:
    known: Flags = values != UNKNOWN
    return pa.array(values, array(column, []).type, mask=~known)


def _on(direction: Direction) -> Row:
    return {
        "flow": direction.flow.name,
        "direction": "to_server" if direction.from_client else "to_client",
    }


def _from_to(direction: Direction) -> tuple[Endpoint, Endpoint]:
    conversation = direction.flow.conversation
    ends = (conversation.client, conversation.server)
    return ends if direction.from_client else (ends[1], ends[0])


def _ends(source: Endpoint, destination: Endpoint) -> Row:
    return {
        "source": address_text(source),
        "source_port": source.port,
        "destination": address_text(destination),
        "destination_port": destination.port,
    }


def _microseconds(time_ns: int | None) -> int | None:
    return None if time_ns is None or time_ns == NO_TIME else time_ns // 1000
