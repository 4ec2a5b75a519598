"""Which manager answers at which address, and whose clock is wrong: learnt from the messages.

A message that A handed over to an address and that turned up at B shows who is at that address, and
bounds the difference of their clocks (`clocks`). Only messages whose way is plain are asked: from
the sender to the receiver, with one manager between them or none.
"""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from falconmq.spark.grouped import NONE, Groups, combined_codes
from falconmq.spark.jobs.clocks import Link
from falconmq.spark.jobs.flat_places import Flat, flatten
from falconmq.spark.jobs.merging import merge_batches, packed
from falconmq.spark.tables import Commit

GATHERED: Final = "links string, facts binary"
_SENDER, _BETWEEN, _RECEIVER = range(3)


@dataclass(frozen=True)
class Learnt:
    """What a batch of messages shows."""

    addresses: dict[str, str]
    links: list[Link]


def gather_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`, over rows sorted by message: what is known of thousands of messages, packed
    into one value that Spark need not look into, and the links that they show."""
    for merged in merge_batches(batches):
        links = json.dumps(links_of(merged).to_pylist())
        yield pa.RecordBatch.from_pydict(
            {"links": [links], "facts": pa.array([packed(merged)], pa.binary())}
        )


def links_of(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each two managers between which messages went; from rows of `merging.MERGED`."""
    flat = flatten(rows)
    a, b = _pairs(flat)
    place = flat.place
    key = combined_codes([place["manager"][a], place["address"][a], place["manager"][b]])
    groups = Groups(key, int(key.max(initial=-1)) + 1)
    seen = np.where(place["queued_at"] != NONE, place["queued_at"], place["arrived_at"])[b]
    first = groups.row_of(np.arange(len(key)), last=False)
    text = flat.texts
    return pa.RecordBatch.from_pydict(
        {
            "a": text.column(place["manager"][a][first]),
            "address": text.column(place["address"][a][first]),
            "b": text.column(place["manager"][b][first]),
            "messages": pa.array(groups.total(np.ones(len(key), np.int64))),
            "low": pa.array(groups.maximum(seen - place["delivered_at"][a]) / 1e6),
            "high": pa.array(groups.minimum(seen - place["queued_at"][a]) / 1e6),
        }
    )


def _pairs(flat: Flat) -> tuple[Any, Any]:
    """Places between which a message went, for messages whose way is plain."""
    place, groups = flat.place, Groups(flat.message, flat.count)
    passes = ~flat.is_copy & ((place["queued"] > 0) | (place["arrivals"] > 0))
    is_sender = place["manager"] == flat.sender[flat.message]
    role = np.where(is_sender, _SENDER, np.where(place["arrivals"] > 0, _RECEIVER, _BETWEEN))
    index = np.arange(len(role))
    counts, rows = {}, {}
    for each in (_SENDER, _BETWEEN, _RECEIVER):
        has_it = passes & (role == each)
        counts[each] = groups.total(has_it.astype(np.int64))
        rows[each] = groups.maximum(np.where(has_it, index, -1))
    is_plain = (counts[_SENDER] == 1) & (counts[_RECEIVER] == 1)
    direct, over = is_plain & (counts[_BETWEEN] == 0), is_plain & (counts[_BETWEEN] == 1)
    a = [rows[_SENDER][direct], rows[_SENDER][over], rows[_BETWEEN][over]]
    b = [rows[_RECEIVER][direct], rows[_BETWEEN][over], rows[_RECEIVER][over]]
    here, there = np.concatenate(a), np.concatenate(b)
    is_known = (place["address"][here] >= 0) & (place["delivered_at"][here] != NONE)
    is_known &= place["queued_at"][here] != NONE
    return here[is_known], there[is_known]


def learnt(rows: Iterable[Mapping[str, Any]]) -> Learnt:
    """From rows of `links_of`."""
    votes: dict[str, Counter[str]] = {}
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for row in rows:
        votes.setdefault(row["address"], Counter())[row["b"]] += row["messages"]
        pair = row["a"], row["b"]
        low, high = bounds.get(pair, (row["low"], row["high"]))
        bounds[pair] = max(low, row["low"]), min(high, row["high"])
    addresses = {address: vote.most_common(1)[0][0] for address, vote in sorted(votes.items())}
    return Learnt(addresses, [Link(a, b, *bounds[a, b]) for a, b in sorted(bounds)])


def addresses_of(commits: Iterable[Commit]) -> Mapping[str, str]:
    """Managers by the addresses at which the archive found them, where those are numbers."""
    found = {}
    for commit in commits:
        host = urlsplit(str(commit.facts.get("url", ""))).hostname or ""
        try:
            ipaddress.ip_address(host)
        except ValueError:
            continue
        found[host] = str(commit.facts["manager"])
    return found
